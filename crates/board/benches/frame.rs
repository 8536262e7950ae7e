//! Cost of the board: from an event to the frame that shows it, in a town of 500 items
//! of which 100 have agents.
//!
//! A frame is drawn as on a terminal: into cells, compared with those of the frame before.
//! What comes after that, writing the difference to the terminal, is not in the figures.

#![expect(clippy::print_stdout, reason = "printing is what it is for")]

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use gt_board::{AgentScreen, Board, BoardEvent, BoardFacts, BoardTheme, Moment, sample};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use std::time::{Duration, Instant};

const ITEMS: usize = 500;
const AGENTS: usize = 100;
const RUNS: usize = 200;
const NOW: Moment = Moment::from_seconds(1_800_000_000);

fn main() {
    // `cargo test --benches` only wants to know that it builds and begins.
    if std::env::args().any(|word| word == "--test") {
        return;
    }
    println!("the board with {ITEMS} items and {AGENTS} agents, from an event to its frame\n");
    println!("{:<34} {:>10} {:>10}", "", "median", "slowest");
    for (width, height) in [(80, 24), (200, 50)] {
        let mut stage = Stage::new(width, height);
        println!("{width}x{height}");
        stage.keys("  j and k", "jk");
        stage.keys("  h and l", "hl");
        stage.keys("  the action menu", " \u{1b}");
        stage.keys("  help", "?\u{1b}");
        stage.typing();
        stage.facts();
        stage.screens();
    }
    idle();
}

struct Stage {
    board: Board,
    terminal: Terminal<TestBackend>,
}

impl Stage {
    fn new(width: u16, height: u16) -> Self {
        let backend = TestBackend::new(width, height);
        let mut stage = Stage {
            board: Board::new(BoardTheme::Dark),
            terminal: Terminal::new(backend).expect("a terminal"),
        };
        stage.happens(BoardEvent::Facts(sample(ITEMS, AGENTS)), NOW);
        stage
    }

    fn happens(&mut self, event: BoardEvent, now: Moment) -> Duration {
        let began = Instant::now();
        self.board.handle(event, now);
        if self.board.is_dirty() {
            let board = &mut self.board;
            let drawn = self.terminal.draw(|frame| board.draw(frame, now));
            drawn.expect("a frame");
        }
        began.elapsed()
    }

    fn press(&mut self, letter: char) -> Duration {
        let code = match letter {
            '\u{1b}' => KeyCode::Esc,
            _ => KeyCode::Char(letter),
        };
        let key = KeyEvent::new(code, KeyModifiers::NONE);
        self.happens(BoardEvent::Key(key), NOW)
    }

    fn keys(&mut self, name: &str, keys: &str) {
        let mut times = Vec::new();
        for _ in 0..RUNS {
            times.extend(keys.chars().map(|letter| self.press(letter)));
        }
        report(name, times);
    }

    fn typing(&mut self) {
        let mut times = Vec::new();
        for _ in 0..RUNS / 10 {
            self.press('/');
            times.extend("login flow".chars().map(|letter| self.press(letter)));
            self.press('\u{1b}');
        }
        report("  a letter of a search", times);
    }

    /// One agent comes or goes; the others are as they were.
    fn facts(&mut self) {
        let versions: [BoardFacts; 2] = [sample(ITEMS, AGENTS), sample(ITEMS, AGENTS - 1)];
        let mut times = Vec::new();
        for number in 0..RUNS {
            let facts = versions[number % 2].clone();
            times.push(self.happens(BoardEvent::Facts(facts), NOW));
        }
        report("  new facts", times);
    }

    fn screens(&mut self) {
        let mut times = Vec::new();
        for number in 0..RUNS {
            let words = "word ".repeat(30);
            let line = format!("\u{1b}[3{}m{number} {words}\u{1b}[m", number % 8);
            let screen = AgentScreen {
                id: self.board.cursor().cloned(),
                lines: vec![line; 50],
            };
            times.push(self.happens(BoardEvent::Screen(screen), NOW));
        }
        report("  a new screen of an agent", times);
    }
}

fn report(name: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let median = times[times.len() / 2];
    let slowest = times[times.len() - 1];
    println!("{name:<34} {median:>10.1?} {slowest:>10.1?}");
}

/// How often a board at which nothing happens has to be drawn in an hour.
fn idle() {
    let mut stage = Stage::new(200, 50);
    let end = NOW.plus_millis(3_600_000);
    let mut frames = 0;
    while let Some(next) = stage.board.wake_at().filter(|next| *next <= end) {
        stage.happens(BoardEvent::Tick, next);
        frames += 1;
    }
    println!("\nframes in an hour without events: {frames}");
}

//! Measures the board: the cost of a frame, the cost of an idle board, and the latency from a
//! change to the screen.
//!
//! Each figure is compared with a bare operation in the same run: the same cells drawn as plain
//! text, an idle `tmux -C` client, one `tmux display-message`.

#![expect(clippy::print_stdout, reason = "printing is what it is for")]

#[path = "shared/home.rs"]
mod home;
#[path = "shared/measure.rs"]
#[expect(dead_code, reason = "the others use more of it")]
mod measure;
#[path = "shared/process.rs"]
mod process;
#[path = "shared/town.rs"]
mod town;

use crossterm::event::{KeyCode, KeyEvent};
use gt_board::{Board, BoardEvent, BoardFacts, BoardTheme, Moment};
use measure::{median, report, time};
use process::Spent;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::Style;
use std::time::{Duration, Instant};
use town::Town;
use unicode_width::UnicodeWidthStr;

const ITEMS: usize = 500;
const AGENTS: usize = 100;
/// Duration of a frame at 60 Hz.
const FRAME: Duration = Duration::from_micros(16_667);

fn main() {
    // `cargo test --benches` only checks that the benchmark builds and starts.
    if std::env::args().any(|word| word == "--test") {
        return;
    }
    println!("a frame at {ITEMS} items (median of each, same run)\n");
    println!("{:<46} {:>9} {:>9} {:>7}", "", "plain", "board", "ratio");
    for (width, height) in [(80, 24), (200, 50)] {
        draw(width, height);
    }
    let town = Town::new(AGENTS);
    idle(&town);
    latency(&town);
}

/// Measures a frame after a key and a frame after new facts, against drawing the same text without
/// the board.
fn draw(width: u16, height: u16) {
    const RUNS: usize = 400;
    let mut screen = Screen::new(width, height);
    let facts = gt_board::sample(ITEMS, AGENTS);
    screen.handle(BoardEvent::Facts(facts.clone()));
    screen.draw();
    // The plain side draws the two screens that the keys produce.
    let messages = [KeyCode::Down, KeyCode::Up].map(|key| {
        screen.handle(BoardEvent::Key(KeyEvent::from(key)));
        screen.draw();
        screen.rows()
    });
    let mut plain = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
    let [mut bare, mut keys, mut news] = [const { Vec::new() }; 3];
    for run in 0..RUNS {
        let began = Instant::now();
        let drawn = plain.draw(|frame| {
            for (y, row) in (0..).zip(&messages[run % 2]) {
                frame.buffer_mut().set_string(0, y, row, Style::new());
            }
        });
        drawn.expect("a frame");
        bare.push(began.elapsed());

        let key = [KeyCode::Down, KeyCode::Up][run % 2];
        let began = Instant::now();
        screen.handle(BoardEvent::Key(KeyEvent::from(key)));
        screen.draw();
        keys.push(began.elapsed());

        let facts = changed(&facts, run);
        let began = Instant::now();
        screen.handle(BoardEvent::Facts(facts));
        screen.draw();
        news.push(began.elapsed());
    }
    let (bare, keys, news) = (median(bare), median(keys), median(news));
    report(&format!("a key, {width}×{height}"), bare, keys);
    report(&format!("new facts, {width}×{height}"), bare, news);
    let share = |time: Duration| time.as_secs_f64() / FRAME.as_secs_f64() * 100.0;
    println!(
        "  of a frame at 60 Hz: {:.1} % and {:.1} %",
        share(keys),
        share(news)
    );
}

/// Returns the facts after one agent has made progress.
fn changed(facts: &BoardFacts, run: usize) -> BoardFacts {
    let mut facts = facts.clone();
    facts.cards[run % AGENTS].updated_at += 1;
    if let Some(session) = &mut facts.cards[run % AGENTS].session {
        session.reason = Some(format!("step {run}"));
    }
    facts
}

/// A board on a terminal in memory.
struct Screen {
    board: Board,
    terminal: Terminal<TestBackend>,
}

impl Screen {
    fn new(width: u16, height: u16) -> Self {
        Screen {
            board: Board::new(BoardTheme::Dark),
            terminal: Terminal::new(TestBackend::new(width, height)).expect("a terminal"),
        }
    }

    fn now() -> Moment {
        Moment::from_seconds(1_800_000_000)
    }

    fn handle(&mut self, event: BoardEvent) {
        self.board.handle(event, Self::now());
        assert!(self.board.is_dirty(), "there must be something to draw");
    }

    fn draw(&mut self) {
        let board = &mut self.board;
        let drawn = self.terminal.draw(|frame| board.draw(frame, Self::now()));
        drawn.expect("a frame");
    }

    fn rows(&self) -> Vec<String> {
        let buffer = self.terminal.backend().buffer();
        let row = |cells: &[ratatui::buffer::Cell]| {
            let mut text = String::new();
            let mut hidden = 0;
            for cell in cells {
                if hidden == 0 {
                    text.push_str(cell.symbol());
                    hidden = cell.symbol().width().max(1);
                }
                hidden -= 1;
            }
            text
        };
        let width = usize::from(buffer.area.width);
        buffer.content().chunks(width).map(row).collect()
    }
}

/// Measures the processor time of an idle board, and of a bare client.
fn idle(town: &Town) {
    const LENGTH: Duration = Duration::from_secs(20);
    town.wait(|screen| screen.contains(&format!("Needs you {AGENTS}")));
    let board = town.board_pid();
    let mut client = town.bare_client();
    process::await_rest(board);
    process::await_rest(client.id());
    let before = [board, client.id()].map(Spent::of);
    std::thread::sleep(LENGTH);
    let after = [board, client.id()].map(Spent::of);
    let _ = client.kill();
    let _ = client.wait();
    let [ours, bare] = [0, 1].map(|which: usize| after[which].since(&before[which]));
    let ms = |time: Duration| time.as_secs_f64() * 1_000.0;
    println!("\ndoing nothing with {AGENTS} agents, for {LENGTH:?}\n");
    println!("{:<46} {:>9} {:>9} {:>7}", "", "tmux -C", "board", "share");
    println!(
        "{:<46} {:>6.2} ms {:>6.2} ms {:>7}",
        "time of the processor",
        ms(bare.time),
        ms(ours.time),
        share(ours.time, bare.time),
    );
    println!(
        "{:<46} {:>9} {:>9}",
        "times it woke up", bare.wakes, ours.wakes
    );
    // Shows that a zero below was measured: the counters did increase while the processes started.
    println!(
        "{:<46} {:>6.2} ms {:>6.2} ms",
        "before, to come up",
        ms(before[1].time),
        ms(before[0].time),
    );
}

/// Returns the ratio as text. The bare time may be zero.
fn share(ours: Duration, bare: Duration) -> String {
    match (ours.is_zero(), bare.is_zero()) {
        (true, _) => "0".to_owned(),
        (false, true) => "-".to_owned(),
        (false, false) => format!("{:.2}", ours.as_secs_f64() / bare.as_secs_f64()),
    }
}

/// Measures the time from a hook's report to the text on the board's screen.
fn latency(town: &Town) {
    const RUNS: usize = 20;
    let [mut bare, mut whole, mut told] = [const { Vec::new() }; 3];
    for _ in 0..RUNS {
        bare.push(time(&mut town.display_message()));
        for (event, shown) in [("prompt", "In progress 1"), ("stop", "In progress 0")] {
            // The board coalesces changes in quick succession; this measures a single one.
            std::thread::sleep(Duration::from_millis(500));
            let began = Instant::now();
            let mut signal = town.signal(event);
            let mut ended = None;
            let shown = town.wait(|screen| {
                if ended.is_none() && signal.try_wait().expect("a child").is_some() {
                    ended = Some(Instant::now());
                }
                screen.contains(shown)
            });
            let status = signal.wait().expect("a child");
            assert!(status.success(), "gt signal {event}");
            whole.push(shown - began);
            // The text may be on the screen before the hook has returned.
            told.push(ended.map_or(Duration::ZERO, |ended| {
                shown.saturating_duration_since(ended)
            }));
        }
    }
    println!("\nfrom `gt signal` to the screen\n");
    println!("{:<46} {:>9} {:>9} {:>7}", "", "tmux", "board", "ratio");
    let bare = median(bare);
    report(
        "the median (one tmux display-message)",
        bare,
        median(whole.clone()),
    );
    report("95 of 100", bare, percentile(whole, 95));
    report(
        "the median, after the hook has returned",
        bare,
        median(told),
    );
}

fn percentile(mut times: Vec<Duration>, hundredths: usize) -> Duration {
    times.sort_unstable();
    times[(times.len() * hundredths).div_ceil(100) - 1]
}

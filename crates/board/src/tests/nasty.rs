//! Untrusted text may contain anything, and terminals may have any size.

use super::views::{VIEWS, view};
use super::*;
use crate::{AgentScreen, Detail, Happening, Tab};
use ratatui::buffer::{Buffer, CellWidth};

const NASTY: &[&str] = &[
    "",
    " ",
    "\u{1b}[2J\u{1b}]0;owned\u{7}x",
    "a\0b\u{8}c\rd\ne\tf\u{7f}\u{9b}31m",
    "日本語日本語日本語日本語日本語日本語日本語日本語",
    "a日b本c語",
    "e\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}",
    "\u{301}\u{302}",
    "👨\u{200d}👩\u{200d}👧\u{200d}👦 👍🏽 🇩🇪🇩 ❤\u{fe0f} 1\u{fe0f}\u{20e3}",
    "\u{202e}gnp.exe\u{202c} שלום عليكم لا",
    "\u{200b}\u{200c}\u{200d}\u{feff}\u{2060}",
    "ｶﾞﾊﾟ ﾞﾟ",
    "क्षि த்தி ᄀᄀ각ᆨ",
    "\u{fffd}\u{10ffff}\u{e000}\u{fdd0}",
    "a\u{ad}b\u{2028}c\u{2029}d\u{3000}e",
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
];

/// Returns a town with hostile texts only, beginning with number `first`.
fn nasty_town(first: usize) -> BoardFacts {
    let mut number = first;
    let mut next = || {
        number += 1;
        NASTY[number % NASTY.len()].to_owned()
    };
    let mut facts = town();
    facts.town = next();
    facts.projects = vec![next(), next()];
    facts.warnings = vec![next()];
    for card in &mut facts.cards {
        card.title = next();
        card.kind = next();
        card.labels = vec![next()];
        card.assignee = Some(next());
        for server in &mut card.servers {
            server.name = next();
            server.port = None;
            server.reason = Some(next());
        }
        if let Some(session) = &mut card.session {
            session.reason = Some(next());
            session.harness = Some(next());
        }
        if let Some(branch) = &mut card.branch {
            branch.base = next();
            branch.name = next();
        }
    }
    facts
}

/// Asserts that no cell contains a control character, and that each wide character fits.
#[track_caller]
fn assert_sound(buffer: &Buffer, about: &str) {
    let width = usize::from(buffer.area.width);
    for row in buffer.content().chunks(width) {
        let mut covered = 0;
        for (x, cell) in row.iter().enumerate() {
            let symbol = cell.symbol();
            assert!(!symbol.chars().any(char::is_control), "{about}: {symbol:?}");
            if covered > 0 {
                assert_eq!(symbol, " ", "{about}: under a wide character");
                covered -= 1;
                continue;
            }
            covered = usize::from(cell.cell_width()).saturating_sub(1);
            assert!(x + covered < width, "{about}: {symbol:?} sticks out");
        }
    }
}

#[test]
fn nothing_breaks_a_frame() {
    let sizes = [(80, 24), (41, 11), (161, 30)];
    for (number, (name, keys)) in VIEWS.iter().enumerate() {
        for (step, (width, height)) in sizes.into_iter().enumerate() {
            let first = number * 3 + step * 7;
            let mut stage = view(keys, width, height, BoardTheme::Dark, nasty_town(first));
            stage.happens(BoardEvent::Paste(NASTY[first % NASTY.len()].to_owned()));
            assert_sound(stage.terminal.backend().buffer(), name);
        }
    }
    for (first, text) in NASTY.iter().enumerate() {
        let stage = view("hlj", 80, 24, BoardTheme::Dark, nasty_town(first));
        assert_sound(stage.terminal.backend().buffer(), text);
    }
}

#[test]
fn no_size_breaks_a_frame() {
    let mut sizes = [
        (1, 1),
        (20, 5),
        (40, 10),
        (43, 12),
        (57, 19),
        (79, 23),
        (95, 21),
        (159, 60),
        (300, 12),
    ]
    .into_iter()
    .cycle();
    for (number, (name, keys)) in VIEWS.iter().enumerate() {
        for (width, height) in sizes.by_ref().take(4) {
            let stage = view(keys, width, height, BoardTheme::Light, nasty_town(number));
            let about = format!("{name} {width}x{height}");
            assert_sound(stage.terminal.backend().buffer(), &about);
        }
    }
}

#[test]
fn details_and_screens_may_be_anything() {
    let text = NASTY.join("\n");
    let lines: Vec<String> = NASTY.iter().map(|line| (*line).to_owned()).collect();
    for tab in Tab::ALL {
        let mut stage = Stage::new(60, 20);
        stage.press(&format!("h<Enter>{}", tab as usize + 1));
        let detail = match tab {
            Tab::Task => Detail::Task {
                description: text.clone(),
                notes: text.clone(),
            },
            Tab::Diff => Detail::Diff { text: text.clone() },
            Tab::Events => Detail::Events(
                lines
                    .iter()
                    .map(|line| Happening {
                        at: i64::MIN,
                        clock: line.clone(),
                        kind: line.clone(),
                        source: line.clone(),
                        text: line.clone(),
                    })
                    .collect(),
            ),
            _ => Detail::Failed(text.clone()),
        };
        let bsy = id("gt-00bsy");
        stage.happens(BoardEvent::Detail {
            id: bsy.clone(),
            tab,
            detail,
        });
        stage.happens(BoardEvent::Screen(AgentScreen {
            id: Some(bsy),
            lines: lines.clone(),
        }));
        for keys in ["", "jjjj", "ll", "G", "k", "<PageUp>", "g"] {
            stage.press(keys);
            assert_sound(
                stage.terminal.backend().buffer(),
                &format!("{tab:?} {keys}"),
            );
        }
    }
}

/// A model of a terminal: writing over half of a wide character blanks the other half.
struct Glass {
    cells: Vec<Option<String>>,
    width: usize,
}

impl Glass {
    fn write(&mut self, x: usize, y: usize, symbol: &str, wide: usize) {
        let row = y * self.width;
        for at in x..x + wide {
            if self.cells[row + at].is_none() {
                // Writing over the right half blanks the left half.
                if let Some(left) = (0..at).rev().find(|left| self.cells[row + left].is_some()) {
                    self.cells[row + left] = Some(" ".to_owned());
                }
            }
            let mut right = at + 1;
            while right < self.width && self.cells[row + right].is_none() {
                self.cells[row + right] = Some(" ".to_owned());
                right += 1;
            }
            self.cells[row + at] = None;
        }
        self.cells[row + x] = Some(symbol.to_owned());
    }
}

/// After many frames, each of which sends only the changes, a terminal must show exactly the last
/// frame.
#[test]
fn next_frame_overwrites_the_previous_one() {
    let (width, height) = (80, 24);
    let mut stage = Stage::with(width, height, BoardTheme::Dark, nasty_town(3));
    let mut before = Buffer::empty(stage.terminal.backend().buffer().area);
    let mut glass = Glass {
        cells: vec![Some(" ".to_owned()); usize::from(width) * usize::from(height)],
        width: usize::from(width),
    };
    let keys = "h jk<Esc>H ?j<Esc>l a<Esc>:st<Esc>F <Esc><Esc>hjjlh<Enter>2345q*g<Esc>o<Esc>/a<Esc>v vL x<Esc>";
    for key in parse(keys) {
        stage.happens(BoardEvent::Key(key));
        let after = stage.terminal.backend().buffer().clone();
        for (x, y, cell) in before.diff(&after) {
            let wide = usize::from(cell.cell_width()).max(1);
            glass.write(usize::from(x), usize::from(y), cell.symbol(), wide);
        }
        for (number, cell) in after.content().iter().enumerate() {
            if let Some(shown) = &glass.cells[number] {
                assert_eq!(shown, cell.symbol(), "{key:?} {number}\n{}", stage.screen());
            }
        }
        before = after;
    }
}

/// A deterministic generator of pseudo-random numbers.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) as usize % limit
    }
}

#[test]
fn whatever_happens_in_whatever_order_it_holds_together() {
    let keys = |mode: KeyMode| -> Vec<KeyEvent> {
        crate::keys::rows(mode)
            .filter(|row| row.action != crate::BoardAction::Quit)
            .flat_map(|row| row.keys().map(crate::keys::Key::event))
            .collect()
    };
    let towns = [
        town(),
        nasty_town(1),
        crate::sample(60, 30),
        BoardFacts::default(),
    ];
    let sizes = [(80, 24), (120, 40), (41, 11), (20, 5), (170, 30)];
    let mut dice = Dice(7);
    let mut stage = Stage::new(80, 24);
    let (mut last_order, mut orders) = (0, 0);
    for step in 0..2000 {
        // Filters accumulate until no card is shown, so the test restarts regularly.
        if step % 80 == 0 {
            stage = Stage::new(80, 24);
            last_order = 0;
        }
        let event = match dice.below(25) {
            0 => BoardEvent::Facts(towns[dice.below(towns.len())].clone()),
            1 => {
                let (width, height) = sizes[dice.below(sizes.len())];
                stage.terminal.backend_mut().resize(width, height);
                BoardEvent::Resize { width, height }
            }
            2 => {
                let order = stage.board.orders;
                let result = match dice.below(2) {
                    0 => Ok(vec!["a line".to_owned(); dice.below(40)]),
                    _ => Err("refused".to_owned()),
                };
                BoardEvent::Foreseen { order, result }
            }
            3 => {
                let order = stage.board.orders.saturating_sub(dice.below(3) as u64);
                let result = match dice.below(3) {
                    0 => Ok("done".to_owned()),
                    1 => Err(init_failed()),
                    _ => Err("failed\nhint: try".into()),
                };
                BoardEvent::Outcome { order, result }
            }
            4 => {
                use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
                let kinds = [
                    MouseEventKind::Down(MouseButton::Left),
                    MouseEventKind::Down(MouseButton::Right),
                    MouseEventKind::ScrollDown,
                    MouseEventKind::ScrollUp,
                ];
                BoardEvent::Mouse(MouseEvent {
                    kind: kinds[dice.below(kinds.len())],
                    column: dice.below(130) as u16,
                    row: dice.below(45) as u16,
                    modifiers: KeyModifiers::NONE,
                })
            }
            5 => {
                let order = stage.board.orders;
                let result = match dice.below(3) {
                    0 => Err("it cannot be read".to_owned()),
                    lines => Ok(Question {
                        text: "日本\u{1b}[31m \u{202e}\n".repeat(lines * 20),
                        ..question("1-2")
                    }),
                };
                BoardEvent::Asked { order, result }
            }
            6 => {
                stage.now = stage.now.plus_millis(3_000);
                BoardEvent::Tick
            }
            7..11 if matches!(stage.board.mode(), KeyMode::Board | KeyMode::Detail) => {
                BoardEvent::Key(KeyEvent::new(KeyCode::Char(' '), KeyModifiers::NONE))
            }
            _ => {
                let keys = keys(stage.board.mode());
                BoardEvent::Key(keys[dice.below(keys.len())])
            }
        };
        let about = format!("step {step}: {event:?}");
        for request in stage.happens(event) {
            if let BoardRequest::Run(order)
            | BoardRequest::HandOver(order)
            | BoardRequest::Foresee(order)
            | BoardRequest::Ask(order) = request
            {
                assert!(order.number > last_order, "{about}");
                let is_of_town = ["estop", "thaw"].contains(&order.words[0].as_str());
                assert!(order.item.is_some() || is_of_town, "{about}");
                last_order = order.number;
                orders += 1;
            }
        }
        let board = &stage.board;
        let place = board.cursor().and_then(|id| board.lists.place(id));
        let is_empty = board.lists.shown() == 0;
        assert_eq!(place.is_none(), is_empty, "{about}");
        if let Some(place) = place {
            assert_eq!(place, (board.column, board.row), "{about}");
        }
        assert_sound(stage.terminal.backend().buffer(), &about);
    }
    assert!(orders > 20, "only {orders} orders were given");
}

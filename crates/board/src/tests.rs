//! Tests of the whole board: frames on an in-memory terminal, key by key.

mod agents;
mod alarms;
mod bound;
mod frames;
mod items;
mod keys_do;
mod living;
mod look;
mod manual;
mod nasty;
mod pointing;
mod queue;
mod views;

use crate::keys::KeyMode;
use crate::{
    Board, BoardEvent, BoardFacts, BoardRequest, BoardTheme, CommandFailure, EscalationFacts,
    FailureRemedy, Moment, Question, SpentToday,
};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use gt_core::card::{Branch, Card, CardAgent, CardResolver, CardServer, PartCount, ServerState};
use gt_core::escalation::Severity;
use gt_core::merge;
use gt_core::state::{State, StateSource};
use gt_core::usage::Usage;
use gt_core::work::{ItemStatus, WorkId};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

/// The present time in the tests.
pub(crate) const NOW: i64 = 1_800_000_000;

/// A board on a test terminal, with a manual clock.
pub(crate) struct Stage {
    pub(crate) board: Board,
    pub(crate) terminal: Terminal<TestBackend>,
    pub(crate) now: Moment,
}

impl Stage {
    pub(crate) fn new(width: u16, height: u16) -> Self {
        Stage::with(width, height, BoardTheme::Dark, town())
    }

    pub(crate) fn with(width: u16, height: u16, theme: BoardTheme, facts: BoardFacts) -> Self {
        let backend = TestBackend::new(width, height);
        let mut stage = Stage {
            board: Board::new(theme),
            terminal: Terminal::new(backend).expect("a terminal"),
            now: Moment::from_seconds(NOW),
        };
        stage.happens(BoardEvent::Facts(facts));
        stage.draw();
        stage
    }

    /// Handles an event, and draws a frame if one is due.
    pub(crate) fn happens(&mut self, event: BoardEvent) -> Vec<BoardRequest> {
        let requests = self.board.handle(event, self.now);
        if self.board.is_dirty() {
            self.draw();
        }
        requests
    }

    pub(crate) fn draw(&mut self) {
        // Clears first, so that the buffer contains this frame only.
        self.terminal.clear().expect("a terminal");
        let (board, now) = (&mut self.board, self.now);
        let drawn = self.terminal.draw(|frame| board.draw(frame, now));
        drawn.expect("a frame");
    }

    /// Presses keys: letters as they are, others by name between angle brackets.
    pub(crate) fn press(&mut self, keys: &str) -> Vec<BoardRequest> {
        let mut requests = Vec::new();
        for key in parse(keys) {
            requests.extend(self.happens(BoardEvent::Key(key)));
        }
        requests
    }

    pub(crate) fn screen(&self) -> String {
        let buffer = self.terminal.backend().buffer();
        let width = usize::from(buffer.area.width);
        let mut text = String::new();
        for row in buffer.content().chunks(width) {
            let mut line = String::new();
            let mut hidden = 0;
            for cell in row {
                if hidden > 0 {
                    hidden -= 1;
                    continue;
                }
                line.push_str(cell.symbol());
                hidden = crate::text::width(cell.symbol()).saturating_sub(1);
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }

    #[track_caller]
    pub(crate) fn assert_shows(&self, text: &str) {
        let screen = self.screen();
        assert!(screen.contains(text), "{text:?} is not in\n{screen}");
    }

    #[track_caller]
    pub(crate) fn assert_shows_not(&self, text: &str) {
        let screen = self.screen();
        assert!(!screen.contains(text), "{text:?} is in\n{screen}");
    }

    #[track_caller]
    pub(crate) fn assert_cursor(&self, wanted: &str) {
        let cursor = self.board.cursor().map(WorkId::as_str);
        assert_eq!(cursor, Some(wanted), "\n{}", self.screen());
    }

    #[track_caller]
    pub(crate) fn assert_mode(&self, mode: KeyMode) {
        assert_eq!(self.board.mode(), mode, "\n{}", self.screen());
    }
}

pub(crate) fn parse(keys: &str) -> Vec<KeyEvent> {
    let mut events = Vec::new();
    let mut rest = keys;
    while let Some(letter) = rest.chars().next() {
        let named = rest.strip_prefix('<').and_then(|rest| rest.split_once('>'));
        let (code, modifiers, after) = match named {
            Some((name, after)) => {
                let (name, modifiers) = match name.strip_prefix("C-") {
                    Some(name) => (name, KeyModifiers::CONTROL),
                    None => (name, KeyModifiers::NONE),
                };
                let code = match name {
                    "Esc" => KeyCode::Esc,
                    "Enter" => KeyCode::Enter,
                    "Tab" => KeyCode::Tab,
                    "BackTab" => KeyCode::BackTab,
                    "Up" => KeyCode::Up,
                    "Down" => KeyCode::Down,
                    "Left" => KeyCode::Left,
                    "Right" => KeyCode::Right,
                    "Home" => KeyCode::Home,
                    "End" => KeyCode::End,
                    "PageUp" => KeyCode::PageUp,
                    "PageDown" => KeyCode::PageDown,
                    "Backspace" => KeyCode::Backspace,
                    "Space" => KeyCode::Char(' '),
                    one if one.chars().count() == 1 => {
                        KeyCode::Char(one.chars().next().expect("one"))
                    }
                    other => panic!("there is no key {other}"),
                };
                (code, modifiers, after)
            }
            None => (
                KeyCode::Char(letter),
                KeyModifiers::NONE,
                &rest[letter.len_utf8()..],
            ),
        };
        events.push(KeyEvent::new(code, modifiers));
        rest = after;
    }
    events
}

/// Returns the arguments of the commands among the requests.
pub(crate) fn commands(requests: &[BoardRequest]) -> Vec<String> {
    let orders = requests.iter().filter_map(|request| match request {
        BoardRequest::Run(order) => Some(("run", order)),
        BoardRequest::HandOver(order) => Some(("hand over", order)),
        BoardRequest::Foresee(order) => Some(("foresee", order)),
        BoardRequest::Ask(order) => Some(("ask", order)),
        BoardRequest::ReadItem(order) => Some(("read", order)),
        BoardRequest::ReadBehind(order) => Some(("check", order)),
        _ => None,
    });
    orders
        .map(|(how, order)| format!("{how}: gt {}", order.words.join(" ")))
        .collect()
}

/// Returns the failure of a start whose init command failed.
pub(crate) fn init_failed() -> CommandFailure {
    CommandFailure {
        remedy: Some(FailureRemedy::RetryInit),
        text: "the init command `make` ended with exit code 2\n`gt attach` goes there".to_owned(),
        causes: Vec::new(),
    }
}

/// Returns the failure of an unconfirmed first merge of a rig.
pub(crate) fn unconfirmed() -> CommandFailure {
    CommandFailure {
        remedy: Some(FailureRemedy::Confirm),
        text: "the first merge in gastown has to be confirmed: …".to_owned(),
        causes: vec![
            "merge gt-00bsy with main of gastown".to_owned(),
            "push it to main of https://example.com/a/repository/whose/name/is/long.git".to_owned(),
        ],
    }
}

/// Returns a question of an agent.
pub(crate) fn question(fingerprint: &str) -> Question {
    let options = [
        ("1.", "Yes"),
        ("2.", "Yes, and don't ask again for rm"),
        ("3.", "No"),
    ];
    Question {
        text: "Bash command\nrm -rf build\nDo you want to run rm?".to_owned(),
        options: options.map(|(a, b)| (a.to_owned(), b.to_owned())).to_vec(),
        fingerprint: fingerprint.to_owned(),
    }
}

pub(crate) fn id(text: &str) -> WorkId {
    text.parse().expect("an id")
}

pub(crate) fn card(text: &str, title: &str) -> Card {
    Card {
        rig: Some("gastown".to_owned()),
        created_at: NOW - 90_000,
        updated_at: NOW - 7_200,
        ..Card::new(id(text), title)
    }
}

pub(crate) fn working(card: Card, state: State, since: i64) -> Card {
    let branch = Branch {
        name: card.id.to_string(),
        base: "main".to_owned(),
        ..Branch::default()
    };
    Card {
        status: ItemStatus::InProgress,
        session: Some(CardAgent {
            agent: format!("task/{}", card.id),
            container: format!("{}-az", card.id),
            harness: Some("claude".to_owned()),
            state,
            source: StateSource::Hook,
            since: Some(NOW - since),
            reason: None,
            background: 0,
            resets_at: None,
            continues: false,
            attached: false,
            only_shell: false,
        }),
        branch: Some(branch),
        ..card
    }
}

/// Returns the agent that resolves the conflicts of a merge.
pub(crate) fn resolver(state: State, reason: &str) -> CardResolver {
    CardResolver {
        window: "merge".to_owned(),
        state,
        since: None,
        reason: Some(reason.to_owned()),
    }
}

pub(crate) fn session(card: &mut Card) -> &mut CardAgent {
    card.session.as_mut().expect("a session")
}

pub(crate) fn branch(card: &mut Card) -> &mut Branch {
    card.branch.as_mut().expect("a branch")
}

pub(crate) fn escalation(text: &str, severity: Severity, is_acknowledged: bool) -> EscalationFacts {
    EscalationFacts {
        id: id(text),
        severity,
        who: "gastown/crew/max".to_owned(),
        item: Some(id("gt-00bsy")),
        message: "the deploy key has expired\nNobody but its owner can renew it.".to_owned(),
        since: NOW - 240,
        count: 1,
        is_acknowledged,
    }
}

/// Returns a small town with cards of every kind.
pub(crate) fn town() -> BoardFacts {
    let mut epic = card("gt-00epc", "Move the store to the new format");
    epic.kind = "epic".to_owned();
    epic.priority = 1;
    epic.parts = Some(PartCount { closed: 3, all: 7 });
    let mut blocked = card("gt-00blk", "Drop the old format");
    blocked.status = ItemStatus::Blocked;
    blocked.blocked_by = vec![id("gt-00epc")];
    blocked.labels = vec!["cleanup".to_owned()];
    let mut wide = card("gt-00wid", "日本語の題名が列をはみ出さないようにする");
    wide.priority = 3;
    wide.rig = Some("beads".to_owned());
    wide.assignee = Some("overseer".to_owned());

    let mut busy = working(card("gt-00bsy", "Fix the login flow"), State::Busy, 200);
    busy.priority = 1;
    busy.kind = "bug".to_owned();
    session(&mut busy).reason = Some("running the tests".to_owned());
    session(&mut busy).attached = true;
    *branch(&mut busy) = Branch {
        ahead: 2,
        behind: 5,
        dirty: 3,
        added: 120,
        removed: 14,
        ..branch(&mut busy).clone()
    };
    busy.servers = vec![
        CardServer {
            name: "web".to_owned(),
            state: ServerState::Running,
            port: Some(3000),
            since: None,
            reason: None,
        },
        CardServer {
            name: "api".to_owned(),
            state: ServerState::Error,
            port: Some(8000),
            since: Some(NOW - 42),
            reason: Some("runs, but does not answer".to_owned()),
        },
    ];
    busy.usage = Some(Usage {
        input_tokens: 12_345,
        cost_usd: Some(0.42),
        ..Usage::default()
    });
    let paused = working(card("gt-00psd", "Write the manual"), State::Paused, 4_000);
    let hooked = Card {
        status: ItemStatus::Hooked,
        ..card("gt-00hkd", "Measure a frame")
    };

    let mut asks = working(card("gt-00ask", "Rename the flag"), State::Waiting, 300);
    session(&mut asks).reason = Some("Do you want to run rm?".to_owned());
    let mut crashed = working(card("gt-00crs", "Read the journal"), State::Crashed, 90_000);
    session(&mut crashed).reason = Some("killed by signal 9".to_owned());
    session(&mut crashed).harness = Some("codex".to_owned());
    crashed.rig = Some("beads".to_owned());
    let mut broken = card("gt-00brk", "Merge both stores");
    broken.branch = Some(Branch {
        name: "gt-00brk".to_owned(),
        base: "main".to_owned(),
        ahead: 1,
        merging: true,
        conflicts: vec!["src/a.rs".to_owned(), "src/b c.rs".to_owned()],
        ..Branch::default()
    });
    broken.merge = Some(merge::MergeStatus::Conflict);
    broken.updated_at = NOW - 50;

    let mut done = working(card("gt-00don", "Sort the columns"), State::Done, 1_000);
    branch(&mut done).ahead = 4;
    branch(&mut done).added = 33;
    done.usage = Some(Usage {
        input_tokens: 1_250_000,
        cost_usd: Some(3.5),
        ..Usage::default()
    });
    let mut queued = card("gt-00que", "Cut by width");
    queued.merge = Some(merge::MergeStatus::Queued);

    let closed = Card {
        status: ItemStatus::Closed,
        updated_at: NOW - 400_000,
        ..card("gt-00cld", "Begin")
    };
    BoardFacts {
        town: "hello".to_owned(),
        me: Some("overseer".to_owned()),
        projects: vec!["gastown".to_owned(), "beads".to_owned()],
        cards: vec![
            epic, blocked, wide, busy, paused, hooked, asks, crashed, broken, done, queued, closed,
        ],
        escalations: vec![
            escalation("esc-00aaa", Severity::Medium, true),
            escalation("esc-00bbb", Severity::Low, true),
        ],
        stops: Vec::new(),
        spent_today: Some(SpentToday {
            all: 3.921,
            by_project: [("gastown".to_owned(), 3.5)].into(),
        }),
        merges: Vec::new(),
        crew: Vec::new(),
        lost: Vec::new(),
        warnings: Vec::new(),
    }
}

//! Snapshots of every view, at the sizes that matter.

use super::*;
use crate::{AgentScreen, ChainSession, Detail, Happening, Tab, WindowFacts};
use ratatui::style::Color;

pub(crate) const SIZES: [(u16, u16); 3] = [(80, 24), (120, 40), (200, 50)];

/// Every view, with the keys that open it.
pub(crate) const VIEWS: &[(&str, &str)] = &[
    ("board", ""),
    ("board_without_preview", "v"),
    ("board_card_without_session", "H"),
    ("marks", "VhVHV"),
    ("actions", " "),
    ("actions_of_a_card_without_session", "H "),
    ("actions_of_marked", "VhV "),
    ("merge_choice", "h a"),
    ("servers", "h r"),
    ("cleanup", " d"),
    ("confirm", " x"),
    ("confirm_many", "h*H* c"),
    ("answer", "j yNo, and"),
    ("message", "h nGo on, 日本"),
    ("jump_labels", "g"),
    ("search", "/frmt"),
    ("search_without_a_match", "/zzzz"),
    ("filter", "F<Down><Space>"),
    ("sort", "oj"),
    ("sorted", "oioi"),
    ("projects", "p"),
    ("project", "pbea<Enter>"),
    ("palette", ":"),
    ("palette_narrowed", ":stop"),
    ("help", "?"),
    ("help_scrolled", "?<Tab><PageDown>"),
    ("help_search", "?/stop"),
    ("escalations", "Ej"),
    ("emergency_stop", "X"),
    ("messages", "! "),
    ("toasts", "h p"),
    ("refusal_toast", "H a"),
    ("detail_task", "h<Enter>"),
    ("detail_terminal", "h<Enter>2"),
    ("detail_diff", "h f"),
    ("detail_diff_comment", "h fjjjcWhy?"),
    ("detail_diff_commented", "h fjjjcWhy?<Enter>"),
    ("detail_events", "h<Enter>4"),
    ("detail_windows", "h<Enter>5"),
    ("detail_chain", "h<Enter>6"),
    ("detail_actions", "h<Enter> "),
];

/// Returns the events of a task, the latest first.
fn events() -> Vec<Happening> {
    let rows = [
        (30, "nudge", "command by mayor", "sent it a message"),
        (
            45,
            "server failed",
            "process",
            "lost its server web, which ended with exit code 1",
        ),
        (
            90,
            "update conflict",
            "command by human",
            "merged main into it, with conflicts in src/a.rs, src/b.rs",
        ),
        (200, "resumed", "command by human", "resumed it"),
        (
            900,
            "paused",
            "command by gastown/witness",
            "paused it: the base is broken",
        ),
        (960, "answer", "command by human", "answered it: option 1"),
        (1000, "question", "hook", "asks: Bash(rm -rf build)"),
        (4000, "turn end", "screen", "ended its turn"),
        (9000, "session start", "gt", "began with claude"),
    ];
    let all = rows.into_iter().map(|(age, kind, source, text)| Happening {
        at: NOW - age,
        clock: "11-16 12:00:00".to_owned(),
        kind: kind.to_owned(),
        source: source.to_owned(),
        text: text.to_owned(),
    });
    all.collect()
}

/// Returns a stage in this view, with all its requests answered.
pub(crate) fn view(
    keys: &str,
    width: u16,
    height: u16,
    theme: BoardTheme,
    facts: BoardFacts,
) -> Stage {
    let mut stage = Stage::with(width, height, theme, facts);
    answer(&mut stage, vec![]);
    for key in parse(keys) {
        let requests = stage.happens(BoardEvent::Key(key));
        answer(&mut stage, requests);
    }
    answer(&mut stage, vec![]);
    stage
}

/// Answers the requests whose results are visible.
fn answer(stage: &mut Stage, requests: Vec<BoardRequest>) {
    if let Some(id) = stage.board.cursor().cloned() {
        stage.happens(BoardEvent::Screen(screen_of(id)));
    }
    for request in requests {
        match request {
            BoardRequest::Show { id, tab } => {
                if let Some(detail) = detail(tab) {
                    stage.happens(BoardEvent::Detail { id, tab, detail });
                }
            }
            BoardRequest::Foresee(order) => {
                let lines = [
                    "end the session gt-00crs-az",
                    "remove the worktree ../gastown-gt-00crs",
                    "delete the branch gt-00crs (nothing of it is lost)",
                ];
                let result = Ok(lines.map(str::to_owned).to_vec());
                let order = order.number;
                stage.happens(BoardEvent::Foreseen { order, result });
            }
            BoardRequest::Ask(order) => {
                let (order, result) = (order.number, Ok(question("1-2")));
                stage.happens(BoardEvent::Asked { order, result });
            }
            _ => {}
        }
    }
}

pub(crate) fn screen_of(id: WorkId) -> AgentScreen {
    let lines = [
        "\u{1b}[1m● Bash\u{1b}[0m(cargo test)",
        "  \u{1b}[2m⎿\u{1b}[0m  \u{1b}[32mtest result: ok\u{1b}[39m. 日本語 passed",
        "",
        "\u{1b}[38;5;208m╭──────╮\u{1b}[m",
        "\u{1b}[38;2;255;0;0m│\u{1b}[m > \u{1b}[7m \u{1b}[27m  │",
        "╰──────╯",
        "",
        "",
    ];
    AgentScreen {
        id: Some(id),
        lines: lines.map(str::to_owned).to_vec(),
    }
}

pub(crate) fn detail(tab: Tab) -> Option<Detail> {
    Some(match tab {
        Tab::Task => Detail::Task {
            description: "A user whose session has expired is sent in circles.\n\n- find out why\n- write a test for it that fails first, and only then repair what is broken there\n\n\tindented".to_owned(),
            notes: "left by max: half of it is done".to_owned(),
        },
        Tab::Terminal => return None,
        Tab::Diff => Detail::Diff {
            text: "diff --git a/src/a.rs b/src/a.rs\nindex 1..2 100644\n--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1,3 +1,3 @@ fn main\n fn main() {\n-\told();\n+\tnew(\"日本\");\n }\ndiff --git a/b b/b\n--- a/b\n+++ b/b\n@@ -1 +1 @@\n-x\n+y\n".to_owned(),
        },
        Tab::Events => Detail::Events(events()),
        Tab::Windows => Detail::Windows {
            windows: vec![
                WindowFacts { name: "main".to_owned(), running: true, exit_code: None },
                WindowFacts { name: "task-1".to_owned(), running: false, exit_code: Some(2) },
                WindowFacts { name: "task-2".to_owned(), running: false, exit_code: Some(0) },
            ],
            servers: vec![
                CardServer { name: "web".to_owned(), state: ServerState::Starting, port: Some(3000), since: None, reason: None },
                CardServer { name: "api".to_owned(), state: ServerState::Error, port: Some(8000), since: Some(NOW - 42), reason: Some("runs, but does not answer".to_owned()) },
            ],
        },
        Tab::Chain => Detail::Chain(vec![
            ChainSession { id: "01a1e156".to_owned(), agent: "task/gt-00bsy".to_owned(), started_at: NOW - 200, ended_at: None, status: "running".to_owned(), tokens: 12_345, cost_usd: Some(0.42) },
            ChainSession { id: "01a1e100".to_owned(), agent: "gastown/polecats/Toast".to_owned(), started_at: NOW - 9000, ended_at: Some(NOW - 4000), status: "crashed".to_owned(), tokens: 900, cost_usd: None },
        ]),
    })
}

#[test]
fn every_view_at_every_size() {
    for (name, keys) in VIEWS {
        let mut all = String::new();
        for (width, height) in SIZES {
            let stage = view(keys, width, height, BoardTheme::Dark, town());
            all.push_str(&format!("--- {width}x{height}\n{}", stage.screen()));
        }
        insta::assert_snapshot!(*name, all);
    }
}

#[test]
fn colours_change_nothing_but_colours() {
    for (name, keys) in VIEWS {
        let text = |theme| view(keys, 80, 24, theme, town()).screen();
        let dark = text(BoardTheme::Dark);
        assert_eq!(dark, text(BoardTheme::Light), "{name}");
        assert_eq!(dark, text(BoardTheme::Plain), "{name}");
    }
}

#[test]
fn without_colours_there_are_none() {
    for (name, keys) in VIEWS {
        let stage = view(keys, 120, 40, BoardTheme::Plain, town());
        for cell in stage.terminal.backend().buffer().content() {
            assert_eq!((cell.fg, cell.bg), (Color::Reset, Color::Reset), "{name}");
        }
    }
}

#[test]
fn the_preview_has_the_colours_of_the_agents_screen() {
    let stage = view("", 80, 24, BoardTheme::Dark, town());
    let cells = stage.terminal.backend().buffer().content();
    for colour in [Color::Green, Color::Indexed(208), Color::Rgb(255, 0, 0)] {
        assert!(cells.iter().any(|cell| cell.fg == colour), "{colour:?}");
    }
}

#[test]
fn each_state_has_a_sign_of_its_own_kind() {
    let mut facts = town();
    facts.cards = [
        State::Busy,
        State::Waiting,
        State::Error,
        State::Done,
        State::Paused,
        State::Idle,
        State::Crashed,
        State::Exited,
        State::Stopped,
        State::Starting,
        State::Running,
    ]
    .into_iter()
    .enumerate()
    .map(|(number, state)| working(card(&format!("gt-0000{number}"), "x"), state, 60))
    .collect();
    let mut seen = std::collections::BTreeSet::new();
    for card in &facts.cards {
        let state = card.session.as_ref().map(|session| session.state);
        assert!(seen.insert(crate::theme::state_sign(state)), "{state:?}");
    }
    let stage = Stage::with(200, 50, BoardTheme::Plain, facts);
    for sign in seen {
        stage.assert_shows(&format!("{sign} gt-0000"));
    }
}

#[test]
fn an_empty_town_is_a_board_too() {
    for (width, height) in SIZES {
        let mut stage = Stage::with(
            width,
            height,
            BoardTheme::Dark,
            BoardFacts {
                town: "hello".to_owned(),
                ..BoardFacts::default()
            },
        );
        stage.assert_shows("Needs you 0");
        assert_eq!(stage.board.wake_at(), None, "it sleeps for ever");
        for keys in [
            "j", "k", "h", "l", "H", "L", "G", "<Home>", "<Tab>", "n<Esc>", "N", "V", "*",
            "<Enter>", "gg", "ge", "ga",
        ] {
            stage.press(keys);
        }
        stage.press(" ");
        stage.assert_mode(KeyMode::Board);
        stage.assert_shows("There is no card here");
        stage.press("p<Esc>F<Esc>o<Esc>?<Esc>!<Esc>:start<Enter>");
        stage.assert_mode(KeyMode::Board);
    }
}

#[test]
fn too_small_is_said() {
    for (width, height) in [(20, 5), (39, 24), (80, 9), (5, 1), (1, 1)] {
        let stage = Stage::new(width, height);
        let screen = stage.screen();
        assert!(screen.starts_with("too small") || width < 10, "{screen}");
    }
    Stage::new(40, 10).assert_shows("Needs you 3");
}

#[test]
fn a_warning_is_shown_at_the_bottom() {
    let mut facts = town();
    facts.warnings = vec!["bd cannot be run".to_owned(), "another".to_owned()];
    let stage = Stage::with(120, 40, BoardTheme::Dark, facts);
    stage.assert_shows("! bd cannot be run (+1)");
}

//! The table of views, the keys that open them, and answers to the requests of a board.

use super::*;
use crate::{AgentScreen, ChainSession, Detail, Happening, ItemFields, Tab, WindowFacts};

pub(crate) const SIZES: [(u16, u16); 3] = [(80, 24), (140, 40), (200, 50)];

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
    (
        "message_of_several_lines",
        "h nGo on:<C-j>- fix the tests<C-j>- commit",
    ),
    ("handoff", "h hThe parser is half done"),
    ("escalate", "h EThe deploy key has expired"),
    (
        "new_item",
        "nFix --it<Tab>It fails.<C-j>Always.<Tab>b<Tab>0",
    ),
    ("edit_item", "h e!<Tab>"),
    ("workers", "H g"),
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

/// A view of other facts than those of [`town`], or of a command that has failed.
struct SpecialView {
    name: &'static str,
    keys: &'static str,
    facts: fn() -> BoardFacts,
    failure: Option<fn() -> CommandFailure>,
}

const SPECIAL_VIEWS: &[SpecialView] = &[
    SpecialView::of("empty_town", "", empty_town),
    SpecialView::of("town_without_a_rig", "", || BoardFacts {
        town: "hello".to_owned(),
        ..BoardFacts::default()
    }),
    SpecialView::of("warnings", "", || BoardFacts {
        warnings: vec!["bd cannot be run".to_owned(), "another".to_owned()],
        ..town()
    }),
    SpecialView::of("merge_queue", "Qj", with_merges),
    SpecialView::of("merge_queue_reject", "Qjxtoo late", with_merges),
    SpecialView::of("resume_first", "H s", || {
        let mut facts = town();
        for card in &mut facts.cards {
            card.resumable = true;
        }
        facts
    }),
    SpecialView::of("restore", "", || BoardFacts {
        lost: vec!["gastown/crew/max".to_owned(), "mayor".to_owned()],
        ..town()
    }),
    SpecialView {
        failure: Some(init_failed),
        ..SpecialView::of("init_failed", "H s", town)
    },
    SpecialView {
        failure: Some(unconfirmed),
        ..SpecialView::of("confirm_the_first_merge", "h m", mergeable)
    },
];

impl SpecialView {
    const fn of(name: &'static str, keys: &'static str, facts: fn() -> BoardFacts) -> Self {
        SpecialView {
            name,
            keys,
            facts,
            failure: None,
        }
    }

    fn stage(&self, width: u16, height: u16, theme: BoardTheme) -> Stage {
        let mut stage = view(self.keys, width, height, theme, (self.facts)());
        if let Some(failure) = self.failure {
            let (order, result) = (stage.board.orders, Err(failure()));
            stage.happens(BoardEvent::Outcome { order, result });
        }
        stage
    }
}

fn empty_town() -> BoardFacts {
    BoardFacts {
        town: "hello".to_owned(),
        projects: vec!["gastown".to_owned()],
        ..BoardFacts::default()
    }
}

fn with_merges() -> BoardFacts {
    BoardFacts {
        merges: queue::merges(),
        ..town()
    }
}

/// Returns the town with a branch that can be merged.
fn mergeable() -> BoardFacts {
    let mut facts = town();
    for card in &mut facts.cards {
        if card.id == id("gt-00bsy") {
            branch(card).behind = 0;
            branch(card).dirty = 0;
        }
    }
    facts
}

/// Calls a function for every view, with its name and a function that opens it.
pub(crate) fn each_view(mut call: impl FnMut(&str, &dyn Fn(u16, u16, BoardTheme) -> Stage)) {
    for (name, keys) in VIEWS {
        call(name, &|width, height, theme| {
            view(keys, width, height, theme, town())
        });
    }
    for special in SPECIAL_VIEWS {
        call(special.name, &|width, height, theme| {
            special.stage(width, height, theme)
        });
    }
}

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
            BoardRequest::ReadItem(order) => {
                let fields = ItemFields {
                    title: "Fix the login flow".to_owned(),
                    description: "It fails.\nAlways.\n".to_owned(),
                    priority: 1,
                    kind: "bug".to_owned(),
                    labels: vec!["ui".to_owned(), "auth".to_owned()],
                    blockers: vec!["gt-00epc".to_owned()],
                };
                let (order, result) = (order.number, Ok(fields));
                stage.happens(BoardEvent::ItemRead { order, result });
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

//! A generated town, deterministic for given numbers.

use crate::BoardFacts;
use gt_core::card::{Branch, Card, CardAgent, CardServer, PartCount, ServerState};
use gt_core::merge;
use gt_core::state::{State, StateSource};
use gt_core::usage::Usage;
use gt_core::work::{ItemStatus, LENGTH, WorkId};

const EPOCH: i64 = 1_800_000_000;
const TITLES: [&str; 6] = [
    "Fix the login flow when the session has expired",
    "日本語の題名が列をはみ出さないようにする",
    "Write the manual",
    "Cache column lists per change of facts, filter and order",
    "Naïve café: keep combining marks (e\u{301}) together",
    "Measure a frame",
];
const STATES: [State; 11] = [
    State::Busy,
    State::Waiting,
    State::Idle,
    State::Done,
    State::Error,
    State::Paused,
    State::Starting,
    State::Crashed,
    State::Exited,
    State::Running,
    State::Limited,
];

/// Returns a town with `items` items, the first `agents` of which have agents.
pub fn sample(items: usize, agents: usize) -> BoardFacts {
    BoardFacts {
        town: "sample".to_owned(),
        me: Some("overseer".to_owned()),
        projects: vec!["gastown".to_owned(), "beads".to_owned()],
        cards: (0..items)
            .map(|number| card(number, number < agents))
            .collect(),
        escalations: Vec::new(),
        stops: Vec::new(),
        spent_today: None,
        merges: Vec::new(),
        crew: Vec::new(),
        lost: Vec::new(),
        warnings: Vec::new(),
    }
}

fn card(number: usize, has_agent: bool) -> Card {
    let age = i64::try_from(number).unwrap_or(0) * 97;
    let count = u32::try_from(number).unwrap_or(0);
    let id = id(number);
    let status = match number % 5 {
        _ if has_agent => ItemStatus::InProgress,
        0 | 1 => ItemStatus::Open,
        2 => ItemStatus::Blocked,
        3 => ItemStatus::Hooked,
        _ => ItemStatus::Closed,
    };
    let session = has_agent.then(|| CardAgent {
        agent: format!("task/{id}"),
        container: format!("{id}-az"),
        harness: Some(["claude", "codex", "gemini"][number % 3].to_owned()),
        state: STATES[number % STATES.len()],
        source: StateSource::Hook,
        since: Some(EPOCH - age),
        reason: Some("asks whether to go on".to_owned()),
        background: 0,
        resets_at: None,
        continues: false,
        attached: number.is_multiple_of(17),
        only_shell: false,
    });
    let branch = has_agent.then(|| Branch {
        name: id.to_string(),
        base: "main".to_owned(),
        ahead: count % 4,
        behind: count % 3,
        dirty: count % 5,
        added: count * 7 % 400,
        removed: count * 3 % 90,
        merging: number.is_multiple_of(40),
        conflicts: Vec::new(),
        resolver: false,
    });
    let server = CardServer {
        name: "web".to_owned(),
        state: ServerState::Running,
        port: u16::try_from(3000 + number).ok(),
        since: None,
        reason: None,
    };
    Card {
        kind: ["task", "bug", "feature", "epic"][number % 4].to_owned(),
        priority: u8::try_from(number % 5).unwrap_or(2),
        status,
        rig: Some(["gastown", "beads"][number % 2].to_owned()),
        labels: vec!["backend".to_owned()],
        assignee: number.is_multiple_of(6).then(|| "overseer".to_owned()),
        blocked_by: if status == ItemStatus::Blocked {
            vec![self::id(number + 1)]
        } else {
            Vec::new()
        },
        parts: (number % 4 == 3).then_some(PartCount {
            closed: count % 7,
            all: 7,
        }),
        created_at: EPOCH - age - 5000,
        updated_at: EPOCH - age,
        session,
        branch,
        servers: if has_agent && number.is_multiple_of(2) {
            vec![server]
        } else {
            Vec::new()
        },
        usage: has_agent.then(|| Usage {
            input_tokens: u64::from(count) * 1234 + 500,
            cost_usd: Some(f64::from(count) * 0.07),
            ..Usage::default()
        }),
        merge: number
            .is_multiple_of(23)
            .then_some(merge::MergeStatus::Queued),
        ..Card::new(id, format!("{} {number}", TITLES[number % TITLES.len()]))
    }
}

fn id(number: usize) -> WorkId {
    let bytes: [u8; LENGTH] = std::array::from_fn(|place| {
        u8::try_from((number >> (5 * (LENGTH - 1 - place))) % 32).unwrap_or(0)
    });
    WorkId::new("gt", bytes)
}

//! A card of the board: one work item, and all that is known about the work on it.
//!
//! What an item's status is and what its agent does are separate facts. From both
//! together comes the column that a card stands in.

use crate::merge;
use crate::state::{Source, State};
use crate::usage::Usage;
use crate::work::{Status, WorkId};
use serde::Serialize;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Card {
    pub id: WorkId,
    pub title: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub priority: u8,
    pub status: Status,
    /// The project that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rig: Option<String>,
    pub labels: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assignee: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<WorkId>,
    /// What it waits for: only what is not closed.
    pub blocked_by: Vec<WorkId>,
    /// Of an item that has parts: how many, and how many are closed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parts: Option<Parts>,
    /// Seconds since the epoch.
    pub created_at: i64,
    pub updated_at: i64,
    /// Who has it on its hook, where that is not the agent of its own task: what is done to
    /// a task cannot be done to that one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<Session>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<Branch>,
    pub servers: Vec<Server>,
    /// The project's background tasks that run beside the agent or have failed there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub background: Vec<BackgroundTask>,
    /// What all lives that worked on it took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Where its branch stands in the merge queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merge: Option<merge::Status>,
    /// Who was given the conflicts of a merge, beside its agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolver: Option<Resolver>,
    /// Its agent is gone, and nobody has ended it.
    pub lost: bool,
    /// When its session ended, in seconds since the epoch, where the journal knows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_since: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Parts {
    pub closed: u32,
    pub all: u32,
}

/// The agent that works on an item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Session {
    /// Its address.
    pub agent: String,
    pub container: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub harness: Option<String>,
    pub state: State,
    pub source: Source,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How many tasks run on in the background although its turn is over.
    #[serde(skip_serializing_if = "is_zero")]
    pub background: u32,
    /// When the usage limit ends that it has reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resets_at: Option<i64>,
    /// It goes on by itself after that limit.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub continues: bool,
    /// Somebody looks at it.
    pub attached: bool,
    /// No agent program was started here: the container holds a shell, for servers.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub only_shell: bool,
}

impl Session {
    /// Whether it is a shell without an agent that waits for nothing.
    fn is_resting_shell(&self) -> bool {
        self.only_shell && self.state == State::Idle
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The program that was given the conflicts of a merge, in a window beside the agent's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Resolver {
    /// The name of that window.
    pub window: String,
    pub state: State,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<i64>,
    /// Why it needs a person: `merge asks: Bash(git add -A)`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Whose screen is the one to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker<'a> {
    Agent,
    Resolver(&'a Resolver),
}

/// Who asks something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks<'a> {
    Agent,
    /// The program in that window beside it.
    Window(&'a str),
}

/// The branch of an item's worktree, against the base of its project.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Branch {
    pub name: String,
    pub base: String,
    pub ahead: u32,
    pub behind: u32,
    /// How many files are not committed.
    pub dirty: u32,
    /// Lines, against the point where it left the base; committed or not.
    pub added: u32,
    pub removed: u32,
    /// A merge is under way in the worktree, and these files are in conflict.
    pub merging: bool,
    pub conflicts: Vec<String>,
    /// An agent beside the task's own is at those, in the window `merge`.
    pub resolver: bool,
}

/// A dev server beside the agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Server {
    pub name: String,
    pub state: ServerState,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Since when, in seconds since the epoch, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<i64>,
    /// Why it is in error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ServerState {
    Running,
    Starting,
    Stopped,
    Error,
}

/// A background task of the project, in a window beside the agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BackgroundTask {
    pub name: String,
    pub state: BackgroundState,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum BackgroundState {
    Running,
    Failed,
}

/// The columns of the board, from left to right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Column {
    Open,
    InProgress,
    NeedsYou,
    Review,
    Done,
}

impl Column {
    pub const ALL: [Column; 5] = [
        Column::Open,
        Column::InProgress,
        Column::NeedsYou,
        Column::Review,
        Column::Done,
    ];

    pub fn title(self) -> &'static str {
        match self {
            Column::Open => "Open",
            Column::InProgress => "In progress",
            Column::NeedsYou => "Needs you",
            Column::Review => "Review",
            Column::Done => "Done",
        }
    }
}

impl Card {
    /// Where it stands. Closed is closed; otherwise what waits for a person goes first.
    pub fn column(&self) -> Column {
        if self.status == Status::Closed {
            return Column::Done;
        }
        if self.needs_you() {
            return Column::NeedsYou;
        }
        let has_result = self.branch.as_ref().is_some_and(Branch::has_result);
        let is_handed_in = self.merge.is_some_and(|merge| !merge.is_settled());
        let session = self.session.as_ref();
        let rests = session.is_some_and(Session::is_resting_shell);
        match session.map(|session| session.state) {
            Some(State::Idle) if rests && !has_result && !is_handed_in => match self.is_worked_on()
            {
                true => Column::InProgress,
                false => Column::Open,
            },
            Some(State::Done | State::Exited) => Column::Review,
            Some(State::Idle) if has_result => Column::Review,
            _ if is_handed_in => Column::Review,
            Some(State::Stopped) | None if self.is_worked_on() => Column::InProgress,
            Some(State::Stopped) | None => Column::Open,
            Some(_) => Column::InProgress,
        }
    }

    /// Whether nothing goes on without a person: its agent asks, has failed, is lost, or stands
    /// at its prompt with nothing done; or a merge cannot be made by itself, and nobody is at
    /// its conflicts, or whoever is asks or has failed.
    pub fn needs_you(&self) -> bool {
        let has_result = self.branch.as_ref().is_some_and(Branch::has_result);
        let of_agent = self.session.as_ref().is_some_and(|session| {
            matches!(
                session.state,
                State::Waiting | State::Error | State::Crashed
            ) || session.state == State::Limited && !session.continues
                || session.state == State::Idle && !session.only_shell && !has_result
        });
        // One that works may be at them itself.
        let works = self.session.as_ref().map(|session| session.state) == Some(State::Busy);
        let is_stuck = !works && self.branch.as_ref().is_some_and(Branch::has_open_conflicts);
        let is_broken = self.merge.is_some_and(merge::Status::is_broken);
        let of_resolver = self.resolver_needs_you().is_some();
        of_agent || self.lost || is_stuck || is_broken || of_resolver
    }

    /// Whether somebody has it.
    pub fn is_worked_on(&self) -> bool {
        matches!(self.status, Status::Hooked | Status::InProgress)
    }

    /// What its agent does; one that is lost has crashed.
    pub fn state(&self) -> Option<State> {
        let of_session = self.session.as_ref().map(|session| session.state);
        of_session.or(self.lost.then_some(State::Crashed))
    }

    /// The one that was given the conflicts of a merge, if nothing goes on there without a
    /// person. That it failed says nothing any more once the merge is made, and it may well
    /// stand at its prompt once no conflict is left.
    pub fn resolver_needs_you(&self) -> Option<&Resolver> {
        let branch = self.branch.as_ref().filter(|branch| branch.merging);
        let has_conflicts = branch.is_some_and(|branch| !branch.conflicts.is_empty());
        self.resolver.as_ref().filter(|it| match it.state {
            State::Waiting => true,
            State::Error | State::Limited | State::Crashed => branch.is_some(),
            State::Idle | State::Done => has_conflicts,
            _ => false,
        })
    }

    /// Whose screen says what a person has to know. Its agent goes first: the other one
    /// works for it.
    pub fn speaker(&self) -> Speaker<'_> {
        match self.resolver_needs_you() {
            Some(resolver) if self.asks() != Some(Asks::Agent) => Speaker::Resolver(resolver),
            _ => Speaker::Agent,
        }
    }

    /// Who asks something here. Its agent goes first, as well.
    pub fn asks(&self) -> Option<Asks<'_>> {
        let asks = |state| state == State::Waiting;
        let session = self.session.as_ref();
        if session.is_some_and(|session| asks(session.state)) {
            return Some(Asks::Agent);
        }
        let resolver = self.resolver.as_ref().filter(|it| asks(it.state));
        resolver.map(|it| Asks::Window(&it.window))
    }

    /// Since when its agent is in its state, or else the item as it is.
    pub fn since(&self) -> i64 {
        let session = self.session.as_ref().and_then(|session| session.since);
        session.or(self.lost_since).unwrap_or(self.updated_at)
    }
}

impl Branch {
    /// Whether something was done on it that the base does not have.
    pub fn has_result(&self) -> bool {
        self.ahead > 0 || self.dirty > 0
    }

    /// Whether a merge is under way in the worktree whose conflicts nobody was given.
    pub fn has_open_conflicts(&self) -> bool {
        self.merging && !self.conflicts.is_empty() && !self.resolver
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(status: Status, state: Option<State>) -> Card {
        Card {
            id: "gt-4k2qz".parse().expect("an id"),
            title: "Something".to_owned(),
            kind: "task".to_owned(),
            priority: 2,
            status,
            rig: None,
            labels: Vec::new(),
            assignee: None,
            parent: None,
            blocked_by: Vec::new(),
            parts: None,
            created_at: 0,
            updated_at: 7,
            holder: None,
            session: state.map(|state| Session {
                agent: "task/gt-4k2qz".to_owned(),
                container: "gt-4k2qz-az".to_owned(),
                harness: None,
                state,
                source: Source::Process,
                since: None,
                reason: None,
                background: 0,
                resets_at: None,
                continues: false,
                attached: false,
                only_shell: false,
            }),
            branch: None,
            servers: Vec::new(),
            background: Vec::new(),
            usage: None,
            merge: None,
            resolver: None,
            lost: false,
            lost_since: None,
        }
    }

    #[test]
    fn a_card_stands_where_status_and_state_put_it() {
        for (status, state, column) in [
            (Status::Open, None, Column::Open),
            (Status::Blocked, None, Column::Open),
            (Status::Hooked, None, Column::InProgress),
            (Status::InProgress, Some(State::Stopped), Column::InProgress),
            (Status::Open, Some(State::Busy), Column::InProgress),
            (Status::InProgress, Some(State::Paused), Column::InProgress),
            (Status::InProgress, Some(State::Waiting), Column::NeedsYou),
            (Status::InProgress, Some(State::Crashed), Column::NeedsYou),
            (Status::InProgress, Some(State::Idle), Column::NeedsYou),
            (Status::InProgress, Some(State::Done), Column::Review),
            (Status::Closed, Some(State::Waiting), Column::Done),
        ] {
            assert_eq!(card(status, state).column(), column, "{status:?} {state:?}");
        }
    }

    #[test]
    fn card_with_only_dev_servers_stays_where_its_status_puts_it() {
        for (status, column) in [
            (Status::Open, Column::Open),
            (Status::Hooked, Column::InProgress),
        ] {
            let mut card = card(status, Some(State::Idle));
            card.session.as_mut().expect("a session").only_shell = true;
            assert!(!card.needs_you(), "{status:?}");
            assert_eq!(card.column(), column);
            // Its init commands have failed.
            card.session.as_mut().expect("a session").state = State::Error;
            assert_eq!(card.column(), Column::NeedsYou);
        }
    }

    #[test]
    fn an_idle_agent_with_a_result_is_to_be_reviewed_and_a_broken_merge_needs_you() {
        let mut card = card(Status::InProgress, Some(State::Idle));
        card.branch = Some(Branch {
            ahead: 1,
            ..Branch::default()
        });
        assert_eq!(card.column(), Column::Review);
        card.merge = Some(merge::Status::Conflict);
        assert_eq!(card.column(), Column::NeedsYou);
        card.session = None;
        card.merge = Some(merge::Status::Queued);
        assert_eq!(card.column(), Column::Review);
    }

    #[test]
    fn conflicts_need_you_unless_somebody_is_at_them() {
        let mut card = card(Status::InProgress, Some(State::Idle));
        let conflicts = Branch {
            ahead: 1,
            merging: true,
            conflicts: vec!["a".to_owned()],
            ..Branch::default()
        };
        card.branch = Some(conflicts.clone());
        assert_eq!(card.column(), Column::NeedsYou);
        card.branch = Some(Branch {
            resolver: true,
            ..conflicts.clone()
        });
        assert_eq!(card.column(), Column::Review);
        // Its own agent may have begun that merge.
        card.branch = Some(conflicts);
        card.session.as_mut().expect("a session").state = State::Busy;
        assert_eq!(card.column(), Column::InProgress);
        card.session = None;
        assert_eq!(card.column(), Column::NeedsYou);
    }

    #[test]
    fn whoever_resolves_conflicts_needs_you_unless_it_works_or_has_done_so() {
        let mut card = card(Status::InProgress, Some(State::Idle));
        let merging = Branch {
            ahead: 1,
            merging: true,
            conflicts: vec!["a".to_owned()],
            resolver: true,
            ..Branch::default()
        };
        let resolver = |state| {
            Some(Resolver {
                window: "merge".to_owned(),
                state,
                since: None,
                reason: None,
            })
        };
        card.branch = Some(merging.clone());
        for (state, column) in [
            (State::Busy, Column::Review),
            (State::Waiting, Column::NeedsYou),
            (State::Idle, Column::NeedsYou),
            (State::Error, Column::NeedsYou),
            (State::Crashed, Column::NeedsYou),
        ] {
            card.resolver = resolver(state);
            assert_eq!(card.column(), column, "{state:?}");
        }
        card.branch.as_mut().expect("a branch").conflicts = Vec::new();
        card.resolver = resolver(State::Idle);
        assert_eq!(
            card.column(),
            Column::Review,
            "it has done what it was given"
        );
        card.resolver = resolver(State::Crashed);
        assert_eq!(card.asks(), None);
        // Once that is committed a question is still one, and a failure is nobody's.
        card.branch.as_mut().expect("a branch").merging = false;
        assert_eq!(card.column(), Column::Review);
        card.resolver = resolver(State::Waiting);
        assert_eq!(card.column(), Column::NeedsYou);
        assert_eq!(card.asks(), Some(Asks::Window("merge")));
        assert!(matches!(card.speaker(), Speaker::Resolver(_)));
        card.session.as_mut().expect("a session").state = State::Waiting;
        assert_eq!(card.asks(), Some(Asks::Agent));
        assert_eq!(card.speaker(), Speaker::Agent);
    }

    #[test]
    fn its_age_is_the_agents_or_else_the_items() {
        let mut card = card(Status::InProgress, Some(State::Busy));
        assert_eq!(card.since(), 7);
        card.session.as_mut().expect("a session").since = Some(9);
        assert_eq!(card.since(), 9);
    }
}

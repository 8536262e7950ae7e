//! A card of the board: one work item, and all facts about the work on it; or an agent without an
//! item.
//!
//! The status of an item and the state of its agent are separate facts. The column of a card
//! follows from both.

use crate::merge;
use crate::state::{State, StateSource};
use crate::usage::Usage;
use crate::work::{ItemStatus, WorkId};
use serde::Serialize;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Card {
    pub id: WorkId,
    /// The card is an agent without an item: its title is the agent's address, its type the role.
    #[serde(skip)]
    pub is_agent: bool,
    pub title: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub priority: u8,
    pub status: ItemStatus,
    /// The project of the item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rig: Option<String>,
    pub labels: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assignee: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<WorkId>,
    /// The open items that it depends on.
    pub blocked_by: Vec<WorkId>,
    /// The number of parts, and how many of them are closed, if the item has parts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parts: Option<PartCount>,
    /// Seconds since the epoch.
    pub created_at: i64,
    pub updated_at: i64,
    /// The agent that has the item on its hook, if that is not the agent of the item's own task.
    /// Task commands do not apply to that agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<CardAgent>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<Branch>,
    pub servers: Vec<CardServer>,
    /// The project's background tasks that run beside the agent or have failed there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub background: Vec<BackgroundTask>,
    /// Tokens and cost of all sessions that worked on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Its task does not run, and has a conversation that can be resumed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub resumable: bool,
    /// The state of its branch in the merge queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merge: Option<merge::MergeStatus>,
    /// The program that resolves the conflicts of a merge, beside the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolver: Option<CardResolver>,
    /// The agent is gone, and it was not stopped on purpose.
    pub lost: bool,
    /// End of its session, in seconds since the epoch, if the journal has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_since: Option<i64>,
    /// End of the last session of an agent that was stopped, in seconds since the epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped_since: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PartCount {
    pub closed: u32,
    pub all: u32,
}

/// The agent that works on an item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CardAgent {
    /// The agent's address.
    pub agent: String,
    pub container: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub harness: Option<String>,
    pub state: State,
    pub source: StateSource,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The number of background tasks that still run although the turn is over.
    #[serde(skip_serializing_if = "is_zero")]
    pub background: u32,
    /// The end of the usage limit that it has reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resets_at: Option<i64>,
    /// It continues by itself after that limit.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub continues: bool,
    /// A client is attached to the container.
    pub attached: bool,
    /// The container holds only a shell, for servers; no agent program was started.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub only_shell: bool,
}

impl CardAgent {
    /// Returns whether it is an idle shell without an agent.
    fn is_resting_shell(&self) -> bool {
        self.only_shell && self.state == State::Idle
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The program that resolves the conflicts of a merge, in a window beside the agent's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CardResolver {
    /// The name of its window.
    pub window: String,
    pub state: State,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<i64>,
    /// Why it needs a person: `merge asks: Bash(git add -A)`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The program whose screen a person needs to see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker<'a> {
    Agent,
    Resolver(&'a CardResolver),
}

/// The program that asks a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskingProgram<'a> {
    Agent,
    /// The program in this window beside the agent.
    Window(&'a str),
}

/// The branch of an item's worktree, compared with the base of its project.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Branch {
    pub name: String,
    pub base: String,
    pub ahead: u32,
    pub behind: u32,
    /// The number of files with uncommitted changes.
    pub dirty: u32,
    /// Changed lines since the branch left the base, committed or not.
    pub added: u32,
    pub removed: u32,
    /// A merge is in progress in the worktree. `conflicts` lists the files in conflict.
    pub merging: bool,
    pub conflicts: Vec<String>,
    /// An agent in the window `merge` resolves these conflicts.
    pub resolver: bool,
}

/// A dev server beside the agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CardServer {
    pub name: String,
    pub state: ServerState,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Start of its state, in seconds since the epoch, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<i64>,
    /// Why it is in the state `error`.
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
    /// Returns the card of an open task without an agent, of which only the title is known.
    pub fn new(id: WorkId, title: impl Into<String>) -> Self {
        Card {
            id,
            is_agent: false,
            title: title.into(),
            kind: "task".to_owned(),
            priority: 2,
            status: ItemStatus::Open,
            rig: None,
            labels: Vec::new(),
            assignee: None,
            parent: None,
            blocked_by: Vec::new(),
            parts: None,
            created_at: 0,
            updated_at: 0,
            holder: None,
            session: None,
            branch: None,
            servers: Vec::new(),
            background: Vec::new(),
            usage: None,
            resumable: false,
            merge: None,
            resolver: None,
            lost: false,
            lost_since: None,
            stopped_since: None,
        }
    }

    /// Returns the column. A closed item is done, unless its agent asks; otherwise the need for a
    /// person takes precedence.
    pub fn column(&self) -> Column {
        if self.status == ItemStatus::Closed && self.asking_program().is_none() {
            return Column::Done;
        }
        if self.is_agent && !self.needs_you() {
            return Column::InProgress;
        }
        if self.needs_you() {
            return Column::NeedsYou;
        }
        let has_result = self.branch.as_ref().is_some_and(Branch::has_result);
        let is_handed_in = self.merge.is_some_and(|merge| !merge.is_settled());
        let session = self.session.as_ref();
        let rests = session.is_some_and(CardAgent::is_resting_shell);
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

    /// Returns whether work cannot continue without a person: the agent asks, has failed, is lost,
    /// has reached a limit after which it does not continue, or is idle without a result; a merge
    /// has conflicts that no program resolves; the merge queue could not merge the branch or waits for an
    /// approval; or the resolver needs a person.
    pub fn needs_you(&self) -> bool {
        let has_result = self.branch.as_ref().is_some_and(Branch::has_result);
        let of_agent = self.session.as_ref().is_some_and(|session| {
            matches!(
                session.state,
                State::Waiting | State::Error | State::Crashed
            ) || session.state == State::Limited && !session.continues
                // An agent without an item may rest.
                || session.state == State::Idle
                    && !session.only_shell
                    && !has_result
                    && !self.is_agent
        });
        // A busy agent may be resolving them itself.
        let works = self.session.as_ref().map(|session| session.state) == Some(State::Busy);
        let is_stuck = !works && self.branch.as_ref().is_some_and(Branch::has_open_conflicts);
        let is_broken = self
            .merge
            .is_some_and(|status| status.is_broken() || status == merge::MergeStatus::Held);
        let of_resolver = self.resolver_needs_you().is_some();
        of_agent || self.lost || is_stuck || is_broken || of_resolver
    }

    /// Returns whether the item is hooked or in progress.
    pub fn is_worked_on(&self) -> bool {
        matches!(self.status, ItemStatus::Hooked | ItemStatus::InProgress)
    }

    /// Returns the state of the agent. A lost agent counts as crashed.
    pub fn state(&self) -> Option<State> {
        let of_session = self.session.as_ref().map(|session| session.state);
        let lost = self.lost.then_some(State::Crashed);
        let stopped = self.stopped_since.map(|_| State::Stopped);
        of_session.or(lost).or(stopped)
    }

    /// Returns whether the agent and its container are gone, although it was not stopped.
    pub fn is_lost(&self) -> bool {
        self.lost && self.session.is_none()
    }

    /// Returns the resolver if it needs a person. Its failure no longer matters once the merge is
    /// committed, and it may be idle once no conflict is left.
    pub fn resolver_needs_you(&self) -> Option<&CardResolver> {
        let branch = self.branch.as_ref().filter(|branch| branch.merging);
        let has_conflicts = branch.is_some_and(|branch| !branch.conflicts.is_empty());
        self.resolver.as_ref().filter(|it| match it.state {
            State::Waiting => true,
            State::Error | State::Limited | State::Crashed => branch.is_some(),
            State::Idle | State::Done => has_conflicts,
            _ => false,
        })
    }

    /// Returns the program whose screen a person needs to see. The agent takes precedence over the
    /// resolver, which works for it.
    pub fn speaker(&self) -> Speaker<'_> {
        match self.resolver_needs_you() {
            Some(resolver) if self.asking_program() != Some(AskingProgram::Agent) => {
                Speaker::Resolver(resolver)
            }
            _ => Speaker::Agent,
        }
    }

    /// Returns the program that asks a question. The agent takes precedence over the resolver.
    pub fn asking_program(&self) -> Option<AskingProgram<'_>> {
        let asks = |state| state == State::Waiting;
        let session = self.session.as_ref();
        if session.is_some_and(|session| asks(session.state)) {
            return Some(AskingProgram::Agent);
        }
        let resolver = self.resolver.as_ref().filter(|it| asks(it.state));
        resolver.map(|it| AskingProgram::Window(&it.window))
    }

    /// Returns when the agent entered its state, else when the item last changed.
    pub fn since(&self) -> i64 {
        let session = self.session.as_ref().and_then(|session| session.since);
        let ended = self.lost_since.or(self.stopped_since);
        session.or(ended).unwrap_or(self.updated_at)
    }
}

impl Branch {
    /// Returns whether the branch has changes that the base does not have.
    pub fn has_result(&self) -> bool {
        self.ahead > 0 || self.dirty > 0
    }

    /// Returns whether a merge in the worktree has conflicts that no program resolves.
    pub fn has_open_conflicts(&self) -> bool {
        self.merging && !self.conflicts.is_empty() && !self.resolver
    }
}

#[cfg(test)]
mod tests;

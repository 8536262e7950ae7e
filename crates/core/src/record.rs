//! Record of one session of an agent.
//!
//! A line of the journal is a [`Record`] too: the first line of a session has all fields, and later
//! ones only those that changed. [`Record::merge`] combines them.

use crate::usage::{DailyUsage, Usage};
use serde::{Deserialize, Serialize};

/// End of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// Another session continued its work.
    Handoff,
    /// Its work was finished.
    Done,
    /// Its process failed: a signal, an exit status other than 0, or an unknown one.
    Crash,
    /// Its container was closed from outside of `gt`. Journals of earlier versions also have this
    /// outcome for sessions that `gt stop` ended.
    Killed,
    /// Its program exited by itself, with status 0.
    Exited,
    /// `gt` stopped it, on behalf of the caller in `ended_by`.
    Stopped,
}

impl Outcome {
    pub const ALL: [Outcome; 6] = [
        Outcome::Handoff,
        Outcome::Done,
        Outcome::Crash,
        Outcome::Killed,
        Outcome::Exited,
        Outcome::Stopped,
    ];

    /// Returns the outcome of a process that ended by itself. tmux may have lost its exit status:
    /// without proof of a clean exit it is a crash.
    pub fn of_process(exit_status: Option<i32>, exit_signal: Option<i32>) -> Outcome {
        match (exit_status, exit_signal.filter(|signal| *signal != 0)) {
            (Some(0), None) => Outcome::Exited,
            _ => Outcome::Crash,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Outcome::Handoff => "handoff",
            Outcome::Done => "done",
            Outcome::Crash => "crash",
            Outcome::Killed => "killed",
            Outcome::Exited => "exited",
            Outcome::Stopped => "stopped",
        }
    }

    pub fn from_word(word: &str) -> Option<Outcome> {
        Self::ALL
            .into_iter()
            .find(|outcome| outcome.as_str() == word)
    }

    /// Returns whether the session left nothing unfinished: another continued its work, or it was
    /// done.
    pub fn is_complete(self) -> bool {
        matches!(self, Outcome::Handoff | Outcome::Done)
    }
}

/// Whether a session is running.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SessionStatus {
    Running,
    Stopped,
}

impl SessionStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            SessionStatus::Running => "running",
            SessionStatus::Stopped => "stopped",
        }
    }
}

/// A step of an agent's work, as it reported it (`gt step`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionStep {
    pub name: String,
    /// Molecule or work item that the step belongs to.
    #[serde(rename = "ref", default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    pub started_at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<String>,
}

/// A work item that a session had before its present one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EarlierWork {
    pub work_unit: String,
    /// Usage of the session while it had the item; absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// Usage of a session for one of its items.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Share {
    pub usage: Option<Usage>,
    /// The session had other items, and the usage of each is not known: this is the total.
    pub is_undivided: bool,
}

/// Defines the fields of a record. Each may be absent, in a line of the journal and in a session.
macro_rules! record {
    ($( $(#[$doc:meta])* $field:ident: $type:ty, )*) => {
        /// A session, or the changes of one. Times are RFC 3339, in UTC.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        pub struct Record {
            /// Id of the session, a UUIDv7.
            pub id: String,
            $(
                $(#[$doc])*
                #[serde(default, skip_serializing_if = "Option::is_none")]
                pub $field: Option<$type>,
            )*
        }

        impl Record {
            /// Applies a later line. A line with the status running clears the end of the session.
            pub fn merge(&mut self, mut later: Record) {
                later.earlier_work = self.merged_earlier_work(&mut later);
                later.usage = self.larger_usage(later.usage.take());
                if later.status == Some(SessionStatus::Running) {
                    self.outcome = None;
                    self.ended_at = None;
                    self.exit_code = None;
                    self.ended_by = None;
                    self.lost = None;
                    self.failed_start = None;
                }
                $(
                    if later.$field.is_some() {
                        self.$field = later.$field;
                    }
                )*
            }
        }
    };
}

record! {
    /// Container: the name of its tmux session.
    tmux_session: String,
    /// Socket path of its tmux server.
    tmux_socket: String,
    /// Pid of that server.
    tmux_pid: u32,
    agent: String,
    rig: String,
    role: String,
    started_at: String,
    ended_at: String,
    outcome: Outcome,
    /// Caller that stopped it: a person's login name, or an agent's address.
    ended_by: String,
    /// Bead that was hooked last.
    work_unit: String,
    /// Beads that it had before, each once.
    earlier_work: Vec<EarlierWork>,
    molecule_id: String,
    /// Current step; empty in a line that clears it.
    step_ref: String,
    /// Previous session of its chain.
    parent_id: String,
    /// Next session of its chain.
    child_id: String,
    /// First session of its chain.
    chain_id: String,
    cwd: String,
    branch: String,
    commits: Vec<String>,
    harness: String,
    /// Model that it was started with; absent if the program chose it.
    model: String,
    /// Id of the conversation in the agent program.
    harness_session_id: String,
    pane: String,
    pid: u32,
    initial_prompt: String,
    status: SessionStatus,
    exit_code: i32,
    host: String,
    /// Start options, as its container's tag holds them.
    start: String,
    /// Its start failed, so it has no conversation to resume.
    failed_start: bool,
    /// It went down with its tmux server.
    lost: bool,
    /// Steps that it has reported, the oldest first.
    steps: Vec<SessionStep>,
    /// Usage, as far as it has been read.
    usage: Usage,
    /// The usage by day and model. Absent if all of it is of one model and of the day of the start.
    daily: Vec<DailyUsage>,
}

impl Record {
    /// Returns an empty line about a session that is known already.
    pub fn about(id: impl Into<String>) -> Self {
        Record {
            id: id.into(),
            ..Record::default()
        }
    }

    /// Returns the record without fields that a line has cleared. A line cannot unset a field; an
    /// empty `step_ref` means that it has no value.
    pub fn without_cleared(mut self) -> Self {
        self.step_ref = self.step_ref.filter(|reference| !reference.is_empty());
        self
    }

    /// Merges the earlier items of both. A line that only names another item leaves the usage of
    /// the previous item unknown.
    fn merged_earlier_work(&mut self, later: &mut Record) -> Option<Vec<EarlierWork>> {
        let known = self.earlier_work.take();
        let told = later.earlier_work.take();
        let left = self
            .work_unit
            .as_ref()
            .filter(|had| later.work_unit.as_ref().is_some_and(|next| next != *had));
        let left = left.map(|item| EarlierWork {
            work_unit: item.clone(),
            usage: None,
        });
        if told.is_none() && left.is_none() {
            return known;
        }
        let mut all = known.unwrap_or_default();
        for entry in left.into_iter().chain(told.into_iter().flatten()) {
            match all.iter_mut().find(|it| it.work_unit == entry.work_unit) {
                Some(known) => *known = entry,
                None => all.push(entry),
            }
        }
        Some(all)
    }

    /// Returns the larger of the known usage and that of a later line. Two processes may settle an
    /// ended session concurrently; the second finds fewer transcripts, because the first has removed
    /// the notes of where they are.
    fn larger_usage(&self, later: Option<Usage>) -> Option<Usage> {
        let known = self.usage.as_ref().map_or(0, Usage::tokens);
        later.filter(|usage| usage.tokens() >= known)
    }

    /// Returns the line with which this session switches to another item. `so_far` is the usage of
    /// the session until now, if that is known.
    pub fn switch_to_item(&self, item: &str, so_far: Option<Usage>) -> Record {
        let mut line = Record {
            work_unit: Some(item.to_owned()),
            ..Record::about(&self.id)
        };
        if let Some(had) = self.work_unit.as_ref().filter(|had| *had != item) {
            let mut session = self.clone();
            session.usage = so_far;
            let share = session.share_of(had);
            line.earlier_work = Some(vec![EarlierWork {
                work_unit: had.clone(),
                usage: share.usage.filter(|_| !share.is_undivided),
            }]);
        }
        line
    }

    /// Returns the items that the session worked on, the present one last.
    pub fn work_units(&self) -> impl Iterator<Item = &str> {
        let earlier = self.earlier_work.iter().flatten();
        let earlier = earlier.map(|entry| entry.work_unit.as_str());
        let present = self.work_unit.as_deref();
        earlier
            .filter(move |item| Some(*item) != present)
            .chain(present)
    }

    /// Returns the usage of the session for an item that it worked on: for an earlier item the
    /// usage until the session switched to another, for the present item the rest.
    pub fn share_of(&self, item: &str) -> Share {
        let is_present = |entry: &&EarlierWork| Some(&entry.work_unit) == self.work_unit.as_ref();
        let entries = || self.earlier_work.iter().flatten();
        let others: Option<Vec<&Usage>> = entries()
            .filter(|entry| !is_present(entry))
            .map(|entry| entry.usage.as_ref())
            .collect();
        let Some(others) = others else {
            return Share {
                usage: self.usage.clone(),
                is_undivided: true,
            };
        };
        let earlier = entries().find(|entry| entry.work_unit == item && !is_present(entry));
        let usage = match earlier {
            Some(entry) => entry.usage.clone(),
            None => self.usage.clone().map(|all| {
                let rest = others.into_iter().fold(all, |rest, share| rest - share);
                rest.rounded()
            }),
        };
        Share {
            usage,
            is_undivided: false,
        }
    }

    /// Returns whether this line begins a session.
    pub fn is_start(&self) -> bool {
        self.started_at.is_some() && self.agent.is_some()
    }
}

#[cfg(test)]
mod tests;

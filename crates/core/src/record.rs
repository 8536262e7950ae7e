//! One life of an agent, as it is remembered.
//!
//! A [`Record`] is also what a line of the journal holds: all of it when a life
//! begins, and later only what has changed. [`Record::merge`] adds them up.

use crate::usage::Usage;
use serde::{Deserialize, Serialize};

/// How a life ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// Another life went on with its work.
    Handoff,
    /// Its work was finished.
    Done,
    /// Its process failed: a signal, an exit status other than 0, or one that is unknown.
    Crash,
    /// Its container was closed from outside of `gt`. Journals of earlier versions also say
    /// this of sessions that `gt stop` ended.
    Killed,
    /// Its program left by itself, with exit status 0.
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

    /// The outcome of a process that ended by itself. tmux may have lost its exit status:
    /// without proof of a clean exit it is a crash.
    pub fn of_process(exit_status: Option<i32>, exit_signal: Option<i32>) -> Outcome {
        match (exit_status, exit_signal.filter(|signal| *signal != 0)) {
            (Some(0), None) => Outcome::Exited,
            _ => Outcome::Crash,
        }
    }

    pub fn word(self) -> &'static str {
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
        Self::ALL.into_iter().find(|outcome| outcome.word() == word)
    }

    /// Whether it left nothing in the middle: another went on with it, or it was finished.
    pub fn is_well(self) -> bool {
        matches!(self, Outcome::Handoff | Outcome::Done)
    }
}

/// Whether a life goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Running,
    Stopped,
}

impl Status {
    pub fn word(self) -> &'static str {
        match self {
            Status::Running => "running",
            Status::Stopped => "stopped",
        }
    }
}

/// A step of an agent's work, as it told it (`gt step`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    pub name: String,
    /// What it is a step of: a molecule's, a work item's.
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
    /// What the session took while it had the item; absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// What a session took for one of its items.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Share {
    pub usage: Option<Usage>,
    /// The session had other items, and how much it took for each is not known: this is all
    /// of it.
    pub is_undivided: bool,
}

/// The fields of a record: each may be absent, in a line of the journal and in a life.
macro_rules! record {
    ($( $(#[$doc:meta])* $field:ident: $type:ty, )*) => {
        /// A life, or what has changed in one. Times are RFC 3339, in UTC.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        pub struct Record {
            /// The id of the life, a UUIDv7.
            pub id: String,
            $(
                $(#[$doc])*
                #[serde(default, skip_serializing_if = "Option::is_none")]
                pub $field: Option<$type>,
            )*
        }

        impl Record {
            /// Takes over whatever a later line says. One that says that the life goes on
            /// takes back its end.
            pub fn merge(&mut self, mut later: Record) {
                later.earlier_work = self.merged_earlier_work(&mut later);
                if later.status == Some(Status::Running) {
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
    /// The container: the name of its tmux session.
    tmux_session: String,
    /// The server that it is on, by the path of its socket.
    tmux_socket: String,
    /// The process of that server.
    tmux_pid: u32,
    agent: String,
    rig: String,
    role: String,
    started_at: String,
    ended_at: String,
    outcome: Outcome,
    /// The caller who had it stopped: a person's login name, or an agent's address.
    ended_by: String,
    /// The bead that was hooked last.
    work_unit: String,
    /// Those that it had before, each once.
    earlier_work: Vec<EarlierWork>,
    molecule_id: String,
    /// The step that it is at; empty in the line of one that has ended.
    step_ref: String,
    /// The life before it in its chain.
    parent_id: String,
    /// The life after it.
    child_id: String,
    /// The first life of its chain.
    chain_id: String,
    cwd: String,
    branch: String,
    commits: Vec<String>,
    harness: String,
    /// The program's own name for the conversation.
    harness_session_id: String,
    pane: String,
    pid: u32,
    initial_prompt: String,
    status: Status,
    exit_code: i32,
    host: String,
    /// The wishes of its start, as its container's tag holds them.
    start: String,
    /// Its start failed: it never had a conversation worth going on with.
    failed_start: bool,
    /// It went down with its tmux server.
    lost: bool,
    /// What it has told of its work, the oldest first.
    steps: Vec<Step>,
    /// What it took, as far as it has been read.
    usage: Usage,
}

impl Record {
    /// A line about a life that is known already.
    pub fn about(id: impl Into<String>) -> Self {
        Record {
            id: id.into(),
            ..Record::default()
        }
    }

    /// The record without fields that a line has cleared. A line cannot say that a field has
    /// no value; an empty `step_ref` does.
    pub fn without_cleared(mut self) -> Self {
        self.step_ref = self.step_ref.filter(|reference| !reference.is_empty());
        self
    }

    /// The earlier items of both. A line that only names another item says nothing of what the
    /// one before took.
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

    /// The line that says that this session goes on with another item. `so_far` is what the
    /// session took until now, if that is known.
    pub fn going_on_with(&self, item: &str, so_far: Option<Usage>) -> Record {
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

    /// The items that the session worked on, the present one last.
    pub fn work_units(&self) -> impl Iterator<Item = &str> {
        let earlier = self.earlier_work.iter().flatten();
        let earlier = earlier.map(|entry| entry.work_unit.as_str());
        let present = self.work_unit.as_deref();
        earlier
            .filter(move |item| Some(*item) != present)
            .chain(present)
    }

    /// What the session took for an item that it worked on: for an earlier one what it took
    /// until it went on with another, for the present one the rest.
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

    /// Whether this line begins a life.
    pub fn begins(&self) -> bool {
        self.started_at.is_some() && self.agent.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_life_is_the_sum_of_its_lines() {
        let mut life: Record = serde_json::from_str(
            r#"{"id":"a","agent":"gastown/crew/max","started_at":"2026-01-17T01:00:00Z","status":"running","pid":7}"#,
        )
        .unwrap();
        assert!(life.begins());
        let end: Record =
            serde_json::from_str(r#"{"id":"a","outcome":"crash","status":"stopped","new":1}"#)
                .unwrap();
        assert!(!end.begins());
        life.merge(end);
        assert_eq!(life.outcome, Some(Outcome::Crash));
        assert_eq!(life.status, Some(Status::Stopped));
        assert_eq!(life.pid, Some(7), "what is not said stays");
        let revived = serde_json::from_str(r#"{"id":"a","status":"running"}"#).unwrap();
        life.merge(revived);
        assert_eq!(life.outcome, None, "it did not end after all");
    }

    #[test]
    fn an_empty_step_reference_clears_the_step() {
        let step = |text: &str| Record {
            step_ref: Some(text.to_owned()),
            ..Record::about("a")
        };
        let mut session = step("build");
        session.merge(Record::about("a"));
        assert_eq!(session.step_ref.as_deref(), Some("build"));
        session.merge(step(""));
        assert_eq!(session.without_cleared().step_ref, None);
        assert!(step("build").without_cleared().step_ref.is_some());
    }

    fn tokens(output_tokens: u64) -> Usage {
        Usage {
            output_tokens,
            cost_usd: Some(output_tokens as f64 / 1e3),
            ..Usage::default()
        }
    }

    #[test]
    fn usage_is_divided_between_the_items_of_a_session() {
        let mut session = Record::about("a");
        // A, then B, then A again, then C; the last figure is of the whole session.
        for (item, so_far) in [("A", 0), ("B", 100), ("A", 130), ("C", 190)] {
            let line = session.going_on_with(item, Some(tokens(so_far)));
            session.merge(line);
        }
        session.usage = Some(tokens(200));
        let share = |item| session.share_of(item);
        for (item, expected) in [("A", 160), ("B", 30), ("C", 10)] {
            let expected = Share {
                usage: Some(tokens(expected)),
                is_undivided: false,
            };
            assert_eq!(share(item), expected, "{item}");
        }
        assert_eq!(
            session.work_units().collect::<Vec<_>>(),
            ["A", "B", "C"],
            "each once"
        );
    }

    #[test]
    fn items_of_lines_without_figures_count_the_whole_session() {
        let of = |item: &str| Record {
            work_unit: Some(item.to_owned()),
            ..Record::about("a")
        };
        let mut session = of("A");
        session.merge(of("A"));
        assert_eq!(session.earlier_work, None, "it is the same one");
        session.usage = Some(tokens(5));
        assert!(!session.share_of("A").is_undivided);
        session.merge(of("B"));
        session.merge(of("A"));
        session.merge(of("C"));
        assert_eq!(
            session.work_units().collect::<Vec<_>>(),
            ["A", "B", "C"],
            "each once"
        );
        for item in ["A", "B", "C"] {
            let share = session.share_of(item);
            assert_eq!((share.usage, share.is_undivided), (Some(tokens(5)), true));
        }
        // A sum of later lines is merged like each of them.
        let (mut first, mut rest) = (of("A"), of("B"));
        rest.merge(of("C"));
        first.merge(rest);
        assert_eq!(first.work_units().collect::<Vec<_>>(), ["A", "B", "C"]);
    }

    #[test]
    fn every_outcome_has_a_word() {
        for outcome in Outcome::ALL {
            assert_eq!(Outcome::from_word(outcome.word()), Some(outcome));
        }
        assert_eq!(Outcome::from_word("x"), None);
    }

    #[test]
    fn only_a_known_status_of_zero_is_a_clean_exit() {
        for (status, signal, expected) in [
            (Some(0), None, Outcome::Exited),
            (Some(0), Some(0), Outcome::Exited),
            (Some(1), None, Outcome::Crash),
            (None, Some(9), Outcome::Crash),
            (Some(0), Some(15), Outcome::Crash),
            (None, None, Outcome::Crash),
        ] {
            let outcome = Outcome::of_process(status, signal);
            assert_eq!(outcome, expected, "{status:?} {signal:?}");
        }
    }
}

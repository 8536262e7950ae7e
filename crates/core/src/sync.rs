//! Reconciles the journal with tmux.
//!
//! tmux is the source of truth for running sessions, the journal for ended ones. [`plan`] compares
//! both and returns the lines that the journal lacks. It has no side effects and is idempotent:
//! once its lines are written, it returns none.

use crate::record::{Outcome, Record, SessionStatus};
use std::collections::{HashMap, HashSet};

/// A container of this town, as tmux shows it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShownContainer {
    /// Session in the container, with the fields that its tags and its pane give.
    pub session: Record,
    /// Whether its tags name its agent; otherwise only its name does.
    pub is_tagged: bool,
    /// End of its process: when, in RFC 3339, and how.
    pub death: Option<PaneDeath>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct PaneDeath {
    pub at: Option<String>,
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    /// The program has reported that it exits; its exit status is not known.
    pub has_left: bool,
}

impl PaneDeath {
    fn outcome(&self) -> Outcome {
        match self.has_left {
            true => Outcome::Exited,
            false => Outcome::of_process(self.exit_code, self.signal),
        }
    }

    fn change(&self) -> JournalChange {
        match self.outcome() {
            Outcome::Exited => JournalChange::Exited,
            _ => JournalChange::Died,
        }
    }
}

/// Purpose of one line of the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JournalChange {
    /// It runs, and the journal has no record of it.
    Found,
    /// It runs under the name of an agent, and gt did not start it.
    Adopted,
    /// It runs, and the journal says that it has ended.
    Revived,
    /// Its container has another name now.
    Renamed,
    /// It has another conversation now.
    Updated,
    /// Its process failed.
    Died,
    /// Its program exited by itself, with status 0.
    Exited,
    /// Its container is gone.
    Gone,
}

impl JournalChange {
    pub const ALL: [JournalChange; 8] = [
        JournalChange::Found,
        JournalChange::Adopted,
        JournalChange::Revived,
        JournalChange::Renamed,
        JournalChange::Updated,
        JournalChange::Died,
        JournalChange::Exited,
        JournalChange::Gone,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            JournalChange::Found => "found",
            JournalChange::Adopted => "adopted",
            JournalChange::Revived => "revived",
            JournalChange::Renamed => "renamed",
            JournalChange::Updated => "updated",
            JournalChange::Died => "died",
            JournalChange::Exited => "exited",
            JournalChange::Gone => "gone",
        }
    }
}

/// Time of the plan, and the tmux server at that time. Times are RFC 3339, in UTC.
#[derive(Clone, Copy, Debug)]
pub struct SyncContext<'a> {
    pub now: &'a str,
    /// Start of the server or the machine: no running session is older.
    pub running_since: Option<&'a str>,
    /// Pid of the tmux server. `None` means that all sessions went down with it.
    pub server: Option<u32>,
}

/// Returns the lines that the journal lacks. `running` holds the sessions that the journal takes
/// for running; `known` looks up any other session in the journal.
pub fn plan(
    running: &[Record],
    shown: &[ShownContainer],
    known: impl Fn(&str) -> Option<Record>,
    moment: &SyncContext<'_>,
) -> Vec<(JournalChange, Record)> {
    let mut lines = Vec::new();
    let open: HashMap<&str, &Record> = running
        .iter()
        .map(|session| (session.id.as_str(), session))
        .collect();
    for container in shown {
        let session = &container.session;
        match open.get(session.id.as_str()) {
            Some(record) => lines.extend(differences(record, container, moment)),
            None => lines.extend(unexpected(known(&session.id), container, moment)),
        }
    }
    let present: HashSet<&str> = shown.iter().map(|c| c.session.id.as_str()).collect();
    for record in running
        .iter()
        .filter(|session| !present.contains(session.id.as_str()))
    {
        let (outcome, at) = loss(record, moment);
        let line = Record {
            lost: (outcome == Outcome::Crash).then_some(true),
            ..ending(&record.id, outcome, at, None)
        };
        lines.push((JournalChange::Gone, line));
    }
    lines
}

/// Returns how and when a session ended whose container is gone: its container was closed, or it
/// went down with its server.
fn loss<'a>(record: &Record, moment: &SyncContext<'a>) -> (Outcome, &'a str) {
    let is_older = |since: &str| record.started_at.as_deref().is_some_and(|at| at < since);
    let since = moment.running_since.filter(|since| is_older(since));
    let same_server = match (record.tmux_pid, moment.server) {
        (_, None) => false,
        (Some(its), Some(present)) => its == present,
        (None, Some(_)) => since.is_none(),
    };
    if same_server {
        (Outcome::Killed, moment.now)
    } else {
        (Outcome::Crash, since.unwrap_or(moment.now))
    }
}

/// Returns the changes of a session that the journal takes for running.
fn differences(
    record: &Record,
    container: &ShownContainer,
    moment: &SyncContext<'_>,
) -> impl Iterator<Item = (JournalChange, Record)> {
    let session = &container.session;
    // An untagged container is identified by its name alone, so the agent changes with it.
    let is_other = !container.is_tagged && record.agent != session.agent;
    let renamed = (record.tmux_session != session.tmux_session || is_other).then(|| Record {
        tmux_session: session.tmux_session.clone(),
        agent: session.agent.clone().filter(|_| is_other),
        ..Record::about(&session.id)
    });
    let conversation = session.harness_session_id.clone();
    let updated = conversation
        .filter(|id| record.harness_session_id.as_ref() != Some(id))
        .map(|id| Record {
            harness_session_id: Some(id),
            ..Record::about(&session.id)
        });
    let died = container
        .death
        .as_ref()
        .map(|death| (death.change(), death_of(session, death, moment)));
    [
        renamed.map(|line| (JournalChange::Renamed, line)),
        updated.map(|line| (JournalChange::Updated, line)),
        died,
    ]
    .into_iter()
    .flatten()
}

/// Returns the lines for a session that the journal does not take for running.
fn unexpected(
    known: Option<Record>,
    container: &ShownContainer,
    moment: &SyncContext<'_>,
) -> Vec<(JournalChange, Record)> {
    let session = &container.session;
    match (known, &container.death) {
        // The session began after `running` was read.
        (Some(record), _) if record.status == Some(SessionStatus::Running) => {
            differences(&record, container, moment).collect()
        }
        // The journal has its end, and the dead container is kept for inspection.
        (Some(_), Some(_)) => Vec::new(),
        (Some(_), None) => {
            let revived = Record {
                status: Some(SessionStatus::Running),
                tmux_session: session.tmux_session.clone(),
                ..Record::about(&session.id)
            };
            vec![(JournalChange::Revived, revived)]
        }
        (None, death) => {
            let change = if container.is_tagged {
                JournalChange::Found
            } else {
                JournalChange::Adopted
            };
            let mut lines = vec![(change, session.clone())];
            lines.extend(
                death
                    .iter()
                    .map(|death| (death.change(), death_of(session, death, moment))),
            );
            lines
        }
    }
}

fn death_of(session: &Record, death: &PaneDeath, moment: &SyncContext<'_>) -> Record {
    let at = death.at.as_deref().unwrap_or(moment.now);
    ending(&session.id, death.outcome(), at, death.exit_code)
}

fn ending(id: &str, outcome: Outcome, at: &str, exit_code: Option<i32>) -> Record {
    Record {
        ended_at: Some(at.to_owned()),
        outcome: Some(outcome),
        exit_code,
        status: Some(SessionStatus::Stopped),
        ..Record::about(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(id: &str, container: &str) -> Record {
        Record {
            agent: Some("mayor".into()),
            started_at: Some("2026-01-17T01:00:00.000Z".into()),
            tmux_session: Some(container.into()),
            status: Some(SessionStatus::Running),
            ..Record::about(id)
        }
    }

    fn shown(id: &str, container: &str) -> ShownContainer {
        ShownContainer {
            session: session(id, container),
            is_tagged: true,
            death: None,
        }
    }

    const MOMENT: SyncContext<'_> = SyncContext {
        now: "2026-01-17T02:00:00.000Z",
        running_since: Some("2026-01-17T00:00:00.000Z"),
        server: Some(7),
    };

    fn ended(id: &str) -> Option<Record> {
        Some(ending(id, Outcome::Killed, "then", None))
    }

    #[test]
    fn an_untagged_container_takes_its_agents_name_along() {
        let mut orphan = shown("a", "agent_new");
        orphan.is_tagged = false;
        orphan.session.agent = Some("agent/new".into());
        let mut before = session("a", "agent_old");
        before.agent = Some("agent/old".into());
        let lines = plan(&[before.clone()], &[orphan.clone()], ended, &MOMENT);
        let [(JournalChange::Renamed, line)] = lines.as_slice() else {
            panic!("{lines:?}");
        };
        assert_eq!(line.agent.as_deref(), Some("agent/new"));
        assert_eq!(line.tmux_session.as_deref(), Some("agent_new"));
        // A tagged container keeps its agent.
        orphan.is_tagged = true;
        let lines = plan(&[before], &[orphan], ended, &MOMENT);
        assert_eq!(lines[0].1.agent, None);
    }

    #[test]
    fn matching_sessions_need_no_journal_line() {
        let running = [session("a", "x")];
        assert_eq!(plan(&running, &[shown("a", "x")], ended, &MOMENT), []);
        // A dead container whose session has ended in the journal is no change either.
        let mut dead = shown("b", "y");
        dead.death = Some(PaneDeath::default());
        assert_eq!(plan(&[], &[dead], ended, &MOMENT), []);
    }

    #[test]
    fn every_difference_has_its_line() {
        let mut dead = shown("b", "y");
        dead.death = Some(PaneDeath {
            at: Some("then".into()),
            exit_code: Some(3),
            ..PaneDeath::default()
        });
        let mut named = shown("e", "agent_e");
        named.is_tagged = false;
        let mut elsewhere = shown("g", "v");
        elsewhere.session.harness_session_id = Some("other".into());
        let mut long_ago = session("h", "u");
        long_ago.started_at = Some("2026-01-16T01:00:00.000Z".into());
        let mut on_another = session("i", "t");
        on_another.tmux_pid = Some(6);
        let running = [
            session("a", "old"),
            session("b", "y"),
            session("c", "z"),
            session("g", "v"),
            long_ago,
            on_another,
        ];
        let all = [
            shown("a", "new"),
            dead,
            shown("d", "w"),
            named,
            shown("f", "x"),
            elsewhere,
        ];
        let known = |id: &str| ended(id).filter(|_| id == "f");
        let lines = plan(&running, &all, known, &MOMENT);
        let changes: Vec<(JournalChange, &str)> = lines
            .iter()
            .map(|(change, line)| (*change, line.id.as_str()))
            .collect();
        assert_eq!(
            changes,
            [
                (JournalChange::Renamed, "a"),
                (JournalChange::Died, "b"),
                (JournalChange::Found, "d"),
                (JournalChange::Adopted, "e"),
                (JournalChange::Revived, "f"),
                (JournalChange::Updated, "g"),
                (JournalChange::Gone, "c"),
                (JournalChange::Gone, "h"),
                (JournalChange::Gone, "i"),
            ]
        );
        let died = &lines[1].1;
        assert_eq!(died.outcome, Some(Outcome::Crash));
        assert_eq!(died.ended_at.as_deref(), Some("then"));
        assert_eq!(died.exit_code, Some(3));
        assert_eq!(died.lost, None, "its server goes on");
        assert_eq!(lines[6].1.outcome, Some(Outcome::Killed));
        assert_eq!(lines[6].1.lost, None);
        let lost = &lines[7].1;
        assert_eq!(lost.outcome, Some(Outcome::Crash));
        assert_eq!(lost.lost, Some(true));
        assert_eq!(lost.ended_at.as_deref(), MOMENT.running_since);
        assert_eq!(lines[8].1.outcome, Some(Outcome::Crash));
        let no_server = SyncContext {
            server: None,
            ..MOMENT
        };
        let without = plan(&running, &[], known, &no_server);
        assert!(
            without
                .iter()
                .all(|(_, l)| l.outcome == Some(Outcome::Crash))
        );
    }
    #[test]
    fn exit_status_zero_is_recorded_as_exited() {
        let mut left = shown("a", "x");
        left.death = Some(PaneDeath {
            exit_code: Some(0),
            ..PaneDeath::default()
        });
        let lines = plan(&[session("a", "x")], &[left.clone()], ended, &MOMENT);
        let [(change, line)] = lines.as_slice() else {
            panic!("{lines:?}");
        };
        assert_eq!(*change, JournalChange::Exited);
        assert_eq!(line.outcome, Some(Outcome::Exited));
        assert_eq!(line.exit_code, Some(0));
        // tmux lost the status: nothing proves that it left by itself.
        left.death = Some(PaneDeath::default());
        let lines = plan(&[session("a", "x")], &[left.clone()], ended, &MOMENT);
        assert_eq!(lines[0].1.outcome, Some(Outcome::Crash));
        // An adopted program has no status, but may have reported that it exits.
        left.death = Some(PaneDeath {
            has_left: true,
            ..PaneDeath::default()
        });
        let lines = plan(&[session("a", "x")], &[left], ended, &MOMENT);
        assert_eq!(lines[0].1.outcome, Some(Outcome::Exited));
        assert_eq!(lines[0].1.exit_code, None);
    }
}

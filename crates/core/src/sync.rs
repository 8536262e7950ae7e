//! Making what is remembered agree with what tmux shows.
//!
//! tmux is right about who runs; the records are right about who ran. [`plan`] compares
//! both and says which lines the journal lacks. It changes nothing itself, and said
//! twice it says nothing the second time.

use crate::record::{Outcome, Record, Status};

/// A container of this town's, as tmux shows it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shown {
    /// The life in it, with as much as its tags and its pane tell.
    pub life: Record,
    /// Its process has ended: when, in RFC 3339, and how.
    pub death: Option<Death>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Death {
    pub at: Option<String>,
    pub exit_code: Option<i32>,
}

/// What one line of the plan is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It runs, and nobody had written it down.
    Found,
    /// Its container has another name now.
    Renamed,
    /// Its process ended.
    Died,
    /// Its container is gone.
    Gone,
}

impl Change {
    pub fn word(self) -> &'static str {
        match self {
            Change::Found => "found",
            Change::Renamed => "renamed",
            Change::Died => "died",
            Change::Gone => "gone",
        }
    }
}

/// The lines that the journal lacks. `running` are the lives that it takes for running,
/// `is_known` tells whether it has ever heard of one, and `now` is in RFC 3339.
pub fn plan(
    running: &[Record],
    shown: &[Shown],
    is_known: impl Fn(&str) -> bool,
    has_server: bool,
    now: &str,
) -> Vec<(Change, Record)> {
    let mut lines = Vec::new();
    let ending = |id: &str, outcome, death: Death| Record {
        ended_at: Some(death.at.unwrap_or_else(|| now.to_owned())),
        outcome: Some(outcome),
        exit_code: death.exit_code,
        status: Some(Status::Stopped),
        ..Record::about(id)
    };
    for container in shown {
        let id = &container.life.id;
        let record = running.iter().find(|record| record.id == *id);
        if record.is_none() && !is_known(id) {
            lines.push((Change::Found, container.life.clone()));
        }
        let is_open = record.is_some() || !is_known(id);
        if let Some(death) = container.death.clone().filter(|_| is_open) {
            lines.push((Change::Died, ending(id, Outcome::Crash, death)));
        }
        if record.is_some_and(|record| record.tmux_session != container.life.tmux_session) {
            let renamed = Record {
                tmux_session: container.life.tmux_session.clone(),
                ..Record::about(id.clone())
            };
            lines.push((Change::Renamed, renamed));
        }
    }
    // Somebody closed it, or everything went down with the server.
    let outcome = if has_server {
        Outcome::Killed
    } else {
        Outcome::Crash
    };
    for record in running {
        if !shown.iter().any(|container| container.life.id == record.id) {
            lines.push((Change::Gone, ending(&record.id, outcome, Death::default())));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn life(id: &str, container: &str) -> Record {
        Record {
            agent: Some("mayor".into()),
            started_at: Some("2026-01-17T01:00:00.000Z".into()),
            tmux_session: Some(container.into()),
            status: Some(Status::Running),
            ..Record::about(id)
        }
    }

    fn shown(id: &str, container: &str) -> Shown {
        Shown {
            life: life(id, container),
            death: None,
        }
    }

    #[test]
    fn what_agrees_needs_no_line() {
        let running = [life("a", "x")];
        let lines = plan(&running, &[shown("a", "x")], |_| true, true, "now");
        assert_eq!(lines, []);
        // One that is over for the journal, and still shown dead, is no news either.
        let mut dead = shown("b", "y");
        dead.death = Some(Death::default());
        assert_eq!(plan(&[], &[dead], |_| true, true, "now"), []);
    }

    #[test]
    fn every_difference_has_its_line() {
        let mut dead = shown("b", "y");
        dead.death = Some(Death {
            at: Some("then".into()),
            exit_code: Some(3),
        });
        let running = [life("a", "old"), life("b", "y"), life("c", "z")];
        let all = [shown("a", "new"), dead, shown("d", "w")];
        let lines = plan(&running, &all, |id| id != "d", true, "now");
        let changes: Vec<(Change, &str)> = lines
            .iter()
            .map(|(change, line)| (*change, line.id.as_str()))
            .collect();
        assert_eq!(
            changes,
            [
                (Change::Renamed, "a"),
                (Change::Died, "b"),
                (Change::Found, "d"),
                (Change::Gone, "c"),
            ]
        );
        let died = &lines[1].1;
        assert_eq!(died.outcome, Some(Outcome::Crash));
        assert_eq!(died.ended_at.as_deref(), Some("then"));
        assert_eq!(died.exit_code, Some(3));
        assert_eq!(lines[3].1.outcome, Some(Outcome::Killed));
        let without = plan(&running, &[], |_| true, false, "now");
        assert!(
            without
                .iter()
                .all(|(_, l)| l.outcome == Some(Outcome::Crash))
        );
    }
}

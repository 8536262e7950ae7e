//! The events that lines of the journal cause: sessions that begin and end.
//!
//! They are created where lines are written, so that no caller that starts or ends an agent can
//! forget them. The end of a session that had ended already causes no event.

use gt_core::Caller;
use gt_core::event::Event;
use gt_core::record::{Outcome, Record};
use gt_core::state::StateSource;
use serde_json::Value;
use std::collections::HashSet;

/// Number of deaths from which on a mass death is reported.
const MASS: usize = 3;
const DEATH: &str = "session_death";
const MASS_DEATH: &str = "mass_death";
/// Seconds within which deaths count as simultaneous: tmux reports them one by one.
pub(super) const TOGETHER_SECONDS: i64 = 10;

/// Returns the events of these lines. `known` returns a session as it was before them.
pub(super) fn events(lines: &[Record], known: impl Fn(&str) -> Option<Record>) -> Vec<Event> {
    let mut events = Vec::new();
    for line in lines {
        if line.is_start() {
            events.push(started(line));
        }
        let Some(outcome) = line.outcome else {
            continue;
        };
        let mut session = known(&line.id).unwrap_or_else(|| Record::about(line.id.clone()));
        if session.outcome.is_some() {
            continue;
        }
        // The line that begins a session that was found dead precedes this one.
        if let Some(begin) = lines.iter().find(|l| l.id == line.id && l.is_start()) {
            session.merge(begin.clone());
        }
        session.merge(line.clone());
        events.push(ended(&session, outcome));
    }
    events
}

/// Returns whether these events include deaths, which may be part of a mass death.
pub(super) fn include_deaths(events: &[Event]) -> bool {
    events.iter().any(|event| event.kind == DEATH)
}

/// Returns the event of a mass death, given all recent events, unless it was reported already. An
/// agent counts once, and only if it had come up: a failed start is not the death of a running
/// agent.
pub(super) fn mass_death(recent: &[Event]) -> Option<Event> {
    let mut seen = HashSet::new();
    let had_run = |event: &&Event| event.payload.get("failed_start") != Some(&Value::Bool(true));
    let mut deaths: Vec<&Event> = recent.iter().filter(|event| event.kind == DEATH).collect();
    deaths.retain(had_run);
    deaths.retain(|death| seen.insert(death.actor.as_str()));
    let is_told = recent.iter().any(|event| event.kind == MASS_DEATH);
    if is_told || deaths.len() < MASS {
        return None;
    }
    let agents = deaths.iter().map(|death| Value::from(death.actor.clone()));
    let sessions = deaths
        .iter()
        .map(|death| death.payload["session_id"].clone());
    Some(
        Event::new(MASS_DEATH, Caller::Gt)
            .with("count", deaths.len())
            .with("agents", agents.collect::<Vec<Value>>())
            .with("sessions", sessions.collect::<Vec<Value>>()),
    )
}

fn started(session: &Record) -> Event {
    about(Event::new("session_start", actor(session)), session)
        .with("harness", session.harness.clone())
        .with("cwd", session.cwd.clone())
        .with("work_unit", session.work_unit.clone())
        .with("chain_id", session.chain_id.clone())
        .with("parent_id", session.parent_id.clone())
        .known_by(StateSource::Start)
}

fn ended(session: &Record, outcome: Outcome) -> Event {
    let kind = match outcome {
        Outcome::Crash => DEATH,
        Outcome::Handoff | Outcome::Done | Outcome::Killed | Outcome::Exited | Outcome::Stopped => {
            "session_end"
        }
    };
    // The process reports a crash, an exit or an exit code; `gt` knows any other end.
    let by_process = matches!(outcome, Outcome::Crash | Outcome::Exited);
    let source = match by_process || session.exit_code.is_some() {
        true => StateSource::Process,
        false => StateSource::Gt,
    };
    about(Event::new(kind, actor(session)), session)
        .with("outcome", outcome.as_str())
        .with("by", session.ended_by.clone())
        .with("failed_start", session.failed_start)
        .with("exit_code", session.exit_code)
        .with("ended_at", session.ended_at.clone())
        .with("child_id", session.child_id.clone())
        .known_by(source)
}

fn about(event: Event, session: &Record) -> Event {
    event
        .with("session_id", session.id.clone())
        .with("role", session.role.clone())
        .with("rig", session.rig.clone())
        .with("container", session.tmux_session.clone())
}

fn actor(session: &Record) -> Caller {
    Caller::agent(session.agent.as_deref().unwrap_or("unknown"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::Clock;
    use crate::records::sessions::{SessionEnd, Sessions};

    fn session(id: &str) -> Record {
        Record {
            agent: Some(format!("agent/{id}")),
            started_at: Some("2026-01-17T01:00:00.000Z".into()),
            ..Record::about(id)
        }
    }

    fn told(lines: &[Record], known: &[Record]) -> Vec<String> {
        let known = |id: &str| known.iter().find(|session| session.id == id).cloned();
        events(lines, known).iter().map(Event::line).collect()
    }

    fn end(id: &str, outcome: Outcome) -> Record {
        Sessions::ending(id, SessionEnd::of(outcome), &Clock::default())
    }

    #[test]
    fn starts_and_ends_of_sessions_become_events_once() {
        assert_eq!(told(&[session("a")], &[]), ["agent/a began"]);
        let renamed = Record {
            tmux_session: Some("x".into()),
            ..Record::about("a")
        };
        assert_eq!(told(&[renamed], &[session("a")]), [""; 0]);
        let killed = end("a", Outcome::Killed);
        let ended = ["agent/a ended: killed"];
        assert_eq!(told(std::slice::from_ref(&killed), &[session("a")]), ended);
        let mut over = session("a");
        over.merge(killed.clone());
        assert_eq!(told(&[killed], &[over]), [""; 0], "it was over");
        let found_dead = [session("b"), end("b", Outcome::Crash)];
        assert_eq!(told(&found_dead, &[]), ["agent/b began", "agent/b died"]);
    }

    #[test]
    fn many_deaths_are_a_mass_death() {
        let sessions = ["a", "b", "c"].map(session);
        let deaths = ["a", "b", "c"].map(|id| end(id, Outcome::Crash));
        let mut recent = events(&deaths, |id| sessions.iter().find(|l| l.id == id).cloned());
        assert!(include_deaths(&recent));
        assert_eq!(mass_death(&recent[..2]), None);
        let mass = mass_death(&recent).unwrap();
        assert_eq!(
            mass.line(),
            "3 agents died together: agent/a, agent/b, agent/c"
        );
        recent.push(mass);
        assert_eq!(mass_death(&recent), None, "it has been told");
    }

    #[test]
    fn deaths_of_one_agent_and_failed_starts_are_no_mass_death() {
        let died = |id: &str, agent: &str, failed_start: Option<bool>| {
            let session = Record {
                agent: Some(agent.to_owned()),
                ..session(id)
            };
            let line = Record {
                failed_start,
                ..end(id, Outcome::Crash)
            };
            events(&[line], |_| Some(session.clone())).remove(0)
        };
        let of_one = ["a", "b", "c"].map(|id| died(id, "max", None));
        assert_eq!(mass_death(&of_one), None);
        let failed = ["a", "b", "c"].map(|id| died(id, id, Some(true)));
        assert_eq!(mass_death(&failed), None);
        let of_two = [&of_one[..], &[died("d", "amy", None)]].concat();
        assert_eq!(mass_death(&of_two), None);
        let of_three = [&of_two[..], &[died("e", "bob", None)]].concat();
        let mass = mass_death(&of_three).unwrap();
        assert_eq!(mass.line(), "3 agents died together: max, amy, bob");
    }

    #[test]
    fn a_stop_names_the_caller() {
        let line = Record {
            ended_by: Some("ann".to_owned()),
            ..end("a", Outcome::Stopped)
        };
        assert_eq!(
            told(&[line], &[session("a")]),
            ["agent/a ended: stopped by ann"]
        );
        let exited = end("a", Outcome::Exited);
        assert_eq!(told(&[exited], &[session("a")]), ["agent/a ended: exited"]);
    }
}

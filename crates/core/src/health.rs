//! The health of an agent.

use crate::process::ProcessTable;
use crate::state::State;
use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    Healthy,
    /// There is no container.
    SessionDead,
    /// The container exists, but no agent runs in it.
    AgentDead,
    /// The container exists, and its program ended by itself with exit status 0.
    Exited,
    /// The agent reports busy but has printed nothing for too long.
    AgentHung,
    /// The agent is alive, and its last turn failed.
    TurnFailed,
    /// The agent is alive, and a usage limit prevents it from working.
    Limited,
}

impl Health {
    /// Returns whether the agent's process is alive and not hung.
    pub fn is_alive(self) -> bool {
        matches!(self, Health::Healthy | Health::TurnFailed | Health::Limited)
    }

    /// Returns whether the agent has a problem. A program that exited cleanly is not alive, but
    /// has no problem.
    pub fn has_problem(self) -> bool {
        !matches!(self, Health::Healthy | Health::Exited)
    }

    pub fn describe(self) -> &'static str {
        match self {
            Health::Healthy => "healthy",
            Health::SessionDead => "session dead",
            Health::AgentDead => "agent dead",
            Health::Exited => "exited",
            Health::AgentHung => "agent hung",
            Health::TurnFailed => "turn failed",
            Health::Limited => "limited",
        }
    }
}

/// Facts about the agent's own pane; other panes are ignored.
#[derive(Clone, Copy, Debug)]
pub struct Vitals<'a> {
    pub pane_dead: bool,
    pub pane_pid: u32,
    /// Process names of the agent. If empty, any process counts.
    pub process_names: &'a [String],
    pub state: State,
    pub silent_seconds: u64,
    pub hung_after_seconds: u64,
}

/// Determines the health of an agent whose container exists.
///
/// Silence alone is normal: an idle agent prints nothing for hours. Only a silent agent that
/// reports busy counts as hung.
pub fn examine(vitals: &Vitals<'_>, processes: &ProcessTable) -> Health {
    if vitals.pane_dead && vitals.state == State::Exited {
        return Health::Exited;
    }
    if vitals.pane_dead || !agent_runs(vitals, processes) {
        return Health::AgentDead;
    }
    if vitals.state == State::Busy && vitals.silent_seconds > vitals.hung_after_seconds {
        return Health::AgentHung;
    }
    match vitals.state {
        State::Error => Health::TurnFailed,
        State::Limited => Health::Limited,
        _ => Health::Healthy,
    }
}

fn agent_runs(vitals: &Vitals<'_>, processes: &ProcessTable) -> bool {
    let tree = processes.descendants(vitals.pane_pid);
    if vitals.process_names.is_empty() {
        return processes
            .get(vitals.pane_pid)
            .is_some_and(|process| !process.zombie);
    }
    processes.any_named(&tree, vitals.process_names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Process;

    #[test]
    fn by_names_over_the_tree_and_never_by_silence_alone() {
        let process = |pid, parent, name: &str| Process {
            pid,
            parent,
            group: pid,
            session: 20,
            started: 1,
            name: name.to_owned(),
            aliases: Vec::new(),
            zombie: false,
        };
        let table: ProcessTable = [
            process(20, 10, "sh"),
            process(21, 20, "claude"),
            process(30, 10, "codex"),
        ]
        .into_iter()
        .collect();
        let names = vec!["claude".to_owned()];
        let well = Vitals {
            pane_dead: false,
            pane_pid: 20,
            process_names: &names,
            state: State::Idle,
            silent_seconds: 86_400,
            hung_after_seconds: 1_800,
        };
        assert_eq!(examine(&well, &table), Health::Healthy);
        let hung = Vitals {
            state: State::Busy,
            ..well
        };
        assert_eq!(examine(&hung, &table), Health::AgentHung);
        for (state, health) in [
            (State::Error, Health::TurnFailed),
            (State::Limited, Health::Limited),
        ] {
            assert_eq!(examine(&Vitals { state, ..well }, &table), health);
        }
        let dead = Vitals {
            pane_dead: true,
            state: State::Error,
            ..well
        };
        assert_eq!(examine(&dead, &table), Health::AgentDead);
        let exited = Vitals {
            state: State::Exited,
            ..dead
        };
        assert_eq!(examine(&exited, &table), Health::Exited);
        assert!(!Health::Exited.has_problem() && !Health::Exited.is_alive());
        let codex = vec!["codex".to_owned()];
        let other = Vitals {
            process_names: &codex,
            ..well
        };
        assert_eq!(
            examine(&other, &table),
            Health::AgentDead,
            "another user's codex"
        );
        let any = Vitals {
            process_names: &[],
            ..well
        };
        assert_eq!(examine(&any, &table), Health::Healthy);
        let gone = Vitals {
            pane_pid: 99,
            ..any
        };
        assert_eq!(examine(&gone, &table), Health::AgentDead);
    }
}

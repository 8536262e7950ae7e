//! One test per rule, over small snapshots.

mod deaths;
mod leftovers;
mod on_demand;
mod queues;
mod stuck;
mod unfinished;

use crate::Role;
use crate::patrol::*;
use crate::record::Outcome;
use crate::state::State;

const NOW: i64 = 1_000_000;
const MINUTE: i64 = 60;
const HOUR: i64 = 3_600;

/// Runs rounds over one snapshot.
struct Stage {
    snapshot: Snapshot,
    memory: PatrolMemory,
    settings: RuleSettings,
}

impl Stage {
    fn new() -> Self {
        Stage {
            snapshot: Snapshot {
                server: ServerFacts {
                    is_alive: true,
                    lost: Vec::new(),
                },
                ..Snapshot::default()
            },
            memory: PatrolMemory::default(),
            settings: RuleSettings::default(),
        }
    }

    fn with(agent: AgentFacts) -> Self {
        let mut stage = Stage::new();
        stage.add(agent);
        stage
    }

    fn add(&mut self, agent: AgentFacts) {
        if let Some(item) = &agent.item {
            self.snapshot.items.push(ItemFacts {
                id: item.clone(),
                rig: agent.rig.clone(),
                holder: Some(agent.address.clone()),
                since: Some(NOW),
                holder_exists: true,
            });
        }
        self.snapshot.agents.push(agent);
    }

    fn agent(&mut self) -> &mut AgentFacts {
        &mut self.snapshot.agents[0]
    }

    fn round(&mut self, after: i64) -> Vec<PatrolAction> {
        decide_round(
            &self.snapshot,
            &mut self.memory,
            &self.settings,
            NOW + after,
        )
    }

    /// Checks the rules and kinds of the actions that many seconds later.
    #[track_caller]
    fn expect(&mut self, after: i64, expected: &[(&str, ActionKind)]) {
        let actions = self.round(after);
        let found: Vec<(&str, ActionKind)> = actions
            .iter()
            .map(|action| (action.rule, action.kind))
            .collect();
        assert_eq!(found, expected, "after {after} s: {actions:#?}");
        for action in &actions {
            assert!(
                !action.reason.is_empty() && !action.evidence.is_empty(),
                "{action:?}"
            );
        }
    }
}

fn polecat(item: Option<&str>) -> AgentFacts {
    AgentFacts {
        rig: Some("lab".to_owned()),
        item: item.map(str::to_owned),
        ..AgentFacts::idle("lab/polecats/nux", Role::Polecat, NOW)
    }
}

fn ended(agent: AgentFacts, outcome: Outcome) -> AgentFacts {
    AgentFacts {
        presence: Presence::Dead,
        state: match outcome {
            Outcome::Exited => State::Exited,
            _ => State::Crashed,
        },
        ended: Some(EndFacts {
            at: NOW,
            outcome,
            how: "exit status 3".to_owned(),
            is_recorded: true,
            is_lost: false,
        }),
        ..agent
    }
}

fn witness() -> AgentFacts {
    AgentFacts {
        rig: Some("lab".to_owned()),
        respawn: RespawnFacts {
            is_wanted: true,
            is_armed: true,
            deaths: 1,
        },
        ..AgentFacts::idle("lab/witness", Role::Witness, NOW)
    }
}

#[test]
fn names_are_unique_and_each_row_is_complete() {
    let settings = RuleSettings::default();
    let faster = settings.clone().faster(30);
    for (place, rule) in RULES.iter().enumerate() {
        assert!(RULES[..place].iter().all(|other| other.name != rule.name));
        let texts = [rule.condition, rule.evidence, rule.action];
        assert!(texts.iter().all(|text| !text.is_empty()), "{}", rule.name);
        let (first, longest) = rule.backoff;
        assert!(
            first > 0 && longest >= first && rule.forget >= longest,
            "{}",
            rule.name
        );
        assert_eq!(rule.wait(1, &settings), first);
        assert_eq!(rule.wait(40, &settings), longest);
        assert_eq!(rule.wait(40, &faster), longest / 30);
    }
}

#[test]
fn healthy_town_gets_no_action() {
    let mut stage = Stage::with(polecat(None));
    stage.add(witness());
    stage.expect(9 * HOUR, &[]);
}

#[test]
fn emergency_stop_and_disabled_rules_act_on_nothing() {
    let mut stage = Stage::with(ended(polecat(Some("lb-1")), Outcome::Crash));
    stage.snapshot.is_stopped = true;
    stage.expect(HOUR, &[]);
    stage.snapshot.is_stopped = false;
    stage.settings.off = vec!["dead-polecat".to_owned()];
    stage.expect(HOUR, &[]);
}

#[test]
fn no_rule_acts_on_an_agent_at_rest() {
    for state in [State::Idle, State::Done] {
        for after in [60, 900, HOUR, 30 * 24 * HOUR] {
            let agent = AgentFacts {
                state,
                ..polecat(None)
            };
            assert!(agent.is_at_rest());
            Stage::with(agent).expect(after, &[]);
        }
    }
    let with_work = AgentFacts {
        state: State::Idle,
        ..polecat(Some("lb-1"))
    };
    assert!(!with_work.is_at_rest());
}

/// Agents that are not a patrol's to restart or to write to.
fn agents_of_a_person(agent: &AgentFacts) -> Vec<AgentFacts> {
    let with = |change: fn(&mut AgentFacts)| {
        let mut agent = agent.clone();
        change(&mut agent);
        agent
    };
    vec![
        with(|agent| agent.role = Role::Task),
        with(|agent| agent.role = Role::Agent),
        with(|agent| agent.role = Role::Overseer),
        with(|agent| agent.is_adopted = true),
        with(|agent| agent.is_attended = true),
    ]
}

#[test]
fn agents_of_a_person_are_neither_restarted_nor_written_to() {
    let starting = AgentFacts {
        state: State::Starting,
        ..polecat(None)
    };
    let limited = AgentFacts {
        state: State::Limited,
        limit: Some(LimitFacts {
            until: Some(NOW),
            account: "demo".to_owned(),
            continues: false,
        }),
        ..polecat(None)
    };
    let unattended = [
        (starting, ("hung-start", ActionKind::Restart)),
        (limited, ("limit-ended", ActionKind::ResumeAfterLimit)),
    ];
    for (agent, rule) in unattended {
        for other in agents_of_a_person(&agent) {
            Stage::with(other).expect(HOUR, &[]);
        }
        Stage::with(agent).expect(HOUR, &[rule]);
    }
}

#[test]
fn clock_that_was_set_back_silences_no_rule_for_long() {
    let mut stage = Stage::with(ended(polecat(Some("lb-1")), Outcome::Crash));
    stage.expect(30 * HOUR, &[("dead-polecat", ActionKind::Resume)]);
    stage.expect(60, &[]);
    stage.expect(700, &[("dead-polecat", ActionKind::Resume)]);
}

#[test]
fn memory_survives_its_file() {
    let mut stage = Stage::with(ended(polecat(Some("lb-1")), Outcome::Crash));
    for after in [10, 40, 100] {
        assert_eq!(stage.round(after).len(), 1);
    }
    let text = serde_json::to_string(&stage.memory).unwrap();
    assert_eq!(
        serde_json::from_str::<PatrolMemory>(&text).unwrap(),
        stage.memory
    );
}

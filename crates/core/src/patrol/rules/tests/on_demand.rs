//! Agents that run only while they have something to decide.

use super::*;

/// Returns an agent that gt started for a digest.
fn on_demand(address: &str, role: Role) -> AgentFacts {
    AgentFacts {
        is_on_demand: true,
        ..AgentFacts::idle(address, role, NOW)
    }
}

#[test]
fn agent_started_on_demand_is_ended_when_it_is_idle() {
    let ended = [("finished-round", ActionKind::End)];
    for (address, role) in [
        ("lab/witness", Role::Witness),
        ("deacon/dogs/rex", Role::Dog),
    ] {
        let mut stage = Stage::with(on_demand(address, role));
        stage.expect(299, &[]);
        let actions = stage.round(300);
        assert_eq!((actions[0].rule, actions[0].kind), ended[0]);
        assert_eq!(actions[0].severity, None, "it is no trouble");
    }
    let spared: [fn(&mut AgentFacts); 5] = [
        |agent| agent.is_on_demand = false,
        |agent| agent.is_attended = true,
        |agent| agent.state = State::Waiting,
        |agent| agent.background = 1,
        |agent| {
            agent.queue = Some(QueueFacts {
                waiting: 1,
                oldest_at: NOW,
                has_deliverer: true,
            });
        },
    ];
    for change in spared {
        let mut agent = on_demand("lab/witness", Role::Witness);
        change(&mut agent);
        Stage::with(agent).expect(301, &[]);
    }
}

#[test]
fn boot_that_does_not_end_is_ended_and_escalated() {
    let mut stage = Stage::with(AgentFacts {
        state: State::Busy,
        ..on_demand("boot", Role::Boot)
    });
    stage.agent().signs.printed_at = Some(NOW + 899);
    stage.expect(899, &[]);
    let actions = stage.round(900);
    assert_eq!(actions[0].rule, "overdue-boot");
    assert_eq!(actions[0].kind, ActionKind::End);
    assert_eq!(actions[0].severity, Some(crate::escalation::Severity::High));
    // One that a person has started may take its time.
    let mut stage = Stage::with(AgentFacts {
        is_on_demand: false,
        state: State::Busy,
        ..on_demand("boot", Role::Boot)
    });
    stage.agent().signs.printed_at = Some(NOW + 899);
    stage.expect(900, &[]);
}

#[test]
fn boot_is_asked_before_a_stuck_deacon_is_restarted() {
    let mut stage = Stage::with(AgentFacts {
        state: State::Busy,
        ..on_demand("deacon", Role::Deacon)
    });
    stage.expect(1800, &[("hung-agent", ActionKind::Nudge)]);
    let actions = stage.round(2100);
    assert_eq!(actions[0].kind, ActionKind::Escalate);
    assert_eq!(actions[0].agent.as_deref(), Some("deacon"));
    assert_eq!(actions[0].severity, Some(crate::escalation::Severity::High));
    // Boot had five minutes, and the deacon has given no sign since.
    stage.expect(2399, &[]);
    stage.expect(2400, &[("hung-agent", ActionKind::Restart)]);
}

#[test]
fn dog_that_leaves_its_errand_is_escalated() {
    for (outcome, is_trouble) in [
        (Outcome::Exited, true),
        (Outcome::Crash, true),
        (Outcome::Stopped, false),
        (Outcome::Done, false),
    ] {
        let mut stage = Stage::with(AgentFacts {
            presence: Presence::Gone,
            state: State::Stopped,
            item: Some("hq-1".to_owned()),
            ended: Some(EndFacts {
                at: NOW,
                outcome,
                how: "exit status 0".to_owned(),
                is_recorded: true,
                is_lost: false,
            }),
            ..AgentFacts::idle("deacon/dogs/rex", Role::Dog, NOW)
        });
        let found = stage.round(HOUR);
        assert_eq!(
            found.len(),
            usize::from(is_trouble),
            "{outcome:?}: {found:?}"
        );
        for action in found {
            assert_eq!(
                (action.rule, action.kind),
                ("absent-holder", ActionKind::Escalate)
            );
        }
    }
}

//! Agents that hang, and agents at a usage limit.

use super::*;

#[test]
fn hung_start_is_restarted_only_with_a_still_screen() {
    let mut stage = Stage::with(AgentFacts {
        state: State::Starting,
        ..polecat(Some("lb-1"))
    });
    stage.expect(299, &[]);
    stage.agent().signs.printed_at = Some(NOW + 290);
    stage.expect(300, &[]);
    stage.expect(350, &[("hung-start", ActionKind::Restart)]);
    stage.expect(640, &[]);
    stage.expect(650, &[("hung-start", ActionKind::Restart)]);
    stage.expect(HOUR, &[("hung-start", ActionKind::Escalate)]);
}

fn busy() -> AgentFacts {
    AgentFacts {
        state: State::Busy,
        ..polecat(Some("lb-1"))
    }
}

#[test]
fn hung_agent_is_nudged_interrupted_and_restarted() {
    let mut stage = Stage::with(busy());
    stage.expect(1799, &[]);
    stage.expect(1800, &[("hung-agent", ActionKind::Nudge)]);
    // The echo of the nudge is no sign of life.
    stage.agent().signs.printed_at = Some(NOW + 1805);
    stage.expect(2099, &[]);
    stage.expect(2100, &[("hung-agent", ActionKind::Interrupt)]);
    stage.expect(2400, &[("hung-agent", ActionKind::Restart)]);
    stage.agent().started_at = Some(NOW + 2401);
    stage.expect(2700, &[]);
    stage.expect(2401 + 1800, &[("hung-agent", ActionKind::Nudge)]);
}

#[test]
fn sign_of_life_ends_the_steps_against_a_hung_agent() {
    for sign in 0..3 {
        let mut stage = Stage::with(busy());
        stage.expect(1800, &[("hung-agent", ActionKind::Nudge)]);
        let at = Some(NOW + 1900);
        let signs = &mut stage.agent().signs;
        match sign {
            0 => signs.printed_at = at,
            1 => signs.keepalive_at = at,
            _ => signs.transcript_at = at,
        }
        stage.expect(2100, &[]);
        stage.expect(3699, &[]);
        stage.expect(3700, &[("hung-agent", ActionKind::Nudge)]);
    }
}

#[test]
fn agent_that_hangs_after_every_restart_escalates() {
    let mut stage = Stage::with(busy());
    let mut at = 0;
    for _ in 0..3 {
        stage.expect(at + 1800, &[("hung-agent", ActionKind::Nudge)]);
        stage.expect(at + 2100, &[("hung-agent", ActionKind::Interrupt)]);
        stage.expect(at + 2400, &[("hung-agent", ActionKind::Restart)]);
        at += 2401;
        stage.agent().started_at = Some(NOW + at);
    }
    stage.expect(at + 1800, &[("hung-agent", ActionKind::Nudge)]);
    stage.expect(at + 2100, &[("hung-agent", ActionKind::Interrupt)]);
    stage.expect(at + 2400, &[("hung-agent", ActionKind::Escalate)]);
    stage.expect(at + 5000, &[]);
}

#[test]
fn silent_agent_of_a_person_is_left_alone() {
    for change in [
        (|agent| agent.role = Role::Task) as fn(&mut AgentFacts),
        |agent| agent.is_attended = true,
        |agent| agent.is_adopted = true,
        |agent| agent.state = State::Idle,
    ] {
        let mut stage = Stage::with(AgentFacts {
            item: None,
            ..busy()
        });
        change(stage.agent());
        stage.expect(9 * HOUR, &[]);
    }
}

#[test]
fn agents_of_one_account_continue_one_after_another() {
    let limited = |address: &str, account: &str| AgentFacts {
        address: address.to_owned(),
        state: State::Limited,
        limit: Some(LimitFacts {
            until: Some(NOW + HOUR),
            account: account.to_owned(),
            continues: false,
        }),
        ..polecat(None)
    };
    let mut stage = Stage::with(limited("a", "one"));
    stage.add(limited("b", "one"));
    stage.add(limited("c", "two"));
    stage.expect(HOUR + 299, &[]);
    let rule = ("limit-ended", ActionKind::ResumeAfterLimit);
    stage.expect(HOUR + 300, &[rule, rule]);
    stage.expect(HOUR + 330, &[]);
    stage.expect(HOUR + 360, &[rule]);
    stage.expect(HOUR + 420, &[]);
    stage.agent().limit.as_mut().unwrap().continues = true;
    stage.snapshot.agents.truncate(1);
    stage.memory = PatrolMemory::default();
    stage.expect(9 * HOUR, &[]);
}

//! Agents that ended, alone or many at once.

use super::*;

#[test]
fn dead_polecat_is_resumed_then_reassigned_then_escalated() {
    let mut stage = Stage::with(ended(polecat(Some("lb-1")), Outcome::Crash));
    stage.expect(5, &[]);
    stage.expect(10, &[("dead-polecat", ActionKind::Resume)]);
    stage.expect(39, &[]);
    stage.expect(40, &[("dead-polecat", ActionKind::Resume)]);
    stage.expect(99, &[]);
    stage.expect(100, &[("dead-polecat", ActionKind::Reassign)]);
    stage.expect(HOUR, &[("dead-polecat", ActionKind::Escalate)]);
    stage.expect(20 * HOUR, &[]);
    stage.expect(40 * HOUR, &[("dead-polecat", ActionKind::Resume)]);
}

#[test]
fn attempts_stay_with_the_item_when_another_polecat_has_it() {
    let mut stage = Stage::with(ended(polecat(Some("lb-1")), Outcome::Crash));
    for after in [10, 40, 100] {
        assert_eq!(stage.round(after).len(), 1);
    }
    stage.agent().address = "lab/polecats/slit".to_owned();
    stage.snapshot.items[0].holder = Some("lab/polecats/slit".to_owned());
    stage.expect(HOUR, &[("dead-polecat", ActionKind::Escalate)]);
}

#[test]
fn polecat_that_was_stopped_or_is_being_started_is_left_alone() {
    let mut stage = Stage::with(ended(polecat(Some("lb-1")), Outcome::Stopped));
    stage.expect(9 * HOUR, &[]);
    let mut stage = Stage::with(ended(polecat(Some("lb-1")), Outcome::Crash));
    stage.agent().is_locked = true;
    stage.expect(9 * HOUR, &[]);
}

#[test]
fn polecat_that_exited_or_never_started_is_resumed_later() {
    let mut stage = Stage::with(ended(polecat(Some("lb-1")), Outcome::Exited));
    stage.expect(119, &[]);
    stage.expect(120, &[("dead-polecat", ActionKind::Resume)]);
    let mut stage = Stage::with(AgentFacts {
        presence: Presence::Gone,
        state: State::Stopped,
        ..polecat(Some("lb-1"))
    });
    stage.expect(120, &[]);
    stage.expect(121, &[("dead-polecat", ActionKind::Resume)]);
}

#[test]
fn item_that_reached_no_other_agent_is_reassigned_again() {
    let mut stage = Stage::with(ended(polecat(Some("lb-1")), Outcome::Crash));
    for after in [10, 40, 100] {
        assert_eq!(stage.round(after).len(), 1);
    }
    assert_eq!(stage.memory.reassigned().collect::<Vec<_>>(), ["lb-1"]);
    stage.agent().item = None;
    stage.snapshot.items[0].holder = None;
    stage.expect(101, &[("unfinished-reassign", ActionKind::Reassign)]);
    stage.snapshot.items[0].holder = Some("lab/polecats/slit".to_owned());
    stage.expect(200, &[]);
    assert_eq!(stage.memory.reassigned().count(), 0);
}

#[test]
fn holder_that_is_no_polecat_escalates_when_it_is_gone() {
    let mut stage = Stage::new();
    stage.snapshot.items.push(ItemFacts {
        id: "lb-1".to_owned(),
        rig: Some("lab".to_owned()),
        holder: Some("lab/crew/max".to_owned()),
        since: Some(NOW),
        holder_exists: true,
    });
    stage.expect(HOUR, &[]);
    stage.snapshot.items[0].holder_exists = false;
    stage.expect(HOUR, &[("absent-holder", ActionKind::Escalate)]);
    stage.expect(2 * HOUR, &[]);
    let crew = AgentFacts::idle("lab/crew/max", Role::Crew, NOW);
    let mut stage = Stage::with(ended(
        AgentFacts {
            item: Some("lb-1".to_owned()),
            ..crew
        },
        Outcome::Crash,
    ));
    stage.expect(HOUR - 1, &[]);
    stage.expect(HOUR, &[("absent-holder", ActionKind::Escalate)]);
}

#[test]
fn agent_that_the_hook_missed_is_respawned_after_its_wait() {
    let mut stage = Stage::with(ended(witness(), Outcome::Crash));
    stage.expect(48, &[]);
    stage.expect(49, &[("dead-agent", ActionKind::Respawn)]);
    stage.agent().respawn.deaths = 8;
    stage.expect(345, &[]);
    stage.expect(346, &[("dead-agent", ActionKind::Respawn)]);
}

#[test]
fn crash_loop_escalates_once() {
    let mut stage = Stage::with(ended(witness(), Outcome::Crash));
    stage.agent().respawn.is_armed = false;
    stage.expect(1, &[("crash-loop", ActionKind::Escalate)]);
    stage.expect(20 * HOUR, &[]);
    // One that a person had started without respawns.
    stage.memory = PatrolMemory::default();
    stage.agent().respawn.is_wanted = false;
    stage.expect(HOUR, &[]);
}

#[test]
fn mass_death_is_one_alarm_without_a_respawn_storm() {
    let mut stage = Stage::new();
    for place in 0..6 {
        let address = format!("lab/polecats/p{place}");
        let agent = polecat(Some(&format!("lb-{place}")));
        stage.add(ended(
            AgentFacts {
                address: address.clone(),
                ..agent
            },
            Outcome::Crash,
        ));
        stage.snapshot.deaths.push(AgentDeath {
            agent: address,
            at: NOW + place,
        });
    }
    stage.expect(10, &[("mass-death", ActionKind::MassDeathAlarm)]);
    stage.expect(100, &[]);
    stage.expect(129, &[]);
    assert_eq!(stage.round(130).len(), 4, "at most four starts per minute");
    stage.expect(150, &[]);
    let kinds: Vec<ActionKind> = stage.round(190).iter().map(|action| action.kind).collect();
    assert_eq!(kinds, [ActionKind::Resume; 4]);
    assert!(stage.memory.get("mass-death", "town").unwrap().attempts == 1);
}

#[test]
fn deaths_of_one_agent_or_far_apart_are_no_mass_death() {
    let death = |agent: &str, at| AgentDeath {
        agent: agent.to_owned(),
        at: NOW + at,
    };
    let mut stage = Stage::new();
    stage.snapshot.deaths = vec![death("a", 0), death("a", 5), death("a", 9), death("b", 9)];
    stage.expect(10, &[]);
    stage.snapshot.deaths = vec![death("a", 0), death("b", 31), death("c", 62)];
    stage.expect(70, &[]);
    stage.snapshot.deaths = vec![death("a", 32), death("b", 31), death("c", 62)];
    stage.expect(70, &[]);
    stage.snapshot.deaths = vec![death("a", 33), death("b", 32), death("c", 62)];
    stage.expect(70, &[("mass-death", ActionKind::MassDeathAlarm)]);
}

#[test]
fn lost_agents_are_restored_unless_disabled() {
    let mut stage = Stage::new();
    stage.snapshot.server = ServerFacts {
        is_alive: false,
        lost: vec!["mayor".to_owned()],
    };
    stage.expect(0, &[("server-died", ActionKind::RestoreServer)]);
    stage.expect(30, &[]);
    stage.expect(60, &[("server-died", ActionKind::RestoreServer)]);
    stage.expect(400, &[("server-died", ActionKind::RestoreServer)]);
    stage.expect(HOUR, &[("server-died", ActionKind::Escalate)]);
    stage.memory = PatrolMemory::default();
    stage.settings.restore = false;
    stage.expect(HOUR, &[]);
}

#[test]
fn lost_polecat_waits_for_the_restore() {
    let mut stage = Stage::with(ended(polecat(Some("lb-1")), Outcome::Crash));
    stage.agent().presence = Presence::Gone;
    stage.agent().ended.as_mut().unwrap().is_lost = true;
    stage.expect(599, &[]);
    stage.expect(600, &[("dead-polecat", ActionKind::Resume)]);
}

#[test]
fn unrecorded_death_is_recorded() {
    let mut stage = Stage::with(ended(polecat(None), Outcome::Crash));
    stage.agent().ended.as_mut().unwrap().is_recorded = false;
    stage.expect(29, &[]);
    stage.expect(30, &[("unrecorded-death", ActionKind::Record)]);
    stage.expect(60, &[]);
}

#[test]
fn restored_agent_is_not_resumed_in_the_same_round() {
    let mut stage = Stage::with(ended(polecat(Some("lb-1")), Outcome::Crash));
    stage.agent().presence = Presence::Gone;
    stage.agent().ended.as_mut().unwrap().is_lost = true;
    stage.snapshot.server.lost = vec!["lab/polecats/nux".to_owned()];
    stage.expect(HOUR, &[("server-died", ActionKind::RestoreServer)]);
}

//! One test per rule, over small snapshots.

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
fn low_disk_escalates_and_starts_nothing() {
    let mut stage = Stage::with(ended(polecat(Some("lb-1")), Outcome::Crash));
    stage.snapshot.free_bytes = Some(1024);
    stage.expect(60, &[("low-disk", ActionKind::Escalate)]);
    stage.expect(120, &[]);
    stage.snapshot.free_bytes = Some(u64::MAX);
    stage.expect(180, &[("dead-polecat", ActionKind::Resume)]);
}

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
fn idle_agent_with_work_is_nudged_with_growing_waits_then_escalated() {
    let mut stage = Stage::with(polecat(Some("lb-1")));
    stage.expect(299, &[]);
    stage.expect(300, &[("idle-with-work", ActionKind::Nudge)]);
    stage.expect(599, &[]);
    stage.expect(600, &[("idle-with-work", ActionKind::Nudge)]);
    stage.expect(1199, &[]);
    stage.expect(1200, &[("idle-with-work", ActionKind::Nudge)]);
    stage.expect(2400, &[("idle-with-work", ActionKind::Nudge)]);
    stage.expect(9000, &[("idle-with-work", ActionKind::Escalate)]);
    stage.expect(12_000, &[]);
}

#[test]
fn idle_agent_with_messages_or_background_tasks_is_not_nudged() {
    let mut stage = Stage::with(polecat(Some("lb-1")));
    stage.agent().background = 1;
    stage.expect(HOUR, &[]);
    stage.agent().background = 0;
    stage.agent().queue = Some(QueueFacts {
        waiting: 1,
        oldest_at: NOW,
        has_deliverer: true,
    });
    stage.expect(HOUR, &[]);
}

#[test]
fn finished_work_is_nudged_to_be_handed_in() {
    let mut stage = Stage::with(polecat(Some("lb-1")));
    stage.agent().is_finished = true;
    let actions = stage.round(300);
    assert_eq!(actions[0].rule, "not-handed-in");
    assert!(actions[0].text.as_ref().unwrap().contains("gt done"));
}

#[test]
fn failed_turn_is_continued_and_then_escalated() {
    let mut stage = Stage::with(polecat(Some("lb-1")));
    stage.agent().state = State::Error;
    let mut kinds = Vec::new();
    for minute in 1..300 {
        kinds.extend(
            stage
                .round(minute * MINUTE)
                .iter()
                .map(|action| action.kind),
        );
    }
    assert_eq!(kinds[..5], [ActionKind::Nudge; 5]);
    assert_eq!(kinds[5..], [ActionKind::Escalate]);
}

#[test]
fn question_of_an_unattended_agent_escalates() {
    let mut stage = Stage::with(polecat(None));
    stage.agent().state = State::Waiting;
    stage.expect(899, &[]);
    stage.expect(900, &[("unanswered-question", ActionKind::Escalate)]);
    stage.expect(4 * HOUR, &[]);
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

#[test]
fn old_queues_are_run_again() {
    let mut stage = Stage::with(polecat(None));
    stage.agent().queue = Some(QueueFacts {
        waiting: 2,
        oldest_at: NOW,
        has_deliverer: false,
    });
    stage.snapshot.merge_queues.push(MergeQueueFacts {
        rig: "lab".to_owned(),
        waiting: 1,
        oldest_at: NOW,
        is_running: false,
        is_automatic: true,
    });
    stage.snapshot.schedule = Some(WaitingFacts {
        waiting: 1,
        oldest_at: NOW,
        is_running: false,
        is_paused: false,
    });
    stage.snapshot.escalations_due.push("esc-1".to_owned());
    let again = ("escalation-due", ActionKind::RaiseAgain);
    let schedule = ("old-schedule", ActionKind::RunScheduler);
    let merge = ("old-merge", ActionKind::RunMergeQueue);
    stage.expect(59, &[again]);
    stage.expect(60, &[schedule]);
    stage.expect(300, &[merge, schedule]);
    stage.snapshot.merge_queues[0].is_running = true;
    stage.snapshot.schedule = None;
    stage.expect(600, &[("old-message", ActionKind::Redeliver), again]);
}

#[test]
fn leftovers_are_cleaned_when_they_are_old() {
    let mut stage = Stage::with(ended(polecat(None), Outcome::Crash));
    let left = |kind, name: &str| LeftoverFacts {
        kind,
        name: name.to_owned(),
        since: NOW,
    };
    stage.snapshot.leftovers = vec![
        left(Leftover::Process, "hq-deacon"),
        left(Leftover::Lock, "index.lock"),
        left(Leftover::Worktree, "lab/polecats/old"),
    ];
    stage.expect(299, &[]);
    stage.expect(300, &[("leftover", ActionKind::Clean(Leftover::Process))]);
    stage.expect(1800, &[("leftover", ActionKind::Clean(Leftover::Lock))]);
    stage.snapshot.leftovers.truncate(0);
    stage.expect(
        HOUR,
        &[("zombie-container", ActionKind::Clean(Leftover::Container))],
    );
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

#[test]
fn restored_agent_is_not_resumed_in_the_same_round() {
    let mut stage = Stage::with(ended(polecat(Some("lb-1")), Outcome::Crash));
    stage.agent().presence = Presence::Gone;
    stage.agent().ended.as_mut().unwrap().is_lost = true;
    stage.snapshot.server.lost = vec!["lab/polecats/nux".to_owned()];
    stage.expect(HOUR, &[("server-died", ActionKind::RestoreServer)]);
}

#[test]
fn merge_that_ran_after_all_resets_the_attempts() {
    let mut stage = Stage::new();
    let queue = |oldest_at| MergeQueueFacts {
        rig: "lab".to_owned(),
        waiting: 1,
        oldest_at,
        is_running: false,
        is_automatic: true,
    };
    stage.snapshot.merge_queues = vec![queue(NOW)];
    let kinds: Vec<ActionKind> = (0..240)
        .flat_map(|minute| stage.round(minute * MINUTE))
        .map(|action| action.kind)
        .collect();
    assert_eq!(kinds[..4], [ActionKind::RunMergeQueue; 4]);
    assert_eq!(kinds[4..], [ActionKind::Escalate]);
    stage.snapshot.merge_queues = vec![queue(NOW + 4 * HOUR)];
    stage.expect(4 * HOUR + 299, &[]);
    stage.expect(4 * HOUR + 300, &[("old-merge", ActionKind::RunMergeQueue)]);
}

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

//! Simulated nights: random towns, driven through the rules by a seed.
//!
//! `simulation/world.rs` is the town: agents that work, die, hang and reach limits, and the effects
//! of actions. `simulation/faults.rs` injects the faults. Here are the nights and their checks: no
//! storm of actions, no lost or duplicated item or message, a reason for every action, and the work
//! completes. The tests at the end break a rule on purpose and expect a failed check.

mod faults;
mod world;

use super::{ActionKind, PatrolAction, PatrolMemory, decide_round};
use std::collections::BTreeMap;
use world::{ItemPlace, World};

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
/// Time with faults and new work, and time to finish.
const BUSY: i64 = 6 * HOUR;
const NIGHT: i64 = 10 * HOUR;
/// Maximum number of starts of one agent or item, and of actions on one subject, within an hour.
const STARTS_PER_HOUR: usize = 12;
const ACTIONS_PER_HOUR: usize = 30;

/// A deterministic source of randomness (splitmix64).
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number from `low` to `high - 1`.
    fn between(&mut self, low: i64, high: i64) -> i64 {
        let range = u64::try_from(high - low).unwrap();
        low + i64::try_from(self.next() % range).unwrap()
    }

    /// Returns whether an event happens that occurs `times` in 10,000.
    fn chance(&mut self, times: u64) -> bool {
        self.next() % 10_000 < times
    }
}

/// A deliberate change of the decisions, to verify that the checks can fail.
type Sabotage = fn(&mut World, &mut PatrolMemory, &mut Vec<PatrolAction>);

fn none(_: &mut World, _: &mut PatrolMemory, _: &mut Vec<PatrolAction>) {}

/// Results of a night.
#[derive(Debug, Default)]
struct Night {
    actions: BTreeMap<&'static str, usize>,
    merged: usize,
    escalated: usize,
    messages: usize,
    daemon_crashes: usize,
}

/// Actions of the last hour, by subject.
#[derive(Default)]
struct Rates {
    recent: BTreeMap<(String, bool), Vec<i64>>,
}

impl Rates {
    fn count(&mut self, action: &PatrolAction, now: i64) -> Result<(), String> {
        let subjects = [
            action.agent.as_ref(),
            action.item.as_ref(),
            Some(&action.subject),
        ];
        let mut seen: Vec<&String> = subjects.into_iter().flatten().collect();
        seen.dedup();
        for subject in seen {
            for is_start in [false, true] {
                if is_start && !action.kind.starts_agents() {
                    continue;
                }
                let times = self.recent.entry((subject.clone(), is_start)).or_default();
                times.retain(|at| now - at < HOUR);
                times.push(now);
                let most = if is_start {
                    STARTS_PER_HOUR
                } else {
                    ACTIONS_PER_HOUR
                };
                if times.len() > most {
                    return Err(format!("storm on {subject} at {now}: {action:?}"));
                }
            }
        }
        Ok(())
    }
}

fn simulate(seed: u64, sabotage: Sabotage) -> Result<Night, String> {
    let mut world = World::new(seed);
    let mut memory = PatrolMemory::default();
    let mut night = Night::default();
    let mut rates = Rates::default();
    let mut patrol_from = 0;
    while world.now < NIGHT {
        let step = if world.is_calm() { 5 * MINUTE } else { MINUTE };
        world.advance(step)?;
        if world.now < BUSY {
            world.inject();
        }
        if world.now < patrol_from {
            continue;
        }
        world.observe(&memory);
        let mut actions = decide_round(&world.snapshot, &mut memory, &world.settings, world.now);
        sabotage(&mut world, &mut memory, &mut actions);
        if world.snapshot.is_stopped && !actions.is_empty() {
            return Err(format!("action during an emergency stop: {actions:?}"));
        }
        let starts = actions.iter().filter(|action| action.kind.starts_agents());
        if starts.count() > world.settings.starts_per_minute {
            return Err(format!("too many starts at once: {actions:?}"));
        }
        // The memory is written before anything is done, and a killed daemon keeps only that.
        let reassign = actions
            .iter()
            .position(|it| it.kind == ActionKind::Reassign);
        let is_killed = world.now < BUSY && world.rng.chance(reassign.map_or(20, |_| 1_000));
        let some = usize::try_from(world.rng.between(0, 4)).unwrap();
        let done = match is_killed {
            true => reassign.unwrap_or(some.min(actions.len())),
            false => actions.len(),
        };
        for action in &actions[..done] {
            if action.reason.is_empty() || action.evidence.iter().all(String::is_empty) {
                return Err(format!("an action without a reason: {action:?}"));
            }
            rates.count(action, world.now)?;
            *night.actions.entry(action.rule).or_default() += 1;
            world.apply(action)?;
        }
        if is_killed {
            night.daemon_crashes += 1;
            let text = serde_json::to_string(&memory).unwrap();
            memory = serde_json::from_str(&text).unwrap();
            if let Some(action) = actions.get(done)
                && action.kind == ActionKind::Reassign
            {
                world.take_from_holder(action)?;
            }
            patrol_from = world.now + world.rng.between(0, 30) * MINUTE;
        }
    }
    world.check_end(&mut night)?;
    Ok(night)
}

/// Simulates nights with these seeds on all cores; returns the sum of their results.
fn nights(seeds: std::ops::Range<u64>) -> Night {
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let results: Vec<Night> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..cores)
            .map(|core| {
                let own = seeds.clone().skip(core).step_by(cores);
                scope.spawn(move || {
                    own.map(|seed| {
                        simulate(seed, none).unwrap_or_else(|why| panic!("seed {seed}: {why}"))
                    })
                    .collect::<Vec<Night>>()
                })
            })
            .collect();
        threads
            .into_iter()
            .flat_map(|it| it.join().unwrap())
            .collect()
    });
    let mut sum = Night::default();
    for night in results {
        for (rule, count) in night.actions {
            *sum.actions.entry(rule).or_default() += count;
        }
        sum.merged += night.merged;
        sum.escalated += night.escalated;
        sum.messages += night.messages;
        sum.daemon_crashes += night.daemon_crashes;
    }
    sum
}

#[test]
fn ten_thousand_hours_end_with_all_work_merged_or_escalated() {
    let sum = nights(0..1_000);
    assert!(sum.merged > 20 * sum.escalated, "{sum:#?}");
    assert!(
        sum.escalated > 0 && sum.daemon_crashes > 0 && sum.messages > 0,
        "{sum:#?}"
    );
    // Every rule that the town can need was used.
    for rule in [
        "server-died",
        "mass-death",
        "unrecorded-death",
        "low-disk",
        "crash-loop",
        "dead-agent",
        "dead-polecat",
        "unfinished-reassign",
        "hung-start",
        "hung-agent",
        "limit-ended",
        "failed-turn",
        "unanswered-question",
        "not-handed-in",
        "idle-with-work",
        "old-message",
        "old-merge",
        "old-schedule",
    ] {
        assert!(sum.actions.contains_key(rule), "{rule}: {sum:#?}");
    }
}

/// Returns the first failure of a few nights.
fn failure(sabotage: Sabotage) -> String {
    let failed = (0..40).find_map(|seed| simulate(seed, sabotage).err());
    failed.expect("the checks do not notice the broken rule")
}

#[test]
fn nights_without_back_off_fail_by_a_storm() {
    let why = failure(|_, memory, _| *memory = PatrolMemory::default());
    assert!(why.contains("storm"), "{why}");
}

#[test]
fn nights_with_a_second_assignment_fail_by_a_duplicate() {
    let why = failure(|world, _, actions| {
        let working = world
            .snapshot
            .agents
            .iter()
            .find(|agent| agent.item.is_some() && agent.presence == super::Presence::Alive);
        if let (Some(agent), Some(action)) = (working, actions.first_mut()) {
            action.kind = ActionKind::Reassign;
            action.agent = Some(agent.address.clone());
            action.item.clone_from(&agent.item);
        }
    });
    assert!(why.contains("duplicate"), "{why}");
}

#[test]
fn nights_without_resumes_leave_work_behind() {
    let why = failure(|_, _, actions| actions.retain(|action| action.rule != "dead-polecat"));
    assert!(why.contains("unfinished"), "{why}");
}

#[test]
fn nights_that_forget_reassigned_items_lose_them() {
    let why =
        failure(|_, _, actions| actions.retain(|action| action.rule != "unfinished-reassign"));
    assert!(why.contains("unfinished"), "{why}");
}

#[test]
fn nights_with_force_against_working_agents_fail() {
    let why = failure(|world, _, actions| {
        let busy = world.snapshot.agents.iter().find(|agent| {
            agent.state == crate::state::State::Busy && world.now - agent.last_activity() < MINUTE
        });
        if let (Some(agent), Some(action)) = (busy, actions.first_mut()) {
            action.kind = ActionKind::Restart;
            action.agent = Some(agent.address.clone());
        }
    });
    assert!(why.contains("force"), "{why}");
}

#[test]
fn nights_without_redelivery_leave_messages_behind() {
    let why = failure(|_, _, actions| actions.retain(|action| action.rule != "old-message"));
    assert!(why.contains("message"), "{why}");
}

#[test]
fn seed_alone_determines_a_night() {
    let [one, other] = [(); 2].map(|()| format!("{:?}", simulate(7, none).unwrap()));
    assert_eq!(one, other);
    assert!(matches!(World::new(7).place(0), ItemPlace::Scheduled));
}

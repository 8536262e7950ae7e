use super::*;
use proptest::prelude::*;

fn entry(name: &str, priority: u8, number: i64) -> WaitingAssignment {
    WaitingAssignment {
        item: format!("lb-{name}").parse().unwrap(),
        rig: "lab".to_owned(),
        priority,
        number,
        harness: "demo".to_owned(),
        account: None,
        blockers: Vec::new(),
        is_blocked: false,
        refused: None,
        not_before: None,
    }
}

fn polecat(rig: &str) -> RunningAgent {
    RunningAgent {
        polecat_of: Some(rig.to_owned()),
        harness: "demo".to_owned(),
        account: None,
    }
}

fn limits() -> ScheduleLimits {
    ScheduleLimits {
        polecats: 50,
        polecats_per_rig: 25,
        harnesses: BTreeMap::new(),
        accounts: BTreeMap::new(),
        max_load: None,
        start_spacing: 0,
    }
}

const NOW: i64 = 1_000_000;

struct Stage {
    queue: Vec<WaitingAssignment>,
    running: Vec<RunningAgent>,
    limits: ScheduleLimits,
    load: Option<f64>,
    closed_rigs: BTreeMap<String, String>,
    last_start: Option<i64>,
}

impl Stage {
    fn of(queue: Vec<WaitingAssignment>) -> Self {
        Stage {
            queue,
            running: Vec::new(),
            limits: limits(),
            load: Some(0.5),
            closed_rigs: BTreeMap::new(),
            last_start: None,
        }
    }

    fn plan(&self) -> StartPlan {
        plan(&ScheduleFacts {
            queue: &self.queue,
            running: &self.running,
            limits: &self.limits,
            load: self.load,
            closed_rigs: &self.closed_rigs,
            last_start: self.last_start,
            now: NOW,
        })
    }

    /// Checks the items that start, in order, and the reasons of the others.
    #[track_caller]
    fn expect(&self, starts: &[&str], waits: &[(&str, &str)]) {
        let plan = self.plan();
        let name = |item: &WorkId| item.as_str()[3..].to_owned();
        let found: Vec<String> = plan.starts.iter().map(name).collect();
        assert_eq!(found, starts);
        let found: Vec<(String, String)> = plan
            .waits
            .iter()
            .map(|(item, reason)| (name(item), reason.to_string()))
            .collect();
        let found: Vec<(&str, &str)> = found.iter().map(|(a, b)| (&**a, &**b)).collect();
        assert_eq!(found, waits);
    }
}

#[test]
fn starts_are_ordered_by_priority_and_then_by_position() {
    let queue = vec![entry("c", 2, 1), entry("a", 0, 9), entry("b", 2, 0)];
    Stage::of(queue).expect(&["a", "b", "c"], &[]);
}

#[test]
fn full_rig_does_not_hold_up_another_rig() {
    let mut other = entry("b", 4, 2);
    other.rig = "shop".to_owned();
    let mut stage = Stage::of(vec![entry("a", 0, 1), other]);
    stage.limits.polecats_per_rig = 1;
    stage.running = vec![polecat("lab")];
    let full = "the rig lab has 1 polecat at work, the maximum";
    stage.expect(&["b"], &[("a", full)]);
    stage.limits.polecats = 1;
    let town = "the town has 1 polecat at work, the maximum";
    stage.expect(&[], &[("a", town), ("b", town)]);
}

#[test]
fn agents_of_other_roles_count_for_harness_and_account_only() {
    let mayor = RunningAgent {
        polecat_of: None,
        harness: "claude".to_owned(),
        account: Some("work".to_owned()),
    };
    let (mut a, mut b) = (entry("a", 2, 1), entry("b", 2, 2));
    a.harness = "claude".to_owned();
    b.account = Some("work".to_owned());
    let mut stage = Stage::of(vec![a, b, entry("c", 2, 3)]);
    stage.running = vec![mayor];
    stage.limits.polecats_per_rig = 1;
    stage.limits.harnesses.insert("claude".to_owned(), 1);
    stage.limits.accounts.insert("work".to_owned(), 1);
    let harness = "1 agent runs claude, the maximum";
    let account = "1 agent uses the account work, the maximum";
    stage.expect(&["c"], &[("a", harness), ("b", account)]);
}

#[test]
fn blocked_parked_and_failed_entries_wait() {
    let (mut a, mut b, mut c) = (entry("a", 0, 1), entry("b", 0, 2), entry("c", 0, 3));
    a.blockers = vec!["lb-x".parse().unwrap()];
    b.rig = "shop".to_owned();
    c.not_before = Some(NOW + 30);
    let mut e = entry("e", 4, 5);
    e.refused = Some("the budget is exhausted".to_owned());
    let mut stage = Stage::of(vec![a, b, c, entry("d", 4, 4), e]);
    stage
        .closed_rigs
        .insert("shop".to_owned(), "parked".to_owned());
    let retry = "its last start failed; it is retried later";
    let waits = [
        ("a", "it waits for lb-x"),
        ("b", "the rig shop is parked"),
        ("c", retry),
        ("e", "the budget is exhausted"),
    ];
    stage.expect(&["d"], &waits);
    assert_eq!(stage.plan().spacing_ends(), None);
}

#[test]
fn load_and_spacing_hold_up_starts() {
    let mut stage = Stage::of(vec![entry("a", 2, 1), entry("b", 2, 2)]);
    stage.limits.max_load = Some(0.5);
    let load = "the load per processor is 0.5, the maximum 0.5";
    stage.expect(&[], &[("a", load), ("b", load)]);
    stage.load = None;
    stage.limits.start_spacing = 2;
    let recent = "another agent has just started";
    stage.expect(&["a"], &[("b", recent)]);
    assert_eq!(stage.plan().spacing_ends(), Some(NOW + 2));
    stage.last_start = Some(NOW - 1);
    stage.expect(&[], &[("a", recent), ("b", recent)]);
    assert_eq!(stage.plan().spacing_ends(), Some(NOW + 1));
    // The clock was set back.
    stage.last_start = Some(NOW + 3_600);
    stage.expect(&["a"], &[("b", recent)]);
}

#[test]
fn retries_back_off() {
    let seconds = [1, 2, 3, 7, 1_000].map(retry_after);
    assert_eq!(seconds, [30, 60, 120, 1_800, 1_800]);
}

/// A random entry; its item is named after its position.
fn any_entry() -> impl Strategy<Value = WaitingAssignment> {
    (0..5u8, 0..3usize, 0..2usize, 0..3usize).prop_map(|(priority, rig, harness, account)| {
        WaitingAssignment {
            rig: ["lab", "shop", "barn"][rig].to_owned(),
            harness: ["demo", "claude"][harness].to_owned(),
            account: [None, Some("work"), Some("home")][account].map(str::to_owned),
            ..entry("x", priority, 0)
        }
    })
}

proptest! {
    /// Drains random queues: no limit is exceeded, every entry has an outcome, no entry overtakes
    /// one that needs the same slots, and all of the work is started.
    #[test]
    fn random_queues_drain_within_the_limits(
        entries in prop::collection::vec(any_entry(), 1..40),
        polecats in 1..6usize,
        per_rig in 1..4usize,
        claude in 1..3usize,
        work in 1..3usize,
    ) {
        let mut stage = Stage::of(Vec::new());
        stage.queue = entries;
        for (number, entry) in stage.queue.iter_mut().enumerate() {
            entry.number = i64::try_from(number).unwrap();
            entry.item = format!("lb-x{number}").parse().unwrap();
        }
        stage.limits = ScheduleLimits {
            polecats,
            polecats_per_rig: per_rig,
            harnesses: [("claude".to_owned(), claude)].into(),
            accounts: [("work".to_owned(), work)].into(),
            ..limits()
        };
        let total = stage.queue.len();
        let mut started = 0;
        while !stage.queue.is_empty() {
            let plan = stage.plan();
            prop_assert_eq!(plan.starts.len() + plan.waits.len(), stage.queue.len());
            prop_assert!(!plan.starts.is_empty() || !stage.running.is_empty());
            let same_needs = |one: &WaitingAssignment, other: &WaitingAssignment| {
                (&one.rig, &one.harness, &one.account) == (&other.rig, &other.harness, &other.account)
            };
            let order = ordered(&stage.queue);
            for (place, waiting) in order.iter().enumerate() {
                let waits = plan.reason(&waiting.item).is_some();
                let overtaken = order[place..].iter().any(|later| {
                    same_needs(waiting, later) && plan.starts.contains(&later.item)
                });
                prop_assert!(!(waits && overtaken), "{} was overtaken", waiting.item);
            }
            for item in &plan.starts {
                let place = stage.queue.iter().position(|entry| entry.item == *item).unwrap();
                let entry = stage.queue.remove(place);
                stage.running.push(RunningAgent {
                    polecat_of: Some(entry.rig),
                    harness: entry.harness,
                    account: entry.account,
                });
                started += 1;
            }
            let count = |is: &dyn Fn(&RunningAgent) -> bool| {
                stage.running.iter().filter(|agent| is(agent)).count()
            };
            prop_assert!(stage.running.len() <= polecats);
            for rig in ["lab", "shop", "barn"] {
                prop_assert!(count(&|agent| agent.polecat_of.as_deref() == Some(rig)) <= per_rig);
            }
            prop_assert!(count(&|agent| agent.harness == "claude") <= claude);
            prop_assert!(count(&|agent| agent.account.as_deref() == Some("work")) <= work);
            // The oldest one finishes.
            stage.running.remove(0);
        }
        prop_assert_eq!(started, total);
    }
}

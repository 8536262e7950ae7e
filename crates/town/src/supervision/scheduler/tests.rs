//! The scheduler in a town of tests, with real tmux and git.

use super::*;
use crate::base::settings::Length;
use crate::testing::TestTown;
use crate::workflow::schedule::{Assigned, decide, sling_or_queue};
use crate::workflow::sling::{SlingOptions, SlingTarget};
use gt_core::work::ItemStatus;

/// Makes a town with one slot for polecats, and no time between starts.
fn stage(polecats: usize) -> TestTown {
    let mut stage = TestTown::new().with_rig();
    stage.town.change_settings(|settings| {
        settings.limits.polecats_per_rig = polecats;
        settings.schedule.start_spacing = Length(0);
    });
    stage
}

fn lab() -> SlingTarget {
    SlingTarget::Rig("lab".to_owned())
}

/// Slings an item as the command does.
fn sling(stage: &TestTown, id: &WorkId) -> Assigned {
    let item = Work::of(&stage.town).get(id).unwrap();
    let options = SlingOptions::default();
    let decision = decide(&stage.town, &[Some((&item, &lab()))], &options).unwrap();
    let reason = decision.reasons[0].as_deref();
    sling_or_queue(&stage.town, &item, &lab(), &options, reason).unwrap()
}

#[track_caller]
fn started(assigned: Assigned) -> Slung {
    match assigned {
        Assigned::Slung(slung) => *slung,
        Assigned::Queued(queued) => panic!("queued: {}", queued.reason),
    }
}

#[track_caller]
fn place(assigned: Assigned) -> (usize, usize) {
    match assigned {
        Assigned::Queued(queued) => (queued.place, queued.waiting),
        Assigned::Slung(slung) => panic!("started as {}", slung.agent),
    }
}

fn queued(stage: &TestTown) -> Vec<WorkId> {
    let queue = Work::of(&stage.town).queued_assignments().unwrap();
    queue.into_iter().map(|entry| entry.item.id).collect()
}

fn finish(stage: &TestTown, slung: &Slung) {
    Work::of(&stage.town)
        .close_all(std::slice::from_ref(&slung.id), None)
        .unwrap();
    crate::lifecycle::stop::stop_one(
        &stage.town,
        &slung.agent,
        crate::lifecycle::stop::StopOptions::default(),
    )
    .unwrap();
    crate::work::hook::take_off(&stage.town, &slung.agent).unwrap();
}

#[test]
fn freed_slot_starts_the_most_urgent_item() {
    let stage = stage(1);
    let [a, b, c] = ["a", "b", "c"].map(|title| stage.item(title));
    let first = started(sling(&stage, &a));
    assert_eq!(place(sling(&stage, &b)), (1, 1));
    assert_eq!(place(sling(&stage, &c)), (2, 2));
    let patch = crate::records::items::Patch {
        priority: Some(0),
        ..crate::records::items::Patch::default()
    };
    Work::of(&stage.town).update(&c, &patch).unwrap();
    assert!(
        run(&stage.town).unwrap().started.is_empty(),
        "no slot is free"
    );
    finish(&stage, &first);
    let report = run(&stage.town).unwrap();
    assert_eq!(report.started.len(), 1);
    assert_eq!(report.started[0].id, c);
    assert!(stage.container(&report.started[0].agent).is_some());
    assert_eq!(queued(&stage), [b]);
}

#[test]
fn item_that_was_hooked_by_a_killed_run_is_started() {
    let stage = stage(1);
    let [a, b] = ["a", "b"].map(|title| stage.item(title));
    let first = started(sling(&stage, &a));
    assert_eq!(place(sling(&stage, &b)), (1, 1));
    finish(&stage, &first);
    // The state that a kill between hook and start leaves.
    let item = Work::of(&stage.town).get(&b).unwrap();
    let options = SlingOptions {
        no_start: true,
        ..SlingOptions::default()
    };
    let held = crate::workflow::sling::sling_item(&stage.town, &item, &lab(), &options).unwrap();
    assert_eq!(queued(&stage), std::slice::from_ref(&b));
    let report = run(&stage.town).unwrap();
    assert_eq!(report.started[0].agent, held.agent);
    assert_eq!(queued(&stage), []);
    // The state that a kill between start and removal leaves.
    let by = Work::of(&stage.town);
    by.enqueue_assignment(
        &b,
        "lab",
        &gt_core::schedule::AssignmentOptions::default(),
        "gt",
    )
    .unwrap();
    let report = run(&stage.town).unwrap();
    assert!(report.started.is_empty());
    assert_eq!(report.removed[0].0, b);
    assert_eq!(queued(&stage), []);
}

#[test]
fn settled_blocked_and_paused_items_do_not_start() {
    let stage = stage(1);
    let [a, b, c] = ["a", "b", "c"].map(|title| stage.item(title));
    let first = started(sling(&stage, &a));
    place(sling(&stage, &b));
    place(sling(&stage, &c));
    let work = Work::of(&stage.town);
    work.close_all(&[b], None).unwrap();
    let blocker = stage.item("blocker");
    work.add_dependency(&c, &blocker).unwrap();
    finish(&stage, &first);
    schedule::pause(&stage.town).unwrap();
    let report = run(&stage.town).unwrap();
    assert_eq!(report.held.as_deref(), Some("the schedule is paused"));
    assert_eq!(queued(&stage).len(), 2);
    schedule::resume(&stage.town).unwrap();
    let report = run(&stage.town).unwrap();
    assert!(report.started.is_empty() && report.held.is_none());
    assert_eq!(
        queued(&stage),
        std::slice::from_ref(&c),
        "the closed item is gone"
    );
    let waiting = schedule::waiting(&stage.town).unwrap();
    assert_eq!(waiting[0].1, Some(format!("it waits for {blocker}")));
    work.close_all(&[blocker], None).unwrap();
    assert_eq!(run(&stage.town).unwrap().started[0].id, c);
}

#[test]
fn failed_start_is_retried_later_and_escalated_at_the_third_time() {
    let stage = stage(1);
    let [a, b] = ["a", "b"].map(|title| stage.item(title));
    let first = started(sling(&stage, &a));
    place(sling(&stage, &b));
    finish(&stage, &first);
    let program = stage.town.root().join("echo-agent");
    let text = std::fs::read(&program).unwrap();
    std::fs::remove_file(&program).unwrap();
    let work = Work::of(&stage.town);
    for failures in 1..=3 {
        let report = run(&stage.town).unwrap();
        assert_eq!(report.failed.len(), 1, "{report:?}");
        let entry = work.queued_assignment(&b).unwrap().unwrap();
        assert_eq!(entry.failures, failures);
        assert_eq!(entry.item.status, ItemStatus::Open, "rolled back");
        assert!(run(&stage.town).unwrap().failed.is_empty(), "it is not due");
        let open = work.escalations(&crate::records::items::EscalationQuery::default());
        assert_eq!(open.unwrap().len(), usize::from(failures == 3));
        work.make_assignment_due(&b);
    }
    std::fs::write(&program, text).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, mode).unwrap();
    assert_eq!(run(&stage.town).unwrap().started.len(), 1);
    let open = work.escalations(&crate::records::items::EscalationQuery::default());
    assert_eq!(open.unwrap(), [], "the escalation is closed");
}

#[test]
fn limits_of_a_harness_count_all_agents() {
    let mut stage = stage(9);
    stage.town.change_settings(|settings| {
        settings.schedule.harnesses = [("echo".to_owned(), 2)].into();
    });
    stage.start(&stage.agent("one"));
    let ids = ["a", "b", "c"].map(|title| stage.item(title));
    let work = Work::of(&stage.town);
    let items = ids.clone().map(|id| work.get(&id).unwrap());
    let target = lab();
    let orders: Vec<_> = items.iter().map(|item| Some((item, &target))).collect();
    // One decision for all, as the command makes it.
    let decision = decide(&stage.town, &orders, &SlingOptions::default()).unwrap();
    let full = Some("2 agents run echo, the maximum".to_owned());
    assert_eq!(decision.reasons, [None, full.clone(), full]);
    drop(decision);
    let slung = started(sling(&stage, &ids[0]));
    assert_eq!(place(sling(&stage, &ids[1])), (1, 1));
    finish(&stage, &slung);
    assert_eq!(run(&stage.town).unwrap().started[0].id, ids[1]);
}

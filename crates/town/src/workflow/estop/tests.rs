//! Emergency stops in a town of tests, with a real tmux.

use super::*;
use crate::lifecycle::respawn::{self, RespawnOutcome};
use crate::lifecycle::start::{self, StartError, StartOptions};
use crate::testing::TestTown;
use crate::workflow::merge::{self, RunOptions};
use gt_core::startup::tag;

#[test]
fn stop_blocks_starts_and_messages_until_thaw() {
    let stage = TestTown::new();
    let town = &stage.town;
    let (one, two) = (stage.agent("one"), stage.agent("two"));
    let pid = stage.start(&one).pid;
    let stopped = stop(town, None, Some("wrong branch")).unwrap();
    assert_eq!(stopped.idle, ["agent/one"]);
    assert_eq!(stopped.note.interrupted, [""; 0]);
    let refused = start::start(town, &two, &StartOptions::default()).unwrap_err();
    assert!(matches!(refused, StartError::Stopped(_)), "{refused:?}");
    assert!(stage.container(&two).is_none());
    let order = NudgeRequest {
        is_command: false,
        text: "hello",
        sender: None,
        mode: DeliveryMode::WaitIdle,
        priority: Priority::Urgent,
        timeout: Duration::from_secs(10),
    };
    let sent = nudge::send(town, &one, &order).unwrap();
    assert_eq!(sent.later.unwrap().by, nudge::Deliverer::Thaw);
    // The delivery that a hook would wake finds the stop, and ends.
    nudge::deliver_waiting(town, &one, Duration::from_secs(60)).unwrap();
    assert_eq!(MessageQueue::of(town, &one).waiting().len(), 1);
    let thawed = thaw(town, None).unwrap().unwrap();
    assert_eq!((thawed.messages, thawed.merges), (1, 0));
    assert!(thaw(town, None).unwrap().is_none());
    nudge::deliver_waiting(town, &one, Duration::from_secs(60)).unwrap();
    stage.await_line(&one, "said: hello");
    assert_eq!(stage.container(&one).unwrap().pane().pid, pid);
    stage.start(&two);
}

#[test]
fn thaw_wakes_an_agent_that_is_not_to_be_disturbed() {
    let stage = TestTown::new();
    let town = &stage.town;
    let one = stage.agent("one");
    stage.start(&one);
    stop(town, None, None).unwrap();
    let note = EstopNote {
        interrupted: vec![one.address()],
        ..estop::read(town, None).unwrap()
    };
    estop::set(town, &note).unwrap();
    crate::messaging::dnd::turn_on(town, &one.address(), None).unwrap();
    assert_eq!(thaw(town, None).unwrap().unwrap().told, [one.address()]);
    nudge::deliver_waiting(town, &one, Duration::from_secs(60)).unwrap();
    stage.await_line(&one, &format!("said: {GO_ON}"));
}

#[test]
fn dead_agent_is_started_again_only_after_the_thaw() {
    let stage = TestTown::new();
    let town = &stage.town;
    let one = stage.agent("one");
    let options = StartOptions {
        auto_respawn: Some(true),
        ..StartOptions::default()
    };
    let started = start::start(town, &one, &options).unwrap();
    stop(town, None, None).unwrap();
    stage.type_line(&one, "crash");
    stage.await_death(&one);
    let respawn = || respawn::respawn(town, &started.container, started.pane, false).unwrap();
    assert!(matches!(respawn(), RespawnOutcome::LeftAlone));
    assert_eq!(stage.tag(&one, tag::AUTO_RESPAWN), "1");
    assert_eq!(stage.tag(&one, tag::DEATHS), "");
    let thawed = thaw(town, None).unwrap().unwrap();
    assert_eq!(thawed.respawned, ["agent/one"]);
    assert!(matches!(respawn(), RespawnOutcome::Respawned(_)));
}

#[test]
fn stop_of_a_rig_leaves_the_others_alone() {
    let stage = TestTown::new().with_rig();
    let town = &stage.town;
    stop(town, Some("lab"), None).unwrap();
    stage.start(&stage.agent("one"));
    let run = || merge::run(town, "lab", &RunOptions::default(), &|_| {}, |_| {});
    let refused = run().unwrap_err();
    assert!(
        refused.message().starts_with("the rig lab is stopped by"),
        "{refused}"
    );
    stop(town, None, None).unwrap();
    let thawed = thaw(town, Some("lab")).unwrap().unwrap();
    assert!(thawed.still.is_some());
    assert!(run().is_err());
    thaw(town, None).unwrap();
    run().unwrap();
}

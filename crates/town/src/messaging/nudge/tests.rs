//! Messages to an agent of a town of tests, with a real tmux.

use super::*;
use crate::lifecycle::stop;
use crate::testing::TestTown;

fn request(text: &str, mode: DeliveryMode) -> NudgeRequest<'_> {
    NudgeRequest {
        is_command: false,
        text,
        sender: None,
        mode,
        priority: Priority::Normal,
        timeout: Duration::from_secs(10),
    }
}

#[test]
fn message_to_an_idle_agent_is_delivered() {
    let stage = TestTown::new();
    let agent = stage.agent("one");
    stage.start(&agent);
    let sent = send(
        &stage.town,
        &agent,
        &request("hello there", DeliveryMode::WaitIdle),
    )
    .unwrap();
    assert!(
        matches!(sent.outcome, NudgeOutcome::Delivered(_)),
        "{sent:?}"
    );
    stage.await_line(&agent, "said: hello there");
    assert!(MessageQueue::of(&stage.town, &agent).is_empty());
}

#[test]
fn queued_message_waits_in_the_queue() {
    let stage = TestTown::new();
    let agent = stage.agent("one");
    stage.start(&agent);
    let sent = send(&stage.town, &agent, &request("later", DeliveryMode::Queue)).unwrap();
    assert!(
        matches!(sent.outcome, NudgeOutcome::Queued(None)),
        "{sent:?}"
    );
    assert_eq!(MessageQueue::of(&stage.town, &agent).waiting().len(), 1);
}

#[test]
fn message_to_an_agent_that_does_not_run_is_refused() {
    let stage = TestTown::new();
    let agent = stage.agent("one");
    stage.start(&agent);
    stop::stop_one(&stage.town, &agent, Default::default()).unwrap();
    let error = send(
        &stage.town,
        &agent,
        &request("hello", DeliveryMode::Immediate),
    )
    .unwrap_err();
    assert!(matches!(error, NudgeError::NotRunning(_)), "{error:?}");
    assert_eq!(error.problem().kind(), gt_core::ProblemKind::NotFound);
    assert!(MessageQueue::of(&stage.town, &agent).is_empty());
}

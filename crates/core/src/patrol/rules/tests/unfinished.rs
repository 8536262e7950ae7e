//! Agents that stopped before their work was done.

use super::*;

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

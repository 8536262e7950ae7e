//! Messages, merges, assignments and escalations that wait too long.

use super::*;

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

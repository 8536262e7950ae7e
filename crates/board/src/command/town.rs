//! Commands about the merge queue, lost agents and the emergency stop.

use super::CommandDraft;
use crate::MergeFacts;
use crate::action::MergeOperation;
use gt_core::work::WorkId;

/// Returns the command for an entry of the merge queue, except for a rejection, which needs a
/// reason.
pub(crate) fn merge(operation: MergeOperation, entry: &MergeFacts) -> Option<CommandDraft> {
    let id = &entry.id;
    Some(match operation {
        MergeOperation::Approve => {
            let words = ["mq", "approve", id.as_str(), "--json"];
            CommandDraft::new(id, format!("Approving {id}"), &words)
        }
        MergeOperation::Retry => {
            let words = ["mq", "retry", id.as_str(), "--json"];
            CommandDraft::new(id, format!("Queueing {id} again"), &words)
        }
        MergeOperation::Run => {
            let rig = entry.rig.as_str();
            // The item is the entry: a long run must not delay commands about the town.
            CommandDraft::new(
                id,
                format!("Merging what waits in {rig}"),
                &["mq", "run", rig, "--json"],
            )
        }
        MergeOperation::Reject => return None,
    })
}

/// Returns the command that takes an entry out of the merge queue.
pub(crate) fn reject(id: &WorkId, reason: &str) -> CommandDraft {
    let reason = format!("--reason={reason}");
    let words = ["mq", "reject", id.as_str(), &reason, "--reopen", "--json"];
    CommandDraft::new(id, format!("Rejecting {id}"), &words)
}

/// Returns the command that restores all lost agents.
pub(crate) fn restore(count: usize) -> CommandDraft {
    let agents = if count == 1 { "agent" } else { "agents" };
    let title = format!("Restoring {count} {agents}");
    CommandDraft::new(None, title, &["restore", "--json"])
}

/// Returns the command that stops the town or a rig, or that ends the stop.
pub(crate) fn emergency_stop(rig: Option<&str>, is_stopped: bool) -> CommandDraft {
    let (verb, word) = match is_stopped {
        false => ("Stopping", "estop"),
        true => ("Ending the emergency stop of", "thaw"),
    };
    let mut words = vec![word];
    words.extend(rig.into_iter().flat_map(|rig| ["--rig", rig]));
    words.push("--json");
    CommandDraft::new(
        None,
        format!("{verb} {}", rig.unwrap_or("the town")),
        &words,
    )
}

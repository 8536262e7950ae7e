//! Reports the results of the queue: an event, and mail to the worker and to the person or agent
//! that assigned the item.

use super::{Base, MergeMessage, Tell, validate};
use crate::messaging::mail;
use crate::messaging::nudge::{self, NudgeError};
use crate::records::events::Events;
use crate::records::items::{MailDraft, Work};
use crate::{Result, Town};
use gt_core::event::Event;
use gt_core::mail::PERSON;
use gt_core::merge::{Merge, MergeReport, MergeStatus, Repairer, last_lines};
use gt_core::work::WorkId;
use gt_core::{Identity, Role};
use std::path::Path;

/// Maximum lines and characters of a failed command's output in a message, and in an event.
const IN_MESSAGE: (usize, usize) = (30, 4_000);
const IN_EVENT: (usize, usize) = (5, 500);

/// Announces the results of a rig's queue that were not announced yet. Failures are only warnings;
/// the next run retries. A cancelled run, as at the shutdown of the machine, is resumed later, so it
/// does not announce that its entries wait.
pub(super) fn announce(town: &Town, rig: &str, base: Option<&Base<'_>>, tell: Tell<'_>) {
    let due = match Work::of(town).merges_to_announce(rig) {
        Ok(due) => due,
        Err(problem) => return tell(MergeMessage::Warning(&problem.to_string())),
    };
    let is_cancelled = town.around().cancel.is_set();
    let is_result = |merge: &Merge| !(is_cancelled && merge.status.is_waiting());
    for merge in due.into_iter().filter(is_result) {
        if let Err(problem) = announce_one(town, &merge, base) {
            let text = format!("the result of {} was not announced: {problem}", merge.id);
            tell(MergeMessage::Warning(&text));
        }
    }
}

fn announce_one(town: &Town, merge: &Merge, base: Option<&Base<'_>>) -> Result<()> {
    let work = Work::of(town);
    let item = work.get(&merge.item)?;
    let delivery = base.map(Base::delivery);
    let log = merge
        .log
        .as_deref()
        .filter(|_| merge.status == MergeStatus::Failed);
    // The log may have been removed.
    let tail = log.and_then(|log| validate::tail(Path::new(log)).ok());
    let mail_tail = tail.as_deref().map(|tail| shortened(tail, IN_MESSAGE));
    let holder = match &merge.repair {
        Some(repair) => work.holder(repair)?,
        None => None,
    };
    let repair_agents = town.settings().merge_defaults_of(&merge.rig).repair_agents;
    let repairer = match &holder {
        Some(agent) => Repairer::Agent(agent),
        None => Repairer::None { repair_agents },
    };
    let report = MergeReport {
        merge,
        title: &item.title,
        delivery: delivery.as_deref(),
        tail: mail_tail.as_deref(),
        repair: merge.repair.as_ref().map(|_| repairer),
    };
    let sender = Identity::of_rig(Role::Refinery, &merge.rig).address();
    let draft = MailDraft::new(&sender, &report.subject(), &report.body());
    let recipients = recipients(town, &work, merge)?;
    let Some(messages) = work.announce_merge(merge, &draft, &recipients)? else {
        return Ok(());
    };
    note(town, merge, holder.as_deref(), tail.as_deref());
    // An idle agent is not woken for good news: a turn costs money.
    let nudges = merge.status.is_broken();
    let ended = ended_polecat(town, &merge.worker);
    for mail in &messages {
        if ended && mail.recipient == merge.worker {
            // Its next session works on another item, to which this message is irrelevant.
            work.mark_read(&mail.id)?;
        }
    }
    mail::announce(town, messages, nudges);
    Ok(())
}

/// Writes the event of a result.
fn note(town: &Town, merge: &Merge, holder: Option<&str>, tail: Option<&str>) {
    let kind = match merge.status {
        MergeStatus::Queued | MergeStatus::Merging => "merge_waiting".to_owned(),
        status => format!("merge_{}", status.as_str()),
    };
    let mut event = event(town, &kind, merge)
        .with("repair_agent", holder.map(str::to_owned))
        .with("tail", tail.map(|tail| shortened(tail, IN_EVENT)));
    if merge.status == MergeStatus::Conflict {
        event = event.with_files(&merge.files);
    }
    Events::of(town).note(vec![event]);
}

fn shortened(text: &str, (lines, characters): (usize, usize)) -> String {
    last_lines(text, lines, characters)
}

/// Returns the recipients: the worker, and the sender of its item. The worker is not informed about
/// an entry that only waits, because it can do nothing about it.
fn recipients(town: &Town, work: &Work, merge: &Merge) -> Result<Vec<String>> {
    let is_agent = |address: &str| Identity::from_address(address, town.registry()).is_some();
    let sender = work.slung_by(&merge.item)?;
    let sender = sender.filter(|sender| is_agent(sender));
    let mut recipients = vec![sender.unwrap_or_else(|| PERSON.to_owned())];
    // Only a person may approve it.
    if merge.status == MergeStatus::Held && recipients[0] != PERSON {
        recipients.insert(0, PERSON.to_owned());
    }
    let is_news = !merge.status.is_waiting() && is_agent(&merge.worker);
    if is_news && !recipients.contains(&merge.worker) {
        recipients.push(merge.worker.clone());
    }
    Ok(recipients)
}

/// Returns whether the address belongs to a polecat whose session has ended. If that is unknown, it
/// counts as running.
fn ended_polecat(town: &Town, address: &str) -> bool {
    let agent = Identity::from_address(address, town.registry());
    let polecat = agent.filter(|agent| agent.role() == Role::Polecat);
    polecat.is_some_and(|agent| match nudge::running(town, &agent) {
        Err(NudgeError::NotRunning(_)) => true,
        Err(error) => {
            tracing::warn!(
                "it is unknown whether {agent} runs: {}",
                error.problem().line()
            );
            false
        }
        Ok(_) => false,
    })
}

/// Returns the event of an entry, with the fields that all results have in common.
pub(super) fn event(town: &Town, kind: &str, merge: &Merge) -> Event {
    town.event(kind)
        .with("merge", merge.id.to_string())
        .with("bead", merge.item.to_string())
        .with("branch", merge.branch.clone())
        .with("worker", merge.worker.clone())
        .with("commit", merge.merged_as.clone())
        .with("repair", merge.repair.as_ref().map(WorkId::to_string))
        .with("reason", merge.reason.clone())
        .by_gt()
}

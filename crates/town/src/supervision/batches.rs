//! Lands batches: when the last item of a batch is closed, its owner is notified once.
//!
//! The mail and the closing of the parent are one transaction ([`Work::land_batch`]). The event, the
//! nudge and the notification follow under a lock; if the process is killed in between, the next
//! call completes them. A nudge or a notification may be repeated then, mail and event are not.
//! Every command that closes items calls [`settle`] (through
//! [`scheduler::wake`](crate::supervision::scheduler::wake)), and so do the upkeep and the daemon.

use crate::base::fault;
use crate::base::lock::FileLock;
use crate::base::or_log::OrLog;
use crate::base::wake;
use crate::messaging::{mail, notify};
use crate::records::budget;
use crate::records::events::{EventQuery, Events};
use crate::records::items::{LandedBatch, MailDraft, Work, WorkBatch};
use crate::{Result, Town};
use gt_core::mail::{LONGEST_SUBJECT, PERSON};
use gt_core::notify::NoticeKind;
use gt_core::work::Item;
use gt_core::{Caller, Identity};
use jiff::SignedDuration;
use std::time::Duration;

/// Fault points of a landing.
pub const FAULT_POINTS: &[&str] = &["batch.landed", "batch.noted", "batch.announced"];

/// Maximum wait for another process that lands batches.
const TURN_TIMEOUT: Duration = Duration::from_secs(3);

/// Lands the batches whose items are all closed, and announces them. Without a batch it costs one
/// read.
pub fn settle(town: &Town) -> Result<()> {
    let work = Work::of(town);
    if !work.has_unsettled_batches()? {
        return Ok(());
    }
    let lock = town.runtime_dir().join("locks/batches.lock");
    let Some(_turn) = FileLock::take_within(&lock, TURN_TIMEOUT)? else {
        return Ok(());
    };
    for batch in work.batches_to_land()? {
        let landed = message(town, &work, &batch)
            .and_then(|draft| work.land_batch(&batch.item, &draft, &recipient(town, &batch.owner)));
        landed.or_warn(format_args!("the batch {} does not land", batch.item));
    }
    for landed in work.batches_to_announce()? {
        fault::point(town, "batch.landed");
        let id = landed.item.id.clone();
        announce(town, landed)?;
        fault::point(town, "batch.announced");
        work.batch_told(&id)?;
    }
    Ok(())
}

/// Does the work of [`settle`], and logs a failure: the next call retries.
pub(crate) fn settle_or_warn(town: &Town) {
    settle(town).or_warn("batches cannot be settled");
}

fn announce(town: &Town, landed: LandedBatch) -> Result<()> {
    let id = landed.item.id.to_string();
    let at: Option<jiff::Timestamp> = landed.landed_at.parse().ok();
    let noted = Events::of(town).find(&EventQuery {
        kinds: vec!["batch_landed".to_owned()],
        about: vec![id.clone()],
        // An earlier landing of the same item has its own event.
        since: at.map(|at| at - SignedDuration::from_secs(1)),
        limit: Some(1),
        ..EventQuery::default()
    })?;
    if noted.is_empty() {
        let event = town
            .event("batch_landed")
            .with("bead", id.clone())
            .with("title", landed.item.title.clone())
            .with("owner", landed.owner.clone())
            .with("total", landed.parts.all)
            .by_gt();
        Events::of(town).append(vec![event])?;
    }
    fault::point(town, "batch.noted");
    wake::monitors(town);
    mail::announce(town, landed.mail.into_iter().collect(), true);
    let reason = format!("all {} items of {}", landed.parts.all, landed.item.title);
    notify::of_item(town, NoticeKind::Landed, &id, &reason);
    Ok(())
}

/// Returns the agent that owns a batch; a person for every other owner.
fn recipient(town: &Town, owner: &str) -> String {
    let agent = Identity::from_address(owner, town.registry());
    agent.map_or_else(|| PERSON.to_owned(), |agent| agent.address())
}

fn message(town: &Town, work: &Work, batch: &WorkBatch) -> Result<MailDraft> {
    let item = work.get(&batch.item)?;
    let children = work.children(&batch.item)?;
    let ids: Vec<String> = children.iter().map(|child| child.id.to_string()).collect();
    let costs = budget::spent_on(town, &ids).or_warn("the cost of a batch is unknown");
    let cost: f64 = costs.iter().flat_map(|costs| costs.values()).sum();
    let lines: Vec<String> = children.iter().map(line).collect();
    let body = format!(
        "All {} items of {} ({}) are closed. Cost: ${cost:.2}.\n\n{}\n",
        children.len(),
        item.id,
        item.title,
        lines.join("\n")
    );
    let subject = format!("Batch {} has landed: {}", item.id, item.title);
    let subject: String = subject.chars().take(LONGEST_SUBJECT).collect();
    Ok(MailDraft::new(Caller::Gt.as_str(), &subject, &body))
}

fn line(item: &Item) -> String {
    let reason = item.close_reason.as_deref().unwrap_or("closed");
    format!("- {} {}: {reason}", item.id, item.title)
}

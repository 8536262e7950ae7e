//! Collects the matters that role agents decide: open escalations, and merges that no agent repairs.

use crate::records::items::{EscalationQuery, Work};
use crate::{Result, Town};
use gt_core::Identity;
use gt_core::digest::{Matter, MatterKind};
use gt_core::escalation::{Escalation, EscalationState, Severity};
use gt_core::merge::Merge;
use gt_core::work::one_line;

/// Returns all matters, and changes nothing. Acknowledged escalations have an owner already.
pub(crate) fn collect(town: &Town) -> Result<Vec<Matter>> {
    let work = Work::of(town);
    let open = work.escalations(&EscalationQuery {
        state: Some(EscalationState::Open),
        ..EscalationQuery::default()
    })?;
    let is_escalated = |merge: &Merge| {
        let key = format!("merge:{}", merge.id);
        open.iter().any(|it| it.key.as_deref() == Some(&key))
    };
    let is_left = |merge: &Merge| {
        let has_repairer =
            merge.repair.is_some() && town.settings().merge_defaults_of(&merge.rig).repair_agents;
        merge.status.is_broken() && !has_repairer && !is_escalated(merge)
    };
    let merges = work.merges(None, false)?;
    let merges = merges.iter().filter(|merge| is_left(merge));
    let mut matters: Vec<Matter> = merges.map(|merge| of_merge(town, merge)).collect();
    matters.extend(open.iter().map(|it| of_escalation(town, it)));
    Ok(matters)
}

fn of_escalation(town: &Town, escalation: &Escalation) -> Matter {
    let identity = |address: &str| Identity::from_address(address, town.registry());
    let agent = escalation.agent.as_deref().unwrap_or(&escalation.raised_by);
    let agent = identity(agent);
    let of_item = || {
        let item = escalation.item.as_deref()?;
        Some(town.registry().split(item)?.0.to_owned())
    };
    // A rule about a rig, such as that of a merge queue, names it in the key.
    let of_key = || {
        let (_, rig) = escalation.key.as_deref()?.rsplit_once(':')?;
        let is_rig = town.registry().rigs.contains_key(rig);
        is_rig.then(|| rig.to_owned())
    };
    let rig = agent
        .as_ref()
        .and_then(|agent| agent.rig().map(str::to_owned));
    Matter {
        kind: MatterKind::Escalation,
        id: escalation.id.to_string(),
        revision: escalation.raised,
        severity: escalation.severity,
        source: escalation.source.clone(),
        key: escalation.key.clone(),
        raised_by: escalation.raised_by.clone(),
        rig: rig.or_else(of_item).or_else(of_key),
        agent,
        item: escalation.item.clone(),
        line: escalation.line(),
    }
}

fn of_merge(town: &Town, merge: &Merge) -> Matter {
    let reason = merge.reason.as_deref().unwrap_or("it could not be merged");
    Matter {
        kind: MatterKind::Merge,
        id: merge.id.to_string(),
        revision: merge.attempts,
        severity: Severity::Medium,
        source: "merge".to_owned(),
        key: None,
        raised_by: "gt".to_owned(),
        agent: Identity::from_address(&merge.worker, town.registry()),
        item: Some(merge.item.to_string()),
        rig: Some(merge.rig.clone()),
        line: one_line(&format!(
            "{} ({}): {reason}",
            merge.branch,
            merge.status.as_str()
        )),
    }
}

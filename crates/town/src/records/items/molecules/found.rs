//! Reads molecules.

use super::bead::handoff;
use super::{MOLECULE, STEP, no_molecule};
use crate::Result;
use crate::records::items::read::{by_id, select};
use gt_core::Problem;
use gt_core::work::{Item, ItemStatus, WorkId};
use rusqlite::Connection;
use rusqlite::types::Value;

/// A molecule of an agent, with its steps in order.
#[derive(Clone, Debug)]
pub struct Molecule {
    pub agent: String,
    pub handoff: WorkId,
    pub item: Item,
    pub formula: String,
    pub steps: Vec<Item>,
}

impl Molecule {
    pub(super) fn read(db: &Connection, agent: &str, handoff: &WorkId, item: Item) -> Result<Self> {
        let mut steps = select(
            db,
            "WHERE parent = ?1 AND type = ?2",
            [item.id.to_string(), STEP.to_owned()].map(Value::from),
        )?;
        // By number: `.10` comes after `.2`.
        steps.sort_by_key(|step| child_number(&step.id));
        Ok(Molecule {
            agent: agent.to_owned(),
            handoff: handoff.clone(),
            formula: label(&item, "formula:").unwrap_or_default().to_owned(),
            item,
            steps,
        })
    }

    /// Returns a step by its id in the formula, or by the id of its item.
    pub fn step(&self, wanted: &str) -> Result<&Item> {
        let by_name = |step: &&Item| step_id(step) == wanted;
        let by_item = |step: &&Item| step.id.as_str() == wanted;
        let steps = || self.steps.iter();
        let found = steps().find(by_name).or_else(|| steps().find(by_item));
        found.ok_or_else(|| {
            let known: Vec<&str> = steps().map(step_id).collect();
            Problem::not_found(format!("{} has no step {wanted:?}", self.item.id))
                .hint(format!("it has {}", known.join(", ")))
        })
    }

    /// Returns the open steps that a step waits for.
    pub fn waits_for(&self, step: &Item) -> Vec<&str> {
        let open = self.steps.iter().filter(|other| is_open(other));
        let needed = open.filter(|other| step.deps.contains(&other.id));
        needed.map(step_id).collect()
    }

    pub fn is_done(&self) -> bool {
        !self.steps.iter().any(is_open)
    }

    pub fn done(&self) -> usize {
        self.steps.iter().filter(|step| !is_open(step)).count()
    }
}

/// Returns the step's id in its formula.
pub(crate) fn step_id(step: &Item) -> &str {
    label(step, "step:").unwrap_or(step.id.as_str())
}

pub(super) fn attached(db: &Connection, agent: &str) -> Result<Option<Molecule>> {
    let Some(handoff) = handoff(db, agent)? else {
        return Ok(None);
    };
    for id in &handoff.deps {
        if let Some(item) = by_id(db, id)?
            && item.kind == MOLECULE
            && is_open(&item)
        {
            return Molecule::read(db, agent, &handoff.id, item).map(Some);
        }
    }
    Ok(None)
}

pub(super) fn must_be_attached(db: &Connection, agent: &str) -> Result<Molecule> {
    attached(db, agent)?.ok_or_else(|| no_molecule(agent))
}

/// Returns the molecule that an agent has finished last.
pub(super) fn last_done(db: &Connection, agent: &str) -> Result<Option<Molecule>> {
    let found = select(
        db,
        "WHERE assignee = ?1 AND status = 'closed' AND type = ?2 AND close_reason = 'done'
         ORDER BY closed_at DESC LIMIT 1",
        [agent, MOLECULE].map(|text| Value::from(text.to_owned())),
    )?;
    match (found.into_iter().next(), handoff(db, agent)?) {
        (Some(item), Some(handoff)) => Molecule::read(db, agent, &handoff.id, item).map(Some),
        _ => Ok(None),
    }
}

pub(super) fn is_open(item: &Item) -> bool {
    item.status != ItemStatus::Closed
}

fn label<'i>(item: &'i Item, prefix: &str) -> Option<&'i str> {
    let mut labels = item.labels.iter();
    labels.find_map(|label| label.strip_prefix(prefix))
}

fn child_number(id: &WorkId) -> u32 {
    let number = id.as_str().rsplit_once('.');
    number
        .and_then(|(_, number)| number.parse().ok())
        .unwrap_or(0)
}

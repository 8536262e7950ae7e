//! The steps that change something other than worktree and container, and the rollback of all
//! steps.

use super::assignment::Assignment;
use crate::Result;
use crate::base::fault;
use crate::records::events::Events;
use crate::records::items::{Patch, Work};
use crate::repo::workspace::{self, Placed};
use crate::work::checkpoint;
use crate::work::hook::{self, HookError};
use crate::work::molecule::{self, FormulaRequest};
use crate::workflow::polecat::work_dir;
use gt_core::event::Event;
use gt_core::mail::PERSON;
use gt_core::work::has_noted;
use gt_core::{Identity, Problem};

/// Changes made so far, to be rolled back on failure.
#[derive(Default)]
pub(super) struct SlingChanges {
    pub(super) hooked: bool,
    /// The item's notes before the change.
    pub(super) noted: Option<String>,
    /// The molecule of the assignment was poured.
    pub(super) poured: bool,
    pub(super) placed: Option<Placed>,
}

impl Assignment<'_> {
    /// Puts the item on the hook. Returns whether it was not there before.
    pub(super) fn hook(&self, agent: &Identity) -> Result<bool, HookError> {
        let id = &self.item.id;
        let is_new = hook::hook_item(self.town, agent, id)?.is_new;
        fault::point(self.town, "sling.hooked");
        let work = Work::of(self.town);
        // The sender is informed about the result. A call that was killed has not recorded it.
        if is_new || work.slung_by(id)?.is_none() {
            work.record_sling(id, self.sender())?;
        }
        if is_new {
            self.event("sling", "target", agent);
        }
        Ok(is_new)
    }

    pub(super) fn event(&self, kind: &str, field: &str, agent: &Identity) {
        let event = match self.options.sender.as_deref() {
            Some(sender) => Event::emitted(kind, sender),
            None => self.town.event(kind),
        };
        let event = event
            .with(field, agent.address())
            .with("bead", self.item.id.to_string());
        Events::of(self.town).note(vec![event]);
    }

    pub(super) fn sender(&self) -> &str {
        let given = self.options.sender.as_deref();
        given
            .or_else(|| self.town.around().var("GT_ROLE"))
            .unwrap_or(PERSON)
    }

    /// Appends the instructions to the item's notes, so that later sessions see them. Idempotent.
    pub(super) fn note(&self, made: &mut SlingChanges) -> Result<()> {
        let Some(args) = self.options.args.as_deref().map(str::trim) else {
            return Ok(());
        };
        let before = &self.item.notes;
        if !args.is_empty() && !has_noted(before, args) {
            let patch = Patch {
                append_notes: Some(args.to_owned()),
                ..Patch::default()
            };
            Work::of(self.town).update(&self.item.id, &patch)?;
            made.noted = Some(before.clone());
        }
        fault::point(self.town, "sling.noted");
        Ok(())
    }

    /// Pours the formula of the assignment for the agent. A molecule of earlier work is given up.
    /// Idempotent.
    pub(super) fn pour(&self, agent: &Identity, made: &mut SlingChanges) -> Result<()> {
        let Some(formula) = &self.options.formula else {
            return Ok(());
        };
        let id = &self.item.id;
        if let Some(present) = Work::of(self.town).molecule(&agent.address())? {
            if present.item.parent.as_ref() == Some(id) {
                return Ok(());
            }
            molecule::detach(self.town, agent)?;
        }
        let request = FormulaRequest {
            formula: &formula.name,
            vars: formula.vars.clone(),
            on: Some(id.clone()),
        };
        molecule::attach(self.town, agent, request)?;
        made.poured = true;
        Ok(())
    }

    /// Clears the checkpoint of another item: it would mislead the agent.
    pub(super) fn forget_other_work(&self, agent: &Identity) -> Result<()> {
        let found = checkpoint::read(self.town, agent)?.and_then(|found| found.hooked_bead);
        if found.is_some_and(|bead| bead != self.item.id.as_str()) {
            checkpoint::clear(self.town, agent)?;
        }
        Ok(())
    }

    /// Rolls back in reverse order; failures are appended to the error.
    pub(super) fn take_back(
        &self,
        agent: &Identity,
        made: &SlingChanges,
        mut problem: Problem,
    ) -> Problem {
        let work = Work::of(self.town);
        let id = &self.item.id;
        let mut failures = Vec::new();
        if made.poured {
            failures.extend(molecule::detach(self.town, agent).err());
        }
        if let Some(before) = &made.noted {
            let patch = Patch {
                notes: Some(before.clone()),
                ..Patch::default()
            };
            failures.extend(work.update(id, &patch).err());
        }
        if made.hooked {
            let back = work.holder(id).and_then(|holder| match holder {
                Some(holder) if holder == agent.address() => {
                    hook::take_back(self.town, id).map(drop)
                }
                _ => Ok(()),
            });
            failures.extend(back.err());
        }
        if let Some(placed) = &made.placed {
            let back = work_dir(self.town, agent)
                .and_then(|dir| workspace::take_back(self.town, agent, &dir, placed));
            failures.extend(back.err());
        }
        for failure in failures {
            problem = problem.cause(format!("and the rollback is incomplete: {failure}"));
        }
        problem
    }
}

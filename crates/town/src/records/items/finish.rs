//! The changes of a worker's `gt done`, in one transaction.

use super::Work;
use super::change::{add_labels, close};
use super::merge_entries::{Handed, enqueue, must_find};
use super::merge_steps::requeue_after_repair;
use super::molecules::{self, LeftMolecule, Molecule};
use super::read::must_have;
use super::store::problem;
use crate::Result;
use crate::records::items::store::now;
use gt_core::Problem;
use gt_core::merge::DoneStatus;
use gt_core::tree::ESCALATED;
use gt_core::work::{Item, WorkId, appended};
use rusqlite::{Connection, OptionalExtension, params};

/// How a worker leaves its item.
#[derive(Clone, Debug)]
pub struct Finish<'a> {
    pub agent: &'a str,
    /// Session that leaves it.
    pub session: Option<&'a str>,
    pub item: Option<&'a WorkId>,
    pub leaving: DoneStatus,
    pub branch: Option<&'a str>,
    pub note: Option<&'a str>,
    /// Branch to merge.
    pub handed: Option<&'a Handed>,
    /// Whether the agent's next work is unrelated: then its molecule ends, even if it was poured
    /// for another item.
    pub begins_anew: bool,
}

/// The last work that an agent left, and whether its session was ended since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinishedWork {
    pub agent: String,
    pub session: Option<String>,
    pub item: Option<WorkId>,
    pub leaving: DoneStatus,
    pub branch: Option<String>,
    pub merge: Option<WorkId>,
    pub is_ended: bool,
}

impl Work {
    /// Queues the branch, takes the item off the hook and sets its new status. A molecule that was
    /// poured for the item ends with it.
    pub fn finish(&self, finish: &Finish<'_>) -> Result<(FinishedWork, Option<LeftMolecule>)> {
        if let Some(id) = finish.item {
            self.refresh_for(id)?;
        }
        self.change(|db| {
            let merge = match finish.item {
                Some(id) => leave(db, id, finish)?,
                None => {
                    super::hook::release_mail(db, finish.agent)?;
                    None
                }
            };
            db.execute(
                "INSERT OR REPLACE INTO finishes (agent, life, item, leaving, branch, merge, at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                params![
                    finish.agent,
                    finish.session,
                    finish.item.map(WorkId::as_str),
                    finish.leaving.as_str(),
                    finish.branch,
                    merge.as_ref().map(WorkId::as_str),
                    self.clock.text(),
                ],
            )
            .map_err(problem)?;
            let is_completed = finish.leaving == DoneStatus::Completed;
            let is_its = |molecule: &Molecule| {
                is_completed
                    && finish.item.is_some()
                    && molecule.item.parent.as_ref() == finish.item
            };
            let molecule = molecules::leave(db, finish.agent, is_its, |molecule| {
                finish.begins_anew || is_its(molecule)
            })?;
            let finished = last(db, finish.agent)?;
            let finished = finished.ok_or_else(|| Problem::failed("it was not written"))?;
            Ok((finished, molecule))
        })
    }

    /// Returns the last work that an agent left.
    pub fn finished(&self, agent: &str) -> Result<Option<FinishedWork>> {
        match self.open_if_there()? {
            Some(db) => last(&db, agent),
            None => Ok(None),
        }
    }

    /// Records that the finish is complete.
    pub fn finish_is_ended(&self, agent: &str) -> Result<()> {
        self.change(|db| {
            db.execute("UPDATE finishes SET ended = 1 WHERE agent = ?1", [agent])
                .map(drop)
                .map_err(problem)
        })
    }
}

/// Changes the item, and returns the entry of the queue.
fn leave(db: &Connection, id: &WorkId, finish: &Finish<'_>) -> Result<Option<WorkId>> {
    let on_hook: bool = db
        .query_row(
            "SELECT EXISTS (SELECT 1 FROM hooks WHERE agent = ?1 AND item = ?2)",
            params![finish.agent, id.as_str()],
            |row| row.get(0),
        )
        .map_err(problem)?;
    if !on_hook {
        return Err(Problem::conflict(format!(
            "{id} is no longer on the hook of {}",
            finish.agent
        ))
        .hint(format!("`gt work show {id}` shows what happened to it")));
    }
    super::hook::take_off(db, id)?;
    let item = must_have(db, id)?;
    let merge = match (finish.handed, finish.leaving) {
        (Some(handed), _) => Some(enqueue(db, id, finish.agent, handed)?),
        (None, DoneStatus::Completed) => requeue_after_repair(db, id)?,
        (None, _) => None,
    };
    let refinery = match &merge {
        Some(merge) => Some(must_find(db, merge)?.refinery()),
        None => None,
    };
    let (status, assignee) = match (finish.leaving, &refinery) {
        (DoneStatus::Completed, Some(refinery)) => ("in_progress", Some(refinery.as_str())),
        (DoneStatus::Completed, None) => {
            note(db, &item, finish.note)?;
            close(db, id, Some(&format!("done by {}", finish.agent)))?;
            return Ok(merge);
        }
        (DoneStatus::Escalated, _) => ("blocked", None),
        (DoneStatus::Deferred, _) => ("open", None),
    };
    note(db, &item, finish.note)?;
    if finish.leaving == DoneStatus::Escalated {
        add_labels(db, id, &[ESCALATED.to_owned()])?;
    }
    db.execute(
        "UPDATE items SET status = ?2, assignee = ?3, updated_at = ?4 WHERE id = ?1",
        params![id.as_str(), status, assignee, now(db)?],
    )
    .map_err(problem)?;
    Ok(merge)
}

fn note(db: &Connection, item: &Item, note: Option<&str>) -> Result<()> {
    let Some(note) = note else {
        return Ok(());
    };
    db.execute(
        "UPDATE items SET notes = ?2 WHERE id = ?1",
        params![item.id.as_str(), appended(&item.notes, note)],
    )
    .map(drop)
    .map_err(problem)
}

fn last(db: &Connection, agent: &str) -> Result<Option<FinishedWork>> {
    type Columns = (
        Option<String>,
        Option<String>,
        String,
        Option<String>,
        Option<String>,
        bool,
    );
    let found: Option<Columns> = db
        .query_row(
            "SELECT life, item, leaving, branch, merge, ended FROM finishes WHERE agent = ?1",
            [agent],
            |row| {
                Ok((
                    row.get(0)?,
                    row.get(1)?,
                    row.get(2)?,
                    row.get(3)?,
                    row.get(4)?,
                    row.get(5)?,
                ))
            },
        )
        .optional()
        .map_err(problem)?;
    let Some((session, item, leaving, branch, merge, is_ended)) = found else {
        return Ok(None);
    };
    let id = |text: Option<String>| text.map(|text| text.parse()).transpose();
    Ok(Some(FinishedWork {
        agent: agent.to_owned(),
        session,
        item: id(item)?,
        leaving: leaving.parse()?,
        branch,
        merge: id(merge)?,
        is_ended,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::items::{ItemDraft, MailDraft};

    #[test]
    fn item_hooked_meanwhile_stays() {
        let folder = tempfile::tempdir().unwrap();
        let work = Work::at(folder.path().join("items.db"));
        let finish = Finish {
            agent: "mayor",
            session: None,
            item: None,
            leaving: DoneStatus::Completed,
            branch: None,
            note: None,
            handed: None,
            begins_anew: false,
        };
        let note = MailDraft::new("mayor", "Handoff", "");
        work.hand_over("mayor", "life", true, &note).unwrap();
        work.finish(&finish).unwrap();
        assert_eq!(work.hooked("mayor").unwrap(), None);
        let draft = ItemDraft {
            prefix: "hq".to_owned(),
            title: "Late".to_owned(),
            ..ItemDraft::default()
        };
        let item = work.create(&draft).unwrap();
        work.hook("mayor", &item.id).unwrap();
        work.finish(&finish).unwrap();
        assert_eq!(work.hooked("mayor").unwrap().unwrap().item.id, item.id);
    }
}

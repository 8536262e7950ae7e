//! The sender of each assigned item, and the results of the merge queue that were announced.
//!
//! A result is announced once: the messages and the record that they were written are one
//! transaction. If a run is killed before it, the next one announces.

use super::merge_entries::{COLUMNS, find, merge};
use super::store::problem;
use super::{MailDraft, Work, mailbox, messages};
use crate::Result;
use gt_core::mail::Mail;
use gt_core::merge::Merge;
use gt_core::work::{ItemStatus, WorkId};
use rusqlite::{OptionalExtension, params};

/// SQL key that distinguishes the results of one entry. Every attempt has its own result; a waiting
/// entry has one for each reason, and a held entry one for each commit.
const RESULT: &str = "CASE merges.status WHEN 'queued' THEN 'queued:' || coalesce(reason, '')
    WHEN 'held' THEN 'held:' || commit_id
    ELSE merges.status || ':' || attempts END";

impl Work {
    /// Records the sender that assigned an item to its agent. The latest sender replaces an earlier
    /// one.
    pub fn record_sling(&self, item: &WorkId, sender: &str) -> Result<()> {
        self.change(|db| {
            db.execute(
                "INSERT OR REPLACE INTO slings (item, sender, at) VALUES (?1, ?2, ?3)",
                params![item.as_str(), sender, self.clock.text()],
            )
            .map(drop)
            .map_err(problem)
        })
    }

    /// Returns the sender that assigned an item to its agent.
    pub fn slung_by(&self, item: &WorkId) -> Result<Option<String>> {
        let Some(db) = self.open_if_there()? else {
            return Ok(None);
        };
        db.query_row(
            "SELECT sender FROM slings WHERE item = ?1",
            [item.as_str()],
            |row| row.get(0),
        )
        .optional()
        .map_err(problem)
    }

    /// Records why the entries of a rig wait, for those without a reason.
    pub fn note_why_waiting(&self, rig: &str, reason: &str) -> Result<()> {
        self.change(|db| {
            db.execute(
                "UPDATE merges SET reason = ?2, updated_at = ?3
                 WHERE rig = ?1 AND status = 'queued' AND reason IS NULL",
                params![rig, reason, self.clock.text()],
            )
            .map(drop)
            .map_err(problem)
        })
    }

    /// Returns the entries of a rig whose result was not announced yet.
    pub fn merges_to_announce(&self, rig: &str) -> Result<Vec<Merge>> {
        let Some(db) = self.open_if_there()? else {
            return Ok(Vec::new());
        };
        let statement = format!(
            "SELECT {COLUMNS} FROM merges WHERE rig = ?1 AND announced IS NOT {RESULT}
             AND (status IN ('merged', 'held', 'conflict', 'failed')
                  OR (status = 'queued' AND reason IS NOT NULL))
             ORDER BY updated_at, id"
        );
        let mut statement = db.prepare(&statement).map_err(problem)?;
        let rows = statement
            .query_map([rig], |row| Ok(merge(row)))
            .map_err(problem)?;
        rows.map(|row| row.map_err(problem)?).collect()
    }

    /// Writes a message about a result to each recipient, and records the announcement. Returns
    /// `None` if the entry has changed since it was read: it has another result, or another process
    /// has announced this one.
    pub fn announce_merge(
        &self,
        announced: &Merge,
        draft: &MailDraft,
        recipients: &[String],
    ) -> Result<Option<Vec<Mail>>> {
        let mut draft = draft.checked()?;
        self.change(|db| {
            if find(db, &announced.id)?.as_ref() != Some(announced) {
                return Ok(None);
            }
            let statement = format!(
                "UPDATE merges SET announced = {RESULT}
                 WHERE id = ?1 AND announced IS NOT {RESULT}"
            );
            let changed = db
                .execute(&statement, [announced.id.as_str()])
                .map_err(problem)?;
            if changed == 0 {
                return Ok(None);
            }
            let mut written = Vec::new();
            for recipient in recipients {
                let id = messages::write(db, &draft, recipient, ItemStatus::Open)?;
                draft.thread.get_or_insert_with(|| id.clone());
                written.push(mailbox::by_id(db, &id)?);
            }
            Ok(Some(written))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::items::{Finish, Handed, ItemDraft};
    use gt_core::merge::{DoneStatus, MergeRefusal, MergeStatus};

    #[test]
    fn every_result_is_announced_once() {
        let folder = tempfile::tempdir().unwrap();
        let work = Work::at(folder.path().join("items.db"));
        let draft = ItemDraft {
            prefix: "gt".to_owned(),
            title: "Write a poem".to_owned(),
            ..ItemDraft::default()
        };
        let item = work.create(&draft).unwrap().id;
        work.record_sling(&item, "human").unwrap();
        work.record_sling(&item, "mayor").unwrap();
        assert_eq!(work.slung_by(&item).unwrap().as_deref(), Some("mayor"));
        let agent = "gastown/crew/max";
        work.hook(agent, &item).unwrap();
        let handed = Handed {
            rig: "gastown".to_owned(),
            branch: "crew/max".to_owned(),
            commit: "0123".to_owned(),
            base: "main".to_owned(),
        };
        let finish = Finish {
            agent,
            session: None,
            item: Some(&item),
            leaving: DoneStatus::Completed,
            branch: None,
            note: None,
            handed: Some(&handed),
            begins_anew: false,
        };
        let id = work.finish(&finish).unwrap().0.merge.unwrap();
        let due = || work.merges_to_announce("gastown").unwrap();
        assert_eq!(due(), [], "nothing has come of it yet");
        let mail = MailDraft::new("gastown/refinery", "News", "");
        let announce = |merge: &Merge| {
            let to = ["human".to_owned(), agent.to_owned()];
            let written = work.announce_merge(merge, &mail, &to).unwrap();
            written.map(|messages| messages.len())
        };
        // A reason to wait is announced once, even if the merge is retried.
        work.note_why_waiting("gastown", "no remote").unwrap();
        let waiting = due();
        assert_eq!(announce(&waiting[0]), Some(2));
        assert_eq!(announce(&waiting[0]), None);
        work.begin_merge(&id).unwrap();
        assert_eq!(due(), [], "it is being merged");
        work.put_back_merge(&id, "no remote").unwrap();
        assert_eq!(due(), []);
        // Each attempt has its own result.
        let refusal = MergeRefusal {
            status: MergeStatus::Failed,
            reason: "`make` failed".to_owned(),
            files: Vec::new(),
            log: None,
        };
        for _ in 0..2 {
            work.begin_merge(&id).unwrap();
            work.refuse_merge(&id, &refusal, "4567").unwrap();
            let failed = due();
            assert_eq!(failed.len(), 1);
            assert_eq!(announce(&failed[0]), Some(2));
            assert_eq!(due(), []);
            work.retry_merge(&id, "0123").unwrap();
        }
        work.begin_merge(&id).unwrap();
        let merged = work.settle_merge(&id, "89ab").unwrap();
        // An outdated entry is not announced.
        assert_eq!(announce(&waiting[0]), None);
        assert_eq!(due(), std::slice::from_ref(&merged));
        assert_eq!(announce(&merged), Some(2));
        assert_eq!(due(), []);
    }
}

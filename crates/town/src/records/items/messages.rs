//! Mail: work items with an additional sender, recipient and thread.

use super::Work;
use super::change::add_labels;
use super::create::free_id;
use super::mailbox;
use super::read::must_have;
use super::store::problem;
use crate::Result;
use crate::records::items::store::now;
use gt_core::Problem;
use gt_core::handoff::with_earlier_message;
use gt_core::mail::{self, KIND, LABEL, Mail, PREFIX};
use gt_core::work::{Item, ItemStatus, USUAL_PRIORITY, WorkId, check_priority, check_word};
use rusqlite::{Connection, OptionalExtension, params};

/// A message to be sent.
#[derive(Clone, Debug)]
pub struct MailDraft {
    pub sender: String,
    pub subject: String,
    pub body: String,
    pub priority: u8,
    /// Without one, a reply continues the thread of the message it answers, and any other message
    /// begins a new one.
    pub thread: Option<WorkId>,
    pub reply_to: Option<WorkId>,
}

impl MailDraft {
    pub fn new(sender: &str, subject: &str, body: &str) -> Self {
        MailDraft {
            sender: sender.to_owned(),
            subject: subject.to_owned(),
            body: body.to_owned(),
            priority: USUAL_PRIORITY,
            thread: None,
            reply_to: None,
        }
    }

    /// Returns a copy with a one-line subject. Fails if it cannot be sent.
    pub(super) fn checked(&self) -> Result<Self> {
        mail::check_body(&self.body)?;
        check_priority(self.priority)?;
        Ok(MailDraft {
            subject: mail::subject(&self.subject)?,
            ..self.clone()
        })
    }
}

impl Work {
    /// Sends the message to all recipients, or to none. The copies are one thread: that of the
    /// answered message, or a new one.
    pub fn send(&self, draft: &MailDraft, recipients: &[String]) -> Result<Vec<Mail>> {
        let mut draft = draft.checked()?;
        self.change(|db| {
            if let Some(answered) = &draft.reply_to {
                let answered = mailbox::by_id(db, answered)?;
                draft.thread = draft.thread.take().or(Some(answered.thread));
            }
            let mut messages = Vec::new();
            for recipient in recipients {
                let id = write(db, &draft, recipient, ItemStatus::Open)?;
                draft.thread.get_or_insert_with(|| id.clone());
                messages.push(mailbox::by_id(db, &id)?);
            }
            Ok(messages)
        })
    }

    /// Writes a handoff message from an agent to itself and puts it on its hook for the next
    /// session. Work on the hook stays, and the message joins it; an earlier message is closed. A
    /// second call in the same session rewrites the message. If the session ends with it, the steps
    /// that it has begun in its molecule are reopened.
    pub fn hand_over(
        &self,
        agent: &str,
        session: &str,
        ends: bool,
        draft: &MailDraft,
    ) -> Result<HandedOver> {
        let draft = MailDraft {
            sender: agent.to_owned(),
            ..draft.checked()?
        };
        let label = format!("handoff:{session}");
        check_word("label", &label)?;
        self.change(|db| {
            let molecule = match ends {
                true => super::molecules::hand_over(db, agent)?,
                false => None,
            };
            let mut draft = draft.clone();
            let own = unfinished(db, agent, &label)?;
            // A session that continues has not processed the message that was left to it.
            if let (false, Some(before)) = (ends, super::hook::note_of(db, agent)?) {
                let is_own = own.as_ref() == Some(&before.id);
                draft.body = with_earlier_message(&draft.body, &before.description, is_own);
            }
            let id = match own {
                Some(id) => {
                    rewrite(db, &id, &draft)?;
                    id
                }
                None => {
                    let id = write(db, &draft, agent, ItemStatus::Hooked)?;
                    add_labels(db, &id, &[label])?;
                    id
                }
            };
            let work = super::hook::attach_handoff_message(db, agent, &id)?;
            Ok(HandedOver {
                mail: must_have(db, &id)?,
                work,
                molecule,
            })
        })
    }
}

/// Result of a handoff.
#[derive(Clone, Debug)]
pub struct HandedOver {
    /// The handoff message, which is on the hook.
    pub mail: Item,
    /// Work that shares the hook with the message.
    pub work: Option<WorkId>,
    /// Molecule that continues; set only if the session ends.
    pub molecule: Option<WorkId>,
}

/// Returns the handoff message that this session has already written.
fn unfinished(db: &Connection, agent: &str, label: &str) -> Result<Option<WorkId>> {
    let found: Option<String> = db
        .query_row(
            "SELECT items.id FROM labels JOIN items ON items.id = labels.item
             JOIN letters ON letters.item = items.id
             WHERE label = ?1 AND recipient = ?2 AND status <> 'closed'",
            params![label, agent],
            |row| row.get(0),
        )
        .optional()
        .map_err(problem)?;
    found.map(|id| id.parse()).transpose()
}

fn rewrite(db: &Connection, id: &WorkId, draft: &MailDraft) -> Result<()> {
    let now = now(db)?;
    db.execute(
        "UPDATE items SET title = ?2, description = ?3, priority = ?4, status = 'hooked',
         updated_at = ?5 WHERE id = ?1",
        params![id.as_str(), draft.subject, draft.body, draft.priority, now],
    )
    .map_err(problem)?;
    db.execute(
        "UPDATE letters SET sent_at = ?2, read_at = NULL WHERE item = ?1",
        params![id.as_str(), now],
    )
    .map(drop)
    .map_err(problem)
}

/// Writes a message to one recipient.
pub(super) fn write(
    db: &Connection,
    draft: &MailDraft,
    recipient: &str,
    status: ItemStatus,
) -> Result<WorkId> {
    let id = free_id(db, PREFIX)?;
    let now = now(db)?;
    db.execute(
        "INSERT INTO items (id, title, description, type, priority, status, assignee, ephemeral,
         created_at, updated_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 1, ?8, ?8)",
        params![
            id.as_str(),
            draft.subject,
            draft.body,
            KIND,
            draft.priority,
            status.as_str(),
            recipient,
            now,
        ],
    )
    .map_err(problem)?;
    add_labels(db, &id, &[LABEL.to_owned()])?;
    let thread = draft.thread.as_ref().unwrap_or(&id);
    db.execute(
        "INSERT INTO letters (item, sender, recipient, thread, reply_to, sent_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![
            id.as_str(),
            draft.sender,
            recipient,
            thread.as_str(),
            draft.reply_to.as_ref().map(WorkId::as_str),
            now,
        ],
    )
    .map_err(problem)?;
    Ok(id)
}

/// Returns whether an item is a handoff message: mail from an agent to itself, and not work.
pub(super) fn is_note(db: &Connection, id: &WorkId) -> Result<bool> {
    db.query_row(
        "SELECT EXISTS (SELECT 1 FROM letters WHERE item = ?1 AND sender = recipient)",
        [id.as_str()],
        |row| row.get(0),
    )
    .map_err(problem)
}

/// Refuses to hook a message for another agent than its recipient.
pub(super) fn check_is_for(db: &Connection, id: &WorkId, agent: &str) -> Result<()> {
    let recipient: Option<String> = db
        .query_row(
            "SELECT recipient FROM letters WHERE item = ?1",
            [id.as_str()],
            |row| row.get(0),
        )
        .optional()
        .map_err(problem)?;
    match recipient {
        Some(recipient) if recipient != agent => Err(Problem::conflict(format!(
            "{id} is a message to {recipient}"
        ))
        .hint("`gt mail send` writes one to others")),
        _ => Ok(()),
    }
}

/// Closes a message, whatever its status.
pub(super) fn close(db: &Connection, id: &WorkId, reason: &str) -> Result<()> {
    db.execute(
        "UPDATE items SET status = 'closed', closed_at = ?2, close_reason = ?3, updated_at = ?2
         WHERE id = ?1 AND status <> 'closed'",
        params![id.as_str(), now(db)?, reason],
    )
    .map(drop)
    .map_err(problem)
}

#[cfg(test)]
mod tests {
    use super::super::{HookError, ItemDraft};
    use super::*;

    const AGENT: &str = "gastown/crew/max";

    fn work() -> (tempfile::TempDir, Work) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".work/items.db");
        let work = Work::at(path);
        (folder, work)
    }

    fn item(work: &Work, title: &str) -> Item {
        let draft = ItemDraft {
            prefix: "gt".to_owned(),
            title: title.to_owned(),
            ..ItemDraft::default()
        };
        work.create(&draft).unwrap()
    }

    fn hand_over(work: &Work, session: &str, subject: &str) -> Item {
        let draft = MailDraft::new(AGENT, subject, "half way");
        work.hand_over(AGENT, session, true, &draft).unwrap().mail
    }

    fn status(work: &Work, item: &Item) -> (ItemStatus, Option<String>) {
        let item = work.get(&item.id).unwrap();
        (item.status, item.close_reason)
    }

    #[test]
    fn message_beside_work_can_be_taken_back() {
        let (_folder, work) = work();
        let work_item = item(&work, "Work");
        let mail = hand_over(&work, "one", "First");
        work.hook(AGENT, &work_item.id).unwrap();
        let both = work.hooked(AGENT).unwrap().unwrap();
        assert_eq!(
            (both.item.id, both.mail.unwrap().id),
            (work_item.id.clone(), mail.id.clone())
        );
        work.take_back(&mail.id).unwrap();
        let hooked = work.hooked(AGENT).unwrap().unwrap();
        assert_eq!((hooked.item.id, hooked.mail), (work_item.id.clone(), None));
        assert_eq!(status(&work, &mail).0, ItemStatus::Closed);
        work.take_back(&work_item.id).unwrap();
        assert_eq!(work.hooked(AGENT).unwrap(), None);
    }

    #[test]
    fn message_alone_is_on_the_hook() {
        let (_folder, work) = work();
        let mail = hand_over(&work, "one", "First");
        assert_eq!(mail.status, ItemStatus::Hooked);
        assert_eq!(mail.assignee.as_deref(), Some(AGENT));
        assert_eq!(mail.labels, ["gt:message", "handoff:one"]);
        assert!(mail.id.as_str().starts_with("hq-") && mail.ephemeral);
        let hooked = work.hooked(AGENT).unwrap().unwrap();
        assert_eq!((&hooked.item, &hooked.mail), (&mail, &None));
        // The message of the next session replaces it.
        let next = hand_over(&work, "two", "Second");
        assert_eq!(work.hooked(AGENT).unwrap().unwrap().item, next);
        let superseded = (ItemStatus::Closed, Some("superseded".to_owned()));
        assert_eq!(status(&work, &mail), superseded);
        work.unhook(AGENT).unwrap();
        assert_eq!(work.hooked(AGENT).unwrap(), None);
        assert_eq!(status(&work, &next).0, ItemStatus::Closed);
    }

    #[test]
    fn message_travels_with_the_work() {
        let (_folder, work) = work();
        let task = item(&work, "Work");
        work.hook(AGENT, &task.id).unwrap();
        let first = hand_over(&work, "one", "First");
        let second = hand_over(&work, "two", "Second");
        let hooked = work.hooked(AGENT).unwrap().unwrap();
        assert_eq!(hooked.item.id, task.id);
        assert_eq!(hooked.mail, Some(second.clone()));
        assert_eq!(status(&work, &first).0, ItemStatus::Closed);
        assert_eq!(second.status, ItemStatus::Hooked);
        // Hooking the same item again changes nothing.
        assert_eq!(work.hook(AGENT, &task.id).unwrap(), hooked);
        work.unhook_item(&task.id).unwrap();
        assert_eq!(status(&work, &task).0, ItemStatus::Open);
        assert_eq!(status(&work, &second).0, ItemStatus::Closed);
        // The message is closed with the work.
        work.hook(AGENT, &task.id).unwrap();
        let third = hand_over(&work, "three", "Third");
        work.close(&task.id, Some("done")).unwrap();
        assert_eq!(status(&work, &third).0, ItemStatus::Closed);
        assert_eq!(work.hooked(AGENT).unwrap(), None);
    }

    #[test]
    fn message_makes_room_for_work_and_stays_with_it() {
        let (_folder, work) = work();
        let mail = hand_over(&work, "one", "First");
        let task = item(&work, "Work");
        let hooked = work.hook(AGENT, &task.id).unwrap();
        assert_eq!(hooked.item.id, task.id);
        assert_eq!(hooked.mail.as_ref(), Some(&mail));
        let other = item(&work, "Other");
        assert!(work.hook(AGENT, &other.id).is_err(), "it is free no more");
        assert!(work.hook("mayor", &mail.id).is_err(), "another's letter");
        let held = work.hook("mayor", &task.id);
        assert!(matches!(held, Err(HookError::Held(_))), "{held:?}");
        // The message can be taken off alone, and the work stays.
        let taken = work.unhook_item(&mail.id).unwrap().unwrap();
        assert_eq!(taken.item.id, mail.id);
        let hooked = work.hooked(AGENT).unwrap().unwrap();
        assert_eq!((&hooked.item.id, &hooked.mail), (&task.id, &None));
        assert_eq!(status(&work, &mail).0, ItemStatus::Closed);
    }

    #[test]
    fn repeated_handoff_writes_one_message() {
        let (_folder, work) = work();
        let first = hand_over(&work, "one", "First");
        let again = hand_over(&work, "one", "Better");
        assert_eq!(again.id, first.id);
        assert_eq!(again.title, "Better");
        let task = item(&work, "Work");
        work.hook(AGENT, &task.id).unwrap();
        assert_eq!(hand_over(&work, "one", "Best").id, first.id);
        let hooked = work.hooked(AGENT).unwrap().unwrap();
        assert_eq!(hooked.mail.unwrap().title, "Best");
        // A closed message is not rewritten.
        work.close(&first.id, None).unwrap();
        assert_eq!(work.hooked(AGENT).unwrap().unwrap().mail, None);
        let new = hand_over(&work, "one", "New");
        assert_ne!(new.id, first.id);
    }

    #[test]
    fn text_of_another_writer_is_no_note_and_stays() {
        let (_folder, work) = work();
        let draft = MailDraft::new("mayor", "Do this", "");
        let mail = work.send(&draft, &[AGENT.to_owned()]).unwrap().remove(0);
        work.hook(AGENT, &mail.id).unwrap();
        let task = item(&work, "Work");
        assert!(work.hook(AGENT, &task.id).is_err(), "it is not free");
        let note = hand_over(&work, "one", "First");
        let hooked = work.hooked(AGENT).unwrap().unwrap();
        assert_eq!((hooked.item.id, hooked.mail), (mail.id.clone(), Some(note)));
        work.unhook(AGENT).unwrap();
        let back = work.get(&mail.id).unwrap();
        assert_eq!(back.status, ItemStatus::Open);
        assert_eq!(back.assignee.as_deref(), Some(AGENT));
    }

    #[test]
    fn message_that_cannot_be_sent_changes_nothing() {
        let (_folder, work) = work();
        let mail = hand_over(&work, "one", "First");
        let draft = MailDraft::new(AGENT, " ", "");
        assert!(work.hand_over(AGENT, "two", true, &draft).is_err());
        assert_eq!(work.hooked(AGENT).unwrap().unwrap().item, mail);
    }
}

//! The hooks: which agent has which item.

use super::Work;
use super::merge_steps::check_not_handed_in;
use super::messages;
use super::read::{by_id, missing, must_have, stored};
use super::store::problem;
use crate::Result;
use crate::base::error_enum::error_enum;
use crate::records::items::store::now;
use gt_core::work::{Item, ItemStatus, WorkId};
use gt_core::{Problem, mail};
use rusqlite::{Connection, OptionalExtension, params};

/// An item that was not put on a hook.
#[derive(Clone, Debug, thiserror::Error)]
pub enum HookError {
    /// Another agent has the item: on its hook, or assigned and begun.
    #[error(transparent)]
    Held(Problem),
    #[error(transparent)]
    Other(#[from] Problem),
}

error_enum!(HookError: Held, Other);

/// An item on an agent's hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hooked {
    pub agent: String,
    pub item: Item,
    /// Handoff message of the last session, unless it is the item itself.
    pub mail: Option<Item>,
    pub since: String,
}

/// A row of the hooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldItem {
    pub agent: String,
    pub item: WorkId,
    pub since: String,
}

impl Work {
    /// Returns the item on an agent's hook. A failure to read is an error, never an empty hook.
    pub fn hooked(&self, agent: &str) -> Result<Option<Hooked>> {
        let Some(db) = self.open_if_there()? else {
            return Ok(None);
        };
        let hooked = of_agent(&db, agent)?;
        match &hooked {
            Some(hooked) if self.beads.is_some() => {
                self.refresh_for(&hooked.item.id)?;
                of_agent(&db, agent)
            }
            _ => Ok(hooked),
        }
    }

    /// Returns all hooks, sorted by agent.
    pub fn hooks(&self) -> Result<Vec<(String, WorkId)>> {
        let Some(db) = self.open_if_there()? else {
            return Ok(Vec::new());
        };
        let mut query = db
            .prepare("SELECT agent, item FROM hooks ORDER BY agent")
            .map_err(problem)?;
        let rows = query
            .query_map([], |row| Ok((row.get(0)?, row.get::<_, String>(1)?)))
            .map_err(problem)?;
        rows.map(|row| {
            let (agent, item) = row.map_err(problem)?;
            Ok((agent, stored(&item)?))
        })
        .collect()
    }

    /// Returns the items on all hooks with their titles, by agent.
    pub fn hooked_titles(&self) -> Result<Vec<(String, WorkId, String)>> {
        self.refresh(None)?;
        let Some(db) = self.open_if_there()? else {
            return Ok(Vec::new());
        };
        let mut query = db
            .prepare(&format!(
                "SELECT agent, item, iif(type <> '{}' AND {}, title, '')
                 FROM hooks CROSS JOIN items ON id = item",
                mail::KIND,
                super::molecules::IS_WORK
            ))
            .map_err(problem)?;
        let rows = query
            .query_map([], |row| {
                Ok((row.get(0)?, row.get::<_, String>(1)?, row.get(2)?))
            })
            .map_err(problem)?;
        rows.map(|row| {
            let (agent, item, title) = row.map_err(problem)?;
            Ok((agent, stored(&item)?, title))
        })
        .collect()
    }

    /// Returns all hooks with their times, sorted by agent.
    pub fn held(&self) -> Result<Vec<HeldItem>> {
        let Some(db) = self.open_if_there()? else {
            return Ok(Vec::new());
        };
        let mut query = db
            .prepare("SELECT agent, item, since FROM hooks ORDER BY agent")
            .map_err(problem)?;
        let rows = query
            .query_map([], |row| {
                Ok((row.get(0)?, row.get::<_, String>(1)?, row.get(2)?))
            })
            .map_err(problem)?;
        rows.map(|row| {
            let (agent, item, since) = row.map_err(problem)?;
            let item = stored(&item)?;
            Ok(HeldItem { agent, item, since })
        })
        .collect()
    }

    /// Returns the agent on whose hook an item is.
    pub fn holder(&self, id: &WorkId) -> Result<Option<String>> {
        match self.open_if_there()? {
            Some(db) => holder(&db, id),
            None => Ok(None),
        }
    }

    /// Puts an item on an agent's hook. Idempotent for the same item. A handoff message shares the
    /// hook with work, whichever came first.
    pub fn hook(&self, agent: &str, id: &WorkId) -> Result<Hooked, HookError> {
        self.refresh_for(id)?;
        self.change_or(|db| {
            let present = check_free(db, agent, id)?;
            if let Some(present) = present.as_ref().filter(|present| present.holds(id)) {
                return Ok(present.clone());
            }
            let hooked = || {
                let hooked = of_agent(db, agent)?;
                hooked.ok_or_else(|| Problem::failed("the hook was not written"))
            };
            if messages::is_note(db, id)? {
                mark(db, agent, id)?;
                attach_handoff_message(db, agent, id)?;
                return Ok(hooked()?);
            }
            if let Some(earlier) = present.and_then(|present| present.mail) {
                messages::close(db, &earlier.id, SUPERSEDED)?;
            }
            db.execute(
                "INSERT INTO hooks (agent, item, since) VALUES (?1, ?2, ?3)
                 ON CONFLICT (agent) DO UPDATE SET letter = item, item = ?2, since = ?3",
                params![agent, id.as_str(), self.clock.text()],
            )
            .map_err(problem)?;
            mark(db, agent, id)?;
            Ok(hooked()?)
        })
    }

    /// Fails if [`hook`](Self::hook) would fail, and changes nothing.
    pub fn check_hook(&self, agent: &str, id: &WorkId) -> Result<(), HookError> {
        self.refresh_for(id)?;
        match self.open_if_there()? {
            Some(db) => check_free(&db, agent, id).map(drop),
            None => Err(missing(id).into()),
        }
    }

    /// Fails if the item is on no hook because it was submitted.
    pub(crate) fn check_not_handed_in(&self, id: &WorkId) -> Result<()> {
        match self.open_if_there()? {
            Some(db) if holder(&db, id)?.is_none() => check_not_handed_in(&db, id),
            _ => Ok(()),
        }
    }

    /// Empties an agent's hook: the item is open again, unless it was closed meanwhile. Returns its
    /// new state.
    pub fn unhook(&self, agent: &str) -> Result<Option<Hooked>> {
        // The refresh comes first, because the item may have been closed in beads.
        let hooked = match self.open_if_there()? {
            Some(db) => of_agent(&db, agent)?,
            None => return Ok(None),
        };
        if let Some(hooked) = hooked {
            self.refresh_for(&hooked.item.id)?;
        }
        self.change(|db| release_all(db, agent))
    }

    /// Rolls back [`hook`](Self::hook): a handoff message that shared the hook gets its place back.
    pub fn take_back(&self, id: &WorkId) -> Result<Option<Hooked>> {
        self.refresh_for(id)?;
        self.change(|db| {
            let Some(agent) = holder(db, id)? else {
                return Ok(None);
            };
            let present = of_agent(db, &agent)?;
            db.execute(
                "UPDATE hooks SET letter = NULL WHERE item = ?1",
                [id.as_str()],
            )
            .map_err(problem)?;
            release(db, id)?;
            // If only the message is taken back, the work beside it stays on the hook.
            let freed = present.as_ref().filter(|present| present.item.id == *id);
            if let Some((present, mail)) = freed.and_then(|it| Some((it, it.mail.as_ref()?))) {
                db.execute(
                    "INSERT INTO hooks (agent, item, since) VALUES (?1, ?2, ?3)",
                    params![agent, mail.id.as_str(), present.since],
                )
                .map_err(problem)?;
            }
            Ok(present)
        })
    }

    /// Takes an item off the hook it is on; it may be a handoff message that shares the hook.
    pub fn unhook_item(&self, id: &WorkId) -> Result<Option<Hooked>> {
        self.refresh_for(id)?;
        self.change(|db| {
            must_have(db, id)?;
            let Some(agent) = holder(db, id)? else {
                return Ok(None);
            };
            let present = of_agent(db, &agent)?;
            release(db, id)?;
            let item = must_have(db, id)?;
            Ok(present.map(|present| Hooked {
                mail: present.mail.filter(|mail| mail.id != *id),
                item,
                ..present
            }))
        })
    }
}

impl Hooked {
    /// Returns the work item; `None` if only a message is on the hook.
    pub(crate) fn unit(&self) -> Option<WorkId> {
        let is_work = self.item.kind != mail::KIND;
        is_work.then(|| self.item.id.clone())
    }

    /// Returns whether the item is on the hook, as work or as a message beside it.
    pub(crate) fn holds(&self, id: &WorkId) -> bool {
        let mail = self.mail.as_ref();
        self.item.id == *id || mail.is_some_and(|mail| mail.id == *id)
    }
}

const SUPERSEDED: &str = "superseded";

/// Puts a handoff message, whose status is already `hooked`, where the next session of the agent
/// finds it: on the empty hook, or beside the work there. Returns that work. Closes earlier handoff
/// messages.
pub(super) fn attach_handoff_message(
    db: &Connection,
    agent: &str,
    id: &WorkId,
) -> Result<Option<WorkId>> {
    let present = of_agent(db, agent)?;
    let work = present.as_ref().and_then(Hooked::unit);
    if present.as_ref().is_some_and(|present| present.holds(id)) {
        return Ok(work);
    }
    let Some(present) = present else {
        db.execute(
            "INSERT INTO hooks (agent, item, since) VALUES (?1, ?2, ?3)",
            params![agent, id.as_str(), now(db)?],
        )
        .map_err(problem)?;
        return Ok(work);
    };
    if let Some(earlier) = &present.mail {
        messages::close(db, &earlier.id, SUPERSEDED)?;
    }
    let statement = if messages::is_note(db, &present.item.id)? {
        messages::close(db, &present.item.id, SUPERSEDED)?;
        "UPDATE hooks SET item = ?2, letter = NULL WHERE agent = ?1"
    } else {
        "UPDATE hooks SET letter = ?2 WHERE agent = ?1"
    };
    db.execute(statement, params![agent, id.as_str()])
        .map_err(problem)?;
    Ok(work)
}

/// Returns the handoff message on an agent's hook.
pub(super) fn note_of(db: &Connection, agent: &str) -> Result<Option<Item>> {
    let Some(present) = of_agent(db, agent)? else {
        return Ok(None);
    };
    match present.mail {
        Some(mail) => Ok(Some(mail)),
        None if messages::is_note(db, &present.item.id)? => Ok(Some(present.item)),
        None => Ok(None),
    }
}

/// Refuses an item that cannot be put on an agent's hook. Returns the present content: the item
/// itself, a handoff message that will share the hook, or the work that a message will join.
fn check_free(db: &Connection, agent: &str, id: &WorkId) -> Result<Option<Hooked>, HookError> {
    let item = must_have(db, id)?;
    let present = of_agent(db, agent)?;
    if let Some(present) = &present {
        if present.holds(id) {
            return Ok(Some(present.clone()));
        }
        // Handoff messages share the hook with work.
        if !messages::is_note(db, &present.item.id)? && !messages::is_note(db, id)? {
            return Err(
                Problem::conflict(format!("{agent} has {} on its hook", present.item.id))
                    .hint(format!("`gt unhook --agent {agent}` takes it off"))
                    .into(),
            );
        }
    }
    if let Some(holder) = holder(db, id)? {
        return Err(HookError::Held(on_hook(id, &holder)));
    }
    // Another process may have submitted it since the caller read it.
    check_not_handed_in(db, id)?;
    let other = item.assignee.as_deref().filter(|other| *other != agent);
    if let (ItemStatus::InProgress, Some(other)) = (item.status, other) {
        let problem = Problem::conflict(format!("{id} is assigned to {other}"));
        return Err(HookError::Held(
            problem.hint(format!("`gt work update {id} --status open` frees it")),
        ));
    }
    if matches!(item.status, ItemStatus::Closed | ItemStatus::Pinned) {
        let problem = Problem::conflict(format!("{id} is {}", item.status.as_str()));
        let problem = problem.hint(match item.status {
            ItemStatus::Closed => format!("`gt work reopen {id}` opens it again"),
            _ => format!("`gt work update {id} --status open` makes it work that can be done"),
        });
        return Err(problem.into());
    }
    messages::check_is_for(db, id, agent)?;
    Ok(present)
}

/// Marks an item as being on an agent's hook.
fn mark(db: &Connection, agent: &str, id: &WorkId) -> Result<()> {
    db.execute(
        "UPDATE items SET status = 'hooked', assignee = ?2, updated_at = ?3 WHERE id = ?1",
        params![id.as_str(), agent, now(db)?],
    )
    .map(drop)
    .map_err(problem)
}

/// Empties an agent's hook, and returns its former content with the new state of the item.
fn release_all(db: &Connection, agent: &str) -> Result<Option<Hooked>> {
    let Some(mut present) = of_agent(db, agent)? else {
        return Ok(None);
    };
    release(db, &present.item.id)?;
    present.item = must_have(db, &present.item.id)?;
    Ok(Some(present))
}

/// Takes a message that is alone on the hook off it, because a message is not work. A work item
/// stays.
pub(super) fn release_mail(db: &Connection, agent: &str) -> Result<()> {
    match of_agent(db, agent)? {
        Some(present) if present.unit().is_none() => release(db, &present.item.id),
        _ => Ok(()),
    }
}

/// Takes an item off its hook and reopens it. A handoff message is closed instead; any other
/// message is assigned to its recipient again.
fn release(db: &Connection, id: &WorkId) -> Result<()> {
    take_off(db, id)?;
    if messages::is_note(db, id)? {
        return messages::close(db, id, TAKEN_OFF);
    }
    db.execute(
        "UPDATE items SET status = 'open', updated_at = ?2,
         assignee = (SELECT recipient FROM letters WHERE item = items.id)
         WHERE id = ?1 AND status IN ('hooked', 'in_progress')",
        params![id.as_str(), now(db)?],
    )
    .map(drop)
    .map_err(problem)
}

const TAKEN_OFF: &str = "off the hook";

/// Takes an item off the hook it is on, closes the handoff message beside it, and changes nothing
/// else.
pub(super) fn take_off(db: &Connection, id: &WorkId) -> Result<()> {
    let mail: Option<Option<String>> = db
        .query_row(
            "DELETE FROM hooks WHERE item = ?1 RETURNING letter",
            [id.as_str()],
            |row| row.get(0),
        )
        .optional()
        .map_err(problem)?;
    if let Some(mail) = mail.flatten() {
        messages::close(db, &mail.parse()?, TAKEN_OFF)?;
    }
    db.execute(
        "UPDATE hooks SET letter = NULL WHERE letter = ?1",
        [id.as_str()],
    )
    .map(drop)
    .map_err(problem)
}

/// Returns the error for an item that another agent has on its hook.
pub(super) fn on_hook(id: &WorkId, holder: &str) -> Problem {
    Problem::conflict(format!("{id} is on the hook of {holder}"))
        .hint(format!("`gt unhook {id}` takes it off"))
}

/// Returns the agent on whose hook an item is, regardless of its status.
pub(super) fn holder(db: &Connection, id: &WorkId) -> Result<Option<String>> {
    db.query_row(
        "SELECT agent FROM hooks WHERE item = ?1 OR letter = ?1",
        [id.as_str()],
        |row| row.get(0),
    )
    .optional()
    .map_err(problem)
}

fn of_agent(db: &Connection, agent: &str) -> Result<Option<Hooked>> {
    let mut query = db
        .prepare_cached("SELECT item, letter, since FROM hooks WHERE agent = ?1")
        .map_err(problem)?;
    let found: Option<(String, Option<String>, String)> = query
        .query_row([agent], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()
        .map_err(problem)?;
    let Some((id, mail, since)) = found else {
        return Ok(None);
    };
    let mail = match mail {
        Some(mail) => by_id(db, &stored(&mail)?)?,
        None => None,
    };
    let item = by_id(db, &stored(&id)?)?;
    Ok(item.map(|item| Hooked {
        agent: agent.to_owned(),
        item,
        mail,
        since,
    }))
}

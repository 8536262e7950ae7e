//! Turns lines of the journal into rows of the database, in batches.

use super::{IndexError, milliseconds, note_daily, note_earlier_work, slugs};
use crate::Result;
use crate::records::sessions::journal::{Damage, JournalReader};
use gt_core::Problem;
use gt_core::record::{Outcome, Record, SessionStatus};
use gt_core::usage::Usage;
use rusqlite::{CachedStatement, Connection, params};
use std::collections::{BTreeSet, HashMap};

/// Number of sessions that are merged in memory before they are written.
const PORTION: usize = 4_000;

/// Whether rows go into a new database or an existing one.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Fill {
    Anew,
    On,
}

/// The content of a batch of lines about one session.
pub(super) struct SessionLines {
    /// Boxed because it is large and often moved.
    session: Box<Record>,
    text: String,
}

impl SessionLines {
    pub(super) fn into_text(self) -> String {
        self.text
    }
}

/// Reads the journal from `start` on and passes its rows to `give` in batches. `give` returns text
/// buffers that it no longer needs: there are millions, and reusing one is cheaper than freeing and
/// allocating it. Returns the position at which it ended.
pub(super) fn read<E: From<Problem>>(
    reading: JournalReader,
    start: u64,
    mut give: impl FnMut(Vec<SessionLines>) -> Result<Vec<String>, E>,
    damaged: &mut dyn FnMut(Damage),
) -> Result<u64, E> {
    let mut portion: HashMap<String, Box<Record>> = HashMap::with_capacity(PORTION);
    let mut spare = Vec::new();
    let end = reading.for_each_from(
        start,
        |record| -> Result<(), E> {
            match portion.get_mut(&record.id) {
                Some(known) => known.merge(record),
                None => {
                    portion.insert(record.id.clone(), Box::new(record));
                }
            }
            if portion.len() >= PORTION {
                let full = rows(&mut portion, &mut spare)?;
                spare.extend(give(full)?);
            }
            Ok(())
        },
        damaged,
    )?;
    give(rows(&mut portion, &mut spare)?)?;
    Ok(end)
}

fn rows(
    portion: &mut HashMap<String, Box<Record>>,
    spare: &mut Vec<String>,
) -> Result<Vec<SessionLines>> {
    // Ids sort by time, so in their order the B-tree only grows at its end.
    let mut sessions: Vec<Box<Record>> = portion.drain().map(|(_, session)| session).collect();
    sessions.sort_unstable_by(|a, b| a.id.cmp(&b.id));
    let rows = sessions.into_iter().map(|session| {
        let mut text = match spare.pop() {
            Some(text) => text.into_bytes(),
            None => Vec::with_capacity(1024),
        };
        text.clear();
        serde_json::to_writer(&mut text, &session)
            .map_err(|error| Problem::failed("cannot write a session").caused_by(error))?;
        let text = String::from_utf8(text).unwrap_or_default();
        Ok(SessionLines { session, text })
    });
    rows.collect()
}

/// Writes rows. Fields that a row does not set keep their value in the database
/// ([`Record::merge`]).
///
/// A row is found by its id. `last_insert_rowid` is not reliable: a rollback does not reset it, and
/// a number is reused after a DELETE.
pub(super) fn write(db: &Connection, rows: &[SessionLines], fill: Fill) -> Result<(), IndexError> {
    let mut insert = db.prepare_cached(
        "INSERT INTO lives (id, agent, rig, role, harness, status, outcome, work_unit, chain_id,
         started, ended, tokens, cost, commits, model, unpriced)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)
         ON CONFLICT (id) DO NOTHING",
    )?;
    let mut find = db.prepare_cached(
        "SELECT lives.rowid, record FROM lives LEFT JOIN records ON life = lives.rowid
         WHERE id = ?1",
    )?;
    let mut update = db.prepare_cached(
        "UPDATE lives SET agent = ?2, rig = ?3, role = ?4, harness = ?5, status = ?6,
         outcome = ?7, work_unit = ?8, chain_id = ?9, started = ?10, ended = ?11, tokens = ?12,
         cost = ?13, commits = ?14, model = ?15, unpriced = ?16
         WHERE id = ?1",
    )?;
    let mut first = db.prepare_cached(
        "INSERT INTO records (life, record) VALUES (?1, ?2)
         ON CONFLICT (life) DO UPDATE SET record = ?2",
    )?;
    let mut back = db.prepare_cached("DELETE FROM archived WHERE id = ?1")?;
    let mut undivided = db.prepare_cached("DELETE FROM daily WHERE id = ?1")?;
    let mut more = db.prepare_cached("UPDATE records SET record = ?2 WHERE life = ?1")?;
    let mut agents = BTreeSet::new();
    for SessionLines { session, text } in rows {
        let is_new = execute(&mut insert, session)? == 1;
        if is_new {
            // This statement has inserted the row, so the number is valid.
            first.execute(params![db.last_insert_rowid(), text])?;
            note_earlier_work(db, session)?;
            if fill == Fill::On {
                // The session may have been archived and is now in the journal again.
                back.execute([&session.id])?;
                undivided.execute([&session.id])?;
            }
            note_daily(db, session, session.daily.iter().flatten())?;
        } else {
            let (row, known): (i64, Option<String>) =
                find.query_row([&session.id], |row| Ok((row.get(0)?, row.get(1)?)))?;
            // The error below has the index rebuilt.
            let known = known.and_then(|text| serde_json::from_str(&text).ok());
            let Some(mut merged): Option<Record> = known else {
                let reason = format!("the session {} has no record", session.id);
                return Err(IndexError::Damaged(reason));
            };
            agents.extend(merged.agent.clone().filter(|_| fill == Fill::On));
            merged.merge(Record::clone(session));
            execute(&mut update, &merged)?;
            let text = serde_json::to_string(&merged)
                .map_err(|error| Problem::failed("cannot write a session").caused_by(error))?;
            more.execute(params![row, text])?;
            note_earlier_work(db, &merged)?;
            if session.daily.is_some() {
                undivided.execute([&session.id])?;
                note_daily(db, &merged, merged.daily.iter().flatten())?;
            }
        }
        if fill == Fill::On {
            agents.extend(session.agent.clone());
        }
    }
    slugs::update(db, &agents)?;
    Ok(())
}

/// Executes a statement with the columns of a session.
fn execute(statement: &mut CachedStatement<'_>, session: &Record) -> rusqlite::Result<usize> {
    let usage = session.usage.as_ref();
    statement.execute(params![
        session.id,
        session.agent,
        session.rig,
        session.role,
        session.harness,
        session.status.map(SessionStatus::as_str),
        session.outcome.map(Outcome::as_str),
        session.work_unit,
        session.chain_id,
        session.started_at.as_deref().and_then(milliseconds),
        session.ended_at.as_deref().and_then(milliseconds),
        usage.map(Usage::tokens),
        usage.and_then(|usage| usage.cost_usd),
        session.commits.as_ref().map(Vec::len),
        usage.and_then(|usage| usage.model.as_deref()),
        usage.map(|usage| usage.unpriced_tokens),
    ])
}

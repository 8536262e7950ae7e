//! Questions about lives, answered from the index.

use super::archive::Archive;
use super::index::{self, Broken, Index, milliseconds};
use super::{hash, not_found};
use crate::Result;
use gt_core::Problem;
use gt_core::record::Record;
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension};
use std::collections::{BTreeMap, HashSet};

/// What is asked for; everything that is set must fit. Times are RFC 3339, in UTC.
#[derive(Clone, Debug, Default)]
pub struct Query {
    pub agent: Option<String>,
    pub rig: Option<String>,
    pub role: Option<String>,
    pub work: Option<String>,
    pub chain: Option<String>,
    pub outcome: Option<String>,
    pub status: Option<String>,
    pub harness: Option<String>,
    pub since: Option<String>,
    pub until: Option<String>,
    pub limit: Option<usize>,
}

/// The lives that fit, the newest first.
pub(super) fn find(index: &Index, query: &Query) -> Result<Vec<Record>, Broken> {
    let (filter, values) = conditions(query);
    let limit = query
        .limit
        .map_or(-1, |limit| i64::try_from(limit).unwrap_or(-1));
    let text = format!(
        "SELECT record FROM lives JOIN records ON life = lives.rowid {filter}
         ORDER BY started DESC, id DESC LIMIT {limit}"
    );
    records(index.db(), &text, values)
}

/// What is asked for in SQL, with the values for its places.
pub(super) fn conditions(query: &Query) -> (String, Vec<Value>) {
    let fields = [
        ("agent = ", &query.agent),
        ("rig = ", &query.rig),
        ("role = ", &query.role),
        ("work_unit = ", &query.work),
        ("chain_id = ", &query.chain),
        ("outcome = ", &query.outcome),
        ("status = ", &query.status),
        ("harness = ", &query.harness),
    ];
    let mut set: Vec<(&str, Value)> = fields
        .iter()
        .filter_map(|(name, value)| Some((*name, Value::from(value.as_ref()?.clone()))))
        .collect();
    for (name, time) in [("started >= ", &query.since), ("started < ", &query.until)] {
        let at = time.as_deref().and_then(milliseconds);
        set.extend(at.map(|at| (name, Value::from(at))));
    }
    let conditions: Vec<String> = set
        .iter()
        .zip(1..)
        .map(|((name, _), place)| format!("{name}?{place}"))
        .collect();
    let filter = match conditions.as_slice() {
        [] => String::new(),
        conditions => format!("WHERE {}", conditions.join(" AND ")),
    };
    (filter, set.into_iter().map(|(_, value)| value).collect())
}

/// The life of this very id.
pub(super) fn by_id(index: &Index, id: &str) -> Result<Option<Record>, Broken> {
    Ok(index::by_id(index.db(), id)?)
}

/// The one life whose id begins so.
pub(super) fn by_prefix(index: &Index, archive: &Archive, prefix: &str) -> Result<Record, Broken> {
    let prefix = prefix.to_ascii_lowercase();
    if prefix.is_empty() {
        return Err(not_found(&prefix).into());
    }
    if let Some(life) = by_id(index, &prefix)? {
        return Ok(life);
    }
    // A range of the primary key: all that begins so, and nothing after it.
    let mut found = records(
        index.db(),
        "SELECT record FROM lives JOIN records ON life = lives.rowid
         WHERE id >= ?1 AND id < ?1 || 'g' ORDER BY id LIMIT 2",
        [Value::from(prefix.clone())],
    )?;
    let condition = "id >= ?1 AND id < ?1 || 'g' ORDER BY id LIMIT 2";
    found.extend(archived(index, archive, condition, &prefix)?);
    match <[Record; 1]>::try_from(found) {
        Ok([life]) => Ok(life),
        Err(found) if found.is_empty() => Err(not_found(&prefix).into()),
        Err(_) => Err(
            Problem::usage(format!("{prefix} is the beginning of several lives"))
                .hint("give more of the id")
                .into(),
        ),
    }
}

/// All lives of a chain, the oldest first.
pub(super) fn chain(index: &Index, archive: &Archive, what: &str) -> Result<Vec<Record>, Broken> {
    let of_work = records(
        index.db(),
        "SELECT record FROM lives JOIN records ON life = lives.rowid
         WHERE work_unit = ?1 ORDER BY started DESC, id DESC LIMIT 1",
        [Value::from(what.to_owned())],
    )?;
    let life = match of_work.into_iter().next() {
        Some(life) => life,
        None => {
            let old = archived(
                index,
                archive,
                "work_unit = ?1 ORDER BY id DESC LIMIT 1",
                what,
            )?;
            match old.into_iter().next() {
                Some(life) => life,
                None => by_prefix(index, archive, what)?,
            }
        }
    };
    let chain = life.chain_id.as_deref().unwrap_or(&life.id);
    let mut found = archived(index, archive, "chain_id = ?1", chain)?;
    found.extend(records(
        index.db(),
        "SELECT record FROM lives JOIN records ON life = lives.rowid
         WHERE chain_id = ?1 ORDER BY started, id",
        [Value::from(chain.to_owned())],
    )?);
    found.sort_by(|a, b| a.started_at.cmp(&b.started_at));
    // A life that was taken up by another journal may have no chain.
    Ok(if found.is_empty() { vec![life] } else { found })
}

/// Lives of the archive, by a condition on one value.
fn archived(
    index: &Index,
    archive: &Archive,
    condition: &str,
    value: &str,
) -> Result<Vec<Record>, Broken> {
    let text = format!("SELECT file, id FROM archived WHERE {condition}");
    let mut query = index.db().prepare(&text)?;
    let rows = query.query_map([value], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut files: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for row in rows {
        let (file, id): (String, String) = row?;
        files.entry(file).or_default().push(id);
    }
    let mut lives = Vec::new();
    for (file, ids) in files {
        for life in archive.read(&file, &ids)? {
            lives.extend(serde_json::from_value::<Record>(life).ok());
        }
    }
    Ok(lives)
}

/// A life of the archive by its very id.
pub(super) fn of_archive(
    index: &Index,
    archive: &Archive,
    id: &str,
) -> Result<Option<Record>, Broken> {
    Ok(archived(index, archive, "id = ?1", id)?.into_iter().next())
}

/// The file of the archive that a life is in.
pub(super) fn archived_in(index: &Index, id: &str) -> Result<Option<String>, Broken> {
    let mut query = index
        .db()
        .prepare_cached("SELECT file FROM archived WHERE id = ?1")?;
    Ok(query.query_row([id], |row| row.get(0)).optional()?)
}

/// Hashes of the ids of all lives that are in this file of the archive.
pub(super) fn all_archived_in(index: &Index, file: &str) -> Result<HashSet<u64>, Broken> {
    let mut query = index
        .db()
        .prepare("SELECT id FROM archived WHERE file = ?1")?;
    let ids = query.query_map([file], |row| Ok(hash(&row.get::<_, String>(0)?)))?;
    Ok(ids.collect::<Result<_, _>>()?)
}

/// The lives that ended before that time.
pub(super) fn ended_before(index: &Index, time: &str) -> Result<Vec<Record>, Broken> {
    records(
        index.db(),
        "SELECT record FROM lives JOIN records ON life = lives.rowid
         WHERE status = 'stopped' AND ended < ?1 ORDER BY ended",
        milliseconds(time).map(Value::from),
    )
}

/// Every life, the oldest first.
pub(super) fn each(
    index: &Index,
    mut give: impl FnMut(&Record) -> Result<()>,
) -> Result<(), Broken> {
    let mut query = index.db().prepare(
        "SELECT record FROM lives JOIN records ON life = lives.rowid ORDER BY started, id",
    )?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        let text: String = row.get(0)?;
        let life =
            serde_json::from_str(&text).map_err(|error| Broken::Damaged(error.to_string()))?;
        give(&life)?;
    }
    Ok(())
}

fn records(
    db: &Connection,
    text: &str,
    values: impl IntoIterator<Item = Value>,
) -> Result<Vec<Record>, Broken> {
    let mut query = db.prepare(text)?;
    let rows = query.query_map(rusqlite::params_from_iter(values), |row| {
        row.get::<_, String>(0)
    })?;
    rows.map(|row| {
        let text = row?;
        serde_json::from_str(&text).map_err(|error| Broken::Damaged(error.to_string()))
    })
    .collect()
}

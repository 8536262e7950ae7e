//! Questions about lives, answered from the index.

use super::archive::Archive;
use super::index::{self, Broken, Index, milliseconds};
use super::{hash, not_found};
use crate::Result;
use gt_core::Problem;
use gt_core::record::Record;
use gt_core::usage::Usage;
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension};
use std::collections::{BTreeMap, HashMap, HashSet};

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

/// All sessions that worked on an item, or all of a chain, the oldest first.
pub(super) fn chain(index: &Index, archive: &Archive, what: &str) -> Result<Vec<Record>, Broken> {
    let of_work = all_with(index, archive, "work_unit", what)?;
    if !of_work.is_empty() {
        return Ok(of_work);
    }
    let life = by_prefix(index, archive, what)?;
    let chain = life.chain_id.as_deref().unwrap_or(&life.id);
    let found = all_with(index, archive, "chain_id", chain)?;
    // A life that was taken up by another journal may have no chain.
    Ok(if found.is_empty() { vec![life] } else { found })
}

/// All sessions with this value in a column that journal and archive have, the oldest first.
fn all_with(
    index: &Index,
    archive: &Archive,
    column: &'static str,
    value: &str,
) -> Result<Vec<Record>, Broken> {
    let mut found = archived(index, archive, &format!("{column} = ?1"), value)?;
    let text =
        format!("SELECT record FROM lives JOIN records ON life = lives.rowid WHERE {column} = ?1");
    found.extend(records(index.db(), &text, [Value::from(value.to_owned())])?);
    found.sort_by(|a, b| (&a.started_at, &a.id).cmp(&(&b.started_at, &b.id)));
    Ok(found)
}

/// What the sessions of each of these items took together.
pub(super) fn usage_by_work(
    index: &Index,
    items: &[&str],
) -> Result<HashMap<String, Usage>, Broken> {
    let mut query = index.db().prepare(
        "SELECT work_unit, record -> 'usage' FROM lives JOIN records ON life = lives.rowid
         WHERE work_unit IN (SELECT value FROM json_each(?1)) AND record -> 'usage' IS NOT NULL",
    )?;
    let items = serde_json::json!(items).to_string();
    let rows = query.query_map([items], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut sums: HashMap<String, Usage> = HashMap::new();
    for row in rows {
        let (item, text): (String, String) = row?;
        let used: Usage =
            serde_json::from_str(&text).map_err(|error| Broken::Damaged(error.to_string()))?;
        *sums.entry(item).or_default() += &used;
    }
    Ok(sums)
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
            let life = serde_json::from_value::<Record>(life);
            lives.extend(life.ok().map(Record::without_cleared));
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
        give(&life(&text)?)?;
    }
    Ok(())
}

/// A record as the index holds it.
fn life(text: &str) -> Result<Record, Broken> {
    serde_json::from_str(text)
        .map(Record::without_cleared)
        .map_err(|error| Broken::Damaged(error.to_string()))
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
        life(&text)
    })
    .collect()
}

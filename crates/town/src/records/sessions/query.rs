//! Queries about sessions, answered from the index.

use super::archive::Archive;
use super::index::{self, Index, IndexError, milliseconds};
use super::{hash, not_found};
use crate::Result;
use crate::base::or_log::OrLog;
use gt_core::Problem;
use gt_core::record::{EarlierWork, Outcome, Record, SessionStatus};
use gt_core::usage::Usage;
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Conditions that a session must meet; unset ones match everything. Times are RFC 3339, in UTC.
#[derive(Clone, Debug, Default)]
pub struct SessionQuery {
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

/// Condition on `lives`: sessions that worked on the item in the parameter `?`.
const WORKED_ON: &str = "lives.rowid IN (SELECT rowid FROM lives WHERE work_unit = ?
     UNION ALL SELECT lives.rowid FROM earlier_work JOIN lives USING (id)
     WHERE earlier_work.work_unit = ?)";
/// Condition on `archived`: sessions that worked on the item in `?1`.
const ARCHIVED_WORKED_ON: &str = "id IN (SELECT id FROM archived WHERE work_unit = ?1
     UNION ALL SELECT id FROM earlier_work WHERE work_unit = ?1)";

impl SessionQuery {
    /// Returns whether a session matches. For archived sessions, whose fields are in no table.
    fn fits(&self, session: &Record) -> bool {
        let time = |time: &Option<String>| time.as_deref().and_then(milliseconds);
        let began = time(&session.started_at);
        let is = |wanted: &Option<String>, value: Option<&str>| {
            wanted.is_none() || wanted.as_deref() == value
        };
        is(&self.agent, session.agent.as_deref())
            && is(&self.rig, session.rig.as_deref())
            && is(&self.role, session.role.as_deref())
            && is(&self.chain, session.chain_id.as_deref())
            && is(&self.outcome, session.outcome.map(Outcome::as_str))
            && is(&self.status, session.status.map(SessionStatus::as_str))
            && is(&self.harness, session.harness.as_deref())
            && time(&self.since).is_none_or(|since| began.is_some_and(|at| at >= since))
            && time(&self.until).is_none_or(|until| began.is_some_and(|at| at < until))
    }
}

/// Returns the sessions that match, the newest first. A query for an item also searches the
/// archive, as its chain does, unless the newer sessions already reach the limit.
pub(super) fn find_all(
    index: &Index,
    archive: &Archive,
    query: &SessionQuery,
) -> Result<Vec<Record>, IndexError> {
    let mut found = find(index, query)?;
    let limit = query.limit.unwrap_or(usize::MAX);
    if let Some(item) = query.work.as_ref().filter(|_| found.len() < limit) {
        let mut old = archived(index, archive, ARCHIVED_WORKED_ON, item)?;
        old.retain(|session| query.fits(session));
        if !old.is_empty() {
            found.extend(old);
            found.sort_by(|a, b| (&b.started_at, &b.id).cmp(&(&a.started_at, &a.id)));
            found.truncate(limit);
        }
    }
    Ok(found)
}

/// Returns the ids of running sessions.
pub(super) fn running_ids(index: &Index) -> Result<Vec<String>, IndexError> {
    let query = "SELECT id FROM lives WHERE status = 'running'";
    let mut query = index.db().prepare_cached(query)?;
    let ids = query.query_map([], |row| row.get(0))?;
    Ok(ids.collect::<rusqlite::Result<_>>()?)
}

/// Returns the sessions of the journal that match, the newest first.
pub(super) fn find(index: &Index, query: &SessionQuery) -> Result<Vec<Record>, IndexError> {
    let (filter, values) = conditions(query);
    let limit = query
        .limit
        .map_or(-1, |limit| i64::try_from(limit).unwrap_or(-1));
    let text = format!(
        "SELECT id, record FROM lives LEFT JOIN records ON life = lives.rowid {filter}
         ORDER BY started DESC, id DESC LIMIT {limit}"
    );
    records(index.db(), &text, values)
}

/// Returns the conditions as SQL, with the values of its parameters.
pub(super) fn conditions(query: &SessionQuery) -> (String, Vec<Value>) {
    let fields = [
        ("agent = ?", &query.agent),
        ("rig = ?", &query.rig),
        ("role = ?", &query.role),
        (WORKED_ON, &query.work),
        ("chain_id = ?", &query.chain),
        ("outcome = ?", &query.outcome),
        ("status = ?", &query.status),
        ("harness = ?", &query.harness),
    ];
    let mut set: Vec<(&str, Value)> = fields
        .iter()
        .filter_map(|(name, value)| Some((*name, Value::from(value.as_ref()?.clone()))))
        .collect();
    for (name, time) in [
        ("started >= ?", &query.since),
        ("started < ?", &query.until),
    ] {
        let at = time.as_deref().and_then(milliseconds);
        set.extend(at.map(|at| (name, Value::from(at))));
    }
    let conditions: Vec<String> = set
        .iter()
        .zip(1..)
        .map(|((condition, _), place)| {
            let condition = condition.replace('?', &format!("?{place}"));
            // An item has few sessions, so the index of another column must not be used.
            match query.work.is_some() && !condition.starts_with("lives.") {
                true => format!("+{condition}"),
                false => condition,
            }
        })
        .collect();
    let filter = match conditions.as_slice() {
        [] => String::new(),
        conditions => format!("WHERE {}", conditions.join(" AND ")),
    };
    (filter, set.into_iter().map(|(_, value)| value).collect())
}

/// Returns the session with exactly this id.
pub(super) fn by_id(index: &Index, id: &str) -> Result<Option<Record>, IndexError> {
    index::by_id(index.db(), id)
}

/// Returns the one session whose id begins with `prefix`, if there is one.
pub(super) fn by_prefix(
    index: &Index,
    archive: &Archive,
    prefix: &str,
) -> Result<Option<Record>, IndexError> {
    let prefix = prefix.to_ascii_lowercase();
    if prefix.is_empty() {
        return Ok(None);
    }
    if let Some(session) = by_id(index, &prefix)? {
        return Ok(Some(session));
    }
    // A range of the primary key: ids consist of hexadecimal digits, so `g` follows all of them.
    let mut found = records(
        index.db(),
        "SELECT id, record FROM lives LEFT JOIN records ON life = lives.rowid
         WHERE id >= ?1 AND id < ?1 || 'g' ORDER BY id LIMIT 2",
        [Value::from(prefix.clone())],
    )?;
    let condition = "id >= ?1 AND id < ?1 || 'g' ORDER BY id LIMIT 2";
    found.extend(archived(index, archive, condition, &prefix)?);
    match <[Record; 1]>::try_from(found) {
        Ok([session]) => Ok(Some(session)),
        Err(found) if found.is_empty() => Ok(None),
        Err(_) => Err(
            Problem::usage(format!("{prefix} is a prefix of several sessions"))
                .hint("give more of the id")
                .into(),
        ),
    }
}

/// Sessions that belong together.
#[derive(Clone, Debug, Default)]
pub struct Chain {
    /// The oldest first.
    pub sessions: Vec<Record>,
    /// The item, if these are its sessions; each counts with its [share](Record::share_of).
    pub item: Option<String>,
    /// Whether older sessions were left out.
    pub is_partial: bool,
}

/// Returns the sessions that worked on an item, or those of a chain, the oldest first: of many, the
/// newest.
pub(super) fn chain(
    index: &Index,
    archive: &Archive,
    what: &str,
    limit: usize,
) -> Result<Chain, IndexError> {
    let query = SessionQuery {
        work: Some(what.to_owned()),
        limit: Some(limit.saturating_add(1)),
        ..SessionQuery::default()
    };
    let mut sessions = find_all(index, archive, &query)?;
    if !sessions.is_empty() {
        let is_partial = sessions.len() > limit;
        sessions.truncate(limit);
        sessions.reverse();
        return Ok(Chain {
            sessions,
            item: query.work,
            is_partial,
        });
    }
    let session = by_prefix(index, archive, what)?;
    let session = session.ok_or_else(|| not_found(&what.to_ascii_lowercase()))?;
    let chain = session.chain_id.as_deref().unwrap_or(&session.id);
    let newest = SessionQuery {
        chain: Some(chain.to_owned()),
        limit: query.limit,
        ..SessionQuery::default()
    };
    let mut sessions = find(index, &newest)?;
    if sessions.len() <= limit {
        sessions.extend(archived(index, archive, "chain_id = ?1", chain)?);
    }
    sessions.sort_by(|a, b| (&a.started_at, &a.id).cmp(&(&b.started_at, &b.id)));
    let is_partial = sessions.len() > limit;
    sessions.drain(..sessions.len().saturating_sub(limit));
    // A session that was taken over by another journal may have no chain.
    if sessions.is_empty() {
        sessions.push(session);
    }
    Ok(Chain {
        sessions,
        item: None,
        is_partial,
    })
}

/// Returns the total usage of each of these items, over all its sessions.
pub(super) fn usage_by_work(
    index: &Index,
    items: &[&str],
) -> Result<HashMap<String, Usage>, IndexError> {
    let mut query = index.db().prepare(
        "WITH items (item) AS (SELECT value FROM json_each(?1)),
         worked (item, id) AS (
             SELECT item, id FROM items JOIN lives ON work_unit = item
             UNION SELECT item, id FROM items JOIN archived ON work_unit = item
             UNION SELECT item, id FROM items JOIN earlier_work ON work_unit = item)
         SELECT item, work_unit, record -> 'usage', record -> 'earlier_work', id, record IS NULL
         FROM worked JOIN lives USING (id) LEFT JOIN records ON life = lives.rowid
         UNION ALL SELECT item, work_unit, taken -> 'usage', taken -> 'earlier_work', id, 0
         FROM worked JOIN archived USING (id)",
    )?;
    let items = serde_json::json!(items).to_string();
    let mut rows = query.query([items])?;
    let mut sums: HashMap<String, Usage> = HashMap::new();
    while let Some(row) = rows.next()? {
        if row.get(5)? {
            // The index is damaged, as for every other query, and is made anew.
            index::record(row.get(4)?, None)?;
        }
        let session = Record {
            work_unit: row.get(1)?,
            usage: parsed::<Usage>(row.get(2)?)?,
            earlier_work: parsed::<Vec<EarlierWork>>(row.get(3)?)?,
            ..Record::default()
        };
        let item: String = row.get(0)?;
        if let Some(used) = session.share_of(&item).usage {
            *sums.entry(item).or_default() += &used;
        }
    }
    Ok(sums)
}

/// Returns the ended sessions of the journal that had several items and ended at that millisecond
/// or later.
pub(super) fn with_several_items(index: &Index, since: i64) -> Result<Vec<Record>, IndexError> {
    records(
        index.db(),
        "SELECT id, record FROM lives LEFT JOIN records ON life = lives.rowid
         WHERE id IN (SELECT id FROM earlier_work) AND status IS NOT 'running'
             AND coalesce(ended, started) >= ?1",
        [Value::from(since)],
    )
}

/// Returns the archived sessions with usage since that day, with only their items and their usage.
pub(super) fn usage_of_archived(index: &Index, since: &str) -> Result<Vec<Record>, IndexError> {
    let mut query = index.db().prepare(
        "SELECT work_unit, taken -> 'usage', taken -> 'earlier_work', sum(tokens), sum(unpriced),
             sum(cost), max(model)
         FROM archived JOIN daily USING (id) GROUP BY id HAVING max(day) >= ?1",
    )?;
    let mut rows = query.query([since])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let taken = parsed::<Option<Usage>>(row.get(1)?)?.flatten();
        // Sessions without an item have no other record of their usage in the index.
        let summed = Usage {
            input_tokens: row.get(3)?,
            unpriced_tokens: row.get::<_, Option<u64>>(4)?.unwrap_or_default(),
            cost_usd: row.get(5)?,
            model: row.get(6)?,
            ..Usage::default()
        };
        found.push(Record {
            work_unit: row.get(0)?,
            usage: Some(taken.unwrap_or(summed)),
            earlier_work: parsed::<Option<Vec<EarlierWork>>>(row.get(2)?)?.flatten(),
            ..Record::default()
        });
    }
    Ok(found)
}

/// Parses a part of a record, as the database stores it.
fn parsed<T: serde::de::DeserializeOwned>(text: Option<String>) -> Result<Option<T>, IndexError> {
    let value = text.as_deref().map_or(Ok(None), serde_json::from_str);
    value.map_err(|error| IndexError::Damaged(error.to_string()))
}

/// Returns archived sessions, by a condition on one value.
fn archived(
    index: &Index,
    archive: &Archive,
    condition: &str,
    value: &str,
) -> Result<Vec<Record>, IndexError> {
    let text = format!("SELECT file, id FROM archived WHERE {condition}");
    let mut query = index.db().prepare(&text)?;
    let rows = query.query_map([value], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut files: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for row in rows {
        let (file, id): (String, String) = row?;
        files.entry(file).or_default().push(id);
    }
    let mut sessions = Vec::new();
    for (file, ids) in files {
        for session in archive.read(&file, &ids)? {
            let session = serde_json::from_value::<Record>(session);
            let session = session.or_warn(format_args!("a session in {file} cannot be read"));
            sessions.extend(session.map(Record::without_cleared));
        }
    }
    Ok(sessions)
}

/// Returns the archived session with exactly this id.
pub(super) fn of_archive(
    index: &Index,
    archive: &Archive,
    id: &str,
) -> Result<Option<Record>, IndexError> {
    Ok(archived(index, archive, "id = ?1", id)?.into_iter().next())
}

/// Returns the file of the archive that a session is in.
pub(super) fn archived_in(index: &Index, id: &str) -> Result<Option<String>, IndexError> {
    let mut query = index
        .db()
        .prepare_cached("SELECT file FROM archived WHERE id = ?1")?;
    Ok(query.query_row([id], |row| row.get(0)).optional()?)
}

/// Returns hashes of the ids of all sessions in this file of the archive.
pub(super) fn all_archived_in(index: &Index, file: &str) -> Result<HashSet<u64>, IndexError> {
    let mut query = index
        .db()
        .prepare("SELECT id FROM archived WHERE file = ?1")?;
    let ids = query.query_map([file], |row| Ok(hash(&row.get::<_, String>(0)?)))?;
    Ok(ids.collect::<Result<_, _>>()?)
}

/// The sessions of the journal that ended in one month, in UTC.
#[derive(Debug)]
pub(super) struct EndedMonth {
    /// Such as `2026-01`.
    month: String,
    /// The milliseconds of the first and of the last end.
    first: i64,
    last: i64,
    pub(super) sessions: usize,
}

impl EndedMonth {
    /// Returns the file of the archive.
    pub(super) fn file(&self) -> String {
        Archive::file_of(&self.month)
    }
}

/// Returns the months in which sessions ended before `time`, with only those sessions.
pub(super) fn months_ended_before(
    index: &Index,
    time: &str,
) -> Result<Vec<EndedMonth>, IndexError> {
    let mut query = index.db().prepare(
        "SELECT strftime('%Y-%m', ended / 1000, 'unixepoch'), min(ended), max(ended), count(*)
         FROM lives WHERE status = 'stopped' AND ended < ?1 GROUP BY 1 ORDER BY 1",
    )?;
    let months = query.query_map([milliseconds(time)], |row| {
        Ok(EndedMonth {
            month: row.get(0)?,
            first: row.get(1)?,
            last: row.get(2)?,
            sessions: row.get(3)?,
        })
    })?;
    Ok(months.collect::<rusqlite::Result<_>>()?)
}

/// Returns the sessions of a month.
pub(super) fn ended_in(index: &Index, month: &EndedMonth) -> Result<Vec<Record>, IndexError> {
    records(
        index.db(),
        "SELECT id, record FROM lives LEFT JOIN records ON life = lives.rowid
         WHERE status = 'stopped' AND ended BETWEEN ?1 AND ?2 ORDER BY ended",
        [Value::from(month.first), Value::from(month.last)],
    )
}

/// Passes every session to `give`, the oldest first.
pub(super) fn for_each(
    index: &Index,
    mut give: impl FnMut(&Record) -> Result<()>,
) -> Result<(), IndexError> {
    let mut query = index.db().prepare(
        "SELECT id, record FROM lives LEFT JOIN records ON life = lives.rowid ORDER BY started, id",
    )?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        let session = index::record(row.get(0)?, row.get(1)?)?;
        give(&session)?;
    }
    Ok(())
}

/// Returns the sessions of a query that selects id and record.
fn records(
    db: &Connection,
    text: &str,
    values: impl IntoIterator<Item = Value>,
) -> Result<Vec<Record>, IndexError> {
    let mut query = db.prepare(text)?;
    let mut rows = query.query(rusqlite::params_from_iter(values))?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(index::record(row.get(0)?, row.get(1)?)?);
    }
    Ok(found)
}

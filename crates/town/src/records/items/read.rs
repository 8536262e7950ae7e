//! Reads work items.

use super::Work;
use super::store::problem;
use crate::Result;
use gt_core::work::{Item, ItemStatus, WorkId, folded};
use gt_core::{Identity, Problem, Role, mail, similar};
use rusqlite::functions::FunctionFlags;
use rusqlite::types::Value;
use rusqlite::{Connection, Row};
use std::str::FromStr;

/// Filter for items; all set fields must match.
#[derive(Clone, Debug, Default)]
pub struct ItemQuery {
    /// `None` means all but closed items.
    pub status: Option<ItemStatus>,
    pub all: bool,
    pub assignee: Option<String>,
    pub prefix: Option<String>,
    /// `None` means all but mail. Molecules and their parts are found only by type, label, parent,
    /// text, status `pinned` or `all`.
    pub kind: Option<String>,
    pub label: Option<String>,
    pub parent: Option<WorkId>,
    pub priority: Option<u8>,
    /// Text in the title, description, notes, design, acceptance criteria or id.
    pub text: Option<String>,
    /// Only open items without open blockers.
    pub ready: bool,
    pub limit: Option<usize>,
    /// Number of matching items to leave out at the beginning.
    pub skip: usize,
}

impl ItemQuery {
    /// Returns whether the filter may include items that are not work.
    fn names_no_work(&self) -> bool {
        let is_named = self.kind.is_some() || self.label.is_some() || self.parent.is_some();
        let is_pinned = self.status == Some(ItemStatus::Pinned);
        is_named || is_pinned || self.all || self.text.is_some()
    }
}

const COLUMNS: &str =
    "id, title, description, type, priority, status, assignee, parent, notes, ephemeral,
    created_at, updated_at, closed_at, close_reason,
    (SELECT json_group_array(label ORDER BY label) FROM labels WHERE item = items.id),
    (SELECT json_group_array(blocker ORDER BY blocker) FROM dependencies WHERE item = items.id),
    design, acceptance_criteria";

impl Work {
    /// Returns the matching items, most urgent and oldest first.
    pub fn find(&self, query: &ItemQuery) -> Result<Vec<Item>> {
        self.refresh(query.prefix.as_deref())?;
        let prefix = query.prefix.as_deref();
        let rig = prefix.and_then(|prefix| self.beads_rig(prefix));
        match self.open_if_there()? {
            Some(db) => find(&db, query, rig.map(|rig| rig.rig.as_str())),
            None => Ok(Vec::new()),
        }
    }

    /// Returns the item with this id. Fails if there is none.
    pub fn get(&self, id: &WorkId) -> Result<Item> {
        match (self.lookup(id)?, self.open_if_there()?) {
            (Some(item), _) => Ok(item),
            (None, Some(db)) => Err(not_found(&db, id)?),
            (None, None) => Err(missing(id)),
        }
    }

    /// Returns the id that begins with these characters: of an item, a message, a merge or an
    /// escalation. An id that exists, or that begins none, is returned as it is. Fails if several
    /// begin so; the parts of an item do not count beside it.
    pub fn expand(&self, id: &WorkId) -> Result<WorkId> {
        self.refresh_for(id)?;
        let Some(db) = self.open_if_there()? else {
            return Ok(id.clone());
        };
        let ids = "SELECT id FROM items UNION ALL SELECT id FROM merges UNION ALL SELECT id FROM escalations";
        let found = strings(
            &db,
            &format!(
                "SELECT id FROM ({ids}) WHERE id >= ?1 AND id < ?1 || char(0x10ffff) ORDER BY length(id) LIMIT 9"
            ),
            id,
        )?;
        let Some(first) = found.first() else {
            return Ok(id.clone());
        };
        let is_part = |other: &String| other.starts_with(&format!("{first}."));
        let others: Vec<&String> = found[1..].iter().filter(|other| !is_part(other)).collect();
        if first == id.as_str() || others.is_empty() {
            return stored(first);
        }
        Err(
            Problem::usage(format!("{id} could be any of {}", found.join(", ")))
                .hint("give more of the id"),
        )
    }

    /// Returns the item with this id, if there is one.
    pub fn lookup(&self, id: &WorkId) -> Result<Option<Item>> {
        self.refresh_for(id)?;
        match self.open_if_there()? {
            Some(db) => by_id(&db, id),
            None => Ok(None),
        }
    }

    /// Returns whether this is the agent of a task whose item is closed.
    pub(crate) fn is_finished_task(&self, agent: &Identity) -> bool {
        if agent.role() != Role::Task {
            return false;
        }
        let id: Option<WorkId> = agent.short_name().parse().ok();
        // An item that cannot be read is not known to be closed.
        let item = id.and_then(|id| self.get(&id).ok());
        item.is_some_and(|item| item.status == ItemStatus::Closed)
    }

    /// Returns the open blockers of an item.
    pub fn open_blockers(&self, id: &WorkId) -> Result<Vec<WorkId>> {
        self.refresh_for(id)?;
        let Some(db) = self.open_if_there()? else {
            return Ok(Vec::new());
        };
        let mut query = db
            .prepare(
                "SELECT blocker FROM dependencies JOIN items ON id = blocker
                 WHERE item = ?1 AND status <> 'closed' ORDER BY blocker",
            )
            .map_err(problem)?;
        let ids = query
            .query_map([id.as_str()], |row| row.get::<_, String>(0))
            .map_err(problem)?;
        ids.map(|id| id.map_err(problem)?.parse()).collect()
    }
}

/// Returns the matching items. Items of a rig have its prefix, or are in its beads.
fn find(db: &Connection, query: &ItemQuery, beads: Option<&str>) -> Result<Vec<Item>> {
    let mut found = Vec::new();
    each(db, query, beads, |item| {
        found.push(item);
        Ok(())
    })?;
    Ok(found)
}

/// Passes the matching items to `give` while it reads them.
pub(super) fn each(
    db: &Connection,
    query: &ItemQuery,
    beads: Option<&str>,
    give: impl FnMut(Item) -> Result<()>,
) -> Result<()> {
    if query.text.is_some() {
        can_search(db)?;
    }
    let (rest, values) = statement(query, beads);
    select_each(db, &rest, values, give)
}

/// Returns the part of a query after the table, and its values.
fn statement(query: &ItemQuery, beads: Option<&str>) -> (String, Vec<Value>) {
    let mut conditions: Vec<String> = Vec::new();
    let mut values: Vec<Value> = Vec::new();
    let mut must = |condition: &str, value: Option<Value>| {
        if let Some(value) = value {
            values.push(value);
            conditions.push(condition.replace('?', &format!("?{}", values.len())));
        }
    };
    let text = |value: &Option<String>| value.clone().map(Value::from);
    // One status is found by its index; among open items the order of the list decides.
    let is_closed = query.status == Some(ItemStatus::Closed);
    must(
        if is_closed && query.assignee.is_none() {
            "status = ?"
        } else {
            "+status = ?"
        },
        query
            .status
            .map(|status| Value::from(status.as_str().to_owned())),
    );
    must("assignee = ?", text(&query.assignee));
    must("type = ?", text(&query.kind));
    must(
        "priority = ?",
        query
            .priority
            .map(|priority| Value::from(i64::from(priority))),
    );
    must(
        "parent = ?",
        query.parent.as_ref().map(|id| Value::from(id.to_string())),
    );
    must(
        "id IN (SELECT item FROM labels WHERE label = ?)",
        text(&query.label),
    );
    must(
        "(mentions(title, ?) OR mentions(description, ?) OR mentions(notes, ?) OR mentions(id, ?)
          OR mentions(design, ?) OR mentions(acceptance_criteria, ?))",
        text(&query.text),
    );
    if let Some(prefix) = &query.prefix {
        values.push(Value::from(format!("{}-%", escaped(prefix))));
        values.push(beads.map(str::to_owned).into());
        let (pattern, rig) = (values.len() - 1, values.len());
        conditions.push(format!(
            "(id LIKE ?{pattern} ESCAPE '\\'
             OR id IN (SELECT item FROM beads WHERE beads.rig = ?{rig}))"
        ));
    }
    if !query.names_no_work() {
        conditions.push(super::molecules::IS_WORK.to_owned());
    }
    let is_open = match query.status {
        Some(status) => status != ItemStatus::Closed,
        None => query.ready || !query.all,
    };
    if query.ready {
        conditions.push(
            "+status = 'open' AND NOT EXISTS (SELECT 1 FROM dependencies JOIN items AS blockers
             ON blockers.id = blocker WHERE item = items.id AND blockers.status <> 'closed')"
                .to_owned(),
        );
    }
    if is_open {
        conditions.push("status <> 'closed'".to_owned());
    }
    // Mail is included only if its type is requested.
    let has_mail = query.kind.as_deref() == Some(mail::KIND);
    if !has_mail {
        conditions.push(format!("type <> '{}'", mail::KIND));
    }
    // Without a condition that few items meet, the index has the order of the list: only the shown
    // items are read, and none are held to be sorted. SQLite alone would sort all items.
    let is_narrow = query.parent.is_some() || query.label.is_some();
    let index = match is_narrow || has_mail {
        true => "",
        // The other index of agents also has their mail.
        false if query.assignee.is_some() => "INDEXED BY items_of_assignee",
        // The index by status has this order, too.
        false if is_closed => "",
        false if is_open => "INDEXED BY items_not_closed",
        false => "INDEXED BY items_in_order",
    };
    let filter = match conditions.as_slice() {
        [] => String::new(),
        conditions => format!("WHERE {}", conditions.join(" AND ")),
    };
    let number = |count: usize| i64::try_from(count).unwrap_or(-1);
    let (limit, skip) = (query.limit.map_or(-1, number), number(query.skip));
    let order = "ORDER BY priority, created_at, id";
    (
        format!("{index} {filter} {order} LIMIT {limit} OFFSET {skip}"),
        values,
    )
}

/// Returns the items of a query; `rest` follows the FROM clause.
pub(super) fn select(
    db: &Connection,
    rest: &str,
    values: impl IntoIterator<Item = Value>,
) -> Result<Vec<Item>> {
    let mut items = Vec::new();
    select_each(db, rest, values, |item| {
        items.push(item);
        Ok(())
    })?;
    Ok(items)
}

fn select_each(
    db: &Connection,
    rest: &str,
    values: impl IntoIterator<Item = Value>,
    mut give: impl FnMut(Item) -> Result<()>,
) -> Result<()> {
    // Cached, because one command repeats queries, and parsing SQL takes longer than the answer.
    let mut statement = db
        .prepare_cached(&format!("SELECT {COLUMNS} FROM items {rest}"))
        .map_err(problem)?;
    let mut rows = statement
        .query(rusqlite::params_from_iter(values))
        .map_err(problem)?;
    while let Some(row) = rows.next().map_err(problem)? {
        give(item(row)?)?;
    }
    Ok(())
}

/// Defines the SQL function `mentions`, a search that ignores case: SQLite itself knows the case of
/// ASCII alone.
pub(super) fn can_search(db: &Connection) -> Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    db.create_scalar_function("mentions", 2, flags, |given| {
        let text = |place: usize| given.get_raw(place).as_str();
        Ok(folded(text(0)?).contains(&folded(text(1)?)))
    })
    .map_err(problem)
}

/// Escapes a text for a LIKE pattern.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('%', "\\%")
        .replace('_', "\\_")
}

pub(super) fn by_id(db: &Connection, id: &WorkId) -> Result<Option<Item>> {
    let found = select(db, "WHERE id = ?1", [Value::from(id.to_string())])?;
    Ok(found.into_iter().next())
}

/// Returns the item with this id. Fails if there is none.
pub(super) fn must_have(db: &Connection, id: &WorkId) -> Result<Item> {
    match by_id(db, id)? {
        Some(item) => Ok(item),
        None => Err(not_found(db, id)?),
    }
}

/// Returns the error for an item that does not exist, with similar ids as a hint.
fn not_found(db: &Connection, id: &WorkId) -> Result<Problem> {
    let all = "SELECT id FROM items WHERE length(id) BETWEEN length(?1) - 2 AND length(?1) + 2";
    let all = strings(db, all, id)?;
    let hint = similar::hint(id.as_str(), all.iter().map(String::as_str));
    let problem = Problem::not_found(format!("there is no work item {id}"));
    let problem = hint.into_iter().fold(problem, Problem::hint);
    Ok(problem.hint(LISTS_THEM))
}

const LISTS_THEM: &str = "`gt work list` shows them";

/// Returns the error for an item that does not exist.
pub(super) fn missing(id: &WorkId) -> Problem {
    Problem::not_found(format!("there is no work item {id}")).hint(LISTS_THEM)
}

/// Runs a query with the id as its parameter, and returns its first column.
fn strings(db: &Connection, query: &str, id: &WorkId) -> Result<Vec<String>> {
    let mut statement = db.prepare_cached(query).map_err(problem)?;
    let rows = statement.query_map([id.as_str()], |row| row.get(0));
    let rows = rows.map_err(problem)?;
    rows.collect::<rusqlite::Result<_>>().map_err(problem)
}

/// Parses a stored value. An invalid one means a damaged database, not a usage error.
pub(super) fn stored<T: FromStr<Err = Problem>>(text: &str) -> Result<T> {
    text.parse().map_err(|problem| {
        Problem::failed("a work item cannot be read")
            .cause(Problem::to_string(&problem))
            .hint("`gt doctor` checks the town's files")
    })
}

fn item(row: &Row<'_>) -> Result<Item> {
    let text = |place: usize| row.get::<_, String>(place).map_err(problem);
    let maybe = |place: usize| row.get::<_, Option<String>>(place).map_err(problem);
    let list = |place: usize| -> Result<Vec<String>> {
        serde_json::from_str(&text(place)?)
            .map_err(|error| Problem::failed("a work item cannot be read").caused_by(error))
    };
    let ids: Result<Vec<WorkId>> = list(15)?.iter().map(|id| stored(id)).collect();
    Ok(Item {
        id: stored(&text(0)?)?,
        title: text(1)?,
        description: text(2)?,
        design: text(16)?,
        acceptance_criteria: text(17)?,
        kind: text(3)?,
        priority: row.get(4).map_err(problem)?,
        status: stored(&text(5)?)?,
        assignee: maybe(6)?,
        parent: maybe(7)?.map(|id| stored(&id)).transpose()?,
        notes: text(8)?,
        ephemeral: row.get(9).map_err(problem)?,
        created_at: text(10)?,
        updated_at: text(11)?,
        closed_at: maybe(12)?,
        close_reason: maybe(13)?,
        labels: list(14)?,
        deps: ids?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::items::ItemDraft;

    #[test]
    fn lists_are_read_in_the_order_of_an_index() {
        let folder = tempfile::tempdir().unwrap();
        let work = Work::at(folder.path().join("items.db"));
        let draft = ItemDraft {
            prefix: "gt".to_owned(),
            title: "There".to_owned(),
            ..ItemDraft::default()
        };
        let item = work.create(&draft).unwrap();
        let limited = || ItemQuery {
            limit: Some(10),
            ..ItemQuery::default()
        };
        let ready = ItemQuery {
            ready: true,
            prefix: Some("gt".to_owned()),
            ..limited()
        };
        let blocked = ItemQuery {
            status: Some(ItemStatus::Blocked),
            ..limited()
        };
        let closed = ItemQuery {
            status: Some(ItemStatus::Closed),
            ..limited()
        };
        let all = ItemQuery {
            all: true,
            kind: Some("task".to_owned()),
            ..limited()
        };
        let labelled = ItemQuery {
            label: Some("x".to_owned()),
            ..limited()
        };
        let of_agent = ItemQuery {
            assignee: Some("mayor".to_owned()),
            ..limited()
        };
        let db = work.open().unwrap();
        for (query, index, is_sorted) in [
            (limited(), "items_not_closed", false),
            (ready, "items_not_closed", false),
            (blocked, "items_not_closed", false),
            (all, "items_in_order", false),
            (closed, "items_by_status", false),
            (labelled, "labels_by_label", true),
            (of_agent, "items_of_assignee", false),
        ] {
            let (rest, values) = statement(&query, None);
            let text = format!("EXPLAIN QUERY PLAN SELECT {COLUMNS} FROM items {rest}");
            let mut explain = db.prepare(&text).unwrap();
            let rows = explain.query_map(rusqlite::params_from_iter(values), |row| {
                row.get::<_, String>(3)
            });
            let steps: Vec<String> = rows.unwrap().map(Result::unwrap).collect();
            let plan = steps.join("\n");
            assert!(
                plan.contains(&format!("INDEX {index}")),
                "{query:?}: {plan}"
            );
            let sorts = plan.contains("TEMP B-TREE FOR ORDER BY");
            assert_eq!(sorts, is_sorted, "{query:?}: {plan}");
        }
        drop(db);
        let skipped = ItemQuery {
            skip: 1,
            ..limited()
        };
        assert_eq!(work.find(&limited()).unwrap()[0].id, item.id);
        assert_eq!(work.find(&skipped).unwrap(), []);
    }

    #[test]
    fn unknown_word_is_damage() {
        let folder = tempfile::tempdir().unwrap();
        let work = Work::at(folder.path().join("items.db"));
        let draft = ItemDraft {
            prefix: "gt".to_owned(),
            title: "There".to_owned(),
            ..ItemDraft::default()
        };
        let item = work.create(&draft).unwrap();
        work.hook("mayor", &item.id).unwrap();
        let db = work.open().unwrap();
        db.execute("UPDATE items SET status = 'odd'", []).unwrap();
        let problem = work.hooked("mayor").unwrap_err();
        assert_eq!(problem.kind(), gt_core::ProblemKind::Failed, "{problem}");
    }
}

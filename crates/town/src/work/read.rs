//! Reading work items.

use super::Work;
use super::store::problem;
use crate::Result;
use gt_core::work::{Item, Status, WorkId, folded};
use gt_core::{Problem, mail};
use rusqlite::functions::FunctionFlags;
use rusqlite::types::Value;
use rusqlite::{Connection, Row};
use std::str::FromStr;

/// What is asked for; everything that is set must fit.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// None means all but those that are closed.
    pub status: Option<Status>,
    pub all: bool,
    pub assignee: Option<String>,
    pub prefix: Option<String>,
    /// None means all but letters. Molecules and what belongs to them are found only by
    /// who asks for a type, a label, the parts of one, what is pinned, a text, or all.
    pub kind: Option<String>,
    pub label: Option<String>,
    pub parent: Option<WorkId>,
    pub priority: Option<u8>,
    /// Somewhere in what it says, or in its id.
    pub text: Option<String>,
    /// Only what is open and has no open blocker.
    pub ready: bool,
    pub limit: Option<usize>,
}

impl Query {
    /// Whether it may mean what is no work by itself.
    fn names_no_work(&self) -> bool {
        let is_named = self.kind.is_some() || self.label.is_some() || self.parent.is_some();
        let is_pinned = self.status == Some(Status::Pinned);
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
    /// The items that fit, the most urgent and oldest first.
    pub fn find(&self, query: &Query) -> Result<Vec<Item>> {
        self.refresh(query.prefix.as_deref())?;
        let prefix = query.prefix.as_deref();
        let rig = prefix.and_then(|prefix| self.beads_rig(prefix));
        match self.open_if_there()? {
            Some(db) => find(&db, query, rig.map(|rig| rig.rig.as_str())),
            None => Ok(Vec::new()),
        }
    }

    /// The item of this id.
    pub fn get(&self, id: &WorkId) -> Result<Item> {
        self.refresh_for(id)?;
        let item = match self.open_if_there()? {
            Some(db) => by_id(&db, id)?,
            None => None,
        };
        item.ok_or_else(|| not_found(id))
    }

    /// What still keeps an item from being begun.
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

/// Those of a rig are those with its prefix, and all that are in its beads.
fn find(db: &Connection, query: &Query, beads: Option<&str>) -> Result<Vec<Item>> {
    let mut conditions: Vec<String> = Vec::new();
    let mut values: Vec<Value> = Vec::new();
    let mut must = |condition: &str, value: Option<Value>| {
        if let Some(value) = value {
            values.push(value);
            conditions.push(condition.replace('?', &format!("?{}", values.len())));
        }
    };
    let text = |value: &Option<String>| value.clone().map(Value::from);
    must(
        "status = ?",
        query
            .status
            .map(|status| Value::from(status.word().to_owned())),
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
        "EXISTS (SELECT 1 FROM labels WHERE item = items.id AND label = ?)",
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
    if query.ready {
        conditions.push(
            "status = 'open' AND NOT EXISTS (SELECT 1 FROM dependencies JOIN items AS blockers
             ON blockers.id = blocker WHERE item = items.id AND blockers.status <> 'closed')"
                .to_owned(),
        );
    } else if query.status.is_none() && !query.all {
        conditions.push("status <> 'closed'".to_owned());
    }
    // Letters are mail, and work only to who asks for them.
    if query.kind.is_none() {
        conditions.push(format!("type <> '{}'", mail::KIND));
    }
    let filter = match conditions.as_slice() {
        [] => String::new(),
        conditions => format!("WHERE {}", conditions.join(" AND ")),
    };
    let limit = query
        .limit
        .map_or(-1, |limit| i64::try_from(limit).unwrap_or(-1));
    if query.text.is_some() {
        can_search(db)?;
    }
    let rest = format!("{filter} ORDER BY priority, created_at, id LIMIT {limit}");
    select(db, &rest, values)
}

/// The items of a query that goes on so.
pub(super) fn select(
    db: &Connection,
    rest: &str,
    values: impl IntoIterator<Item = Value>,
) -> Result<Vec<Item>> {
    // One command asks the same several times, and to read SQL takes longer than to answer.
    let mut statement = db
        .prepare_cached(&format!("SELECT {COLUMNS} FROM items {rest}"))
        .map_err(problem)?;
    let rows = statement
        .query_map(rusqlite::params_from_iter(values), |row| Ok(item(row)))
        .map_err(problem)?;
    rows.map(|row| row.map_err(problem)?).collect()
}

/// Lets a query ask whether one text mentions another, in whatever case: SQLite itself knows
/// the case of ASCII alone.
pub(super) fn can_search(db: &Connection) -> Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    db.create_scalar_function("mentions", 2, flags, |given| {
        let text = |place: usize| given.get_raw(place).as_str();
        Ok(folded(text(0)?).contains(&folded(text(1)?)))
    })
    .map_err(problem)
}

/// A text that stands for itself in a pattern.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('%', "\\%")
        .replace('_', "\\_")
}

pub(super) fn by_id(db: &Connection, id: &WorkId) -> Result<Option<Item>> {
    let found = select(db, "WHERE id = ?1", [Value::from(id.to_string())])?;
    Ok(found.into_iter().next())
}

/// The item of this id, which must be there.
pub(super) fn must_have(db: &Connection, id: &WorkId) -> Result<Item> {
    by_id(db, id)?.ok_or_else(|| not_found(id))
}

pub(super) fn not_found(id: &WorkId) -> Problem {
    Problem::not_found(format!("there is no work item {id}")).hint("`gt work list` shows them")
}

/// A word of ours as the database has it. One that is none is damage, and nobody's mistake.
pub(super) fn stored<T: FromStr<Err = Problem>>(text: &str) -> Result<T> {
    text.parse().map_err(|problem| {
        Problem::failed("a work item cannot be read")
            .cause(Problem::to_string(&problem))
            .hint("`gt doctor` looks at the town's files")
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
    use crate::work::Draft;

    #[test]
    fn a_word_that_nobody_wrote_is_damage() {
        let folder = tempfile::tempdir().unwrap();
        let work = Work::at(folder.path().join("items.db"));
        let draft = Draft {
            prefix: "gt".to_owned(),
            title: "There".to_owned(),
            ..Draft::default()
        };
        let item = work.create(&draft).unwrap();
        work.hook("mayor", &item.id).unwrap();
        let db = work.open().unwrap();
        db.execute("UPDATE items SET status = 'odd'", []).unwrap();
        let problem = work.hooked("mayor").unwrap_err();
        assert_eq!(problem.kind(), gt_core::Kind::Failed, "{problem}");
    }
}

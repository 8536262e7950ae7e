//! Reads and archives mail.

use super::Work;
use super::read::can_search;
use super::store::problem;
use crate::Result;
use gt_core::mail::{Mail, PERSON};
use gt_core::work::WorkId;
use gt_core::{Problem, Role};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params};

/// Filter for messages; all set fields must match.
#[derive(Clone, Debug, Default)]
pub struct MailQuery {
    pub recipient: Option<String>,
    /// Sender or recipient.
    pub party: Option<String>,
    /// All messages of a thread, in the order in which they were written.
    pub thread: Option<WorkId>,
    /// Text in the subject or the body.
    pub text: Option<String>,
    /// Include archived messages.
    pub archived: bool,
    /// Only unread messages that are on no hook.
    pub unread: bool,
    /// Maximum number of characters of the body.
    pub body: Option<u32>,
    pub limit: Option<usize>,
}

impl Work {
    /// Returns the matching messages, most urgent and newest first.
    pub fn messages(&self, query: &MailQuery) -> Result<Vec<Mail>> {
        match self.open_if_there()? {
            Some(db) => find(&db, query),
            None => Ok(Vec::new()),
        }
    }

    /// Returns the number of all matches, and the messages up to the limit.
    pub fn count_and_messages(&self, query: &MailQuery) -> Result<(usize, Vec<Mail>)> {
        let Some(db) = self.open_if_there()? else {
            return Ok((0, Vec::new()));
        };
        let messages = find(&db, query)?;
        if query.limit.is_none_or(|limit| messages.len() < limit) {
            return Ok((messages.len(), messages));
        }
        let (conditions, values) = filter(query);
        let statement =
            format!("SELECT count(*) FROM letters JOIN items ON id = item WHERE {conditions}");
        let count: i64 = db
            .query_row(&statement, named(&values).as_slice(), |row| row.get(0))
            .map_err(problem)?;
        Ok((usize::try_from(count).unwrap_or_default(), messages))
    }

    pub fn mail(&self, id: &WorkId) -> Result<Mail> {
        match self.open_if_there()? {
            Some(db) => by_id(&db, id),
            None => Err(not_found(id)),
        }
    }

    /// Records that the recipient has read it; the first time is kept.
    pub fn mark_read(&self, id: &WorkId) -> Result<Mail> {
        self.change(|db| {
            db.execute(
                "UPDATE letters SET read_at = coalesce(read_at, ?2) WHERE item = ?1",
                params![id.as_str(), self.clock.text()],
            )
            .map_err(problem)?;
            by_id(db, id)
        })
    }

    /// Archives messages of one reader, all or none. Idempotent; a message on the hook is taken
    /// off.
    pub fn archive(&self, reader: &str, ids: &[WorkId]) -> Result<Vec<Mail>> {
        self.change(|db| {
            let mut archived: Vec<Mail> = Vec::new();
            for id in ids {
                if archived.iter().any(|mail| mail.id == *id) {
                    continue;
                }
                let mail = by_id(db, id)?;
                if mail.recipient != reader {
                    return Err(Problem::conflict(format!(
                        "{id} is a message to {}, and not to {reader}",
                        mail.recipient
                    ))
                    .hint(format!("`--agent {}` means that one", mail.recipient)));
                }
                super::hook::take_off(db, id)?;
                super::messages::close(db, id, "archived")?;
                archived.push(by_id(db, id)?);
            }
            Ok(archived)
        })
    }
}

fn find(db: &Connection, query: &MailQuery) -> Result<Vec<Mail>> {
    let (conditions, values) = filter(query);
    let order = match query.thread {
        Some(_) => "sent_at, item",
        None => "priority, sent_at DESC, item",
    };
    let limit = query
        .limit
        .map_or(-1, |limit| i64::try_from(limit).unwrap_or(-1));
    let statement = format!(
        "{} WHERE {conditions} ORDER BY {order} LIMIT {limit}",
        select(query.body)
    );
    if query.text.is_some() {
        can_search(db)?;
    }
    let mut statement = db.prepare(&statement).map_err(problem)?;
    let rows = statement
        .query_map(named(&values).as_slice(), |row| Ok(mail(row)))
        .map_err(problem)?;
    rows.map(|row| row.map_err(problem)?).collect()
}

type NamedValues = Vec<(&'static str, Value)>;

/// Returns the filter as SQL, with its named values.
fn filter(query: &MailQuery) -> (String, NamedValues) {
    let mut conditions = vec!["1"];
    let mut values: NamedValues = Vec::new();
    let mut must = |condition: &'static str, name: &'static str, value: Option<String>| {
        if let Some(value) = value {
            conditions.push(condition);
            values.push((name, Value::from(value)));
        }
    };
    // Older versions stored mail to the overseer under that name.
    let to = match query.recipient.as_deref() {
        Some(PERSON) => "recipient IN (:to, 'overseer')",
        _ => "recipient = :to",
    };
    must(to, ":to", query.recipient.clone());
    must(
        "(recipient = :party OR sender = :party)",
        ":party",
        query.party.clone(),
    );
    must(
        "thread = :thread",
        ":thread",
        query.thread.as_ref().map(WorkId::to_string),
    );
    must(
        "(mentions(title, :text) OR mentions(description, :text))",
        ":text",
        query.text.clone(),
    );
    if !query.archived {
        conditions.push("status <> 'closed'");
    }
    if query.unread {
        conditions.push("read_at IS NULL AND status = 'open'");
    }
    (conditions.join(" AND "), values)
}

fn named(values: &NamedValues) -> Vec<(&str, &dyn rusqlite::ToSql)> {
    values
        .iter()
        .map(|(name, value)| (*name, value as &dyn rusqlite::ToSql))
        .collect()
}

/// Returns the message with this id. Fails if there is none.
pub(super) fn by_id(db: &Connection, id: &WorkId) -> Result<Mail> {
    let statement = format!("{} WHERE item = ?1", select(None));
    let found = db
        .query_row(&statement, [id.as_str()], |row| Ok(mail(row)))
        .optional()
        .map_err(problem)?;
    found.ok_or_else(|| not_found(id))?
}

fn select(longest_body: Option<u32>) -> String {
    let body = match longest_body {
        Some(longest) => format!("substr(description, 1, {longest})"),
        None => "description".to_owned(),
    };
    format!(
        "SELECT item, sender, recipient, title, {body}, priority, status, thread, reply_to,
         sent_at, read_at FROM letters JOIN items ON id = item"
    )
}

fn mail(row: &Row<'_>) -> Result<Mail> {
    let text = |place: usize| row.get::<_, String>(place).map_err(problem);
    let maybe = |place: usize| row.get::<_, Option<String>>(place).map_err(problem);
    Ok(Mail {
        id: text(0)?.parse()?,
        sender: text(1)?,
        recipient: match text(2)? {
            overseer if overseer == Role::Overseer.as_str() => PERSON.to_owned(),
            recipient => recipient,
        },
        subject: text(3)?,
        body: text(4)?,
        priority: row.get(5).map_err(problem)?,
        status: text(6)?.parse()?,
        thread: text(7)?.parse()?,
        reply_to: maybe(8)?.map(|id| id.parse()).transpose()?,
        sent_at: text(9)?,
        read_at: maybe(10)?,
    })
}

fn not_found(id: &WorkId) -> Problem {
    Problem::not_found(format!("there is no message {id}")).hint("`gt mail inbox` shows them")
}

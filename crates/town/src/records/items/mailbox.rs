//! Reads and archives mail.

use super::Work;
use super::read::can_search;
use super::store::problem;
use crate::Result;
use gt_core::Problem;
use gt_core::mail::Mail;
use gt_core::work::WorkId;
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
    /// Number of matching messages to leave out at the beginning.
    pub skip: usize,
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
        if query.skip == 0 && query.limit.is_none_or(|limit| messages.len() < limit) {
            return Ok((messages.len(), messages));
        }
        let (statement, values) = count_statement(query);
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

    /// Returns the number of the messages in a thread.
    pub fn thread_length(&self, thread: &WorkId) -> Result<usize> {
        let Some(db) = self.open_if_there()? else {
            return Ok(0);
        };
        let statement = "SELECT count(*) FROM letters WHERE thread = ?1";
        let count: i64 = db
            .query_row(statement, [thread.as_str()], |row| row.get(0))
            .map_err(problem)?;
        Ok(usize::try_from(count).unwrap_or_default())
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
    let (statement, values) = statement(query);
    if query.text.is_some() {
        can_search(db)?;
    }
    let mut statement = db.prepare(&statement).map_err(problem)?;
    let rows = statement
        .query_map(named(&values).as_slice(), |row| Ok(mail(row)))
        .map_err(problem)?;
    rows.map(|row| row.map_err(problem)?).collect()
}

/// Returns the query as SQL, with its named values.
fn statement(query: &MailQuery) -> (String, NamedValues) {
    let (conditions, values) = filter(query);
    let order = match query.thread {
        Some(_) => "sent_at, item",
        None => "mail_priority, sent_at DESC, item",
    };
    let number = |count: usize| i64::try_from(count).unwrap_or(-1);
    let limit = query.limit.map_or(-1, number);
    let skip = number(query.skip);
    let statement = format!(
        "{} WHERE {conditions} ORDER BY {order} LIMIT {limit} OFFSET {skip}",
        select(query.body, index(query))
    );
    (statement, values)
}

/// Returns the query of the number of all matches, with its named values.
fn count_statement(query: &MailQuery) -> (String, NamedValues) {
    let (conditions, values) = filter(query);
    // Only a search for text reads the messages themselves.
    let items = match query.text {
        Some(_) => "JOIN items ON id = item",
        None => "",
    };
    let index = index(query);
    let statement = format!("SELECT count(*) FROM letters {index} {items} WHERE {conditions}");
    (statement, values)
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
    must("recipient = :to", ":to", query.recipient.clone());
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
        conditions.push("mail_status <> 'closed'");
    }
    if query.unread {
        conditions.push("read_at IS NULL AND mail_status = 'open'");
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
    let statement = format!("{} WHERE item = ?1", select(None, ""));
    let found = db
        .query_row(&statement, [id.as_str()], |row| Ok(mail(row)))
        .optional()
        .map_err(problem)?;
    found.ok_or_else(|| not_found(id))?
}

/// Returns the index that has the messages of an inbox and no others, in the order of the list.
fn index(query: &MailQuery) -> &'static str {
    match (&query.recipient, &query.thread) {
        (Some(_), None) if query.unread => "INDEXED BY letters_unread",
        (Some(_), None) if !query.archived => "INDEXED BY letters_kept",
        (Some(_), None) => "INDEXED BY letters_all",
        _ => "",
    }
}

fn select(longest_body: Option<u32>, index: &str) -> String {
    let body = match longest_body {
        Some(longest) => format!("substr(description, 1, {longest})"),
        None => "description".to_owned(),
    };
    format!(
        "SELECT item, sender, recipient, title, {body}, priority, status, thread, reply_to,
         sent_at, read_at FROM letters {index} CROSS JOIN items ON id = item"
    )
}

fn mail(row: &Row<'_>) -> Result<Mail> {
    let text = |place: usize| row.get::<_, String>(place).map_err(problem);
    let maybe = |place: usize| row.get::<_, Option<String>>(place).map_err(problem);
    Ok(Mail {
        id: text(0)?.parse()?,
        sender: text(1)?,
        recipient: text(2)?,
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

#[cfg(test)]
mod tests {
    use super::super::MailDraft;
    use super::*;

    const READER: &str = "gastown/crew/max";

    fn work() -> (tempfile::TempDir, Work) {
        let folder = tempfile::tempdir().unwrap();
        let work = Work::at(folder.path().join(".work/items.db"));
        (folder, work)
    }

    fn send(work: &Work, subject: &str, priority: u8) -> Mail {
        let draft = MailDraft {
            priority,
            ..MailDraft::new("mayor", subject, "text")
        };
        let sent = work.send(&draft, &[READER.to_owned()]).unwrap();
        sent.into_iter().next().unwrap()
    }

    fn inbox() -> MailQuery {
        MailQuery {
            recipient: Some(READER.to_owned()),
            limit: Some(2),
            ..MailQuery::default()
        }
    }

    /// Returns the steps of SQLite for a query.
    fn plan(db: &Connection, statement: &str, values: &NamedValues) -> String {
        let mut explain = db
            .prepare(&format!("EXPLAIN QUERY PLAN {statement}"))
            .unwrap();
        let rows = explain.query_map(named(values).as_slice(), |row| row.get::<_, String>(3));
        let steps: Vec<String> = rows.unwrap().map(Result::unwrap).collect();
        steps.join("\n")
    }

    #[test]
    fn inbox_is_read_in_the_order_of_an_index() {
        let (_folder, work) = work();
        send(&work, "One", 2);
        let db = work.open().unwrap();
        let unread = MailQuery {
            unread: true,
            ..inbox()
        };
        let all = MailQuery {
            archived: true,
            ..inbox()
        };
        for (query, index) in [
            (inbox(), "letters_kept"),
            (unread, "letters_unread"),
            (all, "letters_all"),
        ] {
            let (text, values) = statement(&query);
            let plan = plan(&db, &text, &values);
            let expected = format!("SEARCH letters USING INDEX {index} ");
            let expected_covering = format!("SEARCH letters USING COVERING INDEX {index} ");
            assert!(
                plan.contains(&expected) || plan.contains(&expected_covering),
                "{plan}"
            );
            assert!(!plan.contains("TEMP B-TREE"), "{plan}");
        }
    }

    #[test]
    fn messages_are_counted_in_an_index_alone() {
        let (_folder, work) = work();
        send(&work, "One", 2);
        let db = work.open().unwrap();
        let unread = MailQuery {
            unread: true,
            ..inbox()
        };
        for (query, index) in [(inbox(), "letters_kept"), (unread, "letters_unread")] {
            let (text, values) = count_statement(&query);
            let plan = plan(&db, &text, &values);
            let expected = format!("SEARCH letters USING COVERING INDEX {index} ");
            assert!(plan.starts_with(&expected), "{plan}");
        }
    }

    #[test]
    fn pages_of_the_inbox_follow_changes_of_messages() {
        let (_folder, work) = work();
        let sent: Vec<Mail> = (0..5).map(|n| send(&work, &format!("M{n}"), 2)).collect();
        let urgent = send(&work, "Urgent", 0);
        work.mark_read(&urgent.id).unwrap();
        work.archive(READER, &[sent[4].id.clone()]).unwrap();
        let page = |query: MailQuery| -> (usize, Vec<String>) {
            let (count, mail) = work.count_and_messages(&query).unwrap();
            (count, mail.into_iter().map(|mail| mail.subject).collect())
        };
        let (count, first) = page(inbox());
        assert_eq!((count, first[0].as_str()), (5, "Urgent"));
        let second = page(MailQuery { skip: 2, ..inbox() });
        let third = page(MailQuery { skip: 4, ..inbox() });
        assert_eq!((second.0, second.1.len(), third.1.len()), (5, 2, 1));
        let mut all = [first, second.1, third.1].concat();
        all.sort();
        assert_eq!(all, ["M0", "M1", "M2", "M3", "Urgent"]);
        let unread = MailQuery {
            unread: true,
            ..inbox()
        };
        assert_eq!(page(unread).0, 4);
        let archived = MailQuery {
            archived: true,
            ..inbox()
        };
        assert_eq!(page(archived).0, 6);
        assert_eq!(work.thread_length(&urgent.thread).unwrap(), 1);
    }
}

//! Escalations: stored with the mail that announces them, in one transaction.
//!
//! `told` is the number of the last raise whose recipients were told. If a process is killed
//! between the transaction and the announcement, `told` is behind `raised`, and
//! [`Work::escalations_to_announce`] returns the escalation.

use super::create::random_id;
use super::store::{now, problem};
use super::{MailDraft, MailQuery, Work, mailbox, messages};
use crate::Result;
use crate::base::clock;
use gt_core::Problem;
use gt_core::escalation::{Escalation, EscalationState, PREFIX, Severity};
use gt_core::mail::Mail;
use gt_core::work::{ItemStatus, WorkId};
use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, params};

const COLUMNS: &str = "id, severity, state, message, source, raised_by, item, agent, key, count,
    raised, created_at, updated_at, raised_at, again_at, acknowledged_at, acknowledged_by,
    closed_at, closed_by, reason";

/// Order of lists: unacknowledged ones first, then by severity and age.
const ORDER: &str = "state = 'closed', state = 'acknowledged',
    CASE severity WHEN 'critical' THEN 0 WHEN 'high' THEN 1 WHEN 'medium' THEN 2 ELSE 3 END,
    created_at, id";

/// An escalation to be stored.
#[derive(Clone, Debug)]
pub struct EscalationDraft {
    pub severity: Severity,
    pub message: String,
    /// The component that raises it, such as `patrol`.
    pub source: String,
    /// The actor that raises it.
    pub raised_by: String,
    pub item: Option<String>,
    pub agent: Option<String>,
    /// Deduplication key: while an escalation with this key is not closed, no other is created.
    pub key: Option<String>,
}

/// A message and its recipient.
pub type Addressed = (String, MailDraft);

/// Result of [`Work::raise_escalation`].
#[derive(Clone, Debug)]
pub struct RaisedEscalation {
    pub escalation: Escalation,
    /// Its recipients are to be told: it is new, or its severity has increased.
    pub is_news: bool,
    pub mail: Vec<Mail>,
}

/// Filter for escalations; all set fields must match.
#[derive(Clone, Debug, Default)]
pub struct EscalationQuery {
    /// Include closed ones.
    pub all: bool,
    pub state: Option<EscalationState>,
    /// At least this severity.
    pub severity: Option<Severity>,
    pub agent: Option<String>,
    pub item: Option<String>,
}

impl EscalationQuery {
    fn matches(&self, it: &Escalation) -> bool {
        self.state.is_none_or(|state| it.state == state)
            && self.severity.is_none_or(|least| it.severity >= least)
            && (self.agent.is_none() || it.agent == self.agent)
            && (self.item.is_none() || it.item == self.item)
    }
}

impl Work {
    /// Stores an escalation and its mail. If one with this key is not closed, counts the occurrence
    /// and takes over the message; it becomes news only if its severity increases.
    pub fn raise_escalation(
        &self,
        draft: &EscalationDraft,
        mail: impl Fn(&Escalation) -> Vec<Addressed>,
    ) -> Result<RaisedEscalation> {
        self.change(|db| {
            let known = match &draft.key {
                Some(key) => not_closed(db, key)?,
                None => None,
            };
            let at = now(db)?;
            let (id, is_news) = match known {
                Some(known) => {
                    let is_worse = draft.severity > known.severity;
                    let severity = draft.severity.max(known.severity);
                    db.execute(
                        "UPDATE escalations SET count = count + 1, message = ?2, severity = ?3,
                         updated_at = ?4 WHERE id = ?1",
                        params![known.id.as_str(), draft.message, severity.as_str(), at],
                    )
                    .map_err(problem)?;
                    (known.id, is_worse)
                }
                None => (insert(db, draft, &at)?, true),
            };
            let mail = match is_news {
                true => raise(db, &id, &at, &mail)?,
                false => Vec::new(),
            };
            Ok(RaisedEscalation {
                escalation: must_have(db, &id)?,
                is_news,
                mail,
            })
        })
    }

    /// Returns the open escalations that are to be raised again at this time.
    pub fn escalations_due(&self, now: Timestamp) -> Result<Vec<Escalation>> {
        let Some(db) = self.open_if_there()? else {
            return Ok(Vec::new());
        };
        let rest = "WHERE state = 'open' AND again_at <= ?1";
        select(&db, rest, [clock::format(now)])
    }

    /// Raises an escalation again, with its mail. Returns `None` if it was acknowledged, closed or
    /// raised again since it was read.
    pub fn raise_escalation_again(
        &self,
        seen: &Escalation,
        now: Timestamp,
        mail: impl Fn(&Escalation) -> Vec<Addressed>,
    ) -> Result<Option<RaisedEscalation>> {
        self.change(|db| {
            let known = must_have(db, &seen.id)?;
            if known.state != EscalationState::Open || known.raised != seen.raised {
                return Ok(None);
            }
            let mail = raise(db, &known.id, &clock::format(now), &mail)?;
            Ok(Some(RaisedEscalation {
                escalation: must_have(db, &known.id)?,
                is_news: true,
                mail,
            }))
        })
    }

    /// Returns the escalations raised before this time whose announcement was interrupted, with the
    /// mail of their last raise.
    pub fn escalations_to_announce(&self, before: Timestamp) -> Result<Vec<RaisedEscalation>> {
        let Some(db) = self.open_if_there()? else {
            return Ok(Vec::new());
        };
        let rest = "WHERE state = 'open' AND told < raised AND raised_at <= ?1";
        let found = select(&db, rest, [clock::format(before)])?;
        drop(db);
        let with_mail = |escalation: Escalation| {
            let mail = self.mail_of(&escalation)?;
            Ok(RaisedEscalation {
                escalation,
                is_news: true,
                mail,
            })
        };
        found.into_iter().map(with_mail).collect()
    }

    /// Returns the mail of the last raise.
    fn mail_of(&self, escalation: &Escalation) -> Result<Vec<Mail>> {
        let thread: Option<String> = match self.open_if_there()? {
            Some(db) => db
                .query_row(
                    "SELECT thread FROM escalations WHERE id = ?1",
                    [escalation.id.as_str()],
                    |row| row.get(0),
                )
                .map_err(problem)?,
            None => None,
        };
        let Some(thread) = thread else {
            return Ok(Vec::new());
        };
        let mut mail = self.messages(&MailQuery {
            thread: Some(thread.parse()?),
            ..MailQuery::default()
        })?;
        mail.retain(|mail| mail.sent_at >= escalation.raised_at);
        Ok(mail)
    }

    /// Records that the recipients of a raise were told.
    pub fn escalation_told(&self, escalation: &Escalation) -> Result<()> {
        self.change(|db| {
            db.execute(
                "UPDATE escalations SET told = max(told, ?2) WHERE id = ?1",
                params![escalation.id.as_str(), escalation.raised],
            )
            .map(drop)
            .map_err(problem)
        })
    }

    /// Returns the matching escalations: unacknowledged ones first, then by severity and age.
    pub fn escalations(&self, query: &EscalationQuery) -> Result<Vec<Escalation>> {
        let Some(db) = self.open_if_there()? else {
            return Ok(Vec::new());
        };
        let is_open = match query.all || query.state == Some(EscalationState::Closed) {
            true => "1",
            false => "state <> 'closed'",
        };
        let rest = format!("WHERE {is_open} ORDER BY {ORDER}");
        let mut found = select(&db, &rest, [])?;
        found.retain(|it| query.matches(it));
        Ok(found)
    }

    pub fn escalation(&self, id: &WorkId) -> Result<Escalation> {
        match self.open_if_there()? {
            Some(db) => must_have(&db, id),
            None => Err(not_found(id)),
        }
    }

    /// Acknowledges an escalation. Returns whether it was open.
    pub fn acknowledge_escalation(&self, id: &WorkId, by: &str) -> Result<(Escalation, bool)> {
        self.change(|db| {
            let known = must_have(db, id)?;
            if known.is_closed() {
                return Err(Problem::conflict(format!("{id} is closed"))
                    .hint("`gt escalate list` shows the open ones"));
            }
            let changed = db
                .execute(
                    "UPDATE escalations SET state = 'acknowledged', again_at = NULL,
                     acknowledged_at = ?2, acknowledged_by = ?3 WHERE id = ?1 AND state = 'open'",
                    params![id.as_str(), now(db)?, by],
                )
                .map_err(problem)?;
            Ok((must_have(db, id)?, changed > 0))
        })
    }

    /// Closes an escalation. Returns whether it was not closed before.
    pub fn close_escalation(
        &self,
        id: &WorkId,
        by: &str,
        reason: Option<&str>,
    ) -> Result<(Escalation, bool)> {
        self.change(|db| {
            must_have(db, id)?;
            let changed = close(db, id, by, reason)?;
            Ok((must_have(db, id)?, changed))
        })
    }

    /// Closes the escalation with this key, if there is one.
    pub fn close_escalation_of(
        &self,
        key: &str,
        by: &str,
        reason: &str,
    ) -> Result<Option<Escalation>> {
        // Most callers have none to close; a read takes no lock.
        let known = match self.open_if_there()? {
            Some(db) => not_closed(&db, key)?,
            None => None,
        };
        let Some(known) = known else {
            return Ok(None);
        };
        let (closed, changed) = self.close_escalation(&known.id, by, Some(reason))?;
        Ok(Some(closed).filter(|_| changed))
    }
}

fn insert(db: &Connection, draft: &EscalationDraft, at: &str) -> Result<WorkId> {
    let id = loop {
        let id = random_id(db, PREFIX)?;
        if by_id(db, &id)?.is_none() {
            break id;
        }
    };
    db.execute(
        "INSERT INTO escalations (id, severity, state, message, source, raised_by, item, agent, key,
         created_at, updated_at, raised_at) VALUES (?1, ?2, 'open', ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9, ?9)",
        params![
            id.as_str(),
            draft.severity.as_str(),
            draft.message,
            draft.source,
            draft.raised_by,
            draft.item,
            draft.agent,
            draft.key,
            at,
        ],
    )
    .map_err(problem)?;
    Ok(id)
}

/// Counts a raise, sets the time of the next one and writes the mail.
fn raise(
    db: &Connection,
    id: &WorkId,
    at: &str,
    mail: &impl Fn(&Escalation) -> Vec<Addressed>,
) -> Result<Vec<Mail>> {
    // A raise with a higher severity needs help again, even if the last one was acknowledged.
    db.execute(
        "UPDATE escalations SET raised = raised + 1, raised_at = ?2, state = 'open',
         acknowledged_at = NULL, acknowledged_by = NULL WHERE id = ?1",
        params![id.as_str(), at],
    )
    .map_err(problem)?;
    let escalation = must_have(db, id)?;
    let interval = escalation.severity.route().interval(escalation.raised);
    let again = at
        .parse::<Timestamp>()
        .ok()
        .and_then(|at| at.checked_add(SignedDuration::from_secs(interval)).ok())
        .map(clock::format);
    let mut thread: Option<WorkId> = db
        .query_row(
            "SELECT thread FROM escalations WHERE id = ?1",
            [id.as_str()],
            |row| row.get::<_, Option<String>>(0),
        )
        .map_err(problem)?
        .map(|thread| thread.parse())
        .transpose()?;
    let mut sent = Vec::new();
    for (recipient, draft) in mail(&escalation) {
        let draft = MailDraft {
            thread: thread.clone(),
            ..draft.checked()?
        };
        let written = messages::write(db, &draft, &recipient, ItemStatus::Open)?;
        thread.get_or_insert_with(|| written.clone());
        sent.push(mailbox::by_id(db, &written)?);
    }
    db.execute(
        "UPDATE escalations SET again_at = ?2, thread = ?3 WHERE id = ?1",
        params![id.as_str(), again, thread.as_ref().map(WorkId::as_str)],
    )
    .map_err(problem)?;
    Ok(sent)
}

fn close(db: &Connection, id: &WorkId, by: &str, reason: Option<&str>) -> Result<bool> {
    db.execute(
        "UPDATE escalations SET state = 'closed', again_at = NULL, closed_at = ?2, closed_by = ?3,
         reason = ?4 WHERE id = ?1 AND state <> 'closed'",
        params![id.as_str(), now(db)?, by, reason],
    )
    .map(|changed| changed > 0)
    .map_err(problem)
}

fn not_closed(db: &Connection, key: &str) -> Result<Option<Escalation>> {
    let rest = "WHERE key = ?1 AND state <> 'closed'";
    Ok(select(db, rest, [key.to_owned()])?.into_iter().next())
}

fn must_have(db: &Connection, id: &WorkId) -> Result<Escalation> {
    by_id(db, id)?.ok_or_else(|| not_found(id))
}

fn by_id(db: &Connection, id: &WorkId) -> Result<Option<Escalation>> {
    db.query_row(
        &format!("SELECT {COLUMNS} FROM escalations WHERE id = ?1"),
        [id.as_str()],
        |row| Ok(read(row)),
    )
    .optional()
    .map_err(problem)?
    .transpose()
}

fn select<const N: usize>(
    db: &Connection,
    rest: &str,
    values: [String; N],
) -> Result<Vec<Escalation>> {
    let statement = format!("SELECT {COLUMNS} FROM escalations {rest}");
    let mut statement = db.prepare(&statement).map_err(problem)?;
    let rows = statement
        .query_map(rusqlite::params_from_iter(values), |row| Ok(read(row)))
        .map_err(problem)?;
    rows.map(|row| row.map_err(problem)?).collect()
}

fn read(row: &Row<'_>) -> Result<Escalation> {
    let text = |place: usize| row.get::<_, String>(place).map_err(problem);
    let maybe = |place: usize| row.get::<_, Option<String>>(place).map_err(problem);
    Ok(Escalation {
        id: text(0)?.parse()?,
        severity: text(1)?.parse()?,
        state: text(2)?.parse()?,
        message: text(3)?,
        source: text(4)?,
        raised_by: text(5)?,
        item: maybe(6)?,
        agent: maybe(7)?,
        key: maybe(8)?,
        count: row.get(9).map_err(problem)?,
        raised: row.get(10).map_err(problem)?,
        created_at: text(11)?,
        updated_at: text(12)?,
        raised_at: text(13)?,
        again_at: maybe(14)?,
        acknowledged_at: maybe(15)?,
        acknowledged_by: maybe(16)?,
        closed_at: maybe(17)?,
        closed_by: maybe(18)?,
        reason: maybe(19)?,
    })
}

fn not_found(id: &WorkId) -> Problem {
    Problem::not_found(format!("there is no escalation {id}")).hint("`gt escalate list` shows them")
}

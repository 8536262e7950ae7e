//! Reads, finds and archives messages.

use super::super::ids;
use super::super::page::Page;
use super::{document, inbox_owner};
use crate::context::Context;
use crate::output::table::{Cell, Table};
use crate::output::{self, Paint};
use clap::Args;
use gt_core::Problem;
use gt_core::mail::{Mail, priority_word};
use gt_core::session::SessionId;
use gt_core::work::{ItemStatus, WorkId};
use gt_town::Town;
use gt_town::messaging::mail;
use gt_town::records::events::{self, Events};
use gt_town::records::items::{MailQuery, Work};
use serde_json::Value;
use std::collections::HashMap;

/// List messages, the most urgent and newest first
#[derive(Debug, Args)]
pub(crate) struct InboxArgs {
    /// The agent [default: the calling agent, or the agent of this folder or pane; else `human`]
    #[arg(long, value_name = "TARGET")]
    agent: Option<String>,
    /// Include archived messages
    #[arg(long)]
    all: bool,
    /// Only unread messages
    #[arg(long, conflicts_with = "all")]
    unread: bool,
    #[command(flatten)]
    page: MailPageArgs,
}

#[derive(Debug, Args)]
struct MailPageArgs {
    /// Maximum number of messages
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: usize,
    /// Show this page of as many messages, from 1
    #[arg(long, value_name = "N", default_value_t = 1)]
    page: usize,
}

impl MailPageArgs {
    fn page(&self) -> Page {
        Page {
            limit: self.limit,
            number: self.page,
        }
    }
}

/// Read a message
///
/// It counts as read when its recipient reads it.
#[derive(Debug, Args)]
pub(crate) struct ReadArgs {
    /// The message
    #[arg(value_name = "ID")]
    id: String,
    /// Show the whole thread, oldest message first
    #[arg(long)]
    thread: bool,
    /// Maximum number of messages of a thread; the newest are shown
    #[arg(long, value_name = "N", default_value_t = 100, requires = "thread")]
    limit: usize,
    /// Keep it marked as unread
    #[arg(long)]
    keep_unread: bool,
    /// The reader [default: the calling agent, or the agent of this folder or pane; else `human`]
    #[arg(long, value_name = "TARGET")]
    agent: Option<String>,
}

/// Archive messages
#[derive(Debug, Args)]
pub(crate) struct ArchiveArgs {
    /// The messages; if one cannot be archived, none is
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
    /// The agent [default: the calling agent, or the agent of this folder or pane; else `human`]
    #[arg(long, value_name = "TARGET")]
    agent: Option<String>,
}

/// Search received and sent messages, including archived ones
#[derive(Debug, Args)]
pub(crate) struct SearchArgs {
    /// Text in the subject or body
    text: String,
    /// The agent [default: the calling agent, or the agent of this folder or pane; else `human`]
    #[arg(long, value_name = "TARGET")]
    agent: Option<String>,
    /// Search the messages of all agents and people
    #[arg(long, conflicts_with = "agent")]
    everybody: bool,
    #[command(flatten)]
    page: MailPageArgs,
}

pub(super) fn inbox(args: &InboxArgs, town: &Town, context: &Context) -> Result<(), Problem> {
    let query = MailQuery {
        recipient: Some(inbox_owner(town, args.agent.as_deref())?),
        archived: args.all,
        unread: args.unread,
        ..MailQuery::default()
    };
    list(query, args.page.page(), town, context)
}

pub(super) fn search(args: SearchArgs, town: &Town, context: &Context) -> Result<(), Problem> {
    let query = MailQuery {
        party: match args.everybody {
            true => None,
            false => Some(inbox_owner(town, args.agent.as_deref())?),
        },
        text: Some(args.text),
        archived: true,
        ..MailQuery::default()
    };
    list(query, args.page.page(), town, context)
}

pub(super) fn read(args: &ReadArgs, town: &Town, context: &Context) -> Result<(), Problem> {
    let id = ids::message(town, &args.id)?;
    let reader = inbox_owner(town, args.agent.as_deref())?;
    let work = Work::of(town);
    let asked = work.mail(&id)?;
    let mut messages = match args.thread {
        false => vec![asked],
        true => {
            let length = work.thread_length(&asked.thread)?;
            if length > args.limit {
                output::note(format!(
                    "The newest {} of {length} messages; `--limit {length}` shows all.",
                    args.limit
                ));
            }
            work.messages(&MailQuery {
                thread: Some(asked.thread),
                archived: true,
                skip: length.saturating_sub(args.limit),
                ..MailQuery::default()
            })?
        }
    };
    if !args.keep_unread {
        for mail in &mut messages {
            if mail.recipient == reader && mail.read_at.is_none() {
                *mail = work.mark_read(&mail.id)?;
            }
        }
    }
    let sessions = PresentSessions::of(&messages, town);
    if context.json {
        let documents: Vec<Value> = messages
            .iter()
            .map(|mail| sessions.document(mail))
            .collect();
        return match (args.thread, documents.as_slice()) {
            (false, [one]) => output::json(one),
            _ => output::json(&documents),
        };
    }
    for (number, mail) in messages.iter().enumerate() {
        if number > 0 {
            output::line("")?;
        }
        show(mail, &sessions)?;
    }
    Ok(())
}

pub(super) fn archive(args: &ArchiveArgs, town: &Town, context: &Context) -> Result<(), Problem> {
    let ids = args.ids.iter().map(|text| ids::message(town, text));
    let ids: Vec<WorkId> = ids.collect::<Result<_, _>>()?;
    let reader = inbox_owner(town, args.agent.as_deref())?;
    let archived = Work::of(town).archive(&reader, &ids)?;
    let letters: Vec<String> = archived.iter().map(|mail| mail.id.to_string()).collect();
    let event = events::about(town, "mail_archived", &reader).with("letters", letters);
    Events::of(town).note(vec![event]);
    if context.json {
        let documents: Vec<Value> = archived.iter().map(|mail| document(mail, None)).collect();
        return output::json(&documents);
    }
    for mail in &archived {
        output::line(output::clean(&format!(
            "Archived {}: {}",
            mail.id, mail.subject
        )))?;
    }
    Ok(())
}

/// Present sessions of the recipients. Each is looked up once.
struct PresentSessions(HashMap<String, Option<SessionId>>);

impl PresentSessions {
    fn of(messages: &[Mail], town: &Town) -> Self {
        let mut sessions = HashMap::new();
        for mail in messages {
            sessions
                .entry(mail.recipient.clone())
                .or_insert_with_key(|reader| mail::present_session(town, reader));
        }
        PresentSessions(sessions)
    }

    fn session(&self, mail: &Mail) -> Option<&SessionId> {
        self.0.get(&mail.recipient)?.as_ref()
    }

    fn document(&self, mail: &Mail) -> Value {
        document(mail, self.session(mail))
    }

    fn stale_reason(&self, mail: &Mail) -> Option<String> {
        mail::stale_reason(mail, self.session(mail)?)
    }
}

fn list(query: MailQuery, page: Page, town: &Town, context: &Context) -> Result<(), Problem> {
    page.check()?;
    let query = MailQuery {
        limit: Some(page.limit),
        skip: page.skip(),
        // A table does not show bodies.
        body: (!context.json).then_some(0),
        ..query
    };
    let (count, messages) = Work::of(town).count_and_messages(&query)?;
    let sessions = PresentSessions::of(&messages, town);
    if context.json {
        let documents: Vec<Value> = messages
            .iter()
            .map(|mail| sessions.document(mail))
            .collect();
        return output::json(&documents);
    }
    if count == 0 {
        return output::line("No messages match.");
    }
    let mut table = Table::new(&["ID", "STATUS", "PRIORITY", "AGE", "FROM", "TO", "SUBJECT"]);
    for mail in &messages {
        let mut status = status(mail).to_owned();
        if sessions.stale_reason(mail).is_some() {
            status.push_str(", stale");
        }
        let is_new = mail.read_at.is_none() && mail.status == ItemStatus::Open;
        let paint = |text: &str| match is_new {
            true => Cell::painted(text, Paint::bold),
            false => text.into(),
        };
        table.row([
            mail.id.to_string().into(),
            paint(&status),
            priority_word(mail.priority).into(),
            age(mail).into(),
            Cell::address(mail.sender.clone()),
            Cell::address(mail.recipient.clone()),
            paint(&mail.subject),
        ]);
    }
    output::print(&table.render(Paint::for_stdout()))?;
    match count.saturating_sub(page.skip() + messages.len()) {
        0 => Ok(()),
        more => output::line(format!(
            "And {more} more: `--limit {count}` shows all, `{}` the next ones.",
            page.next()
        )),
    }
}

fn status(mail: &Mail) -> &'static str {
    match (mail.status, &mail.read_at) {
        (ItemStatus::Closed, _) => "archived",
        (ItemStatus::Hooked, _) => "on the hook",
        (_, Some(_)) => "read",
        (_, None) => "new",
    }
}

fn age(mail: &Mail) -> String {
    let sent = mail.sent_at.parse::<jiff::Timestamp>();
    sent.map_or_else(|_| String::new(), |sent| output::age(sent.as_second()))
}

fn show(mail: &Mail, sessions: &PresentSessions) -> Result<(), Problem> {
    let paint = Paint::for_stdout();
    output::line(paint.bold(&output::clean(&mail.subject)))?;
    let answers = mail.reply_to.as_ref().map(WorkId::to_string);
    let thread = (mail.thread != mail.id).then(|| mail.thread.to_string());
    for (name, value) in [
        ("letter", Some(mail.id.to_string())),
        ("from", Some(mail.sender.clone())),
        ("to", Some(mail.recipient.clone())),
        ("sent", Some(mail.sent_at.clone())),
        ("priority", Some(priority_word(mail.priority).to_owned())),
        ("answers", answers),
        ("thread", thread),
        ("stale", sessions.stale_reason(mail)),
    ] {
        if let Some(value) = value {
            let name = paint.dim(&format!("{name:<9}"));
            output::line(format!("{name} {}", output::clean(&value)))?;
        }
    }
    if !mail.body.is_empty() {
        output::line("")?;
    }
    output::lines(&mail.body)
}

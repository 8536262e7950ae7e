//! Reads, finds and archives messages.

use super::{document, whose};
use crate::context::Context;
use crate::output::table::{Cell, Table};
use crate::output::{self, Paint};
use clap::Args;
use gt_core::Problem;
use gt_core::mail::{Letter, priority_word};
use gt_core::session::SessionId;
use gt_core::work::{Status, WorkId};
use gt_town::Town;
use gt_town::messaging::mail;
use gt_town::records::items::{LetterQuery, Work};
use serde_json::Value;
use std::collections::HashMap;

/// List letters, the most urgent and newest first
#[derive(Debug, Args)]
pub(crate) struct InboxArgs {
    /// Whose [default: the agent that calls, or whose folder or pane this is; else `human`]
    #[arg(long, value_name = "TARGET")]
    agent: Option<String>,
    /// Also those that are archived
    #[arg(long)]
    all: bool,
    /// Only those that are not read
    #[arg(long, conflicts_with = "all")]
    unread: bool,
    #[command(flatten)]
    shown: Shown,
}

#[derive(Debug, Args)]
struct Shown {
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: usize,
}

/// Read a letter
///
/// It counts as read when who got it reads it.
#[derive(Debug, Args)]
pub(crate) struct ReadArgs {
    /// The letter
    #[arg(value_name = "ID")]
    id: String,
    /// All letters that belong together, in the order in which they were written
    #[arg(long)]
    thread: bool,
    /// It still counts as not read
    #[arg(long)]
    keep_unread: bool,
    /// Who reads [default: the agent that calls, or whose folder or pane this is; else `human`]
    #[arg(long, value_name = "TARGET")]
    agent: Option<String>,
}

/// Put letters away
#[derive(Debug, Args)]
pub(crate) struct ArchiveArgs {
    /// The letters: all of them, or none
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
    /// Whose [default: the agent that calls, or whose folder or pane this is; else `human`]
    #[arg(long, value_name = "TARGET")]
    agent: Option<String>,
}

/// Find letters by their words: got or written, archived ones too
#[derive(Debug, Args)]
pub(crate) struct SearchArgs {
    /// Text in the subject or body
    text: String,
    /// Whose [default: the agent that calls, or whose folder or pane this is; else `human`]
    #[arg(long, value_name = "TARGET")]
    agent: Option<String>,
    /// Everybody's
    #[arg(long, conflicts_with = "agent")]
    everybody: bool,
    #[command(flatten)]
    shown: Shown,
}

pub(super) fn inbox(args: &InboxArgs, town: &Town, context: &Context) -> Result<(), Problem> {
    let query = LetterQuery {
        recipient: Some(whose(town, args.agent.as_deref())?),
        archived: args.all,
        unread: args.unread,
        limit: Some(args.shown.limit),
        ..LetterQuery::default()
    };
    list(query, town, context)
}

pub(super) fn search(args: SearchArgs, town: &Town, context: &Context) -> Result<(), Problem> {
    let query = LetterQuery {
        party: match args.everybody {
            true => None,
            false => Some(whose(town, args.agent.as_deref())?),
        },
        text: Some(args.text),
        archived: true,
        limit: Some(args.shown.limit),
        ..LetterQuery::default()
    };
    list(query, town, context)
}

pub(super) fn read(args: &ReadArgs, town: &Town, context: &Context) -> Result<(), Problem> {
    let id: WorkId = args.id.parse()?;
    let reader = whose(town, args.agent.as_deref())?;
    let work = Work::of(town);
    let asked = work.letter(&id)?;
    let mut letters = match args.thread {
        false => vec![asked],
        true => work.letters(&LetterQuery {
            thread: Some(asked.thread),
            archived: true,
            ..LetterQuery::default()
        })?,
    };
    if !args.keep_unread {
        for letter in &mut letters {
            if letter.recipient == reader && letter.read_at.is_none() {
                *letter = work.mark_read(&letter.id)?;
            }
        }
    }
    let lives = Lives::of(&letters, town);
    if context.json {
        let documents: Vec<Value> = letters
            .iter()
            .map(|letter| lives.document(letter))
            .collect();
        return match (args.thread, documents.as_slice()) {
            (false, [one]) => output::json(one),
            _ => output::json(&documents),
        };
    }
    for (number, letter) in letters.iter().enumerate() {
        if number > 0 {
            output::line("")?;
        }
        show(letter, &lives)?;
    }
    Ok(())
}

pub(super) fn archive(args: &ArchiveArgs, town: &Town, context: &Context) -> Result<(), Problem> {
    let ids: Result<Vec<WorkId>, Problem> = args.ids.iter().map(|id| id.parse()).collect();
    let reader = whose(town, args.agent.as_deref())?;
    let archived = Work::of(town).archive(&reader, &ids?)?;
    if context.json {
        let documents: Vec<Value> = archived
            .iter()
            .map(|letter| document(letter, None))
            .collect();
        return output::json(&documents);
    }
    for letter in &archived {
        output::line(output::clean(&format!(
            "Archived {}: {}",
            letter.id, letter.subject
        )))?;
    }
    Ok(())
}

/// Present sessions of the recipients. Each is looked up once.
struct Lives(HashMap<String, Option<SessionId>>);

impl Lives {
    fn of(letters: &[Letter], town: &Town) -> Self {
        let mut lives = HashMap::new();
        for letter in letters {
            lives
                .entry(letter.recipient.clone())
                .or_insert_with_key(|reader| mail::present_life(town, reader));
        }
        Lives(lives)
    }

    fn life(&self, letter: &Letter) -> Option<&SessionId> {
        self.0.get(&letter.recipient)?.as_ref()
    }

    fn document(&self, letter: &Letter) -> Value {
        document(letter, self.life(letter))
    }

    fn stale_reason(&self, letter: &Letter) -> Option<String> {
        mail::stale_reason(letter, self.life(letter)?)
    }
}

fn list(query: LetterQuery, town: &Town, context: &Context) -> Result<(), Problem> {
    let query = LetterQuery {
        // A table does not show bodies.
        body: (!context.json).then_some(0),
        ..query
    };
    let (count, letters) = Work::of(town).count_and_letters(&query)?;
    let lives = Lives::of(&letters, town);
    if context.json {
        let documents: Vec<Value> = letters
            .iter()
            .map(|letter| lives.document(letter))
            .collect();
        return output::json(&documents);
    }
    if count == 0 {
        return output::line("There are no such letters.");
    }
    let mut table = Table::new(&["ID", "STATUS", "PRIORITY", "AGE", "FROM", "TO", "SUBJECT"]);
    for letter in &letters {
        let mut status = status(letter).to_owned();
        if lives.stale_reason(letter).is_some() {
            status.push_str(", stale");
        }
        let is_new = letter.read_at.is_none() && letter.status == Status::Open;
        let paint = |text: &str| match is_new {
            true => Cell::painted(text, Paint::bold),
            false => text.into(),
        };
        table.row([
            letter.id.to_string().into(),
            paint(&status),
            priority_word(letter.priority).into(),
            age(letter).into(),
            letter.sender.clone().into(),
            letter.recipient.clone().into(),
            paint(&letter.subject),
        ]);
    }
    output::print(&table.render(Paint::for_stdout()))?;
    match count - letters.len() {
        0 => Ok(()),
        more => output::line(format!("And {more} more: `--limit {count}` shows all.")),
    }
}

fn status(letter: &Letter) -> &'static str {
    match (letter.status, &letter.read_at) {
        (Status::Closed, _) => "archived",
        (Status::Hooked, _) => "on the hook",
        (_, Some(_)) => "read",
        (_, None) => "new",
    }
}

fn age(letter: &Letter) -> String {
    let sent = letter.sent_at.parse::<jiff::Timestamp>();
    sent.map_or_else(|_| String::new(), |sent| output::age(sent.as_second()))
}

fn show(letter: &Letter, lives: &Lives) -> Result<(), Problem> {
    let paint = Paint::for_stdout();
    output::line(paint.bold(&output::clean(&letter.subject)))?;
    let answers = letter.reply_to.as_ref().map(WorkId::to_string);
    let thread = (letter.thread != letter.id).then(|| letter.thread.to_string());
    for (name, value) in [
        ("letter", Some(letter.id.to_string())),
        ("from", Some(letter.sender.clone())),
        ("to", Some(letter.recipient.clone())),
        ("sent", Some(letter.sent_at.clone())),
        ("priority", Some(priority_word(letter.priority).to_owned())),
        ("answers", answers),
        ("thread", thread),
        ("stale", lives.stale_reason(letter)),
    ] {
        if let Some(value) = value {
            let name = paint.dim(&format!("{name:<9}"));
            output::line(format!("{name} {}", output::clean(&value)))?;
        }
    }
    if !letter.body.is_empty() {
        output::line("")?;
    }
    output::lines(&letter.body)
}

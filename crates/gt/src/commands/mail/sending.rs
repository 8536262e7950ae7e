//! Sends messages.

use super::super::ids;
use super::{document, writer};
use crate::commands::stdin;
use crate::commands::words::SuggestedWords;
use crate::context::Context;
use crate::output;
use clap::Args;
use gt_core::Problem;
use gt_core::mail::{PRIORITY_WORDS, priority};
use gt_town::Town;
use gt_town::messaging::mail::{self, SentMail};
use gt_town::records::items::MailDraft;
use serde_json::{Value, json};

/// Send mail to agents, people or groups
///
/// The sender is the calling agent, or `human`. A running recipient is notified at the end of its
/// turn.
#[derive(Debug, Args)]
pub(crate) struct SendArgs {
    /// The recipients: an agent, `human`, `RIG/*`, `RIG/crew/*`, `@crew`, `@polecats`,
    /// `@witnesses`, … or `@all`
    #[arg(value_name = "ADDRESS", required = true)]
    to: Vec<String>,
    /// Subject, in one line
    #[arg(long, short, allow_hyphen_values = true)]
    subject: String,
    #[command(flatten)]
    mail: MailFlags,
    /// The message that it answers; it continues that thread
    #[arg(long, value_name = "ID")]
    reply_to: Option<String>,
}

/// Reply to a message; its sender gets the reply
#[derive(Debug, Args)]
pub(crate) struct ReplyArgs {
    /// The message
    #[arg(value_name = "ID")]
    id: String,
    /// Subject [default: `Re:` and the subject of the message]
    #[arg(long, short, allow_hyphen_values = true)]
    subject: Option<String>,
    #[command(flatten)]
    mail: MailFlags,
}

#[derive(Debug, Args)]
struct MailFlags {
    /// Text of the message
    #[arg(long, short, value_name = "BODY", allow_hyphen_values = true)]
    message: Option<String>,
    /// Read the text from standard input
    #[arg(long, conflicts_with = "message")]
    stdin: bool,
    /// From 0, the most urgent, to 4; or urgent, high, normal, low, lowest
    #[arg(long, short, value_name = "N", default_value = "normal", value_parser = SuggestedWords::of(PRIORITY_WORDS))]
    priority: String,
    /// Equivalent to `--priority 0`
    #[arg(long, conflicts_with = "priority")]
    urgent: bool,
    /// Do not notify running recipients
    #[arg(long)]
    no_nudge: bool,
}

pub(super) fn send(args: SendArgs, town: &Town, context: &Context) -> Result<(), Problem> {
    let mut draft = args.mail.draft(args.subject, town)?;
    let answered = args.reply_to.as_deref().map(|id| ids::message(town, id));
    draft.reply_to = answered.transpose()?;
    let sent = mail::send(town, &draft, &args.to, !args.mail.no_nudge)?;
    if context.json {
        let documents: Vec<Value> = sent.iter().map(sent_document).collect();
        return output::json(&documents);
    }
    sent.iter().try_for_each(told)
}

pub(super) fn reply(args: ReplyArgs, town: &Town, context: &Context) -> Result<(), Problem> {
    if args.mail.message.is_none() && !args.mail.stdin {
        return Err(Problem::usage("the answer is empty").hint("`-m BODY` or `--stdin`"));
    }
    let subject = args.subject.unwrap_or_default();
    let draft = args.mail.draft(subject, town)?;
    let sent = mail::reply(
        town,
        &ids::message(town, &args.id)?,
        draft,
        !args.mail.no_nudge,
    )?;
    if context.json {
        return output::json(&sent_document(&sent));
    }
    told(&sent)
}

impl MailFlags {
    fn draft(&self, subject: String, town: &Town) -> Result<MailDraft, Problem> {
        let body = match (&self.message, self.stdin) {
            (Some(body), _) => body.clone(),
            (None, true) => stdin::message()?,
            // A message may have only a subject.
            (None, false) => String::new(),
        };
        let mut draft = MailDraft::new(&writer(town), &subject, &body);
        draft.priority = match self.urgent {
            true => 0,
            false => priority(&self.priority)?,
        };
        Ok(draft)
    }
}

fn sent_document(sent: &SentMail) -> Value {
    let mut document = document(&sent.mail, None);
    document["nudged"] = json!(sent.nudged);
    document["problem"] = json!(sent.problem.as_ref().map(why));
    output::without_nulls(document)
}

/// Formats a problem with its causes in one line.
fn why(problem: &Problem) -> String {
    let causes = problem.causes().iter().map(|cause| format!(": {cause}"));
    format!("{problem}{}", causes.collect::<String>())
}

fn told(sent: &SentMail) -> Result<(), Problem> {
    let mail = &sent.mail;
    if let Some(problem) = &sent.problem {
        output::warn(format!(
            "{} was not notified: {}",
            mail.recipient,
            why(problem)
        ));
    }
    output::line(output::clean(&format!(
        "Sent {} to {}.",
        mail.id, mail.recipient
    )))
}

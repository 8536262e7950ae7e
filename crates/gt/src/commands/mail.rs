mod reading;
mod sending;

use super::CommandResult;
use crate::context::Context;
use crate::output;
use clap::Subcommand;
use gt_core::mail::{Mail, PERSON};
use gt_core::session::SessionId;
use gt_core::{Caller, Problem};
use gt_town::Town;
use gt_town::agents::target;
use gt_town::messaging::mail;
use serde_json::{Value, json};
use std::process::ExitCode;

/// Mail between agents and people
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum MailCommand {
    Send(sending::SendArgs),
    Inbox(reading::InboxArgs),
    Read(reading::ReadArgs),
    Reply(sending::ReplyArgs),
    Archive(reading::ArchiveArgs),
    Search(reading::SearchArgs),
}

pub(crate) fn run(command: MailCommand, context: &Context) -> CommandResult {
    let town = context.town()?;
    match command {
        MailCommand::Send(args) => sending::send(args, &town, context)?,
        MailCommand::Inbox(args) => reading::inbox(&args, &town, context)?,
        MailCommand::Read(args) => reading::read(&args, &town, context)?,
        MailCommand::Reply(args) => sending::reply(args, &town, context)?,
        MailCommand::Archive(args) => reading::archive(&args, &town, context)?,
        MailCommand::Search(args) => reading::search(args, &town, context)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the owner of the inbox: the named one, the agent that calls or whose folder or pane this
/// is, or a person.
fn inbox_owner(town: &Town, given: Option<&str>) -> Result<String, Problem> {
    match given {
        Some(given) => {
            let owner = mail::address(town, given)?;
            if owner == PERSON {
                town.authorize_mailbox_of_person()?;
            }
            Ok(owner)
        }
        None => {
            let own = target::default_agent_if_any(town)?;
            Ok(own.map_or_else(|| PERSON.to_owned(), |own| own.address()))
        }
    }
}

/// Returns the sender of a message: the agent that calls, or a person in any folder.
fn writer(town: &Town) -> String {
    match town.caller() {
        Caller::Agent(address) => address,
        Caller::Person(_) | Caller::Gt => PERSON.to_owned(),
    }
}

/// Returns a message as JSON. `session` is the present session of the recipient.
fn document(mail: &Mail, session: Option<&SessionId>) -> Value {
    let mut document = json!(mail);
    let stale = session.and_then(|session| mail::stale_reason(mail, session));
    document["stale"] = json!(stale.is_some());
    document["stale_reason"] = json!(stale);
    output::without_nulls(document)
}

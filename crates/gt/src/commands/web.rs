use super::CommandResult;
use crate::context::Context;
use crate::output::table::Table;
use crate::output::{self, Paint};
use clap::{Args, Subcommand, ValueEnum};
use gt_core::caller::Caller;
use gt_core::operation::AccessScope;
use gt_core::{Problem, plural::counted};
use gt_town::Town;
use gt_web::AccessStore;
use jiff::SignedDuration;
use serde_json::json;
use std::process::ExitCode;

/// Access to the HTTP API
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum WebCommand {
    #[command(subcommand)]
    Token(TokenCommand),
}

/// Tokens of scripts, and devices that are logged in; only people may manage them
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum TokenCommand {
    Create(CreateArgs),
    /// List the tokens and devices
    List,
    Revoke(RevokeArgs),
}

/// Create a token, and print it: it is shown only once
#[derive(Debug, Args)]
pub(crate) struct CreateArgs {
    /// A name for it, such as ci
    #[arg(value_name = "NAME")]
    name: String,
    /// The operations that it may call; each scope includes the earlier ones
    #[arg(long, value_enum, default_value_t = AccessArg::Read)]
    scope: AccessArg,
    /// Days until it expires
    #[arg(long, value_name = "N", default_value_t = 90, value_parser = clap::value_parser!(u16).range(1..=3650))]
    days: u16,
}

/// Remove a token or device: it is refused from now on
#[derive(Debug, Args)]
pub(crate) struct RevokeArgs {
    /// Its name or id
    #[arg(value_name = "NAME")]
    name: String,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum AccessArg {
    /// Reads
    Read,
    /// And messages, mail and answers
    Talk,
    /// And work items, starts and stops of agents, and the merge queue
    Work,
    /// And keys, settings, and the removal of agents
    Admin,
}

impl AccessArg {
    pub(super) fn scope(self) -> AccessScope {
        match self {
            AccessArg::Read => AccessScope::Read,
            AccessArg::Talk => AccessScope::Talk,
            AccessArg::Work => AccessScope::Work,
            AccessArg::Admin => AccessScope::Admin,
        }
    }
}

pub(crate) fn run(command: WebCommand, context: &Context) -> CommandResult {
    let town = context.town()?;
    check_person(&town)?;
    let store = AccessStore::in_town(town.root());
    let WebCommand::Token(command) = command;
    match command {
        TokenCommand::Create(args) => create(&args, &store, context)?,
        TokenCommand::List => list(&store, context)?,
        TokenCommand::Revoke(args) => revoke(&args, &store, context)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Fails unless a person calls: a token has the rights of a person.
pub(super) fn check_person(town: &Town) -> Result<(), Problem> {
    match town.check_caller()? {
        Caller::Person(_) => Ok(()),
        caller @ (Caller::Agent(_) | Caller::Gt) => Err(Problem::denied(format!(
            "{caller} may not manage access to the API"
        ))
        .hint("only a person may: a token has the rights of a person")),
    }
}

fn create(args: &CreateArgs, store: &AccessStore, context: &Context) -> Result<(), Problem> {
    let lifetime = SignedDuration::from_hours(24 * i64::from(args.days));
    let (record, token) = store.create_token(&args.name, args.scope.scope(), lifetime)?;
    if context.json {
        return output::json(&json!({
            "id": record.id,
            "name": record.name,
            "scope": record.scope,
            "expires_at": record.expires_at.to_string(),
            "token": token,
        }));
    }
    output::line(token)?;
    let days = counted(usize::from(args.days), "day");
    output::note(format!(
        "The token {} has the scope {} and expires in {days}. It is not shown again.",
        record.name, record.scope
    ));
    Ok(())
}

fn list(store: &AccessStore, context: &Context) -> Result<(), Problem> {
    let list = store.list()?;
    let tokens = list.tokens.iter().map(|token| {
        let fields = ("token", &token.id, &token.name, token.scope);
        (fields, token.created_at, token.expires_at)
    });
    let devices = list.devices.iter().map(|device| {
        let fields = ("device", &device.id, &device.name, device.scope);
        (fields, device.created_at, device.expires_at)
    });
    let all = tokens.chain(devices);
    if context.json {
        let documents = all.map(|((kind, id, name, scope), created_at, expires_at)| {
            json!({
                "kind": kind,
                "id": id,
                "name": name,
                "scope": scope,
                "created_at": created_at.to_string(),
                "expires_at": expires_at.to_string(),
            })
        });
        return output::json(&documents.collect::<Vec<_>>());
    }
    let mut table = Table::new(&["KIND", "NAME", "ID", "SCOPE", "CREATED", "EXPIRES"]);
    let mut is_empty = true;
    for ((kind, id, name, scope), created_at, expires_at) in all {
        is_empty = false;
        table.row([
            kind.into(),
            output::clean(name).into(),
            id.clone().into(),
            scope.as_str().into(),
            output::age(created_at.as_second()).into(),
            output::minute(Some(&expires_at.to_string())).into(),
        ]);
    }
    match is_empty {
        true => output::fitted(
            "There are no tokens and devices. `gt web token create NAME` creates a token.",
            0,
        ),
        false => output::print(&table.render(Paint::for_stdout())),
    }
}

fn revoke(args: &RevokeArgs, store: &AccessStore, context: &Context) -> Result<(), Problem> {
    let revoked = store.revoke(&args.name)?;
    match context.json {
        true => output::json(&json!({"revoked": revoked})),
        false => output::line(format!("Revoked {}.", output::clean(&revoked.join(", ")))),
    }
}

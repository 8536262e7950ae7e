//! Completion of names in shells: agents, items, rigs, sessions, harnesses, roles and
//! settings.
//!
//! The scripts of `gt completions` call `gt` with [`VARIABLE`] set at every press of Tab. The names
//! come from the town's files, without a call to tmux. A town that cannot be read completes nothing.

mod settings;

use super::{Cli, aliases};
use crate::context::Context;
use clap::{Arg, Command, CommandFactory};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use clap_complete::env::CompleteEnv;
use gt_core::Role;
use gt_town::Town;
use gt_town::catalog::{directory, harnesses};
use gt_town::records::items::{ItemQuery, Work};
use gt_town::records::sessions::{SessionQuery, Sessions};
use std::ffi::OsStr;

/// Variable by which a shell asks for completions; its value is the name of the shell.
pub(crate) const VARIABLE: &str = "GT_COMPLETE";

/// Most sessions and items that are offered.
const MAX: usize = 200;

/// A name with its description.
type Name = (String, String);

/// Reads the names of one kind. `typed` is the beginning of the word.
type Names = fn(&Town, &str) -> Option<Vec<Name>>;

/// First name of the command (empty for all), id or value name of the argument, and its names. The
/// first row that fits counts.
const ROWS: &[(&str, &str, &[Names])] = &[
    ("", "harness", &[harness_names]),
    ("", "role", &[roles]),
    ("", "rig", &[rigs]),
    ("config", "KEY", &[settings::keys]),
    ("config", "VALUE", &[settings::values]),
    ("harness", "NAME", &[harness_names]),
    ("role", "ROLE", &[roles]),
    ("crew", "NAME", &[agents]),
    ("polecat", "NAME", &[agents]),
    ("agent", "SLUG", &[slugs]),
    ("sessions", "ID", &[sessions]),
    ("sessions", "ID-OR-BEAD", &[sessions, items]),
    ("seance", "ID", &[sessions]),
    ("step", "SESSION", &[sessions]),
    ("", "RIG", &[rigs]),
    ("", "RIG|ID", &[rigs]),
    ("", "TARGET", &[agents]),
    ("", "target", &[agents]),
    ("", "AGENT", &[agents]),
    ("", "ADDRESS", &[agents]),
    ("", "ITEM", &[items]),
    ("", "BEAD", &[items]),
    ("", "BLOCKER", &[items]),
    ("", "BEAD|TARGET", &[items, agents]),
    ("", "ITEM|TARGET", &[items, agents]),
    ("", "ITEM|TITLE|TARGET", &[items, rigs, agents]),
];

/// Answers the request of a shell, if there is one, and ends the process.
pub(crate) fn answer() {
    if std::env::var_os(VARIABLE).is_some() {
        CompleteEnv::with_factory(table).var(VARIABLE).complete();
    }
}

/// Returns the table of commands with the completers of its arguments.
fn table() -> Command {
    let mut table = Cli::command();
    table.build();
    let names: Vec<String> = table
        .get_subcommands()
        .map(|it| it.get_name().to_owned())
        .collect();
    for name in names {
        table = table.mut_subcommand(&name, |command| with_completers(command, &name));
    }
    with_aliases(table)
}

/// Adds the aliases as hidden commands: completion offers them where no other command fits.
fn with_aliases(mut table: Command) -> Command {
    for (typed, canonical) in aliases::commands() {
        let command = |name: &'static str| command_of(&table, canonical).name(name).hide(true);
        table = match typed.split_once(' ') {
            Some((parent, name)) => {
                let command = command(name);
                table.mut_subcommand(parent, |parent| parent.subcommand(command))
            }
            None => {
                let command = command(typed);
                table.subcommand(command)
            }
        };
    }
    table
}

/// Returns the command of these words; one without arguments if the words have its argument.
fn command_of(table: &Command, canonical: &str) -> Command {
    let mut command = table;
    for word in canonical.split(' ').filter(|word| !word.starts_with('-')) {
        match command.find_subcommand(word) {
            Some(found) => command = found,
            None => return Command::new(""),
        }
    }
    command.clone()
}

fn with_completers(command: Command, first: &str) -> Command {
    let names: Vec<String> = command
        .get_subcommands()
        .map(|it| it.get_name().to_owned())
        .collect();
    let mut command = command.mut_args(|arg| match names_of(&arg, first) {
        Some(kinds) => arg.add(ArgValueCompleter::new(|typed: &OsStr| {
            candidates(kinds, typed)
        })),
        None => arg,
    });
    for name in names {
        command = command.mut_subcommand(&name, |it| with_completers(it, first));
    }
    command
}

fn names_of(arg: &Arg, first: &str) -> Option<&'static [Names]> {
    let value = arg.get_value_names().and_then(<[_]>::first);
    let is_named = |name: &str| {
        let by_id = arg.get_id() == name && arg.get_action().takes_values();
        by_id || value.is_some_and(|value| value.as_str() == name)
    };
    let row = ROWS
        .iter()
        .find(|(command, name, _)| (command.is_empty() || *command == first) && is_named(name));
    row.map(|(_, _, names)| *names)
}

fn candidates(kinds: &[Names], typed: &OsStr) -> Vec<CompletionCandidate> {
    let Some((typed, town)) = typed.to_str().zip(town()) else {
        return Vec::new();
    };
    let all = kinds
        .iter()
        .filter_map(|names| names(&town, typed))
        .flatten();
    all.filter(|(name, _)| name.starts_with(typed))
        .map(|(name, about)| {
            let about = (!about.is_empty()).then(|| about.into());
            CompletionCandidate::new(name).help(about)
        })
        .collect()
}

/// Returns the town of this folder. Completion shows no errors.
fn town() -> Option<Town> {
    let global = super::Global {
        town: None,
        json: false,
        verbose: false,
    };
    // A shell has no place for an error.
    Context::new(&global).ok()?.town().ok()
}

/// Returns the addresses of agents, and their bare names where the typed word has no slash.
fn agents(town: &Town, typed: &str) -> Option<Vec<Name>> {
    let mut names = Vec::new();
    for agent in directory::on_disk(town) {
        let address = agent.address();
        let name = agent
            .name()
            .filter(|_| !typed.is_empty() && !typed.contains('/'));
        names.extend(name.map(|name| (name.to_owned(), address.clone())));
        names.push((address, String::new()));
    }
    Some(names)
}

fn slugs(town: &Town, _: &str) -> Option<Vec<Name>> {
    let all = directory::on_disk(town).into_iter();
    let slugs = all.filter(|agent| agent.role() == Role::Agent);
    Some(
        slugs
            .filter_map(|agent| Some((agent.name()?.to_owned(), String::new())))
            .collect(),
    )
}

fn rigs(town: &Town, _: &str) -> Option<Vec<Name>> {
    let rigs = town.registry().rigs.keys();
    Some(rigs.map(|rig| (rig.clone(), String::new())).collect())
}

/// Returns the items that are not closed. Completion shows no errors.
fn items(town: &Town, _: &str) -> Option<Vec<Name>> {
    let query = ItemQuery {
        limit: Some(MAX),
        ..ItemQuery::default()
    };
    // A shell has no place for an error.
    let found = Work::of(town).find(&query).ok()?.into_iter();
    Some(
        found
            .map(|item| (item.id.to_string(), item.title))
            .collect(),
    )
}

/// Returns the newest sessions. Completion shows no errors.
fn sessions(town: &Town, _: &str) -> Option<Vec<Name>> {
    let query = SessionQuery {
        limit: Some(MAX),
        ..SessionQuery::default()
    };
    // A shell has no place for an error.
    let found = Sessions::of(town).find(&query).ok()?.into_iter();
    Some(
        found
            .map(|it| (it.id, it.agent.unwrap_or_default()))
            .collect(),
    )
}

fn harness_names(town: &Town, _: &str) -> Option<Vec<Name>> {
    let names = harnesses::names(town).into_iter();
    Some(names.map(|name| (name, String::new())).collect())
}

fn roles(_: &Town, _: &str) -> Option<Vec<Name>> {
    let roles = Role::all();
    Some(
        roles
            .map(|role| (role.as_str().to_owned(), String::new()))
            .collect(),
    )
}

//! Suggestions of similar names in errors: the best ones first, and none that the help does not show.

use super::Cli;
use clap::error::{ContextKind, ContextValue};
use clap::{Command, CommandFactory};
use std::ffi::OsString;

/// Most commands that an error suggests.
const MAX: usize = 3;

/// Returns the error of these words with the suggestions that the help shows.
pub(super) fn shown(mut error: clap::Error, words: &[OsString]) -> clap::Error {
    let similar = [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg];
    if similar.iter().all(|kind| error.get(*kind).is_none()) {
        return error;
    }
    let mut table = Cli::command();
    table.build();
    let command = typed_command(&table, words);
    if let Some(ContextValue::Strings(names)) = error.remove(ContextKind::SuggestedSubcommand) {
        let is_shown = |name: &String| {
            let found = command.find_subcommand(name);
            found.is_some_and(|found| !found.is_hide_set())
        };
        // clap has the most similar name last.
        let names: Vec<String> = names.into_iter().rev().filter(is_shown).take(MAX).collect();
        if !names.is_empty() {
            error.insert(
                ContextKind::SuggestedSubcommand,
                ContextValue::Strings(names),
            );
        }
    }
    if let Some(ContextValue::String(name)) = error.remove(ContextKind::SuggestedArg)
        && let Some(name) = shown_option(command, &name)
    {
        error.insert(ContextKind::SuggestedArg, ContextValue::String(name));
    }
    error
}

/// Returns the command that the words name.
fn typed_command<'a>(table: &'a Command, words: &[OsString]) -> &'a Command {
    let mut command = table;
    for word in words.iter().skip(1) {
        command = command.find_subcommand(word).unwrap_or(command);
    }
    command
}

/// Returns the option as the help shows it: an alias by its proper name. A hidden option is none.
fn shown_option(command: &Command, name: &str) -> Option<String> {
    let Some(long) = name.strip_prefix("--") else {
        return Some(name.to_owned());
    };
    let mut options = command.get_arguments().filter(|it| !it.is_hide_set());
    let found = options.find(|option| {
        let aliases = option.get_all_aliases().unwrap_or_default();
        option.get_long() == Some(long) || aliases.contains(&long)
    })?;
    Some(format!("--{}", found.get_long()?))
}

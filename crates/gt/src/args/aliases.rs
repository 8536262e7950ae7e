//! Aliases for commands of other tools: the typed words, and the words of `gt` that replace them.
//!
//! An alias is a row of one table, rewritten before clap parses the words. It has no code of its
//! own, and help and suggestions do not show it. Completion offers it where no command fits.

mod table;

use super::Cli;
use super::old_forms::first_of_command;
use clap::{Arg, Command, CommandFactory};
use std::ffi::{OsStr, OsString};
use table::ALIASES;

/// Rewrites familiar words. Returns other words as they are.
pub(super) fn rewrite(mut words: Vec<OsString>) -> Vec<OsString> {
    let first = first_of_command(&words);
    rewrite_options(&mut words, first);
    let fits = ALIASES
        .iter()
        .filter(|(typed, _)| !typed.contains(" -") && fits(typed, &words[first..]));
    let Some((typed, canonical)) = fits.max_by_key(|(typed, _)| typed.split(' ').count()) else {
        return words;
    };
    let length = typed.split(' ').count();
    let argument = words[first + length - 1].clone();
    let canonical: Vec<OsString> = canonical
        .split(' ')
        .map(|word| match word.split_once("{}") {
            Some((before, after)) => {
                let mut filled = OsString::from(before);
                filled.push(&argument);
                filled.push(after);
                filled
            }
            None => word.into(),
        })
        .collect();
    words.splice(first..first + length, canonical);
    words
}

/// Returns the rows that are names of commands: the typed name, and the words that replace it.
pub(super) fn commands() -> impl Iterator<Item = (&'static str, &'static str)> {
    let is_name = |(typed, _): &&(&str, &str)| !typed.contains(" -") && !typed.contains("{}");
    ALIASES.iter().filter(is_name).copied()
}

/// Returns whether the words begin with those of a row. `{}` is any word but an option.
fn fits(typed: &str, words: &[OsString]) -> bool {
    let mut typed = typed.split(' ').enumerate();
    typed.all(|(index, name)| {
        let word = words.get(index);
        word.is_some_and(|word| match name {
            "{}" => !word.as_encoded_bytes().starts_with(b"-"),
            name => word == name,
        })
    })
}

/// An option of a row.
struct OptionAlias {
    /// The command of the row.
    command: &'static str,
    /// As it is typed: `-c`.
    typed: &'static str,
    /// The option of `gt`; empty if there is none.
    canonical: &'static str,
    /// The typed option has a value, which becomes the last argument.
    moves_value: bool,
}

impl OptionAlias {
    /// Returns the option of a row; `None` for a row of words only.
    fn of((typed, canonical): &(&'static str, &'static str)) -> Option<Self> {
        let (command, _) = typed.split_once(" -")?;
        let option = typed[command.len()..].split_whitespace().next()?;
        let canonical = canonical.strip_prefix(command)?.trim();
        let moves_value = canonical == "{}";
        Some(OptionAlias {
            command,
            typed: option,
            canonical: if moves_value { "" } else { canonical },
            moves_value,
        })
    }

    /// Returns whether the word is this option, and its value if that is attached by `=`.
    fn matches<'a>(&self, word: &'a str) -> Option<Option<&'a str>> {
        match word.split_once('=') {
            Some((name, value)) if name == self.typed => Some(Some(value)),
            _ => (word == self.typed).then_some(None),
        }
    }
}

/// Replaces the options of a command. Values of other options and words after `--` stay.
fn rewrite_options(words: &mut Vec<OsString>, first: usize) {
    let rows = ALIASES.iter().filter_map(OptionAlias::of);
    let rows: Vec<OptionAlias> = rows
        .filter(|row| fits(row.command, &words[first..]))
        .collect();
    // Other calls must not pay for the complete table.
    let is_typed = |word: &OsString| {
        let names = |text: &str| rows.iter().any(|row| row.matches(text).is_some());
        word.to_str().is_some_and(names) || unbundled(word, &rows).is_some()
    };
    let Some(row) = rows.first().filter(|_| words[first..].iter().any(is_typed)) else {
        return;
    };
    // A longer command, such as `crew start`, has no rows in common with a shorter one.
    let names = row.command.split(' ');
    let mut index = first + names.clone().count();
    let command = built(names);
    let mut moved = Vec::new();
    while let Some(word) = words.get(index).filter(|word| *word != "--") {
        if let Some(letters) = unbundled(word, &rows) {
            words.splice(index..=index, letters);
            continue;
        }
        let found = word.to_str().and_then(|word| {
            let found =
                |row: &OptionAlias| Some((row.canonical, row.moves_value, row.matches(word)?));
            rows.iter().find_map(found)
        });
        match found {
            Some((_, true, Some(value))) => {
                moved.push(OsString::from(value));
                words.remove(index);
                continue;
            }
            Some((_, true, None)) => {
                words.remove(index);
                moved.extend((index < words.len()).then(|| words.remove(index)));
                continue;
            }
            Some(("", ..)) => {
                words.remove(index);
                continue;
            }
            Some((canonical, _, Some(value))) => {
                words[index] = format!("{canonical}={value}").into();
            }
            Some((canonical, _, None)) => words[index] = canonical.into(),
            None => {}
        }
        index += match takes_next(&command, &words[index]) {
            true => 2,
            false => 1,
        };
    }
    if !moved.is_empty() && index >= words.len() {
        // The value may begin like an option.
        words.push("--".into());
    }
    words.append(&mut moved);
}

/// Returns the command of these names with its arguments.
fn built<'a>(names: impl Iterator<Item = &'a str>) -> Command {
    let mut table = Cli::command();
    table.build();
    let mut command = &table;
    for name in names {
        command = command.find_subcommand(name).unwrap_or(command);
    }
    command.clone()
}

/// Splits `-cy` into `-c` and `-y` if all of its letters are options of the rows.
fn unbundled(word: &OsStr, rows: &[OptionAlias]) -> Option<Vec<OsString>> {
    let letters = word.to_str()?.strip_prefix('-')?;
    let options = letters.chars().map(|letter| format!("-{letter}"));
    let is_row = |option: &String| {
        rows.iter()
            .any(|row| row.typed == option && !row.moves_value)
    };
    let is_bundle = letters.chars().count() > 1 && options.clone().all(|option| is_row(&option));
    is_bundle.then(|| options.map(OsString::from).collect())
}

/// Returns whether the word is an option whose value is the next word.
fn takes_next(command: &Command, word: &OsStr) -> bool {
    let Some(option) = word.to_str().and_then(|word| word.strip_prefix('-')) else {
        return false;
    };
    let has_value = |arg: &Arg| arg.get_action().takes_values();
    if let Some(name) = option.strip_prefix('-') {
        let is_named = |arg: &&Arg| {
            arg.get_long() == Some(name)
                || arg.get_all_aliases().is_some_and(|all| all.contains(&name))
        };
        return command
            .get_arguments()
            .find(is_named)
            .is_some_and(has_value);
    }
    // The first letter with a value takes the rest of the word, or the next word.
    let mut letters = option.chars();
    let with_value = letters.find(|letter| {
        let mut all = command.get_arguments();
        let arg = all.find(|arg| arg.get_short() == Some(*letter));
        arg.is_some_and(has_value)
    });
    with_value.is_some() && letters.as_str().is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::help;

    fn rewritten(line: &str) -> String {
        let words = line.split(' ').map(OsString::from).collect();
        let words = rewrite(words).into_iter();
        let words: Vec<String> = words.map(|word| word.into_string().unwrap()).collect();
        words.join(" ")
    }

    /// Lines that people type, and the lines that they stand for.
    const LINES: &[(&str, &str)] = &[
        ("gt agents list", "gt agents"),
        ("gt boot attach", "gt attach boot"),
        ("gt --town /t close he-1", "gt --town /t work close he-1"),
        ("gt crew at max", "gt attach max"),
        ("gt crew attach he/max", "gt attach he/max"),
        ("gt crew remove max --force", "gt crew rm max --force"),
        (
            "gt crew start max --agent codex",
            "gt crew start max --harness codex",
        ),
        ("gt crew status", "gt crew list"),
        ("gt --json crew status", "gt --json crew list"),
        ("gt crew status max", "gt agents --stopped max"),
        ("gt deacon attach", "gt attach deacon"),
        (
            "gt deacon start --agent=codex",
            "gt deacon start --harness=codex",
        ),
        ("gt feed --since 2h", "gt events --feed --since 2h"),
        (
            "gt handoff -c -n -y he-1",
            "gt handoff --collect --dry-run he-1",
        ),
        ("gt handoff -w", "gt handoff --watch"),
        ("gt handoff max -cny", "gt handoff max --collect --dry-run"),
        ("gt krc", "gt events stats"),
        ("gt krc config", "gt events retention"),
        ("gt krc prune --auto", "gt events prune --auto"),
        ("gt krc stats", "gt events stats"),
        ("gt ls", "gt agents"),
        ("gt mail check", "gt mail inbox --unread"),
        ("gt mail delete hq-1", "gt mail archive hq-1"),
        ("gt mail inbox mayor", "gt mail inbox --agent mayor"),
        ("gt mail inbox --all", "gt mail inbox --all"),
        ("gt mail mark-read hq-1", "gt mail read hq-1"),
        ("gt mail thread hq-1", "gt mail read --thread hq-1"),
        ("gt mayor attach", "gt attach mayor"),
        ("gt mayor start --agent x", "gt mayor start --harness x"),
        ("gt nudge max -m Hello", "gt nudge max -- Hello"),
        (
            "gt nudge -m --list max --priority urgent",
            "gt nudge max --priority urgent -- --list",
        ),
        ("gt nudge max --message=Hello", "gt nudge max -- Hello"),
        ("gt polecat remove Toast", "gt polecat nuke Toast"),
        ("gt polecat status", "gt polecat list"),
        ("gt polecat status Toast", "gt polecat show Toast"),
        ("gt ps", "gt agents"),
        ("gt ready", "gt work ready"),
        ("gt refinery attach", "gt attach refinery"),
        ("gt refinery attach he", "gt attach he/refinery"),
        (
            "gt refinery start --agent x",
            "gt refinery start --harness x",
        ),
        (
            "gt sessions find --agent max",
            "gt sessions list --agent max",
        ),
        ("gt show he-1", "gt work show he-1"),
        (
            "gt sling he-1 --agent codex",
            "gt sling he-1 --harness codex",
        ),
        ("gt start max --agent codex", "gt start max --harness codex"),
        (
            "gt task start he-1 --agent x",
            "gt task start he-1 --harness x",
        ),
        ("gt up --agent x", "gt up --harness x"),
        ("gt whoami", "gt agents --own"),
        ("gt witness attach", "gt attach witness"),
        ("gt witness attach he", "gt attach he/witness"),
        ("gt witness start --agent x", "gt witness start --harness x"),
        ("gt boot restart --agent x", "gt boot restart --harness x"),
        ("gt boot start --agent x", "gt boot start --harness x"),
        (
            "gt crew restart max --agent x",
            "gt crew restart max --harness x",
        ),
        (
            "gt deacon restart --agent x",
            "gt deacon restart --harness x",
        ),
        (
            "gt dog run Errand --agent x",
            "gt dog run Errand --harness x",
        ),
        ("gt mayor restart --agent x", "gt mayor restart --harness x"),
        (
            "gt refinery restart --agent x",
            "gt refinery restart --harness x",
        ),
        ("gt restart max --agent x", "gt restart max --harness x"),
        (
            "gt witness restart --agent x",
            "gt witness restart --harness x",
        ),
        ("gt dog status", "gt dog list"),
        ("gt dog status rex", "gt agents --stopped rex"),
        // Other commands and texts stay, and so do values that look like an alias.
        ("gt handoff -m -c -s -n", "gt handoff -m -c -s -n"),
        ("gt handoff --message -y", "gt handoff --message -y"),
        ("gt handoff -m=-c -c", "gt handoff -m=-c --collect"),
        ("gt handoff -mNote -c", "gt handoff -mNote --collect"),
        (
            "gt start max --instructions --agent --agent x",
            "gt start max --instructions --agent --harness x",
        ),
        ("gt nudge max -- -m", "gt nudge max -- -m"),
        ("gt hook --agent max", "gt hook --agent max"),
        ("gt work show he-1", "gt work show he-1"),
        ("gt", "gt"),
    ];

    #[test]
    fn familiar_lines_are_lines_of_gt() {
        for (typed, expected) in LINES {
            assert_eq!(rewritten(typed), *expected, "{typed}");
            let parsed = Cli::command().try_get_matches_from(expected.split(' '));
            assert!(parsed.is_ok(), "{expected}: {:?}", parsed.err());
        }
    }

    #[test]
    fn every_alias_has_a_line_in_the_test_and_none_in_the_help() {
        for (alias, _) in ALIASES {
            let words: Vec<&str> = alias.split(' ').filter(|word| *word != "{}").collect();
            let has = |line: &str| {
                let line: Vec<&str> = line.split([' ', '=']).collect();
                words.iter().all(|word| line.contains(word))
            };
            assert!(LINES.iter().any(|(typed, _)| has(typed)), "{alias}");
            // An alias takes no command of `gt` away.
            let command = alias.split(" -").next().unwrap_or_default();
            if !alias.contains(" -") && !alias.contains("{}") {
                let path: Vec<String> = command.split(' ').map(str::to_owned).collect();
                assert!(!help::exists(&crate::args::table(), &path), "{alias}");
            }
        }
    }
}

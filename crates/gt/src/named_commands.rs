//! Tests that every `gt` command in a hint, a message or a help text is valid.
//!
//! Commands are found in backquotes in the sources. Placeholders become values, so that only names
//! of commands and options, and the number of arguments, are checked. A command may be named
//! without its required arguments.

use crate::args::{Cli, table};
use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Replacement for any placeholder. It is a valid id, name and path.
const VALUE: &str = "gt-4k2qz";

/// Commands that exist only in tests and examples.
const MADE_UP: &[&str] = &["gt x"];

fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        let name = entry.file_name().into_string().unwrap();
        let is_text = [".rs", ".toml", ".md"]
            .iter()
            .any(|end| name.ends_with(end));
        if path.is_dir() {
            sources(&path, found);
        } else if is_text && name != "named_commands.rs" && !name.starts_with("tests") {
            found.push(path);
        }
    }
}

/// Returns the commands in backquotes of a line.
fn commands(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (number, part) in line.split('`').enumerate() {
        // Every second part is between two backquotes.
        if number % 2 == 1 && part.starts_with("gt ") && line.matches('`').count().is_multiple_of(2)
        {
            found.push(part.to_owned());
        }
    }
    found
}

/// Splits a command into words, with values in place of placeholders.
fn words(command: &str) -> Vec<String> {
    let mut plain = String::new();
    let mut depth = 0;
    for c in command.chars() {
        match c {
            '{' if depth == 0 => {
                depth = 1;
                plain.push_str(VALUE);
            }
            '{' => depth += 1,
            '}' => depth -= 1,
            _ if depth > 0 => {}
            other => plain.push(other),
        }
    }
    let is_placeholder = |word: &&str| {
        let letters = word.chars().filter(|c| c.is_alphabetic());
        let mut letters = letters.peekable();
        letters.peek().is_some() && letters.all(char::is_uppercase) && word.len() > 1
    };
    let value = |word: &str| match is_placeholder(&word) {
        true => VALUE.to_owned(),
        false => word.to_owned(),
    };
    plain.split_whitespace().map(value).collect()
}

/// Returns the reason why a command is invalid.
fn problem(command: &str) -> Option<String> {
    let is_pattern = command.contains(['…', '|', '<', '[', '\\', '"']);
    if is_pattern || MADE_UP.contains(&command) {
        return None;
    }
    let words = words(command);
    if words.get(1).is_some_and(|word| word == "help") {
        return None;
    }
    let error = Cli::command().try_get_matches_from(&words).err()?;
    // The placeholder is the name of the command itself.
    let is_filled_in =
        error.get(ContextKind::InvalidSubcommand) == Some(&ContextValue::String(VALUE.to_owned()));
    if is_filled_in {
        return None;
    }
    let is_only_short = matches!(
        error.kind(),
        ErrorKind::MissingRequiredArgument
            | ErrorKind::MissingSubcommand
            | ErrorKind::DisplayHelp
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    );
    (!is_only_short).then(|| format!("{} ({:?})", words.join(" "), error.kind()))
}

#[test]
fn commands_in_hints_can_be_typed() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = Vec::new();
    for name in ["board", "core", "gt", "town"] {
        sources(&crates.join(name).join("src"), &mut files);
    }
    let mut checked = 0;
    let mut wrong = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let lines = text.lines().enumerate();
        for (number, line) in lines.filter(|(_, line)| !line.trim_start().starts_with("//")) {
            for command in commands(line) {
                checked += 1;
                if let Some(problem) = problem(&command) {
                    let place = file.strip_prefix(crates).unwrap().display();
                    wrong.push(format!("{place}:{}: {problem}", number + 1));
                }
            }
        }
    }
    assert!(checked > 200, "only {checked} commands were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn commands_beside_each_other_have_help_texts_of_their_own() {
    let mut tables = vec![table()];
    while let Some(table) = tables.pop() {
        let mut texts = BTreeMap::new();
        for command in table.get_subcommands().filter(|it| !it.is_hide_set()) {
            let about = command.get_about().map(ToString::to_string);
            let about = about.unwrap_or_else(|| panic!("{} has no help text", command.get_name()));
            if let Some(other) = texts.insert(about.clone(), command.get_name().to_owned()) {
                panic!(
                    "{other} and {} of {}: {about}",
                    command.get_name(),
                    table.get_name()
                );
            }
        }
        tables.extend(table.get_subcommands().cloned());
    }
}

#[test]
fn wrong_commands_are_found() {
    for command in [
        "gt wrok list",
        "gt crew start --no-such x",
        "gt witness start a b",
    ] {
        assert!(problem(command).is_some(), "{command}");
    }
    for command in [
        "gt crew add {rig}/{name}",
        "gt task start",
        "gt work show ID",
    ] {
        assert_eq!(problem(command), None);
    }
    assert_eq!(
        commands("a `gt x` and `y` or `gt z {}`"),
        ["gt x", "gt z {}"]
    );
}

//! Aliases for commands of other tools: the typed words, and the words of `gt` that replace them.
//!
//! An alias is a row of one table, rewritten before clap parses the words. It has no code of its
//! own, and help and suggestions do not show it.

use super::old_forms::first_of_command;
use std::ffi::OsString;

/// Typed words and canonical words. `{}` stands for the next argument. A typed option may be
/// anywhere among the arguments.
const ALIASES: &[(&str, &str)] = &[
    ("agents list", "agents"),
    ("boot attach", "attach boot"),
    ("close", "work close"),
    ("crew at", "attach"),
    ("crew attach", "attach"),
    ("crew remove", "crew rm"),
    ("crew start --agent", "crew start --harness"),
    ("crew status", "crew list"),
    ("crew status {}", "agents --stopped {}"),
    ("deacon attach", "attach deacon"),
    ("deacon start --agent", "deacon start --harness"),
    ("handoff -c", "handoff --collect"),
    ("handoff -n", "handoff --dry-run"),
    ("handoff -w", "handoff --watch"),
    // A handoff asks no questions, so the option has no effect.
    ("handoff -y", "handoff"),
    ("ls", "agents"),
    ("mail check", "mail inbox --unread"),
    ("mail delete", "mail archive"),
    ("mail inbox {}", "mail inbox --agent {}"),
    ("mail mark-read", "mail read"),
    ("mail thread", "mail read --thread"),
    ("mayor attach", "attach mayor"),
    ("mayor start --agent", "mayor start --harness"),
    ("nudge -m", "nudge"),
    ("nudge --message", "nudge"),
    ("polecat remove", "polecat nuke"),
    ("polecat status", "polecat list"),
    ("polecat status {}", "polecat show {}"),
    ("ps", "agents"),
    ("ready", "work ready"),
    ("refinery attach", "attach refinery"),
    ("refinery attach {}", "attach {}/refinery"),
    ("refinery start --agent", "refinery start --harness"),
    ("show", "work show"),
    ("sling --agent", "sling --harness"),
    ("start --agent", "start --harness"),
    ("task start --agent", "task start --harness"),
    ("up --agent", "up --harness"),
    ("whoami", "agents --own"),
    ("witness attach", "attach witness"),
    ("witness attach {}", "attach {}/witness"),
    ("witness start --agent", "witness start --harness"),
];

/// Rewrites familiar words. Returns other words as they are.
pub(super) fn rewrite(mut words: Vec<OsString>) -> Vec<OsString> {
    let first = first_of_command(&words);
    // Options are rewritten one after the other, the words of a command once.
    for (typed, canonical) in ALIASES.iter().filter(|(typed, _)| typed.contains(" -")) {
        rewrite_option(&mut words, first, typed, canonical);
    }
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

/// Replaces an option of a command, also if its value is attached by `=`.
fn rewrite_option(words: &mut Vec<OsString>, first: usize, typed: &str, canonical: &str) {
    let Some((command, option)) = typed.rsplit_once(' ') else {
        return;
    };
    if !fits(command, &words[first..]) {
        return;
    }
    let canonical = canonical.strip_prefix(command).unwrap_or("").trim();
    let mut index = first + command.split(' ').count();
    while let Some(word) = words.get(index).filter(|word| *word != "--") {
        let attached = word.to_str().and_then(|word| word.split_once('='));
        let attached = attached.filter(|(name, _)| *name == option);
        if word == option {
            match canonical.is_empty() {
                true => drop(words.remove(index)),
                false => words[index] = canonical.into(),
            }
        } else if let Some((_, value)) = attached {
            words[index] = match canonical.is_empty() {
                true => value.into(),
                false => format!("{canonical}={value}").into(),
            };
        }
        index += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, help, table};
    use clap::CommandFactory;

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
        (
            "gt handoff -c -n -y he-1",
            "gt handoff --collect --dry-run he-1",
        ),
        ("gt handoff -w", "gt handoff --watch"),
        ("gt ls", "gt agents"),
        ("gt mail check", "gt mail inbox --unread"),
        ("gt mail delete hq-1", "gt mail archive hq-1"),
        ("gt mail inbox mayor", "gt mail inbox --agent mayor"),
        ("gt mail inbox --all", "gt mail inbox --all"),
        ("gt mail mark-read hq-1", "gt mail read hq-1"),
        ("gt mail thread hq-1", "gt mail read --thread hq-1"),
        ("gt mayor attach", "gt attach mayor"),
        ("gt mayor start --agent x", "gt mayor start --harness x"),
        ("gt nudge max -m Hello", "gt nudge max Hello"),
        ("gt nudge max --message=Hello", "gt nudge max Hello"),
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
        // Other commands and texts stay.
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
                assert!(!help::exists(&table(), &path), "{alias}");
            }
        }
    }
}

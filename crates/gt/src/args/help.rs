//! Help texts that clap does not make: the grouped list of commands, groups, and examples.
//!
//! Only help builds them. Commands that hooks and status lines run pay nothing for it.

use super::groups::{self, CommandGroup, GROUPS};
use crate::output::{columns, wrapped};
use clap::Command;
use clap::builder::Styles;
use std::ffi::OsString;

/// Example lines of all commands. The words at the beginning of a line name its command.
const EXAMPLES: &str = include_str!("examples.txt");

/// Examples in the help of `gt` itself: lines of [`EXAMPLES`], or beginnings of them.
const FIRST_EXAMPLES: [&str; 5] = [
    "gt init # makes the town ~/gt",
    "gt rig add ~/src/hello",
    "gt sling 'Fix the typo in README.md'",
    "gt agents",
    "gt board",
];

/// Number of examples in the help of a command that has subcommands.
const EXAMPLES_OF_A_PARENT: usize = 5;

/// Widest help text.
const MAX_COLUMNS: usize = 100;

/// Adds the grouped list and the examples to the complete table of commands.
pub(super) fn complete(table: Command) -> Command {
    let list: String = GROUPS
        .iter()
        .map(|(group, _, title)| list(&table, *group, title, false) + "\n")
        .collect();
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{list}{}\n{{options}}{{after-help}}",
        heading("Options")
    );
    let after = table.get_after_help().map(ToString::to_string);
    let examples = format!("{}\n  {}", heading("Examples"), FIRST_EXAMPLES.join("\n  "));
    let after = format!("{examples}\n\n{}", after.unwrap_or_default());
    let table = table.help_template(template).after_help(after);
    with_examples(table, &mut Vec::new())
}

/// Returns the help of a group for `gt help GROUP`. If a command has the same name, the group's
/// commands follow the help of the command.
pub(super) fn of_group(table: &Command, words: &[OsString]) -> Option<String> {
    let [_, help, name] = words else { return None };
    let (group, title) = groups::named(name.to_str().filter(|_| help == "help")?)?;
    let mut text = String::new();
    if table.find_subcommand(name).is_some() {
        let words = ["gt".into(), name.clone(), "--help".into()];
        let help = table.clone().try_get_matches_from(words).err()?;
        text = help.render().ansi().to_string() + "\n";
    }
    text += &list(table, group, title, true);
    text += "\n`gt help COMMAND` explains a command.\n";
    Some(text)
}

/// Returns a group's commands with their descriptions, each with its subcommands if `deep`.
fn list(table: &Command, group: CommandGroup, title: &str, deep: bool) -> String {
    let mut rows = Vec::new();
    for name in groups::commands(group) {
        if let Some(command) = table.find_subcommand(name) {
            push_rows(command, name, deep, &mut rows);
        }
    }
    let widest = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    // The lists of all groups are aligned.
    let widest = if deep { widest } else { widest.max(11) };
    let literal = *Styles::styled().get_literal();
    let mut text = heading(title) + "\n";
    for (name, about) in rows {
        let about = wrapped(&about, columns(MAX_COLUMNS).saturating_sub(widest + 4));
        let about = about.join(&format!("\n{}", " ".repeat(widest + 4)));
        text += &format!("  {literal}{name:<widest$}{literal:#}  {about}\n");
    }
    text
}

fn push_rows(command: &Command, name: &str, deep: bool, rows: &mut Vec<(String, String)>) {
    let children: Vec<&Command> = visible(command).collect();
    // A command with required subcommands does nothing by itself.
    if !deep || children.is_empty() || !command.is_subcommand_required_set() {
        let about = command.get_about().map(ToString::to_string);
        rows.push((name.to_owned(), about.unwrap_or_default()));
    }
    for child in children.into_iter().filter(|_| deep) {
        push_rows(child, &format!("{name} {}", child.get_name()), true, rows);
    }
}

fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|it| !it.is_hide_set())
}

fn heading(title: &str) -> String {
    let style = *Styles::styled().get_header();
    format!("{style}{title}:{style:#}")
}

/// Appends the examples to the help of every command below this one.
fn with_examples(mut command: Command, path: &mut Vec<String>) -> Command {
    let names: Vec<String> = visible(&command)
        .map(|it| it.get_name().to_owned())
        .collect();
    for name in names {
        path.push(name.clone());
        command = command.mut_subcommand(&name, |it| with_examples(it, path));
        path.pop();
    }
    let lines = examples(&command, path);
    if path.is_empty() || lines.is_empty() {
        return command;
    }
    let text = format!("{}\n  {}", heading("Examples"), lines.join("\n  "));
    // The long help is chosen when the table is built, before this.
    command.after_help(text)
}

/// Returns the examples of a command: its own, or those of its first subcommands.
pub(crate) fn examples(command: &Command, path: &[String]) -> Vec<&'static str> {
    let of = |path: &[String]| {
        let prefix = format!("gt {}", path.join(" "));
        let is_of = move |line: &&str| {
            let rest = line.strip_prefix(prefix.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        };
        EXAMPLES.lines().filter(is_of)
    };
    let children: Vec<Vec<String>> = visible(command)
        .map(|child| [path, &[child.get_name().to_owned()]].concat())
        .collect();
    let is_own = |line: &&str| !children.iter().any(|path| of(path).any(|it| it == *line));
    let mut lines: Vec<&str> = of(path).filter(is_own).collect();
    let firsts = children.iter().filter_map(|path| of(path).next());
    lines.extend(firsts.take(EXAMPLES_OF_A_PARENT));
    lines
}

/// Returns whether the table has a command of these names.
#[cfg(test)]
pub(super) fn exists(table: &Command, path: &[String]) -> bool {
    let mut at = Some(table);
    for name in path {
        at = at.and_then(|command| command.find_subcommand(name));
    }
    at.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, table, words};
    use clap::CommandFactory;

    /// Calls a function for every visible command and its names.
    fn each(command: &Command, path: &mut Vec<String>, call: &mut dyn FnMut(&Command, &[String])) {
        for child in visible(command) {
            path.push(child.get_name().to_owned());
            call(child, path);
            each(child, path, call);
            path.pop();
        }
    }

    #[test]
    fn every_command_has_a_group() {
        let table = table();
        let mut expected: Vec<&str> = visible(&table).map(Command::get_name).collect();
        let mut found: Vec<&str> = groups::COMMANDS.iter().map(|(name, _)| *name).collect();
        expected.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, expected, "the rows of COMMANDS in args/groups.rs");
    }

    #[test]
    fn every_command_has_an_example_that_parses() {
        let mut missing = Vec::new();
        each(&table(), &mut Vec::new(), &mut |command, path| {
            if examples(command, path).is_empty() {
                missing.push(path.join(" "));
            }
        });
        assert_eq!(missing, Vec::<String>::new(), "lines in args/examples.txt");
        for line in FIRST_EXAMPLES {
            assert!(
                EXAMPLES.lines().any(|known| known.starts_with(line)),
                "{line}"
            );
        }
        for line in EXAMPLES.lines().filter(|line| !line.is_empty()) {
            let typed = line.split(" # ").next().unwrap_or_default();
            // The shell takes what is after these away.
            let typed = typed.split([';', '|', '<', '>']).next().unwrap_or_default();
            let split = split_like_a_shell(typed);
            let parsed = Cli::command().try_get_matches_from(&split);
            let parsed = parsed.unwrap_or_else(|error| panic!("{line}: {error}"));
            assert!(!words(&parsed).is_empty(), "{line}");
        }
    }

    #[test]
    fn every_argument_has_a_description() {
        let mut missing = Vec::new();
        each(&table(), &mut Vec::new(), &mut |command, path| {
            for argument in command.get_arguments() {
                let is_described = argument.get_help().is_some();
                if !argument.is_hide_set() && !is_described {
                    missing.push(format!("{} {}", path.join(" "), argument.get_id()));
                }
            }
        });
        assert_eq!(missing, Vec::<String>::new());
    }

    #[test]
    fn every_option_that_selects_an_agent_has_the_same_name() {
        // The sender of a message is a claim, not a selection.
        let names = ["agent", "sender"];
        let mut others = Vec::new();
        each(&table(), &mut Vec::new(), &mut |command, path| {
            for option in command.get_opts() {
                let value = option.get_value_names().and_then(<[_]>::first);
                let is_agent =
                    value.is_some_and(|it| ["AGENT", "TARGET", "ADDRESS"].contains(&it.as_str()));
                let long = option.get_long().unwrap_or_default();
                if is_agent != names.contains(&long) {
                    others.push(format!("{} --{long}", path.join(" ")));
                }
            }
        });
        assert_eq!(others, Vec::<String>::new());
    }

    fn split_like_a_shell(line: &str) -> Vec<String> {
        let (mut words, mut quoted, mut word) = (Vec::new(), false, None::<String>);
        for c in line.chars() {
            match c {
                '\'' => {
                    quoted = !quoted;
                    word.get_or_insert_default();
                }
                ' ' if !quoted => words.extend(word.take()),
                c => word.get_or_insert_default().push(c),
            }
        }
        words.extend(word);
        words
    }
}

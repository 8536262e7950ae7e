//! The event of a command that has changed something and has written no event of its own.
//!
//! Most commands write an event of a particular type in the engine. For all others that need a
//! capability, and for `gt doctor --fix`, the log gets the event `command` with the caller, the
//! process and the names in the arguments. Texts, values and addresses are not recorded, because
//! they may be secret.

use crate::args::capabilities;
use crate::commands::CommandResult;
use crate::context::Context;
use crate::error;
use clap::ArgMatches;
use clap::parser::ValueSource;
use gt_town::Town;
use gt_town::records::events;

/// Arguments that only name things.
const NAMES: &[&str] = &[
    "agent", "bead", "first", "harness", "id", "item", "items", "key", "name", "names", "project",
    "rig", "rigs", "role", "slug", "target", "targets", "what", "words",
];

/// Flags with which a command changes nothing.
const READING: &[&str] = &["dry_run", "list", "collect"];

/// Maximum length of the recorded names, in characters.
const LONGEST: usize = 400;

/// Writes the event of the command with these names, if it is due.
pub(crate) fn record(
    context: &Context,
    matches: &ArgMatches,
    words: &[&str],
    result: &CommandResult,
) {
    let leaf = leaf(matches);
    let is_fix = words == ["doctor"] && is_set(leaf, "fix");
    let is_change = capabilities::is_recorded(words) || is_fix;
    let is_reading = READING.iter().any(|flag| is_set(leaf, flag));
    let has_own_event = context.around().has_noted.is_set();
    let is_refused = result.as_ref().is_err_and(error::is_refusal);
    if !is_change || is_reading || has_own_event || is_refused {
        return;
    }
    // Without a town there is no log.
    let town = context
        .root()
        .and_then(|root| Town::open(&root, context.around().clone()));
    if let Ok(town) = town {
        events::note_command(&town, &names(leaf), result.is_err());
    }
}

fn leaf(matches: &ArgMatches) -> &ArgMatches {
    let mut leaf = matches;
    while let Some((_, inner)) = leaf.subcommand() {
        leaf = inner;
    }
    leaf
}

fn is_set(matches: &ArgMatches, flag: &str) -> bool {
    // An error means that the command has no such flag.
    matches!(matches.try_get_one::<bool>(flag), Ok(Some(true)))
}

/// Returns the names in the arguments.
fn names(matches: &ArgMatches) -> String {
    let mut found = Vec::new();
    for name in NAMES {
        let is_given = matches.try_contains_id(name).unwrap_or(false)
            && matches.value_source(name) == Some(ValueSource::CommandLine);
        if let (true, Ok(Some(values))) = (is_given, matches.try_get_raw(name)) {
            found.extend(values.map(|value| value.to_string_lossy().into_owned()));
        }
    }
    // An address of a repository may hold a password.
    found.retain(|name| !name.contains("://"));
    found.join(" ").chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args;

    #[test]
    fn names_are_recorded_and_values_are_not() {
        let check = |line: &str, expected: &str| {
            let words = line.split(' ');
            let matches = args::table().try_get_matches_from(words).unwrap();
            assert_eq!(names(leaf(&matches)), expected, "{line}");
        };
        check("gt config set env.pass SECRET --rig web", "env.pass web");
        check("gt crew add max joe --rig web", "max joe web");
        check("gt rig add https://ann:secret@example.org/a.git", "");
        check("gt mq reject m-1 --reason secret", "m-1");
        check("gt work create secret --rig web", "web");
    }
}

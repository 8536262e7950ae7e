//! The capability that each command needs: the table behind the checks of [`crate::context`].

use gt_core::capability::Capability::{
    self, Answer, Config, CreateWork, Hook, Keys, Mail, Merge, Message, Remove, Report, Sling,
    Stop, Work,
};

/// The requirement of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// The command changes nothing, or nothing of a town.
    Nothing,
    /// The capability, for each agent or item that the command changes.
    Each(Capability),
    /// The capability for the whole town: the command has no target.
    Town(Capability),
}
use Need::{Each, Nothing, Town};

/// Every command and its need. A row of a parent is that of all its subcommands without a row.
#[rustfmt::skip]
const COMMANDS: &[(&str, Need)] = &[
    ("account", Town(Config)), ("account list", Nothing),
    ("adopt", Town(Config)),
    ("agent", Each(Remove)), ("agent start", Each(Sling)), ("agent stop", Each(Stop)), ("agent reset", Each(Stop)),
    ("agents", Nothing),
    ("answer", Each(Answer)),
    ("attach", Nothing),
    ("board", Nothing),
    ("boot", Each(Stop)), ("boot start", Each(Sling)), ("boot status", Nothing),
    ("broadcast", Each(Message)),
    ("budget", Nothing), ("budget raise", Town(Config)),
    ("checkpoint", Each(Hook)), ("checkpoint read", Nothing),
    ("completions", Nothing),
    ("config", Town(Config)), ("config list", Nothing), ("config get", Nothing),
    ("costs", Nothing),
    ("crew", Each(Remove)), ("crew start", Each(Sling)), ("crew stop", Each(Stop)), ("crew restart", Each(Stop)), ("crew list", Nothing),
    ("daemon", Town(Config)), ("daemon status", Nothing), ("daemon logs", Nothing), ("daemon unit", Nothing),
    // These are refused for every agent by the command.
    ("dashboard", Town(Config)), ("web", Town(Config)), ("web token list", Nothing),
    ("deacon", Each(Stop)), ("deacon start", Each(Sling)), ("deacon status", Nothing),
    ("demo", Nothing),
    ("demo-agent", Nothing),
    ("dev", Each(Hook)), ("dev list", Nothing),
    ("dnd", Each(Hook)),
    // `--fix` is checked by the command.
    ("doctor", Nothing),
    ("dog", Each(Sling)), ("dog list", Nothing),
    ("done", Each(Hook)),
    ("down", Each(Stop)),
    ("escalate", Each(Message)), ("escalate list", Nothing), ("escalate show", Nothing), ("escalate ack", Each(Answer)), ("escalate close", Each(Answer)),
    ("estop", Town(Stop)),
    // `--accept` is checked by the command.
    ("events", Nothing), ("events emit", Each(Report)), ("events verify", Nothing),
    ("events stats", Nothing), ("events retention", Nothing), ("events prune", Town(Config)),
    ("formula", Nothing),
    ("handoff", Each(Hook)),
    ("harness", Nothing),
    ("hook", Each(Hook)),
    // It makes another town.
    ("init", Nothing),
    // Calls of tmux and of `gt` itself; an agent cannot claim to be them.
    ("internal", Nothing),
    ("interrupt", Each(Stop)),
    ("keys", Each(Keys)),
    ("logs", Nothing),
    ("mail", Each(Mail)), ("mail send", Each(Message)), ("mail reply", Each(Message)),
    ("man", Nothing),
    ("mayor", Each(Stop)), ("mayor start", Each(Sling)), ("mayor status", Nothing),
    ("mol", Each(Hook)), ("mol status", Nothing),
    ("mq", Each(Merge)), ("mq list", Nothing), ("mq status", Nothing), ("mq diff", Nothing), ("mq approve", Town(Config)), ("mq pull", Town(Merge)),
    ("notify", Nothing),
    ("nudge", Each(Message)),
    ("patrol", Town(Stop)), ("patrol log", Nothing), ("patrol rules", Nothing), ("patrol wake", Each(Message)),
    ("peek", Nothing),
    ("polecat", Each(Remove)), ("polecat list", Nothing), ("polecat show", Nothing),
    ("prime", Each(Report)),
    // `allow` is refused for every agent by the command.
    ("project", Town(Config)), ("project diff", Nothing),
    ("refinery", Each(Stop)), ("refinery start", Each(Sling)), ("refinery status", Nothing),
    ("restart", Each(Stop)),
    ("restore", Town(Sling)),
    ("rig", Town(Config)), ("rig list", Nothing), ("rig status", Nothing), ("rig start", Each(Sling)), ("rig stop", Each(Stop)), ("rig restart", Each(Stop)),
    ("role", Nothing),
    ("save", Each(Report)),
    ("schedule", Town(Sling)), ("schedule list", Nothing), ("schedule run", Each(Sling)),
    ("seance", Nothing),
    ("sessions", Nothing), ("sessions list", Nothing), ("sessions show", Nothing), ("sessions chain", Nothing),
    ("sessions stats", Nothing), ("sessions replay", Nothing), ("sessions export", Nothing), ("sessions rebuild", Town(Config)), ("sessions archive", Town(Config)),
    ("signal", Each(Report)),
    ("sling", Each(Sling)),
    ("start", Each(Sling)),
    ("status", Nothing),
    ("status-line", Nothing),
    ("step", Each(Report)), ("step list", Nothing),
    ("stop", Each(Stop)),
    ("sync", Each(Report)),
    ("task", Each(Hook)), ("task start", Each(Sling)), ("task list", Nothing), ("task show", Nothing), ("task attach", Nothing),
    ("task diff", Nothing), ("task stop", Each(Stop)), ("task pause", Each(Stop)), ("task resume", Each(Stop)), ("task cleanup", Each(Remove)),
    ("thaw", Town(Config)),
    ("tmux-conf", Nothing),
    ("unhook", Each(Hook)),
    ("up", Each(Sling)),
    ("wait", Nothing),
    ("watch", Nothing),
    ("witness", Each(Stop)), ("witness start", Each(Sling)), ("witness status", Nothing),
    ("work", Nothing), ("work list", Nothing), ("work ready", Nothing), ("work search", Nothing), ("work show", Nothing), ("work tree", Nothing),
    ("work export", Nothing), ("work create", Each(CreateWork)), ("work update", Each(Work)), ("work close", Each(Work)), ("work reopen", Each(Work)),
    ("work dep", Each(Work)), ("work import", Town(Work)),
];

/// Commands with a need that write an event of these types for each change, and change nothing
/// otherwise. All other commands with a need write the event `command` if they write no other.
#[rustfmt::skip]
const OWN_EVENTS: &[(&str, &[&str])] = &[
    ("dev open", &[]),
    ("dnd", &["dnd"]),
    ("handoff", &["handoff"]),
    ("hook", &["hook"]),
    ("mail inbox", &[]),
    ("mail search", &[]),
    ("patrol", &["patrol_action"]),
    ("prime", &["prime"]),
    ("schedule run", &["schedule_recurring", "schedule_failed", "sling"]),
    ("signal", &["question", "turn_end", "turn_failed", "usage_limit"]),
    ("sync", &["session_start", "session_end", "session_death"]),
];

/// Returns whether the command with these names gets the event `command` if it writes no other.
pub(crate) fn is_recorded(words: &[&str]) -> bool {
    let name = words.join(" ");
    let has_own = OWN_EVENTS.iter().any(|(command, _)| *command == name);
    !has_own && !matches!(need(words), None | Some(Nothing))
}

/// Returns the need of the command with these names; `None` without a row.
pub(crate) fn need(words: &[&str]) -> Option<Need> {
    (1..=words.len()).rev().find_map(|count| {
        let name = words.get(..count)?.join(" ");
        let row = COMMANDS.iter().find(|(command, _)| *command == name)?;
        Some(row.1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::table;

    /// Parents of which no subcommand needs a capability.
    const READ_ONLY: &[&str] = &["agents", "formula", "harness", "internal", "notify", "role"];

    /// Returns the names of all commands.
    fn leaves(command: &clap::Command, words: &[String], found: &mut Vec<Vec<String>>) {
        for sub in command
            .get_subcommands()
            .filter(|sub| sub.get_name() != "help")
        {
            let words = [words, &[sub.get_name().to_owned()]].concat();
            leaves(sub, &words, found);
            found.push(words);
        }
    }

    #[test]
    fn commands_with_own_events_need_a_capability_and_the_types_exist() {
        for (command, kinds) in OWN_EVENTS {
            let words: Vec<&str> = command.split(' ').collect();
            let leaf =
                table().try_get_matches_from([&["gt"][..], words.as_slice(), &["--help"]].concat());
            assert!(
                leaf.is_err_and(|error| error.kind() == clap::error::ErrorKind::DisplayHelp),
                "{command}"
            );
            assert!(!matches!(need(&words), None | Some(Nothing)), "{command}");
            for kind in *kinds {
                assert_eq!(gt_core::event::kind_of(kind).pattern, *kind, "{command}");
            }
        }
    }

    #[test]
    fn every_command_has_a_row_and_every_row_a_command() {
        let (table, mut found) = (table(), Vec::new());
        leaves(&table, &[], &mut found);
        for words in &found {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let name = words.join(" ");
            assert!(need(&words).is_some(), "add a row for `gt {name}`");
            // A parent without a need would let a new subcommand through that changes something.
            let has_row = COMMANDS.iter().any(|(command, _)| {
                command.contains(' ') && format!("{name} ").starts_with(&format!("{command} "))
            });
            let is_read_only = |parent: &&str| READ_ONLY.contains(parent);
            let parent = words.first().filter(|_| words.len() > 1);
            if parent.is_some_and(|parent| need(&[parent]) == Some(Nothing)) && !has_row {
                assert!(
                    parent.is_some_and(is_read_only),
                    "add a row for `gt {name}`"
                );
            }
        }
        for (command, _) in COMMANDS {
            let is_it = |words: &Vec<String>| words.join(" ") == *command;
            assert!(
                found.iter().any(is_it),
                "there is no command `gt {command}`"
            );
        }
    }
}

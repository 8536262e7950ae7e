//! Calls of earlier versions, rewritten to `gt internal`.
//!
//! Hooks, keys and timers in a running tmux server, and lines typed into the shells of tasks, keep
//! the words of the version that made them. They call the present binary, so their words must work
//! as long as such a server runs.

use gt_town::base::callback::Call;
use std::ffi::OsString;

/// A call of an earlier version.
struct OldForm {
    command: &'static [&'static str],
    /// The flag that made the command a call, and its place among the arguments.
    flag: Option<(usize, &'static str)>,
    /// Another flag whose value is now positional.
    dropped: Option<&'static str>,
    call: Call,
}

const fn command(command: &'static [&'static str], call: Call) -> OldForm {
    OldForm {
        command,
        flag: None,
        dropped: None,
        call,
    }
}

const fn flag(command: &'static [&'static str], flag: &'static str, call: Call) -> OldForm {
    OldForm {
        command,
        flag: Some((0, flag)),
        dropped: None,
        call,
    }
}

const OLD_FORMS: &[OldForm] = &[
    command(&["await-death"], Call::AwaitDeath),
    command(&["cycle"], Call::Cycle),
    command(&["init-step"], Call::InitStep),
    command(&["notify", "deliver"], Call::DeliverNotice),
    command(&["record"], Call::Record),
    command(&["replay-scrollback"], Call::ReplayScrollback),
    command(&["respawn"], Call::Respawn),
    OldForm {
        dropped: Some("--agent"),
        ..flag(&["done"], "--end", Call::EndSession)
    },
    flag(&["handoff"], "--take-over", Call::TakeOver),
    OldForm {
        flag: Some((1, "--background")),
        ..command(&["mq", "run"], Call::Merge)
    },
    OldForm {
        flag: Some((1, "--detach")),
        ..command(&["mq", "run"], Call::MergeDetached)
    },
    flag(&["nudge"], "--drain", Call::Deliver),
    flag(&["save"], "--auto", Call::Save),
    flag(&["sync"], "--ended", Call::RecordEnd),
    flag(&["sync"], "--hook", Call::Sync),
    flag(&["sync"], "--settle", Call::Settle),
];

/// Rewrites a call of an earlier version. Returns other words as they are.
pub(super) fn rewrite(words: Vec<OsString>) -> Vec<OsString> {
    let first = first_of_command(&words);
    let Some(form) = OLD_FORMS.iter().find(|form| form.fits(&words[first..])) else {
        return words;
    };
    let (before, after) = words.split_at(first);
    let mut arguments = after[form.command.len()..].to_vec();
    if let Some((place, _)) = form.flag {
        arguments.remove(place);
        if form.dropped.is_some_and(|flag| arguments[place] == flag) {
            arguments.remove(place);
        }
    }
    let name = form.call.words().map(OsString::from);
    before
        .iter()
        .cloned()
        .chain(name)
        .chain(arguments)
        .collect()
}

impl OldForm {
    fn fits(&self, words: &[OsString]) -> bool {
        let is_at = |index: usize, name: &str| words.get(index).is_some_and(|word| word == name);
        let mut names = self.command.iter().enumerate();
        let first = self.command.len();
        names.all(|(index, name)| is_at(index, name))
            && self
                .flag
                .is_none_or(|(place, flag)| is_at(first + place, flag))
            && self.dropped.is_none_or(|flag| is_at(first + 1, flag))
    }
}

/// Returns the index of the command, after the program and the global options.
pub(super) fn first_of_command(words: &[OsString]) -> usize {
    let mut index = 1.min(words.len());
    while let Some(word) = words.get(index) {
        index += match word.to_str() {
            Some("--town") => 2,
            Some("--json") => 1,
            Some(word) if word.starts_with("--town=") => 1,
            _ => return index,
        };
    }
    words.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, words as names};
    use clap::CommandFactory;

    fn rewritten(line: &str) -> Vec<String> {
        let words = line.split_whitespace().map(OsString::from).collect();
        let words = rewrite(words).into_iter();
        words.map(|word| word.into_string().unwrap()).collect()
    }

    /// Lines as earlier versions have written them.
    const LINES: &[(&str, &str)] = &[
        ("gt await-death 12", "gt internal await-death 12"),
        (
            "gt --town /t cycle next --session s --client c",
            "gt --town /t internal cycle next --session s --client c",
        ),
        ("gt init-step /f", "gt internal init-step /f"),
        (
            "gt --town /t notify deliver",
            "gt --town /t internal deliver-notice",
        ),
        (
            "gt --town /t record 0198 --pane=%1 --pid=2 --tty=/dev/pts/1 --columns=80 --rows=24 \
             --title=x --term=xterm --max-bytes=1",
            "gt --town /t internal record 0198 --pane=%1 --pid=2 --tty=/dev/pts/1 --columns=80 \
             --rows=24 --title=x --term=xterm --max-bytes=1",
        ),
        (
            "gt replay-scrollback /f -- sh sync --hook",
            "gt internal replay-scrollback /f -- sh sync --hook",
        ),
        (
            "gt --town /t respawn s --due --pane %1",
            "gt --town /t internal respawn s --due --pane %1",
        ),
        (
            "gt --town /t done --end --agent gastown/max",
            "gt --town /t internal end-session gastown/max",
        ),
        (
            "gt --town /t handoff --take-over gastown/max",
            "gt --town /t internal take-over gastown/max",
        ),
        (
            "gt --town /t mq run gastown --background",
            "gt --town /t internal merge gastown",
        ),
        (
            "gt --town /t mq run gastown --detach",
            "gt --town /t internal merge-detached gastown",
        ),
        (
            "gt --town /t nudge --drain gastown/max",
            "gt --town /t internal deliver gastown/max",
        ),
        ("gt --town /t save --auto", "gt --town /t internal save"),
        (
            "gt --town /t save --auto --timer",
            "gt --town /t internal save --timer",
        ),
        (
            "gt --town /t sync --ended 12",
            "gt --town /t internal record-end 12",
        ),
        ("gt --town /t sync --hook", "gt --town /t internal sync"),
        (
            "gt --town /t sync --settle 0198",
            "gt --town /t internal settle 0198",
        ),
    ];

    #[test]
    fn lines_of_earlier_versions_are_calls_of_this_one() {
        for (old, new) in LINES {
            let words = rewritten(old);
            assert_eq!(
                words.join(" "),
                new.split_whitespace().collect::<Vec<_>>().join(" ")
            );
            let matches = Cli::command().try_get_matches_from(&words).unwrap();
            assert_eq!(names(&matches)[0], "internal", "{old}");
        }
        let calls: Vec<&str> = LINES.iter().map(|(old, _)| *old).collect();
        for form in OLD_FORMS {
            let is_tested = |line: &str| {
                let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
                form.fits(&words[first_of_command(&words)..])
            };
            assert!(calls.iter().any(|line| is_tested(line)), "{:?}", form.call);
        }
    }

    #[test]
    fn commands_of_people_are_left_as_they_are() {
        for line in [
            "gt",
            "gt --json",
            "gt nudge gastown/max -- --drain",
            "gt done --message --end",
            "gt done --end",
            "gt handoff --auto --reason compaction",
            "gt prime --hook",
            "gt save",
            "gt sync --dry-run",
            "gt mq run gastown",
            "gt notify test",
            "gt done --agent gastown/max",
        ] {
            assert_eq!(rewritten(line).join(" "), line);
        }
    }
}

//! What an agent is told when a life begins: who it is, what it has to do, and what was
//! left to it.
//!
//! The engine gathers the parts; here is which state they amount to ([`state`]), how a
//! role's text is filled in ([`fill`]), and how much of it an agent gets ([`compose`]).

mod compose;

pub use compose::{Composed, Cut, Section, Weight, compose, plain};

use crate::handoff::Marker;
use crate::record::Outcome;
use crate::role::Role;
use serde::Serialize;

/// How a life begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// With nothing to do yet.
    Normal,
    /// Another life handed its work over.
    PostHandoff,
    /// The life before it ended in the middle of its work.
    CrashRecovery,
    /// With work on its hook.
    Autonomous,
}

impl State {
    pub fn word(self) -> &'static str {
        match self {
            State::Normal => "normal",
            State::PostHandoff => "post-handoff",
            State::CrashRecovery => "crash-recovery",
            State::Autonomous => "autonomous",
        }
    }
}

/// What the state is told from.
#[derive(Clone, Copy, Debug, Default)]
pub struct Situation<'a> {
    /// The life that asks.
    pub life: Option<&'a str>,
    pub marker: Option<&'a Marker>,
    /// How the life ended that left the marker.
    pub marked: Option<Outcome>,
    /// A checkpoint says what another life was at.
    pub is_left: bool,
    /// How the life before this one ended.
    pub before: Option<Outcome>,
    /// The life before this one had the same work.
    pub same_work: bool,
    /// The life before this one had the same conversation.
    pub same_conversation: bool,
    pub has_work: bool,
}

/// How this life begins.
pub fn state(situation: &Situation<'_>) -> State {
    let Situation {
        life,
        marker,
        marked,
        is_left,
        before,
        same_work,
        same_conversation,
        has_work,
    } = *situation;
    // A handoff may have come no further than its marker, and its life gone on and crashed.
    let is_done = marked == Some(Outcome::Handoff);
    if is_done && marker.is_some_and(|marker| marker.is_from_before(life)) {
        return State::PostHandoff;
    }
    let died_at_work = has_work && same_work && before == Some(Outcome::Crash);
    // A conversation that goes on after a clean exit knows what it was about.
    let goes_on = same_conversation && before == Some(Outcome::Exited);
    if (is_left && !goes_on) || died_at_work {
        State::CrashRecovery
    } else if has_work {
        State::Autonomous
    } else {
        State::Normal
    }
}

/// How an agent program says that a session of it begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Source {
    #[default]
    Startup,
    /// The same conversation goes on in a new process.
    Resume,
    /// Its context was emptied: it knows nothing any more.
    Clear,
    /// Its context was compacted: it knows what it was about.
    Compact,
    /// A copy of the conversation goes on.
    Fork,
}

impl Source {
    /// An unknown word is a beginning: it is better told too much than nothing.
    pub fn from_word(word: &str) -> Self {
        match word {
            "resume" => Source::Resume,
            "clear" => Source::Clear,
            "compact" => Source::Compact,
            "fork" => Source::Fork,
            _ => Source::Startup,
        }
    }

    /// Whether the agent still knows who it is, and why it is only reminded. It may have been
    /// compacted without its program saying so, as its life has noted; but who was emptied or
    /// copied since knows nothing of that.
    pub fn reminder(self, compacted: bool) -> Option<Reminder> {
        match self {
            Source::Compact => Some(Reminder::Compacted),
            Source::Startup | Source::Resume if compacted => Some(Reminder::Compacted),
            Source::Resume => Some(Reminder::Resumed),
            Source::Startup | Source::Clear | Source::Fork => None,
        }
    }
}

/// Why an agent is told only what it has on its hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reminder {
    Compacted,
    Resumed,
}

impl Reminder {
    /// What it does now.
    pub fn directive(self) -> &'static str {
        match self {
            Reminder::Compacted => "Context compacted. Continue your previous task.",
            Reminder::Resumed => "Conversation resumed. Continue your previous task.",
        }
    }
}

/// What the agents of a role are told about it, unless a town says otherwise.
pub fn template(role: Role) -> &'static str {
    match role {
        Role::Mayor => include_str!("prime/mayor.md"),
        Role::Deacon => include_str!("prime/deacon.md"),
        Role::Boot => include_str!("prime/boot.md"),
        Role::Overseer => include_str!("prime/overseer.md"),
        Role::Dog => include_str!("prime/dog.md"),
        Role::Witness => include_str!("prime/witness.md"),
        Role::Refinery => include_str!("prime/refinery.md"),
        Role::Crew => include_str!("prime/crew.md"),
        Role::Polecat => include_str!("prime/polecat.md"),
        Role::Agent => include_str!("prime/agent.md"),
        Role::Task => include_str!("prime/task.md"),
    }
}

/// Fills in `{{name}}`. What is not known stays as it is, so that it is seen; what is
/// filled in is not looked at again.
pub fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let mut text = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        text.push_str(before);
        let known = after.split_once("}}").and_then(|(name, after)| {
            let (_, value) = values.iter().find(|(known, _)| *known == name.trim())?;
            Some((value, after))
        });
        rest = match known {
            Some((value, after)) => {
                text.push_str(value);
                after
            }
            None => {
                text.push_str("{{");
                after
            }
        };
    }
    text.push_str(rest);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handoff::Mode;

    fn check<'a>(change: impl FnOnce(&mut Situation<'a>), expected: State) {
        let mut situation = Situation {
            life: Some("now"),
            ..Situation::default()
        };
        change(&mut situation);
        assert_eq!(state(&situation), expected, "{situation:?}");
    }

    #[test]
    fn a_beginning_is_told_by_what_was_left() {
        let marker = Marker {
            session: "before".into(),
            ..Marker::default()
        };
        let of_mine = Marker {
            session: "now".into(),
            ..Marker::default()
        };
        let saved = Marker {
            mode: Mode::Auto,
            ..marker.clone()
        };
        check(|_| {}, State::Normal);
        check(|it| it.has_work = true, State::Autonomous);
        check(|it| it.is_left = true, State::CrashRecovery);
        for (marker, marked, expected) in [
            (&marker, Some(Outcome::Handoff), State::PostHandoff),
            // One that did not get further than its marker has handed nothing over.
            (&marker, Some(Outcome::Crash), State::CrashRecovery),
            (&marker, Some(Outcome::Killed), State::CrashRecovery),
            (&marker, None, State::CrashRecovery),
            (&of_mine, None, State::CrashRecovery),
            // The life went on after it.
            (&saved, Some(Outcome::Handoff), State::CrashRecovery),
        ] {
            check(
                |it| {
                    it.marker = Some(marker);
                    it.marked = marked;
                    it.is_left = true;
                },
                expected,
            );
        }
        check(|it| it.marker = Some(&of_mine), State::Normal);
        check(|it| it.before = Some(Outcome::Crash), State::Normal);
        for (same_work, expected) in [(true, State::CrashRecovery), (false, State::Autonomous)] {
            check(
                |it| {
                    it.before = Some(Outcome::Crash);
                    it.has_work = true;
                    it.same_work = same_work;
                },
                expected,
            );
        }
        for (same_conversation, expected) in
            [(true, State::Autonomous), (false, State::CrashRecovery)]
        {
            check(
                |it| {
                    it.before = Some(Outcome::Exited);
                    it.has_work = true;
                    it.is_left = true;
                    it.same_conversation = same_conversation;
                },
                expected,
            );
        }
    }

    #[test]
    fn who_knows_what_it_was_about_is_only_reminded() {
        use Reminder::{Compacted, Resumed};
        for (word, told, noted) in [
            ("startup", None, Some(Compacted)),
            ("resume", Some(Resumed), Some(Compacted)),
            ("compact", Some(Compacted), Some(Compacted)),
            ("clear", None, None),
            ("fork", None, None),
        ] {
            let source = Source::from_word(word);
            assert_eq!(source.reminder(false), told, "{word}");
            assert_eq!(source.reminder(true), noted, "{word}, compacted");
        }
    }

    #[test]
    fn names_are_filled_in_once() {
        let values = [("agent", "{{rig}}"), ("rig", "gastown")];
        assert_eq!(
            fill("{{agent}} of {{ rig }}, {{other}} {{", &values),
            "{{rig}} of gastown, {{other}} {{"
        );
    }

    #[test]
    fn every_role_is_told_something() {
        for role in Role::all() {
            let text = template(role);
            assert!(text.trim().len() > 100, "{role}");
            let known = ["agent", "name", "rig", "town", "work_dir", "branch"];
            let values: Vec<_> = known.iter().map(|name| (*name, "x")).collect();
            assert!(!fill(text, &values).contains("{{"), "{role}");
        }
    }
}

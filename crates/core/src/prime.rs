//! Text that an agent receives when a session begins: its identity, its work, and the state that an
//! earlier session left.
//!
//! The engine collects the parts. This module derives the state that they amount to ([`state`]),
//! fills in a role's template ([`fill`]), and limits the length ([`compose()`]).

mod compose;

pub use compose::{Composed, CutSection, Section, Weight, compose, plain};

use crate::handoff::Marker;
use crate::record::Outcome;
use crate::role::Role;
use serde::Serialize;

/// State in which a session begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PrimeState {
    /// Without work.
    Normal,
    /// Another session handed its work over.
    PostHandoff,
    /// The previous session ended in the middle of its work.
    CrashRecovery,
    /// With work on its hook.
    Autonomous,
}

impl PrimeState {
    pub fn as_str(self) -> &'static str {
        match self {
            PrimeState::Normal => "normal",
            PrimeState::PostHandoff => "post-handoff",
            PrimeState::CrashRecovery => "crash-recovery",
            PrimeState::Autonomous => "autonomous",
        }
    }
}

/// Facts from which the state is derived.
#[derive(Clone, Copy, Debug, Default)]
pub struct Situation<'a> {
    /// Session that asks.
    pub session: Option<&'a str>,
    pub marker: Option<&'a Marker>,
    /// Outcome of the session that left the marker.
    pub marked: Option<Outcome>,
    /// Whether a checkpoint describes the work of another session.
    pub is_left: bool,
    /// Outcome of the previous session.
    pub before: Option<Outcome>,
    /// Whether the previous session had the same work.
    pub same_work: bool,
    /// Whether the previous session had the same conversation.
    pub same_conversation: bool,
    pub has_work: bool,
}

/// Returns the state in which this session begins.
pub fn state(situation: &Situation<'_>) -> PrimeState {
    let Situation {
        session,
        marker,
        marked,
        is_left,
        before,
        same_work,
        same_conversation,
        has_work,
    } = *situation;
    // A handoff may have stopped after its marker, and its session continued and crashed.
    let is_done = marked == Some(Outcome::Handoff);
    if is_done && marker.is_some_and(|marker| marker.is_from_before(session)) {
        return PrimeState::PostHandoff;
    }
    let died_at_work = has_work && same_work && before == Some(Outcome::Crash);
    // A conversation that continues after a clean exit still has its context.
    let goes_on = same_conversation && before == Some(Outcome::Exited);
    if (is_left && !goes_on) || died_at_work {
        PrimeState::CrashRecovery
    } else if has_work {
        PrimeState::Autonomous
    } else {
        PrimeState::Normal
    }
}

/// Kind of session start that an agent program reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PrimeSource {
    #[default]
    Startup,
    /// The conversation continues in a new process.
    Resume,
    /// Its context was cleared: it no longer knows anything.
    Clear,
    /// Its context was compacted: it has a summary of its work.
    Compact,
    /// A copy of the conversation continues.
    Fork,
}

impl PrimeSource {
    /// Parses the program's word. The default for an unknown word is a start-up: too much text is
    /// better than none.
    pub fn from_word(word: &str) -> Self {
        match word {
            "resume" => PrimeSource::Resume,
            "clear" => PrimeSource::Clear,
            "compact" => PrimeSource::Compact,
            "fork" => PrimeSource::Fork,
            _ => PrimeSource::Startup,
        }
    }

    /// Returns why a reminder is enough for the agent; `None` if it needs the full text. The
    /// program may compact without reporting it; `compacted` is what the session has noted. After a
    /// clear or a fork that note does not apply.
    pub fn reminder(self, compacted: bool) -> Option<Reminder> {
        match self {
            PrimeSource::Compact => Some(Reminder::Compacted),
            PrimeSource::Startup | PrimeSource::Resume if compacted => Some(Reminder::Compacted),
            PrimeSource::Resume => Some(Reminder::Resumed),
            PrimeSource::Startup | PrimeSource::Clear | PrimeSource::Fork => None,
        }
    }
}

/// Reason why an agent receives only the work on its hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reminder {
    Compacted,
    Resumed,
}

impl Reminder {
    /// Returns the instruction for the agent.
    pub fn directive(self) -> &'static str {
        match self {
            Reminder::Compacted => "Context compacted. Continue your previous task.",
            Reminder::Resumed => "Conversation resumed. Continue your previous task.",
        }
    }
}

/// Returns the built-in template of a role's text, which a town may override.
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

/// Fills in `{{name}}`. Unknown names stay as they are, so that they are noticed. Inserted values
/// are not expanded again.
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
    use crate::handoff::HandoffMode;

    fn check<'a>(change: impl FnOnce(&mut Situation<'a>), expected: PrimeState) {
        let mut situation = Situation {
            session: Some("now"),
            ..Situation::default()
        };
        change(&mut situation);
        assert_eq!(state(&situation), expected, "{situation:?}");
    }

    #[test]
    fn prime_source_follows_from_the_previous_session() {
        let marker = Marker {
            session: "before".into(),
            ..Marker::default()
        };
        let of_mine = Marker {
            session: "now".into(),
            ..Marker::default()
        };
        let saved = Marker {
            mode: HandoffMode::Auto,
            ..marker.clone()
        };
        check(|_| {}, PrimeState::Normal);
        check(|it| it.has_work = true, PrimeState::Autonomous);
        check(|it| it.is_left = true, PrimeState::CrashRecovery);
        for (marker, marked, expected) in [
            (&marker, Some(Outcome::Handoff), PrimeState::PostHandoff),
            // A handoff that stopped after its marker has handed nothing over.
            (&marker, Some(Outcome::Crash), PrimeState::CrashRecovery),
            (&marker, Some(Outcome::Killed), PrimeState::CrashRecovery),
            (&marker, None, PrimeState::CrashRecovery),
            (&of_mine, None, PrimeState::CrashRecovery),
            // The session continued after it.
            (&saved, Some(Outcome::Handoff), PrimeState::CrashRecovery),
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
        check(|it| it.marker = Some(&of_mine), PrimeState::Normal);
        check(|it| it.before = Some(Outcome::Crash), PrimeState::Normal);
        for (same_work, expected) in [
            (true, PrimeState::CrashRecovery),
            (false, PrimeState::Autonomous),
        ] {
            check(
                |it| {
                    it.before = Some(Outcome::Crash);
                    it.has_work = true;
                    it.same_work = same_work;
                },
                expected,
            );
        }
        for (same_conversation, expected) in [
            (true, PrimeState::Autonomous),
            (false, PrimeState::CrashRecovery),
        ] {
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
    fn resumed_or_compacted_session_gets_only_a_reminder() {
        use Reminder::{Compacted, Resumed};
        for (word, told, noted) in [
            ("startup", None, Some(Compacted)),
            ("resume", Some(Resumed), Some(Compacted)),
            ("compact", Some(Compacted), Some(Compacted)),
            ("clear", None, None),
            ("fork", None, None),
        ] {
            let source = PrimeSource::from_word(word);
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
    fn every_role_has_a_prime_text() {
        for role in Role::all() {
            let text = template(role);
            assert!(text.trim().len() > 100, "{role}");
            let known = ["agent", "name", "rig", "town", "work_dir", "branch"];
            let values: Vec<_> = known.iter().map(|name| (*name, "x")).collect();
            assert!(!fill(text, &values).contains("{{"), "{role}");
        }
    }
}

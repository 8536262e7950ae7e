//! Events about the activity of agents, made from their states.
//!
//! The journal reports the end of a session; this module does not.

use super::Event;
use crate::caller::Caller;
use crate::state::{Reason, State, StateReport, StateSource, mentions_question};
use crate::{beside, notify};

/// The reason of a question whose text is unknown.
const ASKS_SOMETHING: &str = "asks something";

/// Returns the event for an agent that began to wait, failed, reached a limit or ended its turn.
/// `told` is the notification for the same change.
pub fn state_event(told: notify::NoticeKind, agent: &str, now: &StateReport) -> Option<Event> {
    let kind = match (told, now.state) {
        (notify::NoticeKind::Waiting, State::Waiting) => "question",
        (notify::NoticeKind::Waiting, State::Limited) => "usage_limit",
        (notify::NoticeKind::Waiting, _) => "turn_failed",
        (notify::NoticeKind::Done, State::Idle | State::Done) => "turn_end",
        _ => return None,
    };
    let reason = now.reason.as_deref().filter(|it| !it.is_empty());
    let reason = match kind {
        // A mark in a title or on a screen adds nothing to the type, nor does the default text.
        "turn_end" if now.reason == Some(Reason::Interrupted) => Some("interrupted"),
        "turn_end" if now.reason == Some(Reason::Finished) => None,
        "turn_end" => reason.filter(|_| now.source == StateSource::Hook),
        "question" if now.source == StateSource::Title => Some(ASKS_SOMETHING),
        "question" => reason.or(Some(ASKS_SOMETHING)),
        _ => reason,
    };
    let event = Event::new(kind, Caller::agent(agent)).with("reason", reason);
    Some(event.known_by(now.source))
}

/// Returns whether a waiting agent now asks a different question. People are not notified again:
/// they already know that it waits.
pub fn asks_another(before: &str, now: &str) -> bool {
    let are_questions = [before, now].into_iter().all(mentions_question);
    are_questions
        && !beside::is_same(
            &beside::normalise_reason(before),
            &beside::normalise_reason(now),
        )
}

/// Creates the event that an agent resumes after a pause, by itself or by a caller's command.
pub fn resumed(agent: &str, by: Option<&str>) -> Event {
    match by {
        Some(by) => Event::emitted("resumed", by)
            .with("target", agent)
            .by_command(),
        None => Event::new("resumed", Caller::agent(agent)).known_by(StateSource::Hook),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_event_names_its_source() {
        let check = |told, state, source, reason: &str, expected: Option<&str>| {
            let report = StateReport {
                state,
                source,
                since: None,
                reason: Some(reason.into()),
                background: 0,
                limit: None,
            };
            let event = state_event(told, "mayor", &report);
            let words =
                event.map(|it| format!("{} {} ({})", it.kind, it.line(), it.source_words()));
            assert_eq!(words.as_deref(), expected);
        };
        use notify::NoticeKind::{Died, Done, Waiting};
        check(
            Waiting,
            State::Waiting,
            StateSource::Hook,
            "asks: Bash(x)",
            Some("question mayor: asks: Bash(x) (hook)"),
        );
        check(
            Waiting,
            State::Waiting,
            StateSource::Title,
            "waits for an answer",
            Some("question mayor: asks something (title)"),
        );
        check(
            Waiting,
            State::Error,
            StateSource::Screen,
            "500",
            Some("turn_failed mayor failed in its turn: 500 (screen)"),
        );
        check(
            Done,
            State::Idle,
            StateSource::Hook,
            "finished its turn",
            Some("turn_end mayor ended its turn (hook)"),
        );
        check(
            Done,
            State::Done,
            StateSource::Hook,
            "all tests pass",
            Some("turn_end mayor ended its turn: all tests pass (hook)"),
        );
        check(
            Done,
            State::Idle,
            StateSource::Screen,
            "its screen shows \"^ready\"",
            Some("turn_end mayor ended its turn (screen)"),
        );
        check(
            Done,
            State::Exited,
            StateSource::Process,
            "exit status 0",
            None,
        );
        check(
            Died,
            State::Crashed,
            StateSource::Process,
            "exit status 1",
            None,
        );
    }

    #[test]
    fn a_question_after_another_is_one_more() {
        assert!(asks_another("asks: Bash(x)", "asks: Bash(y)"));
        assert!(!asks_another("asks: Bash(x)", "asks: Bash(x)"));
        assert!(!asks_another("", "asks: Bash(x)"), "more is known of it");
        assert!(!asks_another("asks: Bash(x)", "needs your permission"));
    }

    #[test]
    fn a_pause_ends_by_a_command_or_by_itself() {
        let words = |event: Event| format!("{} ({})", event.line(), event.source_words());
        assert_eq!(
            words(resumed("max", Some("human"))),
            "human resumed max (command by human)"
        );
        assert_eq!(words(resumed("max", None)), "max resumed (hook)");
    }
}

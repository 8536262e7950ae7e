//! The state by process, tag and title, without the screen.

use super::reason::WORKS;
use super::report::{ObservedPane, StateReport};
use super::{Reason, State, StateSource};
use crate::harness::{Preset, TitleMarks};
use crate::limit::Limit;

pub(super) fn without_screen(seen: &ObservedPane<'_>, preset: Option<&Preset>) -> StateReport {
    if seen.dead {
        return death(seen);
    }
    let tagged = |state, source| StateReport {
        since: seen.tag_since,
        reason: seen.tag_reason.map(Reason::from),
        background: match state {
            State::Idle | State::Done | State::Error | State::Limited => seen.tag_background,
            _ => 0,
        },
        limit: (state == State::Limited)
            .then(|| Limit::from_text(seen.tag_reason.unwrap_or_default())),
        ..StateReport::new(state, source)
    };
    if let Some(state @ (State::Initializing | State::Starting)) = seen.tag {
        return tagged(state, StateSource::Start);
    }
    // A person has set the pause. Hooks end it when they report a new turn; without hooks the title
    // ends it.
    if seen.tag == Some(State::Paused) && !title_ends_a_pause(seen, preset) {
        return tagged(State::Paused, StateSource::Gt);
    }
    // The tag is what a hook last reported; the title is current. No hook reports some changes,
    // such as an interrupt or an approval. Before its first turn, a program that was started with a
    // prompt has the title of an idle one.
    let has_begun = seen.tag_reason.map(Reason::from) != Some(Reason::FirstPrompt);
    let titled = preset.and_then(|preset| by_title(seen.title, preset));
    if let Some(state) = titled.filter(|state| has_begun || *state != State::Idle) {
        if let Some(tag) = seen.tag.filter(|tag| agrees(*tag, state)) {
            match seen.tag_source {
                Some(StateSource::Hook) => return tagged(tag, StateSource::Hook),
                Some(StateSource::Gt) if tag == State::Done => return tagged(tag, StateSource::Gt),
                _ => {}
            }
        }
        return StateReport {
            since: shown_since(state, seen),
            reason: Some(by_title_because(state, seen)),
            ..StateReport::new(state, StateSource::Title)
        };
    }
    let says_all = has_begun && preset.is_some_and(|preset| preset.title_marks.always);
    match (seen.tag, seen.tag_source) {
        (Some(State::Busy | State::Waiting), _) if says_all => StateReport {
            since: shown_since(State::Idle, seen),
            reason: Some(by_title_because(State::Idle, seen)),
            ..StateReport::new(State::Idle, StateSource::Title)
        },
        (Some(state), Some(source @ (StateSource::Hook | StateSource::Gt))) => {
            tagged(state, source)
        }
        (tag, _) => tagged(tag.unwrap_or(State::Running), StateSource::Process),
    }
}

pub(crate) fn death(seen: &ObservedPane<'_>) -> StateReport {
    let (state, reason) = match (seen.exit_status, seen.exit_signal) {
        (_, Some(signal)) if signal != 0 => (State::Crashed, format!("killed by signal {signal}")),
        (Some(0), _) => (State::Exited, "exit status 0".to_owned()),
        (Some(status), _) => (State::Crashed, format!("exit status {status}")),
        (None, _) => (State::Crashed, "exit status unknown".to_owned()),
    };
    StateReport {
        since: seen.died_at,
        reason: Some(reason.into()),
        ..StateReport::new(state, StateSource::Process)
    }
}

fn title_ends_a_pause(seen: &ObservedPane<'_>, preset: Option<&Preset>) -> bool {
    let without_hooks = preset.filter(|preset| preset.hooks.installer.is_none());
    let says = without_hooks.and_then(|preset| by_title(seen.title, preset));
    says.is_some_and(|state| state != State::Idle)
}

fn by_title(title: &str, preset: &Preset) -> Option<State> {
    let marks = &preset.title_marks;
    let all = [
        (State::Waiting, &marks.waiting),
        (State::Busy, &marks.busy),
        (State::Idle, &marks.ready),
    ];
    let mut said = all.into_iter();
    said.find(|(_, marks)| TitleMarks::first(marks, title).is_some())
        .map(|(state, _)| state)
}

/// Returns the reason for a state that a title shows. An idle title after a hook that reported work
/// means an interrupt: the hooks report the normal end of a turn.
fn by_title_because(state: State, seen: &ObservedPane<'_>) -> Reason {
    let goes_on = matches!(seen.tag, Some(State::Busy | State::Waiting));
    match state == State::Idle && goes_on && seen.tag_source == Some(StateSource::Hook) {
        true => Reason::Interrupted,
        false => describe_mark(state).into(),
    }
}

/// Returns whether the title is consistent with the tag. A title cannot show more than idle for a
/// turn that is over.
fn agrees(tag: State, title: State) -> bool {
    let is_over = matches!(tag, State::Done | State::Error | State::Limited);
    tag == title || title == State::Idle && is_over
}

/// Returns the time since which a pane shows a state whose beginning is not recorded. That is the
/// time of the last output, except for a busy program, which prints constantly: its state began
/// with the last input or the last noted state, whichever is later.
pub(crate) fn shown_since(state: State, seen: &ObservedPane<'_>) -> Option<i64> {
    match state {
        State::Busy => seen.typed_at.max(seen.tag_since),
        _ => seen.printed_at,
    }
}

/// Describes the mark of a title for people who do not know the marks.
pub(crate) fn describe_mark(state: State) -> &'static str {
    match state {
        State::Waiting => "waits for an answer",
        State::Busy => WORKS,
        _ => "waits at its prompt",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patterns::Patterns;
    use crate::state::judge;

    fn preset() -> Preset {
        let mut preset = Preset::default();
        preset.title_marks.ready = vec!["✳".into()];
        preset.title_marks.busy = vec!["◑".into()];
        preset
    }

    #[test]
    fn the_process_outweighs_the_title_outweighs_the_hook() {
        let preset = preset();
        let mut seen = ObservedPane {
            title: "◑ demo",
            tag: Some(State::Running),
            ..ObservedPane::default()
        };
        let judge = |seen: &ObservedPane<'_>| {
            let report = judge(seen, Some(&preset), &Patterns::default());
            (report.state, report.source)
        };
        assert_eq!(judge(&seen), (State::Busy, StateSource::Title));
        seen.tag = Some(State::Starting);
        assert_eq!(judge(&seen), (State::Starting, StateSource::Start));
        seen.tag = Some(State::Idle);
        seen.tag_source = Some(StateSource::Hook);
        assert_eq!(judge(&seen), (State::Busy, StateSource::Title));
        seen.tag = Some(State::Busy);
        assert_eq!(judge(&seen), (State::Busy, StateSource::Hook));
        seen.title = "something else";
        seen.tag = Some(State::Waiting);
        assert_eq!(judge(&seen), (State::Waiting, StateSource::Hook));
        let mut says_all = preset.clone();
        says_all.title_marks.always = true;
        let report = crate::state::judge(&seen, Some(&says_all), &Patterns::default());
        assert_eq!(
            (report.state, report.source),
            (State::Idle, StateSource::Title)
        );
        seen.dead = true;
        seen.exit_status = Some(3);
        assert_eq!(judge(&seen), (State::Crashed, StateSource::Process));
        seen.exit_status = Some(0);
        assert_eq!(judge(&seen), (State::Exited, StateSource::Process));
        seen.exit_signal = Some(9);
        assert_eq!(judge(&seen), (State::Crashed, StateSource::Process));
    }

    #[test]
    fn a_pause_stands_until_something_new_is_known() {
        let mut preset = preset();
        let mut seen = ObservedPane {
            title: "✳ demo",
            tag: Some(State::Paused),
            tag_since: Some(7),
            tag_reason: Some("by a person"),
            ..ObservedPane::default()
        };
        let report = judge(&seen, Some(&preset), &Patterns::default());
        assert_eq!(
            (report.state, report.source),
            (State::Paused, StateSource::Gt)
        );
        assert_eq!(report.since, Some(7));
        assert_eq!(report.reason.as_deref(), Some("by a person"));
        // Only the title can show a new turn here.
        seen.title = "◑ demo";
        assert_eq!(
            judge(&seen, Some(&preset), &Patterns::default()).state,
            State::Busy
        );
        preset.hooks.installer = Some("claude".to_owned());
        assert_eq!(
            judge(&seen, Some(&preset), &Patterns::default()).state,
            State::Paused
        );
        seen.dead = true;
        assert_eq!(
            judge(&seen, Some(&preset), &Patterns::default()).state,
            State::Crashed
        );
    }

    #[test]
    fn title_that_contradicts_a_hook_shows_an_interrupt() {
        let preset = preset();
        let reason = |tag, source| {
            let seen = ObservedPane {
                title: "✳ demo",
                tag: Some(tag),
                tag_source: Some(source),
                ..ObservedPane::default()
            };
            judge(&seen, Some(&preset), &Patterns::default()).reason
        };
        let stands = Some(Reason::from(describe_mark(State::Idle)));
        for tag in [State::Busy, State::Waiting] {
            assert_eq!(reason(tag, StateSource::Hook), Some(Reason::Interrupted));
        }
        assert_eq!(reason(State::Running, StateSource::Process), stands);
        assert_eq!(reason(State::Idle, StateSource::Gt), stands);
    }

    #[test]
    fn a_finished_agent_at_its_prompt_is_done() {
        let preset = preset();
        let mut seen = ObservedPane {
            title: "✳ demo",
            tag: Some(State::Done),
            tag_source: Some(StateSource::Hook),
            ..ObservedPane::default()
        };
        let state =
            |seen: &ObservedPane<'_>| judge(seen, Some(&preset), &Patterns::default()).state;
        assert_eq!(state(&seen), State::Done);
        seen.tag_source = Some(StateSource::Gt);
        assert_eq!(state(&seen), State::Done);
        seen.tag = Some(State::Error);
        seen.tag_source = Some(StateSource::Hook);
        assert_eq!(state(&seen), State::Error);
        seen.title = "◑ demo";
        assert_eq!(state(&seen), State::Busy);
    }

    #[test]
    fn background_tasks_are_beside_the_state_of_a_turn_that_is_over() {
        let mut seen = ObservedPane {
            tag: Some(State::Idle),
            tag_source: Some(StateSource::Hook),
            tag_background: 2,
            ..ObservedPane::default()
        };
        let claude = crate::harness::resolve("claude", None).unwrap().value;
        let judge = |seen: &ObservedPane<'_>| judge(seen, Some(&claude), &Patterns::default());
        assert_eq!(judge(&seen).label(), "idle (2 background tasks)");
        seen.tag = Some(State::Busy);
        assert_eq!(judge(&seen).label(), "busy");
    }

    #[test]
    fn first_prompt_outweighs_a_title_without_a_mark() {
        let codex = crate::harness::resolve("codex", None).unwrap().value;
        let mut seen = ObservedPane {
            title: "proj",
            tag: Some(State::Busy),
            tag_source: Some(StateSource::Hook),
            tag_reason: Some("takes its first prompt"),
            ..ObservedPane::default()
        };
        let state = |seen: &ObservedPane<'_>| judge(seen, Some(&codex), &Patterns::default()).state;
        assert_eq!(state(&seen), State::Busy);
        seen.title = "[ . ] Action Required";
        assert_eq!(state(&seen), State::Waiting);
        seen.title = "proj";
        seen.tag_reason = Some("took a prompt");
        assert_eq!(state(&seen), State::Idle);
    }
}

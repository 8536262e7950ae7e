//! Derives the state from all sources, and decides where the screen has a say.

use super::refine::{is_bare_code, with_limit, with_question, with_reason, with_retry};
use super::report::{ObservedPane, StateReport};
use super::reported::{shown_since, without_screen};
use super::{Reason, State, StateSource};
use crate::harness::Preset;
use crate::patterns::Patterns;
use crate::screen::{self, Asking, Classification};

#[cfg(test)]
mod tests;

/// Derives the state from all sources.
pub fn judge(seen: &ObservedPane<'_>, preset: Option<&Preset>, patterns: &Patterns) -> StateReport {
    let report = by_sources(seen, preset, patterns);
    match (seen.tag_hold, report.state) {
        // Its turn is over, and the next one does not begin before the hold ends.
        (Some(reason), State::Idle | State::Done | State::Error) => StateReport {
            since: report.since,
            reason: Some(reason.into()),
            background: report.background,
            ..StateReport::new(State::Paused, StateSource::Gt)
        },
        _ => report,
    }
}

fn by_sources(
    seen: &ObservedPane<'_>,
    preset: Option<&Preset>,
    patterns: &Patterns,
) -> StateReport {
    let report = without_screen(seen, preset);
    let (Some(looked), Some(preset)) = (seen.screen, preset) else {
        return report;
    };
    if seen.dead || !wants_screen(&report, Some(preset), patterns, looked.silent_seconds) {
        return report;
    }
    let shown = screen::read_state(looked, seen.title, preset, patterns);
    if has_ended_unreported(&report, seen, &shown) {
        return StateReport {
            since: shown_since(State::Idle, seen),
            reason: Some(Reason::Interrupted),
            ..StateReport::new(State::Idle, StateSource::Screen)
        };
    }
    let adds = match report.state {
        State::Waiting if shown.state != State::Limited => return with_question(report, shown),
        State::Waiting => shown.dialog.is_some(),
        State::Busy if shown.state == State::Busy => return with_retry(report, shown),
        State::Error if shown.state == State::Error => return with_reason(report, shown),
        State::Limited if shown.state == State::Limited => return with_limit(report, shown),
        State::Busy => adds_to_busy(&shown),
        // No hook reports that a program continues by itself after a limit.
        State::Limited => shown.state == State::Busy && seen.printed_at > seen.tag_since,
        State::Error => false,
        State::Idle => adds_to_idle(report.source, &shown, preset),
        _ => !matches!(shown.state, State::Starting | State::Running),
    };
    if !adds || shown.state == report.state {
        return report;
    }
    from_screen(shown, seen)
}

/// Returns whether the screen could add something to the other sources, for an agent that has
/// printed nothing for `silent_seconds`. Without a preset the pane holds only a shell.
pub fn wants_screen(
    report: &StateReport,
    preset: Option<&Preset>,
    patterns: &Patterns,
    silent_seconds: Option<i64>,
) -> bool {
    let is_described = preset.is_some_and(|preset| preset.screen.input.is_some());
    let shows_delays = preset.is_some_and(Preset::shows_delays);
    let hides_failures = preset.is_some_and(|preset| preset.hooks.hides_failures);
    let reason = report.reason.as_deref();
    preset.is_some()
        && match report.state {
            // The screen shows the question, and whether it is still open.
            State::Running | State::Waiting => true,
            // It may be interrupted, wait for a limit, or retry a request.
            State::Busy => {
                let may_be_over = report.source == StateSource::Hook && is_silent(silent_seconds);
                is_described && (may_be_over || shows_delays)
            }
            // The screen shows whether the program continues by itself.
            State::Limited => is_described,
            State::Error => is_described && reason.is_none_or(is_bare_code),
            State::Idle => {
                matches!(report.source, StateSource::Gt | StateSource::Title)
                    || patterns.has_own()
                    || hides_failures && report.source == StateSource::Hook
            }
            _ => false,
        }
}

fn from_screen(shown: Classification, seen: &ObservedPane<'_>) -> StateReport {
    // A program that waits for a limit in the middle of its turn redraws constantly.
    let since = match shown.rule == screen::RETRYING_RULE {
        true => shown_since(State::Busy, seen),
        false => shown_since(shown.state, seen),
    };
    StateReport {
        since,
        reason: Some(shown.reason.into()),
        background: shown.background,
        limit: shown.limit,
        ..StateReport::new(shown.state, StateSource::Screen)
    }
}

/// Returns whether the screen overrides a busy state that a hook or title reports. At a limit some
/// programs wait, or ask, in the middle of their turn, and no hook reports it.
fn adds_to_busy(shown: &Classification) -> bool {
    let asks = shown.dialog.as_ref().is_some_and(Asking::stops_a_turn);
    asks || shown.state == State::Limited && shown.rule == screen::RETRYING_RULE
}

/// Returns whether the screen overrides an idle state from another source.
fn adds_to_idle(source: StateSource, shown: &Classification, preset: &Preset) -> bool {
    // Only a pattern can interpret the last lines of an answer.
    let is_meant = shown.rule.starts_with("pattern.");
    let has_failed = matches!(shown.state, State::Error | State::Limited);
    match source {
        // Perhaps no other source has reported anything since.
        StateSource::Gt => !matches!(shown.state, State::Starting | State::Running),
        // A title shows that a turn is over, but not that it failed. Some titles do not change
        // while a dialog is open.
        StateSource::Title => is_meant || has_failed || shown.state == State::Waiting,
        StateSource::Hook if preset.hooks.hides_failures => is_meant || has_failed,
        _ => is_meant,
    }
}

/// Returns whether a turn has ended although the last hook reported it as running. Some programs
/// have no hook for an interrupt; it shows only on their screens. The screen must say so
/// explicitly: an unreadable question looks like a prompt, and so may work that is not drawn. The
/// exception is a turn that was stopped before it began, which leaves only a prompt.
fn has_ended_unreported(
    report: &StateReport,
    seen: &ObservedPane<'_>,
    shown: &Classification,
) -> bool {
    let is_newer = seen.tag_since.is_some() && seen.printed_at >= seen.tag_since;
    // The prompt may have been drawn before any state was noted.
    let is_newer = is_newer || report.reason == Some(Reason::FirstPrompt);
    let is_said = shown.rule == screen::INTERRUPTED_RULE;
    let has_only_begun = matches!(
        report.reason,
        Some(Reason::TookPrompt | Reason::FirstPrompt)
    );
    let is_silent = seen
        .screen
        .is_some_and(|looked| is_silent(looked.silent_seconds));
    let is_over = match report.state {
        State::Waiting => is_said,
        State::Busy => is_silent && (is_said || has_only_begun),
        _ => false,
    };
    report.source == StateSource::Hook && is_newer && is_over && shown.state == State::Idle
}

/// Minimum time without output after which a busy agent may have been interrupted. A program that
/// works redraws something constantly.
const SILENT_SECONDS: i64 = 3;

fn is_silent(seconds: Option<i64>) -> bool {
    seconds.is_some_and(|seconds| seconds >= SILENT_SECONDS)
}

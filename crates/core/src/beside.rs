//! The state of a program that runs in a window beside an agent, such as the one that resolves the
//! conflicts of a merge.
//!
//! It has no hooks and no identity, so its state follows only from its process and its screen. A
//! report has a reason only if a person is needed; the reason begins with the name of the window.

use crate::harness::Preset;
use crate::notify::NoticeKind;
use crate::patterns::Patterns;
use crate::screen;
use crate::state::{self, ObservedPane, Reason, State, StateChange, StateReport, StateSource};

/// Derives the state from the process and the screen.
pub fn judge(
    window: &str,
    seen: &ObservedPane<'_>,
    preset: Option<&Preset>,
    patterns: &Patterns,
) -> StateReport {
    if seen.dead {
        return death(window, seen);
    }
    if seen.tag == Some(State::Starting) {
        // The process that starts the program also answers its first dialogs.
        return StateReport {
            since: seen.tag_since,
            ..StateReport::new(State::Starting, StateSource::Start)
        };
    }
    let (Some(looked), Some(preset)) = (seen.screen, preset) else {
        return unknown();
    };
    let shown = screen::read_state(looked, seen.title, preset, patterns);
    StateReport {
        since: state::shown_since(shown.state, seen),
        reason: words(window, shown.state, &shown.reason),
        background: shown.background,
        limit: shown.limit,
        ..StateReport::new(shown.state, StateSource::Screen)
    }
}

fn unknown() -> StateReport {
    StateReport::new(State::Running, StateSource::Process)
}

/// Reports the end of the program. A program that was stopped on purpose has not failed. tmux
/// reports the exit status shortly after the death; until then the state is unknown.
fn death(window: &str, seen: &ObservedPane<'_>) -> StateReport {
    if seen.exit_status.is_none() && seen.exit_signal.is_none() {
        return unknown();
    }
    let report = state::death(seen);
    let state = match was_ended(seen.exit_status, seen.exit_signal) {
        true => State::Exited,
        false => report.state,
    };
    StateReport {
        state,
        reason: words(window, state, report.reason.as_deref().unwrap_or_default()),
        ..report
    }
}

/// Returns whether the program was stopped on purpose, by its exit status or signal.
pub fn was_ended(exit_status: Option<i32>, exit_signal: Option<i32>) -> bool {
    /// HUP, INT and TERM.
    const BY_SIGNAL: [i32; 3] = [1, 2, 15];
    let by_signal =
        |signal: &i32| exit_signal == Some(*signal) || exit_status == Some(128 + *signal);
    BY_SIGNAL.iter().any(by_signal)
}

/// Returns the reason why a person is needed. While the program works there is none: its screen
/// changes too often to be useful here.
fn words(window: &str, state: State, reason: &str) -> Option<Reason> {
    let text = match state {
        State::Waiting if state::mentions_question(reason) => format!("{window} {reason}"),
        State::Waiting => format!("{window} waits: {reason}"),
        State::Error | State::Crashed => format!("{window} failed: {reason}"),
        State::Limited => format!("{window} is limited: {reason}"),
        // A person is needed only if work is left; the caller decides that.
        State::Idle | State::Done => format!("{window} waits at its prompt"),
        _ => return None,
    };
    Some(Reason::Other(text))
}

/// Returns whether the report carries no information. The screen may be in the middle of a redraw,
/// so the last known state stays valid.
pub fn is_unknown(report: &StateReport) -> bool {
    matches!(report.state, State::Starting | State::Running)
}

/// Returns whether a change is news: another state, or a different question.
pub fn needs_notice(change: &StateChange) -> bool {
    let names_a_question = |report: &StateReport| {
        let reason = report.reason.as_deref().unwrap_or_default();
        let words = reason.split_once(' ').map(|(_, words)| words);
        report.state == State::Waiting && words.is_some_and(state::mentions_question)
    };
    let is_another = |before: &StateReport| {
        let reasons = [before, &change.now]
            .map(|it| normalise_reason(it.reason.as_deref().unwrap_or_default()));
        names_a_question(before) && !is_same(&reasons[0], &reasons[1])
    };
    change.is_of_state()
        || names_a_question(&change.now) && change.before.as_ref().is_some_and(is_another)
}

/// Normalises a reason so that it does not depend on the width of the window: removes white space,
/// separators and a truncated end.
pub fn normalise_reason(reason: &str) -> String {
    let shown = match reason.rsplit_once('…') {
        // Truncated by `gt`, or by the program on its last line.
        Some((shown, "" | ")")) => shown,
        _ => reason,
    };
    let is_kept = |c: &char| !c.is_whitespace() && *c != '·';
    shown.chars().filter(is_kept).collect()
}

/// Returns whether two normalised reasons may be the same, with one of them truncated.
pub fn is_same(one: &str, other: &str) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// Returns the notification for a change: only that a person is needed. A second failure in a row
/// is not reported again.
pub fn event(before: Option<State>, now: State) -> Option<NoticeKind> {
    match now {
        State::Waiting => Some(NoticeKind::Waiting),
        State::Error | State::Crashed | State::Limited => {
            let had_failed = matches!(before, Some(State::Error | State::Crashed | State::Limited));
            (!had_failed).then_some(NoticeKind::Waiting)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness;
    use crate::screen::CapturedScreen;
    use crate::state::Tracker;

    fn read(lines: &str, seen: ObservedPane<'_>) -> StateReport {
        let demo = harness::resolve("demo", None).unwrap().value;
        let lines: Vec<String> = lines.lines().map(str::to_owned).collect();
        let screen = Some(CapturedScreen {
            lines: &lines,
            silent_seconds: None,
        });
        let seen = ObservedPane { screen, ..seen };
        judge("merge", &seen, Some(&demo), &Patterns::default())
    }

    fn words(report: &StateReport) -> String {
        let reason = report.reason.as_deref().unwrap_or("-");
        format!("{} {reason}", report.state.as_str())
    }

    const ASKS: &str = "> go\n\n Bash command\n\n   git add -A\n\n Do you want to proceed?\n \
                        ❯ 1. Yes\n   2. No\n\n Esc to cancel";
    const RULE: &str = "────────────────────────────────────────";

    #[test]
    fn question_is_read_from_the_screen_and_not_from_title_or_tags() {
        let asks = read(ASKS, ObservedPane::default());
        assert!(
            words(&asks).starts_with("waiting merge asks: Do you want to proceed?"),
            "{asks:?}"
        );
        assert!(words(&asks).contains("git add -A"), "{asks:?}");
        assert_eq!(asks.source, StateSource::Screen);
        let at_prompt = format!("> go\n\n● Done.\n\n{RULE}\n❯ \n{RULE}");
        let idle = "idle merge waits at its prompt";
        assert_eq!(words(&read(&at_prompt, ObservedPane::default())), idle);
        // The title may contradict the screen, and the tags belong to the agent, not to this
        // window.
        let tagged = ObservedPane {
            title: "✳ demo",
            tag: Some(State::Idle),
            tag_source: Some(StateSource::Hook),
            ..ObservedPane::default()
        };
        assert_eq!(read(ASKS, tagged).state, State::Waiting);
        let starting = ObservedPane {
            tag: Some(State::Starting),
            ..ObservedPane::default()
        };
        assert_eq!(words(&read(ASKS, starting)), "starting -");
    }

    #[test]
    fn it_is_known_since_when() {
        let seen = ObservedPane {
            printed_at: Some(30),
            typed_at: Some(20),
            ..ObservedPane::default()
        };
        assert_eq!(read(ASKS, seen.clone()).since, Some(30));
        let works = format!("> go\n\n✻ Thinking… (esc to interrupt)\n\n{RULE}\n❯ \n{RULE}");
        let works = read(&works, seen);
        assert_eq!((works.state, works.since), (State::Busy, Some(20)));
    }

    #[test]
    fn failure_is_reported_and_a_deliberate_end_is_not() {
        let dead = |exit_status, exit_signal| {
            let seen = ObservedPane {
                dead: true,
                exit_status,
                exit_signal,
                ..ObservedPane::default()
            };
            words(&read("", seen))
        };
        assert_eq!(dead(Some(3), None), "crashed merge failed: exit status 3");
        assert_eq!(
            dead(None, Some(11)),
            "crashed merge failed: killed by signal 11"
        );
        assert_eq!(dead(Some(0), None), "exited -");
        assert_eq!(dead(None, Some(15)), "exited -");
        assert_eq!(dead(Some(143), None), "exited -");
        assert_eq!(dead(None, None), "running -");
    }

    #[test]
    fn a_question_in_a_window_of_another_width_is_the_same() {
        let is_same =
            |one: &str, other: &str| is_same(&normalise_reason(one), &normalise_reason(other));
        let wide = "merge asks: Go on? (Bash command · git add -A && git commit)";
        assert!(is_same(
            wide,
            "merge asks: Go on? (Bash command · git add -A · && git co · mmit)"
        ));
        assert!(is_same(
            wide,
            "merge asks: Go on? (Bash command · git add · -A &…"
        ));
        assert!(is_same(
            wide,
            "merge asks: Go on? (Bash command · git add -…)"
        ));
        let others = [
            "merge asks: Go on? (Bash command · git add -A)",
            "merge asks: Go on? (Bash command · git add -u && git commit)",
        ];
        assert!(!others.iter().any(|other| is_same(wide, other)));
    }

    #[test]
    fn every_question_is_news_once() {
        let mut tracker = Tracker::default();
        let mut events = |state, reason: Option<&str>| {
            let report = StateReport {
                state,
                source: StateSource::Screen,
                since: None,
                reason: reason.map(Reason::from),
                background: 0,
                limit: None,
            };
            let change = tracker.take(7, report).filter(needs_notice)?;
            event(change.before.map(|before| before.state), change.now.state)
        };
        let told = Some(NoticeKind::Waiting);
        assert_eq!(events(State::Waiting, Some("merge asks: x?")), told);
        assert_eq!(events(State::Waiting, Some("merge asks: x?")), None);
        assert_eq!(events(State::Waiting, Some("merge asks: y?")), told);
        assert_eq!(events(State::Waiting, Some("merge asks: · y ?")), None);
        assert_eq!(events(State::Busy, None), None);
        assert_eq!(events(State::Waiting, Some("merge asks: y?")), told);
        assert_eq!(events(State::Idle, None), None);
        // More of the text of the same question is known a moment later.
        assert_eq!(events(State::Waiting, Some("merge waits: soon")), told);
        assert_eq!(events(State::Waiting, Some("merge asks: x?")), None);
        assert_eq!(events(State::Error, Some("merge failed: 500")), told);
        assert_eq!(events(State::Error, Some("merge failed: 501")), None);
        assert_eq!(events(State::Crashed, Some("merge failed: 1")), None);
    }
}

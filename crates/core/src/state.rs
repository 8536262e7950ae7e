//! State of an agent, and the source that it is derived from.
//!
//! The sources, most trusted first: the process (tmux knows when it is dead), the title of the
//! terminal where the program shows its state there, the agent's hooks (kept as a tag), and the
//! screen. A state always carries its source. [`judge`] derives the state from one observation; a
//! [`Tracker`] derives changes from a series of them.

use crate::harness::{Preset, TitleMarks};
use crate::limit::Limit;
use crate::patterns::Patterns;
use crate::screen::{self, Asking, Classification, Looked};
use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Its worktree is being prepared; the agent has not started.
    Initializing,
    /// Started; not yet seen ready.
    Starting,
    /// Alive; no source reports more.
    Running,
    Idle,
    Busy,
    /// It asks a question.
    Waiting,
    Error,
    /// Its last turn ended at a usage limit.
    Limited,
    /// Stopped in the middle of a turn, to be resumed later.
    Paused,
    /// It reports that its work is complete.
    Done,
    /// Its process ended by itself, with status 0.
    Exited,
    /// Its process ended with another status or by a signal.
    Crashed,
    /// There is no container.
    Stopped,
}

impl State {
    pub fn as_str(self) -> &'static str {
        match self {
            State::Initializing => "initializing",
            State::Starting => "starting",
            State::Running => "running",
            State::Idle => "idle",
            State::Busy => "busy",
            State::Waiting => "waiting",
            State::Error => "error",
            State::Limited => "limited",
            State::Paused => "paused",
            State::Done => "done",
            State::Exited => "exited",
            State::Crashed => "crashed",
            State::Stopped => "stopped",
        }
    }

    pub fn from_word(word: &str) -> Option<State> {
        [
            State::Initializing,
            State::Starting,
            State::Running,
            State::Idle,
            State::Busy,
            State::Waiting,
            State::Error,
            State::Limited,
            State::Paused,
            State::Done,
            State::Exited,
            State::Crashed,
            State::Stopped,
        ]
        .into_iter()
        .find(|state| state.as_str() == word)
    }

    /// Returns whether the agent's process has ended.
    pub fn is_dead(self) -> bool {
        matches!(self, State::Exited | State::Crashed | State::Stopped)
    }
}

/// Source of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    Process,
    Hook,
    Title,
    Screen,
    /// `gt` itself, which started the agent.
    Start,
    /// `gt` itself, on a person's behalf.
    Gt,
}

impl Source {
    pub fn as_str(self) -> &'static str {
        match self {
            Source::Process => "process",
            Source::Hook => "hook",
            Source::Title => "title",
            Source::Screen => "screen",
            Source::Start => "start",
            Source::Gt => "gt",
        }
    }

    pub fn from_word(word: &str) -> Option<Source> {
        [
            Source::Process,
            Source::Hook,
            Source::Title,
            Source::Screen,
            Source::Start,
            Source::Gt,
        ]
        .into_iter()
        .find(|source| source.as_str() == word)
    }
}

/// Observed facts about an agent's pane.
#[derive(Clone, Debug, Default)]
pub struct Observed<'a> {
    pub dead: bool,
    pub exit_status: Option<i32>,
    pub exit_signal: Option<i32>,
    pub died_at: Option<i64>,
    pub title: &'a str,
    /// The tags `@gt_state`, `@gt_state_source`, `@gt_state_since`, `@gt_state_reason`.
    pub tag: Option<State>,
    pub tag_source: Option<Source>,
    pub tag_since: Option<i64>,
    pub tag_reason: Option<&'a str>,
    /// The tag `@gt_background_tasks`.
    pub tag_background: u32,
    /// Time of the pane's last output.
    pub printed_at: Option<i64>,
    /// Time of the last input, typed by hand or through `gt`.
    pub typed_at: Option<i64>,
    /// Captured screen, if the caller has read it; see [`wants_screen`].
    pub screen: Option<Looked<'a>>,
}

/// A state with its source. Times are seconds since the epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub state: State,
    pub source: Source,
    pub since: Option<i64>,
    pub reason: Option<String>,
    /// Number of tasks that still run in the background after the agent's turn.
    pub background: u32,
    /// Usage limit of an agent that is [`State::Limited`].
    pub limit: Option<Limit>,
}

impl Report {
    /// Returns a report with only the state and its source.
    pub fn new(state: State, source: Source) -> Self {
        Report {
            state,
            source,
            since: None,
            reason: None,
            background: 0,
            limit: None,
        }
    }

    /// Returns the state for people: `idle (1 background task)`.
    pub fn label(&self) -> String {
        label(self.state, self.background)
    }
}

/// Returns a state for people, with the number of background tasks.
pub fn label(state: State, background: u32) -> String {
    let word = state.as_str();
    match background {
        0 => word.to_owned(),
        1 => format!("{word} (1 background task)"),
        count => format!("{word} ({count} background tasks)"),
    }
}

/// Reason for the idle state after an interrupted turn.
pub const INTERRUPTED: &str = "its turn was interrupted";
/// Reason for the idle state after a turn whose end a hook has reported.
pub const FINISHED: &str = "finished its turn";
/// Reason for the busy state after a hook has reported a prompt and nothing since.
pub(crate) const TOOK_A_PROMPT: &str = "took a prompt";
/// Reason for the busy state after a start with a prompt, until a hook reports that prompt.
pub(crate) const FIRST_PROMPT: &str = "takes its first prompt";

/// Derives the state from all sources.
pub fn judge(seen: &Observed<'_>, preset: Option<&Preset>, patterns: &Patterns) -> Report {
    let report = without_screen(seen, preset);
    let (Some(looked), Some(preset)) = (seen.screen, preset) else {
        return report;
    };
    if seen.dead || !wants_screen(&report, Some(preset), patterns, looked.silent_seconds) {
        return report;
    }
    let shown = screen::witness(looked, seen.title, preset, patterns);
    if ends_untold(&report, seen, &shown) {
        return Report {
            since: shown_since(State::Idle, seen),
            reason: Some(INTERRUPTED.to_owned()),
            ..Report::new(State::Idle, Source::Screen)
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

fn from_screen(shown: Classification, seen: &Observed<'_>) -> Report {
    // A program that waits for a limit in the middle of its turn redraws constantly.
    let since = match shown.rule == screen::RETRYING_RULE {
        true => shown_since(State::Busy, seen),
        false => shown_since(shown.state, seen),
    };
    Report {
        since,
        reason: Some(shown.reason),
        background: shown.background,
        limit: shown.limit,
        ..Report::new(shown.state, Source::Screen)
    }
}

/// Returns whether the screen overrides a busy state that a hook or title reports. At a limit some
/// programs wait, or ask, in the middle of their turn, and no hook reports it.
fn adds_to_busy(shown: &Classification) -> bool {
    let asks = shown.dialog.as_ref().is_some_and(Asking::stops_a_turn);
    asks || shown.state == State::Limited && shown.rule == screen::RETRYING_RULE
}

/// Adds the reason of a retried request, which shows only in the status line of a busy program.
fn with_retry(report: Report, shown: Classification) -> Report {
    match shown.rule == screen::RETRYING_RULE {
        true => Report {
            reason: Some(shown.reason),
            ..report
        },
        false => report,
    }
}

/// Replaces a missing reason, or a bare error code from a hook, by the message on the screen.
fn with_reason(report: Report, shown: Classification) -> Report {
    match report.reason.as_deref().is_none_or(is_bare_code) {
        true => Report {
            reason: Some(shown.reason),
            ..report
        },
        false => report,
    }
}

fn is_bare_code(reason: &str) -> bool {
    !reason.contains(char::is_whitespace)
}

/// Adds whether the program continues by itself after the limit, which shows only on its screen.
fn with_limit(report: Report, shown: Classification) -> Report {
    let shown_limit = shown.limit.unwrap_or_default();
    let told = report.limit.unwrap_or_default();
    let limit = Limit {
        reset: told.reset.clone().or(shown_limit.reset.clone()),
        continues: shown_limit.continues,
    };
    let says_the_same = told.reset.is_none() || told.reset == shown_limit.reset;
    let reason = match report.reason {
        Some(reason) if !says_the_same => limit.describe(&reason),
        _ => shown.reason,
    };
    Report {
        reason: Some(reason),
        limit: Some(limit),
        ..report
    }
}

/// Returns the time since which a pane shows a state whose beginning is not recorded. That is the
/// time of the last output, except for a busy program, which prints constantly: its state began
/// with the last input or the last noted state, whichever is later.
pub(crate) fn shown_since(state: State, seen: &Observed<'_>) -> Option<i64> {
    match state {
        State::Busy => seen.typed_at.max(seen.tag_since),
        _ => seen.printed_at,
    }
}

/// Returns whether a turn has ended although the last hook reported it as running. Some programs
/// have no hook for an interrupt; it shows only on their screens. The screen must say so
/// explicitly: an unreadable question looks like a prompt, and so may work that is not drawn. The
/// exception is a turn that was stopped before it began, which leaves only a prompt.
fn ends_untold(report: &Report, seen: &Observed<'_>, shown: &Classification) -> bool {
    let is_newer = seen.tag_since.is_some() && seen.printed_at >= seen.tag_since;
    // The prompt may have been drawn before any state was noted.
    let is_newer = is_newer || report.reason.as_deref() == Some(FIRST_PROMPT);
    let is_said = shown.rule == screen::INTERRUPTED_RULE;
    let has_only_begun = matches!(report.reason.as_deref(), Some(TOOK_A_PROMPT | FIRST_PROMPT));
    let is_silent = seen
        .screen
        .is_some_and(|looked| is_silent(looked.silent_seconds));
    let is_over = match report.state {
        State::Waiting => is_said,
        State::Busy => is_silent && (is_said || has_only_begun),
        _ => false,
    };
    report.source == Source::Hook && is_newer && is_over && shown.state == State::Idle
}

/// Returns whether the screen overrides an idle state from another source.
fn adds_to_idle(source: Source, shown: &Classification, preset: &Preset) -> bool {
    // Only a pattern can interpret the last lines of an answer.
    let is_meant = shown.rule.starts_with("pattern.");
    let has_failed = matches!(shown.state, State::Error | State::Limited);
    match source {
        // Perhaps no other source has reported anything since.
        Source::Gt => !matches!(shown.state, State::Starting | State::Running),
        // A title shows that a turn is over, but not that it failed. Some titles do not change
        // while a dialog is open.
        Source::Title => is_meant || has_failed || shown.state == State::Waiting,
        Source::Hook if preset.hooks.hides_failures => is_meant || has_failed,
        _ => is_meant,
    }
}

/// Minimum time without output after which a busy agent may have been interrupted. A program that
/// works redraws something constantly.
const SILENT_SECONDS: i64 = 3;

fn is_silent(seconds: Option<i64>) -> bool {
    seconds.is_some_and(|seconds| seconds >= SILENT_SECONDS)
}

/// Returns whether the screen could add something to the other sources, for an agent that has
/// printed nothing for `silent_seconds`. Without a preset the pane holds only a shell.
pub fn wants_screen(
    report: &Report,
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
                let may_be_over = report.source == Source::Hook && is_silent(silent_seconds);
                is_described && (may_be_over || shows_delays)
            }
            // The screen shows whether the program continues by itself.
            State::Limited => is_described,
            State::Error => is_described && reason.is_none_or(is_bare_code),
            State::Idle => {
                matches!(report.source, Source::Gt | Source::Title)
                    || patterns.has_own()
                    || hides_failures && report.source == Source::Hook
            }
            _ => false,
        }
}

/// Prefix of a reason that quotes the question.
const ASKS: &str = "asks: ";

pub(crate) fn names_a_question(reason: &str) -> bool {
    reason.starts_with(ASKS)
}

/// Adds the text of a reported question, as the screen shows it.
fn with_question(report: Report, shown: Classification) -> Report {
    let is_asked = shown.state == State::Waiting && names_a_question(&shown.reason);
    let is_known = report.reason.as_deref().is_some_and(names_a_question);
    match is_asked && !is_known {
        true => Report {
            reason: Some(shown.reason),
            ..report
        },
        false => report,
    }
}

fn without_screen(seen: &Observed<'_>, preset: Option<&Preset>) -> Report {
    if seen.dead {
        return death(seen);
    }
    let tagged = |state, source| Report {
        since: seen.tag_since,
        reason: seen.tag_reason.map(str::to_owned),
        background: match state {
            State::Idle | State::Done | State::Error | State::Limited => seen.tag_background,
            _ => 0,
        },
        limit: (state == State::Limited)
            .then(|| Limit::from_text(seen.tag_reason.unwrap_or_default())),
        ..Report::new(state, source)
    };
    if let Some(state @ (State::Initializing | State::Starting)) = seen.tag {
        return tagged(state, Source::Start);
    }
    // A person has set the pause. Hooks end it when they report a new turn; without hooks the title
    // ends it.
    if seen.tag == Some(State::Paused) && !title_ends_a_pause(seen, preset) {
        return tagged(State::Paused, Source::Gt);
    }
    // The tag is what a hook last reported; the title is current. No hook reports some changes,
    // such as an interrupt or an approval. Before its first turn, a program that was started with a
    // prompt has the title of an idle one.
    let has_begun = seen.tag_reason != Some(FIRST_PROMPT);
    let titled = preset.and_then(|preset| by_title(seen.title, preset));
    if let Some(state) = titled.filter(|state| has_begun || *state != State::Idle) {
        if let Some(tag) = seen.tag.filter(|tag| agrees(*tag, state)) {
            match seen.tag_source {
                Some(Source::Hook) => return tagged(tag, Source::Hook),
                Some(Source::Gt) if tag == State::Done => return tagged(tag, Source::Gt),
                _ => {}
            }
        }
        return Report {
            since: shown_since(state, seen),
            reason: Some(by_title_because(state, seen).to_owned()),
            ..Report::new(state, Source::Title)
        };
    }
    let says_all = has_begun && preset.is_some_and(|preset| preset.title_marks.always);
    match (seen.tag, seen.tag_source) {
        (Some(State::Busy | State::Waiting), _) if says_all => Report {
            since: shown_since(State::Idle, seen),
            reason: Some(by_title_because(State::Idle, seen).to_owned()),
            ..Report::new(State::Idle, Source::Title)
        },
        (Some(state), Some(source @ (Source::Hook | Source::Gt))) => tagged(state, source),
        (tag, _) => tagged(tag.unwrap_or(State::Running), Source::Process),
    }
}

/// Returns the reason for a state that a title shows. An idle title after a hook that reported work
/// means an interrupt: the hooks report the normal end of a turn.
fn by_title_because(state: State, seen: &Observed<'_>) -> &'static str {
    let goes_on = matches!(seen.tag, Some(State::Busy | State::Waiting));
    match state == State::Idle && goes_on && seen.tag_source == Some(Source::Hook) {
        true => INTERRUPTED,
        false => in_words(state),
    }
}

/// Returns whether the title is consistent with the tag. A title cannot show more than idle for a
/// turn that is over.
fn agrees(tag: State, title: State) -> bool {
    let is_over = matches!(tag, State::Done | State::Error | State::Limited);
    tag == title || title == State::Idle && is_over
}

/// State of one agent over a series of observations: the time since when it is in its state, and
/// the changes.
#[derive(Clone, Debug, Default)]
pub struct Tracker {
    last: Option<Report>,
}

/// Change of an agent's state, or of the reason for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// `None` for the first observation.
    pub before: Option<Report>,
    pub now: Report,
}

impl Change {
    /// Returns whether the state has changed, and not only its reason.
    pub fn is_of_state(&self) -> bool {
        self.before.as_ref().map(|before| before.state) != Some(self.now.state)
    }
}

impl Tracker {
    /// Returns the report of the last observation.
    pub fn last(&self) -> Option<&Report> {
        self.last.as_ref()
    }

    /// Takes one observation, made at `now`, and returns the change that it brings.
    pub fn observe(
        &mut self,
        now: i64,
        seen: &Observed<'_>,
        preset: Option<&Preset>,
        patterns: &Patterns,
    ) -> Option<Change> {
        self.take(now, judge(seen, preset, patterns))
    }

    /// Takes a report that [`judge`] has made and returns the change that it brings.
    pub fn take(&mut self, now: i64, mut report: Report) -> Option<Change> {
        let before = self.last.take();
        let same = before.as_ref().filter(|it| it.state == report.state);
        let is_new = same.is_none_or(|before| before.reason != report.reason);
        // A source that repeats a state does not restart it. A different question does.
        let goes_on = same.filter(|_| !is_new || report.state != State::Waiting);
        let is_shown = matches!(report.source, Source::Screen | Source::Title);
        let earlier = before.as_ref().and_then(|before| before.since);
        report.since = match (goes_on.and_then(|before| before.since), report.since) {
            (Some(since), told) => Some(told.map_or(since, |told| told.min(since))),
            // A state from the screen or the title cannot begin before the state that preceded it.
            (None, told @ Some(_)) if is_shown => told.max(earlier),
            (None, told) => told.or(Some(now)),
        };
        self.last = Some(report.clone());
        is_new.then_some(Change {
            before,
            now: report,
        })
    }
}

fn title_ends_a_pause(seen: &Observed<'_>, preset: Option<&Preset>) -> bool {
    let without_hooks = preset.filter(|preset| preset.hooks.installer.is_none());
    let says = without_hooks.and_then(|preset| by_title(seen.title, preset));
    says.is_some_and(|state| state != State::Idle)
}

pub(crate) fn death(seen: &Observed<'_>) -> Report {
    let (state, reason) = match (seen.exit_status, seen.exit_signal) {
        (_, Some(signal)) if signal != 0 => (State::Crashed, format!("killed by signal {signal}")),
        (Some(0), _) => (State::Exited, "exit status 0".to_owned()),
        (Some(status), _) => (State::Crashed, format!("exit status {status}")),
        (None, _) => (State::Crashed, "exit status unknown".to_owned()),
    };
    Report {
        since: seen.died_at,
        reason: Some(reason),
        ..Report::new(state, Source::Process)
    }
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

/// Describes the mark of a title for people who do not know the marks.
pub(crate) fn in_words(state: State) -> &'static str {
    match state {
        State::Waiting => "waits for an answer",
        State::Busy => "works",
        _ => "waits at its prompt",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn preset() -> Preset {
        let mut preset = Preset::default();
        preset.title_marks.ready = vec!["✳".into()];
        preset.title_marks.busy = vec!["◑".into()];
        preset
    }

    #[test]
    fn the_process_outweighs_the_title_outweighs_the_hook() {
        let preset = preset();
        let mut seen = Observed {
            title: "◑ demo",
            tag: Some(State::Running),
            ..Observed::default()
        };
        let judge = |seen: &Observed<'_>| {
            let report = judge(seen, Some(&preset), &Patterns::default());
            (report.state, report.source)
        };
        assert_eq!(judge(&seen), (State::Busy, Source::Title));
        seen.tag = Some(State::Starting);
        assert_eq!(judge(&seen), (State::Starting, Source::Start));
        seen.tag = Some(State::Idle);
        seen.tag_source = Some(Source::Hook);
        assert_eq!(judge(&seen), (State::Busy, Source::Title));
        seen.tag = Some(State::Busy);
        assert_eq!(judge(&seen), (State::Busy, Source::Hook));
        seen.title = "something else";
        seen.tag = Some(State::Waiting);
        assert_eq!(judge(&seen), (State::Waiting, Source::Hook));
        let mut says_all = preset.clone();
        says_all.title_marks.always = true;
        let report = super::judge(&seen, Some(&says_all), &Patterns::default());
        assert_eq!((report.state, report.source), (State::Idle, Source::Title));
        seen.dead = true;
        seen.exit_status = Some(3);
        assert_eq!(judge(&seen), (State::Crashed, Source::Process));
        seen.exit_status = Some(0);
        assert_eq!(judge(&seen), (State::Exited, Source::Process));
        seen.exit_signal = Some(9);
        assert_eq!(judge(&seen), (State::Crashed, Source::Process));
    }

    #[test]
    fn a_pause_stands_until_something_new_is_known() {
        let mut preset = preset();
        let mut seen = Observed {
            title: "✳ demo",
            tag: Some(State::Paused),
            tag_since: Some(7),
            tag_reason: Some("by a person"),
            ..Observed::default()
        };
        let report = judge(&seen, Some(&preset), &Patterns::default());
        assert_eq!((report.state, report.source), (State::Paused, Source::Gt));
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

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    fn looked(lines: &[String]) -> Option<Looked<'_>> {
        Some(Looked {
            lines,
            silent_seconds: None,
        })
    }

    #[test]
    fn the_screen_speaks_where_nobody_else_does() {
        let asks = lines("Go on? [y/n]");
        let table = Patterns::default();
        let unknown = Preset::default();
        let mut seen = Observed {
            tag: Some(State::Running),
            tag_source: Some(Source::Process),
            screen: looked(&asks),
            ..Observed::default()
        };
        let report = judge(&seen, Some(&unknown), &table);
        assert_eq!(
            (report.state, report.source),
            (State::Waiting, Source::Screen)
        );
        assert_eq!(report.reason.as_deref(), Some("asks: Go on? [y/n]"));
        // Questions of a plain shell do not count.
        assert_eq!(judge(&seen, None, &table).state, State::Running);
        for tag in [
            State::Idle,
            State::Busy,
            State::Error,
            State::Done,
            State::Starting,
            State::Paused,
        ] {
            seen.tag = Some(tag);
            seen.tag_source = Some(Source::Hook);
            assert_eq!(judge(&seen, Some(&unknown), &table).state, tag);
        }
        // After a pause there may never be another report.
        seen.tag = Some(State::Idle);
        seen.tag_source = Some(Source::Gt);
        assert_eq!(judge(&seen, Some(&unknown), &table).state, State::Waiting);
        seen.dead = true;
        assert_eq!(judge(&seen, Some(&unknown), &table).state, State::Crashed);
    }

    #[test]
    fn the_screen_says_what_is_asked_where_a_hook_does_not() {
        let demo = crate::harness::resolve("demo", None).unwrap().value;
        let dialog = lines("Bash(rm -rf build)\n\nDo you want to proceed?\n❯ 1. Yes\n  2. No");
        let mut seen = Observed {
            tag: Some(State::Waiting),
            tag_source: Some(Source::Hook),
            tag_reason: Some("demo needs your permission"),
            screen: looked(&dialog),
            ..Observed::default()
        };
        let mut check = |title, told, source, reason: &str| {
            (seen.title, seen.tag_reason) = (title, told);
            let report = judge(&seen, Some(&demo), &Patterns::default());
            assert_eq!((report.state, report.source), (State::Waiting, source));
            assert_eq!(report.reason.as_deref(), Some(reason));
        };
        let shown = "asks: Do you want to proceed? (Bash(rm -rf build))";
        check("", Some("needs you"), Source::Hook, shown);
        check("", None, Source::Hook, shown);
        check("", Some("asks: Bash(x)"), Source::Hook, "asks: Bash(x)");
        seen.tag = Some(State::Busy);
        seen.title = "✋ demo";
        let report = judge(&seen, Some(&demo), &Patterns::default());
        assert_eq!(
            (report.source, report.reason.as_deref()),
            (Source::Title, Some(shown))
        );
    }

    #[test]
    fn an_interrupt_that_no_hook_tells_shows_on_the_screen() {
        const RULE: &str = "────────────────────────────────────────";
        let claude = crate::harness::resolve("claude", None).unwrap().value;
        let screen = |above: &str| lines(&format!("❯ go\n\n{above}\n\n{RULE}\n❯ \n{RULE}"));
        let stopped = screen("● Bash(x)\n  ⎿  Interrupted · What should Claude do instead?");
        let at_prompt = screen("● Fine.");
        let works = screen("✻ Thinking… (esc to interrupt)");
        let check = |tag, reason, lines: &[String], silent, expected: &str| {
            let seen = Observed {
                tag: Some(tag),
                tag_source: Some(Source::Hook),
                tag_since: Some(10),
                tag_reason: Some(reason),
                printed_at: Some(12),
                screen: Some(Looked {
                    lines,
                    silent_seconds: Some(silent),
                }),
                ..Observed::default()
            };
            let report = judge(&seen, Some(&claude), &Patterns::default());
            let since = report.since.unwrap();
            let found = format!("{} {:?} {since}", report.state.as_str(), report.source);
            assert_eq!(found, expected, "{tag:?} {reason} {lines:?}");
            let is_interrupted = report.reason.as_deref() == Some(INTERRUPTED);
            assert_eq!(is_interrupted, report.state == State::Idle, "{report:?}");
        };
        let (asks, prompt, tool) = ("asks: Bash(x)", TOOK_A_PROMPT, "runs Bash(x)");
        let (busy, waiting) = (State::Busy, State::Waiting);
        check(waiting, asks, &stopped, 0, "idle Screen 12");
        // An unreadable screen may be a question, and so may one that is not drawn yet.
        check(waiting, asks, &at_prompt, 60, "waiting Hook 10");
        check(waiting, asks, &works, 0, "waiting Hook 10");
        check(busy, prompt, &stopped, 4, "idle Screen 12");
        // A turn that was stopped before it began leaves no message.
        check(busy, prompt, &at_prompt, 4, "idle Screen 12");
        check(busy, prompt, &at_prompt, 1, "busy Hook 10");
        check(busy, prompt, &works, 60, "busy Hook 10");
        // Work that is not drawn, such as background work.
        check(busy, tool, &at_prompt, 60, "busy Hook 10");
        check(busy, tool, &stopped, 4, "idle Screen 12");
    }

    #[test]
    fn a_title_that_contradicts_a_hook_tells_of_an_interrupt() {
        let preset = preset();
        let reason = |tag, source| {
            let seen = Observed {
                title: "✳ demo",
                tag: Some(tag),
                tag_source: Some(source),
                ..Observed::default()
            };
            judge(&seen, Some(&preset), &Patterns::default()).reason
        };
        let stands = Some(in_words(State::Idle).to_owned());
        for tag in [State::Busy, State::Waiting] {
            let interrupted = Some(INTERRUPTED.to_owned());
            assert_eq!(reason(tag, Source::Hook), interrupted);
        }
        assert_eq!(reason(State::Running, Source::Process), stands);
        assert_eq!(reason(State::Idle, Source::Gt), stands);
    }

    #[test]
    fn a_finished_agent_at_its_prompt_is_done() {
        let preset = preset();
        let mut seen = Observed {
            title: "✳ demo",
            tag: Some(State::Done),
            tag_source: Some(Source::Hook),
            ..Observed::default()
        };
        let state = |seen: &Observed<'_>| judge(seen, Some(&preset), &Patterns::default()).state;
        assert_eq!(state(&seen), State::Done);
        seen.tag_source = Some(Source::Gt);
        assert_eq!(state(&seen), State::Done);
        seen.tag = Some(State::Error);
        seen.tag_source = Some(Source::Hook);
        assert_eq!(state(&seen), State::Error);
        seen.title = "◑ demo";
        assert_eq!(state(&seen), State::Busy);
    }

    #[test]
    fn looks_add_up_to_changes() {
        let mut tracker = Tracker::default();
        let report = |state, since, reason: &str| Report {
            state,
            source: Source::Screen,
            since,
            reason: Some(reason.to_owned()),
            background: 0,
            limit: None,
        };
        let mut take = |now, report| {
            let change = tracker.take(now, report);
            let since = tracker.last().unwrap().since.unwrap();
            (change.map(|change| change.is_of_state()), since)
        };
        let (busy, asks) = (State::Busy, State::Waiting);
        assert_eq!(take(10, report(busy, None, "a")), (Some(true), 10));
        assert_eq!(take(11, report(busy, None, "a")), (None, 10));
        assert_eq!(take(12, report(busy, None, "b")), (Some(false), 10));
        assert_eq!(take(13, report(busy, Some(8), "b")), (None, 8));
        assert_eq!(take(14, report(busy, Some(14), "b")), (None, 8));
        assert_eq!(take(15, report(asks, None, "asks: x")), (Some(true), 15));
        assert_eq!(take(16, report(asks, None, "asks: x")), (None, 15));
        assert_eq!(take(17, report(asks, None, "asks: y")), (Some(false), 17));
        assert_eq!(take(18, report(busy, Some(17), "c")), (Some(true), 17));
    }

    #[test]
    fn what_only_a_pane_shows_has_a_beginning_too() {
        let preset = preset();
        let unknown = Preset::default();
        let (asks, prints) = (lines("Go on? [y/n]"), lines("compiling"));
        let seen = |title, lines| Observed {
            title,
            tag: Some(State::Running),
            tag_source: Some(Source::Process),
            tag_since: Some(10),
            printed_at: Some(30),
            typed_at: Some(20),
            screen: Some(Looked {
                lines,
                silent_seconds: Some(1),
            }),
            ..Observed::default()
        };
        let check = |preset: &Preset, seen: Observed<'_>, state, since| {
            let report = judge(&seen, Some(preset), &Patterns::default());
            assert_eq!((report.state, report.since), (state, since), "{report:?}");
        };
        let (waiting, busy, idle) = (State::Waiting, State::Busy, State::Idle);
        check(&unknown, seen("", &asks), waiting, Some(30));
        check(&preset, seen("✳ demo", &[]), idle, Some(30));
        // The last output is not the beginning of a state that prints constantly.
        check(&unknown, seen("", &prints), busy, Some(20));
        check(&preset, seen("◑ demo", &[]), busy, Some(20));
        let untouched = Observed {
            typed_at: Some(5),
            ..seen("", &prints)
        };
        check(&unknown, untouched, busy, Some(10));
        let mut says_all = preset.clone();
        says_all.title_marks.always = true;
        let asked = Observed {
            tag: Some(waiting),
            tag_source: Some(Source::Hook),
            ..seen("", &[])
        };
        check(&says_all, asked, idle, Some(30));
    }

    #[test]
    fn a_state_that_only_shows_has_not_begun_before_the_last_one() {
        let mut tracker = Tracker::default();
        let mut take = |now, state, source, since| {
            let report = Report {
                state,
                source,
                since: Some(since),
                reason: None,
                background: 0,
                limit: None,
            };
            tracker.take(now, report);
            tracker.last().unwrap().since.unwrap()
        };
        assert_eq!(take(20, State::Busy, Source::Screen, 10), 10);
        assert_eq!(take(31, State::Idle, Source::Screen, 30), 30);
        // The agent went on by itself: no input since.
        assert_eq!(take(40, State::Busy, Source::Screen, 10), 30);
        assert_eq!(take(41, State::Busy, Source::Screen, 41), 30);
        // A hook is more trusted than the screen.
        assert_eq!(take(42, State::Idle, Source::Hook, 29), 29);
    }

    #[test]
    fn words_read_back() {
        for state in [
            State::Initializing,
            State::Starting,
            State::Waiting,
            State::Paused,
            State::Done,
            State::Crashed,
        ] {
            assert_eq!(State::from_word(state.as_str()), Some(state));
        }
    }

    fn claude() -> Preset {
        crate::harness::resolve("claude", None).unwrap().value
    }

    const RULE: &str = "────────────────────────────────────────";

    fn claude_screen(above: &str, footer: &str) -> Vec<String> {
        let text = format!("❯ go\n\n{above}\n\n{RULE}\n❯ \n{RULE}\n{footer}");
        text.lines().map(str::to_owned).collect()
    }

    fn judged(lines: &[String], tag: State, reason: &str, printed_at: i64, silent: i64) -> Report {
        let seen = Observed {
            tag: Some(tag),
            tag_source: Some(Source::Hook),
            tag_since: Some(100),
            tag_reason: Some(reason),
            printed_at: Some(printed_at),
            screen: Some(Looked {
                lines,
                silent_seconds: Some(silent),
            }),
            ..Observed::default()
        };
        judge(&seen, Some(&claude()), &Patterns::default())
    }

    #[test]
    fn retry_on_the_screen_is_the_reason_of_busy() {
        let retry = "✻ 529 Overloaded · Retrying in 2s · attempt 3/10";
        let report = judged(
            &claude_screen(retry, ""),
            State::Busy,
            TOOK_A_PROMPT,
            101,
            0,
        );
        assert_eq!((report.state, report.source), (State::Busy, Source::Hook));
        let reason = report.reason.as_deref();
        assert_eq!(reason, Some("retrying: 529 Overloaded, attempt 3/10"));
        let works = judged(
            &claude_screen("✻ Baking…", ""),
            State::Busy,
            "Bash(ls)",
            101,
            0,
        );
        assert_eq!(works.reason.as_deref(), Some("Bash(ls)"));
    }

    #[test]
    fn limit_of_a_hook_continues_where_the_footer_says_so() {
        let told = "You've hit your limit · resets 6:22am (UTC)";
        let above =
            format!("  ⎿  {told}\n\n● Usage limit reached · continuing automatically at 6:22am");
        let continues = "    Continuing automatically at 6:22am · Esc to cancel";
        let report = judged(
            &claude_screen(&above, continues),
            State::Limited,
            told,
            101,
            0,
        );
        assert_eq!(
            (report.state, report.source),
            (State::Limited, Source::Hook)
        );
        assert_eq!(report.since, Some(100));
        let limit = report.limit.unwrap();
        assert!(limit.continues && limit.reset.is_some());
        let reason = format!("{told} · continues by itself");
        assert_eq!(report.reason, Some(reason));
        let cancelled = judged(&claude_screen(&above, ""), State::Limited, told, 101, 0);
        assert!(!cancelled.limit.unwrap().continues);
        assert_eq!(cancelled.reason.as_deref(), Some(told));
        // The program has continued by itself, and no hook has reported it.
        let works = claude_screen("✻ Baking…", "");
        let report = judged(&works, State::Limited, told, 200, 0);
        assert_eq!(report.state, State::Busy);
        let report = judged(&works, State::Limited, told, 100, 0);
        assert_eq!(report.state, State::Limited, "drawn before the hook spoke");
    }

    #[test]
    fn bare_code_of_a_hook_gives_way_to_the_message_on_the_screen() {
        let lines = claude_screen("● API Error: 400 bad request", "");
        let reason = |told: &str| judged(&lines, State::Error, told, 101, 0).reason.unwrap();
        assert_eq!(reason("unknown"), "API Error: 400 bad request");
        assert_eq!(reason("API Error: 401 no"), "API Error: 401 no");
    }

    #[test]
    fn first_prompt_that_never_comes_ends_in_silence() {
        let lines = claude_screen("", "");
        let state = |silent| judged(&lines, State::Busy, FIRST_PROMPT, 99, silent).state;
        assert_eq!(state(1), State::Busy);
        assert_eq!(state(3), State::Idle);
    }

    #[test]
    fn background_tasks_are_beside_the_state_of_a_turn_that_is_over() {
        let mut seen = Observed {
            tag: Some(State::Idle),
            tag_source: Some(Source::Hook),
            tag_background: 2,
            ..Observed::default()
        };
        let judge = |seen: &Observed<'_>| judge(seen, Some(&claude()), &Patterns::default());
        assert_eq!(judge(&seen).label(), "idle (2 background tasks)");
        seen.tag = Some(State::Busy);
        assert_eq!(judge(&seen).label(), "busy");
    }

    #[test]
    fn first_prompt_outweighs_a_title_without_a_mark() {
        let codex = crate::harness::resolve("codex", None).unwrap().value;
        let mut seen = Observed {
            title: "proj",
            tag: Some(State::Busy),
            tag_source: Some(Source::Hook),
            tag_reason: Some(FIRST_PROMPT),
            ..Observed::default()
        };
        let state = |seen: &Observed<'_>| judge(seen, Some(&codex), &Patterns::default()).state;
        assert_eq!(state(&seen), State::Busy);
        seen.title = "[ . ] Action Required";
        assert_eq!(state(&seen), State::Waiting);
        seen.title = "proj";
        seen.tag_reason = Some(TOOK_A_PROMPT);
        assert_eq!(state(&seen), State::Idle);
    }
}

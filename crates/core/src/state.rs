//! What an agent is doing, and how we know.
//!
//! Witnesses, in the order of trust: the process (tmux knows when it is dead), the
//! title of its terminal where the program says its state there, the agent's own
//! word (its hooks, kept as a tag), and last the screen. A state always carries
//! the witness it came from.

use crate::harness::{Preset, TitleMarks};
use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Its worktree is being made ready; the agent has not begun.
    Initializing,
    /// Being started; not yet seen ready.
    Starting,
    /// Alive; nobody has said more.
    Running,
    Idle,
    Busy,
    /// It asks something.
    Waiting,
    Error,
    /// Somebody has stopped it in the middle, to go on later.
    Paused,
    /// It says that its work is complete.
    Done,
    /// Its process ended by itself, with status 0.
    Exited,
    /// Its process ended otherwise.
    Crashed,
    /// There is no container.
    Stopped,
}

impl State {
    pub fn word(self) -> &'static str {
        match self {
            State::Initializing => "initializing",
            State::Starting => "starting",
            State::Running => "running",
            State::Idle => "idle",
            State::Busy => "busy",
            State::Waiting => "waiting",
            State::Error => "error",
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
            State::Paused,
            State::Done,
            State::Exited,
            State::Crashed,
            State::Stopped,
        ]
        .into_iter()
        .find(|state| state.word() == word)
    }

    /// Whether the agent's process has ended.
    pub fn is_dead(self) -> bool {
        matches!(self, State::Exited | State::Crashed | State::Stopped)
    }
}

/// The witness that a state came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    Process,
    Hook,
    Title,
    Screen,
    /// `gt` itself, which started it.
    Start,
    /// `gt` itself, on a person's behalf.
    Gt,
}

impl Source {
    pub fn word(self) -> &'static str {
        match self {
            Source::Process => "process",
            Source::Hook => "hook",
            Source::Title => "title",
            Source::Screen => "screen",
            Source::Start => "start",
            Source::Gt => "gt",
        }
    }
}

/// What is known about an agent's pane.
#[derive(Clone, Debug, Default)]
pub struct Observed<'a> {
    pub dead: bool,
    pub exit_status: Option<i32>,
    pub exit_signal: Option<i32>,
    pub died_at: Option<i64>,
    pub title: &'a str,
    /// The tags `@gt_state`, `@gt_state_source`, `@gt_state_since`, `@gt_state_reason`.
    pub tag: Option<State>,
    pub tag_is_from_hook: bool,
    pub tag_since: Option<i64>,
    pub tag_reason: Option<&'a str>,
}

/// A state with its provenance. Times are seconds since the epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub state: State,
    pub source: Source,
    pub since: Option<i64>,
    pub reason: Option<String>,
}

/// Decides what the witnesses add up to.
pub fn judge(seen: &Observed<'_>, preset: Option<&Preset>) -> Report {
    if seen.dead {
        return death(seen);
    }
    let tagged = |state, source| Report {
        state,
        source,
        since: seen.tag_since,
        reason: seen.tag_reason.map(str::to_owned),
    };
    if let Some(state @ (State::Initializing | State::Starting)) = seen.tag {
        return tagged(state, Source::Start);
    }
    // A pause is a person's word about the agent. Where hooks report a new turn, they
    // end it; elsewhere the title does.
    if seen.tag == Some(State::Paused) && !title_ends_a_pause(seen, preset) {
        return tagged(State::Paused, Source::Gt);
    }
    // A hook said it once; the title says it now. Some changes no hook reports, such
    // as an interrupt or an approval.
    if let Some((state, mark)) = preset.and_then(|preset| by_title(seen.title, preset)) {
        if seen.tag_is_from_hook && seen.tag == Some(state) {
            return tagged(state, Source::Hook);
        }
        return Report {
            state,
            source: Source::Title,
            since: None,
            reason: Some(format!("title begins with {mark}")),
        };
    }
    let says_all = preset.is_some_and(|preset| preset.title_marks.always);
    match seen.tag {
        Some(State::Busy | State::Waiting) if says_all => Report {
            state: State::Idle,
            source: Source::Title,
            since: None,
            reason: Some("title has no mark".to_owned()),
        },
        Some(state) if seen.tag_is_from_hook => tagged(state, Source::Hook),
        tag => tagged(tag.unwrap_or(State::Running), Source::Process),
    }
}

fn title_ends_a_pause(seen: &Observed<'_>, preset: Option<&Preset>) -> bool {
    let without_hooks = preset.filter(|preset| preset.hooks.installer.is_none());
    let says = without_hooks.and_then(|preset| by_title(seen.title, preset));
    says.is_some_and(|(state, _)| state != State::Idle)
}

fn death(seen: &Observed<'_>) -> Report {
    let (state, reason) = match (seen.exit_status, seen.exit_signal) {
        (_, Some(signal)) if signal != 0 => (State::Crashed, format!("killed by signal {signal}")),
        (Some(0), _) => (State::Exited, "exit status 0".to_owned()),
        (Some(status), _) => (State::Crashed, format!("exit status {status}")),
        (None, _) => (State::Crashed, "exit status unknown".to_owned()),
    };
    Report {
        state,
        source: Source::Process,
        since: seen.died_at,
        reason: Some(reason),
    }
}

fn by_title<'p>(title: &str, preset: &'p Preset) -> Option<(State, &'p str)> {
    let marks = &preset.title_marks;
    let find = |marks: &'p [String]| TitleMarks::first(marks, title);
    find(&marks.waiting)
        .map(|mark| (State::Waiting, mark))
        .or_else(|| find(&marks.busy).map(|mark| (State::Busy, mark)))
        .or_else(|| find(&marks.ready).map(|mark| (State::Idle, mark)))
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
            let report = judge(seen, Some(&preset));
            (report.state, report.source)
        };
        assert_eq!(judge(&seen), (State::Busy, Source::Title));
        seen.tag = Some(State::Starting);
        assert_eq!(judge(&seen), (State::Starting, Source::Start));
        seen.tag = Some(State::Idle);
        seen.tag_is_from_hook = true;
        assert_eq!(judge(&seen), (State::Busy, Source::Title));
        seen.tag = Some(State::Busy);
        assert_eq!(judge(&seen), (State::Busy, Source::Hook));
        seen.title = "something else";
        seen.tag = Some(State::Waiting);
        assert_eq!(judge(&seen), (State::Waiting, Source::Hook));
        let mut says_all = preset.clone();
        says_all.title_marks.always = true;
        let report = super::judge(&seen, Some(&says_all));
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
        let report = judge(&seen, Some(&preset));
        assert_eq!((report.state, report.source), (State::Paused, Source::Gt));
        assert_eq!(report.since, Some(7));
        assert_eq!(report.reason.as_deref(), Some("by a person"));
        // Only the title can tell of a new turn here.
        seen.title = "◑ demo";
        assert_eq!(judge(&seen, Some(&preset)).state, State::Busy);
        preset.hooks.installer = Some("claude".to_owned());
        assert_eq!(judge(&seen, Some(&preset)).state, State::Paused);
        seen.dead = true;
        assert_eq!(judge(&seen, Some(&preset)).state, State::Crashed);
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
            assert_eq!(State::from_word(state.word()), Some(state));
        }
    }
}

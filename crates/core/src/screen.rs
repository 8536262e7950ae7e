//! Reads the state of a program from its screen, as its preset describes.
//!
//! Agents write about errors, prompts and permissions all day, so a mark somewhere on the screen
//! proves little. Only the *live area* counts: the input line and the lines directly around it,
//! which the program draws and which never contain the agent's text. The preset describes how that
//! line is set off (`screen.input`); [`classify`] finds it and reads outwards. If the line is
//! missing, a dialog has taken its place.
//!
//! For programs without a described live area, only marks in the last lines are read. The screen is
//! the least trusted source of all; [`crate::state`] has the others. `docs/harnesses.md` explains
//! the keys of a preset.

mod dialog;
mod input;
mod line;
mod mark;
mod menu;
mod outcome;
mod state_reader;

pub use dialog::{Asking, UNKNOWN};
pub use input::InputContent;
pub use mark::matches;
pub use state_reader::{CapturedScreen, read_state};

use crate::harness::{DialogPattern, InputFrame, Preset, TitleMarks};
use crate::limit::{Limit, Retry};
use crate::state::{self, Reason, State};
use line::ScreenLine;
use outcome::Ending;
use serde::Serialize;

/// Result of reading a screen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Classification {
    /// [`State::Starting`] if no part of a conversation shows yet, and [`State::Running`] if
    /// nothing on the screen is recognised.
    pub state: State,
    /// Reason, for people.
    pub reason: String,
    /// Stable name of the rule that decided.
    pub rule: String,
    /// Mark of the preset that decided, if one did.
    pub mark: Option<String>,
    pub dialog: Option<Asking>,
    /// `None` if no input line shows.
    pub input: Option<InputContent>,
    /// Number of tasks that still run in the background of a finished turn.
    #[serde(skip_serializing_if = "is_zero")]
    pub background: u32,
    /// Usage limit, if one was reached.
    #[serde(skip)]
    pub limit: Option<Limit>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Classification {
    /// Returns whether the program waits for a message: its turn is over, however it ended, and no
    /// dialog is open that would take the keys. A program that retries by itself is in the middle
    /// of its turn, even at a limit.
    pub fn is_at_prompt(&self) -> bool {
        let is_over = matches!(self.state, State::Idle | State::Error | State::Limited);
        is_over && self.dialog.is_none() && self.rule != RETRYING_RULE
    }
}

/// Rule for a finished turn with tasks that still run.
const BACKGROUND: &str = "background";
/// Rule for an interrupted turn.
pub(crate) const INTERRUPTED_RULE: &str = "interrupted";
/// Rule for a failed request that is retried.
pub(crate) const RETRYING_RULE: &str = "retrying";
/// Rule for a turn that ended at a usage limit.
const LIMITED: &str = "limited";

/// Classifies a screen and the terminal's title. The lines are those that the terminal shows, with
/// colours or without; see `line`.
pub fn classify(lines: &[impl AsRef<str>], title: &str, preset: &Preset) -> Classification {
    decide(lines, title, preset).classification()
}

/// Returns the state that the screen shows, and the mark that decided; `None` if it shows none. An
/// agent whose last turn failed is idle here: it waits for a message.
pub fn read<'p>(lines: &[impl AsRef<str>], preset: &'p Preset) -> Option<(State, &'p str)> {
    let verdict = decide(lines, "", preset);
    let mark = verdict.mark.unwrap_or_default();
    let found = verdict.classification();
    match found.state {
        State::Starting | State::Running => None,
        State::Error if found.input.is_none() => Some((State::Error, mark)),
        _ if found.is_at_prompt() => Some((State::Idle, mark)),
        state => Some((state, mark)),
    }
}

/// A classification under construction, with the mark borrowed from the preset.
#[derive(Clone, Debug)]
struct ScreenVerdict<'p> {
    state: State,
    reason: String,
    rule: String,
    mark: Option<&'p str>,
    dialog: Option<Asking>,
    input: Option<InputContent>,
    background: u32,
    limit: Option<Limit>,
}

impl<'p> ScreenVerdict<'p> {
    fn new(state: State, rule: impl Into<String>, mark: Option<&'p str>, reason: String) -> Self {
        ScreenVerdict {
            state,
            reason,
            rule: rule.into(),
            mark,
            dialog: None,
            input: None,
            background: 0,
            limit: None,
        }
    }

    /// Returns the verdict for a usage limit that the program's text reports.
    fn limited(rule: impl Into<String>, mark: Option<&'p str>, limit: Limit, text: &str) -> Self {
        let reason = limit.describe(text);
        ScreenVerdict {
            limit: Some(limit),
            ..ScreenVerdict::new(State::Limited, rule, mark, reason)
        }
    }

    /// Returns the verdict for a request that is retried, soon or only after a limit has ended.
    fn retrying(retry: &Retry, mark: &'p str) -> Self {
        match retry.limit() {
            Some(limit) => ScreenVerdict::limited(RETRYING_RULE, Some(mark), limit, &retry.cause),
            None => ScreenVerdict::new(State::Busy, RETRYING_RULE, Some(mark), retry.describe()),
        }
    }

    fn asking(found: dialog::FoundDialog<'p>) -> Self {
        let rule = format!("dialog.{}", found.asking.kind);
        let reason = found.asking.summary();
        ScreenVerdict {
            dialog: Some(found.asking),
            ..ScreenVerdict::new(State::Waiting, rule, found.mark, reason)
        }
    }

    /// Returns the verdict for a dialog that a program opens because a usage limit was reached.
    fn asking_at_a_limit(found: dialog::FoundDialog<'p>, text: &str) -> Self {
        let rule = format!("dialog.{}", found.asking.kind);
        let limit = Limit::from_text(text);
        let text = format!("{text} · asks what to do");
        ScreenVerdict {
            dialog: Some(found.asking),
            ..ScreenVerdict::limited(rule, found.mark, limit, &text)
        }
    }

    fn with_input(self, input: InputContent) -> Self {
        ScreenVerdict {
            input: Some(input),
            ..self
        }
    }

    fn classification(self) -> Classification {
        Classification {
            state: self.state,
            reason: self.reason,
            rule: self.rule,
            mark: self.mark.map(str::to_owned),
            dialog: self.dialog,
            input: self.input,
            background: self.background,
            limit: self.limit,
        }
    }
}

fn decide<'p>(lines: &[impl AsRef<str>], title: &str, preset: &'p Preset) -> ScreenVerdict<'p> {
    let lines = line::parse(lines);
    let titled = TitleMatch::read(title, preset);
    let Some(form) = &preset.screen.input else {
        return by_marks(&lines, &titled, preset);
    };
    let found = input::find(&lines, &preset.screen).filter(|found| {
        // A paragraph may also be the first choice of a dialog.
        form.frame != InputFrame::Paragraph
            || !dialog::is_choice_of_dialog(&lines, &found.lines, preset)
    });
    match found {
        Some(found) => around(&lines, found, &titled, preset),
        None => without_input(&lines, &titled, preset),
    }
}

/// Reads the lines around an input line.
fn around<'p>(
    lines: &[ScreenLine],
    found: input::FoundInput,
    titled: &TitleMatch<'p>,
    preset: &'p Preset,
) -> ScreenVerdict<'p> {
    let screen = &preset.screen;
    let (above, beneath) = (&lines[..found.lines.start], &lines[found.lines.end..]);
    if let Some(mark) = dialog::shows(lines, &screen.overlay) {
        let reason = "a window lies over its input line".to_owned();
        return ScreenVerdict::new(State::Waiting, "overlay", Some(mark), reason);
    }
    let nearest = above.iter().rev().find(|line| !line.is_blank());
    let about_to_ask =
        nearest.and_then(|line| mark::longest_match(&line.text, &screen.about_to_ask));
    let verdict = if let Some(mark) = about_to_ask {
        let reason = "about to ask something".to_owned();
        ScreenVerdict::new(State::Waiting, "about-to-ask", Some(mark), reason)
    } else if let Some(mark) = titled.waiting {
        titled.verdict(State::Waiting, mark)
    } else if let Some(line) = outcome::busy(above, screen) {
        match Retry::parse(&line.says, &line.below) {
            Some(retry) if screen.spinner.retries => ScreenVerdict::retrying(&retry, line.mark),
            _ => ScreenVerdict::new(State::Busy, "spinner", Some(line.mark), line.says),
        }
    } else if let Some((mark, retry)) = outcome::retrying(beneath, screen) {
        ScreenVerdict::retrying(&retry, mark)
    } else if let Some(mark) = dialog::shows(beneath, &screen.busy) {
        let reason = format!("its footer says {mark:?}");
        ScreenVerdict::new(State::Busy, "footer", Some(mark), reason)
    } else if let Some(mark) = titled.busy {
        titled.verdict(State::Busy, mark)
    } else {
        match outcome::ending(above, screen) {
            Some(Ending::Failed { mark, text }) => {
                ScreenVerdict::new(State::Error, "error", Some(mark), text)
            }
            Some(Ending::Interrupted { mark }) => {
                let reason = Reason::Interrupted.into();
                ScreenVerdict::new(State::Idle, INTERRUPTED_RULE, Some(mark), reason)
            }
            Some(Ending::Limited { mark, text }) => {
                let limit = Limit {
                    continues: dialog::shows(beneath, &screen.continues).is_some(),
                    ..Limit::from_text(&text)
                };
                ScreenVerdict::limited(LIMITED, Some(mark), limit, &text)
            }
            Some(Ending::Background { mark, count }) => ScreenVerdict {
                background: count,
                ..ScreenVerdict::new(
                    State::Idle,
                    BACKGROUND,
                    Some(mark),
                    "at its prompt".to_owned(),
                )
            },
            None => {
                let mark = screen.ready.first().map(String::as_str);
                ScreenVerdict::new(State::Idle, "prompt", mark, "at its prompt".to_owned())
            }
        }
    };
    verdict.with_input(found.input)
}

fn without_input<'p>(
    lines: &[ScreenLine],
    titled: &TitleMatch<'p>,
    preset: &'p Preset,
) -> ScreenVerdict<'p> {
    if let Some(found) = dialog::find(lines, preset) {
        let above = outcome::ending(&lines[..found.top], &preset.screen);
        let text = match above {
            Some(Ending::Limited { text, .. }) => Some(text),
            _ if found.asking.is_about_a_limit() => Some(found.asking.first_line().to_owned()),
            _ => None,
        };
        return match text {
            Some(text) => ScreenVerdict::asking_at_a_limit(found, &text),
            None => ScreenVerdict::asking(found),
        };
    }
    if let Some((state, mark)) = titled.says() {
        return titled.verdict(state, mark);
    }
    nothing_known(lines, preset)
}

fn nothing_known<'p>(lines: &[ScreenLine], preset: &'p Preset) -> ScreenVerdict<'p> {
    if lines.is_empty() {
        let reason = "the screen is empty".to_owned();
        return ScreenVerdict::new(State::Starting, "blank", None, reason);
    }
    let is_message =
        |line: &ScreenLine| mark::longest_match(&line.text, &preset.screen.messages).is_some();
    let state = match lines.iter().any(is_message) {
        true => State::Running,
        false => State::Starting,
    };
    let reason = "nothing known is on the screen".to_owned();
    ScreenVerdict::new(state, "none", None, reason)
}

/// Marks found at the beginning of the terminal's title.
#[derive(Clone, Copy, Debug)]
struct TitleMatch<'p> {
    waiting: Option<&'p str>,
    busy: Option<&'p str>,
    ready: Option<&'p str>,
}

impl<'p> TitleMatch<'p> {
    fn read(title: &str, preset: &'p Preset) -> Self {
        let find = |marks: &'p [String]| TitleMarks::first(marks, title);
        let marks = &preset.title_marks;
        TitleMatch {
            waiting: find(&marks.waiting),
            busy: find(&marks.busy),
            ready: find(&marks.ready),
        }
    }

    /// Returns the state for a screen that shows none. The ready mark does not count: programs show
    /// it during dialogs too.
    fn says(&self) -> Option<(State, &'p str)> {
        let waiting = self.waiting.map(|mark| (State::Waiting, mark));
        waiting.or(self.busy.map(|mark| (State::Busy, mark)))
    }

    fn verdict(&self, state: State, mark: &'p str) -> ScreenVerdict<'p> {
        let rule = match state {
            State::Waiting => "title.waiting",
            State::Busy => "title.busy",
            _ => "title.ready",
        };
        let reason = state::describe_mark(state).to_owned();
        ScreenVerdict::new(state, rule, Some(mark), reason)
    }
}

/// Returns the text just before the cursor, whose position is given as `column row`.
pub fn before_cursor(lines: &[impl AsRef<str>], cursor: &str) -> String {
    const ROWS: usize = 6;
    let (column, row) = cursor.split_once(' ').unwrap_or_default();
    let (column, row): (usize, usize) = (
        column.parse().unwrap_or_default(),
        row.parse().unwrap_or_default(),
    );
    let lines = line::parse(lines);
    let mut text = String::new();
    for at in row.saturating_sub(ROWS)..row {
        text.extend(lines.get(at).map(|line| line.text.as_str()));
        text.push('\n');
    }
    let last = lines.get(row).map(|line| line.text.chars().take(column));
    text.extend(last.into_iter().flatten());
    text
}

/// Number of the last non-blank lines to read if no input line is described.
const LAST_LINES: usize = 24;

/// Reads a program whose live area is not described. An open question outweighs everything; a busy
/// line outweighs the prompt beneath it.
fn by_marks<'p>(
    lines: &[ScreenLine],
    titled: &TitleMatch<'p>,
    preset: &'p Preset,
) -> ScreenVerdict<'p> {
    let screen = &preset.screen;
    let last = last_lines(lines);
    let says = |mark: &str| format!("its screen shows {mark:?}");
    let found = |state, rule: &str, mark| ScreenVerdict::new(state, rule, Some(mark), says(mark));
    let rows = menu::find(last, |_| false).filter(|rows| rows.marked.is_some());
    let knows = |dialog: &DialogPattern| dialog::shows(last, &dialog.shows).is_some();
    let is_known = rows.is_some() && preset.dialogs.iter().any(knows);
    if (is_known || dialog::shows(last, &screen.waiting).is_some())
        && let Some(found) = dialog::find(last, preset)
    {
        return ScreenVerdict::asking(found);
    }
    if let Some(mark) = titled.waiting {
        return titled.verdict(State::Waiting, mark);
    }
    if let Some(mark) = dialog::shows(last, &screen.busy) {
        return found(State::Busy, "marks.busy", mark);
    }
    if let Some(mark) = titled.busy {
        return titled.verdict(State::Busy, mark);
    }
    if let Some(mark) = dialog::shows(last, &screen.ready).filter(|_| rows.is_none()) {
        return found(State::Idle, "marks.ready", mark);
    }
    if let Some(mark) = titled.ready.filter(|_| screen.ready.is_empty()) {
        return titled.verdict(State::Idle, mark);
    }
    if let Some(mark) = dialog::shows(last, &screen.error) {
        return found(State::Error, "marks.error", mark);
    }
    nothing_known(lines, preset)
}

/// Returns the end of the screen, beginning with the first of the last non-blank lines. Blank lines
/// do not count: some programs draw a tall empty screen above their footer.
fn last_lines(lines: &[ScreenLine]) -> &[ScreenLine] {
    let written = (0..lines.len()).rev().filter(|at| !lines[*at].is_blank());
    let first = written.take(LAST_LINES).last().unwrap_or(0);
    &lines[first..]
}

/// A start-up dialog that is open now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenDialog {
    pub name: String,
    pub menu: Menu,
    /// Row that the preset wants, if the menu has it.
    pub wanted: Option<usize>,
}

/// Rows of a menu, and the marked one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Menu {
    pub options: Vec<String>,
    pub marked: usize,
}

/// Returns the dialog with a known answer that the screen shows, if its rows can be read.
pub fn open_dialog(lines: &[impl AsRef<str>], dialogs: &[DialogPattern]) -> Option<OpenDialog> {
    let lines = line::parse(lines);
    let last = last_lines(&lines);
    let has_answer = |dialog: &&DialogPattern| !dialog.choose.is_empty();
    let dialog = dialogs
        .iter()
        .filter(has_answer)
        .find(|dialog| dialog::shows(last, &dialog.shows).is_some())?;
    let rows =
        menu::with_known_texts(last, &dialog.options).or_else(|| menu::find(last, |_| false))?;
    let marked = rows.marked?;
    let wanted = dialog.choose.iter().find_map(|choice| {
        rows.options
            .iter()
            .position(|option| option.contains(choice.as_str()))
    });
    Some(OpenDialog {
        name: dialog.name.clone(),
        menu: Menu {
            options: rows.options,
            marked,
        },
        wanted,
    })
}

#[cfg(test)]
mod tests;

//! Output: JSON for scripts, tables and colours for people.

pub(crate) mod captured;
pub(crate) mod progress;
pub(crate) mod question;
pub(crate) mod table;
pub(crate) mod usage;

use gt_core::Problem;
use gt_core::work::is_unseen;
use serde::Serialize;
use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;
use unicode_width::UnicodeWidthStr;

/// Prints text on stdout. A closed pipe is not a failure.
pub(crate) fn print(text: &str) -> Result<(), Problem> {
    if captured::add(text) {
        return Ok(());
    }
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Problem::failed("cannot write the answer").caused_by(error))
        }
        _ => Ok(()),
    }
}

/// Returns whether stdout can still be read. The reader of a pipe may be gone.
pub(crate) fn has_reader() -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let stdout = std::io::stdout();
    let mut fds = [PollFd::new(&stdout, PollFlags::empty())];
    let at_once = Timespec::default();
    match poll(&mut fds, Some(&at_once)) {
        Ok(_) => !fds[0]
            .revents()
            .intersects(PollFlags::ERR | PollFlags::NVAL),
        Err(_) => true,
    }
}

/// Prints one line on stdout.
pub(crate) fn line(text: impl AsRef<str>) -> Result<(), Problem> {
    print(&format!("{}\n", text.as_ref()))
}

/// Prints text that may contain colours, without them if stdout is not for colours.
pub(crate) fn styled(text: &str) -> Result<(), Problem> {
    match Paint::for_stdout().on {
        true => print(text),
        false => print(&plain(text)),
    }
}

/// Removes colour sequences.
fn plain(text: &str) -> String {
    let mut parts = text.split('\u{1b}');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let rest = part.split_once('m').map_or("", |(_, rest)| rest);
        text + rest
    })
}

/// Returns the width of the terminal on stdout, else `COLUMNS`, else nothing.
pub(crate) fn terminal_columns() -> Option<usize> {
    columns_of(std::io::stdout())
}

/// Returns the width of the terminal on stderr, else `COLUMNS`, else nothing.
pub(crate) fn stderr_columns() -> Option<usize> {
    columns_of(std::io::stderr())
}

fn columns_of(stream: impl AsFd) -> Option<usize> {
    // A pipe has no size.
    let size = rustix::termios::tcgetwinsize(stream).ok();
    let columns = size.map(|size| usize::from(size.ws_col));
    // A value that is not a number counts as absent.
    let variable = || std::env::var("COLUMNS").ok()?.parse().ok();
    columns.or_else(variable).filter(|columns| *columns > 0)
}

/// Returns the width for text that wraps: that of the terminal, at most `max`.
pub(crate) fn columns(max: usize) -> usize {
    terminal_columns().map_or(max, |columns| columns.clamp(40, max))
}

/// Breaks a text between words into lines of at most this width.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is a line");
        if line.is_empty() {
            word.clone_into(line);
        } else if line.width() + 1 + word.width() <= width {
            *line += &format!(" {word}");
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

/// Prints a line that fits the terminal: it is broken between words, but not inside a command in
/// backquotes. The next lines are indented. Other outputs get one line.
pub(crate) fn fitted(text: &str, indent: usize) -> Result<(), Problem> {
    line(broken(text, terminal_columns(), indent))
}

/// Breaks a line to fit, as [`fitted`] does.
pub(crate) fn broken(text: &str, columns: Option<usize>, indent: usize) -> String {
    let Some(columns) = columns else {
        return text.to_owned();
    };
    let own = text.len() - text.trim_start_matches(' ').len();
    let mut lines: Vec<String> = Vec::new();
    for phrase in phrases(&text[own..]) {
        let fits = |line: &&mut String| plain(line).width() + 1 + plain(&phrase).width() <= columns;
        match lines.last_mut().filter(fits) {
            Some(line) => *line += &format!(" {phrase}"),
            None => {
                let indent = if lines.is_empty() { own } else { indent };
                lines.push(format!("{}{phrase}", " ".repeat(indent)));
            }
        }
    }
    lines.join("\n")
}

/// Returns the lines of a text that begins with a label. A text that is too wide is broken, also
/// inside a word that does not fit, and the next lines are indented below its beginning.
pub(crate) fn hanging(label: &str, text: &str, columns: Option<usize>) -> Vec<String> {
    let body = text.trim_start_matches(' ');
    let indent = label.width() + text.len() - body.len();
    let whole = format!("{label}{text}");
    let Some(columns) = columns.filter(|columns| *columns < whole.width()) else {
        return vec![whole];
    };
    let lines = table::wrap(body, columns.saturating_sub(indent).max(1));
    let lines = lines.iter().enumerate();
    let head = |at: usize| if at == 0 { label } else { "" };
    lines
        .map(|(at, line)| {
            let padding = " ".repeat(indent - head(at).width());
            format!("{}{padding}{line}", head(at))
        })
        .collect()
}

/// Splits a text into words; a command in backquotes is one of them.
fn phrases(text: &str) -> Vec<String> {
    let mut phrases: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match phrases.last_mut() {
            Some(last) if last.matches('`').count() % 2 == 1 => *last += &format!(" {word}"),
            _ => phrases.push(word.to_owned()),
        }
    }
    phrases
}

/// Replaces control and invisible characters, so that text from outside cannot control the terminal
/// or hide in a line.
pub(crate) fn clean(text: &str) -> String {
    let clean = |c: char| if is_unseen(c) { '\u{fffd}' } else { c };
    text.chars().map(clean).collect()
}

/// Prints text of several lines, cleaned. Tabs are kept, because they are common and harmless.
pub(crate) fn lines(text: &str) -> Result<(), Problem> {
    text.lines().try_for_each(|text| line(with_tabs(text)))
}

/// Cleans a line, and keeps its tabs.
pub(crate) fn with_tabs(line: &str) -> String {
    let parts: Vec<String> = line.split('\t').map(clean).collect();
    parts.join("\t")
}

/// Prints a warning on stderr, with aligned lines and without control characters.
pub(crate) fn warn(text: impl AsRef<str>) {
    if captured::is_active() {
        tracing::warn!("{}", text.as_ref());
        return;
    }
    let paint = Paint::for_stderr();
    // If stderr is closed, the warning cannot be printed.
    let _ = writeln!(
        std::io::stderr(),
        "{} {}",
        paint.yellow("warning:"),
        indented(text.as_ref(), "         ")
    );
}

/// Prints a progress line on stderr.
pub(crate) fn note(text: impl AsRef<str>) {
    if captured::is_active() {
        return;
    }
    // If stderr is closed, the line cannot be printed.
    let _ = writeln!(std::io::stderr(), "{}", clean(text.as_ref()));
}

/// Joins the lines of a text, with `beginning` before all but the first.
fn indented(text: &str, beginning: &str) -> String {
    let lines = text.trim_end().lines();
    let lines: Vec<String> = lines.map(|line| clean(&line.replace('\t', " "))).collect();
    lines.join(&format!("\n{beginning}"))
}

/// Prints one JSON document on stdout.
pub(crate) fn json(value: &impl Serialize) -> Result<(), Problem> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| Problem::failed("cannot write JSON").caused_by(error))?;
    line(text)
}

/// A list that is printed as one JSON document while its elements arrive. Only a part of it is in
/// memory. The text is that of [`json`] of the complete list.
#[derive(Debug, Default)]
pub(crate) struct JsonList {
    text: String,
    has_elements: bool,
}

impl JsonList {
    pub(crate) fn add(&mut self, element: &impl Serialize) -> Result<(), Problem> {
        const AT_ONCE: usize = 1 << 16;
        let element = serde_json::to_string_pretty(element)
            .map_err(|error| Problem::failed("cannot write JSON").caused_by(error))?;
        self.text += if self.has_elements { ",\n  " } else { "[\n  " };
        // A line break inside a string is escaped, so that every other one is of the layout.
        self.text += &element.replace('\n', "\n  ");
        self.has_elements = true;
        match self.text.len() < AT_ONCE {
            true => Ok(()),
            false => print(&std::mem::take(&mut self.text)),
        }
    }

    pub(crate) fn finish(self) -> Result<(), Problem> {
        let end = if self.has_elements { "\n]\n" } else { "[]\n" };
        print(&(self.text + end))
    }
}

/// Removes null fields from an object, so that unknown values are absent.
pub(crate) fn without_nulls(mut value: serde_json::Value) -> serde_json::Value {
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    value
}

/// Formats a time in RFC 3339, UTC.
pub(crate) fn time(seconds: i64) -> Option<String> {
    jiff::Timestamp::from_second(seconds)
        .ok()
        .map(|time| time.to_string())
}

/// Formats a duration in its two largest units.
pub(crate) fn duration(seconds: i64) -> String {
    match seconds {
        ..60 => format!("{}s", seconds.max(0)),
        60..3_600 => format!("{}m {}s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{}h {}m", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{}d {}h", seconds / 86_400, seconds % 86_400 / 3_600),
    }
}

/// Formats the time since then, in the largest fitting unit.
pub(crate) fn age(seconds: i64) -> String {
    let ago = (jiff::Timestamp::now().as_second() - seconds).max(0);
    match ago {
        0..60 => format!("{ago}s"),
        60..3_600 => format!("{}m", ago / 60),
        3_600..86_400 => format!("{}h", ago / 3_600),
        _ => format!("{}d", ago / 86_400),
    }
}

/// Formats the time since an RFC 3339 timestamp. An unreadable one gives an empty text.
pub(crate) fn age_of(text: &str) -> String {
    let at = text.parse::<jiff::Timestamp>();
    at.map_or_else(|_| String::new(), |at| age(at.as_second()))
}

/// Formats a time in the local time zone, to the minute.
pub(crate) fn minute(text: Option<&str>) -> String {
    let at = text.and_then(|at| at.parse().ok());
    at.map_or_else(String::new, |at: jiff::Timestamp| {
        let here = at.to_zoned(jiff::tz::TimeZone::system());
        here.strftime("%Y-%m-%d %H:%M").to_string()
    })
}

/// Formats a time as a clock time in the local time zone, with the date if it is not today.
pub(crate) fn clock(seconds: i64) -> String {
    let zone = jiff::tz::TimeZone::system();
    // A time beyond the calendar is not a time of day.
    let Ok(at) = jiff::Timestamp::from_second(seconds) else {
        return String::new();
    };
    let at = at.to_zoned(zone.clone());
    let is_today = at.date() == jiff::Timestamp::now().to_zoned(zone).date();
    let format = if is_today { "%H:%M" } else { "%Y-%m-%d %H:%M" };
    at.strftime(format).to_string()
}

/// Colours, if the output is a terminal and `NO_COLOR` is not set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint {
    on: bool,
}

impl Paint {
    #[cfg(test)]
    pub(crate) const OFF: Paint = Paint { on: false };

    pub(crate) fn for_stdout() -> Self {
        Paint {
            on: std::io::stdout().is_terminal() && wanted(),
        }
    }

    pub(crate) fn for_stderr() -> Self {
        Paint {
            on: std::io::stderr().is_terminal() && wanted(),
        }
    }

    pub(crate) fn red(self, text: &str) -> String {
        self.with(anstyle::AnsiColor::Red.on_default().bold(), text)
    }

    pub(crate) fn green(self, text: &str) -> String {
        self.with(anstyle::AnsiColor::Green.on_default(), text)
    }

    pub(crate) fn yellow(self, text: &str) -> String {
        self.with(anstyle::AnsiColor::Yellow.on_default(), text)
    }

    pub(crate) fn cyan(self, text: &str) -> String {
        self.with(anstyle::AnsiColor::Cyan.on_default(), text)
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.with(anstyle::Style::new().bold(), text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.with(anstyle::Style::new().dimmed(), text)
    }

    fn with(self, style: anstyle::Style, text: &str) -> String {
        if self.on {
            format!("{style}{text}{style:#}")
        } else {
            text.to_owned()
        }
    }
}

fn wanted() -> bool {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    !set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_keeps_its_lines_and_nothing_that_drives_a_terminal() {
        let text = "cannot push:\r\nfatal:\tno\u{1b}[31m remote\n";
        assert_eq!(
            indented(text, "  "),
            "cannot push:\n  fatal: no\u{fffd}[31m remote"
        );
    }

    #[test]
    fn line_is_broken_between_words_and_not_in_a_command() {
        let text = "  \u{1b}[31m!\u{1b}[0m max waits for an answer: `gt answer hello/max`";
        assert_eq!(broken(text, None, 4), text);
        assert_eq!(broken(text, Some(80), 4), text);
        let expected = "  \u{1b}[31m!\u{1b}[0m max waits for an answer:\n    `gt answer hello/max`";
        assert_eq!(broken(text, Some(30), 4), expected);
        assert_eq!(broken("", Some(30), 4), "");
    }

    #[test]
    fn list_in_parts_is_the_same_document() {
        let text = |elements: &[serde_json::Value]| {
            let mut list = JsonList::default();
            for element in elements {
                list.add(element).unwrap();
            }
            list.text + if list.has_elements { "\n]" } else { "[]" }
        };
        let all = [
            serde_json::json!({"a": [1, {"b": "two\nlines"}], "c": []}),
            serde_json::json!("x"),
        ];
        for count in 0..=all.len() {
            let whole = serde_json::to_string_pretty(&all[..count]).unwrap();
            assert_eq!(text(&all[..count]), whole);
        }
    }

    #[test]
    fn age_of_a_time_in_the_future_is_not_negative() {
        let now = jiff::Timestamp::now().as_second();
        assert_eq!(age(now + 315_360_000), "0s");
        assert_eq!(age(now - 7_200), "2h");
    }

    #[test]
    fn invisible_characters_are_replaced() {
        assert_eq!(clean("a\u{202e}b\u{200b}"), "a\u{fffd}b\u{fffd}");
        let emoji = "\u{1f469}\u{200d}\u{1f680}";
        assert_eq!(clean(emoji), emoji);
        assert_eq!(with_tabs("a\tb\u{1b}"), "a\tb\u{fffd}");
    }
}

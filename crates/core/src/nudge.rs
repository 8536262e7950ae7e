//! Messages for agents: their order, their fingerprint, and when one may be typed.

use crate::state::State;
use serde::{Deserialize, Serialize};

/// A message on its way to an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// UUIDv7: sorts by the time it was sent.
    pub id: String,
    /// The sender that the agent gets to read, in front of the text.
    pub sender: Option<String>,
    /// The caller that sent it: the actor of its events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
    pub text: String,
    pub priority: Priority,
    /// Seconds since the epoch.
    pub created_at: i64,
    /// After this it is not delivered any more; absent means never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<i64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    Urgent,
    #[default]
    Normal,
}

impl Message {
    /// What the agent gets to read.
    pub fn shown(&self) -> String {
        let text = clean(&self.text);
        match &self.sender {
            Some(sender) => format!("[from {}] {text}", clean(sender)),
            None => text,
        }
    }

    /// A name that sorts in the order of delivery: urgent ones first, then by age.
    pub fn key(&self) -> String {
        let rank = match self.priority {
            Priority::Urgent => 0,
            Priority::Normal => 1,
        };
        format!("{rank}-{}", self.id)
    }

    /// When it was sent, in milliseconds since the epoch: its id knows it best.
    pub fn sent_at_millis(&self) -> i64 {
        let id: Option<crate::session::SessionId> = self.id.parse().ok();
        id.and_then(|id| id.began_at_millis())
            .unwrap_or(self.created_at * 1_000)
    }

    pub fn is_expired(&self, now: i64) -> bool {
        self.expires_at.is_some_and(|end| now >= end)
    }
}

/// Removes what a terminal would act on: control characters and the sequence
/// that ends a bracketed paste. Line ends become plain ones, and tabs blanks,
/// because that is how programs show them.
pub fn clean(text: &str) -> String {
    let text = text
        .replace("\r\n", "\n")
        .replace('\r', "\n")
        .replace("\u{1b}[201~", "")
        .chars()
        .map(|c| if c == '\t' { ' ' } else { c })
        .filter(|c| !c.is_control() || *c == '\n')
        .collect::<String>();
    let text = text.trim_end();
    // Before Enter some programs take it for a line that goes on.
    match text.ends_with('\\') {
        true => format!("{text} "),
        false => text.to_owned(),
    }
}

/// What a prompt is recognised by when the agent's hook reports it. White space
/// at the end does not count: some programs add it.
pub fn fingerprint(prompt: &str) -> String {
    let text = prompt.trim();
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}-{}", text.len())
}

/// Whether the text in an input line is this message, whole or as the program
/// shows a long one. Programs wrap and scroll, so blanks do not count and the
/// beginning or the end is enough.
pub fn is_in_input(input: &str, message: &str) -> bool {
    const ENOUGH: usize = 24;
    if is_paste_of(input, message) {
        return true;
    }
    let (input, message) = (squeeze(input), squeeze(message));
    let count = message.chars().count();
    if count <= ENOUGH {
        // Too little to know it by a part: "ok" begins many a line.
        return !message.is_empty() && input == message;
    }
    let beginning: String = message.chars().take(ENOUGH).collect();
    let end: String = message.chars().skip(count - ENOUGH).collect();
    input.starts_with(&beginning) || input.ends_with(&end)
}

/// Whether this was added to what stood in the line before. A line that is higher than
/// its window shows no more than its end.
pub fn is_added(input: &str, before: &str, added: &str) -> bool {
    let (input, before) = (squeeze(input), squeeze(before));
    match input.strip_prefix(&before) {
        Some(rest) => is_in_input(rest, added),
        None => {
            let label = input.rfind(PASTED).map(|at| &input[at..]);
            label.is_some_and(|label| is_paste_of(label, added)) || ends_with(&input, added)
        }
    }
}

/// A text without its blanks, which differ wherever it is wrapped.
pub fn squeeze(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// Whether a screen ends with this message at the cursor, where nothing more is
/// known about the program. Blanks do not count, and the end is enough.
pub fn ends_with(before_cursor: &str, message: &str) -> bool {
    const ENOUGH: usize = 24;
    let last = |text: &str| -> String {
        let squeezed = text.chars().rev().filter(|c| !c.is_whitespace());
        squeezed.take(ENOUGH).collect()
    };
    let (shown, wanted) = (last(before_cursor), last(message));
    !wanted.is_empty() && shown.starts_with(&wanted)
}

/// How what a program shows for a long paste begins.
const PASTED: &str = "[Pasted";

/// Whether all that stands in the line is what a program shows for a long paste, such
/// as `[Pasted text #1 +29 lines]`, and it is that of this message: the lines or the
/// characters that it counts must be the message's. A number after `#` only tells
/// pastes apart. Blanks do not count: behind other words it may be wrapped.
fn is_paste_of(input: &str, message: &str) -> bool {
    /// Without any count: programs show it from some 800 characters on.
    const LONG: usize = 700;
    let input = squeeze(input);
    let inside = input.strip_prefix(PASTED);
    let inside = inside.and_then(|rest| rest.strip_suffix(']'));
    let Some(inside) = inside.filter(|inside| !inside.contains('[')) else {
        return false;
    };
    let mut counts = inside
        .split(|c: char| !c.is_ascii_digit() && c != '#')
        .filter_map(|word| word.parse::<usize>().ok())
        .peekable();
    if counts.peek().is_none() {
        return message.chars().count() > LONG;
    }
    let breaks = message.matches('\n').count();
    let units = message.encode_utf16().count();
    let true_counts = [
        breaks,
        breaks + 1,
        message.len(),
        message.chars().count(),
        units,
    ];
    counts.any(|count| true_counts.contains(&count))
}

/// What is seen of an agent right before something would be typed.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'a> {
    pub state: Option<State>,
    /// A question or a menu is open.
    pub dialog: bool,
    /// What stands in the input line; `None` if there is no input line.
    pub input: Option<&'a str>,
    /// The program never asks for permission.
    pub never_asks: bool,
    /// Somebody has stopped it, to go on later.
    pub paused: bool,
}

/// Why a message is not typed now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotNow {
    /// It asks something: Enter could be the answer.
    Dialog,
    /// It may ask at any moment: the Enter that follows a look could be the answer.
    Busy,
    /// Somebody else's half-typed line is in the way.
    Occupied,
    /// No prompt is to be seen.
    NoPrompt,
    /// Somebody has stopped it: a message would set it going again.
    Paused,
    /// Its process has ended, or is another one.
    Ended,
}

impl NotNow {
    pub fn words(self) -> &'static str {
        match self {
            NotNow::Dialog => "it asks something",
            NotNow::Busy => "it is busy",
            NotNow::Occupied => "somebody has begun to type there",
            NotNow::NoPrompt => "its prompt is not to be seen",
            NotNow::Paused => "it is paused",
            NotNow::Ended => "it has ended",
        }
    }
}

/// Whether a message may be typed at this moment. `while_busy` wants it even in
/// the middle of a turn, which only a program that never asks may get, and whether or
/// not it is paused.
pub fn may_type(moment: &Moment<'_>, while_busy: bool) -> Result<(), NotNow> {
    if moment.dialog || moment.state == Some(State::Waiting) {
        return Err(NotNow::Dialog);
    }
    if moment.paused && !while_busy {
        return Err(NotNow::Paused);
    }
    match moment.state {
        Some(State::Idle | State::Error) => {}
        Some(State::Busy) if moment.never_asks && while_busy => {}
        Some(State::Busy) => return Err(NotNow::Busy),
        _ => return Err(NotNow::NoPrompt),
    }
    match moment.input {
        Some(text) if !text.trim().is_empty() => Err(NotNow::Occupied),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_a_terminal_acts_on_is_left() {
        assert_eq!(clean("a\r\nb\u{1b}[201~\rc\u{7}\u{3}\td\n\n"), "a\nb\nc d");
        assert_eq!(clean("\u{1b}\u{1b}[201~[201~x"), "[201~x");
    }

    #[test]
    fn urgent_ones_come_first_then_by_age() {
        let message = |id: &str, priority| Message {
            id: id.to_owned(),
            sender: None,
            caller: None,
            text: String::new(),
            priority,
            created_at: 0,
            expires_at: None,
        };
        let mut keys = [
            message("b", Priority::Normal).key(),
            message("c", Priority::Urgent).key(),
            message("a", Priority::Normal).key(),
        ];
        keys.sort();
        assert_eq!(keys, ["0-c", "1-a", "1-b"]);
    }

    #[test]
    fn the_fingerprint_does_not_mind_white_space_around() {
        assert_eq!(fingerprint("hello\n"), fingerprint("  hello"));
        assert_ne!(fingerprint("hello"), fingerprint("hello2"));
    }

    #[test]
    fn a_message_is_recognised_in_an_input_line() {
        let long = "The quick brown fox jumps over the lazy dog and goes on and on";
        assert!(is_in_input("check your hook", "check your hook"));
        assert!(is_in_input(
            "The quick brown fox jumps\n  over the lazy",
            long
        ));
        assert!(is_in_input("over the lazy dog and goes on and on", long));
        assert!(is_in_input("[Pasted text #4]", &long.repeat(20)));
        assert!(!is_in_input("[Pasted text #4]", long), "too short for one");
        assert!(is_in_input(
            "what is [Pasted text #1 +9 lines]",
            "what is [Pasted text #1 +9 lines]"
        ));
        assert!(!is_in_input("[Pasted ~3 lines] and then", "a\nb\nc"));
        assert!(!is_in_input("ok let me think", "ok"));
        assert!(!is_in_input("why", "y") && is_in_input(" y ", "y"));
        assert!(is_in_input("[Pasted text #4 +2 lines]", "a\nb\nc"));
        assert!(is_in_input("[Pasted ~3 lines]", "a\nb\nc"));
        assert!(is_in_input("[Pasted Content 5 chars]", "grüße"));
        assert!(is_in_input("[Pasted Text: 5 chars]", "grüße"));
        assert!(!is_in_input("[Pasted text #1 +9 lines]", long), "another's");
        assert!(!is_in_input("", "x"));
        assert!(!is_in_input("something else", "check your hook"));
        assert!(!is_in_input("half a line check your ho", "check your hook"));
    }

    #[test]
    fn what_was_added_to_a_line_is_recognised() {
        let before = "think about\nthe moon";
        let more = "\n\nand be brief\nand quick";
        let check = |input: &str, expected| {
            assert_eq!(is_added(input, before, more), expected, "{input}");
        };
        check("think about the\nmoon\n\nand be brief\nand quick", true);
        check("think about the moon[Pasted text #1 +3\nlines]", true);
        check("think about the moon[Pasted text #1 +7 lines]", false);
        check("think about the moon", false);
        check("think about the moon, and be brief", false);
        // Of a line that is too high only the end is to be seen.
        check("the moon\n\nand be brief\nand quick", true);
        check("the moon[Pasted text #2 +3 lines]", true);
        check("the moon[Pasted text #1 +7 lines]", false);
        check("moon", false);
        assert!(!is_added("the end", "the end", "the end"), "not there yet");
        let label = "[Pasted text #1 +9 lines]";
        assert!(is_added(
            &format!("{label}[Pasted text #2 +3 lines]"),
            label,
            more
        ));
    }

    #[test]
    fn a_message_is_recognised_before_the_cursor() {
        assert!(ends_with("hello\n> check your hook", "check your hook"));
        assert!(ends_with("> check your\n  hook", "check your hook"));
        assert!(!ends_with("> check your hook\n> ", "check your hook"));
        assert!(!ends_with("", "x") && !ends_with("x", ""));
    }

    #[test]
    fn nothing_is_typed_where_enter_could_answer() {
        let idle = Moment {
            state: Some(State::Idle),
            dialog: false,
            input: Some(""),
            never_asks: false,
            paused: false,
        };
        assert_eq!(may_type(&idle, false), Ok(()));
        let check = |moment: Moment<'_>, while_busy, expected| {
            assert_eq!(may_type(&moment, while_busy), Err(expected), "{moment:?}");
        };
        check(
            Moment {
                dialog: true,
                ..idle
            },
            true,
            NotNow::Dialog,
        );
        check(
            Moment {
                state: Some(State::Waiting),
                never_asks: true,
                ..idle
            },
            true,
            NotNow::Dialog,
        );
        check(
            Moment {
                input: Some("rm -r"),
                ..idle
            },
            false,
            NotNow::Occupied,
        );
        check(
            Moment {
                state: None,
                ..idle
            },
            false,
            NotNow::NoPrompt,
        );
        let paused = Moment {
            paused: true,
            ..idle
        };
        check(paused, false, NotNow::Paused);
        assert_eq!(may_type(&paused, true), Ok(()));
        let busy = Moment {
            state: Some(State::Busy),
            ..idle
        };
        check(busy, true, NotNow::Busy);
        check(
            Moment {
                never_asks: true,
                ..busy
            },
            false,
            NotNow::Busy,
        );
        assert_eq!(
            may_type(
                &Moment {
                    never_asks: true,
                    ..busy
                },
                true
            ),
            Ok(())
        );
    }
}

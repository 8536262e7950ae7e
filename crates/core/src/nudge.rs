//! Messages for agents: their order, their fingerprint, and when they may be typed.

mod recognise;

pub use recognise::{ends_with, is_added, is_in_input, is_showable, squeeze};

use crate::state::State;
use serde::{Deserialize, Serialize};

/// A message for an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// UUIDv7: sorts by the time it was sent.
    pub id: String,
    /// The sender that the agent sees, in front of the text.
    pub sender: Option<String>,
    /// The caller that sent it: the actor of its events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
    pub text: String,
    /// Whether a text that begins with a slash is a command of the agent's program, such as
    /// `/compact`.
    #[serde(
        rename = "command",
        default,
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub is_command: bool,
    pub priority: Priority,
    /// Seconds since the epoch.
    pub created_at: i64,
    /// When it expires, in seconds since the epoch. `None` means never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<i64>,
    /// The uptime of the machine when it was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uptime: Option<Uptime>,
}

/// The uptime of a machine: a monotonic clock that cannot be set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Uptime {
    /// The id of the boot that it counts from.
    pub boot: String,
    pub seconds: i64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    Urgent,
    #[default]
    Normal,
}

/// Evidence that an agent took a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Proof {
    /// A hook of its program has reported the prompt.
    Hook,
    /// Its screen shows that it works.
    Screen,
    /// The text has left its input line.
    Line,
    /// The transcript of its program has the prompt.
    Transcript,
}

impl Proof {
    pub fn as_str(self) -> &'static str {
        match self {
            Proof::Hook => "hook",
            Proof::Screen => "screen",
            Proof::Line => "line",
            Proof::Transcript => "transcript",
        }
    }
}

impl Message {
    /// Returns the text that the agent sees.
    pub fn displayed_text(&self) -> String {
        let text = match self.is_command {
            true => clean_command(&self.text),
            false => clean(&self.text),
        };
        match &self.sender {
            Some(sender) => format!("[from {}] {text}", clean(sender)),
            None => text,
        }
    }

    /// Returns a key that sorts in the order of delivery: urgent messages first, then by age.
    pub fn key(&self) -> String {
        let rank = match self.priority {
            Priority::Urgent => 0,
            Priority::Normal => 1,
        };
        format!("{rank}-{}", self.id)
    }

    /// Returns when it was sent, in milliseconds since the epoch. The id is more precise than
    /// `created_at`.
    pub fn sent_at_millis(&self) -> i64 {
        let id: Option<crate::session::SessionId> = self.id.parse().ok();
        id.and_then(|id| id.began_at_millis())
            .unwrap_or(self.created_at * 1_000)
    }

    /// Returns whether the message has expired. Within one boot of the machine the uptime decides,
    /// so that a clock that is set ahead expires nothing.
    pub fn is_expired(&self, now: i64, uptime: Option<&Uptime>) -> bool {
        let Some(end) = self.expires_at else {
            return false;
        };
        match (&self.uptime, uptime) {
            (Some(sent), Some(present)) if sent.boot == present.boot => {
                present.seconds - sent.seconds >= end - self.created_at
            }
            _ => now >= end,
        }
    }
}

/// Returns the text as plain text for an agent's program. A leading slash would make it a command
/// of the program, such as `/exit`. Visible text must stand in front: Claude Code removes blanks and
/// zero-width spaces.
pub fn clean(text: &str) -> String {
    let text = clean_command(text);
    match text.trim_start().starts_with('/') {
        true => format!("[message] {text}"),
        false => text,
    }
}

/// Removes everything that a terminal would act on: control characters and the sequence that ends a
/// bracketed paste. Line endings become `\n`, and tabs become blanks, because programs show them
/// that way.
fn clean_command(text: &str) -> String {
    let text = text
        .replace("\r\n", "\n")
        .replace('\r', "\n")
        .replace("\u{1b}[201~", "")
        .chars()
        .map(|c| if c == '\t' { ' ' } else { c })
        .filter(|c| !c.is_control() || *c == '\n')
        .collect::<String>();
    let text = text.trim_end();
    // A leading `!` makes Claude Code and Codex run the rest in a shell. A zero-width space in
    // front prevents that; a blank does not, because Codex strips it.
    let text = match text.trim_start().starts_with('!') {
        true => format!("\u{200b}{text}"),
        false => text.to_owned(),
    };
    // Some programs treat a backslash before Enter as a line continuation.
    match text.ends_with('\\') {
        true => format!("{text} "),
        false => text,
    }
}

/// Returns the fingerprint by which a prompt is recognised when the agent's hook reports it. White
/// space at both ends is ignored: some programs add it.
pub fn fingerprint(prompt: &str) -> String {
    let text = prompt.trim();
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}-{}", text.len())
}

/// A snapshot of an agent, taken right before a message is typed.
#[derive(Clone, Copy, Debug)]
pub struct TypingConditions<'a> {
    pub state: Option<State>,
    /// A question or a menu is open.
    pub dialog: bool,
    /// The text in the input line; `None` if there is no input line.
    pub input: Option<&'a str>,
    /// The program never asks for permission.
    pub never_asks: bool,
    /// It was paused, to continue later.
    pub paused: bool,
}

/// Why a message is not typed now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotNow {
    /// The agent asks a question: Enter could answer it.
    Dialog,
    /// The agent may open a dialog at any moment: the Enter after a check could answer it.
    Busy,
    /// Another process types to the same agent.
    Locked,
    /// The input line holds text that was not sent yet.
    Occupied,
    /// No prompt is visible.
    NoPrompt,
    /// The agent is paused: a message would resume it.
    Paused,
    /// An emergency stop holds all messages.
    Stopped,
    /// The agent is not to be disturbed, and the message is not urgent.
    DoNotDisturb,
    /// Its process has ended, or was replaced.
    Ended,
}

impl NotNow {
    pub fn describe(self) -> &'static str {
        match self {
            NotNow::Dialog => "it asks something",
            NotNow::Busy => "it is busy",
            NotNow::Locked => "another message is being typed to it",
            NotNow::Occupied => "a person has begun to type there",
            NotNow::NoPrompt => "its prompt is not visible",
            NotNow::Paused => "it is paused",
            NotNow::Stopped => "an emergency stop holds it",
            NotNow::DoNotDisturb => "do-not-disturb is on",
            NotNow::Ended => "it has ended",
        }
    }
}

/// Checks whether a message may be typed now; the error is the reason why not. `while_busy` also
/// allows it during a turn, if the program never asks for permission, and while the agent is
/// paused.
pub fn may_type(moment: &TypingConditions<'_>, while_busy: bool) -> Result<(), NotNow> {
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
        assert_eq!(clean("!rm -r x"), "\u{200b}!rm -r x");
        assert_eq!(clean(" \n!rm"), "\u{200b} \n!rm");
        assert_eq!(clean("not! this"), "not! this");
        assert_eq!(clean("/exit"), "[message] /exit");
        assert_eq!(clean("\n/exit"), "[message] \n/exit");
        assert_eq!(clean("a/b #c"), "a/b #c");
        assert_eq!(clean_command("/exit"), "/exit");
        assert_eq!(
            clean_command("!rm"),
            "\u{200b}!rm",
            "a shell line is never sent"
        );
    }

    #[test]
    fn urgent_ones_come_first_then_by_age() {
        let message = |id: &str, priority| Message {
            id: id.to_owned(),
            sender: None,
            caller: None,
            text: String::new(),
            is_command: false,
            priority,
            created_at: 0,
            expires_at: None,
            uptime: None,
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
    fn a_clock_that_is_set_ahead_expires_nothing() {
        let uptime = |boot: &str, seconds| Uptime {
            boot: boot.to_owned(),
            seconds,
        };
        let message = Message {
            id: "a".to_owned(),
            sender: None,
            caller: None,
            text: String::new(),
            is_command: false,
            priority: Priority::Normal,
            created_at: 1_000,
            expires_at: Some(1_060),
            uptime: Some(uptime("x", 500)),
        };
        let years = 315_360_000;
        let check = |now, uptime: Option<Uptime>, expected: bool| {
            assert_eq!(
                message.is_expired(now, uptime.as_ref()),
                expected,
                "{now} {uptime:?}"
            );
        };
        check(1_010, Some(uptime("x", 510)), false);
        check(1_000 + years, Some(uptime("x", 510)), false);
        check(1_000 - years, Some(uptime("x", 560)), true);
        // After a reboot, or without a known uptime, only the clock counts.
        check(1_060, Some(uptime("y", 10)), true);
        check(1_059, None, false);
    }

    #[test]
    fn the_fingerprint_does_not_mind_white_space_around() {
        assert_eq!(fingerprint("hello\n"), fingerprint("  hello"));
        assert_ne!(fingerprint("hello"), fingerprint("hello2"));
    }

    #[test]
    fn nothing_is_typed_where_enter_could_answer() {
        let idle = TypingConditions {
            state: Some(State::Idle),
            dialog: false,
            input: Some(""),
            never_asks: false,
            paused: false,
        };
        assert_eq!(may_type(&idle, false), Ok(()));
        let check = |moment: TypingConditions<'_>, while_busy, expected| {
            assert_eq!(may_type(&moment, while_busy), Err(expected), "{moment:?}");
        };
        check(
            TypingConditions {
                dialog: true,
                ..idle
            },
            true,
            NotNow::Dialog,
        );
        check(
            TypingConditions {
                state: Some(State::Waiting),
                never_asks: true,
                ..idle
            },
            true,
            NotNow::Dialog,
        );
        check(
            TypingConditions {
                input: Some("rm -r"),
                ..idle
            },
            false,
            NotNow::Occupied,
        );
        check(
            TypingConditions {
                state: None,
                ..idle
            },
            false,
            NotNow::NoPrompt,
        );
        let paused = TypingConditions {
            paused: true,
            ..idle
        };
        check(paused, false, NotNow::Paused);
        assert_eq!(may_type(&paused, true), Ok(()));
        let busy = TypingConditions {
            state: Some(State::Busy),
            ..idle
        };
        check(busy, true, NotNow::Busy);
        check(
            TypingConditions {
                never_asks: true,
                ..busy
            },
            false,
            NotNow::Busy,
        );
        assert_eq!(
            may_type(
                &TypingConditions {
                    never_asks: true,
                    ..busy
                },
                true
            ),
            Ok(())
        );
    }
}

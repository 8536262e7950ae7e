//! Messages for agents: their order, their fingerprint, and when one may be typed.

mod recognise;

pub use recognise::{ends_with, is_added, is_in_input, is_showable, squeeze};

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
    /// How long the machine had been on when it was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uptime: Option<Uptime>,
}

/// How long a machine has been on: a clock that nobody sets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Uptime {
    /// The boot that it counts from.
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

    /// Returns whether its time is over. Within one boot of the machine the uptime decides, so
    /// that a clock that is set ahead expires nothing.
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
    // At the beginning it makes Claude Code and Codex run the rest in a shell. They do not see
    // it behind a zero-width space; a blank Codex takes off.
    let text = match text.trim_start().starts_with('!') {
        true => format!("\u{200b}{text}"),
        false => text.to_owned(),
    };
    // Before Enter some programs take it for a line that goes on.
    match text.ends_with('\\') {
        true => format!("{text} "),
        false => text,
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
    /// Another process types to the same agent.
    Locked,
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
            NotNow::Locked => "another message is being typed to it",
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
        assert_eq!(clean("!rm -r x"), "\u{200b}!rm -r x");
        assert_eq!(clean(" \n!rm"), "\u{200b} \n!rm");
        assert_eq!(clean("not! this"), "not! this");
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
        // After a reboot, and where no uptime is known, there is only the clock.
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

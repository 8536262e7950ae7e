//! Notifications for people: an agent that begins to wait, finishes or dies.
//!
//! [`notice_for_change`] returns the notification for a change of state, if there is one. The engine decides
//! who is notified, and how.

use crate::state::{Reason, State, StateReport, StateSource};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A kind of notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NoticeKind {
    /// The agent asks a question, or its turn failed: a person is needed.
    Waiting,
    /// The turn is over, the agent reports that its work is complete, or it exited by itself.
    Done,
    /// The process ended in any other way, and was not stopped on purpose.
    Died,
    /// An escalation asks for help.
    Escalation,
    /// Most of a budget is spent.
    Budget,
    /// All items of a batch are closed.
    Landed,
}

impl NoticeKind {
    pub const ALL: [NoticeKind; 6] = [
        NoticeKind::Waiting,
        NoticeKind::Done,
        NoticeKind::Died,
        NoticeKind::Escalation,
        NoticeKind::Budget,
        NoticeKind::Landed,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            NoticeKind::Waiting => "waiting",
            NoticeKind::Done => "done",
            NoticeKind::Died => "died",
            NoticeKind::Escalation => "escalation",
            NoticeKind::Budget => "budget",
            NoticeKind::Landed => "landed",
        }
    }

    pub fn from_word(word: &str) -> Option<NoticeKind> {
        NoticeKind::ALL
            .into_iter()
            .find(|event| event.as_str() == word)
    }

    /// Returns the verb for a sentence that begins with the agent's name.
    fn verb(self) -> &'static str {
        match self {
            NoticeKind::Waiting => "waits for you",
            NoticeKind::Done => "is done",
            NoticeKind::Died => "died",
            NoticeKind::Escalation => "needs help",
            NoticeKind::Budget => "has spent most of the budget",
            NoticeKind::Landed => "has landed",
        }
    }
}

/// Returns the notification for a change of state.
pub fn notice_for_change(before: Option<State>, now: &StateReport) -> Option<NoticeKind> {
    let needs_a_person = |state| matches!(state, State::Waiting | State::Error | State::Limited);
    let was_alive = !before.is_none_or(State::is_dead);
    match now.state {
        // An interrupted agent has not finished, and the person who interrupted it knows.
        State::Idle if !may_have_finished(now) => None,
        State::Waiting | State::Error | State::Limited => {
            (!before.is_some_and(needs_a_person)).then_some(NoticeKind::Waiting)
        }
        State::Idle | State::Done => {
            let was_at_work = matches!(before, Some(State::Busy | State::Waiting));
            was_at_work.then_some(NoticeKind::Done)
        }
        State::Exited => was_alive.then_some(NoticeKind::Done),
        State::Crashed => was_alive.then_some(NoticeKind::Died),
        _ => None,
    }
}

/// Returns whether the agent may be idle because its turn ended. If the state comes from hooks,
/// one hook reports the end of a turn; the others only report that the agent is idle.
fn may_have_finished(now: &StateReport) -> bool {
    match now.source {
        StateSource::Hook => now.reason == Some(Reason::Finished),
        _ => now.reason != Some(Reason::Interrupted),
    }
}

/// A notification. Everything in it but the event comes from outside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Notice {
    pub event: NoticeKind,
    /// The agent's address.
    pub agent: String,
    pub reason: String,
    /// The work item and its title, if there is one.
    pub item: Option<String>,
    pub title: Option<String>,
}

impl Notice {
    /// Returns `mayor waits for you`.
    pub fn headline(&self) -> String {
        format!("{} {}", self.agent, self.event.verb())
    }

    /// Returns the details: item, title and reason.
    pub fn body(&self) -> String {
        let about = match (&self.item, &self.title) {
            (Some(item), Some(title)) => format!("{item}: {title}"),
            (Some(item), None) => item.clone(),
            _ => String::new(),
        };
        let lines = [about, self.reason.clone()];
        let lines = lines.into_iter().filter(|line| !line.is_empty());
        lines.collect::<Vec<String>>().join("\n")
    }
}

/// A time of day without notifications: `22:00-07:00`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct QuietHours {
    /// In minutes since midnight; the end is exclusive.
    from: u16,
    to: u16,
}

impl QuietHours {
    /// Returns whether they contain this minute of the day. They may span midnight.
    pub fn contain(self, minute: u16) -> bool {
        if self.from <= self.to {
            (self.from..self.to).contains(&minute)
        } else {
            minute >= self.from || minute < self.to
        }
    }
}

impl fmt::Display for QuietHours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, to) = (self.from, self.to);
        write!(
            f,
            "{:02}:{:02}-{:02}:{:02}",
            from / 60,
            from % 60,
            to / 60,
            to % 60
        )
    }
}

impl TryFrom<String> for QuietHours {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let minute = |text: &str| {
            let (hours, minutes) = text.trim().split_once(':')?;
            let number = |text: &str| {
                let is_plain =
                    matches!(text.len(), 1 | 2) && text.bytes().all(|b| b.is_ascii_digit());
                is_plain.then(|| text.parse::<u16>().ok()).flatten()
            };
            let (hours, minutes) = (number(hours)?, number(minutes)?);
            (hours < 24 && minutes < 60).then_some(hours * 60 + minutes)
        };
        let both = text
            .split_once('-')
            .and_then(|(from, to)| Some((minute(from)?, minute(to)?)));
        match both {
            Some((from, to)) if from == to => Err(format!(
                "{text:?} begins when it ends: leave it out, or name two times"
            )),
            Some((from, to)) => Ok(QuietHours { from, to }),
            None => Err(format!(
                "{text:?} is not a time range such as \"22:00-07:00\""
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_begin_with_a_change_and_only_once() {
        let check = |before: Option<State>, now, event: Option<NoticeKind>| {
            let now = report(now, StateSource::Screen, "its screen shows it");
            assert_eq!(notice_for_change(before, &now), event, "{before:?} {now:?}");
        };
        let (waiting, done, died) = (NoticeKind::Waiting, NoticeKind::Done, NoticeKind::Died);
        check(Some(State::Busy), State::Waiting, Some(waiting));
        check(None, State::Waiting, Some(waiting));
        check(Some(State::Waiting), State::Waiting, None);
        check(Some(State::Busy), State::Error, Some(waiting));
        check(Some(State::Error), State::Waiting, None);
        check(Some(State::Waiting), State::Busy, None);
        check(Some(State::Busy), State::Idle, Some(done));
        check(Some(State::Waiting), State::Idle, Some(done));
        check(Some(State::Busy), State::Done, Some(done));
        check(Some(State::Idle), State::Idle, None);
        // The agent has just started.
        check(Some(State::Starting), State::Idle, None);
        check(Some(State::Running), State::Idle, None);
        check(None, State::Idle, None);
        check(Some(State::Done), State::Idle, None);
        check(Some(State::Idle), State::Crashed, Some(died));
        check(Some(State::Busy), State::Exited, Some(done));
        check(Some(State::Crashed), State::Crashed, None);
        check(None, State::Crashed, None);
        check(Some(State::Busy), State::Stopped, None);
        check(Some(State::Busy), State::Paused, None);
    }

    fn report(state: State, source: StateSource, reason: &str) -> StateReport {
        StateReport {
            state,
            source,
            since: None,
            reason: Some(reason.into()),
            background: 0,
            limit: None,
        }
    }

    #[test]
    fn interrupted_turn_is_not_reported_as_done() {
        let (hook, screen, title) = (StateSource::Hook, StateSource::Screen, StateSource::Title);
        for before in [State::Busy, State::Waiting] {
            let told = |source, reason| {
                notice_for_change(Some(before), &report(State::Idle, source, reason))
            };
            assert_eq!(
                told(hook, Reason::Finished.as_str()),
                Some(NoticeKind::Done)
            );
            assert_eq!(told(screen, "at its prompt"), Some(NoticeKind::Done));
            assert_eq!(told(title, "waits at its prompt"), Some(NoticeKind::Done));
            // A reminder that the agent is idle does not end a turn, nor does the start of a
            // conversation.
            for reason in [
                Reason::Interrupted.as_str(),
                "Claude is waiting for your input",
                "started",
            ] {
                assert_eq!(told(hook, reason), None, "{reason}");
            }
            assert_eq!(told(screen, Reason::Interrupted.as_str()), None);
            assert_eq!(told(title, Reason::Interrupted.as_str()), None);
        }
    }

    #[test]
    fn quiet_hours_may_go_over_midnight() {
        let quiet = |text: &str| QuietHours::try_from(text.to_owned());
        let night = quiet("22:00-07:00").unwrap();
        let at = |hours: u16, minutes: u16| hours * 60 + minutes;
        for (minute, expected) in [
            (at(21, 59), false),
            (at(22, 0), true),
            (at(0, 0), true),
            (at(6, 59), true),
            (at(7, 0), false),
            (at(12, 0), false),
        ] {
            assert_eq!(night.contain(minute), expected, "{minute}");
        }
        let noon = quiet(" 12:30 - 13:00").unwrap();
        assert!(noon.contain(at(12, 30)) && !noon.contain(at(13, 0)));
        assert!(!noon.contain(at(0, 0)));
        assert_eq!(quiet("7:00-8:05").unwrap().to_string(), "07:00-08:05");
        for wrong in [
            "",
            "22:00",
            "22-07",
            "24:00-07:00",
            "22:60-07:00",
            "+2:00-07:00",
            "8:00-8:00",
        ] {
            assert!(quiet(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_notice_says_who_and_why() {
        let mut notice = Notice {
            event: NoticeKind::Waiting,
            agent: "task/gt-abc12".to_owned(),
            reason: "asks: Bash(rm x)".to_owned(),
            item: None,
            title: None,
        };
        assert_eq!(notice.headline(), "task/gt-abc12 waits for you");
        assert_eq!(notice.body(), "asks: Bash(rm x)");
        notice.item = Some("gt-abc12".to_owned());
        notice.title = Some("Mend it".to_owned());
        assert_eq!(notice.body(), "gt-abc12: Mend it\nasks: Bash(rm x)");
    }
}

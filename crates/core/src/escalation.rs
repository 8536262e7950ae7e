//! Escalations: requests for help that stay open until they are acknowledged.
//!
//! One table ([`ROUTES`]) lists the recipients of an escalation and the interval until it is raised
//! again. The engine stores and sends escalations (`town::messaging::escalate`).

use crate::problem::Problem;
use crate::work::WorkId;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// First part of the id of an escalation.
pub const PREFIX: &str = "esc";
/// Maximum length of a message in characters.
pub const LONGEST_MESSAGE: usize = 4_000;
/// Maximum number of characters of a message in one line.
const LONGEST_LINE: usize = 200;
const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
/// Longest time between two raises of one escalation.
const LONGEST_INTERVAL: i64 = 24 * HOUR;

#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Low,
    #[default]
    Medium,
    High,
    Critical,
}

impl Severity {
    pub const ALL: [Severity; 4] = [
        Severity::Low,
        Severity::Medium,
        Severity::High,
        Severity::Critical,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Low => "low",
            Severity::Medium => "medium",
            Severity::High => "high",
            Severity::Critical => "critical",
        }
    }

    /// Returns the row of [`ROUTES`] for this severity.
    pub fn route(self) -> &'static Route {
        match self {
            Severity::Low => &ROUTES[0],
            Severity::Medium => &ROUTES[1],
            Severity::High => &ROUTES[2],
            Severity::Critical => &ROUTES[3],
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Severity {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        let found = Severity::ALL.into_iter().find(|it| it.as_str() == text);
        found.ok_or_else(|| {
            Problem::usage(format!("there is no severity {text:?}"))
                .hint("low, medium, high or critical")
        })
    }
}

/// The recipients of an escalation, and how it is raised again. The mayor gets every raise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    pub severity: Severity,
    /// Priority of its mail.
    pub mail_priority: u8,
    /// Number of the first raise that is also sent to the mailbox of people.
    pub person_from: u32,
    /// Number of the first raise that also becomes a notification; 0 for none.
    pub notify_from: u32,
    /// The notification ignores quiet hours and do not disturb.
    pub always: bool,
    /// Seconds until the second raise. Every further interval is twice as long, up to a day.
    pub again_after: i64,
}

/// One row for each severity, in ascending order.
#[rustfmt::skip]
pub const ROUTES: [Route; 4] = [
    Route { severity: Severity::Low, mail_priority: 3, person_from: 2, notify_from: 0, always: false, again_after: 24 * HOUR },
    Route { severity: Severity::Medium, mail_priority: 2, person_from: 1, notify_from: 2, always: false, again_after: 4 * HOUR },
    Route { severity: Severity::High, mail_priority: 1, person_from: 1, notify_from: 1, always: false, again_after: HOUR },
    Route { severity: Severity::Critical, mail_priority: 0, person_from: 1, notify_from: 1, always: true, again_after: 15 * MINUTE },
];

impl Route {
    /// Returns whether the raise with this number, counted from 1, is sent to people's mailbox.
    pub fn tells_person(&self, raised: u32) -> bool {
        raised >= self.person_from
    }

    /// Returns whether the raise with this number becomes a notification.
    pub fn notifies(&self, raised: u32) -> bool {
        self.notify_from > 0 && raised >= self.notify_from
    }

    /// Returns the seconds between the raise with this number and the next one.
    pub fn interval(&self, raised: u32) -> i64 {
        let doublings = raised.saturating_sub(1).min(16);
        (self.again_after << doublings).min(LONGEST_INTERVAL)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EscalationState {
    /// Raised again until it is acknowledged.
    Open,
    Acknowledged,
    Closed,
}

impl EscalationState {
    pub const ALL: [EscalationState; 3] = [
        EscalationState::Open,
        EscalationState::Acknowledged,
        EscalationState::Closed,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            EscalationState::Open => "open",
            EscalationState::Acknowledged => "acknowledged",
            EscalationState::Closed => "closed",
        }
    }
}

impl FromStr for EscalationState {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        let found = EscalationState::ALL
            .into_iter()
            .find(|it| it.as_str() == text);
        found.ok_or_else(|| {
            Problem::usage(format!("there is no state {text:?} of an escalation"))
                .hint("open, acknowledged or closed")
        })
    }
}

/// A stored escalation. Times are RFC 3339, in UTC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Escalation {
    pub id: WorkId,
    pub severity: Severity,
    pub state: EscalationState,
    pub message: String,
    /// The component that raised it: `command`, `done`, `respawn`, `merge` and others.
    pub source: String,
    /// The actor that raised it: a person, an agent or `gt`.
    pub raised_by: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// At most one escalation with this key is not closed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// How often its cause occurred.
    pub count: u32,
    /// Number of raises so far.
    pub raised: u32,
    pub created_at: String,
    /// Last occurrence.
    pub updated_at: String,
    /// Last raise.
    pub raised_at: String,
    /// The next raise, while it is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub again_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acknowledged_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acknowledged_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closed_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closed_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Escalation {
    pub fn is_closed(&self) -> bool {
        self.state == EscalationState::Closed
    }

    /// Returns the start of the message, in one line.
    pub fn line(&self) -> String {
        let line = crate::work::one_line(&self.message);
        match line.chars().count() > LONGEST_LINE {
            true => line.chars().take(LONGEST_LINE - 1).chain(['…']).collect(),
            false => line,
        }
    }

    /// Returns the subject of its mail.
    pub fn subject(&self) -> String {
        let again = match self.raised {
            0 | 1 => String::new(),
            raised => format!(" (raised {raised} times)"),
        };
        format!("[{}] {}{again}", self.severity, self.line())
    }

    /// Returns the text of its mail.
    pub fn body(&self) -> String {
        let mut lines = vec![
            self.message.clone(),
            String::new(),
            format!("Raised by {} ({})", self.raised_by, self.source),
        ];
        lines.extend(self.agent.as_ref().map(|agent| format!("Agent: {agent}")));
        lines.extend(self.item.as_ref().map(|item| format!("Item: {item}")));
        if self.count > 1 {
            lines.push(format!("Occurred {} times", self.count));
        }
        lines.push(String::new());
        lines.push(format!(
            "It is raised again until: gt escalate ack {}",
            self.id
        ));
        lines.push(format!(
            "When it is resolved: gt escalate close {}",
            self.id
        ));
        lines.join("\n")
    }
}

/// Checks and trims the message of an escalation.
pub fn message(text: &str) -> Result<String, Problem> {
    let text = text.trim();
    if text.is_empty() {
        return Err(Problem::usage("an escalation needs a message")
            .hint("`gt escalate \"the deploy key has expired\"`"));
    }
    if text.chars().count() > LONGEST_MESSAGE {
        return Err(Problem::usage(format!(
            "a message has at most {LONGEST_MESSAGE} characters"
        ))
        .hint("put the details into a file or an item, and name it"));
    }
    let shown = |c: char| if c.is_control() && c != '\n' { ' ' } else { c };
    Ok(text.chars().map(shown).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_are_in_the_order_of_severity() {
        for (severity, row) in Severity::ALL.into_iter().zip(&ROUTES) {
            assert_eq!((row.severity, severity.route()), (severity, row));
            assert_eq!(severity.as_str().parse::<Severity>().unwrap(), severity);
        }
        for pair in ROUTES.windows(2) {
            assert!(pair[0].mail_priority > pair[1].mail_priority);
            assert!(pair[0].again_after > pair[1].again_after);
            assert!(pair[0].severity < pair[1].severity);
        }
        assert!("urgent".parse::<Severity>().is_err());
    }

    #[test]
    fn recipients_grow_with_severity_and_with_each_raise() {
        let told = |severity: Severity, raised| {
            let route = severity.route();
            (route.tells_person(raised), route.notifies(raised))
        };
        assert_eq!(told(Severity::Low, 1), (false, false));
        assert_eq!(told(Severity::Low, 2), (true, false));
        assert_eq!(told(Severity::Low, 99), (true, false));
        assert_eq!(told(Severity::Medium, 1), (true, false));
        assert_eq!(told(Severity::Medium, 2), (true, true));
        assert_eq!(told(Severity::High, 1), (true, true));
        assert_eq!(told(Severity::Critical, 1), (true, true));
        let always: Vec<bool> = ROUTES.iter().map(|row| row.always).collect();
        assert_eq!(always, [false, false, false, true]);
    }

    #[test]
    fn intervals_double_up_to_a_day() {
        let minutes = |severity: Severity| {
            let interval = |raised| severity.route().interval(raised) / MINUTE;
            [1, 2, 3, 8, u32::MAX].map(interval)
        };
        assert_eq!(minutes(Severity::Critical), [15, 30, 60, 1440, 1440]);
        assert_eq!(minutes(Severity::High), [60, 120, 240, 1440, 1440]);
        assert_eq!(minutes(Severity::Low), [1440; 5]);
    }

    #[test]
    fn message_is_checked_and_freed_of_control_characters() {
        assert_eq!(message(" a\x1b[31m\nb ").unwrap(), "a [31m\nb");
        for wrong in ["", " \n", &"x".repeat(LONGEST_MESSAGE + 1)] {
            assert!(message(wrong).is_err());
        }
    }
}

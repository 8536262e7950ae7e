//! Mail: messages between agents and people.
//!
//! A message is a work item of the type [`KIND`] that belongs to the town, with a sender, a
//! recipient and a thread. This module holds its type and its validation; the engine stores and
//! delivers mail (`town::messaging::mail`).

use crate::identity::{Identity, unknown_rig};
use crate::problem::Problem;
use crate::registry::Registry;
use crate::role::Role;
use crate::work::{ItemStatus, LONGEST_TITLE, WorkId, check_priority};
use serde::Serialize;

/// The type of a work item that is a message.
pub const KIND: &str = "message";
/// The label of all messages.
pub const LABEL: &str = "gt:message";
/// Messages belong to the town, whatever rig they are about.
pub const PREFIX: &str = "hq";

/// The mail address of the person at the terminal.
pub const PERSON: &str = "human";

/// Names of the priorities, from 0 on.
pub const PRIORITY_WORDS: [&str; 5] = ["urgent", "high", "normal", "low", "lowest"];

/// Groups by role. `@all` and `@town` mean all agents, and `gastown/*` all agents below an
/// address.
const GROUPS: &[(&str, Role)] = &[
    ("@crew", Role::Crew),
    ("@polecats", Role::Polecat),
    ("@witnesses", Role::Witness),
    ("@refineries", Role::Refinery),
    ("@dogs", Role::Dog),
    ("@agents", Role::Agent),
    ("@tasks", Role::Task),
];

/// First parts of addresses that are not rigs.
const NO_RIGS: &[&str] = &["agent", "deacon", "task"];

/// Maximum size of a body in bytes. Longer texts belong in a file that the message names.
pub const LONGEST_BODY: usize = 1_000_000;
pub const LONGEST_SUBJECT: usize = LONGEST_TITLE;

/// A message. Times are RFC 3339, in UTC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mail {
    pub id: WorkId,
    pub sender: String,
    pub recipient: String,
    pub subject: String,
    pub body: String,
    pub priority: u8,
    /// Open, hooked, or closed once it is archived.
    pub status: ItemStatus,
    /// The first message of the thread.
    pub thread: WorkId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<WorkId>,
    pub sent_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_at: Option<String>,
}

impl Mail {
    /// Returns whether a running recipient is notified. People check their mail themselves, and
    /// mail to oneself needs no notification.
    pub fn notifies_recipient(&self) -> bool {
        self.recipient != PERSON && self.recipient != self.sender
    }
}

/// A group of recipients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MailGroup {
    Everybody,
    Role(Role),
    /// The agents of a rig, or those whose address begins with this text.
    Below(String),
}

impl MailGroup {
    /// Parses a group. Returns `None` if the text must be a single agent.
    pub fn read(text: &str, registry: &Registry) -> Result<Option<Self>, Problem> {
        if matches!(text, "@all" | "@town") {
            return Ok(Some(MailGroup::Everybody));
        }
        if text.starts_with('@') {
            let found = GROUPS.iter().find(|(word, _)| *word == text);
            let (_, role) = found.ok_or_else(|| {
                let words: Vec<&str> = GROUPS.iter().map(|(word, _)| *word).collect();
                Problem::not_found(format!("there is no group {text:?}"))
                    .hint(format!("@all, {}, or RIG/*", words.join(", ")))
            })?;
            return Ok(Some(MailGroup::Role(*role)));
        }
        let Some(above) = text.strip_suffix("/*") else {
            return Ok(None);
        };
        let first = above.split('/').next().unwrap_or_default();
        if !NO_RIGS.contains(&first) && !registry.rigs.contains_key(first) {
            return Err(unknown_rig(first, registry));
        }
        Ok(Some(MailGroup::Below(above.to_owned())))
    }

    pub fn has(&self, agent: &Identity) -> bool {
        match self {
            MailGroup::Everybody => true,
            MailGroup::Role(role) => agent.role() == *role,
            MailGroup::Below(above) => {
                let address = agent.address();
                let rest = address.strip_prefix(above.as_str());
                agent.rig() == Some(above) || rest.is_some_and(|rest| rest.starts_with('/'))
            }
        }
    }
}

/// Parses a priority by its number or its name.
pub fn priority(text: &str) -> Result<u8, Problem> {
    if let Some(place) = PRIORITY_WORDS.iter().position(|word| *word == text) {
        return Ok(u8::try_from(place).unwrap_or(u8::MAX));
    }
    let number = text.parse().map_err(|_| {
        Problem::usage(format!("there is no priority {text:?}"))
            .hint(format!("from 0 to 4, or {}", PRIORITY_WORDS.join(", ")))
    })?;
    check_priority(number).map(|()| number)
}

pub fn priority_word(priority: u8) -> &'static str {
    let word = PRIORITY_WORDS.get(usize::from(priority));
    word.unwrap_or(&PRIORITY_WORDS[PRIORITY_WORDS.len() - 1])
}

/// Returns the subject of a reply.
pub fn answer_to(subject: &str) -> String {
    let start: String = subject.chars().take(3).collect();
    if start.eq_ignore_ascii_case("re:") {
        return subject.to_owned();
    }
    let answer = format!("Re: {subject}");
    answer.chars().take(LONGEST_SUBJECT).collect()
}

/// Returns the notification for the recipient of a new message.
pub fn new_mail_notice(mail: &Mail) -> String {
    format!(
        "You have mail from {}: {}. Read it: gt mail read {}",
        mail.sender,
        mail.subject.trim_end_matches('.'),
        mail.id
    )
}

/// Normalises a subject to one line. Fails if it is empty or too long.
pub fn subject(text: &str) -> Result<String, Problem> {
    let line: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    let line = line.trim();
    if line.is_empty() {
        return Err(Problem::usage("a message needs a subject").hint("`-s SUBJECT`"));
    }
    if line.chars().count() > LONGEST_SUBJECT {
        return Err(Problem::usage(format!(
            "a subject has at most {LONGEST_SUBJECT} characters"
        ))
        .hint("put the rest into the body"));
    }
    Ok(line.to_owned())
}

pub fn check_body(body: &str) -> Result<(), Problem> {
    if body.len() <= LONGEST_BODY {
        return Ok(());
    }
    Err(Problem::usage(format!(
        "a message of {} bytes is too long, {LONGEST_BODY} can be sent",
        body.len()
    ))
    .hint("put it into a file and give its path"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_have_those_that_they_name() {
        let registry = Registry::of([("gastown", "gt"), ("beads", "bd")]);
        let all = [
            Identity::town(Role::Mayor),
            Identity::of_rig(Role::Witness, "gastown"),
            Identity::crew("gastown", "max"),
            Identity::polecat("gastown", "max"),
            Identity::crew("beads", "amy"),
            Identity::dog("rex"),
            Identity::agent("x"),
            Identity::task("bd-abc12", &registry),
        ];
        let check = |text: &str, expected: &[usize]| {
            let group = MailGroup::read(text, &registry).unwrap().unwrap();
            let found: Vec<usize> = (0..all.len()).filter(|n| group.has(&all[*n])).collect();
            assert_eq!(found, expected, "{text}");
        };
        check("@all", &[0, 1, 2, 3, 4, 5, 6, 7]);
        check("@town", &[0, 1, 2, 3, 4, 5, 6, 7]);
        check("@crew", &[2, 4]);
        check("@polecats", &[3]);
        check("@witnesses", &[1]);
        check("gastown/*", &[1, 2, 3]);
        check("gastown/crew/*", &[2]);
        check("gastown/cre/*", &[]);
        check("beads/*", &[4, 7]);
        check("deacon/dogs/*", &[5]);
        check("agent/*", &[6]);
        for text in ["@nobody", "@", "nowhere/*", "/*"] {
            assert!(MailGroup::read(text, &registry).is_err(), "{text}");
        }
        for text in ["gastown/max", "human", "*", ""] {
            assert_eq!(MailGroup::read(text, &registry).unwrap(), None, "{text}");
        }
    }

    #[test]
    fn priorities_have_words() {
        assert_eq!(priority("urgent").unwrap(), 0);
        assert_eq!(priority("3").unwrap(), 3);
        assert_eq!(priority_word(priority("normal").unwrap()), "normal");
        for text in ["5", "-1", "300", "soon", ""] {
            assert!(priority(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_answer_says_what_it_answers() {
        assert_eq!(answer_to("Plan"), "Re: Plan");
        assert_eq!(answer_to("RE: Plan"), "RE: Plan");
        assert_eq!(answer_to(&"ü".repeat(500)).chars().count(), 500);
    }

    #[test]
    fn a_subject_is_one_line() {
        assert_eq!(subject(" a\nb\u{1b}[31m\t").unwrap(), "a b [31m");
        for text in ["", " \n", &"x".repeat(501)] {
            assert!(subject(text).is_err(), "{text:?}");
        }
        assert!(check_body(&"x".repeat(LONGEST_BODY)).is_ok());
        assert!(check_body(&"x".repeat(LONGEST_BODY + 1)).is_err());
    }
}

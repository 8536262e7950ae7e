//! Mail: letters between agents, and people.
//!
//! A letter is a work item of its own type, in the town's own name, with a sender, a
//! recipient and a thread beside it. Here are its shape and its words; the engine
//! keeps and delivers letters (`town::mail`).

use crate::problem::Problem;
use crate::work::{Status, WorkId};
use serde::Serialize;

/// The type of a work item that is a letter.
pub const KIND: &str = "message";
/// The label of all letters.
pub const LABEL: &str = "gt:message";
/// Letters belong to the town, whatever rig they are about.
pub const PREFIX: &str = "hq";

/// More than this is no letter but a file, which can be named in one.
pub const LONGEST_BODY: usize = 1_000_000;
const LONGEST_SUBJECT: usize = 500;

/// A letter. Times are RFC 3339, in UTC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Letter {
    pub id: WorkId,
    pub sender: String,
    pub recipient: String,
    pub subject: String,
    pub body: String,
    pub priority: u8,
    /// Open, hooked, or closed once it is archived.
    pub status: Status,
    /// The first letter of those that answer each other.
    pub thread: WorkId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<WorkId>,
    pub sent_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_at: Option<String>,
}

/// A subject in one line, whatever somebody wrote.
pub fn subject(text: &str) -> Result<String, Problem> {
    let line: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    let line = line.trim();
    if line.is_empty() {
        return Err(Problem::usage("a letter needs a subject").hint("`-s SUBJECT`"));
    }
    if line.chars().count() > LONGEST_SUBJECT {
        return Err(Problem::usage(format!(
            "a subject has at most {LONGEST_SUBJECT} characters"
        ))
        .hint("the rest belongs into the body"));
    }
    Ok(line.to_owned())
}

pub fn check_body(body: &str) -> Result<(), Problem> {
    if body.len() <= LONGEST_BODY {
        return Ok(());
    }
    Err(Problem::usage(format!(
        "a letter of {} bytes is too long, {LONGEST_BODY} can be sent",
        body.len()
    ))
    .hint("put it into a file and name that"))
}

#[cfg(test)]
mod tests {
    use super::*;

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

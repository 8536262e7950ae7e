//! Work items: their fields, ids and statuses.
//!
//! The documents call an item a bead. `town::records::items` stores the items.

use crate::problem::Problem;
use crate::similar;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// Id of an item: `<prefix>-<five base32 characters>`, with `.1`, `.1.2` appended for children.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct WorkId(String);

/// Base32 alphabet without the letters that look like digits.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// Number of characters after the prefix.
pub const LENGTH: usize = 5;

impl WorkId {
    /// Returns an id made of random bytes.
    pub fn new(prefix: &str, random: [u8; LENGTH]) -> Self {
        let letters = random.map(|byte| char::from(ALPHABET[usize::from(byte % 32)]));
        WorkId(format!("{prefix}-{}", letters.iter().collect::<String>()))
    }

    /// Returns the key of a card that has an agent and no item: the name of the agent's container.
    /// No command takes it for an item.
    pub fn of_container(name: &str) -> Self {
        WorkId(name.to_owned())
    }

    /// Returns the id of the child with this number.
    #[must_use]
    pub fn child(&self, number: u32) -> Self {
        WorkId(format!("{}.{number}", self.0))
    }

    /// Returns the id after the highest child in `taken`, or the first gap if the numbers are used
    /// up.
    #[must_use]
    pub fn next_child<'a>(&self, taken: impl Iterator<Item = &'a str>) -> Self {
        let own = |id: &'a str| id.strip_prefix(self.as_str())?.strip_prefix('.');
        let number = |id: &'a str| own(id)?.parse::<u32>().ok();
        let taken: BTreeSet<u32> = taken.filter_map(number).collect();
        let next = taken.last().map_or(Some(1), |last| last.checked_add(1));
        let gap = || (1..u32::MAX).find(|number| !taken.contains(number));
        self.child(next.or_else(gap).unwrap_or(u32::MAX))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether a text could be an id: a prefix, a dash, letters and digits, and numbers
    /// after dots. A prefix may contain dashes, and an imported id may be longer than ours.
    fn is_valid(text: &str) -> bool {
        let mut parts = text.split('.');
        let base = parts.next().unwrap_or_default();
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        base.len() <= 100
            && base.bytes().all(letter)
            && base.split_once('-').is_some_and(|(prefix, rest)| {
                !prefix.is_empty() && !rest.is_empty() && !rest.ends_with('-')
            })
            && parts.all(|part| {
                part.bytes().all(|byte| byte.is_ascii_digit()) && part.parse::<u32>().is_ok()
            })
    }
}

impl FromStr for WorkId {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        if Self::is_valid(text) {
            return Ok(WorkId(text.to_owned()));
        }
        Err(
            Problem::usage(format!("{text:?} is not the id of a work item"))
                .hint("such as gt-4k2qz, or gt-4k2qz.1 for a part of it"),
        )
    }
}

impl TryFrom<String> for WorkId {
    type Error = Problem;

    fn try_from(text: String) -> Result<Self, Problem> {
        text.parse()
    }
}

impl From<WorkId> for String {
    fn from(id: WorkId) -> String {
        id.0
    }
}

impl fmt::Display for WorkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemStatus {
    Open,
    /// On the hook of an agent, which has not begun with it.
    Hooked,
    InProgress,
    Blocked,
    /// A permanent record that is never done.
    Pinned,
    Closed,
}

impl ItemStatus {
    pub const ALL: [ItemStatus; 6] = [
        ItemStatus::Open,
        ItemStatus::Hooked,
        ItemStatus::InProgress,
        ItemStatus::Blocked,
        ItemStatus::Pinned,
        ItemStatus::Closed,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            ItemStatus::Open => "open",
            ItemStatus::Hooked => "hooked",
            ItemStatus::InProgress => "in_progress",
            ItemStatus::Blocked => "blocked",
            ItemStatus::Pinned => "pinned",
            ItemStatus::Closed => "closed",
        }
    }
}

impl FromStr for ItemStatus {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        let wanted = text.replace('-', "_");
        let found = Self::ALL
            .into_iter()
            .find(|status| status.as_str() == wanted);
        found.ok_or_else(|| {
            let words: Vec<&str> = Self::ALL.iter().map(|status| status.as_str()).collect();
            let problem = Problem::usage(format!("there is no status {text:?}"));
            let near = similar::hint(&wanted, words.iter().copied());
            let problem = near.into_iter().fold(problem, Problem::hint);
            problem.hint(format!("the statuses: {}", words.join(", ")))
        })
    }
}

/// Priorities, from the most urgent (0) to the least (4).
pub const PRIORITIES: std::ops::RangeInclusive<u8> = 0..=4;
pub const USUAL_PRIORITY: u8 = 2;
pub const USUAL_KIND: &str = "task";

/// A work item. Times are RFC 3339, in UTC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    pub id: WorkId,
    pub title: String,
    #[serde(default)]
    pub description: String,
    /// A field of beads, which keeps it apart from the description.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub design: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub acceptance_criteria: String,
    #[serde(rename = "type", alias = "issue_type", default = "usual_kind")]
    pub kind: String,
    #[serde(default = "usual_priority")]
    pub priority: u8,
    pub status: ItemStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assignee: Option<String>,
    #[serde(default)]
    pub labels: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<WorkId>,
    /// Items that must be closed before this one can begin.
    #[serde(default)]
    pub deps: Vec<WorkId>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub notes: String,
    /// Whether the item may be deleted once it is closed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ephemeral: bool,
    pub created_at: String,
    pub updated_at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub close_reason: Option<String>,
}

impl Item {
    /// Returns the description, followed by the design and the acceptance criteria if there are
    /// any.
    pub fn body(&self) -> String {
        let mut text = self.description.clone();
        for (heading, words) in [
            ("Design", &self.design),
            ("Acceptance criteria", &self.acceptance_criteria),
        ] {
            if words.trim().is_empty() {
                continue;
            }
            text.truncate(text.trim_end().len());
            if !text.is_empty() {
                text.push_str("\n\n");
            }
            text.push_str(&format!("{heading}:\n{}", words.trim_end()));
        }
        text
    }
}

fn usual_kind() -> String {
    USUAL_KIND.to_owned()
}

fn usual_priority() -> u8 {
    USUAL_PRIORITY
}

/// Returns a text with its case folded, for searches. Treats a final sigma as a sigma and drops the
/// dot that the lower case of a capital İ contains.
pub fn folded(text: &str) -> String {
    const DOT_ABOVE: char = '\u{307}';
    // Much faster, and most of what a search reads.
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let lower = text.chars().flat_map(char::to_lowercase);
    let plain = lower.filter(|letter| *letter != DOT_ABOVE);
    plain.map(|c| if c == 'ς' { 'σ' } else { c }).collect()
}

/// Returns the notes with one more line.
pub fn appended(notes: &str, more: &str) -> String {
    match notes {
        "" => more.to_owned(),
        notes => format!("{notes}\n{more}"),
    }
}

/// Returns whether the notes contain these words as whole lines.
pub fn has_noted(notes: &str, words: &str) -> bool {
    format!("\n{notes}\n").contains(&format!("\n{words}\n"))
}

/// Maximum number of characters of a title. The title of a message is its subject.
pub const LONGEST_TITLE: usize = 500;

/// Returns whether a character is invisible but can change how the rest looks: control characters,
/// bidirectional controls, and characters without width. The joiner of emoji is not among them.
pub fn is_unseen(c: char) -> bool {
    let turns = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let marks = matches!(c, '\u{200e}' | '\u{200f}' | '\u{61c}');
    let is_thin = matches!(c, '\u{200b}' | '\u{2060}' | '\u{feff}');
    c.is_control() || turns || marks || is_thin
}

/// Returns a text of unknown origin as one line.
pub fn one_line(text: &str) -> String {
    let is_gap = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    match text.contains(is_gap) {
        true => {
            let words = text.split(is_gap).map(str::trim);
            let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
            words.join(" ")
        }
        false => text.to_owned(),
    }
}

/// Fails if a title has no visible character, is too long or contains control characters.
pub fn check_title(title: &str) -> Result<(), Problem> {
    let is_seen = |c: char| !is_unseen(c) && !c.is_whitespace() && c != '\u{200d}';
    if !title.contains(is_seen) {
        return Err(Problem::usage("a work item needs a title"));
    }
    if title.chars().count() > LONGEST_TITLE || title.chars().any(char::is_control) {
        return Err(Problem::usage(format!(
            "a title is one line of at most {LONGEST_TITLE} characters"
        ))
        .hint("put the rest into `--description`"));
    }
    Ok(())
}

pub fn check_priority(priority: u8) -> Result<(), Problem> {
    if PRIORITIES.contains(&priority) {
        return Ok(());
    }
    Err(Problem::usage(format!("there is no priority {priority}"))
        .hint("from 0, the most urgent, to 4; 2 is the default"))
}

const LONGEST_WORD: usize = 100;

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '_' | ':' | '/' | '.')
}

/// Converts a text of unknown origin to a word for a list; `None` if no character is left.
pub fn to_label(text: &str) -> Option<String> {
    let parts = text.split(|c| !is_of_word(c));
    let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
    let mut word = parts.join("-");
    while word.len() > LONGEST_WORD {
        word.pop();
    }
    Some(word).filter(|word| !word.is_empty())
}

/// Fails if a type or label is not a word that can be part of a list.
pub fn check_word(what: &str, word: &str) -> Result<(), Problem> {
    if !word.is_empty() && word.len() <= LONGEST_WORD && word.chars().all(is_of_word) {
        return Ok(());
    }
    Err(Problem::usage(format!("{word:?} cannot be a {what}"))
        .hint("letters, digits and -_:/. without spaces"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_distinguished_from_other_words() {
        let id = WorkId::new("gt", [0, 31, 10, 255, 32]);
        assert_eq!(id.as_str(), "gt-0zaz0");
        assert_eq!(id.child(1).child(12).as_str(), "gt-0zaz0.1.12");
        for text in [
            "gt-abc",
            "gt-4k2qz.1.2",
            "hq-wisp-1a",
            "my_rig-x",
            "My-rig-x",
        ] {
            assert_eq!(text.parse::<WorkId>().unwrap().as_str(), text);
        }
        for text in [
            "", "gt", "gt-", "-x", "gt-x.", "gt-x.a", "gt-x.+1", "gt-x-", "gt x", "gt-x;y",
            "gt-$(x)", "a/b-c",
        ] {
            assert!(text.parse::<WorkId>().is_err(), "{text}");
        }
    }

    #[test]
    fn child_gets_an_unused_number() {
        let parent: WorkId = "gt-x".parse().unwrap();
        let next = |taken: &[&str]| parent.next_child(taken.iter().copied()).to_string();
        assert_eq!(next(&[]), "gt-x.1");
        assert_eq!(
            next(&["gt-x.2", "gt-x.10", "gt-x.30.1", "gt-y.7"]),
            "gt-x.11"
        );
        assert_eq!(next(&["gt-x.1", "gt-x.4294967295"]), "gt-x.2");
    }

    #[test]
    fn an_item_is_read_as_beads_writes_it() {
        let item: Item = serde_json::from_str(
            r#"{"id":"gt-abc","title":"T","issue_type":"bug","status":"in_progress","priority":1,
                "created_at":"2026-01-17T01:00:00Z","updated_at":"2026-01-17T01:00:00Z","more":1}"#,
        )
        .unwrap();
        assert_eq!(item.kind, "bug");
        assert_eq!(item.status, ItemStatus::InProgress);
        assert_eq!(
            "in-progress".parse::<ItemStatus>().unwrap(),
            ItemStatus::InProgress
        );
        assert!("done".parse::<ItemStatus>().is_err());
        assert_eq!(item.body(), "");
        let said = Item {
            description: "Do it.\n".into(),
            design: "So.".into(),
            acceptance_criteria: "- it works\n".into(),
            ..item
        };
        assert_eq!(
            said.body(),
            "Do it.\n\nDesign:\nSo.\n\nAcceptance criteria:\n- it works"
        );
    }

    #[test]
    fn search_ignores_case() {
        for (one, other) in [
            ("Über", "ÜBER"),
            ("ΟΔΟΣ", "οδος"),
            ("İstanbul", "istanbul"),
            ("ẞ", "ß"),
        ] {
            assert_eq!(folded(one), folded(other));
        }
        assert_ne!(folded("a"), folded("ä"));
    }

    #[test]
    fn bad_words_are_refused() {
        for title in ["Do it", "a\u{200b}", "\u{1f469}\u{200d}\u{1f680}"] {
            assert!(check_title(title).is_ok(), "{title:?}");
        }
        assert_eq!(one_line(" a b"), " a b");
        assert_eq!(one_line("a\r\n## b\u{2028}c\u{1b}[1m"), "a ## b c [1m");
        let hidden = "\u{200b}\u{202e}\u{200d} ";
        for title in ["", "  ", "a\nb", hidden, &"x".repeat(501)] {
            assert!(check_title(title).is_err(), "{title:?}");
        }
        assert!(check_priority(4).is_ok() && check_priority(5).is_err());
        assert!(check_word("label", "gt:message").is_ok());
        assert!(check_word("label", "a b").is_err());
        assert_eq!(to_label("gt:message").as_deref(), Some("gt:message"));
        assert_eq!(
            to_label(" needs\nreview\u{1b}").as_deref(),
            Some("needs-review")
        );
        assert_eq!(to_label(" \n"), None);
        assert!(check_word("label", &to_label(&"\u{e9}".repeat(90)).unwrap()).is_ok());
    }
}

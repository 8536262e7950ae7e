//! The reason of a state: text for people, except where a decision depends on it.

use serde::{Serialize, Serializer};
use std::fmt;
use std::ops::Deref;

/// Text of [`Reason::Works`].
pub(crate) const WORKS: &str = "works";

/// Reason of a state. The known reasons are variants, so that no code compares texts; the tag
/// `@gt_state_reason` and JSON hold the text of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Idle: the turn was interrupted.
    Interrupted,
    /// Idle: a hook has reported the end of the turn.
    Finished,
    /// Busy: a hook has reported a prompt, and nothing since.
    TookPrompt,
    /// Busy: the program was started with a prompt, which no hook has reported yet.
    FirstPrompt,
    /// Busy: the title of the program says so.
    Works,
    /// Any other reason. No decision depends on it.
    Other(String),
}

impl Reason {
    /// The reasons that decisions depend on.
    const KNOWN: [Reason; 5] = [
        Reason::Interrupted,
        Reason::Finished,
        Reason::TookPrompt,
        Reason::FirstPrompt,
        Reason::Works,
    ];

    pub fn as_str(&self) -> &str {
        match self {
            Reason::Interrupted => "its turn was interrupted",
            Reason::Finished => "finished its turn",
            Reason::TookPrompt => "took a prompt",
            Reason::FirstPrompt => "takes its first prompt",
            Reason::Works => WORKS,
            Reason::Other(text) => text,
        }
    }
}

/// Finds a known reason by its text.
impl From<&str> for Reason {
    fn from(text: &str) -> Self {
        let known = Self::KNOWN.into_iter().find(|known| known.as_str() == text);
        known.unwrap_or_else(|| Reason::Other(text.to_owned()))
    }
}

impl From<String> for Reason {
    fn from(text: String) -> Self {
        match Reason::from(text.as_str()) {
            Reason::Other(_) => Reason::Other(text),
            known => known,
        }
    }
}

impl From<Reason> for String {
    fn from(reason: Reason) -> Self {
        match reason {
            Reason::Other(text) => text,
            known => known.as_str().to_owned(),
        }
    }
}

impl Deref for Reason {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Reason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_reasons_survive_their_text_and_json() {
        for known in Reason::KNOWN {
            assert_eq!(Reason::from(known.as_str()), known);
            assert_eq!(Reason::from(String::from(known.clone())), known);
            let json = serde_json::to_value(&known).unwrap();
            assert_eq!(json.as_str(), Some(known.as_str()));
        }
        assert_eq!(
            Reason::from("Bash(ls)"),
            Reason::Other("Bash(ls)".to_owned())
        );
    }

    /// `signal.rs` of the engine writes a reason into a tmux format.
    #[test]
    fn known_reasons_have_no_character_that_a_tmux_format_interprets() {
        for known in Reason::KNOWN {
            let is_plain = |c: char| c.is_ascii_lowercase() || c == ' ';
            assert!(known.chars().all(is_plain), "{known}");
        }
    }
}

//! Id of one session of an agent.

use serde::{Serialize, Serializer};
use std::fmt;
use std::str::FromStr;
use uuid::Uuid;

/// Minimum length of an id prefix: shorter ones would be mistaken for names.
pub const SHORTEST_PREFIX: usize = 6;

/// A UUIDv7: sorts by the time of the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(Uuid);

impl SessionId {
    pub fn new(uuid: Uuid) -> Self {
        SessionId(uuid)
    }

    /// Returns the start of this session, in seconds since the epoch.
    pub fn began_at(&self) -> Option<i64> {
        let (seconds, _) = self.0.get_timestamp()?.to_unix();
        i64::try_from(seconds).ok()
    }

    /// Returns the start of this session, in milliseconds since the epoch.
    pub fn began_at_millis(&self) -> Option<i64> {
        let (seconds, nanos) = self.0.get_timestamp()?.to_unix();
        Some(i64::try_from(seconds).ok()? * 1_000 + i64::from(nanos / 1_000_000))
    }

    /// Returns whether the id begins with this text, with or without its dashes.
    pub fn has_prefix(&self, prefix: &str) -> bool {
        let wanted: String = prefix.chars().filter(|c| *c != '-').collect();
        let whole = self.0.simple().to_string();
        wanted.len() >= SHORTEST_PREFIX && whole.starts_with(&wanted.to_ascii_lowercase())
    }

    /// Returns whether a text could be the beginning of an id.
    pub fn could_be_prefix(text: &str) -> bool {
        let digits = text.chars().filter(char::is_ascii_hexdigit).count();
        digits >= SHORTEST_PREFIX
            && text.chars().all(|c| c.is_ascii_hexdigit() || c == '-')
            && text.starts_with(|c: char| c.is_ascii_hexdigit())
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

impl FromStr for SessionId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Uuid::parse_str(text).map(SessionId)
    }
}

impl Serialize for SessionId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_with_and_without_dashes() {
        let id: SessionId = "0193a2b4-c5d6-7abc-8def-0123456789ab".parse().unwrap();
        assert!(id.has_prefix("0193a2"));
        assert!(id.has_prefix("0193A2B4-C5"));
        assert!(id.has_prefix("0193a2b4c5d67"));
        assert!(!id.has_prefix("0193a"), "too short to be meant");
        assert!(!id.has_prefix("0193a3"));
        assert!(SessionId::could_be_prefix("0193a2b4-c5"));
        assert!(!SessionId::could_be_prefix("max"));
        assert!(!SessionId::could_be_prefix("gt-crew-max"));
        assert_eq!(id.began_at(), Some(1_733_601_576));
        assert_eq!(id.began_at_millis(), Some(1_733_601_576_406));
    }
}

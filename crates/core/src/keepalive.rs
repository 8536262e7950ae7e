//! Keepalives: the time of an agent's last `gt` command, a health signal without extra cost.

use serde::{Deserialize, Serialize};

/// The age of a missing keepalive, in seconds: older than any real one.
pub const NEVER: i64 = 365 * 86_400;

/// The last keepalive of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keepalive {
    /// `gt` and the names of the command, without its arguments.
    pub last_command: String,
    /// RFC 3339, in UTC.
    pub timestamp: String,
}

/// Returns the age of a keepalive in seconds. A missing keepalive is [`NEVER`] old, so that
/// callers need no special case.
pub fn age_seconds(given_at: Option<i64>, now: i64) -> i64 {
    given_at.map_or(NEVER, |at| (now - at).max(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_sign_is_the_stalest() {
        assert_eq!(age_seconds(Some(100), 160), 60);
        assert_eq!(age_seconds(Some(200), 160), 0, "a clock that was set back");
        assert_eq!(age_seconds(None, 160), 31_536_000);
    }
}

//! Keepalives: the time of an agent's last `gt` command, a health signal without extra cost.

use serde::{Deserialize, Serialize};

/// The last keepalive of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keepalive {
    /// `gt` and the names of the command, without its arguments.
    pub last_command: String,
    /// RFC 3339, in UTC.
    pub timestamp: String,
}

/// Returns the age of a keepalive in seconds.
pub fn age_seconds(given_at: i64, now: i64) -> i64 {
    (now - given_at).max(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn age_is_never_negative() {
        assert_eq!(age_seconds(100, 160), 60);
        assert_eq!(age_seconds(200, 160), 0, "a clock that was set back");
    }
}

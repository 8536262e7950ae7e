//! Tracks whether a server answers over several checks.
//!
//! One check shows only the present. Whether a server has answered before, and since when it does
//! not, is stored as a tag on its pane, so that all processes report the same state.

use super::DevServerState;
use std::fmt;

/// Seconds without an answer after which a server counts as failed. Many servers restart when a
/// file is saved, and are away for a moment.
const MAY_BE_AWAY_SECONDS: i64 = 5;

/// Results of the port checks. Times are seconds since the epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Answers {
    /// It has never answered.
    #[default]
    NotYet,
    Since(i64),
    /// It answered before, and not since this time.
    NoMoreSince(i64),
}

impl Answers {
    /// Parses a tag. A missing or invalid tag means [`Answers::NotYet`].
    pub(crate) fn read(tag: &str) -> Self {
        let said = tag.split_once(' ');
        let said = said.and_then(|(word, since)| Some((word, since.parse().ok()?)));
        match said {
            Some(("yes", since)) => Answers::Since(since),
            Some(("no", since)) => Answers::NoMoreSince(since),
            _ => Answers::NotYet,
        }
    }

    /// Returns the result after one more check.
    pub(crate) fn after(self, does: bool, now: i64) -> Self {
        match (self, does) {
            (Answers::NotYet | Answers::NoMoreSince(_), true) => Answers::Since(now),
            (Answers::Since(_), false) => Answers::NoMoreSince(now),
            (known, _) => known,
        }
    }

    /// Returns the state of a server whose process runs.
    pub(super) fn state(self, now: i64) -> DevServerState {
        match self {
            Answers::Since(_) => DevServerState::Running,
            Answers::NoMoreSince(since) if now - since >= MAY_BE_AWAY_SECONDS => {
                DevServerState::Error
            }
            Answers::NotYet | Answers::NoMoreSince(_) => DevServerState::Starting,
        }
    }

    pub(super) fn since(self) -> Option<i64> {
        match self {
            Answers::NotYet => None,
            Answers::Since(since) | Answers::NoMoreSince(since) => Some(since),
        }
    }
}

impl fmt::Display for Answers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Answers::NotYet => Ok(()),
            Answers::Since(since) => write!(f, "yes {since}"),
            Answers::NoMoreSince(since) => write!(f, "no {since}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_has_answered_and_stays_away_has_failed_until_it_answers_again() {
        let mut known = Answers::NotYet;
        let mut look = |now, does, state| {
            known = known.after(does, now);
            assert_eq!((known.state(now), now), (state, now));
            assert_eq!(Answers::read(&known.to_string()), known);
            known.since()
        };
        assert_eq!(look(0, false, DevServerState::Starting), None);
        assert_eq!(
            look(90, false, DevServerState::Starting),
            None,
            "it takes its time"
        );
        assert_eq!(look(100, true, DevServerState::Running), Some(100));
        assert_eq!(look(500, true, DevServerState::Running), Some(100));
        // The server restarts.
        assert_eq!(look(501, false, DevServerState::Starting), Some(501));
        assert_eq!(look(503, true, DevServerState::Running), Some(503));
        assert_eq!(look(600, false, DevServerState::Starting), Some(600));
        assert_eq!(look(605, false, DevServerState::Error), Some(600));
        assert_eq!(look(900, false, DevServerState::Error), Some(600));
        assert_eq!(look(901, true, DevServerState::Running), Some(901));
    }

    #[test]
    fn other_tags_count_as_no_answer() {
        for tag in ["", "yes", "no x", "perhaps 7"] {
            assert_eq!(Answers::read(tag), Answers::NotYet, "{tag:?}");
        }
    }
}

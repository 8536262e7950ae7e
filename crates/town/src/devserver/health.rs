//! Whether a server answers, over many looks.
//!
//! One look tells only how things are. That a server has answered before, and since when it
//! does not any more, is kept as a tag of its pane, so that all who ask say the same.

use super::State;
use std::fmt;

/// A server that is made anew, as many do when a file is saved, is away for a moment. Only
/// one that stays away for so many seconds has failed.
const MAY_BE_AWAY_SECONDS: i64 = 5;

/// What was seen of a server's port. Times are seconds since the epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Answers {
    /// Nobody has seen it answer.
    #[default]
    NotYet,
    Since(i64),
    /// It has answered before.
    NoMoreSince(i64),
}

impl Answers {
    /// Reads a tag. One that nobody has set, and one that means nothing, says nothing.
    pub(crate) fn read(tag: &str) -> Self {
        let said = tag.split_once(' ');
        let said = said.and_then(|(word, since)| Some((word, since.parse().ok()?)));
        match said {
            Some(("yes", since)) => Answers::Since(since),
            Some(("no", since)) => Answers::NoMoreSince(since),
            _ => Answers::NotYet,
        }
    }

    /// What is known after one more look.
    pub(crate) fn after(self, does: bool, now: i64) -> Self {
        match (self, does) {
            (Answers::NotYet | Answers::NoMoreSince(_), true) => Answers::Since(now),
            (Answers::Since(_), false) => Answers::NoMoreSince(now),
            (known, _) => known,
        }
    }

    /// What a server is at whose process lives.
    pub(super) fn state(self, now: i64) -> State {
        match self {
            Answers::Since(_) => State::Running,
            Answers::NoMoreSince(since) if now - since >= MAY_BE_AWAY_SECONDS => State::Error,
            Answers::NotYet | Answers::NoMoreSince(_) => State::Starting,
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
        assert_eq!(look(0, false, State::Starting), None);
        assert_eq!(look(90, false, State::Starting), None, "it takes its time");
        assert_eq!(look(100, true, State::Running), Some(100));
        assert_eq!(look(500, true, State::Running), Some(100));
        // It is made anew.
        assert_eq!(look(501, false, State::Starting), Some(501));
        assert_eq!(look(503, true, State::Running), Some(503));
        assert_eq!(look(600, false, State::Starting), Some(600));
        assert_eq!(look(605, false, State::Error), Some(600));
        assert_eq!(look(900, false, State::Error), Some(600));
        assert_eq!(look(901, true, State::Running), Some(901));
    }

    #[test]
    fn a_tag_of_nobodys_says_nothing() {
        for tag in ["", "yes", "no x", "perhaps 7"] {
            assert_eq!(Answers::read(tag), Answers::NotYet, "{tag:?}");
        }
    }
}

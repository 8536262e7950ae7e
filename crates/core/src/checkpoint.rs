//! A checkpoint: the work in progress that an agent last reported, for its next session after a
//! crash.

use crate::record::Outcome;
use serde::{Deserialize, Serialize};

/// Maximum age of a checkpoint. An older one is outdated.
pub const STALE_AFTER_SECONDS: i64 = 24 * 60 * 60;

/// The state of an agent's work. Times are RFC 3339, in UTC. The field names are part of the
/// documented format.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub molecule_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_step: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_title: Option<String>,
    /// Changed files as git reports them, limited to a readable number.
    #[serde(default)]
    pub modified_files: Vec<String>,
    /// The number of all changed files, even if not all are listed.
    #[serde(default)]
    pub modified_count: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_commit: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The item on the agent's hook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hooked_bead: Option<String>,
    pub timestamp: String,
    /// The session that wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The later session that got it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told_to: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
}

impl Checkpoint {
    /// Returns whether a checkpoint of this age is too old to use. A large negative age means that
    /// the clock was set back, and counts as well.
    pub fn is_stale(age_seconds: i64) -> bool {
        !(-STALE_AFTER_SECONDS..=STALE_AFTER_SECONDS).contains(&age_seconds)
    }

    /// Returns whether a session already knows the checkpoint: it wrote it or got it.
    pub fn is_known_to(&self, session: &str) -> bool {
        [&self.session_id, &self.told_to]
            .iter()
            .any(|knows| knows.as_deref() == Some(session))
    }

    /// Returns whether the checkpoint describes work that was in progress when the session `session`
    /// began. `before` is the previous session, and `outcome` returns how a session ended. A
    /// session's own checkpoint does not count. Nor does one whose writer, reader or successor
    /// ended well: that work is over.
    pub fn is_left_to(
        &self,
        session: Option<&str>,
        before: Option<&str>,
        outcome: impl Fn(&str) -> Option<Outcome>,
    ) -> bool {
        let writer = self.session_id.as_deref();
        // Without a known writer the checkpoint may be newer than the previous session, so the
        // outcome of that session says nothing about it.
        let before = before.filter(|_| writer.is_some());
        let ends = [writer, self.told_to.as_deref(), before];
        let mut ends = ends.into_iter().flatten().filter_map(outcome);
        (writer.is_none() || writer != session) && !ends.any(Outcome::is_complete)
    }

    /// Summarises the checkpoint in one line.
    pub fn summary(&self, age: &str) -> String {
        let mut parts = Vec::new();
        let mut add = |what: &str, value: &Option<String>| {
            parts.extend(value.as_ref().map(|value| format!("{what} {value}")));
        };
        add("work", &self.hooked_bead);
        add("molecule", &self.molecule_id);
        add("step", &self.current_step);
        add("branch", &self.branch);
        parts.push(match self.modified_count {
            0 => "no changed files".to_owned(),
            1 => "1 changed file".to_owned(),
            count => format!("{count} changed files"),
        });
        format!("checkpoint from {age} ago: {}", parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_left_until_a_session_ends_well() {
        let left = |told_to: Option<&str>, before: Option<&str>| {
            let checkpoint = Checkpoint {
                session_id: Some("crash-1".into()),
                told_to: told_to.map(str::to_owned),
                ..Checkpoint::default()
            };
            checkpoint.is_left_to(Some("now"), before, outcome)
        };
        assert!(left(None, None));
        assert!(left(None, Some("crash-1")));
        assert!(left(Some("now"), Some("crash-1")), "told, and not yet done");
        assert!(left(Some("killed-2"), Some("crash-3")));
        assert!(!left(Some("handoff-2"), Some("crash-3")));
        assert!(!left(Some("done-2"), Some("crash-3")));
        assert!(!left(None, Some("handoff-2")), "never told, and over");
        for (writer, expected) in [
            (Some("now"), false),
            (Some("handoff-1"), false),
            (Some("done-1"), false),
            (Some("killed-1"), true),
            (Some("unknown"), true),
            (None, true),
        ] {
            let checkpoint = Checkpoint {
                session_id: writer.map(str::to_owned),
                ..Checkpoint::default()
            };
            let is_left = checkpoint.is_left_to(Some("now"), Some("crash-2"), outcome);
            assert_eq!(is_left, expected, "{writer:?}");
        }
        let anonymous = Checkpoint::default();
        assert!(anonymous.is_left_to(None, None, outcome));
        assert!(anonymous.is_left_to(Some("now"), Some("done-2"), outcome));
    }

    /// The ids of the test sessions begin with their outcome.
    fn outcome(session: &str) -> Option<Outcome> {
        Outcome::from_word(session.split('-').next()?)
    }

    #[test]
    fn it_says_what_was_in_flight() {
        let checkpoint = Checkpoint {
            hooked_bead: Some("gt-abc".into()),
            current_step: Some("build".into()),
            modified_count: 2,
            ..Checkpoint::default()
        };
        assert_eq!(
            checkpoint.summary("5m"),
            "checkpoint from 5m ago: work gt-abc, step build, 2 changed files"
        );
        assert!(!Checkpoint::is_stale(STALE_AFTER_SECONDS));
        assert!(Checkpoint::is_stale(STALE_AFTER_SECONDS + 1));
        assert!(!Checkpoint::is_stale(-60));
        assert!(Checkpoint::is_stale(-STALE_AFTER_SECONDS - 1));
    }
}

//! What an agent was at when it last said so, for the one that comes after a crash.

use serde::{Deserialize, Serialize};

/// After so long a checkpoint says nothing about the work any more.
pub const STALE_AFTER_SECONDS: i64 = 24 * 60 * 60;

/// The state of an agent's work. The names are those of the documents; times are RFC
/// 3339, in UTC.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub molecule_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_step: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_title: Option<String>,
    /// What git calls changed, at most so many that a person reads them.
    #[serde(default)]
    pub modified_files: Vec<String>,
    /// How many there are, where not all are named.
    #[serde(default)]
    pub modified_count: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_commit: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// What is on the agent's hook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hooked_bead: Option<String>,
    pub timestamp: String,
    /// The life that wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The life after that one, once it has been told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told_to: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
}

impl Checkpoint {
    /// Whether it is too old to be believed, by its age in seconds.
    pub fn is_stale(age_seconds: i64) -> bool {
        age_seconds > STALE_AFTER_SECONDS
    }

    /// Whether a life needs it no more: it wrote it itself, or was told of it.
    pub fn is_known_to(&self, life: &str) -> bool {
        [&self.session_id, &self.told_to]
            .iter()
            .any(|knows| knows.as_deref() == Some(life))
    }

    /// What it says, in one line.
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
    }
}

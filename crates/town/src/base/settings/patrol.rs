//! `[patrol]` of `town.toml`.

use super::{Length, LimitSettings};
use gt_core::patrol;
use serde::Deserialize;
use std::time::Duration;

/// Settings of patrols.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PatrolSettings {
    /// Patrols without a command: with the automatic save, and by the daemon.
    pub automatic: bool,
    /// Sends role agents digests of what they have to decide, and starts those that do not run.
    pub wake_roles: bool,
    /// Names of rules that are disabled.
    pub off: Vec<String>,
    /// Restores the agents that went down with their tmux server.
    pub restore: bool,
    /// Resumes of a dead polecat, before its item goes to another.
    pub resumes: u32,
    /// Number of times that an item goes to another polecat, before an escalation.
    pub reassigns: u32,
    /// Restarts of one hung agent within a day, before an escalation.
    pub restarts: u32,
    /// Maximum number of agents that patrols start within a minute.
    pub starts_per_minute: usize,
    /// Number of agents whose deaths within 30 seconds are a mass death.
    pub mass_deaths: usize,
    /// Time after which a start counts as hung.
    pub start_timeout: Length,
    /// Time after which an idle agent with work is nudged.
    pub idle_after: Length,
    /// Time after which an unanswered question escalates.
    pub question_after: Length,
    /// Maximum age of a waiting message.
    pub message_after: Length,
    /// Maximum age of a waiting merge.
    pub merge_after: Length,
    /// Time after which the container of a dead agent without work is removed.
    pub clean_after: Length,
    /// Time after which the worktree of an unused polecat without unsaved work is removed; 0 keeps
    /// it.
    pub worktree_after: Length,
    /// Minimum free disk space in megabytes.
    pub min_free_mb: u64,
    /// Divisor of all times of patrols and of the daemon's sweep, to test a night in minutes.
    pub speed: u32,
}

impl Default for PatrolSettings {
    fn default() -> Self {
        let rules = patrol::RuleSettings::default();
        let length = |seconds: i64| Length(u64::try_from(seconds).unwrap_or_default());
        PatrolSettings {
            automatic: true,
            wake_roles: true,
            off: Vec::new(),
            restore: rules.restore,
            resumes: rules.resumes,
            reassigns: rules.reassigns,
            restarts: rules.restarts,
            starts_per_minute: rules.starts_per_minute,
            mass_deaths: rules.mass_deaths,
            start_timeout: length(rules.start_timeout),
            idle_after: length(rules.idle_after),
            question_after: length(rules.question_after),
            message_after: length(rules.message_after),
            merge_after: length(rules.merge_after),
            clean_after: length(rules.clean_after),
            worktree_after: length(rules.worktree_after),
            min_free_mb: rules.min_free / MEGABYTE,
            speed: 1,
        }
    }
}

const MEGABYTE: u64 = 1024 * 1024;

impl PatrolSettings {
    /// Returns the settings of the rules.
    pub fn rules(&self, limits: &LimitSettings) -> patrol::RuleSettings {
        let seconds = |length: Length| i64::try_from(length.0).unwrap_or(i64::MAX);
        patrol::RuleSettings {
            off: self.off.clone(),
            restore: self.restore,
            resumes: self.resumes,
            reassigns: self.reassigns,
            restarts: self.restarts,
            starts_per_minute: self.starts_per_minute.max(1),
            mass_deaths: self.mass_deaths.max(2),
            start_timeout: seconds(self.start_timeout),
            hung_after: i64::try_from(limits.hung_after_minutes.saturating_mul(60))
                .unwrap_or(i64::MAX),
            idle_after: seconds(self.idle_after),
            question_after: seconds(self.question_after),
            message_after: seconds(self.message_after),
            merge_after: seconds(self.merge_after),
            clean_after: seconds(self.clean_after),
            worktree_after: seconds(self.worktree_after),
            min_free: self.min_free_mb.saturating_mul(MEGABYTE),
            ..patrol::RuleSettings::default()
        }
        .faster(i64::from(self.speed))
    }

    /// Returns a duration of the supervision at the configured speed, at least a second.
    pub fn at_speed(&self, duration: Duration) -> Duration {
        (duration / self.speed.max(1)).max(Duration::from_secs(1))
    }
}

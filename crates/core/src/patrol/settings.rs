//! Settings of the patrol rules. Times are in seconds.

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// Settings of the rules. The engine reads them from `[patrol]` in `town.toml`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleSettings {
    /// Names of rules that are disabled.
    pub off: Vec<String>,
    /// Restore the agents that went down with their tmux server.
    pub restore: bool,
    /// Resumes of the agent that holds an item, before the item goes to another.
    pub resumes: u32,
    /// Number of times that an item goes to another agent, before an escalation.
    pub reassigns: u32,
    /// Restarts of one hung agent within a day, before an escalation.
    pub restarts: u32,
    /// Maximum number of agents that patrols start within a minute.
    pub starts_per_minute: usize,
    /// Number of agents whose simultaneous deaths are a mass death.
    pub mass_deaths: usize,
    /// Time within which deaths count as simultaneous.
    pub mass_death_window: i64,
    /// Time without starts after a mass death.
    pub mass_death_pause: i64,
    /// Time after which a polecat that exited cleanly with an item is resumed.
    pub exited_after: i64,
    /// Time after which a start counts as hung.
    pub start_timeout: i64,
    /// Time without any sign after which a busy agent counts as hung.
    pub hung_after: i64,
    /// Time after which an idle agent with work is nudged.
    pub idle_after: i64,
    /// Maximum time of one session of boot.
    pub boot_timeout: i64,
    /// Time after which a failed turn is continued.
    pub failed_after: i64,
    /// Time after which an unanswered question of an unattended agent escalates.
    pub question_after: i64,
    /// Age of a waiting message.
    pub message_after: i64,
    /// Age of a waiting merge.
    pub merge_after: i64,
    /// Age of a queued assignment.
    pub schedule_after: i64,
    /// Age of a dead container without work.
    pub clean_after: i64,
    /// Age of an unused worktree; 0 keeps them.
    pub worktree_after: i64,
    /// Minimum free disk space in bytes.
    pub min_free: u64,
    /// Divisor of the fixed times of the rules, such as back-offs. [`RuleSettings::faster`] sets it and
    /// divides the other fields.
    pub speed: i64,
}

impl RuleSettings {
    /// Returns these settings with all times divided by `speed`, so that a night takes minutes.
    pub fn faster(self, speed: i64) -> Self {
        let speed = speed.max(1);
        RuleSettings {
            mass_death_window: self.mass_death_window / speed,
            mass_death_pause: self.mass_death_pause / speed,
            exited_after: self.exited_after / speed,
            start_timeout: self.start_timeout / speed,
            hung_after: self.hung_after / speed,
            idle_after: self.idle_after / speed,
            boot_timeout: self.boot_timeout / speed,
            failed_after: self.failed_after / speed,
            question_after: self.question_after / speed,
            message_after: self.message_after / speed,
            merge_after: self.merge_after / speed,
            schedule_after: self.schedule_after / speed,
            clean_after: self.clean_after / speed,
            worktree_after: self.worktree_after / speed,
            speed,
            ..self
        }
    }

    /// Returns a fixed time of a rule at the speed of these settings.
    pub fn at_speed(&self, seconds: i64) -> i64 {
        seconds / self.speed.max(1)
    }
}

impl Default for RuleSettings {
    fn default() -> Self {
        RuleSettings {
            off: Vec::new(),
            restore: true,
            resumes: 2,
            reassigns: 1,
            restarts: 3,
            starts_per_minute: 4,
            mass_deaths: 3,
            mass_death_window: 30,
            mass_death_pause: 2 * MINUTE,
            exited_after: 2 * MINUTE,
            start_timeout: 5 * MINUTE,
            hung_after: 30 * MINUTE,
            idle_after: 5 * MINUTE,
            boot_timeout: 15 * MINUTE,
            failed_after: 2 * MINUTE,
            question_after: 15 * MINUTE,
            message_after: 10 * MINUTE,
            merge_after: 5 * MINUTE,
            schedule_after: MINUTE,
            clean_after: HOUR,
            worktree_after: 7 * DAY,
            min_free: 500 * 1024 * 1024,
            speed: 1,
        }
    }
}

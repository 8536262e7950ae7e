//! `town.toml`: the settings of a town. It also marks the town's root.

#[cfg(test)]
mod agreement;
mod board;
mod merge;
mod patrol;
mod web;

pub use board::BoardSettings;
pub use merge::{MergeDefaults, MergeInto, MergeSettings, RepairBy, ValidationSandbox};
pub use patrol::PatrolSettings;
pub use web::WebSettings;

use crate::Result;
use crate::base::files;
use gt_core::Problem;
use gt_core::budget::BudgetLimits;
use gt_core::capability::CapabilityOverrides;
use gt_core::environment::is_inherited;
use gt_core::event::Policy;
use gt_core::notify::{NoticeKind, QuietHours};
use gt_core::overlay::{broken_toml, without_comments};
use gt_core::sandbox::DefaultSandbox;
use gt_core::settings::NewTown;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub const FILE: &str = "town.toml";

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TownSettings {
    pub name: String,
    /// The default harness of roles.
    pub harness: Option<String>,
    pub tmux: TmuxSettings,
    pub limits: LimitSettings,
    pub polecats: PolecatSettings,
    pub nudge: NudgeSettings,
    pub sessions: SessionSettings,
    pub krc: KrcSettings,
    pub save: SaveSettings,
    pub prime: PrimeSettings,
    pub handoff: HandoffSettings,
    pub notify: NotifySettings,
    pub merge: MergeDefaults,
    pub budget: BudgetLimits,
    pub patrol: PatrolSettings,
    pub schedule: ScheduleSettings,
    pub git: GitSettings,
    pub board: BoardSettings,
    pub web: WebSettings,
    pub env: EnvSettings,
    pub sandbox: SandboxSettings,
    /// Overrides of the table of capabilities, by role.
    pub capabilities: CapabilityOverrides,
    /// Settings of single rigs, by name.
    pub rigs: BTreeMap<String, RigSettings>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RigSettings {
    pub merge: MergeSettings,
    /// Overrides the town's budgets. The daily budget of the town still applies.
    pub budget: BudgetLimits,
    /// Overrides `at_limit` of the town.
    pub at_limit: Option<AtLimit>,
    /// Overrides the town's capabilities, for agents of this rig.
    pub capabilities: CapabilityOverrides,
    pub beads: BeadsUse,
    /// `bd` or `br`, or the path of one of them; if absent, the first that is found.
    pub beads_program: Option<String>,
}

/// The caller's environment variables that agents get.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EnvSettings {
    /// Names that agents get in addition to the inherited ones and those of their harness.
    pub pass: Vec<String>,
    /// Names that they do not get.
    pub remove: Vec<String>,
}

impl EnvSettings {
    /// Returns whether a variable of the caller reaches programs that run an agent's code.
    pub(crate) fn passes(&self, name: &str) -> bool {
        let is_wanted = is_inherited(name) || self.pass.iter().any(|passed| passed == name);
        is_wanted && !self.remove.iter().any(|removed| removed == name)
    }
}

/// The sandbox of agents whose role sets no level.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SandboxSettings {
    pub default: DefaultSandbox,
}

/// Settings of the git calls.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GitSettings {
    /// Names of settings that git uses from a repository's own configuration although they name a
    /// program. A name may end in a star. `core.hooksPath` stands for the hooks of a push.
    pub allow: Vec<String>,
}

/// Whether the work items of a rig are kept in beads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
pub enum BeadsUse {
    /// If there is a `.beads` folder and a program for it.
    #[default]
    Auto,
    /// Always; it is an error if that is not possible.
    On,
    Off,
    /// Always, with this folder.
    At(PathBuf),
}

impl From<String> for BeadsUse {
    fn from(text: String) -> Self {
        match text.as_str() {
            "auto" => BeadsUse::Auto,
            "on" => BeadsUse::On,
            "off" => BeadsUse::Off,
            _ => BeadsUse::At(PathBuf::from(text)),
        }
    }
}

/// Event retention.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct KrcSettings {
    /// Minimum interval between two prunes of `gt events prune --auto`.
    pub prune_interval: Length,
    /// Number of newest events that stay regardless of their age.
    pub minimum_kept: usize,
    /// Retention by type or `prefix_*`, overriding the built-in table.
    pub ttl: BTreeMap<String, Length>,
}

impl Default for KrcSettings {
    fn default() -> Self {
        KrcSettings {
            prune_interval: Length(3_600),
            minimum_kept: 100,
            ttl: BTreeMap::new(),
        }
    }
}

impl KrcSettings {
    pub fn policy(&self) -> Policy {
        let seconds = |(kind, length): (&String, &Length)| (kind.clone(), length.0);
        Policy {
            ttl: self.ttl.iter().map(seconds).collect(),
        }
    }
}

/// A duration such as `90m` or `7d`, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Length(pub u64);

impl TryFrom<String> for Length {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        crate::base::time::seconds(&text)
            .map(Length)
            .map_err(|problem| format!("{problem}, such as 90m, 24h or 7d"))
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SessionSettings {
    /// Days after which an ended session moves to the archive; 0 means never.
    pub archive_after_days: u32,
    /// Days after which a finished recording is removed; 0 means never.
    pub keep_recordings_days: u32,
}

impl Default for SessionSettings {
    fn default() -> Self {
        SessionSettings {
            archive_after_days: 90,
            keep_recordings_days: 30,
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NudgeSettings {
    /// Maximum number of messages that wait for one agent.
    pub depth: usize,
    /// Minutes after which an undelivered message expires; 0 means never.
    pub ttl_minutes: i64,
    /// Minutes after which an undelivered urgent message expires; 0 means never.
    pub urgent_ttl_minutes: i64,
    /// Seconds to wait for an idle agent before a message is left in the queue.
    pub wait_seconds: u64,
}

impl Default for NudgeSettings {
    fn default() -> Self {
        NudgeSettings {
            depth: 200,
            ttl_minutes: 24 * 60,
            urgent_ttl_minutes: 0,
            wait_seconds: 15,
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SaveSettings {
    /// Saves automatically: after starts and stops, and while agents work.
    pub auto: bool,
    /// Number of automatic saves to keep, and of other saves.
    pub keep: usize,
    /// Lines of scrollback saved per pane, in addition to its screen.
    pub scrollback_lines: u32,
    /// Maximum age of the newest save in minutes while anything runs. With 0 there is no timer, and
    /// every end of a turn saves.
    pub every_minutes: u64,
    /// Also lets tmux-resurrect save, if it is installed.
    pub resurrect: bool,
}

impl Default for SaveSettings {
    fn default() -> Self {
        SaveSettings {
            auto: true,
            keep: 20,
            scrollback_lines: 2_000,
            every_minutes: 5,
            resurrect: false,
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PrimeSettings {
    /// Maximum number of characters that an agent gets at the start of a session.
    pub budget: usize,
}

impl Default for PrimeSettings {
    fn default() -> Self {
        // Some programs discard hook output beyond 10 000 characters.
        PrimeSettings { budget: 9_500 }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HandoffSettings {
    /// Minimum age of a session before it may hand over.
    pub cooldown: Length,
}

impl Default for HandoffSettings {
    fn default() -> Self {
        HandoffSettings {
            cooldown: Length(60),
        }
    }
}

/// Notifications to people that an agent waits, is done or has died.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NotifySettings {
    /// Rings the terminals of all clients of the town's tmux server. If absent, only an open board
    /// rings its own terminal.
    pub bell: Option<bool>,
    pub desktop: bool,
    /// A shell line, with the facts in variables.
    pub command: Option<String>,
    /// The events to notify of.
    pub on: Vec<NoticeKind>,
    pub quiet_hours: Option<QuietHours>,
}

impl Default for NotifySettings {
    fn default() -> Self {
        NotifySettings {
            bell: None,
            desktop: false,
            command: None,
            on: NoticeKind::ALL.to_vec(),
            quiet_hours: None,
        }
    }
}

impl NotifySettings {
    /// Returns whether any notification channel is enabled.
    pub fn is_on(&self) -> bool {
        self.bell == Some(true) || self.desktop || self.command.is_some()
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TmuxSettings {
    /// A socket name or an absolute path; empty means tmux's own default.
    pub socket: String,
    /// Lines of scrollback of a new container; if absent, tmux's default.
    pub history_limit: Option<u32>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitSettings {
    /// Maximum number of agents that are started concurrently.
    pub parallel_starts: usize,
    /// Minutes of silence after which a busy agent counts as hung.
    pub hung_after_minutes: u64,
    /// Maximum number of working polecats in the town, and in each rig.
    pub polecats: usize,
    pub polecats_per_rig: usize,
    /// Reaction to a usage limit that an agent reaches.
    pub at_limit: AtLimit,
}

/// Reaction to a usage limit that an agent reaches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AtLimit {
    /// The agent waits until the limit ends.
    #[default]
    Wait,
    /// The agent moves to another account that is not limited, with its conversation; it waits if
    /// there is none.
    Switch,
}

impl Default for LimitSettings {
    fn default() -> Self {
        LimitSettings {
            parallel_starts: 8,
            hung_after_minutes: 30,
            polecats: 50,
            polecats_per_rig: 25,
            at_limit: AtLimit::Wait,
        }
    }
}

/// Limits of starts beside the maximum numbers of polecats.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScheduleSettings {
    /// Maximum number of running agents by harness.
    pub harnesses: BTreeMap<String, usize>,
    /// Maximum number of running agents by account.
    pub accounts: BTreeMap<String, usize>,
    /// Load average per processor at which nothing more starts; if absent, there is no maximum.
    pub max_load: Option<f64>,
    /// Minimum time between two starts from the queue.
    pub start_spacing: Length,
}

impl Default for ScheduleSettings {
    fn default() -> Self {
        ScheduleSettings {
            harnesses: BTreeMap::new(),
            accounts: BTreeMap::new(),
            max_load: None,
            start_spacing: Length(2),
        }
    }
}

impl ScheduleSettings {
    /// Returns whether there are limits beside the numbers of polecats.
    pub fn has_limits(&self) -> bool {
        !self.harnesses.is_empty() || !self.accounts.is_empty() || self.max_load.is_some()
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PolecatSettings {
    /// Names for new polecats; empty means the built-in pool.
    pub names: Vec<String>,
    /// Names for new polecats of one rig, by the rig's name.
    pub rig_names: BTreeMap<String, Vec<String>>,
}

impl PolecatSettings {
    /// Returns the names for a rig's polecats. Fails if one is not a valid agent name.
    pub fn pool(&self, rig: &str) -> Result<Vec<&str>> {
        let own = self.rig_names.get(rig).filter(|names| !names.is_empty());
        let names: Vec<&str> = match own.unwrap_or(&self.names).as_slice() {
            [] => gt_core::polecat::NAMES.to_vec(),
            names => names.iter().map(String::as_str).collect(),
        };
        for name in &names {
            gt_core::name::check_agent(name)
                .map_err(|error| Problem::from(error).hint("correct [polecats] in town.toml"))?;
        }
        Ok(names)
    }
}

impl TownSettings {
    /// Returns the interval of the automatic save; 0 if there is no timer. In a town without a
    /// daemon, the timer of the save also starts the patrols.
    pub fn save_interval(&self) -> Duration {
        match Duration::from_secs(self.save.every_minutes.saturating_mul(60)) {
            Duration::ZERO => Duration::ZERO,
            every => self.patrol.at_speed(every),
        }
    }

    pub fn read(root: &Path) -> Result<Self> {
        let path = root.join(FILE);
        let text = files::read_if_there(&path)?.ok_or_else(|| {
            Problem::not_found(format!("{} is not a town", root.display()))
                .hint("`gt init` makes one")
        })?;
        Self::parse(&path.display().to_string(), &text)
    }

    /// Parses the text of a file. Errors refer to it as `source`.
    pub fn parse(source: &str, text: &str) -> Result<Self> {
        let text = &without_comments(text);
        let mut settings: TownSettings =
            toml::from_str(text).map_err(|error| broken_toml(source, text, &error))?;
        settings.limits.parallel_starts = settings.limits.parallel_starts.clamp(1, 64);
        settings.save.keep = settings.save.keep.max(1);
        Ok(settings)
    }

    /// Returns the merge settings of a rig.
    pub fn merge_of(&self, rig: &str) -> MergeSettings {
        self.rigs
            .get(rig)
            .map(|rig| rig.merge.clone())
            .unwrap_or_default()
    }

    /// Returns the reaction to a usage limit for agents of a rig, or of no rig.
    pub fn at_limit(&self, rig: Option<&str>) -> AtLimit {
        let own = rig.and_then(|rig| self.rigs.get(rig));
        own.and_then(|rig| rig.at_limit)
            .unwrap_or(self.limits.at_limit)
    }

    /// Returns the town's merge settings with the rig's overrides.
    pub fn merge_defaults_of(&self, rig: &str) -> MergeDefaults {
        let own = self.merge_of(rig);
        MergeDefaults {
            automatic: own.automatic.unwrap_or(self.merge.automatic),
            repair_agents: own.repair_agents.unwrap_or(self.merge.repair_agents),
            repair_by: own.repair_by.unwrap_or(self.merge.repair_by),
            confirm: own.confirm.unwrap_or(self.merge.confirm),
            sandbox: own.sandbox.unwrap_or(self.merge.sandbox),
        }
    }

    /// Returns the text of a new town's file.
    pub fn template(name: &str, socket: &str, harness: &str) -> String {
        gt_core::settings::town_file(NewTown {
            name,
            harness,
            socket,
        })
    }
}

#[cfg(test)]
mod tests;

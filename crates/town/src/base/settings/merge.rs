//! `[merge]` of `town.toml`, and `[rigs.NAME.merge]`.

use serde::Deserialize;

/// Settings of a rig's merge queue.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MergeSettings {
    /// Shell lines that must succeed before the base moves.
    pub validate: Vec<String>,
    /// Timeout in minutes for each of them.
    pub timeout_minutes: u64,
    /// Maximum memory of each of them in MiB; if absent, three quarters of the machine's.
    pub memory_mb: Option<u64>,
    /// Maximum number of processes of each of them.
    pub processes: u64,
    /// Ignored files and folders that stay in the worktree of the commands, such as `target`. All
    /// others are removed before each run.
    pub keep: Vec<String>,
    /// Files, as patterns of git, whose changes only a person may approve: they decide what runs
    /// before and after a merge.
    pub protected: Vec<String>,
    /// Maximum number of entries that are validated together.
    pub batch: usize,
    /// The target of merged work; if absent, it depends on the rig's remote.
    pub into: Option<MergeInto>,
    /// Overrides the town's setting of the same name.
    pub automatic: Option<bool>,
    pub repair_agents: Option<bool>,
    pub repair_by: Option<RepairBy>,
    pub confirm: Option<bool>,
    pub sandbox: Option<ValidationSandbox>,
    /// Caches that the commands may write in their sandbox; `~/` is the home folder.
    pub writable: Vec<String>,
}

/// Merge settings of all rigs, which a rig may override.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MergeDefaults {
    /// Whether finished work starts the queue of its rig in the background.
    pub automatic: bool,
    /// Whether an agent is started for a branch that could not be merged.
    pub repair_agents: bool,
    /// The agent that repairs such a branch.
    pub repair_by: RepairBy,
    /// Whether a person confirms the first `gt task merge` of a rig.
    pub confirm: bool,
    /// The sandbox of the commands that validate a merge.
    pub sandbox: ValidationSandbox,
}

/// The sandbox of the commands that validate a merge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ValidationSandbox {
    /// They have all rights of the user that runs the queue.
    #[default]
    None,
    /// They write only to the worktree of the queue and to the caches that are named.
    Workspace,
}

impl Default for MergeDefaults {
    fn default() -> Self {
        MergeDefaults {
            automatic: true,
            repair_agents: true,
            repair_by: RepairBy::Polecat,
            confirm: true,
            sandbox: ValidationSandbox::None,
        }
    }
}

/// The agent that repairs a branch that could not be merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RepairBy {
    /// A polecat.
    Polecat,
    /// The worker that made the branch; a polecat if the worker has other work or is gone.
    Worker,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MergeInto {
    /// The remote's default branch.
    Origin,
    /// The town's own copy of it, and a branch that the remote's owner can merge.
    Own,
}

impl Default for MergeSettings {
    fn default() -> Self {
        MergeSettings {
            validate: Vec::new(),
            timeout_minutes: 30,
            memory_mb: None,
            processes: 1_000,
            keep: Vec::new(),
            protected: vec![gt_core::project::FILE.to_owned()],
            batch: 1,
            into: None,
            automatic: None,
            repair_agents: None,
            repair_by: None,
            confirm: None,
            sandbox: None,
            writable: Vec::new(),
        }
    }
}

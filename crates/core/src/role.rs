//! The roles: what an agent is for, as rows of one table.
//!
//! Each role has an embedded TOML file that a town, and then a rig, may
//! override field by field. [`RoleConfig`] is the resolved result; how names
//! are made and read back stands in [`crate::identity`].

use crate::overlay::{Layer, Overlaid, overlay};
use crate::problem::Problem;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    Mayor,
    Deacon,
    Boot,
    Overseer,
    Dog,
    Witness,
    Refinery,
    Crew,
    Polecat,
    Agent,
    Task,
}

/// What an agent of a role belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// One of the whole town: `hq-…`.
    Town,
    /// One of a rig: `{prefix}-…`.
    Rig,
    /// Stands alone: `agent_{slug}`, `{bead-id}-az`.
    Free,
}

struct Row {
    role: Role,
    word: &'static str,
    scope: Scope,
    named: bool,
    builtin: &'static str,
}

macro_rules! row {
    ($role:ident, $word:literal, $scope:ident, $named:literal) => {
        Row {
            role: Role::$role,
            word: $word,
            scope: Scope::$scope,
            named: $named,
            builtin: include_str!(concat!("roles/", $word, ".toml")),
        }
    };
}

/// The table. Its order is the order in which agents are listed.
const ROLES: &[Row] = &[
    row!(Mayor, "mayor", Town, false),
    row!(Deacon, "deacon", Town, false),
    row!(Boot, "boot", Town, false),
    row!(Overseer, "overseer", Town, false),
    row!(Dog, "dog", Town, true),
    row!(Witness, "witness", Rig, false),
    row!(Refinery, "refinery", Rig, false),
    row!(Crew, "crew", Rig, true),
    row!(Polecat, "polecat", Rig, true),
    row!(Agent, "agent", Free, true),
    row!(Task, "task", Free, true),
];

impl Role {
    pub fn all() -> impl Iterator<Item = Role> {
        ROLES.iter().map(|row| row.role)
    }

    /// The role of that word; `polecats` and `dogs` are understood too.
    pub fn from_word(word: &str) -> Option<Role> {
        let word = match word {
            "polecats" => "polecat",
            "dogs" => "dog",
            other => other,
        };
        ROLES
            .iter()
            .find(|row| row.word == word)
            .map(|row| row.role)
    }

    fn row(self) -> &'static Row {
        // The table has a row for each role, in the order of the enum.
        &ROLES[self as usize]
    }

    pub fn word(self) -> &'static str {
        self.row().word
    }

    pub fn scope(self) -> Scope {
        self.row().scope
    }

    /// Whether agents of this role have names of their own.
    pub fn is_named(self) -> bool {
        self.row().named
    }

    /// Whether agents of this role look for work in their rig by themselves: a crew worker
    /// for itself, the mayor for others. All other roles do what they are given.
    pub fn looks_for_work(self) -> bool {
        matches!(self, Role::Crew | Role::Mayor)
    }

    /// The built-in definition.
    pub fn builtin(self) -> Layer<'static> {
        Layer {
            source: "built-in",
            text: self.row().builtin,
        }
    }

    /// The definition with the given layers (town, then rig) over the built-in one.
    pub fn resolve(self, above: &[Layer<'_>]) -> Result<Overlaid<RoleConfig>, Problem> {
        let layers: Vec<Layer<'_>> = std::iter::once(self.builtin())
            .chain(above.iter().copied())
            .collect();
        overlay(&layers)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// A role as resolved from its layers.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RoleConfig {
    /// One line for `gt role list`.
    pub description: String,
    pub session: SessionConfig,
    pub start: StartConfig,
    pub look: LookConfig,
    pub record: RecordConfig,
    pub handoff: HandoffConfig,
    /// Variables for every agent of the role, beside the standard ones.
    pub env: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SessionConfig {
    /// The container's name: `{prefix}`, `{rig}` and `{name}` are filled in.
    pub pattern: String,
    /// The folder it starts in: `{town}`, `{rig}` and `{name}` are filled in.
    pub work_dir: String,
    /// Fetch from the remote before the start.
    pub needs_pre_sync: bool,
    /// A shell line to run instead of the harness's own command.
    pub start_command: Option<String>,
    /// Process names by which a live agent is known; absent means the harness's,
    /// and an empty list that any living process will do.
    pub process_names: Option<Vec<String>>,
    /// The harness; absent means the town's default.
    pub harness: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StartConfig {
    /// Give the harness its arguments for running without asking.
    pub skip_permissions: bool,
    /// Wait until the agent's process is seen in the pane.
    pub wait_for_agent: bool,
    /// Answer the start-up dialogs that the harness preset knows.
    pub accept_dialogs: bool,
    /// Wait until the agent shows its prompt.
    pub wait_ready: bool,
    /// Start it again when it dies.
    pub auto_respawn: bool,
    /// What follows when its program leaves by itself with exit status 0.
    pub on_exit: OnExit,
    /// After so many deaths over one work item it is not started again; 0 means any number.
    pub deaths_per_item: usize,
    /// Keep the pane of a dead agent, with its last lines.
    pub remain_on_exit: bool,
    /// Write a PID file.
    pub track_pid: bool,
    /// Look once more at the end whether it is still alive.
    pub verify_survived: bool,
    /// Give the beacon as the first prompt.
    pub prompt: bool,
    /// The beacon's topic when none is given.
    pub topic: String,
    /// Appended to the beacon.
    pub instructions: Option<String>,
}

/// What follows a clean exit of an agent that is respawned after a crash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnExit {
    /// It stays ended.
    #[default]
    Stop,
    /// It is started again, in the conversation that it had.
    Restart,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LookConfig {
    /// `rig` (chosen by the rig's name), `mayor`, `deacon`, the name of a
    /// palette, or `none` to leave the status line alone.
    pub theme: String,
    pub icon: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HandoffConfig {
    pub on_compact: OnCompact,
}

/// What happens before a program compacts its context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnCompact {
    /// The state is saved, and the session goes on.
    #[default]
    Auto,
    /// Another life goes on with the conversation.
    Cycle,
    Nothing,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RecordConfig {
    /// Keep what the agent's pane shows, to be played again.
    pub enabled: bool,
    /// The most that the recording of one life may take on the disk.
    pub max_mb: u32,
}

impl RecordConfig {
    /// The same in bytes; less than a megabyte would hold nothing.
    pub fn max_bytes(&self) -> u64 {
        u64::from(self.max_mb.max(1)) << 20
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_enum() {
        for (index, role) in Role::all().enumerate() {
            assert_eq!(role as usize, index);
            assert_eq!(Role::from_word(role.word()), Some(role));
        }
    }

    #[test]
    fn every_builtin_definition_reads_and_is_complete() {
        for role in Role::all() {
            let config = role.resolve(&[]).unwrap().value;
            assert!(!config.description.is_empty(), "{role}");
            assert!(!config.session.pattern.is_empty(), "{role}");
            assert!(!config.session.work_dir.is_empty(), "{role}");
            assert!(!config.look.icon.is_empty(), "{role}");
            assert!(!config.start.topic.is_empty(), "{role}");
            assert!(
                !config.record.enabled,
                "{role}: only where somebody wants it"
            );
            assert_eq!(config.record.max_bytes(), 64 << 20, "{role}");
            assert!(
                config.look.theme == "none"
                    || crate::theme::find(&config.look.theme, "x").is_some()
            );
        }
    }

    #[test]
    fn only_roles_that_are_always_on_restart_after_a_clean_exit() {
        let restarts = |role: &Role| {
            let start = role.resolve(&[]).unwrap().value.start;
            assert!(
                start.auto_respawn || start.on_exit == OnExit::Stop,
                "{role}"
            );
            start.on_exit == OnExit::Restart
        };
        let always_on: Vec<Role> = Role::all().filter(restarts).collect();
        assert_eq!(
            always_on,
            [
                Role::Mayor,
                Role::Deacon,
                Role::Boot,
                Role::Witness,
                Role::Refinery
            ]
        );
    }

    #[test]
    fn a_rig_overrides_a_town_overrides_the_builtin() {
        let town = Layer {
            source: "town",
            text: "[session]\nharness = 'codex'\nneeds_pre_sync = true\n",
        };
        let rig = Layer {
            source: "rig",
            text: "[session]\nharness = 'gemini'\n",
        };
        let resolved = Role::Crew.resolve(&[town, rig]).unwrap();
        assert_eq!(resolved.value.session.harness.as_deref(), Some("gemini"));
        assert!(resolved.value.session.needs_pre_sync);
        assert_eq!(resolved.value.session.pattern, "{prefix}-crew-{name}");
        assert_eq!(resolved.fields["session.harness"].source, "rig");
        assert_eq!(resolved.fields["session.needs_pre_sync"].source, "town");
        assert_eq!(resolved.fields["session.pattern"].source, "built-in");
    }
}

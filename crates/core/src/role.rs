//! Roles of agents, as rows of one table.
//!
//! Each role has an embedded TOML file that a town, and then a rig, may override field by field.
//! [`RoleConfig`] is the resolved result. [`crate::identity`] builds and parses the names of
//! agents.

use crate::overlay::{Layer, Overlaid, overlay};
use crate::problem::Problem;
use crate::sandbox::container::{ContainerEngine, ContainerNetwork};
use crate::sandbox::{CacheUse, SandboxLevel, SandboxLimits};
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

/// Owner of the agents of a role: the town, a rig, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoleScope {
    /// Belongs to the whole town: `hq-…`.
    Town,
    /// Belongs to a rig: `{prefix}-…`.
    Rig,
    /// Belongs to neither: `agent_{slug}`, `{bead-id}-az`.
    Free,
}

struct RoleRow {
    role: Role,
    word: &'static str,
    scope: RoleScope,
    named: bool,
    builtin: &'static str,
}

macro_rules! row {
    ($role:ident, $word:literal, $scope:ident, $named:literal) => {
        RoleRow {
            role: Role::$role,
            word: $word,
            scope: RoleScope::$scope,
            named: $named,
            builtin: include_str!(concat!("roles/", $word, ".toml")),
        }
    };
}

/// Table of the roles. Its order is the order in which agents are listed.
const ROLES: &[RoleRow] = &[
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

    /// Returns the role with this word. Accepts the plurals `polecats` and `dogs` too.
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

    fn row(self) -> &'static RoleRow {
        // The table has a row for each role, in the order of the enum.
        &ROLES[self as usize]
    }

    pub fn as_str(self) -> &'static str {
        self.row().word
    }

    pub fn scope(self) -> RoleScope {
        self.row().scope
    }

    /// Returns whether each agent of this role has an individual name.
    pub fn is_named(self) -> bool {
        self.row().named
    }

    /// Returns whether agents of this role look for work in their rig by themselves: a crew worker
    /// for itself, the mayor for others. Agents of all other roles only do assigned work.
    pub fn looks_for_work(self) -> bool {
        matches!(self, Role::Crew | Role::Mayor)
    }

    /// Returns the instruction for an agent of this role that has no work item, as the end of a
    /// sentence. Only workers wait for a person.
    pub fn without_work(self) -> &'static str {
        match self {
            Role::Deacon | Role::Boot | Role::Witness | Role::Refinery => {
                "do one round of your role, and end your session with `gt done --exit`"
            }
            Role::Dog => "end your session with `gt done --exit`",
            Role::Mayor => {
                "decide what `gt escalate list` and `gt work ready` show, and end your turn"
            }
            Role::Overseer | Role::Crew | Role::Polecat | Role::Agent | Role::Task => {
                "wait for instructions"
            }
        }
    }

    /// Returns the built-in definition.
    pub fn builtin(self) -> Layer<'static> {
        Layer {
            source: "built-in",
            text: self.row().builtin,
        }
    }

    /// Returns the built-in definition with the given layers (town, then rig) over it.
    pub fn resolve(self, above: &[Layer<'_>]) -> Result<Overlaid<RoleConfig>, Problem> {
        let layers: Vec<Layer<'_>> = std::iter::once(self.builtin())
            .chain(above.iter().copied())
            .collect();
        overlay(&layers)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Definition of a role, resolved from its layers.
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
    pub sandbox: SandboxConfig,
    /// Environment variables for every agent of the role, besides the standard ones.
    pub env: BTreeMap<String, EnvValue>,
}

impl RoleConfig {
    /// Returns the variables whose values the role's file contains.
    pub fn literal_env(&self) -> BTreeMap<String, String> {
        let literal = self.env.iter().filter_map(|(name, value)| match value {
            EnvValue::Literal(text) => Some((name.clone(), text.clone())),
            EnvValue::Secret(_) => None,
        });
        literal.collect()
    }

    /// Returns the variables whose values are elsewhere.
    pub fn secrets(&self) -> impl Iterator<Item = (&str, &SecretSource)> {
        self.env.iter().filter_map(|(name, value)| match value {
            EnvValue::Literal(_) => None,
            EnvValue::Secret(source) => Some((name.as_str(), source)),
        })
    }
}

/// The value of an environment variable in a role.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(
    untagged,
    expecting = "a text, { file = … }, { command = [ … ] } or { credential = … }"
)]
pub enum EnvValue {
    Literal(String),
    Secret(SecretSource),
}

/// Where a secret value is. It is read when the agent starts and is not stored.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SecretSource {
    /// The content of a file.
    File(String),
    /// The output of a program, such as `secret-tool`, `security`, `pass` or `op`.
    Command(Vec<String>),
    /// The name of a systemd credential.
    Credential(String),
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SessionConfig {
    /// Name of the container. `{prefix}`, `{rig}` and `{name}` are filled in.
    pub pattern: String,
    /// Working directory. `{town}`, `{rig}` and `{name}` are filled in.
    pub work_dir: String,
    /// Whether to fetch from the remote before the start.
    pub needs_pre_sync: bool,
    /// Shell command to run instead of the harness's own command.
    pub start_command: Option<String>,
    /// Process names that identify a live agent. Absent means the harness's names; an empty list
    /// accepts any live process.
    pub process_names: Option<Vec<String>>,
    /// Harness; absent means the town's default.
    pub harness: Option<String>,
    /// Model; absent means the harness's.
    pub model: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StartConfig {
    /// Whether to give the harness its arguments for running without permission prompts.
    pub skip_permissions: bool,
    /// Whether to wait until the agent's process is seen in the pane.
    pub wait_for_agent: bool,
    /// Whether to answer the start-up dialogs that the harness preset knows.
    pub accept_dialogs: bool,
    /// Whether to wait until the agent shows its prompt.
    pub wait_ready: bool,
    /// Whether to restart the agent when it dies.
    pub auto_respawn: bool,
    /// Action after the program exits by itself with status 0.
    pub on_exit: OnExit,
    /// Whether an agent without anything to decide does not run: `gt up` does not start it, events
    /// that need its judgement do, and a clean exit ends it whatever `on_exit` says.
    pub on_demand: bool,
    /// Maximum number of deaths over one work item before respawns stop; 0 means no maximum.
    pub deaths_per_item: usize,
    /// Whether to keep the pane of a dead agent, with its last lines.
    pub remain_on_exit: bool,
    /// Whether to write a PID file.
    pub track_pid: bool,
    /// Whether to check at the end of the start that the agent is still alive.
    pub verify_survived: bool,
    /// Whether to give the beacon as the first prompt.
    pub prompt: bool,
    /// Topic of the beacon when the caller gives none.
    pub topic: String,
    /// Formula that `gt prime` pours for a session that has no molecule.
    pub formula: Option<String>,
    /// Text appended to the beacon.
    pub instructions: Option<String>,
}

impl StartConfig {
    /// Returns the action after a clean exit. An agent that is started on demand stays exited: it
    /// has finished its round.
    pub fn after_exit(&self) -> OnExit {
        match self.on_demand {
            true => OnExit::Stop,
            false => self.on_exit,
        }
    }
}

/// Action after a clean exit of an agent that is respawned after a crash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnExit {
    /// Leaves the agent exited.
    #[default]
    Stop,
    /// Restarts the agent in the conversation that it had.
    Restart,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LookConfig {
    /// `rig` (chosen by the rig's name), `mayor`, `deacon`, the name of a palette, or `none` to
    /// leave the status line alone.
    pub theme: String,
    pub icon: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HandoffConfig {
    pub on_compact: OnCompact,
}

/// Action before a program compacts its context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnCompact {
    /// Saves the state; the session continues.
    #[default]
    Auto,
    /// Starts another session, which continues the conversation.
    Cycle,
    Nothing,
}

/// The sandbox of a role's agents.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SandboxConfig {
    /// Absent means the town's `sandbox.default`.
    pub level: Option<SandboxLevel>,
    /// Further files and folders that the agents may write, such as caches; `~/` is the home folder.
    pub writable: Vec<String>,
    pub caches: CacheUse,
    pub limits: SandboxLimits,
    /// Further files and folders that the agents do not see.
    pub hidden: Vec<String>,
    /// Further hosts that the agents reach from a strict sandbox.
    pub hosts: Vec<String>,
    /// Image of the level `container`.
    pub image: Option<String>,
    /// Program that runs containers; if `None`, the one that is installed.
    pub engine: Option<ContainerEngine>,
    /// Network of the level `container`.
    pub network: ContainerNetwork,
    /// Further files and folders that the agents read in a container.
    pub readable: Vec<String>,
    /// Further arguments for the engine.
    pub arguments: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RecordConfig {
    /// Whether to record the output of the agent's pane for replay.
    pub enabled: bool,
    /// Maximum size of the recording of one session on disk, in megabytes.
    pub max_mb: u32,
}

impl RecordConfig {
    /// Returns the maximum size in bytes. The minimum is 1 MB: a smaller recording would hold
    /// nothing.
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
            assert_eq!(Role::from_word(role.as_str()), Some(role));
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
                "{role}: recording is off by default"
            );
            assert_eq!(config.record.max_bytes(), 64 << 20, "{role}");
            assert!(
                config.look.theme == "none"
                    || crate::theme::find(&config.look.theme, "x").is_some()
            );
        }
    }

    #[test]
    fn only_the_mayor_restarts_after_a_clean_exit_unless_a_role_is_always_on() {
        let on_demand = [Role::Deacon, Role::Boot, Role::Witness, Role::Refinery];
        let always_on = Layer {
            source: "town",
            text: "start.on_demand = false",
        };
        for role in Role::all() {
            let start = role.resolve(&[]).unwrap().value.start;
            assert_eq!(start.on_demand, on_demand.contains(&role), "{role}");
            let restarts = start.after_exit() == OnExit::Restart;
            assert_eq!(restarts, role == Role::Mayor, "{role}");
            assert!(start.auto_respawn || !restarts, "{role}");
            let start = role.resolve(&[always_on]).unwrap().value.start;
            let restarts = start.after_exit() == OnExit::Restart;
            let is_own = role == Role::Mayor || on_demand.contains(&role);
            assert_eq!(restarts, is_own, "{role}");
        }
    }

    #[test]
    fn roles_that_watch_others_patrol_and_do_not_wait() {
        for role in Role::all() {
            let formula = role.resolve(&[]).unwrap().value.start.formula;
            let patrols = matches!(
                role,
                Role::Deacon | Role::Boot | Role::Witness | Role::Refinery
            );
            assert_eq!(formula.as_deref(), patrols.then_some("patrol"), "{role}");
            let is_driven = patrols || matches!(role, Role::Dog | Role::Mayor);
            let waits = role.without_work().contains("wait");
            assert_eq!(waits, !is_driven, "{role}");
        }
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

//! Names and origins of the variables of a running agent. Values are never returned, because they
//! may be secret.

use crate::base::processes;
use crate::catalog::{harnesses, roles};
use crate::terminal::containers;
use crate::{Result, Town};
use gt_core::environment::{belongs_to_an_agent, is_inherited};
use gt_core::harness::Preset;
use gt_core::role::{EnvValue, RoleConfig};
use gt_core::{Identity, Problem};
use serde::Serialize;

/// Where a variable of an agent comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EnvOrigin {
    /// Set by `gt` for this agent.
    Gt,
    /// Set by tmux for the pane.
    Tmux,
    /// The folder of the agent's account.
    Account,
    /// Set by the harness.
    Harness,
    /// A value of the caller that the harness passes on.
    HarnessPass,
    Role,
    /// A secret that the role refers to.
    RoleSecret,
    /// A value of the caller that the town passes on (`env.pass`).
    TownPass,
    /// A value of the caller that every agent gets.
    Inherited,
    /// Given at the start (`--env`), or set by a shell.
    Other,
}

impl EnvOrigin {
    /// Returns the origin as a person reads it.
    pub fn describe(self) -> &'static str {
        match self {
            EnvOrigin::Gt => "gt",
            EnvOrigin::Tmux => "tmux",
            EnvOrigin::Account => "account",
            EnvOrigin::Harness => "harness",
            EnvOrigin::HarnessPass => "harness, env.pass",
            EnvOrigin::Role => "role",
            EnvOrigin::RoleSecret => "role, secret",
            EnvOrigin::TownPass => "town, env.pass",
            EnvOrigin::Inherited => "inherited",
            EnvOrigin::Other => "--env or a shell",
        }
    }
}

/// One variable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EnvName {
    pub name: String,
    pub origin: EnvOrigin,
}

/// Returns the variables that the agent's process was started with.
pub fn of_agent(town: &Town, identity: &Identity) -> Result<Vec<EnvName>> {
    let not_running = || Problem::not_found(format!("{identity} does not run"));
    let container = containers::of_agent(town, identity)?.ok_or_else(not_running)?;
    let pane = container.pane();
    let env = processes::details(pane.pane_pid()).env;
    if env.is_empty() {
        return Err(Problem::environment(format!(
            "the environment of process {} cannot be read",
            pane.pane_pid()
        ))
        .hint("on Linux it is in /proc, for the same user and root; macOS does not show it"));
    }
    let role = roles::resolve(town, identity.role(), identity.rig())?.value;
    // The harness may have been removed since.
    let preset = harnesses::resolve(town, &pane.tag_harness).ok();
    let preset = preset.map(|resolved| resolved.value);
    let name = |name: String| EnvName {
        origin: origin(&name, town, preset.as_ref(), &role),
        name,
    };
    Ok(env.into_keys().map(name).collect())
}

fn origin(name: &str, town: &Town, preset: Option<&Preset>, role: &RoleConfig) -> EnvOrigin {
    const OF_TMUX: &[&str] = &[
        "TERM",
        "TERM_PROGRAM",
        "TERM_PROGRAM_VERSION",
        "COLORTERM",
        "PWD",
    ];
    let env = preset.map(|preset| &preset.env);
    let is_of = |names: &[String]| names.iter().any(|own| own == name);
    let is_account = env.is_some_and(|env| env.config_dir.as_deref() == Some(name));
    match role.env.get(name) {
        _ if belongs_to_an_agent(name) => EnvOrigin::Gt,
        _ if name.starts_with("TMUX") || OF_TMUX.contains(&name) => EnvOrigin::Tmux,
        _ if is_account => EnvOrigin::Account,
        Some(EnvValue::Secret(_)) => EnvOrigin::RoleSecret,
        Some(EnvValue::Literal(_)) => EnvOrigin::Role,
        None if env.is_some_and(|env| is_of(&env.pass)) => EnvOrigin::HarnessPass,
        None if env.is_some_and(|env| env.set.contains_key(name) || is_of(&env.clear)) => {
            EnvOrigin::Harness
        }
        None if is_of(&town.settings().env.pass) => EnvOrigin::TownPass,
        None if is_inherited(name) => EnvOrigin::Inherited,
        None => EnvOrigin::Other,
    }
}

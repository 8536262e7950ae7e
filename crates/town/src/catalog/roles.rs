//! Roles with the changes of the town and its rigs.

use crate::base::files;
use crate::base::or_log::OrLog;
use crate::{Result, Town};
use gt_core::overlay::{Layer, Overlaid};
use gt_core::role::{OnExit, RoleConfig};
use gt_core::{Identity, Problem, Role};
use std::path::PathBuf;

/// Returns the role's settings for a rig, or for the whole town.
pub fn resolve(town: &Town, role: Role, rig: Option<&str>) -> Result<Overlaid<RoleConfig>> {
    let mut texts: Vec<(String, String)> = Vec::new();
    for path in override_paths(town, role, rig) {
        if let Some(text) = files::read_if_there(&path)? {
            texts.push((path.display().to_string(), text));
        }
    }
    let layers: Vec<Layer<'_>> = texts
        .iter()
        .map(|(source, text)| Layer { source, text })
        .collect();
    role.resolve(&layers)
}

/// Returns the role's setting for clean exits of the agent with this address. If the agent or its
/// role cannot be read, it is not respawned.
pub(crate) fn on_exit(town: &Town, address: &str) -> OnExit {
    let identity = Identity::from_address(address, town.registry());
    let role = identity.and_then(|agent| {
        let role = resolve(town, agent.role(), agent.rig());
        role.or_warn(format_args!("{address} is not started again"))
    });
    role.map_or(OnExit::Stop, |role| role.value.start.after_exit())
}

fn override_paths(town: &Town, role: Role, rig: Option<&str>) -> Vec<PathBuf> {
    let file = format!("{}.toml", role.as_str());
    let town_dir = Some(town.root().join("roles"));
    let rig_dir = rig.map(|rig| town.root().join(rig).join("roles"));
    town_dir
        .into_iter()
        .chain(rig_dir)
        .map(|dir| dir.join(&file))
        .collect()
}

/// Returns the name of an agent's container, by its role's pattern.
pub fn container_name(town: &Town, identity: &Identity) -> Result<String> {
    // Parsing TOML for every agent of a long list would cost more than tmux does.
    let overridden = override_paths(town, identity.role(), identity.rig())
        .iter()
        .any(|path| path.exists());
    if !overridden {
        return builtin_name(town, identity);
    }
    let config = resolve(town, identity.role(), identity.rig())?.value;
    container_by(town, identity, &config)
}

/// Returns the name of an agent's container, by role settings that the caller has.
pub fn container_by(town: &Town, identity: &Identity, config: &RoleConfig) -> Result<String> {
    let pattern = &config.session.pattern;
    let name = identity
        .container_by(pattern, town.registry())
        .ok_or_else(|| no_prefix(town, identity))?;
    if !gt_core::name::is_well_formed(&name) {
        return Err(Problem::usage(format!(
            "the pattern {pattern:?} of the role {} gives {name:?}, which cannot be a container's name",
            identity.role()
        ))
        .hint("{prefix}, {rig}, {role} and {name} are filled in; letters, digits, `_` and `-` may stand around them"));
    }
    identity.check_reading(&name, town.registry())?;
    Ok(name)
}

fn builtin_name(town: &Town, identity: &Identity) -> Result<String> {
    identity
        .container_name(town.registry())
        .ok_or_else(|| no_prefix(town, identity))
}

fn no_prefix(town: &Town, identity: &Identity) -> Problem {
    gt_core::identity::unknown_rig(identity.rig().unwrap_or_default(), town.registry())
}

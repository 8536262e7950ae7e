//! The agents that have a folder in the town, and their `agent.toml` files.

use crate::base::files;
use crate::{Result, Town};
use gt_core::overlay::broken_toml;
use gt_core::{Identity, Problem, Role, target};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Returns the agents whose folders exist, and the agents that every town (mayor, deacon, boot) and
/// every rig (witness, refinery) has.
pub fn on_disk(town: &Town) -> Vec<Identity> {
    let mut found: Vec<Identity> = [Role::Mayor, Role::Deacon, Role::Boot]
        .map(Identity::town)
        .to_vec();
    let dogs = files::folder_names(&town.root().join("deacon/dogs"));
    found.extend(
        dogs.into_iter()
            .filter(|name| name != "boot")
            .map(Identity::dog),
    );
    for rig in town.registry().rigs.keys() {
        found.push(Identity::of_rig(Role::Witness, rig));
        found.push(Identity::of_rig(Role::Refinery, rig));
        found.extend(workers(town, rig, Role::Crew));
        found.extend(workers(town, rig, Role::Polecat));
    }
    let agents = files::folder_names(&town.root().join("agents"));
    found.extend(agents.into_iter().map(Identity::agent));
    found
}

/// Returns whether the agent exists without being created first. Always true for the overseer, and
/// for the agent of a task, which is created together with its work. Looks only at its own folder.
pub fn has(town: &Town, identity: &Identity) -> bool {
    let has_rig = || {
        let rig = identity.rig().unwrap_or_default();
        town.registry().rigs.contains_key(rig)
    };
    match identity.role() {
        Role::Task | Role::Overseer | Role::Mayor | Role::Deacon | Role::Boot => true,
        Role::Witness | Role::Refinery => has_rig(),
        Role::Crew | Role::Polecat => {
            has_rig() && identity.check_new(town.registry()).is_ok() && has_folder(town, identity)
        }
        Role::Dog => identity.name() != Some("boot") && has_folder(town, identity),
        Role::Agent => has_folder(town, identity),
    }
}

fn has_folder(town: &Town, identity: &Identity) -> bool {
    let (Some(folder), Some(name)) = (folder(identity), identity.name()) else {
        return false;
    };
    !name.starts_with('.') && town.root().join(folder).join(name).is_dir()
}

/// Returns the folder that holds the folders of the agents of this role, relative to the town;
/// `None` for roles with one agent.
fn folder(identity: &Identity) -> Option<PathBuf> {
    match identity.role() {
        Role::Crew => Some(Path::new(identity.rig()?).join("crew")),
        Role::Polecat => Some(Path::new(identity.rig()?).join("polecats")),
        Role::Dog => Some(PathBuf::from("deacon/dogs")),
        Role::Agent => Some(PathBuf::from("agents")),
        _ => None,
    }
}

/// Returns the agents of [`on_disk`] that a short target could mean: a name, `rig/name`, a
/// container's name, or the name of a role with one agent for each rig. Looks only at their folders.
pub fn named(town: &Town, text: &str) -> Vec<Identity> {
    let mut found = Vec::new();
    let rigs: Vec<&String> = town.registry().rigs.keys().collect();
    match text.split_once('/') {
        Some((rig, name)) => {
            found.extend([Identity::crew(rig, name), Identity::polecat(rig, name)]);
        }
        None => {
            found.extend([Identity::dog(text), Identity::agent(text)]);
            for rig in rigs {
                found.extend([Identity::crew(rig, text), Identity::polecat(rig, text)]);
                let of_rig = [Role::Witness, Role::Refinery];
                let of_rig = of_rig.into_iter().filter(|role| role.as_str() == text);
                found.extend(of_rig.map(|role| Identity::of_rig(role, rig)));
            }
        }
    }
    if let Some(identity) = Identity::from_container(text, town.registry()) {
        found.push(identity);
    }
    found.retain(|identity| identity.role() != Role::Task && has(town, identity));
    found.dedup();
    found
}

/// Returns the error for an agent that does not run. If there is no such agent, a hint names similar
/// ones.
pub fn not_running(town: &Town, identity: &Identity) -> Problem {
    let problem = Problem::not_found(format!("{identity} is not running"));
    with_similar(town, problem, identity)
}

/// Adds a hint with the similar agents of the rig, if there is no such agent.
pub fn with_similar(town: &Town, problem: Problem, identity: &Identity) -> Problem {
    let known = on_disk(town);
    match identity.name() {
        Some(name) if identity.role() != Role::Task && !known.contains(identity) => {
            let of_rig = known.iter().filter(|agent| agent.rig() == identity.rig());
            target::with_similar(problem, name, of_rig)
        }
        _ => problem,
    }
}

/// Returns the crew workers or polecats of a rig that have folders.
pub fn workers(town: &Town, rig: &str, role: Role) -> Vec<Identity> {
    let (folder, make): (_, fn(&str, String) -> Identity) = match role {
        Role::Crew => ("crew", |rig, name| Identity::crew(rig, name)),
        _ => ("polecats", |rig, name| Identity::polecat(rig, name)),
    };
    files::folder_names(&town.root().join(rig).join(folder))
        .into_iter()
        .map(|name| make(rig, name))
        .filter(|identity| identity.check_new(town.registry()).is_ok())
        .collect()
}

/// Returns the agent whose folder contains this path; `None` if there is none or the path is
/// missing. Symbolic links are resolved on both sides.
pub fn by_folder(town: &Town, dir: &Path) -> Option<Identity> {
    let root = town.root().canonicalize().ok()?;
    let dir = dir.canonicalize().ok()?;
    let inside = dir.strip_prefix(&root).ok()?;
    let words: Vec<&str> = inside
        .iter()
        .map(|word| word.to_str().unwrap_or(""))
        .collect();
    let rig = |rig: &str| town.registry().rigs.contains_key(rig);
    let found = match words.as_slice() {
        ["mayor", ..] => Identity::town(Role::Mayor),
        ["deacon", "dogs", "boot", ..] => Identity::town(Role::Boot),
        ["deacon", "dogs", name, ..] => Identity::dog(*name),
        ["deacon", ..] => Identity::town(Role::Deacon),
        ["agents", slug, ..] => Identity::agent(*slug),
        [name, "crew", worker, ..] if rig(name) => Identity::crew(*name, *worker),
        [name, "polecats", worker, ..] if rig(name) => Identity::polecat(*name, *worker),
        [name, "witness", ..] if rig(name) => Identity::of_rig(Role::Witness, *name),
        [name, "refinery", ..] if rig(name) => Identity::of_rig(Role::Refinery, *name),
        _ => return None,
    };
    Some(found)
}

/// The file that `gt agent new` writes about an `agent_{slug}`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AgentFile {
    /// The folder it works in; if absent, a folder inside the town.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work_dir: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub harness: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
}

fn agent_path(town: &Town, identity: &Identity) -> PathBuf {
    let slug = identity.name().unwrap_or_default();
    town.root().join("agents").join(slug).join("agent.toml")
}

pub fn agent_file(town: &Town, identity: &Identity) -> Result<Option<AgentFile>> {
    let path = agent_path(town, identity);
    let Some(text) = files::read_if_there(&path)? else {
        return Ok(None);
    };
    toml::from_str(&text)
        .map(Some)
        .map_err(|error| broken_toml(&path.display().to_string(), &text, &error))
}

pub fn write_agent_file(town: &Town, identity: &Identity, file: &AgentFile) -> Result<()> {
    let text = toml::to_string(file)
        .map_err(|error| Problem::failed("cannot write the agent's file").caused_by(error))?;
    files::write_whole(&agent_path(town, identity), text.as_bytes())
}

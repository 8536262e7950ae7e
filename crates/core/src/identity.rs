//! The identity of an agent, its address and its container name.
//!
//! An [`Identity`] is a role, with a rig and a name if the role has them. It has an address
//! (`gastown/crew/max`), and its container has a tmux name (`gt-crew-max`). Only this module
//! formats and parses either of them. Parsing a container's name is the fallback for containers
//! without tags; see the tag `@gt_agent`.

use crate::name;
use crate::problem::Problem;
use crate::registry::Registry;
use crate::role::{Role, RoleScope};
use crate::similar;
use serde::{Serialize, Serializer};
use std::fmt;

/// An agent: role, rig and name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity {
    role: Role,
    rig: Option<String>,
    name: Option<String>,
}

impl Identity {
    /// Creates a town agent without a name: mayor, deacon, boot, overseer.
    pub fn town(role: Role) -> Self {
        Identity {
            role,
            rig: None,
            name: None,
        }
    }

    /// Creates a rig's witness or refinery.
    pub fn of_rig(role: Role, rig: impl Into<String>) -> Self {
        Identity {
            role,
            rig: Some(rig.into()),
            name: None,
        }
    }

    pub fn crew(rig: impl Into<String>, name: impl Into<String>) -> Self {
        Identity {
            role: Role::Crew,
            rig: Some(rig.into()),
            name: Some(name.into()),
        }
    }

    pub fn polecat(rig: impl Into<String>, name: impl Into<String>) -> Self {
        Identity {
            role: Role::Polecat,
            rig: Some(rig.into()),
            name: Some(name.into()),
        }
    }

    pub fn dog(name: impl Into<String>) -> Self {
        Identity {
            role: Role::Dog,
            rig: None,
            name: Some(name.into()),
        }
    }

    pub fn agent(slug: impl Into<String>) -> Self {
        Identity {
            role: Role::Agent,
            rig: None,
            name: Some(slug.into()),
        }
    }

    /// Creates the worker of one item of the board. The rig follows from the item's prefix.
    pub fn task(id: impl Into<String>, registry: &Registry) -> Self {
        let id = id.into();
        Identity {
            role: Role::Task,
            rig: registry.split(&id).map(|(rig, _)| rig.to_owned()),
            name: Some(id),
        }
    }

    pub fn role(&self) -> Role {
        self.role
    }

    pub fn rig(&self) -> Option<&str> {
        self.rig.as_deref()
    }

    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns the display name: the name, or the role if there is none.
    pub fn short_name(&self) -> &str {
        self.name.as_deref().unwrap_or(self.role.as_str())
    }

    /// Returns the address, as used for mail, `GT_ROLE` and the command line.
    pub fn address(&self) -> String {
        let rig = self.rig.as_deref().unwrap_or_default();
        let name = self.name.as_deref().unwrap_or_default();
        match self.role {
            Role::Mayor | Role::Deacon | Role::Boot | Role::Overseer => {
                self.role.as_str().to_owned()
            }
            Role::Dog => format!("deacon/dogs/{name}"),
            Role::Witness | Role::Refinery => format!("{rig}/{}", self.role.as_str()),
            Role::Crew => format!("{rig}/crew/{name}"),
            Role::Polecat => format!("{rig}/polecats/{name}"),
            Role::Agent => format!("agent/{name}"),
            Role::Task => format!("task/{name}"),
        }
    }

    /// Parses an address. Returns `None` for anything else, including short forms such as
    /// `gastown/max`, which [`crate::target`] resolves against existing agents.
    pub fn from_address(address: &str, registry: &Registry) -> Option<Self> {
        let address = address.strip_suffix('/').unwrap_or(address);
        let parts: Vec<&str> = address.split('/').collect();
        if parts.iter().any(|part| part.is_empty()) {
            return None;
        }
        match parts.as_slice() {
            [word] | ["hq", word] => match Role::from_word(word)? {
                role @ (Role::Mayor | Role::Deacon | Role::Boot | Role::Overseer) => {
                    Some(Identity::town(role))
                }
                _ => None,
            },
            ["deacon", "boot"] | ["deacon", "dogs" | "dog", "boot"] => {
                Some(Identity::town(Role::Boot))
            }
            ["deacon", "dogs" | "dog", name] => Some(Identity::dog(*name)),
            ["agent", slug] => Some(Identity::agent(*slug)),
            ["task", id] => Some(Identity::task(*id, registry)),
            [rig, "witness"] => Some(Identity::of_rig(Role::Witness, *rig)),
            [rig, "refinery"] => Some(Identity::of_rig(Role::Refinery, *rig)),
            [rig, "crew", name] => Some(Identity::crew(*rig, *name)),
            [rig, "polecats" | "polecat", name] => Some(Identity::polecat(*rig, *name)),
            _ => None,
        }
    }

    /// Returns the container's name by the built-in naming scheme, or `None` if the agent's rig is
    /// not registered.
    pub fn container_name(&self, registry: &Registry) -> Option<String> {
        let pattern = match self.role {
            Role::Mayor | Role::Deacon | Role::Boot | Role::Overseer => "hq-{role}",
            Role::Dog => "hq-dog-{name}",
            Role::Witness | Role::Refinery => "{prefix}-{role}",
            Role::Crew => "{prefix}-crew-{name}",
            Role::Polecat => "{prefix}-{name}",
            Role::Agent => "agent_{name}",
            Role::Task => "{name}-az",
        };
        self.container_by(pattern, registry)
    }

    /// Returns the container's name by a pattern, which a role's settings may override.
    pub fn container_by(&self, pattern: &str, registry: &Registry) -> Option<String> {
        let prefix = match (self.role.scope(), self.rig.as_deref()) {
            (RoleScope::Rig, Some(rig)) => registry.prefix_of(rig)?,
            (RoleScope::Rig, None) => return None,
            _ => "hq",
        };
        let name = pattern
            .replace("{prefix}", prefix)
            .replace("{rig}", self.rig.as_deref().unwrap_or_default())
            .replace("{role}", self.role.as_str())
            .replace("{name}", self.name.as_deref().unwrap_or_default());
        // tmux replaces dots with underscores. We do it first, so that the session gets exactly
        // the name that we ask for. The tag keeps the dotted id.
        Some(name.replace('.', "_"))
    }

    /// Parses a container's name. Returns `None` if no naming rule matches.
    pub fn from_container(container: &str, registry: &Registry) -> Option<Self> {
        if !name::is_well_formed(container) {
            return None;
        }
        if let Some(rest) = container.strip_prefix("hq-") {
            return match rest.strip_prefix("dog-") {
                Some("") => None,
                Some(dog) => Some(Identity::dog(dog)),
                None => match Role::from_word(rest)? {
                    role @ (Role::Mayor | Role::Deacon | Role::Boot | Role::Overseer) => {
                        Some(Identity::town(role))
                    }
                    _ => None,
                },
            };
        }
        if let Some(slug) = container.strip_prefix("agent_") {
            return (!slug.is_empty()).then(|| Identity::agent(slug));
        }
        let (rig, rest) = registry.split(container)?;
        if let Some(id) = container.strip_suffix("-az") {
            // `gt-az` alone is not an item of the rig `gt` but a polecat `az`.
            if registry.split(id).is_some() {
                return Some(Identity::task(id, registry));
            }
        }
        Some(match rest {
            "witness" => Identity::of_rig(Role::Witness, rig),
            "refinery" => Identity::of_rig(Role::Refinery, rig),
            _ => match rest.strip_prefix("crew-") {
                Some("") => return None,
                Some(name) => Identity::crew(rig, name),
                None => Identity::polecat(rig, rest),
            },
        })
    }

    /// Fails if no agent may be created under this identity: a name is malformed, or the
    /// container's name would be parsed as another agent.
    pub fn check_new(&self, registry: &Registry) -> Result<(), Problem> {
        match (self.role, self.name.as_deref()) {
            (Role::Agent, Some(slug)) => name::check_slug(slug)?,
            (Role::Task, Some(id)) => name::check_work_id(id)?,
            (_, Some(agent)) => name::check_agent(agent)?,
            (_, None) => {}
        }
        let Some(container) = self.container_name(registry) else {
            let rig = self.rig.as_deref().unwrap_or("?");
            return Err(unknown_rig(rig, registry));
        };
        // The container's name is longer than the agent's.
        name::check_container(&container)?;
        self.check_reading(&container, registry)
    }

    /// Fails if the container's name would be parsed as another agent.
    pub fn check_reading(&self, container: &str, registry: &Registry) -> Result<(), Problem> {
        match Identity::from_container(container, registry) {
            // A dotted id is parsed back with underscores; its tag has the exact id.
            Some(other) if other != *self && other.role != Role::Task => {
                Err(self.claimed_by(container, &other))
            }
            Some(other) if other.role == Role::Task && self.role != Role::Task => {
                Err(self.claimed_by(container, &other))
            }
            _ => Ok(()),
        }
    }

    fn claimed_by(&self, container: &str, other: &Identity) -> Problem {
        Problem::conflict(format!(
            "{self} would live in the container {container}, which reads as {other}"
        ))
        .hint("choose a name that no other naming rule can claim")
    }
}

/// Returns the error for a rig that does not exist.
pub fn unknown_rig(rig: &str, registry: &Registry) -> Problem {
    let problem = Problem::not_found(format!("there is no rig called {rig:?}"));
    if registry.rigs.is_empty() {
        return problem.hint("add one with `gt rig add PATH-OR-URL`");
    }
    let known: Vec<&str> = registry.rigs.keys().map(String::as_str).collect();
    let similar = similar::hint(rig, known.iter().copied());
    let problem = similar.into_iter().fold(problem, Problem::hint);
    problem.hint(format!("the rigs of this town: {}", known.join(", ")))
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.address())
    }
}

impl Serialize for Identity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.address())
    }
}

#[cfg(test)]
mod tests;

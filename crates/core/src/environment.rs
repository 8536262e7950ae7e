//! The environment of an agent.
//!
//! It must be complete before the process starts: variables that are set on a tmux session later
//! do not reach a running process. Some values are secret, so the engine never puts them on a
//! command line; see [`crate::startup`].

use crate::harness::Preset;
use crate::identity::Identity;
use crate::role::Role;
use crate::session::SessionId;
use std::collections::BTreeMap;

/// The input for the standard variables.
#[derive(Clone, Debug)]
pub struct EnvironmentFacts<'a> {
    pub identity: &'a Identity,
    pub container: &'a str,
    pub session: SessionId,
    pub town_root: &'a str,
    pub socket: &'a str,
    pub preset: &'a Preset,
    /// The folder given to the program as its configuration folder.
    pub config_dir: Option<&'a str>,
    pub process_names: &'a [String],
}

/// Returns whether a variable belongs to one agent and must not leak into another. A `gt` that an
/// agent calls may start the next agent, or the tmux server.
pub fn belongs_to_an_agent(variable: &str) -> bool {
    const OWN: &[&str] = &[
        "BD_ACTOR",
        "BEADS_DIR",
        "CLAUDECODE",
        "GIT_AUTHOR_NAME",
        "GIT_CEILING_DIRECTORIES",
    ];
    variable.starts_with("GT_") || OWN.contains(&variable)
}

/// Returns the environment of an agent. Later sources override earlier ones: preset, passed
/// variables, role, caller. The identity overrides all.
pub fn agent_environment(
    facts: &EnvironmentFacts<'_>,
    passed: &[(String, String)],
    role_env: &BTreeMap<String, String>,
    extra: &[(String, String)],
) -> BTreeMap<String, String> {
    let identity = facts.identity;
    let address = identity.address();
    let mut env = BTreeMap::new();
    for name in &facts.preset.env.clear {
        env.insert(name.clone(), String::new());
    }
    // Cleared for every program, because each changes how a nested program behaves.
    for name in ["CLAUDECODE", "NODE_OPTIONS"] {
        env.insert(name.to_owned(), String::new());
    }
    env.extend(facts.preset.env.set.clone());
    env.extend(passed.iter().cloned());
    env.extend(role_env.clone());
    env.extend(extra.iter().cloned());

    // The identity cannot be overridden: everything else is looked up by it.
    let mut set = |name: &str, value: &str| {
        env.insert(name.to_owned(), value.to_owned());
    };
    set("GT_ROLE", &address);
    set("BD_ACTOR", &address);
    set("GT_ROOT", facts.town_root);
    set("GT_AGENT", &facts.preset.name);
    set("GT_PROCESS_NAMES", &facts.process_names.join(","));
    set("GT_SESSION", facts.container);
    set("GT_SESSION_UUID", &facts.session.to_string());
    set("GT_TMUX_SOCKET", facts.socket);
    set("GIT_AUTHOR_NAME", identity.short_name());
    set("GIT_CEILING_DIRECTORIES", facts.town_root);
    if let Some(rig) = identity.rig() {
        set("GT_RIG", rig);
    }
    match (identity.role(), identity.name()) {
        (Role::Polecat, Some(name)) => set("GT_POLECAT", name),
        (Role::Crew, Some(name)) => set("GT_CREW", name),
        _ => {}
    }
    if let (Some(variable), Some(dir)) = (&facts.preset.env.config_dir, facts.config_dir) {
        set(variable, dir);
    }
    env
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_variables_are_there() {
        let identity = Identity::polecat("gastown", "Toast");
        let preset = crate::harness::resolve("claude", None).unwrap().value;
        let names = vec!["node".to_owned(), "claude".to_owned()];
        let facts = EnvironmentFacts {
            identity: &identity,
            container: "gt-Toast",
            session: "0193a2b4-c5d6-7abc-8def-0123456789ab".parse().unwrap(),
            town_root: "/home/user/gt",
            socket: "default",
            preset: &preset,
            config_dir: Some("/home/user/gt/.accounts/default"),
            process_names: &names,
        };
        let extra = [
            ("GT_ROLE".to_owned(), "mayor".to_owned()),
            ("K".to_owned(), "v".to_owned()),
        ];
        let env = agent_environment(&facts, &[], &BTreeMap::new(), &extra);
        let check = |name: &str, value: &str| {
            assert_eq!(env.get(name).map(String::as_str), Some(value), "{name}");
        };
        check("GT_ROLE", "gastown/polecats/Toast");
        check("GT_RIG", "gastown");
        check("GT_POLECAT", "Toast");
        check("GT_ROOT", "/home/user/gt");
        check("GT_AGENT", "claude");
        check("GT_PROCESS_NAMES", "node,claude");
        check("GT_SESSION", "gt-Toast");
        check("BD_ACTOR", "gastown/polecats/Toast");
        check("GIT_AUTHOR_NAME", "Toast");
        check("CLAUDE_CONFIG_DIR", "/home/user/gt/.accounts/default");
        check("CLAUDECODE", "");
        check("NODE_OPTIONS", "");
        check("GIT_CEILING_DIRECTORIES", "/home/user/gt");
        check("K", "v");
    }
}

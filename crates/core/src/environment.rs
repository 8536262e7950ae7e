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

/// Variables that every agent gets, with the value of the caller: locale, terminal, folders, proxies
/// and certificates, and the places of common toolchains. None of them usually holds a secret.
/// `docs/security.md` lists them.
const INHERITED: &[&str] = &[
    // The account and its session.
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "PATH",
    "HOSTNAME",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    "TMUX_TMPDIR",
    "EDITOR",
    "VISUAL",
    "PAGER",
    "LESS",
    // Settings of shells, for tasks.
    "ENV",
    "ZDOTDIR",
    // The terminal.
    "TERM",
    "COLORTERM",
    "TERM_PROGRAM",
    "TERM_PROGRAM_VERSION",
    "NO_COLOR",
    // The desktop, for notifications.
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "DBUS_SESSION_BUS_ADDRESS",
    // Git over ssh.
    "SSH_AUTH_SOCK",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_AUTHOR_EMAIL",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GNUPGHOME",
    // The network.
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "NIX_SSL_CERT_FILE",
    // Toolchains.
    "CARGO_HOME",
    "CARGO_TARGET_DIR",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "RUSTFLAGS",
    "SCCACHE_DIR",
    "CCACHE_DIR",
    "GOPATH",
    "GOROOT",
    "GOBIN",
    "GOCACHE",
    "GOMODCACHE",
    "GOFLAGS",
    "JAVA_HOME",
    "MAVEN_HOME",
    "GRADLE_HOME",
    "GRADLE_USER_HOME",
    "ANDROID_HOME",
    "ANDROID_SDK_ROOT",
    "SDKMAN_DIR",
    "NVM_DIR",
    "NVM_BIN",
    "FNM_DIR",
    "VOLTA_HOME",
    "PNPM_HOME",
    "BUN_INSTALL",
    "DENO_DIR",
    "NPM_CONFIG_PREFIX",
    "NPM_CONFIG_CACHE",
    "PYENV_ROOT",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "CONDA_DEFAULT_ENV",
    "PIP_CACHE_DIR",
    "UV_CACHE_DIR",
    "PYTHONPATH",
    "RBENV_ROOT",
    "GEM_HOME",
    "GEM_PATH",
    "BUNDLE_PATH",
    "ASDF_DIR",
    "ASDF_DATA_DIR",
    "HOMEBREW_PREFIX",
    "NIX_PATH",
    "NIX_PROFILES",
    "DOTNET_ROOT",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
    "PKG_CONFIG_PATH",
    "CMAKE_PREFIX_PATH",
    "CC",
    "CXX",
    "CFLAGS",
    "CXXFLAGS",
    "LDFLAGS",
    "MAKEFLAGS",
];

/// Beginnings of further such names.
const INHERITED_PREFIXES: &[&str] = &["LC_", "XDG_", "MISE_"];

/// Returns whether every agent, and the tmux server, gets a variable of this name from the caller.
pub fn is_inherited(variable: &str) -> bool {
    INHERITED.contains(&variable)
        || INHERITED_PREFIXES
            .iter()
            .any(|prefix| variable.starts_with(prefix))
}

/// Returns the inherited names, the prefixes with a star.
pub fn inherited_names() -> Vec<String> {
    let prefixes = INHERITED_PREFIXES.iter().map(|prefix| format!("{prefix}*"));
    let names = INHERITED.iter().map(|name| (*name).to_owned());
    names.chain(prefixes).collect()
}

/// Returns whether a variable does not reach the tmux server that a `gt` starts: all agents would
/// get it, those of other callers included.
pub fn stays_with_the_caller(variable: &str) -> bool {
    !is_inherited(variable) || belongs_to_an_agent(variable)
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

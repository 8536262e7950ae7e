//! What may be wrong with a machine or a town, and how to put it right.
//!
//! Each check is one function that gives findings; a fix is only ever something
//! that loses nothing.

mod items;
mod unattended;

use crate::containers::{self, Owner};
use crate::{
    Result, Surroundings, Town, directory, git::Git, harnesses, pidfile, rig, roles, stop, usage,
};
use gt_core::health::Health;
use gt_core::{Problem, Role};
use gt_tmux::{Command, ErrorKind, Server, Socket};
use serde::Serialize;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Ok,
    Warning,
    Error,
}

#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    pub check: &'static str,
    pub status: Status,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    pub fixable: bool,
}

impl Finding {
    fn new(check: &'static str, status: Status, message: impl Into<String>) -> Self {
        Finding {
            check,
            status,
            message: message.into(),
            hint: None,
            fixable: false,
        }
    }

    fn ok(check: &'static str, message: impl Into<String>) -> Self {
        Self::new(check, Status::Ok, message)
    }

    fn warning(check: &'static str, message: impl Into<String>) -> Self {
        Self::new(check, Status::Warning, message)
    }

    fn error(check: &'static str, message: impl Into<String>) -> Self {
        Self::new(check, Status::Error, message)
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    fn fixable(mut self) -> Self {
        self.fixable = true;
        self
    }

    fn of(check: &'static str, problem: &Problem) -> Self {
        let causes: Vec<&str> = problem.causes().iter().map(String::as_str).collect();
        let because = if causes.is_empty() {
            String::new()
        } else {
            format!(": {}", causes.join(": "))
        };
        let mut finding = Self::error(check, format!("{problem}{because}"));
        finding.hint = problem.hints().first().cloned();
        finding
    }
}

/// Examines everything. A town that cannot be opened is a finding like any other.
pub fn examine(town: Result<Town>, around: &Surroundings, fix: bool) -> Vec<Finding> {
    let mut findings = machine(around);
    match town {
        Ok(town) => {
            let checks: [fn(&Town, bool) -> Vec<Finding>; 15] = [
                check_socket,
                check_permissions,
                check_rigs,
                items::check_work,
                items::check_beads,
                items::check_unread,
                check_roles,
                check_harnesses,
                check_prices,
                check_names,
                check_agents,
                check_hook,
                check_pids,
                unattended::check_hook_log,
                unattended::check_saves,
            ];
            findings.push(Finding::ok("town", town.root().display().to_string()));
            findings.extend(checks.iter().flat_map(|check| check(&town, fix)));
        }
        Err(problem) => findings.push(Finding::of("town", &problem)),
    }
    findings
}

fn machine(around: &Surroundings) -> Vec<Finding> {
    let tmux = match Server::new(Socket::Default).version() {
        Ok(version) => match version.check_minimum() {
            Ok(()) => Finding::ok("tmux", version.to_string()),
            Err(error) => {
                Finding::error("tmux", error.to_string()).hint("install tmux 3.2 or later")
            }
        },
        Err(error) if error.kind() == ErrorKind::NotInstalled => {
            Finding::error("tmux", "tmux is not installed")
                .hint("`apt-get install tmux` or `brew install tmux`")
        }
        Err(error) => Finding::error("tmux", error.to_string()),
    };
    let git = match Git::at(Path::new("/"), around).run(["--version"]) {
        Ok(version) => Finding::ok("git", version),
        Err(problem) => Finding::of("git", &problem),
    };
    vec![tmux, git]
}

fn check_socket(town: &Town, _fix: bool) -> Vec<Finding> {
    let path = town.server().socket_path();
    let shown = path.display().to_string();
    if path.as_os_str().len() > 100 {
        return vec![
            Finding::error(
                "socket",
                format!("the path {shown} is too long for a socket"),
            )
            .hint("choose a shorter one under [tmux] in town.toml"),
        ];
    }
    let Ok(meta) = path.metadata() else {
        return vec![Finding::ok(
            "socket",
            format!("{shown} (no server runs yet)"),
        )];
    };
    if meta.uid() != rustix::process::geteuid().as_raw() {
        return vec![
            Finding::error("socket", format!("{shown} belongs to somebody else"))
                .hint("choose another one under [tmux] in town.toml"),
        ];
    }
    match containers::list(town) {
        Ok(all) => vec![Finding::ok(
            "socket",
            match all.len() {
                1 => format!("{shown} (1 session)"),
                number => format!("{shown} ({number} sessions)"),
            },
        )],
        Err(problem) => vec![Finding::of("socket", &problem)],
    }
}

/// Folders that hold messages, prompts or environment are the owner's alone.
fn check_permissions(town: &Town, fix: bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    for dir in [
        town.root().to_owned(),
        town.runtime_dir(),
        town.root().join(".sessions"),
    ] {
        let Ok(meta) = dir.metadata() else { continue };
        let mode = meta.permissions().mode() & 0o777;
        if mode & 0o077 == 0 {
            continue;
        }
        let message = format!("{} is open to others ({mode:o})", dir.display());
        let fixed =
            fix && std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o700)).is_ok();
        findings.push(if fixed {
            Finding::ok("permissions", format!("{message}; closed now"))
        } else {
            Finding::warning("permissions", message)
                .hint(format!("chmod 700 {}", dir.display()))
                .fixable()
        });
    }
    if findings.is_empty() {
        findings.push(Finding::ok("permissions", "the town is yours alone"));
    }
    findings
}

fn check_rigs(town: &Town, _fix: bool) -> Vec<Finding> {
    let registry = town.registry();
    let mut findings = Vec::new();
    for (name, entry) in &registry.rigs {
        let mut others = registry.clone();
        others.rigs.remove(name);
        if let Err(problem) = others.check_new(name, &entry.beads.prefix) {
            findings.push(Finding::of("rigs", &problem));
        }
        let repository = rig::repository(town, name);
        if !Git::at(&repository, town.around()).says(["rev-parse", "--git-dir"]) {
            findings.push(
                Finding::error(
                    "rigs",
                    format!("{name}: {} is not a repository", repository.display()),
                )
                .hint(format!(
                    "git clone --bare {} {}",
                    crate::git::without_password(&entry.git_url),
                    repository.display()
                )),
            );
        }
    }
    if findings.is_empty() {
        findings.push(Finding::ok(
            "rigs",
            format!("{} registered", registry.rigs.len()),
        ));
    }
    findings
}

fn check_roles(town: &Town, _fix: bool) -> Vec<Finding> {
    let rigs =
        std::iter::once(None).chain(town.registry().rigs.keys().map(|rig| Some(rig.as_str())));
    let mut findings: Vec<Finding> = rigs
        .flat_map(|rig| Role::all().map(move |role| (rig, role)))
        .filter_map(|(rig, role)| roles::resolve(town, role, rig).err())
        .map(|problem| Finding::of("roles", &problem))
        .collect();
    findings.dedup_by(|a, b| a.message == b.message);
    if findings.is_empty() {
        findings.push(Finding::ok("roles", "all can be read"));
    }
    findings
}

fn check_harnesses(town: &Town, _fix: bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut installed = Vec::new();
    for name in harnesses::names(town) {
        match harnesses::resolve(town, &name) {
            Ok(preset) => {
                if town
                    .around()
                    .find_program(&preset.value.command.program)
                    .is_some()
                {
                    installed.push(name);
                }
            }
            Err(problem) => findings.push(Finding::of("harnesses", &problem)),
        }
    }
    let default = harnesses::choose(town, None, &gt_core::role::RoleConfig::default());
    if installed.contains(&default) {
        findings.push(Finding::ok(
            "harnesses",
            format!("installed: {}", installed.join(", ")),
        ));
    } else {
        findings.push(
            Finding::warning(
                "harnesses",
                format!("the town's default, {default}, is not installed here"),
            )
            .hint("install it, or set `harness` in town.toml; `gt harness list` shows the choice"),
        );
    }
    findings
}

/// Folders whose names could not be given today.
fn check_prices(town: &Town, _fix: bool) -> Vec<Finding> {
    vec![match usage::prices(town) {
        Ok(_) => Finding::ok("prices", "all can be read"),
        Err(problem) => Finding::of("prices", &problem),
    }]
}

fn check_names(town: &Town, _fix: bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    for rig in town.registry().rigs.keys() {
        for folder in ["crew", "polecats"] {
            let dir = town.root().join(rig).join(folder);
            let role = if folder == "crew" {
                Role::Crew
            } else {
                Role::Polecat
            };
            let good = directory::workers(town, rig, role);
            for name in crate::files::folder_names(&dir) {
                if good.iter().all(|identity| identity.name() != Some(&name)) {
                    findings.push(
                        Finding::warning(
                            "names",
                            format!("{} cannot be an agent's name", dir.join(&name).display()),
                        )
                        .hint("rename the folder"),
                    );
                }
            }
        }
    }
    if findings.is_empty() {
        findings.push(Finding::ok("names", "every agent has a name of its own"));
    }
    findings
}

fn check_agents(town: &Town, _fix: bool) -> Vec<Finding> {
    let containers = match containers::list(town) {
        Ok(containers) => containers,
        Err(problem) => return vec![Finding::of("agents", &problem)],
    };
    let agents =
        match crate::agents::list_among(town, &containers, crate::agents::Wanted::default()) {
            Ok(agents) => agents,
            Err(problem) => return vec![Finding::of("agents", &problem)],
        };
    let mut findings: Vec<Finding> = agents
        .iter()
        .filter(|agent| agent.health != Health::Healthy)
        .map(|agent| {
            Finding::warning(
                "agents",
                format!("{}: {}", agent.identity, agent.health.words()),
            )
            .hint(format!(
                "`gt peek {0}` shows its last screen, `gt start {0}` starts it again",
                agent.identity
            ))
        })
        .collect();
    let others = containers
        .iter()
        .filter(|c| matches!(c.owner(), Owner::OtherTown(_)))
        .count();
    if others > 0 {
        findings.push(
            Finding::warning(
                "agents",
                format!("{others} containers of other towns are on the same tmux server"),
            )
            .hint("give each town a server of its own: `socket` under [tmux] in town.toml"),
        );
    }
    findings.extend(containers.iter().filter_map(|container| {
        match container.owner() {
            Owner::Named(identity) => Some(
                Finding::warning(
                    "agents",
                    format!(
                        "the tmux session {} is named like {identity} but was not started by gt",
                        container.name()
                    ),
                )
                .hint("gt leaves it alone; rename it if it is yours"),
            ),
            _ => None,
        }
    }));
    if findings.is_empty() {
        findings.push(Finding::ok(
            "agents",
            format!("{} run, all well", agents.len()),
        ));
    }
    findings
}

/// The hook that brings agents back: a user's own `set-hook` may have wiped it.
fn check_hook(town: &Town, fix: bool) -> Vec<Finding> {
    let wanted = containers::list(town).is_ok_and(|all| {
        all.iter()
            .any(|container| container.pane().tag_auto_respawn)
    });
    if !wanted {
        return Vec::new();
    }
    let hooks = town
        .server()
        .run(Command::new("show-hooks").args(["-g", "pane-died"]));
    if hooks.is_ok_and(|text| text.contains("@gt_auto_respawn")) {
        return vec![Finding::ok("respawn", "agents that die are brought back")];
    }
    let message = "tmux's pane-died hook of gt is gone: agents that die stay dead";
    if fix && town.server().run(crate::look::respawn_hook()).is_ok() {
        return vec![Finding::ok("respawn", format!("{message}; set again"))];
    }
    vec![
        Finding::warning("respawn", message)
            .hint("`gt doctor --fix` sets it again")
            .fixable(),
    ]
}

/// PID files whose containers are gone: stray processes, or files to forget.
fn check_pids(town: &Town, fix: bool) -> Vec<Finding> {
    let lost = match pidfile::lost(town, || containers::list(town)) {
        Ok(lost) => lost,
        Err(problem) => return vec![Finding::of("pids", &problem)],
    };
    if lost.is_empty() {
        return vec![Finding::ok("pids", "no stray processes")];
    }
    if fix {
        return match stop::end_orphans(town, stop::GRACE) {
            Ok(ended) => vec![Finding::ok(
                "pids",
                format!(
                    "ended {} stray agents, forgot {} files",
                    ended.len(),
                    lost.len() - ended.len()
                ),
            )],
            Err(problem) => vec![Finding::of("pids", &problem)],
        };
    }
    lost.iter()
        .map(|tracked| match &tracked.alive {
            Some(_) => Finding::warning(
                "pids",
                format!(
                    "process {} outlived its container {}",
                    tracked.pid, tracked.container
                ),
            )
            .hint("`gt doctor --fix` or `gt down` ends it")
            .fixable(),
            None => Finding::warning(
                "pids",
                format!("the PID file of {} is left over", tracked.container),
            )
            .fixable(),
        })
        .collect()
}

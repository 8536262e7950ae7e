//! Agents: their folders, their containers and their processes.

use super::DoctorFinding;
use crate::Town;
use crate::agents::listing::{self, AgentFilter};
use crate::agents::sandbox::bubblewrap;
use crate::base::processes;
use crate::catalog::directory;
use crate::lifecycle::stop;
use crate::terminal::containers::{self, Owner};
use crate::terminal::pidfile;
use gt_core::Role;
use gt_core::plural::counted;
use gt_core::sandbox::DefaultSandbox;

/// Finds folders whose names are not valid agent names.
pub(super) fn check_names(town: &Town, _fix: bool) -> Vec<DoctorFinding> {
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
            for name in crate::base::files::folder_names(&dir) {
                if good.iter().all(|identity| identity.name() != Some(&name)) {
                    findings.push(
                        DoctorFinding::warning(
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
        findings.push(DoctorFinding::ok("names", "agent names are unique"));
    }
    findings
}

/// Reports whether agents that run without permission prompts get a sandbox.
pub(super) fn check_sandbox(town: &Town, _fix: bool) -> Vec<DoctorFinding> {
    let Ok(agents) = listing::list(town, AgentFilter::default()) else {
        // The check of the agents reports it.
        return Vec::new();
    };
    let open = agents.iter().filter(|agent| agent.is_unconfined()).count();
    let open = u64::try_from(open).unwrap_or_default();
    let count = match open {
        0 => String::new(),
        _ => format!(
            "; without permission prompts and without a sandbox: {}",
            counted(open, "agent")
        ),
    };
    let default = town.settings().sandbox.default;
    if default == DefaultSandbox::default() {
        let message = format!("sandbox.default is none: only roles that name one have one{count}");
        return vec![DoctorFinding::ok("sandbox", message)];
    }
    vec![match bubblewrap::check_again(town) {
        Ok(_) => DoctorFinding::ok(
            "sandbox",
            format!(
                "sandbox.default is {}, and bubblewrap works{count}",
                default.as_str()
            ),
        ),
        Err(problem) => {
            let of = DoctorFinding::of("sandbox", &problem);
            let hint = of.hint.unwrap_or_default();
            DoctorFinding::warning("sandbox", format!("{}{count}", of.message)).hint(hint)
        }
    }]
}

pub(super) fn check_agents(town: &Town, _fix: bool) -> Vec<DoctorFinding> {
    let containers = match containers::list_everywhere(town) {
        Ok(containers) => containers,
        Err(problem) => return vec![DoctorFinding::of("agents", &problem)],
    };
    let agents = match listing::list_among(town, &containers, AgentFilter::default()) {
        Ok(agents) => agents,
        Err(problem) => return vec![DoctorFinding::of("agents", &problem)],
    };
    let mut findings: Vec<DoctorFinding> = agents
        .iter()
        .filter(|agent| agent.health.has_problem() && !agent.health.is_alive())
        .map(|agent| {
            DoctorFinding::warning(
                "agents",
                format!("{}: {}", agent.identity, agent.health.describe()),
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
            DoctorFinding::warning(
                "agents",
                match others {
                    1 => "1 container of another town is on the same tmux server".to_owned(),
                    _ => format!("{others} containers of other towns are on the same tmux server"),
                },
            )
            .hint("give each town a server of its own: `socket` under [tmux] in town.toml"),
        );
    }
    findings.extend(containers.iter().filter_map(|container| {
        match container.owner() {
            Owner::Named(identity) => Some(
                DoctorFinding::warning(
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
        findings.push(DoctorFinding::ok(
            "agents",
            format!("{} run, all well", agents.len()),
        ));
    }
    findings
}

/// Finds PID files whose containers are gone: stray processes, or files to remove.
pub(super) fn check_pids(town: &Town, fix: bool) -> Vec<DoctorFinding> {
    let lost = match pidfile::without_container(town, || containers::list(town)) {
        Ok(lost) => lost,
        Err(problem) => return vec![DoctorFinding::of("pids", &problem)],
    };
    if lost.is_empty() {
        return vec![DoctorFinding::ok("pids", "no stray processes")];
    }
    if fix {
        return match stop::end_orphans(town, processes::GRACE) {
            Ok(ended) => vec![DoctorFinding::ok(
                "pids",
                format!(
                    "ended {}, forgot {}",
                    counted(ended.len(), "stray agent"),
                    counted(lost.len() - ended.len(), "file")
                ),
            )],
            Err(problem) => vec![DoctorFinding::of("pids", &problem)],
        };
    }
    lost.iter()
        .map(|tracked| match &tracked.alive {
            Some(_) => DoctorFinding::warning(
                "pids",
                format!(
                    "process {} outlived its container {}",
                    tracked.pid, tracked.container
                ),
            )
            .hint("`gt doctor --fix` or `gt down` ends it")
            .fixable(),
            None => DoctorFinding::warning(
                "pids",
                format!("the PID file of {} is left over", tracked.container),
            )
            .fixable(),
        })
        .collect()
}

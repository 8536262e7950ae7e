//! The town's tmux server: its socket, and the hooks that gt sets on it.

use super::DoctorFinding;
use crate::Town;
use crate::terminal::containers::tmux_problem;
use crate::terminal::{containers, tmux_hooks};
use gt_tmux::Command;
use std::os::unix::fs::MetadataExt;

pub(super) fn check_socket(town: &Town, _fix: bool) -> Vec<DoctorFinding> {
    let path = town.server().socket_path();
    let shown = path.display().to_string();
    if let Err(error) = town.server().check_socket() {
        let problem = tmux_problem("gt cannot use its tmux socket", error);
        return vec![DoctorFinding::of("socket", &problem)];
    }
    let Ok(meta) = path.metadata() else {
        return vec![DoctorFinding::ok(
            "socket",
            format!("{shown} (no server runs yet)"),
        )];
    };
    if meta.uid() != rustix::process::geteuid().as_raw() {
        return vec![
            DoctorFinding::error("socket", format!("{shown} belongs to another user"))
                .hint("choose another one under [tmux] in town.toml"),
        ];
    }
    match containers::list(town) {
        Ok(all) => vec![DoctorFinding::ok(
            "socket",
            match all.len() {
                1 => format!("{shown} (1 session)"),
                number => format!("{shown} ({number} sessions)"),
            },
        )],
        Err(problem) => vec![DoctorFinding::of("socket", &problem)],
    }
}

/// Checks the hooks by which tmux calls `gt internal sync`. A user's own `set-hook` may have
/// removed them, or the program that they call may be gone.
pub(super) fn check_sync_hooks(town: &Town, fix: bool) -> Vec<DoctorFinding> {
    // The check of the socket reports a server that does not answer.
    let has_agents = containers::list(town)
        .is_ok_and(|all| all.iter().any(|container| container.identity().is_some()));
    if !has_agents {
        return Vec::new();
    }
    let Some(message) = tmux_hooks::defect(town) else {
        return vec![DoctorFinding::ok(
            "sync",
            "tmux reports sessions that come and go",
        )];
    };
    if fix {
        tmux_hooks::renew(town);
        if tmux_hooks::defect(town).is_none() {
            return vec![DoctorFinding::ok("sync", format!("{message}; set again"))];
        }
    }
    vec![
        DoctorFinding::warning("sync", message)
            .hint("`gt doctor --fix` sets them again")
            .fixable(),
    ]
}

/// Checks the hook that respawns agents. A user's own `set-hook` may have removed it.
pub(super) fn check_hook(town: &Town, fix: bool) -> Vec<DoctorFinding> {
    // The check of the socket reports a server that does not answer.
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
        return vec![DoctorFinding::ok(
            "respawn",
            "agents that die are brought back",
        )];
    }
    let message = "tmux's pane-died hook of gt is gone: agents that die stay dead";
    if fix
        && town
            .server()
            .run(crate::terminal::appearance::respawn_hook())
            .is_ok()
    {
        return vec![DoctorFinding::ok(
            "respawn",
            format!("{message}; set again"),
        )];
    }
    vec![
        DoctorFinding::warning("respawn", message)
            .hint("`gt doctor --fix` sets it again")
            .fixable(),
    ]
}

//! Adds facts that containers do not store: the owner of `agent_{slug}` sessions without tags, and
//! whether an adopted program still runs.

use super::{Container, Owner};
use crate::Town;
use crate::base::processes;
use crate::catalog::harnesses;
use crate::catalog::programs::Programs;
use gt_core::adopt as core;
use gt_core::session::SessionId;
use gt_tmux::Command;
use sha2::{Digest, Sha256};

/// Completes containers that were just read. Does no I/O if all containers are our own.
pub(super) fn complete(town: &Town, containers: &mut [Container]) {
    for container in containers.iter_mut() {
        let is_orphan = matches!(container.owner(), Owner::Orphan(_));
        if let Some(adopted) = container.adopted().filter(|_| !is_orphan) {
            // The pane may be a shell that outlives the program.
            let is_over = !processes::is_alive(adopted.pid, &adopted.birth);
            let has_left = is_over && !container.pane().tag_left && left_by_screen(town, container);
            let row = container.pane_mut();
            row.set_program(adopted.pid);
            row.dead |= is_over;
            row.tag_left |= has_left;
        }
    }
    let is_orphan = |container: &&mut Container| matches!(container.owner(), Owner::Orphan(_));
    let mut orphans: Vec<&mut Container> = containers.iter_mut().filter(is_orphan).collect();
    if orphans.is_empty() {
        return;
    }
    let socket = town.server().socket_path().to_string_lossy().into_owned();
    let roots: Vec<u32> = orphans
        .iter()
        .map(|container| container.pane().pid)
        .collect();
    let table = processes::trees(&roots);
    let programs = Programs::of(town);
    for container in &mut orphans {
        let session = id_of_untagged(container, &socket);
        let address = container.identity().map(ToString::to_string);
        let program = programs.find(&table, container.pane().pid);
        let row = container.pane_mut();
        row.tag_town = town.root_text().to_owned();
        row.tag_agent = address.unwrap_or_default();
        row.tag_session = session.to_string();
        if let Some((pid, preset)) = program {
            row.set_program(pid);
            row.tag_harness.clone_from(&preset.name);
            row.tag_process_names = preset.process.names.join(",");
        }
    }
}

/// Returns the id of a session without tags. It is derived from the container, so that nothing has
/// to be written into a person's own session.
pub(crate) fn id_of_untagged(container: &Container, socket: &str) -> SessionId {
    let created = container.pane().created;
    let seed = format!("{socket}\n{}\n{created}", container.id());
    let digest = Sha256::digest(seed.as_bytes());
    let mut random = [0; 10];
    random.copy_from_slice(&digest[..10]);
    let milliseconds = u64::try_from(created).unwrap_or_default() * 1000;
    let id = uuid::Builder::from_unix_timestamp_millis(milliseconds, &random).into_uuid();
    SessionId::new(id)
}

/// Returns whether the screen of an ended program shows a clean exit.
fn left_by_screen(town: &Town, container: &Container) -> bool {
    let row = container.pane();
    // Without its preset, the program counts as crashed: its farewell is not known.
    let Ok(preset) = harnesses::resolve(town, &row.tag_harness) else {
        return false;
    };
    let preset = preset.value;
    if preset.screen.farewell.is_empty() || row.tag_harness_session.is_empty() {
        return false;
    }
    let capture = Command::new("capture-pane").args(["-p", "-J", "-S", "-200"]);
    let shown = town.server().run(capture.target(row.pane));
    // A pane that is gone shows nothing.
    shown.is_ok_and(|shown| core::shows_farewell(&preset, &shown, &row.tag_harness_session))
}

//! The tmux servers of this user's towns.
//!
//! The socket of a town's server may be at any path, and tmux's own folder lists only some sockets.
//! Each town with a socket elsewhere therefore records its path in the user's state folder, so that
//! the menu of one town finds the agents of another.

use crate::base::files;
use crate::base::or_log::OrLog;
use crate::{Result, Surroundings, Town};
use gt_core::theme::fnv32a;
use gt_tmux::Socket;
use std::path::{Path, PathBuf};

/// Records the socket of this town's server if it is not in tmux's own folder.
pub fn remember(town: &Town) -> Result<()> {
    let socket = town.server().socket_path();
    if !matches!(town.server().socket(), Socket::Path(_)) {
        return Ok(());
    }
    match note(town.around(), &socket) {
        Some(note) => files::write_passing(&note, socket.as_os_str().as_encoded_bytes()),
        None => Ok(()),
    }
}

/// Removes the record of a server, and the folders that become empty.
pub fn forget(around: &Surroundings, socket: &Path) -> Result<()> {
    let Some(note) = note(around, socket) else {
        return Ok(());
    };
    files::remove_if_there(&note)?;
    // A folder that is not empty cannot be removed and stays.
    let empty =
        |folder: &&Path| around.home() != Some(folder) && std::fs::remove_dir(folder).is_ok();
    note.ancestors().skip(1).take_while(empty).for_each(drop);
    Ok(())
}

/// Returns the sockets of all servers that may have agents or sessions of this user, sorted: those
/// in tmux's own folder and those that towns have recorded.
pub fn sockets(around: &Surroundings) -> Vec<PathBuf> {
    let own = Socket::Default.path();
    let beside = own.parent().map(files_in).unwrap_or_default();
    let noted = folder(around).map(|dir| files_in(&dir)).unwrap_or_default();
    let mut found = beside;
    for note in noted {
        let read = files::read_if_there(&note);
        let Some(socket) = read
            .or_warn("the server of another town is unknown")
            .flatten()
        else {
            continue;
        };
        let socket = PathBuf::from(socket);
        if socket.exists() {
            found.push(socket);
        }
    }
    found.sort();
    found.dedup();
    found
}

fn files_in(dir: &Path) -> Vec<PathBuf> {
    files::entries(dir).map(|entry| entry.path()).collect()
}

fn folder(around: &Surroundings) -> Option<PathBuf> {
    let state = match around.var("XDG_STATE_HOME").map(Path::new) {
        Some(dir) if dir.is_absolute() => dir.to_owned(),
        _ => around.home()?.join(".local/state"),
    };
    Some(state.join("gt/servers"))
}

/// Returns the file that records a socket.
fn note(around: &Surroundings, socket: &Path) -> Option<PathBuf> {
    let name = format!("{:08x}", fnv32a(socket.as_os_str().as_encoded_bytes()));
    Some(folder(around)?.join(name))
}

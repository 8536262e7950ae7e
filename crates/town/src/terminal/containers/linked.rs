//! Containers of adopted programs: creates them, and releases them to the person.
//!
//! Such a container is a separate session into which a window of the person's own session is
//! linked. A release closes no window of the person.

use super::{Container, pack, tmux_problem};
use crate::base::fault;
use crate::base::lock::FileLock;
use crate::base::or_log::OrLog;
use crate::catalog::live_hooks;
use crate::terminal::adopted::AdoptionNote;
use crate::{Result, Town};
use gt_core::Identity;
use gt_core::startup::tag;
use gt_tmux::{Batch, Command, ErrorKind, PaneId, SessionName};
use std::time::Duration;

pub(crate) use super::follow::moved_to;

/// Lock held while a container for an adopted program is created or removed.
pub(super) const LOCK_PATH: &str = "locks/adopt.lock";

/// Maximum wait for another adoption or release.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) fn lock(town: &Town) -> Result<FileLock> {
    FileLock::take(&town.runtime_dir().join(LOCK_PATH), LOCK_TIMEOUT)
}

pub(crate) fn set(target: &SessionName, tags: &[(String, String)]) -> Vec<Command> {
    let set = |(option, value): &(String, String)| {
        let set = Command::new("set-option").target(target.clone());
        set.args([option, value])
    };
    tags.iter().map(set).chain(pack(target.clone())).collect()
}

/// Creates a tagged session and links the window of a pane into it; the window also stays in its
/// own session. All in one batch, because a container without tags would be mistaken for a session
/// of the person.
pub(crate) fn make_container(
    home: &Town,
    target: &SessionName,
    pane: PaneId,
    tags: &[(String, String)],
) -> Result<()> {
    // tmux requires a first window, which the linked window replaces.
    let new = Command::new("new-session").args(["-d", "-s", target.as_str()]);
    let stay = Command::new("set-option").target(target.clone());
    let link = Command::new("link-window").args(["-k", "-s", &pane.to_string()]);
    let batch = Batch::from(new.args(["--", "sleep", "60"]))
        .then(stay.args(["destroy-unattached", "off"]))
        .then(link.args(["-t", &format!("={target}:^")]))
        .then_all(set(target, tags));
    let Err(error) = home.server().run_private(batch) else {
        return Ok(());
    };
    // On a duplicate name, the existing session is not ours and stays.
    if error.kind() != ErrorKind::Duplicate {
        // Rolls back. The original error is returned, so a failure here is only logged.
        let kill = Command::new("kill-session").target(target.clone());
        let killed = home.server().run(kill);
        killed.or_debug(format_args!("no container {target} to remove"));
    }
    Err(tmux_problem("cannot make the container", error))
}

/// Releases a container to the person without closing any of the person's windows. The container
/// ends unless it has a window that no other session shows.
pub(crate) fn release(home: &Town, container: &Container) -> Result<()> {
    let mut batch = Batch::new();
    // The town's tag stays on the session. Without it, the session's name alone would mark it as an
    // agent.
    let set = Command::new("set-option").target(container.id());
    batch = batch.then(set.args([tag::TOWN, home.root_text()]));
    for option in [
        tag::AGENT,
        tag::SESSION,
        tag::PANE,
        tag::STATE,
        tag::ADOPTED,
    ] {
        let unset = Command::new("set-option").arg("-u");
        batch = batch.then(unset.target(container.id()).arg(option));
    }
    batch = batch.then_all(pack(container.id())).then_line();
    if container.adopted().is_some_and(|adopted| adopted.is_linked) {
        let mut windows: Vec<_> = container.panes().iter().map(|row| row.window).collect();
        windows.dedup();
        for window in windows {
            // tmux refuses to unlink a window that no other session shows: it stays in this
            // session.
            let target = format!("{}:{window}", container.id());
            batch = batch
                .then(Command::new("unlink-window").args(["-t", &target]))
                .then_line();
        }
    }
    match home.server().run_private(batch) {
        Ok(_) => Ok(()),
        Err(error) if is_gone_or_last(error.kind()) => Ok(()),
        Err(error) => Err(tmux_problem("the container could not be released", error)),
    }
}

fn is_gone_or_last(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::NoServer
            | ErrorKind::ServerLost
            | ErrorKind::NoSuchSession
            | ErrorKind::NoSuchWindow
            | ErrorKind::NoSuchPane
            | ErrorKind::OnlyLink
    )
}

/// Deletes the note of an adopted agent, and removes our hooks from its program's settings unless
/// another adopted agent needs them.
pub(crate) fn forget(town: &Town, identity: &Identity) {
    if AdoptionNote::read(town, identity).is_none() {
        return;
    }
    // Another adoption in the same folder must not install its hooks meanwhile. If the lock cannot
    // be taken, the next sync does this.
    if let Ok(_lock) = lock(town) {
        forget_locked(town, identity);
    }
}

/// Does the work of [`forget`] for a caller that holds the lock.
pub(crate) fn forget_locked(town: &Town, identity: &Identity) {
    let Some(note) = AdoptionNote::read(town, identity) else {
        return;
    };
    if let (Some(path), Some(command)) = (&note.hooks, &note.hook_command) {
        let needs =
            |other: &AdoptionNote| other.agent != note.agent && other.hooks.as_ref() == Some(path);
        if !AdoptionNote::all(town).iter().any(needs) {
            // Hooks that remain report nothing, because they find no container.
            let _ = live_hooks::remove(path, command);
        }
    }
    fault::point(town, "adopt.unhooked");
    // The note is removed last, because only it names the file with our hooks.
    AdoptionNote::remove(town, identity);
}

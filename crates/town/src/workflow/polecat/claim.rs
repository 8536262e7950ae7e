//! Locks for assigning work, so that concurrent calls take turns.
//!
//! There are three locks, always taken in this order: the rig's, while a polecat is chosen, placed
//! and given its item; the agent's, from there until it has been started; the town's, while the
//! number of polecats is compared with the limit and the item is put on the hook. A caller that
//! needs only the agent's lock may take it without the rig's.

use crate::base::lock::FileLock;
use crate::{Result, Town};
use gt_core::{Identity, Problem};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Maximum wait for a lock. Many callers may wait, and each creates a worktree or starts a slow
/// program.
const TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// Takes the lock under which a polecat of a rig is chosen.
pub(crate) fn rig(town: &Town, rig: &str) -> Result<FileLock> {
    wait(town, &path(town, &format!("sling-rig-{rig}")))
}

/// Takes the lock under which polecats are counted.
pub(crate) fn lock_count(town: &Town) -> Result<FileLock> {
    wait(town, &path(town, "sling"))
}

/// Takes the lock under which an agent gets its work and is started with it.
pub(crate) fn agent(town: &Town, identity: &Identity) -> Result<FileLock> {
    wait(town, &agent_path(town, identity))
}

/// Takes the agent's lock if it is free; returns `None` otherwise.
pub(crate) fn try_agent(town: &Town, identity: &Identity) -> Result<Option<FileLock>> {
    FileLock::try_take(&agent_path(town, identity))
}

/// Returns whether a process is assigning work to this agent, starting it or removing it.
pub(crate) fn is_held(town: &Town, identity: &Identity) -> bool {
    FileLock::is_held(&agent_path(town, identity))
}

fn agent_path(town: &Town, identity: &Identity) -> PathBuf {
    let address = identity.address().replace('/', ".");
    path(town, &format!("sling-{address}"))
}

fn path(town: &Town, name: &str) -> PathBuf {
    town.runtime_dir()
        .join("locks")
        .join(format!("{name}.lock"))
}

/// Waits for a lock, until the timeout or until the person presses Ctrl-C.
fn wait(town: &Town, path: &std::path::Path) -> Result<FileLock> {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        if let Some(lock) = FileLock::try_take(path)? {
            return Ok(lock);
        }
        town.around().cancel.check()?;
        if Instant::now() >= deadline {
            return Err(
                Problem::conflict(format!("another gt still holds {}", path.display()))
                    .hint("try again when it is done"),
            );
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

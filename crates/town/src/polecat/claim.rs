//! Who may give whom work, one at a time.
//!
//! Three locks, taken in this order and never the other way: the rig's, while a polecat is
//! chosen, placed and given its item; the agent's, from there until it has been started;
//! the town's, for the moment in which the number of polecats is compared with what is
//! allowed and the item goes onto the hook. Whoever waits for an agent's lock alone may
//! do so without the rig's.

use crate::lock::FileLock;
use crate::{Result, Town};
use gt_core::{Identity, Problem};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Many may wait, and each makes a worktree, or starts a slow program.
const PATIENCE: Duration = Duration::from_secs(15 * 60);

/// The lock under which polecats of a rig are chosen.
pub(crate) fn rig(town: &Town, rig: &str) -> Result<FileLock> {
    wait(town, &path(town, &format!("sling-rig-{rig}")))
}

/// The lock under which polecats are counted.
pub(crate) fn count(town: &Town) -> Result<FileLock> {
    wait(town, &path(town, "sling"))
}

/// The lock under which an agent gets its work and is started with it.
pub(crate) fn agent(town: &Town, identity: &Identity) -> Result<FileLock> {
    wait(town, &agent_path(town, identity))
}

/// The same, if nobody has it.
pub(crate) fn try_agent(town: &Town, identity: &Identity) -> Result<Option<FileLock>> {
    FileLock::try_take(&agent_path(town, identity))
}

/// Whether a process gives this agent work, starts it or removes it at this moment.
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

/// Waits for a lock, as long as nobody presses Ctrl-C.
fn wait(town: &Town, path: &std::path::Path) -> Result<FileLock> {
    let deadline = Instant::now() + PATIENCE;
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

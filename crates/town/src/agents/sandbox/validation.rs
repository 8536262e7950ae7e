//! The sandbox of the commands that validate a merge: they run code of a branch.
//!
//! They write to the worktree of the merge queue, to the caches that the settings name, and to a
//! private `/tmp`. They have no broker, so `gt` does not work inside.

use super::{Mounts, PRIVATE, RESOLVER, expanded, text};
use crate::agents::account;
use crate::base::files;
use crate::base::git;
use crate::catalog::harnesses;
use crate::{Result, Town};
use gt_core::Problem;
use gt_core::sandbox::{SECRET_PATHS, SandboxPlan};
use std::path::Path;

/// Returns the sandbox of a command in the worktree of a merge queue. `scratch` is an empty folder
/// of the queue, which the command may write to.
pub fn validation_plan(
    town: &Town,
    tree: &Path,
    scratch: &Path,
    writable: &[String],
) -> Result<SandboxPlan> {
    let home = town.around().home().ok_or_else(|| {
        Problem::environment("the sandbox needs the home folder: HOME is not set")
    })?;
    let mut mounts = Mounts::default();
    for path in [home].into_iter().chain(RESOLVER.iter().map(Path::new)) {
        if PRIVATE.iter().any(|private| path.starts_with(private)) {
            mounts.read(path)?;
        }
    }
    for secret in SECRET_PATHS {
        mounts.hide(&home.join(secret))?;
    }
    hide_agent_programs(town, home, &mut mounts)?;
    mounts.hide(town.root())?;
    mounts.hide(&town.server().socket_path())?;
    for path in writable {
        let path = expanded(home, path);
        // A cache that does not exist yet could not be created inside.
        files::make_dir(&path)?;
        mounts.write(&path)?;
    }
    if let Some(own) = git::own_dir(tree) {
        mounts.read(&git::common_dir(&own))?;
    }
    mounts.write(tree)?;
    mounts.read(&tree.join(".git"))?;
    Ok(SandboxPlan {
        mounts: mounts.by_depth(),
        broker: text(scratch)?,
        work_dir: text(tree)?,
        env: Vec::new(),
        has_network: true,
        // It needs no terminal, and could type into that of the caller.
        new_session: true,
    })
}

/// Hides the folders of all agent programs and accounts: they hold logins.
fn hide_agent_programs(town: &Town, home: &Path, mounts: &mut Mounts) -> Result<()> {
    for name in harnesses::names(town) {
        let preset = harnesses::resolve(town, &name)?.value;
        for path in preset.sandbox.folders.iter().chain(&preset.sandbox.files) {
            mounts.hide(&home.join(path))?;
        }
    }
    for account in account::list(town)? {
        for folder in account.folders.values() {
            mounts.hide(folder)?;
        }
    }
    Ok(())
}

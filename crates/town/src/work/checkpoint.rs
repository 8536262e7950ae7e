//! Checkpoints: an agent or `gt` writes them, and the agent's next session reads them.
//!
//! They are stored in `.runtime/checkpoints/<address>.json`. In the agent's folder, git would show
//! them as changes.

mod due;
mod sessions;

pub use due::refresh_all;
pub(crate) use sessions::SessionsAround;

use crate::base::files;
use crate::base::git::WorktreeStatus as Worktree;
use crate::base::lock::FileLock;
use crate::base::or_log::OrLog;
use crate::catalog::roles;
use crate::records::items::{Hooked, Work};
use crate::records::sessions::{SessionQuery, Sessions};
use crate::repo::workspace;
use crate::{Result, Town};
use gt_core::checkpoint::Checkpoint;
use gt_core::record::{Record, SessionStatus};
use gt_core::work::WorkId;
use gt_core::{Identity, Problem};
use jiff::Timestamp;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Maximum number of modified files in a checkpoint.
const MAX_FILES: usize = 100;
/// Timeout of git: a repository that does not answer must not block the caller.
const LIMIT: Duration = Duration::from_secs(10);
/// Maximum wait for the lock. It is held only while a small file is written.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Fields of a checkpoint that the agent supplies itself.
#[derive(Clone, Debug, Default)]
pub struct CheckpointNotes {
    pub molecule: Option<String>,
    pub step: Option<String>,
    pub notes: Option<String>,
}

/// Returns the folder whose git state an agent's checkpoint describes: the current folder if it is
/// inside the agent's own, else the folder of its running session, else its role's folder.
pub fn folder(town: &Town, agent: &Identity) -> Result<PathBuf> {
    let here = &town.around().current_dir;
    let session = running_session(town, agent)?.and_then(|session| session.cwd);
    let own = match session.map(PathBuf::from) {
        Some(dir) => dir,
        None => {
            let role = roles::resolve(town, agent.role(), agent.rig())?.value;
            workspace::path(town, agent, &role)?
        }
    };
    match here.starts_with(&own) {
        true => Ok(here.clone()),
        false => Ok(own),
    }
}

/// Writes a checkpoint with the agent's own statements.
pub fn write(
    town: &Town,
    agent: &Identity,
    dir: &Path,
    said: CheckpointNotes,
) -> Result<Checkpoint> {
    let session = running_session(town, agent)?;
    let (seen, _) = take(town, agent, session, Some(dir))?;
    let checkpoint = Checkpoint {
        molecule_id: said.molecule.or(seen.molecule_id),
        current_step: said.step.or(seen.current_step),
        notes: said.notes,
        ..seen
    };
    let _lock = lock(town, agent)?;
    write_file(town, agent, &checkpoint)?;
    Ok(checkpoint)
}

/// Refreshes the checkpoint of a running session. Keeps the notes that the session wrote itself,
/// and reads its current step again. Writes nothing if `about` is no longer on the hook: that item
/// is done, and its checkpoint was deleted.
pub(crate) fn refresh(
    town: &Town,
    agent: &Identity,
    session: &str,
    about: Option<&WorkId>,
) -> Result<()> {
    let Some(session) = running_session(town, agent)?.filter(|running| running.id == session)
    else {
        return Ok(());
    };
    let dir = session.cwd.clone().map(PathBuf::from);
    let (seen, has_answered) = take(town, agent, Some(session), dir.as_deref())?;
    let _lock = lock(town, agent)?;
    let is_on_hook =
        |item| -> Result<bool> { Ok(Work::of(town).holder(item)? == Some(agent.address())) };
    let known = read(town, agent)?;
    // True if the agent or its successor wrote a checkpoint during this call. A timestamp in the
    // future comes from a clock that was set back, and does not count.
    let now = town.clock().text();
    let is_late = known
        .as_ref()
        .is_some_and(|it| it.timestamp > seen.timestamp && it.timestamp <= now);
    let running = running_session(town, agent)?.map(|running| running.id);
    if is_late || running != seen.session_id || !about.map_or(Ok(true), is_on_hook)? {
        return Ok(());
    }
    let known = known.filter(|known| known.session_id == seen.session_id);
    let checkpoint = match known {
        None => seen,
        Some(known) if has_answered => Checkpoint {
            notes: known.notes,
            ..seen
        },
        // If the repository does not answer, its last known state stays.
        Some(known) => Checkpoint {
            modified_files: known.modified_files,
            modified_count: known.modified_count,
            last_commit: known.last_commit,
            branch: known.branch,
            notes: known.notes,
            ..seen
        },
    };
    write_file(town, agent, &checkpoint)
}

/// Returns an agent's checkpoint, and whether git has answered. If the folder is unknown, git is
/// not called. The timestamp is the start of the call.
fn take(
    town: &Town,
    agent: &Identity,
    session: Option<Record>,
    dir: Option<&Path>,
) -> Result<(Checkpoint, bool)> {
    let timestamp = town.clock().text();
    let hooked = Work::of(town).hooked(&agent.address())?;
    let worktree =
        dir.map(|dir| Worktree::of(workspace::git_of(town, agent, dir).with_time_limit(LIMIT)));
    let unknown = format!("the state of the worktree of {agent} is unknown");
    // Many agents work in a folder that is not a git repository.
    let worktree = worktree.and_then(|worktree| worktree.or_debug(unknown));
    let has_answered = worktree.is_some();
    let worktree = worktree.unwrap_or_default();
    let steps = session.as_ref().map_or_else(
        || Ok(Vec::new()),
        |session| Sessions::of(town).steps(&session.id),
    )?;
    let open = steps.iter().rev().find(|step| step.completed_at.is_none());
    let checkpoint = Checkpoint {
        molecule_id: session
            .as_ref()
            .and_then(|session| session.molecule_id.clone()),
        current_step: open.map(|step| step.reference.clone().unwrap_or_else(|| step.name.clone())),
        step_title: open.map(|step| step.name.clone()),
        modified_count: worktree.changed.len(),
        modified_files: worktree.changed.into_iter().take(MAX_FILES).collect(),
        last_commit: worktree.commit,
        branch: worktree.branch,
        hooked_bead: hooked
            .as_ref()
            .and_then(Hooked::unit)
            .map(|id| id.to_string()),
        timestamp,
        session_id: session.map(|session| session.id),
        told_to: None,
        notes: None,
    };
    Ok((checkpoint, has_answered))
}

fn write_file(town: &Town, agent: &Identity, checkpoint: &Checkpoint) -> Result<()> {
    files::write_whole(&path(town, agent), text(checkpoint)?.as_bytes())
}

fn text(checkpoint: &Checkpoint) -> Result<String> {
    let text = serde_json::to_string_pretty(checkpoint)
        .map_err(|error| Problem::failed("cannot write a checkpoint").caused_by(error))?;
    Ok(format!("{text}\n"))
}

/// Takes the lock: the agent and `gt` may write concurrently.
fn lock(town: &Town, agent: &Identity) -> Result<FileLock> {
    let path = path(town, agent).with_extension("lock");
    FileLock::take(&path, town.deadline().at_most(TIMEOUT))
}

/// Returns the checkpoint of an agent. An unreadable checkpoint is logged and counts as missing,
/// since it is only an aid.
pub fn read(town: &Town, agent: &Identity) -> Result<Option<Checkpoint>> {
    let path = path(town, agent);
    match std::fs::read(&path) {
        Ok(bytes) => {
            let read = serde_json::from_slice(&bytes);
            Ok(read.or_warn(format_args!("the checkpoint of {agent} cannot be read")))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(files::io_problem("read", &path, &error)),
    }
}

/// Returns whether a checkpoint applies to this work: it is recent, and not about an item that is
/// no longer on the hook.
pub(crate) fn is_about(left: &Checkpoint, work: Option<&WorkId>, now: Timestamp) -> bool {
    let bead = left.hooked_bead.as_deref();
    let is_over = bead.is_some() && bead != work.map(WorkId::as_str);
    !is_over && !Checkpoint::is_stale(age(left, now))
}

/// Records that a session has read an earlier session's checkpoint. From then on, the session's own
/// checkpoint may replace it.
pub(crate) fn mark_read(town: &Town, agent: &Identity, session: &str) -> Result<()> {
    let _lock = lock(town, agent)?;
    match read(town, agent)? {
        Some(left) if !left.is_known_to(session) => {
            let told_to = Some(session.to_owned());
            let text = text(&Checkpoint { told_to, ..left })?;
            // Written without fsync: the agent waits for it, and reporting a checkpoint twice is
            // better than losing it.
            files::write_passing(&path(town, agent), text.as_bytes())
        }
        _ => Ok(()),
    }
}

/// Deletes the checkpoint. Returns whether there was one.
pub fn clear(town: &Town, agent: &Identity) -> Result<bool> {
    let _lock = lock(town, agent)?;
    let path = path(town, agent);
    let was_there = path.exists();
    files::remove_if_there(&path)?;
    Ok(was_there)
}

/// Returns the age of a checkpoint in seconds; `i64::MAX` if it has no valid timestamp.
pub fn age(checkpoint: &Checkpoint, now: Timestamp) -> i64 {
    let at: Option<Timestamp> = checkpoint.timestamp.parse().ok();
    at.map_or(i64::MAX, |at| now.as_second() - at.as_second())
}

/// Returns the running session of an agent.
pub fn running_session(town: &Town, agent: &Identity) -> Result<Option<Record>> {
    let sessions = Sessions::of(town).find(&SessionQuery {
        agent: Some(agent.address()),
        status: Some(SessionStatus::Running.as_str().to_owned()),
        limit: Some(1),
        ..SessionQuery::default()
    })?;
    Ok(sessions.into_iter().next())
}

fn path(town: &Town, agent: &Identity) -> PathBuf {
    town.agent_file_path(agent, "checkpoints")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::log::testing::{town, warnings_of};

    #[test]
    fn checkpoint_that_cannot_be_read_is_logged() {
        let (_folder, town) = town();
        let mayor = Identity::town(gt_core::Role::Mayor);
        files::write_whole(&path(&town, &mayor), b"[").unwrap();
        let (found, warnings) = warnings_of(|| read(&town, &mayor).unwrap());
        assert!(found.is_none());
        assert!(
            warnings[0].starts_with("the checkpoint of mayor"),
            "{warnings:?}"
        );
    }
}

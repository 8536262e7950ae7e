//! Checkpoints: written by an agent, or for it, and read by the one that comes after.
//!
//! They are in `.runtime/checkpoints/<address>.json`, and not in the agent's folder,
//! where they would be a change that git shows.

mod lives;
mod round;

pub(crate) use lives::Lives;
pub use round::refresh_all;

use crate::git::Status as Worktree;
use crate::lock::FileLock;
use crate::sessions::{Query, Sessions};
use crate::when::timestamp;
use crate::work::{Hooked, Work};
use crate::{Result, Town, files, roles, workspace};
use gt_core::checkpoint::Checkpoint;
use gt_core::record::{Record, Status};
use gt_core::work::WorkId;
use gt_core::{Identity, Problem};
use jiff::Timestamp;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// More files than anybody reads.
const MOST_FILES: usize = 100;
/// A repository that does not answer must hold up nobody.
const LIMIT: Duration = Duration::from_secs(10);
/// Whoever writes one has its lock for as long as a small file takes.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the agent itself says.
#[derive(Clone, Debug, Default)]
pub struct Said {
    pub molecule: Option<String>,
    pub step: Option<String>,
    pub notes: Option<String>,
}

/// The folder whose git state a checkpoint of an agent describes: the present one if it is in
/// the agent's own, else that of its running session, else the one of its role.
pub fn folder(town: &Town, agent: &Identity) -> Result<PathBuf> {
    let here = &town.around().current_dir;
    let session = running_life(town, agent)?.and_then(|session| session.cwd);
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

/// Writes down where an agent's work stands now, as the agent says it.
pub fn write(town: &Town, agent: &Identity, dir: &Path, said: Said) -> Result<Checkpoint> {
    let life = running_life(town, agent)?;
    let (seen, _) = look(town, agent, life, Some(dir))?;
    let checkpoint = Checkpoint {
        molecule_id: said.molecule.or(seen.molecule_id),
        current_step: said.step.or(seen.current_step),
        notes: said.notes,
        ..seen
    };
    let _lock = lock(town, agent)?;
    put(town, agent, &checkpoint)?;
    Ok(checkpoint)
}

/// Writes it anew for a life that goes on: what that life said itself stays said. Steps go
/// on, so what was true of them then may be long over. Not if it is about an item that is on
/// the hook no more when all is seen: that is done, and its checkpoint forgotten.
pub(crate) fn refresh(
    town: &Town,
    agent: &Identity,
    life: &str,
    about: Option<&WorkId>,
) -> Result<()> {
    let Some(life) = running_life(town, agent)?.filter(|running| running.id == life) else {
        return Ok(());
    };
    let dir = life.cwd.clone().map(PathBuf::from);
    let (seen, has_answered) = look(town, agent, Some(life), dir.as_deref())?;
    let _lock = lock(town, agent)?;
    let is_on_hook =
        |item| -> Result<bool> { Ok(Work::of(town).holder(item)? == Some(agent.address())) };
    let known = read(town, agent)?;
    // The agent has said it itself while we looked, or the one after it has. What is dated
    // later than now was written before the clock was set back.
    let now = timestamp(None);
    let is_late = known
        .as_ref()
        .is_some_and(|it| it.timestamp > seen.timestamp && it.timestamp <= now);
    let running = running_life(town, agent)?.map(|running| running.id);
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
        // A repository that does not answer now is as it was, for all we know.
        Some(known) => Checkpoint {
            modified_files: known.modified_files,
            modified_count: known.modified_count,
            last_commit: known.last_commit,
            branch: known.branch,
            notes: known.notes,
            ..seen
        },
    };
    put(town, agent, &checkpoint)
}

/// How an agent's work stands, and whether git has said so: where there is no repository
/// there is nothing to say of one, and where it is not known which, none is asked. It has the
/// time at which the look began.
fn look(
    town: &Town,
    agent: &Identity,
    life: Option<Record>,
    dir: Option<&Path>,
) -> Result<(Checkpoint, bool)> {
    let timestamp = timestamp(None);
    let hooked = Work::of(town).hooked(&agent.address())?;
    let worktree = dir.map(|dir| Worktree::of(workspace::git_of(town, agent, dir).within(LIMIT)));
    let worktree = worktree.and_then(Result::ok);
    let has_answered = worktree.is_some();
    let worktree = worktree.unwrap_or_default();
    let steps = life
        .as_ref()
        .map_or_else(|| Ok(Vec::new()), |life| Sessions::of(town).steps(&life.id))?;
    let open = steps.iter().rev().find(|step| step.completed_at.is_none());
    let checkpoint = Checkpoint {
        molecule_id: life.as_ref().and_then(|life| life.molecule_id.clone()),
        current_step: open.map(|step| step.reference.clone().unwrap_or_else(|| step.name.clone())),
        step_title: open.map(|step| step.name.clone()),
        modified_count: worktree.changed.len(),
        modified_files: worktree.changed.into_iter().take(MOST_FILES).collect(),
        last_commit: worktree.commit,
        branch: worktree.branch,
        hooked_bead: hooked
            .as_ref()
            .and_then(Hooked::unit)
            .map(|id| id.to_string()),
        timestamp,
        session_id: life.map(|life| life.id),
        told_to: None,
        notes: None,
    };
    Ok((checkpoint, has_answered))
}

fn put(town: &Town, agent: &Identity, checkpoint: &Checkpoint) -> Result<()> {
    files::write_whole(&path(town, agent), text(checkpoint)?.as_bytes())
}

fn text(checkpoint: &Checkpoint) -> Result<String> {
    let text = serde_json::to_string_pretty(checkpoint)
        .map_err(|error| Problem::failed("cannot write a checkpoint").caused_by(error))?;
    Ok(format!("{text}\n"))
}

/// An agent may write while somebody does it for it.
fn lock(town: &Town, agent: &Identity) -> Result<FileLock> {
    let path = path(town, agent).with_extension("lock");
    FileLock::take(&path, town.patience().at_most(PATIENCE))
}

/// The checkpoint of an agent. One that cannot be read is none: it is only a help.
pub fn read(town: &Town, agent: &Identity) -> Result<Option<Checkpoint>> {
    let path = path(town, agent);
    match std::fs::read(&path) {
        Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(files::cannot("read", &path, &error)),
    }
}

/// Whether a checkpoint can say anything about this work: it is young, and was not written
/// about an item that is on the hook no more.
pub(crate) fn is_about(left: &Checkpoint, work: Option<&WorkId>) -> bool {
    let bead = left.hooked_bead.as_deref();
    let is_over = bead.is_some() && bead != work.map(WorkId::as_str);
    !is_over && !Checkpoint::is_stale(age(left))
}

/// Notes that a life was told what another has left: from now on its own may take the place.
pub(crate) fn note_told(town: &Town, agent: &Identity, life: &str) -> Result<()> {
    let _lock = lock(town, agent)?;
    match read(town, agent)? {
        Some(left) if !left.is_known_to(life) => {
            let told_to = Some(life.to_owned());
            let text = text(&Checkpoint { told_to, ..left })?;
            // The agent waits for it; and told twice is better than not at all.
            files::write_passing(&path(town, agent), text.as_bytes())
        }
        _ => Ok(()),
    }
}

/// Forgets it. Says whether there was one.
pub fn clear(town: &Town, agent: &Identity) -> Result<bool> {
    let _lock = lock(town, agent)?;
    let path = path(town, agent);
    let was_there = path.exists();
    files::remove_if_there(&path)?;
    Ok(was_there)
}

/// How old a checkpoint is, in seconds; one without a time is as old as can be.
pub fn age(checkpoint: &Checkpoint) -> i64 {
    let at: Option<Timestamp> = checkpoint.timestamp.parse().ok();
    at.map_or(i64::MAX, |at| Timestamp::now().as_second() - at.as_second())
}

/// The life of an agent that runs now.
pub fn running_life(town: &Town, agent: &Identity) -> Result<Option<Record>> {
    let lives = Sessions::of(town).find(&Query {
        agent: Some(agent.address()),
        status: Some(Status::Running.word().to_owned()),
        limit: Some(1),
        ..Query::default()
    })?;
    Ok(lives.into_iter().next())
}

fn path(town: &Town, agent: &Identity) -> PathBuf {
    town.file_about(agent, "checkpoints")
}

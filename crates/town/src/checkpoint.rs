//! Checkpoints: written by an agent, or for it, and read by the one that comes after.
//!
//! They are in `.runtime/checkpoints/<address>.json`, and not in the agent's folder,
//! where they would be a change that git shows.

use crate::git::Git;
use crate::sessions::{Query, Sessions, timestamp};
use crate::work::Work;
use crate::{Result, Town, files};
use gt_core::checkpoint::Checkpoint;
use gt_core::record::{Record, Status};
use gt_core::{Identity, Problem};
use jiff::Timestamp;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// More files than anybody reads.
const MOST_FILES: usize = 100;
/// A repository that does not answer must hold up nobody.
const LIMIT: Duration = Duration::from_secs(10);

/// So old a checkpoint may be when an agent ends a turn.
const OLD: Duration = Duration::from_secs(5 * 60);

/// What the agent itself says.
#[derive(Clone, Debug, Default)]
pub struct Said {
    pub molecule: Option<String>,
    pub step: Option<String>,
    pub notes: Option<String>,
}

/// Writes down where an agent's work stands now.
pub fn write(town: &Town, agent: &Identity, dir: &Path, said: Said) -> Result<Checkpoint> {
    let life = running_life(town, agent)?;
    let hooked = Work::of(town).hooked(&agent.address())?;
    let git = Git::at(dir, town.around()).within(LIMIT);
    // Where there is no repository there is nothing to say of one.
    let one_line = |args: &[&str]| git.run(args).ok().filter(|text| !text.is_empty());
    let status = git.run(["status", "--porcelain", "-z"]).unwrap_or_default();
    let changed = changed_files(&status);
    let steps = life
        .as_ref()
        .map_or_else(|| Ok(Vec::new()), |life| Sessions::of(town).steps(&life.id))?;
    let open = steps.iter().rev().find(|step| step.completed_at.is_none());
    let checkpoint = Checkpoint {
        molecule_id: said
            .molecule
            .or_else(|| life.as_ref().and_then(|life| life.molecule_id.clone())),
        current_step: said.step.or_else(|| {
            open.map(|step| step.reference.clone().unwrap_or_else(|| step.name.clone()))
        }),
        step_title: open.map(|step| step.name.clone()),
        modified_count: changed.len(),
        modified_files: changed.into_iter().take(MOST_FILES).collect(),
        last_commit: one_line(&["rev-parse", "--verify", "--quiet", "HEAD"]),
        branch: one_line(&["symbolic-ref", "--quiet", "--short", "HEAD"]),
        hooked_bead: hooked.map(|hooked| hooked.item.id.to_string()),
        timestamp: timestamp(None),
        session_id: life.map(|life| life.id),
        notes: said.notes,
    };
    let text = serde_json::to_string_pretty(&checkpoint)
        .map_err(|error| Problem::failed("cannot write a checkpoint").caused_by(error))?;
    files::write_whole(&path(town, agent), format!("{text}\n").as_bytes())?;
    Ok(checkpoint)
}

/// Writes it anew for a life that goes on: what that life said itself stays said.
pub fn refresh(town: &Town, agent: &Identity, life: &str, dir: &Path) -> Result<Checkpoint> {
    let known = read(town, agent)?.filter(|known| known.session_id.as_deref() == Some(life));
    // Steps go on: what was true of them then may be long over.
    let said = Said {
        notes: known.and_then(|known| known.notes),
        ..Said::default()
    };
    write(town, agent, dir, said)
}

/// The same for an agent that has work, unless it was done a moment ago. It is asked for
/// at the end of a turn, as nobody is awake who could look at the clock.
pub fn refresh_if_old(town: &Town, agent: &Identity) -> Result<()> {
    let written = path(town, agent)
        .metadata()
        .and_then(|meta| meta.modified());
    let is_young = written.is_ok_and(|at| at.elapsed().is_ok_and(|age| age < OLD));
    let life = town.around().var("GT_SESSION_UUID");
    let (Some(life), false) = (life, is_young) else {
        return Ok(());
    };
    if Work::of(town).hooked(&agent.address())?.is_none() {
        return Ok(());
    }
    refresh(town, agent, life, &town.around().current_dir).map(drop)
}

/// The checkpoint of an agent. One that cannot be read is none: it is only a help.
pub fn read(town: &Town, agent: &Identity) -> Result<Option<Checkpoint>> {
    let text = files::read_if_there(&path(town, agent))?;
    Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
}

/// Forgets it. Says whether there was one.
pub fn clear(town: &Town, agent: &Identity) -> Result<bool> {
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
pub(crate) fn running_life(town: &Town, agent: &Identity) -> Result<Option<Record>> {
    let lives = Sessions::of(town).find(&Query {
        agent: Some(agent.address()),
        status: Some(Status::Running.word().to_owned()),
        limit: Some(1),
        ..Query::default()
    })?;
    Ok(lives.into_iter().next())
}

/// The paths of `git status --porcelain -z`; of a renamed file the new one.
pub(crate) fn changed_files(status: &str) -> Vec<String> {
    let mut files = Vec::new();
    let mut entries = status.split('\0');
    while let Some(entry) = entries.next() {
        let Some((kind, path)) = entry.split_at_checked(3) else {
            continue;
        };
        if kind.starts_with('R') || kind.starts_with('C') {
            // The name before it is an entry of its own.
            entries.next();
        }
        files.push(path.to_owned());
    }
    files
}

fn path(town: &Town, agent: &Identity) -> PathBuf {
    town.file_about(agent, "checkpoints")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_as_git_names_them() {
        let status = " M a b.rs\0R  new.rs\0old.rs\0?? ü\0";
        assert_eq!(changed_files(status), ["a b.rs", "new.rs", "ü"]);
        assert_eq!(changed_files(""), [""; 0]);
    }
}

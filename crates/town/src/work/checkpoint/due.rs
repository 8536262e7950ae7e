//! Writes checkpoints for agents that do not write their own.
//!
//! `supervision/upkeep.rs` calls it: every few minutes by a timer of tmux while an agent runs, and
//! once a minute by the daemon. Each call checks which agents were active.

use super::{SessionsAround, is_about, path, read, refresh};
use crate::base::lock::FileLock;
use crate::records::items::Work;
use crate::terminal::containers;
use crate::{Result, Town};
use gt_core::work::WorkId;
use gt_core::{Identity, Problem};
use std::collections::HashMap;
use std::time::{Duration, SystemTime};

/// Minimum age before a checkpoint is rewritten. While agents start and stop, rounds run more
/// often, and must not call git each time.
const OLD: Duration = Duration::from_secs(4 * 60);

/// Rewrites the checkpoints of agents that have work and printed output since the last checkpoint.
/// Returns the failures; a failure does not stop the others.
pub fn refresh_all(town: &Town) -> Vec<Problem> {
    write_due(town).unwrap_or_else(|problem| vec![problem])
}

fn write_due(town: &Town) -> Result<Vec<Problem>> {
    let lock = town.runtime_dir().join("locks/checkpoint-round.lock");
    // Another process is already doing this round.
    let Some(_held) = FileLock::try_take(&lock)? else {
        return Ok(Vec::new());
    };
    let mut failed = Vec::new();
    let each = due(town, &mut failed)?.into_iter();
    failed.extend(
        each.filter_map(|due| refresh(town, &due.agent, &due.session, Some(&due.item)).err()),
    );
    Ok(failed)
}

/// A checkpoint to write.
struct DueCheckpoint {
    agent: Identity,
    session: String,
    item: WorkId,
}

/// Returns the checkpoints to write. Agents that cannot be checked are added to `failed` and do not
/// block the others.
fn due(town: &Town, failed: &mut Vec<Problem>) -> Result<Vec<DueCheckpoint>> {
    let mut hooks: HashMap<String, WorkId> = Work::of(town).hooks()?.into_iter().collect();
    if hooks.is_empty() {
        return Ok(Vec::new());
    }
    let mut due = Vec::new();
    for container in containers::list_everywhere(town)? {
        let (Some(agent), Some(session)) = (container.identity(), container.session_id()) else {
            continue;
        };
        let session = session.to_string();
        let Some(item) = hooks.remove(&agent.address()) else {
            continue;
        };
        let pane = container.pane();
        if pane.dead || written(town, agent).is_some_and(|at| !has_progressed(at, pane.activity)) {
            continue;
        }
        match is_unread(town, agent, &session, &item) {
            Ok(true) => {}
            Ok(false) => due.push(DueCheckpoint {
                agent: agent.clone(),
                session,
                item,
            }),
            Err(problem) => failed.push(problem),
        }
    }
    Ok(due)
}

fn written(town: &Town, agent: &Identity) -> Option<SystemTime> {
    // An agent may have no checkpoint yet.
    path(town, agent).metadata().ok()?.modified().ok()
}

/// Returns whether a checkpoint is old and output was printed since. Agent programs print whenever
/// they work, so an unchanged screen means no progress.
fn has_progressed(written: SystemTime, printed: i64) -> bool {
    let is_old = written.elapsed().is_ok_and(|age| age >= OLD);
    let written = written.duration_since(SystemTime::UNIX_EPOCH);
    let written = written.map_or(0, |since| since.as_secs());
    is_old && u64::try_from(printed).is_ok_and(|printed| printed >= written)
}

/// Returns whether an earlier session left the checkpoint for this session, which has not read it
/// yet. A checkpoint about another item is never reported.
fn is_unread(town: &Town, agent: &Identity, session: &str, item: &WorkId) -> Result<bool> {
    let left = read(town, agent)?.filter(|left| is_about(left, Some(item), town.clock().now()));
    let Some(left) = left.filter(|left| !left.is_known_to(session)) else {
        return Ok(false);
    };
    let sessions = SessionsAround::around(town, Some(session), Some(&left), None)?;
    Ok(sessions.left_to_current(&left))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agent_without_new_output_has_not_progressed() {
        let now = SystemTime::now();
        let seconds = |at: SystemTime| {
            let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap();
            i64::try_from(since.as_secs()).unwrap()
        };
        let old = now - OLD;
        assert!(has_progressed(old, seconds(now)));
        assert!(has_progressed(old, seconds(old)), "in the same second");
        assert!(!has_progressed(old, seconds(old) - 1));
        assert!(!has_progressed(old + Duration::from_secs(5), seconds(now)));
        // A clock that was set back does not cause endless rewrites.
        assert!(!has_progressed(now + OLD, seconds(now)));
    }
}

//! Regular upkeep of a town: saves, checkpoints, backups, patrols, and work whose process was killed.
//!
//! A timer of tmux calls it every few minutes, and the daemon once a minute. It does only what is
//! due, so both may call it.

use crate::lifecycle::{save, sync};
use crate::records::items::Work;
use crate::records::sessions::Sessions;
use crate::supervision::{batches, budgets, digest, limits, patrol, recurring};
use crate::work::checkpoint;
use crate::workflow::recovery;
use crate::{Result, Town};
use gt_core::Problem;

/// When a call saves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Saving {
    /// Containers changed: save them now.
    Now,
    /// Save them if the newest save is old.
    IfDue,
}

/// Saves the containers, refreshes checkpoints, resumes unattended work, lands batches, resumes
/// agents after usage limits, checks the budgets, patrols, wakes role agents, backs up the work
/// items and removes expired records. A failure of one part does not stop the others; all failures
/// are logged, and the last one is returned.
pub fn run(town: &Town, saving: Saving) -> Result<()> {
    let mut last = Ok(());
    let mut note = |what: &str, problem: Problem| {
        tracing::error!("{what}: {}", problem.line());
        last = Err(problem);
    };
    let saved = match saving {
        Saving::Now => save::save(town, true),
        Saving::IfDue => save::timer(town),
    };
    match saved {
        Ok(saved) => {
            for warning in saved.iter().flat_map(|saved| &saved.warnings) {
                tracing::warn!("{warning}");
            }
        }
        // The next start or stop retries.
        Err(problem) => note("save", problem),
    }
    // Checkpoints are independent of the save: they record the work of the agents, and a save
    // records the containers.
    for problem in checkpoint::refresh_all(town) {
        tracing::warn!("checkpoint: {}", problem.line());
    }
    if let Err(problem) = recovery::resume_unattended(town) {
        note("recovery", problem);
    }
    if let Err(problem) = batches::settle(town) {
        note("batches", problem);
    }
    if let Err(problem) = recurring::run_due(town) {
        note("recurring work", problem);
    }
    // Before agents are resumed: an exhausted budget holds them.
    if let Err(problem) = budgets::check_once(town) {
        note("budgets", problem);
    }
    if let Err(problem) = limits::resume_due(town, town.clock().seconds()) {
        note("usage limits", problem);
    }
    // No patrol right after containers have changed: the command that changed them may still be
    // running.
    if saving == Saving::IfDue
        && let Err(problem) = patrol::unattended(town)
    {
        note("patrol", problem);
    }
    // After the patrol, whose escalations role agents decide.
    if saving == Saving::IfDue
        && let Err(problem) = digest::unattended(town)
    {
        note("digests", problem);
    }
    let work = Work::of(town);
    let every = town.settings().save_interval();
    for problem in [work.back_up(Some(every)).err(), work.check_if_due().err()]
        .into_iter()
        .flatten()
    {
        note("backup", problem);
    }
    // A sync does it too, but in a town whose agents stay, no container comes or goes for weeks.
    if let Err(problem) = sync::remove_expired(town, &Sessions::of(town)) {
        note("expired records", problem);
    }
    last
}

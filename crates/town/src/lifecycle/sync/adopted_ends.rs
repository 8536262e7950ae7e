//! Records the ends of adopted programs: tmux has no hook for a program under a person's shell.

use crate::Town;
use crate::base::processes;
use crate::records::sessions::Sessions;
use crate::terminal::adopted::AdoptionNote;
use std::time::Duration;

/// Maximum wait for the exit of a program that has reported its end.
const EXIT_TIMEOUT: Duration = Duration::from_secs(60);

/// Records the ends of adopted programs and releases their containers. If all programs run, this
/// only reads the notes.
pub fn settle_adopted(town: &Town) {
    if AdoptionNote::all(town)
        .iter()
        .any(|note| !note.program_runs())
    {
        // The next call retries.
        let _ = super::sync(town, &Sessions::of(town), false);
    }
}

/// Waits until the process has ended, and then records its end.
pub fn settle_adopted_after(town: &Town, pid: u32) {
    let handle = processes::hold_one(pid);
    drop(processes::wait_all(
        handle.into_iter().collect(),
        EXIT_TIMEOUT,
    ));
    settle_adopted(town);
}

//! Resumes unattended work whose process was killed.
//!
//! Normally each kind of unattended work has its own process: a deliverer types the messages of a
//! queue, a background run merges, a waiting process records the end of an adopted program. If that
//! process is killed, its work stays on disk until the next call of [`resume_unattended`]. Commands
//! that read the town do not call it: a read changes nothing.

use crate::agents::sandbox::leftovers;
use crate::lifecycle::sync;
use crate::messaging::{dnd, escalate, queue, signal};
use crate::terminal::containers;
use crate::workflow::merge::background;
use crate::{Result, Town};

/// Records the ends of adopted programs, raises due escalations again, delivers messages whose
/// do-not-disturb has ended, starts the delivery of waiting messages, restarts killed runs of the
/// merge queue, and removes containers whose broker was killed. If there is no such work, it only
/// reads three folders and one table. Only `gt sync`, the automatic save (every few minutes while
/// agents run), the daemon and `gt doctor --fix` call it.
pub fn resume_unattended(town: &Town) -> Result<()> {
    sync::settle_adopted(town);
    background::resume(town);
    let removed = leftovers::remove_leftovers(town);
    escalate::raise_due(town, town.clock().now())?;
    dnd::end_due(town)?;
    if queue::any_waiting(town) {
        signal::wake_deliveries(town, &containers::list_everywhere(town)?);
    }
    removed
}

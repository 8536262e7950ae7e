//! Work items, stored in the town's database: `.work/items.db`.
//!
//! The database is the source of truth, except for rigs that use beads (`beads.rs`). Every change
//! is one transaction that is on disk before it is reported. An item is on the hook of at most one
//! agent, and an agent has at most one item: the table of hooks enforces both.

mod announcing;
mod backup;
mod batches;
mod beads;
mod change;
mod create;
mod database_file;
mod dependencies;
mod escalations;
mod exchange;
mod finish;
mod hook;
mod mailbox;
mod merge_entries;
mod merge_steps;
mod messages;
mod molecules;
mod overview;
mod protected;
mod read;
mod recover;
mod recurring;
mod schedule;
mod store;

pub use backup::{BackedUp, Backup};
pub use batches::{BatchParent, KIND as BATCH_KIND, LandedBatch, WorkBatch};
pub use beads::{
    BeadsRig, FAULT_POINTS as BEADS_FAULT_POINTS, folder_of as beads_folder, of_town as beads_of,
};
pub use change::{ChangedItem, Patch};
pub use create::ItemDraft;
pub use escalations::{Addressed, EscalationDraft, EscalationQuery, RaisedEscalation};
pub use exchange::Imported;
pub use finish::{Finish, FinishedWork};
pub use hook::{HeldItem, HookError, Hooked};
pub use mailbox::MailQuery;
pub use merge_entries::Handed;
pub use merge_steps::Rejection;
pub use messages::{HandedOver, MailDraft};
pub(crate) use molecules::step_id;
pub use molecules::{LeftMolecule, Molecule, Pour, StepChange};
pub use overview::Overview;
pub use read::ItemQuery;
pub use recover::Recovered;
pub use recurring::{Recurring, RecurringRun};
pub use schedule::QueuedAssignment;

use crate::Town;
use crate::base::clock::Clock;
use crate::base::surroundings::Deadline;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The work items of a town.
#[derive(Clone, Debug)]
pub struct Work {
    path: PathBuf,
    /// The rigs whose items are kept in beads.
    beads: Option<Arc<beads::Beads>>,
    clock: Clock,
    deadline: Deadline,
}

impl Work {
    pub fn of(town: &Town) -> Self {
        Work {
            path: town.root().join(".work/items.db"),
            beads: beads::Beads::of(town),
            deadline: town.deadline(),
            clock: town.clock().clone(),
        }
    }

    /// Opens a separate database, as of a town without beads.
    #[cfg(test)]
    fn at(path: PathBuf) -> Self {
        Work {
            path,
            beads: None,
            deadline: Deadline::default(),
            clock: Clock::default(),
        }
    }

    /// Returns the path of the database, which may not exist yet.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

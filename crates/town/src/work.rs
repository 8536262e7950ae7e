//! Work items, kept in the town's own database: `.work/items.db`.
//!
//! It is the truth about them, except for rigs that use beads (`beads.rs`), so every change is one transaction that is on the disk
//! before it is told. An item is on one agent's hook at a time and an agent has one
//! item: the table of hooks cannot hold it otherwise.

mod announcing;
mod backup;
mod beads;
mod bound;
mod change;
mod create;
mod dependencies;
mod exchange;
mod finish;
mod hook;
mod letters;
mod mailbox;
mod merges;
mod merging;
mod molecules;
mod overview;
mod place;
mod read;
mod recover;
mod store;

pub use backup::{BackedUp, Backup};
pub use beads::{
    BeadsRig, FAULT_POINTS as BEADS_FAULT_POINTS, folder_of as beads_folder, of_town as beads_of,
};
pub use change::{Changed, Patch};
pub use create::Draft;
pub use exchange::Imported;
pub use finish::{Finish, Finished};
pub use hook::Hooked;
pub use letters::{HandedOver, LetterDraft};
pub use mailbox::LetterQuery;
pub use merges::Handed;
pub use merging::Rejection;
pub(crate) use molecules::step_id;
pub use molecules::{Left, Molecule, Moved, Pour};
pub use overview::Overview;
pub use read::Query;
pub use recover::Recovered;

use crate::Town;
use crate::surroundings::Patience;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The work items of a town.
#[derive(Clone, Debug)]
pub struct Work {
    path: PathBuf,
    /// The rigs whose items are kept in beads.
    beads: Option<Arc<beads::Beads>>,
    patience: Patience,
}

impl Work {
    pub fn of(town: &Town) -> Self {
        Work {
            path: town.root().join(".work/items.db"),
            beads: beads::Beads::of(town),
            patience: town.patience(),
        }
    }

    /// A database of its own, of a town without beads.
    #[cfg(test)]
    fn at(path: PathBuf) -> Self {
        Work {
            path,
            beads: None,
            patience: Patience::default(),
        }
    }

    /// Where the database is, or will be.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

//! From an item to merged work: tasks, sling, polecats, done, the merge queue.

pub mod batch;
pub mod done;
pub mod estop;
pub mod merge;
pub mod polecat;
pub mod recovery;
pub(crate) mod rescue;
pub mod rig_removal;
pub mod schedule;
pub mod sling;
pub mod task;

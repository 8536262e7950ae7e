//! From an item to merged work: tasks, sling, polecats, dogs, done, the merge queue.

pub mod batch;
pub mod dog;
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

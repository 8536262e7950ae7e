//! The engine of `gt`: a town on disk and its agents.
//!
//! Every user interface calls this crate, and it needs no daemon. It does not print, exit or read
//! the environment: the caller passes its surroundings as [`Surroundings`].
//!
//! [`Town`] is the entry point. [`lifecycle::start`] and [`lifecycle::stop`] are the only way to
//! start and end an agent; [`terminal::containers`] reads all of tmux in one call.

pub mod agents;
pub mod base;
pub mod catalog;
pub mod lifecycle;
pub mod messaging;
pub mod records;
pub mod repo;
pub mod supervision;
pub mod terminal;
pub mod views;

#[cfg(test)]
mod testing;
pub mod work;
pub mod workflow;

pub use base::surroundings::{Cancel, Deadline, Surroundings};
pub use base::town::Town;

/// Result of every fallible function in this crate.
pub type Result<T, E = gt_core::Problem> = std::result::Result<T, E>;

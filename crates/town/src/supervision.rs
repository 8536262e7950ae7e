//! Unattended operation: the periodic work of the daemon and of tmux's timers.

pub mod batches;
pub mod budgets;
pub mod daemon;
pub mod digest;
pub mod limits;
pub mod patrol;
pub mod recurring;
pub mod scheduler;
pub mod upkeep;

//! Unattended operation: what the daemon and the timers of tmux do without a person.

pub mod batches;
pub mod budgets;
pub mod daemon;
pub mod digest;
pub mod limits;
pub mod patrol;
pub mod recurring;
pub mod scheduler;
pub mod upkeep;

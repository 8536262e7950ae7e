//! Unattended operation: what the daemon and the timers of tmux do without a person.

pub mod budgets;
pub mod daemon;
pub mod limits;
pub mod patrol;
pub mod scheduler;
pub mod upkeep;

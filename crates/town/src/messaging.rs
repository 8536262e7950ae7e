//! Messages to agents and people, and the reports of agents.

pub mod answer;
pub mod dnd;
pub mod escalate;
pub mod inject;
pub mod interrupt;
pub mod mail;
pub mod notify;
pub mod nudge;
pub mod queue;
pub mod signal;

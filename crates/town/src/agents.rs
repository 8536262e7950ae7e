//! Agents as people and commands name them: targets, callers, states, accounts.

pub mod account;
pub(crate) mod ancestry;
mod authority;
pub mod caller;
pub mod claim;
pub mod environment;
pub mod listing;
pub mod sandbox;
pub mod states;
pub mod target;

//! Tables that a town may override (roles, harnesses, formulas), and the agents that have a folder
//! in the town.

pub mod config;
pub mod directory;
pub mod formulas;
pub mod harnesses;
pub mod hook_installers;
pub(crate) mod live_hooks;
pub mod onboarding;
pub mod other_towns;
pub(crate) mod programs;
pub mod roles;
pub mod secrets;

//! Foundations: the town and its settings, files, locks, databases, processes, git. This layer
//! knows no agents.

pub mod callback;
pub mod clock;
pub(crate) mod database;
pub mod dnd;
pub mod egress;
pub(crate) mod error_enum;
pub mod estop;
pub(crate) mod fault;
pub(crate) mod file_watcher;
pub mod files;
pub mod git;
pub mod job;
pub(crate) mod lines;
pub mod lock;
pub mod log;
pub(crate) mod open_database;
pub mod or_log;
pub mod processes;
pub(crate) mod program;
pub mod settings;
pub mod surroundings;
pub mod time;
pub mod town;
pub mod wake;

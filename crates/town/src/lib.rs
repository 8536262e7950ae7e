//! The engine of `gt`: a town on disk and its agents.
//!
//! Every user interface calls this crate, and it needs no daemon. It does not print, exit or read
//! the environment: the caller passes its surroundings as [`Surroundings`].
//!
//! [`Town`] is the entry point. [`start`] and [`stop`] are the only way to start and end an agent;
//! [`containers`] reads all of tmux in one call.

pub mod account;
pub mod adopt;
pub mod adopted;
pub mod agents;
pub mod answer;
mod background;
mod base_branch;
pub mod callback;
pub mod caller;
pub mod cards;
pub mod checkpoint;
pub mod chronicle;
pub mod claim;
pub mod commits;
pub mod containers;
mod database;
pub mod devserver;
pub mod directory;
pub mod doctor;
pub mod done;
pub mod epilogue;
pub mod events;
mod fault;
mod file_watcher;
pub mod files;
pub mod formulas;
pub mod git;
pub mod handoff;
pub mod harnesses;
pub mod hook;
pub mod hook_log;
pub mod hooks;
pub mod init_step;
pub mod inject;
pub mod keepalive;
pub mod limits;
mod lines;
pub mod lock;
pub mod look;
pub mod mail;
pub mod merge;
pub mod molecule;
pub mod monitor;
pub mod neighbours;
pub mod notify;
pub mod nudge;
mod opened;
pub mod peek;
pub mod pidfile;
pub mod polecat;
pub mod prime;
pub mod processes;
mod program;
pub mod project;
pub mod queue;
pub mod recording;
pub mod respawn;
pub mod restore;
pub mod rig;
pub mod rig_removal;
pub mod roles;
pub mod save;
mod save_schedule;
pub mod seance;
pub mod seeds;
pub mod sessions;
pub mod settings;
pub mod signal;
pub mod sling;
pub mod start;
pub mod states;
pub mod steps;
pub mod stop;
pub mod stream;
pub mod surroundings;
pub mod sync;
pub mod target;
pub mod task;
pub mod tmux_conf;
pub mod tmux_hooks;
pub mod town;
pub mod usage;
pub mod wake;
pub mod watch;
pub mod when;
pub mod windows;
pub mod work;
pub mod workspace;

pub use surroundings::{Cancel, Deadline, Surroundings};
pub use town::Town;

/// Result of every fallible function in this crate.
pub type Result<T, E = gt_core::Problem> = std::result::Result<T, E>;

//! The engine of `gt`: a town on disk and the agents that live in it.
//!
//! Every surface calls this crate, and it works with no daemon running. It
//! prints nothing, exits nowhere and reads no environment: what it needs of the
//! caller's surroundings comes in as [`Surroundings`].
//!
//! [`Town`] is the way in. [`start`] and [`stop`] are the one way an agent
//! begins and ends; [`containers`] reads all of tmux in one call.

pub mod account;
pub mod adopt;
pub mod adopted;
pub mod agents;
pub mod answer;
mod background;
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
pub mod files;
pub mod formulas;
pub mod git;
pub mod handoff;
pub mod harnesses;
pub mod hook;
pub mod hook_log;
pub mod hooks;
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

pub use surroundings::{Cancel, Patience, Surroundings};
pub use town::Town;

/// What every fallible function here gives back.
pub type Result<T, E = gt_core::Problem> = std::result::Result<T, E>;

//! The domain of `gt` as values and pure functions.
//!
//! Nothing here reads a file, a clock or the environment: functions take all input as arguments
//! and return decisions as values. The engine (`gt-town`) does the I/O on both sides.
//!
//! Start with [`identity`] (agents, their addresses and container names), then [`role`] and
//! [`harness`] (the two tables that describe agents), then [`startup`] (the requirements of a
//! start, as data).

pub mod adopt;
pub mod ansi;
pub mod answer;
pub mod beacon;
pub mod beads;
pub mod beside;
pub mod budget;
pub mod caller;
pub mod capability;
pub mod card;
pub mod cast;
pub mod checkpoint;
pub mod digest;
pub mod egress;
pub mod environment;
pub mod escalation;
pub mod event;
pub mod formula;
pub mod handoff;
pub mod harness;
pub mod health;
pub mod identity;
pub mod keepalive;
pub mod limit;
pub mod mail;
pub mod merge;
pub mod name;
pub mod notify;
pub mod nudge;
pub mod operation;
pub mod overlay;
pub mod patrol;
pub mod patterns;
pub mod plural;
pub mod polecat;
pub mod price;
pub mod prime;
pub mod problem;
pub mod process;
pub mod project;
pub mod record;
pub mod registry;
pub mod respawn;
pub mod role;
pub mod sandbox;
pub mod save;
pub mod schedule;
pub mod screen;
pub mod session;
pub mod settings;
pub mod shell;
pub mod signal;
pub mod similar;
pub mod stale;
pub mod startup;
pub mod state;
pub mod sync;
pub mod target;
pub mod theme;
pub mod tree;
pub mod usage;
pub mod work;

pub use caller::Caller;
pub use identity::Identity;
pub use problem::{Problem, ProblemKind};
pub use role::Role;

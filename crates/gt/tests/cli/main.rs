//! The real `gt` in an empty HOME, against a real tmux on a private socket, with the built-in demo
//! agent.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on says so by panicking"
)]

mod account;
mod adopt;
mod agent;
mod agents;
mod answer;
mod attach;
mod beads;
mod board;
mod broadcast;
mod checkpoint;
mod completions;
mod crew;
mod demo;
mod dev;
mod docs_examples;
mod docs_links;
mod doctor;
mod documented_commands;
mod done;
mod end_to_end;
mod env;
mod errors;
mod events;
mod external_programs;
mod handoff;
mod harness;
mod hook;
mod hostile_input;
mod init;
mod internal;
mod krc;
mod logs;
mod mail;
mod mol;
mod mq;
mod notify;
mod nudge;
mod older_town;
mod peek;
mod polecat;
mod prime;
mod record;
mod respawn;
mod restore;
mod rig;
mod role;
mod save;
mod seance;
mod secrets;
mod sessions;
mod signal;
mod sling;
mod snapshot;
mod start;
mod stop;
mod submodules;
mod sync;
mod target;
mod task;
mod tmux_appearance;
mod wait;
mod watch;
mod work;

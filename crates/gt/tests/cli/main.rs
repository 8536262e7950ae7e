//! The real `gt` in an empty HOME, against a real tmux on a socket of its own and
//! the built-in demo agent.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on says so by panicking"
)]

mod accounts;
mod adopt;
mod attaching;
mod beads;
mod beginning;
mod board;
mod broken_worktrees;
mod checkpoints;
mod contract;
mod crowd;
mod dev_servers;
mod docs_examples;
mod docs_links;
mod doctor_storage;
mod documented_commands;
mod env;
mod exchanged;
mod faults;
mod finishing;
mod handing_over;
mod happening;
mod health;
mod hints;
mod hostile;
mod hurried;
mod kept_whole;
mod kept_work;
mod left_behind;
mod letters_told;
mod lifecycle;
mod listing;
mod look;
mod mailing;
mod mending;
mod merging;
mod molecules;
mod mq_background;
mod mq_pull;
mod not_handed_over;
mod notified;
mod nudge_delivery;
mod operations;
mod other_server;
mod outside;
mod own_agent;
mod priming;
mod recorded;
mod remembered;
mod restored;
mod rigs;
mod saved;
mod seances;
mod secrets;
mod session_chain;
mod session_ends;
mod slinging;
mod start_rollback;
mod states;
mod stopping;
mod submodules;
mod surviving;
mod synced;
mod talking;
mod tasks;
mod told;
mod towns;
mod upstream;
mod usage;
mod watching;
mod whole_work;
mod withdrawing;
mod working;

//! The daemon of a town: an optional background process.
//!
//! It runs the [duties](duties::DUTIES) of an unattended town when their trigger occurs. The
//! monitor of the engine reports what happens (a control client of tmux, inotify, pidfds); a sweep
//! once a minute catches what no event reported. Otherwise the process sleeps.
//!
//! The daemon decides nothing: every duty is a function of the engine that a command can call as
//! well, so a town without a daemon only reacts later. It keeps nothing in memory that a restart
//! would lose. It serves the HTTP API (`gt-web`) as well. tokio is confined to these two crates, and
//! its runtime exists only inside [`run`].

mod duties;
mod service;
mod unit;

pub use service::run;
pub use unit::{launchd, systemd};

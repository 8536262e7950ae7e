//! The built-in demo agent in a real tmux: the behaviour that other tests rely on when they run it
//! in place of a real agent.
//!
//! Each test has a private server on a short socket path. Every wait is for a named condition and
//! prints the screen on timeout; none is a fixed sleep.

mod asking;
mod ending;
mod hooks;
mod stage;
mod typing;

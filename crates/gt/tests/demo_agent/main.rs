//! The built-in demo agent in a real tmux: what other tests rely on when they run it
//! in place of a real agent.
//!
//! Each test has a server of its own on a short, private socket. Nothing waits for
//! time: every wait is for a named condition, and shows the screen if it never comes.

mod asking;
mod ending;
mod hooks;
mod stage;
mod typing;

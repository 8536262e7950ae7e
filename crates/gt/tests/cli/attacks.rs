//! Attacks by an agent, or by a repository, on the person who runs `gt`.

mod arguments;
mod capabilities;
#[cfg(target_os = "linux")]
mod container;
mod environment;
mod every_command;
mod git_programs;
pub(crate) mod identity;
mod messages;
mod sandbox;
mod sockets;
#[cfg(target_os = "linux")]
mod strict_sandbox;
mod validation;

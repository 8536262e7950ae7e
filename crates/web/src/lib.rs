//! The HTTP API of a town: routes, authentication, live events.
//!
//! [`app`] builds a router from the table of operations ([`gt_core::operation`]) and needs no
//! server. Every request takes the same way: the origin check ([`gate`]), limits, authentication
//! ([`access`]), the scope of the row, then the row's command, which an [`OperationRunner`] runs:
//! the binary implements it with the functions of its commands. [`serve`] binds the sockets; the
//! daemon calls it.

mod access;
mod app;
mod command;
mod credentials;
mod events;
mod failure;
mod gate;
mod idempotency;
mod limits;
mod openapi;
mod page;
mod paging;
mod serve;
mod state;
#[cfg(test)]
mod tests;

pub use access::{ApiCaller, Principal};
pub use app::app;
pub use credentials::{AccessList, AccessStore, DeviceRecord, NewDevice, TokenRecord};
pub use openapi::document as openapi;
pub use serve::{ApiConnection, PeerIdentity, serve, socket_path};
pub use state::{ApiState, OperationOutput, OperationRunner, TownPlace};

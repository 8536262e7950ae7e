//! Network access of a strict sandbox: decisions and parsers of the proxy, without I/O.
//!
//! [`AllowList`] holds the hosts that a sandbox may reach. [`request`] parses the head of a proxy
//! request, [`client_hello`] the server name of a TLS connection. Both read bytes of an untrusted
//! program: their input is bounded, and anything unusual is an error. The engine does the I/O
//! (`gt-town`, `base/egress.rs`).
//!
//! The proxy sees names, not content. Inside an allowed TLS connection, a request may still name
//! another host of the same server (domain fronting).

mod address;
mod allow_list;
pub mod client_hello;
mod host;
pub mod request;

pub use address::is_public;
pub use allow_list::{AllowList, Permit};
pub use host::{Destination, Host, HostError};

use core::net::IpAddr;

/// A reason why the proxy refuses a connection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denial {
    #[error("the host is not in the list of allowed hosts")]
    NotListed,
    #[error("the name leads to {0}, which is not a public address")]
    PrivateAddress(IpAddr),
    #[error("the TLS connection is for {0}")]
    OtherServerName(String),
    #[error("the TLS connection names no server")]
    NoServerName,
    #[error("the TLS connection hides the name of its server (encrypted client hello)")]
    HiddenServerName,
    #[error("the connection does not begin with a TLS client hello: {0}")]
    NotTls(&'static str),
    #[error("the proxy request is malformed: {0}")]
    Malformed(&'static str),
}

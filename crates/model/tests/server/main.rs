//! The running server, over real connections and with nothing between but bytes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod binary;
mod client;
mod hostile;
mod load;
mod log;
mod wire;

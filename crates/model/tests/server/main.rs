//! Tests of the running server, over real connections and raw bytes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod binary;
mod client;
mod hostile;
mod load;
mod log;
mod wire;

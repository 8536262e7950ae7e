//! A model server that only pretends, for tests with the real agent programs.
//!
//! The agent programs talk to it as they would to their vendors' services. It answers what the
//! prompt's directives ask for, and it notes down what it received: the proof that a message
//! arrived, whole and once. It keeps no secrets, checks no keys and forgets nothing it was told;
//! it is no proxy and thinks nothing up.
//!
//! ```
//! use gt_model::FakeModel;
//!
//! let model = FakeModel::start(None);
//! assert!(model.url().starts_with("http://127.0.0.1:"));
//! assert!(model.requests().is_empty());
//! ```
//!
//! The way of a request: [`server`](FakeModel) reads it with `http`, `answer` decides, asking
//! `api` what the request says in its wire format, `conversation` and `typed` which part of it
//! a person typed, and `directive` or `playbook` what that asks for. `journal` notes it down, and only then
//! is it answered. Everything but `server` and `journal` is functions from values to values.
//!
//! Directives, log format and recipes for the programs are in the crate's README.

mod answer;
mod api;
mod conversation;
mod directive;
mod http;
mod journal;
mod playbook;
mod schema;
mod server;
mod typed;

pub use api::{Api, Usage};
pub use conversation::fingerprint;
pub use journal::{Request, TimedOut, read_log};
pub use server::{FakeModel, Options};

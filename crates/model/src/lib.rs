//! A fake model server, for tests with the real agent programs.
//!
//! The agent programs talk to it as they would to their vendors' services. It answers as the
//! prompt's directives say, and logs every request: the proof that a message arrived, whole and
//! once. It keeps no secrets and checks no keys; it is not a proxy and generates no text.
//!
//! ```
//! use gt_model::FakeModel;
//!
//! let model = FakeModel::start(None);
//! assert!(model.url().starts_with("http://127.0.0.1:"));
//! assert!(model.requests().is_empty());
//! ```
//!
//! Path of a request: [`server`](FakeModel) reads it with `http`; `answer` decides. It uses `api`
//! to parse the wire format, `conversation` and `typed` to find the part that a person typed, and
//! `directive` or `playbook` for the directives. `journal` logs the request, and only then is it
//! answered. Everything but `server` and `journal` is functions from values to values.
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

pub use api::{Api, UsageEstimate};
pub use conversation::fingerprint;
pub use journal::{LoggedRequest, TimedOut, read_log};
pub use server::{FakeModel, Options};

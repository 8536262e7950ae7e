//! Records on disk: sessions, events, work items and mail, usage, keepalives.

pub mod budget;
pub mod events;
pub mod items;
pub mod keepalive;
pub mod limits;
pub mod retention;
pub mod sessions;
pub mod steps;
pub mod stream;
pub mod usage;

//! Handing over from one life of an agent to the next, in the same container.

mod marker;

pub use marker::{read as read_marker, remove as remove_marker};

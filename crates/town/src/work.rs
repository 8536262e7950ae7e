//! Work in progress: the hook of an agent, molecules, checkpoints.

pub mod checkpoint;
pub mod hook;
pub mod molecule;

//! Work in progress: the hook of an agent, molecules, checkpoints, matters to decide.

pub mod checkpoint;
pub mod hook;
pub(crate) mod matters;
pub mod molecule;

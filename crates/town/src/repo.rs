//! Rigs, worktrees, branches and projects.

pub mod agent_settings;
pub mod approval;
pub(crate) mod base_branch;
pub mod commits;
pub mod init_step;
pub mod project;
pub mod rig;
pub mod workspace;
pub(crate) mod worktree_settings;

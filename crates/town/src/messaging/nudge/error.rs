//! Failures of messages that callers distinguish.

use crate::base::error_enum::error_enum;
use gt_core::Problem;

/// A message that was not sent, or an agent that can get none.
#[derive(Clone, Debug, thiserror::Error)]
pub enum NudgeError {
    /// The agent does not run: it has no container, has ended in it, or has not started yet.
    #[error(transparent)]
    NotRunning(Problem),
    #[error(transparent)]
    Other(#[from] Problem),
}

error_enum!(NudgeError: NotRunning, Other);

//! Failures of a start that callers distinguish.

use gt_core::Problem;

/// A failed start. Each variant holds the problem for people, so a caller that does not distinguish
/// converts it with `?`.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StartError {
    /// The agent, or another program in its container, runs already.
    #[error(transparent)]
    Running(Problem),
    /// Another process starts, stops or replaces the agent, or something else has its container.
    #[error(transparent)]
    Taken(Problem),
    /// The agent program exited by itself during its start. The program failed, not its
    /// environment.
    #[error(transparent)]
    ProgramExited(Problem),
    /// The machine does not have the agent program.
    #[error(transparent)]
    ProgramMissing(Problem),
    /// An emergency stop blocks all starts.
    #[error(transparent)]
    Stopped(Problem),
    #[error(transparent)]
    Other(#[from] Problem),
}

impl StartError {
    /// Changes the problem and keeps the variant.
    pub(crate) fn map(self, change: impl FnOnce(Problem) -> Problem) -> Self {
        match self {
            StartError::Running(problem) => StartError::Running(change(problem)),
            StartError::Taken(problem) => StartError::Taken(change(problem)),
            StartError::ProgramExited(problem) => StartError::ProgramExited(change(problem)),
            StartError::ProgramMissing(problem) => StartError::ProgramMissing(change(problem)),
            StartError::Stopped(problem) => StartError::Stopped(change(problem)),
            StartError::Other(problem) => StartError::Other(change(problem)),
        }
    }

    /// Returns the problem for people.
    pub fn problem(&self) -> &Problem {
        match self {
            StartError::Running(problem)
            | StartError::Taken(problem)
            | StartError::ProgramExited(problem)
            | StartError::ProgramMissing(problem)
            | StartError::Stopped(problem)
            | StartError::Other(problem) => problem,
        }
    }

    /// Returns whether the start failed because another process has started the agent.
    pub fn is_lost_to_another(&self) -> bool {
        matches!(self, StartError::Running(_) | StartError::Taken(_))
    }
}

impl From<StartError> for Problem {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Running(problem)
            | StartError::Taken(problem)
            | StartError::ProgramExited(problem)
            | StartError::ProgramMissing(problem)
            | StartError::Stopped(problem)
            | StartError::Other(problem) => problem,
        }
    }
}

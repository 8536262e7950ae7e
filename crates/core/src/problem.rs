//! Common form of all failures, for every surface.
//!
//! A [`Problem`] has a message, causes and hints. Its [`ProblemKind`] alone determines the exit code, so
//! that scripts can branch on it without reading texts. Modules with a closed set of failures have
//! separate error enums and convert them into a `Problem` at their edge.

use std::error::Error;
use std::fmt;

/// Kind of a failure; determines the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemKind {
    /// A failure without a more specific kind.
    Failed,
    /// An init command of a project failed; the start can continue without it.
    InitFailed,
    /// A person must confirm it first, and there is no terminal to ask on.
    Unconfirmed,
    /// The command line or a given value is malformed.
    Usage,
    /// The named thing does not exist.
    NotFound,
    /// It exists already, or has another owner.
    Conflict,
    /// It runs already: a conflict that many callers ignore.
    Running,
    /// The machine lacks a program: tmux, git, the agent program.
    Environment,
    /// Queued, although immediate delivery was requested.
    Queued,
    /// The caller may not do it, or is not who its variables say.
    Denied,
}

impl ProblemKind {
    /// Returns the exit code that scripts may rely on.
    pub fn exit_code(self) -> u8 {
        match self {
            ProblemKind::Failed | ProblemKind::InitFailed => 1,
            ProblemKind::Usage | ProblemKind::Unconfirmed => 2,
            ProblemKind::NotFound => 3,
            ProblemKind::Conflict | ProblemKind::Running => 4,
            ProblemKind::Environment => 5,
            ProblemKind::Queued => 6,
            ProblemKind::Denied => 7,
        }
    }

    /// Parses the word of a JSON error.
    pub fn from_word(word: &str) -> Option<Self> {
        let all = [
            ProblemKind::Failed,
            ProblemKind::InitFailed,
            ProblemKind::Unconfirmed,
            ProblemKind::Usage,
            ProblemKind::NotFound,
            ProblemKind::Conflict,
            ProblemKind::Running,
            ProblemKind::Environment,
            ProblemKind::Queued,
            ProblemKind::Denied,
        ];
        all.into_iter().find(|kind| kind.as_str() == word)
    }

    /// Returns the word for JSON errors.
    pub fn as_str(self) -> &'static str {
        match self {
            ProblemKind::Failed => "failed",
            ProblemKind::InitFailed => "init_failed",
            ProblemKind::Unconfirmed => "unconfirmed",
            ProblemKind::Usage => "usage",
            ProblemKind::NotFound => "not_found",
            ProblemKind::Conflict => "conflict",
            ProblemKind::Running => "running",
            ProblemKind::Environment => "environment",
            ProblemKind::Queued => "queued",
            ProblemKind::Denied => "denied",
        }
    }
}

/// A failure as people and scripts see it.
#[derive(Clone, Debug)]
pub struct Problem(Box<ProblemParts>);

#[derive(Clone, Debug)]
struct ProblemParts {
    kind: ProblemKind,
    message: String,
    causes: Vec<String>,
    hints: Vec<String>,
}

impl Problem {
    pub fn new(kind: ProblemKind, message: impl Into<String>) -> Self {
        Problem(Box::new(ProblemParts {
            kind,
            message: message.into(),
            causes: Vec::new(),
            hints: Vec::new(),
        }))
    }

    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(ProblemKind::Failed, message)
    }

    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(ProblemKind::Usage, message)
    }

    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ProblemKind::NotFound, message)
    }

    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(ProblemKind::Conflict, message)
    }

    pub fn denied(message: impl Into<String>) -> Self {
        Self::new(ProblemKind::Denied, message)
    }

    pub fn environment(message: impl Into<String>) -> Self {
        Self::new(ProblemKind::Environment, message)
    }

    /// Adds a hint: what to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hints.push(hint.into());
        self
    }

    /// Adds one cause as text.
    #[must_use]
    pub fn cause(mut self, cause: impl Into<String>) -> Self {
        self.0.causes.push(cause.into());
        self
    }

    /// Adds an error and the chain of its sources as causes.
    #[must_use]
    pub fn caused_by(mut self, error: impl Error) -> Self {
        self.0.causes.push(error.to_string());
        let mut source = error.source();
        while let Some(error) = source {
            self.0.causes.push(error.to_string());
            source = error.source();
        }
        self
    }

    /// Returns a problem of the same kind with this message, and this problem as its cause.
    #[must_use]
    pub fn within(self, message: impl Into<String>) -> Self {
        Problem::new(self.kind(), message).caused_by_problem(&self)
    }

    /// Adds another problem as the cause of this one, and its hints.
    #[must_use]
    pub fn caused_by_problem(mut self, other: &Problem) -> Self {
        self.0.causes.push(other.message().to_owned());
        self.0.causes.extend(other.causes().iter().cloned());
        self.0.hints.extend(other.hints().iter().cloned());
        self
    }

    pub fn kind(&self) -> ProblemKind {
        self.0.kind
    }

    pub fn message(&self) -> &str {
        &self.0.message
    }

    pub fn causes(&self) -> &[String] {
        &self.0.causes
    }

    /// Returns the message and its causes, joined by colons.
    pub fn message_with_causes(&self) -> String {
        let causes = self.causes().iter().map(String::as_str);
        let words: Vec<&str> = [self.message()].into_iter().chain(causes).collect();
        words.join(": ")
    }

    pub fn hints(&self) -> &[String] {
        &self.0.hints
    }

    /// Returns the message and its causes in one line, with control characters replaced by blanks.
    pub fn line(&self) -> String {
        let causes = self.causes().iter().map(String::as_str);
        let words: Vec<&str> = [self.message()].into_iter().chain(causes).collect();
        words.join(": ").replace(char::is_control, " ")
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl Error for Problem {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outer_message_keeps_the_kind_the_causes_and_the_hints() {
        let inner = Problem::conflict("the branch is used")
            .cause("by b")
            .hint("free it");
        let outer = inner.within("cannot make the worktree");
        assert_eq!(outer.kind(), ProblemKind::Conflict);
        assert_eq!(
            outer.line(),
            "cannot make the worktree: the branch is used: by b"
        );
        assert_eq!(outer.hints(), ["free it"]);
    }
}

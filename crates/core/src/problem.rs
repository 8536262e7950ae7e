//! The one shape in which every surface shows a failure.
//!
//! A [`Problem`] says what happened, what caused it and what to do next. Its
//! [`Kind`] alone fixes the exit code, so that scripts can branch on it without
//! reading texts. Modules with a closed set of failures keep their own error
//! enums and convert into a `Problem` at their edge.

use std::error::Error;
use std::fmt;

/// What sort of failure it is; fixes the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Something went wrong on the way.
    Failed,
    /// The agent program ended by itself while it came up: a failure of its own, and not
    /// of what is around it.
    Ended,
    /// An init command of a project failed; the start can go on without it.
    InitFailed,
    /// A person has to confirm it first, and cannot be asked here.
    Unconfirmed,
    /// The command line or a given value is not well formed.
    Usage,
    /// What was named does not exist.
    NotFound,
    /// It exists already, or belongs to somebody else.
    Conflict,
    /// It runs already: a conflict that many callers do not mind.
    Running,
    /// The machine lacks something: tmux, git, the agent program.
    Environment,
    /// Delivered to the queue where immediate delivery was asked for.
    Queued,
}

impl Kind {
    /// The exit code that scripts may rely on.
    pub fn exit_code(self) -> u8 {
        match self {
            Kind::Failed | Kind::Ended | Kind::InitFailed => 1,
            Kind::Usage | Kind::Unconfirmed => 2,
            Kind::NotFound => 3,
            Kind::Conflict | Kind::Running => 4,
            Kind::Environment => 5,
            Kind::Queued => 6,
        }
    }

    /// The word used in JSON errors.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Failed | Kind::Ended => "failed",
            Kind::InitFailed => "init_failed",
            Kind::Unconfirmed => "unconfirmed",
            Kind::Usage => "usage",
            Kind::NotFound => "not_found",
            Kind::Conflict => "conflict",
            Kind::Running => "running",
            Kind::Environment => "environment",
            Kind::Queued => "queued",
        }
    }
}

/// A failure as people and scripts see it.
#[derive(Clone, Debug)]
pub struct Problem(Box<Parts>);

#[derive(Clone, Debug)]
struct Parts {
    kind: Kind,
    message: String,
    causes: Vec<String>,
    hints: Vec<String>,
}

impl Problem {
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Problem(Box::new(Parts {
            kind,
            message: message.into(),
            causes: Vec::new(),
            hints: Vec::new(),
        }))
    }

    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(Kind::Failed, message)
    }

    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Kind::Usage, message)
    }

    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(Kind::NotFound, message)
    }

    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(Kind::Conflict, message)
    }

    pub fn environment(message: impl Into<String>) -> Self {
        Self::new(Kind::Environment, message)
    }

    /// Adds what to do about it.
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

    /// Adds an error and everything that it says caused it.
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

    /// Adds the other problem as the cause of this one, and its hints.
    #[must_use]
    pub fn caused_by_problem(mut self, other: &Problem) -> Self {
        self.0.causes.push(other.message().to_owned());
        self.0.causes.extend(other.causes().iter().cloned());
        self.0.hints.extend(other.hints().iter().cloned());
        self
    }

    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    pub fn message(&self) -> &str {
        &self.0.message
    }

    pub fn causes(&self) -> &[String] {
        &self.0.causes
    }

    /// What went wrong with all that caused it, in one line.
    pub fn whole(&self) -> String {
        let causes = self.causes().iter().map(String::as_str);
        let words: Vec<&str> = [self.message()].into_iter().chain(causes).collect();
        words.join(": ")
    }

    pub fn hints(&self) -> &[String] {
        &self.0.hints
    }

    /// The message and its causes, in one line.
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

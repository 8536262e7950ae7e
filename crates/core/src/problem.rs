//! Common form of all failures, for every surface.
//!
//! A [`Problem`] has a message, causes and hints. Its [`Kind`] alone determines the exit code, so
//! that scripts can branch on it without reading texts. Modules with a closed set of failures have
//! separate error enums and convert them into a `Problem` at their edge.

use std::error::Error;
use std::fmt;

/// Kind of a failure; determines the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
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
}

impl Kind {
    /// Returns the exit code that scripts may rely on.
    pub fn exit_code(self) -> u8 {
        match self {
            Kind::Failed | Kind::InitFailed => 1,
            Kind::Usage | Kind::Unconfirmed => 2,
            Kind::NotFound => 3,
            Kind::Conflict | Kind::Running => 4,
            Kind::Environment => 5,
            Kind::Queued => 6,
        }
    }

    /// Parses the word of a JSON error.
    pub fn from_word(word: &str) -> Option<Self> {
        let all = [
            Kind::Failed,
            Kind::InitFailed,
            Kind::Unconfirmed,
            Kind::Usage,
            Kind::NotFound,
            Kind::Conflict,
            Kind::Running,
            Kind::Environment,
            Kind::Queued,
        ];
        all.into_iter().find(|kind| kind.as_str() == word)
    }

    /// Returns the word for JSON errors.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Failed => "failed",
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

    /// Adds another problem as the cause of this one, and its hints.
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

    /// Returns the message and its causes, joined by colons.
    pub fn whole(&self) -> String {
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

//! What can go wrong, with what explains it: the command, its exit code, and tmux's own words.
//!
//! tmux says everything that matters in prose, so [`ErrorKind`] is read from that prose in
//! `error/recognise.rs`. Callers decide by [`Error::kind`] and never by the text.

mod recognise;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::{FieldError, Version};

/// A failure of tmux, or on the way to it.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// tmux ran the command and refused it, or found no server to run it.
    #[error("`{command}` failed{}: {message}", exit(*code))]
    Command {
        /// What tmux meant, as far as its words are known.
        kind: ErrorKind,
        /// The command line; of a private one only the names of the commands.
        command: String,
        /// The exit code of the client; control mode has none.
        code: Option<i32>,
        /// What tmux wrote to stderr.
        message: String,
    },
    /// There is no tmux program.
    #[error("cannot find the tmux program {}", program.display())]
    NotInstalled {
        /// What was looked for.
        program: PathBuf,
    },
    /// No server listens where one should.
    #[error("no tmux server is running on {}", socket.display())]
    NoServer {
        /// The socket.
        socket: PathBuf,
    },
    /// No server can listen on this socket.
    #[error("no tmux server can listen on {}: {reason}", socket.display())]
    BadSocket {
        /// The socket.
        socket: PathBuf,
        /// Why not.
        reason: String,
    },
    /// The server is stopped (SIGSTOP) and answers nothing.
    #[error("the tmux server on {} is stopped: process {pid}", socket.display())]
    Stopped {
        /// The socket.
        socket: PathBuf,
        /// The server.
        pid: i32,
    },
    /// The server went away while it had the command.
    #[error("lost the tmux server during `{command}`{}", because(reason))]
    ServerLost {
        /// The command that got no answer. It may have been run or not.
        command: String,
        /// What tmux said last, if anything.
        reason: String,
    },
    /// No answer in time. The command may have been run or not.
    #[error("`{command}` got no answer within {} ms", after.as_millis())]
    TimedOut {
        /// The command.
        command: String,
        /// How long it was waited for.
        after: Duration,
    },
    /// This tmux is older than what is asked of it.
    #[error("tmux {found} is too old, {needed} is needed: without it there is no {missing}")]
    TooOld {
        /// What is installed.
        found: Version,
        /// The least version.
        needed: Version,
        /// What older ones lack.
        missing: String,
    },
    /// tmux answered something that makes no sense here.
    #[error("`{command}` got an unexpected answer: {problem}")]
    Protocol {
        /// The command.
        command: String,
        /// What was wrong with the answer.
        problem: String,
    },
    /// A listing held a value that its field cannot take.
    #[error("`{command}` listed a value that cannot be read")]
    Field {
        /// The command.
        command: String,
        /// Which field and value.
        source: FieldError,
    },
    /// No tmux argument can hold a NUL, on any transport.
    #[error("an argument of `{command}` holds a NUL byte")]
    NulByte {
        /// The name of the command.
        command: String,
    },
    /// The operating system refused something.
    #[error("cannot {action}")]
    Io {
        /// What was tried.
        action: String,
        /// Why it failed.
        source: Arc<io::Error>,
    },
}

/// What an [`Error`] means to a caller who has to decide something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// There is no tmux program.
    NotInstalled,
    /// No server listens on the socket.
    NoServer,
    /// No server can listen on the socket.
    BadSocket,
    /// The server is stopped and answers nothing.
    Stopped,
    /// The session is not there.
    NoSuchSession,
    /// The window is not there.
    NoSuchWindow,
    /// The pane is not there.
    NoSuchPane,
    /// The client is not there, or the command needs one and there is none.
    NoSuchClient,
    /// A session of that name is there already.
    Duplicate,
    /// The server went away in the middle.
    ServerLost,
    /// No answer in time.
    TimedOut,
    /// This tmux is too old.
    TooOld,
    /// An answer that cannot be understood.
    Protocol,
    /// The operating system refused something.
    Io,
    /// Anything else that tmux says.
    Other,
}

impl Error {
    /// What this means.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Command { kind, .. } => *kind,
            Self::NotInstalled { .. } => ErrorKind::NotInstalled,
            Self::NoServer { .. } => ErrorKind::NoServer,
            Self::BadSocket { .. } => ErrorKind::BadSocket,
            Self::Stopped { .. } => ErrorKind::Stopped,
            Self::ServerLost { .. } => ErrorKind::ServerLost,
            Self::TimedOut { .. } => ErrorKind::TimedOut,
            Self::TooOld { .. } => ErrorKind::TooOld,
            Self::Protocol { .. } | Self::Field { .. } => ErrorKind::Protocol,
            Self::Io { .. } => ErrorKind::Io,
            Self::NulByte { .. } => ErrorKind::Other,
        }
    }

    /// The command line that failed, if one was run; of a private one only the names.
    #[must_use]
    pub fn command(&self) -> Option<&str> {
        match self {
            Self::Command { command, .. }
            | Self::ServerLost { command, .. }
            | Self::TimedOut { command, .. }
            | Self::Protocol { command, .. }
            | Self::Field { command, .. }
            | Self::NulByte { command } => Some(command),
            Self::NotInstalled { .. }
            | Self::NoServer { .. }
            | Self::BadSocket { .. }
            | Self::Stopped { .. }
            | Self::TooOld { .. }
            | Self::Io { .. } => None,
        }
    }

    /// What tmux wrote to stderr, if it got to write anything.
    #[must_use]
    pub fn stderr(&self) -> Option<&str> {
        match self {
            Self::Command { message, .. } => Some(message),
            _ => None,
        }
    }

    /// The exit code of the tmux client, if there was one.
    #[must_use]
    pub fn exit_code(&self) -> Option<i32> {
        match self {
            Self::Command { code, .. } => *code,
            _ => None,
        }
    }

    /// An answer of tmux that says what went wrong.
    pub(crate) fn refused(command: String, code: Option<i32>, message: &str) -> Self {
        let message = message.trim();
        Self::Command {
            kind: recognise::kind(message),
            command,
            code,
            message: if message.is_empty() {
                "no reason given".to_owned()
            } else {
                message.to_owned()
            },
        }
    }

    pub(crate) fn io(action: impl Into<String>, source: io::Error) -> Self {
        Self::Io {
            action: action.into(),
            source: Arc::new(source),
        }
    }

    pub(crate) fn protocol(command: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Protocol {
            command: command.into(),
            problem: problem.into(),
        }
    }
}

fn exit(code: Option<i32>) -> String {
    code.map(|code| format!(" (exit {code})"))
        .unwrap_or_default()
}

fn because(reason: &str) -> String {
    if reason.is_empty() {
        String::new()
    } else {
        format!(": {reason}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_carries_what_explains_it() {
        let error = Error::refused(
            "tmux kill-session -t =x".into(),
            Some(1),
            "can't find session: x\n",
        );
        assert_eq!(error.kind(), ErrorKind::NoSuchSession);
        assert_eq!(
            error.to_string(),
            "`tmux kill-session -t =x` failed (exit 1): can't find session: x"
        );
        assert_eq!(error.stderr(), Some("can't find session: x"));
        assert_eq!(error.exit_code(), Some(1));
    }

    #[test]
    fn is_small_enough_to_return_everywhere() {
        assert!(size_of::<Error>() <= 112, "{}", size_of::<Error>());
    }
}

//! Errors, with the command, its exit code and tmux's own message.
//!
//! tmux reports the cause only as prose, so `error/recognise.rs` derives the [`ErrorKind`] from
//! that prose. Callers decide by [`Error::kind`] and never by the text.

mod recognise;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::{FieldError, Version};

/// A failure of tmux, or of the communication with it.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// tmux ran the command and refused it, or found no server to run it.
    #[error("`{command}` failed{}: {message}", exit(*code))]
    Command {
        /// The kind, as far as the message is known.
        kind: ErrorKind,
        /// The command line; for a private one only the names of the commands.
        command: String,
        /// The exit code of the client; `None` in control mode.
        code: Option<i32>,
        /// The text that tmux wrote to stderr.
        message: String,
    },
    /// The tmux program was not found.
    #[error("cannot find the tmux program {}", program.display())]
    NotInstalled {
        /// The program that was searched.
        program: PathBuf,
    },
    /// No server listens on the socket.
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
        /// The reason.
        reason: String,
    },
    /// The server process is stopped (SIGSTOP) and does not answer.
    #[error("the tmux server on {} is stopped: process {pid}", socket.display())]
    Stopped {
        /// The socket.
        socket: PathBuf,
        /// The process id of the server.
        pid: i32,
    },
    /// The server ended before it answered the command.
    #[error("lost the tmux server during `{command}`{}", because(reason))]
    ServerLost {
        /// The command that got no answer. The server may or may not have run it.
        command: String,
        /// The last message of tmux, if any.
        reason: String,
    },
    /// No answer before the timeout. The server may or may not have run the command.
    #[error("`{command}` got no answer within {} ms", after.as_millis())]
    TimedOut {
        /// The command.
        command: String,
        /// The timeout.
        after: Duration,
    },
    /// The tmux version is older than required.
    #[error("tmux {found} is too old, {needed} is needed; it lacks: {missing}")]
    TooOld {
        /// The installed version.
        found: Version,
        /// The minimum version.
        needed: Version,
        /// The feature that older versions lack.
        missing: String,
    },
    /// tmux sent an unexpected answer.
    #[error("`{command}` got an unexpected answer: {problem}")]
    Protocol {
        /// The command.
        command: String,
        /// Describes the error in the answer.
        problem: String,
    },
    /// A listing contained a value that does not fit the type of its field.
    #[error("`{command}` listed a value that cannot be read")]
    Field {
        /// The command.
        command: String,
        /// Names the field and the value.
        source: FieldError,
    },
    /// An argument contains a NUL byte, which no transport can send.
    #[error("an argument of `{command}` holds a NUL byte")]
    NulByte {
        /// The name of the command.
        command: String,
    },
    /// A system call failed.
    #[error("cannot {action}")]
    Io {
        /// The action that failed.
        action: String,
        /// The error of the operating system.
        source: Arc<io::Error>,
    },
}

/// The meaning of an [`Error`], for callers that decide by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The tmux program was not found.
    NotInstalled,
    /// No server listens on the socket.
    NoServer,
    /// No server can listen on the socket.
    BadSocket,
    /// The server process is stopped and does not answer.
    Stopped,
    /// The session does not exist.
    NoSuchSession,
    /// The window does not exist.
    NoSuchWindow,
    /// The pane does not exist.
    NoSuchPane,
    /// The client does not exist, or the command needs a client and there is none.
    NoSuchClient,
    /// A session of that name already exists.
    Duplicate,
    /// The window is in no other session, so it cannot be unlinked.
    OnlyLink,
    /// The server ended before it answered.
    ServerLost,
    /// No answer before the timeout.
    TimedOut,
    /// The tmux version is too old.
    TooOld,
    /// The answer cannot be parsed.
    Protocol,
    /// A system call failed.
    Io,
    /// Any other message of tmux.
    Other,
}

impl Error {
    /// Returns the kind of the error.
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

    /// Returns the command line that failed, if one was run; for a private one only the names.
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

    /// Returns the text that tmux wrote to stderr, if any.
    #[must_use]
    pub fn stderr(&self) -> Option<&str> {
        match self {
            Self::Command { message, .. } => Some(message),
            _ => None,
        }
    }

    /// Returns the exit code of the tmux client, if there is one.
    #[must_use]
    pub fn exit_code(&self) -> Option<i32> {
        match self {
            Self::Command { code, .. } => *code,
            _ => None,
        }
    }

    /// Creates the error for a message of tmux, and derives its kind.
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

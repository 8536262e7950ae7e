//! Sends a batch to the socket of a running server, if that is possible.
//!
//! These commands appear in no argument vector, so private batches need no special treatment. This
//! module decides which batches are sent; [`crate::socket`] sends them.

use super::exec::{self, Privacy, ProcessOutput, SERVER_STARTERS};
use super::settings::ServerSettings;
use crate::socket::{self, ExchangeOutcome, SocketRequest};
use crate::{Batch, Error};

/// Commands that make the client open files or take over its terminal. Only the program runs them.
const LEFT_TO_THE_PROGRAM: [&str; 4] = [
    "attach-session",
    "load-buffer",
    "save-buffer",
    "source-file",
];

/// Commands that change nothing, so that a retry through the program is safe.
const READING: [&str; 13] = [
    "display-message",
    "has-session",
    "list-buffers",
    "list-clients",
    "list-commands",
    "list-keys",
    "list-panes",
    "list-sessions",
    "list-windows",
    "show-buffer",
    "show-environment",
    "show-hooks",
    "show-options",
];

/// Runs the batch and returns its stdout, or `None` if the program has to run it. Calls `meanwhile`
/// while the server works on the batch.
pub(super) fn capture(
    settings: &ServerSettings,
    batch: &Batch,
    privacy: Privacy,
    meanwhile: impl FnOnce(),
) -> Option<Result<Vec<u8>, Error>> {
    let (version, binary) = settings.known.as_ref()?;
    let contains = |names: &[&str]| {
        batch
            .commands()
            .any(|command| names.contains(&command.name()))
    };
    if contains(&LEFT_TO_THE_PROGRAM) {
        return None;
    }
    let (mut argv, mut script) = (batch.argv(), String::new());
    if !exec::is_one_argv(batch, &argv) {
        argv = vec!["source-file".to_owned(), "-".to_owned()];
        script = batch.to_script();
    }
    let (socket, timeout) = (settings.socket_path(), settings.timeout());
    let request = SocketRequest {
        socket: &socket,
        version: *version,
        binary,
        environment: settings.environment(),
        argv,
        input: script.as_bytes(),
        timeout,
    };
    let outcome = socket::run(&request, meanwhile);
    let description = || exec::describe(batch, privacy);
    Some(match outcome {
        ExchangeOutcome::Finished {
            code,
            stdout,
            stderr,
        } => exec::answer(
            ProcessOutput {
                code: Some(code),
                stdout,
                stderr,
            },
            description,
        ),
        ExchangeOutcome::NoServer if privacy == Privacy::Private || contains(&SERVER_STARTERS) => {
            return None;
        }
        ExchangeOutcome::NoServer => Err(Error::NoServer { socket }),
        ExchangeOutcome::NotTried => return None,
        ExchangeOutcome::Lost { .. }
            if batch
                .commands()
                .all(|command| READING.contains(&command.name())) =>
        {
            return None;
        }
        ExchangeOutcome::Lost { reason } => Err(Error::ServerLost {
            command: description(),
            reason,
        }),
        ExchangeOutcome::Stopped { pid } => Err(Error::Stopped { socket, pid }),
        ExchangeOutcome::TimedOut => Err(Error::TimedOut {
            command: description(),
            after: timeout,
        }),
    })
}

#[cfg(test)]
mod on_a_server;

//! Runs the tmux program once.
//!
//! Commands are passed as an argument vector, or, if that is too short or too public, as a script
//! on the stdin of `source-file -`. `exec/process.rs` does the I/O with the process.

mod process;

use std::os::unix::process::CommandExt;
use std::process::{Command as Process, Stdio};

use super::settings::ServerSettings;
use crate::socket::stopped_server;
use crate::{Batch, Error};
use process::ProcessError;

pub(super) use process::ProcessOutput;

/// Maximum size of an argument vector in bytes. tmux refuses more than 16,380.
const ARGV_LIMIT: usize = 16_000;

/// Maximum length of a command line in an error.
const DESCRIPTION_LIMIT: usize = 300;

/// Commands that start a server if none runs.
pub(super) const SERVER_STARTERS: [&str; 3] = ["new-session", "start-server", "attach-session"];

/// Whether the arguments of the commands may become visible to others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Privacy {
    /// The arguments may appear in an argument vector and in an error.
    Open,
    /// The arguments must not appear in either.
    Private,
}

/// Runs the batch and returns its stdout.
pub(super) fn capture(
    settings: &ServerSettings,
    batch: &Batch,
    privacy: Privacy,
) -> Result<Vec<u8>, Error> {
    let description = describe(batch, privacy);
    let argv = batch.argv();
    let mut client = settings.client();
    let finished = if privacy == Privacy::Open && is_one_argv(batch, &argv) {
        client.args(argv);
        run(settings, client, None, &description)?
    } else {
        // `source-file` starts no server, so `start-server` precedes it if the batch contains a
        // command that starts one, or if the batch is private.
        if starts_server(batch, privacy) {
            client.args(["start-server", ";"]);
        }
        client.args(["source-file", "-"]);
        run(
            settings,
            client,
            Some(batch.to_script().as_bytes()),
            &description,
        )?
    };
    answer(finished, || description)
}

/// Returns whether the batch starts a server if none runs.
pub(super) fn starts_server(batch: &Batch, privacy: Privacy) -> bool {
    let is_starter = |name: &str| SERVER_STARTERS.contains(&name);
    privacy == Privacy::Private || batch.commands().any(|command| is_starter(command.name()))
}

/// Returns whether the batch can be sent as this argument vector.
pub(super) fn is_one_argv(batch: &Batch, argv: &[String]) -> bool {
    batch.has_one_line() && argv.iter().map(|word| word.len() + 1).sum::<usize>() <= ARGV_LIMIT
}

/// Returns the output of `tmux -V`.
pub(super) fn print_version(settings: &ServerSettings) -> Result<String, Error> {
    let mut program = Process::new(settings.program());
    program.arg("-V");
    let finished = run(settings, program, None, "tmux -V")?;
    let printed = answer(finished, || "tmux -V".to_owned())?;
    Ok(String::from_utf8_lossy(&printed).into_owned())
}

fn run(
    settings: &ServerSettings,
    mut program: Process,
    input: Option<&[u8]>,
    description: &str,
) -> Result<ProcessOutput, Error> {
    // A separate process group, so that Ctrl-C at the terminal does not interrupt a command.
    program
        .process_group(0)
        .stdin(if input.is_some() {
            Stdio::piped()
        } else {
            Stdio::null()
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let timeout = settings.timeout();
    let socket = settings.socket_path();
    let stopped = || stopped_server(&socket);
    let finished = process::run(program, input.unwrap_or_default(), timeout, stopped);
    finished.map_err(|error| match error {
        ProcessError::Stopped(pid) => Error::Stopped { socket, pid },
        ProcessError::NotFound => Error::NotInstalled {
            program: settings.program().clone(),
        },
        ProcessError::TimedOut => Error::TimedOut {
            command: description.to_owned(),
            after: timeout,
        },
        ProcessError::Io(source) => Error::io(format!("run `{description}`"), source),
    })
}

/// Converts the result of a client that has exited into an answer or an error.
pub(super) fn answer(
    finished: ProcessOutput,
    description: impl FnOnce() -> String,
) -> Result<Vec<u8>, Error> {
    let ProcessOutput {
        code,
        stdout,
        stderr,
    } = finished;
    if code == Some(0) {
        return Ok(stdout);
    }
    // `source-file` prints parse errors to stdout.
    let said = if stderr.is_empty() { stdout } else { stderr };
    let said = String::from_utf8_lossy(&said);
    Err(Error::refused(description(), code, &said))
}

/// Returns the batch as text for an error.
pub(super) fn describe(batch: &Batch, privacy: Privacy) -> String {
    let words: Vec<String> = batch
        .commands()
        .map(|command| match privacy {
            Privacy::Open => command.to_line(),
            Privacy::Private => command.name().to_owned(),
        })
        .collect();
    let mut text = format!("tmux {}", words.join(" ; "));
    if let Some((end, _)) = text.char_indices().nth(DESCRIPTION_LIMIT) {
        text.truncate(end);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Command;

    #[test]
    fn a_private_description_holds_names_only() {
        let batch = Batch::from([
            Command::new("new-session").option("-e", "TOKEN=secret"),
            Command::new("set-option").arg("@k").arg("secret"),
        ]);
        assert_eq!(
            describe(&batch, Privacy::Private),
            "tmux new-session ; set-option"
        );
        assert!(describe(&batch, Privacy::Open).contains("secret"));
    }

    #[test]
    fn a_long_description_is_cut() {
        let batch = Batch::from(Command::new("send-keys").arg("ü".repeat(1000)));
        let text = describe(&batch, Privacy::Open);
        assert_eq!(text.chars().count(), DESCRIPTION_LIMIT + 1);
    }
}

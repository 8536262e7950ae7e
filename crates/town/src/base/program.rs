//! Runs a program to its end, to its timeout, or until it is cancelled. A program that does not
//! respond is killed, so that it does not block the caller.

use crate::Cancel;
use crate::base::processes;
use rustix::process::Signal;
use std::io::{self, Read};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Conditions under which a program is ended.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RunLimits<'a> {
    pub(crate) time: Option<Duration>,
    /// Cancellation by the caller.
    pub(crate) cancel: Option<&'a Cancel>,
    /// Time between TERM and KILL; if `None`, the program only gets TERM.
    pub(crate) grace: Option<Duration>,
}

/// A program that was ended, or whose output is incomplete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RunError {
    #[error("interrupted")]
    Cancelled,
    #[error("it took too long")]
    TimedOut,
    #[error("it printed more than 256 MiB")]
    TooMuchOutput,
    #[error("it ended without an answer")]
    NoAnswer,
}

/// Runs the program. Returns its output, or why it was ended.
pub(crate) fn output(
    mut command: Command,
    limits: &RunLimits<'_>,
) -> io::Result<Result<Output, RunError>> {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let process = processes::hold_one(child.id());
    let began = Instant::now();
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || sender.send(bounded_output(&mut child)));
    let mut ended: Option<(RunError, Instant)> = None;
    loop {
        match (receiver.recv_timeout(Duration::from_millis(50)), ended) {
            (Ok(output), None) => return output,
            (Ok(_), Some((reason, _))) => return Ok(Err(reason)),
            (Err(RecvTimeoutError::Disconnected), _) => {
                return Ok(Err(RunError::NoAnswer));
            }
            (Err(RecvTimeoutError::Timeout), _) => {}
        }
        if ended.is_none() {
            let is_late = limits.time.is_some_and(|time| began.elapsed() > time);
            let reason = match limits.cancel {
                Some(cancel) if cancel.is_set() => Some(RunError::Cancelled),
                _ => is_late.then_some(RunError::TimedOut),
            };
            ended = reason.map(|reason| (reason, Instant::now()));
        }
        let (Some((reason, since)), Some(process)) = (ended, &process) else {
            continue;
        };
        if process.has_ended() {
            // Its children may still hold the pipes open; they are not waited for.
            return Ok(Err(reason));
        }
        let is_over = limits.grace.is_some_and(|grace| since.elapsed() > grace);
        process.signal(if is_over { Signal::KILL } else { Signal::TERM });
    }
}

/// Maximum bytes of standard output. A program that prints more is killed: a truncated answer must
/// not be taken for a complete one.
const MAX_OUTPUT: u64 = 256 * 1024 * 1024;
/// Bytes of standard error that are kept, from its beginning and from its end.
const MAX_ERRORS: usize = 32 * 1024;

/// Waits for a program with piped output, and reads both pipes.
fn bounded_output(child: &mut Child) -> io::Result<Result<Output, RunError>> {
    let errors = child.stderr.take();
    let errors = std::thread::spawn(move || errors.map_or_else(Vec::new, ends_of));
    let mut stdout = Vec::new();
    if let Some(pipe) = child.stdout.take() {
        pipe.take(MAX_OUTPUT + 1).read_to_end(&mut stdout)?;
    }
    let is_too_much = stdout.len() as u64 > MAX_OUTPUT;
    if is_too_much {
        // The program may have ended by itself, because the pipe is closed.
        let _ = child.kill();
    }
    let status = child.wait()?;
    if is_too_much {
        return Ok(Err(RunError::TooMuchOutput));
    }
    // Fails only if the thread panicked.
    let stderr = errors.join().unwrap_or_default();
    Ok(Ok(Output {
        status,
        stdout,
        stderr,
    }))
}

/// Reads to the end of the pipe. Returns the beginning and the end of the text.
fn ends_of(mut pipe: impl Read) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut buffer = vec![0; 16 * 1024];
    let mut is_cut = false;
    while let Ok(count @ 1..) = pipe.read(&mut buffer) {
        kept.extend_from_slice(&buffer[..count]);
        if kept.len() > 2 * MAX_ERRORS {
            kept.drain(MAX_ERRORS..kept.len() - MAX_ERRORS);
            is_cut = true;
        }
    }
    if is_cut {
        let note = *b"\n[part of it is left out]\n";
        kept.splice(MAX_ERRORS..MAX_ERRORS, note);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::null());
        command
    }

    #[test]
    fn output_and_status_of_a_program_are_returned() {
        let output = output(shell("echo out; exit 3"), &RunLimits::default());
        let output = output.unwrap().unwrap();
        assert_eq!(output.stdout, b"out\n");
        assert_eq!(output.status.code(), Some(3));
    }

    #[test]
    fn endless_output_ends_the_program() {
        let ended = output(shell("exec yes"), &RunLimits::default()).unwrap();
        assert_eq!(ended.unwrap_err(), RunError::TooMuchOutput);
    }

    #[test]
    fn errors_keep_their_beginning_and_their_end() {
        let script = "echo first >&2; seq 1 100000 >&2; echo last >&2; echo out; exit 3";
        let output = output(shell(script), &RunLimits::default())
            .unwrap()
            .unwrap();
        assert_eq!(output.stdout, b"out\n");
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.len() < 2 * MAX_ERRORS + 100, "{}", text.len());
        assert!(text.starts_with("first\n1\n") && text.ends_with("100000\nlast\n"));
        assert!(text.contains("[part of it is left out]"));
    }

    #[test]
    fn program_that_exceeds_its_time_is_ended_even_if_it_ignores_term() {
        let limits = RunLimits {
            time: Some(Duration::from_millis(100)),
            grace: Some(Duration::from_millis(100)),
            ..RunLimits::default()
        };
        for script in [
            "exec sleep 1000",
            "trap '' TERM; while :; do sleep 0.1; done",
        ] {
            let ended = output(shell(script), &limits).unwrap();
            assert_eq!(ended.unwrap_err(), RunError::TimedOut, "{script}");
        }
    }

    #[test]
    fn stop_can_be_requested() {
        let cancel = Cancel::default();
        cancel
            .flag()
            .store(true, std::sync::atomic::Ordering::Relaxed);
        let limits = RunLimits {
            cancel: Some(&cancel),
            ..RunLimits::default()
        };
        let ended = output(shell("exec sleep 1000"), &limits).unwrap();
        assert_eq!(ended.unwrap_err(), RunError::Cancelled);
    }
}

//! Running a program to its end, to its time limit, or until somebody wants it to stop. It
//! is then ended by us: one that never answers must hold up nobody.

use crate::{Cancel, processes};
use rustix::process::Signal;
use std::io;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// When a program is ended that has not ended by itself.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limits<'a> {
    pub(crate) time: Option<Duration>,
    /// Somebody's wish that it stops.
    pub(crate) cancel: Option<&'a Cancel>,
    /// How long it may tidy up then, before it is killed; for ever where there is none.
    pub(crate) grace: Option<Duration>,
}

/// Runs it, and gives what it has printed, or why it was ended.
pub(crate) fn output(
    mut command: Command,
    limits: &Limits<'_>,
) -> io::Result<Result<Output, &'static str>> {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn()?;
    let process = processes::hold_one(child.id());
    let began = Instant::now();
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || sender.send(child.wait_with_output()));
    let mut ended: Option<(&'static str, Instant)> = None;
    loop {
        match (receiver.recv_timeout(Duration::from_millis(50)), ended) {
            (Ok(output), None) => return output.map(Ok),
            (Ok(_), Some((reason, _))) => return Ok(Err(reason)),
            (Err(RecvTimeoutError::Disconnected), _) => {
                return Ok(Err("it ended without an answer"));
            }
            (Err(RecvTimeoutError::Timeout), _) => {}
        }
        if ended.is_none() {
            let is_late = limits.time.is_some_and(|time| began.elapsed() > time);
            let reason = match limits.cancel {
                Some(cancel) if cancel.is_set() => Some("interrupted"),
                _ => is_late.then_some("it took too long"),
            };
            ended = reason.map(|reason| (reason, Instant::now()));
        }
        let (Some((reason, since)), Some(process)) = (ended, &process) else {
            continue;
        };
        if process.has_ended() {
            // What it has started may still hold its output, and is not waited for.
            return Ok(Err(reason));
        }
        let is_over = limits.grace.is_some_and(|grace| since.elapsed() > grace);
        process.signal(if is_over { Signal::KILL } else { Signal::TERM });
    }
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
    fn what_ends_by_itself_is_heard() {
        let output = output(shell("echo out; exit 3"), &Limits::default());
        let output = output.unwrap().unwrap();
        assert_eq!(output.stdout, b"out\n");
        assert_eq!(output.status.code(), Some(3));
    }

    #[test]
    fn what_takes_too_long_is_ended_also_if_it_does_not_want_to() {
        let limits = Limits {
            time: Some(Duration::from_millis(100)),
            grace: Some(Duration::from_millis(100)),
            ..Limits::default()
        };
        for script in [
            "exec sleep 1000",
            "trap '' TERM; while :; do sleep 0.1; done",
        ] {
            let ended = output(shell(script), &limits).unwrap();
            assert_eq!(ended.unwrap_err(), "it took too long", "{script}");
        }
    }

    #[test]
    fn somebody_can_want_it_to_stop() {
        let cancel = Cancel::default();
        cancel
            .flag()
            .store(true, std::sync::atomic::Ordering::Relaxed);
        let limits = Limits {
            cancel: Some(&cancel),
            ..Limits::default()
        };
        let ended = output(shell("exec sleep 1000"), &limits).unwrap();
        assert_eq!(ended.unwrap_err(), "interrupted");
    }
}

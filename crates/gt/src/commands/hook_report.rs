//! Reads the JSON report that an agent program writes to the standard input of a hook.
//!
//! Some programs leave the pipe open, and some reports hold whole files. Reading ends at a
//! complete JSON document, at the end of the input, at the deadline or after [`MAX_BYTES`],
//! whichever comes first. The rest of the input is not read.

use gt_core::Problem;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde_json::Value;
use std::io::IsTerminal;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// Maximum size of a report.
const MAX_BYTES: usize = 1_000_000;
const CHUNK: usize = 64 * 1024;

/// A report, and the reason why it is incomplete.
#[derive(Debug)]
pub(super) struct HookReport {
    /// `Null` if there is no report, or none that can be parsed.
    pub(super) value: Value,
    pub(super) problem: Option<Problem>,
}

impl HookReport {
    fn complete(value: Value) -> Self {
        HookReport {
            value,
            problem: None,
        }
    }

    fn failed(problem: Problem) -> Self {
        HookReport {
            value: Value::Null,
            problem: Some(problem),
        }
    }
}

/// Reads the report from standard input. Returns at once if that is a terminal.
pub(super) fn read(timeout: Duration) -> HookReport {
    let stdin = std::io::stdin();
    match stdin.is_terminal() {
        true => HookReport::complete(Value::Null),
        false => read_from(stdin.as_fd(), Instant::now() + timeout),
    }
}

fn read_from(input: BorrowedFd<'_>, deadline: Instant) -> HookReport {
    let mut text = Vec::new();
    let mut chunk = vec![0; CHUNK];
    loop {
        match is_readable(input, Duration::ZERO) {
            Ok(true) => {}
            Ok(false) => {
                // The program may leave the pipe open after its last byte.
                if text.trim_ascii_end().ends_with(b"}")
                    && let Ok(value) = serde_json::from_slice(&text)
                {
                    return HookReport::complete(value);
                }
                let left = deadline.saturating_duration_since(Instant::now());
                match is_readable(input, left) {
                    Ok(true) => {}
                    Ok(false) => return at_deadline(&text),
                    Err(error) => return cannot_read(error),
                }
            }
            Err(error) => return cannot_read(error),
        }
        // Input that never pauses must not outlast the deadline either.
        if Instant::now() >= deadline {
            return at_deadline(&text);
        }
        let room = (MAX_BYTES + 1 - text.len()).min(CHUNK);
        match rustix::io::read(input, &mut chunk[..room]) {
            Ok(0) => return parse(&text),
            Ok(count) => text.extend_from_slice(&chunk[..count]),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(error) => return cannot_read(error),
        }
        if text.len() > MAX_BYTES {
            return HookReport::failed(Problem::usage(format!(
                "the hook's report is longer than {MAX_BYTES} bytes"
            )));
        }
    }
}

/// Waits until the input has data or has ended. Returns false at the timeout.
fn is_readable(input: BorrowedFd<'_>, timeout: Duration) -> rustix::io::Result<bool> {
    let timeout = Timespec::try_from(timeout).ok();
    let mut fds = [PollFd::new(&input, PollFlags::IN)];
    match poll(&mut fds, timeout.as_ref()) {
        Ok(count) => Ok(count > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error),
    }
}

fn at_deadline(text: &[u8]) -> HookReport {
    match text.trim_ascii().is_empty() {
        true => HookReport::complete(Value::Null),
        false => HookReport::failed(Problem::failed("the hook's report is incomplete")),
    }
}

fn parse(text: &[u8]) -> HookReport {
    if text.trim_ascii().is_empty() {
        return HookReport::complete(Value::Null);
    }
    match serde_json::from_slice(text) {
        Ok(value) => HookReport::complete(value),
        Err(error) => {
            HookReport::failed(Problem::usage("the hook's report is not JSON").caused_by(error))
        }
    }
}

fn cannot_read(error: Errno) -> HookReport {
    HookReport::failed(Problem::failed("cannot read the hook's report").caused_by(error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::fs::File;
    use std::io::Write;
    use std::thread;

    /// Reads a report from a pipe while `write` has its other end.
    fn report(timeout: Duration, write: impl FnOnce(File) -> Option<File> + Send) -> HookReport {
        let (read_end, write_end) = rustix::pipe::pipe().unwrap();
        thread::scope(|scope| {
            let writer = scope.spawn(|| write(File::from(write_end)));
            let report = read_from(read_end.as_fd(), Instant::now() + timeout);
            drop(read_end);
            drop(writer.join());
            report
        })
    }

    #[test]
    fn complete_report_in_an_open_pipe_is_returned_before_the_deadline() {
        let began = Instant::now();
        let found = report(Duration::from_secs(60), |mut pipe| {
            pipe.write_all(b"{\"type\": {\"a\": 1}").unwrap();
            pipe.write_all(b"}\n").unwrap();
            Some(pipe)
        });
        assert_eq!(found.value, json!({"type": {"a": 1}}));
        assert!(found.problem.is_none());
        assert!(began.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn open_pipe_without_a_report_ends_at_the_deadline() {
        let found = report(Duration::from_millis(50), Some);
        assert_eq!(found.value, Value::Null);
        assert!(found.problem.is_none(), "{found:?}");
        let found = report(Duration::from_millis(50), |mut pipe| {
            pipe.write_all(b"{\"type\":").unwrap();
            Some(pipe)
        });
        assert_eq!(found.value, Value::Null);
        assert!(found.problem.is_some());
    }

    #[test]
    fn endless_input_is_refused_at_the_size_limit() {
        let found = report(Duration::from_secs(60), |mut pipe| {
            let mut written = 0;
            while pipe.write_all(&[b'['; 1024]).is_ok() {
                written += 1024;
                // The pipe's buffer holds data that was written and is never read.
                assert!(written < MAX_BYTES * 4, "the pipe is still read");
            }
            None
        });
        let problem = found.problem.unwrap();
        assert!(problem.message().contains("1000000 bytes"), "{problem}");
    }

    #[test]
    fn closed_pipe_ends_the_report() {
        let found = report(Duration::from_secs(60), |mut pipe| {
            pipe.write_all(b"[1]").unwrap();
            None
        });
        assert_eq!(found.value, json!([1]));
        let found = report(Duration::from_secs(60), |_| None);
        assert_eq!(found.value, Value::Null);
        assert!(found.problem.is_none());
        let found = report(Duration::from_secs(60), |mut pipe| {
            pipe.write_all(b"not JSON").unwrap();
            None
        });
        assert!(found.problem.is_some());
    }
}

//! Runs a child process with stdin, stdout and stderr, within a timeout.
//!
//! One thread does all I/O with `poll`: a child that fills its stdout while we still write its
//! stdin must not block either side.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::{Child, ChildStdin, Command};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

const CHUNK: usize = 64 * 1024;

/// Time without an answer after which the server is checked for being stopped.
const SILENCE: Duration = Duration::from_millis(300);

/// The result of a process that has exited.
#[derive(Debug)]
pub(in crate::server) struct ProcessOutput {
    /// `None` if a signal ended the process.
    pub(in crate::server) code: Option<i32>,
    pub(in crate::server) stdout: Vec<u8>,
    pub(in crate::server) stderr: Vec<u8>,
}

#[derive(Debug)]
pub(super) enum ProcessError {
    NotFound,
    TimedOut,
    /// The server that the process waits for is stopped; this is the pid of the server.
    Stopped(i32),
    Io(io::Error),
}

impl From<io::Error> for ProcessError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Runs the program with `input` on its stdin; the caller has set up its streams. Kills a child
/// that exceeds the timeout, and a child that waits for a stopped server: `stopped` returns the pid
/// of that server.
pub(super) fn run(
    mut program: Command,
    input: &[u8],
    timeout: Duration,
    stopped: impl Fn() -> Option<i32>,
) -> Result<ProcessOutput, ProcessError> {
    let deadline = Instant::now() + timeout;
    let mut child = program.spawn().map_err(|error| match error.kind() {
        ErrorKind::NotFound => ProcessError::NotFound,
        _ => ProcessError::Io(error),
    })?;
    // The builder holds copies of the pipe ends; while they are open, stdout would never close.
    drop(program);
    let drained = drain(&mut child, input, deadline, stopped);
    if drained.is_err() {
        // The answer is lost in any case, and `drained` already holds the error to report.
        let _ = child.kill();
    }
    let status = child.wait()?;
    let (stdout, stderr) = drained?;
    Ok(ProcessOutput {
        code: status.code(),
        stdout,
        stderr,
    })
}

fn drain(
    child: &mut Child,
    input: &[u8],
    deadline: Instant,
    stopped: impl Fn() -> Option<i32>,
) -> Result<(Vec<u8>, Vec<u8>), ProcessError> {
    let mut feed = Feed::new(child.stdin.take(), input)?;
    let mut stdout = Drain::new(child.stdout.take());
    let mut stderr = Drain::new(child.stderr.take());
    while stdout.is_open() || stderr.is_open() {
        let mut polled = Vec::with_capacity(3);
        polled.extend(
            stdout
                .fd()
                .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)),
        );
        polled.extend(
            stderr
                .fd()
                .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)),
        );
        polled.extend(
            feed.fd()
                .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::OUT)),
        );
        let slice = deadline.min(Instant::now() + SILENCE);
        if !wait(&mut polled, slice)? {
            if let Some(pid) = stopped() {
                return Err(ProcessError::Stopped(pid));
            }
            if Instant::now() >= deadline {
                return Err(ProcessError::TimedOut);
            }
            continue;
        }
        let mut ready = polled
            .iter()
            .map(|fd| !fd.revents().is_empty())
            .collect::<Vec<_>>()
            .into_iter();
        let mut is_ready = |open: bool| open && ready.next().unwrap_or(false);
        if is_ready(stdout.is_open()) {
            stdout.read()?;
        }
        if is_ready(stderr.is_open()) {
            stderr.read()?;
        }
        if is_ready(feed.fd().is_some()) {
            feed.write()?;
        }
    }
    Ok((stdout.bytes, stderr.bytes))
}

/// Waits for any of the descriptors. Returns false after the deadline.
fn wait(polled: &mut [PollFd<'_>], deadline: Instant) -> io::Result<bool> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout =
            Timespec::try_from(left).map_err(|_| io::Error::from(ErrorKind::InvalidInput))?;
        match poll(polled, Some(&timeout)) {
            Ok(count) => return Ok(count > 0),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// A stream of the child that is read to its end.
struct Drain<R> {
    stream: Option<R>,
    bytes: Vec<u8>,
}

impl<R: Read + AsFd> Drain<R> {
    fn new(stream: Option<R>) -> Self {
        Self {
            stream,
            bytes: Vec::new(),
        }
    }

    fn is_open(&self) -> bool {
        self.stream.is_some()
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.stream.as_ref().map(AsFd::as_fd)
    }

    /// Reads the available bytes. One `read` after a successful `poll` does not block.
    fn read(&mut self) -> io::Result<()> {
        let Some(stream) = &mut self.stream else {
            return Ok(());
        };
        let filled = self.bytes.len();
        self.bytes.resize(filled + CHUNK, 0);
        let read = stream.read(&mut self.bytes[filled..]);
        self.bytes
            .truncate(filled + read.as_ref().copied().unwrap_or(0));
        match read {
            Ok(0) => self.stream = None,
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

/// The child's stdin, and the bytes that remain to be written.
struct Feed<'a> {
    stream: Option<ChildStdin>,
    left: &'a [u8],
}

impl<'a> Feed<'a> {
    fn new(stream: Option<ChildStdin>, input: &'a [u8]) -> io::Result<Self> {
        if let Some(stream) = &stream {
            // `poll` guarantees room for some bytes, not for all of them.
            fcntl_setfl(stream, fcntl_getfl(stream)? | OFlags::NONBLOCK)?;
        }
        Ok(Self {
            stream,
            left: input,
        })
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.stream.as_ref().map(AsFd::as_fd)
    }

    /// Writes as much as fits, and closes the stream after the last byte.
    fn write(&mut self) -> io::Result<()> {
        let Some(stream) = &mut self.stream else {
            return Ok(());
        };
        match stream.write(self.left) {
            Ok(written) => self.left = &self.left[written..],
            // The child closed its stdin; its exit code reports the cause.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => self.left = &[],
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                return Ok(());
            }
            Err(error) => return Err(error),
        }
        if self.left.is_empty() {
            self.stream = None;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Stdio;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    const LONG: Duration = Duration::from_secs(20);

    #[test]
    fn feeds_and_drains_at_once() {
        let input = vec![b'x'; 1_000_000];
        let finished = run(shell("cat; echo oops >&2; exit 3"), &input, LONG, || None).unwrap();
        assert_eq!(finished.code, Some(3));
        assert_eq!(finished.stdout, input);
        assert_eq!(finished.stderr, b"oops\n");
    }

    #[test]
    fn a_child_that_does_not_read_is_no_error() {
        let finished = run(
            shell("exec 0<&-; echo done"),
            &vec![b'x'; 1_000_000],
            LONG,
            || None,
        )
        .unwrap();
        assert_eq!(finished.stdout, b"done\n");
    }

    #[test]
    fn a_slow_child_is_killed() {
        let started = Instant::now();
        let error = run(
            shell("exec sleep 60"),
            b"",
            Duration::from_millis(50),
            || None,
        )
        .unwrap_err();
        assert!(matches!(error, ProcessError::TimedOut));
        assert!(started.elapsed() < LONG);
    }

    #[test]
    fn a_missing_program_is_named_so() {
        let error = run(Command::new("/nonexistent/tmux"), b"", LONG, || None).unwrap_err();
        assert!(matches!(error, ProcessError::NotFound));
    }
}

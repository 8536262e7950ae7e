//! Runs a shell command with text as its input, and collects its output, without threads.
//!
//! Hooks and tools use it. The caller polls the descriptors of [`Running::watch`] and then calls
//! [`Running::transfer`]. The end of the command is reported by SIGCHLD, so a background process that
//! keeps the pipes open does not delay it.

use std::io::{self, ErrorKind, PipeReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Pid, Signal, kill_process_group};

/// Maximum size of each output; the rest is read and dropped.
const OUTPUT_LIMIT: usize = 1 << 20;

#[derive(Debug)]
pub(super) struct Running {
    child: Child,
    input: Option<PipedInput>,
    stdout: Output,
    stderr: Output,
}

#[derive(Debug)]
pub(super) struct CommandOutput {
    pub(super) stdout: String,
    pub(super) stderr: String,
    pub(super) status: ExitStatus,
}

#[derive(Debug)]
struct PipedInput {
    pipe: ChildStdin,
    bytes: Vec<u8>,
    written: usize,
}

#[derive(Debug)]
struct Output {
    pipe: Option<PipeReader>,
    bytes: Vec<u8>,
}

impl Running {
    pub(super) fn start(command: &str, input: Vec<u8>) -> io::Result<Self> {
        let (stdout, out) = Output::open()?;
        let (stderr, err) = Output::open()?;
        let mut child = Command::new("sh")
            .args(["-c", command])
            .stdin(if input.is_empty() {
                Stdio::null()
            } else {
                Stdio::piped()
            })
            .stdout(out)
            .stderr(err)
            // A separate process group, so that a kill reaches all its processes.
            .process_group(0)
            .spawn()?;
        let input = match child.stdin.take() {
            Some(pipe) => {
                fcntl_setfl(&pipe, fcntl_getfl(&pipe)? | OFlags::NONBLOCK)?;
                Some(PipedInput {
                    pipe,
                    bytes: input,
                    written: 0,
                })
            }
            None => None,
        };
        Ok(Self {
            child,
            input,
            stdout,
            stderr,
        })
    }

    /// Adds the descriptors to poll.
    pub(super) fn watch<'a>(&'a self, fds: &mut Vec<PollFd<'a>>) {
        let outputs = [&self.stdout.pipe, &self.stderr.pipe].into_iter().flatten();
        fds.extend(outputs.map(|pipe| PollFd::new(pipe, PollFlags::IN)));
        if let Some(input) = &self.input {
            fds.push(PollFd::new(&input.pipe, PollFlags::OUT));
        }
    }

    /// Reads and writes as much as possible without blocking. Returns the result once the command
    /// has ended.
    pub(super) fn transfer(&mut self) -> io::Result<Option<CommandOutput>> {
        // Checked first: after the end, all output of the command is in the pipes.
        let ended = self.child.try_wait()?;
        if self.input.as_mut().is_some_and(PipedInput::write) {
            self.input = None;
        }
        self.stdout.read();
        self.stderr.read();
        Ok(ended.map(|status| CommandOutput {
            stdout: self.stdout.take(),
            stderr: self.stderr.take(),
            status,
        }))
    }

    /// Kills the command and its process group.
    pub(super) fn kill(&mut self) {
        // Both fail only if the command has already ended.
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.wait();
    }
}

impl CommandOutput {
    /// Describes the status, unless it is 0.
    pub(super) fn failure(&self) -> Option<String> {
        match (self.status.code(), self.status.signal()) {
            (Some(0), _) => None,
            (Some(code), _) => Some(format!("exit code {code}")),
            (None, Some(signal)) => Some(format!("signal {signal}")),
            (None, None) => Some("unknown status".to_owned()),
        }
    }
}

impl PipedInput {
    /// Writes as much as possible. Returns true when all is written.
    fn write(&mut self) -> bool {
        while self.written < self.bytes.len() {
            match self.pipe.write(&self.bytes[self.written..]) {
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
                // The command may close its input without reading it.
                Err(_) => return true,
            }
        }
        true
    }
}

impl Output {
    fn open() -> io::Result<(Self, Stdio)> {
        let (read, write) = io::pipe()?;
        fcntl_setfl(&read, fcntl_getfl(&read)? | OFlags::NONBLOCK)?;
        let output = Self {
            pipe: Some(read),
            bytes: Vec::new(),
        };
        Ok((output, write.into()))
    }

    fn read(&mut self) {
        let mut chunk = [0; 16 * 1024];
        while let Some(pipe) = &mut self.pipe {
            match pipe.read(&mut chunk) {
                Ok(0) => self.pipe = None,
                Ok(count) => {
                    let room = OUTPUT_LIMIT.saturating_sub(self.bytes.len());
                    self.bytes.extend_from_slice(&chunk[..count.min(room)]);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => self.pipe = None,
            }
        }
    }

    fn take(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.bytes)).into_owned()
    }
}

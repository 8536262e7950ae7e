//! The pipe for commands, written with a timeout.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

#[derive(Debug)]
pub(super) struct ControlInput {
    pipe: File,
}

impl ControlInput {
    pub(super) fn new(pipe: File) -> io::Result<Self> {
        // The flag applies to our end only: the other end is a separate open file description.
        fcntl_setfl(&pipe, fcntl_getfl(&pipe)? | OFlags::NONBLOCK)?;
        Ok(Self { pipe })
    }

    /// Writes the whole text, or fails. After a failure the stream must not be used again.
    pub(super) fn write(&mut self, text: &str, timeout: Duration) -> io::Result<()> {
        let deadline = Instant::now() + timeout;
        let mut left = text.as_bytes();
        while !left.is_empty() {
            match self.pipe.write(left) {
                Ok(written) => left = &left[written..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.wait(deadline)?,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn wait(&self, deadline: Instant) -> io::Result<()> {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout =
            Timespec::try_from(left).map_err(|_| io::Error::from(ErrorKind::InvalidInput))?;
        match poll(
            &mut [PollFd::from_borrowed_fd(self.pipe.as_fd(), PollFlags::OUT)],
            Some(&timeout),
        ) {
            Ok(0) => Err(ErrorKind::TimedOut.into()),
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

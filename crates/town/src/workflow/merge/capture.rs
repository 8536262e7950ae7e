//! Captures the output of a command in a bounded log, which keeps the beginning and the end.
//!
//! The command writes into a pipe that is always drained, so that it never blocks and never fills
//! the disk.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Number of bytes kept of the beginning, and of the end.
const HEAD: u64 = 512 * 1024;
const TAIL: usize = 512 * 1024;

/// Output of one command, written to a log.
#[derive(Debug)]
pub(super) struct Capture(Arc<SharedCapture>);

#[derive(Debug)]
struct SharedCapture {
    state: Mutex<CaptureState>,
    changed: Condvar,
}

#[derive(Debug)]
struct CaptureState {
    log: File,
    written: u64,
    tail: VecDeque<u8>,
    omitted: u64,
    /// Every writer of the pipe has closed it.
    is_at_end: bool,
    /// The log is complete; later output is dropped.
    is_finished: bool,
    failure: Option<io::Error>,
}

impl Capture {
    /// Starts reading. Returns the write end of the pipe for the command; the caller must close its
    /// copy once the command has it.
    pub(super) fn begin(log: File) -> io::Result<(Self, PipeWriter)> {
        let (reader, writer) = io::pipe()?;
        let shared = Arc::new(SharedCapture {
            state: Mutex::new(CaptureState {
                log,
                written: 0,
                tail: VecDeque::new(),
                omitted: 0,
                is_at_end: false,
                is_finished: false,
                failure: None,
            }),
            changed: Condvar::new(),
        });
        let reading = Arc::clone(&shared);
        std::thread::spawn(move || read(reader, &reading));
        Ok((Capture(shared), writer))
    }

    /// Completes the log once all writers have closed the pipe, or at the timeout: a process that
    /// outlives the command may keep the pipe open.
    pub(super) fn finish(self, timeout: Duration) -> io::Result<()> {
        let state = lock(&self.0.state);
        let waited = self
            .0
            .changed
            .wait_timeout_while(state, timeout, |state| !state.is_at_end);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.is_finished = true;
        if let Some(failure) = state.failure.take() {
            return Err(failure);
        }
        let CaptureState {
            log, tail, omitted, ..
        } = &mut *state;
        if *omitted > 0 {
            writeln!(log, "\n[{omitted} bytes are left out here]")?;
        }
        let (first, second) = tail.as_slices();
        log.write_all(first)?;
        log.write_all(second)
    }
}

fn read(mut reader: PipeReader, shared: &SharedCapture) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let count = match reader.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        lock(&shared.state).take(&buffer[..count]);
    }
    lock(&shared.state).is_at_end = true;
    shared.changed.notify_all();
}

impl CaptureState {
    fn take(&mut self, bytes: &[u8]) {
        if self.is_finished || self.failure.is_some() {
            return;
        }
        let room = usize::try_from(HEAD - self.written).unwrap_or(0);
        let (head, rest) = bytes.split_at(room.min(bytes.len()));
        self.written += head.len() as u64;
        if let Err(error) = self.log.write_all(head) {
            // The command keeps running; `finish` returns the error.
            self.failure = Some(error);
            return;
        }
        // Keep only the last bytes.
        let skipped = rest.len().saturating_sub(TAIL);
        let kept = &rest[skipped..];
        let over = (self.tail.len() + kept.len()).saturating_sub(TAIL);
        self.tail.drain(..over);
        self.tail.extend(kept);
        self.omitted += (skipped + over) as u64;
    }
}

fn lock(state: &Mutex<CaptureState>) -> MutexGuard<'_, CaptureState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const LONG: Duration = Duration::from_secs(30);

    fn captured(write: impl FnOnce(PipeWriter)) -> Vec<u8> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.log");
        let (capture, writer) = Capture::begin(File::create(&path).unwrap()).unwrap();
        write(writer);
        capture.finish(LONG).unwrap();
        fs::read(path).unwrap()
    }

    #[test]
    fn short_output_is_kept_whole() {
        let text = captured(|mut pipe| pipe.write_all(b"a\nb\n").unwrap());
        assert_eq!(text, b"a\nb\n");
        let whole = vec![b'x'; usize::try_from(HEAD).unwrap() + TAIL];
        let text = captured(|mut pipe| pipe.write_all(&whole).unwrap());
        assert_eq!(text, whole);
    }

    #[test]
    fn long_output_keeps_its_beginning_and_its_end() {
        let text = captured(|mut pipe| {
            pipe.write_all(b"first\n").unwrap();
            for _ in 0..1_000 {
                pipe.write_all(&[b'y'; 10_000]).unwrap();
            }
            pipe.write_all(b"\nlast\n").unwrap();
        });
        let most = usize::try_from(HEAD).unwrap() + TAIL + 100;
        assert!(text.len() < most, "{}", text.len());
        assert!(text.starts_with(b"first\ny") && text.ends_with(b"y\nlast\n"));
        let omitted = 10_000_000 + 12 - HEAD - TAIL as u64;
        let note = format!("\n[{omitted} bytes are left out here]\n");
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains(&note), "{note}");
    }

    #[test]
    fn process_that_keeps_the_pipe_open_does_not_block() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.log");
        let (capture, mut writer) = Capture::begin(File::create(&path).unwrap()).unwrap();
        writer.write_all(b"a\n").unwrap();
        capture.finish(Duration::from_millis(200)).unwrap();
        writer.write_all(b"late\n").unwrap();
        drop(writer);
        assert_eq!(fs::read(path).unwrap(), b"a\n");
    }
}

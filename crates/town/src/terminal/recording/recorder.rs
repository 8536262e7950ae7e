//! The process that records one session, while tmux pipes the pane's output into it.
//!
//! A separate thread reads the input without delay: tmux buffers unread input, and does not report
//! a pane as dead before all of it is read. If the disk is slow, the recording has a gap; if it is
//! full, the recording ends. Neither affects the agent. Bytes that arrive within a few milliseconds
//! become one event, which is written immediately, so that little is lost if this process is
//! killed.

use super::Recordings;
use super::writer::Writer;
use crate::base::{files, processes};
use crate::{Result, Town};
use gt_core::cast::{self, CastHeader};
use gt_core::session::SessionId;
use gt_tmux::{Batch, Command, ErrorKind, PaneId};
use rustix::fs::{Mode, OFlags};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Time within which bytes are combined into one event.
const MOMENT: Duration = Duration::from_millis(8);
/// Maximum number of bytes that wait for the disk; above it the older half is dropped.
const MAX_WAITING: usize = 32 << 20;
/// Time without output after which tmux is asked whether the pane of an ended process is dead: the
/// first and the maximum interval. It doubles while other processes keep the terminal open.
const QUIET: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(30));
/// Practically unlimited; the wait requires a timeout.
const LONG: Duration = Duration::from_secs(60 * 60 * 24 * 365);

/// Parameters of a recording.
#[derive(Clone, Debug)]
pub struct RecordRequest {
    pub session: SessionId,
    pub pane: PaneId,
    /// The pane's first process.
    pub pid: u32,
    pub tty: PathBuf,
    pub columns: u16,
    pub rows: u16,
    pub title: String,
    pub term: String,
    /// Maximum size on the disk.
    pub max_bytes: u64,
}

/// Records until the pane is dead or gone, or the input is closed.
pub fn record(
    town: &Town,
    request: &RecordRequest,
    input: impl Read + Send + 'static,
) -> Result<()> {
    let began = Instant::now();
    let inbox = ReceivedBytes::filled_from(input);
    inbox.watch(request.pid);
    let recordings = Recordings::of(town);
    let header = CastHeader {
        version: 2,
        width: request.columns,
        height: request.rows,
        timestamp: Some(town.clock().seconds()),
        title: Some(request.title.clone()),
        env: BTreeMap::from([("TERM".to_owned(), request.term.clone())]),
        part: None,
    };
    let session = request.session.to_string();
    let mut writer = Writer::create(&recordings.folder, &session, header, request.max_bytes)?;
    let seconds = |at: Instant| at.saturating_duration_since(began).as_secs_f64();
    let mut write = |batch: &ByteRun| {
        let at = seconds(batch.since);
        if let Some((columns, rows)) = size_of(&request.tty).filter(|_| !batch.process_ended) {
            writer.size(at, columns, rows)?;
        }
        if batch.dropped > 0 {
            let much = cast::size(batch.dropped);
            let remark = format!("{much} are missing here: the disk was too slow");
            writer.write_remark(at, remark)?;
        }
        writer.output(at, &batch.bytes)?;
        writer.flush()
    };
    let outcome = loop {
        let batch = inbox.next(|| is_over(town, request));
        if let Err(error) = write(&batch) {
            break Err(error);
        }
        if batch.is_last {
            break Ok(());
        }
    };
    let at = seconds(Instant::now());
    match outcome {
        Ok(()) => writer.finish(at),
        Err(error) => {
            // There may be room for this line, because the failed write was rolled back.
            let _ = writer.write_remark(at, format!("the recording ends here: {error}"));
            let _ = writer.flush();
            Err(error)
        }
    }
    .map_err(|error| files::io_problem("record into", &recordings.folder, &error))
}

/// Returns whether the pane of an ended process is dead, gone or reused. tmux keeps the pipe of a
/// dead pane open.
fn is_over(town: &Town, request: &RecordRequest) -> bool {
    let ask = Batch::new()
        // Old versions of tmux may miss the end of a process until another child process ends.
        .then(Command::new("run-shell").args(["-b", "true"]))
        .then(
            Command::new("display-message")
                .arg("-p")
                .target(request.pane)
                .arg("#{pane_dead} #{pane_pid}"),
        );
    match town.server().run(ask) {
        Ok(answer) => answer.trim() != format!("0 {}", request.pid),
        // Other errors may be transient, and the pipe closes when the server ends.
        Err(error) => error.kind() == ErrorKind::NoSuchPane,
    }
}

/// Returns the size of the pane, from its terminal. Closes the terminal immediately: while it is
/// open, tmux does not report the pane as dead.
fn size_of(tty: &Path) -> Option<(u16, u16)> {
    let flags = OFlags::RDONLY | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    // If the terminal is gone with its pane, the recorded size stays.
    let file = rustix::fs::open(tty, flags, Mode::empty()).ok()?;
    let size = rustix::termios::tcgetwinsize(file).ok()?;
    (size.ws_col > 0 && size.ws_row > 0).then_some((size.ws_col, size.ws_row))
}

/// Bytes that were received and are not written yet.
#[derive(Clone, Debug, Default)]
struct ReceivedBytes(Arc<(Mutex<UnwrittenBytes>, Condvar)>);

#[derive(Debug, Default)]
struct UnwrittenBytes {
    bytes: Vec<u8>,
    /// Time at which the first of them arrived.
    since: Option<Instant>,
    dropped: u64,
    is_closed: bool,
    process_ended: bool,
}

/// Bytes that arrived together.
#[derive(Debug)]
struct ByteRun {
    bytes: Vec<u8>,
    since: Instant,
    dropped: u64,
    process_ended: bool,
    /// No bytes follow.
    is_last: bool,
}

impl ReceivedBytes {
    /// Creates an inbox that a new thread fills.
    fn filled_from(mut input: impl Read + Send + 'static) -> Self {
        let inbox = ReceivedBytes::default();
        let filled = inbox.clone();
        std::thread::spawn(move || {
            let mut buffer = vec![0; 1 << 16];
            loop {
                match input.read(&mut buffer) {
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                    Ok(0) | Err(_) => return filled.change(|waiting| waiting.is_closed = true),
                    Ok(length) => filled.change(|waiting| waiting.add(&buffer[..length])),
                }
            }
        });
        inbox
    }

    /// Notes the end of that process, in a new thread.
    fn watch(&self, pid: u32) {
        let inbox = self.clone();
        std::thread::spawn(move || {
            let process = processes::hold_one(pid);
            // Returns only after its end.
            let _ = processes::wait_all(process.into_iter().collect(), LONG);
            inbox.change(|waiting| waiting.process_ended = true);
        });
    }

    fn lock(&self) -> MutexGuard<'_, UnwrittenBytes> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut UnwrittenBytes)) {
        change(&mut self.lock());
        self.0.1.notify_all();
    }

    /// Waits for bytes, and [`MOMENT`] longer for those that follow immediately. If the process has
    /// ended and no bytes arrive for a while, calls `is_over` to check whether more can come.
    fn next(&self, is_over: impl Fn() -> bool) -> ByteRun {
        let mut quiet = QUIET.0;
        loop {
            let mut waiting = self.lock();
            let asked = waiting.process_ended;
            let timeout = if asked { quiet } else { LONG };
            let idle = |waiting: &mut UnwrittenBytes| {
                waiting.bytes.is_empty() && !waiting.is_closed && waiting.process_ended == asked
            };
            let waited = self.0.1.wait_timeout_while(waiting, timeout, idle);
            waiting = waited.unwrap_or_else(PoisonError::into_inner).0;
            if waiting.is_closed {
                return waiting.take(true);
            }
            let has_bytes = !waiting.bytes.is_empty();
            drop(waiting);
            if has_bytes {
                std::thread::sleep(MOMENT);
                let mut waiting = self.lock();
                // Nothing follows a close, so one check is enough.
                let is_closed = waiting.is_closed;
                return waiting.take(is_closed);
            }
            if asked && is_over() {
                return self.lock().take(true);
            }
            if asked {
                quiet = (quiet * 2).min(QUIET.1);
            }
        }
    }
}

impl UnwrittenBytes {
    fn add(&mut self, bytes: &[u8]) {
        self.since.get_or_insert_with(Instant::now);
        self.bytes.extend_from_slice(bytes);
        if self.bytes.len() > MAX_WAITING {
            // The newest output is worth more. Drops half at a time, because each drop moves the
            // rest.
            let half = self.bytes.len() / 2;
            self.bytes.drain(..half);
            self.dropped += half as u64;
        }
    }

    fn take(&mut self, is_last: bool) -> ByteRun {
        ByteRun {
            bytes: std::mem::take(&mut self.bytes),
            since: self.since.take().unwrap_or_else(Instant::now),
            dropped: std::mem::take(&mut self.dropped),
            process_ended: self.process_ended,
            is_last,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    #[test]
    fn buffered_output_is_one_batch_and_the_end_is_noticed() {
        let (mut tmux, own) = UnixStream::pair().unwrap();
        let inbox = ReceivedBytes::filled_from(own);
        tmux.write_all(b"one").unwrap();
        let first = inbox.next(|| false);
        assert_eq!(
            (first.bytes.as_slice(), first.is_last),
            (&b"one"[..], false)
        );
        // More than a pipe holds: it is read although no caller takes it.
        tmux.write_all(&vec![b'x'; 4 << 20]).unwrap();
        drop(tmux);
        let mut length = 0;
        loop {
            let batch = inbox.next(|| false);
            length += batch.bytes.len();
            if batch.is_last {
                break;
            }
        }
        assert_eq!(length, 4 << 20);
    }

    #[test]
    fn a_dead_pane_ends_it_though_the_pipe_stays() {
        let (mut tmux, own) = UnixStream::pair().unwrap();
        let inbox = ReceivedBytes::filled_from(own);
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        inbox.watch(child.id());
        tmux.write_all(b"last words").unwrap();
        let batch = inbox.next(|| panic!("there was something to write"));
        assert_eq!(batch.bytes, b"last words");
        assert!(inbox.next(|| true).is_last);
    }

    #[test]
    fn a_slow_disk_costs_a_gap_and_no_memory() {
        let mut waiting = UnwrittenBytes::default();
        let piece = vec![b'x'; MAX_WAITING / 4];
        for _ in 0..10 {
            waiting.add(&piece);
            assert!(waiting.bytes.len() <= MAX_WAITING);
        }
        waiting.add(b"the end");
        let batch = waiting.take(false);
        assert!(batch.bytes.ends_with(b"the end"));
        let all = batch.dropped + batch.bytes.len() as u64;
        assert_eq!(all, (10 * piece.len() + "the end".len()) as u64);
        assert!(waiting.bytes.is_empty() && waiting.dropped == 0);
    }
}

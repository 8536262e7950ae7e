//! The terminal's size and input.
//!
//! Uses plain termios and read instead of crossterm's event reader: it needs no second event loop,
//! and reads a paste of megabytes in large chunks. `input` decodes the bytes.

use std::io::{self, stdin, stdout};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::tcgetwinsize;

/// Maximum size of one batch of input. The screen is drawn after each batch.
const BATCH: usize = 1 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TerminalSize {
    pub(super) columns: usize,
    pub(super) rows: usize,
}

pub(super) fn size() -> TerminalSize {
    match tcgetwinsize(stdout()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => TerminalSize {
            columns: size.ws_col.into(),
            rows: size.ws_row.into(),
        },
        _ => TerminalSize {
            columns: 80,
            rows: 24,
        },
    }
}

/// Reads the available input, up to [`BATCH`]. An error or the end of input means that the terminal
/// is gone.
pub(super) fn read_available(into: &mut Vec<u8>) -> io::Result<()> {
    let stdin = stdin();
    let mut chunk = [0; 16 * 1024];
    loop {
        match rustix::io::read(&stdin, &mut chunk) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => into.extend_from_slice(&chunk[..count]),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        if into.len() >= BATCH || !poll(&mut fds, Some(&now)).is_ok_and(|ready| ready > 0) {
            return Ok(());
        }
    }
}

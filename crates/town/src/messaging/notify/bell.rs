//! Rings the terminals of attached clients.
//!
//! tmux has no command for this: a bell in a *pane* reaches only clients that show its session, and
//! printing into an agent's pane could damage its screen. So the byte is written to the terminal of
//! each client. Both this write and tmux's are atomic. Only if tmux's own write was split under
//! heavy output can the byte fall into an escape sequence, which then shows as a stray character
//! until the next redraw. A terminal that would block is skipped.

use crate::terminal::containers::tmux_problem;
use crate::{Result, Town};
use gt_core::Problem;
use gt_tmux::{Command, ErrorKind};
use rustix::fs::{Mode, OFlags, open};
use rustix::termios::isatty;

pub(super) fn ring(town: &Town) -> Result<usize> {
    let list = Command::new("list-clients").args(["-F", "#{client_control_mode} #{client_tty}"]);
    let clients = match town.server().run(list) {
        Ok(clients) => clients,
        // Without a server there are no clients.
        Err(error) if error.kind() == ErrorKind::NoServer => return Ok(0),
        Err(error) => return Err(tmux_problem("cannot tell who is attached", error)),
    };
    let terminals = clients.lines().filter_map(|line| line.strip_prefix("0 "));
    let mut failed = None;
    let mut rung = 0;
    for tty in terminals.filter(|tty| tty.starts_with("/dev/")) {
        match ring_one(tty) {
            Ok(()) => rung += 1,
            Err(error) => {
                failed = Some(Problem::failed(format!("cannot ring {tty}")).caused_by(error));
            }
        }
    }
    failed.map_or(Ok(rung), Err)
}

/// Writes one byte without blocking. Fails if the file is not a terminal.
fn ring_one(tty: &str) -> std::io::Result<()> {
    let flags =
        OFlags::WRONLY | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let terminal = open(tty, flags, Mode::empty())?;
    if !isatty(&terminal) {
        return Err(std::io::Error::other("not a terminal"));
    }
    match rustix::io::write(&terminal, b"\x07") {
        Ok(_) | Err(rustix::io::Errno::AGAIN) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

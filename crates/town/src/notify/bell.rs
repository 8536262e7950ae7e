//! Ringing the terminals of those who are attached.
//!
//! tmux has no command that rings: a bell that a *pane* prints reaches only those who look
//! at its session, and printing into an agent's pane could break what it draws. So the one
//! byte is written to the terminal of each client. Such a write is whole, and tmux writes
//! whole sequences too; only in the middle of a flood, when a write of its own had to be cut,
//! could the byte fall into a sequence, which then shows as a stray sign until the next
//! redraw. A terminal that takes nothing now is left alone.

use crate::containers::tmux_problem;
use crate::{Result, Town};
use gt_core::Problem;
use gt_tmux::{Command, ErrorKind};
use rustix::fs::{Mode, OFlags, open};
use rustix::termios::isatty;

pub(super) fn ring(town: &Town) -> Result<()> {
    let list = Command::new("list-clients").args(["-F", "#{client_control_mode} #{client_tty}"]);
    let clients = match town.server().run(list) {
        Ok(clients) => clients,
        // Nobody can be attached where nothing runs.
        Err(error) if error.kind() == ErrorKind::NoServer => return Ok(()),
        Err(error) => return Err(tmux_problem("cannot tell who is attached", error)),
    };
    let terminals = clients.lines().filter_map(|line| line.strip_prefix("0 "));
    let mut failed = None;
    for tty in terminals.filter(|tty| tty.starts_with("/dev/")) {
        if let Err(error) = ring_one(tty) {
            failed = Some(Problem::failed(format!("cannot ring {tty}")).caused_by(error));
        }
    }
    failed.map_or(Ok(()), Err)
}

/// Writes one byte, and waits for nobody. What is no terminal is not written to.
fn ring_one(tty: &str) -> std::io::Result<()> {
    let flags =
        OFlags::WRONLY | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let terminal = open(tty, flags, Mode::empty())?;
    if !isatty(&terminal) {
        return Err(std::io::Error::other("it is no terminal"));
    }
    match rustix::io::write(&terminal, b"\x07") {
        Ok(_) | Err(rustix::io::Errno::AGAIN) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

//! Processes on macOS: libproc for the list, `kill` for signals.
//!
//! macOS has no pidfd: a signal checks the start time right before it is sent, and ends are
//! detected by polling.

#[path = "macos/libproc.rs"]
mod libproc;

use super::{Details, to_pid};
use gt_core::process::Process;
use rustix::process::{Signal, getsid, kill_process};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

/// Returns `None`: the uptime is not available here.
pub(super) fn uptime_seconds() -> Option<i64> {
    None
}

/// Returns `None`: the memory is not measured here.
pub(super) fn machine_memory() -> Option<u64> {
    None
}

/// Returns `None`: the memory is not measured here.
pub(super) fn private_memory(_pid: u32) -> Option<u64> {
    None
}

/// Returns `None`: the memory is not measured here.
pub(super) fn proportional_memory(_pid: u32) -> Option<u64> {
    None
}

/// Does nothing: the kernel has no such setting.
pub(super) fn sacrifice_first(_pid: u32) {}

pub(super) fn boot_id() -> Option<String> {
    None
}

/// Returns `None`: the caller reads all processes at once.
pub(super) fn trees(_roots: &[u32]) -> Option<Vec<Process>> {
    None
}

pub(super) fn snapshot() -> Vec<Process> {
    libproc::pids().into_iter().filter_map(read).collect()
}

pub(super) fn is_in_foreground(pid: u32) -> bool {
    libproc::info(pid)
        .is_some_and(|info| info.pbi_status != libc::SSTOP && info.pbi_pgid == info.e_tpgid)
}

pub(super) fn read(pid: u32) -> Option<Process> {
    let info = libproc::info(pid)?;
    let session = getsid(to_pid(pid)).map_or(0, |sid| sid.as_raw_nonzero().get().unsigned_abs());
    let name: Vec<u8> = info
        .pbi_comm
        .iter()
        .map(|mail| mail.cast_unsigned())
        .take_while(|mail| *mail != 0)
        .collect();
    Some(Process {
        pid,
        parent: info.pbi_ppid,
        group: info.pbi_pgid,
        session,
        // Microseconds since the epoch, valid across reboots.
        started: info.pbi_start_tvsec * 1_000_000 + info.pbi_start_tvusec,
        name: String::from_utf8_lossy(&name).into_owned(),
        aliases: Vec::new(),
        zombie: info.pbi_status == libc::SZOMB,
    })
}

pub(super) fn aliases(pid: u32) -> Vec<String> {
    let path = libproc::path(pid);
    path.and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
        .into_iter()
        .collect()
}

/// Returns only the program's path: the arguments are not available here.
pub(super) fn arguments(pid: u32) -> Vec<String> {
    let path = libproc::path(pid);
    let word = path.map(|path| path.to_string_lossy().into_owned());
    word.into_iter().collect()
}

pub(super) fn runs_own_program(pid: u32) -> bool {
    let own = libproc::path(std::process::id());
    own.is_some() && own == libproc::path(pid)
}

/// Returns false: the system does not tell.
pub(super) fn is_exiting(_pid: u32) -> bool {
    false
}

/// Returns nothing: the environment of other processes is not available here.
pub(super) fn initial_environment(_pid: u32) -> Vec<u8> {
    Vec::new()
}

/// Returns `None`: the folder is not read here.
pub(super) fn folder(_pid: u32) -> Option<PathBuf> {
    None
}

pub(super) fn details(pid: u32) -> Details {
    Details {
        words: arguments(pid),
        ..Details::default()
    }
}

/// Returns nothing: the environment of other processes is not available here.
pub(super) fn with_variables(_candidates: &[u32], _sets: &[[String; 3]]) -> BTreeSet<u32> {
    BTreeSet::new()
}

pub fn birth_certificate(pid: u32) -> Option<String> {
    let process = read(pid).filter(|process| !process.zombie)?;
    Some(format!("{}@macos", process.started))
}

pub fn is_born_as(pid: u32, certificate: &str) -> Option<ProcessHandle> {
    let (started, _) = certificate.split_once('@')?;
    ProcessHandle::open(pid, started.parse().ok()?)
}

/// Returns true: the ignored signals are not known here, so they are left unchanged.
pub fn ignores_hangups() -> bool {
    true
}

#[derive(Debug)]
pub struct ProcessHandle {
    pid: u32,
    started: u64,
}

impl ProcessHandle {
    pub fn open(pid: u32, started: u64) -> Option<Self> {
        let handle = ProcessHandle { pid, started };
        (!handle.has_ended()).then_some(handle)
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    pub fn signal(&self, signal: Signal) {
        if let (false, Some(pid)) = (self.has_ended(), to_pid(self.pid)) {
            // It may have ended since.
            let _ = kill_process(pid, signal);
        }
    }

    pub fn has_ended(&self) -> bool {
        read(self.pid).is_none_or(|process| process.started != self.started || process.zombie)
    }
}

pub(super) fn wait_any(_handles: &[ProcessHandle], timeout: Duration) {
    std::thread::sleep(timeout.min(Duration::from_millis(10)));
}

//! The machine's processes: one snapshot, and signals that cannot miss.
//!
//! A pid alone does not name a process: the kernel gives it out again. With the
//! start time it does, and every signal here checks both. What belongs to whom
//! is decided by [`gt_core::process`].

#[cfg(target_os = "linux")]
#[path = "processes/linux.rs"]
mod system;
#[cfg(target_os = "macos")]
#[path = "processes/macos.rs"]
mod system;

use gt_core::nudge::Uptime;
use gt_core::process::{Table, same_name};
use rustix::process::{Pid, Signal};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

pub use system::{Handle, birth_certificate, is_born_as, is_deaf_to_hangups};

/// Between TERM and KILL: time to flush and to clean up.
pub const GRACE: Duration = Duration::from_secs(2);
/// How long the kernel may take to end what was killed.
pub(crate) const KILL_PATIENCE: Duration = Duration::from_secs(2);

/// All processes, in one pass.
pub fn snapshot() -> Table {
    system::snapshot().into_iter().collect()
}

/// These processes and their descendants, without a look at any other where the system
/// can say who has started whom.
pub fn trees(roots: &[u32]) -> Table {
    match system::trees(roots) {
        Some(found) => found.into_iter().collect(),
        None => snapshot(),
    }
}

/// Looks up the other names of these processes: their executables and scripts.
pub fn add_aliases(table: &mut Table, pids: &BTreeSet<u32>) {
    for pid in pids {
        table.add_aliases(*pid, system::aliases(*pid));
    }
}

/// What a process was started with, and what it has open.
#[derive(Clone, Debug, Default)]
pub struct Details {
    pub words: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub folder: Option<PathBuf>,
    pub files: Vec<PathBuf>,
}

/// Reads the details of one process of this user's, as far as the system tells them.
pub fn details(pid: u32) -> Details {
    system::details(pid)
}

/// The words that a process was started with.
pub fn words(pid: u32) -> Vec<String> {
    system::words(pid)
}

/// Whether a process is the one of that certificate, and lives.
pub fn lives(pid: u32, certificate: &str) -> bool {
    birth_certificate(pid).as_deref() == Some(certificate)
}

/// Those of the processes, re-parented or not, that were started with all variables
/// of one of these sets in their environment. `NAME=value` is meant whole, and
/// `NAME=begin,` as the beginning of a value.
pub fn carrying(candidates: &[u32], sets: &[[String; 3]]) -> BTreeSet<u32> {
    if sets.is_empty() {
        return BTreeSet::new();
    }
    system::carrying(candidates, sets)
}

/// Whether a program of these names runs in the tree below `root`. The names the
/// kernel shows are looked at first; executables and scripts only if none fits.
pub fn tree_has(table: &mut Table, root: u32, names: &[String]) -> bool {
    let tree = table.descendants(root);
    if table.any_named(&tree, names) {
        return true;
    }
    add_aliases(table, &tree);
    table.any_named(&tree, names)
}

/// Takes hold of one process, whatever it is now.
pub fn hold_one(pid: u32) -> Option<Handle> {
    let process = system::read(pid).filter(|process| !process.zombie)?;
    Handle::open(process.pid, process.started)
}

/// The program that runs us: the first of our ancestors that is no shell.
pub fn caller() -> Option<u32> {
    const SHELLS: [&str; 8] = ["sh", "bash", "dash", "zsh", "fish", "ksh", "ash", "busybox"];
    let mut pid = system::read(std::process::id())?.parent;
    while pid > 1 {
        let process = system::read(pid)?;
        if !SHELLS.contains(&process.name.trim_start_matches('-')) {
            return Some(pid);
        }
        pid = process.parent;
    }
    None
}

/// Returns whether a process is an ancestor of ours.
pub fn is_ancestor(ancestor: u32) -> bool {
    let parent = |pid| system::read(pid).map(|process| process.parent);
    let parents = std::iter::successors(parent(std::process::id()), |pid| parent(*pid));
    parents
        .take_while(|pid| *pid > 0)
        .any(|pid| pid == ancestor)
}

/// Whether the process itself bears one of the names; a look at one file.
pub fn is_named(pid: u32, names: &[String]) -> bool {
    system::read(pid).is_some_and(|process| {
        !process.zombie && names.iter().any(|name| same_name(&process.name, name))
    })
}

/// Takes hold of processes, as many as still are what the table says.
pub fn hold(table: &Table, pids: &BTreeSet<u32>) -> Vec<Handle> {
    pids.iter()
        .filter_map(|pid| table.get(*pid))
        .filter(|process| !process.zombie)
        .filter_map(|process| Handle::open(process.pid, process.started))
        .collect()
}

/// Sends a signal to each that still lives.
pub fn signal_all(handles: &[Handle], signal: Signal) {
    for handle in handles {
        handle.signal(signal);
    }
}

/// Waits until all have ended, and gives those that have not.
pub fn wait_all(mut handles: Vec<Handle>, patience: Duration) -> Vec<Handle> {
    let deadline = Instant::now() + patience;
    loop {
        handles.retain(|handle| !handle.has_ended());
        let left = deadline.saturating_duration_since(Instant::now());
        if handles.is_empty() || left.is_zero() {
            return handles;
        }
        system::wait_any(&handles, left);
    }
}

/// Ends what was held: TERM, a grace period, KILL.
pub(crate) fn end_all(handles: Vec<Handle>, grace: Duration) {
    signal_all(&handles, Signal::TERM);
    let left = wait_all(handles, grace);
    signal_all(&left, Signal::KILL);
    wait_all(left, KILL_PATIENCE);
}

/// When the machine was switched on, in seconds since the epoch, where it can be told.
pub fn booted_at() -> Option<i64> {
    system::uptime_seconds().map(|up| jiff::Timestamp::now().as_second() - up)
}

/// How long the machine has been on, and since which boot, where it can be told.
pub fn uptime() -> Option<Uptime> {
    Some(Uptime {
        boot: system::boot_id()?,
        seconds: system::uptime_seconds()?,
    })
}

fn to_pid(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

//! The machine's processes: snapshots, and signals that cannot reach the wrong process.
//!
//! A pid alone does not identify a process, because the kernel reuses it. Together with the start
//! time it does, and every signal here checks both. [`gt_core::process`] decides which processes
//! belong to a pane.

#[cfg(target_os = "linux")]
#[path = "processes/linux.rs"]
mod system;
#[cfg(target_os = "macos")]
#[path = "processes/macos.rs"]
mod system;

use crate::base::clock::Clock;
use gt_core::nudge::Uptime;
use gt_core::process::{Process, ProcessTable, same_name};
use rustix::process::{Pid, Signal};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

pub use system::{ProcessHandle, birth_certificate, ignores_hangups, is_born_as};

/// Grace period between TERM and KILL.
pub const GRACE: Duration = Duration::from_secs(2);
/// Maximum wait for the kernel to end a killed process.
pub(crate) const KILL_TIMEOUT: Duration = Duration::from_secs(2);

/// Returns the load average of the last minute per processor; `None` if the system has no file for
/// it.
pub fn load_per_processor() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    let load: f64 = text.split(' ').next()?.parse().ok()?;
    let processors = std::thread::available_parallelism().ok()?;
    Some(load / f64::from(u32::try_from(processors.get()).ok()?))
}

/// Returns all processes, in one pass.
pub fn snapshot() -> ProcessTable {
    system::snapshot().into_iter().collect()
}

/// Returns the memory of the machine in bytes, if known.
pub(crate) fn machine_memory() -> Option<u64> {
    system::machine_memory()
}

/// Returns the bytes of a process that are in no file, including those shared with its parent or
/// children. 0 if unknown.
pub(crate) fn private_memory(pid: u32) -> u64 {
    system::private_memory(pid).unwrap_or(0)
}

/// Returns the bytes of a process that are in no file. Shared ones are divided by the number of
/// sharers. Slow for large processes.
pub(crate) fn proportional_memory(pid: u32) -> u64 {
    let exact = system::proportional_memory(pid);
    exact.unwrap_or_else(|| private_memory(pid))
}

/// Makes the kernel choose this process first if the machine runs out of memory.
pub(crate) fn sacrifice_first(pid: u32) {
    system::sacrifice_first(pid);
}

/// Returns these processes and their descendants. Reads no others if the system has lists of
/// children.
pub fn trees(roots: &[u32]) -> ProcessTable {
    match system::trees(roots) {
        Some(found) => found.into_iter().collect(),
        None => snapshot(),
    }
}

/// Adds the other names of these processes: their executables and scripts.
pub fn add_aliases(table: &mut ProcessTable, pids: &BTreeSet<u32>) {
    for pid in pids {
        table.add_aliases(*pid, system::aliases(*pid));
    }
}

/// Arguments, environment, folder and open files of a process.
#[derive(Clone, Debug, Default)]
pub struct Details {
    pub words: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub folder: Option<PathBuf>,
    pub files: Vec<PathBuf>,
}

/// Reads the details of a process of this user, as far as the system provides them.
pub fn details(pid: u32) -> Details {
    system::details(pid)
}

/// Returns the folder that a process is in; `None` after its end, for processes of other users, and
/// on macOS.
pub fn folder(pid: u32) -> Option<PathBuf> {
    system::folder(pid)
}

/// Returns the arguments of a process.
pub fn arguments(pid: u32) -> Vec<String> {
    system::arguments(pid)
}

/// Returns whether the process with this certificate is alive.
pub fn is_alive(pid: u32, certificate: &str) -> bool {
    birth_certificate(pid).as_deref() == Some(certificate)
}

/// Returns the processes, re-parented or not, that were started with all variables of one of these
/// sets. `NAME=value` must match exactly; `NAME=begin,` matches the beginning of a value.
pub fn with_variables(candidates: &[u32], sets: &[[String; 3]]) -> BTreeSet<u32> {
    if sets.is_empty() {
        return BTreeSet::new();
    }
    system::with_variables(candidates, sets)
}

/// Returns whether a program with one of these names runs in the tree below `root`. Checks the
/// kernel's names first; executables and scripts only if none matches.
pub fn tree_has(table: &mut ProcessTable, root: u32, names: &[String]) -> bool {
    let tree = table.descendants(root);
    if table.any_named(&tree, names) {
        return true;
    }
    add_aliases(table, &tree);
    table.any_named(&tree, names)
}

/// Opens a handle on the process that has this pid now.
pub fn hold_one(pid: u32) -> Option<ProcessHandle> {
    let process = system::read(pid).filter(|process| !process.zombie)?;
    ProcessHandle::open(process.pid, process.started)
}

/// Maximum number of ancestors that are read. Only a process that hides has so many.
const MAX_ANCESTORS: usize = 4096;

/// Returns the ancestors of this process, the parent first, without init.
pub fn ancestors() -> impl Iterator<Item = Process> {
    with_ancestors(std::process::id()).skip(1)
}

/// Returns a process and its ancestors, without init. Empty if the process is gone.
pub fn with_ancestors(pid: u32) -> impl Iterator<Item = Process> {
    let read = |pid: u32| system::read(pid).filter(|process| process.pid > 1);
    std::iter::successors(read(pid), move |process| read(process.parent)).take(MAX_ANCESTORS)
}

/// Returns whether a process is a shell.
pub fn is_shell(process: &Process) -> bool {
    const SHELLS: [&str; 8] = ["sh", "bash", "dash", "zsh", "fish", "ksh", "ash", "busybox"];
    SHELLS.contains(&process.name.trim_start_matches('-'))
}

/// Returns the program that runs this command: the first ancestor that is not a shell.
pub fn caller() -> Option<u32> {
    let program = ancestors().find(|process| !is_shell(process));
    program.map(|process| process.pid)
}

/// Returns whether a process is an ancestor of ours.
pub fn is_ancestor(ancestor: u32) -> bool {
    ancestors().any(|process| process.pid == ancestor)
}

/// Returns whether a process runs the program of this process.
pub fn runs_own_program(pid: u32) -> bool {
    system::runs_own_program(pid)
}

/// Returns whether a process is exiting: the kernel still lists it and no longer knows its program.
/// Always false on a system that does not report that.
pub fn is_exiting(pid: u32) -> bool {
    system::is_exiting(pid)
}

/// Returns the environment with which the program of a process was started, as `NAME=value`. Empty
/// if the system does not provide it.
pub fn initial_environment(pid: u32) -> Vec<u8> {
    system::initial_environment(pid)
}

/// Returns whether a process reads its terminal: it is in the foreground and not stopped.
pub fn is_in_foreground(pid: u32) -> bool {
    system::is_in_foreground(pid)
}

/// Returns whether the process itself has one of the names. Reads one file.
pub fn is_named(pid: u32, names: &[String]) -> bool {
    system::read(pid).is_some_and(|process| {
        !process.zombie && names.iter().any(|name| same_name(&process.name, name))
    })
}

/// Opens handles on the processes that still match the table.
pub fn hold(table: &ProcessTable, pids: &BTreeSet<u32>) -> Vec<ProcessHandle> {
    pids.iter()
        .filter_map(|pid| table.get(*pid))
        .filter(|process| !process.zombie)
        .filter_map(|process| ProcessHandle::open(process.pid, process.started))
        .collect()
}

/// Sends a signal to each process that is still alive.
pub fn signal_all(handles: &[ProcessHandle], signal: Signal) {
    for handle in handles {
        handle.signal(signal);
    }
}

/// Waits until all processes have ended or the timeout passes. Returns those that still run.
pub fn wait_all(mut handles: Vec<ProcessHandle>, timeout: Duration) -> Vec<ProcessHandle> {
    let deadline = Instant::now() + timeout;
    loop {
        handles.retain(|handle| !handle.has_ended());
        let left = deadline.saturating_duration_since(Instant::now());
        if handles.is_empty() || left.is_zero() {
            return handles;
        }
        system::wait_any(&handles, left);
    }
}

/// Ends processes: TERM, a grace period, KILL.
pub(crate) fn end_all(handles: Vec<ProcessHandle>, grace: Duration) {
    signal_all(&handles, Signal::TERM);
    let left = wait_all(handles, grace);
    signal_all(&left, Signal::KILL);
    wait_all(left, KILL_TIMEOUT);
}

/// Returns the machine's boot time in seconds since the epoch, if known.
pub fn booted_at() -> Option<i64> {
    system::uptime_seconds().map(|up| Clock::default().seconds() - up)
}

/// Returns the id of the machine's current boot, if known.
pub(crate) fn boot_id() -> Option<String> {
    system::boot_id()
}

/// Returns the machine's uptime and the id of its boot, if known.
pub fn uptime() -> Option<Uptime> {
    Some(Uptime {
        boot: boot_id()?,
        seconds: system::uptime_seconds()?,
    })
}

fn to_pid(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

//! Bounds the memory and the number of processes of a validation command.
//!
//! The processes are counted from outside: `RLIMIT_NPROC` counts all processes of the user and does
//! not bind root, and `RLIMIT_DATA` refuses programs that map much memory and use little of it. A
//! process that leaves the tree is not counted; it is ended with the others if it keeps the
//! variables of the command. If the machine runs out of memory first, the kernel ends the command
//! before other programs.

use crate::base::processes::{self, ProcessHandle};
use gt_core::process::{Process, ProcessTable};
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Maximum time to end a command that exceeds a limit.
const END_TIMEOUT: Duration = Duration::from_secs(30);
const MIB: u64 = 1024 * 1024;

#[derive(Clone, Copy, Debug)]
pub(super) struct ResourceLimits {
    /// In MiB; `None` if the memory of the machine is unknown.
    memory_mb: Option<u64>,
    processes: u64,
}

impl ResourceLimits {
    /// Without a limit of the memory, three quarters of the machine's memory is the limit.
    pub(super) fn new(memory_mb: Option<u64>, processes: u64) -> Self {
        let of_machine = || Some(processes::machine_memory()? / MIB / 4 * 3);
        ResourceLimits {
            memory_mb: memory_mb.or_else(of_machine),
            processes,
        }
    }

    /// Returns the limit that the tree below a process exceeds, as the end of a sentence.
    pub(super) fn exceeded_by(self, root: u32) -> Option<String> {
        let table = processes::trees(&[root]);
        let pids: Vec<u32> = live(&table, root).map(|process| process.pid).collect();
        if pids.len() as u64 > self.processes {
            return Some(format!("started more than {} processes", self.processes));
        }
        let most = self.memory_mb?;
        let exceeds = |used: u64| used / MIB > most;
        // Pages that a process shares with its children count once for each of them here, so a high
        // sum is checked with the exact one, which is slow.
        let is_over = exceeds(pids.iter().copied().map(processes::private_memory).sum())
            && exceeds(
                pids.iter()
                    .copied()
                    .map(processes::proportional_memory)
                    .sum(),
            );
        is_over.then(|| format!("used more than {most} MiB of memory"))
    }
}

fn live(table: &ProcessTable, root: u32) -> impl Iterator<Item = &Process> {
    let tree = table.descendants(root);
    let processes = tree.into_iter().filter_map(|pid| table.get(pid));
    processes.filter(|process| !process.zombie)
}

/// Ends a command and its descendants. Stops all of them before it kills the first, because they
/// may start processes faster than these are listed. `others` returns the processes of the command
/// that are outside of the tree.
pub(super) fn kill_tree(root: u32, others: impl Fn() -> BTreeSet<u32>) {
    let deadline = Instant::now() + END_TIMEOUT;
    let mut stopped = BTreeSet::new();
    while Instant::now() < deadline {
        let mut table = processes::trees(&[root]);
        let mut found: Vec<Process> = live(&table, root).cloned().collect();
        if found.iter().all(|process| stopped.contains(&process.pid)) {
            let outside = others();
            table = processes::snapshot();
            let outside = outside.into_iter().filter_map(|pid| table.get(pid));
            found.extend(outside.filter(|process| !process.zombie).cloned());
            if found.iter().all(|process| stopped.contains(&process.pid)) {
                signal(&found, Signal::KILL);
                return;
            }
        }
        signal(&found, Signal::STOP);
        stopped.extend(found.iter().map(|process| process.pid));
    }
    // New processes appear faster than they are stopped. The first process must end all the same:
    // the caller waits for it.
    let table = processes::trees(&[root]);
    let found: Vec<Process> = live(&table, root).cloned().collect();
    signal(&found, Signal::KILL);
}

/// Sends a signal to each process. Holds one handle at a time, because a process may not open
/// thousands of files.
fn signal(processes: &[Process], signal: Signal) {
    for process in processes {
        if let Some(handle) = ProcessHandle::open(process.pid, process.started) {
            handle.signal(signal);
        }
    }
}

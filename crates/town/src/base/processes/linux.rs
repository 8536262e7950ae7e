//! Processes on Linux: `/proc`, and pidfds for signals and ends.

use super::{Details, to_pid};
use crate::base::files;
use gt_core::process::Process;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Returns the seconds since the machine booted.
pub(super) fn uptime_seconds() -> Option<i64> {
    Some(rustix::system::sysinfo().uptime)
}

pub(super) fn machine_memory() -> Option<u64> {
    let info = rustix::system::sysinfo();
    // The width of the number differs between machines.
    let total = format!("{}", info.totalram).parse::<u64>().ok()?;
    Some(total * u64::from(info.mem_unit))
}

pub(super) fn private_memory(pid: u32) -> Option<u64> {
    // The process may have ended.
    let text = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let mut pages = text
        .split_ascii_whitespace()
        .skip(1)
        .map_while(|word| word.parse::<u64>().ok());
    let (resident, shared) = (pages.next()?, pages.next()?);
    let size = u64::try_from(rustix::param::page_size()).ok()?;
    Some(resident.saturating_sub(shared) * size)
}

pub(super) fn proportional_memory(pid: u32) -> Option<u64> {
    // Unreadable for processes of other users, and after the end.
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("Pss_Anon:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib * 1024)
}

pub(super) fn sacrifice_first(pid: u32) {
    if let Err(error) = fs::write(format!("/proc/{pid}/oom_score_adj"), "1000") {
        tracing::debug!("the kernel may end others before process {pid}: {error}");
    }
}

pub(super) fn boot_id() -> Option<String> {
    // Containers may hide it; certificates then have no boot.
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned())
}

pub(super) fn snapshot() -> Vec<Process> {
    pids().filter_map(read).collect()
}

/// Returns the processes of these trees; `None` if the kernel was built without lists of children.
pub(super) fn trees(roots: &[u32]) -> Option<Vec<Process>> {
    if !Path::new("/proc/thread-self/children").exists() {
        return None;
    }
    let (mut seen, mut found) = (BTreeSet::new(), Vec::new());
    let mut next = roots.to_vec();
    while let Some(pid) = next.pop() {
        if seen.insert(pid) {
            found.extend(read(pid));
            next.extend(children(pid));
        }
    }
    Some(found)
}

/// Returns the children of a process. Each of its threads has a separate list.
fn children(pid: u32) -> Vec<u32> {
    // The process may have ended since.
    let threads = fs::read_dir(format!("/proc/{pid}/task"));
    let threads = threads.into_iter().flatten().flatten();
    let lists =
        // A thread may have ended since.
        threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let pids = |list: String| -> Vec<u32> {
        let words = list.split_ascii_whitespace();
        words.filter_map(|word| word.parse().ok()).collect()
    };
    lists.flat_map(pids).collect()
}

fn pids() -> impl Iterator<Item = u32> {
    files::entries(Path::new("/proc")).filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Parses `/proc/<pid>/stat`. The name is in parentheses and may contain any byte, including
/// parentheses and blanks, so the last parenthesis ends it.
pub(super) fn read(pid: u32) -> Option<Process> {
    // The line has fewer than sixty numbers, so one read is enough.
    let mut buffer = [0; 2048];
    // The process may have ended.
    let length = File::open(format!("/proc/{pid}/stat"))
        .and_then(|mut file| file.read(&mut buffer))
        .ok()?;
    let text = buffer.get(..length)?;
    let open = text.iter().position(|byte| *byte == b'(')?;
    let close = text.iter().rposition(|byte| *byte == b')')?;
    let name = String::from_utf8_lossy(text.get(open + 1..close)?).into_owned();
    let rest = std::str::from_utf8(text.get(close + 1..)?).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    // Field 3 of the manual page is the first after the name.
    Some(Process {
        pid,
        parent: u32::try_from(number(1)?).ok()?,
        group: u32::try_from(number(2)?).ok()?,
        session: u32::try_from(number(3)?).ok()?,
        started: number(19)?,
        name,
        aliases: Vec::new(),
        zombie: matches!(*fields.first()?, "Z" | "X"),
    })
}

pub(super) fn is_in_foreground(pid: u32) -> bool {
    // Empty for a process that has ended.
    let stat = fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    let text = String::from_utf8_lossy(&stat);
    let fields: Vec<&str> = text
        .rsplit_once(')')
        .map(|(_, rest)| rest.split_ascii_whitespace().collect())
        .unwrap_or_default();
    let [state, _, group, _, _, foreground, ..] = fields[..] else {
        return false;
    };
    !matches!(state, "T" | "t" | "Z" | "X") && group == foreground
}

pub(super) fn aliases(pid: u32) -> Vec<String> {
    let base = |path: &Path| Some(path.file_name()?.to_string_lossy().into_owned());
    // Unreadable for processes of other users, and after the end.
    let executable = fs::read_link(format!("/proc/{pid}/exe")).ok();
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = words
        .split(|byte| *byte == 0)
        .take(2)
        .map(|word| Path::new(&*String::from_utf8_lossy(word)).to_owned());
    executable
        .into_iter()
        .chain(words)
        .filter_map(|path| base(&path))
        .collect()
}

pub(super) fn arguments(pid: u32) -> Vec<String> {
    // Empty for a process that has ended.
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    split_by_nul(&line)
}

fn split_by_nul(bytes: &[u8]) -> Vec<String> {
    let bytes = bytes.strip_suffix(b"\0").unwrap_or(bytes);
    if bytes.is_empty() {
        return Vec::new();
    }
    let parts = bytes.split(|byte| *byte == 0);
    let text = |part| String::from_utf8_lossy(part).into_owned();
    parts.map(text).collect()
}

pub(super) fn runs_own_program(pid: u32) -> bool {
    // Unreadable for processes of other users, and after the end.
    let program = |of: &str| fs::metadata(format!("/proc/{of}/exe")).ok();
    match (program("self"), program(&pid.to_string())) {
        (Some(own), Some(other)) => (own.dev(), own.ino()) == (other.dev(), other.ino()),
        _ => false,
    }
}

pub(super) fn is_exiting(pid: u32) -> bool {
    // The link of another user's process is not permitted, which is another error.
    let program = fs::read_link(format!("/proc/{pid}/exe"));
    matches!(program, Err(error) if error.kind() == std::io::ErrorKind::NotFound)
}

pub(super) fn initial_environment(pid: u32) -> Vec<u8> {
    // Unreadable for processes of other users, for those that forbid it, and after the end.
    fs::read(format!("/proc/{pid}/environ")).unwrap_or_default()
}

pub(super) fn folder(pid: u32) -> Option<PathBuf> {
    // Unreadable for processes of other users, and after the end.
    fs::read_link(format!("/proc/{pid}/cwd")).ok()
}

pub(super) fn details(pid: u32) -> Details {
    // Unreadable for processes of other users, and after the end.
    let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let variables = split_by_nul(&environ).into_iter();
    let pair = |entry: String| {
        let (name, value) = entry.split_once('=')?;
        Some((name.to_owned(), value.to_owned()))
    };
    let open = fs::read_dir(format!("/proc/{pid}/fd"));
    let open = open.into_iter().flatten().flatten();
    Details {
        words: arguments(pid),
        env: variables.filter_map(pair).collect(),
        folder: folder(pid),
        // Files may be closed meanwhile.
        files: open
            .filter_map(|entry| fs::read_link(entry.path()).ok())
            .filter(|path| path.is_absolute())
            .collect(),
    }
}

pub(super) fn with_variables(candidates: &[u32], sets: &[[String; 3]]) -> BTreeSet<u32> {
    let me = rustix::process::geteuid().as_raw();
    let mut environ = Vec::with_capacity(1 << 16);
    let mut carries = |pid: &u32| {
        environ.clear();
        // The process has ended, or belongs to another user.
        let Ok(mut file) = File::open(format!("/proc/{pid}/environ")) else {
            return false;
        };
        let is_own = file.metadata().is_ok_and(|meta| meta.uid() == me);
        if !is_own || file.read_to_end(&mut environ).is_err() {
            return false;
        }
        let has = |wanted: &String| {
            let wanted = wanted.as_bytes();
            let begins = wanted.ends_with(b",");
            let mut entries = environ.split(|byte| *byte == 0);
            entries.any(|entry| entry == wanted || (begins && entry.starts_with(wanted)))
        };
        sets.iter().any(|set| set.iter().all(has))
    };
    let found = candidates.iter().copied().filter(|pid| carries(pid));
    found.collect()
}

/// Returns a text that distinguishes this process from a later one with the same pid, also across
/// reboots.
pub fn birth_certificate(pid: u32) -> Option<String> {
    let process = read(pid).filter(|process| !process.zombie)?;
    let boot = boot_id().unwrap_or_default();
    Some(format!("{}@{boot}", process.started))
}

/// Returns a handle on the process, if it still matches the certificate.
pub fn is_born_as(pid: u32, certificate: &str) -> Option<ProcessHandle> {
    let now = birth_certificate(pid)?;
    let (started, _) = certificate.split_once('@')?;
    (now == certificate)
        .then(|| ProcessHandle::open(pid, started.parse().ok()?))
        .flatten()
}

/// Returns whether the caller wants this process to outlive the terminal, as `nohup` does.
pub fn ignores_hangups() -> bool {
    // Without /proc, signals are treated as not ignored.
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // The lowest bit is signal 1, SIGHUP.
    ignored.is_some_and(|mask| mask & 1 == 1)
}

/// A handle on one process. It never refers to another process with the same pid.
#[derive(Debug)]
pub struct ProcessHandle {
    pid: u32,
    fd: OwnedFd,
}

impl ProcessHandle {
    /// Opens a handle if the process still has this start time.
    pub fn open(pid: u32, started: u64) -> Option<Self> {
        // Fails if the process has ended.
        let fd = pidfd_open(to_pid(pid)?, PidfdFlags::empty()).ok()?;
        // Checked after the handle is open, so that the result stays valid.
        let process = read(pid)?;
        (process.started == started && !process.zombie).then_some(ProcessHandle { pid, fd })
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Sends a signal. A process that has ended gets none.
    pub fn signal(&self, signal: Signal) {
        match pidfd_send_signal(&self.fd, signal) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => {}
            Err(error) => tracing::warn!("no signal to process {}: {error}", self.pid),
        }
    }

    pub fn has_ended(&self) -> bool {
        let mut fds = [PollFd::new(&self.fd, PollFlags::IN)];
        matches!(poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })), Ok(n) if n > 0)
    }

    pub(crate) fn poll_fd(&self) -> PollFd<'_> {
        PollFd::new(&self.fd, PollFlags::IN)
    }
}

pub(super) fn wait_any(handles: &[ProcessHandle], timeout: Duration) {
    let mut fds: Vec<PollFd<'_>> = handles.iter().map(ProcessHandle::poll_fd).collect();
    let timeout = Timespec::try_from(timeout).ok();
    // An interrupted wait is not an error: the caller checks again.
    let _ = poll(&mut fds, timeout.as_ref());
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_process_is_read_held_and_ended() {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let seen = read(child.id()).unwrap();
        assert_eq!(seen.parent, std::process::id());
        let handle = ProcessHandle::open(child.id(), seen.started).unwrap();
        assert!(
            ProcessHandle::open(child.id(), seen.started + 1).is_none(),
            "another start time"
        );
        assert!(!handle.has_ended());
        let certificate = birth_certificate(child.id()).unwrap();
        assert!(is_born_as(child.id(), &certificate).is_some());
        assert!(is_born_as(child.id(), "1@x").is_none());
        handle.signal(Signal::TERM);
        assert!(super::super::wait_all(vec![handle], Duration::from_secs(10)).is_empty());
        child.wait().unwrap();
        assert!(is_born_as(child.id(), &certificate).is_none());
    }

    #[test]
    fn variables_in_the_environment_find_a_process() {
        let tag = std::process::id().to_string();
        let mut command = Command::new("sleep");
        command
            .arg("1000")
            .env("GT_TEST_A", &tag)
            .env("GT_TEST_B", "x,y")
            .env("GT_TEST_C", "c");
        let mut child = command.spawn().unwrap();
        let set = |a: &str, b: &str| {
            [[
                format!("GT_TEST_A={a}"),
                format!("GT_TEST_B={b}"),
                "GT_TEST_C=c".to_owned(),
            ]]
        };
        // Until its exec completes, the child shows our own environment.
        gt_tmux::testing::wait_until("it is found", Duration::from_secs(10), || {
            with_variables(&[child.id()], &set(&tag, "x,"))
                .contains(&child.id())
                .then_some(())
        });
        assert!(
            !with_variables(&[child.id()], &set(&tag, "x")).contains(&child.id()),
            "not the whole value"
        );
        assert!(
            !with_variables(&[child.id()], &set("other", "x,")).contains(&child.id()),
            "not all of them"
        );
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

//! Processor time of a process, with its threads and its children.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

/// Processor time and wake-ups so far.
#[derive(Debug, Default)]
pub(crate) struct Spent {
    pub(crate) time: Duration,
    /// Voluntary context switches of all threads: each one was preceded by a wake-up.
    pub(crate) wakes: u64,
}

impl Spent {
    pub(crate) fn of(pid: u32) -> Spent {
        let mut spent = Spent::default();
        for pid in family(pid) {
            let folder = PathBuf::from(format!("/proc/{pid}"));
            for thread in std::fs::read_dir(folder.join("task"))
                .into_iter()
                .flatten()
                .flatten()
            {
                let read =
                    |name| std::fs::read_to_string(thread.path().join(name)).unwrap_or_default();
                // Nanoseconds; `stat` counts in hundredths of a second.
                let ran = read("schedstat")
                    .split(' ')
                    .next()
                    .and_then(|word| word.parse().ok());
                spent.time += Duration::from_nanos(ran.unwrap_or(0));
                let status = read("status");
                let line = status
                    .lines()
                    .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
                spent.wakes += line
                    .and_then(|count| count.trim().parse::<u64>().ok())
                    .unwrap_or(0);
            }
            // Includes children that have ended.
            let stat = std::fs::read_to_string(folder.join("stat")).unwrap_or_default();
            let ticks: u64 = fields(&stat)
                .skip(13)
                .take(2)
                .filter_map(|word| word.parse::<u64>().ok())
                .sum();
            spent.time += Duration::from_millis(ticks * 10);
        }
        spent
    }

    pub(crate) fn since(&self, before: &Spent) -> Spent {
        Spent {
            time: self.time.saturating_sub(before.time),
            wakes: self.wakes.saturating_sub(before.wakes),
        }
    }
}

/// Waits until the process has been idle for two seconds, for at most a minute.
pub(crate) fn await_rest(pid: u32) {
    let mut before = Spent::of(pid);
    for _ in 0..30 {
        std::thread::sleep(Duration::from_secs(2));
        let now = Spent::of(pid);
        if now.since(&before).wakes == 0 {
            return;
        }
        before = now;
    }
}

/// Returns a process and all its descendants.
fn family(pid: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(child) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        if let Some(parent) = fields(&stat).nth(1).and_then(|word| word.parse().ok()) {
            children.entry(parent).or_default().push(child);
        }
    }
    let mut found = vec![pid];
    let mut next = 0;
    while let Some(pid) = found.get(next) {
        found.extend(children.remove(pid).unwrap_or_default());
        next += 1;
    }
    found
}

/// Returns the fields after the program's name, which may contain any character: the state, the
/// parent and so on.
fn fields(stat: &str) -> impl Iterator<Item = &str> {
    let rest = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    rest.split(' ')
}

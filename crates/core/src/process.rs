//! The processes of the machine as a value, and the ones that belong to a pane.
//!
//! The engine takes one snapshot; this module decides everything else.

use std::collections::{BTreeMap, BTreeSet};

/// One process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    pub pid: u32,
    pub parent: u32,
    pub group: u32,
    /// Terminal session. The first process of a pane leads one.
    pub session: u32,
    /// Start time in the system's ticks. Together with the pid it identifies a process permanently.
    pub started: u64,
    pub name: String,
    /// Other names (executable, script), if they were looked up.
    pub aliases: Vec<String>,
    /// Dead, and not yet reaped by its parent.
    pub zombie: bool,
}

/// Snapshot of all processes.
#[derive(Clone, Debug, Default)]
pub struct ProcessTable {
    by_pid: BTreeMap<u32, Process>,
    children: BTreeMap<u32, Vec<u32>>,
    sessions: BTreeMap<u32, Vec<u32>>,
}

impl FromIterator<Process> for ProcessTable {
    fn from_iter<I: IntoIterator<Item = Process>>(processes: I) -> Self {
        let mut table = ProcessTable::default();
        for process in processes {
            table
                .children
                .entry(process.parent)
                .or_default()
                .push(process.pid);
            table
                .sessions
                .entry(process.session)
                .or_default()
                .push(process.pid);
            table.by_pid.insert(process.pid, process);
        }
        table
    }
}

impl ProcessTable {
    pub fn get(&self, pid: u32) -> Option<&Process> {
        self.by_pid.get(&pid)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Process> {
        self.by_pid.values()
    }

    /// Returns the process and all its descendants.
    pub fn descendants(&self, root: u32) -> BTreeSet<u32> {
        let mut found = BTreeSet::new();
        self.collect(root, &mut found);
        found.retain(|pid| self.by_pid.contains_key(pid));
        found
    }

    /// Returns all processes of a pane whose first process is `root` and alive: its descendants;
    /// the members of its terminal session, even if re-parented; re-parented members of the process
    /// groups of these; and the descendants of all of them.
    pub fn pane_members(&self, root: u32) -> BTreeSet<u32> {
        if root <= 1 {
            // A pane without a process has the pid 0, whose descendants are all processes.
            return BTreeSet::new();
        }
        let mut members = self.descendants(root);
        self.add_session_and_groups(root, &mut members);
        members
    }

    /// Returns the processes that a pane's first process left behind when it died.
    ///
    /// The kernel reuses a pid only when it is no longer the id of any session. If a process with
    /// this pid is alive, it is a different one, and nothing is left.
    pub fn left_by(&self, root: u32) -> BTreeSet<u32> {
        let taken = self
            .by_pid
            .get(&root)
            .is_some_and(|process| !process.zombie);
        if root <= 1 || taken {
            return BTreeSet::new();
        }
        let mut members = BTreeSet::new();
        self.add_session_and_groups(root, &mut members);
        members
    }

    fn add_session_and_groups(&self, root: u32, members: &mut BTreeSet<u32>) {
        for pid in self.sessions.get(&root).into_iter().flatten() {
            self.collect(*pid, members);
        }
        let groups: BTreeSet<u32> = members
            .iter()
            .filter_map(|pid| self.by_pid.get(pid))
            .map(|process| process.group)
            .filter(|group| members.contains(group))
            .collect();
        for process in self.by_pid.values() {
            if groups.contains(&process.group) && self.is_orphan(process) {
                self.collect(process.pid, members);
            }
        }
        members.retain(|pid| self.by_pid.contains_key(pid));
    }

    /// Returns whether the parent is gone and init, or a subreaper, has taken over.
    pub fn is_orphan(&self, process: &Process) -> bool {
        process.parent <= 1
            || self
                .by_pid
                .get(&process.parent)
                .is_none_or(|parent| parent.session != process.session && parent.parent <= 1)
    }

    /// Returns whether a live process among these has one of the names.
    pub fn any_named(&self, pids: &BTreeSet<u32>, names: &[String]) -> bool {
        pids.iter()
            .filter_map(|pid| self.by_pid.get(pid))
            .filter(|process| !process.zombie)
            .any(|process| {
                let known_as = |seen: &str| names.iter().any(|name| same_name(seen, name));
                known_as(&process.name) || process.aliases.iter().any(|alias| known_as(alias))
            })
    }

    /// Adds other names of a process.
    pub fn add_aliases(&mut self, pid: u32, aliases: impl IntoIterator<Item = String>) {
        if let Some(process) = self.by_pid.get_mut(&pid) {
            process.aliases.extend(aliases);
        }
    }

    fn collect(&self, pid: u32, found: &mut BTreeSet<u32>) {
        let mut open = vec![pid];
        while let Some(pid) = open.pop() {
            if found.insert(pid) {
                open.extend(self.children.get(&pid).into_iter().flatten());
            }
        }
    }
}

/// Number of bytes that the kernel keeps of a process's name.
const KEPT: usize = 15;

/// Returns whether a process's name, perhaps truncated by the kernel, is the wanted one.
pub fn same_name(seen: &str, wanted: &str) -> bool {
    seen == wanted || (seen.len() == KEPT && wanted.len() > KEPT && wanted.starts_with(seen))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32, parent: u32, group: u32, session: u32, name: &str) -> Process {
        Process {
            pid,
            parent,
            group,
            session,
            started: u64::from(pid),
            name: name.to_owned(),
            aliases: Vec::new(),
            zombie: false,
        }
    }

    fn table() -> ProcessTable {
        [
            process(1, 0, 1, 1, "init"),
            process(10, 1, 10, 10, "tmux: server"),
            process(20, 10, 20, 20, "claude"),
            process(21, 20, 20, 20, "sh"),
            process(22, 21, 22, 20, "cargo"),
            process(23, 20, 23, 23, "setsid-child"),
            // Its parent is gone, but it is still in the pane's terminal session.
            process(24, 1, 24, 20, "nohup"),
            // Re-parented member of the group led by a descendant.
            process(25, 1, 23, 23, "left"),
            process(30, 10, 30, 30, "claude"),
            process(40, 1, 40, 40, "unrelated"),
        ]
        .into_iter()
        .collect()
    }

    #[test]
    fn a_pane_owns_its_tree_its_terminal_session_and_reparented_groups() {
        let members: Vec<u32> = table().pane_members(20).into_iter().collect();
        assert_eq!(members, [20, 21, 22, 23, 24, 25]);
        let descendants: Vec<u32> = table().descendants(20).into_iter().collect();
        assert_eq!(descendants, [20, 21, 22, 23]);
    }

    #[test]
    fn processes_of_a_dead_session_leader_are_found() {
        let left: ProcessTable = table().iter().filter(|p| p.pid != 20).cloned().collect();
        let members = left.left_by(20);
        assert!(members.contains(&21) && members.contains(&24));
        assert!(!members.contains(&30) && !members.contains(&40) && !members.contains(&10));
    }

    #[test]
    fn reused_pid_names_no_leftover_process() {
        // An unrelated session leader with the dead agent's pid.
        let again: ProcessTable = [process(1, 0, 1, 1, "init"), process(20, 1, 20, 20, "sleep")]
            .into_iter()
            .collect();
        assert!(again.left_by(20).is_empty());
    }

    #[test]
    fn no_process_owns_all_agents() {
        let table = table();
        for root in [0, 1] {
            assert!(table.pane_members(root).is_empty() && table.left_by(root).is_empty());
        }
    }

    #[test]
    fn names_are_compared_as_the_kernel_keeps_them() {
        assert!(same_name("claude", "claude"));
        assert!(same_name("a-very-long-nam", "a-very-long-name-indeed"));
        assert!(!same_name("claude", "claude-code"));
        assert!(!same_name("cl", "claude"));
        let table = table();
        let pids = table.pane_members(20);
        assert!(table.any_named(&pids, &["node".into(), "claude".into()]));
        assert!(!table.any_named(&pids, &["codex".into()]));
    }
}

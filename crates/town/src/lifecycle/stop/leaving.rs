//! Processes that outlive a session after its pane was reused.
//!
//! tmux sends a hangup to the processes of a pane that it respawns, and most end. The others are
//! ended here. They are identified by their parents while these live, so they are noted in advance.
//! Since they get a grace period, a detached process does this, which gets the note as an argument.

use super::members::{marked, marks, of_pane, spare};
use crate::Town;
use crate::base::processes;
use crate::terminal::containers::Container;
use gt_core::process::ProcessTable;
use gt_core::session::SessionId;
use gt_tmux::PaneId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::str::FromStr;

/// The processes of a session at the time of the handoff: descendants of its first process. Other
/// processes of its terminal are found by the terminal, whatever their parents are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LeavingProcesses {
    #[serde(rename = "life")]
    session: String,
    pane: String,
    /// The pane's first process.
    first: u32,
    /// All of them, with their start times.
    processes: Vec<(u32, u64)>,
    /// The `gt` that starts the next session. It may run below this pane.
    by: (u32, u64),
}

impl LeavingProcesses {
    pub(crate) fn of(container: &Container, before: &ProcessTable) -> Option<Self> {
        let pane = container.pane();
        let members = of_pane(container, before).into_iter();
        let noted = |pid: u32| Some((pid, before.get(pid)?.started));
        Some(LeavingProcesses {
            session: container.session_id()?.to_string(),
            pane: pane.pane.to_string(),
            first: pane.pid,
            processes: members.filter_map(noted).collect(),
            by: noted(std::process::id())?,
        })
    }

    pub(crate) fn to_word(&self) -> String {
        // Numbers and texts always serialize.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Ends those of them that still run, and the processes of the session that were started since.
    pub fn end(&self, town: &Town) {
        let now = processes::snapshot();
        let mut left = self.left(&now);
        left.extend(self.strays(town, &now));
        spare(&mut left, &now);
        self.spare_starter(&mut left, &now);
        processes::end_all(processes::hold(&now, &left), processes::GRACE);
    }

    /// Spares the process that still starts the next session, with its descendants.
    fn spare_starter(&self, left: &mut BTreeSet<u32>, now: &ProcessTable) {
        if is_running(&self.by, now) {
            let hands_over = now.descendants(self.by.0);
            left.retain(|pid| !hands_over.contains(pid));
        }
    }

    /// Returns those of them that live, with their descendants and the processes of their terminal.
    fn left(&self, now: &ProcessTable) -> BTreeSet<u32> {
        let living = self.processes.iter().filter(|noted| is_running(noted, now));
        let mut left: BTreeSet<u32> = living.flat_map(|(pid, _)| now.descendants(*pid)).collect();
        left.extend(match left.contains(&self.first) {
            true => now.pane_members(self.first),
            false => now.left_by(self.first),
        });
        left
    }

    /// Returns processes that were started since and share only the variables of the pane.
    fn strays(&self, town: &Town, now: &ProcessTable) -> BTreeSet<u32> {
        let (Ok(session), Ok(pane)) = (
            self.session.parse::<SessionId>(),
            self.pane.parse::<PaneId>(),
        ) else {
            return BTreeSet::new();
        };
        // No process of an agent is older than its pane's first process.
        let started = |(pid, started): &(u32, u64)| (*pid == self.first).then_some(*started);
        let oldest = self.processes.iter().find_map(started).unwrap_or_default();
        marked(&[marks(town, session, pane)], oldest, now)
    }
}

/// Returns whether a noted process still runs, and its pid was not reused.
fn is_running((pid, started): &(u32, u64), now: &ProcessTable) -> bool {
    now.get(*pid)
        .is_some_and(|process| process.started == *started)
}

impl FromStr for LeavingProcesses {
    type Err = serde_json::Error;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        serde_json::from_str(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gt_core::process::Process;

    fn process(pid: u32, parent: u32, session: u32, started: u64) -> Process {
        Process {
            pid,
            parent,
            group: session,
            session,
            started,
            name: "x".to_owned(),
            aliases: Vec::new(),
            zombie: false,
        }
    }

    #[test]
    fn noted_processes_and_their_later_children_are_found() {
        let leaving: LeavingProcesses =
            r#"{"life":"","pane":"","first":20,"processes":[[20,1],[21,2],[22,3],[23,4]],"by":[9,1]}"#
                .parse()
                .unwrap();
        assert_eq!(
            leaving.to_word().parse::<LeavingProcesses>().unwrap(),
            leaving
        );
        let now: ProcessTable = [
            process(1, 0, 1, 0),
            // In its terminal, and not noted.
            process(24, 1, 20, 5),
            // A process that started its own session, known only by its parent; and its child.
            process(21, 1, 21, 2),
            process(25, 21, 25, 6),
            // Another process that reuses the pid of an ended one.
            process(22, 1, 22, 9),
            // The next session.
            process(30, 10, 30, 7),
        ]
        .into_iter()
        .collect();
        assert_eq!(leaving.left(&now), BTreeSet::from([21, 24, 25]));
    }

    #[test]
    fn one_that_got_the_number_of_the_first_is_not_its() {
        let leaving: LeavingProcesses =
            r#"{"life":"","pane":"","first":20,"processes":[[20,1]],"by":[9,1]}"#
                .parse()
                .unwrap();
        let table = |started: u64| -> ProcessTable {
            let all = [process(20, 1, 20, started), process(21, 20, 20, 8)];
            all.into_iter().collect()
        };
        assert_eq!(leaving.left(&table(1)), BTreeSet::from([20, 21]));
        assert_eq!(leaving.left(&table(7)), BTreeSet::new());
    }

    #[test]
    fn session_that_hands_over_is_spared_but_not_its_reused_pid() {
        let leaving: LeavingProcesses =
            r#"{"life":"","pane":"","first":20,"processes":[[20,1],[21,2]],"by":[21,2]}"#
                .parse()
                .unwrap();
        let left = |started: u64| {
            let all = [
                process(20, 1, 20, 1),
                process(21, 20, 21, started),
                process(22, 21, 21, 9),
            ];
            let now: ProcessTable = all.into_iter().collect();
            let mut left = leaving.left(&now);
            leaving.spare_starter(&mut left, &now);
            left
        };
        assert_eq!(left(2), BTreeSet::from([20]));
        assert_eq!(left(7), BTreeSet::from([20, 21, 22]));
    }
}

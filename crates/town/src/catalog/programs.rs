//! Recognizes agent programs among processes.

use crate::Town;
use crate::base::or_log::OrLog;
use crate::base::processes;
use crate::catalog::harnesses;
use gt_core::adopt::is_program;
use gt_core::harness::Preset;
use gt_core::process::ProcessTable;

/// The agent programs that the town knows.
pub(crate) struct Programs(Vec<Preset>);

impl Programs {
    pub(crate) fn of(town: &Town) -> Self {
        let names = harnesses::names(town).into_iter();
        // `gt doctor` reports a harness that cannot be read.
        let preset = |name: String| harnesses::resolve(town, &name).or_debug(name);
        Programs(names.filter_map(preset).map(|it| it.value).collect())
    }

    /// Returns the outermost agent program in the process tree of a pane.
    pub(crate) fn find(&self, table: &ProcessTable, root: u32) -> Option<(u32, &Preset)> {
        let tree = table.descendants(root);
        // A parent is older than its children.
        let mut all: Vec<_> = tree.iter().filter_map(|pid| table.get(*pid)).collect();
        all.sort_by_key(|process| (process.started, process.pid));
        all.into_iter()
            .filter(|process| !process.zombie)
            .find_map(|process| Some((process.pid, self.preset(process.pid, &process.name)?)))
    }

    pub(crate) fn preset(&self, pid: u32, name: &str) -> Option<&Preset> {
        let words = processes::arguments(pid);
        self.0
            .iter()
            .find(|preset| is_program(preset, name, &words))
    }
}

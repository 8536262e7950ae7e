//! What agents are doing, their screens included.
//!
//! One look at tmux tells most states. The screen is the last witness: only those whose
//! state nobody else tells are looked at, all of them in one more call. What somebody has
//! added to the patterns for it stands in the preset, and in the project's file as it is in
//! the folder that the agent was started in.

use crate::containers::Container;
use crate::harnesses::Presets;
use crate::{Town, project};
use gt_core::patterns::{Patterns, Rules};
use gt_core::screen::Looked;
use gt_core::state::{self, Report};
use gt_tmux::{Batch, Command, PaneId};
use std::collections::BTreeMap;
use std::path::Path;

/// Presets and projects read so far, for commands that look at many agents.
#[derive(Debug, Default)]
pub struct States {
    presets: Presets,
    projects: BTreeMap<String, Rules>,
}

impl States {
    /// The states of these agents, in their order.
    pub fn read(&mut self, town: &Town, containers: &[&Container]) -> Vec<Report> {
        let mut reports: Vec<Report> = containers
            .iter()
            .map(|container| {
                let preset = self.presets.get(town, &container.pane().tag_harness);
                container.state(preset)
            })
            .collect();
        let unsure: Vec<usize> = (0..reports.len())
            .filter(|at| {
                let patterns = self.patterns(town, containers[*at]);
                let preset = self.presets.get(town, &containers[*at].pane().tag_harness);
                state::wants_screen(&reports[*at], preset, &patterns)
            })
            .collect();
        let panes: Vec<PaneId> = unsure
            .iter()
            .map(|at| containers[*at].pane().pane)
            .collect();
        let now = jiff::Timestamp::now().as_second();
        for (at, lines) in unsure.into_iter().zip(screens(town, &panes)) {
            let Some(lines) = lines else {
                continue;
            };
            let looked = Looked {
                lines: &lines,
                silent_seconds: Some(now - containers[at].pane().activity),
            };
            reports[at] = self.judge(town, containers[at], looked);
        }
        reports
    }

    /// The state of one agent, with a screen that was read already.
    pub fn judge(&mut self, town: &Town, container: &Container, looked: Looked<'_>) -> Report {
        let patterns = self.patterns(town, container);
        let preset = self.presets.get(town, &container.pane().tag_harness);
        container.state_shown(preset, &patterns, Some(looked))
    }

    /// The patterns that count for an agent.
    pub fn patterns(&mut self, town: &Town, container: &Container) -> Patterns {
        let pane = container.pane();
        let project = self
            .projects
            .entry(pane.start_path.clone())
            .or_insert_with_key(|path| {
                // A file that is broken is told of where it is needed.
                let project = project::of_worktree(Path::new(path));
                project.map(|project| project.states).unwrap_or_default()
            });
        let preset = self.presets.get(town, &pane.tag_harness);
        Patterns::of(
            [Some(&*project), preset.map(|preset| &preset.states)]
                .into_iter()
                .flatten(),
        )
    }
}

/// What these panes show, in one call; `None` for one that is gone.
pub(crate) fn screens(town: &Town, panes: &[PaneId]) -> Vec<Option<Vec<String>>> {
    // With colours: hints and marked rows are often told by them alone.
    let capture = |pane: &PaneId| {
        Command::new("capture-pane")
            .args(["-e", "-p"])
            .target(*pane)
    };
    let lines = |text: String| Some(text.lines().map(str::to_owned).collect());
    if panes.is_empty() {
        return Vec::new();
    }
    let all: Batch = panes.iter().map(capture).collect::<Vec<_>>().into();
    match town.server().run_each(all) {
        Ok(shown) if shown.len() == panes.len() => shown.into_iter().map(lines).collect(),
        // One has gone meanwhile: the others have not.
        _ => {
            let one = |pane| town.server().run(capture(pane)).ok().and_then(lines);
            panes.iter().map(one).collect()
        }
    }
}

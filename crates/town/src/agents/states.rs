//! States of agents, including those that only the screen shows.
//!
//! One call of tmux returns most states. The screen is the last source: it is read only for agents
//! whose state is unknown to the other sources or may be out of date there. One more call per tmux
//! server reads all these screens. Additional patterns come from the preset, and from the project
//! file in the folder in which the agent was started.

use crate::Town;
use crate::catalog::harnesses::Presets;
use crate::repo::project;
use crate::terminal::containers::{Container, PaneRow};
use gt_core::Identity;
use gt_core::card;
use gt_core::patterns::{Patterns, Rules};
use gt_core::screen::CapturedScreen;
use gt_core::session::SessionId;
use gt_core::state::{self, State, StateReport};
use gt_tmux::{Batch, Command, PaneId};
use std::collections::BTreeMap;
use std::path::Path;

/// Cache of presets and projects, for commands that read many agents.
#[derive(Debug, Default)]
pub struct States {
    presets: Presets,
    projects: BTreeMap<String, Rules>,
}

/// The program that resolves merge conflicts, in a window beside the agent's.
#[derive(Clone, Debug, PartialEq)]
pub struct ResolverReport {
    pub pane: PaneId,
    /// The name of that window.
    pub window: String,
    pub report: StateReport,
}

impl From<ResolverReport> for card::CardResolver {
    fn from(it: ResolverReport) -> Self {
        card::CardResolver {
            window: it.window,
            state: it.report.state,
            since: it.report.since,
            reason: it.report.reason.map(String::from),
        }
    }
}

impl States {
    /// Returns the states of the agents in these containers, in the same order.
    pub fn read(&mut self, town: &Town, containers: &[&Container]) -> Vec<StateReport> {
        let mut reports: Vec<StateReport> = containers
            .iter()
            .map(|container| {
                let preset = self.presets.get(town, &container.pane().tag_harness);
                container.state(preset)
            })
            .collect();
        let now = town.clock().seconds();
        let silent = |container: &Container| Some(now - container.pane().activity);
        let unsure: Vec<usize> = (0..reports.len())
            .filter(|at| {
                let container = containers[*at];
                let patterns = self.patterns(town, container);
                let preset = self.presets.get(town, &container.pane().tag_harness);
                state::wants_screen(&reports[*at], preset, &patterns, silent(container))
            })
            .collect();
        let panes: Vec<(&Container, PaneId)> = unsure
            .iter()
            .map(|at| (containers[*at], containers[*at].pane().pane))
            .collect();
        for (at, lines) in unsure.into_iter().zip(screens(town, &panes)) {
            let Some(lines) = lines else {
                continue;
            };
            let looked = CapturedScreen {
                lines: &lines,
                silent_seconds: silent(containers[at]),
            };
            reports[at] = self.judge(town, containers[at], looked);
        }
        reports
    }

    /// Returns the state of one agent, with a screen that was already read.
    pub fn judge(
        &mut self,
        town: &Town,
        container: &Container,
        looked: CapturedScreen<'_>,
    ) -> StateReport {
        let patterns = self.patterns(town, container);
        let preset = self.presets.get(town, &container.pane().tag_harness);
        container.state_shown(preset, &patterns, Some(looked))
    }

    /// Returns the conflict resolver beside this agent, if one exists. Reads its screen if it runs.
    pub fn read_resolver(&mut self, town: &Town, container: &Container) -> Option<ResolverReport> {
        let row = container.resolver_pane()?;
        let lines = match row.dead {
            true => None,
            false => screens(town, &[(container, row.pane)]).pop().flatten(),
        };
        Some(self.resolver(town, row, lines.as_deref()))
    }

    /// Returns the conflict resolver, with a screen that was already read.
    pub(crate) fn resolver(
        &mut self,
        town: &Town,
        row: &PaneRow,
        lines: Option<&[String]>,
    ) -> ResolverReport {
        let now = town.clock().seconds();
        let patterns = self.patterns_at(town, &row.start_path, row.harness_beside());
        let preset = self.presets.get(town, row.harness_beside());
        let looked = lines.map(|lines| CapturedScreen {
            lines,
            silent_seconds: Some(now - row.activity),
        });
        ResolverReport {
            pane: row.pane,
            window: row.tag_window.clone(),
            report: row.state_beside(preset, &patterns, looked),
        }
    }

    /// Returns the patterns that apply to an agent.
    pub fn patterns(&mut self, town: &Town, container: &Container) -> Patterns {
        let pane = container.pane();
        self.patterns_at(town, &pane.start_path, &pane.tag_harness)
    }

    fn patterns_at(&mut self, town: &Town, path: &str, harness: &str) -> Patterns {
        let project = self
            .projects
            .entry(path.to_owned())
            .or_insert_with_key(|path| {
                // A broken file is reported by the commands that need it.
                let project = project::of_worktree(Path::new(path));
                project.map(|project| project.states).unwrap_or_default()
            });
        let preset = self.presets.get(town, harness);
        Patterns::of(
            [Some(&*project), preset.map(|preset| &preset.states)]
                .into_iter()
                .flatten(),
        )
    }
}

/// Reads the screens of these panes, in one call for each tmux server. `None` for a pane that
/// is gone.
pub(crate) fn screens(town: &Town, panes: &[(&Container, PaneId)]) -> Vec<Option<Vec<String>>> {
    let mut shown = vec![None; panes.len()];
    let mut servers: Vec<Option<&Path>> = panes.iter().map(|(it, _)| it.socket()).collect();
    servers.sort_unstable();
    servers.dedup();
    for server in servers {
        let here: Vec<usize> = (0..panes.len())
            .filter(|at| panes[*at].0.socket() == server)
            .collect();
        let Some(home) = here.first().map(|at| panes[*at].0.home(town)) else {
            continue;
        };
        let wanted: Vec<PaneId> = here.iter().map(|at| panes[*at].1).collect();
        for (at, lines) in here.into_iter().zip(screens_of_server(&home, &wanted)) {
            shown[at] = lines;
        }
    }
    shown
}

fn screens_of_server(town: &Town, panes: &[PaneId]) -> Vec<Option<Vec<String>>> {
    // With colours: hints and marked rows are often recognisable only by them.
    let capture = |pane: &PaneId| {
        Command::new("capture-pane")
            .args(["-e", "-p"])
            .target(*pane)
    };
    let lines = |text: String| Some(text.lines().map(str::to_owned).collect());
    let all: Batch = panes.iter().map(capture).collect::<Vec<_>>().into();
    match town.server().run_each(all) {
        Ok(shown) if shown.len() == panes.len() => shown.into_iter().map(lines).collect(),
        // A pane has disappeared meanwhile, and the batch failed: reads the panes one by one.
        _ => {
            // A pane that is gone has no screen.
            let one = |pane| town.server().run(capture(pane)).ok().and_then(lines);
            panes.iter().map(one).collect()
        }
    }
}

/// A state change of one agent.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentStateChange {
    pub agent: Identity,
    pub container: String,
    pub session: Option<SessionId>,
    /// Set if the change is of a program in a window beside the agent, and not of the agent itself.
    pub window: Option<SideWindow>,
    /// `None` if the previous state is unknown.
    pub before: Option<State>,
    /// [`State::Stopped`] if the container or window is gone.
    pub now: StateReport,
}

/// A window beside an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SideWindow {
    pub name: String,
    pub pane: PaneId,
}

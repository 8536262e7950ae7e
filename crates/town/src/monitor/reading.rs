//! Agents as the monitor reads them: one listing, and where a program has no hooks, its
//! screen.

use crate::containers::{self, Container};
use crate::harnesses::Presets;
use crate::{Result, Town};
use gt_core::Identity;
use gt_core::harness::Preset;
use gt_core::screen::{self, Classification};
use gt_core::session::SessionId;
use gt_core::state::{Report, Source, State};
use gt_tmux::{Command, PaneId};
use std::collections::{BTreeMap, BTreeSet};

/// An agent that has a container.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    pub agent: Identity,
    pub container: String,
    pub life: Option<SessionId>,
    pub pane: PaneId,
    pub report: Report,
}

/// The agents that have a container, with the screen as the last witness.
pub fn agents(town: &Town) -> Result<Vec<Seen>> {
    let mut reading = Reading::default();
    reading.read(town, &BTreeSet::new())?;
    Ok(reading.seen)
}

/// How a pane is to be looked after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Care {
    /// Its screen says what nobody else does.
    Screen,
    /// Its title may say what no hook does.
    Title,
    None,
}

/// What was read, and what has to be remembered for the next time.
#[derive(Debug, Default)]
pub(super) struct Reading {
    presets: Presets,
    screens: BTreeMap<PaneId, (SessionId, Classification)>,
    pub(super) containers: Vec<Container>,
    pub(super) seen: Vec<Seen>,
}

impl Reading {
    /// Reads all containers, and the screens of those that have printed or are new.
    pub(super) fn read(&mut self, town: &Town, printed: &BTreeSet<PaneId>) -> Result<()> {
        let containers = containers::list(town)?;
        self.read_screens(town, &containers, printed);
        let now = jiff::Timestamp::now().as_second();
        let mut seen = Vec::new();
        for container in &containers {
            let Some(agent) = container.identity() else {
                continue;
            };
            let preset = self.presets.get(town, &container.pane().tag_harness);
            let pane = container.pane().pane;
            let life = container.life();
            let shown = self.screens.get(&pane).map(|(_, shown)| shown);
            let mut report = judge(container, preset, shown);
            if report.since.is_none() {
                let before = self
                    .seen
                    .iter()
                    .find(|seen| seen.container == container.name());
                let is_same =
                    |before: &&Seen| before.life == life && before.report.state == report.state;
                report.since = match before {
                    // Nobody says since when, but we have seen it.
                    Some(before) if is_same(&before) => before.report.since,
                    Some(_) => Some(now),
                    None => None,
                };
            }
            seen.push(Seen {
                agent: agent.clone(),
                container: container.name().to_owned(),
                life,
                pane,
                report,
            });
        }
        self.containers = containers;
        self.seen = seen;
        Ok(())
    }

    fn read_screens(&mut self, town: &Town, containers: &[Container], printed: &BTreeSet<PaneId>) {
        let mut kept = BTreeMap::new();
        let mut wanted = Vec::new();
        for container in containers {
            let Some(life) = container.life().filter(|_| container.identity().is_some()) else {
                continue;
            };
            let preset = self.presets.get(town, &container.pane().tag_harness);
            if care(container, preset) != Care::Screen {
                continue;
            }
            let pane = container.pane().pane;
            match self.screens.remove(&pane) {
                Some((of, shown)) if of == life && !printed.contains(&pane) => {
                    kept.insert(pane, (of, shown));
                }
                _ => wanted.push((container, life)),
            }
        }
        for (container, life) in wanted {
            let pane = container.pane();
            let capture = Command::new("capture-pane")
                .args(["-p", "-J"])
                .target(pane.pane);
            let preset = self.presets.get(town, &pane.tag_harness);
            // One that has gone meanwhile is told of by the next listing.
            if let (Ok(text), Some(preset)) = (town.server().run(capture), preset) {
                let lines: Vec<&str> = text.lines().collect();
                let shown = screen::classify(&lines, &pane.title, preset);
                kept.insert(pane.pane, (life, shown));
            }
        }
        self.screens = kept;
    }

    /// The panes of agents that live, with their terminals.
    pub(super) fn living(&mut self, town: &Town) -> Vec<(PaneId, String, u32, Care)> {
        let mut living = Vec::new();
        for container in self.containers.iter().filter(|c| c.identity().is_some()) {
            let pane = container.pane();
            if !pane.dead && !container.lost_agent_pane() {
                let care = care(container, self.presets.get(town, &pane.tag_harness));
                living.push((pane.pane, pane.tty.clone(), pane.pid, care));
            }
        }
        living
    }

    /// The terminal of any pane.
    pub(super) fn tty_of(&self, pane: PaneId) -> Option<&str> {
        let mut rows = self
            .containers
            .iter()
            .flat_map(|container| container.panes());
        rows.find(|row| row.pane == pane)
            .map(|row| row.tty.as_str())
    }
}

fn care(container: &Container, preset: Option<&Preset>) -> Care {
    let pane = container.pane();
    if pane.dead || container.lost_agent_pane() {
        return Care::None;
    }
    match preset {
        Some(preset) if preset.hooks.installer.is_none() => Care::Screen,
        Some(preset) if preset.title_marks.says_anything() => Care::Title,
        _ => Care::None,
    }
}

/// The screen speaks only where nobody else has said more than that it runs.
fn judge(container: &Container, preset: Option<&Preset>, shown: Option<&Classification>) -> Report {
    let report = container.state(preset);
    let is_open = report.state == State::Running && report.source == Source::Process;
    match shown.filter(|_| is_open) {
        Some(shown) if !matches!(shown.state, State::Starting | State::Running) => Report {
            state: shown.state,
            source: Source::Screen,
            since: None,
            reason: Some(shown.reason.clone()),
        },
        _ => report,
    }
}

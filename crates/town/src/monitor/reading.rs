//! Agents as the monitor reads them: one listing, and where a program has no hooks, its
//! screen.

use crate::containers::{self, Container};
use crate::harnesses::Presets;
use crate::states::{self, States};
use crate::{Result, Town};
use gt_core::Identity;
use gt_core::harness::Preset;
use gt_core::screen::Looked;
use gt_core::session::SessionId;
use gt_core::state::{self, Report, Source, State, Tracker};
use gt_tmux::PaneId;
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
    states: States,
    /// What the panes of programs without hooks show, by the life that showed it.
    screens: BTreeMap<PaneId, (SessionId, Vec<String>)>,
    trackers: BTreeMap<SessionId, Tracker>,
    pub(super) containers: Vec<Container>,
    pub(super) seen: Vec<Seen>,
}

impl Reading {
    /// Reads all containers, and the screens of those that have printed or are new.
    pub(super) fn read(&mut self, town: &Town, printed: &BTreeSet<PaneId>) -> Result<()> {
        let containers = containers::list(town)?;
        let unsure = self.unsure(town, &containers);
        self.read_screens(town, &containers, &unsure, printed);
        let now = jiff::Timestamp::now().as_second();
        let mut trackers = BTreeMap::new();
        let mut seen = Vec::new();
        for container in &containers {
            let Some(agent) = container.identity() else {
                continue;
            };
            let pane = container.pane();
            let shown = self.screens.get(&pane.pane);
            let mut report = match shown.filter(|_| unsure.contains(&pane.pane)) {
                Some((_, lines)) => {
                    let silent_seconds = Some(now - pane.activity);
                    let looked = Looked {
                        lines,
                        silent_seconds,
                    };
                    self.states.judge(town, container, looked)
                }
                None => container.state(self.presets.get(town, &pane.tag_harness)),
            };
            let life = container.life();
            if let Some(life) = life {
                let mut tracker = self.trackers.remove(&life).unwrap_or_default();
                let is_known = tracker.last().is_some();
                let told = report.since;
                tracker.take(now, report.clone());
                // With the first look nobody knows since when, unless it is told.
                report.since = match tracker.last() {
                    Some(last) if is_known => last.since,
                    _ => told,
                };
                trackers.insert(life, tracker);
            }
            seen.push(Seen {
                agent: agent.clone(),
                container: container.name().to_owned(),
                life,
                pane: pane.pane,
                report,
            });
        }
        self.trackers = trackers;
        self.containers = containers;
        self.seen = seen;
        Ok(())
    }

    /// The panes of agents of whom the screen may say more than anybody else.
    fn unsure(&mut self, town: &Town, containers: &[Container]) -> BTreeSet<PaneId> {
        let mut unsure = BTreeSet::new();
        for container in containers.iter().filter(|c| c.identity().is_some()) {
            let pane = container.pane();
            let patterns = self.states.patterns(town, container);
            let preset = self.presets.get(town, &pane.tag_harness);
            let is_alive = !pane.dead && !container.lost_agent_pane();
            if is_alive && state::wants_screen(&container.state(preset), preset, &patterns) {
                unsure.insert(pane.pane);
            }
        }
        unsure
    }

    fn read_screens(
        &mut self,
        town: &Town,
        containers: &[Container],
        unsure: &BTreeSet<PaneId>,
        printed: &BTreeSet<PaneId>,
    ) {
        let mut kept = BTreeMap::new();
        let mut wanted = Vec::new();
        for container in containers {
            let pane = container.pane();
            let Some(life) = container.life().filter(|_| unsure.contains(&pane.pane)) else {
                continue;
            };
            let preset = self.presets.get(town, &pane.tag_harness);
            // Only of these it is told when they print.
            let is_told = care(container, preset) == Care::Screen && !printed.contains(&pane.pane);
            match self.screens.remove(&pane.pane) {
                Some((of, lines)) if of == life && is_told => {
                    kept.insert(pane.pane, (life, lines));
                }
                _ => wanted.push((pane.pane, life)),
            }
        }
        let panes: Vec<PaneId> = wanted.iter().map(|(pane, _)| *pane).collect();
        for ((pane, life), lines) in wanted.into_iter().zip(states::screens(town, &panes)) {
            // One that has gone meanwhile is told of by the next listing.
            kept.extend(lines.map(|lines| (pane, (life, lines))));
        }
        self.screens = kept;
    }

    /// Whether the screen of one of these panes says that its agent is at work: of some
    /// programs only silence tells that it is not any more.
    pub(super) fn may_fall_silent(&self, panes: &BTreeSet<PaneId>) -> bool {
        let mut seen = self.seen.iter().filter(|seen| panes.contains(&seen.pane));
        seen.any(|seen| seen.report.state == State::Busy && seen.report.source == Source::Screen)
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
        let mut rows = self.containers.iter().flat_map(Container::panes);
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

//! Reads the agents for the monitor: one listing, and the screens of programs without hooks,
//! including those that resolve merge conflicts beside an agent.

use super::{AgentStateChange, SideWindow};
use crate::agents::states::{self, ResolverReport, States};
use crate::base::git;
use crate::base::or_log::OrLog;
use crate::catalog::harnesses::Presets;
use crate::messaging::signal;
use crate::terminal::adopted;
use crate::terminal::containers::{self, Container, PanePlace, PaneRow};
use crate::{Result, Town};
use gt_core::Identity;
use gt_core::beside;
use gt_core::harness::Preset;
use gt_core::screen::CapturedScreen;
use gt_core::session::SessionId;
use gt_core::state::{self, State, StateChange, StateReport, StateSource, Tracker};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Pause before a server that has not answered is asked again.
const SILENT_SERVER_PAUSE: Duration = Duration::from_secs(30);

/// An agent that has a container.
#[derive(Clone, Debug, PartialEq)]
pub struct MonitoredAgent {
    pub agent: Identity,
    pub container: String,
    pub session: Option<SessionId>,
    pub place: PanePlace,
    pub report: StateReport,
    /// The program that resolves merge conflicts beside it.
    pub resolver: Option<ResolverReport>,
}

/// Returns the agents that have a container. Their state is read from the screen only if no other
/// source has it.
pub fn agents(town: &Town) -> Result<Vec<MonitoredAgent>> {
    let mut reading = AgentReader::default();
    reading.read(town, &BTreeSet::new())?;
    Ok(reading.seen)
}

/// How a pane is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WatchDepth {
    /// Its screen is the only source of its state.
    Screen,
    /// Its title may show a state that no hook reports.
    Title,
    None,
}

/// The result of a reading, and the state that the next one needs.
#[derive(Debug, Default)]
pub(super) struct AgentReader {
    presets: Presets,
    states: States,
    /// Screens of programs without hooks, with the process that drew them.
    screens: BTreeMap<PanePlace, (Drawer, Vec<String>)>,
    trackers: BTreeMap<SessionId, Tracker>,
    resolvers: BTreeMap<PanePlace, Tracker>,
    /// Other servers that have not answered, and when that was.
    silent: BTreeMap<PathBuf, Instant>,
    pub(super) containers: Vec<Container>,
    pub(super) seen: Vec<MonitoredAgent>,
    /// Changes of programs beside agents in the last reading.
    pub(super) news: Vec<AgentStateChange>,
}

/// A process, and the session of the agent that it belongs to.
type Drawer = (u32, Option<SessionId>);

impl AgentReader {
    /// Reads all containers, and the screens of those that have printed or are new.
    pub(super) fn read(&mut self, town: &Town, printed: &BTreeSet<PanePlace>) -> Result<()> {
        let mut containers = containers::list(town)?;
        containers.extend(self.list_elsewhere(town));
        let now = town.clock().seconds();
        let unsure = self.unsure(town, &containers, now);
        self.read_screens(town, &containers, &unsure, printed);
        let mut trackers = BTreeMap::new();
        let mut resolvers = BTreeMap::new();
        let mut seen = Vec::new();
        self.news.clear();
        for container in &containers {
            let Some(agent) = container.identity() else {
                continue;
            };
            let pane = container.pane();
            let shown = self.screens.get(&pane.place());
            let mut report = match shown.filter(|_| unsure.contains(&pane.place())) {
                Some((_, lines)) => {
                    let silent_seconds = Some(now - pane.activity);
                    let looked = CapturedScreen {
                        lines,
                        silent_seconds,
                    };
                    let report = self.states.judge(town, container, looked);
                    signal::note_interrupt_on_screen(town, container, &report);
                    report
                }
                None => container.state(self.presets.get(town, &pane.tag_harness)),
            };
            let session = container.session_id();
            if let Some(session) = session {
                let mut tracker = self.trackers.remove(&session).unwrap_or_default();
                track(&mut tracker, &mut report, now);
                trackers.insert(session, tracker);
            }
            let resolver = container.resolver_pane().map(|row| {
                let tracker = self.resolvers.remove(&row.place()).unwrap_or_default();
                let tracker = resolvers.entry(row.place()).or_insert(tracker);
                let mut resolver = self.resolver(town, row);
                self.news
                    .extend(resolver_change(container, row, tracker, &mut resolver, now));
                resolver
            });
            seen.push(MonitoredAgent {
                resolver,
                agent: agent.clone(),
                container: container.name().to_owned(),
                session,
                place: pane.place(),
                report,
            });
        }
        self.trackers = trackers;
        self.resolvers = resolvers;
        self.containers = containers;
        self.seen = seen;
        Ok(())
    }

    /// Lists the agents on other servers. If a server does not answer, its agents stay as before,
    /// and it is retried after a pause.
    fn list_elsewhere(&mut self, town: &Town) -> Vec<Container> {
        let mut found = Vec::new();
        for other in adopted::on_other_servers(town) {
            let socket = other.server().socket_path();
            let asked = self.silent.get(&socket);
            let listed = match asked.is_some_and(|at| at.elapsed() < SILENT_SERVER_PAUSE) {
                true => None,
                false => containers::list_agents(&other).or_debug("a server does not answer"),
            };
            match listed {
                Some(containers) => {
                    self.silent.remove(&socket);
                    found.extend(containers);
                }
                None => {
                    self.silent
                        .entry(socket.clone())
                        .or_insert_with(Instant::now);
                    let before = self.containers.iter();
                    found.extend(before.filter(|it| it.socket() == Some(&socket)).cloned());
                }
            }
        }
        found
    }

    fn resolver(&mut self, town: &Town, row: &PaneRow) -> ResolverReport {
        let shown = self.screens.get(&row.place());
        let lines = shown.map(|(_, lines)| lines.as_slice());
        self.states.resolver(town, row, lines)
    }

    /// Returns the panes of agents whose screen may say more than any other source.
    fn unsure(&mut self, town: &Town, containers: &[Container], now: i64) -> BTreeSet<PanePlace> {
        let mut unsure = BTreeSet::new();
        for container in containers.iter().filter(|c| c.identity().is_some()) {
            let pane = container.pane();
            let patterns = self.states.patterns(town, container);
            let preset = self.presets.get(town, &pane.tag_harness);
            let is_alive = !pane.dead && !container.lost_agent_pane();
            let silent = Some(now - pane.activity);
            let report = container.state(preset);
            if is_alive && state::wants_screen(&report, preset, &patterns, silent) {
                unsure.insert(pane.place());
            }
        }
        unsure
    }

    fn read_screens(
        &mut self,
        town: &Town,
        containers: &[Container],
        unsure: &BTreeSet<PanePlace>,
        printed: &BTreeSet<PanePlace>,
    ) {
        let mut kept = BTreeMap::new();
        let mut wanted = Vec::new();
        for container in containers.iter().filter(|c| c.identity().is_some()) {
            let pane = container.pane();
            let preset = self.presets.get(town, &pane.tag_harness);
            // Only these panes are watched for output.
            let is_told = watch_depth(container, preset) == WatchDepth::Screen;
            let session = container
                .session_id()
                .filter(|_| unsure.contains(&pane.place()));
            let agent = session.map(|session| (pane.place(), (pane.pid, Some(session)), is_told));
            let resolver = living_resolver(container);
            let resolver = resolver.map(|row| (row.place(), (row.pid, None), true));
            for (pane, drawer, is_told) in agent.into_iter().chain(resolver) {
                match self.screens.remove(&pane) {
                    Some((by, lines)) if by == drawer && is_told && !printed.contains(&pane) => {
                        kept.insert(pane, (drawer, lines));
                    }
                    _ => wanted.push((container, pane, drawer)),
                }
            }
        }
        let panes: Vec<_> = wanted
            .iter()
            .map(|(it, place, _)| (*it, place.pane))
            .collect();
        for ((_, pane, drawer), lines) in wanted.into_iter().zip(states::screens(town, &panes)) {
            // A pane that is gone by now is reported by the next listing.
            kept.extend(lines.map(|lines| (pane, (drawer, lines))));
        }
        self.screens = kept;
    }

    /// Returns whether the agent in one of these panes is at work, by its screen or its hooks. For
    /// some programs, and after an interrupt, only silence shows that the work is over.
    pub(super) fn may_fall_silent(&self, panes: &BTreeSet<PanePlace>) -> bool {
        let agents = self.seen.iter().map(|seen| (seen.place, &seen.report));
        let resolvers = self.seen.iter().filter_map(|seen| {
            let resolver = seen.resolver.as_ref()?;
            let place = PanePlace {
                pane: resolver.pane,
                ..seen.place
            };
            Some((place, &resolver.report))
        });
        let is_at_work = |report: &StateReport| {
            // At a limit, the screen shows whether the program continues by itself, but only a
            // moment after the hook's report.
            matches!(report.state, State::Busy | State::Limited)
                && matches!(report.source, StateSource::Screen | StateSource::Hook)
        };
        agents
            .chain(resolvers)
            .any(|(pane, report)| panes.contains(&pane) && is_at_work(report))
    }

    /// Returns the live panes, of agents and of programs beside them, with their terminals.
    pub(super) fn living(&mut self, town: &Town) -> Vec<(PanePlace, String, u32, WatchDepth)> {
        let mut living = Vec::new();
        for container in self.containers.iter().filter(|c| c.identity().is_some()) {
            let pane = container.pane();
            if !pane.dead && !container.lost_agent_pane() {
                let depth = watch_depth(container, self.presets.get(town, &pane.tag_harness));
                living.push((pane.place(), pane.tty.clone(), pane.pid, depth));
            }
            let resolver = living_resolver(container).map(|row| row.pane);
            for row in container.own_windows().filter(|row| is_not_over(row)) {
                let depth = match resolver == Some(row.pane) {
                    true => WatchDepth::Screen,
                    // The output of a server does not matter, only its end.
                    false => WatchDepth::None,
                };
                living.push((row.place(), row.tty.clone(), row.pid, depth));
            }
        }
        living
    }

    /// Returns the processes that start a program beside an agent: once such a process is gone,
    /// questions of the program go to people.
    pub(super) fn starters(&self) -> impl Iterator<Item = u32> {
        let resolvers = self.containers.iter().filter_map(living_resolver);
        let starters = resolvers.filter_map(PaneRow::starter_beside);
        starters.map(|(pid, _)| pid)
    }

    /// Returns the terminal of any pane.
    pub(super) fn tty_of(&self, pane: PanePlace) -> Option<&str> {
        let mut rows = self.containers.iter().flat_map(Container::panes);
        rows.find(|row| row.place() == pane)
            .map(|row| row.tty.as_str())
    }
}

/// Adds one observation, and sets `since` of the report to the start of the state.
fn track(tracker: &mut Tracker, report: &mut StateReport, now: i64) -> Option<StateChange> {
    let is_known = tracker.last().is_some();
    let told = report.since;
    let change = tracker.take(now, report.clone());
    // At the first observation the start is unknown, unless the report has it.
    report.since = match tracker.last() {
        Some(last) if is_known => last.since,
        _ => told,
    };
    change
}

fn living_resolver(container: &Container) -> Option<&PaneRow> {
    let resolver = container.resolver_pane();
    resolver.filter(|row| is_not_over(row))
}

/// Returns whether a pane is alive, or dead with an exit status that is not yet known.
fn is_not_over(row: &PaneRow) -> bool {
    !row.dead || row.lost_its_status()
}

/// Returns the change of a program that resolves merge conflicts. Its failure is not reported once
/// the merge is committed.
fn resolver_change(
    container: &Container,
    row: &PaneRow,
    tracker: &mut Tracker,
    resolver: &mut ResolverReport,
    now: i64,
) -> Option<AgentStateChange> {
    let report = &mut resolver.report;
    // A screen that is being drawn says nothing, so the last state stays.
    if beside::is_unknown(report) {
        return None;
    }
    let change = track(tracker, report, now).filter(beside::needs_notice)?;
    let has_failed = matches!(report.state, State::Error | State::Limited | State::Crashed);
    if has_failed && !git::is_merging(Path::new(&row.start_path)) {
        return None;
    }
    Some(AgentStateChange {
        agent: container.identity()?.clone(),
        container: container.name().to_owned(),
        session: container.session_id(),
        window: Some(SideWindow {
            name: resolver.window.clone(),
            pane: resolver.pane,
        }),
        before: change.before.map(|before| before.state),
        now: change.now,
    })
}

fn watch_depth(container: &Container, preset: Option<&Preset>) -> WatchDepth {
    let pane = container.pane();
    if pane.dead || container.lost_agent_pane() {
        return WatchDepth::None;
    }
    match preset {
        Some(preset) if preset.hooks.installer.is_none() => WatchDepth::Screen,
        Some(preset) if preset.title_marks.has_marks() => WatchDepth::Title,
        // An interrupt may show only on the screen.
        Some(preset) if preset.screen.input.is_some() => WatchDepth::Title,
        _ => WatchDepth::None,
    }
}

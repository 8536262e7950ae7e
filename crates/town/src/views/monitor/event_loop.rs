//! The event loop of the monitor: waits, combines the reports of a moment, and reads.
//!
//! Every pending action has a time, and the earliest limits the wait. An idle town has no pending
//! action, so the thread sleeps until a report arrives. Only running dev servers are polled.

use super::event_sources::{EventSources, PendingChanges, WatchedPaths};
use super::files::{self, Files};
use super::reading::{AgentReader, MonitoredAgent, WatchDepth};
use super::tmux::MonitorClient;
use super::{AgentStateChange, MonitorChange, SharedMonitor, lock};
use crate::base::clock::Clock;
use crate::base::or_log::OrLog;
use crate::base::wake::Listening;
use crate::lifecycle::sync;
use crate::messaging::notify;
use crate::records::events::Events;
use crate::records::items::Work;
use crate::terminal::containers::{Container, PanePlace};
use crate::terminal::dev_servers::AnsweredServers;
use crate::terminal::{background_tasks, dev_servers};
use crate::{Result, Town};
use gt_core::Problem;
use gt_core::state::{State, StateReport, StateSource};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};

/// Time within which reports are combined into one change.
const MOMENT: Duration = Duration::from_millis(50);
/// Minimum interval between readings when reports arrive without a pause. The first change is
/// reported after [`MOMENT`].
const BURST: Duration = Duration::from_millis(250);
/// Delay after the first file, in which a command writes its other files; and the minimum interval
/// between two reports.
const WRITTEN: Duration = Duration::from_millis(150);
const WRITTEN_AGAIN: Duration = Duration::from_millis(500);
/// Interval between readings of a screen that prints without a pause.
const SCREEN: Duration = Duration::from_millis(500);
/// Interval between readings of the title of a pane that prints without a pause.
const TITLE: Duration = Duration::from_secs(1);
/// Time after which a program that prints nothing is read once more.
const SILENCE: Duration = Duration::from_secs(4);
/// Interval at which running dev servers are checked.
const SERVERS: Duration = Duration::from_secs(5);
/// Maximum number of retries for an expected change; the delay doubles each time, beginning with
/// [`FIRST_TRY`].
const TRIES: u32 = 6;
const FIRST_TRY: Duration = Duration::from_millis(100);

pub(super) struct EventLoop<F> {
    town: Town,
    send: F,
    shared: Arc<SharedMonitor>,
    client: MonitorClient,
    event_sources: EventSources,
    reading: AgentReader,
    listening: Listening,
    pushed: Option<SystemTime>,
    work: PushStamp,
    /// The watched files of clients, as they were last seen.
    files: Files,
    files_told: Option<Instant>,
    /// The log of events at the last report; `None` if events are not wanted.
    log: Option<PushStamp>,
    view: Option<PanePlace>,
    /// A process has reported a change, and the pane's title may still change because of it.
    awaited: bool,
    due: DueTimes,
    /// Processes that have ended while tmux still shows their panes alive, with the number of
    /// retries.
    ending: BTreeMap<u32, u32>,
    /// Number of failed attempts to connect or list.
    failures: u32,
    looked: Option<Instant>,
    /// The panes of dev servers whose failure was reported.
    failed: BTreeSet<(PanePlace, bool)>,
    /// A thread is recording the ends of adopted programs.
    settles: bool,
    /// Time of the last reading, in milliseconds since the epoch.
    read_at: i64,
}

/// Times of pending actions.
#[derive(Debug, Default)]
struct DueTimes {
    /// Read all containers and report a change.
    agents: Option<Instant>,
    /// Read the panes that have printed, and report a change if there is one.
    prints: Option<Instant>,
    printed: BTreeSet<PanePlace>,
    /// Check whether panes that have printed have fallen silent.
    silence: Option<Instant>,
    view: Option<Instant>,
    work: Option<Instant>,
    files: Option<Instant>,
    log: Option<Instant>,
    connect: Option<Instant>,
    servers: Option<Instant>,
}

impl DueTimes {
    fn earliest(&self) -> Option<Instant> {
        let all = [
            self.agents,
            self.prints,
            self.silence,
            self.view,
            self.work,
            self.files,
            self.log,
            self.connect,
            self.servers,
        ];
        all.into_iter().flatten().min()
    }
}

/// Size and time of a file and of its write-ahead log, by which a write is detected.
type PushStamp = [Option<(u64, SystemTime)>; 2];

impl<F: Fn(MonitorChange)> EventLoop<F> {
    /// Opens the watches and then reads the agents, in this order, so that no change is lost in
    /// between.
    pub(super) fn begin(
        town: &Town,
        shared: Arc<SharedMonitor>,
        open: fn(WatchedPaths) -> EventSources,
        send: F,
    ) -> Result<Self> {
        let listening = Listening::begin(town)?;
        let places = WatchedPaths {
            push: listening.path().to_owned(),
            work: Work::of(town).path().to_owned(),
            socket: town.server().socket_path(),
            log: Events::of(town).log().path().to_owned(),
        };
        let event_sources = open(places);
        let client = MonitorClient::new(town.server(), &shared)
            .map_err(|error| Problem::failed("cannot watch").caused_by(error))?;
        let mut events = EventLoop {
            work: stamp(Work::of(town).path()),
            pushed: touched_at(&listening),
            town: town.clone(),
            send,
            shared,
            client,
            event_sources,
            reading: AgentReader::default(),
            listening,
            files: Files::new(),
            files_told: None,
            log: None,
            view: None,
            awaited: false,
            due: DueTimes::default(),
            ending: BTreeMap::new(),
            failures: 0,
            looked: None,
            failed: BTreeSet::new(),
            settles: false,
            read_at: 0,
        };
        events.connect();
        events.read(&BTreeSet::new())?;
        Ok(events)
    }

    pub(super) fn run(mut self) {
        loop {
            let now = Instant::now();
            let timeout = self
                .due
                .earliest()
                .map(|at| at.saturating_duration_since(now));
            let told = self.event_sources.wait(&self.shared.woken, timeout);
            self.shared.wakeups.fetch_add(1, Ordering::Relaxed);
            let requests = self.shared.take_requests();
            if requests.stop {
                return;
            }
            if requests.view != self.view {
                self.set_view(requests.view);
            }
            if let Some(files) = requests.files {
                self.watch_files(files);
            }
            if let Some(wanted) = requests.events {
                self.watch_events(wanted);
            }
            if requests.lost {
                self.client.was_lost();
                self.failures = 0;
            }
            if requests.containers || requests.lost {
                self.look_soon();
            }
            self.schedule(told);
            self.act();
        }
    }

    /// Schedules the actions for these reports.
    fn schedule(&mut self, told: PendingChanges) {
        let now = Instant::now();
        if told.pushed {
            let at = touched_at(&self.listening);
            if at != self.pushed {
                self.pushed = at;
                self.failures = 0;
                self.awaited = true;
                self.look_soon();
            }
        }
        if told.work {
            self.due.work.get_or_insert(now + MOMENT);
        }
        if told.files {
            self.files_soon(now);
        }
        if told.log && self.log.is_some() {
            self.due.log.get_or_insert(now + WRITTEN);
        }
        if told.socket && !self.client.is_connected() {
            self.failures = 0;
            self.due.connect.get_or_insert(now + MOMENT);
        }
        if !told.ended.is_empty() {
            self.ending.extend(told.ended.iter().map(|pid| (*pid, 0)));
            self.look_soon();
        }
        for pane in told.printed {
            if self.view == Some(pane) {
                self.due.view.get_or_insert(now + MOMENT);
            }
            let pause = match self.depth_of(pane) {
                WatchDepth::Screen => SCREEN,
                WatchDepth::Title if self.awaited => BURST,
                WatchDepth::Title => TITLE,
                WatchDepth::None => continue,
            };
            self.due.printed.insert(pane);
            let at = self.due.prints.get_or_insert(now + pause);
            *at = (*at).min(now + pause);
        }
    }

    fn act(&mut self) {
        let now = Instant::now();
        let is_due = |at: &mut Option<Instant>| at.take_if(|at| *at <= now).is_some();
        if is_due(&mut self.due.view)
            && let Some(pane) = self.view
        {
            self.arm(pane);
            (self.send)(MonitorChange::Screen(pane));
        }
        if is_due(&mut self.due.work) {
            let stamp = stamp(Work::of(&self.town).path());
            if stamp != self.work {
                self.work = stamp;
                (self.send)(MonitorChange::Work);
            }
        }
        if is_due(&mut self.due.files) {
            // Folders may have come or gone.
            self.event_sources.watch_files(self.files.keys());
            if files::have_changed(&mut self.files) {
                self.files_told = Some(now);
                (self.send)(MonitorChange::Files);
            }
        }
        if is_due(&mut self.due.servers) {
            let servers = AnsweredServers::among(&self.reading.containers);
            if servers.check(&self.town) {
                self.look_soon();
            } else {
                // A server that does not answer in time counts as failed, and no event of tmux
                // reports that.
                self.report_failed_servers();
            }
            self.watch_servers();
        }
        if is_due(&mut self.due.log) && self.log.is_some() {
            // Another file may have replaced it, which must be watched as well.
            self.event_sources.watch_log(true);
            let stamp = Some(stamp(Events::of(&self.town).log().path()));
            if stamp != self.log {
                self.log = stamp;
                (self.send)(MonitorChange::Events);
            }
        }
        let is_told = is_due(&mut self.due.agents);
        if is_due(&mut self.due.connect) || (is_told && !self.client.is_connected()) {
            self.connect();
        }
        let has_printed = is_due(&mut self.due.prints);
        let is_silent = is_due(&mut self.due.silence);
        if is_told || has_printed || is_silent {
            self.due.prints = None;
            // A reading after output has seen the awaited title. One that only a report caused may
            // precede it.
            self.awaited &= is_told;
            let printed = std::mem::take(&mut self.due.printed);
            for pane in &printed {
                self.arm(*pane);
            }
            match self.read(&printed) {
                Ok(is_other) if is_told || is_other => (self.send)(MonitorChange::Agents),
                Ok(_) => {}
                // tmux fails, and will not report when it recovers, so the reading is retried.
                Err(_) => self.due.agents = self.next_try(),
            }
            if self.reading.may_fall_silent(&printed) {
                self.due.silence = Some(Instant::now() + SILENCE);
            }
        }
    }

    fn connect(&mut self) {
        if self.client.is_connected() {
            return;
        }
        // Before the attempt, so that a server that starts in between is reported.
        self.event_sources.await_server(true);
        if self.client.connect() {
            self.event_sources.await_server(false);
            self.failures = 0;
            self.look_soon();
        } else if self.client.has_server() {
            // The server has just begun to listen, or has no session yet.
            self.due.connect = self.next_try();
        }
    }

    fn look_soon(&mut self) {
        let soon = Instant::now() + MOMENT;
        let at = self.looked.map_or(soon, |at| soon.max(at + BURST));
        self.due.agents.get_or_insert(at);
    }

    fn watch_files(&mut self, files: Files) {
        self.event_sources.watch_files(files.keys());
        self.files = files;
        // A file that was written before it was watched causes no event.
        if files::have_changed(&mut self.files.clone()) {
            self.files_soon(Instant::now());
        }
    }

    fn watch_events(&mut self, wanted: bool) {
        self.event_sources.watch_log(wanted);
        self.log = wanted.then(|| stamp(Events::of(&self.town).log().path()));
        if wanted {
            (self.send)(MonitorChange::Events);
        }
    }

    /// Schedules the check of watched files. A command of git writes several files, and a rebase
    /// writes the same ones repeatedly.
    fn files_soon(&mut self, now: Instant) {
        let soon = now + WRITTEN;
        let at = self
            .files_told
            .map_or(soon, |at| soon.max(at + WRITTEN_AGAIN));
        self.due.files.get_or_insert(at);
    }

    fn next_try(&mut self) -> Option<Instant> {
        let wait = FIRST_TRY * 2_u32.saturating_pow(self.failures);
        self.failures += 1;
        (self.failures <= TRIES).then(|| Instant::now() + wait)
    }

    fn set_view(&mut self, pane: Option<PanePlace>) {
        self.view = pane;
        self.due.view = None;
        if let Some(pane) = pane {
            if self.tty_of(pane).is_none() {
                let read = self.read(&BTreeSet::new());
                read.or_debug("the pane's terminal is unknown");
            }
            self.arm(pane);
            (self.send)(MonitorChange::Screen(pane));
        }
        self.forget_others();
    }

    fn tty_of(&self, pane: PanePlace) -> Option<String> {
        let listed = self.reading.tty_of(pane).map(str::to_owned);
        listed.or_else(|| self.event_sources.tty_of(pane))
    }

    fn arm(&mut self, pane: PanePlace) {
        if let Some(tty) = self.tty_of(pane) {
            self.event_sources.arm(pane, &tty);
        }
    }

    fn depth_of(&mut self, pane: PanePlace) -> WatchDepth {
        let living = self.reading.living(&self.town);
        let found = living.iter().find(|(known, ..)| *known == pane);
        found.map_or(WatchDepth::None, |(_, _, _, depth)| *depth)
    }

    /// Reads the agents and reports the changed states. Returns whether anything has changed.
    fn read(&mut self, printed: &BTreeSet<PanePlace>) -> Result<bool> {
        let at = self.town.clock().now().as_millisecond();
        self.reading.read(&self.town, printed)?;
        let before_at = std::mem::replace(&mut self.read_at, at);
        self.looked = Some(Instant::now());
        self.watch_live_panes();
        self.watch_servers();
        self.report_failed_servers();
        background_tasks::emit_failures(&self.town, &self.reading.containers);
        self.settle_adopted();
        let before = std::mem::replace(&mut *lock(&self.shared.seen), self.reading.seen.clone());
        let mut moved = moves(&before, &self.reading.seen);
        moved.append(&mut self.reading.news);
        // The first reading is not reported as changes.
        if self.shared.wakeups.load(Ordering::Relaxed) > 0 {
            for moved in moved {
                if moved.window.is_some() || self.has_no_hooks(&moved) {
                    notify::notify_screen_state(&self.town, &moved, at, before_at);
                }
                (self.send)(MonitorChange::Moved(Box::new(moved)));
            }
        }
        Ok(before != self.reading.seen)
    }

    /// Records the ends of adopted programs, for which tmux has no hook. Uses another thread,
    /// because it may wait for locks.
    fn settle_adopted(&mut self) {
        let is_over = |it: &Container| it.adopted().is_some() && it.pane().dead;
        let is_any_over = self.reading.containers.iter().any(is_over);
        if is_any_over && !std::mem::replace(&mut self.settles, is_any_over) {
            let town = self.town.clone();
            std::thread::spawn(move || {
                sync::settle_adopted(&town);
                crate::base::wake::monitors(&town);
            });
        }
        self.settles = is_any_over;
    }

    /// Reports the dev servers that have failed since the last reading.
    fn report_failed_servers(&mut self) {
        let mut failed = BTreeSet::new();
        for container in &self.reading.containers {
            let Some(agent) = container.identity() else {
                continue;
            };
            for row in container
                .own_windows()
                .filter(|it| dev_servers::has_failed(it))
            {
                // A server that stops answering may die afterwards.
                let how = (row.place(), row.dead);
                if self.failed.contains(&how) || dev_servers::emit_failure(&self.town, agent, row) {
                    failed.insert(how);
                }
            }
        }
        self.failed = failed;
    }

    /// Returns whether the monitor is the only source of notifications about this agent.
    fn has_no_hooks(&mut self, moved: &AgentStateChange) -> bool {
        let mut seen = self.reading.seen.iter();
        let pane = seen
            .find(|seen| seen.session == moved.session)
            .map(|seen| seen.place);
        pane.is_some_and(|pane| self.depth_of(pane) == WatchDepth::Screen)
    }

    /// Watches exactly the present panes and processes.
    fn watch_live_panes(&mut self) {
        let living = self.reading.living(&self.town);
        let mut unwatched = Vec::new();
        for (pane, tty, _, depth) in &living {
            if *depth != WatchDepth::None && !self.event_sources.knows(*pane, tty) {
                self.event_sources.arm(*pane, tty);
                // It may have printed since it was read.
                unwatched.push(*pane);
            }
        }
        if !unwatched.is_empty() {
            self.due.printed.extend(unwatched);
            self.due.prints.get_or_insert(Instant::now() + SCREEN);
        }
        self.forget_others();
        let pids = living.iter().map(|(_, _, pid, _)| *pid);
        let pids: BTreeSet<u32> = pids.chain(self.reading.starters()).collect();
        let ended = self.event_sources.hold(&pids);
        self.ending.extend(ended.into_iter().map(|pid| (pid, 0)));
        // tmux notices the end of a process a little later than the kernel.
        self.ending.retain(|pid, _| pids.contains(pid));
        self.ending.retain(|_, tries| {
            *tries += 1;
            *tries <= TRIES
        });
        if let Some(tries) = self.ending.values().min() {
            let at = Instant::now() + FIRST_TRY * 2_u32.saturating_pow(*tries);
            self.due.agents.get_or_insert(at);
        }
    }

    /// Schedules checks while dev servers run: no event reports that a port stopped answering.
    fn watch_servers(&mut self) {
        if AnsweredServers::among(&self.reading.containers).is_empty() {
            self.due.servers = None;
        } else {
            self.due
                .servers
                .get_or_insert_with(|| Instant::now() + SERVERS);
        }
    }

    fn forget_others(&mut self) {
        let living = self.reading.living(&self.town);
        let cared = living
            .iter()
            .filter(|(_, _, _, depth)| *depth != WatchDepth::None);
        let wanted = cared.map(|(pane, ..)| *pane).chain(self.view);
        self.event_sources.keep_panes(&wanted.collect());
    }
}

/// Returns the change of each agent.
fn moves(before: &[MonitoredAgent], now: &[MonitoredAgent]) -> Vec<AgentStateChange> {
    let mut moves = Vec::new();
    for seen in now {
        let was = before.iter().find(|was| was.container == seen.container);
        let is_same = |was: &&MonitoredAgent| {
            was.session == seen.session && was.report.state == seen.report.state
        };
        if was.is_none_or(|was| !is_same(&was)) {
            moves.push(AgentStateChange {
                agent: seen.agent.clone(),
                container: seen.container.clone(),
                session: seen.session,
                window: None,
                before: was.map(|was| was.report.state),
                now: seen.report.clone(),
            });
        }
    }
    for was in before {
        if now.iter().all(|seen| seen.container != was.container) {
            moves.push(AgentStateChange {
                agent: was.agent.clone(),
                container: was.container.clone(),
                session: was.session,
                window: None,
                before: Some(was.report.state),
                now: StateReport {
                    since: Some(Clock::default().seconds()),
                    reason: Some("its container is gone".into()),
                    ..StateReport::new(State::Stopped, StateSource::Process)
                },
            });
        }
    }
    moves
}

fn stamp(database: &Path) -> PushStamp {
    let mut log = database.as_os_str().to_owned();
    log.push("-wal");
    [database.to_owned(), PathBuf::from(log)].map(|path| {
        // Either file may be missing.
        let meta = path.metadata().ok()?;
        Some((meta.len(), meta.modified().ok()?))
    })
}

fn touched_at(listening: &Listening) -> Option<SystemTime> {
    // The file exists only after the first touch.
    listening.path().metadata().ok()?.modified().ok()
}

//! The event loop: from triggers to runs of duties.
//!
//! Each duty has a task of its own, so one that starts an agent and waits for its prompt does not
//! delay the others. A duty never runs twice at once. Duties block, so they run on tokio's threads
//! for blocking calls, which end when they are idle.

use crate::duties::{DUTIES, Duty, Trigger};
use gt_core::Problem;
use gt_core::plural::counted;
use gt_core::state::State;
use gt_town::base::clock::Clock;
use gt_town::base::or_log::OrLog;
use gt_town::base::settings;
use gt_town::lifecycle::save;
use gt_town::records::events;
use gt_town::supervision::daemon::{self, DaemonLock, DaemonNote, DutyRecord};
use gt_town::views::monitor::{Monitor, MonitorChange};
use gt_town::{Result, Surroundings, Town};
use gt_web::{ApiState, OperationRunner, TownPlace};
use jiff::Timestamp;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior};

/// Interval of the sweep.
const SWEEP: Duration = Duration::from_secs(60);
/// Longest sleep until a planned time.
const LONGEST_SLEEP: Duration = Duration::from_secs(24 * 60 * 60);
/// Time that running duties get to roll back after a request to end.
const GRACE: Duration = Duration::from_secs(10);

/// Runs the daemon of this town until SIGTERM or SIGINT, or until the town is removed. `runner` runs
/// the operations of the HTTP API. Fails at once if a daemon of the town is already running.
pub fn run(
    root: &Path,
    around: Surroundings,
    version: &str,
    runner: Box<dyn OperationRunner>,
) -> Result<()> {
    let place = Arc::new(DaemonTown {
        root: root.to_owned(),
        around,
    });
    let town = place.open()?;
    let _lock = DaemonLock::take(&town)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        // Operations of the API run on these threads, and need the stack of a main thread.
        .thread_stack_size(8 << 20)
        .build()
        .map_err(|error| Problem::failed("cannot run the daemon").caused_by(error))?;
    let note = Arc::new(SharedNote::begin(&town, version)?);
    let served = runtime.block_on(serve(&place, &town, &note, runner));
    // A duty that has not rolled back in time is abandoned. Its work is resumed later, as after a
    // kill.
    runtime.shutdown_background();
    let saved = place.fresh().and_then(|town| save::save(&town, true));
    note.end(&town);
    served?;
    let saved = counted(saved?.map_or(0, |saved| saved.containers), "container");
    tracing::info!("process {} ended; saved {saved}", std::process::id());
    Ok(())
}

/// The town, which is opened for every run of a duty, because its settings may change.
#[derive(Debug)]
struct DaemonTown {
    root: PathBuf,
    around: Surroundings,
}

impl DaemonTown {
    fn open(&self) -> Result<Town> {
        Town::open(&self.root, self.around.clone())
    }

    /// Opens the town for work that the request to end does not cancel.
    fn fresh(&self) -> Result<Town> {
        let around = Surroundings {
            cancel: gt_town::Cancel::default(),
            ..self.around.clone()
        };
        Town::open(&self.root, around)
    }
}

/// Opens the HTTP API. Without it, the daemon still runs its duties.
fn open_api(
    place: &DaemonTown,
    town: &Town,
    runner: Box<dyn OperationRunner>,
) -> Option<Arc<ApiState>> {
    let place = TownPlace {
        root: place.root.clone(),
        around: place.around.clone(),
    };
    let state = ApiState::new(place, runner, town.settings().web.listen);
    state.or_warn("there is no API").map(Arc::new)
}

async fn serve(
    place: &Arc<DaemonTown>,
    town: &Town,
    note: &Arc<SharedNote>,
    runner: Box<dyn OperationRunner>,
) -> Result<()> {
    let cannot_wait = |error| Problem::failed("cannot wait for signals").caused_by(error);
    let mut terminate = signal(SignalKind::terminate()).map_err(cannot_wait)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(cannot_wait)?;
    let mut hang_up = signal(SignalKind::hangup()).map_err(cannot_wait)?;
    let (report, mut changes) = mpsc::unbounded_channel();
    let monitor = Monitor::start(town, move |change| {
        // The receiver is gone only while the daemon ends.
        let _ = report.send(change);
    })?;
    let mut tasks = JoinSet::new();
    let api = open_api(place, town, runner);
    if let Some(api) = api.clone() {
        if let Err(problem) = events::create_log(town) {
            tracing::warn!("new events are not reported: {}", problem.line());
        }
        monitor.watch_events(true);
        tasks.spawn(async move {
            if let Err(problem) = gt_web::serve(api).await {
                tracing::error!("the API ended: {}", problem.line());
            }
        });
    }
    let attended: Vec<(&'static Duty, Arc<Notify>)> = DUTIES
        .iter()
        .map(|duty| {
            let wake = Arc::new(Notify::new());
            let (place, note) = (Arc::clone(place), Arc::clone(note));
            let spacing = match duty.spacing.is_zero() {
                true => duty.spacing,
                false => town.settings().patrol.at_speed(duty.spacing),
            };
            tasks.spawn(attend(duty, spacing, Arc::clone(&wake), place, note));
            (duty, wake)
        })
        .collect();
    let fire = |trigger: Trigger| {
        for (duty, wake) in &attended {
            if duty.triggers.contains(&trigger) {
                wake.notify_one();
            }
        }
    };
    let mut sweep = tokio::time::interval(town.settings().patrol.at_speed(SWEEP));
    sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
    note.write(town)?;
    tracing::info!("process {} started", std::process::id());
    loop {
        tokio::select! {
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
            _ = hang_up.recv() => sweep.reset_immediately(),
            // A duty that runs while the town is removed may leave a folder.
            _ = sweep.tick() => match place.root.join(settings::FILE).exists() {
                true => fire(Trigger::Sweep),
                // The town was removed.
                false => break,
            },
            change = changes.recv() => match change {
                Some(MonitorChange::Agents) => fire(Trigger::Agents),
                Some(MonitorChange::Moved(moved)) => {
                    fire(Trigger::Agents);
                    if moved.now.state == State::Limited {
                        fire(Trigger::Limit);
                    }
                }
                Some(MonitorChange::Work) => fire(Trigger::Work),
                Some(MonitorChange::Events) => api.iter().for_each(|api| api.wake_events()),
                Some(_) => {}
                None => return Err(Problem::failed("the monitor has ended")),
            },
        }
    }
    place.around.cancel.flag().store(true, Ordering::Relaxed);
    drop(monitor);
    api.iter().for_each(|api| api.close());
    let ended = async {
        for (_, wake) in &attended {
            wake.notify_one();
        }
        while tasks.join_next().await.is_some() {}
    };
    // A timeout is not a failure: `run` abandons the duty.
    let _ = tokio::time::timeout(GRACE, ended).await;
    Ok(())
}

/// Runs a duty whenever it is woken, until the daemon is asked to end.
async fn attend(
    duty: &'static Duty,
    spacing: Duration,
    wake: Arc<Notify>,
    place: Arc<DaemonTown>,
    note: Arc<SharedNote>,
) {
    let mut due = None;
    loop {
        tokio::select! {
            () = wake.notified() => {}
            () = at(due) => {}
        }
        if place.around.cancel.is_set() {
            return;
        }
        let began = Instant::now();
        let (place_of_run, note_of_run) = (Arc::clone(&place), Arc::clone(&note));
        let run = move || {
            let town = place_of_run.open()?;
            let result = (duty.run)(&town);
            note_of_run.record(&town, duty.name, began.elapsed(), result.as_ref().err())?;
            result?;
            let due = duty.due.map_or(Ok(None), |due| due(&town))?;
            Ok::<Option<Instant>, Problem>(due.map(|due| instant(due, &town)))
        };
        // After a failure the next trigger retries.
        due = None;
        match tokio::task::spawn_blocking(run).await {
            Ok(Ok(next)) => due = next,
            Ok(Err(_)) if place.around.cancel.is_set() => return,
            Ok(Err(problem)) => tracing::error!("{}: {}", duty.name, problem.line()),
            Err(panic) => tracing::error!("{}: {panic}", duty.name),
        }
        // A trigger during the spacing is kept for the next run; the request to end is not delayed.
        let spacing = tokio::time::sleep_until(began + spacing);
        tokio::pin!(spacing);
        let mut is_woken = false;
        loop {
            tokio::select! {
                () = &mut spacing => break,
                () = wake.notified() => is_woken = true,
            }
            if place.around.cancel.is_set() {
                return;
            }
        }
        if is_woken {
            wake.notify_one();
        }
    }
}

/// Sleeps until this moment; forever without one.
async fn at(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

/// Returns the moment of a planned time. A time in the past is now.
fn instant(due: Timestamp, town: &Town) -> Instant {
    let wait = due.duration_since(town.clock().now());
    let wait = Duration::try_from(wait).unwrap_or_default();
    // A later time than tokio can represent is corrected by the sweep.
    Instant::now() + wait.min(LONGEST_SLEEP)
}

/// The daemon's note, shared by its duties.
#[derive(Debug)]
struct SharedNote {
    now: Mutex<DaemonNote>,
    clock: Clock,
}

impl SharedNote {
    fn begin(town: &Town, version: &str) -> Result<Self> {
        let clock = town.clock().clone();
        let now = DaemonNote {
            pid: std::process::id(),
            version: version.to_owned(),
            started_at: clock.now().to_string(),
            ..DaemonNote::default()
        };
        Ok(SharedNote {
            now: Mutex::new(now),
            clock,
        })
    }

    fn write(&self, town: &Town) -> Result<()> {
        daemon::write_note(town, &self.lock())
    }

    fn record(
        &self,
        town: &Town,
        duty: &str,
        took: Duration,
        problem: Option<&Problem>,
    ) -> Result<()> {
        let mut now = self.lock();
        let record: &mut DutyRecord = now.duties.entry(duty.to_owned()).or_default();
        record.runs += 1;
        record.last_at = self.clock.now().to_string();
        record.last_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        if let Some(problem) = problem {
            record.failures += 1;
            record.last_error = Some(problem.line());
        }
        daemon::write_note(town, &now)
    }

    fn end(&self, town: &Town) {
        let mut now = self.lock();
        now.ended = true;
        if let Err(problem) = daemon::write_note(town, &now) {
            tracing::warn!("{}", problem.line());
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, DaemonNote> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;

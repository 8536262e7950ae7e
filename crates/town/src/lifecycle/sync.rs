//! Makes the journal agree with tmux: one listing, one plan, one write.
//!
//! A process that starts or stops an agent holds its lock and writes its journal lines; a sync
//! skips that agent. tmux calls a sync whenever containers come and go ([`tmux_hooks`]). Any
//! process may call it at any time, also concurrently.
//!
//! [`tmux_hooks`]: crate::terminal::tmux_hooks

mod adopted_ends;
mod quick_check;

pub use adopted_ends::{settle_adopted, settle_adopted_after};

use crate::base::fault;
use crate::base::lock::FileLock;
use crate::base::processes;
use crate::base::time::timestamp;
use crate::lifecycle::{adopt, epilogue};
use crate::messaging::queue;
use crate::records::retention::EventRetention;
use crate::records::sessions::{SessionQuery, Sessions};
use crate::records::usage;
use crate::terminal::containers::{self, Container, Owner};
use crate::terminal::recording::Recordings;
use crate::terminal::{adopted, background_tasks, dev_servers, pidfile, save_schedule};
use crate::{Result, Town};
use gt_core::Identity;
use gt_core::notify;
use gt_core::record::{Record, SessionStatus};
use gt_core::state::State;
use gt_core::sync::{self, JournalChange, PaneDeath, ShownContainer, SyncContext};
use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

/// Maximum wait for a start or stop that a sync waits for.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The result of a sync, or its plan.
#[derive(Debug, Default)]
pub struct Synced {
    pub lines: Vec<(JournalChange, Record)>,
    /// Number of this town's containers without changes.
    pub unchanged: usize,
    /// Containers that are skipped, with the reason.
    pub left_alone: Vec<(String, String)>,
    /// Agents that another process is starting or stopping.
    pub busy: Vec<Identity>,
}

/// Writes the lines that the journal lacks, or only returns them with `dry_run`. Covers the
/// town's server and the servers of its adopted agents.
pub fn sync(town: &Town, sessions: &Sessions, dry_run: bool) -> Result<Synced> {
    let mut synced = sync_server(town, sessions, dry_run)?;
    for other in adopted::on_other_servers(town) {
        let more = match sync_server(&other, sessions, dry_run) {
            Ok(more) => more,
            // A person's own server must not block the town.
            Err(problem) => {
                let socket = other.server().socket_path().display().to_string();
                synced.left_alone.push((socket, problem.to_string()));
                continue;
            }
        };
        synced.lines.extend(more.lines);
        synced.unchanged += more.unchanged;
        synced.left_alone.extend(more.left_alone);
        synced.busy.extend(more.busy);
    }
    if !dry_run {
        adopt::tidy(town)?;
    }
    Ok(synced)
}

fn sync_server(town: &Town, sessions: &Sessions, dry_run: bool) -> Result<Synced> {
    let socket = town.server().socket_path().to_string_lossy().into_owned();
    // The journal is read first: a session that begins meanwhile is in tmux before it is in the
    // journal, and one that ends leaves tmux before its end is written.
    let mut running = sessions.find(&SessionQuery {
        status: Some(SessionStatus::Running.as_str().to_owned()),
        ..SessionQuery::default()
    })?;
    // Sessions on other servers are not visible here.
    running.retain(|session| {
        session
            .tmux_socket
            .as_ref()
            .is_none_or(|path| *path == socket)
    });
    if let Some(synced) = quick_check::all_agrees(town, sessions, &running)? {
        return Ok(synced);
    }
    let containers = settled(town, &running)?;
    fault::point(town, "sync.listed");
    if !dry_run {
        background_tasks::emit_failures(town, &containers);
        dev_servers::emit_failures(town, &containers);
    }
    let shown: Vec<ShownContainer> = containers
        .iter()
        .filter_map(|container| shown_container(container, &socket))
        .collect();
    let open: HashSet<&str> = running.iter().map(|session| session.id.as_str()).collect();
    let ids = shown.iter().map(|container| container.session.id.as_str());
    let known = sessions.find_known(ids.filter(|id| !open.contains(id)))?;
    let first = containers.first().map(Container::pane);
    let server_started = first.map(|pane| pane.server_started);
    let running_since = server_started
        .into_iter()
        .chain(processes::booted_at())
        .max();
    let running_since = running_since.map(timestamp);
    let moment = SyncContext {
        now: &town.clock().text(),
        running_since: running_since.as_deref(),
        server: first.map(|pane| pane.server_pid),
    };
    let mut lines = sync::plan(&running, &shown, |id| known.get(id).cloned(), &moment);
    confirm_revivals(town, &mut lines)?;
    let mut synced = Synced {
        unchanged: shown.len(),
        left_alone: containers.iter().filter_map(left_alone).collect(),
        ..Synced::default()
    };
    if !lines.is_empty() {
        let records = shown.iter().map(|container| &container.session);
        let agents = agents(town, running.iter().chain(records));
        lines.retain(|(_, line)| {
            let agent = agents.get(line.id.as_str());
            let busy = agent.filter(|agent| FileLock::is_held(&town.lock_path(agent)));
            synced.busy.extend(busy.cloned());
            busy.is_none()
        });
        if !dry_run {
            let is_unknown = |change: JournalChange| {
                matches!(change, JournalChange::Found | JournalChange::Adopted)
            };
            // A session that the index lacks may still be in the journal.
            if lines.iter().any(|(change, _)| is_unknown(*change)) {
                sessions.compare_tables()?;
            }
            lines = sessions.record_where(lines, is_news)?;
            move_queues(town, &running, &lines);
            notify_of_deaths(town, &containers, &lines);
            let ended = lines.iter().filter(|(_, line)| line.outcome.is_some());
            let ended: Vec<String> = ended.map(|(_, line)| line.id.clone()).collect();
            epilogue::write(town, sessions, &ended);
        }
    }
    let touched =
        |shown: &ShownContainer| lines.iter().any(|(_, line)| line.id == shown.session.id);
    synced.unchanged = shown.iter().filter(|shown| !touched(shown)).count();
    synced.lines = lines;
    Ok(synced)
}

/// Keeps only the revivals of sessions that tmux still shows. A session may begin after the journal
/// was read, be listed, and be stopped before the journal is asked about it: then the recorded end
/// is correct.
fn confirm_revivals(town: &Town, lines: &mut Vec<(JournalChange, Record)>) -> Result<()> {
    if lines
        .iter()
        .all(|(change, _)| *change != JournalChange::Revived)
    {
        return Ok(());
    }
    let socket = town.server().socket_path().to_string_lossy().into_owned();
    let containers = containers::list(town)?;
    // The id of a session without tags is derived from its container.
    let shown: HashSet<String> = containers
        .iter()
        .filter_map(|container| shown_container(container, &socket))
        .map(|shown| shown.session.id)
        .collect();
    lines.retain(|(change, line)| *change != JournalChange::Revived || shown.contains(&line.id));
    Ok(())
}

/// Moves the queues of agents whose names change with their sessions' names.
fn move_queues(town: &Town, running: &[Record], lines: &[(JournalChange, Record)]) {
    for (change, line) in lines {
        let before = running.iter().find(|session| session.id == line.id);
        let names = before
            .and_then(|session| session.agent.as_deref())
            .zip(line.agent.as_deref());
        if let (JournalChange::Renamed, Some((old, new))) = (change, names) {
            let read = |address| Identity::from_address(address, town.registry());
            if let (Some(old), Some(new)) = (read(old), read(new)) {
                queue::rename(town, &old, &new);
            }
        }
    }
}

/// Notifies people of agents that died by themselves. The journal records an end once, so there is
/// one notification. A deliberate stop records the end itself and does not come here.
fn notify_of_deaths(town: &Town, containers: &[Container], lines: &[(JournalChange, Record)]) {
    for (change, line) in lines {
        let mut all = containers.iter();
        let is_it = |container: &&Container| container.pane().tag_session == line.id;
        let has_ended = matches!(change, JournalChange::Died | JournalChange::Exited);
        let Some(container) = all.find(is_it).filter(|_| has_ended) else {
            continue;
        };
        let report = container.state(None);
        // The agent was running before it died.
        let event = notify::notice_for_change(Some(State::Running), &report);
        if let (Some(event), Some(agent)) = (event, container.identity()) {
            let reason = report.reason.as_deref().unwrap_or_default();
            crate::messaging::notify::raise(town, event, &agent.address(), reason);
        }
    }
}

/// Returns the containers once no more of them disappear. A server that shuts down closes its
/// sessions one after the other: those sessions are lost with the server and were not closed by a
/// person.
fn settled(town: &Town, running: &[Record]) -> Result<Vec<Container>> {
    const MOMENT: Duration = Duration::from_millis(100);
    const LOOKS: usize = 50;
    let mut containers = containers::list(town)?;
    for _ in 0..LOOKS {
        let is_there = |session: &Record| {
            let mut all = containers.iter();
            all.any(|container| container.pane().tag_session == session.id)
        };
        if containers.is_empty() || running.iter().all(is_there) {
            break;
        }
        // tmux reports no end of its shutdown to wait for.
        std::thread::sleep(MOMENT);
        let now = containers::list(town)?;
        let is_settled = now.len() >= containers.len();
        containers = now;
        if is_settled {
            break;
        }
    }
    Ok(containers)
}

/// Runs a sync for tmux's hooks, followed by periodic maintenance. If another process starts or
/// stops an agent, it repeats the sync afterwards, since no other hook will run.
pub fn after_hook(town: &Town, sessions: &Sessions) -> Result<()> {
    let mut has_changed = false;
    loop {
        let synced = sync(town, sessions, false)?;
        has_changed |= !synced.lines.is_empty();
        let Some(agent) = synced.busy.first() else {
            break;
        };
        drop(FileLock::share(&town.lock_path(agent), TIMEOUT)?);
    }
    if has_changed {
        save_schedule::request(town);
    }
    settle_leftovers(town, sessions)?;
    remove_expired(town, sessions)?;
    pidfile::remove_ended_agents(town);
    sessions.compare_if_due()?;
    // Other programs that read the index find the new data there.
    sessions.tidy();
    Ok(())
}

/// Archives old sessions, and removes old recordings and expired events, each at most once per
/// interval.
pub fn remove_expired(town: &Town, sessions: &Sessions) -> Result<()> {
    let kept = &town.settings().sessions;
    sessions.archive_if_due(kept.archive_after_days)?;
    Recordings::of(town).remove_if_due(kept.keep_recordings_days)?;
    EventRetention::of(town).auto_prune(false).map(drop)
}

/// Writes the epilogues that a killed process left unwritten.
fn settle_leftovers(town: &Town, sessions: &Sessions) -> Result<()> {
    let open = usage::unsettled(town);
    let known = sessions.in_journal(open.iter().map(String::as_str))?;
    let ended = known
        .into_values()
        .filter(|session| session.outcome.is_some());
    let ended: Vec<String> = ended.map(|session| session.id).collect();
    epilogue::write(town, sessions, &ended);
    Ok(())
}

/// Returns whether the journal still lacks a line, given its current record.
fn is_news(change: JournalChange, now: Option<&Record>) -> bool {
    match (change, now) {
        (JournalChange::Found | JournalChange::Adopted, Some(_)) => false,
        (JournalChange::Died | JournalChange::Exited | JournalChange::Gone, Some(session)) => {
            session.outcome.is_none()
        }
        (JournalChange::Revived, Some(session)) => session.outcome.is_some(),
        _ => true,
    }
}

/// Returns the agents of these sessions, by session id.
fn agents<'a>(
    town: &Town,
    records: impl Iterator<Item = &'a Record>,
) -> BTreeMap<&'a str, Identity> {
    let agents = records.filter_map(|session| {
        let identity = Identity::from_address(session.agent.as_deref()?, town.registry())?;
        Some((session.id.as_str(), identity))
    });
    agents.collect()
}

fn left_alone(container: &Container) -> Option<(String, String)> {
    let why = match container.owner() {
        Owner::OtherTown(root) => of_another_town(root),
        _ => return None,
    };
    Some((container.name().to_owned(), why))
}

fn of_another_town(root: &str) -> String {
    format!("it belongs to the town at {root}")
}

/// Returns tmux's data about an agent of the town, or about a container that is only named like
/// one.
fn shown_container(container: &Container, socket: &str) -> Option<ShownContainer> {
    let (identity, session, is_tagged) = match container.owner() {
        Owner::Agent(identity) => (identity, container.session_id()?, true),
        Owner::Orphan(identity) => (identity, container.session_id()?, false),
        Owner::Named(identity) => (
            identity,
            containers::id_of_untagged(container, socket),
            false,
        ),
        Owner::OtherTown(_) | Owner::Person => return None,
    };
    let pane = container.pane();
    let text = |value: &str| Some(value.to_owned()).filter(|value| !value.is_empty());
    Some(ShownContainer {
        is_tagged,
        death: (pane.dead || container.lost_agent_pane()).then(|| PaneDeath {
            at: pane.died_at.map(timestamp),
            // Nothing is known about a pane that is gone.
            exit_code: pane.exit_status.filter(|_| pane.dead),
            signal: pane.exit_signal.filter(|_| pane.dead),
            has_left: container.has_left(),
        }),
        session: Record {
            tmux_session: Some(container.name().to_owned()),
            tmux_socket: Some(socket.to_owned()),
            tmux_pid: Some(pane.server_pid),
            agent: Some(identity.address()),
            rig: identity.rig().map(str::to_owned),
            role: Some(identity.role().as_str().to_owned()),
            started_at: session.began_at().map(timestamp),
            chain_id: text(&pane.tag_chain).or_else(|| Some(session.to_string())),
            cwd: text(&pane.folder()),
            harness: text(&pane.tag_harness),
            harness_session_id: text(&pane.tag_harness_session),
            pane: Some(pane.pane.to_string()),
            pid: Some(pane.pid),
            status: Some(SessionStatus::Running),
            ..Record::about(session.to_string())
        },
    })
}

#[cfg(test)]
mod tests;

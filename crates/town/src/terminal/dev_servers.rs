//! Development servers of an agent: each has a window in the agent's container and its own ports.
//!
//! The worktree's `.gt.toml` defines the servers. A server's state comes from its pane and from
//! whether its port answers at the time of the query. An open [`crate::views::monitor`] notices
//! that a server stopped answering (`dev_servers/watched.rs`) and stores that for other processes
//! (`dev_servers/health.rs`).

mod health;
mod listening;
mod ports;
mod watched;

pub(crate) use watched::AnsweredServers;

use crate::base::clock::Clock;
use crate::base::error_enum::error_enum;
use crate::base::lock::FileLock;
use crate::base::or_log::OrLog;
use crate::base::wake;
use crate::catalog::roles;
use crate::records::events::{self, Events};
use crate::repo::{approval, project, workspace};
use crate::terminal::containers::{self, Container, PaneRow};
use crate::terminal::windows::{self, AfterEnd, NewWindow, WindowSandbox};
use crate::{Result, Town};
use gt_core::event::Event;
use gt_core::project::{DevServer, Project, ProjectCommand, ProjectCommandKind};
use gt_core::startup::tag;
use gt_core::state::StateSource;
use gt_core::{Identity, Problem, Role, beside};
use gt_tmux::{Command, PaneId, SessionName};
use health::Answers;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Prefix of the window names of development servers.
const WINDOW: &str = "dev-";
/// Timeout for connecting to a local port.
const ANSWER: Duration = Duration::from_millis(200);
/// Maximum time that a start waits until the server answers or fails.
const SETTLE: Duration = Duration::from_millis(500);
const TIMEOUT: Duration = Duration::from_secs(30);

/// The state of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DevServerState {
    /// Its port answers.
    Running,
    /// Its process runs and its port does not answer yet, or has stopped answering for a moment.
    Starting,
    /// It has no process because a person or an agent stopped it.
    Stopped,
    /// It failed, or its process runs and its port stopped answering.
    Error,
}

impl DevServerState {
    pub fn as_str(self) -> &'static str {
        match self {
            DevServerState::Running => "running",
            DevServerState::Starting => "starting",
            DevServerState::Stopped => "stopped",
            DevServerState::Error => "error",
        }
    }
}

/// Servers that were not found, started or stopped.
#[derive(Clone, Debug, thiserror::Error)]
pub enum DevServerError {
    /// The agent has no worktree, and so no servers.
    #[error(transparent)]
    NoWorktree(Problem),
    /// The project has no server of this name.
    #[error(transparent)]
    Unknown(Problem),
    #[error(transparent)]
    Other(#[from] Problem),
}

error_enum!(DevServerError: NoWorktree, Unknown, Other);

/// One server of one worktree.
#[derive(Clone, Debug)]
pub struct RunningServer {
    pub agent: Identity,
    pub name: String,
    pub window: String,
    pub command: String,
    pub container: Option<String>,
    pub work_dir: PathBuf,
    pub state: DevServerState,
    /// Start of the state in seconds since the epoch, if known.
    pub since: Option<i64>,
    /// Reason for [`DevServerState::Error`].
    pub reason: Option<String>,
    pub pane: Option<PaneId>,
    pub pid: Option<u32>,
    pub exit_code: Option<i32>,
    /// The port to connect to, once one was allocated.
    pub port: Option<u16>,
    /// All its ports, by variable.
    pub ports: BTreeMap<String, u16>,
    /// Whether this call started or stopped it.
    pub changed: bool,
}

impl RunningServer {
    pub fn url(&self) -> Option<String> {
        self.port.map(|port| format!("http://localhost:{port}/"))
    }
}

/// An agent's worktree and its project settings.
struct ServerSite {
    agent: Identity,
    dir: PathBuf,
    project: Project,
    container: Option<Container>,
}

/// Returns the servers beside an agent, or one of them.
pub fn list(
    town: &Town,
    agent: &Identity,
    name: Option<&str>,
) -> Result<Vec<RunningServer>, DevServerError> {
    let site = ServerSite::of(town, agent)?;
    let wanted = site.wanted(name)?;
    let servers = wanted.into_iter();
    Ok(servers
        .map(|it| site.running_server(town, it))
        .collect::<Result<_>>()?)
}

/// Returns the servers beside an agent whose worktree and container the caller already knows.
pub(crate) fn of_agent(
    town: &Town,
    agent: &Identity,
    dir: &Path,
    container: Option<&Container>,
) -> Result<Vec<RunningServer>> {
    let site = ServerSite {
        agent: agent.clone(),
        dir: dir.to_owned(),
        project: project::of_worktree(dir)?,
        container: container.cloned(),
    };
    let servers = site.project.dev_servers.iter();
    servers
        .map(|server| site.running_server(town, server))
        .collect()
}

/// Releases the ports of a removed worktree.
pub(crate) fn forget(town: &Town, dir: &Path) -> Result<()> {
    ports::forget(town, dir)
}

/// Returns the servers beside all agents that have a container.
pub fn list_all(town: &Town) -> Result<Vec<RunningServer>> {
    let mut all = Vec::new();
    for container in containers::list(town)? {
        let Some(agent) = container.identity() else {
            continue;
        };
        match list(town, agent, None) {
            Err(DevServerError::NoWorktree(_)) => {}
            servers => {
                let servers = servers.or_warn(format_args!("the servers beside {agent}"));
                all.extend(servers.unwrap_or_default());
            }
        }
    }
    Ok(all)
}

/// Starts servers beside an agent, in windows of its container.
pub fn start(town: &Town, agent: &Identity, name: Option<&str>) -> Result<Vec<RunningServer>> {
    let _lock = lock(town, agent)?;
    let site = ServerSite::of(town, agent)?;
    let wanted = site.wanted(name)?;
    let mut servers = Vec::new();
    for server in wanted {
        let changed = site.start(town, server)?;
        if changed {
            site.write_down(town, "server_start", server);
        }
        servers.push((server, changed));
    }
    let site = ServerSite::of(town, agent)?;
    let began = Instant::now();
    let settled = servers
        .into_iter()
        .map(|(server, changed)| {
            let mut now = site.running_server(town, server)?;
            // tmux reports a pane as dead shortly before it reports the exit code.
            let is_open = |now: &RunningServer| {
                let is_dead = now.state == DevServerState::Stopped && now.pane.is_some();
                now.state == DevServerState::Starting || (is_dead && now.exit_code.is_none())
            };
            while changed && is_open(&now) && began.elapsed() < SETTLE {
                std::thread::sleep(Duration::from_millis(20));
                now = ServerSite::of(town, agent)?.running_server(town, server)?;
            }
            if changed && now.state == DevServerState::Error {
                ServerSite::of(town, agent)?.report_failure(town, server);
            }
            Ok(RunningServer { changed, ..now })
        })
        .collect();
    // tmux notifies monitors of the new window, but not of the port.
    wake::monitors(town);
    settled
}

/// Stops servers beside an agent, and closes their windows.
pub fn stop(town: &Town, agent: &Identity, name: Option<&str>) -> Result<Vec<RunningServer>> {
    let _lock = lock(town, agent)?;
    let site = ServerSite::of(town, agent)?;
    let wanted = site.wanted(name)?;
    let panes: Vec<&PaneRow> = wanted.iter().filter_map(|it| site.pane(it)).collect();
    windows::close(town, &panes)?;
    let is_alive = |server: &&&DevServer| site.pane(server).is_some_and(|row| !row.dead);
    for server in wanted.iter().filter(is_alive) {
        site.write_down(town, "server_stop", server);
    }
    let after = ServerSite::of(town, agent)?;
    wanted
        .into_iter()
        .map(|server| {
            Ok(RunningServer {
                changed: site.pane(server).is_some(),
                ..after.running_server(town, server)?
            })
        })
        .collect()
}

fn lock(town: &Town, agent: &Identity) -> Result<FileLock> {
    FileLock::take(&lock_path(town, agent), TIMEOUT)
}

fn lock_path(town: &Town, agent: &Identity) -> PathBuf {
    let name = agent.address().replace('/', ".");
    let locks = town.runtime_dir().join("locks");
    locks.join(format!("dev-{name}.lock"))
}

/// Returns whether this is the pane of a server that failed by itself or stopped answering.
pub(crate) fn has_failed(row: &PaneRow) -> bool {
    let is_server = row.tag_window.starts_with(WINDOW) && row.tag_port.is_some();
    let now = Clock::default().seconds();
    is_server
        && match row.dead {
            true => failed(row) && !was_ended(row),
            false => Answers::read(&row.tag_answers).state(now) == DevServerState::Error,
        }
}

/// Writes the events of all servers that failed since the last call by any process.
pub(crate) fn emit_failures(town: &Town, containers: &[Container]) {
    for container in containers {
        let Some(agent) = container.identity() else {
            continue;
        };
        for row in container.own_windows().filter(|row| has_failed(row)) {
            emit_failure(town, agent, row);
        }
    }
}

/// Writes the event of a failed server. Several processes may see the failure; tmux swaps a tag on
/// the pane atomically, so that only one of them writes the event. Does nothing and returns false
/// while another process starts or stops the servers or the agent: that process reports the
/// failure.
pub(crate) fn emit_failure(town: &Town, agent: &Identity, row: &PaneRow) -> bool {
    let locks = [lock_path(town, agent), town.lock_path(agent)];
    if locks.iter().any(|path| FileLock::is_held(path)) {
        return false;
    }
    write_failure_event(town, agent, row);
    true
}

const SILENT: &str = "silent";

fn write_failure_event(town: &Town, agent: &Identity, row: &PaneRow) {
    let what = if row.dead { "failed" } else { SILENT };
    // `None`: the window was closed deliberately. The death of a server that was already reported
    // as silent is reported as well.
    let told = windows::mark_reported(town, row.pane, what);
    if told.is_some_and(|told| told.is_empty() || (row.dead && told == SILENT)) {
        let server = row.tag_window.strip_prefix(WINDOW).unwrap_or_default();
        let event = Event::new("server_failed", agent)
            .with("server", server)
            .with("exit_code", row.exit_status)
            .with("signal", row.exit_signal.filter(|signal| *signal != 0))
            .with("reason", (!row.dead).then(|| why(row)))
            .known_by(StateSource::Process);
        Events::of(town).note(vec![event]);
    }
}

fn failed(row: &PaneRow) -> bool {
    let by_signal = row.exit_signal.is_some_and(|signal| signal != 0);
    by_signal || row.exit_status.is_some_and(|status| status != 0)
}

fn was_ended(row: &PaneRow) -> bool {
    beside::was_ended(row.exit_status, row.exit_signal)
}

impl ServerSite {
    fn of(town: &Town, agent: &Identity) -> Result<Self, DevServerError> {
        let role = roles::resolve(town, agent.role(), agent.rig())?.value;
        let dir = match agent.role() {
            Role::Task => workspace::task_worktree(town, agent),
            _ => Some(workspace::path(town, agent, &role)?).filter(|dir| dir.is_dir()),
        };
        let dir = dir.ok_or_else(|| {
            DevServerError::NoWorktree(
                Problem::not_found(format!("{agent} has no worktree"))
                    .hint("`gt task start` makes that of a work item"),
            )
        })?;
        Ok(ServerSite {
            agent: agent.clone(),
            project: project::of_worktree(&dir)?,
            container: containers::of_agent(town, agent)?,
            dir,
        })
    }

    fn wanted(&self, name: Option<&str>) -> Result<Vec<&DevServer>, DevServerError> {
        let servers = &self.project.dev_servers;
        let Some(name) = name else {
            return Ok(servers.iter().collect());
        };
        let found = servers.iter().find(|server| server.name() == name);
        found.map(|server| vec![server]).ok_or_else(|| {
            let known: Vec<&str> = servers.iter().map(DevServer::name).collect();
            let problem = Problem::not_found(format!("the project has no server called {name:?}"));
            DevServerError::Unknown(match known.is_empty() {
                true => problem.hint("[[dev_servers]] in its .gt.toml names them"),
                false => problem.hint(format!("it has {}", known.join(", "))),
            })
        })
    }

    /// Returns the pane of a server, alive or dead.
    fn pane(&self, server: &DevServer) -> Option<&PaneRow> {
        let window = window(server);
        let mut own = self.container.as_ref()?.own_windows();
        own.find(|row| row.tag_window == window)
    }

    /// Writes the event of an action on a server.
    fn write_down(&self, town: &Town, kind: &str, server: &DevServer) {
        // The event is written without a port if the notes cannot be read.
        let ports = ports::stored(town, &self.dir, server.name()).unwrap_or_default();
        let event = events::by_command(town, kind)
            .with("target", self.agent.address())
            .with("server", server.name())
            .with("port", ports.get(server.port_variable()).copied());
        Events::of(town).note(vec![event]);
    }

    /// Reports the failure of a server that was just started.
    fn report_failure(&self, town: &Town, server: &DevServer) {
        if let Some(row) = self.pane(server).filter(|row| has_failed(row)) {
            write_failure_event(town, &self.agent, row);
        }
    }

    /// Starts a server. Returns false if it was already running.
    fn start(&self, town: &Town, server: &DevServer) -> Result<bool> {
        let agent = &self.agent;
        let container = self.container.as_ref().ok_or_else(|| {
            Problem::not_found(format!("{agent} is not running"))
                .hint(format!("`gt start {agent}` starts it"))
        })?;
        if let Some(pane) = self.pane(server) {
            if !pane.dead {
                return Ok(false);
            }
            windows::close(town, &[pane])?;
        }
        if let Some(rig) = agent.rig() {
            let command = ProjectCommand {
                kind: ProjectCommandKind::DevServer,
                command: server.command.as_str().to_owned(),
            };
            approval::check(town, rig, &[command])?;
        }
        let ports = ports::allocate(town, &self.dir, server)?;
        let env: Vec<(String, String)> = ports
            .iter()
            .map(|(variable, port)| (variable.clone(), port.to_string()))
            .collect();
        let name = SessionName::try_from(container.name())
            .map_err(|error| Problem::failed(error.to_string()))?;
        let port = ports.get(server.port_variable()).map(u16::to_string);
        let port = port.unwrap_or_default();
        let window = NewWindow {
            name: &window(server),
            command: server.command.as_str(),
            sandbox: WindowSandbox::of(town, agent, container)?,
            dir: &self.dir,
            env: &env,
            after_end: AfterEnd::Stay,
            tags: &[(tag::PORT, &port)],
        };
        windows::open(town, &name, &window, Vec::new())?;
        Ok(true)
    }

    fn running_server(&self, town: &Town, server: &DevServer) -> Result<RunningServer> {
        let ports = ports::stored(town, &self.dir, server.name())?;
        let port = ports.get(server.port_variable()).copied();
        let pane = self.pane(server);
        let (state, since) = match pane {
            None => (DevServerState::Stopped, None),
            Some(row) if row.dead && failed(row) => (DevServerState::Error, row.died_at),
            Some(row) if row.dead => (DevServerState::Stopped, row.died_at),
            Some(row) => {
                let now = town.clock().seconds();
                let known = Answers::read(&row.tag_answers);
                let after = known.after(port.is_some_and(answers), now);
                if after != known {
                    // Fails only if the pane is gone; then there is nothing to record.
                    let _ = town.server().run(note(row.pane, after));
                    // Monitors only watch servers that have answered at least once.
                    wake::monitors(town);
                }
                (after.state(now), after.since())
            }
        };
        let alive = pane.filter(|row| !row.dead);
        Ok(RunningServer {
            agent: self.agent.clone(),
            name: server.name().to_owned(),
            window: window(server),
            command: server.command.as_str().to_owned(),
            container: self.container.as_ref().map(|it| it.name().to_owned()),
            work_dir: self.dir.clone(),
            state,
            since,
            reason: pane.filter(|_| state == DevServerState::Error).map(why),
            pane: pane.map(|row| row.pane),
            pid: alive.map(|row| row.pid),
            exit_code: pane.and_then(|row| row.exit_status.filter(|_| row.dead)),
            port,
            ports,
            changed: false,
        })
    }
}

/// Returns the reason for a server's error.
fn why(row: &PaneRow) -> String {
    match (row.dead, row.exit_status) {
        (true, Some(code)) => format!("exit code {code}"),
        (true, None) => "it was killed".to_owned(),
        (false, _) => "runs, but does not answer".to_owned(),
    }
}

/// Returns the commands that store the result of a port check on the pane. If the server answers
/// again, they also clear the mark of a reported failure, so that a later failure is reported.
fn note(pane: PaneId, answers: Answers) -> Vec<Command> {
    let set = || Command::new("set-option").arg("-p").target(pane);
    let noted = set().args([tag::ANSWERS, &answers.to_string()]);
    let is_back = matches!(answers, Answers::Since(_));
    let forget = is_back.then(|| set().args(["-u", tag::BESIDE_TOLD]));
    std::iter::once(noted).chain(forget).collect()
}

fn window(server: &DevServer) -> String {
    format!("{WINDOW}{}", server.name())
}

/// Returns whether a process listens on a local port.
fn answers(port: u16) -> bool {
    let addresses: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
    let mut addresses = addresses.iter();
    addresses.any(|address| TcpStream::connect_timeout(&(*address, port).into(), ANSWER).is_ok())
}

//! The one way an agent is started, whatever its role.
//!
//! In this order, because each step needs the one before: resolve role, harness
//! and folder; take the container's lock; look at what is there; make the
//! container with its environment, tags and options in one call (so no exit can
//! fall between the process and `remain-on-exit`, and nothing secret stands in
//! any argv); watch it come up; then note its process. Whatever fails undoes
//! what was made.

mod await_ready;
mod options;

pub use options::StartOptions;

use crate::containers::{self, Container, Owner, tmux_problem};
use crate::inject::{Submission, Typist};
use crate::lock::{self, FileLock};
use crate::queue::Phase;
use crate::{
    Result, Town, directory, harnesses, hooks, look, neighbours, pidfile, processes, rig, roles,
    stop, workspace,
};
use gt_core::beacon::Beacon;
use gt_core::harness::Preset;
use gt_core::health::{self, Health, Vitals};
use gt_core::problem::Kind;
use gt_core::role::RoleConfig;
use gt_core::session::SessionId;
use gt_core::startup::{self, Plan, Wish, tag};
use gt_core::state::State;
use gt_core::{Identity, Problem, Role};
use gt_tmux::{Batch, Command, ErrorKind, PaneId, SessionName, format};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The size of a container that nobody has attached to yet.
const COLUMNS: &str = "200";
const ROWS: &str = "50";

/// An agent that was started.
#[derive(Clone, Debug)]
pub struct Started {
    pub identity: Identity,
    pub container: String,
    pub session: SessionId,
    pub pane: PaneId,
    pub pid: u32,
    pub harness: String,
    pub work_dir: PathBuf,
    pub state: State,
    pub elapsed: Duration,
    /// What did not go as wished and did not stop the start.
    pub warnings: Vec<String>,
}

/// Starts an agent.
pub fn start(town: &Town, identity: &Identity, options: &StartOptions) -> Result<Started> {
    let began = Instant::now();
    town.around().cancel.check()?;
    let mut prepared = Prepared::new(town, identity, options)?;
    let _lock = take_lock(town, identity)?;
    let existing = existing(town, identity, &prepared)?;
    let new_server = !look::keys_are_current(&existing.keys_tag);
    if new_server {
        check_version(town)?;
    }
    let new_folder = prepared.make_workspace(town)?;
    let mut warnings: Vec<String> = Vec::new();
    prepared.settings_file = hooks::settings_file(town, &prepared.preset)?;
    let session = SessionId::new(uuid::Uuid::now_v7());
    let plan = prepared.plan(town, session);
    let result = make(town, &prepared, &plan, existing.place).and_then(|made| {
        if prepared.role.start.track_pid {
            pidfile::write(town, prepared.container.as_str(), made.pid)?;
        }
        if new_server {
            let greeted = look::install_keys(town).and_then(|()| neighbours::remember(town));
            warnings.extend(greeted.err().map(|problem| problem.to_string()));
        }
        let state = await_ready::bring_up(town, &prepared, &plan, &made, &mut warnings)?;
        finish(town, &prepared, &made)?;
        Ok((made, state))
    });
    match result {
        Ok((made, state)) => Ok(Started {
            identity: identity.clone(),
            container: prepared.container.to_string(),
            session,
            pane: made.pane,
            pid: made.pid,
            harness: prepared.preset.name.clone(),
            work_dir: prepared.work_dir.clone(),
            state,
            elapsed: began.elapsed(),
            warnings,
        }),
        Err(problem) => {
            if !options.keep_container && !lost_to_another(&problem) {
                undo(town, &prepared, session);
            }
            if new_folder && workspace::is_worktree(identity.role()) {
                // Made a moment ago and still empty of work, or it is kept.
                let _ = workspace::remove(town, identity, &prepared.work_dir, false);
            }
            Err(problem)
        }
    }
}

/// Brings the rigs of these agents up to date, where their roles want it: each rig
/// once, whatever the number of agents. A remote that cannot be reached is only a
/// warning.
pub fn pre_sync(town: &Town, identities: &[Identity]) -> Vec<String> {
    let mut rigs: Vec<&str> = identities
        .iter()
        .filter_map(|identity| {
            let role = roles::resolve(town, identity.role(), identity.rig())
                .ok()?
                .value;
            identity.rig().filter(|_| role.session.needs_pre_sync)
        })
        .collect();
    rigs.sort_unstable();
    rigs.dedup();
    rigs.retain(|rig| rig::check_not_parked(town, rig).is_ok());
    std::thread::scope(|scope| {
        let fetches: Vec<_> = rigs
            .iter()
            .map(|rig| (rig, scope.spawn(|| workspace::fetch(town, rig))))
            .collect();
        let failures = fetches.into_iter().filter_map(|(rig, fetch)| {
            let problem = fetch.join().ok()?.err()?;
            Some(format!(
                "the rig {rig} could not be brought up to date: {problem}"
            ))
        });
        failures.collect()
    })
}

/// Says what would keep an agent from being started, as far as can be told
/// without touching anything.
pub fn check(town: &Town, identity: &Identity, options: &StartOptions) -> Result<()> {
    let prepared = Prepared::new(town, identity, options)?;
    if options.create || prepared.work_dir.is_dir() || !workspace::is_worktree(identity.role()) {
        return Ok(());
    }
    Err(prepared.no_folder())
}

/// Everything about a start that is known before tmux is touched.
struct Prepared<'a> {
    identity: &'a Identity,
    options: &'a StartOptions,
    role: RoleConfig,
    preset: Preset,
    program: PathBuf,
    container: SessionName,
    work_dir: PathBuf,
    prompt: Option<String>,
    passed_env: Vec<(String, String)>,
    config_dir: Option<String>,
    settings_file: Option<String>,
}

impl<'a> Prepared<'a> {
    fn new(town: &Town, identity: &'a Identity, options: &'a StartOptions) -> Result<Self> {
        identity.check_new(town.registry()).or_else(|problem| {
            // The town's own agents bear words that are reserved for them.
            if identity.name().is_none() {
                Ok(())
            } else {
                Err(problem)
            }
        })?;
        if let Some(rig) = identity.rig().filter(|_| identity.role() != Role::Task) {
            rig::check_not_parked(town, rig)?;
        }
        let mut role = roles::resolve(town, identity.role(), identity.rig())?.value;
        check_variables(role.env.keys(), "the role", identity.role().word())?;
        options.apply_to(&mut role);
        let file = match identity.role() {
            Role::Agent => directory::agent_file(town, identity)?.unwrap_or_default(),
            _ => directory::AgentFile::default(),
        };
        let harness = options.harness.as_deref().or(file.harness.as_deref());
        let preset = harnesses::resolve(town, &harnesses::choose(town, harness, &role))?.value;
        let names = preset.env.set.keys().chain(&preset.env.clear);
        check_variables(names, "the harness", &preset.name)?;
        let program = if options.command.is_some() || role.session.start_command.is_some() {
            PathBuf::new()
        } else {
            harnesses::locate(town, &preset)?
        };
        let container = roles::container_by(town, identity, &role)?;
        let container = SessionName::try_from(container.as_str())
            .map_err(|error| Problem::usage(error.to_string()))?;
        let work_dir = match &options.work_dir {
            Some(dir) => town.around().current_dir.join(dir),
            None => workspace::path(town, identity, &role)?,
        };
        let instructions = options.instructions.clone().or(file.prompt);
        let prompt = prompt(town, identity, options, &role, instructions.as_deref());
        let around = town.around();
        let passed = preset.env.pass.iter().map(String::as_str);
        let passed_env = passed
            .filter_map(|name| Some((name.to_owned(), around.var(name)?.to_owned())))
            .chain(around.agents_path().map(|path| ("PATH".to_owned(), path)))
            .collect();
        let variable = preset.env.config_dir.as_deref();
        let config_dir = options
            .config_dir
            .clone()
            .or_else(|| around.var(variable?).map(str::to_owned));
        Ok(Prepared {
            identity,
            options,
            role,
            preset,
            program,
            container,
            work_dir,
            prompt,
            passed_env,
            config_dir,
            settings_file: None,
        })
    }

    /// Makes the folder ready, and says whether it is new.
    fn make_workspace(&self, town: &Town) -> Result<bool> {
        let is_new = !self.work_dir.exists();
        let own_folder = self.options.work_dir.is_none();
        if own_folder && (self.options.create || !workspace::is_worktree(self.identity.role())) {
            workspace::ensure(town, self.identity, &self.work_dir)?;
        }
        if self.work_dir.is_dir() {
            Ok(is_new)
        } else {
            Err(self.no_folder())
        }
    }

    fn no_folder(&self) -> Problem {
        let problem = Problem::not_found(format!(
            "{} does not exist: {} is not a folder",
            self.identity,
            self.work_dir.display()
        ));
        match (self.identity.role(), self.identity.rig()) {
            (Role::Crew, Some(rig)) => problem.hint(format!(
                "`gt crew add {rig}/{}` makes it",
                self.identity.short_name()
            )),
            _ => problem.hint("add `--create` to make it"),
        }
    }

    fn plan(&self, town: &Town, session: SessionId) -> Plan {
        startup::plan(&Wish {
            identity: self.identity,
            container: self.container.as_str(),
            session,
            work_dir: &self.work_dir.to_string_lossy(),
            town_root: town.root_text(),
            socket: &town.socket_text(),
            role: &self.role,
            preset: &self.preset,
            program: &self.program.to_string_lossy(),
            command: self.options.command.as_deref(),
            prompt: self.prompt.as_deref(),
            conversation: self.options.conversation.clone(),
            config_dir: self.config_dir.as_deref(),
            passed_env: &self.passed_env,
            extra_env: &self.options.extra_env,
            auto_respawn: self.role.start.auto_respawn,
            settings_file: self.settings_file.as_deref(),
            now: jiff::Timestamp::now().as_second(),
        })
    }
}

fn prompt(
    town: &Town,
    identity: &Identity,
    options: &StartOptions,
    role: &RoleConfig,
    instructions: Option<&str>,
) -> Option<String> {
    if !role.start.prompt {
        return None;
    }
    let time = jiff::Timestamp::now().to_string();
    let sender = options
        .sender
        .as_deref()
        .or_else(|| town.around().var("GT_ROLE"));
    let beacon = Beacon {
        recipient: identity,
        sender: sender.unwrap_or("human"),
        time: time.get(..16).unwrap_or(&time),
        topic: options.topic.as_deref().unwrap_or(&role.start.topic),
        molecule: options.molecule.as_deref(),
    };
    Some(beacon.prompt(instructions.or(role.start.instructions.as_deref())))
}

/// A variable that no process could have would make tmux refuse the start half way.
fn check_variables<'n>(
    names: impl Iterator<Item = &'n String>,
    what: &str,
    which: &str,
) -> Result<()> {
    let is_bad = |name: &&String| name.is_empty() || name.contains(['=', '\0']);
    match names.into_iter().find(is_bad) {
        Some(name) => Err(Problem::usage(format!(
            "{what} {which} sets {name:?}, which cannot be the name of a variable"
        ))
        .hint("correct its [env]")),
        None => Ok(()),
    }
}

/// Refuses a tmux that lacks what a start needs, before anything is made.
fn check_version(town: &Town) -> Result<()> {
    let problem = |error| tmux_problem("this tmux cannot hold agents", error);
    let version = town.tmux_version().map_err(problem)?;
    version.check_minimum().map_err(problem)
}

/// One start of an agent at a time; the second loses at once, and cleanly.
fn take_lock(town: &Town, identity: &Identity) -> Result<FileLock> {
    let path = town.lock_path(identity);
    FileLock::try_take(&path)?.ok_or_else(|| {
        let holder =
            lock::holder(&path).map_or_else(String::new, |pid| format!(" (process {pid})"));
        Problem::conflict(format!(
            "another gt{holder} is starting or stopping {identity}"
        ))
        .hint("wait for it, then look with `gt agents`")
    })
}

/// Where the agent's process will be put.
enum Place {
    /// A new container.
    New,
    /// The pane of an agent that died.
    Respawn(PaneId),
    /// A new window, because the agent's pane is gone and the user's are not.
    Window,
}

struct Existing {
    place: Place,
    keys_tag: String,
}

/// Looks at what is there under that name: free, alive, somebody else's, or a zombie.
fn existing(town: &Town, identity: &Identity, prepared: &Prepared<'_>) -> Result<Existing> {
    let containers = containers::list(town)?;
    let keys_tag = containers
        .first()
        .map(|container| container.pane().keys_version.clone())
        .unwrap_or_default();
    let name = prepared.container.as_str();
    let own = containers
        .iter()
        .find(|container| container.identity() == Some(identity));
    if let Some(other) = own.filter(|container| container.name() != name) {
        return Err(Problem::conflict(format!(
            "{identity} lives in the container {} already",
            other.name()
        ))
        .hint(format!(
            "`gt stop {identity}` ends it, whatever the container is called"
        )));
    }
    if let Some(pane) = prepared.options.respawn_of {
        let wanted = own.is_some_and(|container| {
            let row = container.pane();
            row.pane == pane && row.dead && row.tag_auto_respawn
        });
        if !wanted {
            return Err(Problem::conflict(format!(
                "nobody wants {identity} back any more"
            )));
        }
    }
    let mut place = Place::New;
    if let Some(container) = containers.iter().find(|container| container.name() == name) {
        refuse_others(container, identity)?;
        if container.is_vacant() {
            return Ok(Existing {
                place: Place::Window,
                keys_tag,
            });
        }
        if health(container) == Health::Healthy {
            return Err(
                Problem::conflict(format!("{identity} is running already, in {name}")).hint(
                    format!("`gt attach {identity}` goes there, `gt stop {identity}` ends it"),
                ),
            );
        }
        stop::end_processes(town, std::slice::from_ref(container), Duration::ZERO);
        // In the same container, so that attached clients and the user's own panes stay.
        place = if container.lost_agent_pane() {
            Place::Window
        } else {
            Place::Respawn(container.pane().pane)
        };
    }
    Ok(Existing { place, keys_tag })
}

fn refuse_others(container: &Container, identity: &Identity) -> Result<()> {
    let name = container.name();
    match container.owner() {
        Owner::Agent(owner) if owner == identity => Ok(()),
        Owner::Nobody if container.is_vacant() => Ok(()),
        Owner::Agent(owner) if owner != identity => Err(Problem::conflict(format!(
            "the container {name} holds {owner}"
        ))),
        Owner::OtherTown(root) => Err(Problem::conflict(format!(
            "the container {name} belongs to the town at {root}"
        ))
        .hint("give this town a tmux server of its own: `socket` under [tmux] in town.toml")),
        _ => Err(Problem::conflict(format!(
            "there is a tmux session {name} that gt did not start"
        ))
        .hint(format!(
            "rename it: `tmux rename-session -t ={name} NEW-NAME`"
        ))),
    }
}

fn health(container: &Container) -> Health {
    if container.lost_agent_pane() {
        return Health::AgentDead;
    }
    let mut table = processes::snapshot();
    let names = container.process_names();
    let pane = container.pane();
    processes::tree_has(&mut table, pane.pid, &names);
    let vitals = Vitals {
        pane_dead: pane.dead,
        pane_pid: pane.pid,
        process_names: &names,
        state: State::Running,
        silent_seconds: 0,
        hung_after_seconds: u64::MAX,
    };
    health::examine(&vitals, &table)
}

/// A container that was made, and its process.
struct Made {
    pane: PaneId,
    pid: u32,
    tty: String,
}

/// Makes the container, or fills the one whose agent died.
fn make(town: &Town, prepared: &Prepared<'_>, plan: &Plan, place: Place) -> Result<Made> {
    let name = &prepared.container;
    let set = |option: &str, value: &str| {
        Command::new("set-option")
            .target(name.clone())
            .arg(option)
            .arg(value)
    };
    let mut batch = Batch::new();
    let limit = town
        .settings()
        .tmux
        .history_limit
        .map(|limit| limit.to_string());
    if let Some(limit) = &limit {
        // Only a limit that stands before the pane is made reaches it; the user's
        // own is put back right after.
        batch = batch
            .then(Command::new("set-option").args(["-gF", "@gt_history", "#{history-limit}"]))
            .then(Command::new("set-option").args(["-g", "history-limit", limit]))
            .then_line();
    }
    let is_respawn = prepared.options.respawn_of.is_some();
    let target: gt_tmux::Target = match place {
        Place::New | Place::Window => name.clone().into(),
        Place::Respawn(pane) => pane.into(),
    };
    batch = batch.then_all(process_commands(prepared, plan, &place));
    batch = batch
        .then(
            Command::new("set-option")
                .arg("-p")
                .target(target.clone())
                .args(["remain-on-exit", "on"]),
        )
        .then(
            Command::new("set-option")
                .arg("-F")
                .target(target.clone())
                .args([tag::PANE, "#{pane_id}"]),
        );
    // What an earlier life left behind; only a respawn counts the deaths on.
    for tag in [tag::AUTO_RESPAWN, tag::STATE_REASON, tag::HARNESS_SESSION] {
        batch = batch.then(set(tag, ""));
    }
    if !is_respawn {
        batch = batch.then(set(tag::DEATHS, ""));
    }
    for (tag, value) in &plan.tags {
        batch = batch.then(set(tag, value));
    }
    // A user's own `set-hook` may have wiped it since.
    batch = batch.then(look::respawn_hook());
    // Wishes are text from outside; as a tag's value they are only ever data.
    batch = batch.then(set(tag::START, &prepared.options.to_tag()));
    for command in look::options(
        town,
        name,
        prepared.identity,
        &prepared.role,
        prepared.options.theme.as_deref(),
    ) {
        batch = batch.then(command);
    }
    if prepared.role.start.auto_respawn && loses_deaths(town) {
        batch = batch.then(
            Command::new("run-shell")
                .arg("-b")
                .target(target.clone())
                .arg(AWAIT_DEATH),
        );
    }
    batch = batch.then(
        Command::new("display-message")
            .arg("-p")
            .target(target)
            .arg("#{pane_id} #{pane_pid} #{pane_tty}"),
    );
    if limit.is_some() {
        batch = batch
            .then_line()
            .then(Command::new("set-option").args(["-gF", "history-limit", "#{@gt_history}"]))
            .then(Command::new("set-option").args(["-gu", "@gt_history"]));
    }
    let output = town.server().run_private(batch).map_err(|error| {
        if error.kind() == ErrorKind::Duplicate {
            return Problem::conflict(format!("there is a container {name} already"))
                .hint("look with `gt agents --all`");
        }
        tmux_problem(&format!("cannot make the container {name}"), error)
    })?;
    parse_made(&output).ok_or_else(|| {
        Problem::failed(format!("tmux did not say where the container {name} is")).cause(output)
    })
}

const AWAIT_DEATH: &str = "#{q:@gt_bin} await-death #{pane_pid} >/dev/null 2>&1";

/// Whether this tmux may miss that a pane's process ended until another child of
/// its own ends: so it was measured on 3.3a, and not on 3.5a. There a small
/// process that ends with the agent makes it look.
fn loses_deaths(town: &Town) -> bool {
    const SURE_SINCE: (u16, u16) = (3, 5);
    cfg!(target_os = "linux")
        && town
            .tmux_version()
            .is_ok_and(|version| (version.major, version.minor) < SURE_SINCE)
}

/// The command that starts the process, with its environment before it.
fn process_commands(prepared: &Prepared<'_>, plan: &Plan, place: &Place) -> Vec<Command> {
    // tmux expands formats in the folder's name.
    let folder = format::escape(&prepared.work_dir.to_string_lossy());
    let name = &prepared.container;
    let argv = plan.argv.iter().cloned();
    let head = match place {
        Place::New => {
            let mut command = Command::new("new-session")
                .args(["-d", "-x", COLUMNS, "-y", ROWS, "-c", &folder])
                .args(["-s", name.as_str(), "-n", prepared.identity.role().word()]);
            for (variable, value) in &plan.env {
                command = command.arg("-e").arg(format!("{variable}={value}"));
            }
            return vec![command.arg("--").args(argv)];
        }
        Place::Respawn(pane) => Command::new("respawn-pane")
            .arg("-k")
            .target(*pane)
            .args(["-c", &folder])
            .arg("--")
            .args(argv),
        Place::Window => Command::new("new-window")
            .target(name.clone())
            .args(["-c", &folder, "-n", prepared.identity.role().word()])
            .arg("--")
            .args(argv),
    };
    // In a container that exists the session's table is what the process gets.
    let environment = plan.env.iter().map(|(variable, value)| {
        Command::new("set-environment").target(name.clone()).args([
            "--",
            variable.as_str(),
            value.as_str(),
        ])
    });
    environment.chain([head]).collect()
}

fn parse_made(output: &str) -> Option<Made> {
    let line = output.lines().rfind(|line| !line.trim().is_empty())?;
    let mut words = line.split(' ');
    Some(Made {
        pane: words.next()?.parse().ok()?,
        pid: words.next()?.parse().ok()?,
        tty: words.next()?.to_owned(),
    })
}

/// The last steps: the tags say that it runs, and the PID file which process it is.
fn finish(town: &Town, prepared: &Prepared<'_>, made: &Made) -> Result<()> {
    let name = &prepared.container;
    // A hook of the agent's may have spoken already: its word stays.
    let unless_hook = |option: &str, value: &str| {
        let format = format!("#{{?#{{==:#{{@gt_state_source}},start}},{value},#{{{option}}}}}");
        Command::new("set-option")
            .arg("-F")
            .target(name.clone())
            .args([option, &format])
    };
    let now = jiff::Timestamp::now().as_second().to_string();
    let mut batch = Batch::from(vec![
        unless_hook(tag::STATE, State::Running.word()),
        unless_hook(tag::STATE_SINCE, &now),
        // Last, because the others ask for it.
        unless_hook(tag::STATE_SOURCE, "process"),
    ]);
    if !prepared.role.start.remain_on_exit {
        batch.push(
            Command::new("set-option")
                .arg("-p")
                .target(made.pane)
                .args(["remain-on-exit", "off"]),
        );
    }
    batch.push(
        Command::new("display-message")
            .arg("-p")
            .target(made.pane)
            .arg("#{pane_dead}"),
    );
    let dead = town
        .server()
        .run(batch)
        .map_err(|error| tmux_problem(&format!("the container {name} was lost again"), error))?;
    if prepared.role.start.verify_survived && dead.trim() == "1" {
        return Err(await_ready::death(town, prepared, made));
    }
    Ok(())
}

/// Takes back a container that did not come up. Best effort: the problem that
/// led here is what the caller gets to see.
fn undo(town: &Town, prepared: &Prepared<'_>, session: SessionId) {
    let found = containers::find(town, prepared.container.as_str())
        .ok()
        .flatten();
    // Only what this very start has put there: the container may hold panes of the
    // user's, or have become somebody else's.
    if let Some(container) = found.filter(|container| container.life() == Some(session)) {
        stop::end_processes(
            town,
            std::slice::from_ref(&container),
            Duration::from_millis(500),
        );
        stop::remove_container(town, &container);
    }
    let _ = pidfile::remove(town, prepared.container.as_str());
}

/// Types the first prompt of a program that takes it in no other way.
fn type_prompt(town: &Town, prepared: &Prepared<'_>, made: &Made, prompt: &str) -> Result<()> {
    const PATIENCE: Duration = Duration::from_secs(10);
    let began = Instant::now();
    let mut typist = Typist::for_pane(town, made.pane, &made.tty, made.pid, &prepared.preset);
    let prompt = gt_core::nudge::clean(prompt);
    loop {
        match typist.submit(&prompt, Phase::Taken, false, |_| Ok(()))? {
            Submission::Submitted { .. } => return Ok(()),
            Submission::NotNow(reason, phase) => {
                if phase != Phase::Taken || began.elapsed() > PATIENCE {
                    return Err(Problem::failed(reason.words()));
                }
                typist.wait(Duration::from_millis(250));
            }
        }
    }
}

/// Whether a failed start is worth showing as somebody else's success.
pub fn lost_to_another(problem: &Problem) -> bool {
    problem.kind() == Kind::Conflict
}

//! The container of a start: what is there under its name, and how it is made.

use super::prepared::Prepared;
use super::restored::Restored;
use crate::containers::{self, Container, Owner, tmux_problem};
use crate::{Result, Town, look, processes, recording, save, stop, tmux_hooks};
use gt_core::health::{self, Health, Vitals};
use gt_core::problem::Kind;
use gt_core::record::{Outcome, Record};
use gt_core::startup::{Plan, tag};
use gt_core::state::State;
use gt_core::{Identity, Problem};
use gt_tmux::{Batch, Command, ErrorKind, PaneId, format};
use std::time::Duration;

/// The size of a container that nobody has attached to yet.
pub(crate) const COLUMNS: &str = "200";
pub(crate) const ROWS: &str = "50";

/// Where the agent's process will be put.
pub(super) enum Place {
    /// A new container.
    New,
    /// The pane of an agent that died.
    Respawn(PaneId),
    /// A new window, because the agent's pane is gone and the user's are not.
    Window,
}

pub(super) struct Existing {
    pub(super) place: Place,
    pub(super) keys_tag: String,
    /// The life whose place is taken.
    pub(super) previous: Option<Previous>,
    /// What still runs of it, where it has handed over.
    pub(super) leaving: Option<Container>,
}

/// A life before the one that is started.
pub(super) struct Previous {
    pub(super) id: String,
    pub(super) chain: String,
    pub(super) outcome: Outcome,
    pub(super) died_at: Option<i64>,
    pub(super) exit_code: Option<i32>,
    /// Its end is in the journal already.
    pub(super) is_ended: bool,
}

impl From<&Restored> for Previous {
    fn from(lost: &Restored) -> Self {
        Previous {
            id: lost.life.clone(),
            chain: lost.chain.clone(),
            outcome: Outcome::Crash,
            died_at: None,
            exit_code: None,
            is_ended: lost.is_ended,
        }
    }
}

impl Previous {
    fn of(container: &Container) -> Option<Self> {
        let row = container.pane();
        let id = container.life()?.to_string();
        let chain = Some(row.tag_chain.clone()).filter(|chain| !chain.is_empty());
        Some(Previous {
            chain: chain.unwrap_or_else(|| id.clone()),
            id,
            outcome: Outcome::Crash,
            died_at: row.died_at,
            exit_code: row.exit_status,
            is_ended: false,
        })
    }
}

/// Looks at what is there under that name: free, alive, somebody else's, or a zombie.
pub(super) fn existing(
    town: &Town,
    identity: &Identity,
    prepared: &Prepared<'_>,
) -> Result<Existing> {
    if let Some(before) = &prepared.options.takes_over {
        return taken_over(town, identity, prepared, &before.life);
    }
    let containers = containers::list(town)?;
    let keys_tag = keys_tag(containers.first());
    let name = prepared.container.as_str();
    let own = containers
        .iter()
        .find(|container| container.identity() == Some(identity));
    if let Some(own) = own {
        refuse_elsewhere(own, name, identity)?;
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
    let mut previous = None;
    if let Some(container) = containers.iter().find(|container| container.name() == name) {
        refuse_others(container, identity)?;
        if container.is_vacant() {
            return Ok(Existing {
                place: Place::Window,
                keys_tag,
                previous: None,
                leaving: None,
            });
        }
        if container.life().is_none() && !container.pane().dead {
            // Only a shell, in which its worktree was made ready, or still is.
            return match prepared.options.after_shell {
                true => Ok(Existing {
                    place: Place::Respawn(container.pane().pane),
                    keys_tag,
                    previous: None,
                    leaving: None,
                }),
                false => Err(Problem::new(
                    Kind::Running,
                    format!("{identity} has a shell in {name}, and no agent yet"),
                )
                .hint(format!(
                    "`gt task start {}` goes on from there",
                    identity.short_name()
                ))),
            };
        }
        if health(container) == Health::Healthy {
            return Err(Problem::new(
                Kind::Running,
                format!("{identity} is running already, in {name}"),
            )
            .hint(format!(
                "`gt attach {identity}` goes there, `gt stop {identity}` ends it"
            )));
        }
        stop::end_processes(town, std::slice::from_ref(container), Duration::ZERO);
        previous = Previous::of(container);
        // In the same container, so that attached clients and the user's own panes stay.
        place = if container.lost_agent_pane() {
            Place::Window
        } else {
            Place::Respawn(container.pane().pane)
        };
    }
    Ok(Existing {
        place,
        keys_tag,
        previous,
        leaving: None,
    })
}

/// The place of a life that has handed over. It may still run: it is replaced in its
/// pane, which is never seen dead, so that nobody takes it for a crash. Only its own
/// container is looked at, however many others there are.
fn taken_over(
    town: &Town,
    identity: &Identity,
    prepared: &Prepared<'_>,
    life: &str,
) -> Result<Existing> {
    let own = containers::of_agent(town, identity)?;
    let own = own.filter(|container| container.pane().tag_session == life);
    let Some(container) = own else {
        return Err(Problem::conflict(format!(
            "{identity} is not in the life any more that handed over"
        )));
    };
    refuse_elsewhere(&container, prepared.container.as_str(), identity)?;
    let pane = container.pane();
    let died = pane.dead || container.lost_agent_pane();
    let previous = Previous::of(&container).map(|before| Previous {
        outcome: Outcome::Handoff,
        died_at: None,
        exit_code: None,
        ..before
    });
    Ok(Existing {
        place: match container.lost_agent_pane() {
            true => Place::Window,
            false => Place::Respawn(pane.pane),
        },
        keys_tag: keys_tag(Some(&container)),
        previous,
        leaving: (!died).then_some(container),
    })
}

/// Which of our keys the server has bound, as any of its panes says.
fn keys_tag(container: Option<&Container>) -> String {
    container.map_or_else(String::new, |container| {
        container.pane().keys_version.clone()
    })
}

/// Refuses an agent that lives under another name than it would get now.
fn refuse_elsewhere(own: &Container, name: &str, identity: &Identity) -> Result<()> {
    if own.name() == name {
        return Ok(());
    }
    Err(Problem::conflict(format!(
        "{identity} lives in the container {} already",
        own.name()
    ))
    .hint(format!(
        "`gt stop {identity}` ends it, whatever the container is called"
    )))
}

pub(crate) fn refuse_others(container: &Container, identity: &Identity) -> Result<()> {
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
pub(super) struct Made {
    pub(super) pane: PaneId,
    pub(super) pid: u32,
    pub(super) server_pid: u32,
    pub(super) tty: String,
}

impl Made {
    /// What it adds to the line of a life.
    pub(super) fn add_to(&self, line: Record) -> Record {
        Record {
            tmux_pid: Some(self.server_pid),
            pane: Some(self.pane.to_string()),
            pid: Some(self.pid),
            ..line
        }
    }
}

/// Makes the container, or fills the one whose agent died.
pub(super) fn make(
    town: &Town,
    prepared: &Prepared<'_>,
    plan: &Plan,
    place: Place,
) -> Result<Made> {
    let name = &prepared.container;
    let set = |option: &str, value: &str| {
        Command::new("set-option")
            .target(name.clone())
            .arg(option)
            .arg(value)
    };
    let mut batch = Batch::new();
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
    if prepared.options.takes_over.is_none() {
        batch = batch.then_all(tmux_hooks::all(town));
    }
    // Wishes are text from outside; as a tag's value they are only ever data.
    batch = batch.then(set(tag::START, &prepared.start_tag()));
    for command in look::options(
        town,
        name,
        prepared.identity,
        &prepared.role,
        prepared.options.theme.as_deref(),
    ) {
        batch = batch.then(command);
    }
    // tmux has not read a byte of it before this call is done.
    let before = match place {
        Place::Respawn(pane) => Some(pane),
        Place::New | Place::Window => None,
    };
    batch = batch.then_all(recording::commands(&prepared.role.record, &target, before));
    if prepared.role.start.auto_respawn && loses_deaths(town) {
        batch = batch.then(
            Command::new("run-shell")
                .args(["-b", "-d", AWAITED_AFTER_SECONDS])
                .target(target.clone())
                .arg(AWAIT_DEATH),
        );
    }
    if !plan.is_awaited {
        // Nobody comes again to say that it runs.
        batch = batch.then_all(save::request_command(town));
    }
    batch = batch.then(
        Command::new("display-message")
            .arg("-p")
            .target(target)
            .arg("#{pane_id} #{pane_pid} #{pid} #{pane_tty}"),
    );
    let batch = with_history_limit(town, batch);
    // tmux gives a new process the PATH of whoever asks for it, whatever the tables say.
    let server = match plan.env.get("PATH") {
        Some(path) => town.server().clone().with_path(path),
        None => town.server().clone(),
    };
    let output = server.run_private(batch).map_err(|error| {
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

/// Commands that make a pane, with the town's limit for what it remembers.
pub(crate) fn with_history_limit(town: &Town, making: Batch) -> Batch {
    let Some(limit) = town.settings().tmux.history_limit else {
        return making;
    };
    // Only a limit that stands before the pane is made reaches it; the user's own is put
    // back right after.
    let before = Batch::new()
        .then(Command::new("set-option").args(["-gF", "@gt_history", "#{history-limit}"]))
        .then(Command::new("set-option").args(["-g", "history-limit", &limit.to_string()]))
        .then_line();
    let all = making.commands().cloned().fold(before, Batch::then);
    all.then_line()
        .then(Command::new("set-option").args(["-gF", "history-limit", "#{@gt_history}"]))
        .then(Command::new("set-option").args(["-gu", "@gt_history"]))
}

/// Not at once: one more process in the very moment in which the agent's own begins would
/// hold up both. tmux itself waits, whatever becomes of us.
const AWAITED_AFTER_SECONDS: &str = "1";

pub(crate) const AWAIT_DEATH: &str = "#{q:@gt_bin} await-death #{pane_pid} >/dev/null 2>&1";

/// Whether this tmux may miss that a pane's process ended until another child of
/// its own ends: so it was measured on 3.3a, and not on 3.5a. There a small
/// process that ends with the agent makes it look.
pub(crate) fn loses_deaths(town: &Town) -> bool {
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
            let size = prepared.options.restored.as_ref().and_then(Restored::size);
            let (columns, rows) = size.unwrap_or_else(|| (COLUMNS.to_owned(), ROWS.to_owned()));
            let mut command = Command::new("new-session")
                .args(["-d", "-x", &columns, "-y", &rows, "-c", &folder])
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
    // A life that was handed over to does not begin with the screens of another.
    let cleared = match place {
        Place::Respawn(pane) if prepared.options.takes_over.is_some() => {
            Some(Command::new("clear-history").target(*pane))
        }
        _ => None,
    };
    environment.chain(cleared).chain([head]).collect()
}

pub(super) fn parse_made(output: &str) -> Option<Made> {
    let line = output.lines().rfind(|line| !line.trim().is_empty())?;
    let mut words = line.split(' ');
    Some(Made {
        pane: words.next()?.parse().ok()?,
        pid: words.next()?.parse().ok()?,
        server_pid: words.next()?.parse().ok()?,
        tty: words.next()?.to_owned(),
    })
}

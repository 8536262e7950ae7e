//! Tasks: one work item, with a worktree, a container and an agent of its own.
//!
//! A start goes through the steps of the board: what is there already is used; the
//! worktree; the files that git does not have; the item onto the hook; the container, and
//! in its shell the project's init commands; the agent program in the shell's place, by
//! way of [`crate::start`]; the windows beside it. Each step finds what is done already, so
//! that a start that was killed is finished by the next one. What a start has made is taken
//! back when a later step fails; only what init commands have left stays to be looked at.

mod branch;
mod cleanup;
mod copy;
mod diff;
mod elsewhere;
mod hand_in;
mod init;
mod order;
mod pause;
mod place;
mod pull_request;
mod resolver;
mod resume;
mod shell;
mod site;
pub mod step;
mod update;
mod view;
mod wip;

pub use branch::{BaseAt, base_of, branch_facts, branch_of};
pub use cleanup::{
    Action, Cleaned, CleanupOptions, CleanupPlan, CleanupStep,
    FAULT_POINTS as CLEANUP_FAULT_POINTS, cleanup, cleanup_plan,
};
pub use diff::{ChangedFile, Diff, diff};
pub(crate) use elsewhere::Elsewhere;
pub use hand_in::{HandedIn, hand_in, merge_plan};
pub use init::Ran;
pub(crate) use pause::prompted;
pub use pause::{FAULT_POINTS as PAUSE_FAULT_POINTS, Paused, pause};
pub use pull_request::{PullRequest, PullRequestOptions, pull_request};
pub use resume::{FAULT_POINTS as RESUME_FAULT_POINTS, ResumeOptions, Resumed, resume};
pub use update::{FAULT_POINTS as UPDATE_FAULT_POINTS, UpdateResult, Updated, abort_merge, update};
pub use view::{Task, Window, list, show};
pub use wip::Undone;
pub(crate) use wip::{among as pause_among, is_among as pause_is_among};

use crate::containers::{self, Container, Owner, tmux_problem};
use crate::polecat::claim;
use crate::start::StartOptions;
use crate::work::Work;
use crate::{Result, Town, events, hook, project, rig, roles, sling, start};
use gt_core::event::Event;
use gt_core::project::Project;
use gt_core::session::SessionId;
use gt_core::startup::Conversation;
use gt_core::work::{Item, Status, WorkId};
use gt_core::{Identity, Problem, Role};
use gt_tmux::{Command, SessionName};
use order::Order;
use std::path::{Path, PathBuf};

/// Where a test can kill us.
pub const FAULT_POINTS: &[&str] = &[
    "task.placed",
    "task.copied",
    "task.hooked",
    "task.container",
    "task.command",
    "task.initialized",
    "task.started",
    "task.windows",
];

/// Whether this is the agent of a task whose item is closed.
pub(crate) fn is_finished(town: &Town, agent: &Identity) -> bool {
    if agent.role() != Role::Task {
        return false;
    }
    let id: Option<WorkId> = agent.short_name().parse().ok();
    let item = id.and_then(|id| Work::of(town).get(&id).ok());
    item.is_some_and(|item| item.status == Status::Closed)
}

/// Tags of a task's container, beside those of every agent.
pub(crate) mod tags {
    /// The id under which its init commands are done.
    pub(crate) const INIT: &str = "@gt_init";
    /// They are done: so the board's own scripts ask, and so do we.
    pub(crate) const INIT_DONE: &str = "@az_init_done";
    pub(crate) const OWN_INIT_DONE: &str = "@gt_init_done";
    /// The names of the background tasks that were begun.
    pub(crate) const BACKGROUND: &str = "@gt_background";
    /// The commit whose merge was given to an agent of its own.
    pub(crate) const MERGE: &str = "@gt_merge";
    /// The commit in which a pause has kept what was not committed.
    pub(crate) const WIP: &str = "@gt_wip";
    /// While it is paused: the fingerprint of the message whose turn was stopped.
    pub(crate) const STOPPED: &str = "@gt_stopped";
    /// The fingerprint of the message that has told it again what it was told first.
    pub(crate) const REMINDED: &str = "@gt_reminded";
    /// While somebody resumes it: who.
    pub(crate) const RESUMER: &str = "@gt_resumer";
    /// While it is paused: by what the line is known into which the program put it back.
    pub(crate) const PUT_BACK: &str = "@gt_put_back";
}

#[derive(Clone, Debug, Default)]
pub struct TaskOptions {
    /// Tell the agent to work on the item.
    pub work: bool,
    /// The program does not ask for permission.
    pub yolo: bool,
    /// The program asks for permission, whatever its role says.
    pub ask_permissions: bool,
    /// What to say to it first.
    pub prompt: Option<String>,
    /// Another harness than the project's or the role's.
    pub harness: Option<String>,
    /// The account under which the agent program runs.
    pub account: Option<String>,
    /// Go on when an init command fails.
    pub continue_on_failure: bool,
    /// Also if something that it waits for is not done.
    pub force: bool,
    /// Only the container and its init commands, and no agent.
    pub no_agent: bool,
    /// As a life before was started, and in its conversation.
    pub as_before: Option<StartOptions>,
    /// The command that asks for it, where that is not `gt task start`.
    pub asked_by: Option<String>,
}

impl TaskOptions {
    /// The command that asks for the same again.
    fn command(&self, id: &WorkId) -> String {
        if let Some(asked_by) = &self.asked_by {
            return asked_by.clone();
        }
        let mut command = format!("gt task start {id}");
        for (is_wished, option) in [
            (self.work, " --work"),
            (self.yolo, " --yolo"),
            (self.ask_permissions, " --ask-permissions"),
            (self.force, " --force"),
            (self.no_agent, " --no-agent"),
        ] {
            command.push_str(if is_wished { option } else { "" });
        }
        for (option, value) in [
            (
                "--prompt",
                self.prompt.as_deref().map(gt_core::shell::quote),
            ),
            ("--harness", self.harness.clone()),
            ("--account", self.account.clone()),
        ] {
            command.extend(value.map(|value| format!(" {option} {value}")));
        }
        command
    }
}

/// A task that is there now.
#[derive(Clone, Debug)]
pub struct Started {
    pub id: WorkId,
    pub agent: Identity,
    pub container: String,
    pub branch: Option<String>,
    pub work_dir: PathBuf,
    /// The life that works on it; `None` while there is only a shell.
    pub session: Option<SessionId>,
    pub harness: Option<String>,
    /// Its agent was started by this call.
    pub started: bool,
    /// Its worktree was there before.
    pub reused: bool,
    /// What was copied into the worktree.
    pub copied: Vec<String>,
    /// The init commands that this call has run.
    pub init: Vec<Ran>,
    /// The windows that this call has opened.
    pub windows: Vec<String>,
    pub warnings: Vec<String>,
}

/// Starts a task, or finds that it runs. Of an init command that fails `go_on` is asked.
pub fn start(
    town: &Town,
    id: &WorkId,
    options: &TaskOptions,
    go_on: &mut dyn FnMut(&Ran) -> bool,
) -> Result<Started> {
    let item = Work::of(town).get(id)?;
    let (agent, rig) = agent_of(town, id)?;
    let name = container_name(town, &agent)?;
    let _claim = match claim::try_agent(town, &agent)? {
        Some(claim) => claim,
        // Whoever is at it has made the container: there is something to look at.
        None => match own_container(town, &agent, &name)? {
            Some(container) => return present(town, &item, &agent, &container),
            None => claim::agent(town, &agent)?,
        },
    };
    town.around().cancel.check()?;
    rig::check_not_parked(town, &rig)?;
    let order = Order {
        town,
        item: &item,
        agent: &agent,
        rig: &rig,
        name: &name,
        options,
    };
    order.start(own_container(town, &agent, &name)?, go_on)
}

/// The agent of an item, and its rig.
pub fn agent_of(town: &Town, id: &WorkId) -> Result<(Identity, String)> {
    let agent = Identity::task(id.as_str(), town.registry());
    agent.check_new(town.registry())?;
    let rig = sling::rig_of(town, id).map_err(|_| {
        Problem::usage(format!(
            "{id} belongs to no rig, so there is no worktree for it"
        ))
        .hint("`gt sling` gives it to an agent that has a folder")
    })?;
    Ok((agent, rig))
}

/// The folder of a task's worktree, if it is there.
pub fn worktree(town: &Town, agent: &Identity) -> Option<PathBuf> {
    let rig = agent.rig().filter(|_| agent.role() == Role::Task)?;
    let project = project::of_rig(town, rig).ok();
    let by_template = project.and_then(|project| worktree_by(town, agent, &project));
    by_template.or_else(|| Elsewhere::of_rig(town, rig).worktree(town, agent))
}

/// The task whose worktree a folder is in, where the project's own template says.
pub(crate) fn by_folder(town: &Town, dir: &Path) -> Option<Identity> {
    let dir = dir.canonicalize().ok()?;
    for (rig, entry) in &town.registry().rigs {
        let Ok(project) = project::of_rig(town, rig) else {
            continue;
        };
        let start = format!("{}-", entry.beads.prefix);
        for folder in dir.ancestors() {
            let name = folder
                .file_name()
                .and_then(|name| name.to_str())
                .unwrap_or_default();
            let ids = name.match_indices(&start).map(|(place, _)| &name[place..]);
            let is_its = |id: &&str| {
                let path = project::worktree(town, rig, id, &project).ok();
                path.and_then(|path| path.canonicalize().ok()).as_deref() == Some(folder)
            };
            if let Some(id) = ids.filter(|id| id.parse::<WorkId>().is_ok()).find(is_its) {
                return Some(Identity::task(id, town.registry()));
            }
        }
    }
    None
}

/// The same, if it is where the project says.
pub(crate) fn worktree_by(town: &Town, agent: &Identity, project: &Project) -> Option<PathBuf> {
    let rig = agent.rig()?;
    let dir = project::worktree(town, rig, agent.short_name(), project).ok()?;
    place::is_of_rig(town, rig, &dir).then_some(dir)
}

fn container_name(town: &Town, agent: &Identity) -> Result<SessionName> {
    let name = roles::container_name(town, agent)?;
    SessionName::try_from(name.as_str()).map_err(|error| Problem::usage(error.to_string()))
}

/// The agent's container. One of that name that is somebody else's is a conflict.
fn own_container(town: &Town, agent: &Identity, name: &SessionName) -> Result<Option<Container>> {
    if let Some(own) = containers::of_agent(town, agent)? {
        return Ok(Some(own));
    }
    match containers::find(town, name.as_str())? {
        Some(other) => start::refuse_others(&other, agent).map(|()| None),
        None => Ok(None),
    }
}

/// What there is, of a task that this call did not start.
fn present(town: &Town, item: &Item, agent: &Identity, container: &Container) -> Result<Started> {
    let pane = container.pane();
    let work_dir = worktree(town, agent).unwrap_or_else(|| PathBuf::from(&pane.path));
    Ok(Started {
        id: item.id.clone(),
        agent: agent.clone(),
        container: container.name().to_owned(),
        branch: crate::workspace::current_branch(town, &work_dir),
        work_dir,
        session: container.life(),
        harness: Some(pane.tag_harness.clone()).filter(|name| !name.is_empty()),
        started: false,
        reused: true,
        copied: Vec::new(),
        init: Vec::new(),
        windows: Vec::new(),
        warnings: Vec::new(),
    })
}

/// Whether an agent runs in its container: one that is dead, or a shell, is none.
fn is_alive(container: &Container) -> bool {
    container.life().is_some() && !container.pane().dead && !container.lost_agent_pane()
}

/// Whether a task has a container in which nothing is left to be done before others can
/// work there: its agent has been started, or its init commands are done.
pub(crate) fn is_initialized(town: &Town, agent: &Identity) -> Result<bool> {
    match containers::of_agent(town, agent)? {
        Some(container) if container.life().is_none() => {
            Ok(tag_of(town, &container, tags::INIT_DONE)? == "1")
        }
        container => Ok(container.is_some()),
    }
}

/// An event about a task, done by whoever runs this command.
fn event_of(town: &Town, kind: &str, id: &WorkId, agent: &Identity) -> Event {
    events::by_command(town, kind)
        .with("target", agent.address())
        .with("bead", id.to_string())
}

/// The value of a container's tag.
fn tag_of(town: &Town, container: &Container, option: &str) -> Result<String> {
    let ask = Command::new("display-message")
        .arg("-p")
        .target(container.id())
        .arg(format!("#{{{option}}}"));
    let value = town.server().run(ask);
    let value = value.map_err(|error| tmux_problem("cannot read the container", error))?;
    Ok(value.trim_end().to_owned())
}

/// The wishes for the agent itself.
fn start_options(
    options: &TaskOptions,
    item: &Item,
    harness: Option<&str>,
    dir: PathBuf,
) -> StartOptions {
    let (id, title) = (&item.id, &item.title);
    let work = options.work.then(|| {
        format!(
            "Work on {id}: {title}\n\nIt is on your hook: `gt hook` shows all of it. Commit as \
             you go; when it is finished and tested, run `gt done`."
        )
    });
    let words: Vec<String> = work.into_iter().chain(options.prompt.clone()).collect();
    let before = options.as_before.clone().unwrap_or_default();
    let topic = match before.conversation {
        Conversation::New => "assigned",
        _ => "resumed",
    };
    StartOptions {
        harness: options
            .harness
            .clone()
            .or(before.harness.clone())
            .or(harness.map(str::to_owned)),
        account: options.account.clone().or(before.account.clone()),
        work_dir: Some(dir),
        topic: Some(topic.to_owned()),
        prompt: Some(!words.is_empty()),
        instructions: (!words.is_empty()).then(|| words.join("\n\n")),
        skip_permissions: match (options.yolo, options.ask_permissions) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => before.skip_permissions,
        },
        after_shell: true,
        ..before
    }
}

/// Takes the item off the hook of the task's agent, if it is there.
fn unhook(town: &Town, agent: &Identity, id: &WorkId) -> Result<()> {
    if Work::of(town).holder(id)? == Some(agent.address()) {
        hook::take_off_item(town, id)?;
    }
    Ok(())
}

/// Whether a container of that name is a task's, whoever runs in it.
pub(crate) fn is_tasks(container: &Container) -> bool {
    matches!(container.owner(), Owner::Agent(agent) if agent.role() == Role::Task)
}

//! Tasks: one work item, with its own worktree, container and agent.
//!
//! A start runs these steps: reuse what exists; create the worktree; copy the files that git does
//! not track; put the item on the hook; create the container and run the project's init commands in
//! its shell; replace the shell by the agent program, through [`crate::lifecycle::start`]; open the windows
//! beside it. Each step is idempotent, so that the next start completes a start that was killed. If
//! a step fails, the changes of this start are rolled back; only the shell of failed init commands
//! remains for inspection.

mod branch;
mod cleanup;
mod copy;
mod diff;
mod hand_in;
mod init;
mod pause;
mod pull_request;
mod resolver;
mod resume;
mod shell;
mod site;
mod start_steps;
mod update;
mod view;
mod wip;
mod worktree;

pub use branch::{BaseAt, base_of, branch_facts, branch_of};
pub use cleanup::{
    Cleaned, CleanupAction, CleanupOptions, CleanupPlan, CleanupStep,
    FAULT_POINTS as CLEANUP_FAULT_POINTS, cleanup, cleanup_plan,
};
pub use diff::{ChangedFile, Diff, agent_diff, diff};
pub use hand_in::{HandedIn, hand_in, merge_plan};
pub use init::InitResult;
pub use pause::{FAULT_POINTS as PAUSE_FAULT_POINTS, Paused, pause, undo_pause_commit};
pub use pull_request::{PullRequest, PullRequestOptions, pull_request};
pub use resume::{FAULT_POINTS as RESUME_FAULT_POINTS, ResumeOptions, Resumed, resume};
pub use update::{FAULT_POINTS as UPDATE_FAULT_POINTS, UpdateResult, Updated, abort_merge, update};
pub use view::{Task, TaskWindow, list, show};
pub use wip::Undone;

use crate::base::estop;
use crate::catalog::roles;
use crate::lifecycle::start;
use crate::lifecycle::start::{StartError, StartOptions};
use crate::records::events;
use crate::records::items::Work;
use crate::repo::{project, rig, workspace};
use crate::terminal::containers::{self, Container, Owner, tmux_problem};
use crate::work::hook;
use crate::workflow::polecat::claim;
use crate::workflow::sling;
use crate::{Result, Town};
use gt_core::event::Event;
use gt_core::sandbox::SandboxLevel;
use gt_core::session::SessionId;
use gt_core::startup::Conversation;
pub(crate) use gt_core::startup::task_tag as tags;
use gt_core::work::{Item, WorkId};
use gt_core::{Identity, Problem, Role};
use gt_tmux::{Command, SessionName};
use start_steps::TaskStart;
use std::path::PathBuf;

/// Fault points at which a test can kill the process.
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

#[derive(Clone, Debug, Default)]
pub struct TaskOptions {
    /// Tell the agent to work on the item.
    pub work: bool,
    /// The program does not ask for permission.
    pub yolo: bool,
    /// The program asks for permission, regardless of its role's setting.
    pub ask_permissions: bool,
    /// Additional first prompt.
    pub prompt: Option<String>,
    /// Harness to use instead of the project's or the role's.
    pub harness: Option<String>,
    /// Model to use instead of the project's, the role's or the harness's.
    pub model: Option<String>,
    /// The account under which the agent program runs.
    pub account: Option<String>,
    /// Sandbox to use instead of the role's or the town's.
    pub sandbox: Option<SandboxLevel>,
    /// Continue when an init command fails.
    pub continue_on_failure: bool,
    /// Start even if the item is blocked.
    pub force: bool,
    /// Create only the container and run the init commands, without an agent.
    pub no_agent: bool,
    /// Options of an earlier session, with the conversation to continue.
    pub as_before: Option<StartOptions>,
    /// Command for hints, if it is not `gt task start`.
    pub asked_by: Option<String>,
}

impl TaskOptions {
    /// Returns the command line that repeats this request.
    fn command(&self, id: &WorkId) -> String {
        if let Some(asked_by) = &self.asked_by {
            return asked_by.clone();
        }
        let mut command = format!("gt task start {id}");
        for (is_set, option) in [
            (self.work, " --work"),
            (self.yolo, " --yolo"),
            (self.ask_permissions, " --ask-permissions"),
            (self.force, " --force"),
            (self.no_agent, " --no-agent"),
        ] {
            command.push_str(if is_set { option } else { "" });
        }
        for (option, value) in [
            (
                "--prompt",
                self.prompt.as_deref().map(gt_core::shell::quote),
            ),
            ("--harness", self.harness.clone()),
            ("--model", self.model.as_deref().map(gt_core::shell::quote)),
            ("--account", self.account.clone()),
            ("--sandbox", self.sandbox.map(|level| level.to_string())),
        ] {
            command.extend(value.map(|value| format!(" {option} {value}")));
        }
        command
    }
}

/// Result of [`start()`].
#[derive(Clone, Debug)]
pub struct StartedTask {
    pub id: WorkId,
    pub agent: Identity,
    pub container: String,
    pub branch: Option<String>,
    pub work_dir: PathBuf,
    /// Session that works on the item; `None` while there is only a shell.
    pub session: Option<SessionId>,
    pub harness: Option<String>,
    /// This call started the agent.
    pub started: bool,
    /// The worktree existed before.
    pub reused: bool,
    /// Paths that were copied into the worktree.
    pub copied: Vec<String>,
    /// Init commands that this call has run.
    pub init: Vec<InitResult>,
    /// Windows that this call has opened.
    pub windows: Vec<String>,
    pub warnings: Vec<String>,
}

/// Starts a task, or returns the running one. After a failed init command, `continue_after` decides whether
/// to continue.
pub fn start(
    town: &Town,
    id: &WorkId,
    options: &TaskOptions,
    continue_after: &mut dyn FnMut(&InitResult) -> bool,
) -> Result<StartedTask, StartError> {
    let item = Work::of(town).get(id)?;
    let (agent, rig) = agent_of(town, id)?;
    let name = container_name(town, &agent)?;
    let _claim = match claim::try_agent(town, &agent)? {
        Some(claim) => claim,
        // Another process is starting it and has created the container, so there is something to
        // show.
        None => match own_container(town, &agent, &name)? {
            Some(container) => return Ok(present(town, &item, &agent, &container)?),
            None => claim::agent(town, &agent)?,
        },
    };
    town.around().cancel.check()?;
    rig::check_not_parked(town, &rig)?;
    estop::check(town, Some(&rig))?;
    let task = TaskStart {
        town,
        item: &item,
        agent: &agent,
        rig: &rig,
        name: &name,
        options,
    };
    task.start(own_container(town, &agent, &name)?, continue_after)
}

/// Returns the agent of an item, and its rig.
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

fn container_name(town: &Town, agent: &Identity) -> Result<SessionName> {
    let name = roles::container_name(town, agent)?;
    SessionName::try_from(name.as_str()).map_err(|error| Problem::usage(error.to_string()))
}

/// Returns the agent's container. Fails if another owner has a container of that name.
fn own_container(town: &Town, agent: &Identity, name: &SessionName) -> Result<Option<Container>> {
    if let Some(own) = containers::of_agent(town, agent)? {
        return Ok(Some(own));
    }
    match containers::find(town, name.as_str())? {
        Some(other) => {
            start::refuse_others(&other, agent)?;
            Ok(None)
        }
        None => Ok(None),
    }
}

/// Returns the result for a task that this call did not start.
fn present(
    town: &Town,
    item: &Item,
    agent: &Identity,
    container: &Container,
) -> Result<StartedTask> {
    let pane = container.pane();
    let work_dir =
        workspace::task_worktree(town, agent).unwrap_or_else(|| PathBuf::from(pane.folder()));
    Ok(StartedTask {
        id: item.id.clone(),
        agent: agent.clone(),
        container: container.name().to_owned(),
        branch: workspace::current_branch(town, &work_dir),
        work_dir,
        session: container.session_id(),
        harness: Some(pane.tag_harness.clone()).filter(|name| !name.is_empty()),
        started: false,
        reused: true,
        copied: Vec::new(),
        init: Vec::new(),
        windows: Vec::new(),
        warnings: Vec::new(),
    })
}

/// Returns whether an agent runs in the container. A dead agent or a shell does not count.
fn is_alive(container: &Container) -> bool {
    container.session_id().is_some() && !container.pane().dead && !container.lost_agent_pane()
}

/// Returns whether the task's container is ready for other work: its agent has been started, or its
/// init commands are done.
pub(crate) fn is_initialized(town: &Town, agent: &Identity) -> Result<bool> {
    match containers::of_agent(town, agent)? {
        Some(container) if container.session_id().is_none() => {
            Ok(tag_of(town, &container, tags::INIT_DONE)? == "1")
        }
        container => Ok(container.is_some()),
    }
}

/// Ensures that a task has a container, for programs beside its agent. A task without one gets a
/// shell instead of an agent. A shell whose init commands failed runs them again. `asked_by` is the
/// command for hints.
pub fn ensure_container(
    town: &Town,
    agent: &Identity,
    continue_on_failure: bool,
    asked_by: String,
) -> Result<()> {
    if agent.role() != Role::Task || is_initialized(town, agent)? {
        return Ok(());
    }
    let only_a_shell = TaskOptions {
        no_agent: true,
        continue_on_failure,
        asked_by: Some(asked_by),
        ..TaskOptions::default()
    };
    start(
        town,
        &agent.short_name().parse()?,
        &only_a_shell,
        &mut |_| false,
    )?;
    Ok(())
}

/// Returns an event about a task, caused by the caller of this command.
fn event_of(town: &Town, kind: &str, id: &WorkId, agent: &Identity) -> Event {
    events::by_command(town, kind)
        .with("target", agent.address())
        .with("bead", id.to_string())
}

/// Returns the value of a container's tag.
fn tag_of(town: &Town, container: &Container, option: &str) -> Result<String> {
    let ask = Command::new("display-message")
        .arg("-p")
        .target(container.id())
        .arg(format!("#{{{option}}}"));
    let value = town.server().run(ask);
    let value = value.map_err(|error| tmux_problem("cannot read the container", error))?;
    Ok(value.trim_end().to_owned())
}

/// Returns the start options of the task's agent.
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
        model: options.model.clone().or(before.model.clone()),
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
        sandbox: options.sandbox.or(before.sandbox),
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

/// Returns whether the container belongs to a task, whatever runs in it.
pub(crate) fn is_task_container(container: &Container) -> bool {
    matches!(container.owner(), Owner::Agent(agent) if agent.role() == Role::Task)
}

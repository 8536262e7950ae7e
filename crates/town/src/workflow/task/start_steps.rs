//! The steps of a task's start, and their rollback.

use super::{
    InitResult, StartedTask, TaskOptions, copy, event_of, init, is_alive, own_container, present,
    shell, start_options, tag_of, tags, unhook, worktree,
};
use crate::base::{fault, processes, wake};
use crate::lifecycle::start::{self, StartError};
use crate::lifecycle::stop;
use crate::records::events::Events;
use crate::records::items::Work;
use crate::repo::workspace::WorktreesByBranch;
use crate::repo::workspace::{self, Placed};
use crate::repo::{approval, project};
use crate::terminal::background_tasks;
use crate::terminal::containers::{self, Container, tmux_problem};
use crate::terminal::windows::{self, AfterEnd, NewWindow, WindowSandbox};
use crate::work::hook;
use crate::workflow::sling;
use crate::{Result, Town};
use gt_core::mail::PERSON;
use gt_core::project::{CheckedList, Label, Project};
use gt_core::sandbox::SandboxLevel;
use gt_core::startup::{Conversation, tag};
use gt_core::state::State;
use gt_core::work::Item;
use gt_core::{Identity, Problem};
use gt_tmux::{Batch, Command, SessionName};
use std::path::{Path, PathBuf};

pub(super) struct TaskStart<'a> {
    pub(super) town: &'a Town,
    pub(super) item: &'a Item,
    pub(super) agent: &'a Identity,
    pub(super) rig: &'a str,
    pub(super) name: &'a SessionName,
    pub(super) options: &'a TaskOptions,
}

/// Changes made so far, to be rolled back on failure.
#[derive(Default)]
struct TaskChanges {
    placed: Option<Placed>,
    hooked: bool,
}

impl TaskStart<'_> {
    pub(super) fn start(
        &self,
        existing: Option<Container>,
        continue_after: &mut dyn FnMut(&InitResult) -> bool,
    ) -> Result<StartedTask, StartError> {
        let town = self.town;
        let is_done = |container: &&Container| {
            is_alive(container) || (self.options.no_agent && container.session_id().is_some())
        };
        if let Some(container) = existing.as_ref().filter(is_done) {
            return Ok(self.complete(container)?);
        }
        let at_base = project::of_rig(town, self.rig)?;
        // Checked again for the worktree; here nothing is created yet.
        approval::check(town, self.rig, &at_base.commands())?;
        let dir = self.folder(&at_base)?;
        let holder = Work::of(town).holder(&self.item.id)?;
        // Without an agent the item is not assigned.
        if !self.options.no_agent && holder != Some(self.agent.address()) {
            sling::check(town, self.item, self.options.force)?;
            sling::check_free(&self.item.id, holder.as_deref(), self.agent)?;
        }
        let harness = at_base.harness.name.as_ref().map(Label::as_str);
        if !self.options.no_agent {
            // Check harness, program and role before anything is created.
            let options = start_options(self.options, self.item, harness, dir.clone());
            start::check(town, self.agent, &options)?;
        }
        let mut made = TaskChanges::default();
        let mut begun = None;
        let result = self.make(
            &dir,
            &at_base,
            &mut made,
            existing,
            &mut begun,
            continue_after,
        );
        match result {
            Ok(started) => Ok(started),
            // The shell remains, so that a person can see the failure.
            Err(error) if begun.is_some() => Err(error),
            Err(error) => Err(error.map(|problem| self.take_back(&dir, &made, problem))),
        }
    }

    /// Returns whether the last agent of the task ran in a sandbox.
    fn was_sandboxed(&self) -> Result<bool> {
        let (level, _) = windows::last_sandbox(self.town, self.agent)?;
        Ok(SandboxLevel::from_word(&level).is_some_and(|level| level != SandboxLevel::None))
    }

    /// Returns the folder of the worktree: the existing one, or the place of the project's
    /// template.
    fn folder(&self, project: &Project) -> Result<PathBuf> {
        let (town, rig) = (self.town, self.rig);
        let by_template = project::worktree(town, rig, self.item.id.as_str(), project);
        if matches!(&by_template, Ok(dir) if dir.join(".git").exists()) {
            return by_template;
        }
        let there = WorktreesByBranch::of_rig(town, rig).worktree(town, self.agent);
        there.map_or(by_template, Ok)
    }

    /// Completes the steps that a killed start has left undone beside a running agent. Failures are
    /// only warnings, because the agent already runs.
    fn complete(&self, container: &Container) -> Result<StartedTask> {
        let mut here = present(self.town, self.item, self.agent, container)?;
        let opened = project::of_worktree(&here.work_dir).and_then(|project| {
            approval::check(self.town, self.rig, &project.commands())?;
            self.mark_done(container)?;
            self.open_windows(container, &project, &here.work_dir)
        });
        match opened {
            Ok(windows) => here.windows = windows,
            Err(problem) => here.warnings.push(problem.to_string()),
        }
        Ok(here)
    }

    /// Runs all steps. `begun` is set while there is a shell whose work must not be lost.
    fn make(
        &self,
        dir: &Path,
        at_base: &Project,
        made: &mut TaskChanges,
        existing: Option<Container>,
        begun: &mut Option<()>,
        continue_after: &mut dyn FnMut(&InitResult) -> bool,
    ) -> Result<StartedTask, StartError> {
        let town = self.town;
        let mut warnings = Vec::new();
        let place = worktree::place(town, self.agent, dir)?;
        let reused = place.placed.as_ref().is_none_or(|it| !it.made_folder);
        warnings.extend(place.warning);
        warnings.extend(place.placed.iter().flat_map(|it| it.warnings.clone()));
        made.placed = place.placed;
        fault::point(town, "task.placed");
        let copied = copy::copy(town, self.rig, at_base, dir)?;
        warnings.extend(copied.warnings);
        fault::point(town, "task.copied");
        if !self.options.no_agent {
            let hooked = hook::hook_item(town, self.agent, &self.item.id);
            made.hooked = hooked.map_err(Problem::from)?.is_new;
            if made.hooked {
                let sender = town.around().var("GT_ROLE").unwrap_or(PERSON);
                Work::of(town).record_sling(&self.item.id, sender)?;
            }
            fault::point(town, "task.hooked");
        }
        let mut project = project::of_worktree(dir)?;
        approval::check(town, self.rig, &project.commands())?;
        if reused && !project.init.commands.is_empty() && self.was_sandboxed()? {
            project.init.commands = CheckedList::default();
            warnings.push(
                "the init commands did not run again: they run outside of the sandbox, and its agent \
                 may have changed the files that they use"
                    .to_owned(),
            );
        }
        let needs_shell = self.options.no_agent || !project.init.commands.is_empty();
        let mut ran = Vec::new();
        let existing = match existing {
            // A shell that died during the initialization cannot be continued.
            Some(dead) if dead.session_id().is_none() && dead.pane().dead => {
                stop::remove_container(town, &dead)?;
                None
            }
            existing => existing,
        };
        let container = match existing {
            None if needs_shell => {
                shell::make(town, self.agent, self.name, dir)?;
                fault::point(town, "task.container");
                own_container(town, self.agent, self.name)?
            }
            existing => existing,
        };
        if let Some(container) = container.filter(|c| c.session_id().is_none() && !c.pane().dead) {
            *begun = Some(());
            if tag_of(town, &container, tags::INIT_DONE)? != "1" {
                let mut continue_after =
                    |ran: &InitResult| self.options.continue_on_failure || continue_after(ran);
                let command = self.options.command(&self.item.id);
                let skip_failed = self.options.continue_on_failure;
                ran = init::run(
                    town,
                    self.agent,
                    &container,
                    &project.init,
                    skip_failed,
                    &mut continue_after,
                )
                .map_err(|error| error.hinted(self.agent, &command))?;
            }
            if self.options.no_agent {
                self.rest(&container)?;
                return Ok(StartedTask {
                    copied: copied.paths,
                    init: ran,
                    warnings,
                    reused,
                    ..present(town, self.item, self.agent, &container)?
                });
            }
        }
        *begun = None;
        // The project file in the worktree may name another harness than the base's.
        let harness = project.harness.name.as_ref().map(Label::as_str);
        let options = start_options(self.options, self.item, harness, dir.to_owned());
        let started = start::start(town, self.agent, &options)?;
        fault::point(town, "task.started");
        self.write_down(&started);
        warnings.extend(started.warnings);
        let mut windows = Vec::new();
        // The agent already runs: failures here are warnings, and the next start retries.
        let beside = own_container(town, self.agent, self.name).and_then(|container| {
            let Some(container) = container else {
                return Ok(());
            };
            self.mark_done(&container)?;
            windows = self.open_windows(&container, &project, dir)?;
            Ok(())
        });
        warnings.extend(beside.err().map(|problem| problem.to_string()));
        Ok(StartedTask {
            id: self.item.id.clone(),
            agent: self.agent.clone(),
            container: started.container,
            branch: workspace::current_branch(town, dir),
            work_dir: dir.to_owned(),
            session: Some(started.session),
            harness: Some(started.harness),
            started: true,
            reused,
            copied: copied.paths,
            init: ran,
            windows,
            warnings,
        })
    }

    /// Writes the event of the started agent.
    fn write_down(&self, started: &start::StartedAgent) {
        let before = self.options.as_before.as_ref();
        let (kind, conversation) = match before.map(|before| &before.conversation) {
            None => ("task_start", None),
            Some(Conversation::New) => ("resumed", Some("new")),
            Some(_) => ("resumed", Some("known")),
        };
        let event = event_of(self.town, kind, &self.item.id, self.agent)
            .with("session_id", started.session.to_string())
            .with("harness", started.harness.clone())
            .with("conversation", conversation);
        Events::of(self.town).note(vec![event]);
    }

    /// Marks the init commands as done, for a container that has none to wait for.
    fn mark_done(&self, container: &Container) -> Result<()> {
        self.set(
            container,
            &[(tags::INIT_DONE, "1"), (tags::OWN_INIT_DONE, "1")],
        )
    }

    /// Marks the container as an idle shell.
    fn rest(&self, container: &Container) -> Result<()> {
        let now = self.town.clock().seconds().to_string();
        self.set(
            container,
            &[
                (tag::STATE, State::Idle.as_str()),
                (tag::STATE_SINCE, &now),
                (tag::STATE_REASON, "only a shell"),
            ],
        )
    }

    fn set(&self, container: &Container, values: &[(&str, &str)]) -> Result<()> {
        let commands = values.iter().map(|(option, value)| {
            Command::new("set-option")
                .target(container.id())
                .args([*option, *value])
        });
        let batch = commands.fold(Batch::new(), Batch::then);
        let batch = batch.then_all(containers::pack(container.id()));
        let done = self.town.server().run(batch).map(drop);
        wake::monitors(self.town);
        done.map_err(|error| tmux_problem("cannot mark the container", error))
    }

    /// Opens the windows of the background tasks that were not started yet. The container's tag is
    /// set in the same call, because a task may have ended and closed its window since.
    fn open_windows(
        &self,
        container: &Container,
        project: &Project,
        dir: &Path,
    ) -> Result<Vec<String>> {
        let noted = tag_of(self.town, container, tags::BACKGROUND)?;
        let mut begun: Vec<String> = noted.split_whitespace().map(str::to_owned).collect();
        let mut opened = Vec::new();
        let sandbox = WindowSandbox::of(self.town, self.agent, container)?;
        let name = SessionName::try_from(container.name())
            .map_err(|error| Problem::failed(error.to_string()))?;
        for (task, line) in project.background() {
            if begun.contains(&task) {
                continue;
            }
            begun.push(task.clone());
            let window = format!("{}{task}", background_tasks::WINDOW);
            let new = NewWindow {
                name: &window,
                command: line.as_str(),
                sandbox: sandbox.clone(),
                dir,
                env: &[],
                after_end: AfterEnd::StayIfFailed,
                tags: &[],
            };
            let note = Command::new("set-option")
                .target(container.id())
                .args([tags::BACKGROUND, &begun.join(" ")]);
            windows::open(self.town, &name, &new, vec![note])?;
            opened.push(window);
            fault::point(self.town, "task.windows");
        }
        Ok(opened)
    }

    /// Rolls back in reverse order; failures are appended to the error.
    fn take_back(&self, dir: &Path, made: &TaskChanges, mut problem: Problem) -> Problem {
        let town = self.town;
        let mut failures = Vec::new();
        // A shell that this start has not initialized is useless.
        let left = own_container(town, self.agent, self.name).ok().flatten();
        if let Some(shell) = left.filter(|container| container.session_id().is_none()) {
            stop::end_processes(town, std::slice::from_ref(&shell), processes::GRACE);
            failures.extend(stop::remove_container(town, &shell).err());
        }
        if made.hooked {
            failures.extend(unhook(town, self.agent, &self.item.id).err());
        }
        if let Some(placed) = &made.placed {
            failures.extend(workspace::take_back(town, self.agent, dir, placed).err());
        }
        for failure in failures {
            problem = problem.cause(format!("and the rollback is incomplete: {failure}"));
        }
        problem
    }
}

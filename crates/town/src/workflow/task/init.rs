//! Types the init commands of a project into the shell of a container, one after another.
//!
//! They are separate lines because the shell's hooks (direnv's, for example) run between two of
//! them. Each is a [`InitStep`] whose end is recorded in a file. After a process was killed, the next
//! one continues: it waits for a running step, skips a successful one, and retries a failed one
//! unless the caller continues without it.

use super::tags;
use crate::base::callback::Call;
use crate::base::{fault, files, processes, wake};
use crate::messaging::inject;
use crate::records::events::Events;
use crate::repo::init_step::{self as step, InitProgress, InitStep};
use crate::terminal::containers::{self, Container, tmux_problem};
use crate::terminal::watch::{PaneWatch, WakeReason};
use crate::{Result, Town};
use gt_core::event::Event;
use gt_core::project::Init;
use gt_core::startup::tag;
use gt_core::state::{State, StateSource};
use gt_core::{Identity, Problem, ProblemKind, shell};
use gt_tmux::{Batch, Command};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// An init command with its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InitResult {
    pub command: String,
    /// `None` if it was killed.
    pub exit_code: Option<i32>,
}

impl InitResult {
    pub fn has_failed(&self) -> bool {
        self.exit_code != Some(0)
    }

    /// Describes the result for people.
    pub fn words(&self) -> String {
        match self.exit_code {
            Some(code) => format!("`{}` ended with exit code {code}", self.command),
            None => format!("`{}` was killed", self.command),
        }
    }
}

/// Timeout for the shell to read a line; it may still be starting.
const SHELL_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of attempts to type a line that the shell did not read.
const ATTEMPTS: usize = 3;

/// Runs the remaining init commands. After a failure, `continue_after` decides whether to continue. With
/// `skip_failed`, a command that failed in an earlier call is not retried.
pub(super) fn run(
    town: &Town,
    agent: &Identity,
    container: &Container,
    init: &Init,
    skip_failed: bool,
    continue_after: &mut dyn FnMut(&InitResult) -> bool,
) -> Result<Vec<InitResult>, InitError> {
    let pane = container.pane();
    let nonce = super::tag_of(town, container, tags::INIT)?;
    let shell = Shell {
        town,
        agent,
        container,
        folder: step::folder(town, agent),
        nonce: &nonce,
        watch: PaneWatch::new(&pane.tty, processes::hold_one(pane.pid)),
    };
    shell.run(init, skip_failed, continue_after)
}

/// A failed initialization of a worktree.
#[derive(Debug, thiserror::Error)]
pub(super) enum InitError {
    /// An init command of the project failed; the start can continue without it.
    #[error("the init command {}", .0.words())]
    Command(InitResult),
    #[error(transparent)]
    Other(#[from] Problem),
}

impl InitError {
    /// Returns the problem, with hints for a failed command. They name the original command,
    /// because any other would start something else.
    pub(super) fn hinted(self, agent: &Identity, command: &str) -> Problem {
        match self {
            InitError::Other(problem) => problem,
            InitError::Command(_) => Problem::new(ProblemKind::InitFailed, self.to_string())
                .hint(format!(
                    "`gt attach {agent}` goes to its shell; `{command}` tries it again"
                ))
                .hint(format!(
                    "`{command} --continue-on-failure` continues without it"
                )),
        }
    }
}

struct Shell<'a> {
    town: &'a Town,
    agent: &'a Identity,
    container: &'a Container,
    folder: PathBuf,
    nonce: &'a str,
    watch: PaneWatch,
}

impl Shell<'_> {
    fn run(
        mut self,
        init: &Init,
        skip_failed: bool,
        continue_after: &mut dyn FnMut(&InitResult) -> bool,
    ) -> Result<Vec<InitResult>, InitError> {
        self.say(State::Initializing, "")?;
        let mut all = Vec::new();
        for (index, line) in init.commands.iter().enumerate() {
            let command = line.as_str().to_owned();
            let file = self.file(index + 1);
            if skip_failed && let InitProgress::Ended(exit_code) = step::progress(&file)? {
                // The failure was reported when it happened.
                all.push(InitResult { command, exit_code });
                continue;
            }
            let step = InitStep::Run(command.clone());
            let exit_code = self.take(index + 1, &step, true)?;
            fault::point(self.town, "task.command");
            let ran = InitResult { command, exit_code };
            if ran.has_failed() {
                self.say(State::Error, &format!("init: {}", ran.words()))?;
                self.write_down(&ran);
                if !init.continue_on_failure && !continue_after(&ran) {
                    return Err(InitError::Command(ran));
                }
                self.say(State::Initializing, "")?;
            }
            all.push(ran);
        }
        // Only now has the shell loaded everything that its hooks provide.
        self.take(0, &InitStep::Keep, false)?;
        step::forget_usual(&self.folder, &self.usual_environment()?)?;
        self.mark()?;
        self.forget_steps();
        Ok(all)
    }

    /// Writes the event of a failed command.
    fn write_down(&self, ran: &InitResult) {
        let event = Event::new("init_failed", self.agent)
            .with("command", ran.command.clone())
            .with("exit_code", ran.exit_code)
            .with("reason", ran.words())
            .known_by(StateSource::Process);
        Events::of(self.town).note(vec![event]);
    }

    /// Returns the environment that tmux gives to every process of the container.
    fn usual_environment(&self) -> Result<String> {
        let ask = [
            Command::new("show-environment").arg("-g"),
            Command::new("show-environment").target(self.container.id()),
        ];
        let told = self.town.server().run(ask);
        told.map_err(|error| tmux_problem("cannot read the container", error))
    }

    /// Returns the file of a step.
    fn file(&self, number: usize) -> PathBuf {
        self.folder.join(format!("{}-{number}.json", self.nonce))
    }

    /// Runs one step and returns its exit code.
    fn take(
        &mut self,
        number: usize,
        step: &InitStep,
        again_if_failed: bool,
    ) -> Result<Option<i32>> {
        let file = self.file(number);
        match step::progress(&file)? {
            InitProgress::Ended(Some(0)) => return Ok(Some(0)),
            InitProgress::Ended(_) if again_if_failed => step::forget(&file)?,
            InitProgress::Ended(code) => return Ok(code),
            InitProgress::NotBegun | InitProgress::Running => {}
        }
        step::write(&file, step)?;
        let mut typed: Option<Instant> = None;
        let mut attempts = 0;
        loop {
            match step::progress(&file)? {
                InitProgress::Ended(code) => return Ok(code),
                InitProgress::Running => {}
                InitProgress::NotBegun if typed.is_none_or(|at| at.elapsed() > SHELL_TIMEOUT) => {
                    if attempts == ATTEMPTS {
                        return Err(self.deaf());
                    }
                    attempts += 1;
                    self.type_step(&file)?;
                    self.watch.poll_often();
                    typed = Some(Instant::now());
                }
                InitProgress::NotBegun => {}
            }
            self.town.around().cancel.check()?;
            if self.watch.wait(Duration::from_millis(100)) == WakeReason::Ended {
                let InitProgress::Ended(code) = step::progress(&file)? else {
                    return Err(
                        Problem::failed(format!("the shell of {} has ended", self.agent))
                            .hint("`gt task stop` takes its container away"),
                    );
                };
                return Ok(code);
            }
        }
    }

    fn deaf(&self) -> Problem {
        Problem::failed(format!(
            "the shell of {} does not accept commands",
            self.agent
        ))
        .hint(format!(
            "`gt attach {}` shows what it waits for; then start it again",
            self.agent
        ))
    }

    fn type_step(&self, file: &Path) -> Result<()> {
        let words = [
            shell::quote(&self.town.around().gt.to_string_lossy()),
            Call::InitStep.words().join(" "),
            shell::quote(&file.to_string_lossy()),
        ];
        // Most shells keep a line with a leading space out of their history.
        let line = format!(" {}", words.join(" "));
        inject::type_line(self.town, self.container.pane().pane, &line)
    }

    fn say(&self, state: State, reason: &str) -> Result<()> {
        let now = self.town.clock().seconds().to_string();
        self.set(&[
            (tag::STATE, state.as_str()),
            (tag::STATE_SINCE, &now),
            (tag::STATE_REASON, reason),
        ])
    }

    fn mark(&self) -> Result<()> {
        self.set(&[(tags::INIT_DONE, "1"), (tags::OWN_INIT_DONE, "1")])?;
        fault::point(self.town, "task.initialized");
        Ok(())
    }

    fn set(&self, values: &[(&str, &str)]) -> Result<()> {
        let commands = values.iter().map(|(option, value)| {
            Command::new("set-option")
                .target(self.container.id())
                .args([*option, *value])
        });
        let batch = commands.fold(Batch::new(), Batch::then);
        let batch = batch.then_all(containers::pack(self.container.id()));
        let done = self.town.server().run(batch).map(drop);
        wake::monitors(self.town);
        done.map_err(|error| tmux_problem("cannot mark the container", error))
    }

    /// Removes the files of the steps of this container and of earlier ones.
    fn forget_steps(&self) {
        for entry in files::entries(&self.folder) {
            if entry.file_name() != "environment.json" {
                // A file that remains is harmless.
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }
}

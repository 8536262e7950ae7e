//! Runs `bd` or `br` with arguments, never through a shell, and with a timeout.

use super::{Beads, BeadsRig};
use crate::Result;
use crate::base::clock::Clock;
use crate::base::processes;
use gt_core::{Problem, beads};
use rustix::process::Signal;
use serde_json::Value;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};
use std::sync::PoisonError;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Timeout for all calls of one transaction, or of one refresh. Other processes wait longer than
/// this for a transaction.
const LIMIT: Duration = Duration::from_secs(15);
/// Grace period between TERM and KILL.
const GRACE: Duration = Duration::from_secs(1);

impl Beads {
    /// Starts the timeout of a transaction. Transactions exclude each other, so there is at most
    /// one.
    pub(super) fn begin_change(&self) {
        let mut until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        *until = Instant::now() + LIMIT;
    }
}

/// The beads of one rig, during a refresh or a transaction.
pub(super) struct BeadsSession<'a> {
    beads: &'a Beads,
    rig: &'a BeadsRig,
    until: Instant,
}

impl<'a> BeadsSession<'a> {
    pub(super) fn clock(&self) -> &Clock {
        &self.beads.around.clock
    }

    /// Creates a session for a refresh, which blocks no other process.
    pub(super) fn new(beads: &'a Beads, rig: &'a BeadsRig) -> Self {
        let until = Instant::now() + LIMIT;
        BeadsSession { beads, rig, until }
    }

    /// Creates a session within the current transaction, with its deadline.
    pub(super) fn within_change(beads: &'a Beads, rig: &'a BeadsRig) -> Self {
        let until = *beads.until.lock().unwrap_or_else(PoisonError::into_inner);
        BeadsSession { beads, rig, until }
    }

    /// Runs a command and returns the JSON objects of its output.
    pub(super) fn ask(&self, words: &[String]) -> Result<Vec<Value>> {
        let stdout = self.say(words)?;
        beads::objects(&stdout).map_err(|problem| self.problem(words).caused_by_problem(&problem))
    }

    /// Runs a command that must succeed, and returns its output.
    pub(super) fn say(&self, words: &[String]) -> Result<String> {
        let output = self.run(words)?;
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() {
            return Ok(stdout);
        }
        let reason = beads::reason(&stdout, &String::from_utf8_lossy(&output.stderr));
        Err(self
            .problem(words)
            .cause(format!("{}: {reason}", output.status)))
    }

    fn problem(&self, words: &[String]) -> Problem {
        let name = self.rig.program.as_ref().map(|program| &program.path);
        // The error of a missing program is reported elsewhere.
        let name = name.ok().and_then(|path| path.file_name()?.to_str());
        // The content of an item is not repeated in errors; the first two words identify the
        // command.
        let told: Vec<&str> = words.iter().map(String::as_str).take(2).collect();
        Problem::failed(format!(
            "the beads of {} cannot be used: `{} {}` failed",
            self.rig.rig,
            name.unwrap_or("bd"),
            told.join(" ")
        ))
        .hint(format!(
            "try it in {}, or see docs/beads.md",
            self.rig
                .folder
                .parent()
                .unwrap_or(&self.rig.folder)
                .display()
        ))
    }

    fn command(&self, words: &[String]) -> Result<Command> {
        beads::check_words(words).map_err(|problem| {
            let rig = &self.rig.rig;
            Problem::usage(format!("the beads of {rig} cannot be updated: {problem}"))
                .hint("put long text into a file of the repository")
        })?;
        let program = self.rig.program()?;
        let around = &self.beads.around;
        let actor = around.var("GT_ROLE");
        let actor = actor.unwrap_or_else(|| around.login_name());
        let mut command = Command::new(&program.path);
        command
            .args(words)
            .current_dir(self.rig.folder.parent().unwrap_or(&self.rig.folder))
            .env_clear()
            .envs(around.env.iter().filter(|(name, _)| passes(name)))
            .env("BEADS_DIR", &self.rig.folder)
            .env("BD_ACTOR", actor)
            .env("BEADS_ACTOR", actor)
            // No daemon of beads may continue in the background after the answer.
            .env("BEADS_NO_DAEMON", "1")
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C at the terminal must not interrupt it in the middle of a change.
            .process_group(0);
        Ok(command)
    }

    fn run(&self, words: &[String]) -> Result<Output> {
        let cannot = |error| self.problem(words).caused_by(error);
        let child = self.command(words)?.spawn().map_err(cannot)?;
        let process = processes::hold_one(child.id());
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || sender.send(child.wait_with_output()));
        let left = self.until.saturating_duration_since(Instant::now());
        match receiver.recv_timeout(left) {
            Ok(output) => return output.map_err(cannot),
            Err(RecvTimeoutError::Disconnected) => {}
            Err(RecvTimeoutError::Timeout) => {
                for signal in [Signal::TERM, Signal::KILL] {
                    if let Some(process) = &process {
                        process.signal(signal);
                    }
                    if receiver.recv_timeout(GRACE).is_ok() {
                        break;
                    }
                }
            }
        }
        Err(self
            .problem(words)
            .cause("it took too long, and was stopped"))
    }
}

/// Returns whether a variable is passed on. Variables that name another database than the rig's are
/// not.
fn passes(name: &str) -> bool {
    !matches!(name, "BEADS_DB" | "BD_DB" | "BD_DATABASE") && crate::base::git::passes(name)
}

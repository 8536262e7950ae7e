//! Data of a start that restores a lost agent: its last session, and the content of its container.
//!
//! The old text must be in the pane's history before the program draws, and must not be on the
//! screen while `gt` looks for the prompt, because `gt` would answer an old dialog. The pane must
//! also have its final size before the text is printed, since a pane that grows takes lines back
//! out of its history. So the pane's first process is `gt internal replay-scrollback`. It waits as
//! long as its file has the suffix `.soon`, that is, until the windows are restored; prints the
//! file; waits until tmux has drawn it and scrolled it out of sight; removes the file; and execs
//! the program, without a shell. `gt` reads the screen only after the file is gone.

use super::container::AgentProcess;
use super::layout;
use super::prepared::Prepared;
use crate::base::callback::Call;
use crate::base::or_log::OrLog;
use crate::base::{files, processes};
use crate::terminal::watch::{PaneWatch, WakeReason};
use crate::{Result, Town};
use gt_core::Problem;
use gt_core::save::{self, SavedContainer};
use gt_core::session::SessionId;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Timeout for printing the text: longer than the process that prints it waits for tmux.
const TIMEOUT: Duration = Duration::from_secs(90);
/// Age after which a file is a leftover that no process will print.
const FORGOTTEN: Duration = Duration::from_secs(60 * 60);

/// The lost session that a start continues.
#[derive(Clone, Debug, Default)]
pub struct Restored {
    pub session: String,
    pub chain: String,
    /// The journal already has its end.
    pub is_ended: bool,
    /// Its container as it was saved.
    pub saved: SavedContainer,
}

impl Restored {
    /// Returns the size for the new container; `None` if the saved size is unusable.
    pub(super) fn size(&self) -> Option<(String, String)> {
        let usable = 10..=1_000;
        let (window, _) = self.saved.agents_pane()?;
        (usable.contains(&window.columns) && usable.contains(&window.rows))
            .then(|| (window.columns.to_string(), window.rows.to_string()))
    }
}

/// A text on its way into a pane. Dropping it removes its file.
#[derive(Debug)]
pub(super) struct Replay<'a> {
    file: PathBuf,
    saved: &'a SavedContainer,
}

impl Drop for Replay<'_> {
    fn drop(&mut self) {
        // Usually the process that printed the file has removed it.
        for path in [&soon(&self.file), &self.file] {
            files::remove_if_there(path).or_warn("a replayed text stays");
        }
    }
}

impl<'a> Replay<'a> {
    /// Puts the replay of the old text before the program, if the start restores an agent.
    pub(super) fn prepare(
        town: &Town,
        prepared: &Prepared<'a>,
        session: SessionId,
        argv: &mut Vec<String>,
    ) -> Result<Option<Self>> {
        let Some(restored) = &prepared.options.restored else {
            return Ok(None);
        };
        let saved = &restored.saved;
        let replay = Replay {
            file: path(town, &session.to_string()),
            saved,
        };
        let pane = saved.agents_pane().map(|(_, pane)| pane);
        let text = pane.map_or("", |pane| pane.text.as_str());
        let text = displayable(text, &note(saved));
        files::write_passing(&soon(&replay.file), text.as_bytes())?;
        *argv = command(town, &replay.file, NextProgram::Program(argv));
        Ok(Some(replay))
    }

    /// Restores the windows if the container is new, then releases the text and waits until it is
    /// in the pane's history. Returns a warning if the windows could not be restored.
    pub(super) fn show(
        &self,
        town: &Town,
        made: &AgentProcess,
        is_new: bool,
    ) -> Result<Option<String>> {
        let windows = match is_new {
            true => layout::restore(town, self.saved, made.pane),
            false => Ok(()),
        };
        std::fs::rename(soon(&self.file), &self.file)
            .map_err(|error| files::io_problem("show", &self.file, &error))?;
        let mut watch = PaneWatch::new(&made.tty, processes::hold_one(made.pid));
        let began = Instant::now();
        while self.file.exists() {
            town.around().cancel.check()?;
            if began.elapsed() > TIMEOUT {
                return Err(Problem::failed("its scrollback could not be shown again"));
            }
            if watch.wait(Duration::from_millis(20)) == WakeReason::Ended {
                break;
            }
        }
        let told = |problem| format!("its windows are not as they were: {problem}");
        Ok(windows.err().map(told))
    }
}

/// Returns a saved text for display: its colours and no other control sequences, followed by a line
/// that marks its end.
pub(super) fn displayable(text: &str, note: &str) -> String {
    let text = save::printable(text);
    let between = if text.is_empty() { "" } else { "\x1b[0m\n" };
    format!("{text}{between}\x1b[2m# {note}\x1b[0m\n")
}

/// Returns the line that names the source of a restored text.
pub(super) fn note(saved: &SavedContainer) -> String {
    match saved.windows.is_empty() {
        true => "gt: restored; its earlier text was not saved".to_owned(),
        false => format!("gt: restored from the save of {}", saved.seen_at),
    }
}

/// The program that runs after the text.
pub(crate) enum NextProgram<'a> {
    Program(&'a [String]),
    /// A login shell, as tmux starts it.
    Login(&'a str),
}

/// Writes a text for a pane to print.
pub(crate) fn write(town: &Town, name: &str, text: &str) -> Result<PathBuf> {
    let file = path(town, name);
    files::write_passing(&file, text.as_bytes())?;
    Ok(file)
}

/// Returns the command that prints a text and then execs another program.
pub(crate) fn command(town: &Town, file: &Path, then: NextProgram<'_>) -> Vec<String> {
    let [internal, replay] = Call::ReplayScrollback.words();
    let mut words = vec![
        town.around().gt.to_string_lossy().into_owned(),
        internal.to_owned(),
        replay.to_owned(),
        file.to_string_lossy().into_owned(),
    ];
    match then {
        NextProgram::Program(argv) => {
            words.push("--".to_owned());
            words.extend_from_slice(argv);
        }
        NextProgram::Login(shell) => words.extend(["--login", "--", shell].map(str::to_owned)),
    }
    words
}

fn folder(town: &Town) -> PathBuf {
    town.runtime_dir().join("replay")
}

fn path(town: &Town, name: &str) -> PathBuf {
    folder(town).join(format!("{name}.txt"))
}

/// Returns the path of a text that must not be printed yet.
fn soon(file: &Path) -> PathBuf {
    file.with_extension("txt.soon")
}

/// Removes texts of restores that were killed half-way.
pub(crate) fn forget_old(town: &Town) {
    let files = std::fs::read_dir(folder(town)).into_iter().flatten();
    for entry in files.flatten() {
        let written = entry.metadata().and_then(|meta| meta.modified());
        // Another process may have removed it.
        let age = written
            .ok()
            .and_then(|at| town.clock().system_time().duration_since(at).ok());
        if age.is_some_and(|age| age > FORGOTTEN) {
            // Best effort: it is only a leftover.
            let _ = files::remove_if_there(&entry.path());
        }
    }
}

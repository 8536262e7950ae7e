//! One step of the initialization of a worktree: files through which the waiting process and the
//! process in the pane communicate.
//!
//! The line that is typed into the shell only names a file. `gt internal init-step` reads the
//! command from that file, runs it, and records its start and its exit code in two other files. The
//! screen is never read: a step has ended when its exit code is recorded or its process is gone. A
//! step is idempotent: if the line is typed twice, the command runs once.

use crate::base::or_log::OrLog;
use crate::base::{files, processes};
use crate::{Result, Town};
use gt_core::environment::belongs_to_an_agent;
use gt_core::{Identity, Problem};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Kind of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InitStep {
    /// Run this line with a shell.
    Run(String),
    /// Save the variables of the pane's shell, for the agent.
    Keep,
}

/// Progress of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InitProgress {
    NotBegun,
    Running,
    /// Ended with this exit code; `None` if its process was killed.
    Ended(Option<i32>),
}

#[derive(Serialize, Deserialize)]
struct BegunStep {
    pid: u32,
    born: String,
}

/// Writes the file of a step for the process in the pane.
pub(crate) fn write(file: &Path, step: &InitStep) -> Result<()> {
    let text = serde_json::to_vec(step)
        .map_err(|error| Problem::failed("cannot write a step down").caused_by(error))?;
    files::write_passing(file, &text)
}

/// Removes the recorded result, so that the step can be retried.
pub(crate) fn forget(file: &Path) -> Result<()> {
    files::remove_if_there(&ended(file))?;
    files::remove_if_there(&begun(file))
}

pub(crate) fn progress(file: &Path) -> Result<InitProgress> {
    let read = || -> Result<Option<InitProgress>> {
        let text = files::read_if_there(&ended(file))?;
        let code = text.and_then(|text| text.trim().parse().ok());
        Ok(code.map(|code| InitProgress::Ended(Some(code))))
    };
    if let Some(progress) = read()? {
        return Ok(progress);
    }
    let Some(text) = files::read_if_there(&begun(file))? else {
        return Ok(InitProgress::NotBegun);
    };
    let is_alive = match serde_json::from_str::<BegunStep>(&text) {
        Ok(process) => processes::is_born_as(process.pid, &process.born).is_some(),
        // The process was killed while writing its id, or is writing it at this moment.
        Err(_) => text.is_empty() && !is_old(&begun(file)),
    };
    // The step may have recorded its exit code since the first read.
    Ok(match (is_alive, read()?) {
        (_, Some(progress)) => progress,
        (true, None) => InitProgress::Running,
        (false, None) => InitProgress::Ended(None),
    })
}

/// Returns whether a file is so old that its first write must be complete.
fn is_old(path: &Path) -> bool {
    const MOMENT: std::time::Duration = std::time::Duration::from_secs(2);
    // A file that is gone counts as old.
    let written = path.metadata().and_then(|meta| meta.modified()).ok();
    written.is_none_or(|at| at.elapsed().is_ok_and(|age| age > MOMENT))
}

/// Claims a step for the process in the pane. Returns `None` if it is already claimed.
pub fn begin(file: &Path) -> Result<Option<InitStep>> {
    let Some(text) = files::read_if_there(file)? else {
        return Err(Problem::not_found("this step no longer exists")
            .hint("`gt task start` begins one; this command is for its own use"));
    };
    let step = serde_json::from_str(&text)
        .map_err(|error| Problem::failed("the step cannot be read").caused_by(error))?;
    let pid = std::process::id();
    let own = BegunStep {
        pid,
        born: processes::birth_certificate(pid).unwrap_or_default(),
    };
    let path = begun(file);
    let mut options = OpenOptions::new();
    let opened = options.write(true).create_new(true).mode(0o600).open(&path);
    let mut taken = match opened {
        Ok(taken) => taken,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(None),
        Err(error) => return Err(files::io_problem("write", &path, &error)),
    };
    // Cannot fail: all fields are plain values.
    let text = serde_json::to_vec(&own).unwrap_or_default();
    taken
        .write_all(&text)
        .map_err(|error| files::io_problem("write", &path, &error))?;
    Ok(Some(step))
}

/// Records the exit code of a step, for the process in the pane.
pub fn end(file: &Path, code: i32) -> Result<()> {
    files::write_passing(&ended(file), code.to_string().as_bytes())
}

/// Saves the environment of the shell, for the process in the pane.
pub fn save_environment(file: &Path, now: &BTreeMap<String, String>) -> Result<()> {
    const OF_THE_SHELL: &[&str] = &[
        "_",
        "COLUMNS",
        "LINES",
        "OLDPWD",
        "PWD",
        "SHLVL",
        "TERM",
        "TMUX",
        "TMUX_PANE",
    ];
    let is_name = |name: &str| {
        !name.starts_with(|c: char| c.is_ascii_digit())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let kept: BTreeMap<&String, &String> = now
        .iter()
        .filter(|(name, _)| is_name(name) && !OF_THE_SHELL.contains(&name.as_str()))
        .filter(|(name, _)| !belongs_to_an_agent(name))
        .collect();
    let text = serde_json::to_vec(&kept)
        .map_err(|error| Problem::failed("cannot keep the environment").caused_by(error))?;
    files::write_passing(&environment_file(file), &text)
}

/// Removes the saved variables that every process of the container gets anyway, as listed by tmux:
/// a saved value would hide a later change.
pub(crate) fn forget_usual(folder: &Path, usual: &str) -> Result<()> {
    let file = environment_file(&folder.join("x"));
    let Some(text) = files::read_if_there(&file)? else {
        return Ok(());
    };
    let usual: BTreeSet<&str> = usual.lines().collect();
    let mut kept: BTreeMap<String, String> = serde_json::from_str(&text)
        .map_err(|error| Problem::failed("the environment cannot be read").caused_by(error))?;
    kept.retain(|name, value| !usual.contains(format!("{name}={value}").as_str()));
    let text = serde_json::to_vec(&kept)
        .map_err(|error| Problem::failed("cannot keep the environment").caused_by(error))?;
    files::write_passing(&file, &text)
}

/// Returns the environment of the shell in which an agent's worktree was prepared.
pub(crate) fn environment(town: &Town, agent: &Identity) -> Vec<(String, String)> {
    // Without the file the agent gets only the container's environment.
    let text = files::read_if_there(&environment_file(&folder(town, agent).join("x")));
    let lost = format!("the environment of the init commands of {agent} is lost");
    let kept = text.or_warn(&lost).flatten();
    let kept = kept.and_then(|text| {
        let kept = serde_json::from_str::<BTreeMap<String, String>>(&text);
        kept.or_warn(&lost)
    });
    let mut kept = kept.unwrap_or_default();
    if let Some(path) = kept.get_mut("PATH") {
        // The agent must find `gt`, even if the shell's startup files changed the `PATH`.
        *path = town.around().with_own_folder(path).unwrap_or_default();
    }
    kept.into_iter().collect()
}

/// Returns the folder of an agent's steps.
pub(crate) fn folder(town: &Town, agent: &Identity) -> PathBuf {
    let name = agent.address().replace('/', ".");
    town.runtime_dir().join("tasks").join(name)
}

fn environment_file(step: &Path) -> PathBuf {
    step.with_file_name("environment.json")
}

fn begun(file: &Path) -> PathBuf {
    file.with_extension("begun")
}

fn ended(file: &Path) -> PathBuf {
    file.with_extension("ended")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_done_once_and_its_end_is_known_even_if_it_was_killed() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a-1.json");
        let step = InitStep::Run("true".to_owned());
        write(&file, &step).unwrap();
        assert_eq!(progress(&file).unwrap(), InitProgress::NotBegun);
        assert_eq!(begin(&file).unwrap(), Some(step.clone()));
        assert_eq!(begin(&file).unwrap(), None);
        assert_eq!(progress(&file).unwrap(), InitProgress::Running);
        end(&file, 3).unwrap();
        assert_eq!(progress(&file).unwrap(), InitProgress::Ended(Some(3)));
        forget(&file).unwrap();
        assert_eq!(progress(&file).unwrap(), InitProgress::NotBegun);
        let gone = BegunStep {
            pid: std::process::id(),
            born: "1@another-boot".to_owned(),
        };
        std::fs::write(begun(&file), serde_json::to_vec(&gone).unwrap()).unwrap();
        assert_eq!(progress(&file).unwrap(), InitProgress::Ended(None));
    }

    #[test]
    fn only_what_the_shell_has_of_its_own_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a-1.json");
        let now = [
            ("HOME", "/h"),
            ("PATH", "/venv:/bin"),
            ("NEW", "1"),
            ("PWD", "/x"),
            ("GT_ROLE", "mayor"),
            ("BASH_FUNC_x%%", "() { :; }"),
        ];
        let now = now.map(|(name, value)| (name.to_owned(), value.to_owned()));
        save_environment(&file, &now.into()).unwrap();
        forget_usual(dir.path(), "HOME=/h\nPATH=/bin\n-NEW\n").unwrap();
        let text = std::fs::read_to_string(environment_file(&file)).unwrap();
        assert_eq!(text, r#"{"NEW":"1","PATH":"/venv:/bin"}"#);
    }
}

//! Context of every command: the caller's environment, the town and the output format.

use crate::args::Global;
use crate::args::capabilities::{self, Need};
use crate::output::captured;
use gt_core::Problem;
use gt_core::caller::{self, Caller};
use gt_town::base::processes;
use gt_town::records::keepalive;
use gt_town::{Deadline, Surroundings, Town};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Clone, Debug)]
pub(crate) struct Context {
    around: Surroundings,
    town: Option<PathBuf>,
    pub(crate) json: bool,
    /// Whether `--verbose` was given.
    pub(crate) verbose: bool,
    /// Variables that are not UTF-8 and therefore not passed on.
    unreadable: Vec<String>,
    /// The requirement of the command.
    need: Option<Need>,
}

impl Context {
    /// Reads the process's environment for the commands. Only the output colours and the demo agent
    /// read it elsewhere.
    pub(crate) fn new(global: &Global) -> Result<Self, Problem> {
        let (env, unreadable) = text_variables(std::env::vars_os())?;
        let gt = std::env::current_exe()
            .map_err(|error| Problem::failed("cannot tell where gt itself is").caused_by(error))?;
        // `gt --town …` must work even if the current folder was removed.
        let current_dir = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
        Ok(Context {
            around: Surroundings {
                env,
                gt,
                current_dir,
                ..Surroundings::default()
            },
            town: global.town.clone(),
            json: global.json,
            verbose: global.verbose,
            unreadable,
            need: None,
        })
    }

    /// Returns the context of a command that the daemon runs for the HTTP API.
    pub(crate) fn served(root: PathBuf, around: Surroundings) -> Self {
        Context {
            around,
            town: Some(root),
            json: true,
            verbose: false,
            unreadable: Vec::new(),
            need: None,
        }
    }

    /// Returns this context for the command with these names.
    pub(crate) fn for_command(mut self, words: &[&str]) -> Self {
        let words: Vec<&str> = std::iter::once("gt").chain(words.iter().copied()).collect();
        self.around.command = words.join(" ");
        self.need = capabilities::need(words.get(1..).unwrap_or_default());
        self.around.capability = match self.need {
            Some(Need::Each(capability) | Need::Town(capability)) => Some(capability),
            Some(Need::Nothing) | None => None,
        };
        self
    }

    /// Returns a copy that answers with text.
    pub(crate) fn as_text(&self) -> Self {
        Context {
            json: false,
            ..self.clone()
        }
    }

    pub(crate) fn around(&self) -> &Surroundings {
        &self.around
    }

    /// Writes a keepalive if an agent runs this command. Commands that tmux runs for a container
    /// have the agent's variables, but not its pane's.
    pub(crate) fn write_keepalive(&self, command: &[&str]) {
        const NOT_BY_AN_AGENT: &[&str] = &["demo-agent", "internal", "status-line"];
        let var = |name| self.around.var(name);
        let is_by_an_agent = var("GT_SESSION_UUID").is_some()
            && var("TMUX_PANE").is_some()
            && !command.iter().any(|word| NOT_BY_AN_AGENT.contains(word));
        if let (true, Some(root), Some(role)) = (is_by_an_agent, var("GT_ROOT"), var("GT_ROLE")) {
            let command = format!("gt {}", command.join(" "));
            keepalive::touch(Path::new(root), role, &command, &self.around.clock);
        }
    }

    /// Returns whether tmux, a hook or a background process of `gt` runs the command with these
    /// names, so that its output is discarded.
    pub(crate) fn is_unattended(&self, command: &[&str]) -> bool {
        const ALWAYS: &[&str] = &["internal", "signal", "status-line"];
        let by_gt = self.around.var(caller::VARIABLE) == Some(Caller::Gt.as_str());
        by_gt || command.first().is_some_and(|name| ALWAYS.contains(name))
    }

    /// Logs the variables that programs started by this command do not get.
    pub(crate) fn note_unreadable_variables(&self) {
        for name in &self.unreadable {
            tracing::info!("the variable {name} is not UTF-8, and is not passed on");
        }
    }

    /// Finds the folder of the town.
    pub(crate) fn root(&self) -> Result<PathBuf, Problem> {
        Town::find(self.town.as_deref(), &self.around)
    }

    /// Returns whether the caller named a town, with `--town` or `GT_ROOT`.
    pub(crate) fn names_town(&self) -> bool {
        self.town.is_some() || self.around.var("GT_ROOT").is_some()
    }

    /// Opens the town. Fails if the caller claims to be another one, or may not run the command.
    pub(crate) fn town(&self) -> Result<Town, Problem> {
        self.open(self.around.clone())
    }

    fn open(&self, around: Surroundings) -> Result<Town, Problem> {
        let town = Town::open(&self.root()?, around)?.with_checked_caller()?;
        match self.need {
            Some(Need::Each(capability)) => town.check_capability(capability)?,
            Some(Need::Town(capability)) => town.check_town_capability(capability)?,
            Some(Need::Nothing) | None => {}
        }
        Ok(town)
    }

    /// Records a refusal as an event of the caller.
    pub(crate) fn note_denial(&self, problem: &Problem) {
        // Without a town there is no log.
        let town = self
            .root()
            .and_then(|root| Town::open(&root, self.around.clone()));
        if let Ok(town) = town {
            gt_town::records::events::note_denied(&town, problem);
        }
    }

    /// Opens the town for a hook of an agent's program, with this timeout.
    pub(crate) fn town_for_hook(&self, timeout: Duration) -> Result<Town, Problem> {
        let around = Surroundings {
            deadline: Deadline::after(timeout),
            ..self.around.clone()
        };
        self.open(around)
    }

    /// Makes Ctrl-C, TERM and the end of the terminal cancel the running command, which rolls back
    /// partial changes and ends the processes that it started. A second Ctrl-C or TERM ends it at
    /// once.
    pub(crate) fn catch_interrupts(&self) {
        if captured::is_active() {
            // The process is the daemon, which handles its own signals.
            return;
        }
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        if !processes::ignores_hangups() {
            // HUP may arrive twice, from the shell and from the kernel, so the second one does not
            // end the process.
            let _ = signal_hook::flag::register(SIGHUP, self.around.cancel.flag());
        }
        for signal in [SIGINT, SIGTERM] {
            let flag = self.around.cancel.flag();
            // If this fails, Ctrl-C ends the process at once.
            let _ = signal_hook::flag::register_conditional_shutdown(signal, 130, flag.clone());
            let _ = signal_hook::flag::register(signal, flag);
        }
    }
}

/// Returns the variables that are UTF-8, and the names of the others. A variable that `gt` itself
/// reads must be UTF-8: without it the command would work on another town, server or agent.
fn text_variables(
    all: impl Iterator<Item = (OsString, OsString)>,
) -> Result<(BTreeMap<String, String>, Vec<String>), Problem> {
    const OURS: &[&str] = &["HOME", "PATH", "TMUX", "TMUX_PANE", "TMUX_TMPDIR"];
    let (mut env, mut unreadable) = (BTreeMap::new(), Vec::new());
    for (name, value) in all {
        match (name.into_string(), value.into_string()) {
            (Ok(name), Ok(value)) => {
                env.insert(name, value);
            }
            (Ok(name), Err(_)) if name.starts_with("GT_") || OURS.contains(&name.as_str()) => {
                let problem = Problem::environment(format!("the variable {name} is not UTF-8"));
                return Err(problem.hint(format!("set {name} to other text, or unset it")));
            }
            (Ok(name), Err(_)) => unreadable.push(name),
            (Err(name), _) => unreadable.push(name.to_string_lossy().into_owned()),
        }
    }
    Ok((env, unreadable))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt;

    #[test]
    fn variable_of_gt_that_is_not_utf8_is_an_error_and_another_is_reported() {
        let bad = || OsString::from_vec(vec![b'/', 0xff]);
        let with = |name: &str| {
            let all = [("LANG".into(), "C".into()), (OsString::from(name), bad())];
            text_variables(all.into_iter())
        };
        for name in ["GT_ROOT", "HOME", "TMUX"] {
            let problem = with(name).unwrap_err();
            assert!(problem.message().contains(name), "{problem}");
        }
        let (env, unreadable) = with("LESSOPEN").unwrap();
        assert_eq!(env.into_keys().collect::<Vec<_>>(), ["LANG"]);
        assert_eq!(unreadable, ["LESSOPEN"]);
    }
}

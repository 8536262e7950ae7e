//! Context of every command: the caller's environment, the town and the output format.

use crate::args::Global;
use gt_core::Problem;
use gt_town::base::processes;
use gt_town::records::keepalive;
use gt_town::{Deadline, Surroundings, Town};
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Debug)]
pub(crate) struct Context {
    around: Surroundings,
    town: Option<PathBuf>,
    pub(crate) json: bool,
}

impl Context {
    /// Reads the process's environment for the commands. Only the output colours and the demo agent
    /// read it elsewhere.
    pub(crate) fn new(global: &Global) -> Result<Self, Problem> {
        let env = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
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
        })
    }

    /// Returns a copy that answers with text.
    pub(crate) fn as_text(&self) -> Self {
        Context {
            around: self.around.clone(),
            town: self.town.clone(),
            json: false,
        }
    }

    pub(crate) fn around(&self) -> &Surroundings {
        &self.around
    }

    /// Writes a keepalive if an agent runs this command. Commands that tmux runs for a container
    /// have the agent's variables, but not its pane's.
    pub(crate) fn leave_sign(&self, command: &[&str]) {
        const NOT_BY_AN_AGENT: &[&str] = &["cycle", "demo-agent", "respawn", "status-line"];
        let var = |name| self.around.var(name);
        let is_by_an_agent = var("GT_SESSION_UUID").is_some()
            && var("TMUX_PANE").is_some()
            && !command.iter().any(|word| NOT_BY_AN_AGENT.contains(word));
        if let (true, Some(root), Some(role)) = (is_by_an_agent, var("GT_ROOT"), var("GT_ROLE")) {
            let command = format!("gt {}", command.join(" "));
            keepalive::touch(Path::new(root), role, &command, &self.around.clock);
        }
    }

    /// Opens the town.
    pub(crate) fn town(&self) -> Result<Town, Problem> {
        let root = Town::find(self.town.as_deref(), &self.around)?;
        Town::open(&root, self.around.clone())
    }

    /// Opens the town for a hook of an agent's program, with this timeout.
    pub(crate) fn town_for_hook(&self, timeout: Duration) -> Result<Town, Problem> {
        let around = Surroundings {
            deadline: Deadline::after(timeout),
            ..self.around.clone()
        };
        Town::open(&Town::find(self.town.as_deref(), &around)?, around)
    }

    /// Makes Ctrl-C, TERM and the end of the terminal cancel the running command, which rolls back
    /// partial changes and ends the processes that it started. A second Ctrl-C or TERM ends it at
    /// once.
    pub(crate) fn catch_interrupts(&self) {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        if !processes::is_deaf_to_hangups() {
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

//! What every command gets: the caller's surroundings, the town, the way to answer.

use crate::args::Global;
use gt_core::Problem;
use gt_town::{Patience, Surroundings, Town, keepalive, processes};
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Debug)]
pub(crate) struct Context {
    around: Surroundings,
    town: Option<PathBuf>,
    pub(crate) json: bool,
}

impl Context {
    /// Reads the process's environment: the only place that does.
    pub(crate) fn new(global: &Global) -> Result<Self, Problem> {
        let env = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let gt = std::env::current_exe()
            .map_err(|error| Problem::failed("cannot tell where gt itself is").caused_by(error))?;
        // A folder that was removed under us must not keep `gt --town …` from working.
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

    /// The same, answering with text.
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

    /// Leaves a sign of life, where an agent runs this command. What tmux runs for a
    /// container has the agent's variables too, but not its pane's.
    pub(crate) fn leave_sign(&self, command: &[&str]) {
        const NOT_BY_AN_AGENT: &[&str] = &["cycle", "demo-agent", "respawn", "status-line"];
        let var = |name| self.around.var(name);
        let is_by_an_agent = var("GT_SESSION_UUID").is_some()
            && var("TMUX_PANE").is_some()
            && !command.iter().any(|word| NOT_BY_AN_AGENT.contains(word));
        if let (true, Some(root), Some(role)) = (is_by_an_agent, var("GT_ROOT"), var("GT_ROLE")) {
            keepalive::touch(Path::new(root), role, &format!("gt {}", command.join(" ")));
        }
    }

    /// Opens the town.
    pub(crate) fn town(&self) -> Result<Town, Problem> {
        let root = Town::find(self.town.as_deref(), &self.around)?;
        Town::open(&root, self.around.clone())
    }

    /// Opens the town for a hook of an agent's program, which is over after so long.
    pub(crate) fn town_for_hook(&self, patience: Duration) -> Result<Town, Problem> {
        let around = Surroundings {
            patience: Patience::lasting(patience),
            ..self.around.clone()
        };
        Town::open(&Town::find(self.town.as_deref(), &around)?, around)
    }

    /// Makes Ctrl-C, TERM and the end of the terminal ask the running command to undo what
    /// is half done, and to end what it has started. A second Ctrl-C or TERM ends it at once.
    pub(crate) fn catch_interrupts(&self) {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        if !processes::is_deaf_to_hangups() {
            // A terminal's end may be told twice, by the shell and by the kernel.
            let _ = signal_hook::flag::register(SIGHUP, self.around.cancel.flag());
        }
        for signal in [SIGINT, SIGTERM] {
            let flag = self.around.cancel.flag();
            // Without a handler Ctrl-C ends us as it always did.
            let _ = signal_hook::flag::register_conditional_shutdown(signal, 130, flag.clone());
            let _ = signal_hook::flag::register(signal, flag);
        }
    }
}

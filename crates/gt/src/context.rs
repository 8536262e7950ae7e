//! What every command gets: the caller's surroundings, the town, the way to answer.

use crate::args::Global;
use gt_core::Problem;
use gt_town::{Surroundings, Town};
use std::path::PathBuf;

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

    /// Opens the town.
    pub(crate) fn town(&self) -> Result<Town, Problem> {
        let root = Town::find(self.town.as_deref(), &self.around)?;
        Town::open(&root, self.around.clone())
    }

    /// Makes Ctrl-C and TERM ask the running command to undo what is half done.
    /// The second one ends it at once.
    pub(crate) fn catch_interrupts(&self) {
        use signal_hook::consts::{SIGINT, SIGTERM};
        for signal in [SIGINT, SIGTERM] {
            let flag = self.around.cancel.flag();
            // Without a handler Ctrl-C ends us as it always did.
            let _ = signal_hook::flag::register_conditional_shutdown(signal, 130, flag.clone());
            let _ = signal_hook::flag::register(signal, flag);
        }
    }
}

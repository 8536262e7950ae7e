//! Runs the save of tmux-resurrect, for towns that enable it in addition to ours.

use crate::base::callback;
use crate::terminal::containers::tmux_problem;
use crate::{Result, Town};
use gt_core::{Problem, shell};
use gt_tmux::{Command, format};
use std::path::PathBuf;

/// The option with the path of the plugin's script.
const OPTION: &str = "@resurrect-save-script-path";
const SCRIPT: &str = "tmux/plugins/tmux-resurrect/scripts/save.sh";
const OLD_SCRIPT: &str = ".tmux/plugins/tmux-resurrect/scripts/save.sh";

/// Asks tmux to run the plugin's script, and does not wait for it.
pub(super) fn save(town: &Town) -> Result<()> {
    let cannot = |error| tmux_problem("cannot ask tmux-resurrect for a save", error);
    let server = town.server();
    let said = server
        .run(Command::new("show-options").args(["-gqv", OPTION]))
        .map_err(cannot)?;
    let said = Some(said.trim_end_matches('\n')).filter(|path| !path.is_empty());
    let around = town.around();
    let home = around.home();
    let config = around.var("XDG_CONFIG_HOME").map(PathBuf::from);
    let config = config.or_else(|| home.map(|home| home.join(".config")));
    let places = [
        said.map(PathBuf::from),
        home.map(|home| home.join(OLD_SCRIPT)),
        config.map(|config| config.join(SCRIPT)),
    ];
    let Some(script) = places.into_iter().flatten().find(|path| path.is_file()) else {
        return Err(Problem::environment(
            "tmux-resurrect is not installed, and the town wants its save",
        )
        .hint("install it, or set `resurrect = false` under [save] in town.toml"));
    };
    let script = shell::quote(&script.to_string_lossy());
    // Without `quiet` it would draw a spinner in the status line.
    let line = format::escape(&callback::quiet(&format!("{script} quiet")));
    server
        .run(Command::new("run-shell").args(["-b", &line]))
        .map(drop)
        .map_err(cannot)
}

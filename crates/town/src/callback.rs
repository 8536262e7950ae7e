//! How tmux calls us back: a line for its `run-shell`.

use crate::Town;
use gt_core::shell;
use gt_tmux::{Command, format};

/// A line that calls `gt` for this town with these words, which nothing has to be quoted
/// in. It may be given to tmux as it is.
pub(crate) fn line(town: &Town, words: &str) -> String {
    let socket = town.server().socket_path();
    let line = [
        // tmux calls it with the variables of some session, or of none.
        format!("GT_TMUX_SOCKET={}", shell::quote(&socket.to_string_lossy())),
        shell::quote(&town.around().gt.to_string_lossy()),
        format!("--town {} {words}", shell::quote(town.root_text())),
        ">/dev/null 2>&1".to_owned(),
    ];
    format::escape(&line.join(" "))
}

/// The command by which tmux makes the call at once, and nobody waits for it.
pub(crate) fn at_once(town: &Town, words: &str) -> Command {
    Command::new("run-shell").args(["-b", &line(town, words)])
}

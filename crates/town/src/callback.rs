//! Calls of `gt` by which something is done later: a line for tmux's `run-shell`, and a
//! process of its own.

use crate::Town;
use gt_core::caller::{self, Caller};
use gt_core::environment::belongs_to_an_agent;
use gt_core::shell;
use gt_tmux::format;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command as Process, Stdio};

/// A shell line for tmux's `run-shell` that prints nothing and always succeeds. Every line
/// that tmux runs is made by this function: tmux shows an output or a failure in a pane, in
/// view mode over its program.
pub fn quiet(line: &str) -> String {
    format!("{line} >/dev/null 2>&1 || true")
}

/// A quiet line that calls `gt` with these words, for the container that tmux runs it in: the
/// container's tags say which binary and which town.
pub(crate) fn by_tags(words: &str) -> String {
    quiet(&format!("#{{q:@gt_bin}} --town #{{q:@gt_town}} {words}"))
}

/// A line by tags for a call that no person and no agent asked for.
pub(crate) fn automatic_by_tags(words: &str) -> String {
    format!("{AUTOMATIC} {}", by_tags(words))
}

/// The assignment before every call that no person and no agent asked for.
pub(crate) const AUTOMATIC: &str = "GT_CALLER=gt";

/// A line that calls `gt` for this town with these words, which nothing has to be quoted
/// in. It may be given to tmux as it is.
pub(crate) fn line(town: &Town, words: &str) -> String {
    // A server on which the town has only adopted agents is not the town's.
    let socket = town.own().server().socket_path();
    let line = [
        // tmux calls it with the variables of some session, or of none.
        AUTOMATIC.to_owned(),
        format!("GT_TMUX_SOCKET={}", shell::quote(&socket.to_string_lossy())),
        shell::quote(&town.around().gt.to_string_lossy()),
        format!("--town {} {words}", shell::quote(town.root_text())),
    ];
    format::escape(&quiet(&line.join(" ")))
}

/// A call of `gt` for this town that runs apart from its caller: neither Ctrl-C there nor
/// the end of that terminal reaches it, and an agent that is ended takes it for none of its
/// own by what it carries.
pub(crate) fn call(town: &Town, words: &[&str]) -> Process {
    let mut call = bare_call(town, words, |_| true);
    call.process_group(0);
    call
}

/// A call of `gt` for this town without the variables of an agent, for a process that leaves
/// the caller's session: it belongs to no agent, and has no group of its own yet.
pub(crate) fn unattached(town: &Town, words: &[&str]) -> Process {
    bare_call(town, words, |name| !belongs_to_an_agent(name))
}

fn bare_call(town: &Town, words: &[&str], passes: impl Fn(&str) -> bool) -> Process {
    let mut call = Process::new(&town.around().gt);
    let env = town.around().env.iter().filter(|(name, _)| passes(name));
    call.args(["--town", town.root_text()])
        .args(words)
        .env_clear()
        .envs(env)
        .env_remove("TMUX")
        .env_remove("TMUX_PANE")
        .env("GT_TMUX_SOCKET", town.own().socket_text())
        .env(caller::VARIABLE, Caller::Gt.as_str())
        .current_dir(town.root())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    call
}

/// Begins a call, and waits for nobody.
pub(crate) fn begin(mut call: Process) -> io::Result<()> {
    let mut child = call.spawn()?;
    // Whoever goes on needs somebody to take leave of it.
    drop(std::thread::spawn(move || child.wait()));
    Ok(())
}

/// Calls `gt` for this town at once. Where it cannot be started, whoever looks next does
/// what it was to do.
pub(crate) fn apart(town: &Town, words: &[&str]) {
    let _ = begin(call(town, words));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Surroundings;
    use std::ffi::OsStr;

    #[test]
    fn a_call_carries_nothing_of_the_pane_that_it_is_made_in() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("town");
        Town::init(&root, None, "/tmp/nobody", "demo").unwrap();
        let variables = [
            ("TMUX", "/tmp/nobody,1,0"),
            ("TMUX_PANE", "%1"),
            ("HOME", "/"),
            ("GT_ROLE", "mayor"),
        ];
        let around = Surroundings {
            env: variables
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            ..Surroundings::default()
        };
        let town = Town::open(&root, around).unwrap();
        let call = call(&town, &[]);
        let given: Vec<&OsStr> = call.get_envs().map(|(name, _)| name).collect();
        assert_eq!(given, ["GT_CALLER", "GT_ROLE", "GT_TMUX_SOCKET", "HOME"]);
        let unattached = unattached(&town, &[]);
        let given: Vec<&OsStr> = unattached.get_envs().map(|(name, _)| name).collect();
        assert_eq!(given, ["GT_CALLER", "GT_TMUX_SOCKET", "HOME"]);
    }
}

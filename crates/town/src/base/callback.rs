//! Deferred calls of `gt`: shell lines for tmux's `run-shell`, and detached processes. [`Call`] is
//! the table of the subcommands of `gt internal`, which only such calls use.

mod call;

pub use call::Call;

use crate::Town;
use crate::base::or_log::OrLog;
use gt_core::caller::{self, Caller};
use gt_core::environment::belongs_to_an_agent;
use gt_core::shell;
use gt_tmux::format;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command as Process, Stdio};

/// Returns a shell line for tmux's `run-shell` that prints nothing and always succeeds. Every line
/// that tmux runs goes through this function: tmux shows output or a failure in view mode, over the
/// program of a pane.
pub fn quiet(line: &str) -> String {
    format!("{line} >/dev/null 2>&1 || true")
}

/// Returns a quiet line that calls `gt` with these arguments. tmux fills in the binary and the town
/// from the tags of the container in which it runs the line.
pub(crate) fn by_tags(words: &str) -> String {
    quiet(&format!("#{{q:@gt_bin}} --town #{{q:@gt_town}} {words}"))
}

/// Returns a line like [`by_tags`], for a call that neither a person nor an agent asked for.
pub(crate) fn automatic_by_tags(words: &str) -> String {
    format!("{AUTOMATIC} {}", by_tags(words))
}

/// Shell assignment that precedes every call that neither a person nor an agent asked for.
pub(crate) const AUTOMATIC: &str = "GT_CALLER=gt";

/// Returns a quiet line that calls `gt` for this town, escaped for tmux. The arguments in `words`
/// are not quoted, so they must not need it.
pub(crate) fn line(town: &Town, words: &str) -> String {
    // `town` may be on another server, which holds only adopted agents: the line names the town's
    // own.
    let socket = town.with_own_server().server().socket_path();
    let line = [
        // tmux runs the line with the environment of an arbitrary session, or of none, so the line
        // sets its own.
        AUTOMATIC.to_owned(),
        format!("GT_TMUX_SOCKET={}", shell::quote(&socket.to_string_lossy())),
        shell::quote(&town.around().gt.to_string_lossy()),
        format!("--town {} {words}", shell::quote(town.root_text())),
    ];
    format::escape(&quiet(&line.join(" ")))
}

/// Returns a call of `gt` for this town in a separate process group, so that Ctrl-C does not reach
/// it and it outlives the caller's terminal. Its environment lacks the `TMUX` variables, by which
/// `gt stop` recognises the processes of an agent, so stopping the calling agent does not kill it.
pub(crate) fn call(town: &Town, words: &[&str]) -> Process {
    let mut call = bare_call(town, words, |_| true);
    call.process_group(0);
    call
}

/// Returns a call of `gt` for this town without the variables of an agent, for a process that
/// leaves the caller's session. It belongs to no agent and stays in the caller's process group.
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
        .env("GT_TMUX_SOCKET", town.with_own_server().socket_text())
        .env(caller::VARIABLE, Caller::Gt.as_str())
        .current_dir(town.root())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    call
}

/// Starts a process and does not wait for it.
pub(crate) fn begin(mut call: Process) -> io::Result<()> {
    let mut child = call.spawn()?;
    // Reaps the child if this process outlives it.
    drop(std::thread::spawn(move || child.wait()));
    Ok(())
}

/// Starts `gt` for this town in the background. If that fails, a later command does the work.
pub(crate) fn start_detached(town: &Town, words: &[&str]) {
    let what = words.join(" ");
    begin(call(town, words)).or_warn(format_args!("cannot start `gt {what}` in the background"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Surroundings;
    use crate::base::log::testing::{town, warnings_of};
    use std::ffi::OsStr;

    #[test]
    fn background_call_has_no_variables_of_the_callers_pane() {
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

    #[test]
    fn background_call_that_cannot_be_started_is_logged() {
        let (_folder, town) = town();
        let ((), warnings) = warnings_of(|| start_detached(&town, &["internal", "settle", "x"]));
        let expected = "cannot start `gt internal settle x` in the background: ";
        assert!(warnings[0].starts_with(expected), "{warnings:?}");
    }
}

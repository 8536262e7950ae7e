//! Programs that show notifications: the desktop's, and the user's own command.

use super::variable;
use crate::base::processes;
use crate::base::program::{self, RunLimits};
use crate::{Result, Town};
use gt_core::Problem;
use gt_core::notify::Notice;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Timeout of a notification program, after which it is killed.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Shows a desktop notification with the system's program.
pub(super) fn desktop(town: &Town, notice: &Notice) -> Result<()> {
    let mac = cfg!(target_os = "macos");
    let program = if mac { "osascript" } else { "notify-send" };
    let path = town.around().find_program(program).ok_or_else(|| {
        let problem = Problem::environment(format!("{program} is not on the PATH"));
        match mac {
            true => problem,
            false => problem.hint("install it: `apt-get install libnotify-bin`"),
        }
    })?;
    let mut command = Command::new(path);
    match mac {
        true => command.args([
            "-e",
            "on run argv",
            "-e",
            "display notification (item 2 of argv) with title (item 1 of argv)",
            "-e",
            "end run",
            "--",
            &notice.headline(),
            &notice.body(),
        ]),
        false => command.args([
            "--app-name=gt",
            "--",
            &notice.headline(),
            &escaped(&notice.body()),
        ]),
    };
    let limits = RunLimits {
        time: Some(TIMEOUT),
        grace: Some(Duration::ZERO),
        ..RunLimits::default()
    };
    command.stdin(Stdio::null());
    let output = program::output(command, &limits)
        .map_err(|error| Problem::failed(format!("cannot run {program}")).caused_by(error))?
        .map_err(|reason| Problem::failed(format!("{program} was stopped: {reason}")))?;
    if output.status.success() {
        return Ok(());
    }
    // Its output names the cause: no bus, or no notification service.
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(Problem::failed(format!("{program} failed: {}", output.status)).cause(said))
}

/// Escapes the body, which is markup; before that notify-send interprets `\n` and `\074`.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// Runs the user's shell line, with the facts in variables.
pub(super) fn command(town: &Town, line: &str, notice: &Notice) -> Result<()> {
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", line])
        .current_dir(town.root())
        .env("GT_ROOT", town.root())
        .env(variable::EVENT, notice.event.as_str())
        .env(variable::AGENT, &notice.agent)
        .env(variable::REASON, &notice.reason)
        .env(variable::ITEM, notice.item.as_deref().unwrap_or_default())
        .env(variable::TITLE, notice.title.as_deref().unwrap_or_default());
    run(command, "notify.command")
}

fn run(mut command: Command, what: &str) -> Result<()> {
    let cannot = |error| Problem::failed(format!("cannot run {what}")).caused_by(error);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(cannot)?;
    await_end(&mut child, what)?;
    let status = child.wait().map_err(cannot)?;
    match status.success() {
        true => Ok(()),
        false => Err(Problem::failed(format!("{what} failed: {status}"))),
    }
}

fn await_end(child: &mut Child, what: &str) -> Result<()> {
    // A process without a handle has already ended.
    let held = processes::hold_one(child.id()).into_iter().collect();
    if processes::wait_all(held, TIMEOUT).is_empty() {
        return Ok(());
    }
    // Both fail only if it has ended by now.
    let _ = child.kill();
    let _ = child.wait();
    Err(Problem::failed(format!(
        "{what} did not end within {} seconds",
        TIMEOUT.as_secs()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_a_text_is_only_text() {
        assert_eq!(escaped("<b>a & b</b>"), "&lt;b&gt;a &amp; b&lt;/b&gt;");
        assert_eq!(escaped(r"\074b\076"), r"\\074b\\076");
    }
}

//! The only module that types into a pane.
//!
//! A key that is pressed without reading the screen can do harm: a dialog may have "No, exit"
//! selected, and Enter may approve a request of the agent. So every key here follows a read of the
//! screen and goes to a pane by its id, and no key is pressed unless the screen is recognised. The
//! caller learns the progress of a message *before* each step, so that another process can continue
//! from there after a crash; see [`crate::messaging::queue`].

mod observation;
pub(crate) mod put_back;
mod repaint;
mod typist;

pub use observation::PaneObservation;
use repaint::repaint;
pub use typist::{Reached, Submission, Typist};

use crate::terminal::containers::tmux_problem;
use crate::{Result, Town};
use gt_core::Problem;
use gt_core::screen::OpenDialog;
use gt_core::startup::tag;
use gt_tmux::{Command, PaneId};

/// Returns the visible lines of a pane.
pub fn visible_lines(town: &Town, pane: PaneId) -> Result<Vec<String>> {
    let text = town
        .server()
        .run(Command::new("capture-pane").arg("-p").target(pane))
        .map_err(|error| tmux_problem("cannot read the pane", error))?;
    Ok(text.lines().map(str::to_owned).collect())
}

/// Returns the last lines of a dead pane. tmux adds a line to it, which may push the first ones
/// into the scrollback.
pub fn dead_pane_lines(town: &Town, pane: PaneId) -> Result<Vec<String>> {
    let text = town
        .server()
        .run(
            Command::new("capture-pane")
                .args(["-p", "-J", "-S", "-50"])
                .target(pane),
        )
        .map_err(|error| tmux_problem("cannot read the pane", error))?;
    let lines = text
        .lines()
        .filter(|line| !line.starts_with("Pane is dead"));
    Ok(lines.map(str::to_owned).collect())
}

/// Presses keys by their tmux names, and records the time, which for a program without hooks is the
/// only source of when its work began.
pub fn press(town: &Town, pane: PaneId, keys: &[String]) -> Result<()> {
    let now = town.clock().seconds().to_string();
    let note = Command::new("set-option").arg("-p").target(pane);
    let press = Command::new("send-keys").target(pane).arg("--");
    town.server()
        .run([
            note.args([tag::TYPED, &now]),
            press.args(keys.iter().cloned()),
        ])
        .map(drop)
        .map_err(|error| tmux_problem("cannot type into the pane", error))
}

/// Types a line into a shell and presses Enter. Only for panes that can hold nothing but a shell: a
/// container whose agent has not started.
pub(crate) fn type_line(town: &Town, pane: PaneId, line: &str) -> Result<()> {
    let type_text = Command::new("send-keys")
        .arg("-l")
        .target(pane)
        .args(["--", line]);
    let enter = Command::new("send-keys").target(pane).args(["--", "Enter"]);
    let leave_copy_mode = Command::new("copy-mode").arg("-q").target(pane);
    town.server()
        .run([leave_copy_mode, type_text, enter])
        .map(drop)
        .map_err(|error| tmux_problem("cannot type into the pane", error))
}

/// Returns the commands that press keys which are right whatever the screen shows, such as Ctrl-C;
/// for callers that press them in many panes at once.
pub fn key_presses(pane: PaneId, keys: &[String]) -> [Command; 2] {
    [
        Command::new("copy-mode").arg("-q").target(pane),
        Command::new("send-keys")
            .target(pane)
            .arg("--")
            .args(keys.iter().cloned()),
    ]
}

/// Takes one step towards the wanted row of an open dialog: moves the selection by one row, or
/// confirms it. The caller reads the screen again in between.
pub fn step_dialog(town: &Town, pane: PaneId, dialog: &OpenDialog, wanted: usize) -> Result<()> {
    let key = match wanted.cmp(&dialog.menu.marked) {
        std::cmp::Ordering::Equal => "Enter",
        std::cmp::Ordering::Greater => "Down",
        std::cmp::Ordering::Less => "Up",
    };
    press(town, pane, &[key.to_owned()])
}

/// Pastes a text in bracketed mode, with a unique buffer name. The text goes through tmux's socket
/// or standard input: there it has no length limit and appears in no argv.
///
/// tmux 3.3a crashes with all its sessions if the pane is dead: its process has ended, and the pane
/// stays. So tmux itself checks it, in the same step.
fn paste(town: &Town, pane: PaneId, text: &str) -> Result<()> {
    let buffer = format!("gt-{}", town.clock().new_id().simple());
    let leave_copy_mode = Command::new("copy-mode").arg("-q").target(pane);
    let load = Command::new("set-buffer").args(["-b", &buffer, "--", text]);
    let insert = Command::new("paste-buffer")
        .args(["-d", "-p", "-r", "-b", &buffer])
        .target(pane);
    let remove = Command::new("delete-buffer").args(["-b", &buffer]);
    let report = Command::new("display-message").args(["-p", PANE_IS_DEAD]);
    let refuse = [remove.to_line(), report.to_line()].join(" ; ");
    let checked = Command::new("if-shell").arg("-F").target(pane).args([
        "#{pane_dead}",
        &refuse,
        &insert.to_line(),
    ]);
    let said = town
        .server()
        .run_private([leave_copy_mode, load, checked])
        .map_err(|error| tmux_problem("cannot paste into the pane", error))?;
    match said.trim() == PANE_IS_DEAD {
        true => Err(Problem::conflict("the program has ended")),
        false => Ok(()),
    }
}

/// Output of the commands of [`paste`] if the pane is dead.
const PANE_IS_DEAD: &str = "pane is dead";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestTown;
    use gt_tmux::testing::wait_until;
    use std::time::Duration;

    /// A program may end between the last look at its screen and the paste.
    #[test]
    fn paste_into_a_dead_pane_fails_and_the_server_survives() {
        let stage = TestTown::new();
        let server = stage.town.server();
        let session = Command::new("new-session").args(["-d", "-s", "dead", "-P"]);
        let session = session.args(["-F", "#{pane_id}", "exec cat"]);
        let keep = Command::new("set-option").args(["-w", "-t", "=dead:", "remain-on-exit", "on"]);
        let made = server.run([session, keep]).unwrap();
        let pane: PaneId = made.trim().parse().unwrap();
        paste(&stage.town, pane, "hello").unwrap();
        let end = Command::new("send-keys").target(pane).args(["C-c"]);
        server.run(end).unwrap();
        wait_until("the pane is dead", Duration::from_secs(10), || {
            // tmux 3.3 may miss the end of a child until another child ends.
            server.run(Command::new("run-shell").arg("true")).unwrap();
            let ask = Command::new("display-message").arg("-p").target(pane);
            let said = server.run(ask.arg("#{pane_dead}")).unwrap();
            (said.trim() == "1").then_some(())
        });
        let problem = paste(&stage.town, pane, "hello").unwrap_err();
        assert_eq!(problem.message(), "the program has ended");
        let buffers = server.run(Command::new("list-buffers")).unwrap();
        assert_eq!(buffers, "", "nothing is left");
    }
}

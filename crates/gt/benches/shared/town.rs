//! A town full of tasks with idle agents, and a board that shows it in a terminal.

use crate::home::{self, Home};
use gt_tmux::{Command as Tmux, Row, Server, Socket};
use gt_town::terminal::containers::PaneRow;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub(crate) struct Town {
    home: Home,
    terminal: Server,
    first: String,
}

impl Town {
    /// Creates this number of tasks. Their demo agents have been idle for hours.
    pub(crate) fn new(agents: usize) -> Self {
        let home = Home::new("gtx");
        home.add_rig(1);
        let items: Vec<String> = (0..agents).map(|number| start(&home, number)).collect();
        let then = seconds() - 3 * 3600 - 1_000;
        for item in &items {
            // The board shows the age of a state in minutes for the first hour, and wakes up to
            // update it. With older states the board of an idle town does not wake up.
            let target = format!("={item}-az:");
            let since = [
                "set-option",
                "-t",
                &target,
                "@gt_state_since",
                &then.to_string(),
                ";",
                // Listings would read the copy of the tags.
                "set-option",
                "-u",
                "-t",
                &target,
                PaneRow::PACKED.expect("a copy").option,
            ];
            assert!(
                home.tmux(&since)
                    .status()
                    .is_ok_and(|status| status.success())
            );
        }
        let first = format!("{}-az", items[0]);
        // A mark in the title would take precedence over the reports of hooks.
        let title = ["select-pane", "-t", &format!("={first}:"), "-T", "no mark"];
        assert!(
            home.tmux(&title)
                .status()
                .is_ok_and(|status| status.success())
        );
        let socket = home.path("u");
        let mut command = home.command("tmux");
        command.arg("-u").arg("-S").arg(&socket);
        command.args([
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            "200",
            "-y",
            "50",
        ]);
        command.args([home::gt(), "board"]);
        assert!(command.status().is_ok_and(|status| status.success()));
        let terminal = Server::new(Socket::Path(socket)).with_config("/dev/null");
        Town {
            home,
            terminal,
            first,
        }
    }

    /// Reads the screen every millisecond until the condition holds, and returns the time at which
    /// it did.
    pub(crate) fn wait(&self, mut is_so: impl FnMut(&str) -> bool) -> Instant {
        let began = Instant::now();
        loop {
            let capture = Tmux::new("capture-pane").args(["-p", "-t", ":"]);
            let screen = self.terminal.run(capture).unwrap_or_default();
            if is_so(&screen) {
                return Instant::now();
            }
            assert!(
                began.elapsed() < Duration::from_secs(60),
                "not on the screen:\n{screen}"
            );
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    pub(crate) fn board_pid(&self) -> u32 {
        let pid = Tmux::new("display-message").args(["-p", "-t", ":", "#{pane_pid}"]);
        let pid = self.terminal.run(pid).unwrap_or_default();
        pid.trim().parse().expect("the board's process")
    }

    /// Starts a client in control mode on the town's server that receives no commands.
    pub(crate) fn bare_client(&self) -> Child {
        let target = format!("={}", self.first);
        let mut command = self.home.command("tmux");
        command.arg("-S").arg(self.home.path("s"));
        command.args(["-C", "attach-session", "-t", &target]);
        command.stdin(Stdio::piped()).spawn().expect("a client")
    }

    /// Runs the command of an agent's hook, with its report.
    pub(crate) fn signal(&self, event: &str) -> Child {
        let mut command = self
            .home
            .gt(&["signal", event, "--session", &self.first, "--strict"]);
        let mut child = command.stdin(Stdio::piped()).spawn().expect("a hook");
        let mut stdin = child.stdin.take().expect("its report");
        std::io::Write::write_all(&mut stdin, b"{}").expect("its report");
        child
    }

    pub(crate) fn display_message(&self) -> Command {
        self.home.tmux(&["display-message", "-p", "#{pid}"])
    }
}

impl Drop for Town {
    fn drop(&mut self) {
        let _ = self.terminal.run(Tmux::new("kill-server"));
    }
}

/// Creates a work item and starts its agent without a prompt.
fn start(home: &Home, number: usize) -> String {
    let title = format!("Something to do, number {number}");
    let made = home
        .gt(&["work", "create", &title, "--rig", "gastown", "--json"])
        .stdout(Stdio::piped())
        .output()
        .expect("gt runs");
    let item: serde_json::Value = serde_json::from_slice(&made.stdout).expect("an item");
    let id = item["id"].as_str().expect("its id").to_owned();
    home.ok(&["task", "start", &id, "--no-attach"]);
    id
}

fn seconds() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

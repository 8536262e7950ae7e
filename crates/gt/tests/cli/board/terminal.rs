//! A terminal that shows the board, on a private tmux server.

use crate::env::{TIMEOUT, TestEnv};
use gt_tmux::testing::wait_until_or;
use gt_tmux::{Command as Tmux, Server, Socket};
use std::path::PathBuf;

pub(crate) struct Terminal<'e> {
    env: &'e TestEnv,
    server: Server,
}

impl<'e> Terminal<'e> {
    /// Opens the board on a screen of this size.
    pub(crate) fn open(env: &'e TestEnv, width: u16, height: u16) -> Self {
        Self::named(env, "u", width, height, &[])
    }

    pub(crate) fn named(
        env: &'e TestEnv,
        name: &str,
        width: u16,
        height: u16,
        args: &[&str],
    ) -> Self {
        let gt = env!("CARGO_BIN_EXE_gt");
        let line = [&[gt, "board"], args].concat();
        Self::running(env, name, (width, height), &line)
    }

    /// Opens the board on a terminal that looks as if it were outside tmux.
    pub(crate) fn outside(env: &'e TestEnv, width: u16, height: u16) -> Self {
        let gt = env!("CARGO_BIN_EXE_gt");
        let line = ["env", "-u", "TMUX", "-u", "TMUX_PANE", gt, "board"];
        Self::running(env, "u", (width, height), &line)
    }

    /// Runs a command that shows the board.
    pub(crate) fn running(
        env: &'e TestEnv,
        name: &str,
        (width, height): (u16, u16),
        line: &[&str],
    ) -> Self {
        let socket: PathBuf = env.path(name);
        let mut command = env.command("tmux");
        command.arg("-u").arg("-S").arg(&socket);
        command.args(["-f", "/dev/null", "new-session", "-d"]);
        command.args(["-x", &width.to_string(), "-y", &height.to_string()]);
        command.args(line);
        assert!(command.status().unwrap().success());
        let server = Server::new(Socket::Path(socket)).with_config("/dev/null");
        let terminal = Terminal { env, server };
        terminal.wait("the board", |screen| screen.contains("Needs you"));
        terminal
    }

    pub(crate) fn press(&self, keys: &[&str]) {
        for key in keys {
            let send = Tmux::new("send-keys").args(["-t", ":", key]);
            self.server.run(send).unwrap();
        }
    }

    pub(crate) fn write(&self, text: &str) {
        let send = Tmux::new("send-keys").args(["-l", "-t", ":", text]);
        self.server.run(send).unwrap();
    }

    /// Pastes text as a terminal does: in brackets, with carriage returns for line breaks.
    pub(crate) fn paste(&self, text: &str) {
        let set = Tmux::new("set-buffer").args(["-b", "pasted", "--", text]);
        self.server.run(set).unwrap();
        let paste = Tmux::new("paste-buffer").args(["-p", "-d", "-b", "pasted", "-t", ":"]);
        self.server.run(paste).unwrap();
    }

    pub(crate) fn screen(&self) -> String {
        let capture = Tmux::new("capture-pane").args(["-p", "-t", ":"]);
        self.server.run(capture).unwrap_or_default()
    }

    /// Returns how often the threads of the board were scheduled.
    #[cfg(target_os = "linux")]
    pub(crate) fn wakeups(&self) -> u64 {
        let ask = Tmux::new("display-message").args(["-p", "-t", ":", "#{pane_pid}"]);
        let pid = self.server.run(ask).unwrap();
        let threads = std::fs::read_dir(format!("/proc/{}/task", pid.trim())).unwrap();
        let of_one = |thread: PathBuf| -> Option<u64> {
            let status = std::fs::read_to_string(thread.join("status")).ok()?;
            let line = |line: &str| {
                line.strip_prefix("voluntary_ctxt_switches:")
                    .map(str::to_owned)
            };
            status.lines().find_map(line)?.trim().parse().ok()
        };
        threads.filter_map(|it| of_one(it.unwrap().path())).sum()
    }

    /// Reports whether the terminal still has a pane.
    pub(crate) fn is_open(&self) -> bool {
        self.server.run(Tmux::new("list-panes").arg("-a")).is_ok()
    }

    #[track_caller]
    pub(crate) fn wait(&self, what: &str, is_there: impl Fn(&str) -> bool) {
        let matches = || is_there(&self.screen()).then_some(());
        wait_until_or(what, TIMEOUT, matches, || {
            let cards = self.env.gt(&["board", "--json"]);
            format!("{}\n{}", self.screen(), cards.stdout)
        });
    }

    #[track_caller]
    pub(crate) fn wait_text(&self, text: &str) {
        self.wait(text, |screen| screen.contains(text));
    }

    /// Moves the cursor to a card by filtering for its id. Other cards stay hidden afterwards.
    #[track_caller]
    pub(crate) fn find(&self, id: &str) {
        self.press(&["/", "C-u"]);
        self.wait_text(id);
        self.write(id);
        self.press(&["Enter"]);
    }

    /// Waits for a condition outside the screen; a timeout prints the screen.
    #[track_caller]
    pub(crate) fn until(&self, what: &str, is_so: impl Fn() -> bool) {
        self.wait(what, |_| is_so());
    }

    /// Opens the action menu of the card under the cursor, and presses a letter.
    #[track_caller]
    pub(crate) fn act(&self, mail: &str) {
        self.press(&["Space"]);
        self.wait_text("Start and work");
        self.press(&[mail]);
    }
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        let _ = self.server.run(Tmux::new("kill-server"));
    }
}

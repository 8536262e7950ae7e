//! A terminal on a private tmux server that runs one command, for commands that ask questions.

use crate::env::{TIMEOUT, TestEnv};
use gt_tmux::testing::wait_until_or;
use gt_tmux::{Command as Tmux, Server, Socket};

pub(crate) struct CommandTerminal {
    server: Server,
}

impl CommandTerminal {
    /// Runs `gt` on a screen of this size. The screen shows the exit code at the end.
    pub(crate) fn run(env: &TestEnv, (width, height): (u16, u16), args: &[&str]) -> Self {
        let socket = env.path("terminal");
        let mut command = env.command("tmux");
        command.arg("-u").arg("-S").arg(&socket);
        command.args(["-f", "/dev/null", "new-session", "-d"]);
        command.args(["-x", &width.to_string(), "-y", &height.to_string()]);
        // The shell stays, so that the screen can be read after the command.
        let script = "trap : INT; \"$0\" \"$@\"; echo \"exit code: $?\"; exec sleep 1000";
        command.args(["sh", "-c", script, env!("CARGO_BIN_EXE_gt")]);
        command.args(args);
        assert!(command.status().unwrap().success());
        CommandTerminal {
            server: Server::new(Socket::Path(socket)).with_config("/dev/null"),
        }
    }

    /// Types a line and presses Enter.
    pub(crate) fn answer(&self, text: &str) {
        if !text.is_empty() {
            let send = Tmux::new("send-keys").args(["-l", "-t", ":", text]);
            self.server.run(send).unwrap();
        }
        self.press("Enter");
    }

    pub(crate) fn press(&self, key: &str) {
        let send = Tmux::new("send-keys").args(["-t", ":", key]);
        self.server.run(send).unwrap();
    }

    pub(crate) fn screen(&self) -> String {
        let capture = Tmux::new("capture-pane").args(["-p", "-t", ":"]);
        self.server.run(capture).unwrap_or_default()
    }

    /// Waits until the screen contains a text, and returns the screen.
    #[track_caller]
    pub(crate) fn wait(&self, text: &str) -> String {
        wait_until_or(
            &format!("{text:?} on the screen"),
            TIMEOUT,
            || Some(self.screen()).filter(|screen| screen.contains(text)),
            || self.screen(),
        )
    }

    /// Waits for the end of the command, and returns the screen.
    #[track_caller]
    pub(crate) fn wait_end(&self, code: i32) -> String {
        self.wait(&format!("exit code: {code}\n"))
    }
}

impl Drop for CommandTerminal {
    fn drop(&mut self) {
        // The server may have ended.
        let _ = self.server.run(Tmux::new("kill-server"));
    }
}

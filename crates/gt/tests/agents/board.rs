//! The board with real programs: starting, answering, reviewing and stopping by its keys.

use crate::each;
use crate::stage::{Stage, TIMEOUT};
use gt_tmux::testing::{wait_until, wait_until_or};
use gt_tmux::{Command as Tmux, Server, Socket};
use serde_json::Value;

/// The board in a terminal on a private tmux server.
struct Board<'s> {
    stage: &'s Stage,
    server: Server,
}

impl<'s> Board<'s> {
    fn open(stage: &'s Stage) -> Self {
        let socket = stage.path("u");
        let status = stage
            .command("tmux")
            .arg("-u")
            .arg("-S")
            .arg(&socket)
            .args(["-f", "/dev/null", "new-session", "-d"])
            .args(["-x", "150", "-y", "45"])
            .args([env!("CARGO_BIN_EXE_gt"), "board"])
            .status();
        assert!(status.unwrap().success());
        let server = Server::new(Socket::Path(socket)).with_config("/dev/null");
        Board { stage, server }
    }

    fn press(&self, keys: &[&str]) {
        for key in keys {
            let send = Tmux::new("send-keys").args(["-t", ":", key]);
            self.server.run(send).unwrap();
        }
    }

    fn write(&self, text: &str) {
        let send = Tmux::new("send-keys").args(["-l", "-t", ":", text]);
        self.server.run(send).unwrap();
    }

    #[track_caller]
    fn shows(&self, text: &str) {
        let screen = || {
            let capture = Tmux::new("capture-pane").args(["-p", "-t", ":"]);
            self.server.run(capture).unwrap_or_default()
        };
        let matches = || screen().contains(text).then_some(());
        wait_until_or(text, TIMEOUT, matches, screen);
    }

    #[track_caller]
    fn act(&self, mail: &str) {
        self.press(&["Space"]);
        self.shows("Start and work");
        self.press(&[mail]);
    }
}

impl Drop for Board<'_> {
    fn drop(&mut self) {
        let _ = self.server.run(Tmux::new("kill-server"));
        let _ = self.stage.gt(&["down", "--all"]);
    }
}

#[test]
#[ignore = "needs the real programs: make test-agents"]
fn a_task_is_started_answered_and_stopped_by_keys() {
    each("board", |stage| {
        stage.tasks_have_its_environment();
        let id = &stage.work(stage.program().ask);
        let board = Board::open(stage);
        board.shows(id);
        board.act("S");
        board.shows("Needs you 1");
        board.shows("? waiting");
        let approved = stage.path(&format!("gastown-{id}/approved"));
        assert!(!approved.exists(), "no answer was given yet");
        board.act("y");
        board.shows("The number of an option");
        board.write("yes");
        board.press(&["Enter"]);
        wait_until("what was asked for", TIMEOUT, || {
            approved.exists().then_some(())
        });
        // The new file in the worktree is ready for review.
        board.shows("Review 1");
        let told = stage.ok(&[
            "events",
            "--about",
            id,
            "--type",
            "question,answer",
            "--json",
        ]);
        let told: Value = serde_json::from_str(&told).unwrap();
        let types = told.as_array().unwrap().iter().map(|it| it["type"].clone());
        assert_eq!(
            types.collect::<Vec<Value>>(),
            ["question", "answer"],
            "{told}"
        );
        board.act("x");
        board.press(&["y"]);
        board.shows("In progress 1");
        let shown = stage.ok(&["task", "show", id, "--json"]);
        assert!(
            shown.contains("\"stopped\"") || !shown.contains("\"pane\""),
            "{shown}"
        );
        assert!(approved.exists(), "its worktree stays");
    });
}

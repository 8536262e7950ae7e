//! Makes a program redraw its whole screen without a key: its window becomes a column narrower for a
//! moment.
//!
//! `resize-window` also fixes the size of the window, so the size policy is restored with the width.
//! tmux does both itself, even if this process dies. A tag of the window holds the previous
//! values meanwhile. tmux tests and sets it in one step, so that two repaints never overlap: the
//! second one would take the narrow window for the normal one. A repaint that was never undone is
//! undone by the next one.

use crate::terminal::containers::tmux_problem;
use crate::{Result, Town};
use gt_core::startup::tag::REPAINT;
use gt_tmux::{Command, PaneId};

/// Time that the window is narrower, in seconds: long enough for tmux to report both sizes.
const MOMENT: &str = "0.15";
/// Seconds after which a repaint counts as interrupted.
const INTERRUPTED_AFTER: i64 = 3;

/// Redraws the screen of a pane. Does nothing while another process does so.
pub(super) fn repaint(town: &Town, pane: PaneId) -> Result<()> {
    let problem = |error| tmux_problem("cannot redraw the pane", error);
    let ask = Command::new("display-message").arg("-p").target(pane);
    let policy = Command::new("show-options").arg("-wqv").target(pane);
    let answers = town
        .server()
        .run_each([
            ask.arg(format!("#{{window_id}} #{{window_width}} #{{{REPAINT}}}")),
            policy.arg("window-size"),
        ])
        .map_err(problem)?;
    let [facts, policy] = answers.as_slice() else {
        return Ok(());
    };
    let Some((window, facts)) = facts.trim_end().split_once(' ') else {
        return Ok(());
    };
    let (width, begun) = facts.split_once(' ').unwrap_or((facts, ""));
    let now = town.clock().seconds();
    let before = match begun {
        "" => WindowSize::new(width, policy.trim_end()),
        begun => {
            let interrupted = WindowSize::of_interrupted(begun, now);
            if let Some(size) = &interrupted {
                let undo = size.restore(window);
                town.server().run_private(undo).map_err(problem)?;
            }
            interrupted
        }
    };
    let Some(before) = before else {
        return Ok(());
    };
    let restore = before.restore(window).map(|command| command.to_line());
    let steps = [
        on_window("set-option", window).args([REPAINT, &before.mark(now)]),
        Command::new("run-shell").args(["-b", "-d", MOMENT, "-C", &restore.join(" ; ")]),
        resize(window, before.width - 1),
    ];
    let steps = steps.map(|command| command.to_line()).join(" ; ");
    let begin = Command::new("if-shell").args(["-F", "-t", window]).args([
        format!("#{{{REPAINT}}}"),
        String::new(),
        steps,
    ]);
    town.server().run_private(begin).map(drop).map_err(problem)
}

/// Normal size of a window.
#[derive(Debug, PartialEq, Eq)]
struct WindowSize {
    width: u32,
    /// The window's own `window-size`; `None` if it is inherited.
    policy: Option<String>,
}

impl WindowSize {
    /// Returns `None` if the window cannot become narrower.
    fn new(width: &str, policy: &str) -> Option<Self> {
        let width = width.parse().ok().filter(|width| *width > 1)?;
        let policy = (!policy.is_empty()).then(|| policy.to_owned());
        Some(WindowSize { width, policy })
    }

    /// Reads the option of a repaint. Returns `None` unless it was interrupted.
    fn of_interrupted(mark: &str, now: i64) -> Option<Self> {
        let mut words = mark.splitn(3, ' ');
        let begun: i64 = words.next()?.parse().ok()?;
        // A clock that was set back makes it appear in the future.
        let is_running = (0..INTERRUPTED_AFTER).contains(&(now - begun));
        let (width, policy) = (words.next()?, words.next().unwrap_or_default());
        (!is_running)
            .then(|| WindowSize::new(width, policy))
            .flatten()
    }

    fn mark(&self, now: i64) -> String {
        let policy = self.policy.as_deref().unwrap_or_default();
        format!("{now} {} {policy}", self.width)
    }

    fn restore(&self, window: &str) -> [Command; 3] {
        let policy = match &self.policy {
            Some(policy) => on_window("set-option", window).args(["window-size", policy]),
            None => on_window("set-option", window).args(["-u", "window-size"]),
        };
        let done = on_window("set-option", window).args(["-u", REPAINT]);
        [resize(window, self.width), policy, done]
    }
}

fn on_window(name: &'static str, window: &str) -> Command {
    Command::new(name).args(["-w", "-t", window])
}

fn resize(window: &str, width: u32) -> Command {
    Command::new("resize-window").args(["-t", window, "-x", &width.to_string()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Surroundings;
    use gt_tmux::testing::{TIMEOUT, TestServer, wait_until};

    struct Stage {
        town: Town,
        tmux: TestServer,
        pane: PaneId,
        _folder: tempfile::TempDir,
    }

    impl Stage {
        /// Makes a window of 90 columns.
        fn new() -> Self {
            let tmux = TestServer::new();
            let folder = tempfile::tempdir().unwrap();
            let root = folder.path().join("town");
            let socket = tmux.socket_path().display().to_string();
            Town::init(&root, None, &socket, "demo").unwrap();
            let around = Surroundings {
                env: [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into(),
                current_dir: root.clone(),
                ..Surroundings::default()
            };
            let town = Town::open(&root, around).unwrap();
            let new = Command::new("new-session").args(["-d", "-x", "90", "-y", "20"]);
            let new = new.args(["-P", "-F", "#{pane_id}", "cat"]);
            let pane = tmux.server().run(new).unwrap().trim().parse().unwrap();
            Stage {
                town,
                tmux,
                pane,
                _folder: folder,
            }
        }

        fn run(&self, command: Command) -> String {
            self.tmux.server().run(command).unwrap().trim().to_owned()
        }

        /// Returns the width, the window's own policy, and the mark of a repaint.
        fn size(&self) -> [String; 3] {
            let ask = |name: &'static str| Command::new(name).target(self.pane);
            [
                self.run(ask("display-message").args(["-p", "#{window_width}"])),
                self.run(ask("show-options").args(["-wqv", "window-size"])),
                self.run(ask("show-options").args(["-wqv", REPAINT])),
            ]
        }

        #[track_caller]
        fn await_size(&self, width: &str, policy: &str) {
            wait_until("the window has its size", TIMEOUT, || {
                (self.size() == [width, policy, ""]).then_some(())
            });
        }

        fn set(&self, option: &str, value: &str) {
            let set = Command::new("set-option").arg("-w").target(self.pane);
            self.run(set.args([option, value]));
        }
    }

    #[test]
    fn overlapping_repaints_leave_the_window_as_it_was() {
        let stage = Stage::new();
        for policy in ["", "largest"] {
            if !policy.is_empty() {
                stage.set("window-size", policy);
            }
            for _ in 0..3 {
                repaint(&stage.town, stage.pane).unwrap();
            }
            stage.await_size("90", policy);
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| repaint(&stage.town, stage.pane).unwrap());
                }
            });
            stage.await_size("90", policy);
        }
    }

    #[test]
    fn interrupted_repaint_is_undone_by_the_next() {
        let stage = Stage::new();
        let now = jiff::Timestamp::now().as_second();
        for begun in [now - INTERRUPTED_AFTER - 1, now + 3_600] {
            let window = stage.run(
                Command::new("display-message")
                    .arg("-p")
                    .target(stage.pane)
                    .arg("#{window_id}"),
            );
            stage.run(resize(&window, 89));
            stage.set(REPAINT, &format!("{begun} 90 "));
            assert_eq!(stage.size()[..2], ["89", "manual"]);
            repaint(&stage.town, stage.pane).unwrap();
            stage.await_size("90", "");
        }
    }

    #[test]
    fn mark_is_read_only_when_its_repaint_was_interrupted() {
        let size = WindowSize::new("90", "largest").unwrap();
        let mark = size.mark(100);
        assert_eq!(WindowSize::of_interrupted(&mark, 101), None);
        assert_eq!(WindowSize::of_interrupted(&mark, 104), Some(size));
        for broken in ["", "soon", "1", "1 x ", "1 1 "] {
            assert_eq!(WindowSize::of_interrupted(broken, 100), None, "{broken}");
        }
    }
}

//! The only place that types into a pane.
//!
//! Blind keys kill: a dialog may have "No, exit" marked, and Enter may approve
//! what an agent asks. So every key here follows a look at the screen, goes to
//! a pane by its id, and nothing is pressed where no known picture shows.

use crate::containers::tmux_problem;
use crate::lock::FileLock;
use crate::watch::PaneWatch;
use crate::{Result, Town, processes};
use gt_core::Problem;
use gt_core::harness::Preset;
use gt_core::screen::{self, OpenDialog};
use gt_core::state::State;
use gt_tmux::{Command, PaneId};
use std::time::{Duration, Instant};

/// How long another process may type into the same pane.
const LOCK_PATIENCE: Duration = Duration::from_secs(30);
/// How long a pasted text may take to appear, and a submitted one to be taken.
const SIGHT_PATIENCE: Duration = Duration::from_secs(5);

/// The pane that is typed into.
#[derive(Clone, Debug)]
pub struct Pane<'a> {
    pub id: PaneId,
    pub tty: &'a str,
    pub pid: u32,
    pub container: &'a str,
}

/// How a message was delivered.
#[derive(Clone, Copy, Debug)]
pub struct Delivery {
    pub id: uuid::Uuid,
    /// Whether the program was seen to take it.
    pub verified: bool,
    pub elapsed: Duration,
}

/// The visible lines of a pane.
pub fn look(town: &Town, pane: PaneId) -> Result<Vec<String>> {
    let text = town
        .server()
        .run(Command::new("capture-pane").arg("-p").target(pane))
        .map_err(|error| tmux_problem("cannot read the pane", error))?;
    Ok(text.lines().map(str::to_owned).collect())
}

/// What a dead pane showed last. tmux adds a line of its own to it, which may push
/// the first ones into the scrollback.
pub fn look_back(town: &Town, pane: PaneId) -> Result<Vec<String>> {
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

/// Presses keys by their tmux names.
pub fn press(town: &Town, pane: PaneId, keys: &[String]) -> Result<()> {
    town.server()
        .run(
            Command::new("send-keys")
                .target(pane)
                .args(keys.iter().cloned()),
        )
        .map(drop)
        .map_err(|error| tmux_problem("cannot type into the pane", error))
}

/// The commands that press keys which are right whatever the screen shows, such
/// as Ctrl-C; for callers that press them in many panes at once.
pub fn key_presses(pane: PaneId, keys: &[String]) -> [Command; 2] {
    [
        Command::new("copy-mode").arg("-q").target(pane),
        Command::new("send-keys")
            .target(pane)
            .args(keys.iter().cloned()),
    ]
}

/// Takes one step towards the wanted row of an open dialog: moves the mark by
/// one, or confirms when it stands there. The caller looks again in between.
pub fn step_dialog(town: &Town, pane: PaneId, dialog: &OpenDialog, wanted: usize) -> Result<()> {
    let key = match wanted.cmp(&dialog.menu.marked) {
        std::cmp::Ordering::Equal => "Enter",
        std::cmp::Ordering::Greater => "Down",
        std::cmp::Ordering::Less => "Up",
    };
    press(town, pane, &[key.to_owned()])
}

/// Gives an idle agent a message: pasted, seen on the screen, then submitted.
pub fn deliver(
    town: &Town,
    pane: &Pane<'_>,
    preset: &Preset,
    message: &str,
    wait_idle: Duration,
) -> Result<Delivery> {
    let began = Instant::now();
    let message = sanitize(message);
    if message.trim().is_empty() {
        return Err(Problem::usage("the message is empty"));
    }
    let lock = town
        .runtime_dir()
        .join("locks")
        .join(format!("{}.inject.lock", pane.container));
    let _lock = FileLock::take(&lock, LOCK_PATIENCE)?;
    let mut watch = PaneWatch::new(pane.tty, processes::hold_one(pane.pid));
    await_idle(town, pane, preset, &mut watch, wait_idle)?;
    let before = look(town, pane.id)?;
    paste(town, pane.id, &message)?;
    watch.be_attentive();
    let arrived = await_screen(town, pane, &mut watch, |lines| {
        shows(lines, &before, &message)
    })?;
    if arrived.is_none() {
        return Err(Problem::failed(format!(
            "the message did not appear in {}, so it was not submitted",
            pane.container
        ))
        .hint(format!("look at it: `gt attach {}`", pane.container)));
    }
    press(town, pane.id, &["Enter".to_owned()])?;
    watch.be_attentive();
    let with_text = arrived.unwrap_or_default();
    let taken = await_screen(town, pane, &mut watch, |lines| {
        matches!(screen::read(lines, preset), Some((State::Busy, _))) || lines != with_text
    })?;
    Ok(Delivery {
        id: uuid::Uuid::now_v7(),
        verified: taken.is_some(),
        elapsed: began.elapsed(),
    })
}

fn await_idle(
    town: &Town,
    pane: &Pane<'_>,
    preset: &Preset,
    watch: &mut PaneWatch,
    patience: Duration,
) -> Result<()> {
    let deadline = Instant::now() + patience;
    loop {
        let lines = look(town, pane.id)?;
        let state = screen::read(&lines, preset).map(|(state, _)| state);
        if state == Some(State::Idle) {
            return Ok(());
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            let doing = state.map_or("not at its prompt", State::word);
            return Err(Problem::conflict(format!(
                "{} is {doing}; nothing was typed",
                pane.container
            ))
            .hint(
                "Enter could approve what it asks: wait until it is idle, or `gt attach` to it",
            ));
        }
        town.around().cancel.check()?;
        watch.wait(left.min(Duration::from_millis(500)));
    }
}

/// Waits until the screen satisfies the condition, and gives that screen.
fn await_screen(
    town: &Town,
    pane: &Pane<'_>,
    watch: &mut PaneWatch,
    wanted: impl Fn(&[String]) -> bool,
) -> Result<Option<Vec<String>>> {
    let deadline = Instant::now() + SIGHT_PATIENCE;
    loop {
        let lines = look(town, pane.id)?;
        if wanted(&lines) {
            return Ok(Some(lines));
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(None);
        }
        watch.wait(left.min(Duration::from_millis(250)));
    }
}

/// Whether the message, or the placeholder that programs show for a long one,
/// stands on the screen and did not before.
fn shows(lines: &[String], before: &[String], message: &str) -> bool {
    let beginning: String = message
        .lines()
        .find(|line| !line.trim().is_empty())
        .unwrap_or_default()
        .trim()
        .chars()
        .take(20)
        .collect();
    let count =
        |lines: &[String], text: &str| lines.iter().filter(|line| line.contains(text)).count();
    count(lines, &beginning) > count(before, &beginning)
        || count(lines, "[Pasted ") > count(before, "[Pasted ")
}

/// A bracketed paste under a buffer name of its own. The text goes through
/// standard input: it has no limit there and shows in no argv.
fn paste(town: &Town, pane: PaneId, message: &str) -> Result<()> {
    let buffer = format!("gt-{}", uuid::Uuid::now_v7().simple());
    let leave_copy_mode = Command::new("copy-mode").arg("-q").target(pane);
    let load = Command::new("set-buffer").args(["-b", &buffer, "--", message]);
    let insert = Command::new("paste-buffer")
        .args(["-d", "-p", "-r", "-b", &buffer])
        .target(pane);
    town.server()
        .run_private([leave_copy_mode, load, insert])
        .map(drop)
        .map_err(|error| tmux_problem("cannot paste into the pane", error))
}

/// Removes what a terminal would act on: control characters and the sequence
/// that ends a bracketed paste. Line ends become plain ones.
fn sanitize(message: &str) -> String {
    message
        .replace("\r\n", "\n")
        .replace('\r', "\n")
        .replace("\u{1b}[201~", "")
        .chars()
        // Programs show a tab as blanks, and would not be seen to have it.
        .map(|c| if c == '\t' { ' ' } else { c })
        .filter(|c| !c.is_control() || *c == '\n')
        .collect::<String>()
        .trim_end()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_a_terminal_acts_on_is_left() {
        assert_eq!(
            sanitize("a\r\nb\u{1b}[201~\rc\u{7}\u{3}\td\n\n"),
            "a\nb\nc d"
        );
        assert_eq!(sanitize("\u{1b}\u{1b}[201~[201~x"), "[201~x");
    }

    #[test]
    fn an_old_line_on_the_screen_is_not_taken_for_the_new_one() {
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        let before = lines("> check your hook\n❯ ");
        assert!(!shows(&before, &before, "check your hook"));
        assert!(shows(
            &lines("> check your hook\n❯ check your hook"),
            &before,
            "check your hook"
        ));
        assert!(shows(
            &lines("> check your hook\n❯ [Pasted text #1 +9 lines]"),
            &before,
            "long"
        ));
    }
}

//! Records the end of an adopted program that runs under a person's shell. tmux reports no event
//! for it, and its exit status is unknown.
//!
//! Two sources distinguish a clean exit from a crash: the program's own hook (`SessionEnd`), which
//! leaves a tag, and the text that some programs print on exit. Without either, the end counts as a
//! crash, as for every process whose exit status is unknown.

use crate::base::{callback, processes};
use crate::catalog::harnesses;
use crate::lifecycle::sync;
use crate::records::sessions::Sessions;
use crate::terminal::adopted::Note;
use crate::terminal::containers::{Container, tmux_problem};
use crate::{Result, Town};
use gt_core::startup::tag;
use gt_core::{adopt as core, signal};
use gt_tmux::{Command, SessionName};
use serde_json::Value;
use std::time::Duration;

/// Maximum wait for the exit of a program that has reported its end.
const EXIT_TIMEOUT: Duration = Duration::from_secs(60);

/// Records the ends of adopted programs and releases their containers. If all programs run, this
/// only reads the notes.
pub fn settle(town: &Town) {
    if Note::all(town).iter().any(|note| !note.program_lives()) {
        // The next call retries.
        let _ = sync::sync(town, &Sessions::of(town), false);
    }
}

/// Waits until the process has ended, and then records its end.
pub fn settle_after(town: &Town, pid: u32) {
    let handle = processes::hold_one(pid);
    drop(processes::wait_all(
        handle.into_iter().collect(),
        EXIT_TIMEOUT,
    ));
    settle(town);
}

/// Records that the program in this container is about to exit, or that it continues after all.
pub fn note_end(home: &Town, container: &str, event: signal::Event, report: &Value) -> Result<()> {
    let value = match event {
        signal::Event::SessionEnd if core::ends_program(report) => "1",
        signal::Event::SessionStart | signal::Event::Prompt => "",
        _ => return Ok(()),
    };
    let Ok(target) = SessionName::try_from(container) else {
        return Ok(());
    };
    let set = Command::new("set-option").target(target.clone());
    let ask = Command::new("display-message").arg("-p").target(target);
    let answer = home
        .server()
        .run([
            set.args([tag::LEFT, value]),
            ask.arg(format!("#{{{}}}", tag::ADOPTED)),
        ])
        .map_err(|error| tmux_problem("cannot tag the container", error))?;
    let pid = answer.split(' ').next().filter(|_| value == "1");
    if let Some(pid) = pid {
        // The hook must not wait: the program exits only after its hook has returned.
        callback::apart(home, &["sync", "--ended", pid.trim()]);
    }
    Ok(())
}

/// Returns whether the screen of an ended program shows a clean exit.
pub(super) fn left_by_screen(town: &Town, container: &Container) -> bool {
    let row = container.pane();
    let Ok(preset) = harnesses::resolve(town, &row.tag_harness) else {
        return false;
    };
    let preset = preset.value;
    if preset.screen.farewell.is_empty() || row.tag_harness_session.is_empty() {
        return false;
    }
    let capture = Command::new("capture-pane").args(["-p", "-J", "-S", "-200"]);
    let shown = town.server().run(capture.target(row.pane));
    shown.is_ok_and(|shown| core::shows_farewell(&preset, &shown, &row.tag_harness_session))
}

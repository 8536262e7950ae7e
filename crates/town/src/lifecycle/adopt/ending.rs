//! Records the end of an adopted program that runs under a person's shell. tmux reports no event
//! for it, and its exit status is unknown.
//!
//! Two sources distinguish a clean exit from a crash: the program's own hook (`SessionEnd`), which
//! leaves a tag, and the text that some programs print on exit. Without either, the end counts as a
//! crash, as for every process whose exit status is unknown.

use crate::base::callback::{self, Call};
use crate::terminal::containers::{self, tmux_problem};
use crate::{Result, Town};
use gt_core::startup::tag;
use gt_core::{adopt as core, signal};
use gt_tmux::{Batch, Command, SessionName};
use serde_json::Value;

/// Records that the program in this container is about to exit, or that it continues after all.
pub fn note_end(
    home: &Town,
    container: &str,
    event: signal::HookEvent,
    report: &Value,
) -> Result<()> {
    let value = match event {
        signal::HookEvent::SessionEnd if core::ends_program(report) => "1",
        signal::HookEvent::SessionStart | signal::HookEvent::Prompt => "",
        _ => return Ok(()),
    };
    let Ok(target) = SessionName::try_from(container) else {
        return Ok(());
    };
    let set = Command::new("set-option").target(target.clone());
    let ask = Command::new("display-message").arg("-p");
    let ask = ask.target(target.clone());
    let batch = Batch::from(set.args([tag::LEFT, value]))
        .then_all(containers::pack(target))
        .then(ask.arg(format!("#{{{}}}", tag::ADOPTED)));
    let answer = home
        .server()
        .run(batch)
        .map_err(|error| tmux_problem("cannot tag the container", error))?;
    let pid = answer.split(' ').next().filter(|_| value == "1");
    if let Some(pid) = pid {
        // The hook must not wait: the program exits only after its hook has returned.
        let [internal, record_end] = Call::RecordEnd.words();
        callback::start_detached(home, &[internal, record_end, pid.trim()]);
    }
    Ok(())
}

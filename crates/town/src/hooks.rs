//! Our hooks in the agent programs.
//!
//! Each program gets them by its command line or its environment, for this one
//! process: the user's own settings and the repository stay as they are, and the
//! user's own hooks run as well. Each hook calls `gt signal`, which never fails and
//! never prints, so that no agent is held up by it.

mod claude;
mod codex;
mod opencode;

use crate::{Result, Town};
use gt_core::handoff::COMPACTION;
use gt_core::harness::Preset;
use gt_core::role::OnCompact;
use gt_core::shell;

/// What a program is started with, so that it calls us.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wiring {
    pub args: Vec<String>,
    pub env: Vec<(String, String)>,
}

/// Wires a program that has hooks and whose preset says how.
pub fn wire(town: &Town, preset: &Preset, on_compact: OnCompact) -> Result<Wiring> {
    match preset.hooks.installer.as_deref() {
        Some("claude") => claude::wire(town, preset, on_compact),
        Some("codex") => Ok(codex::wire(town)),
        Some("opencode") => opencode::wire(town),
        _ => Ok(Wiring::default()),
    }
}

/// A shell line that calls us and does nothing else: what a hook prints, and how it
/// ends, some programs take for a message to the model.
fn shell_line(town: &Town) -> String {
    calling(town, "signal >/dev/null 2>&1")
}

/// The same for a session that begins: what is printed here, the model is told.
fn prime_line(town: &Town) -> String {
    calling(town, "prime --hook 2>/dev/null")
}

/// The same before a context is compacted.
fn compact_line(town: &Town, on_compact: OnCompact) -> Option<String> {
    let mode = match on_compact {
        OnCompact::Auto => "--auto",
        OnCompact::Cycle => "--cycle",
        OnCompact::Nothing => return None,
    };
    let command = format!("handoff {mode} --reason {COMPACTION} >/dev/null 2>&1");
    Some(calling(town, &command))
}

fn calling(town: &Town, command: &str) -> String {
    let gt = shell::quote(&town.around().gt.to_string_lossy());
    format!("{gt} {command} || true")
}

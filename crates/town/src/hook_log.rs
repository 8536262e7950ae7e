//! `.runtime/hooks.log`: what went wrong in calls that nobody watches.
//!
//! Hooks of agent programs and of tmux call `gt`, and nobody reads what it prints. Their
//! failures are kept here, a line each, for a person and for `gt doctor`. It begins anew
//! when it is long.

use crate::Town;
use gt_core::Problem;
use jiff::Timestamp;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

/// So many bytes, and then it begins anew.
const LONGEST: u64 = 256 * 1024;

pub(crate) fn path(town: &Town) -> PathBuf {
    town.runtime_dir().join("hooks.log")
}

/// Keeps a failure of a call of this name. Where even that fails nobody is there to hear
/// of it.
pub fn note(town: &Town, call: &str, problem: &Problem) {
    write(town, call, &problem.line());
}

/// Keeps what did not go as wished.
pub fn warn(town: &Town, call: &str, warning: &str) {
    write(town, call, warning);
}

fn write(town: &Town, call: &str, text: &str) {
    let path = path(town);
    if path.metadata().is_ok_and(|meta| meta.len() > LONGEST) {
        let _ = fs::remove_file(&path);
    }
    // One line in one write: calls may fail at the same time.
    let text = text.replace(char::is_control, " ");
    let line = format!("{} {call}: {text}\n", Timestamp::now());
    let mut options = OpenOptions::new();
    let file = options.create(true).append(true).mode(0o600).open(path);
    let _ = file.and_then(|mut file| file.write_all(line.as_bytes()));
}

/// The lines since then, the oldest first.
pub(crate) fn since(town: &Town, then: Timestamp) -> Vec<String> {
    let bytes = fs::read(path(town)).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let is_recent = |line: &&str| {
        let at = line.split(' ').next().and_then(|at| at.parse().ok());
        at.is_some_and(|at: Timestamp| at >= then)
    };
    text.lines().filter(is_recent).map(str::to_owned).collect()
}

//! `.runtime/hooks.log`: failures of calls that run unattended.
//!
//! Hooks of agent programs and of tmux call `gt`, and its output is discarded. Failures are logged
//! here, one line each, for people and for `gt doctor`. The log restarts when it exceeds its
//! maximum size.

use crate::Town;
use gt_core::Problem;
use jiff::Timestamp;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

/// Maximum size in bytes, after which the log restarts.
const LONGEST: u64 = 256 * 1024;

pub(crate) fn path(town: &Town) -> PathBuf {
    town.runtime_dir().join("hooks.log")
}

/// Logs a failure of the call with this name. A failure to log is ignored.
pub fn note(town: &Town, call: &str, problem: &Problem) {
    write(town, call, &problem.line());
}

/// Logs a warning.
pub fn warn(town: &Town, call: &str, warning: &str) {
    write(town, call, warning);
}

fn write(town: &Town, call: &str, text: &str) {
    let path = path(town);
    if path.metadata().is_ok_and(|meta| meta.len() > LONGEST) {
        let _ = fs::remove_file(&path);
    }
    // One line in one write: concurrent calls may log at the same time.
    let text = text.replace(char::is_control, " ");
    let line = format!("{} {call}: {text}\n", town.clock().now());
    let mut options = OpenOptions::new();
    let file = options.create(true).append(true).mode(0o600).open(path);
    let _ = file.and_then(|mut file| file.write_all(line.as_bytes()));
}

/// Returns the lines since then, oldest first.
pub(crate) fn since(town: &Town, then: Timestamp) -> Vec<String> {
    let bytes = fs::read(path(town)).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let is_recent = |line: &&str| {
        let at = line.split(' ').next().and_then(|at| at.parse().ok());
        at.is_some_and(|at: Timestamp| at >= then)
    };
    text.lines().filter(is_recent).map(str::to_owned).collect()
}

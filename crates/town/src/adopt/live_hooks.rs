//! Our hooks in the settings of a program that runs and reads them again.
//!
//! The file is the person's own: what stands there stays, and only our own hook is taken
//! out again. Other programs in the same folder call the hook as well; it finds no container
//! of theirs and says nothing.

use crate::{Result, Town, files};
use gt_core::harness::Preset;
use gt_core::{Problem, adopt as core, shell};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Events that tell the state of an agent. The beginning of a conversation is only noted:
/// a person's program is told nothing that the person did not ask for.
const EVENTS: [&str; 9] = [
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PermissionRequest",
    "PostToolUse",
    "Notification",
    "Stop",
    "StopFailure",
    "SessionEnd",
];
/// Seconds after which the program goes on without us.
const TIMEOUT_SECONDS: u32 = 5;

pub(super) struct Installed {
    pub(super) path: PathBuf,
    pub(super) command: String,
}

/// Writes our hooks where a running program reads them. `None` if it reads none.
pub(super) fn install(
    town: &Town,
    preset: &Preset,
    folder: Option<&Path>,
) -> Result<Option<Installed>> {
    let (Some(file), Some(folder)) = (&preset.hooks.live, folder) else {
        return Ok(None);
    };
    let path = folder.join(file);
    // A link stays one: what it points to is changed.
    let path = path.canonicalize().unwrap_or(path);
    let before = read(&path)?;
    let gt = shell::quote(&town.around().gt.to_string_lossy());
    let root = shell::quote(town.root_text());
    let command = format!("{gt} --town {root} signal --adopted >/dev/null 2>&1 || true");
    let after = core::with_hooks(&before, &EVENTS, &command, TIMEOUT_SECONDS)
        .ok_or_else(|| not_understood(&path))?;
    if after != before {
        write(&path, &after)?;
    }
    Ok(Some(Installed { path, command }))
}

/// Takes our hooks out again. A file that held nothing else goes, and so does its folder
/// if it is empty.
pub(super) fn remove(path: &Path, command: &str) -> Result<()> {
    let before = read(path)?;
    match core::without_hooks(&before, command) {
        Some(after) if after == before => Ok(()),
        Some(after) => write(path, &after),
        None => {
            files::remove_if_there(path)?;
            // One with other files in it stays.
            let _ = path.parent().map(std::fs::remove_dir);
            Ok(())
        }
    }
}

fn read(path: &Path) -> Result<Value> {
    match files::read_if_there(path)? {
        None => Ok(Value::Null),
        Some(text) if text.trim().is_empty() => Ok(Value::Null),
        Some(text) => serde_json::from_str(&text).map_err(|_| not_understood(path)),
    }
}

fn write(path: &Path, settings: &Value) -> Result<()> {
    files::write_whole(path, format!("{settings:#}\n").as_bytes())
}

fn not_understood(path: &Path) -> Problem {
    Problem::failed(format!(
        "no hooks are installed: {} is not in the expected form",
        path.display()
    ))
}

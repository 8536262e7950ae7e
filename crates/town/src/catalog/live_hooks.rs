//! Installs our hooks in the settings file of a running program that rereads the file.
//!
//! The file belongs to the person: its contents stay, and a removal deletes only our own hooks.
//! Programs that are not adopted read the same file and call the hooks as well; `gt` finds no
//! container for them and reports nothing.

use crate::base::files;
use crate::{Result, Town};
use gt_core::harness::Preset;
use gt_core::{Problem, adopt as core, shell};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The program's events that get a hook. Our hook prints nothing at `SessionStart`: a program that
/// a person started gets no context that the person did not ask for.
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
/// Seconds after which the program continues without our hook.
const TIMEOUT_SECONDS: u32 = 5;

/// Our hook, and the file that gets it.
pub(crate) struct LiveHooks {
    pub(crate) path: PathBuf,
    pub(crate) command: String,
}

/// Returns our hook for the file that a running program rereads; `None` if the program has no such
/// file.
pub(crate) fn plan(town: &Town, preset: &Preset, folder: Option<&Path>) -> Option<LiveHooks> {
    let path = folder?.join(preset.hooks.live.as_ref()?);
    // If the path is a symbolic link, the file that it points to is changed and the link stays.
    let path = path.canonicalize().unwrap_or(path);
    let gt = shell::quote(&town.around().gt.to_string_lossy());
    let root = shell::quote(town.root_text());
    let command = format!("{gt} --town {root} signal --adopted >/dev/null 2>&1 || true");
    Some(LiveHooks { path, command })
}

/// Writes our hooks to the file.
pub(crate) fn install(hooks: &LiveHooks) -> Result<()> {
    let before = read(&hooks.path)?;
    let after = core::with_hooks(&before, &EVENTS, &hooks.command, TIMEOUT_SECONDS)
        .ok_or_else(|| not_understood(&hooks.path))?;
    match after == before {
        true => Ok(()),
        false => write(&hooks.path, &after),
    }
}

/// Removes our hooks. Deletes the file if it held nothing else, and its folder if that is empty.
pub(crate) fn remove(path: &Path, command: &str) -> Result<()> {
    if !path.exists() {
        return Ok(());
    }
    let before = read(path)?;
    match core::without_hooks(&before, command) {
        Some(after) if after == before => Ok(()),
        Some(after) => write(path, &after),
        None => {
            files::remove_if_there(path)?;
            // Fails if the folder holds other files: then it stays.
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

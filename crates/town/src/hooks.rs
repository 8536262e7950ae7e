//! Our hooks in the agent programs' own settings.
//!
//! Programs that take a settings file on their command line get one of ours: the
//! user's own settings and repository stay as they are. Each hook calls
//! `gt signal`, which never fails and never prints, so that no agent is held up
//! by it.

use crate::{Result, Town, files};
use gt_core::harness::Preset;
use serde_json::{Map, json};

/// The events that tell the state of an agent.
const EVENTS: &[&str] = &[
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PermissionRequest",
    "PostToolUse",
    "Notification",
    "Stop",
    "StopFailure",
    "PreCompact",
    "SessionEnd",
];

/// Writes the settings file for a program that takes one, and gives its path.
pub fn settings_file(town: &Town, preset: &Preset) -> Result<Option<String>> {
    let takes_one = !preset.command.settings.is_empty();
    if preset.hooks.installer.as_deref() != Some("claude") || !takes_one {
        return Ok(None);
    }
    let gt = town.around().gt.to_string_lossy().replace('\'', "'\\''");
    let command = format!("'{gt}' signal >/dev/null 2>&1 || true");
    let hook = json!([{"hooks": [{"type": "command", "command": command}]}]);
    let hooks: Map<String, _> = EVENTS
        .iter()
        .map(|event| ((*event).to_owned(), hook.clone()))
        .collect();
    let text = format!("{:#}\n", json!({"hooks": hooks}));
    let path = town.runtime_dir().join("hooks").join("claude.json");
    if files::read_if_there(&path)?.as_deref() != Some(&text) {
        files::write_whole(&path, text.as_bytes())?;
    }
    Ok(Some(path.display().to_string()))
}

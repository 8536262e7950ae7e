//! Claude Code takes a settings file on its command line and adds it to the user's.

use super::{Wiring, shell_line};
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

pub(super) fn wire(town: &Town, preset: &Preset) -> Result<Wiring> {
    let hook = json!([{"hooks": [{"type": "command", "command": shell_line(town)}]}]);
    let hooks: Map<String, _> = EVENTS
        .iter()
        .map(|event| ((*event).to_owned(), hook.clone()))
        .collect();
    let text = format!("{:#}\n", json!({"hooks": hooks}));
    let path = town.runtime_dir().join("hooks/claude.json");
    files::write_if_changed(&path, &text)?;
    let path = path.display().to_string();
    let words = preset.command.settings.iter();
    Ok(Wiring {
        args: words.map(|word| word.replace("{file}", &path)).collect(),
        env: Vec::new(),
    })
}

//! Hooks of Claude Code: it takes a settings file on its command line and merges it with the
//! user's.

use super::{Wiring, compact_line, file, prime_line, shell_line};
use crate::base::files;
use crate::{Result, Town};
use gt_core::harness::Preset;
use gt_core::role::OnCompact;
use serde_json::{Map, json};

/// Seconds after which the program continues without the hook. `gt` gives up before that.
const SIGNAL_LIMIT: u32 = 5;
const PRIME_LIMIT: u32 = 10;
/// Collecting the state takes longer.
const COMPACT_LIMIT: u32 = 30;

/// The events that report the state of an agent.
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

pub(super) fn wire(town: &Town, preset: &Preset, on_compact: OnCompact) -> Result<Wiring> {
    let command =
        |line: String, limit: u32| json!({"type": "command", "command": line, "timeout": limit});
    let signal = || command(shell_line(town), SIGNAL_LIMIT);
    let hooks: Map<String, _> = EVENTS
        .iter()
        .map(|event| {
            let commands = match *event {
                "SessionStart" => vec![command(prime_line(town), PRIME_LIMIT)],
                "PreCompact" => {
                    let handoff = compact_line(town, on_compact);
                    let handoff = handoff.map(|line| command(line, COMPACT_LIMIT));
                    [signal()].into_iter().chain(handoff).collect()
                }
                _ => vec![signal()],
            };
            ((*event).to_owned(), json!([{"hooks": commands}]))
        })
        .collect();
    let text = format!("{:#}\n", json!({"hooks": hooks}));
    let path = file(town, "claude", "json", on_compact);
    files::write_if_changed(&path, &text)?;
    let path = path.display().to_string();
    let words = preset.command.settings.iter();
    Ok(Wiring {
        args: words.map(|word| word.replace("{file}", &path)).collect(),
        env: Vec::new(),
    })
}

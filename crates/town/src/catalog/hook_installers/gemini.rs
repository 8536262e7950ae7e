//! Hooks of Gemini CLI: it reads the defaults of all settings from a file that a variable names,
//! and merges the hooks of the user and the repository into them.
//!
//! It reads that file only if root alone can change the file and every folder above it. For other
//! users it has no way to set hooks for one process, so their agents run without hooks, and their
//! state comes from the title. The machine's own defaults are kept, under the same condition.
//! Measured on 0.61.0.

use super::{Wiring, calling, compact_line, file, shell_line};
use crate::base::files;
use crate::{Result, Surroundings, Town};
use gt_core::role::OnCompact;
use serde_json::{Value, json};
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const VARIABLE: &str = "GEMINI_CLI_SYSTEM_DEFAULTS_PATH";
/// Variable that names the system settings. The defaults are beside that file if no variable names
/// them.
const SETTINGS_VARIABLE: &str = "GEMINI_CLI_SYSTEM_SETTINGS_PATH";
const MACHINE: &str = if cfg!(target_os = "macos") {
    "/Library/Application Support/GeminiCli/settings.json"
} else {
    "/etc/gemini-cli/settings.json"
};
/// The name that the program shows while the hook runs, and with which a user can disable it.
const NAME: &str = "gt";
/// Milliseconds after which the program continues without the hook. `gt` gives up before that.
const SIGNAL_LIMIT_MS: u32 = 5_000;
const PRIME_LIMIT_MS: u32 = 10_000;
/// Collecting the state takes longer.
const COMPACT_LIMIT_MS: u32 = 30_000;

/// The events with a hook of ours.
const EVENTS: &[&str] = &[
    "SessionStart",
    "BeforeAgent",
    "BeforeTool",
    "AfterTool",
    "Notification",
    "AfterAgent",
    "PreCompress",
    "SessionEnd",
];
/// Trigger of a compression by a person. The program announces an automatic compression before
/// every turn, even if the context is short enough.
const ON_REQUEST: &str = "manual";

pub(super) fn fits(town: &Town) -> bool {
    // The program expands variables in the settings, which would change such a path.
    let is_plain = !town.around().gt.to_string_lossy().contains('$');
    is_plain && only_root_changes(&town.runtime_dir()) && defaults(town.around()).is_some()
}

pub(super) fn wire(town: &Town, on_compact: OnCompact) -> Result<Wiring> {
    let merged = defaults(town.around())
        .and_then(|defaults| merge(defaults, |event| groups_of(event, town, on_compact)));
    let Some(settings) = merged else {
        return Ok(Wiring::default());
    };
    let path = file(town, "gemini", "json", on_compact);
    files::write_if_changed(&path, &format!("{settings:#}\n"))?;
    Ok(Wiring {
        args: Vec::new(),
        env: vec![(VARIABLE.to_owned(), path.display().to_string())],
    })
}

/// Returns the machine's own defaults; `None` if hooks cannot be added to them.
fn defaults(around: &Surroundings) -> Option<Value> {
    let path = match around.var(VARIABLE) {
        Some(path) => PathBuf::from(path),
        None => {
            let settings = around.var(SETTINGS_VARIABLE).unwrap_or(MACHINE);
            Path::new(settings).with_file_name("system-defaults.json")
        }
    };
    // A file that the program would not read must not be copied into ours.
    if !path.exists() || !only_root_changes(&path) {
        return Some(json!({}));
    }
    serde_json::from_str(&fs::read_to_string(&path).ok()?).ok()
}

/// Returns the settings with our hooks added.
fn merge(mut settings: Value, ours: impl Fn(&str) -> Vec<Value>) -> Option<Value> {
    let hooks = settings
        .as_object_mut()?
        .entry("hooks")
        .or_insert(json!({}));
    let hooks = hooks.as_object_mut()?;
    for event in EVENTS {
        let groups = hooks.entry(*event).or_insert(json!([])).as_array_mut()?;
        groups.extend(ours(event));
    }
    Some(settings)
}

fn groups_of(event: &str, town: &Town, on_compact: OnCompact) -> Vec<Value> {
    let group = |line: String, limit: u32| {
        let hook = json!({"name": NAME, "type": "command", "command": line, "timeout": limit});
        json!({"hooks": [hook]})
    };
    match event {
        // The program does not wait for its start hook, and would send the first prompt without the
        // hook's output. It does wait for this hook. The answer must be JSON: plain text is shown
        // to the person.
        "BeforeAgent" => vec![group(
            calling(town, "prime --hook --json 2>/dev/null"),
            PRIME_LIMIT_MS,
        )],
        // No event reports its end, so the state comes from the title meanwhile.
        "PreCompress" => compact_line(town, on_compact)
            .map(|line| {
                let mut group = group(line, COMPACT_LIMIT_MS);
                group["matcher"] = json!(ON_REQUEST);
                group
            })
            .into_iter()
            .collect(),
        _ => vec![group(shell_line(town), SIGNAL_LIMIT_MS)],
    }
}

/// Returns whether root owns this path and every folder above it, and no other user can write
/// there.
fn only_root_changes(path: &Path) -> bool {
    let is_roots = |meta: &Metadata| meta.uid() == 0;
    let is_sure = |path: &Path| {
        fs::symlink_metadata(path).is_ok_and(|link| is_roots(&link))
            && fs::metadata(path).is_ok_and(|meta| is_roots(&meta) && meta.mode() & 0o022 == 0)
    };
    let all_sure = |path: &Path| path.ancestors().all(is_sure);
    all_sure(path) && path.canonicalize().is_ok_and(|path| all_sure(&path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_are_added_to_the_machines_own() {
        let ours = |_: &str| vec![json!("ours")];
        let settings = json!({"ui": {"theme": "x"}, "hooks": {"AfterAgent": ["theirs"]}});
        let merged = merge(settings, ours).unwrap();
        assert_eq!(merged["ui"]["theme"], "x");
        assert_eq!(merged["hooks"]["AfterAgent"], json!(["theirs", "ours"]));
        assert_eq!(merged["hooks"]["SessionStart"], json!(["ours"]));
        for odd in [
            json!([]),
            json!({"hooks": 3}),
            json!({"hooks": {"AfterAgent": 3}}),
        ] {
            assert_eq!(merge(odd, ours), None);
        }
    }

    #[test]
    fn a_folder_that_others_can_write_to_is_not_roots_alone() {
        let folder = tempfile::tempdir_in("/tmp").unwrap();
        assert!(!only_root_changes(folder.path()));
        assert!(!only_root_changes(Path::new("/no/such/file")));
    }
}

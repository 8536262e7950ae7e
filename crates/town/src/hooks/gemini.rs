//! Gemini CLI takes the defaults of all settings from a file that a variable names, and
//! adds the user's and the repository's hooks to those that stand there.
//!
//! It reads that file only if root alone can change it: the file and every folder above
//! it. For everybody else it has no way to take hooks for one process, so an agent of
//! theirs goes without, and its state comes from the title. What the machine's own file
//! says is kept, by the same rule. Measured on 0.61.0.

use super::{Wiring, calling, compact_line, file, shell_line};
use crate::{Result, Surroundings, Town, files};
use gt_core::role::OnCompact;
use serde_json::{Value, json};
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const VARIABLE: &str = "GEMINI_CLI_SYSTEM_DEFAULTS_PATH";
/// The file beside which the defaults are where no variable names them.
const SETTINGS_VARIABLE: &str = "GEMINI_CLI_SYSTEM_SETTINGS_PATH";
const MACHINE: &str = if cfg!(target_os = "macos") {
    "/Library/Application Support/GeminiCli/settings.json"
} else {
    "/etc/gemini-cli/settings.json"
};
/// What the program shows while a hook runs, and by which a user can turn ours off.
const NAME: &str = "gt";
/// After so long the program goes on without us. We give up before that.
const SIGNAL_LIMIT_MS: u32 = 5_000;
const PRIME_LIMIT_MS: u32 = 10_000;
/// Collecting the state of things may take longer.
const COMPACT_LIMIT_MS: u32 = 30_000;

/// The events that we hear of.
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
/// The program looks before every turn whether its context is too long, and says each
/// time that it is about to be compressed. Only a person's wish is never a false alarm.
const BY_WISH: &str = "manual";

pub(super) fn fits(town: &Town) -> bool {
    // The program puts variables into what it reads: such a path would not stay itself.
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

/// The machine's own defaults; `None` if they are in a form that cannot be added to.
fn defaults(around: &Surroundings) -> Option<Value> {
    let path = match around.var(VARIABLE) {
        Some(path) => PathBuf::from(path),
        None => {
            let settings = around.var(SETTINGS_VARIABLE).unwrap_or(MACHINE);
            Path::new(settings).with_file_name("system-defaults.json")
        }
    };
    // One that the program would not read is not made better by standing in ours.
    if !path.exists() || !only_root_changes(&path) {
        return Some(json!({}));
    }
    serde_json::from_str(&fs::read_to_string(&path).ok()?).ok()
}

/// The settings with our hooks added to those that stand there.
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
        // It does not wait for the hook of its start, and sends a first prompt without the
        // words of it; before a prompt it waits. It wants an answer in its own form: plain
        // words go to the person.
        "BeforeAgent" => vec![group(
            calling(town, "prime --hook --json 2>/dev/null"),
            PRIME_LIMIT_MS,
        )],
        // No event says that it is done, so its title tells the state meanwhile.
        "PreCompress" => compact_line(town, on_compact)
            .map(|line| {
                let mut group = group(line, COMPACT_LIMIT_MS);
                group["matcher"] = json!(BY_WISH);
                group
            })
            .into_iter()
            .collect(),
        _ => vec![group(shell_line(town), SIGNAL_LIMIT_MS)],
    }
}

/// Whether this and every folder above it is root's, and nobody else may write there.
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

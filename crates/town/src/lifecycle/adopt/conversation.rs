//! Finds the conversation of a running program. Sources are tried from the most to the least
//! reliable.

use crate::Town;
use crate::base::processes::Details;
use crate::records::usage;
use gt_core::adopt as core;
use gt_core::harness::Preset;
use gt_core::usage::Format;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A conversation, and how it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundConversation {
    pub id: String,
    pub source: &'static str,
}

impl FoundConversation {
    pub(super) fn given(id: &str) -> Self {
        FoundConversation {
            id: id.to_owned(),
            source: "given",
        }
    }
}

/// Returns the conversation of a process of this program.
pub(super) fn find(
    town: &Town,
    preset: &Preset,
    pid: u32,
    details: &Details,
) -> Option<FoundConversation> {
    let variable = |name: &str| details.env.get(name).map(String::as_str);
    let root = usage::program_folder(town, preset, variable)
        .or_else(|| usage::program_folder(town, preset, |name| town.around().var(name)));
    let found = |id: Option<String>, source| id.map(|id| FoundConversation { id, source });
    let status = || told_by_status_file(preset, root.as_deref()?, pid);
    let open = || details.files.iter().find_map(|path| id_of(preset, path));
    let words = || core::conversation_in(preset, &details.words);
    let newest = || newest_of_folder(preset, root.as_deref()?, pid, details.folder.as_deref()?);
    found(status(), "status-file")
        .or_else(|| found(open(), "open-transcript"))
        .or_else(|| found(words(), "arguments"))
        .or_else(|| found(newest(), "newest-transcript"))
}

/// Returns the conversation id from the file that Claude Code keeps about each running process.
fn told_by_status_file(preset: &Preset, root: &Path, pid: u32) -> Option<String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct ClaudeStatus {
        pid: u32,
        session_id: String,
    }
    if preset.usage.format != Some(Format::Claude) {
        return None;
    }
    // Only some releases of the program write it.
    let text = std::fs::read(root.join(format!("sessions/{pid}.json"))).ok()?;
    let status: ClaudeStatus = serde_json::from_slice(&text).ok()?;
    (status.pid == pid && core::is_id(&status.session_id)).then_some(status.session_id)
}

/// Returns the id in the name of a transcript, if the file is a transcript of this program.
fn id_of(preset: &Preset, path: &Path) -> Option<String> {
    const UUID: usize = 36;
    let name = path.file_name()?.to_str()?;
    let patterns = preset.usage.files.iter();
    patterns.into_iter().find_map(|pattern| {
        let last = pattern.rsplit('/').next()?;
        let (before, after) = last.split_once("{id}")?;
        let stem = name.strip_suffix(after)?;
        let (start, _) = before.split_once('*').unwrap_or((before, ""));
        let rest = stem.strip_prefix(start)?;
        // The text before the id is arbitrary; the id is recognised by its fixed length.
        let id = match before.contains('*') {
            true => rest.get(rest.len().checked_sub(UUID)?..)?,
            false => rest,
        };
        core::is_id(id).then(|| id.to_owned())
    })
}

/// Returns the newest transcript of the folder that was written since the process started.
fn newest_of_folder(preset: &Preset, root: &Path, pid: u32, folder: &Path) -> Option<String> {
    // Without /proc every transcript of the folder counts.
    let began = std::fs::metadata(format!("/proc/{pid}"))
        .and_then(|meta| meta.modified())
        .unwrap_or(SystemTime::UNIX_EPOCH);
    let folder = folder.to_str()?;
    // A transcript may be removed meanwhile.
    let modified = |path: &PathBuf| path.metadata().ok()?.modified().ok();
    let mut found: Vec<(SystemTime, PathBuf)> = usage::transcripts_of_folder(root, preset, folder)
        .into_iter()
        .filter_map(|path| Some((modified(&path)?, path)))
        .filter(|(at, _)| *at >= began)
        .collect();
    found.sort();
    found.iter().rev().find_map(|(_, path)| id_of(preset, path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gt_core::harness::resolve;

    #[test]
    fn the_id_stands_in_the_name_of_a_transcript() {
        let check = |harness: &str, path: &str, expected: Option<&str>| {
            let preset = resolve(harness, None).unwrap().value;
            assert_eq!(
                id_of(&preset, Path::new(path)).as_deref(),
                expected,
                "{path}"
            );
        };
        let id = "01a1e9e8-5026-7d51-a520-683478174b2a";
        check(
            "codex",
            &format!("/h/.codex/sessions/2026/11/17/rollout-2026-11-17T14-27-58-{id}.jsonl"),
            Some(id),
        );
        check("codex", "/h/.codex/history.jsonl", None);
        check("codex", "/h/.codex/rollout-x.jsonl", None);
        check(
            "claude",
            &format!("/h/.claude/projects/-h/{id}.jsonl"),
            Some(id),
        );
        check("claude", "/h/notes.jsonl", None);
    }
}

//! Finds the transcripts of a session: those that its hooks named; otherwise those with the id of
//! its conversation; otherwise those that match its folder and its start time.

use super::notes::TranscriptNotes;
use super::program_folder;
use crate::Town;
use crate::base::files;
use gt_core::harness::Preset;
use gt_core::record::Record;
use gt_core::usage::{Format, UsageWindow};
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Maximum number of bytes of a transcript's first line that are read.
const HEADER: u64 = 1 << 20;

/// A transcript, and the time from which it belongs to the session. `None` stands for the start of
/// the session.
pub(super) type Found = (PathBuf, Option<String>);

/// Returns the transcripts of a session, each preceded by the files that accompany it (`beside` in
/// the preset).
pub(super) fn transcripts(
    town: &Town,
    session: &Record,
    preset: &Preset,
    notes: &TranscriptNotes,
    known: &[PathBuf],
    window: &UsageWindow,
) -> Vec<Found> {
    let mut main: Vec<Found> = notes
        .transcripts()
        .map(|(path, since)| (path.to_owned(), since.map(str::to_owned)))
        .collect();
    if main.is_empty() {
        main = search(town, session, preset, notes, known, window)
            .into_iter()
            .map(|path| (path, None))
            .collect();
    }
    let mut all = Vec::new();
    for (path, since) in main {
        for pattern in &preset.usage.beside {
            let beside = matching(&path.with_extension(""), pattern);
            all.extend(beside.into_iter().map(|path| (path, since.clone())));
        }
        all.push((path, since));
    }
    all
}

fn search(
    town: &Town,
    session: &Record,
    preset: &Preset,
    notes: &TranscriptNotes,
    known: &[PathBuf],
    window: &UsageWindow,
) -> Vec<PathBuf> {
    let Some(root) = root(town, preset, notes) else {
        return Vec::new();
    };
    let (Some(format), Some(cwd)) = (preset.usage.format, session.cwd.as_deref()) else {
        return Vec::new();
    };
    let hash = hash(cwd);
    let is_of_folder = |path: &PathBuf| is_of_folder(path, format, cwd, &hash);
    if let Some(id) = session
        .harness_session_id
        .as_deref()
        .filter(|id| is_plain(id))
    {
        let short = id.get(..8).unwrap_or(id);
        let found = preset.usage.files.iter().flat_map(|pattern| {
            let filled = pattern.replace("{id}", id).replace("{id8}", short);
            let mut found = known_matches(known, &filled);
            if found.is_empty() {
                found = matching(&root, &filled);
            }
            // Ids begin with a timestamp, so several ids may share their first 8 characters.
            found.retain(|path| !pattern.contains("{id8}") || is_of_folder(path));
            found
        });
        return found.collect();
    }
    let began = window.since.parse::<jiff::Timestamp>();
    let began = began.map_or(SystemTime::UNIX_EPOCH, SystemTime::from);
    let is_new = |path: &PathBuf| {
        let changed = path.metadata().and_then(|meta| meta.modified());
        changed.is_ok_and(|changed| changed >= began)
    };
    let found = preset.usage.files.iter().flat_map(|pattern| {
        let filled = pattern.replace("{id}", "*").replace("{id8}", "*");
        matching(&root, &filled)
    });
    found
        .filter(|path| is_new(path) && is_of_folder(path))
        .collect()
}

/// Returns the transcripts of all conversations that were held in a folder.
pub(super) fn all_of_folder(root: &Path, preset: &Preset, folder: &str) -> Vec<PathBuf> {
    let Some(format) = preset.usage.format else {
        return Vec::new();
    };
    let hash = hash(folder);
    // Claude Code keeps the transcripts of a folder in a folder named after it.
    let called = |c: char| match c.is_ascii_alphanumeric() {
        true => c,
        false => '-',
    };
    let called: String = folder.chars().map(called).collect();
    let is_in_its_folder = |path: &Path| {
        let parent = path.parent().and_then(Path::file_name);
        parent.is_some_and(|parent| parent == called.as_str())
    };
    let patterns = preset.usage.files.iter();
    let all = patterns.flat_map(|pattern| {
        let filled = pattern.replace("{id}", "*").replace("{id8}", "*");
        matching(root, &filled)
    });
    all.filter(|path| match format {
        Format::Claude => is_in_its_folder(path),
        _ => is_of_folder(path, format, folder, &hash),
    })
    .collect()
}

fn hash(folder: &str) -> String {
    let mut hash = String::new();
    for byte in Sha256::digest(folder) {
        let _ = write!(hash, "{byte:02x}");
    }
    hash
}

/// Returns the transcripts that are named after the full id of a conversation.
pub(super) fn of_conversation(root: &Path, preset: &Preset, id: &str) -> Vec<PathBuf> {
    if !is_plain(id) {
        return Vec::new();
    }
    let patterns = preset.usage.files.iter();
    patterns
        .filter(|pattern| pattern.contains("{id}"))
        .flat_map(|pattern| matching(root, &pattern.replace("{id}", id)))
        .collect()
}

/// Returns the known files that match a pattern, without searching the folders.
fn known_matches(known: &[PathBuf], filled: &str) -> Vec<PathBuf> {
    let pattern = filled.rsplit('/').next().unwrap_or(filled);
    let name = |path: &Path| path.file_name()?.to_str().map(str::to_owned);
    let is_it = |path: &&PathBuf| name(path).is_some_and(|name| fits(pattern, &name));
    let found = known.iter().filter(is_it);
    found.filter(|path| path.is_file()).cloned().collect()
}

/// Returns the databases of a program, which all its sessions share.
pub(super) fn databases(town: &Town, session: &Record, preset: &Preset) -> Vec<PathBuf> {
    let notes = TranscriptNotes::of(town, &session.id);
    let Some(root) = root(town, preset, &notes) else {
        return Vec::new();
    };
    let patterns = preset.usage.files.iter();
    patterns.flat_map(|p| matching(&root, p)).collect()
}

/// Returns whether the folder in which the program keeps its transcripts exists.
pub(super) fn has_root(town: &Town, preset: &Preset, notes: &TranscriptNotes) -> bool {
    root(town, preset, notes).is_some_and(|root| root.is_dir())
}

fn root(town: &Town, preset: &Preset, notes: &TranscriptNotes) -> Option<PathBuf> {
    match notes.folder() {
        Some(folder) => Some(folder.to_owned()),
        None => program_folder(town, preset, |name| town.around().var(name)),
    }
}

/// Returns whether an id is safe as a part of a path: only letters, digits, `-` and `_`.
fn is_plain(id: &str) -> bool {
    !id.is_empty()
        && id
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

fn is_of_folder(path: &Path, format: Format, folder: &str, hash: &str) -> bool {
    // The program may have removed the file.
    let Ok(file) = File::open(path) else {
        return false;
    };
    let mut line = Vec::new();
    let read = BufReader::new(file.take(HEADER)).read_until(b'\n', &mut line);
    let line = std::str::from_utf8(&line);
    read.is_ok() && line.is_ok_and(|line| format.is_of_folder(line, folder, hash))
}

/// Returns the files under a folder that match a pattern, sorted by name.
fn matching(root: &Path, pattern: &str) -> Vec<PathBuf> {
    let mut found = vec![root.to_owned()];
    for part in pattern.split('/') {
        found = found
            .iter()
            .flat_map(|folder| match part.contains('*') {
                true => entries(folder, part),
                false => vec![folder.join(part)],
            })
            .collect();
    }
    found.retain(|path| path.is_file());
    found
}

fn entries(folder: &Path, pattern: &str) -> Vec<PathBuf> {
    let mut names: Vec<String> = files::entries(folder)
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| fits(pattern, name))
        .collect();
    names.sort();
    names.iter().map(|name| folder.join(name)).collect()
}

/// Returns whether a name matches a pattern, in which `*` matches anything.
fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((before, after)) => name.strip_prefix(before).is_some_and(|rest| {
            let ends = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
            ends.into_iter().any(|at| fits(after, &rest[at..]))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_fit() {
        for (pattern, name, expected) in [
            ("a.jsonl", "a.jsonl", true),
            ("*", "", true),
            (
                "rollout-*-01a1.jsonl",
                "rollout-2026-11-16T02-32-56-01a1.jsonl",
                true,
            ),
            ("rollout-*-01a1.jsonl", "rollout-01a1.jsonl", false),
            ("*.jsonl", "ä.jsonl", true),
            ("*.jsonl", "a.jsonl.tmp", false),
            ("a*b*c", "abxbc", true),
        ] {
            assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
        }
        assert!(is_plain("01a1e233-459c") && is_plain("ses_e1"));
        assert!(!is_plain("../x") && !is_plain("*") && !is_plain(""));
    }

    #[test]
    fn files_are_found_and_folders_are_not() {
        let dir = tempfile::tempdir().unwrap();
        for path in ["p/b/x.jsonl", "p/a/x.jsonl", "p/a/y.jsonl"] {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        std::fs::create_dir_all(dir.path().join("p/c/x.jsonl")).unwrap();
        let found = matching(dir.path(), "p/*/x.jsonl");
        let expected = ["p/a/x.jsonl", "p/b/x.jsonl"].map(|path| dir.path().join(path));
        assert_eq!(found, expected);
        assert!(matching(dir.path(), "q/*/x.jsonl").is_empty());
    }
}

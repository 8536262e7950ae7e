//! Searches the transcripts of a session for a prompt. For messages whose delivery has no other
//! proof, because both `gt` and tmux have died.

use super::notes::TranscriptNotes;
use super::{database, find, window};
use crate::Town;
use crate::base::or_log::OrLog;
use crate::catalog::harnesses::Presets;
use crate::records::sessions::Sessions;
use gt_core::usage::{Format, is_prompt};
use std::fs::File;
use std::io::{BufRead, BufReader, Result};
use std::path::Path;

/// Result of the search for a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Evidence {
    Present,
    Absent,
    /// There is no transcript, or it cannot be read.
    Unknown,
}

/// Searches the transcripts of this session for a prompt, at that time or later.
pub(crate) fn find_prompt(town: &Town, session: &str, prompt: &str, since: i64) -> Evidence {
    match search(town, session, prompt, since) {
        Some(true) => Evidence::Present,
        Some(false) => Evidence::Absent,
        None => Evidence::Unknown,
    }
}

fn search(town: &Town, session: &str, prompt: &str, since: i64) -> Option<bool> {
    let found = Sessions::of(town).in_journal([session].into_iter());
    let found = found.or_warn(format_args!("session {session} is unknown"))?;
    let record = found.get(session)?;
    let preset = Presets::default()
        .get(town, record.harness.as_deref()?)?
        .clone();
    let format = preset.usage.format?;
    if format == Format::Opencode {
        let databases = find::databases(town, record, &preset);
        let cwd = record.cwd.as_deref()?;
        let looks = databases
            .iter()
            // A failed search proves nothing.
            .map(|path| database::has_prompt(path, cwd, prompt, since).ok());
        return any(looks);
    }
    let window = window(record, session.parse().ok()?)?;
    let notes = TranscriptNotes::of(town, session);
    let since = jiff::Timestamp::from_second(since).ok()?.to_string();
    let files = find::transcripts(town, record, &preset, &notes, &[], &window);
    // The file of a conversation is created at its first prompt. So if the folder is known, a
    // missing file proves that the prompt was not taken.
    let is_place_known = !preset.usage.files.is_empty() && find::has_root(town, &preset, &notes);
    if files.is_empty() && is_place_known {
        return Some(false);
    }
    any(files
        .iter()
        // A failed search proves nothing.
        .map(|(path, _)| has_line(path, prompt, &since).ok()))
}

/// Returns whether one of these searches found it; `None` if none did and one of them failed, or if
/// there are none.
fn any(looks: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut all = None;
    for found in looks {
        match found {
            Some(true) => return Some(true),
            Some(false) => all = all.or(Some(true)),
            None => all = Some(false),
        }
    }
    all.filter(|is_read| *is_read).map(|_| false)
}

fn has_line(path: &Path, prompt: &str, since: &str) -> Result<bool> {
    for line in BufReader::new(File::open(path)?).lines() {
        if is_prompt(&line?, prompt, since) {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absence_needs_that_every_transcript_was_read() {
        let check = |looks: &[Option<bool>], expected| {
            assert_eq!(any(looks.iter().copied()), expected, "{looks:?}");
        };
        check(&[], None);
        check(&[Some(false)], Some(false));
        check(&[None], None);
        check(&[Some(false), None], None);
        check(&[None, Some(false)], None);
        check(&[None, Some(true)], Some(true));
    }

    #[test]
    fn transcript_that_cannot_be_read_proves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.jsonl");
        assert!(has_line(&path, "go", "").is_err());
        std::fs::write(&path, b"\xff\xfe\n").unwrap();
        assert!(has_line(&path, "go", "").is_err());
        std::fs::write(&path, "{}\n").unwrap();
        assert!(!has_line(&path, "go", "").unwrap());
    }
}

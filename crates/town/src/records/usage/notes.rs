//! Locations of a session's transcripts, as reported by its hooks:
//! `.runtime/usage/<session>.notes`, one line of JSON each.

use super::{folder, program_folder};
use crate::base::files;
use crate::base::or_log::OrLog;
use crate::{Result, Town};
use gt_core::harness::Preset;
use gt_core::session::SessionId;
use gt_core::signal::HookEvent;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// One line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct TranscriptNote {
    /// A transcript.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) path: Option<PathBuf>,
    /// The program's id of the conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// Only what is later than this belongs to the session: the conversation existed before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) since: Option<String>,
    /// The folder under which the program keeps them, if it is not the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    folder: Option<PathBuf>,
}

/// The notes about one session.
#[derive(Debug)]
pub(super) struct TranscriptNotes {
    path: PathBuf,
    lines: Vec<TranscriptNote>,
}

impl TranscriptNotes {
    pub(super) fn of(town: &Town, session: &str) -> Self {
        let path = folder(town).join(format!("{session}.notes"));
        let text = files::read_if_there(&path).or_warn("the usage may be incomplete");
        let text = text.flatten().unwrap_or_default();
        let lines = text.lines();
        TranscriptNotes {
            path,
            // A crash may have cut off a line.
            lines: lines
                .filter_map(|line| serde_json::from_str(line).ok())
                .collect(),
        }
    }

    pub(super) fn transcripts(&self) -> impl Iterator<Item = (&Path, Option<&str>)> {
        self.lines
            .iter()
            .filter_map(|note| Some((note.path.as_deref()?, note.since.as_deref())))
    }

    /// Returns the last conversation that was noted.
    pub(super) fn conversation(&self) -> Option<String> {
        self.lines.iter().rev().find_map(|note| note.id.clone())
    }

    pub(super) fn folder(&self) -> Option<&Path> {
        self.lines.iter().find_map(|note| note.folder.as_deref())
    }

    pub(super) fn remove(&self) {
        files::remove_if_there(&self.path).or_warn("notes of an ended session stay");
    }

    /// Appends one line in one write, so that concurrent hooks do not mix their lines.
    fn add(&self, note: &TranscriptNote) -> Result<()> {
        // Cannot fail: all fields are plain values.
        let mut line = serde_json::to_vec(note).unwrap_or_default();
        line.push(b'\n');
        if let Some(dir) = self.path.parent() {
            files::make_dir(dir)?;
        }
        OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(&self.path)
            .and_then(|mut file| file.write_all(&line))
            .map_err(|error| files::io_problem("write", &self.path, &error))
    }
}

/// Notes the transcript that a hook names, if it is new. The session is the one in whose
/// environment the hook runs.
pub fn note(town: &Town, event: HookEvent, report: &Value) -> Result<()> {
    // The first event may come before the file exists and is named; then the second reports it.
    if !matches!(event, HookEvent::SessionStart | HookEvent::Stop) {
        return Ok(());
    }
    let session: Option<SessionId> = town
        .around()
        .var("GT_SESSION_UUID")
        .and_then(|session| session.parse().ok());
    let path = report["transcript_path"].as_str().map(PathBuf::from);
    let (Some(session), Some(path)) = (session, path.filter(|path| path.is_absolute())) else {
        return Ok(());
    };
    let notes = TranscriptNotes::of(town, &session.to_string());
    if notes.transcripts().any(|(known, _)| known == path) {
        return Ok(());
    }
    // The beginning of a resumed or forked conversation belongs to another session, or is counted
    // in the original.
    let source = report["source"].as_str();
    let is_old = event == HookEvent::SessionStart && matches!(source, Some("resume" | "fork"));
    notes.add(&TranscriptNote {
        path: Some(path),
        id: report["session_id"].as_str().map(str::to_owned),
        since: is_old.then(|| town.clock().text()),
        folder: None,
    })
}

/// Notes the transcript folder of an agent's program, if its variables differ from ours.
pub fn note_folder(
    town: &Town,
    session: SessionId,
    preset: &Preset,
    env: &BTreeMap<String, String>,
) -> Result<()> {
    let around = town.around();
    let usual = program_folder(town, preset, |name| around.var(name));
    let own = program_folder(town, preset, |name| {
        let given = env.get(name).map(String::as_str);
        given.filter(|value| !value.is_empty()).or(around.var(name))
    });
    if preset.usage.format.is_none() || own == usual {
        return Ok(());
    }
    TranscriptNotes::of(town, &session.to_string()).add(&TranscriptNote {
        folder: own,
        ..TranscriptNote::default()
    })
}

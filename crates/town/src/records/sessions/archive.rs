//! Old sessions: moved out of the journal, compressed, and still found by queries.
//!
//! `.sessions/archive/2026-01.jsonl.gz` holds the sessions that ended in that month, one per line,
//! with their details. A file is replaced atomically, before the sessions are removed from the
//! journal. After a crash in between, a session is in both, and the journal takes precedence.

use crate::Result;
use crate::base::files;
use crate::base::or_log::OrLog;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use gt_core::Problem;
use gt_core::record::Record;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

#[derive(Clone, Debug)]
pub(super) struct Archive {
    folder: PathBuf,
}

impl Archive {
    pub(super) fn in_folder(sessions: &Path) -> Self {
        Archive {
            folder: sessions.join("archive"),
        }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the file of the sessions that ended in a month, such as `2026-01`.
    pub(super) fn file_of(month: &str) -> String {
        format!("{month}.jsonl.gz")
    }

    /// Adds sessions to a file and replaces those that it already has. `sessions` maps ids to JSON
    /// objects of one line.
    pub(super) fn add(&self, file: &str, sessions: BTreeMap<String, String>) -> Result<()> {
        let mut all = BTreeMap::new();
        let read = self.for_each(file, |id, line| {
            all.insert(id.to_owned(), line.to_owned());
            Ok::<(), Problem>(())
        });
        if read.is_err() {
            // The readable sessions are kept; the damaged file is set aside for a person.
            let damaged = self.folder.join(format!("{file}.damaged"));
            std::fs::rename(self.folder.join(file), &damaged)
                .map_err(|error| files::io_problem("set aside", &damaged, &error))?;
        }
        all.extend(sessions);
        let cannot = |error| files::io_problem("write", &self.folder.join(file), &error);
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        for line in all.values() {
            writeln!(encoder, "{line}").map_err(cannot)?;
        }
        let bytes = encoder.finish().map_err(cannot)?;
        files::write_whole(&self.folder.join(file), &bytes)
    }

    /// Returns the names of the existing files.
    pub(super) fn files(&self) -> Vec<String> {
        let mut names: Vec<String> = files::entries(&self.folder)
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| name.ends_with(".jsonl.gz") && !name.starts_with('.'))
            .collect();
        names.sort();
        names
    }

    /// Passes every session of a file to `give`, with its id. A missing file has none. A damaged
    /// file yields its readable sessions and then an error.
    pub(super) fn for_each<E: From<Problem>>(
        &self,
        file: &str,
        mut give: impl FnMut(&str, &str) -> Result<(), E>,
    ) -> Result<(), E> {
        let path = self.folder.join(file);
        let cannot = |error| files::io_problem("read", &path, &error);
        let opened = match File::open(&path) {
            Ok(opened) => opened,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(cannot(error).into()),
        };
        for line in BufReader::new(GzDecoder::new(opened)).lines() {
            let line = line.map_err(cannot)?;
            let id = serde_json::from_str(&line)
                .or_warn(format_args!("a line of {} cannot be read", path.display()))
                .and_then(|session: Record| Some(session.id).filter(|id| !id.is_empty()));
            if let Some(id) = id {
                give(&id, &line)?;
            }
        }
        Ok(())
    }

    /// Returns the sessions of a file with these ids, as JSON documents.
    pub(super) fn read(&self, file: &str, ids: &[String]) -> Result<Vec<Value>> {
        let mut found = Vec::new();
        self.for_each(file, |id, line| {
            if ids.iter().any(|wanted| wanted == id) {
                let session = serde_json::from_str(line).map_err(|error| {
                    Problem::failed(format!("the archived session {id} cannot be read"))
                        .caused_by(error)
                })?;
                found.push(session);
            }
            Ok::<(), Problem>(())
        })?;
        Ok(found)
    }
}

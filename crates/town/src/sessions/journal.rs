//! The journal of all lives: `.sessions/index.jsonl`, one line for each change.
//!
//! It is written before anything else, in one piece and to the disk, so whoever was
//! told of a change finds it there after any crash. The database beside it is made
//! from it. A last line that was torn by a crash is set aside by the next writer; a
//! line that cannot be read is skipped and told with its number.

use crate::lock::FileLock;
use crate::{Result, files};
use gt_core::Problem;
use gt_core::record::Record;
use serde::Deserialize;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long others may write before we.
const PATIENCE: Duration = Duration::from_secs(30);

/// How the line begins that tells one journal from another.
const HEADER: &str = "{\"journal\":";

#[derive(Clone, Debug)]
pub(super) struct Journal {
    path: PathBuf,
}

/// A line that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// From one on; counted only in a reading from the beginning.
    pub line: u64,
    pub reason: String,
}

impl Journal {
    pub(super) fn in_folder(folder: &Path) -> Self {
        Journal {
            path: folder.join("index.jsonl"),
        }
    }

    #[cfg(test)]
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps everybody else from writing.
    pub(super) fn lock(&self) -> Result<FileLock> {
        FileLock::take(&self.path.with_extension("lock"), PATIENCE)
    }

    /// Adds lines, all or none of them.
    pub(super) fn append(&self, records: &[Record]) -> Result<()> {
        let _lock = self.lock()?;
        self.append_locked(records)
    }

    /// The same for whoever holds the lock.
    pub(super) fn append_locked(&self, records: &[Record]) -> Result<()> {
        let mut text = Vec::new();
        for record in records {
            serde_json::to_writer(&mut text, record)
                .map_err(|error| Problem::failed("cannot write a life").caused_by(error))?;
            text.push(b'\n');
        }
        let cannot = |error| files::cannot("write", &self.path, &error);
        let mut file = File::options()
            .read(true)
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&self.path)
            .map_err(cannot)?;
        let before = self.mend(&mut file)?;
        let written = file.write_all(&text).and_then(|()| file.sync_data());
        written.map_err(|error| {
            // Half a line on a full disk would be the next writer's to mend.
            let _ = file.set_len(before);
            files::cannot("write", &self.path, &error)
        })
    }

    /// Sets a torn last line aside, and gives the length of what is whole.
    fn mend(&self, file: &mut File) -> Result<u64> {
        let cannot = |error| files::cannot("read", &self.path, &error);
        let length = file.seek(SeekFrom::End(0)).map_err(cannot)?;
        let whole = whole_length(file, length).map_err(cannot)?;
        if whole < length {
            file.seek(SeekFrom::Start(whole)).map_err(cannot)?;
            let mut torn = Vec::new();
            file.read_to_end(&mut torn).map_err(cannot)?;
            let aside = self.path.with_extension("torn");
            files::write_whole(&aside, &torn)?;
            file.set_len(whole)
                .map_err(|error| files::cannot("mend", &self.path, &error))?;
        }
        Ok(whole)
    }

    /// Replaces the journal by those of its lines that are wanted; the lock must be held.
    /// The new one begins with a line of its own, by which everybody sees that it is
    /// another.
    pub(super) fn keep_only(&self, mut wanted: impl FnMut(&str) -> bool) -> Result<()> {
        #[derive(Deserialize)]
        struct OfLife {
            id: String,
        }
        let Some(reading) = self.open()? else {
            return Ok(());
        };
        files::write_whole_by(&self.path, |file| {
            writeln!(file, "{HEADER}\"{}\"}}", uuid::Uuid::now_v7())?;
            let copied = reading.each_line(0, |_, line| {
                let of_life: Result<OfLife, _> = serde_json::from_slice(line);
                // What cannot be read may be mended by a person one day.
                let is_wanted = of_life.map_or(!line.starts_with(HEADER.as_bytes()), |line| {
                    wanted(&line.id)
                });
                if is_wanted {
                    file.write_all(line)
                        .map_err(|error| files::cannot("write", &self.path, &error))?;
                }
                Ok(())
            });
            copied.map(drop).map_err(std::io::Error::other)
        })
    }

    /// Opens the journal as it is now; `None` if there is none yet. What is read from
    /// it is of one file, even if another takes its place meanwhile.
    pub(super) fn open(&self) -> Result<Option<Reading>> {
        let cannot = |error| files::cannot("read", &self.path, &error);
        let mut file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(cannot(error)),
        };
        let length = file.metadata().map_err(cannot)?.len();
        let mut first = Vec::new();
        BufReader::new(&mut file)
            .read_until(b'\n', &mut first)
            .map_err(cannot)?;
        // Bytes that are no text make a first line like any other.
        let first = String::from_utf8_lossy(&first).into_owned();
        Ok(Some(Reading {
            path: self.path.clone(),
            file,
            length,
            first,
        }))
    }
}

/// A journal that is being read.
#[derive(Debug)]
pub(super) struct Reading {
    path: PathBuf,
    file: File,
    pub(super) length: u64,
    /// The first line: it tells one journal from another.
    pub(super) first: String,
}

impl Reading {
    /// Gives the records of the whole lines from that place on. Gives where it ended; a
    /// line that is being written, or was torn, is left for later.
    pub(super) fn each_from(
        self,
        start: u64,
        mut each: impl FnMut(Record) -> Result<()>,
        damaged: &mut dyn FnMut(Damage),
    ) -> Result<u64> {
        self.each_line(start, |number, line| {
            if line.trim_ascii().is_empty() || line.starts_with(HEADER.as_bytes()) {
                return Ok(());
            }
            match serde_json::from_slice(line) {
                Ok(record) => each(record),
                Err(error) => {
                    damaged(Damage {
                        line: number,
                        reason: error.to_string(),
                    });
                    Ok(())
                }
            }
        })
    }

    /// Gives each whole line from that place on, with its number.
    fn each_line(
        mut self,
        start: u64,
        mut each: impl FnMut(u64, &[u8]) -> Result<()>,
    ) -> Result<u64> {
        let cannot = |error| files::cannot("read", &self.path, &error);
        self.file.seek(SeekFrom::Start(start)).map_err(cannot)?;
        let mut reader = BufReader::with_capacity(1 << 18, self.file);
        let (mut at, mut number) = (start, 0);
        let mut line = Vec::new();
        loop {
            line.clear();
            let length = reader.read_until(b'\n', &mut line).map_err(cannot)?;
            if length == 0 || line.last() != Some(&b'\n') {
                return Ok(at);
            }
            number += 1;
            at += length as u64;
            each(number, &line)?;
        }
    }
}

/// The length up to and with the last line end.
fn whole_length(file: &mut File, length: u64) -> std::io::Result<u64> {
    const PIECE: u64 = 4096;
    let mut end = length;
    let mut piece = Vec::new();
    while end > 0 {
        let start = end.saturating_sub(PIECE);
        piece.clear();
        file.seek(SeekFrom::Start(start))?;
        Read::by_ref(file)
            .take(end - start)
            .read_to_end(&mut piece)?;
        if let Some(at) = piece.iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(journal: &Journal, start: u64) -> (Vec<String>, Vec<u64>, u64) {
        let (mut ids, mut damages) = (Vec::new(), Vec::new());
        let Some(reading) = journal.open().unwrap() else {
            return (ids, damages, 0);
        };
        let end = reading
            .each_from(
                start,
                |record| {
                    ids.push(record.id);
                    Ok(())
                },
                &mut |damage| damages.push(damage.line),
            )
            .unwrap();
        (ids, damages, end)
    }

    fn length(journal: &Journal) -> u64 {
        journal.open().unwrap().map_or(0, |reading| reading.length)
    }

    #[test]
    fn lines_are_added_and_read_from_any_place() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::in_folder(folder.path());
        assert_eq!(read(&journal, 0), (vec![], vec![], 0));
        journal
            .append(&[Record::about("a"), Record::about("b")])
            .unwrap();
        let (ids, _, end) = read(&journal, 0);
        assert_eq!(ids, ["a", "b"]);
        assert_eq!(end, length(&journal));
        journal.append(&[Record::about("c")]).unwrap();
        assert_eq!(read(&journal, end).0, ["c"]);
    }

    #[test]
    fn a_torn_line_is_set_aside_and_a_damaged_one_skipped() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::in_folder(folder.path());
        std::fs::write(
            journal.path(),
            "{\"id\":\"a\"}\nnot json\n\n{\"id\":\"b\"}\n{\"id\":\"tor",
        )
        .unwrap();
        let (ids, damages, end) = read(&journal, 0);
        assert_eq!((ids, damages), (vec!["a".into(), "b".into()], vec![2]));
        assert!(end < length(&journal), "the torn one is not read");
        journal.append(&[Record::about("c")]).unwrap();
        assert_eq!(read(&journal, 0).0, ["a", "b", "c"]);
        let torn = std::fs::read_to_string(folder.path().join("index.torn")).unwrap();
        assert_eq!(torn, "{\"id\":\"tor");
    }
}

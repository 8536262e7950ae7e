//! The journal of all sessions: `.sessions/index.jsonl`, one line per change.
//!
//! It is written before anything else, in one write that is synced to the disk, so a change that
//! was reported survives any crash. The database beside it is built from it. The next writer sets
//! aside a last line that a crash left incomplete. An unreadable line is skipped and reported with
//! its number.

use super::hash;
use crate::Result;
use crate::base::clock::Clock;
use crate::base::files;
use crate::base::lines::{Durability, Lines};
use crate::base::lock::FileLock;
use crate::base::surroundings::Deadline;
use gt_core::Problem;
use gt_core::record::Record;
use serde::Deserialize;
use std::collections::HashSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Maximum wait for other writers.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Beginning of the line that distinguishes one journal from another.
const HEADER: &str = "{\"journal\":";

#[derive(Clone, Debug)]
pub(super) struct Journal {
    lines: Lines,
    deadline: Deadline,
}

/// A line that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Counted from 1; only correct if the file is read from its beginning.
    pub line: u64,
    pub reason: String,
}

impl Journal {
    pub(super) fn in_folder(folder: &Path) -> Self {
        Journal {
            lines: Lines::at(folder.join("index.jsonl")),
            deadline: Deadline::default(),
        }
    }

    /// Limits all waiting to this deadline.
    pub(super) fn with_deadline(self, deadline: Deadline) -> Self {
        Journal { deadline, ..self }
    }

    pub(super) fn path(&self) -> &Path {
        self.lines.path()
    }

    /// Takes the lock that excludes other writers.
    pub(super) fn lock(&self) -> Result<FileLock> {
        let path = self.lines.path().with_extension("lock");
        FileLock::take(&path, self.deadline.at_most(TIMEOUT))
    }

    /// Appends lines, all or none of them.
    pub(super) fn append(&self, records: &[Record]) -> Result<()> {
        let _lock = self.lock()?;
        self.append_locked(records)
    }

    /// Appends lines that are worthless after a reboot. Other processes see them at once; they
    /// reach the disk with the next synced line.
    pub(super) fn append_without_sync(&self, records: &[Record]) -> Result<()> {
        let _lock = self.lock()?;
        self.write(records, Durability::InSystem)
    }

    /// Appends lines; the caller must hold the lock.
    pub(super) fn append_locked(&self, records: &[Record]) -> Result<()> {
        self.write(records, Durability::OnDisk)
    }

    fn write(&self, records: &[Record], durability: Durability) -> Result<()> {
        let mut text = Vec::new();
        for record in records {
            serde_json::to_writer(&mut text, record)
                .map_err(|error| Problem::failed("cannot write a session").caused_by(error))?;
            text.push(b'\n');
        }
        self.lines.append(&text, durability)
    }

    /// Replaces the journal with the lines of wanted sessions; the caller must hold the lock.
    pub(super) fn keep_only(&self, mut wanted: impl FnMut(&str) -> bool) -> Result<()> {
        #[derive(Deserialize)]
        struct OfSession {
            id: String,
        }
        self.rewrite(|line| {
            let of_session: Result<OfSession, _> = serde_json::from_slice(line);
            // A person may be able to repair an unreadable line, so it is kept.
            of_session.map_or(true, |line| wanted(&line.id))
        })
    }

    /// Replaces the journal with its wanted lines; the caller must hold the lock. The new journal
    /// begins with a header line, by which readers recognise that it was replaced.
    fn rewrite(&self, mut wanted: impl FnMut(&[u8]) -> bool) -> Result<()> {
        let Some(reading) = self.open()? else {
            return Ok(());
        };
        // Sets aside an incomplete last line first.
        self.lines.append(b"", Durability::InSystem)?;
        files::write_whole_with(self.lines.path(), |file| {
            write_header(file)?;
            let copied = reading.each_line(0, |_, line| {
                if !line.starts_with(HEADER.as_bytes()) && wanted(line) {
                    file.write_all(line)
                        .map_err(|error| files::io_problem("write", self.lines.path(), &error))?;
                }
                Ok::<(), Problem>(())
            });
            copied.map(drop).map_err(std::io::Error::other)
        })
    }

    /// Returns whether the journal is missing or an empty file. Anything else in its place does not
    /// count as gone.
    pub(super) fn is_gone(&self) -> bool {
        match self.path().metadata() {
            Ok(meta) => meta.is_file() && meta.len() == 0,
            Err(error) => error.kind() == std::io::ErrorKind::NotFound,
        }
    }

    /// Replaces the journal with these records, each the text of one line; the caller must hold the
    /// lock.
    pub(super) fn replace_all(
        &self,
        mut next: impl FnMut() -> Result<Option<String>>,
    ) -> Result<()> {
        files::write_whole_with(self.lines.path(), |file| {
            write_header(file)?;
            while let Some(record) = next().map_err(std::io::Error::other)? {
                writeln!(file, "{record}")?;
            }
            Ok(())
        })
    }

    /// Moves unreadable lines into a file beside the journal, after those of earlier calls. Returns
    /// their number and that file. The caller must hold the lock.
    pub(super) fn set_aside_damaged(&self) -> Result<(usize, PathBuf)> {
        let aside = Lines::at(self.lines.path().with_extension("damaged"));
        let mut damaged = Vec::new();
        let mut count = 0;
        if let Some(reading) = self.open()? {
            reading.each_line(0, |_, line| {
                if !is_readable(line) {
                    damaged.extend(line);
                    count += 1;
                }
                Ok::<(), Problem>(())
            })?;
        }
        if count > 0 {
            aside.append(&damaged, Durability::OnDisk)?;
            self.rewrite(is_readable)?;
        }
        Ok((count, aside.path().to_owned()))
    }

    /// Opens the journal as it is now; returns `None` if there is none yet. The reading stays on
    /// this file, even if another one replaces it meanwhile.
    pub(super) fn open(&self) -> Result<Option<JournalReader>> {
        let cannot = |error| files::io_problem("read", self.lines.path(), &error);
        let Some(mut file) = self.lines.open()? else {
            return Ok(None);
        };
        let length = file.metadata().map_err(cannot)?.len();
        let mut first = Vec::new();
        BufReader::new(&mut file)
            .read_until(b'\n', &mut first)
            .map_err(cannot)?;
        // A first line that is not UTF-8 serves as identity, too.
        let first = String::from_utf8_lossy(&first).into_owned();
        Ok(Some(JournalReader {
            lines: self.lines.clone(),
            file,
            length,
            first,
        }))
    }
}

/// Writes the first line of a journal that replaces another one.
fn write_header(file: &mut impl Write) -> std::io::Result<()> {
    writeln!(file, "{HEADER}\"{}\"}}", Clock::default().new_id())
}

/// Returns whether a line is a record, a header or blank.
fn is_readable(line: &[u8]) -> bool {
    line.trim_ascii().is_empty()
        || line.starts_with(HEADER.as_bytes())
        || serde_json::from_slice::<Record>(line).is_ok()
}

/// A journal that is being read.
#[derive(Debug)]
pub(super) struct JournalReader {
    lines: Lines,
    file: File,
    pub(super) length: u64,
    /// The first line, which distinguishes one journal from another.
    pub(super) first: String,
}

impl JournalReader {
    /// Passes the records of the complete lines from `start` on to `each`. Returns the position
    /// after the last complete line; an incomplete line is left for a later call.
    pub(super) fn for_each_from<E: From<Problem>>(
        self,
        start: u64,
        mut each: impl FnMut(Record) -> Result<(), E>,
        damaged: &mut dyn FnMut(Damage),
    ) -> Result<u64, E> {
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

    /// Returns hashes of the ids of all records before a position.
    pub(super) fn ids_before(self, end: u64) -> Result<HashSet<u64>> {
        let mut ids = HashSet::new();
        let mut at = 0;
        self.each_line(0, |_, line| {
            at += line.len() as u64;
            // A damaged line has no id. `gt doctor` reports it.
            if at <= end
                && let Ok(record) = serde_json::from_slice::<Record>(line)
            {
                ids.insert(hash(&record.id));
            }
            Ok::<(), Problem>(())
        })?;
        Ok(ids)
    }

    /// Passes each complete line from `start` on, with its number.
    fn each_line<E: From<Problem>>(
        mut self,
        start: u64,
        mut each: impl FnMut(u64, &[u8]) -> Result<(), E>,
    ) -> Result<u64, E> {
        let mut number = 0;
        self.lines.read_file(&mut self.file, start, |line| {
            number += 1;
            each(number, line)
        })
    }

    /// Returns the last bytes before a position, by which the position is recognised later.
    pub(super) fn tail_before(&self, place: u64) -> Vec<u8> {
        const LENGTH: u64 = 64;
        let start = place.saturating_sub(LENGTH);
        let mut tail = vec![0; usize::try_from(place - start).unwrap_or_default()];
        match self.file.read_exact_at(&mut tail, start) {
            Ok(()) => tail,
            Err(_) => Vec::new(),
        }
    }
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
            .for_each_from(
                start,
                |record| {
                    ids.push(record.id);
                    Ok::<(), Problem>(())
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
        assert_eq!(torn, "{\"id\":\"tor\n");
        // After a second crash both incomplete lines are kept.
        let mut text = std::fs::read(journal.path()).unwrap();
        text.extend(b"{\"id\":\"again");
        std::fs::write(journal.path(), text).unwrap();
        journal.append(&[Record::about("d")]).unwrap();
        assert_eq!(read(&journal, 0).0, ["a", "b", "c", "d"]);
        let torn = std::fs::read_to_string(folder.path().join("index.torn")).unwrap();
        assert_eq!(torn, "{\"id\":\"tor\n{\"id\":\"again\n");
    }
}

//! `.runtime/gt.log`: warnings and errors of all `gt` processes of a town.
//!
//! Hooks of agent programs and of tmux call `gt`, and its output is discarded. The binary installs
//! a `tracing` subscriber that appends each warning and error here, one line each; `gt logs` and
//! `gt doctor` read them. Several processes append at the same time. A full file is renamed to
//! `gt.log.1`, which replaces the previous one, so the size is bounded.
//!
//! Earlier versions wrote `.runtime/hooks.log`, without levels. It is still read.

#[cfg(test)]
pub(crate) mod testing;

use crate::base::lines::{Lines, whole_length};
use crate::{Result, Town};
use gt_core::Problem;
use jiff::{SignedDuration, Timestamp};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use tracing::Level;

/// Size in bytes at which the file is rotated.
const MAX_BYTES: u64 = 512 * 1024;
/// Maximum length of the text of one entry. The output of a failed program may be long.
const MAX_TEXT: usize = 4000;
/// Time within which a repeated entry is not written again: a status line may fail every few
/// seconds.
const REPEAT_SECONDS: i64 = 60;

/// The log of one town. It needs no open town: a town that cannot be opened is logged too.
#[derive(Clone, Debug)]
pub struct Log {
    path: PathBuf,
}

/// One entry of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    pub at: Timestamp,
    pub level: Level,
    /// The command that wrote it, such as `mq run`.
    pub command: String,
    pub text: String,
}

impl Log {
    /// Returns the log of the town in this folder.
    pub fn at(root: &Path) -> Self {
        Log {
            path: root.join(".runtime/gt.log"),
        }
    }

    pub fn of(town: &Town) -> Self {
        Log::at(town.root())
    }

    /// Appends an entry. Control characters become blanks, passwords in URLs are masked, long text
    /// is cut. An entry that repeats one of the last ones within a minute is left out.
    pub fn append(&self, at: Timestamp, level: Level, command: &str, text: &str) -> io::Result<()> {
        let text = text.replace(char::is_control, " ");
        let mut text = without_passwords(&text);
        text.truncate(cut(&text, MAX_TEXT));
        let entry = LogEntry {
            at,
            level,
            command: command.to_owned(),
            text,
        };
        let mut file = self.open_to_append()?;
        if last_entries(&file)?.iter().any(|last| entry.repeats(last)) {
            return Ok(());
        }
        // One write, because other processes append at the same time.
        file.write_all(entry.line().as_bytes())
    }

    /// Opens the file, and rotates it first if it is full.
    fn open_to_append(&self) -> io::Result<File> {
        let open = || {
            let mut options = OpenOptions::new();
            options.create(true).read(true).append(true).mode(0o600);
            options.open(&self.path)
        };
        let file = open()?;
        if file.metadata()?.len() < MAX_BYTES || !self.rotate(&file)? {
            return Ok(file);
        }
        open()
    }

    /// Renames the full file. Returns whether the path names another file now. Only the process
    /// that holds the lock of the file renames it, and only if the path still names that file, so a
    /// concurrent rotation does not rename the new file.
    fn rotate(&self, full: &File) -> io::Result<bool> {
        if full.try_lock().is_err() {
            // Another process rotates it. This entry goes to the end of the full file.
            return Ok(false);
        }
        if is_same_file(full, &self.path) {
            fs::rename(&self.path, self.rotated())?;
        }
        Ok(true)
    }

    fn rotated(&self) -> PathBuf {
        self.path.with_extension("log.1")
    }

    /// Returns the warnings and errors since a time, oldest first.
    pub fn warnings_since(&self, then: Timestamp) -> Result<Vec<LogEntry>> {
        let (mut entries, _) = LogReader::begin(self)?;
        entries.retain(|entry| entry.at >= then && entry.level <= Level::WARN);
        Ok(entries)
    }
}

/// Reads the log, and then the entries that are appended.
#[derive(Debug)]
pub struct LogReader {
    log: Log,
    /// The current file, and the position up to which it was read.
    current: Option<(File, u64)>,
}

impl LogReader {
    /// Returns all entries of the log, oldest first, and a reader of those that follow.
    pub fn begin(log: &Log) -> Result<(Vec<LogEntry>, Self)> {
        let current = Lines::at(log.path.clone()).open()?;
        let mut entries = Vec::new();
        let mut read_older = |path: PathBuf| {
            // If the file is rotated meanwhile, its entries are read below, as those of the current
            // file.
            let is_current = |file: &File| is_same_file(file, &path);
            if current.as_ref().is_some_and(is_current) {
                return Ok(());
            }
            let lines = Lines::at(path);
            lines
                .read_from(0, |line| {
                    entries.extend(LogEntry::parse(line));
                    Ok(())
                })
                .map(drop)
        };
        read_older(log.path.with_file_name("hooks.log"))?;
        read_older(log.rotated())?;
        let mut reader = LogReader {
            log: log.clone(),
            current: current.map(|file| (file, 0)),
        };
        entries.extend(reader.next_entries()?);
        entries.sort_by_key(|entry| entry.at);
        Ok((entries, reader))
    }

    /// Returns the entries that were appended since the last call. Does not wait.
    pub fn next_entries(&mut self) -> Result<Vec<LogEntry>> {
        let lines = Lines::at(self.log.path.clone());
        let mut found = Vec::new();
        loop {
            // Checked before the read: a writer may append to the old file until it is rotated.
            let is_current = match &self.current {
                Some((file, _)) => is_same_file(file, &self.log.path),
                None => false,
            };
            if let Some((file, at)) = &mut self.current {
                *at = lines.read_file(file, *at, |line| {
                    found.extend(LogEntry::parse(line));
                    Ok::<(), Problem>(())
                })?;
            }
            if is_current {
                return Ok(found);
            }
            match lines.open()? {
                Some(file) => self.current = Some((file, 0)),
                None => return Ok(found),
            }
        }
    }
}

impl LogEntry {
    fn line(&self) -> String {
        let LogEntry {
            at,
            level,
            command,
            text,
        } = self;
        format!("{at:.3} {level} {command}: {text}\n")
    }

    /// Parses a line of this log, or of `hooks.log`, whose lines have no level and are errors.
    /// Returns `None` for a line that a crash left incomplete.
    fn parse(line: &[u8]) -> Option<Self> {
        let line = String::from_utf8_lossy(line);
        let (at, rest) = line.trim_end().split_once(' ')?;
        let (level, rest) = match rest.split_once(' ') {
            Some((word, rest)) if is_level(word) => (word.parse().ok()?, rest),
            _ => (Level::ERROR, rest),
        };
        let (command, text) = rest.split_once(": ")?;
        Some(LogEntry {
            at: at.parse().ok()?,
            level,
            command: command.to_owned(),
            text: text.to_owned(),
        })
    }

    /// Returns whether this entry repeats an entry that was written less than [`REPEAT_SECONDS`]
    /// ago.
    fn repeats(&self, last: &LogEntry) -> bool {
        let is_recent =
            self.at.duration_since(last.at).abs() < SignedDuration::from_secs(REPEAT_SECONDS);
        is_recent
            && (self.level, &self.command, self.text.trim_end())
                == (last.level, &last.command, last.text.trim_end())
    }
}

fn is_level(word: &str) -> bool {
    ["ERROR", "WARN", "INFO", "DEBUG", "TRACE"].contains(&word)
}

fn is_same_file(file: &File, path: &Path) -> bool {
    let id = |meta: fs::Metadata| (meta.dev(), meta.ino());
    match (file.metadata(), fs::metadata(path)) {
        (Ok(one), Ok(other)) => id(one) == id(other),
        _ => false,
    }
}

/// Returns the last complete entries of a file: at least one, and those that fit beside it.
fn last_entries(file: &File) -> io::Result<Vec<LogEntry>> {
    const TAIL: u64 = MAX_TEXT as u64 + 200;
    let end = whole_length(file, file.metadata()?.len())?;
    let start = end.saturating_sub(TAIL);
    let mut tail = vec![0; usize::try_from(end - start).unwrap_or_default()];
    file.read_exact_at(&mut tail, start)?;
    let lines = tail.split(|byte| *byte == b'\n');
    Ok(lines.filter_map(LogEntry::parse).collect())
}

/// Masks user names and passwords in URLs, as git prints them.
fn without_passwords(text: &str) -> String {
    let mut parts = text.split("://");
    let mut masked = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| c == '/' || c == '\'' || c == '"' || c.is_whitespace());
        let (host, rest) = part.split_at(end.unwrap_or(part.len()));
        let host = match host.rsplit_once('@') {
            Some((_, host)) => format!("***@{host}"),
            None => host.to_owned(),
        };
        masked.push_str("://");
        masked.push_str(&host);
        masked.push_str(rest);
    }
    masked
}

/// Returns the position at or before `at` at which the text may be cut.
fn cut(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    (0..=at)
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn new_log() -> (tempfile::TempDir, Log) {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join(".runtime")).unwrap();
        let log = Log::at(folder.path());
        (folder, log)
    }

    fn now() -> Timestamp {
        Timestamp::now()
    }

    fn texts(entries: &[LogEntry]) -> Vec<String> {
        let text = |entry: &LogEntry| format!("{} {}: {}", entry.level, entry.command, entry.text);
        entries.iter().map(text).collect()
    }

    #[test]
    fn entries_are_read_back_with_those_of_the_old_file() {
        let (_folder, log) = new_log();
        let old = "2026-01-17T12:00:00Z sync: cannot read: x\nno entry\n";
        fs::write(log.path.with_file_name("hooks.log"), old).unwrap();
        log.append(now(), Level::WARN, "mq run", "one\ntwo: three")
            .unwrap();
        log.append(now(), Level::INFO, "sync", "in order").unwrap();
        let (entries, mut reader) = LogReader::begin(&log).unwrap();
        assert_eq!(
            texts(&entries),
            [
                "ERROR sync: cannot read: x",
                "WARN mq run: one two: three",
                "INFO sync: in order"
            ]
        );
        let warnings = log.warnings_since(Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(texts(&warnings), texts(&entries[..2]));
        log.append(now(), Level::ERROR, "save", "later").unwrap();
        let next = reader.next_entries().unwrap();
        assert_eq!(texts(&next), ["ERROR save: later"]);
        let mode = log.path.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn repeated_entry_is_written_once_a_minute() {
        let (_folder, log) = new_log();
        for text in ["down", "down", "up", "down"] {
            log.append(now(), Level::ERROR, "status-line", text)
                .unwrap();
        }
        let (entries, _) = LogReader::begin(&log).unwrap();
        assert_eq!(
            texts(&entries),
            ["ERROR status-line: down", "ERROR status-line: up"]
        );
        let later = LogEntry {
            at: entries[0].at + SignedDuration::from_secs(61),
            ..entries[0].clone()
        };
        assert!(!later.repeats(&entries[0]));
    }

    #[test]
    fn passwords_of_urls_and_long_text_are_not_logged() {
        let (_folder, log) = new_log();
        let text =
            "cannot fetch 'https://me:s3cret@example.org/x' or ssh://git@host: see http://h/@";
        log.append(now(), Level::WARN, "rig add", text).unwrap();
        log.append(now(), Level::WARN, "rig add", &"ü".repeat(MAX_TEXT))
            .unwrap();
        let (entries, _) = LogReader::begin(&log).unwrap();
        assert_eq!(
            entries[0].text,
            "cannot fetch 'https://***@example.org/x' or ssh://***@host: see http://h/@"
        );
        assert_eq!(entries[1].text.len(), MAX_TEXT);
    }

    #[test]
    fn rotation_after_that_of_another_process_leaves_the_new_file() {
        let (_folder, log) = new_log();
        log.append(now(), Level::WARN, "sync", "old").unwrap();
        let open = || File::open(&log.path).unwrap();
        let (mine, theirs) = (open(), open());
        assert!(log.rotate(&theirs).unwrap());
        drop(theirs);
        log.append(now(), Level::WARN, "sync", "new").unwrap();
        assert!(log.rotate(&mine).unwrap());
        assert!(fs::read_to_string(&log.path).unwrap().contains("new"));
        let rotated = fs::read_to_string(log.rotated()).unwrap();
        assert!(rotated.contains("old"), "{rotated}");
    }

    #[test]
    fn full_file_is_rotated_once_by_concurrent_writers_and_read_on() {
        let (_folder, log) = new_log();
        let line = "2026-01-17T12:00:00Z WARN sync: old\n";
        let full = line.repeat(usize::try_from(MAX_BYTES).unwrap() / line.len() + 1);
        fs::write(&log.path, &full).unwrap();
        let (_, mut reader) = LogReader::begin(&log).unwrap();
        std::thread::scope(|scope| {
            for number in 0..8 {
                let log = &log;
                let text = format!("new {number}");
                scope.spawn(move || log.append(now(), Level::WARN, "sync", &text).unwrap());
            }
        });
        assert_eq!(reader.next_entries().unwrap().len(), 8);
        let (entries, _) = LogReader::begin(&log).unwrap();
        assert_eq!(entries.len(), full.lines().count() + 8);
        assert!(log.path.metadata().unwrap().len() < 1000);
        assert!(log.rotated().metadata().unwrap().len() >= MAX_BYTES);
    }
}

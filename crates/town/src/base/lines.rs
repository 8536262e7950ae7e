//! Files of lines that several processes append to: the journal of sessions and the events.
//!
//! A writer holds the file's lock and appends with one write. The next writer moves a last line
//! that a crash left incomplete to another file; readers ignore it. This module does not interpret
//! lines.

use crate::Result;
use crate::base::files;
use gt_core::Problem;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Whether appended lines must survive a power failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Durability {
    OnDisk,
    /// The lines survive the process, but not a crash of the machine.
    InSystem,
}

#[derive(Clone, Debug)]
pub(crate) struct Lines {
    path: PathBuf,
}

impl Lines {
    pub(crate) fn at(path: PathBuf) -> Self {
        Lines { path }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Appends complete lines, all or none. The caller holds the lock.
    pub(crate) fn append(&self, text: &[u8], durability: Durability) -> Result<()> {
        self.append_after(0, durability, |_| Ok(text.to_vec()))
    }

    /// Appends lines that depend on the last line: the callback gets the last `length` bytes of the
    /// complete lines. The caller holds the lock.
    pub(crate) fn append_after(
        &self,
        length: usize,
        durability: Durability,
        text: impl FnOnce(&[u8]) -> Result<Vec<u8>>,
    ) -> Result<()> {
        let mut file = self.open_to_append()?;
        let before = self.move_torn_line(&mut file)?;
        let end = end_before(&file, before, length)
            .map_err(|error| files::io_problem("read", &self.path, &error))?;
        let text = text(&end)?;
        let written = file.write_all(&text).and_then(|()| match durability {
            Durability::OnDisk => file.sync_data(),
            Durability::InSystem => Ok(()),
        });
        written.map_err(|error| {
            // Removes a partial line, as on a full disk. If this fails, the next writer repairs the
            // file.
            let _ = file.set_len(before);
            files::io_problem("write", &self.path, &error)
        })
    }

    /// Opens the file, and creates it if needed. Its directory entry must survive a power failure
    /// like its lines, so the folders are synced on creation.
    fn open_to_append(&self) -> Result<File> {
        let cannot = |error| files::io_problem("write", &self.path, &error);
        let mut options = File::options();
        options.read(true).append(true).mode(0o600);
        match options.open(&self.path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let file = options.create(true).open(&self.path).map_err(cannot)?;
                files::sync_folders(&self.path).map_err(cannot)?;
                Ok(file)
            }
            opened => opened.map_err(cannot),
        }
    }

    /// Moves an incomplete last line to the file of torn lines, and returns the length of the
    /// complete lines.
    fn move_torn_line(&self, file: &mut File) -> Result<u64> {
        let cannot = |error| files::io_problem("read", &self.path, &error);
        let length = file.seek(SeekFrom::End(0)).map_err(cannot)?;
        let whole = whole_length(file, length).map_err(cannot)?;
        if whole < length {
            file.seek(SeekFrom::Start(whole)).map_err(cannot)?;
            let mut torn = Vec::new();
            file.read_to_end(&mut torn).map_err(cannot)?;
            torn.push(b'\n');
            let aside = self.path.with_extension("torn");
            let keep = || {
                let mut options = File::options();
                let file = options.append(true).create(true).mode(0o600).open(&aside);
                let mut file = file?;
                file.write_all(&torn)?;
                file.sync_all()
            };
            keep().map_err(|error| files::io_problem("write", &aside, &error))?;
            file.set_len(whole)
                .map_err(|error| files::io_problem("mend", &self.path, &error))?;
        }
        Ok(whole)
    }

    /// Returns the current length of the file.
    pub(crate) fn length(&self) -> u64 {
        self.path.metadata().map_or(0, |meta| meta.len())
    }

    /// Opens the file; returns `None` if it does not exist.
    pub(crate) fn open(&self) -> Result<Option<File>> {
        match File::open(&self.path) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(files::io_problem("read", &self.path, &error)),
        }
    }

    /// Reads the complete lines from `start` on, each with its newline. Returns the end position;
    /// an incomplete line is left for later.
    pub(crate) fn read_from(
        &self,
        start: u64,
        each: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<u64> {
        match self.open()? {
            Some(mut file) => self.read_file(&mut file, start, each),
            None => Ok(0),
        }
    }

    /// Reads lines like [`Self::read_from`], from an open file that may have been replaced
    /// meanwhile.
    pub(crate) fn read_file<E: From<Problem>>(
        &self,
        file: &mut File,
        start: u64,
        mut each: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<u64, E> {
        let cannot = |error| files::io_problem("read", &self.path, &error);
        file.seek(SeekFrom::Start(start)).map_err(cannot)?;
        let mut reader = BufReader::with_capacity(1 << 18, file);
        let mut at = start;
        let mut line = Vec::new();
        loop {
            line.clear();
            let length = reader.read_until(b'\n', &mut line).map_err(cannot)?;
            if length == 0 || line.last() != Some(&b'\n') {
                return Ok(at);
            }
            at += length as u64;
            each(&line)?;
        }
    }
}

/// Returns the length up to and including the last newline.
pub(crate) fn whole_length(file: &File, length: u64) -> std::io::Result<u64> {
    let mut end = length;
    let mut piece = [0; 4096];
    while end > 0 {
        let start = end.saturating_sub(piece.len() as u64);
        let piece = &mut piece[..usize::try_from(end - start).unwrap_or_default()];
        // A writer may truncate an incomplete line at this moment.
        let there = read_at_most(file, piece, start)?;
        if let Some(at) = piece[..there].iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

/// Returns the bytes of a file before a position, at most this many.
pub(crate) fn end_before(file: &File, end: u64, length: usize) -> std::io::Result<Vec<u8>> {
    let start = end.saturating_sub(length as u64);
    let mut text = vec![0; usize::try_from(end - start).unwrap_or_default()];
    file.read_exact_at(&mut text, start)?;
    Ok(text)
}

/// Passes the complete lines of a part of a file, each with its newline.
pub(crate) fn each_line_in<E: From<Problem>>(
    path: &Path,
    file: &File,
    start: u64,
    end: u64,
    mut each: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let part = FilePart {
        file,
        at: start,
        end,
    };
    let mut reader = BufReader::with_capacity(1 << 18, part);
    let mut line = Vec::new();
    loop {
        line.clear();
        let length = reader.read_until(b'\n', &mut line);
        length.map_err(|error| files::io_problem("read", path, &error))?;
        if line.last() != Some(&b'\n') {
            return Ok(());
        }
        each(&line)?;
    }
}

/// Finds where the lines of an ordered file begin to be late, without reading the lines before. The
/// callback returns whether a line is late, or `None` if it cannot tell: such a line counts with the
/// lines around it. `end` is the end of the complete lines. Returns `end` if no line is late.
pub(crate) fn first_late(
    file: &File,
    end: u64,
    mut is_late: impl FnMut(&[u8]) -> Option<bool>,
) -> std::io::Result<u64> {
    /// Length of a part that is read line by line.
    const SHORT: u64 = 1 << 16;
    // Lines before `low` are not late, and lines from `high` on are.
    let (mut low, mut high) = (0, end);
    while high - low > SHORT {
        let start = line_after(file, low + (high - low) / 2, high)?;
        match first_verdict(file, start, high, &mut is_late)? {
            Some((_, after, false)) => low = after,
            Some((_, _, true)) | None if start < high => high = start,
            // The line in the middle reaches to the end of the part.
            _ => break,
        }
    }
    let mut at = low;
    while let Some((line, after, is_late)) = first_verdict(file, at, high, &mut is_late)? {
        if is_late {
            return Ok(line);
        }
        at = after;
    }
    Ok(high)
}

/// Returns the start of the first line after a position, or `end`.
fn line_after(file: &File, at: u64, end: u64) -> std::io::Result<u64> {
    let mut reader = BufReader::new(FilePart { file, at, end });
    let length = reader.skip_until(b'\n')?;
    Ok((at + length as u64).min(end))
}

/// Returns the start and the end of the first line that the callback can judge, and its verdict.
fn first_verdict(
    file: &File,
    start: u64,
    end: u64,
    is_late: &mut impl FnMut(&[u8]) -> Option<bool>,
) -> std::io::Result<Option<(u64, u64, bool)>> {
    let part = FilePart {
        file,
        at: start,
        end,
    };
    let mut reader = BufReader::new(part);
    let mut at = start;
    let mut line = Vec::new();
    loop {
        line.clear();
        let length = reader.read_until(b'\n', &mut line)?;
        if length == 0 {
            return Ok(None);
        }
        let after = at + length as u64;
        if let Some(is_late) = is_late(&line) {
            return Ok(Some((at, after, is_late)));
        }
        at = after;
    }
}

/// A part of a file, read without moving the position of the file.
#[derive(Debug)]
struct FilePart<'a> {
    file: &'a File,
    at: u64,
    end: u64,
}

impl Read for FilePart<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX);
        let length = buffer.len().min(left);
        let read = self.file.read_at(&mut buffer[..length], self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// Reads up to the size of the buffer, or to the end of the file.
fn read_at_most(file: &File, buffer: &mut [u8], start: u64) -> std::io::Result<usize> {
    let mut there = 0;
    while there < buffer.len() {
        match file.read_at(&mut buffer[there..], start + there as u64) {
            Ok(0) => break,
            Ok(length) => there += length,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(there)
}

/// Reads the complete lines of a file before a position, last line first. Returns each with its
/// start and without its newline.
#[derive(Debug)]
pub(crate) struct Backwards<'a> {
    file: &'a File,
    /// Start of the part in memory.
    start: u64,
    /// The bytes in memory before the line returned last.
    held: Vec<u8>,
}

impl<'a> Backwards<'a> {
    /// Reads the lines that end at or before this position.
    pub(crate) fn before(file: &'a File, end: u64) -> std::io::Result<Self> {
        Ok(Backwards {
            file,
            start: whole_length(file, end)?,
            held: Vec::new(),
        })
    }

    /// Returns the line before the one returned last.
    pub(crate) fn next_line(&mut self) -> std::io::Result<Option<(u64, Vec<u8>)>> {
        const PIECE: u64 = 1 << 16;
        loop {
            // The bytes in memory end with the newline of the line to return.
            let text = self.held.strip_suffix(b"\n").unwrap_or(&self.held);
            let at = memchr::memrchr(b'\n', text);
            if let Some(at) = at {
                let line = text[at + 1..].to_vec();
                self.held.truncate(at + 1);
                return Ok(Some((self.start + at as u64 + 1, line)));
            }
            if self.start == 0 {
                let line = text.to_vec();
                let is_over = self.held.is_empty();
                self.held.clear();
                return Ok((!is_over).then_some((0, line)));
            }
            let from = self.start.saturating_sub(PIECE);
            let mut piece = vec![0; usize::try_from(self.start - from).unwrap_or_default()];
            self.file.read_exact_at(&mut piece, from)?;
            piece.append(&mut self.held);
            self.held = piece;
            self.start = from;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_late_line_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.jsonl");
        let check = |lines: &[String], late: usize| {
            std::fs::write(&path, lines.concat()).unwrap();
            let file = File::open(&path).unwrap();
            let end = file.metadata().unwrap().len();
            let mut read = 0;
            let found = first_late(&file, end, |line| {
                read += line.len() as u64;
                let number: usize = std::str::from_utf8(line)
                    .ok()?
                    .split(' ')
                    .next()?
                    .parse()
                    .ok()?;
                Some(number >= late)
            });
            let expected: usize = lines
                .iter()
                .take_while(|line| line.split(' ').next() != Some(&late.to_string()))
                .map(String::len)
                .sum();
            assert_eq!(found.unwrap(), expected as u64, "{late}");
            (read, end)
        };
        let many: Vec<String> = (0..20_000)
            .map(|at| format!("{at} {}\n", "x".repeat(at % 300)))
            .collect();
        for late in [0, 1, 9_999, 10_000, 19_999, 20_000] {
            let (read, end) = check(&many, late);
            assert!(read < end / 10, "{read} of {end}");
        }
        // Long lines, and no lines.
        let long: Vec<String> = (0..9)
            .map(|at| format!("{at} {}\n", "x".repeat(100_000)))
            .collect();
        for late in 0..=9 {
            check(&long, late);
        }
        check(&[], 3);
    }

    #[test]
    fn lines_without_verdict_count_with_their_neighbours() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.jsonl");
        let torn = "?".repeat(90_000);
        std::fs::write(&path, format!("{torn}\nearly\n{torn}\nlate\n{torn}\n")).unwrap();
        let file = File::open(&path).unwrap();
        let end = file.metadata().unwrap().len();
        let found = first_late(&file, end, |line| match line {
            b"early\n" => Some(false),
            b"late\n" => Some(true),
            _ => None,
        });
        let (after_early, late) = (90_007, 180_008);
        assert!((after_early..=late).contains(&found.unwrap()));
    }

    fn backwards(text: &str) -> Vec<(u64, String)> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.jsonl");
        std::fs::write(&path, text).unwrap();
        let file = File::open(&path).unwrap();
        let mut lines = Backwards::before(&file, text.len() as u64).unwrap();
        let mut found = Vec::new();
        while let Some((at, line)) = lines.next_line().unwrap() {
            found.push((at, String::from_utf8(line).unwrap()));
        }
        found
    }

    #[test]
    fn lines_are_read_from_the_end() {
        let own = |lines: &[(u64, &str)]| -> Vec<(u64, String)> {
            lines.iter().map(|(at, l)| (*at, (*l).to_owned())).collect()
        };
        assert_eq!(backwards(""), []);
        assert_eq!(backwards("torn"), []);
        assert_eq!(backwards("a\n"), own(&[(0, "a")]));
        assert_eq!(
            backwards("a\n\nbc\ntor"),
            own(&[(3, "bc"), (2, ""), (0, "a")])
        );
        // Lines longer than a piece, and lines that end exactly at the end of a piece.
        for length in [65_534, 65_535, 65_536, 65_537, 200_000] {
            let (long, text) = (
                "x".repeat(length),
                format!("a\n{}\nb\n", "x".repeat(length)),
            );
            let found = backwards(&text);
            let expected = [(3 + length as u64, "b"), (2, long.as_str()), (0, "a")];
            assert_eq!(found, own(&expected), "{length}");
        }
    }
}

//! Writes a recording within its size limit.
//!
//! Complete lines are appended, in one write for all that arrived together. When a part is full the
//! next one begins, and the oldest part except the first is removed before that: the beginning and
//! the end of a session are worth most.

use super::file_name;
use crate::Result;
use crate::base::files;
use gt_core::cast::{self, CastContent, CastEvent, CastHeader, Part, Utf8Decoder};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(super) struct Writer {
    folder: PathBuf,
    session: String,
    header: CastHeader,
    /// Maximum length of a part.
    longest: u64,
    /// The first part, locked while a process records.
    _lock: File,
    part: File,
    /// Length of the part, including unwritten bytes.
    length: u64,
    unwritten: Vec<u8>,
    /// Bytes of output so far.
    bytes: u64,
    decoder: Utf8Decoder,
}

impl Writer {
    /// Begins a recording. A session has at most one.
    pub(super) fn create(
        folder: &Path,
        session: &str,
        header: CastHeader,
        most: u64,
    ) -> Result<Self> {
        files::make_dir(folder)?;
        let path = folder.join(file_name(session, 0));
        let cannot = |error: io::Error| files::io_problem("record into", &path, &error);
        let part = open(&path).map_err(cannot)?;
        let lock = part.try_clone().map_err(cannot)?;
        lock.try_lock().map_err(|error| cannot(error.into()))?;
        let mut writer = Writer {
            folder: folder.to_owned(),
            session: session.to_owned(),
            header,
            longest: cast::part_length(most),
            _lock: lock,
            part,
            length: 0,
            unwritten: Vec::new(),
            bytes: 0,
            decoder: Utf8Decoder::default(),
        };
        writer.begin_part(0);
        writer.flush().map_err(cannot)?;
        Ok(writer)
    }

    /// Adds output of the pane.
    pub(super) fn output(&mut self, at: f64, bytes: &[u8]) -> io::Result<()> {
        let text = self.decoder.push(bytes);
        self.text(at, &text)
    }

    /// Notes the pane's size, if it has changed.
    pub(super) fn size(&mut self, at: f64, columns: u16, rows: u16) -> io::Result<()> {
        if (self.header.width, self.header.height) == (columns, rows) {
            return Ok(());
        }
        (self.header.width, self.header.height) = (columns, rows);
        self.add(at, CastContent::Size { columns, rows })
    }

    pub(super) fn write_remark(&mut self, at: f64, text: String) -> io::Result<()> {
        self.add(at, CastContent::Remark(text))
    }

    /// Writes an incomplete last character and all pending lines.
    pub(super) fn finish(&mut self, at: f64) -> io::Result<()> {
        let left = self.decoder.finish();
        self.text(at, left)?;
        self.flush()
    }

    /// Writes the pending lines. If that fails, the part ends with its last complete line.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        let unwritten = std::mem::take(&mut self.unwritten);
        self.part.write_all(&unwritten).inspect_err(|_| {
            self.length -= unwritten.len() as u64;
            // Best effort: readers expect an incomplete line of a killed process anyway.
            let _ = self.part.set_len(self.length);
        })
    }

    fn text(&mut self, at: f64, text: &str) -> io::Result<()> {
        for piece in cast::pieces(text) {
            self.add(at, CastContent::Output(piece.to_owned()))?;
            self.bytes += piece.len() as u64;
        }
        Ok(())
    }

    fn add(&mut self, at: f64, what: CastContent) -> io::Result<()> {
        let line = CastEvent { at, what }.line();
        if self.length + line.len() as u64 > self.longest {
            self.next_part()?;
        }
        self.push(&line);
        Ok(())
    }

    fn next_part(&mut self) -> io::Result<()> {
        self.flush()?;
        let number = self.header.part.map_or(0, |part| part.number) + 1;
        if let Some(old) = cast::part_to_delete(number) {
            match std::fs::remove_file(self.folder.join(file_name(&self.session, old))) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        self.part = open(&self.folder.join(file_name(&self.session, number)))?;
        self.begin_part(number);
        Ok(())
    }

    fn begin_part(&mut self, number: u32) {
        self.length = 0;
        self.header.part = Some(Part {
            number,
            bytes_before: self.bytes,
        });
        self.push(&self.header.line());
    }

    fn push(&mut self, line: &str) {
        self.length += line.len() as u64;
        self.unwritten.extend_from_slice(line.as_bytes());
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .append(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

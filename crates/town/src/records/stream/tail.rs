//! The end of a growing file, read line by line as it grows.
//!
//! A prune may replace a log. The old file does not grow from then on, so the rest of it is read
//! first. The new file shows where the old one ended: by the line that the prune wrote, which names
//! the file that it replaced ([`crate::records::retention`]).

use super::Cursor;
use crate::Result;
use crate::base::clock::Clock;
use crate::base::files;
use crate::base::lines::{Backwards, Lines};
use crate::records::events;
use crate::records::retention::MARKER;
use jiff::Timestamp;
use std::fs::File;
use std::os::unix::fs::MetadataExt;

#[derive(Debug)]
pub(super) struct Tail {
    lines: Lines,
    open: Option<OpenFile>,
    /// The time of the last event that was read.
    last: Option<Timestamp>,
}

#[derive(Debug)]
struct OpenFile {
    file: File,
    cursor: Cursor,
}

impl Tail {
    /// Begins at the end of the file; if the file does not exist yet, at its beginning.
    pub(super) fn at_end(lines: Lines) -> Result<Self> {
        let open = open(&lines)?.map(|(file, inode, length)| {
            // A length that cannot be checked may include a part of a line, which the reader drops.
            let offset = crate::base::lines::whole_length(&file, length).unwrap_or(length);
            let cursor = Cursor {
                file: inode,
                offset,
            };
            OpenFile { file, cursor }
        });
        Ok(Tail {
            lines,
            open,
            last: Some(Clock::default().now()),
        })
    }

    /// Begins at that position; `None` means the beginning of a file that does not exist yet.
    /// `last` is the time of the last event read, by which the position is found if the file was
    /// replaced more than once.
    pub(super) fn at(lines: Lines, at: Option<Cursor>, last: Option<Timestamp>) -> Result<Self> {
        let mut tail = Tail {
            lines,
            open: None,
            last,
        };
        if let Some(cursor) = at
            && let Some((file, inode, _)) = open(&tail.lines)?
        {
            tail.open = Some(match inode == cursor.file {
                true => OpenFile { file, cursor },
                false => tail.join(file, inode, cursor.file)?,
            });
        }
        Ok(tail)
    }

    /// Adopts the position of another reader. The file stays open, so that the rest can be read
    /// from it even after it is replaced.
    pub(super) fn advance(&mut self, to: Cursor, last: Option<Timestamp>) -> Result<()> {
        self.last = last;
        match &mut self.open {
            Some(open) if open.cursor.file == to.file => open.cursor = to,
            _ => *self = Self::at(self.lines.clone(), Some(to), last)?,
        }
        Ok(())
    }

    pub(super) fn cursor(&self) -> Option<Cursor> {
        self.open.as_ref().map(|open| open.cursor)
    }

    /// Returns the open file, to read what is before the cursor.
    pub(super) fn file(&self) -> Option<&File> {
        self.open.as_ref().map(|open| &open.file)
    }

    /// Passes every new complete line, with the position after it.
    pub(super) fn read(&mut self, mut each: impl FnMut(&[u8], Cursor)) -> Result<()> {
        loop {
            self.read_open(&mut each)?;
            let Some((file, inode, length)) = open(&self.lines)? else {
                return Ok(());
            };
            match &mut self.open {
                None => {
                    let cursor = Cursor {
                        file: inode,
                        offset: 0,
                    };
                    self.open = Some(OpenFile { file, cursor });
                }
                Some(open) if open.cursor.file == inode => {
                    if length >= open.cursor.offset {
                        return Ok(());
                    }
                    // The file was truncated: all its content is new.
                    open.cursor.offset = 0;
                }
                Some(open) => {
                    // Replaced: the old file no longer grows.
                    let old = open.cursor.file;
                    self.read_open(&mut each)?;
                    self.open = Some(self.join(file, inode, old)?);
                }
            }
        }
    }

    fn read_open(&mut self, each: &mut impl FnMut(&[u8], Cursor)) -> Result<()> {
        let Some(OpenFile { file, cursor }) = &mut self.open else {
            return Ok(());
        };
        let length = file.metadata().map_or(0, |meta| meta.len());
        if length <= cursor.offset {
            return Ok(());
        }
        let mut last = None;
        self.lines.read_file(file, cursor.offset, |line| {
            cursor.offset += line.len() as u64;
            last = events::read(line).and_then(|event| events::time_of(&event));
            each(line, *cursor);
            Ok::<(), gt_core::Problem>(())
        })?;
        self.last = last.or(self.last);
        Ok(())
    }

    /// Returns the position in a new file at which an old one ended.
    fn join(&self, file: File, inode: u64, old: u64) -> Result<OpenFile> {
        let cannot = |error| files::io_problem("read", self.lines.path(), &error);
        let length = file.metadata().map_err(cannot)?.len();
        let mut lines = Backwards::before(&file, length).map_err(cannot)?;
        // Without a marker, begins after the time of the last event read.
        let mut later = None;
        let mut offset = None;
        while let Some((at, line)) = lines.next_line().map_err(cannot)? {
            let Some(event) = events::read(&line) else {
                continue;
            };
            let replaced = event.payload.get("replaced");
            if event.kind == MARKER && replaced.and_then(serde_json::Value::as_u64) == Some(old) {
                offset = Some(at);
                break;
            }
            let time = events::time_of(&event);
            if time > self.last {
                later = Some(at);
            } else if let (Some(time), Some(last)) = (time, self.last)
                && time.duration_until(last) > jiff::SignedDuration::from_secs(60)
            {
                break;
            }
        }
        let end = crate::base::lines::whole_length(&file, length).map_err(cannot)?;
        let offset = offset.or(later).unwrap_or(end);
        let cursor = Cursor {
            file: inode,
            offset,
        };
        Ok(OpenFile { file, cursor })
    }
}

fn open(lines: &Lines) -> Result<Option<(File, u64, u64)>> {
    let Some(file) = lines.open()? else {
        return Ok(None);
    };
    let meta = file
        .metadata()
        .map_err(|error| files::io_problem("read", lines.path(), &error))?;
    Ok(Some((file, meta.ino(), meta.len())))
}

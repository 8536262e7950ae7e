//! Reads a recording, including an incomplete one: it may still be written, or its writer was
//! killed.

use super::Recording;
use crate::Result;
use crate::base::files;
use gt_core::Problem;
use gt_core::cast::{CastContent, CastEvent, CastHeader};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::ops::ControlFlow;
use std::path::Path;

/// Totals of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Summary {
    pub events: u64,
    pub seconds: f64,
    /// Bytes of output that were dropped.
    pub missing: u64,
}

impl Recording {
    /// Returns the header of the recording.
    pub fn header(&self) -> Result<CastHeader> {
        for (_, path) in &self.parts {
            let header = open(path)?.and_then(|mut part| part.header());
            if let Some(header) = header {
                return Ok(CastHeader {
                    part: None,
                    ..header
                });
            }
        }
        Err(Problem::failed(format!(
            "the recording {} has no beginning",
            self.path().display()
        )))
    }

    /// Returns its size on the disk.
    pub fn bytes(&self) -> u64 {
        // A part may be removed meanwhile.
        let lengths = self
            .parts
            .iter()
            .filter_map(|(_, path)| path.metadata().ok());
        lengths.map(|meta| meta.len()).sum()
    }

    /// Passes every event to `give` in order, over all parts, until it breaks. Incomplete or
    /// unknown lines are skipped.
    pub fn for_each(
        &self,
        mut give: impl FnMut(CastEvent) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let mut at = 0.0;
        let mut bytes = 0;
        let mut size = None;
        for (_, path) in &self.parts {
            // The oldest part may be removed at this moment.
            let Some(mut part) = open(path)? else {
                continue;
            };
            let Some(header) = part.header() else {
                continue;
            };
            let before = header.part.map_or(bytes, |part| part.bytes_before);
            let mut seams = Vec::new();
            if before > bytes {
                seams.push(CastContent::Missing(before - bytes));
                bytes = before;
            }
            let (columns, rows) = (header.width, header.height);
            if size
                .replace((columns, rows))
                .is_some_and(|size| size != (columns, rows))
            {
                seams.push(CastContent::Size { columns, rows });
            }
            for what in seams {
                if give(CastEvent { at, what })?.is_break() {
                    return Ok(());
                }
            }
            while let Some(line) = part
                .line()
                .map_err(|e| files::io_problem("read", path, &e))?
            {
                let Some(event) = CastEvent::from_line(&line) else {
                    continue;
                };
                // A player waits for times that grow.
                at = event.at.max(at);
                match &event.what {
                    CastContent::Output(text) => bytes += text.len() as u64,
                    CastContent::Size { columns, rows } => size = Some((*columns, *rows)),
                    CastContent::Remark(_) | CastContent::Missing(_) => {}
                }
                if give(CastEvent { at, ..event })?.is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    pub fn summary(&self) -> Result<Summary> {
        let mut summary = Summary::default();
        self.for_each(|event| {
            summary.add(&event);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(summary)
    }
}

impl Summary {
    pub fn add(&mut self, event: &CastEvent) {
        self.events += 1;
        self.seconds = event.at;
        if let CastContent::Missing(bytes) = event.what {
            self.missing += bytes;
        }
    }
}

struct PartFile {
    lines: BufReader<File>,
}

fn open(path: &Path) -> Result<Option<PartFile>> {
    match File::open(path) {
        Ok(file) => Ok(Some(PartFile {
            lines: BufReader::with_capacity(1 << 16, file),
        })),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(files::io_problem("read", path, &error)),
    }
}

impl PartFile {
    fn header(&mut self) -> Option<CastHeader> {
        // A recording without a header is reported as damaged.
        CastHeader::from_line(&self.line().ok()??)
    }

    /// Returns the next complete line; `None` if the last line is incomplete.
    fn line(&mut self) -> std::io::Result<Option<Vec<u8>>> {
        let mut line = Vec::new();
        self.lines.read_until(b'\n', &mut line)?;
        Ok((line.last() == Some(&b'\n')).then_some(line))
    }
}

#[cfg(test)]
mod tests {
    use super::super::writer::Writer;
    use super::super::{Recordings, file_name};
    use super::*;
    use std::collections::BTreeMap;
    use std::io::Write;

    const MAX: u64 = 1 << 20;

    fn header() -> CastHeader {
        CastHeader {
            version: 2,
            width: 80,
            height: 24,
            timestamp: Some(0),
            title: None,
            env: BTreeMap::new(),
            part: None,
        }
    }

    fn events(recordings: &Recordings) -> Vec<CastEvent> {
        let recording = recordings.find("life").unwrap().unwrap();
        let mut events = Vec::new();
        let read = recording.for_each(|event| {
            events.push(event);
            Ok(ControlFlow::Continue(()))
        });
        read.unwrap();
        events
    }

    fn text(events: &[CastEvent]) -> String {
        let outputs = events.iter().filter_map(|event| match &event.what {
            CastContent::Output(text) => Some(text.as_str()),
            _ => None,
        });
        outputs.collect()
    }

    fn size_on_disk(folder: &Path) -> u64 {
        let entries = std::fs::read_dir(folder).unwrap();
        entries.map(|e| e.unwrap().metadata().unwrap().len()).sum()
    }

    #[test]
    fn recording_is_read_up_to_an_incomplete_line() {
        let dir = tempfile::tempdir().unwrap();
        let recordings = Recordings {
            clock: crate::base::clock::Clock::default(),
            folder: dir.path().to_owned(),
        };
        assert!(recordings.find("life").unwrap().is_none());
        let mut writer = Writer::create(dir.path(), "life", header(), MAX).unwrap();
        writer.output(0.5, b"a\xf0\x9f").unwrap();
        writer.size(0.7, 80, 24).unwrap();
        writer.size(0.75, 100, 30).unwrap();
        writer.output(1.0, b"\x8e\x89b\xe2").unwrap();
        writer.finish(1.25).unwrap();
        let path = dir.path().join(file_name("life", 0));
        let whole = events(&recordings);
        assert_eq!(text(&whole), "a🎉b\u{fffd}");
        let at: Vec<f64> = whole.iter().map(|event| event.at).collect();
        assert_eq!(at, [0.5, 0.75, 1.0, 1.25]);
        // A damaged line, and then a kill in the middle of a line.
        let mut file = File::options().append(true).open(&path).unwrap();
        file.write_all(b"nonsense\n[2.0, \"o\", \"to").unwrap();
        assert_eq!(events(&recordings), whole);
        // A file that is truncated anywhere is read as far as it goes.
        let bytes = std::fs::read(&path).unwrap();
        for length in 0..bytes.len() {
            std::fs::write(&path, &bytes[..length]).unwrap();
            assert!(whole.starts_with(&events(&recordings)), "{length}");
        }
    }

    #[test]
    fn a_long_one_keeps_its_beginning_and_its_end() {
        let dir = tempfile::tempdir().unwrap();
        let recordings = Recordings {
            clock: crate::base::clock::Clock::default(),
            folder: dir.path().to_owned(),
        };
        let mut writer = Writer::create(dir.path(), "life", header(), MAX).unwrap();
        let mut written = String::new();
        for number in 0..40_000 {
            let line = format!("\x1b[1mline {number:06}\x1b[0m and some more of it, {number}\r\n");
            writer
                .output(f64::from(number) / 10.0, line.as_bytes())
                .unwrap();
            written.push_str(&line);
            if number % 500 == 0 {
                writer.flush().unwrap();
                assert!(size_on_disk(dir.path()) <= MAX, "at line {number}");
            }
            if number == 20_000 {
                writer.size(2_000.0, 90, 25).unwrap();
            }
        }
        writer.finish(4_000.0).unwrap();
        assert!(size_on_disk(dir.path()) <= MAX);
        assert!(size_on_disk(dir.path()) > MAX / 2);
        let events = events(&recordings);
        let gap = events
            .iter()
            .position(|event| matches!(event.what, CastContent::Missing(_)))
            .unwrap();
        let (head, tail) = (text(&events[..gap]), text(&events[gap..]));
        assert!(
            written.starts_with(&head) && head.len() > 30_000,
            "{}",
            head.len()
        );
        assert!(
            written.ends_with(&tail) && tail.len() > 200_000,
            "{}",
            tail.len()
        );
        let missing = (written.len() - head.len() - tail.len()) as u64;
        assert_eq!(events[gap].what, CastContent::Missing(missing));
        // The change of size was dropped with the middle, and is still known.
        assert!(events[gap + 1..].iter().any(|event| event.what
            == CastContent::Size {
                columns: 90,
                rows: 25
            }));
        assert!(events.windows(2).all(|two| two[0].at <= two[1].at));
        let recording = recordings.find("life").unwrap().unwrap();
        let summary = recording.summary().unwrap();
        assert_eq!(summary.missing, missing);
        assert_eq!(summary.events, events.len() as u64);
        assert_eq!(recording.bytes(), size_on_disk(dir.path()));
        assert_eq!(recording.header().unwrap(), header());
        // Each file is a recording by itself.
        assert_eq!(recording.parts.len(), 8);
        for (_, path) in &recording.parts {
            let text = std::fs::read_to_string(path).unwrap();
            let mut lines = text.lines();
            assert!(CastHeader::from_line(lines.next().unwrap().as_bytes()).is_some());
            assert!(lines.all(|line| CastEvent::from_line(line.as_bytes()).is_some()));
        }
    }

    #[test]
    fn session_is_recorded_once() {
        let dir = tempfile::tempdir().unwrap();
        let _writer = Writer::create(dir.path(), "life", header(), MAX).unwrap();
        assert!(Writer::create(dir.path(), "life", header(), MAX).is_err());
    }
}

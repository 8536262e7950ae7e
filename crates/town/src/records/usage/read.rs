//! Reads the new lines of a file, from where the last read stopped.

use gt_core::usage::TranscriptProgress;
use serde::{Deserialize, Serialize};
use std::fs::OpenOptions;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Maximum length of a line. Longer lines are skipped: they hold pictures, and no figures.
const LONGEST: usize = 32 << 20;

/// The position in a file, and the result of reading it.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct FileProgress {
    /// Identity of the file: another file in its place is read from its beginning.
    inode: u64,
    /// The end of the last complete line.
    pub(super) offset: u64,
    pub(super) reading: TranscriptProgress,
}

/// Passes the new lines to `each`. An incomplete last line is left for the next read. Returns the
/// number of bytes read.
pub(super) fn read_on(
    path: &Path,
    progress: &mut FileProgress,
    mut each: impl FnMut(&mut TranscriptProgress, &str),
) -> io::Result<u64> {
    let meta = path.metadata()?;
    if !meta.is_file() {
        return Ok(0);
    }
    if meta.ino() != progress.inode || meta.len() < progress.offset {
        *progress = FileProgress {
            inode: meta.ino(),
            ..FileProgress::default()
        };
    }
    let new = meta.len() - progress.offset;
    if new == 0 {
        return Ok(0);
    }
    // Another kind of file may be in its place by now; opening it must not block.
    let flags = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or_default();
    let mut file = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)?;
    file.seek(SeekFrom::Start(progress.offset))?;
    // Bytes that are added meanwhile are left for the next read, so that this one ends.
    let mut reader = BufReader::with_capacity(1 << 18, file.take(new));
    let mut line = Vec::new();
    let mut is_too_long = false;
    let mut read = 0;
    let start = progress.offset;
    loop {
        let piece = reader.fill_buf()?;
        if piece.is_empty() {
            return Ok(read);
        }
        let end = piece.iter().position(|byte| *byte == b'\n');
        let length = end.map_or(piece.len(), |end| end + 1);
        if !is_too_long {
            line.extend_from_slice(&piece[..end.unwrap_or(length)]);
        }
        reader.consume(length);
        read += length as u64;
        if line.len() > LONGEST {
            is_too_long = true;
            line = Vec::new();
        }
        if end.is_some() {
            if let Ok(text) = std::str::from_utf8(&line) {
                each(&mut progress.reading, text);
            }
            line.clear();
            is_too_long = false;
            progress.offset = start + read;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gt_core::price::Prices;
    use gt_core::usage::{Format, UsageWindow};
    use std::fs::{self, File};
    use std::io::Write;

    fn answer(id: usize, output: u64) -> String {
        format!(
            r#"{{"type":"assistant","timestamp":"2026-11-16T02:32:54.535Z","message":{{"id":"msg_{id}","model":"m","usage":{{"input_tokens":1,"output_tokens":{output}}}}}}}"#
        )
    }

    /// Reads on; returns the bytes that it read and the output tokens so far.
    fn read_more(path: &Path, progress: &mut FileProgress) -> (u64, u64) {
        let prices = Prices::builtin();
        let read = read_on(path, progress, |reading, line| {
            reading.line(Format::Claude, line, &UsageWindow::default(), &prices);
        });
        (read.unwrap(), progress.reading.usage().output_tokens)
    }

    fn append(path: &Path, text: &str) {
        let file = File::options().create(true).append(true).open(path);
        file.unwrap().write_all(text.as_bytes()).unwrap();
    }

    #[test]
    fn a_long_transcript_is_read_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("long.jsonl");
        // 100 MB, mostly text that agents read and write.
        let file = File::create(&path).unwrap();
        let mut file = io::BufWriter::new(file);
        let filler = format!(
            r#"{{"type":"user","message":{{"content":"{}"}}}}"#,
            "x".repeat(99_000)
        );
        for id in 0..1_050 {
            writeln!(file, "{filler}\n{}", answer(id, 1)).unwrap();
        }
        file.flush().unwrap();
        let size = path.metadata().unwrap().len();
        assert!(size > 100_000_000, "{size}");
        let mut progress = FileProgress::default();
        assert_eq!(read_more(&path, &mut progress), (size, 1_050));
        assert_eq!(
            read_more(&path, &mut progress),
            (0, 1_050),
            "nothing is new"
        );
        // The state is serialized in between, as between two commands.
        let text = serde_json::to_string(&progress).unwrap();
        assert!(text.len() < 32_768, "{}", text.len());
        let mut progress: FileProgress = serde_json::from_str(&text).unwrap();
        let tail = format!("{}\n", answer(2_000, 5));
        append(&path, &tail);
        assert_eq!(read_more(&path, &mut progress), (tail.len() as u64, 1_055));
    }

    #[test]
    fn half_a_line_is_left_for_later() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.jsonl");
        let line = answer(1, 7);
        let (first, rest) = line.split_at(40);
        append(&path, &format!("{}\n{first}", answer(0, 1)));
        let mut progress = FileProgress::default();
        assert_eq!(read_more(&path, &mut progress).1, 1);
        append(&path, &format!("{rest}\n"));
        assert_eq!(read_more(&path, &mut progress).1, 8);
    }

    #[test]
    fn replaced_or_truncated_file_is_read_from_its_start() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.jsonl");
        append(&path, &format!("{}\n{}\n", answer(0, 1), answer(1, 1)));
        let mut progress = FileProgress::default();
        assert_eq!(read_more(&path, &mut progress).1, 2);
        fs::write(&path, format!("{}\n", answer(2, 30))).unwrap();
        assert_eq!(read_more(&path, &mut progress).1, 30);
        let other = dir.path().join("y.jsonl");
        append(&other, &format!("{}\n{}\n", answer(3, 4), answer(4, 4)));
        fs::rename(&other, &path).unwrap();
        assert_eq!(read_more(&path, &mut progress).1, 8);
    }

    #[test]
    fn unreadable_lines_and_files_are_skipped() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.jsonl");
        let mut bytes = b"\xff\xfe\0\n\n{\"type\":\"assistant\",\"usage\":[[[\n".to_vec();
        bytes.extend(answer(0, 3).bytes());
        bytes.push(b'\n');
        fs::write(&path, bytes).unwrap();
        assert_eq!(read_more(&path, &mut FileProgress::default()).1, 3);
        let mut progress = FileProgress::default();
        let nothing = |progress: &mut FileProgress, path: &Path| read_on(path, progress, |_, _| ());
        assert!(nothing(&mut progress, &dir.path().join("none")).is_err());
        assert_eq!(nothing(&mut progress, dir.path()).unwrap(), 0);
        let pipe = dir.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        assert_eq!(
            nothing(&mut progress, &pipe).unwrap(),
            0,
            "it does not wait"
        );
    }
}

//! Recordings of a terminal, as lines of asciicast v2.
//!
//! The first line is a [`CastHeader`], every other line an [`CastEvent`]. A long recording is split into
//! several parts (see [`Part`]). Times continue from part to part, so parts are joined by
//! concatenating their events. [`view`] decides which output of a recording is safe to show on a
//! terminal.

mod decode;
pub mod view;

pub use decode::Utf8Decoder;

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Maximum number of parts of a recording: the first, and the newest of the others.
pub const PARTS: u32 = 8;

/// Maximum text of one event in bytes, so that a line is short compared to a part.
const LONGEST: usize = 8 << 10;

/// The first line of a recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CastHeader {
    pub version: u8,
    pub width: u16,
    pub height: u16,
    /// Start time, in seconds since the epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The number of the part. Other readers of the format ignore it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
}

/// The position of a part in its recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    pub number: u32,
    /// Bytes of output before this part, from which a reader computes how much is missing.
    pub bytes_before: u64,
}

impl CastHeader {
    pub fn line(&self) -> String {
        // Cannot fail: all fields are plain values.
        let json = serde_json::to_string(self).unwrap_or_default();
        format!("{json}\n")
    }

    /// Parses the first line of a recording. Returns `None` for a truncated line or another version.
    pub fn from_line(line: &[u8]) -> Option<Self> {
        serde_json::from_slice(line)
            .ok()
            .filter(|header: &CastHeader| header.version == 2)
    }
}

/// An event, with its time in seconds since the start.
#[derive(Clone, Debug, PartialEq)]
pub struct CastEvent {
    pub at: f64,
    pub what: CastContent,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CastContent {
    Output(String),
    Size {
        columns: u16,
        rows: u16,
    },
    /// A remark by the recorder.
    Remark(String),
    /// This many bytes of output were dropped, because the recording became too long.
    Missing(u64),
}

impl CastContent {
    /// Returns the text of a remark for people.
    pub fn remark_text(&self) -> Option<String> {
        match self {
            CastContent::Remark(text) => Some(text.clone()),
            CastContent::Missing(bytes) => Some(format!("{} are missing here", size(*bytes))),
            CastContent::Output(_) | CastContent::Size { .. } => None,
        }
    }
}

impl CastEvent {
    pub fn line(&self) -> String {
        let (code, text) = match &self.what {
            CastContent::Output(text) => ("o", quoted(text)),
            CastContent::Size { columns, rows } => ("r", quoted(&format!("{columns}x{rows}"))),
            remark => ("m", quoted(&remark.remark_text().unwrap_or_default())),
        };
        format!("[{:.3}, \"{code}\", {text}]\n", self.at)
    }

    /// Parses the event of a line. Returns `None` for a truncated line or an unknown kind.
    pub fn from_line(line: &[u8]) -> Option<Self> {
        let (at, code, text): (f64, String, String) = serde_json::from_slice(line).ok()?;
        let what = match code.as_str() {
            "o" => CastContent::Output(text),
            "r" => {
                let (columns, rows) = text.split_once('x')?;
                CastContent::Size {
                    columns: columns.parse().ok()?,
                    rows: rows.parse().ok()?,
                }
            }
            "m" => CastContent::Remark(text),
            _ => return None,
        };
        Some(CastEvent { at, what })
    }
}

/// Splits output into pieces that each fit one event.
pub fn pieces(mut text: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let (piece, rest) = text.split_at(boundary(text, LONGEST));
        text = rest;
        (!piece.is_empty()).then_some(piece)
    })
}

/// Returns the last character boundary at or before this byte.
fn boundary(text: &str, at: usize) -> usize {
    let mut places = (0..=at.min(text.len())).rev();
    places.find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// Returns the maximum size of a part, given the maximum size of the whole recording.
pub fn part_length(most: u64) -> u64 {
    most / u64::from(PARTS)
}

/// Returns the part to delete before part `next` is written. It is never the first: the start of a
/// session is worth keeping.
pub fn part_to_delete(next: u32) -> Option<u32> {
    next.checked_sub(PARTS - 1).filter(|number| *number > 0)
}

fn quoted(text: &str) -> String {
    // Cannot fail for a string.
    serde_json::to_string(text).unwrap_or_default()
}

/// Formats a number of bytes for people.
pub fn size(bytes: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "it is rounded anyway")]
    let number = bytes as f64;
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{:.1} kB", number / 1e3),
        _ => format!("{:.1} MB", number / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_written_and_read_as_lines() {
        let check = |what: CastContent, line: &str, back: Option<CastContent>| {
            let event = CastEvent { at: 1.5, what };
            assert_eq!(event.line(), line);
            let read = CastEvent::from_line(line.as_bytes());
            assert_eq!(
                read.map(|event| (event.at, event.what)),
                back.map(|w| (1.5, w))
            );
        };
        let out = CastContent::Output("\x1b[1mé\"\r\n\u{1}".to_owned());
        let line = "[1.500, \"o\", \"\\u001b[1mé\\\"\\r\\n\\u0001\"]\n";
        check(out.clone(), line, Some(out));
        let size = CastContent::Size {
            columns: 80,
            rows: 24,
        };
        check(size.clone(), "[1.500, \"r\", \"80x24\"]\n", Some(size));
        check(
            CastContent::Missing(1_500_000),
            "[1.500, \"m\", \"1.5 MB are missing here\"]\n",
            Some(CastContent::Remark("1.5 MB are missing here".to_owned())),
        );
        for torn in [
            "[1.500, \"o\", \"ab",
            "",
            "[1,\"i\",\"x\"]",
            "{}",
            "[1,\"r\",\"x\"]",
        ] {
            assert_eq!(CastEvent::from_line(torn.as_bytes()), None, "{torn}");
        }
    }

    #[test]
    fn a_header_of_another_program_is_read_too() {
        let header = CastHeader::from_line(br#"{"version":2,"width":80,"height":24,"theme":{}}"#);
        assert_eq!(
            header.map(|header| (header.width, header.part)),
            Some((80, None))
        );
        assert_eq!(
            CastHeader::from_line(br#"{"version":3,"width":80,"height":24}"#),
            None
        );
        let own = CastHeader {
            version: 2,
            width: 80,
            height: 24,
            timestamp: Some(7),
            title: Some("mayor".to_owned()),
            env: BTreeMap::from([("TERM".to_owned(), "screen".to_owned())]),
            part: Some(Part {
                number: 3,
                bytes_before: 9,
            }),
        };
        assert_eq!(CastHeader::from_line(own.line().as_bytes()), Some(own));
    }

    #[test]
    fn pieces_are_short_and_whole() {
        let text = "é".repeat(LONGEST);
        let all: Vec<&str> = pieces(&text).collect();
        assert_eq!(all.concat(), text);
        assert!(
            all.iter().all(|piece| piece.len() <= LONGEST),
            "{}",
            all.len()
        );
        assert_eq!(pieces("").count(), 0);
    }

    #[test]
    fn the_first_part_and_the_newest_stay() {
        let mut kept: Vec<u32> = Vec::new();
        for next in 0..40 {
            if let Some(old) = part_to_delete(next) {
                kept.retain(|number| *number != old);
            }
            kept.push(next);
            assert!(kept.len() <= PARTS as usize);
        }
        assert_eq!(kept, [0, 33, 34, 35, 36, 37, 38, 39]);
    }
}

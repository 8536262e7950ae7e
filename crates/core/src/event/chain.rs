//! The hash chain of the event log: sealing of lines, and their verification.
//!
//! Each line ends with its sequence number and with a SHA-256 of the previous line's hash and its
//! own text. An *anchor* is a line that also holds the hash of the whole file before it: a prune
//! writes one, because it removes lines, and so does a person who accepts a break. A file beside
//! the log holds the [`ChainHead`], so that a log that was cut off at its end is found. Lines of
//! earlier versions have no hash; the chain begins at the first line that has one.
//!
//! The chain has no secret: a process that can write the log and the head can forge both.

mod verifier;

pub use verifier::{ChainBreak, ChainReport, ChainVerifier, StoredHead};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Maximum size of the end of a line that [`ChainHead::at_end`] reads.
pub const LONGEST_SEAL: usize = 320;

const SEQ: &str = ",\"seq\":";
const HASH: &str = ",\"hash\":\"";
const BEFORE: &str = ",\"before\":\"";
const PREVIOUS: &str = "\",\"previous\":\"";
const END: &str = "\"}";

/// Length of a SHA-256 in hexadecimal.
const HEX: usize = 64;

/// The last line of a chain. The default is the head of an empty chain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainHead {
    /// The number of the line, from 1.
    pub seq: u64,
    /// The hash of the line; empty before the first line.
    pub hash: String,
}

impl ChainHead {
    /// Returns the head that the last of these complete lines holds. The end of the file suffices,
    /// of [`LONGEST_SEAL`] bytes. Returns `None` for a line without a hash.
    pub fn at_end(text: &[u8]) -> Option<Self> {
        Seal::of(text.strip_suffix(b"\n")?).map(|seal| seal.head)
    }

    /// Adds the seal to an event, which is a JSON object. Returns the line with its newline, and
    /// moves the head to it.
    pub fn seal(&mut self, event: &[u8]) -> Vec<u8> {
        self.add(event, "")
    }

    /// Adds the seal to an event that is an anchor. `before` is the hash of the file before it.
    pub fn seal_anchor(&mut self, event: &[u8], before: &FileHash) -> Vec<u8> {
        let fields = format!("{BEFORE}{}{PREVIOUS}{}\"", before.hex(), self.hash);
        self.add(event, &fields)
    }

    fn add(&mut self, event: &[u8], fields: &str) -> Vec<u8> {
        let mut line = event.strip_suffix(b"}").unwrap_or(event).to_vec();
        line.extend_from_slice(fields.as_bytes());
        self.seq += 1;
        line.extend_from_slice(format!("{SEQ}{}", self.seq).as_bytes());
        self.hash = hash_of(&self.hash, &line);
        line.extend_from_slice(format!("{HASH}{}{END}\n", self.hash).as_bytes());
        line
    }

    /// Returns the head to append to: that of the log's last line, or the stored one if lines that
    /// it counts are missing or were replaced. Then the chain shows the break.
    #[must_use]
    pub fn to_continue(last_line: Option<Self>, stored: Option<Self>) -> Self {
        match (last_line, stored) {
            // A process that was killed has not stored the head of its last lines.
            (Some(last), Some(stored)) if last.seq > stored.seq => last,
            (_, Some(stored)) => stored,
            (last, None) => last.unwrap_or_default(),
        }
    }
}

/// The hash of the text of a file, read piece by piece.
#[derive(Clone, Debug, Default)]
pub struct FileHash(Sha256);

impl FileHash {
    pub fn add(&mut self, text: &[u8]) {
        self.0.update(text);
    }

    fn hex(&self) -> String {
        hex(&self.0.clone().finalize())
    }
}

/// The fields that the chain adds to a line.
#[derive(Debug)]
struct Seal<'a> {
    head: ChainHead,
    /// The part of the line that its hash covers.
    text: &'a [u8],
    anchor: Option<Anchor<'a>>,
}

#[derive(Debug)]
struct Anchor<'a> {
    before: &'a str,
    previous: &'a str,
}

impl<'a> Seal<'a> {
    /// Parses the end of a line without its newline.
    fn of(line: &'a [u8]) -> Option<Self> {
        let (rest, hash) = split_hex(line.strip_suffix(END.as_bytes())?)?;
        let text = rest.strip_suffix(HASH.as_bytes())?;
        let digits = text.iter().rev().take_while(|it| it.is_ascii_digit());
        let (rest, seq) = text.split_at(text.len() - digits.count());
        let rest = rest.strip_suffix(SEQ.as_bytes())?;
        let seq = std::str::from_utf8(seq).ok()?.parse().ok()?;
        let head = ChainHead {
            seq,
            hash: hash.to_owned(),
        };
        Some(Seal {
            head,
            text,
            anchor: Anchor::of(rest),
        })
    }

    fn is_after(&self, previous: &str) -> bool {
        self.head.hash == hash_of(previous, self.text)
    }
}

impl<'a> Anchor<'a> {
    fn of(text: &'a [u8]) -> Option<Self> {
        let text = text.strip_suffix(b"\"")?;
        // The first line of a chain has no previous hash.
        let (rest, previous) = split_hex(text)
            .filter(|(rest, _)| rest.ends_with(PREVIOUS.as_bytes()))
            .unwrap_or((text, ""));
        let (rest, before) = split_hex(rest.strip_suffix(PREVIOUS.as_bytes())?)?;
        rest.ends_with(BEFORE.as_bytes())
            .then_some(Anchor { before, previous })
    }
}

/// Splits a SHA-256 in hexadecimal off the end of a text.
fn split_hex(text: &[u8]) -> Option<(&[u8], &str)> {
    let (rest, hash) = text.split_at_checked(text.len().checked_sub(HEX)?)?;
    let hash = std::str::from_utf8(hash).ok()?;
    let is_hex = hash.bytes().all(|it| it.is_ascii_hexdigit());
    is_hex.then_some((rest, hash))
}

fn hash_of(previous: &str, text: &[u8]) -> String {
    let mut hash = Sha256::new();
    hash.update(previous);
    hash.update(b"\n");
    hash.update(text);
    hex(&hash.finalize())
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |number: u8| char::from(DIGITS[usize::from(number)]);
    let pairs = bytes.iter().map(|byte| [byte >> 4, byte & 15]);
    pairs.flatten().map(digit).collect()
}

#[cfg(test)]
mod tests;

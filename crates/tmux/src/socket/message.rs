//! The wire format: a header of sixteen bytes and the data, in native byte order.
//!
//! Pure conversion between values and bytes. The names are those of the protocol.

use crate::Version;

/// Maximum size of a message, including its header.
pub(super) const MAX_MESSAGE: usize = 16_384;
pub(super) const HEADER: usize = 16;
const PROTOCOL_VERSION: u32 = 8;
/// The latest version that was tested. A newer one may have changed the protocol.
const LAST_KNOWN: Version = Version::new(3, 8);

/// The layout of the second word of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeaderLayout {
    /// Up to 3.5: a length and flags, 16 bits each.
    Short,
    /// From 3.6: a length of 32 bits, whose highest bit announces a descriptor.
    Long,
}

impl HeaderLayout {
    pub(super) fn of(version: Version) -> Option<Self> {
        if version < crate::MINIMUM || version > LAST_KNOWN {
            return None;
        }
        Some(if version < Version::new(3, 6) {
            Self::Short
        } else {
            Self::Long
        })
    }

    fn second_word(self, length: usize, with_descriptor: bool) -> Option<[u8; 4]> {
        let mut word = [0; 4];
        match self {
            Self::Short => {
                word[..2].copy_from_slice(&u16::try_from(length).ok()?.to_ne_bytes());
                word[2..].copy_from_slice(&u16::from(with_descriptor).to_ne_bytes());
            }
            Self::Long => {
                let mark = if with_descriptor { 1 << 31 } else { 0 };
                word = (u32::try_from(length).ok()? | mark).to_ne_bytes();
            }
        }
        Some(word)
    }

    fn length(self, second_word: [u8; 4]) -> usize {
        let [a, b, ..] = second_word;
        match self {
            Self::Short => usize::from(u16::from_ne_bytes([a, b])),
            Self::Long => (u32::from_ne_bytes(second_word) & !(1 << 31)) as usize,
        }
    }
}

/// Types of the messages that our client sends or receives.
pub(super) mod kind {
    pub(in super::super) const VERSION: u32 = 12;
    pub(in super::super) const IDENTIFY_FLAGS: u32 = 100;
    pub(in super::super) const IDENTIFY_TERM: u32 = 101;
    pub(in super::super) const IDENTIFY_TTYNAME: u32 = 102;
    pub(in super::super) const IDENTIFY_STDIN: u32 = 104;
    pub(in super::super) const IDENTIFY_ENVIRON: u32 = 105;
    pub(in super::super) const IDENTIFY_DONE: u32 = 106;
    pub(in super::super) const IDENTIFY_CLIENTPID: u32 = 107;
    pub(in super::super) const IDENTIFY_CWD: u32 = 108;
    pub(in super::super) const IDENTIFY_FEATURES: u32 = 109;
    pub(in super::super) const IDENTIFY_STDOUT: u32 = 110;
    pub(in super::super) const IDENTIFY_LONGFLAGS: u32 = 111;
    pub(in super::super) const COMMAND: u32 = 200;
    pub(in super::super) const DETACH: u32 = 201;
    pub(in super::super) const DETACHKILL: u32 = 202;
    pub(in super::super) const EXIT: u32 = 203;
    pub(in super::super) const EXITED: u32 = 204;
    pub(in super::super) const EXITING: u32 = 205;
    pub(in super::super) const SHUTDOWN: u32 = 210;
    pub(in super::super) const FLAGS: u32 = 218;
    pub(in super::super) const READ_OPEN: u32 = 300;
    pub(in super::super) const READ: u32 = 301;
    pub(in super::super) const READ_DONE: u32 = 302;
    pub(in super::super) const WRITE_OPEN: u32 = 303;
    pub(in super::super) const WRITE: u32 = 304;
    pub(in super::super) const WRITE_READY: u32 = 305;
    pub(in super::super) const WRITE_CLOSE: u32 = 306;
    pub(in super::super) const READ_CANCEL: u32 = 307;
}

/// Appends a message. Returns false and appends nothing if the message is too long.
#[must_use]
pub(super) fn append(
    bytes: &mut Vec<u8>,
    layout: HeaderLayout,
    kind: u32,
    data: &[u8],
    with_descriptor: bool,
) -> bool {
    let length = HEADER + data.len();
    let Some(word) = layout
        .second_word(length, with_descriptor)
        .filter(|_| length <= MAX_MESSAGE)
    else {
        return false;
    };
    bytes.extend_from_slice(&kind.to_ne_bytes());
    bytes.extend_from_slice(&word);
    bytes.extend_from_slice(&PROTOCOL_VERSION.to_ne_bytes());
    // The client does not send its pid here: all bits of the field are set.
    bytes.extend_from_slice(&u32::MAX.to_ne_bytes());
    bytes.extend_from_slice(data);
    true
}

/// A message from the server.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Received {
    pub(super) kind: u32,
    pub(super) data: Vec<u8>,
}

/// The result of parsing the start of the bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ParsedMessage {
    /// A complete message, and its length in bytes.
    Message(Received, usize),
    /// More bytes are needed.
    Incomplete,
    /// The bytes are not a message of this protocol.
    Garbage,
}

pub(super) fn parse(bytes: &[u8], layout: HeaderLayout) -> ParsedMessage {
    let (Some(kind), Some(word), Some(version)) = (word(bytes, 0), word(bytes, 4), word(bytes, 8))
    else {
        return ParsedMessage::Incomplete;
    };
    let length = layout.length(word);
    let kind = u32::from_ne_bytes(kind);
    // The lowest byte is the version of the protocol; a refusal contains another version.
    let version = u32::from_ne_bytes(version) & 0xff;
    if !(HEADER..=MAX_MESSAGE).contains(&length)
        || (version != PROTOCOL_VERSION && kind != kind::VERSION)
    {
        return ParsedMessage::Garbage;
    }
    match bytes.get(HEADER..length) {
        Some(data) => ParsedMessage::Message(
            Received {
                kind,
                data: data.to_vec(),
            },
            length,
        ),
        None => ParsedMessage::Incomplete,
    }
}

/// Returns the four bytes at this offset.
pub(super) fn word(bytes: &[u8], at: usize) -> Option<[u8; 4]> {
    bytes.get(at..at + 4)?.try_into().ok()
}

/// Returns the number at this offset.
pub(super) fn number(bytes: &[u8], at: usize) -> Option<i32> {
    word(bytes, at).map(i32::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_decides_the_layout() {
        let layout = |text: &str| HeaderLayout::of(text.parse().unwrap());
        assert_eq!(layout("3.1"), None);
        assert_eq!(layout("3.2"), Some(HeaderLayout::Short));
        assert_eq!(layout("3.5a"), Some(HeaderLayout::Short));
        assert_eq!(layout("3.6"), Some(HeaderLayout::Long));
        assert_eq!(layout("3.8"), Some(HeaderLayout::Long));
        assert_eq!(layout("3.9"), None, "an untested version is not guessed");
        assert_eq!(layout("master"), None);
    }

    #[test]
    fn reads_what_it_writes() {
        for layout in [HeaderLayout::Short, HeaderLayout::Long] {
            let mut bytes = Vec::new();
            assert!(append(&mut bytes, layout, kind::EXIT, b"abcd", false));
            assert!(append(&mut bytes, layout, kind::FLAGS, b"", true));
            let ParsedMessage::Message(first, length) = parse(&bytes, layout) else {
                panic!("{layout:?}")
            };
            assert_eq!(
                (first.kind, first.data.as_slice(), length),
                (kind::EXIT, &b"abcd"[..], 20)
            );
            for cut in 0..20 {
                assert_eq!(parse(&bytes[..cut], layout), ParsedMessage::Incomplete);
            }
            let ParsedMessage::Message(second, _) = parse(&bytes[20..], layout) else {
                panic!("{layout:?}")
            };
            assert_eq!((second.kind, second.data.len()), (kind::FLAGS, 0));
        }
    }

    #[test]
    fn a_message_has_a_largest_size() {
        let mut bytes = Vec::new();
        assert!(append(
            &mut bytes,
            HeaderLayout::Short,
            1,
            &[0; MAX_MESSAGE - HEADER],
            false
        ));
        assert!(!append(
            &mut bytes,
            HeaderLayout::Long,
            1,
            &[0; MAX_MESSAGE - HEADER + 1],
            false
        ));
        assert_eq!(bytes.len(), MAX_MESSAGE);
    }

    #[test]
    fn other_bytes_are_garbage() {
        assert_eq!(
            parse(&[0xff; 16], HeaderLayout::Long),
            ParsedMessage::Garbage
        );
        assert_eq!(parse(&[0; 16], HeaderLayout::Short), ParsedMessage::Garbage);
    }
}

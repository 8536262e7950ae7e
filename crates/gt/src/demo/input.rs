//! Decodes the bytes of a raw terminal into keys and pastes.
//!
//! The decoder is fed the bytes of one read, so every sequence may be split. A lone Escape and the
//! first byte of an arrow key are the same byte: the decoder keeps it, [`KeyDecoder::is_waiting`]
//! returns true, and the event loop calls [`KeyDecoder::flush`] if nothing follows within
//! [`ESCAPE_WAIT`].
//!
//! The decoder is hand-written. A parser of terminal output, such as `gt_core::ansi`, cannot report
//! a lone Escape. crossterm reads the terminal in an event loop of its own, whereas the demo agent
//! polls the terminal together with its commands.
//!
//! It knows nothing of editing or dialogs; see `editor` and `dialog`.

use std::time::Duration;

/// Maximum wait for the rest of a sequence after Escape.
pub(super) const ESCAPE_WAIT: Duration = Duration::from_millis(30);

const PASTE_END: &[u8] = b"\x1b[201~";

#[derive(Debug, PartialEq, Eq)]
pub(super) enum InputEvent {
    Key(TerminalKey),
    /// A bracketed paste, with line ends normalised to `\n`.
    Paste(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TerminalKey {
    Char(char),
    Ctrl(char),
    Enter,
    /// Alt-Enter or Ctrl-J: a line break inside the message.
    Newline,
    Esc,
    Backspace,
    Delete,
    Up,
    Down,
    Left,
    Right,
    WordLeft,
    WordRight,
    Home,
    End,
}

#[derive(Debug, Default)]
pub(super) struct KeyDecoder {
    bytes: Vec<u8>,
    in_paste: bool,
    /// Number of bytes of the paste already searched for its end. A paste of megabytes in small
    /// reads is then searched only once.
    searched: usize,
}

/// Content at the front of the buffer.
enum Front {
    Event(TerminalKey, usize),
    Nothing(usize),
    PasteStart(usize),
    Incomplete,
}

impl KeyDecoder {
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Vec<InputEvent> {
        self.bytes.extend_from_slice(bytes);
        let mut events = Vec::new();
        loop {
            if self.in_paste {
                let Some(paste) = self.take_paste() else {
                    return events;
                };
                events.push(InputEvent::Paste(paste));
            }
            let mut at = 0;
            while at < self.bytes.len() {
                match front(&self.bytes[at..]) {
                    Front::Event(key, length) => {
                        events.push(InputEvent::Key(key));
                        at += length;
                    }
                    Front::Nothing(length) => at += length,
                    Front::PasteStart(length) => {
                        at += length;
                        self.in_paste = true;
                        self.searched = 0;
                        break;
                    }
                    Front::Incomplete => break,
                }
            }
            self.bytes.drain(..at);
            if !self.in_paste {
                return events;
            }
        }
    }

    /// Returns whether the decoder keeps bytes whose meaning depends on the next ones.
    pub(super) fn is_waiting(&self) -> bool {
        !self.in_paste && !self.bytes.is_empty()
    }

    /// Decodes the kept bytes when nothing follows: a lone Escape is a key, a longer sequence is
    /// dropped.
    pub(super) fn flush(&mut self) -> Option<TerminalKey> {
        if !self.is_waiting() {
            return None;
        }
        let key = (self.bytes == [0x1b]).then_some(TerminalKey::Esc);
        self.bytes.clear();
        key
    }

    fn take_paste(&mut self) -> Option<String> {
        let Some(found) = find(&self.bytes[self.searched..], PASTE_END) else {
            self.searched = self.bytes.len().saturating_sub(PASTE_END.len() - 1);
            return None;
        };
        let end = self.searched + found;
        let text = String::from_utf8_lossy(&self.bytes[..end])
            .replace("\r\n", "\n")
            .replace('\r', "\n");
        self.bytes.drain(..end + PASTE_END.len());
        // An idle agent must not keep the buffer of a large paste.
        self.bytes.shrink_to_fit();
        self.in_paste = false;
        Some(text)
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + bytes[from..].iter().position(|&b| b == wanted[0])?;
        if bytes[at..].starts_with(wanted) {
            return Some(at);
        }
        from = at + 1;
    }
}

fn front(bytes: &[u8]) -> Front {
    match bytes[0] {
        0x1b => escape(bytes),
        b'\r' => Front::Event(TerminalKey::Enter, 1),
        b'\n' => Front::Event(TerminalKey::Newline, 1),
        b'\t' | 0 => Front::Nothing(1),
        0x7f | 0x08 => Front::Event(TerminalKey::Backspace, 1),
        byte @ 1..=0x1a => Front::Event(TerminalKey::Ctrl(char::from(byte - 1 + b'a')), 1),
        0x1c..=0x1f => Front::Nothing(1),
        _ => character(bytes),
    }
}

fn character(bytes: &[u8]) -> Front {
    let length = match bytes[0] {
        ..=0x7f => 1,
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf7 => 4,
        _ => return Front::Event(TerminalKey::Char(char::REPLACEMENT_CHARACTER), 1),
    };
    let Some(whole) = bytes.get(..length) else {
        return Front::Incomplete;
    };
    match str::from_utf8(whole).ok().and_then(|s| s.chars().next()) {
        Some(char) => Front::Event(TerminalKey::Char(char), length),
        None => Front::Event(TerminalKey::Char(char::REPLACEMENT_CHARACTER), 1),
    }
}

fn escape(bytes: &[u8]) -> Front {
    match bytes.get(1) {
        None => Front::Incomplete,
        Some(0x1b) => Front::Event(TerminalKey::Esc, 1),
        Some(b'[') => csi(bytes),
        Some(b'O') => match bytes.get(2) {
            None => Front::Incomplete,
            Some(&last) => named(last, b"").map_or(Front::Nothing(3), |key| Front::Event(key, 3)),
        },
        Some(b'\r' | b'\n') => Front::Event(TerminalKey::Newline, 2),
        Some(b'b') => Front::Event(TerminalKey::WordLeft, 2),
        Some(b'f') => Front::Event(TerminalKey::WordRight, 2),
        Some(0x7f | 0x08) => Front::Event(TerminalKey::Ctrl('w'), 2),
        // Other Alt keys are ignored, with the character that they carry.
        Some(_) => match character(&bytes[1..]) {
            Front::Event(_, length) => Front::Nothing(1 + length),
            _ => Front::Incomplete,
        },
    }
}

fn csi(bytes: &[u8]) -> Front {
    let Some(end) = bytes[2..].iter().position(|b| !(0x20..=0x3f).contains(b)) else {
        return Front::Incomplete;
    };
    let (parameters, last) = (&bytes[2..2 + end], bytes[2 + end]);
    let length = end + 3;
    if parameters == b"200" && last == b'~' {
        return Front::PasteStart(length);
    }
    named(last, parameters).map_or(Front::Nothing(length), |key| Front::Event(key, length))
}

/// Returns the key of a sequence by its last byte and its parameters.
fn named(last: u8, parameters: &[u8]) -> Option<TerminalKey> {
    // `1;5` is Ctrl and `1;3` is Alt: both move by words.
    let by_word = matches!(parameters, b"1;5" | b"1;3");
    Some(match (last, parameters) {
        (b'A', _) => TerminalKey::Up,
        (b'B', _) => TerminalKey::Down,
        (b'C', _) if by_word => TerminalKey::WordRight,
        (b'D', _) if by_word => TerminalKey::WordLeft,
        (b'C', _) => TerminalKey::Right,
        (b'D', _) => TerminalKey::Left,
        (b'H', _) | (b'~', b"1" | b"7") => TerminalKey::Home,
        (b'F', _) | (b'~', b"4" | b"8") => TerminalKey::End,
        (b'~', b"3") => TerminalKey::Delete,
        (b'M', b"") => TerminalKey::Enter,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(bytes: &[u8]) -> Vec<TerminalKey> {
        let keys = KeyDecoder::default().feed(bytes).into_iter();
        keys.map(|event| match event {
            InputEvent::Key(key) => key,
            InputEvent::Paste(text) => panic!("unexpected paste {text:?}"),
        })
        .collect()
    }

    #[test]
    fn single_keys() {
        for (bytes, key) in [
            (&b"a"[..], TerminalKey::Char('a')),
            ("é".as_bytes(), TerminalKey::Char('é')),
            ("😀".as_bytes(), TerminalKey::Char('😀')),
            (b"\r", TerminalKey::Enter),
            (b"\n", TerminalKey::Newline),
            (b"\x1b\r", TerminalKey::Newline),
            (b"\x7f", TerminalKey::Backspace),
            (b"\x03", TerminalKey::Ctrl('c')),
            (b"\x15", TerminalKey::Ctrl('u')),
            (b"\x1b[A", TerminalKey::Up),
            (b"\x1bOB", TerminalKey::Down),
            (b"\x1b[1;5D", TerminalKey::WordLeft),
            (b"\x1bf", TerminalKey::WordRight),
            (b"\x1b[3~", TerminalKey::Delete),
            (b"\x1b[H", TerminalKey::Home),
            (b"\x1b[4~", TerminalKey::End),
        ] {
            assert_eq!(keys(bytes), [key], "{bytes:?}");
        }
    }

    #[test]
    fn unknown_sequences_leave_nothing_behind() {
        assert_eq!(
            keys(b"\x1b[?62;c\x1b[99~\x1bzx\x1b[201~"),
            [TerminalKey::Char('x')]
        );
    }

    #[test]
    fn invalid_text_becomes_the_replacement_character() {
        assert_eq!(
            keys(b"\xffa"),
            [TerminalKey::Char('\u{fffd}'), TerminalKey::Char('a')]
        );
    }

    #[test]
    fn a_lone_escape_waits_for_what_follows() {
        let mut decoder = KeyDecoder::default();
        assert!(decoder.feed(b"\x1b").is_empty());
        assert!(decoder.is_waiting());
        assert_eq!(decoder.flush(), Some(TerminalKey::Esc));
        assert!(!decoder.is_waiting());

        assert!(decoder.feed(b"\x1b").is_empty());
        assert_eq!(decoder.feed(b"[B"), [InputEvent::Key(TerminalKey::Down)]);
    }

    #[test]
    fn two_escapes_are_two_keys() {
        let mut decoder = KeyDecoder::default();
        assert_eq!(
            decoder.feed(b"\x1b\x1b"),
            [InputEvent::Key(TerminalKey::Esc)]
        );
        assert_eq!(decoder.flush(), Some(TerminalKey::Esc));
    }

    #[test]
    fn every_cut_gives_the_same_events() {
        let bytes = "a\x1b[200~one\rtwo\r\nthree \x1b[A é\x1b[201~\r\x1b[Aé".as_bytes();
        let whole = KeyDecoder::default().feed(bytes);
        assert_eq!(
            whole[1],
            InputEvent::Paste("one\ntwo\nthree \x1b[A é".to_owned())
        );
        for cut in 0..bytes.len() {
            let mut decoder = KeyDecoder::default();
            let mut events = decoder.feed(&bytes[..cut]);
            events.extend(decoder.feed(&bytes[cut..]));
            assert_eq!(events, whole, "cut at {cut}");
        }
        let mut decoder = KeyDecoder::default();
        let single: Vec<_> = bytes.iter().flat_map(|b| decoder.feed(&[*b])).collect();
        assert_eq!(single, whole);
    }
}

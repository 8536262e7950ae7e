//! Decodes the bytes of a raw terminal into keys and pastes.
//!
//! The decoder is fed the bytes of one read, so every sequence may be split. A lone Escape and the
//! first byte of an arrow key are the same byte: the decoder keeps it, [`Decoder::is_waiting`]
//! returns true, and the event loop calls [`Decoder::flush`] if nothing follows within
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
    Key(Key),
    /// A bracketed paste, with line ends normalised to `\n`.
    Paste(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
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
pub(super) struct Decoder {
    bytes: Vec<u8>,
    in_paste: bool,
    /// Number of bytes of the paste already searched for its end. A paste of megabytes in small
    /// reads is then searched only once.
    searched: usize,
}

/// Content at the front of the buffer.
enum Front {
    Event(Key, usize),
    Nothing(usize),
    PasteStart(usize),
    Incomplete,
}

impl Decoder {
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
    pub(super) fn flush(&mut self) -> Option<Key> {
        if !self.is_waiting() {
            return None;
        }
        let key = (self.bytes == [0x1b]).then_some(Key::Esc);
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
        b'\r' => Front::Event(Key::Enter, 1),
        b'\n' => Front::Event(Key::Newline, 1),
        b'\t' | 0 => Front::Nothing(1),
        0x7f | 0x08 => Front::Event(Key::Backspace, 1),
        byte @ 1..=0x1a => Front::Event(Key::Ctrl(char::from(byte - 1 + b'a')), 1),
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
        _ => return Front::Event(Key::Char(char::REPLACEMENT_CHARACTER), 1),
    };
    let Some(whole) = bytes.get(..length) else {
        return Front::Incomplete;
    };
    match str::from_utf8(whole).ok().and_then(|s| s.chars().next()) {
        Some(char) => Front::Event(Key::Char(char), length),
        None => Front::Event(Key::Char(char::REPLACEMENT_CHARACTER), 1),
    }
}

fn escape(bytes: &[u8]) -> Front {
    match bytes.get(1) {
        None => Front::Incomplete,
        Some(0x1b) => Front::Event(Key::Esc, 1),
        Some(b'[') => csi(bytes),
        Some(b'O') => match bytes.get(2) {
            None => Front::Incomplete,
            Some(&last) => named(last, b"").map_or(Front::Nothing(3), |key| Front::Event(key, 3)),
        },
        Some(b'\r' | b'\n') => Front::Event(Key::Newline, 2),
        Some(b'b') => Front::Event(Key::WordLeft, 2),
        Some(b'f') => Front::Event(Key::WordRight, 2),
        Some(0x7f | 0x08) => Front::Event(Key::Ctrl('w'), 2),
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
fn named(last: u8, parameters: &[u8]) -> Option<Key> {
    // `1;5` is Ctrl and `1;3` is Alt: both move by words.
    let by_word = matches!(parameters, b"1;5" | b"1;3");
    Some(match (last, parameters) {
        (b'A', _) => Key::Up,
        (b'B', _) => Key::Down,
        (b'C', _) if by_word => Key::WordRight,
        (b'D', _) if by_word => Key::WordLeft,
        (b'C', _) => Key::Right,
        (b'D', _) => Key::Left,
        (b'H', _) | (b'~', b"1" | b"7") => Key::Home,
        (b'F', _) | (b'~', b"4" | b"8") => Key::End,
        (b'~', b"3") => Key::Delete,
        (b'M', b"") => Key::Enter,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(bytes: &[u8]) -> Vec<Key> {
        let keys = Decoder::default().feed(bytes).into_iter();
        keys.map(|event| match event {
            InputEvent::Key(key) => key,
            InputEvent::Paste(text) => panic!("unexpected paste {text:?}"),
        })
        .collect()
    }

    #[test]
    fn single_keys() {
        for (bytes, key) in [
            (&b"a"[..], Key::Char('a')),
            ("é".as_bytes(), Key::Char('é')),
            ("😀".as_bytes(), Key::Char('😀')),
            (b"\r", Key::Enter),
            (b"\n", Key::Newline),
            (b"\x1b\r", Key::Newline),
            (b"\x7f", Key::Backspace),
            (b"\x03", Key::Ctrl('c')),
            (b"\x15", Key::Ctrl('u')),
            (b"\x1b[A", Key::Up),
            (b"\x1bOB", Key::Down),
            (b"\x1b[1;5D", Key::WordLeft),
            (b"\x1bf", Key::WordRight),
            (b"\x1b[3~", Key::Delete),
            (b"\x1b[H", Key::Home),
            (b"\x1b[4~", Key::End),
        ] {
            assert_eq!(keys(bytes), [key], "{bytes:?}");
        }
    }

    #[test]
    fn unknown_sequences_leave_nothing_behind() {
        assert_eq!(keys(b"\x1b[?62;c\x1b[99~\x1bzx\x1b[201~"), [Key::Char('x')]);
    }

    #[test]
    fn invalid_text_becomes_the_replacement_character() {
        assert_eq!(keys(b"\xffa"), [Key::Char('\u{fffd}'), Key::Char('a')]);
    }

    #[test]
    fn a_lone_escape_waits_for_what_follows() {
        let mut decoder = Decoder::default();
        assert!(decoder.feed(b"\x1b").is_empty());
        assert!(decoder.is_waiting());
        assert_eq!(decoder.flush(), Some(Key::Esc));
        assert!(!decoder.is_waiting());

        assert!(decoder.feed(b"\x1b").is_empty());
        assert_eq!(decoder.feed(b"[B"), [InputEvent::Key(Key::Down)]);
    }

    #[test]
    fn two_escapes_are_two_keys() {
        let mut decoder = Decoder::default();
        assert_eq!(decoder.feed(b"\x1b\x1b"), [InputEvent::Key(Key::Esc)]);
        assert_eq!(decoder.flush(), Some(Key::Esc));
    }

    #[test]
    fn every_cut_gives_the_same_events() {
        let bytes = "a\x1b[200~one\rtwo\r\nthree \x1b[A é\x1b[201~\r\x1b[Aé".as_bytes();
        let whole = Decoder::default().feed(bytes);
        assert_eq!(
            whole[1],
            InputEvent::Paste("one\ntwo\nthree \x1b[A é".to_owned())
        );
        for cut in 0..bytes.len() {
            let mut decoder = Decoder::default();
            let mut events = decoder.feed(&bytes[..cut]);
            events.extend(decoder.feed(&bytes[cut..]));
            assert_eq!(events, whole, "cut at {cut}");
        }
        let mut decoder = Decoder::default();
        let single: Vec<_> = bytes.iter().flat_map(|b| decoder.feed(&[*b])).collect();
        assert_eq!(single, whole);
    }
}

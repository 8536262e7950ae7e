//! Filters a recording so that it is safe to show on a terminal.
//!
//! A recording holds all output of a program, which a model and files from anywhere can control.
//! So no sequence is passed through unchecked: [`PlaybackScreen`] writes text, and only those sequences
//! that draw, each re-encoded. Clipboard, titles, links, the palette of the terminal, queries that
//! it would answer on its input, printers, the mouse, the scrollback and the window's size are out
//! of reach. [`PlainView`] keeps only text, for files and pipes.

mod plain;

pub use plain::PlainView;

use crate::ansi::{AnsiParser, Sequence, Token};
use std::collections::BTreeSet;

/// Control characters that move the cursor or switch the character set.
const CONTROLS: &str = "\n\r\t\x08\x0b\x0c\x0e\x0f";

/// Final characters of sequences that draw: move, erase, insert, scroll.
const DRAWING: &str = "@ABCDEFGHIJKLMPSTXZ`abdefmrsu";

/// Modes that a recording may switch, with their initial values.
const MODES: &[(u16, bool)] = &[
    // Synchronized output, reverse video, origin mode, autowrap, cursor visibility.
    (2026, false),
    (5, false),
    (6, false),
    (7, true),
    (25, true),
    // The alternate screen. It is restored last.
    (47, false),
    (1047, false),
    (1049, false),
];

/// Maximum numeric parameter. No terminal has more rows or columns, and a larger repeat count only
/// keeps it busy. The parser reports all larger ones as [`u16::MAX`].
const LARGEST: u16 = u16::MAX - 1;

/// A filter that passes on text and drawing sequences, and tracks the modes to restore.
#[derive(Debug, Default)]
pub struct PlaybackScreen {
    parser: AnsiParser,
    modes: Modes,
}

/// Modes of the terminal that playback has changed.
#[derive(Debug, Default)]
struct Modes {
    /// Modes that differ from their initial values.
    changed: BTreeSet<u16>,
    has_margins: bool,
}

impl PlaybackScreen {
    /// Returns the safe part of this text. A sequence may continue in the next call.
    pub fn push(&mut self, text: &str) -> String {
        let mut shown = String::with_capacity(text.len());
        let modes = &mut self.modes;
        self.parser
            .push(text, |token| modes.show(&token, &mut shown));
        shown
    }

    /// Discards an incomplete sequence, because the next text belongs to something else.
    pub fn interrupt(&mut self) {
        self.parser = AnsiParser::default();
    }

    /// Returns the sequences that make the terminal usable again, wherever playback stopped.
    pub fn restore(&mut self) -> String {
        self.interrupt();
        self.modes.restore()
    }
}

impl Modes {
    fn restore(&mut self) -> String {
        let mut back = String::new();
        for (mode, before) in MODES {
            if self.changed.remove(mode) {
                back.push_str(&switch(*mode, *before));
            }
        }
        // Insert mode, line drawing, colours.
        back.push_str("\x1b[4l\x1b(B\x0f\x1b[0m");
        if std::mem::take(&mut self.has_margins) {
            // Resetting the margins also moves the cursor, so it is saved and restored.
            back.push_str("\x1b7\x1b[r\x1b8");
        }
        back
    }

    fn show(&mut self, token: &Token<'_>, shown: &mut String) {
        match token {
            Token::Text(c) => shown.push(*c),
            Token::Control(c) if CONTROLS.contains(*c) => shown.push(*c),
            Token::Control(_) => {}
            Token::Escape(between, last) => match (*between, last) {
                ("", '7' | '8' | 'D' | 'E' | 'M') => shown.extend(['\x1b', *last]),
                // A full reset would also clear the scrollback.
                ("", 'c') => {
                    shown.push_str(&self.restore());
                    shown.push_str("\x1b[H\x1b[2J");
                }
                ("(" | ")", '0' | 'A' | 'B') => {
                    shown.push('\x1b');
                    shown.push_str(between);
                    shown.push(*last);
                }
                _ => {}
            },
            Token::Sequence(sequence) => self.sequence(sequence, shown),
        }
    }

    fn sequence(&mut self, sequence: &Sequence<'_>, shown: &mut String) {
        match (sequence.marks, sequence.last) {
            ("", _) if is_harmless(sequence) => {
                self.has_margins |= sequence.last == 'r';
                shown.push_str(&sequence.to_string());
            }
            ("?", 'h' | 'l') => {
                for mode in sequence.parameters() {
                    if let [mode] = mode {
                        self.switch(*mode, sequence.last == 'h', shown);
                    }
                }
            }
            _ => {}
        }
    }

    fn switch(&mut self, mode: u16, on: bool, shown: &mut String) {
        let Some((_, before)) = MODES.iter().find(|(known, _)| *known == mode) else {
            return;
        };
        match on == *before {
            true => self.changed.remove(&mode),
            false => self.changed.insert(mode),
        };
        shown.push_str(&switch(mode, on));
    }
}

/// Returns whether a sequence without marks does nothing but draw.
fn is_harmless(sequence: &Sequence<'_>) -> bool {
    if !sequence.parameters().flatten().all(|it| *it <= LARGEST) {
        return false;
    }
    match sequence.last {
        // Only colours have subparameters.
        'm' => true,
        _ if sequence.parameters().any(|it| it.len() > 1) => false,
        // The scrollback belongs to the viewer.
        'J' => !sequence.parameters().any(|it| it == [3]),
        // With parameters these set side margins or mouse tracking.
        's' | 'u' => sequence.only_parameter() == Some(0),
        'T' => sequence.only_parameter().is_some(),
        'h' | 'l' => sequence.only_parameter() == Some(4),
        last => DRAWING.contains(last),
    }
}

fn switch(mode: u16, on: bool) -> String {
    format!("\x1b[?{mode}{}", if on { 'h' } else { 'l' })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(text: &str) -> String {
        PlaybackScreen::default().push(text)
    }

    #[test]
    fn drawing_sequences_are_kept() {
        for text in [
            "plain\r\n\tGrüße 日本\x08 \x0b",
            "\x1b[1;38:5:3;48;2;1;2;3mred\x1b[0m",
            "\x1b[2J\x1b[H\x1b[3;4H\x1b[K\x1b[1A\x1b[2;20r\x1b[5X\x1b[9b\x1b[4h\x1b[4l",
            "\x1b7\x1b[s\x1b[u\x1b8\x1bM\x1bD\x1b(0lqk\x1b(B\x0e\x0f",
            "\x1b[?25l\x1b[?1049h\x1b[?7l\x1b[?2026h",
        ] {
            assert_eq!(shown(text), text, "{text:?}");
        }
    }

    #[test]
    fn sequences_that_act_outside_of_the_screen_are_removed() {
        let check = |text: &str, expected: &str| assert_eq!(shown(text), expected, "{text:?}");
        // Titles, clipboard, links, colours; with either terminator, and without one.
        check("a\x1b]0;title\x07b\x1b]52;c;AAAA\x1b\\c", "abc");
        check(
            "\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\x1b]11;?\x07",
            "link",
        );
        check("a\x1b]52;c;AAAA", "a");
        // Private strings, with sequences inside.
        check(
            "a\x1bP$qm\x1b\\b\x1b_x\x1b\\c\x1b^y\x1b\\d\x1bXz\x1b\\e",
            "abcde",
        );
        check("a\x1bPtmux;\x1b\x1b]52;c;AAAA\x07\x1b\\b", "ab");
        // Queries.
        check(
            "\x1b[6n\x1b[?6n\x1b[5n\x1b[c\x1b[>c\x1b[=c\x1b[>q\x1b[?1$p\x1b[x\x05\x1bZ",
            "",
        );
        check("\x1b[21t\x1b[18t\x1b[8;1;1t\x1b[?996n\x1b[?u", "");
        // Printers, scrollback, keyboards, mice, pastes, other character sets.
        check(
            "\x1b[5i\x1b[4i\x1b[?5i\x1b[3J\x1b[>4;2m\x1b[>1u\x1b[<u\x1b=\x1b>\x1b%@",
            "",
        );
        check(
            "\x1b[?1000h\x1b[?1006h\x1b[?1004h\x1b[?2004h\x1b[?1h\x1b[?3h\x1b[1;2;3;4;5T",
            "",
        );
        check("\x1b[?1000;25;1006l", "\x1b[?25l");
        // C1 control characters, and parameters that only keep a terminal busy.
        check("a\u{9b}6nb\u{9d}52;c;AAAA\u{9c}c\u{90}q", "a6nb52;c;AAAAcq");
        check("\x1b[99999999999b\x1b[65536Cx\x1b[1:2H\x07\x00\x7f", "x");
        // Malformed sequences.
        check("\x1b[3\x1b[1mx", "\x1b[1mx");
        check("\x1b[3\x18mx\x1b[3éx\x1b[1\n0mz", "mx\n\x1b[10mz");
        check("\x1bcx", "\x1b[4l\x1b(B\x0f\x1b[0m\x1b[H\x1b[2Jx");
    }

    #[test]
    fn a_sequence_may_be_cut_anywhere() {
        let text = "a\x1b[31mb\x1b]52;c;AAAA\x1b\\c\x1b[?25ld\x1b[6ne";
        let whole = shown(text);
        assert_eq!(whole, "a\x1b[31mbc\x1b[?25lde");
        for at in 0..text.len() {
            let mut screen = PlaybackScreen::default();
            let cut = screen.push(&text[..at]) + &screen.push(&text[at..]);
            assert_eq!(cut, whole, "cut at {at}");
        }
    }

    #[test]
    fn the_terminal_is_put_back() {
        let mut screen = PlaybackScreen::default();
        screen.push("\x1b[?25l\x1b[?1049h\x1b[?7l\x1b[?7h\x1b[2;5r\x1b]never ends");
        let back = "\x1b[?25h\x1b[?1049l\x1b[4l\x1b(B\x0f\x1b[0m\x1b7\x1b[r\x1b8";
        assert_eq!(screen.restore(), back);
        assert_eq!(screen.restore(), "\x1b[4l\x1b(B\x0f\x1b[0m");
        assert_eq!(screen.push("x"), "x");
    }

    proptest! {
        /// The filter is idempotent: its output passes through unchanged.
        #[test]
        fn once_is_enough(text in "[\\x00-\\x1f\\[\\]?;:$>!P_0-9A-Za-z\u{80}-\u{9f}é]{0,60}") {
            let once = shown(&text);
            prop_assert_eq!(shown(&once), once.clone());
            let controls = ['\x05', '\x07', '\x7f', '\u{9b}', '\u{9d}'];
            prop_assert_eq!(once.find(controls), None);
            for begin in ["\x1b]", "\x1bP", "\x1b[6n", "\x1b[c", "\x1b[?6n"] {
                prop_assert_eq!(once.find(begin), None);
            }
        }
    }
}

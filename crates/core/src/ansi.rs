//! Parser for terminal output: text, control characters and escape sequences.
//!
//! The state machine is the one of the `vte` crate; all code of `gt` that reads the output of a
//! program goes through this module. [`AnsiParser`] reports [`Token`]s, [`Sequence::renditions`]
//! decodes colours and attributes, and [`Charset`] tracks line drawing.
//!
//! String sequences (titles, links, clipboards, device controls) are consumed and not reported,
//! because no caller may act on them. `vte` is built without its `std` feature: it then stores only
//! the beginning of such a string, so an unterminated one cannot fill the memory.
//!
//! Keys and pastes are terminal *input*, in which a lone Escape is a key. crossterm decodes them
//! for the board; the demo agent has a decoder of its own.

mod charset;
mod rendition;

pub use charset::Charset;
pub use rendition::{Colour, Effect, Rendition};

use std::fmt::{self, Write};

/// A complete part of terminal output.
#[derive(Clone, Copy, Debug)]
pub enum Token<'a> {
    Text(char),
    /// A control character (C0, C1 or delete). It also takes effect inside a sequence.
    Control(char),
    /// `ESC`, the intermediate characters, and the final character.
    Escape(&'a str, char),
    Sequence(Sequence<'a>),
}

/// A control sequence: `ESC [`, parameters, intermediate characters, a final character.
#[derive(Clone, Copy, Debug)]
pub struct Sequence<'a> {
    /// The private marker (`?`, `>`, …) and the intermediate characters. Empty for most sequences.
    pub marks: &'a str,
    pub last: char,
    parameters: &'a vte::Params,
}

impl Sequence<'_> {
    /// Returns the parameters, each with its subparameters. An omitted parameter is 0, and one that
    /// is too large is [`u16::MAX`]. There is always at least one.
    pub fn parameters(&self) -> impl Iterator<Item = &[u16]> {
        self.parameters.iter()
    }

    /// Returns the only parameter, 0 if it is omitted.
    pub fn only_parameter(&self) -> Option<u16> {
        let mut parameters = self.parameters();
        match (parameters.next(), parameters.next()) {
            (Some([only]), None) => Some(*only),
            _ => None,
        }
    }

    /// Calls `each` for every change of a select graphic rendition (SGR) sequence, and never for
    /// another sequence.
    pub fn renditions(&self, each: impl FnMut(Rendition)) {
        if self.last == 'm' && self.marks.is_empty() {
            rendition::decode(self.parameters(), each);
        }
    }
}

/// Formats the sequence as a terminal reads it. Only for sequences without marks, because the place
/// of a mark is not kept.
impl fmt::Display for Sequence<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\x1b[")?;
        // `0m` is the usual spelling of a reset; elsewhere a lone 0 is usually omitted.
        if self.only_parameter() != Some(0) || self.last == 'm' {
            for (index, parameter) in self.parameters().enumerate() {
                let mut separator = if index == 0 { "" } else { ";" };
                for number in parameter {
                    write!(f, "{separator}{number}")?;
                    separator = ":";
                }
            }
        }
        f.write_char(self.last)
    }
}

/// Splits text into tokens. A sequence may continue in the next text.
#[derive(Default)]
pub struct AnsiParser(vte::Parser);

impl AnsiParser {
    pub fn push(&mut self, text: &str, each: impl FnMut(Token<'_>)) {
        self.0.advance(&mut TokenSink(each), text.as_bytes());
    }
}

impl fmt::Debug for AnsiParser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parser").finish_non_exhaustive()
    }
}

/// Parses one line of a captured screen. An unterminated sequence ends with the line.
pub fn parse_line(line: &str, each: impl FnMut(Token<'_>)) {
    AnsiParser::default().push(line, each);
}

struct TokenSink<F>(F);

impl<F: FnMut(Token<'_>)> vte::Perform for TokenSink<F> {
    fn print(&mut self, c: char) {
        self.0(match c {
            '\x7f' => Token::Control(c),
            c => Token::Text(c),
        });
    }

    fn execute(&mut self, byte: u8) {
        self.0(Token::Control(char::from(byte)));
    }

    fn csi_dispatch(
        &mut self,
        parameters: &vte::Params,
        marks: &[u8],
        is_too_long: bool,
        last: char,
    ) {
        if let (false, Ok(marks)) = (is_too_long, str::from_utf8(marks)) {
            self.0(Token::Sequence(Sequence {
                marks,
                last,
                parameters,
            }));
        }
    }

    fn esc_dispatch(&mut self, between: &[u8], is_too_long: bool, last: u8) {
        if let (false, Ok(between)) = (is_too_long, str::from_utf8(between)) {
            self.0(Token::Escape(between, char::from(last)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(pieces: &[&str]) -> String {
        let (mut parser, mut shown) = (AnsiParser::default(), String::new());
        for piece in pieces {
            parser.push(piece, |token| {
                shown.push_str(&match token {
                    Token::Text(c) => c.to_string(),
                    Token::Control(c) => format!("<{:x}>", u32::from(c)),
                    Token::Escape(between, last) => format!("<ESC {between}{last}>"),
                    Token::Sequence(it) => format!("<{}{}>", it.marks, &it.to_string()[1..]),
                });
            });
        }
        shown
    }

    #[test]
    fn output_is_split_into_tokens() {
        let check = |text: &str, expected: &str| assert_eq!(tokens(&[text]), expected, "{text:?}");
        check("Grüße 日本\t\x7f\u{9b}", "Grüße 日本<9><7f><9b>");
        check("\x1b[m\x1b[0m\x1b[H\x1b[0;1H", "<[0m><[0m><[H><[0;1H>");
        check("\x1b[38:2::1:2:3;4:3m", "<[38:2:0:1:2:3;4:3m>");
        check("\x1b[?25l\x1b[>4;2m\x1b[!p", "<?[25l><>[4;2m><![p>");
        check("\x1b7\x1b(0\x1b#8", "<ESC 7><ESC (0><ESC #8>");
        // A control character takes effect inside a sequence, and CAN ends it.
        check("\x1b[1\n0mx\x1b[3\x18my", "<a><[10m>x<18>my");
        check("\x1b[99999999m", "<[65535m>");
        check(&format!("\x1b[{}mx", "1;".repeat(40)), "x");
    }

    #[test]
    fn strings_are_consumed_up_to_any_end() {
        for string in ["\x1b]0;t", "\x1bPq;1", "\x1b_x", "\x1b^y", "\x1bXz"] {
            let text = format!("a{string} ü\x1b\\b");
            assert_eq!(tokens(&[&text]), "a<ESC \\>b", "{text:?}");
            assert_eq!(tokens(&["a", string, "never ends"]), "a");
        }
        assert_eq!(tokens(&["a\x1b]8;;http://x\x07b"]), "ab");
    }

    #[test]
    fn a_sequence_may_continue_in_the_next_text() {
        assert_eq!(
            tokens(&["a\x1b", "[3", "1mb\x1b]0;", "t\x07c"]),
            "a<[31m>bc"
        );
    }
}

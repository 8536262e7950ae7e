//! A recording as plain text.
//!
//! The position of the cursor is not tracked. A move to another line becomes a line break, and a
//! move within a line becomes a space, so that no two words run together.

use crate::ansi::{AnsiParser, Charset, Token};

#[derive(Debug, Default)]
pub struct PlainView {
    parser: AnsiParser,
    text: PlainState,
}

/// The state of the plain text after the last character.
#[derive(Debug, Default)]
struct PlainState {
    charset: Charset,
    /// The present line is not empty.
    is_within: bool,
    gap: Gap,
}

/// The separator before the next character.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Gap {
    #[default]
    None,
    Space,
    Line,
}

impl PlainView {
    /// Returns the plain text of this output. A sequence may continue in the next call.
    pub fn push(&mut self, output: &str) -> String {
        let mut shown = String::with_capacity(output.len());
        let text = &mut self.text;
        self.parser
            .push(output, |token| text.show(&token, &mut shown));
        shown
    }

    /// Ends the line and discards an incomplete sequence.
    pub fn interrupt(&mut self) -> &'static str {
        self.parser = AnsiParser::default();
        self.text.gap = Gap::None;
        match std::mem::take(&mut self.text.is_within) {
            true => "\n",
            false => "",
        }
    }
}

impl PlainState {
    fn show(&mut self, token: &Token<'_>, shown: &mut String) {
        if let Some(c) = self.charset.displayed(token) {
            return self.add(c, shown);
        }
        match token {
            Token::Control('\t') => self.add('\t', shown),
            Token::Control('\n') => {
                self.gap = Gap::None;
                self.is_within = false;
                shown.push('\n');
            }
            Token::Control('\r') | Token::Escape("", 'D' | 'E' | 'M' | 'c' | '8') => {
                self.leave(Gap::Line);
            }
            Token::Sequence(sequence) => match sequence.last {
                'A' | 'B' | 'E' | 'F' | 'H' | 'd' | 'e' | 'f' | 'r' | 'u' => self.leave(Gap::Line),
                'h' | 'l' if sequence.parameters().any(|mode| mode == [1049]) => {
                    self.leave(Gap::Line);
                }
                'C' | 'D' | 'G' | 'I' | '`' | 'a' => self.leave(Gap::Space),
                _ => {}
            },
            Token::Text(_) | Token::Control(_) | Token::Escape(..) => {}
        }
    }

    fn leave(&mut self, gap: Gap) {
        if self.is_within {
            self.gap = self.gap.max(gap);
        }
    }

    fn add(&mut self, c: char, shown: &mut String) {
        match std::mem::take(&mut self.gap) {
            Gap::None => {}
            Gap::Space => shown.push(' '),
            Gap::Line => shown.push('\n'),
        }
        shown.push(c);
        self.is_within = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_text_is_left() {
        let check = |text: &str, expected: &str| {
            assert_eq!(PlainView::default().push(text), expected, "{text:?}");
        };
        check("one\r\n\r\ntwo\r\n", "one\n\ntwo\n");
        check(
            "\x1b[1mbold\x1b[0m \x1b]0;t\x07x\x1b[6n\u{9b}6n",
            "bold x6n",
        );
        check("10%\r20%\r\n", "10%\n20%\n");
        check(
            "\x1b[2J\x1b[H\x1b[1;1Ha\x1b[5Gb\x1b[2;1Hc\x1b[3;1H",
            "a b\nc",
        );
        check("\x1b(0lqk\x1b(B q\t.", "┌─┐ q\t.");
    }

    #[test]
    fn a_remark_stands_in_a_line_of_its_own() {
        let mut plain = PlainView::default();
        assert_eq!(plain.push("a\x1b["), "a");
        assert_eq!(plain.interrupt(), "\n");
        assert_eq!(plain.interrupt(), "");
        assert_eq!(plain.push("31m"), "31m");
    }
}

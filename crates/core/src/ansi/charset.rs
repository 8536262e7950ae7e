//! Line drawing: letters that stand for box characters.

use super::Token;

/// Letters of the VT100's alternate character set that programs use, and what they stand for.
const LINES: &[(char, char)] = &[
    ('j', '┘'),
    ('k', '┐'),
    ('l', '┌'),
    ('m', '└'),
    ('n', '┼'),
    ('q', '─'),
    ('t', '├'),
    ('u', '┤'),
    ('v', '┴'),
    ('w', '┬'),
    ('x', '│'),
    ('a', '▒'),
    ('`', '◆'),
    ('f', '°'),
    ('g', '±'),
    ('~', '·'),
];

/// Tracks whether letters stand for line-drawing characters.
#[derive(Clone, Copy, Debug, Default)]
pub struct Charset {
    draws_lines: bool,
}

impl Charset {
    /// Returns the character that a terminal shows for this token, if it shows one. Tokens that
    /// switch the character set change the result for later tokens.
    pub fn displayed(&mut self, token: &Token<'_>) -> Option<char> {
        match token {
            Token::Text(c) if self.draws_lines => {
                let line = LINES.iter().find(|(letter, _)| letter == c);
                return Some(line.map_or(*c, |(_, line)| *line));
            }
            Token::Text(c) => return Some(*c),
            Token::Control('\x0e') => self.draws_lines = true,
            Token::Control('\x0f') => self.draws_lines = false,
            Token::Escape("(", last) => self.draws_lines = *last == '0',
            Token::Control(_) | Token::Escape(..) | Token::Sequence(_) => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ansi::parse_line;

    #[test]
    fn letters_become_lines_after_either_switch() {
        let check = |text: &str, expected: &str| {
            let (mut charset, mut shown) = (Charset::default(), String::new());
            parse_line(text, |token| shown.extend(charset.displayed(&token)));
            assert_eq!(shown, expected, "{text:?}");
        };
        check("\x0elqkA\x0fq", "┌─┐Aq");
        check("\x1b(0x~\x1b(Bx", "│·x");
        check("\x1b)0x", "x");
    }
}

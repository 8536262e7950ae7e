//! Makes text from a terminal safe to print on another one.
//!
//! The output of a program is not trusted: a title, a clipboard, a query or a mode change would act
//! again when it is shown again. Colours stay; every other control is removed.

use crate::ansi::{Charset, Token, parse_line};

/// Returns the text with its line breaks, tabs and colours, and without any other control. No
/// sequence continues on the next line.
pub fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut charset = Charset::default();
    for line in text.split_inclusive('\n') {
        parse_line(line.trim_end_matches('\n'), |token| {
            shown.extend(charset.displayed(&token));
            match token {
                Token::Control('\t') => shown.push('\t'),
                Token::Sequence(sequence) if sequence.last == 'm' && sequence.marks.is_empty() => {
                    shown.push_str(&sequence.to_string());
                }
                _ => {}
            }
        });
        if line.ends_with('\n') {
            shown.push('\n');
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn colours_stay_and_the_rest_goes() {
        let check = |text: &str, expected: &str| assert_eq!(printable(text), expected, "{text:?}");
        check("plain\n\tGrüße 日本\n", "plain\n\tGrüße 日本\n");
        check("\x1b[1;38:5:3mred\x1b[0m", "\x1b[1;38:5:3mred\x1b[0m");
        check("a\x1b]0;title\x07b\x1b]52;c;AAAA\x1b\\c", "abc");
        check("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link");
        check("a\x1bPq;1;2\x1b\\b\x1b_x\x1b\\c", "abc");
        check("a\x1b[2J\x1b[H\x1b[?1049h\x1b[6n\x1b[>4;2mb", "ab");
        check("a\x1b(0b\x1bcd\x1b=e", "abde");
        check("a\rb\x08c\x7fd\u{9b}31me", "abcd31me");
        check("a\x1b]0;never ends\nb", "a\nb");
        check("a\x1b", "a");
        check("\x0elqk\x0f q", "┌─┐ q");
    }

    proptest! {
        /// For any input, only these controls pass, and the function is idempotent.
        #[test]
        fn nothing_else_gets_through(text in "[\\x00-\\x7f\u{80}-\u{a0}é]{0,60}") {
            let shown = printable(&text);
            prop_assert_eq!(&printable(&shown), &shown);
            let mut rest = shown.as_str();
            while let Some(at) = rest.find(|c: char| c.is_control() && c != '\n' && c != '\t') {
                let after = &rest[at..];
                prop_assert!(after.starts_with("\x1b["), "{:?}", shown);
                let end = after[2..].find(|c: char| !c.is_ascii_digit() && c != ';' && c != ':');
                let end = end.map(|end| end + 2);
                prop_assert_eq!(end.map(|end| &after[end..end + 1]), Some("m"));
                rest = &after[end.unwrap_or(after.len())..];
            }
        }
    }
}

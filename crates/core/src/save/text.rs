//! Makes text from a terminal safe to print on another one.
//!
//! The output of a program is not trusted: a title, a clipboard, a query or a mode change would act
//! again when it is shown again. Colours stay; every other control is removed.

/// Line-drawing characters of the alternate character set.
pub(crate) const LINES: &[(char, char)] = &[
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
];

/// Returns the text with its line breaks, tabs and colours, and without any other control.
pub fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    let mut draws_lines = false;
    while let Some(c) = rest.next() {
        match c {
            '\x1b' => match rest.next() {
                Some('[') => sequence(&mut rest, &mut shown),
                // A title, a clipboard, a link, a private message: up to its end, which is never on
                // another line.
                Some(']' | 'P' | 'X' | '^' | '_') => skip_string(&mut rest),
                // Other sequences are intermediate bytes and one final byte.
                Some(' '..='/') => {
                    while rest.next_if(|c| matches!(c, ' '..='/')).is_some() {}
                    rest.next_if(|c| matches!(c, '0'..='~'));
                }
                Some('\n') => shown.push('\n'),
                _ => {}
            },
            '\x0e' => draws_lines = true,
            '\x0f' => draws_lines = false,
            '\n' | '\t' => shown.push(c),
            c if c.is_control() => {}
            c if draws_lines => {
                let line = LINES.iter().find(|(letter, _)| *letter == c);
                shown.push(line.map_or(c, |(_, line)| *line));
            }
            c => shown.push(c),
        }
    }
    shown
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// Keeps a control sequence only if it sets colours.
fn sequence(rest: &mut Chars<'_>, shown: &mut String) {
    let mut parameters = String::new();
    while let Some(c) = rest.next_if(|c| matches!(c, ' '..='?')) {
        parameters.push(c);
    }
    let last = rest.next_if(|c| matches!(c, '@'..='~'));
    let is_plain = parameters
        .chars()
        .all(|c| c.is_ascii_digit() || c == ';' || c == ':');
    if last == Some('m') && is_plain {
        shown.push_str("\x1b[");
        shown.push_str(&parameters);
        shown.push('m');
    }
}

fn skip_string(rest: &mut Chars<'_>) {
    while let Some(c) = rest.next_if(|c| *c != '\n') {
        match c {
            '\x07' | '\u{9c}' => return,
            '\x1b' => {
                rest.next_if(|c| *c != '\n');
                return;
            }
            _ => {}
        }
    }
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

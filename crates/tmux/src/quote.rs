//! Quoting for tmux's own grammar.
//!
//! tmux reads commands in two ways, and each has a pitfall. A *line* (control mode, `source-file`)
//! is parsed with the configuration grammar, where `$`, `~`, `;`, `#`, braces, quotes and
//! backslashes are special: [`quote`] makes one word of a text. An *argument vector* (exec, the
//! socket protocol) is taken literally with one exception, that an argument ending in `;` ends the
//! command: [`argv_word`].
//!
//! Text that tmux expands as a *format* after parsing (`#{…}`, `#(…)`) is a second layer, see
//! [`crate::format`].

use std::borrow::Cow;
use std::fmt::Write;

/// Returns a word of tmux's configuration grammar that means exactly `text`.
///
/// The result contains no raw newline or other control character, since control mode is line based.
/// A NUL cannot be part of any tmux argument and is dropped; the transports of [`crate::Server`]
/// reject it earlier.
#[must_use]
pub fn quote(text: &str) -> String {
    if is_plain(text) {
        return text.to_owned();
    }
    let mut word = String::with_capacity(text.len() + 2);
    word.push('"');
    for character in text.chars() {
        match character {
            '\0' => {}
            // `~` is special only at the start of a word, but escaping it anywhere is harmless.
            '"' | '\\' | '$' | '~' => {
                word.push('\\');
                word.push(character);
            }
            // Octal instead of `\n`: three digits are unambiguous for every control character.
            _ if character.is_ascii_control() => {
                let _ = write!(word, "\\{:03o}", u32::from(character));
            }
            _ => word.push(character),
        }
    }
    word.push('"');
    word
}

/// Returns an argument for a tmux argument vector, where a trailing `;` would end the command.
#[must_use]
pub fn argv_word(text: &str) -> Cow<'_, str> {
    match text.strip_suffix(';') {
        Some(rest) => Cow::Owned(format!("{rest}\\;")),
        None => Cow::Borrowed(text),
    }
}

/// Returns whether the text needs no quotes. The set is deliberately small: `%`, `=`, `{` and `#`
/// are special somewhere in a line.
fn is_plain(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_./:@,+".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_words_stay_readable() {
        assert_eq!(quote("new-session"), "new-session");
        assert_eq!(quote("/tmp/a.b:c"), "/tmp/a.b:c");
    }

    #[test]
    fn everything_else_is_quoted_on_one_line() {
        assert_eq!(quote(""), r#""""#);
        assert_eq!(quote("a b"), r#""a b""#);
        assert_eq!(quote("~/x"), r#""\~/x""#);
        assert_eq!(quote("$HOME"), r#""\$HOME""#);
        assert_eq!(quote("a\nb\tc\u{1b}"), r#""a\012b\011c\033""#);
        assert_eq!(quote("=name:"), r#""=name:""#);
        assert_eq!(quote("x;"), r#""x;""#);
    }

    #[test]
    fn a_last_semicolon_is_kept_in_an_argument() {
        assert_eq!(argv_word("a;"), r"a\;");
        assert_eq!(argv_word(r"a\;"), r"a\\;");
        assert_eq!(argv_word("a;b"), "a;b");
        assert_eq!(argv_word(";"), r"\;");
    }
}

#[cfg(test)]
mod on_a_server;

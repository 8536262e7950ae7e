//! Quoting for a POSIX shell.

/// Quotes a text so that the shell reads it back as one word.
pub fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn nothing_in_a_word_is_read_by_the_shell() {
        assert_eq!(super::quote("a b; $(x)"), "'a b; $(x)'");
        assert_eq!(super::quote("it's"), r"'it'\''s'");
    }
}

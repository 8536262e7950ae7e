//! Escapes text that tmux must not expand as a format.
//!
//! tmux expands `#{…}` and runs `#(…)` in names, paths, status lines and messages, so untrusted
//! text in such a place is code. The functions here make it literal. There are several because the
//! result of a format is either *used* (a session's name, a start folder) or *drawn* (the status
//! line). In drawn text `#[…]` is a style, and `##` is reduced to `#` once more. Some formats first
//! pass through `strftime`, where `%H` is the hour.
//!
//! This layer is below quoting: text for a command line is escaped here first, and then quoted by
//! [`crate::Command`], which quotes all its arguments.

/// Escapes text for a format whose result is used unchanged: `new-session -s`, `-n` and `-c`,
/// `rename-window`, `list-panes -F`.
#[must_use]
pub fn escape(text: &str) -> String {
    multiply_hashes(text, USED)
}

/// Escapes text for a format that passes through `strftime` and is then drawn: `status-left`,
/// `status-right`, `pane-border-format`.
///
/// tmux gives `strftime` a buffer of 8 KB, and draws nothing if a text with a `%` needs more.
#[must_use]
pub fn escape_time(text: &str) -> String {
    multiply_hashes(text, DRAWN).replace('%', "%%")
}

/// Escapes text for a format that passes through `strftime` and is not drawn: `display-message -p`,
/// `set-titles-string`.
#[must_use]
pub fn escape_message(text: &str) -> String {
    escape(text).replace('%', "%%")
}

/// The number of `#` that produce one `#`.
struct Hashes {
    usual: usize,
    /// The number before a `[`, where the expansion keeps them for the drawing.
    before_bracket: usize,
}

const USED: Hashes = Hashes {
    usual: 2,
    before_bracket: 1,
};
/// The expansion halves them, and the drawing halves them again.
const DRAWN: Hashes = Hashes {
    usual: 4,
    before_bracket: 2,
};

fn multiply_hashes(text: &str, hashes: Hashes) -> String {
    let mut escaped = String::with_capacity(text.len() + 8);
    let mut rest = text;
    while let Some(start) = rest.find('#') {
        let (before, from_hash) = rest.split_at(start);
        let after = from_hash.trim_start_matches('#');
        let run = &from_hash[..from_hash.len() - after.len()];
        let times = if after.starts_with('[') {
            hashes.before_bracket
        } else {
            hashes.usual
        };
        escaped.push_str(before);
        escaped.push_str(&run.repeat(times));
        rest = after;
    }
    escaped.push_str(rest);
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_what_tmux_halves() {
        assert_eq!(escape("#(rm x) #{pid} ##"), "##(rm x) ##{pid} ####");
        assert_eq!(escape("no hash"), "no hash");
        assert_eq!(escape("100%"), "100%");
    }

    #[test]
    fn styles_depend_on_the_end_they_meet() {
        assert_eq!(escape("a#[x]##[y"), "a#[x]##[y");
        assert_eq!(escape_time("a#[x]##[y"), "a##[x]####[y");
    }

    #[test]
    fn time_is_escaped_where_time_is_expanded() {
        assert_eq!(escape_time("%H #S"), "%%H ####S");
        assert_eq!(escape_message("%H #[x"), "%%H #[x");
    }
}

#[cfg(test)]
mod on_a_server;

//! Text that must not be taken for a tmux format.
//!
//! tmux expands `#{…}` and runs `#(…)` in names, paths, status lines and messages, so a name
//! from outside that lands there is code. The functions here make such text literal. There are
//! several because a format has two ends: its result is *used* (a session's name, a start
//! folder) or it is *drawn* (the status line), where `#[…]` is a colour and `##` is one `#`
//! once more. And some formats first go through `strftime`, where `%H` is the hour.
//!
//! This is a layer below quoting: text for a command line is escaped here first, and then
//! quoted by [`crate::Command`], which does it by itself.

/// Text for a format whose result is used as it is: `new-session -s`, `-n` and `-c`,
/// `rename-window`, `list-panes -F`.
#[must_use]
pub fn escape(text: &str) -> String {
    multiply_hashes(text, USED)
}

/// Text for a format that goes through `strftime` and is then drawn: `status-left`,
/// `status-right`, `pane-border-format`.
///
/// tmux gives `strftime` a buffer of 8 KB and draws nothing at all if a text with a `%` needs
/// more.
#[must_use]
pub fn escape_time(text: &str) -> String {
    multiply_hashes(text, DRAWN).replace('%', "%%")
}

/// Text for a format that goes through `strftime` and is not drawn: `display-message -p`,
/// `set-titles-string`.
#[must_use]
pub fn escape_message(text: &str) -> String {
    escape(text).replace('%', "%%")
}

/// How many `#` make one.
struct Hashes {
    usual: usize,
    /// In front of a `[`, where the expansion leaves them alone for the drawing.
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

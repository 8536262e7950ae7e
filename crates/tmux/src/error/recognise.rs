//! Derives an [`ErrorKind`] from tmux's prose.
//!
//! The texts are those of tmux 3.2 to 3.8. Only the start of a line is compared: a name chosen by a
//! user may follow it, and may read like any other error.

use super::ErrorKind;

/// Beginnings of messages with their kinds. The first match wins.
const BEGINNINGS: &[(&str, ErrorKind)] = &[
    ("no server running on", ErrorKind::NoServer),
    ("can't find session", ErrorKind::NoSuchSession),
    ("can't find window", ErrorKind::NoSuchWindow),
    ("can't find pane", ErrorKind::NoSuchPane),
    ("can't find client", ErrorKind::NoSuchClient),
    ("no such session", ErrorKind::NoSuchSession),
    ("no such window", ErrorKind::NoSuchWindow),
    ("no such pane", ErrorKind::NoSuchPane),
    ("no sessions", ErrorKind::NoSuchSession),
    ("no current session", ErrorKind::NoSuchSession),
    ("no current target", ErrorKind::NoSuchSession),
    ("no current window", ErrorKind::NoSuchWindow),
    ("no current pane", ErrorKind::NoSuchPane),
    ("no current client", ErrorKind::NoSuchClient),
    ("duplicate session", ErrorKind::Duplicate),
    ("window only linked to one session", ErrorKind::OnlyLink),
    ("server exited", ErrorKind::ServerLost),
    ("lost server", ErrorKind::ServerLost),
    ("protocol version mismatch", ErrorKind::Protocol),
    ("server version is too old for client", ErrorKind::TooOld),
];

/// Returns the kind of the first line that is known.
pub(super) fn kind(message: &str) -> ErrorKind {
    message
        .lines()
        .find_map(line_kind)
        .unwrap_or(ErrorKind::Other)
}

fn line_kind(line: &str) -> Option<ErrorKind> {
    let line = without_position(line.trim_start());
    if line.starts_with("error connecting to ") {
        // Any other reason, such as a folder of another user, does not mean that no server runs.
        let absent =
            line.ends_with("(No such file or directory)") || line.ends_with("(Connection refused)");
        return absent.then_some(ErrorKind::NoServer);
    }
    BEGINNINGS
        .iter()
        .find(|(beginning, _)| line.starts_with(beginning))
        .map(|&(_, kind)| kind)
}

/// Removes the position `-:1: ` that `source-file -` puts before a message.
fn without_position(line: &str) -> &str {
    line.strip_prefix("-:")
        .and_then(|rest| rest.split_once(": "))
        .filter(|(number, _)| number.bytes().all(|byte| byte.is_ascii_digit()))
        .map_or(line, |(_, rest)| rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_the_words_of_tmux() {
        let cases = [
            ("no server running on /tmp/tmux-0/x", ErrorKind::NoServer),
            (
                "error connecting to /tmp/x (No such file or directory)",
                ErrorKind::NoServer,
            ),
            (
                "error connecting to /tmp/x (Connection refused)",
                ErrorKind::NoServer,
            ),
            (
                "error connecting to /tmp/x (Permission denied)",
                ErrorKind::Other,
            ),
            ("can't find pane: %9", ErrorKind::NoSuchPane),
            ("no such session: =foo:", ErrorKind::NoSuchSession),
            ("duplicate session: a", ErrorKind::Duplicate),
            ("window only linked to one session", ErrorKind::OnlyLink),
            ("server exited unexpectedly", ErrorKind::ServerLost),
            ("no current client", ErrorKind::NoSuchClient),
            ("-:12: can't find window: @3", ErrorKind::NoSuchWindow),
            ("unknown command: foo", ErrorKind::Other),
            ("", ErrorKind::Other),
        ];
        for (message, expected) in cases {
            assert_eq!(kind(message), expected, "{message:?}");
        }
    }

    #[test]
    fn a_name_cannot_pass_for_an_error() {
        assert_eq!(
            kind("can't find pane: duplicate session"),
            ErrorKind::NoSuchPane
        );
        assert_eq!(kind("invalid option: no sessions"), ErrorKind::Other);
    }
}

//! The notifications of tmux, typed.
//!
//! A line of an unknown form is [`Notification::Other`] and never an error: a newer tmux may send
//! other notifications.

use crate::{PaneId, SessionId, WindowId};

/// One notification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notification {
    /// A session was created or closed.
    SessionsChanged,
    /// This client was switched to another session.
    SessionChanged { session: SessionId, name: String },
    /// A session was renamed.
    SessionRenamed { session: SessionId, name: String },
    /// The current window of the session changed.
    SessionWindowChanged {
        session: SessionId,
        window: WindowId,
    },
    /// A window was linked to this client's session.
    WindowAdd { window: WindowId },
    /// A window of this client's session was closed.
    WindowClose { window: WindowId },
    /// A window of this client's session was renamed.
    WindowRenamed { window: WindowId, name: String },
    /// The active pane of the window changed.
    WindowPaneChanged { window: WindowId, pane: PaneId },
    /// A window was linked to another session.
    UnlinkedWindowAdd { window: WindowId },
    /// A window of another session was closed.
    UnlinkedWindowClose { window: WindowId },
    /// A window of another session was renamed.
    UnlinkedWindowRenamed { window: WindowId, name: String },
    /// A pane entered or left a mode, such as copy mode.
    PaneModeChanged { pane: PaneId },
    /// A client detached.
    ClientDetached { client: String },
    /// Another client was switched to this session.
    ClientSessionChanged {
        client: String,
        session: SessionId,
        name: String,
    },
    /// The layout of a window changed.
    LayoutChange { window: WindowId, layout: String },
    /// The value of a subscribed format changed.
    SubscriptionChanged {
        /// The name of the subscription.
        name: String,
        session: SessionId,
        /// `None` if the subscription does not concern a window.
        window: Option<WindowId>,
        /// `None` if the subscription does not concern a pane.
        pane: Option<PaneId>,
        value: String,
    },
    /// Output of a pane, unescaped.
    Output { pane: PaneId, data: Vec<u8> },
    /// Output of a pane, unescaped, with its delay in milliseconds.
    ExtendedOutput {
        pane: PaneId,
        age: u64,
        data: Vec<u8>,
    },
    /// tmux holds back the output of a pane.
    Pause { pane: PaneId },
    /// tmux sends the output of a pane again.
    Continue { pane: PaneId },
    /// A message for the user.
    Message { text: String },
    /// The configuration has an error.
    ConfigError { text: String },
    /// A paste buffer changed.
    PasteBufferChanged { name: String },
    /// A paste buffer was deleted.
    PasteBufferDeleted { name: String },
    /// The connection ended. This is its last notification.
    Exit { reason: Option<String> },
    /// A command that this client did not send, for example in a hook, wrote to this client.
    Injected { succeeded: bool, text: String },
    /// Any other notification. A line outside of any answer has an empty name.
    Other { name: String, rest: String },
    /// This many notifications were lost because the receiver was not read in time.
    Lagged { lost: u64 },
    /// A new connection exists; the changes since the last one ended are unknown.
    Reconnected,
}

impl Notification {
    /// Parses a line that begins with `%`.
    #[must_use]
    pub fn parse(line: &[u8]) -> Self {
        parse_output(line).unwrap_or_else(|| parse_text(&String::from_utf8_lossy(line)))
    }
}

fn parse_text(line: &str) -> Notification {
    let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
    let name = name.strip_prefix('%').unwrap_or(name);
    parse_known(name, rest).unwrap_or_else(|| Notification::Other {
        name: name.to_owned(),
        rest: rest.to_owned(),
    })
}

fn parse_known(name: &str, rest: &str) -> Option<Notification> {
    use Notification as N;
    Some(match name {
        "sessions-changed" => N::SessionsChanged,
        "session-changed" => {
            let (session, name) = id_and_text(rest)?;
            N::SessionChanged { session, name }
        }
        "session-renamed" => {
            let (session, name) = id_and_text(rest)?;
            N::SessionRenamed { session, name }
        }
        "session-window-changed" => {
            let (session, window) = rest.split_once(' ')?;
            N::SessionWindowChanged {
                session: session.parse().ok()?,
                window: window.parse().ok()?,
            }
        }
        "window-add" => N::WindowAdd {
            window: rest.parse().ok()?,
        },
        "window-close" => N::WindowClose {
            window: rest.parse().ok()?,
        },
        "window-renamed" => {
            let (window, name) = id_and_text(rest)?;
            N::WindowRenamed { window, name }
        }
        "window-pane-changed" => {
            let (window, pane) = rest.split_once(' ')?;
            N::WindowPaneChanged {
                window: window.parse().ok()?,
                pane: pane.parse().ok()?,
            }
        }
        "unlinked-window-add" => N::UnlinkedWindowAdd {
            window: rest.parse().ok()?,
        },
        "unlinked-window-close" => N::UnlinkedWindowClose {
            window: rest.parse().ok()?,
        },
        "unlinked-window-renamed" => {
            let (window, name) = id_and_text(rest)?;
            N::UnlinkedWindowRenamed { window, name }
        }
        "pane-mode-changed" => N::PaneModeChanged {
            pane: rest.parse().ok()?,
        },
        "client-detached" => N::ClientDetached {
            client: rest.to_owned(),
        },
        "client-session-changed" => {
            let (client, rest) = rest.split_once(' ')?;
            let (session, name) = id_and_text(rest)?;
            N::ClientSessionChanged {
                client: client.to_owned(),
                session,
                name,
            }
        }
        "layout-change" => {
            let (window, layout) = id_and_text(rest)?;
            N::LayoutChange { window, layout }
        }
        "subscription-changed" => return parse_subscription(rest),
        "pause" => N::Pause {
            pane: rest.parse().ok()?,
        },
        "continue" => N::Continue {
            pane: rest.parse().ok()?,
        },
        "message" => N::Message {
            text: rest.to_owned(),
        },
        "config-error" => N::ConfigError {
            text: rest.to_owned(),
        },
        "paste-buffer-changed" => N::PasteBufferChanged {
            name: rest.to_owned(),
        },
        "paste-buffer-deleted" => N::PasteBufferDeleted {
            name: rest.to_owned(),
        },
        "exit" => N::Exit {
            reason: (!rest.is_empty()).then(|| rest.to_owned()),
        },
        _ => return None,
    })
}

fn id_and_text<T: std::str::FromStr>(rest: &str) -> Option<(T, String)> {
    let (id, text) = rest.split_once(' ').unwrap_or((rest, ""));
    Some((id.parse().ok()?, text.to_owned()))
}

/// Parses `name $1 @2 3 %4 : value`, where `-` stands for a field that does not apply.
fn parse_subscription(rest: &str) -> Option<Notification> {
    let (head, value) = rest
        .split_once(" : ")
        .or_else(|| Some((rest.strip_suffix(" :")?, "")))?;
    let mut words = head.rsplitn(5, ' ');
    let pane = optional(words.next()?)?;
    let _index = words.next()?;
    let window = optional(words.next()?)?;
    let session = words.next()?.parse().ok()?;
    let name = words.next()?.to_owned();
    Some(Notification::SubscriptionChanged {
        name,
        session,
        window,
        pane,
        value: value.to_owned(),
    })
}

/// Parses a word; `-` means none.
fn optional<T: std::str::FromStr>(word: &str) -> Option<Option<T>> {
    if word == "-" {
        Some(None)
    } else {
        word.parse().ok().map(Some)
    }
}

/// Parses pane output: bytes, with control characters and backslashes in octal.
fn parse_output(line: &[u8]) -> Option<Notification> {
    if let Some(rest) = line.strip_prefix(b"%output ") {
        let (pane, data) = split_at_space(rest)?;
        return Some(Notification::Output {
            pane: parse_bytes(pane)?,
            data: unescape(data),
        });
    }
    let (pane, rest) = split_at_space(line.strip_prefix(b"%extended-output ")?)?;
    let (age, rest) = split_at_space(rest)?;
    // A later tmux may add fields before the colon.
    let colon = rest.windows(2).position(|pair| pair == b": ")?;
    Some(Notification::ExtendedOutput {
        pane: parse_bytes(pane)?,
        age: parse_bytes(age)?,
        data: unescape(&rest[colon + 2..]),
    })
}

fn split_at_space(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = bytes.iter().position(|&byte| byte == b' ')?;
    Some((&bytes[..at], &bytes[at + 1..]))
}

fn parse_bytes<T: std::str::FromStr>(bytes: &[u8]) -> Option<T> {
    std::str::from_utf8(bytes).ok()?.parse().ok()
}

fn unescape(data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(data.len());
    let mut rest = data;
    while let [first, tail @ ..] = rest {
        let (byte, after) = match (first, tail) {
            (
                b'\\',
                [
                    a @ b'0'..=b'3',
                    b @ b'0'..=b'7',
                    c @ b'0'..=b'7',
                    after @ ..,
                ],
            ) => ((a - b'0') * 64 + (b - b'0') * 8 + (c - b'0'), after),
            _ => (*first, tail),
        };
        bytes.push(byte);
        rest = after;
    }
    bytes
}

#[cfg(test)]
mod tests;

//! The targets of commands. All of them are exact.
//!
//! tmux takes `-t foo` for any session whose name *begins* with `foo`, for a window of that name in
//! the current session, or for a pattern. A [`Target`] is an id, or a whole session name written as
//! `=name` (or `=name:` where the command expects a pane or a window). An inexact target cannot be
//! expressed.
//!
//! One pitfall remains for the caller: `display-message`, `if-shell` and `run-shell` do not fail if
//! the target no longer exists. They continue without one, and formats expand to nothing.
//!
//! The ids are in `target/id.rs`, valid session names in `target/session_name.rs`.

mod id;
mod session_name;

pub use id::{IdError, PaneId, SessionId, WindowId};
pub use session_name::{SessionName, SessionNameError};

/// The target of a command.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// The session of exactly this name; for a pane or window command its current pane or window.
    Session(SessionName),
    /// The session with this id, even if it was renamed.
    SessionId(SessionId),
    /// A window.
    Window(WindowId),
    /// A pane.
    Pane(PaneId),
}

/// Commands whose `-t` (or `-s`) names a session. All other commands would read a bare `=name` as
/// the name of a pane or of a window.
const SESSION_COMMANDS: &[&str] = &[
    "attach-session",
    "detach-client",
    "has-session",
    "kill-session",
    "list-clients",
    "list-windows",
    "lock-session",
    "new-session",
    "rename-session",
    "set-environment",
    "show-environment",
    "switch-client",
];

impl Target {
    /// Returns the text after `-t` for the command of this name.
    #[must_use]
    pub fn render_for(&self, command: &str) -> String {
        match self {
            Self::Session(name) if SESSION_COMMANDS.contains(&command) => format!("={name}"),
            Self::Session(name) => format!("={name}:"),
            Self::SessionId(id) if SESSION_COMMANDS.contains(&command) => id.to_string(),
            // A bare `$1` means a session in every command; the colon makes it explicit.
            Self::SessionId(id) => format!("{id}:"),
            Self::Window(id) => id.to_string(),
            Self::Pane(id) => id.to_string(),
        }
    }
}

impl From<SessionName> for Target {
    fn from(name: SessionName) -> Self {
        Self::Session(name)
    }
}

impl From<&SessionName> for Target {
    fn from(name: &SessionName) -> Self {
        Self::Session(name.clone())
    }
}

impl From<SessionId> for Target {
    fn from(id: SessionId) -> Self {
        Self::SessionId(id)
    }
}

impl From<WindowId> for Target {
    fn from(id: WindowId) -> Self {
        Self::Window(id)
    }
}

impl From<PaneId> for Target {
    fn from(id: PaneId) -> Self {
        Self::Pane(id)
    }
}

impl From<&Target> for Target {
    fn from(target: &Target) -> Self {
        target.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_decides_how_a_name_is_written() {
        let target = Target::Session(SessionName::new("foo").unwrap());
        assert_eq!(target.render_for("kill-session"), "=foo");
        assert_eq!(target.render_for("send-keys"), "=foo:");
        assert_eq!(target.render_for("set-option"), "=foo:");
    }

    #[test]
    fn ids_stand_for_themselves() {
        assert_eq!(Target::from(PaneId(3)).render_for("send-keys"), "%3");
        assert_eq!(Target::from(WindowId(2)).render_for("kill-window"), "@2");
        assert_eq!(Target::from(SessionId(1)).render_for("has-session"), "$1");
        assert_eq!(Target::from(SessionId(1)).render_for("split-window"), "$1:");
    }
}

#[cfg(test)]
mod on_a_server;

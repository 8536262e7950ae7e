//! Validation of session names, so that a session can be found again by its name.
//!
//! tmux accepts any text as a session name and silently stores a different one in some cases: a dot
//! or a colon becomes `_`, a backslash is doubled, `$x` becomes `\$x` (up to 3.3), control
//! characters become octal. Even an exact target is ambiguous in two cases: `=$3` is the session
//! with that *id*, and `=pts/3` is the session of the *client* on that terminal. A [`SessionName`]
//! is a name for which none of this happens, so that it finds exactly the session that it created.
//!
//! Not covered: characters that the C library of the server cannot print (some that Unicode has not
//! assigned) are stored in octal. A foreign session with an invalid name can still be addressed by
//! its [`SessionId`](super::SessionId).

use std::fmt;
use std::str::FromStr;

/// The exact name of a session. The module's documentation lists the restrictions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionName(String);

/// The reason why a text is not a valid session name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SessionNameError {
    /// tmux has no sessions without a name.
    #[error("a session name cannot be empty")]
    Empty,
    /// tmux would store a different character, or give it a special meaning.
    #[error("a session name cannot hold {0:?}")]
    Character(char),
    /// An exact target of this name could match the session of a client.
    #[error("a session name cannot look like that of a terminal or of a client")]
    LooksLikeClient,
}

impl SessionName {
    /// Validates the name.
    pub fn new(name: impl Into<String>) -> Result<Self, SessionNameError> {
        let name = name.into();
        if name.is_empty() {
            return Err(SessionNameError::Empty);
        }
        if let Some(bad) = name
            .chars()
            .find(|&character| is_changed_by_tmux(character))
        {
            return Err(SessionNameError::Character(bad));
        }
        if looks_like_client(&name) {
            return Err(SessionNameError::LooksLikeClient);
        }
        Ok(Self(name))
    }

    /// Returns the name as tmux shows it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name for `new-session -s` and `rename-session`, which expand it as a format.
    #[must_use]
    pub fn to_format(&self) -> String {
        crate::format::escape(&self.0)
    }
}

fn is_changed_by_tmux(character: char) -> bool {
    matches!(character, ':' | '.' | '\\' | '$') || character.is_control()
}

/// Returns whether tmux could take the name for that of a client: its terminal with or without
/// `/dev/`, or `client-PID` for a client without a terminal.
fn looks_like_client(name: &str) -> bool {
    let ends_in_number = |rest: &str| {
        let digits = rest.trim_start_matches(|character: char| character.is_ascii_alphabetic());
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    name.starts_with("/dev/")
        || ["pts/", "client-", "tty"]
            .iter()
            .any(|prefix| name.strip_prefix(prefix).is_some_and(ends_in_number))
}

impl TryFrom<&str> for SessionName {
    type Error = SessionNameError;

    fn try_from(name: &str) -> Result<Self, SessionNameError> {
        Self::new(name)
    }
}

impl TryFrom<String> for SessionName {
    type Error = SessionNameError;

    fn try_from(name: String) -> Result<Self, SessionNameError> {
        Self::new(name)
    }
}

impl FromStr for SessionName {
    type Err = SessionNameError;

    fn from_str(name: &str) -> Result<Self, SessionNameError> {
        Self::new(name)
    }
}

impl From<SessionName> for String {
    fn from(name: SessionName) -> Self {
        name.0
    }
}

impl AsRef<str> for SessionName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_but_harmless_names_are_fine() {
        for name in [
            "-x", "=a", "%1", "@1", "{mouse}", "~", "!", "a b", "ü", "#{pid}", "a;", "tty",
            "client-x",
        ] {
            assert!(SessionName::new(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn names_that_tmux_would_change_or_misread_are_refused() {
        assert_eq!(SessionName::new(""), Err(SessionNameError::Empty));
        for name in [
            "a:b", "a.b", "$1", "a$b", "a\\b", "a\nb", "a\u{7f}", "\u{85}",
        ] {
            assert!(
                matches!(SessionName::new(name), Err(SessionNameError::Character(_))),
                "{name:?}"
            );
        }
        for name in [
            "/dev/pts/3",
            "pts/3",
            "client-123",
            "tty1",
            "ttys003",
            "ttyS0",
        ] {
            assert_eq!(
                SessionName::new(name),
                Err(SessionNameError::LooksLikeClient),
                "{name}"
            );
        }
    }
}

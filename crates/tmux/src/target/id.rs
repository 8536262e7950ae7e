//! The ids of tmux: `$1` for a session, `@2` for a window, `%3` for a pane.
//!
//! A server never reuses an id, so ids are the safest targets. They are meaningless on another
//! server, or after a restart of this one.

use std::fmt;
use std::str::FromStr;

/// A text that is not a valid id of the expected type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a tmux id like {example}")]
pub struct IdError {
    text: String,
    example: &'static str,
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $sigil:literal, $example:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($sigil, "{}"), self.0)
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                text.strip_prefix($sigil)
                    // `u32::from_str` accepts a leading `+`, tmux does not.
                    .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
                    .and_then(|digits| digits.parse().ok())
                    .map(Self)
                    .ok_or_else(|| IdError { text: text.to_owned(), example: $example })
            }
        }
    };
}

id!(
    /// A session, written `$1`.
    SessionId, "$", "$1"
);
id!(
    /// A window, written `@2`.
    WindowId, "@", "@2"
);
id!(
    /// A pane, written `%3`.
    PaneId, "%", "%3"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_writes() {
        assert_eq!("%3".parse(), Ok(PaneId(3)));
        assert_eq!(PaneId(3).to_string(), "%3");
        assert_eq!("@0".parse(), Ok(WindowId(0)));
        assert_eq!("$4294967295".parse(), Ok(SessionId(u32::MAX)));
    }

    #[test]
    fn refuses_everything_else() {
        for text in [
            "",
            "%",
            "3",
            "@3",
            "%+3",
            "%-1",
            "%3 ",
            "%4294967296",
            "%%3",
        ] {
            assert!(text.parse::<PaneId>().is_err(), "{text:?}");
        }
    }
}

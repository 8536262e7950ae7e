//! Values of a listing.

use std::path::PathBuf;
use std::str::FromStr;

use crate::{PaneId, SessionId, SessionName, WindowId};

/// A type that a field of a [`Row`](crate::Row) can have.
pub trait Field: Sized {
    /// Description of a valid value, for the error.
    const EXPECTED: &'static str;

    /// Parses a value. Returns `None` if it is invalid.
    fn parse(value: &str) -> Option<Self>;

    /// Parses the next value for the field `name`. The expansion of `query!` calls this.
    fn parse_next<'a>(
        name: &'static str,
        values: &mut impl Iterator<Item = &'a str>,
    ) -> Result<Self, FieldError> {
        let value = values.next().ok_or(FieldError::Missing { name })?;
        Self::parse(value).ok_or_else(|| FieldError::Invalid {
            name,
            value: value.to_owned(),
            expected: Self::EXPECTED,
        })
    }
}

/// The reason why a row could not be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// The row has fewer values than the struct has fields.
    #[error("no value for {name}")]
    Missing {
        /// The struct's field.
        name: &'static str,
    },
    /// The value does not fit the type of the field.
    #[error("{name} should be {expected} but is {value:?}")]
    Invalid {
        /// The struct's field.
        name: &'static str,
        /// The value that tmux printed.
        value: String,
        /// Description of a valid value.
        expected: &'static str,
    },
}

impl Field for String {
    const EXPECTED: &'static str = "a text";

    fn parse(value: &str) -> Option<Self> {
        Some(value.to_owned())
    }
}

impl Field for PathBuf {
    const EXPECTED: &'static str = "a path";

    fn parse(value: &str) -> Option<Self> {
        Some(Self::from(value))
    }
}

/// Parses a flag, which tmux prints as 1 or 0, as on or off for an option, or empty if it is unset.
impl Field for bool {
    const EXPECTED: &'static str = "1, on, 0, off or nothing";

    fn parse(value: &str) -> Option<Self> {
        match value {
            "1" | "on" => Some(true),
            "" | "0" | "off" => Some(false),
            _ => None,
        }
    }
}

/// Parses an empty value as `None`.
impl<T: Field> Field for Option<T> {
    const EXPECTED: &'static str = T::EXPECTED;

    fn parse(value: &str) -> Option<Self> {
        if value.is_empty() {
            Some(None)
        } else {
            T::parse(value).map(Some)
        }
    }
}

macro_rules! field_from_str {
    ($($type:ty => $expected:literal),+ $(,)?) => {
        $(impl Field for $type {
            const EXPECTED: &'static str = $expected;

            fn parse(value: &str) -> Option<Self> {
                <$type>::from_str(value).ok()
            }
        })+
    };
}

field_from_str! {
    u16 => "a number",
    u32 => "a number",
    u64 => "a number",
    usize => "a number",
    i32 => "a number",
    i64 => "a number",
    SessionId => "a session id like $1",
    WindowId => "a window id like @2",
    PaneId => "a pane id like %3",
    SessionName => "a session name without special characters",
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Row, query};

    query! {
        /// A row with every type of field.
        #[derive(PartialEq)]
        struct Everything {
            text: String = "#{a}",
            maybe: Option<u32> = "#{b}",
            flag: bool = "#{c}",
            pane: PaneId = "#{d}",
            path: PathBuf = "#{e}",
            signed: i64 = "#{f}",
        }
    }

    #[test]
    fn fills_a_struct() {
        assert_eq!(
            Everything::fields(),
            ["#{a}", "#{b}", "#{c}", "#{d}", "#{e}", "#{f}"]
        );
        let row = Everything::parse(&["x\ty", "", "on", "%3", "/a b", "-1"]).unwrap();
        let expected = Everything {
            text: "x\ty".into(),
            maybe: None,
            flag: true,
            pane: PaneId(3),
            path: "/a b".into(),
            signed: -1,
        };
        assert_eq!(row, expected);
    }

    #[test]
    fn says_which_field_is_wrong() {
        let error = Everything::parse(&["", "x", "1", "%3", "", "0"]).unwrap_err();
        assert_eq!(error.to_string(), "maybe should be a number but is \"x\"");
        let error = Everything::parse(&["", "", "maybe"]).unwrap_err();
        assert!(
            error.to_string().starts_with("flag should be 1, on"),
            "{error}"
        );
        let error = Everything::parse(&["", ""]).unwrap_err();
        assert_eq!(error, FieldError::Missing { name: "flag" });
    }
}

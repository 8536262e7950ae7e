//! One query: the format that is sent, and the parser for the answer.
//!
//! tmux 3.4 and 3.5 escape the values that they print (see
//! [`Version::escapes_output`](crate::Version::escapes_output)). The parser reverses the escaping
//! that is reversible: 3.4 puts a backslash before a `$` that could begin a variable, and a canary
//! at the start of each row shows whether this server does.

use std::borrow::Cow;

use super::Row;
use crate::nonce::nonce;
use crate::{Command, Error};

/// A text that tmux 3.4 prints with a backslash before it.
const CANARY: &str = "$a";

/// A listing with its two separators.
#[derive(Debug)]
pub(crate) struct Listing {
    between_fields: String,
    after_row: String,
}

impl Listing {
    pub(crate) fn new() -> Self {
        Self {
            between_fields: nonce(),
            after_row: nonce(),
        }
    }

    /// Returns the command with the format for rows of type `R`.
    pub(crate) fn command<R: Row>(&self, list: Command) -> Command {
        let Self {
            between_fields,
            after_row,
        } = self;
        let mut fields = R::fields().join(between_fields);
        if let Some(packed) = R::PACKED {
            let (live, last) = R::fields().split_at(R::fields().len() - packed.count);
            let last = packed.format(last, between_fields);
            fields = [live, &[&last]].concat().join(between_fields);
        }
        list.option("-F", format!("{CANARY}{between_fields}{fields}{after_row}"))
    }

    /// Parses the rows of the answer. Errors name `command`.
    pub(crate) fn parse<R: Row>(&self, answer: &[u8], command: &Command) -> Result<Vec<R>, Error> {
        let mut rows = Vec::new();
        let mut rest = answer;
        while let Some((row, after)) = split_once(rest, self.after_row.as_bytes()) {
            rows.push(self.parse_row(row, command)?);
            // tmux ends every row of a listing with a newline.
            rest = after.strip_prefix(b"\n").unwrap_or(after);
        }
        if rest.is_empty() {
            return Ok(rows);
        }
        let problem = format!("{} bytes after the last row", rest.len());
        Err(Error::protocol(command.to_line(), problem))
    }

    fn parse_row<R: Row>(&self, row: &[u8], command: &Command) -> Result<R, Error> {
        let mut values: Vec<Cow<'_, str>> = Vec::with_capacity(R::fields().len() + 1);
        let mut rest = row;
        while let Some((value, after)) = split_once(rest, self.between_fields.as_bytes()) {
            values.push(String::from_utf8_lossy(value));
            rest = after;
        }
        values.push(String::from_utf8_lossy(rest));
        let canary = values.remove(0);
        if canary != CANARY {
            values.iter_mut().for_each(unescape_dollars);
        }
        let mut values: Vec<&str> = values.iter().map(AsRef::as_ref).collect();
        if let Some(packed) = R::PACKED
            && values.len() + packed.count == R::fields().len() + 1
            && let Some(copy) = values.pop()
        {
            values.extend(packed.unpack(copy).ok_or_else(|| {
                let option = packed.option;
                Error::protocol(command.to_line(), format!("{option} is damaged: {copy:?}"))
            })?);
        }
        R::parse(&values).map_err(|source| Error::Field {
            command: command.to_line(),
            source,
        })
    }
}

/// Removes the backslash before a `$` that could begin a variable.
fn unescape_dollars(value: &mut Cow<'_, str>) {
    if !value.contains("\\$") {
        return;
    }
    let mut plain = String::with_capacity(value.len());
    let mut rest: &str = value;
    while let Some((before, after)) = rest.split_once("\\$") {
        plain.push_str(before);
        let was_escaped =
            after.starts_with(|next: char| next.is_ascii_alphabetic() || "_{".contains(next));
        plain.push_str(if was_escaped { "$" } else { "\\$" });
        rest = after;
    }
    plain.push_str(rest);
    *value = Cow::Owned(plain);
}

fn split_once<'a>(bytes: &'a [u8], separator: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let first = *separator.first()?;
    let mut start = 0;
    while let Some(offset) = bytes[start..].iter().position(|&byte| byte == first) {
        let at = start + offset;
        if bytes[at..].starts_with(separator) {
            return Some((&bytes[..at], &bytes[at + separator.len()..]));
        }
        start = at + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ErrorKind, query};

    query! {
        struct Two {
            first: String = "#{a}",
            second: Option<u32> = "#{b}",
        }
    }

    fn listing() -> Listing {
        Listing {
            between_fields: "|".into(),
            after_row: "END".into(),
        }
    }

    fn parse(answer: &[u8]) -> Result<Vec<Two>, Error> {
        listing().parse(answer, &Command::new("list-panes"))
    }

    #[test]
    fn asks_for_the_fields_of_the_row() {
        let command = listing().command::<Two>(Command::new("list-panes").flag("-a"));
        assert_eq!(
            command.argv(),
            ["list-panes", "-a", "-F", "$a|#{a}|#{b}END"]
        );
    }

    #[test]
    fn values_may_hold_anything() {
        let rows = parse(b"$a|a\nb\tc EN|7END\n$a|\xff\n|END\n").unwrap();
        assert_eq!(rows.len(), 2);
        assert_eq!(
            (rows[0].first.as_str(), rows[0].second),
            ("a\nb\tc EN", Some(7))
        );
        assert_eq!(
            (rows[1].first.as_str(), rows[1].second),
            ("\u{fffd}\n", None)
        );
    }

    #[test]
    fn nothing_is_no_rows() {
        assert!(parse(b"").unwrap().is_empty());
    }

    #[test]
    fn a_cut_answer_is_an_error() {
        assert_eq!(
            parse(b"$a|a|1END\n$a|b|").unwrap_err().kind(),
            ErrorKind::Protocol
        );
        assert_eq!(parse(b"$a|aEND\n").unwrap_err().kind(), ErrorKind::Protocol);
    }

    #[test]
    fn dollars_of_3_4_are_taken_back() {
        let rows = parse(b"\\$a|\\$HOME \\${x} $1 \\\\$y \\$1|END\n").unwrap();
        assert_eq!(rows[0].first, "$HOME ${x} $1 \\$y \\$1");
        let rows = parse(b"$a|\\$HOME|END\n").unwrap();
        assert_eq!(rows[0].first, "\\$HOME");
    }
}

//! Packed copies of fields: one user option that holds the values of several fields.
//!
//! The writer of a field ends its batch with [`pack`], so tmux itself makes the copy from the values
//! that it holds then, and no other client sees the one without the other. The copy begins with the
//! separator of its values, which is as unpredictable as that of a listing.

use super::Row;
#[cfg(any(test, feature = "testing"))]
use crate::Server;
use crate::nonce::{self, nonce};
use crate::{Command, Target};

/// The fields of a row that have a packed copy, and the option that holds it.
///
/// The option's name has to change with the list of fields: a copy from an earlier version is then
/// not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packed {
    /// The user option, such as `@tags`.
    pub option: &'static str,
    /// The number of packed fields, which are the last ones of the row.
    pub count: usize,
}

/// Returns the command that updates the packed copy of a session's fields; `None` if the row has
/// none.
#[must_use]
pub fn pack<R: Row>(session: impl Into<Target>) -> Option<Command> {
    let packed = R::PACKED?;
    let separator = nonce();
    let fields = &R::fields()[R::fields().len() - packed.count..];
    let copy: String = fields.iter().flat_map(|it| [&separator, *it]).collect();
    let set = Command::new("set-option").arg("-F").target(session);
    Some(set.args([packed.option, &copy]))
}

impl Packed {
    /// Returns the format for the packed fields of a listing: the copy, or without a copy the fields
    /// themselves.
    pub(super) fn format(&self, fields: &[&str], between_fields: &str) -> String {
        let option = self.option;
        let fields = fields.join(between_fields);
        format!("#{{?{option},#{{{option}}},{fields}}}")
    }

    /// Returns the values of a copy; `None` if it is damaged.
    pub(super) fn unpack<'a>(&self, copy: &'a str) -> Option<Vec<&'a str>> {
        let (separator, rest) = copy.split_at_checked(nonce::LENGTH)?;
        let values: Vec<&str> = rest.split(separator).collect();
        (values.len() == self.count).then_some(values)
    }
}

/// Returns the fields of these sessions whose packed copy differs from the field: a writer forgot to
/// [`pack`]. A server that does not answer has none.
#[cfg(any(test, feature = "testing"))]
pub(crate) fn stale_copies<R: Row>(server: &Server) -> Vec<String> {
    let Some(packed) = R::PACKED else {
        return Vec::new();
    };
    let (between, end) = (nonce(), nonce());
    let fields = &R::fields()[R::fields().len() - packed.count..];
    let copy = format!("#{{{}}}", packed.option);
    let all: Vec<&str> = ["#{session_name}", &copy]
        .iter()
        .chain(fields)
        .copied()
        .collect();
    let format = format!("{}{end}", all.join(&between));
    let list = Command::new("list-sessions").option("-F", format);
    // A server that has ended has no copies.
    let printed = server.run(list).unwrap_or_default();
    let mut stale = Vec::new();
    for row in printed.split(&end) {
        let values: Vec<&str> = row.trim_start_matches('\n').split(&between).collect();
        let [session, copy, values @ ..] = values.as_slice() else {
            continue;
        };
        if copy.is_empty() {
            continue;
        }
        let copies = packed.unpack(copy).unwrap_or_default();
        let pairs = fields.iter().zip(values).zip(copies);
        let differs = pairs.filter(|((_, value), copy)| *value != copy);
        stale.extend(differs.map(|((field, value), copy)| {
            format!("{session}: {field} is {value:?}, and its copy {copy:?}")
        }));
    }
    stale
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestServer;
    use crate::{SessionName, query};

    query! {
        #[derive(PartialEq)]
        struct Tagged {
            name: String = "#{session_name}",
        } packed "@all" {
            a: String = "#{@a}",
            b: Option<u32> = "#{@b}",
        }
    }

    fn list() -> Command {
        Command::new("list-sessions")
    }

    #[test]
    fn listing_reads_the_copy_and_without_a_copy_the_fields() {
        let test = TestServer::new();
        let server = test.server();
        let target = SessionName::try_from("one").unwrap();
        let set = |option: &str, value: &str| {
            let set = Command::new("set-option").target(target.clone());
            set.args([option, value])
        };
        let new = Command::new("new-session").args(["-d", "-s", "one", "cat"]);
        server
            .run([new, set("@a", "x, #{y}\n$z"), set("@b", "7")])
            .unwrap();
        let read = || server.rows::<Tagged>(list()).unwrap().remove(0);
        let before = read();
        assert_eq!((before.a.as_str(), before.b), ("x, #{y}\n$z", Some(7)));
        let packed = pack::<Tagged>(target.clone()).unwrap();
        server.run([set("@b", "8"), packed]).unwrap();
        assert_eq!(
            read(),
            Tagged {
                b: Some(8),
                ..before.clone()
            }
        );
        // A writer that does not pack is not seen: the copy is what a listing reads.
        server.run(set("@b", "9")).unwrap();
        assert_eq!(read().b, Some(8));
        let stale = ["one: #{@b} is \"9\", and its copy \"8\""];
        assert_eq!(stale_copies::<Tagged>(server), stale);
        server.run(pack::<Tagged>(target).unwrap()).unwrap();
        assert_eq!(read().b, Some(9));
    }

    #[test]
    fn damaged_copy_is_an_error_that_names_the_option() {
        let test = TestServer::new();
        let server = test.server();
        let new = Command::new("new-session").args(["-d", "-s", "one", "cat"]);
        server
            .run([new, Command::new("set-option").args(["@all", "x"])])
            .unwrap();
        let error = server.rows::<Tagged>(list()).unwrap_err();
        assert!(error.to_string().contains("@all"), "{error}");
    }
}

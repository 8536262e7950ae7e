//! The identification of a client before it sends a command.
//!
//! The messages are those of the tmux client, in its order, except that the flags come last: see
//! `socket/control.rs`. Servers up to 3.5 end themselves if a message has a wrong size or is missing,
//! so nothing here is optional.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::message::{HEADER, HeaderLayout, MAX_MESSAGE, append, kind};

/// Flag of a client that accepts UTF-8: `-u`.
const UTF8: u64 = 0x10000;

/// Flag of a control client: `-C`.
const CONTROL: u64 = 0x2000;

/// The kind of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flags {
    OneShot,
    Control,
}

impl Flags {
    fn bits(self) -> u64 {
        match self {
            Flags::OneShot => UTF8,
            Flags::Control => UTF8 | CONTROL,
        }
    }
}

/// The identity of a client.
#[derive(Debug)]
pub(super) struct ClientIdentity<'a> {
    term: &'a [u8],
    folder: PathBuf,
    process: i32,
    environment: &'a [(OsString, OsString)],
}

/// The bytes to send, in two pieces because one piece carries at most one descriptor.
///
/// The server walks all its windows after each piece, which is slow, so there are only two.
#[derive(Debug)]
pub(super) struct Hello {
    pub(super) with_stdin: Vec<u8>,
    /// The remaining messages, including the command.
    pub(super) with_stdout: Vec<u8>,
}

impl<'a> ClientIdentity<'a> {
    /// Returns the identity of this process with these variables.
    pub(super) fn new(environment: &'a [(OsString, OsString)]) -> Self {
        let variable = |name: &str| {
            let found = environment.iter().find(|(key, _)| key == name);
            found.map(|(_, value)| value.as_os_str())
        };
        let real = std::env::current_dir();
        // `PWD` keeps the symbolic links in the folder's path; it is used if it is still correct.
        let named = variable("PWD").map(PathBuf::from).filter(|named| {
            let same = |real: &PathBuf| {
                named
                    .canonicalize()
                    .is_ok_and(|named| real.canonicalize().is_ok_and(|real| named == real))
            };
            named.is_absolute() && real.as_ref().is_ok_and(same)
        });
        Self {
            term: variable("TERM").map_or(b"", OsStrExt::as_bytes),
            // As tmux itself does in a folder that was removed.
            folder: named.or(real.ok()).unwrap_or_else(|| PathBuf::from("/")),
            process: rustix::process::getpid().as_raw_pid(),
            environment,
        }
    }

    /// Returns the identification and the command, or `None` if the protocol cannot encode them.
    pub(super) fn messages(
        &self,
        layout: HeaderLayout,
        flags: Flags,
        argv: &[String],
    ) -> Option<Hello> {
        let mut first = Pieces::new(layout);
        first.add_text(kind::IDENTIFY_TERM, self.term);
        first.add(kind::IDENTIFY_FEATURES, &0_i32.to_ne_bytes());
        first.add_text(kind::IDENTIFY_TTYNAME, b"");
        first.add_text(kind::IDENTIFY_CWD, self.folder.as_os_str().as_bytes());
        first.add_with_descriptor(kind::IDENTIFY_STDIN);

        let mut rest = Pieces::new(layout);
        rest.add_with_descriptor(kind::IDENTIFY_STDOUT);
        rest.add(kind::IDENTIFY_CLIENTPID, &self.process.to_ne_bytes());
        for (name, value) in self.environment {
            let variable = [name.as_bytes(), b"=", value.as_bytes()].concat();
            // Like the tmux client, skips a variable that does not fit with its NUL.
            if variable.len() < MAX_MESSAGE - HEADER {
                rest.add_text(kind::IDENTIFY_ENVIRON, &variable);
            }
        }
        // Up to 3.5 the client sends its flags in both widths.
        if layout == HeaderLayout::Short {
            rest.add(kind::IDENTIFY_FLAGS, &(flags.bits() as u32).to_ne_bytes());
        }
        rest.add(kind::IDENTIFY_LONGFLAGS, &flags.bits().to_ne_bytes());
        rest.add(kind::IDENTIFY_DONE, b"");
        rest.add(kind::COMMAND, &packed(argv)?);
        Some(Hello {
            with_stdin: first.finish()?,
            with_stdout: rest.finish()?,
        })
    }
}

/// Encodes a command line: the number of words, and each word with a trailing NUL.
fn packed(argv: &[String]) -> Option<Vec<u8>> {
    let mut data = i32::try_from(argv.len()).ok()?.to_ne_bytes().to_vec();
    for word in argv {
        data.extend_from_slice(word.as_bytes());
        data.push(0);
    }
    Some(data)
}

/// A sequence of encoded messages.
struct Pieces {
    bytes: Vec<u8>,
    layout: HeaderLayout,
    complete: bool,
}

impl Pieces {
    fn new(layout: HeaderLayout) -> Self {
        Self {
            bytes: Vec::new(),
            layout,
            complete: true,
        }
    }

    fn add(&mut self, kind: u32, data: &[u8]) {
        self.complete &= append(&mut self.bytes, self.layout, kind, data, false);
    }

    fn add_with_descriptor(&mut self, kind: u32) {
        self.complete &= append(&mut self.bytes, self.layout, kind, b"", true);
    }

    fn add_text(&mut self, kind: u32, text: &[u8]) {
        // A NUL inside would end the text early.
        self.complete &= !text.contains(&0);
        self.add(kind, &[text, b"\0"].concat());
    }

    fn finish(self) -> Option<Vec<u8>> {
        self.complete.then_some(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::{ParsedMessage, parse};
    use super::*;

    fn kinds(mut bytes: &[u8], layout: HeaderLayout) -> Vec<(u32, Vec<u8>)> {
        let mut kinds = Vec::new();
        while let ParsedMessage::Message(message, length) = parse(bytes, layout) {
            kinds.push((message.kind, message.data));
            bytes = &bytes[length..];
        }
        assert!(bytes.is_empty());
        kinds
    }

    fn environment() -> Vec<(OsString, OsString)> {
        vec![
            ("TERM".into(), "xterm".into()),
            ("HUGE".into(), "x".repeat(20_000).into()),
        ]
    }

    #[test]
    fn flags_are_directly_before_the_end_of_the_identification() {
        let environment = environment();
        let identity = ClientIdentity::new(&environment);
        let hello = identity
            .messages(
                HeaderLayout::Short,
                Flags::OneShot,
                &["list-panes".into(), "-a".into()],
            )
            .unwrap();
        let first = kinds(&hello.with_stdin, HeaderLayout::Short);
        let order: Vec<u32> = first.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(order, [101, 109, 102, 108, 104]);
        let rest = kinds(&hello.with_stdout, HeaderLayout::Short);
        let order: Vec<u32> = rest.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(
            order,
            [110, 107, 105, 100, 111, 106, 200],
            "the huge variable is left out"
        );
        assert_eq!(rest[2].1, b"TERM=xterm\0");
        assert_eq!(
            rest[6].1,
            [&2_i32.to_ne_bytes()[..], b"list-panes\0-a\0"].concat()
        );
    }

    #[test]
    fn the_long_layout_has_no_short_flags() {
        let environment = environment();
        let hello = ClientIdentity::new(&environment)
            .messages(HeaderLayout::Long, Flags::Control, &["a".into()])
            .unwrap();
        let rest = kinds(&hello.with_stdout, HeaderLayout::Long);
        let flags: Vec<_> = rest
            .iter()
            .filter(|(kind, _)| [kind::IDENTIFY_FLAGS, kind::IDENTIFY_LONGFLAGS].contains(kind))
            .collect();
        let bits = (UTF8 | CONTROL).to_ne_bytes().to_vec();
        assert_eq!(flags, [&(kind::IDENTIFY_LONGFLAGS, bits)]);
    }

    #[test]
    fn a_command_that_does_not_fit_is_refused() {
        let identity = ClientIdentity::new(&[]);
        assert!(
            identity
                .messages(HeaderLayout::Short, Flags::OneShot, &["x".repeat(17_000)])
                .is_none()
        );
    }
}

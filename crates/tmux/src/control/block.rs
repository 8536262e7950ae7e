//! An answer: the text between `%begin` and `%end`.

/// One answer of tmux.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Identifies the block.
    pub guard: Guard,
    /// Whether the block ended in `%end` and not in `%error`.
    pub succeeded: bool,
    /// The lines, each with its newline. They need not be UTF-8.
    pub body: Vec<u8>,
    /// Whether the body exceeded the parser's limit and was truncated.
    pub truncated: bool,
}

/// The three numbers that `%begin` and its `%end` share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guard {
    /// When the command ran, in seconds since 1970.
    pub time: u64,
    /// The number of the command on this server.
    pub number: u64,
    /// 1 if this client sent the command.
    pub flags: u64,
}

impl Guard {
    /// Returns whether this answers a command of this client. Hooks, and the `attach-session` that
    /// connected the client, produce blocks that do not.
    #[must_use]
    pub fn is_reply(&self) -> bool {
        self.flags == 1
    }

    /// Parses a line that consists of `keyword` and three numbers.
    pub(super) fn parse(line: &[u8], keyword: &str) -> Option<Self> {
        let rest = line.strip_prefix(keyword.as_bytes())?.strip_prefix(b" ")?;
        let mut numbers = std::str::from_utf8(rest)
            .ok()?
            .split(' ')
            .map(|number| number.parse().ok());
        let guard = Self {
            time: numbers.next()??,
            number: numbers.next()??,
            flags: numbers.next()??,
        };
        numbers.next().is_none().then_some(guard)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_three_numbers_and_nothing_else() {
        let guard = Guard::parse(b"%begin 12 3 1", "%begin").unwrap();
        assert_eq!(
            guard,
            Guard {
                time: 12,
                number: 3,
                flags: 1
            }
        );
        assert!(guard.is_reply());
        for line in [
            "%begin",
            "%begin 1 2",
            "%begin 1 2 3 4",
            "%begin 1 2 x",
            "%beginning 1 2 3",
            "begin 1 2 3",
        ] {
            assert_eq!(Guard::parse(line.as_bytes(), "%begin"), None, "{line}");
        }
    }
}

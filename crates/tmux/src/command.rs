//! One tmux command: a name and its arguments, as data.
//!
//! A [`Command`] does not know how it is sent. [`argv`](Command::argv) returns it as an argument
//! vector, [`to_line`](Command::to_line) as a line for control mode or `source-file`; both mean the
//! same. Several commands form a [`crate::Batch`].

use crate::{Target, argv_word, quote};

/// A tmux command, for example `list-panes -a`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Command {
    name: &'static str,
    arguments: Vec<String>,
    /// Value of `-t`, for [`summary`](Self::summary).
    target: Option<String>,
}

impl Command {
    /// Creates a command from its full name: `new-session`, not `new`. The name determines how a
    /// [`Target`] is rendered.
    #[must_use]
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            arguments: Vec::new(),
            target: None,
        }
    }

    /// Adds one argument, which tmux receives unchanged.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<String>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Adds several arguments.
    #[must_use]
    pub fn args<I>(mut self, arguments: I) -> Self
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Adds a literal flag: `.flag("-d")`.
    #[must_use]
    pub fn flag(self, flag: &'static str) -> Self {
        self.arg(flag)
    }

    /// Adds a flag and its value: `.option("-n", name)`.
    #[must_use]
    pub fn option(self, flag: &'static str, value: impl Into<String>) -> Self {
        self.arg(flag).arg(value)
    }

    /// Sets the target of the command: `-t`.
    #[must_use]
    pub fn target(self, target: impl Into<Target>) -> Self {
        self.target_as("-t", target)
    }

    /// Sets the source of the command: `-s`, as for `join-pane`, `swap-pane` or `detach-client`.
    #[must_use]
    pub fn source(self, target: impl Into<Target>) -> Self {
        self.target_as("-s", target)
    }

    fn target_as(mut self, flag: &'static str, target: impl Into<Target>) -> Self {
        let rendered = target.into().render_for(self.name);
        self.target = Some(rendered.clone());
        self.arg(flag).arg(rendered)
    }

    /// Returns the name of the command.
    #[must_use]
    pub fn name(&self) -> &str {
        self.name
    }

    /// Returns the name and the target, without the other arguments, which may be private.
    #[must_use]
    pub fn summary(&self) -> String {
        match &self.target {
            Some(target) => format!("{} {target}", self.name),
            None => self.name.to_owned(),
        }
    }

    /// Returns the name and the arguments, unquoted.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.name).chain(self.arguments.iter().map(String::as_str))
    }

    /// Returns the name and the arguments for an argument vector.
    #[must_use]
    pub fn argv(&self) -> Vec<String> {
        self.words()
            .map(|word| argv_word(word).into_owned())
            .collect()
    }

    /// Returns the command as one line of tmux's configuration grammar, without a newline.
    #[must_use]
    pub fn to_line(&self) -> String {
        self.words().map(quote).collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PaneId, SessionName};

    #[test]
    fn reads_the_same_both_ways() {
        let command = Command::new("send-keys")
            .target(PaneId(3))
            .flag("-l")
            .arg("say \"hi\";");
        assert_eq!(
            command.argv(),
            ["send-keys", "-t", "%3", "-l", "say \"hi\"\\;"]
        );
        assert_eq!(command.to_line(), r#"send-keys -t "%3" -l "say \"hi\";""#);
    }

    #[test]
    fn a_target_is_written_as_the_command_wants_it() {
        let foo = SessionName::new("foo").unwrap();
        assert_eq!(
            Command::new("join-pane")
                .source(&foo)
                .target(PaneId(1))
                .argv(),
            ["join-pane", "-s", "=foo:", "-t", "%1"]
        );
        assert_eq!(
            Command::new("detach-client").source(&foo).argv(),
            ["detach-client", "-s", "=foo"]
        );
    }
}

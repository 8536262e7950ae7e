//! Several commands for one round trip.
//!
//! tmux runs the commands of one line without interruption: no command of another client runs
//! between them. If one fails, tmux skips the rest of *its line*. A batch has one line unless
//! [`Batch::then_line`] begins another.

use crate::Command;

/// Commands that are sent together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    lines: Vec<Vec<Command>>,
}

impl Batch {
    /// Creates an empty batch, which is never sent.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a command to the current line.
    pub fn push(&mut self, command: Command) -> &mut Self {
        match self.lines.last_mut() {
            Some(line) => line.push(command),
            None => self.lines.push(vec![command]),
        }
        self
    }

    /// Adds a command to the current line and returns the batch.
    #[must_use]
    pub fn then(mut self, command: Command) -> Self {
        self.push(command);
        self
    }

    /// Adds several commands to the current line.
    #[must_use]
    pub fn then_all(self, commands: impl IntoIterator<Item = Command>) -> Self {
        commands.into_iter().fold(self, Batch::then)
    }

    /// Begins a new line. Its commands run even if an earlier line failed.
    ///
    /// An argument vector cannot express lines, so a batch of several lines is sent through
    /// `source-file -`.
    #[must_use]
    pub fn then_line(mut self) -> Self {
        if self.lines.last().is_some_and(|line| !line.is_empty()) {
            self.lines.push(Vec::new());
        }
        self
    }

    /// Returns all commands in order, regardless of their line.
    pub fn commands(&self) -> impl Iterator<Item = &Command> {
        self.lines.iter().flatten()
    }

    /// Returns the lines that contain at least one command.
    pub fn lines(&self) -> impl Iterator<Item = &[Command]> {
        self.lines
            .iter()
            .map(Vec::as_slice)
            .filter(|line| !line.is_empty())
    }

    /// Returns whether the batch contains no command.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.commands().next().is_none()
    }

    /// Returns the number of commands.
    #[must_use]
    pub fn len(&self) -> usize {
        self.commands().count()
    }

    /// Returns the batch in tmux's configuration grammar, with one text line per line of the batch.
    #[must_use]
    pub fn to_script(&self) -> String {
        let mut script = String::new();
        for line in self.lines() {
            for (index, command) in line.iter().enumerate() {
                if index > 0 {
                    script.push_str(" ; ");
                }
                script.push_str(&command.to_line());
            }
            script.push('\n');
        }
        script
    }

    /// Returns the batch as one argument vector, which loses the division into lines.
    pub(crate) fn argv(&self) -> Vec<String> {
        let mut argv = Vec::new();
        for command in self.commands() {
            if !argv.is_empty() {
                argv.push(";".to_owned());
            }
            argv.extend(command.argv());
        }
        argv
    }

    pub(crate) fn has_one_line(&self) -> bool {
        self.lines().count() == 1
    }

    /// Returns a copy of the batch in which `mark(index)` follows the command of that index.
    pub(crate) fn interleave(&self, mark: impl Fn(usize) -> Command) -> Self {
        let mut index = 0;
        let mut lines = Vec::new();
        for line in self.lines() {
            let mut marked = Vec::with_capacity(line.len() * 2);
            for command in line {
                marked.push(command.clone());
                marked.push(mark(index));
                index += 1;
            }
            lines.push(marked);
        }
        Self { lines }
    }
}

impl From<Command> for Batch {
    fn from(command: Command) -> Self {
        Self::from(vec![command])
    }
}

impl From<&Command> for Batch {
    fn from(command: &Command) -> Self {
        Self::from(command.clone())
    }
}

impl From<Vec<Command>> for Batch {
    fn from(commands: Vec<Command>) -> Self {
        Self {
            lines: vec![commands],
        }
    }
}

impl<const N: usize> From<[Command; N]> for Batch {
    fn from(commands: [Command; N]) -> Self {
        Self::from(Vec::from(commands))
    }
}

impl From<&Batch> for Batch {
    fn from(batch: &Batch) -> Self {
        batch.clone()
    }
}

impl FromIterator<Command> for Batch {
    fn from_iter<I: IntoIterator<Item = Command>>(commands: I) -> Self {
        Self::from(commands.into_iter().collect::<Vec<_>>())
    }
}

impl Extend<Command> for Batch {
    fn extend<I: IntoIterator<Item = Command>>(&mut self, commands: I) {
        for command in commands {
            self.push(command);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn say(text: &str) -> Command {
        Command::new("display-message").flag("-p").arg(text)
    }

    #[test]
    fn an_empty_batch_says_so() {
        assert!(Batch::new().is_empty());
        assert!(Batch::from(Vec::new()).is_empty());
        assert!(Batch::new().then_line().then_line().is_empty());
        assert_eq!(Batch::new().to_script(), "");
    }

    #[test]
    fn lines_are_kept_apart_in_a_script() {
        let batch = Batch::from([say("a"), say("b c")])
            .then_line()
            .then(say("d"));
        assert_eq!(batch.len(), 3);
        assert!(!batch.has_one_line());
        assert_eq!(
            batch.to_script(),
            "display-message -p a ; display-message -p \"b c\"\ndisplay-message -p d\n"
        );
    }

    #[test]
    fn an_argument_vector_joins_by_semicolons() {
        let batch = Batch::from([say("a;"), say(";")]);
        assert_eq!(
            batch.argv(),
            [
                "display-message",
                "-p",
                "a\\;",
                ";",
                "display-message",
                "-p",
                "\\;"
            ]
        );
    }
}

//! Separates the outputs of several commands.
//!
//! tmux runs a batch and writes one stream. An unpredictable mark is printed after each command,
//! and the stream is split at the marks.

use super::exec::{self, Privacy};
use super::{Server, lossy};
use crate::nonce::nonce;
use crate::{Batch, Command, Error};

pub(super) fn run(server: &Server, batch: &Batch) -> Result<Vec<String>, Error> {
    let marks = Marks(nonce());
    let output = server.capture(
        &batch.interleave(|index| marks.command(index)),
        Privacy::Open,
    )?;
    marks.split(&lossy(output), batch.len()).ok_or_else(|| {
        Error::protocol(exec::describe(batch, Privacy::Open), "an output is missing")
    })
}

struct Marks(String);

impl Marks {
    fn text(&self, index: usize) -> String {
        format!("{}-{index}", self.0)
    }

    fn command(&self, index: usize) -> Command {
        Command::new("display-message")
            .flag("-p")
            .arg(self.text(index))
    }

    /// Returns the text before each mark, or `None` if a mark is missing.
    fn split(&self, output: &str, count: usize) -> Option<Vec<String>> {
        let mut rest = output;
        let mut outputs = Vec::with_capacity(count);
        for index in 0..count {
            let (before, after) = rest.split_once(&format!("{}\n", self.text(index)))?;
            outputs.push(before.to_owned());
            rest = after;
        }
        Some(outputs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_at_the_marks() {
        let marks = Marks("M".into());
        let outputs = marks.split("a\nb\nM-0\nM-1\nno newlineM-2\n", 3).unwrap();
        assert_eq!(outputs, ["a\nb\n", "", "no newline"]);
        assert_eq!(marks.split("a\nM-0\n", 2), None);
        assert_eq!(marks.split("", 0), Some(vec![]));
    }
}

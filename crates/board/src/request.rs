//! The requests of the board to its caller.

use crate::Tab;
use gt_core::work::WorkId;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BoardRequest {
    Quit,
    /// Clear the terminal and draw the next frame in full.
    Redraw,
    /// Run `gt` with these arguments in the background, and report the outcome.
    Run(Invocation),
    /// Run `gt` with these arguments and the terminal, until it ends.
    HandOver(Invocation),
    /// Run this command with `--dry-run`, and report the planned steps.
    Foresee(Invocation),
    /// Read the question that this command shows (`gt answer` without an answer), and report it.
    Ask(Invocation),
    /// Read the item that this command shows (`gt work show`), and report it.
    ReadItem(Invocation),
    /// Read how far the branch of this command is behind (`gt task attach --dry-run`), and report
    /// it.
    ReadBehind(Invocation),
    /// The screen of this item is in view from now on.
    Look(Option<WorkId>),
    /// This tab of this item is in view from now on.
    Show {
        id: WorkId,
        tab: Tab,
    },
    /// No detail tab is in view now.
    Unshow,
}

/// A `gt` command for one item, bound when the key was pressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    /// The number that the outcome refers to.
    pub number: u64,
    pub item: Option<WorkId>,
    /// The text to show while the command runs.
    pub title: String,
    /// The arguments, without the program. They contain `--json`, except for commands that take the
    /// terminal.
    pub words: Vec<String>,
    /// Text for the standard input, typed by the user.
    pub input: Option<String>,
}

//! What the board wants done.

use crate::Tab;
use gt_core::work::WorkId;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    Quit,
    /// Clear the terminal, so that the next frame is drawn whole.
    Redraw,
    /// Run `gt` with these words, in the background, and say how it went.
    Run(Order),
    /// The same, with the terminal handed over until it ends.
    HandOver(Order),
    /// Find out what this command would do (`--dry-run`), and say so.
    Foresee(Order),
    /// Read the question that this command shows (`gt answer` without an answer), and say it.
    Ask(Order),
    /// This item's screen is in view from now on.
    Look(Option<WorkId>),
    /// This tab of this item is in view from now on.
    Show {
        id: WorkId,
        tab: Tab,
    },
    /// Nothing of details is in view any more.
    Unshow,
}

/// A `gt` command for one item, bound when the key was pressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// Its number, which comes back in the outcome.
    pub number: u64,
    pub item: Option<WorkId>,
    /// What to say while it runs.
    pub title: String,
    /// The arguments, without the program. `--json` is among them, but for commands that
    /// take the terminal.
    pub words: Vec<String>,
    /// For its standard input: what a person has typed.
    pub input: Option<String>,
}

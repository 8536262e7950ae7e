//! Pages of lists that may be long: the options `--limit` and `--page`.

use crate::output;
use gt_core::Problem;

/// A page of a list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Page {
    /// Maximum number of rows.
    pub(crate) limit: usize,
    /// Counted from 1.
    pub(crate) number: usize,
}

impl Page {
    /// Fails if the page cannot have rows.
    pub(crate) fn check(self) -> Result<(), Problem> {
        match (self.limit, self.number) {
            (0, _) => Err(Problem::usage("a limit of 0 shows nothing").hint("`--limit 1` or more")),
            (_, 0) => Err(Problem::usage("there is no page 0").hint("`--page 1` is the first")),
            _ => Ok(()),
        }
    }

    /// Returns the number of rows before the page.
    pub(crate) fn skip(self) -> usize {
        self.limit.saturating_mul(self.number.saturating_sub(1))
    }

    /// Cuts a list that was read with one row more than the page has. Returns whether it was longer.
    pub(crate) fn cut<T>(self, rows: &mut Vec<T>) -> bool {
        let is_longer = rows.len() > self.limit;
        rows.truncate(self.limit);
        is_longer
    }

    /// Returns the number of rows to read for [`cut`](Self::cut).
    pub(crate) fn to_read(self) -> usize {
        self.limit.saturating_add(1)
    }

    /// Returns the option that shows the next page.
    pub(crate) fn next(self) -> String {
        format!("--page {}", self.number.saturating_add(1))
    }

    /// Notes on stderr that more rows match, so that the document on stdout stays as it is.
    pub(crate) fn note_more(self, what: &str) {
        output::note(format!(
            "More {what} match: `{}` shows the next ones, `--limit` more at once.",
            self.next()
        ));
    }
}

//! Submits a message again that a program has put back into its input line.
//!
//! Some programs do so when a turn is stopped before its answer began, and remove the message from
//! the conversation. A request to continue would then refer to nothing.

use super::observation::PaneObservation;
use super::paste;
use super::typist::{Submission, Typist};
use crate::Result;
use crate::messaging::queue::Phase;
use gt_core::nudge;

/// Separator between the message and the text that is added to it.
const GAP: &str = "\n\n";

/// Returns a fingerprint of the input line, independent of wrapping; `None` for an empty line.
pub(crate) fn mark(seen: &PaneObservation) -> Option<String> {
    let text = nudge::squeeze(seen.input.as_deref()?);
    (!text.is_empty()).then(|| nudge::fingerprint(&text))
}

impl Typist<'_> {
    /// Submits the message that was put back, followed by `more`. Returns `None` if the line has
    /// changed: text that a person has typed is not touched.
    pub(crate) fn submit_put_back(
        &mut self,
        put_back: &str,
        more: Option<&str>,
    ) -> Result<Option<Submission>> {
        let seen = self.observe()?;
        let Some(line) = seen.input.as_deref().filter(|_| !seen.is_over) else {
            return Ok(None);
        };
        if mark(&seen).as_deref() != Some(put_back) {
            return Ok(None);
        }
        if let Err(reason) = self.may_enter(&seen, true) {
            return Ok(Some(Submission::NotNow(reason, Phase::Taken)));
        }
        let mut line = line.to_owned();
        if let Some(more) = more.map(nudge::clean).filter(|more| !more.is_empty()) {
            let more = format!("{GAP}{more}");
            paste(self.town, self.pane, &more)?;
            let with_more = |seen: &PaneObservation| {
                let shown = seen.input.clone()?;
                nudge::is_added(&shown, &line, &more).then_some(shown)
            };
            match self.await_paste(&more, with_more)? {
                Ok(whole) => line = whole,
                Err(reason) => return Ok(Some(Submission::NotNow(reason, Phase::Pasting))),
            }
        }
        self.enter(&line, Phase::Pasting, true, |_, _| Ok(()))
            .map(Some)
    }
}

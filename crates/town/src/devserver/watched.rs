//! The servers that somebody watches: whether those answer that have answered before.

use super::health::Answers;
use super::{answers, listening, note};
use crate::Town;
use crate::containers::Container;
use gt_tmux::{Batch, PaneId};

/// The servers that have answered once. One that has not is looked at by whoever waits for it.
#[derive(Debug, Default)]
pub(crate) struct Watched(Vec<(PaneId, u16, Answers)>);

impl Watched {
    pub(crate) fn among(containers: &[Container]) -> Self {
        let windows = containers.iter().flat_map(Container::own_windows);
        let living = windows.filter(|row| !row.dead);
        let watched = living.filter_map(|row| {
            let known = Answers::read(&row.tag_answers);
            (known != Answers::NotYet).then_some((row.pane, row.tag_port?, known))
        });
        Watched(watched.collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Looks at all of them, and notes what has changed; says whether anything has.
    pub(crate) fn look(&self, town: &Town) -> bool {
        let now = jiff::Timestamp::now().as_second();
        let listening = listening::ports().unwrap_or_default();
        let changed: Vec<_> = self
            .0
            .iter()
            .filter_map(|(pane, port, known)| {
                // Who is not in the list may still be reached.
                let after = known.after(listening.contains(port) || answers(*port), now);
                (after != *known).then(|| note(*pane, after))
            })
            .flatten()
            .collect();
        // One that has gone meanwhile is told of in another way.
        !changed.is_empty() && town.server().run(Batch::from(changed)).is_ok()
    }
}

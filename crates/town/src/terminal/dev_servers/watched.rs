//! Servers that a monitor watches: checks whether servers that have answered still do.

use super::health::Answers;
use super::{answers, listening, note};
use crate::Town;
use crate::terminal::containers::Container;
use gt_tmux::{Batch, PaneId};

/// The servers that have answered once. The process that starts a server waits for its first
/// answer.
#[derive(Debug, Default)]
pub(crate) struct AnsweredServers(Vec<(PaneId, u16, Answers)>);

impl AnsweredServers {
    pub(crate) fn among(containers: &[Container]) -> Self {
        let windows = containers.iter().flat_map(Container::own_windows);
        let living = windows.filter(|row| !row.dead);
        let watched = living.filter_map(|row| {
            let known = Answers::read(&row.tag_answers);
            (known != Answers::NotYet).then_some((row.pane, row.tag_port?, known))
        });
        AnsweredServers(watched.collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Checks all servers and stores changed results. Returns whether any changed.
    pub(crate) fn check(&self, town: &Town) -> bool {
        let now = town.clock().seconds();
        let listening = listening::ports().unwrap_or_default();
        let changed: Vec<_> = self
            .0
            .iter()
            .filter_map(|(pane, port, known)| {
                // A port that is not in the table may still answer.
                let after = known.after(listening.contains(port) || answers(*port), now);
                (after != *known).then(|| note(*pane, after))
            })
            .flatten()
            .collect();
        // Fails if a pane has gone meanwhile, which tmux reports separately.
        !changed.is_empty() && town.server().run(Batch::from(changed)).is_ok()
    }
}

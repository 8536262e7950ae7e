//! The merge queue, and the agents that were lost with their tmux server.

use crate::Moment;
use crate::action::{BoardAction, MergeOperation};
use crate::board::Board;
use crate::command;
use crate::overlay::{Overlay, WritePurpose, step};
use gt_core::merge::MergeStatus;

impl Board {
    pub(super) fn show_merge_queue(&mut self, now: Moment) {
        let first = self.facts.merges.first();
        let Some(first) = first.map(|it| it.id.clone()) else {
            self.note("Nothing waits to be merged", now);
            return;
        };
        self.show(Overlay::MergeQueue {
            at: Some(first),
            row: 0,
        });
    }

    /// Selects the entry in a row of the queue.
    pub(super) fn select_merge(&mut self, to: usize) {
        let id = self.facts.merges.get(to).map(|it| it.id.clone());
        if let Some(Overlay::MergeQueue { at, row }) = &mut self.overlay
            && id.is_some()
        {
            (*at, *row) = (id, to);
            self.dirty = true;
        }
    }

    /// Handles a key of the merge queue. It acts on the selected entry.
    pub(super) fn act_on_merges(&mut self, action: BoardAction, now: Moment) {
        let Some(Overlay::MergeQueue { at, row }) = &self.overlay else {
            return;
        };
        let row = *row;
        if let BoardAction::Up | BoardAction::Down = action {
            let rows = self.facts.merges.len();
            self.select_merge(step(row, rows, action == BoardAction::Down));
            return;
        }
        let entry = self.facts.merges.iter();
        let Some(entry) = entry.into_iter().find(|it| Some(&it.id) == at.as_ref()) else {
            return;
        };
        match action {
            BoardAction::Merge(MergeOperation::Reject) => {
                let about = vec![format!("{}  {}  {}", entry.id, entry.item, entry.branch)];
                let purpose = WritePurpose::Reject(entry.id.clone());
                self.write(purpose, about);
            }
            BoardAction::Merge(MergeOperation::Approve) if entry.status != MergeStatus::Held => {
                let note = format!("{} is {}, not held", entry.id, entry.status.as_str());
                self.note(&note, now);
            }
            BoardAction::Merge(operation) => {
                let draft = command::town::merge(operation, entry);
                self.order_all(draft.into_iter().collect());
            }
            BoardAction::Open => {
                let item = entry.item.clone();
                match self.lists.place(&item) {
                    Some(_) => {
                        self.hide();
                        self.select(&item);
                    }
                    None => self.note(&format!("{item} is not shown: Esc ends the filter"), now),
                }
            }
            _ => {}
        }
    }

    /// Offers to restore the lost agents, because a person asks for it.
    pub(super) fn offer_restore(&mut self, now: Moment) {
        if self.facts.lost.is_empty() {
            self.note("No agents were lost with their tmux server", now);
            return;
        }
        self.show(Overlay::Restore {
            agents: self.facts.lost.clone(),
            scroll: 0,
            is_shown: true,
        });
    }

    /// Offers to restore agents that were lost since the last offer: once for each death of a tmux
    /// server. Withdraws the offer if they are back.
    pub(crate) fn notice_lost(&mut self) {
        let lost = self.facts.lost.clone();
        self.offered.retain(|agent| lost.contains(agent));
        let is_new = lost.iter().any(|agent| !self.offered.contains(agent));
        let is_restore = |overlay: &Overlay| matches!(overlay, Overlay::Restore { .. });
        self.to_ask
            .retain(|overlay| !is_restore(overlay) || !lost.is_empty());
        let is_open = self.overlay.as_ref().is_some_and(is_restore);
        if is_open && lost.is_empty() {
            self.hide();
        }
        if let Some(Overlay::Restore { agents, .. }) = &mut self.overlay {
            agents.clone_from(&lost);
        }
        if is_new {
            self.offered.extend(lost.iter().cloned());
            if !is_open && !self.to_ask.iter().any(is_restore) {
                self.to_ask.push_back(Overlay::Restore {
                    agents: lost,
                    scroll: 0,
                    is_shown: false,
                });
            }
        }
    }
}

//! Escalations and the emergency stop.

use crate::Moment;
use crate::action::BoardAction;
use crate::board::Board;
use crate::command;
use crate::overlay::{Overlay, step};
use crate::toast::ToastKind;
use gt_core::card::Card;

impl Board {
    pub(super) fn show_escalations(&mut self, now: Moment) {
        let first = self.facts.escalations.first();
        let Some(first) = first.map(|it| it.id.clone()) else {
            self.note("No escalations are open", now);
            return;
        };
        self.show(Overlay::Escalations {
            at: Some(first),
            row: 0,
        });
    }

    /// Selects the escalation in a row of the list.
    pub(super) fn select_escalation(&mut self, to: usize) {
        let id = self.facts.escalations.get(to).map(|it| it.id.clone());
        if let Some(Overlay::Escalations { at, row }) = &mut self.overlay
            && id.is_some()
        {
            (*at, *row) = (id, to);
            self.dirty = true;
        }
    }

    /// Handles a key of the list. It acts on the selected escalation, even if that is gone by now.
    pub(super) fn act_on_escalations(&mut self, action: BoardAction, now: Moment) {
        let Some(Overlay::Escalations { at, row }) = &self.overlay else {
            return;
        };
        let (at, row) = (at.clone(), *row);
        match action {
            BoardAction::Up | BoardAction::Down => {
                let rows = self.facts.escalations.len();
                self.select_escalation(step(row, rows, action == BoardAction::Down));
            }
            BoardAction::Escalation(operation) => {
                if let Some(id) = at {
                    self.order(command::escalation(operation, &id));
                }
            }
            BoardAction::Open => {
                let found = self.facts.escalations.iter();
                let Some(it) = found.into_iter().find(|it| Some(&it.id) == at.as_ref()) else {
                    return;
                };
                let is_meant = |card: &&Card| match &it.item {
                    Some(item) => card.id == *item,
                    None => (card.session.as_ref()).is_some_and(|its| its.agent == it.who),
                };
                let card = self.facts.cards.iter().find(is_meant);
                match card.map(|card| card.id.clone()) {
                    Some(id) if self.lists.place(&id).is_some() => {
                        self.hide();
                        self.select(&id);
                    }
                    Some(id) => self.note(&format!("{id} is not shown: Esc ends the filter"), now),
                    None => self.note("It is about no card of the board", now),
                }
            }
            _ => {}
        }
    }

    /// Shows the scopes of an emergency stop. The cursor is on a stop in force, or else on the
    /// project in view, or else on the town.
    pub(super) fn offer_stop(&mut self) {
        let rigs = self.facts.projects.iter().cloned().map(Some);
        let scopes: Vec<(Option<String>, bool)> = std::iter::once(None)
            .chain(rigs)
            .map(|rig| {
                let is_stopped = self.facts.stop_of(rig.as_deref()).is_some();
                (rig, is_stopped)
            })
            .collect();
        let stopped = scopes.iter().position(|(_, is_stopped)| *is_stopped);
        let in_view = scopes.iter().position(|(rig, _)| *rig == self.lens.project);
        self.show(Overlay::EmergencyStop {
            cursor: stopped.or(in_view).unwrap_or_default(),
            scopes,
        });
    }

    /// Stops the selected scope, or ends its stop, as the overlay says.
    pub(super) fn stop_or_thaw(&mut self) {
        let Some(Overlay::EmergencyStop { scopes, cursor }) = &self.overlay else {
            return;
        };
        let draft = scopes
            .get(*cursor)
            .map(|(rig, is_stopped)| command::town::emergency_stop(rig.as_deref(), *is_stopped));
        self.hide();
        self.order_all(draft.into_iter().collect());
    }

    pub(super) fn note(&mut self, text: &str, now: Moment) {
        self.toasts.say(ToastKind::Note, text.to_owned(), now);
        self.dirty = true;
    }
}

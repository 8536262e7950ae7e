//! The action menu: the order of its rows, and the reasons against them.

use crate::action::CardOperation;
use crate::board::Board;
use crate::overlay::{self, Overlay};
use gt_core::work::WorkId;
use std::borrow::Cow;

impl Board {
    /// Returns why an operation is impossible for all of these cards; `None` if it is possible for
    /// one of them.
    pub(crate) fn reason_against_all(
        &self,
        operation: CardOperation,
        bound: &[WorkId],
    ) -> Option<Cow<'static, str>> {
        if operation.is_for_one() && bound.len() > 1 {
            return Some("for one card only".into());
        }
        let mut reasons = bound.iter().map(|id| match self.card(id) {
            Some(card) => operation.reason_against(card, bound.len() == 1),
            None => Some("it is gone".into()),
        });
        let first = reasons.next().flatten()?;
        reasons.all(|why| why.is_some()).then_some(first)
    }

    /// Returns a reason against an operation that does not forbid it.
    pub(crate) fn warning_about(
        &self,
        operation: CardOperation,
        bound: &[WorkId],
    ) -> Option<&'static str> {
        let [id] = bound else {
            return None;
        };
        operation.warning(self.card(id)?)
    }

    /// Opens the action menu: the available operations first, then those that would do something
    /// else or probably fail, then the impossible ones. The order does not change while the menu is
    /// open. The menu of an agent without an item leaves out the operations on items.
    pub(super) fn show_actions(&mut self, bound: Vec<WorkId>) {
        let rank = |operation: &CardOperation| {
            let meant = self.resolve_operation(*operation, &bound);
            match self.reason_against_all(meant, &bound) {
                Some(_) => 2,
                None if meant != *operation || self.warning_about(meant, &bound).is_some() => 1,
                None => 0,
            }
        };
        let mut rows: Vec<CardOperation> = overlay::action_rows()
            .map(|(_, operation)| operation)
            .collect();
        let is_agent = |id: &WorkId| self.card(id).is_some_and(|card| card.is_agent);
        if bound.iter().all(is_agent) {
            rows.retain(|operation| !operation.needs_item());
        }
        rows.sort_by_key(rank);
        self.show(Overlay::Actions {
            bound,
            rows,
            cursor: 0,
        });
    }
}

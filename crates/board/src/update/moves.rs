//! Cursor movements on the board.

use crate::board::Board;
use crate::keys::Key;
use crate::overlay::{Overlay, labels};
use gt_core::card::Column;

impl Board {
    pub(crate) fn step(&mut self, down: bool, by: usize) {
        let last = self.lists.column(self.column).len().saturating_sub(1);
        let row = match down {
            true => self.row.saturating_add(by).min(last),
            false => self.row.saturating_sub(by),
        };
        self.go_to(self.column, row);
    }

    /// Moves to the next column that has cards, to the card that the cursor was last on there.
    pub(super) fn move_to_column(&mut self, right: bool) {
        let peopled = self.columns_with_cards();
        let next = match right {
            true => peopled.into_iter().find(|column| *column > self.column),
            false => peopled.into_iter().rfind(|column| *column < self.column),
        };
        if let Some(column) = next {
            self.enter(column);
        }
    }

    pub(super) fn enter_last(&mut self, last: bool) {
        let peopled = self.columns_with_cards();
        let end = match last {
            true => peopled.last(),
            false => peopled.first(),
        };
        if let Some(column) = end {
            self.enter(*column);
        }
    }

    pub(crate) fn enter(&mut self, column: Column) {
        let before = self.left_at[column as usize].as_ref();
        let place = before.and_then(|id| self.lists.place(id));
        let row = place
            .filter(|(at, _)| *at == column)
            .map_or(0, |(_, row)| row);
        self.go_to(column, row);
    }

    /// Moves to the oldest question, and from a question to the next one. If no agent asks, moves to
    /// the next card that needs a person.
    pub(super) fn move_to_next_question(&mut self) {
        let cards = &self.facts.cards;
        let list = self.lists.column(Column::NeedsYou);
        let mut rows: Vec<usize> = (0..list.len()).collect();
        let asks = |row: &usize| cards[list[*row]].asking_program().is_some();
        if rows.iter().any(asks) {
            rows.retain(asks);
            rows.sort_by_key(|row| cards[list[*row]].since());
        }
        let here = rows
            .iter()
            .position(|row| self.column == Column::NeedsYou && *row == self.row);
        let next = here.map_or(0, |here| (here + 1) % rows.len());
        if let Some(row) = rows.get(next) {
            self.go_to(Column::NeedsYou, *row);
        }
    }

    /// Moves to the next or previous visible card, wrapping around at the ends.
    pub(super) fn next_match(&mut self, down: bool) {
        let places: Vec<(Column, usize)> = Column::ALL
            .into_iter()
            .flat_map(|column| (0..self.lists.column(column).len()).map(move |row| (column, row)))
            .collect();
        let here = places
            .iter()
            .position(|place| *place == (self.column, self.row));
        let Some(here) = here else {
            return;
        };
        let (column, row) = places[crate::overlay::step(here, places.len(), down)];
        self.go_to(column, row);
    }

    /// Assigns a label to each card in view.
    pub(super) fn label_cards(&mut self) {
        let cards = self.drawn.cards();
        let labels = labels(cards.len()).into_iter().zip(cards).collect();
        self.show(Overlay::Go {
            labels,
            typed: String::new(),
        });
    }

    pub(super) fn has_typed_label(&self) -> bool {
        matches!(&self.overlay, Some(Overlay::Go { typed, .. }) if !typed.is_empty())
    }

    pub(super) fn label_letter(&mut self, key: Key) {
        let Some(Overlay::Go { labels, typed }) = &mut self.overlay else {
            return;
        };
        let Some(letter) = key.letter() else {
            return;
        };
        typed.push(letter);
        self.dirty = true;
        let hit = labels.iter().find(|(label, _)| label == typed);
        if let Some((_, id)) = hit {
            let id = id.clone();
            self.hide();
            self.select(&id);
        } else if !labels
            .iter()
            .any(|(label, _)| label.starts_with(typed.as_str()))
        {
            self.hide();
        }
    }
}

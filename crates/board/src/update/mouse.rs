//! The mouse. It points at the contents of the last frame.

use crate::Moment;
use crate::action::BoardAction;
use crate::board::Board;
use crate::overlay::Overlay;
use crate::view::Hit;
use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};

/// Maximum time between the two clicks of a double click.
const DOUBLE_MILLIS: i64 = 400;
const WHEEL_LINES: usize = 3;

impl Board {
    pub(crate) fn on_mouse(&mut self, event: MouseEvent, now: Moment) {
        let hit = self.drawn.hit(event.column, event.row);
        match event.kind {
            MouseEventKind::Down(MouseButton::Left) => self.click(hit, now),
            MouseEventKind::Down(MouseButton::Right) => {
                if let Some(Hit::Card(id)) = hit
                    && self.overlay.is_none()
                {
                    self.select(&id);
                    self.show_actions(vec![id]);
                }
            }
            MouseEventKind::ScrollDown => self.wheel(hit, true, now),
            MouseEventKind::ScrollUp => self.wheel(hit, false, now),
            _ => {}
        }
    }

    fn click(&mut self, hit: Option<Hit>, now: Moment) {
        self.leave_what_covers_nothing(&hit);
        let before = self.click.take();
        match hit {
            Some(Hit::Row(row)) => self.click_row(row, now),
            Some(Hit::Choice(action)) => self.act(action, now),
            Some(Hit::Inside) => {}
            // A click outside an overlay only closes it.
            _ if self.overlay.is_some() => self.act(BoardAction::Back, now),
            Some(Hit::Card(id)) => {
                let twice = before.is_some_and(|(at, other)| {
                    other == id && now.millis() - at.millis() < DOUBLE_MILLIS
                });
                self.select(&id);
                if twice {
                    self.act(BoardAction::Open, now);
                } else {
                    self.click = Some((now, id));
                }
            }
            Some(Hit::Column(column)) => self.enter(column),
            Some(Hit::Tab(tab)) => self.open_tab(tab),
            Some(Hit::DiffRow(row)) => self.go_to_diff_row(row),
            Some(Hit::Key(action)) => self.act(action, now),
            None => {}
        }
    }

    /// Closes a search line or jump labels when a card or column is clicked, since both leave the
    /// cards visible.
    fn leave_what_covers_nothing(&mut self, hit: &Option<Hit>) {
        if self.covers_nothing() && matches!(hit, Some(Hit::Card(_) | Hit::Column(_))) {
            self.hide();
        }
    }

    fn covers_nothing(&self) -> bool {
        matches!(
            self.overlay,
            None | Some(Overlay::Search { .. } | Overlay::Go { .. })
        )
    }

    /// Selects a row of a menu, as Enter does.
    fn click_row(&mut self, row: usize, now: Moment) {
        match &mut self.overlay {
            Some(Overlay::Actions { cursor, .. } | Overlay::Sort { cursor }) => {
                *cursor = row;
                self.act(BoardAction::Accept, now);
            }
            Some(Overlay::Filter { cursor, .. }) => {
                *cursor = row;
                self.act(BoardAction::Toggle, now);
            }
            Some(
                Overlay::Palette { pick, .. }
                | Overlay::Projects { pick }
                | Overlay::Workers { pick, .. },
            ) => {
                pick.cursor = row;
                self.act(BoardAction::Accept, now);
            }
            Some(Overlay::Servers { cursor, .. } | Overlay::EmergencyStop { cursor, .. }) => {
                *cursor = row;
                self.dirty = true;
            }
            Some(Overlay::Escalations { .. }) => self.select_escalation(row),
            Some(Overlay::MergeQueue { .. }) => self.select_merge(row),
            Some(Overlay::Form { form }) => {
                form.at = row.min(form.fields.len().saturating_sub(1));
                self.dirty = true;
            }
            _ => {}
        }
    }

    fn wheel(&mut self, hit: Option<Hit>, down: bool, now: Moment) {
        let action = if down {
            BoardAction::Down
        } else {
            BoardAction::Up
        };
        if !self.covers_nothing() {
            // The wheel works only over lists and texts.
            if matches!(hit, Some(Hit::Row(_) | Hit::Choice(_) | Hit::Inside)) {
                self.act(action, now);
            }
        } else if self.detail.is_some() {
            self.scroll(down, WHEEL_LINES);
        } else if let Some(column) = self.drawn.column_at(&hit, &self.lists) {
            // The cursor stays on its card, even if that leaves the view.
            let last = self.lists.column(column).len().saturating_sub(1);
            let first = &mut self.drawn.first[column as usize];
            *first = match down {
                true => (*first + 1).min(last),
                false => first.saturating_sub(1),
            };
            self.drawn.free = Some(column);
            self.dirty = true;
        }
    }
}

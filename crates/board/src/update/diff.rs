//! The diff of the detail view: its cursor, and comments on its lines.

use crate::Moment;
use crate::action::{BoardAction, CardOperation};
use crate::board::Board;
use crate::command;
use crate::diff::{self, LineComment, RowKind};
use crate::facts::Tab;
use crate::input::TextInput;
use crate::overlay::Overlay;
use gt_core::work::WorkId;

impl Board {
    /// Performs an action of the diff. Returns whether it is one.
    pub(super) fn act_in_diff(&mut self, action: BoardAction, now: Moment) -> bool {
        let is_open = (self.detail.as_ref()).is_some_and(|open| open.tab == Tab::Diff);
        match action {
            BoardAction::NextFile => self.seek_in_diff(&[RowKind::File], true),
            BoardAction::PreviousFile => self.seek_in_diff(&[RowKind::File], false),
            BoardAction::NextHunk => self.seek_in_diff(&[RowKind::Hunk], true),
            BoardAction::PreviousHunk => self.seek_in_diff(&[RowKind::Hunk], false),
            BoardAction::Comment if is_open => self.write_comment(now),
            BoardAction::Comment => {
                self.note("Comments are for lines of the diff: 3 shows it", now);
            }
            BoardAction::SendComments => self.send_comments(now),
            _ => return false,
        }
        true
    }

    /// Moves the cursor by rows of the view.
    pub(super) fn move_in_diff(&mut self, down: bool, by: usize) {
        let side_by_side = self.drawn.side_by_side;
        if let Some(open) = &mut self.detail {
            let here = open.diff.position(open.diff_row, side_by_side);
            let to = match down {
                true => here.saturating_add(by),
                false => here.saturating_sub(by),
            };
            open.diff_row = open.diff.row_at(to, side_by_side);
            self.dirty = true;
        }
    }

    pub(super) fn go_to_diff_row(&mut self, row: usize) {
        if let Some(open) = &mut self.detail {
            open.diff_row = row.min(open.diff.rows.len().saturating_sub(1));
            self.dirty = true;
        }
    }

    fn seek_in_diff(&mut self, kinds: &[RowKind], down: bool) {
        let Some(open) = self.detail.as_ref().filter(|open| open.tab == Tab::Diff) else {
            return;
        };
        if let Some(row) = open.diff.next_of(kinds, open.diff_row, down) {
            self.go_to_diff_row(row);
        }
    }

    /// Opens the comment on the line under the cursor.
    fn write_comment(&mut self, now: Moment) {
        let Some(open) = &self.detail else {
            return;
        };
        let Some(place) = open.diff.place(open.diff_row) else {
            self.note("Move to a line of a file to comment on it", now);
            return;
        };
        let known = self.comments.get(&open.id).into_iter().flatten();
        let text = known.into_iter().find(|it| it.place == place);
        let text = text.map_or("", |comment| comment.text.as_str());
        let overlay = Overlay::Comment {
            id: open.id.clone(),
            place,
            quoted: open.diff.rows[open.diff_row].text.clone(),
            input: TextInput::new(text),
        };
        self.show(overlay);
    }

    /// Stores the comment that was written. An empty one is removed.
    pub(super) fn keep_comment(&mut self) {
        let Some(Overlay::Comment {
            id,
            place,
            quoted,
            input,
        }) = self.overlay.take()
        else {
            return;
        };
        let comments = self.comments.entry(id.clone()).or_default();
        comments.retain(|it| it.place != place || it.sent_by.is_some());
        let text = input.text().trim();
        if !text.is_empty() {
            comments.push(LineComment {
                place,
                quoted,
                text: text.to_owned(),
                sent_by: None,
            });
        }
        if comments.is_empty() {
            self.comments.remove(&id);
        }
        self.hide();
    }

    /// Sends the comments on the open item as one message.
    fn send_comments(&mut self, now: Moment) {
        let Some(id) = self.detail.as_ref().map(|open| open.id.clone()) else {
            return;
        };
        let all = self.comments.get(&id).into_iter().flatten();
        let unsent: Vec<LineComment> = all.filter(|it| it.sent_by.is_none()).cloned().collect();
        if unsent.is_empty() {
            self.note(
                "There are no comments yet: c on a line of the diff writes one",
                now,
            );
            return;
        }
        let card = self.card(&id);
        let why_not = match card {
            Some(card) => CardOperation::Nudge.reason_against(card, true),
            None => Some("it is gone".into()),
        };
        let agent = card.and_then(|card| Some(card.session.as_ref()?.agent.clone()));
        let Some(agent) = agent.filter(|_| why_not.is_none()) else {
            let why = why_not.unwrap_or("it has no session".into());
            self.note(&format!("The comments are kept: {why}"), now);
            return;
        };
        let order = self.order(command::nudge(&id, &agent, &diff::message(&unsent)));
        for comment in self.comments.entry(id).or_default() {
            comment.sent_by.get_or_insert(order);
        }
    }

    /// Forgets the comments that this command has delivered; after a failure they can be sent again.
    pub(super) fn settle_comments(&mut self, order: u64, is_delivered: bool) {
        for comments in self.comments.values_mut() {
            match is_delivered {
                true => comments.retain(|it| it.sent_by != Some(order)),
                false => {
                    let failed = comments.iter_mut().filter(|it| it.sent_by == Some(order));
                    failed.for_each(|it| it.sent_by = None);
                }
            }
        }
        self.comments
            .retain(|_: &WorkId, comments| !comments.is_empty());
    }
}

//! Draws frames, and records what is at each position.
//!
//! Nothing here changes the board. A frame returns [`DrawnFrame`], the data about it that the next key
//! or click needs.

mod alarms;
mod canvas;
mod card;
mod columns;
mod detail;
mod diff;
mod frame;
mod overlays;
mod preview;
mod toasts;

use crate::Moment;
use crate::action::BoardAction;
use crate::board::Board;
use crate::facts::Tab;
use crate::lists::Lists;
use crate::overlay::Overlay;
use crate::theme::Tone;
use canvas::Canvas;
use gt_core::card::Column;
use gt_core::work::WorkId;
use ratatui::Frame;
use ratatui::layout::{Position, Rect};

/// Minimum size of a readable terminal.
const MIN_SIZE: (u16, u16) = (40, 10);

/// The contents and positions of a frame.
#[derive(Debug, Default)]
pub(crate) struct DrawnFrame {
    hits: Vec<(Rect, Hit)>,
    /// The moment at which a label of this frame becomes outdated.
    pub(crate) changes_at: Option<Moment>,
    /// The first card in view, by column.
    pub(crate) first: [usize; 5],
    /// The column that was scrolled independently of the cursor.
    pub(crate) free: Option<Column>,
    /// The number of cards or rows in a page.
    pub(crate) page: usize,
    /// The scroll offsets of the open tab and of the overlay, limited to their content.
    pub(crate) scroll: usize,
    pub(crate) overlay_scroll: usize,
    /// Whether the diff is drawn side by side.
    pub(crate) side_by_side: bool,
    /// The height of the preview below the columns.
    pub(crate) preview_height: Option<u16>,
}

/// The element at a position of the frame, for the mouse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Hit {
    Card(WorkId),
    Column(Column),
    Tab(Tab),
    /// A row of the diff.
    DiffRow(usize),
    /// A key hint in the frame.
    Key(BoardAction),
    /// A row of the overlay.
    Row(usize),
    /// A key hint in the overlay.
    Choice(BoardAction),
    /// Any other part of the overlay.
    Inside,
}

impl DrawnFrame {
    pub(crate) fn hit(&self, x: u16, y: u16) -> Option<Hit> {
        let at = Position::new(x, y);
        // Later areas cover earlier ones.
        let mut hits = self.hits.iter().rev();
        hits.find(|(area, _)| area.contains(at))
            .map(|(_, hit)| hit.clone())
    }

    /// Returns the cards in view.
    pub(crate) fn cards(&self) -> Vec<WorkId> {
        let cards = self.hits.iter().filter_map(|(_, hit)| match hit {
            Hit::Card(id) => Some(id.clone()),
            _ => None,
        });
        cards.collect()
    }

    pub(crate) fn column_at(&self, hit: &Option<Hit>, lists: &Lists) -> Option<Column> {
        match hit {
            Some(Hit::Card(id)) => lists.place(id).map(|(column, _)| column),
            Some(Hit::Column(column)) => Some(*column),
            _ => None,
        }
    }
}

pub(crate) fn draw(board: &Board, frame: &mut Frame<'_>, now: Moment) -> DrawnFrame {
    let area = frame.area();
    let drawn = DrawnFrame {
        first: board.drawn.first,
        free: board.drawn.free,
        preview_height: board.drawn.preview_height,
        ..DrawnFrame::default()
    };
    let mut canvas = Canvas::new(frame.buffer_mut(), board.theme, now, drawn);
    draw_all(board, area, &mut canvas);
    let (drawn, cursor) = canvas.done();
    // The terminal's cursor is visible only in an input line.
    if let Some(at) = cursor {
        frame.set_cursor_position(at);
    }
    drawn
}

fn draw_all(board: &Board, area: Rect, canvas: &mut Canvas<'_>) {
    let (width, height) = MIN_SIZE;
    if area.width < width || area.height < height {
        let said = format!(
            "too small: {}×{}, needs {width}×{height}",
            area.width, area.height
        );
        let style = canvas.theme.style(Tone::Text);
        canvas.text(area, &said, style);
        return;
    }
    let below = alarms::draw(board, area, canvas);
    match &board.detail {
        Some(open) => detail::draw(board, open, below, canvas),
        None => frame::draw(board, below, canvas),
    }
    if let Some(overlay) = &board.overlay {
        if overlay.covers_the_view() {
            let cards = overlay.cards();
            let row = match overlay {
                Overlay::Comment { .. } => board.detail.as_ref().map(|open| open.diff_row),
                _ => None,
            };
            canvas.push_back(|hit| match hit {
                Hit::Card(id) => cards.contains(&id),
                Hit::DiffRow(number) => row == Some(*number),
                _ => false,
            });
        }
        overlays::draw(board, overlay, area, canvas);
    }
    toasts::draw(board, area, canvas);
}

//! The detail view: opening, tabs, scrolling.

use crate::BoardRequest;
use crate::action::BoardAction;
use crate::board::{Board, OpenCard};
use crate::diff::ParsedDiff;
use crate::facts::{Detail, Tab};
use crate::overlay::step;
use gt_core::work::WorkId;
use std::collections::BTreeMap;

impl Board {
    pub(crate) fn open(&mut self, id: WorkId, tab: Tab) {
        self.detail = Some(OpenCard {
            id: id.clone(),
            tab,
            known: BTreeMap::new(),
            scroll: BTreeMap::new(),
            aside: 0,
            diff: ParsedDiff::default(),
            diff_row: 0,
        });
        self.requests.push(BoardRequest::Show { id, tab });
        self.dirty = true;
    }

    /// Performs an action of the detail view. Returns whether it is one.
    pub(super) fn act_in_detail(&mut self, action: BoardAction) -> bool {
        let page = self.drawn.page;
        match action {
            BoardAction::Down => self.scroll(true, 1),
            BoardAction::Up => self.scroll(false, 1),
            BoardAction::PageDown => self.scroll(true, page),
            BoardAction::PageUp => self.scroll(false, page),
            BoardAction::Top => self.scroll(false, usize::MAX),
            BoardAction::Bottom => self.scroll(true, usize::MAX),
            BoardAction::Left => self.scroll_aside(false),
            BoardAction::Right => self.scroll_aside(true),
            BoardAction::Tab(tab) => self.open_tab(tab),
            BoardAction::NextTab => self.turn(true),
            BoardAction::PreviousTab => self.turn(false),
            BoardAction::NextCard => self.open_neighbour(true),
            BoardAction::PreviousCard => self.open_neighbour(false),
            BoardAction::Back => {
                self.detail = None;
                self.requests.push(BoardRequest::Unshow);
                self.dirty = true;
            }
            _ => return false,
        }
        true
    }

    /// Scrolls the open tab. The next frame limits the offset to the content.
    pub(crate) fn scroll(&mut self, down: bool, by: usize) {
        let Some(open) = &mut self.detail else {
            return;
        };
        if open.tab == Tab::Diff {
            self.move_in_diff(down, by);
            return;
        }
        let scroll = open.scroll.entry(open.tab).or_default();
        // The terminal tab scrolls from its end, where the newest lines are.
        let more = down != (open.tab == Tab::Terminal);
        *scroll = match more {
            true => scroll.saturating_add(by),
            false => scroll.saturating_sub(by),
        };
        self.dirty = true;
    }

    /// Scrolls the lines of the diff. At least the end of the widest line stays in view.
    fn scroll_aside(&mut self, right: bool) {
        const CELLS: usize = 8;
        if let Some(open) = &mut self.detail {
            let most = open.diff.widest.saturating_sub(1) / CELLS * CELLS;
            open.aside = match right {
                true => open.aside.saturating_add(CELLS).min(most),
                false => open.aside.saturating_sub(CELLS),
            };
            self.dirty = true;
        }
    }

    pub(crate) fn open_tab(&mut self, tab: Tab) {
        let Some(open) = &mut self.detail else {
            return;
        };
        if open.tab != tab {
            open.tab = tab;
            open.aside = 0;
            let id = open.id.clone();
            self.requests.push(BoardRequest::Show { id, tab });
            self.dirty = true;
        }
    }

    fn turn(&mut self, forth: bool) {
        if let Some(open) = &self.detail {
            let next = step(open.tab as usize, Tab::ALL.len(), forth);
            self.open_tab(Tab::ALL[next]);
        }
    }

    fn open_neighbour(&mut self, down: bool) {
        let Some(open) = &self.detail else {
            return;
        };
        let tab = open.tab;
        let here = open.id.clone();
        self.select(&here);
        self.step(down, 1);
        if let Some(id) = self.cursor.clone()
            && id != here
        {
            self.open(id, tab);
        }
    }

    pub(crate) fn on_detail(&mut self, id: &WorkId, tab: Tab, detail: Detail) {
        let Some(open) = &mut self.detail else {
            self.describe(id, &detail);
            return;
        };
        if open.id != *id || open.known.get(&tab) == Some(&detail) {
            return;
        }
        if let Detail::Diff { text } = &detail {
            let before = open.diff.place(open.diff_row);
            open.diff = ParsedDiff::parse(text);
            // The cursor stays on its line.
            let found = before.and_then(|place| open.diff.find(&place));
            let last = open.diff.rows.len().saturating_sub(1);
            open.diff_row = found.unwrap_or(open.diff_row.min(last));
        }
        open.known.insert(tab, detail);
        self.dirty |= open.tab == tab;
    }
}

//! The detail view: opening, tabs, scrolling.

use crate::action::Action;
use crate::board::{Board, Open};
use crate::facts::{Detail, Tab};
use crate::overlay::step;
use crate::{Request, text};
use gt_core::work::WorkId;
use std::collections::BTreeMap;

impl Board {
    pub(crate) fn open(&mut self, id: WorkId, tab: Tab) {
        self.detail = Some(Open {
            id: id.clone(),
            tab,
            known: BTreeMap::new(),
            scroll: BTreeMap::new(),
            aside: 0,
            diff: Vec::new(),
        });
        self.requests.push(Request::Show { id, tab });
        self.dirty = true;
    }

    /// Performs an action of the detail view. Returns whether it is one.
    pub(super) fn act_in_detail(&mut self, action: Action) -> bool {
        let page = self.drawn.page;
        match action {
            Action::Down => self.scroll(true, 1),
            Action::Up => self.scroll(false, 1),
            Action::PageDown => self.scroll(true, page),
            Action::PageUp => self.scroll(false, page),
            Action::Top => self.scroll(false, usize::MAX),
            Action::Bottom => self.scroll(true, usize::MAX),
            Action::Left => self.scroll_aside(false),
            Action::Right => self.scroll_aside(true),
            Action::Tab(tab) => self.turn_to(tab),
            Action::NextTab => self.turn(true),
            Action::PreviousTab => self.turn(false),
            Action::NextCard => self.open_neighbour(true),
            Action::PreviousCard => self.open_neighbour(false),
            Action::NextFile => self.show_file(true),
            Action::PreviousFile => self.show_file(false),
            Action::Back => {
                self.detail = None;
                self.requests.push(Request::Unshow);
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
        let scroll = open.scroll.entry(open.tab).or_default();
        // The terminal tab scrolls from its end, where the newest lines are.
        let more = down != (open.tab == Tab::Terminal);
        *scroll = match more {
            true => scroll.saturating_add(by),
            false => scroll.saturating_sub(by),
        };
        self.dirty = true;
    }

    fn scroll_aside(&mut self, right: bool) {
        const CELLS: usize = 8;
        if let Some(open) = &mut self.detail {
            open.aside = match right {
                true => open.aside.saturating_add(CELLS),
                false => open.aside.saturating_sub(CELLS),
            };
            self.dirty = true;
        }
    }

    pub(crate) fn turn_to(&mut self, tab: Tab) {
        let Some(open) = &mut self.detail else {
            return;
        };
        if open.tab != tab {
            open.tab = tab;
            open.aside = 0;
            let id = open.id.clone();
            self.requests.push(Request::Show { id, tab });
            self.dirty = true;
        }
    }

    fn turn(&mut self, forth: bool) {
        if let Some(open) = &self.detail {
            let next = step(open.tab as usize, Tab::ALL.len(), forth);
            self.turn_to(Tab::ALL[next]);
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

    fn show_file(&mut self, down: bool) {
        let Some(open) = &mut self.detail else {
            return;
        };
        if open.tab != Tab::Diff {
            return;
        }
        let here = open.scroll.get(&Tab::Diff).copied().unwrap_or_default();
        let is_file = |line: &String| line.starts_with("diff --git ");
        let found = match down {
            true => open
                .diff
                .iter()
                .skip(here + 1)
                .position(is_file)
                .map(|at| here + 1 + at),
            false => open.diff.iter().take(here).rposition(is_file),
        };
        if let Some(at) = found {
            open.scroll.insert(Tab::Diff, at);
            self.dirty = true;
        }
    }

    pub(crate) fn on_detail(&mut self, id: &WorkId, tab: Tab, detail: Detail) {
        let Some(open) = &mut self.detail else {
            return;
        };
        if open.id != *id || open.known.get(&tab) == Some(&detail) {
            return;
        }
        if let Detail::Diff { text } = &detail {
            open.diff = text.lines().map(text::expand).collect();
        }
        open.known.insert(tab, detail);
        self.dirty |= open.tab == tab;
    }
}

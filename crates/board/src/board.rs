//! The board's state, and how events and frames meet it.
//!
//! [`Board::handle`] takes what happens and gives back what is wanted; [`Board::draw`]
//! draws. The cursor is an item, not a place: whatever moves, it stays on its card.

use crate::command::Draft;
use crate::event::Event;
use crate::facts::{Detail, Facts, Screen, Tab};
use crate::keys::Mode;
use crate::lists::{Lens, Lists};
use crate::overlay::Overlay;
use crate::theme::Theme;
use crate::toast::Toasts;
use crate::view::{self, Drawn};
use crate::{Moment, Wish, ansi};
use gt_core::card::{Card, Column, Server};
use gt_core::work::WorkId;
use ratatui::Frame;
use ratatui::text::Line;
use std::collections::{BTreeMap, HashSet, VecDeque};

#[derive(Debug)]
pub struct Board {
    pub(crate) theme: Theme,
    pub(crate) facts: Facts,
    pub(crate) lens: Lens,
    pub(crate) lists: Lists,
    /// The card under the cursor, and where it was last seen.
    pub(crate) cursor: Option<WorkId>,
    pub(crate) column: Column,
    pub(crate) row: usize,
    /// Where the cursor was when it left each column.
    pub(crate) left_at: [Option<WorkId>; 5],
    pub(crate) marks: HashSet<WorkId>,
    /// The card that the last frame shows under the cursor, when it is gone since.
    pub(crate) vanished: Option<WorkId>,
    pub(crate) preview: bool,
    pub(crate) screen: Shown,
    pub(crate) detail: Option<Open>,
    pub(crate) overlay: Option<Overlay>,
    /// What came of orders and has to be asked, when nothing else lies over the view.
    pub(crate) to_ask: VecDeque<Overlay>,
    pub(crate) toasts: Toasts,
    pub(crate) under_way: BTreeMap<u64, UnderWay>,
    pub(crate) orders: u64,
    pub(crate) wishes: Vec<Wish>,
    /// Whose screen was asked for last.
    looking: Option<WorkId>,
    pub(crate) click: Option<(Moment, WorkId)>,
    /// What the last frame has shown, and where.
    pub(crate) drawn: Drawn,
    pub(crate) dirty: bool,
}

/// An order whose outcome is not known yet.
#[derive(Debug)]
pub(crate) struct UnderWay {
    pub(crate) item: WorkId,
    pub(crate) title: String,
    pub(crate) words: Vec<String>,
    /// It has the terminal: nobody needs to be told that it has ended.
    pub(crate) has_terminal: bool,
    /// What is ordered if it ends well.
    pub(crate) then: Option<Draft>,
}

/// The screen of an agent, read.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    pub(crate) raw: Screen,
    pub(crate) lines: Vec<Line<'static>>,
}

/// The card that is open.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) id: WorkId,
    pub(crate) tab: Tab,
    pub(crate) known: BTreeMap<Tab, Detail>,
    /// By tab: lines from the top, but for the terminal from the bottom.
    pub(crate) scroll: BTreeMap<Tab, usize>,
    pub(crate) aside: usize,
    /// The lines of the diff.
    pub(crate) diff: Vec<String>,
}

impl Board {
    pub fn new(theme: Theme) -> Board {
        Board {
            theme,
            facts: Facts::default(),
            lens: Lens::default(),
            lists: Lists::default(),
            cursor: None,
            column: Column::NeedsYou,
            row: 0,
            left_at: [const { None }; 5],
            marks: HashSet::new(),
            vanished: None,
            preview: true,
            screen: Shown::default(),
            detail: None,
            overlay: None,
            to_ask: VecDeque::new(),
            toasts: Toasts::default(),
            under_way: BTreeMap::new(),
            orders: 0,
            wishes: Vec::new(),
            looking: None,
            click: None,
            drawn: Drawn::default(),
            dirty: true,
        }
    }

    /// Shows only this project's cards, or all.
    pub fn show_project(&mut self, project: Option<String>) {
        self.lens.project = project;
        self.arrange();
    }

    /// Takes what has happened, and says what is wanted now.
    pub fn handle(&mut self, event: Event, now: Moment) -> Vec<Wish> {
        match event {
            Event::Key(key) => self.on_key(key, now),
            Event::Mouse(mouse) => self.on_mouse(mouse, now),
            Event::Paste(text) => self.on_paste(&text),
            Event::Resize { .. } => self.dirty = true,
            Event::Facts(facts) => self.learn(facts),
            Event::Screen(screen) => self.see(screen),
            Event::Detail { id, tab, detail } => self.on_detail(&id, tab, detail),
            Event::Outcome { order, result } => self.on_outcome(order, result, now),
            Event::Foreseen { order, result } => self.on_foreseen(order, result),
            Event::Asked { order, result } => self.on_asked(order, result),
            Event::Tick => self.on_tick(now),
        }
        if self.overlay.is_none()
            && let Some(question) = self.to_ask.pop_front()
        {
            self.show(question);
        }
        self.look();
        std::mem::take(&mut self.wishes)
    }

    /// Draws a frame of what is known now.
    pub fn draw(&mut self, frame: &mut Frame<'_>, now: Moment) {
        self.forget_what_is_gone();
        self.drawn = view::draw(self, frame, now);
        if let Some(open) = &mut self.detail {
            open.scroll.insert(open.tab, self.drawn.scroll);
        }
        self.dirty = false;
    }

    /// Before a frame: from here on keys are for what it shows.
    fn forget_what_is_gone(&mut self) {
        self.vanished = None;
        let (lists, facts) = (&self.lists, &self.facts);
        self.marks.retain(|id| lists.card(facts, id).is_some());
        match &mut self.overlay {
            Some(Overlay::Cleanup { items, .. }) => {
                for item in items {
                    item.is_shown = item.foreseen.is_some();
                }
            }
            Some(Overlay::InitFailed { is_shown, .. } | Overlay::Confirm { is_shown, .. }) => {
                *is_shown = true;
            }
            Some(Overlay::Answer { items, .. }) => {
                for item in items {
                    item.is_shown = item.question.is_some();
                }
            }
            _ => {}
        }
    }

    /// Whether the last frame shows what is known no more.
    pub fn is_dirty(&self) -> bool {
        self.dirty
    }

    /// When something changes by itself: then an [`Event::Tick`] is wanted. Without such
    /// a moment the board may sleep until something happens.
    pub fn wake_at(&self) -> Option<Moment> {
        let toast = self.toasts.next_end();
        let age = self.drawn.changes_at;
        [toast, age].into_iter().flatten().min()
    }

    /// What has the keys now.
    pub fn mode(&self) -> Mode {
        match (&self.overlay, &self.detail) {
            (Some(overlay), _) => overlay.mode(),
            (None, Some(_)) => Mode::Detail,
            (None, None) => Mode::Board,
        }
    }

    /// The card under the cursor.
    pub fn cursor(&self) -> Option<&WorkId> {
        self.cursor.as_ref()
    }

    pub fn theme(&self) -> Theme {
        self.theme
    }

    pub(crate) fn card(&self, id: &WorkId) -> Option<&Card> {
        self.lists.card(&self.facts, id)
    }

    fn learn(&mut self, facts: Facts) {
        if facts == self.facts {
            return;
        }
        self.facts = facts;
        self.lists.learn(&self.facts, &self.lens);
        self.learn_servers();
        let before = self.cursor.clone();
        self.settle();
        if self.cursor != before && self.vanished.is_none() {
            self.vanished = before;
        }
        self.dirty = true;
    }

    /// Servers that are on offer are shown as they are now, each in its place.
    fn learn_servers(&mut self) {
        let Some(Overlay::Servers { bound, servers, .. }) = &mut self.overlay else {
            return;
        };
        let [id] = bound.as_slice() else {
            return;
        };
        let Some(card) = self.lists.card(&self.facts, id) else {
            return;
        };
        let names = |servers: &[Server]| -> Vec<String> {
            servers.iter().map(|server| server.name.clone()).collect()
        };
        if names(&card.servers) == names(servers) {
            servers.clone_from(&card.servers);
        }
    }

    /// After the search, the filter, the order or the project has changed.
    pub(crate) fn arrange(&mut self) {
        self.lists.arrange(&self.facts, &self.lens);
        self.settle();
        self.dirty = true;
    }

    /// Puts the cursor where its card is now, or on a neighbour of where it was.
    pub(crate) fn settle(&mut self) {
        if let Some((column, row)) = self.cursor.as_ref().and_then(|id| self.lists.place(id)) {
            self.column = column;
            self.row = row;
            return;
        }
        let here = self.column as usize;
        let nearest = Column::ALL
            .into_iter()
            .filter(|column| !self.lists.column(*column).is_empty())
            .min_by_key(|column| (*column as usize).abs_diff(here));
        match nearest {
            Some(column) => {
                let last = self.lists.column(column).len() - 1;
                self.go_to(column, self.row.min(last));
            }
            None => self.cursor = None,
        }
    }

    /// Puts the cursor on the card at that place.
    pub(crate) fn go_to(&mut self, column: Column, row: usize) {
        let Some(number) = self.lists.column(column).get(row) else {
            return;
        };
        let id = self.facts.cards[*number].id.clone();
        self.left_at[column as usize] = Some(id.clone());
        self.cursor = Some(id);
        self.vanished = None;
        self.column = column;
        self.row = row;
        self.drawn.free = None;
        self.dirty = true;
    }

    pub(crate) fn select(&mut self, id: &WorkId) {
        if let Some((column, row)) = self.lists.place(id) {
            self.go_to(column, row);
        }
    }

    fn see(&mut self, screen: Screen) {
        if screen == self.screen.raw || screen.id != self.looking {
            return;
        }
        self.screen = Shown {
            lines: ansi::lines(&screen.lines),
            raw: screen,
        };
        self.dirty = true;
    }

    /// Asks for the screen that is in view, when it is another than before.
    fn look(&mut self) {
        let wanted = match &self.detail {
            Some(open) => (open.tab == Tab::Terminal).then_some(&open.id),
            None => self.cursor.as_ref().filter(|_| self.preview),
        };
        let has_session = |id: &&WorkId| self.card(id).is_some_and(|card| card.session.is_some());
        let wanted = wanted.filter(has_session).cloned();
        if wanted != self.looking {
            self.looking.clone_from(&wanted);
            // What was seen of another is not shown for this one.
            self.screen = Shown::default();
            self.wishes.push(Wish::Look(wanted));
            self.dirty = true;
        }
    }
}

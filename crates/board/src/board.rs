//! The state of the board, and its entry points for events and frames.
//!
//! [`Board::handle`] processes an event and returns requests; [`Board::draw`] draws a frame. The
//! cursor is bound to an item, not to a position: it stays on its card when cards move.

use crate::command::CommandDraft;
use crate::diff::{LineComment, ParsedDiff};
use crate::event::BoardEvent;
use crate::facts::{AgentScreen, BoardFacts, Detail, Tab};
use crate::keys::KeyMode;
use crate::lists::{Lens, Lists};
use crate::overlay::Overlay;
use crate::theme::BoardTheme;
use crate::toast::Toasts;
use crate::view::{self, DrawnFrame};
use crate::{BoardRequest, Moment, ansi};
use gt_core::card::{Card, CardServer, Column};
use gt_core::work::WorkId;
use ratatui::Frame;
use ratatui::text::Line;
use std::collections::{BTreeMap, HashSet, VecDeque};

#[derive(Debug)]
pub struct Board {
    pub(crate) theme: BoardTheme,
    pub(crate) facts: BoardFacts,
    pub(crate) lens: Lens,
    pub(crate) lists: Lists,
    /// The card under the cursor; `column` and `row` are its last known position.
    pub(crate) cursor: Option<WorkId>,
    pub(crate) column: Column,
    pub(crate) row: usize,
    /// The card that the cursor was last on, by column.
    pub(crate) left_at: [Option<WorkId>; 5],
    pub(crate) marks: HashSet<WorkId>,
    /// The card that the last frame shows under the cursor, if it has been removed since.
    pub(crate) vanished: Option<WorkId>,
    pub(crate) preview: bool,
    pub(crate) screen: StyledScreen,
    pub(crate) detail: Option<OpenCard>,
    pub(crate) overlay: Option<Overlay>,
    /// Questions that resulted from commands, shown when no other overlay is open.
    pub(crate) to_ask: VecDeque<Overlay>,
    /// The lost agents for which a restore was offered.
    pub(crate) offered: Vec<String>,
    /// The item that a command has created and that is not on the board yet.
    pub(crate) created: Option<WorkId>,
    pub(crate) toasts: Toasts,
    pub(crate) under_way: BTreeMap<u64, PendingCommand>,
    pub(crate) orders: u64,
    /// The comments on diffs that have not reached their agents yet.
    pub(crate) comments: BTreeMap<WorkId, Vec<LineComment>>,
    pub(crate) requests: Vec<BoardRequest>,
    /// The item whose screen was requested last.
    looking: Option<WorkId>,
    /// The item whose description was requested last, and the description that came last.
    describing: Option<WorkId>,
    pub(crate) described: Option<Description>,
    pub(crate) click: Option<(Moment, WorkId)>,
    /// The content and the positions of the last frame.
    pub(crate) drawn: DrawnFrame,
    pub(crate) dirty: bool,
}

/// A command whose outcome is not known yet.
#[derive(Debug)]
pub(crate) struct PendingCommand {
    pub(crate) item: Option<WorkId>,
    pub(crate) title: String,
    pub(crate) words: Vec<String>,
    /// Whether the command has the terminal; its end is then not announced.
    pub(crate) has_terminal: bool,
    /// The command that runs next if this one succeeds.
    pub(crate) then: Option<CommandDraft>,
    /// The overlay with the typed text, which opens again if the command fails.
    pub(crate) reopens: Option<Box<Overlay>>,
}

/// The screen of an agent, converted to styled lines.
#[derive(Debug, Default)]
pub(crate) struct StyledScreen {
    pub(crate) raw: AgentScreen,
    pub(crate) lines: Vec<Line<'static>>,
}

/// The description of the item under the cursor, for the preview.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Description {
    pub(crate) id: WorkId,
    pub(crate) description: String,
}

/// The card that is open in the detail view.
#[derive(Debug)]
pub(crate) struct OpenCard {
    pub(crate) id: WorkId,
    pub(crate) tab: Tab,
    pub(crate) known: BTreeMap<Tab, Detail>,
    /// The scroll offset by tab, in lines from the top; for the terminal, from the bottom.
    pub(crate) scroll: BTreeMap<Tab, usize>,
    pub(crate) aside: usize,
    pub(crate) diff: ParsedDiff,
    /// The row of the diff under the cursor.
    pub(crate) diff_row: usize,
}

impl Board {
    pub fn new(theme: BoardTheme) -> Board {
        Board {
            theme,
            facts: BoardFacts::default(),
            lens: Lens::default(),
            lists: Lists::default(),
            cursor: None,
            column: Column::NeedsYou,
            row: 0,
            left_at: [const { None }; 5],
            marks: HashSet::new(),
            vanished: None,
            preview: true,
            screen: StyledScreen::default(),
            detail: None,
            overlay: None,
            to_ask: VecDeque::new(),
            offered: Vec::new(),
            created: None,
            toasts: Toasts::default(),
            under_way: BTreeMap::new(),
            orders: 0,
            comments: BTreeMap::new(),
            requests: Vec::new(),
            looking: None,
            describing: None,
            described: None,
            click: None,
            drawn: DrawnFrame::default(),
            dirty: true,
        }
    }

    /// Shows only the cards of this project, or all cards.
    pub fn show_project(&mut self, project: Option<String>) {
        self.lens.project = project;
        self.arrange();
    }

    /// Processes an event and returns the resulting requests.
    pub fn handle(&mut self, event: BoardEvent, now: Moment) -> Vec<BoardRequest> {
        match event {
            BoardEvent::Key(key) => self.on_key(key, now),
            BoardEvent::Mouse(mouse) => self.on_mouse(mouse, now),
            BoardEvent::Paste(text) => self.on_paste(&text),
            BoardEvent::Resize { .. } => self.dirty = true,
            BoardEvent::Facts(facts) => self.set_facts(facts),
            BoardEvent::Screen(screen) => self.see(screen),
            BoardEvent::Detail { id, tab, detail } => self.on_detail(&id, tab, detail),
            BoardEvent::Outcome { order, result } => self.on_outcome(order, result, now),
            BoardEvent::Foreseen { order, result } => self.on_foreseen(order, result),
            BoardEvent::Asked { order, result } => self.on_asked(order, result),
            BoardEvent::ItemRead { order, result } => self.on_item_read(order, result, now),
            BoardEvent::BehindRead { order, result } => self.on_behind_read(order, result, now),
            BoardEvent::Tick => self.on_tick(now),
        }
        if self.overlay.is_none()
            && let Some(question) = self.to_ask.pop_front()
        {
            self.show(question);
        }
        self.request_screen();
        self.request_description();
        std::mem::take(&mut self.requests)
    }

    /// Draws a frame of the current state.
    pub fn draw(&mut self, frame: &mut Frame<'_>, now: Moment) {
        self.unmark_removed_cards();
        self.drawn = view::draw(self, frame, now);
        if let Some(open) = &mut self.detail {
            open.scroll.insert(open.tab, self.drawn.scroll);
        }
        self.dirty = false;
    }

    /// Prepares a frame: unmarks cards that no longer exist, and records which questions the frame
    /// shows. Later keys refer to the new frame.
    fn unmark_removed_cards(&mut self) {
        self.vanished = None;
        let (lists, facts) = (&self.lists, &self.facts);
        self.marks.retain(|id| lists.card(facts, id).is_some());
        match &mut self.overlay {
            Some(Overlay::Cleanup { items, .. }) => {
                for item in items {
                    item.is_shown = item.foreseen.is_some();
                }
            }
            Some(
                Overlay::InitFailed { is_shown, .. }
                | Overlay::Confirm { is_shown, .. }
                | Overlay::MergeChoice { is_shown, .. }
                | Overlay::Restore { is_shown, .. }
                | Overlay::Write { is_shown, .. },
            ) => *is_shown = true,
            Some(Overlay::Form { form }) => form.is_shown = true,
            Some(Overlay::Answer { items, .. }) => {
                for item in items {
                    item.is_shown = item.question.is_some();
                }
            }
            Some(Overlay::Escalations { at, row }) => {
                settle_row(self.facts.escalations.iter().map(|it| &it.id), at, row);
            }
            Some(Overlay::MergeQueue { at, row }) => {
                settle_row(self.facts.merges.iter().map(|it| &it.id), at, row);
            }
            _ => {}
        }
    }

    /// Returns whether the state has changed since the last frame.
    pub fn is_dirty(&self) -> bool {
        self.dirty
    }

    /// Returns the moment at which the caller must send a [`BoardEvent::Tick`], because something
    /// changes with time. `None` means that the board can wait for the next event.
    pub fn wake_at(&self) -> Option<Moment> {
        let toast = self.toasts.next_end();
        let age = self.drawn.changes_at;
        [toast, age].into_iter().flatten().min()
    }

    /// Returns the mode that receives the keys.
    pub fn mode(&self) -> KeyMode {
        match (&self.overlay, &self.detail) {
            (Some(overlay), _) => overlay.mode(),
            (None, Some(_)) => KeyMode::Detail,
            (None, None) => KeyMode::Board,
        }
    }

    /// Returns the card under the cursor.
    pub fn cursor(&self) -> Option<&WorkId> {
        self.cursor.as_ref()
    }

    pub fn theme(&self) -> BoardTheme {
        self.theme
    }

    pub(crate) fn card(&self, id: &WorkId) -> Option<&Card> {
        self.lists.card(&self.facts, id)
    }

    fn set_facts(&mut self, facts: BoardFacts) {
        if facts == self.facts {
            return;
        }
        self.facts = facts;
        self.lists.rebuild(&self.facts, &self.lens);
        self.learn_servers();
        let before = self.cursor.clone();
        self.settle();
        if self.cursor != before && self.vanished.is_none() {
            self.vanished = before;
        }
        self.learn_projects();
        self.notice_lost();
        self.select_created();
        self.dirty = true;
    }

    /// Updates the servers in an open server overlay, if their names and order are unchanged.
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
        let names = |servers: &[CardServer]| -> Vec<String> {
            servers.iter().map(|server| server.name.clone()).collect()
        };
        if names(&card.servers) == names(servers) {
            servers.clone_from(&card.servers);
        }
    }

    /// Rebuilds the lists after a change of the search, the filter, the sort order or the project.
    pub(crate) fn arrange(&mut self) {
        self.lists.arrange(&self.facts, &self.lens);
        self.settle();
        self.dirty = true;
    }

    /// Moves the cursor to the position of its card, or to a neighbour if the card is gone.
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

    /// Moves the cursor to the card at this position.
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

    fn see(&mut self, screen: AgentScreen) {
        if screen == self.screen.raw || screen.id != self.looking {
            return;
        }
        // The last output of an agent stays when its pane is gone.
        if screen.lines.is_empty() && screen.id == self.screen.raw.id {
            return;
        }
        self.screen = StyledScreen {
            lines: ansi::lines(&screen.lines),
            raw: screen,
        };
        self.dirty = true;
    }

    /// Requests the screen that is in view, if it differs from the last request.
    fn request_screen(&mut self) {
        let wanted = match &self.detail {
            Some(open) => (open.tab == Tab::Terminal).then_some(&open.id),
            None => self.cursor.as_ref().filter(|_| self.preview),
        };
        let has_session = |id: &&WorkId| self.card(id).is_some_and(|card| card.session.is_some());
        let wanted = wanted.filter(has_session).cloned();
        if wanted != self.looking {
            self.looking.clone_from(&wanted);
            // The screen of the previous item must not be shown for this one. That of an agent
            // that was lost stays as long as the cursor is on its card.
            if self.cursor != self.screen.raw.id || wanted.is_some() {
                self.screen = StyledScreen::default();
            }
            self.requests.push(BoardRequest::Look(wanted));
            self.dirty = true;
        }
    }
}

impl Board {
    /// Requests the description of the item under the cursor, if the preview has no screen to show.
    fn request_description(&mut self) {
        let is_plain = |card: &Card| card.session.is_none() && !card.is_agent;
        let card = self.cursor.as_ref().and_then(|id| self.card(id));
        let wanted = card.filter(|card| self.preview && self.detail.is_none() && is_plain(card));
        let wanted = wanted.map(|card| card.id.clone());
        if wanted == self.describing {
            return;
        }
        self.describing.clone_from(&wanted);
        match wanted {
            Some(id) => self
                .requests
                .push(BoardRequest::Show { id, tab: Tab::Task }),
            // The detail view has requested its own tab.
            None if self.detail.is_some() => {}
            None => self.requests.push(BoardRequest::Unshow),
        }
    }

    /// Stores the description for the preview.
    pub(crate) fn describe(&mut self, id: &WorkId, detail: &Detail) {
        let Detail::Task { description, .. } = detail else {
            return;
        };
        let described = Some(Description {
            id: id.clone(),
            description: description.clone(),
        });
        if self.describing.as_ref() == Some(id) && self.described != described {
            self.described = described;
            self.dirty = true;
        }
    }
}

/// Updates the row of the selected entry of a list. If it is gone, the one in its row is selected.
fn settle_row<'a>(all: impl Iterator<Item = &'a WorkId>, at: &mut Option<WorkId>, row: &mut usize) {
    let all: Vec<&WorkId> = all.collect();
    let found = all.iter().position(|id| Some(*id) == at.as_ref());
    *row = found.unwrap_or_else(|| (*row).min(all.len().saturating_sub(1)));
    *at = all.get(*row).map(|id| (*id).clone());
}

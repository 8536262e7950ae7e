//! Event handling: keys by the table of keys, the mouse by the contents of the last frame, and the
//! results of commands.

mod action_menu;
mod alarms;
mod detail;
mod diff;
mod items;
mod mouse;
mod moves;
mod operations;
mod overlays;
mod town;

use crate::action::BoardAction;
use crate::board::{Board, PendingCommand};
use crate::filter;
use crate::input::TextInput;
use crate::keys::{self, Key, KeyMode};
use crate::overlay::{self, Overlay, Pick};
use crate::toast::ToastKind;
use crate::{BehindFacts, BoardRequest, CommandFailure, FailureRemedy, Moment, Question, command};
use crossterm::event::{KeyEvent, KeyEventKind};
use gt_core::card::Column;
use gt_core::work::WorkId;

impl Board {
    pub(crate) fn on_key(&mut self, event: KeyEvent, now: Moment) {
        if event.kind == KeyEventKind::Release {
            return;
        }
        let Some(key) = Key::of(&event) else {
            return;
        };
        let mode = self.mode();
        match keys::find(mode, key) {
            // The second letter of a label may be one that is bound on its own.
            Some(BoardAction::Top | BoardAction::Bottom)
                if mode == KeyMode::Go && self.has_typed_label() =>
            {
                self.label_letter(key);
            }
            Some(action) => self.act(action, now),
            None if mode == KeyMode::Go => self.label_letter(key),
            None if mode.takes_text() => {
                if let Some(letter) = key.letter() {
                    let is_choice = self.is_choice(letter);
                    self.type_text(letter.encode_utf8(&mut [0; 4]));
                    if is_choice {
                        self.send(now);
                    }
                }
            }
            None => {}
        }
    }

    pub(crate) fn on_paste(&mut self, text: &str) {
        // Pasted text is never interpreted as keys.
        if self.mode().takes_text() {
            self.type_text(text);
        }
    }

    /// Performs an action in the current mode.
    pub(crate) fn act(&mut self, action: BoardAction, now: Moment) {
        if action == BoardAction::Quit {
            self.requests.push(BoardRequest::Quit);
            return;
        }
        if self.overlay.is_some() {
            self.act_in_overlay(action, now);
        } else if self.detail.is_some() {
            let bound: Vec<WorkId> = self.detail.iter().map(|open| open.id.clone()).collect();
            if !self.act_in_diff(action, now) && !self.act_in_detail(action) {
                self.act_anywhere(action, KeyMode::Detail, &bound, now);
            }
        } else if !self.act_on_board(action) {
            let bound = self.bound();
            self.act_anywhere(action, KeyMode::Board, &bound, now);
        }
    }

    /// Returns the cards that an action applies to: the marked ones, or the one under the cursor.
    /// If that card was removed and no frame has shown this yet, the action still applies to it,
    /// and not to the neighbour that took its place.
    fn bound(&self) -> Vec<WorkId> {
        if self.marks.is_empty() {
            let meant = self.vanished.as_ref().or(self.cursor.as_ref());
            return meant.cloned().into_iter().collect();
        }
        let cards = self.facts.cards.iter().map(|card| &card.id);
        let mut bound: Vec<WorkId> = cards
            .filter(|id| self.marks.contains(*id))
            .cloned()
            .collect();
        let gone = self.marks.iter().filter(|id| self.card(id).is_none());
        bound.extend(gone.cloned());
        bound
    }

    /// Performs an action of the board view. Returns whether it is one.
    fn act_on_board(&mut self, action: BoardAction) -> bool {
        match action {
            BoardAction::Up => self.step(false, 1),
            BoardAction::Down => self.step(true, 1),
            BoardAction::PageUp => self.step(false, self.drawn.page),
            BoardAction::PageDown => self.step(true, self.drawn.page),
            BoardAction::Top => self.go_to(self.column, 0),
            BoardAction::Bottom => {
                let last = self.lists.column(self.column).len().saturating_sub(1);
                self.go_to(self.column, last);
            }
            BoardAction::Left => self.move_to_column(false),
            BoardAction::Right => self.move_to_column(true),
            BoardAction::FirstColumn => self.enter_last(false),
            BoardAction::LastColumn => self.enter_last(true),
            BoardAction::NextNeedy => self.move_to_next_question(),
            BoardAction::NextMatch => self.next_match(true),
            BoardAction::PreviousMatch => self.next_match(false),
            BoardAction::CreateOrNextMatch if !self.lens.query.is_empty() => self.next_match(true),
            BoardAction::Create | BoardAction::CreateOrNextMatch => self.create_item(),
            BoardAction::Open => {
                if let Some(id) = self.vanished.clone().or(self.cursor.clone()) {
                    self.open(id, crate::Tab::Task);
                }
            }
            BoardAction::Go => self.label_cards(),
            BoardAction::Search => {
                let input = TextInput::new(&self.lens.query);
                self.show(Overlay::Search { input });
            }
            BoardAction::Filter => {
                let choices = filter::choices(&self.facts.cards, &self.lens.filter);
                self.show(Overlay::Filter { choices, cursor: 0 });
            }
            BoardAction::Sort => {
                let here = crate::sort::Sort::ALL
                    .iter()
                    .position(|sort| *sort == self.lens.sort);
                self.show(Overlay::Sort {
                    cursor: here.unwrap_or_default(),
                });
            }
            BoardAction::Projects => self.choose_project(),
            BoardAction::Mark => {
                if let Some(id) = self.cursor.clone()
                    && !self.marks.remove(&id)
                {
                    self.marks.insert(id);
                }
                self.dirty = true;
            }
            BoardAction::MarkColumn => self.mark_column(),
            BoardAction::Preview => {
                self.preview = !self.preview;
                self.dirty = true;
            }
            BoardAction::Back => {
                if !self.marks.is_empty() {
                    self.marks.clear();
                } else if !self.lens.query.is_empty() {
                    self.lens.query.clear();
                } else {
                    self.lens.filter.wanted.clear();
                }
                self.arrange();
            }
            _ => return false,
        }
        true
    }

    /// Performs an action that the board and the detail view share.
    fn act_anywhere(&mut self, action: BoardAction, mode: KeyMode, bound: &[WorkId], now: Moment) {
        match action {
            BoardAction::Actions if bound.is_empty() => {
                self.toasts
                    .say(ToastKind::Note, "There is no card here".to_owned(), now);
                self.dirty = true;
            }
            BoardAction::Actions => self.show_actions(bound.to_vec()),
            BoardAction::Palette => {
                let rows = overlay::commands(mode);
                let texts = rows.iter().map(|row| match row.command {
                    Some(command) => format!("{}  {command}", row.help),
                    None => row.help.to_owned(),
                });
                self.show(Overlay::Palette {
                    bound: bound.to_vec(),
                    mode,
                    pick: Pick::new(texts.collect()),
                });
            }
            BoardAction::Theme => {
                self.theme = self.theme.toggled();
                self.dirty = true;
            }
            BoardAction::Escalations => self.show_escalations(now),
            BoardAction::MergeQueue => self.show_merge_queue(now),
            BoardAction::Restore => self.offer_restore(now),
            BoardAction::EmergencyStop => self.offer_stop(),
            BoardAction::Log => self.show(Overlay::Log { scroll: 0 }),
            BoardAction::Help => self.show(Overlay::Help {
                first: mode,
                shows_all: false,
                search: TextInput::default(),
                is_typing: false,
                scroll: 0,
            }),
            BoardAction::Redraw => {
                self.requests.push(BoardRequest::Redraw);
                self.dirty = true;
            }
            BoardAction::Card(operation) => self.perform(operation, bound, now),
            _ => {}
        }
    }

    pub(crate) fn show(&mut self, overlay: Overlay) {
        self.overlay = Some(overlay);
        self.dirty = true;
    }

    pub(crate) fn hide(&mut self) {
        self.overlay = None;
        self.dirty = true;
    }

    fn choose_project(&mut self) {
        let mut texts = vec!["All projects".to_owned()];
        texts.extend(self.facts.projects.iter().cloned());
        self.show(Overlay::Projects {
            pick: Pick::new(texts),
        });
    }

    fn mark_column(&mut self) {
        let cards = self.lists.column(self.column).iter();
        let ids: Vec<WorkId> = cards
            .map(|number| self.facts.cards[*number].id.clone())
            .collect();
        if ids.iter().all(|id| self.marks.contains(id)) {
            for id in &ids {
                self.marks.remove(id);
            }
        } else {
            self.marks.extend(ids);
        }
        self.dirty = true;
    }

    pub(crate) fn on_outcome(
        &mut self,
        order: u64,
        result: Result<String, CommandFailure>,
        now: Moment,
    ) {
        let Some(under_way) = self.under_way.remove(&order) else {
            return;
        };
        self.settle_comments(order, result.is_ok());
        let title = under_way.title;
        let created = is_creation(&under_way.words);
        let then = under_way.then.filter(|_| result.is_ok());
        self.dirty = true;
        match result {
            Ok(text) if text.trim().is_empty() => {
                if !under_way.has_terminal {
                    let text = format!("{title}: done");
                    self.toasts.end(order, ToastKind::Good, text, now);
                }
            }
            Ok(text) if created => {
                self.toasts
                    .end(order, ToastKind::Good, format!("Made {text}"), now);
                // A title in place of an id selects nothing.
                self.created = text.trim().parse().ok();
                self.select_created();
            }
            // Not every message names its item, so the title is added where it is missing.
            Ok(text) => {
                let is_named = |id: &WorkId| text.contains(id.as_str());
                let text = match under_way.item.as_ref().is_some_and(is_named) {
                    true => text,
                    false => format!("{title}: {text}"),
                };
                self.toasts.end(order, ToastKind::Good, text, now);
            }
            Err(failure) => {
                let CommandFailure {
                    remedy,
                    text,
                    causes,
                } = failure;
                if remedy == Some(FailureRemedy::Confirm) {
                    let confirmed =
                        command::confirmed(under_way.item.as_ref(), &title, &under_way.words);
                    self.to_ask.push_back(Overlay::Confirm {
                        question: match &under_way.item {
                            Some(item) => format!("Merge {item}? It is the first time here"),
                            None => format!("{title}?"),
                        },
                        lines: causes,
                        drafts: vec![confirmed],
                        scroll: 0,
                        is_shown: false,
                    });
                    let text = format!("{title}: it has to be confirmed");
                    self.toasts.end(order, ToastKind::Note, text, now);
                    return;
                }
                if let Some(item) = under_way
                    .item
                    .filter(|_| remedy == Some(FailureRemedy::RetryInit))
                {
                    let go_on = command::retry_init(Some(&item), &title, &under_way.words);
                    self.to_ask.push_back(Overlay::InitFailed {
                        id: item,
                        why: text.clone(),
                        go_on,
                        is_shown: false,
                    });
                }
                if let Some(mut overlay) = under_way.reopens {
                    overlay.hide_until_drawn();
                    self.to_ask.push_back(*overlay);
                }
                self.toasts
                    .end(order, ToastKind::Bad, format!("{title}: {text}"), now);
            }
        }
        if let Some(then) = then {
            self.follow(then, now);
        }
        self.dirty = true;
    }

    pub(crate) fn on_foreseen(&mut self, order: u64, result: Result<Vec<String>, String>) {
        if let Some(Overlay::Cleanup { items, .. }) = &mut self.overlay
            && let Some(item) = items.iter_mut().find(|item| item.order == order)
        {
            item.foreseen = Some(result);
            self.dirty = true;
        }
    }

    pub(crate) fn on_asked(&mut self, order: u64, result: Result<Question, String>) {
        if let Some(Overlay::Answer { items, .. }) = &mut self.overlay
            && let Some(item) = items.iter_mut().find(|item| item.order == order)
        {
            item.question = Some(result);
            self.dirty = true;
        }
    }

    /// Attaches to the task, or first asks whether to merge its base.
    pub(crate) fn on_behind_read(
        &mut self,
        order: u64,
        result: Result<BehindFacts, CommandFailure>,
        now: Moment,
    ) {
        let Some(PendingCommand {
            item: Some(id),
            title,
            ..
        }) = self.under_way.remove(&order)
        else {
            return;
        };
        self.toasts.drop(order);
        self.dirty = true;
        match result {
            Ok(branch) if branch.behind > 0 && !branch.merging => {
                self.to_ask.push_back(Overlay::MergeChoice {
                    id,
                    base: branch.base,
                    behind: branch.behind,
                    is_shown: false,
                });
            }
            Ok(_) => self.follow(command::attach(&id, Some("--skip")), now),
            Err(failure) => {
                let text = format!("{title}: {}", failure.text);
                self.toasts.say(ToastKind::Bad, text, now);
            }
        }
    }

    pub(crate) fn on_tick(&mut self, now: Moment) {
        let gone = self.toasts.expire(now);
        let older = self.drawn.changes_at.is_some_and(|at| at <= now);
        self.dirty |= gone || older;
    }

    /// Returns the columns that have cards, from left to right.
    pub(crate) fn columns_with_cards(&self) -> Vec<Column> {
        let columns = Column::ALL.into_iter();
        columns
            .filter(|column| !self.lists.column(*column).is_empty())
            .collect()
    }
}

/// Returns whether a command creates an item; its outcome is then the id.
fn is_creation(words: &[String]) -> bool {
    matches!(words, [first, second, ..] if first == "work" && second == "create")
}

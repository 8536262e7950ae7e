//! Keys in overlays.

use crate::action::BoardAction;
use crate::board::Board;
use crate::form::EarlyInput;
use crate::input::TextInput;
use crate::overlay::{self, Overlay, step};
use crate::sort::Sort;
use crate::{Moment, command};

impl Board {
    pub(super) fn act_in_overlay(&mut self, action: BoardAction, now: Moment) {
        self.dirty = true;
        if self.overlay.as_ref().is_some_and(Overlay::is_unseen) {
            return;
        }
        if action == BoardAction::Back {
            self.back_from_overlay();
            return;
        }
        let Some(overlay) = &mut self.overlay else {
            return;
        };
        if let Some(form) = overlay.waiting_form() {
            form.early.push(EarlyInput::Action(action));
            return;
        }
        if let Some(input) = overlay.input()
            && input.edit(action)
        {
            self.after_typing();
            return;
        }
        let page = self.drawn.page.max(1);
        match overlay {
            Overlay::Actions {
                bound,
                rows,
                cursor,
            } => match action {
                BoardAction::Up | BoardAction::Down => {
                    *cursor = step(*cursor, rows.len(), action == BoardAction::Down);
                }
                BoardAction::Accept => {
                    let bound = bound.clone();
                    if let Some(operation) = rows.get(*cursor).copied() {
                        self.perform(operation, &bound, now);
                    }
                }
                BoardAction::Card(operation) => {
                    let bound = bound.clone();
                    self.perform(operation, &bound, now);
                }
                _ => {}
            },
            Overlay::Go { .. } => {
                self.hide();
                self.act(action, now);
            }
            Overlay::Search { .. } => match action {
                BoardAction::Accept => self.hide(),
                _ => {
                    self.act_on_board(action);
                }
            },
            Overlay::Filter { choices, cursor } => match action {
                BoardAction::Up | BoardAction::Down => {
                    *cursor = step(*cursor, choices.len(), action == BoardAction::Down);
                }
                BoardAction::Toggle => {
                    if let Some(choice) = choices.get(*cursor) {
                        self.lens.filter.toggle(choice.clone());
                        self.arrange();
                    }
                }
                BoardAction::Clear => {
                    self.lens.filter.wanted.clear();
                    self.arrange();
                }
                _ => {}
            },
            Overlay::Sort { cursor } => match action {
                BoardAction::Up | BoardAction::Down => {
                    *cursor = step(*cursor, Sort::ALL.len(), action == BoardAction::Down);
                }
                BoardAction::Accept => {
                    let sort = Sort::ALL[*cursor % Sort::ALL.len()];
                    self.sort_by(sort);
                }
                BoardAction::SortBy(sort) => self.sort_by(sort),
                _ => {}
            },
            Overlay::Palette { bound, mode, pick } => match action {
                BoardAction::Up | BoardAction::Down => pick.step(action == BoardAction::Down),
                BoardAction::Accept => {
                    let row = pick.chosen().map(|number| overlay::commands(*mode)[number]);
                    let bound = std::mem::take(bound);
                    self.hide();
                    match row.map(|row| row.action) {
                        Some(BoardAction::Card(operation)) => self.perform(operation, &bound, now),
                        Some(action) => self.act(action, now),
                        None => {}
                    }
                }
                _ => {}
            },
            Overlay::Projects { pick } => match action {
                BoardAction::Up | BoardAction::Down => pick.step(action == BoardAction::Down),
                BoardAction::Accept => {
                    if let Some(number) = pick.chosen() {
                        let all = number == 0;
                        self.lens.project = (!all).then(|| pick.text(number).to_owned());
                        self.arrange();
                    }
                    self.hide();
                }
                _ => {}
            },
            Overlay::Workers { pick, .. } => match action {
                BoardAction::Up | BoardAction::Down => pick.step(action == BoardAction::Down),
                BoardAction::Accept => self.sling(),
                _ => {}
            },
            Overlay::Servers {
                servers, cursor, ..
            } => match action {
                BoardAction::Up | BoardAction::Down => {
                    *cursor = step(*cursor, servers.len() + 1, action == BoardAction::Down);
                }
                BoardAction::Server(operation) => self.serve(operation),
                _ => {}
            },
            Overlay::MergeChoice { id, .. } => {
                let id = id.clone();
                match action {
                    BoardAction::MergeAndAttach => {
                        self.hide();
                        self.merge_and_attach(&id);
                    }
                    BoardAction::SkipAndAttach => {
                        self.hide();
                        self.order(command::attach(&id, Some("--skip")));
                    }
                    _ => {}
                }
            }
            Overlay::ResumeFirst { id, start } => {
                let operation = match action {
                    BoardAction::ResumeConversation => crate::action::CardOperation::Resume,
                    BoardAction::StartAnew => *start,
                    _ => return,
                };
                let draft = command::plain(operation, id);
                self.hide();
                self.order_all(draft.into_iter().collect());
            }
            Overlay::Restore { agents, scroll, .. } => match action {
                BoardAction::Up => *scroll = self.drawn.overlay_scroll.saturating_sub(1),
                BoardAction::Down => *scroll = self.drawn.overlay_scroll + 1,
                BoardAction::Yes => {
                    let count = agents.len();
                    self.hide();
                    self.order(command::town::restore(count));
                }
                _ => {}
            },
            Overlay::Cleanup { scroll, .. } => match action {
                BoardAction::Up => *scroll = self.drawn.overlay_scroll.saturating_sub(1),
                BoardAction::Down => *scroll = self.drawn.overlay_scroll + 1,
                BoardAction::Yes => self.clean_up(None),
                BoardAction::YesAndClose => self.clean_up(Some("--close")),
                BoardAction::Force => self.clean_up(Some("--force")),
                _ => {}
            },
            Overlay::InitFailed { id, go_on, .. } => {
                let draft = match action {
                    BoardAction::Yes => go_on.clone(),
                    BoardAction::SkipAndAttach => command::attach(id, Some("--skip")),
                    _ => return,
                };
                self.hide();
                self.order(draft);
            }
            Overlay::Confirm { drafts, scroll, .. } => match action {
                BoardAction::Up => *scroll = self.drawn.overlay_scroll.saturating_sub(1),
                BoardAction::Down => *scroll = self.drawn.overlay_scroll + 1,
                BoardAction::Yes => {
                    let drafts = std::mem::take(drafts);
                    self.hide();
                    self.order_all(drafts);
                }
                _ => {}
            },
            Overlay::Escalations { .. } => self.act_on_escalations(action, now),
            Overlay::MergeQueue { .. } => self.act_on_merges(action, now),
            Overlay::EmergencyStop { scopes, cursor } => match action {
                BoardAction::Up | BoardAction::Down => {
                    *cursor = step(*cursor, scopes.len(), action == BoardAction::Down);
                }
                BoardAction::Yes => self.stop_or_thaw(),
                _ => {}
            },
            Overlay::Answer { scroll, .. } => match action {
                BoardAction::Up => *scroll = self.drawn.overlay_scroll.saturating_sub(1),
                BoardAction::Down => *scroll = self.drawn.overlay_scroll + 1,
                BoardAction::Accept => self.send(now),
                _ => {}
            },
            Overlay::Write { .. } => {
                if action == BoardAction::Accept {
                    self.send_text();
                }
            }
            Overlay::Comment { .. } => {
                if action == BoardAction::Accept {
                    self.keep_comment();
                }
            }
            Overlay::Help {
                is_typing, scroll, ..
            } if action == BoardAction::Search || *is_typing && action == BoardAction::Accept => {
                *is_typing = !*is_typing;
                *scroll = 0;
            }
            Overlay::Help {
                shows_all, scroll, ..
            } if action == BoardAction::NextTab => {
                *shows_all = !*shows_all;
                *scroll = 0;
            }
            Overlay::Form { .. } => self.act_in_form(action, now),
            Overlay::Help { scroll, .. } | Overlay::Log { scroll } => {
                let here = self.drawn.overlay_scroll;
                *scroll = match action {
                    BoardAction::Down | BoardAction::NextMatch => here + 1,
                    BoardAction::Up | BoardAction::PreviousMatch => here.saturating_sub(1),
                    BoardAction::PageDown => here.saturating_add(page),
                    BoardAction::PageUp => here.saturating_sub(page),
                    BoardAction::Top => 0,
                    BoardAction::Bottom => usize::MAX,
                    _ => here,
                };
            }
        }
    }

    pub(super) fn back_from_overlay(&mut self) {
        match &mut self.overlay {
            Some(Overlay::Search { .. }) => {
                self.lens.query.clear();
                self.arrange();
            }
            // The search ends first, then the help.
            Some(Overlay::Help {
                search, is_typing, ..
            }) if *is_typing || !search.text().is_empty() => {
                *search = TextInput::default();
                *is_typing = false;
                return;
            }
            _ => {}
        }
        self.hide();
    }

    fn sort_by(&mut self, sort: Sort) {
        self.lens.reversed = self.lens.sort == sort && !self.lens.reversed;
        self.lens.sort = sort;
        self.arrange();
        self.hide();
    }

    pub(super) fn type_text(&mut self, text: &str) {
        if self.overlay.as_ref().is_some_and(Overlay::is_unseen) {
            return;
        }
        if let Some(form) = self.overlay.as_mut().and_then(Overlay::waiting_form) {
            form.early.push(EarlyInput::Text(text.to_owned()));
            return;
        }
        let mut letters = text.chars();
        if let Some(Overlay::Form { form }) = &mut self.overlay
            && form.input().is_none()
            && let (Some(letter), None) = (letters.next(), letters.next())
        {
            form.choose(letter);
            self.dirty = true;
            return;
        }
        if let Some(input) = self.overlay.as_mut().and_then(Overlay::input) {
            input.insert(text);
            self.after_typing();
        }
    }

    fn after_typing(&mut self) {
        self.dirty = true;
        match &mut self.overlay {
            Some(Overlay::Search { input }) => {
                let query = input.text();
                if query == self.lens.query {
                    return;
                }
                self.lens.query = query.to_owned();
                self.arrange();
                if let Some(best) = self.lists.best {
                    let id = self.facts.cards[best].id.clone();
                    self.select(&id);
                }
            }
            Some(
                Overlay::Palette { pick, .. }
                | Overlay::Projects { pick }
                | Overlay::Workers { pick, .. },
            ) => pick.search(),
            Some(Overlay::Help { scroll, .. }) => *scroll = 0,
            _ => {}
        }
    }
}

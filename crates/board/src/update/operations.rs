//! Turns operations on cards into commands, with a confirmation where necessary.

use crate::action::{CardOperation, ServerOperation};
use crate::board::{Board, PendingCommand};
use crate::command::{self, CommandDraft, CommandKind};
use crate::input::TextInput;
use crate::overlay::{AskedItem, Cleaning, Overlay};
use crate::toast::ToastKind;
use crate::{Moment, Tab};
use gt_core::card::{AskingProgram, Card};
use gt_core::work::WorkId;

impl Board {
    /// Performs an operation on these cards, regardless of the present cursor.
    pub(crate) fn perform(&mut self, operation: CardOperation, bound: &[WorkId], now: Moment) {
        let operation = self.resolve_operation(operation, bound);
        let mut able = Vec::new();
        let mut unable = Vec::new();
        for id in bound {
            let why_not = match self.card(id) {
                Some(card) => operation.reason_against(card, bound.len() == 1),
                None => Some("it is gone".into()),
            };
            match why_not {
                None => able.push(id.clone()),
                Some(why) => unable.push(format!("{id}: {why}")),
            }
        }
        let Some(first) = able.first() else {
            let said = unable.join("\n");
            let said = if said.is_empty() {
                "There is no card here".to_owned()
            } else {
                said
            };
            self.toasts.say(ToastKind::Note, said, now);
            self.dirty = true;
            return;
        };
        if operation.is_for_one() && bound.len() > 1 {
            self.toasts
                .say(ToastKind::Note, "That is for one card only".to_owned(), now);
            self.dirty = true;
            return;
        }
        self.hide();
        match operation {
            CardOperation::Attach => self.attach(&first.clone()),
            CardOperation::Diff => self.open(first.clone(), Tab::Diff),
            CardOperation::Servers => self.choose_server(able),
            CardOperation::Cleanup => self.foresee_cleanup(able),
            CardOperation::Answer => self.read_questions(able),
            CardOperation::Nudge => self.write_to_agents(able, false),
            CardOperation::Handoff => self.write_to_agents(able, true),
            CardOperation::Escalate => self.write_escalation(&first.clone()),
            CardOperation::Sling => self.choose_worker(able),
            CardOperation::Edit => self.edit_item(&first.clone()),
            _ if bound.len() == 1
                && self
                    .card(first)
                    .is_some_and(|card| operation.offers_resume(card)) =>
            {
                self.show(Overlay::ResumeFirst {
                    id: first.clone(),
                    start: operation,
                });
            }
            _ => {
                let drafts: Vec<CommandDraft> = able
                    .iter()
                    .filter_map(|id| self.draft(operation, id))
                    .collect();
                if bound.len() > 1 || operation.asks_first() {
                    self.ask(operation.question(), drafts, unable);
                } else {
                    self.order_all(drafts);
                }
            }
        }
    }

    /// Returns the operation that is meant for these cards. A start becomes an attach only for a
    /// single card.
    pub(crate) fn resolve_operation(
        &self,
        operation: CardOperation,
        bound: &[WorkId],
    ) -> CardOperation {
        match bound {
            [one] => self
                .card(one)
                .map_or(operation, |card| operation.for_card(card)),
            _ => operation,
        }
    }

    /// Returns the command of an operation that needs only the item, or the agent that holds it.
    fn draft(&self, operation: CardOperation, id: &WorkId) -> Option<CommandDraft> {
        let holder = self.card(id).and_then(|card| card.holder.as_deref());
        match (operation, holder) {
            (CardOperation::Stop, Some(holder)) => Some(command::stop_holder(id, holder)),
            (CardOperation::Interrupt, _) => {
                let session = self.card(id)?.session.as_ref()?;
                Some(command::interrupt(id, &session.agent))
            }
            _ => command::plain(operation, id),
        }
    }

    fn attach(&mut self, id: &WorkId) {
        let holder = self.card(id).and_then(|card| card.holder.as_deref());
        if let Some(holder) = holder {
            // The branch of another agent is not updated from here.
            let draft = command::attach_holder(id, holder);
            self.order(draft);
            return;
        }
        let branch = self.card(id).and_then(|card| card.branch.as_ref());
        // While a merge is in progress, a second one cannot be offered.
        match branch.filter(|branch| branch.behind > 0 && !branch.merging) {
            Some(branch) => {
                let choice = Overlay::MergeChoice {
                    id: id.clone(),
                    base: branch.base.clone(),
                    behind: branch.behind,
                    // The overlay was opened by a key.
                    is_shown: true,
                };
                self.show(choice);
            }
            // The card may be older than the base.
            None => {
                self.order(command::read_behind(id));
            }
        }
    }

    /// Updates the branch first, as a separate command that reports conflicts, and then attaches.
    pub(super) fn merge_and_attach(&mut self, id: &WorkId) {
        if let Some(update) = command::plain(CardOperation::Update, id) {
            self.order_then(update, Some(command::attach(id, Some("--skip"))));
        }
    }

    /// Starts the follow-up of a successful command. Does not hand over the terminal while an
    /// overlay is open, since the user's typing would go to the agent.
    pub(super) fn follow(&mut self, then: CommandDraft, now: Moment) {
        if then.manner == CommandKind::HandOver && self.overlay.is_some() {
            let item = then.item.as_ref().map_or("", WorkId::as_str);
            let text = format!("{item}: a attaches when you are done here");
            self.toasts.say(ToastKind::Note, text, now);
        } else {
            self.order(then);
        }
    }

    fn choose_server(&mut self, bound: Vec<WorkId>) {
        // For several items the only choice is all servers.
        let servers = match bound.as_slice() {
            [id] => self.card(id).map(|card| card.servers.clone()),
            _ => None,
        };
        self.show(Overlay::Servers {
            bound,
            servers: servers.unwrap_or_default(),
            cursor: 0,
        });
    }

    pub(super) fn serve(&mut self, operation: ServerOperation) {
        let Some(Overlay::Servers {
            bound,
            servers,
            cursor,
        }) = self.overlay.take()
        else {
            return;
        };
        // The first row stands for all servers.
        let name = cursor.checked_sub(1).and_then(|row| servers.get(row));
        let name = name.map(|server| server.name.as_str());
        let drafts = bound.iter().map(|id| command::server(operation, id, name));
        let drafts: Vec<CommandDraft> = drafts.collect();
        self.hide();
        if drafts.len() > 1 {
            self.ask(operation.question(), drafts, Vec::new());
        } else {
            self.order_all(drafts);
        }
    }

    fn foresee_cleanup(&mut self, bound: Vec<WorkId>) {
        let items = bound.into_iter().map(|id| Cleaning {
            order: self.order(command::foresee_cleanup(&id)),
            id,
            foreseen: None,
            is_shown: false,
        });
        let items = items.collect();
        self.show(Overlay::Cleanup { items, scroll: 0 });
    }

    /// Starts the cleanups: of the refused items only with `--force`, of the others only without.
    pub(super) fn clean_up(&mut self, more: Option<&str>) {
        let Some(Overlay::Cleanup { items, .. }) = &self.overlay else {
            return;
        };
        if items.iter().any(|item| !item.is_shown) {
            return;
        }
        let forced = more == Some("--force");
        let chosen = items.iter().filter(|item| {
            let refused = matches!(item.foreseen, Some(Err(_)));
            refused == forced
        });
        let drafts: Vec<CommandDraft> = chosen
            .map(|item| command::cleanup(&item.id, more))
            .collect();
        if drafts.is_empty() {
            return;
        }
        self.hide();
        self.order_all(drafts);
    }

    /// Reads the questions again, since a card may be behind its agent.
    fn read_questions(&mut self, able: Vec<WorkId>) {
        let items = self.with_agents(able).into_iter().map(|(id, agent)| {
            let window = match self.card(&id).and_then(Card::asking_program) {
                Some(AskingProgram::Window(name)) => Some(name.to_owned()),
                _ => None,
            };
            AskedItem {
                order: self.order(command::question(&id, &agent, window.as_deref())),
                id,
                agent,
                window,
                question: None,
                is_shown: false,
            }
        });
        let items = items.collect();
        self.show(Overlay::Answer {
            items,
            input: TextInput::default(),
            scroll: 0,
        });
    }

    pub(super) fn with_agents(&self, ids: Vec<WorkId>) -> Vec<(WorkId, String)> {
        let agent = |id: &WorkId| Some(self.card(id)?.session.as_ref()?.agent.clone());
        let bound = ids.into_iter();
        bound
            .filter_map(|id| agent(&id).map(|agent| (id, agent)))
            .collect()
    }

    /// Returns whether this letter alone is an answer: nothing is typed yet, all questions are in
    /// view, and in each the letter selects exactly one option.
    pub(super) fn is_choice(&self, letter: char) -> bool {
        let Some(Overlay::Answer { items, input, .. }) = &self.overlay else {
            return false;
        };
        let begins = |label: &str| label.starts_with(letter);
        let is_label = |label: &str| label.trim_end_matches(['.', ')', ':']) == letter.to_string();
        let chooses = |item: &AskedItem| match &item.question {
            Some(Ok(question)) => {
                let labels = question.options.iter().map(|(label, _)| label.trim());
                let found: Vec<&str> = labels.filter(|label| begins(label)).collect();
                item.is_shown && matches!(found.as_slice(), [one] if is_label(one))
            }
            _ => false,
        };
        letter.is_ascii_digit() && input.text().is_empty() && items.iter().all(chooses)
    }

    /// Sends the typed answer. Items whose question could not be read are skipped.
    pub(super) fn send(&mut self, now: Moment) {
        let drafts: Vec<CommandDraft> = match &self.overlay {
            Some(Overlay::Answer { items, input, .. }) => {
                let text = input.text().trim();
                if text.is_empty() || items.iter().any(|item| !item.is_shown) {
                    return;
                }
                let drafts = items.iter().filter_map(|item| {
                    // The overlay shows the error of a question that cannot be read.
                    let question = item.question.as_ref()?.as_ref().ok()?;
                    Some(command::answer(item, text, question))
                });
                drafts.collect()
            }
            _ => return,
        };
        if drafts.is_empty() {
            let why = "What it asks could not be read: a attaches, to answer there".to_owned();
            self.toasts.say(ToastKind::Note, why, now);
            self.dirty = true;
            return;
        }
        self.hide();
        self.order_all(drafts);
    }

    /// Asks one question for all commands.
    fn ask(&mut self, what: &str, drafts: Vec<CommandDraft>, unable: Vec<String>) {
        let question = match drafts.as_slice() {
            [
                CommandDraft {
                    item: Some(item), ..
                },
            ] => format!("{what} {item}?"),
            many => format!("{what} {} cards?", many.len()),
        };
        let mut lines: Vec<String> = Vec::new();
        for draft in &drafts {
            let Some(id) = &draft.item else { continue };
            let title = self.card(id).map(|card| card.title.as_str());
            lines.push(format!("{id}  {}", title.unwrap_or_default()));
        }
        lines.extend(unable.iter().map(|line| format!("left out: {line}")));
        self.show(Overlay::Confirm {
            question,
            lines,
            drafts,
            scroll: 0,
            // The overlay was opened by a key.
            is_shown: true,
        });
    }

    pub(super) fn order_all(&mut self, drafts: Vec<CommandDraft>) {
        for draft in drafts {
            self.order(draft);
        }
    }

    /// Requests a command and returns its number.
    pub(super) fn order(&mut self, draft: CommandDraft) -> u64 {
        self.order_then(draft, None)
    }

    /// Requests a command, and `then` if it succeeds. Returns the number of the first.
    pub(super) fn order_then(&mut self, draft: CommandDraft, then: Option<CommandDraft>) -> u64 {
        self.orders += 1;
        let number = self.orders;
        let has_outcome = matches!(draft.manner, CommandKind::Run | CommandKind::ReadBehind);
        if has_outcome {
            self.toasts.begin(number, format!("{}…", draft.title));
        }
        if has_outcome || draft.manner == CommandKind::HandOver {
            let under_way = PendingCommand {
                item: draft.item.clone(),
                title: draft.title.clone(),
                words: draft.words.clone(),
                has_terminal: draft.manner == CommandKind::HandOver,
                then,
                reopens: None,
            };
            self.under_way.insert(number, under_way);
        }
        self.requests.push(draft.request(number));
        self.dirty = true;
        number
    }
}

//! Creates, edits and assigns items, and sends texts of several lines.

use super::super::overlay::{Overlay, Pick, WritePurpose};
use crate::action::BoardAction;
use crate::board::Board;
use crate::command::{self, CommandDraft};
use crate::form::{EarlyInput, FormPurpose, ItemForm};
use crate::input::TextInput;
use crate::toast::ToastKind;
use crate::{ItemFields, Moment};
use gt_core::card::Card;
use gt_core::work::WorkId;

impl Board {
    /// Opens the form for a new item, in the project in view or that of the card under the cursor.
    pub(super) fn create_item(&mut self) {
        let form = ItemForm::create(&self.facts.projects, self.likely_project());
        self.show(Overlay::Form { form });
    }

    fn likely_project(&self) -> Option<&str> {
        let card = self.cursor.as_ref().and_then(|id| self.card(id));
        let of_card = card.and_then(|card| card.rig.as_deref());
        self.lens.project.as_deref().or(of_card)
    }

    /// Updates the projects of the form for a new item, which may be open before they are known.
    pub(crate) fn learn_projects(&mut self) {
        let project = self.likely_project().map(str::to_owned);
        if let Some(Overlay::Form { form }) = &mut self.overlay {
            form.set_projects(&self.facts.projects, project.as_deref());
        }
    }

    /// Reads the item again for the form, since a card has no description.
    pub(super) fn edit_item(&mut self, id: &WorkId) {
        let order = self.order(command::items::read(id));
        let form = ItemForm::edit(id.clone(), order);
        self.show(Overlay::Form { form });
    }

    pub(crate) fn on_item_read(
        &mut self,
        order: u64,
        result: Result<ItemFields, String>,
        now: Moment,
    ) {
        let Some(Overlay::Form { form }) = &mut self.overlay else {
            return;
        };
        let FormPurpose::Edit {
            id,
            order: own,
            before,
        } = &mut form.purpose
        else {
            return;
        };
        if *own != order || before.is_some() {
            return;
        }
        match result {
            Ok(item) => {
                *before = Some(item.clone());
                form.fill(&item);
                for input in std::mem::take(&mut form.early) {
                    match input {
                        EarlyInput::Action(action) => self.act(action, now),
                        EarlyInput::Text(text) => self.type_text(&text),
                    }
                }
            }
            Err(why) => {
                let text = format!("{id} cannot be read: {why}");
                self.toasts.say(ToastKind::Bad, text, now);
                self.overlay = None;
            }
        }
        self.dirty = true;
    }

    /// Handles a key of the form that is no editing key.
    pub(super) fn act_in_form(&mut self, action: BoardAction, now: Moment) {
        let Some(Overlay::Form { form }) = &mut self.overlay else {
            return;
        };
        if action != BoardAction::Accept {
            form.act(action);
            return;
        }
        let item = form.item();
        let drafts = match &form.purpose {
            FormPurpose::Edit { before: None, .. } => return,
            _ if item.title.is_empty() => {
                self.note("An item needs a title", now);
                return;
            }
            FormPurpose::Create => {
                let rig = form.text(crate::form::FieldName::Project);
                vec![command::items::create(&item, rig)]
            }
            FormPurpose::Edit {
                id,
                before: Some(before),
                ..
            } => command::items::update(id, before, &item),
        };
        let overlay = self.overlay.take();
        self.hide();
        if drafts.is_empty() {
            self.note("Nothing was changed", now);
            return;
        }
        self.order_and_keep(drafts, overlay);
    }

    /// Requests commands. If the first fails, its overlay opens again with the typed text.
    fn order_and_keep(&mut self, drafts: Vec<CommandDraft>, overlay: Option<Overlay>) {
        let mut overlay = overlay;
        for draft in drafts {
            let number = self.order(draft);
            if let Some(under_way) = self.under_way.get_mut(&number) {
                under_way.reopens = overlay.take().map(Box::new);
            }
        }
    }

    /// Selects the item that a command has created, once its card is there.
    pub(crate) fn select_created(&mut self) {
        let Some(id) = self.created.take() else {
            return;
        };
        match self.card(&id).is_some() {
            true => self.select(&id),
            false => self.created = Some(id),
        }
    }

    /// Lists the workers for these items: a polecat, and the crew of their rig.
    pub(super) fn choose_worker(&mut self, bound: Vec<WorkId>) {
        let rig = bound.first().and_then(|id| self.card(id)?.rig.clone());
        let rig = rig.unwrap_or_default();
        let mut texts = vec![format!("A polecat of {rig}")];
        let mut agents = vec![None];
        let is_of_rig = |address: &&String| {
            let rest = address.strip_prefix(rig.as_str());
            rest.is_some_and(|rest| rest.starts_with('/'))
        };
        for address in self.facts.crew.iter().filter(is_of_rig) {
            let works = |card: &&Card| card.holder.as_ref() == Some(address);
            let card = self.facts.cards.iter().find(works);
            let state = match card.and_then(|card| Some((card, card.state()?))) {
                Some((card, state)) if !card.is_agent => format!("{}, {}", state.as_str(), card.id),
                Some((_, state)) => state.as_str().to_owned(),
                None => "does not run".to_owned(),
            };
            texts.push(format!("{address} ({state})"));
            agents.push(Some(address.clone()));
        }
        self.show(Overlay::Workers {
            bound,
            agents,
            pick: Pick::new(texts),
        });
    }

    /// Assigns the items to the selected worker.
    pub(super) fn sling(&mut self) {
        let Some(Overlay::Workers {
            bound,
            agents,
            pick,
        }) = &self.overlay
        else {
            return;
        };
        let Some(agent) = pick.chosen().and_then(|number| agents.get(number)) else {
            return;
        };
        let drafts = bound.iter();
        let drafts = drafts.map(|id| command::items::sling(id, agent.as_deref()));
        let drafts = drafts.collect();
        self.hide();
        self.order_all(drafts);
    }

    /// Opens a text of several lines.
    pub(super) fn write(&mut self, purpose: WritePurpose, about: Vec<String>) {
        self.show(Overlay::Write {
            purpose,
            about,
            input: TextInput::area(""),
            is_shown: true,
        });
    }

    /// Opens a message to the agents of these cards, or the notes of their handoff.
    pub(super) fn write_to_agents(&mut self, able: Vec<WorkId>, is_handoff: bool) {
        let bound = self.with_agents(able);
        let about = bound.iter().map(|(id, agent)| {
            let session = self.card(id).and_then(|card| card.session.as_ref());
            let reason = session.map_or("", |session| {
                session.reason.as_deref().unwrap_or(session.state.as_str())
            });
            format!("{id}  {agent}: {reason}")
        });
        let about = about.collect();
        let purpose = match is_handoff {
            true => WritePurpose::Handoff(bound),
            false => WritePurpose::Nudge(bound),
        };
        self.write(purpose, about);
    }

    pub(super) fn write_escalation(&mut self, id: &WorkId) {
        let title = self.card(id).map_or("", |card| card.title.as_str());
        let about = vec![format!("{id}  {title}")];
        self.write(WritePurpose::Escalate(id.clone()), about);
    }

    /// Sends the typed text. A text that may not be empty is required first.
    pub(super) fn send_text(&mut self) {
        let Some(Overlay::Write { purpose, input, .. }) = &self.overlay else {
            return;
        };
        let text = input.text().trim();
        if text.is_empty() && !matches!(purpose, WritePurpose::Handoff(_)) {
            return;
        }
        let drafts: Vec<CommandDraft> = match purpose {
            WritePurpose::Nudge(bound) => {
                let drafts = bound.iter();
                drafts
                    .map(|(id, agent)| command::nudge(id, agent, text))
                    .collect()
            }
            WritePurpose::Handoff(bound) => {
                let drafts = bound.iter();
                drafts
                    .map(|(id, agent)| command::handoff(id, agent, text))
                    .collect()
            }
            WritePurpose::Escalate(id) => vec![command::items::escalate(id, text)],
            WritePurpose::Reject(id) => vec![command::town::reject(id, text)],
        };
        // A text for several agents is not sent again to those that got it.
        let is_kept = drafts.len() == 1;
        let overlay = self.overlay.take().filter(|_| is_kept);
        self.hide();
        self.order_and_keep(drafts, overlay);
    }
}

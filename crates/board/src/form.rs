//! The form for a new item, and for changes of an item.
//!
//! A form only holds what was typed. `command/items.rs` turns it into commands, and the commands
//! validate it. Fields that were not changed are not sent.

use crate::ItemFields;
use crate::action::BoardAction;
use crate::input::TextInput;
use crate::overlay::step;
use gt_core::work::WorkId;

/// The kinds of work that the form offers.
const KINDS: [&str; 5] = ["task", "bug", "feature", "epic", "chore"];
/// The priorities, each with its meaning.
const PRIORITIES: [&str; 5] = [
    "0 most urgent",
    "1 urgent",
    "2 normal",
    "3 low",
    "4 some time",
];
/// The rig of items that belong to the whole town.
const TOWN: &str = "hq";

#[derive(Debug)]
pub(crate) struct ItemForm {
    pub(crate) purpose: FormPurpose,
    pub(crate) fields: Vec<FormField>,
    /// The field with the cursor.
    pub(crate) at: usize,
    /// Whether a frame has shown the form. It may open without a key, so earlier keys are ignored.
    pub(crate) is_shown: bool,
    /// Input that arrived before the item was read, in order.
    pub(crate) early: Vec<EarlyInput>,
}

/// Input for a form whose fields are not known yet.
#[derive(Debug)]
pub(crate) enum EarlyInput {
    Action(BoardAction),
    Text(String),
}

#[derive(Debug)]
pub(crate) enum FormPurpose {
    Create,
    Edit {
        id: WorkId,
        /// The command that reads the item.
        order: u64,
        /// The item as it was read; `None` until then.
        before: Option<ItemFields>,
    },
}

#[derive(Debug)]
pub(crate) struct FormField {
    pub(crate) name: FieldName,
    pub(crate) content: FieldContent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldName {
    Title,
    Description,
    Project,
    Priority,
    Type,
    Labels,
    Blockers,
}

#[derive(Debug)]
pub(crate) enum FieldContent {
    Text(TextInput),
    Choice { options: Vec<String>, chosen: usize },
}

impl FieldName {
    pub(crate) fn label(self) -> &'static str {
        match self {
            FieldName::Title => "Title",
            FieldName::Description => "Description",
            FieldName::Project => "Project",
            FieldName::Priority => "Priority",
            FieldName::Type => "Type",
            FieldName::Labels => "Labels",
            FieldName::Blockers => "Waits for",
        }
    }
}

impl ItemForm {
    /// Returns the form of a new item, with this project selected.
    pub(crate) fn create(projects: &[String], project: Option<&str>) -> Self {
        let field = FormField {
            name: FieldName::Project,
            content: project_choice(projects, project),
        };
        let mut form = ItemForm {
            purpose: FormPurpose::Create,
            fields: Vec::new(),
            at: 0,
            is_shown: true,
            early: Vec::new(),
        };
        form.fill(&ItemFields {
            priority: 2,
            kind: KINDS[0].to_owned(),
            ..ItemFields::default()
        });
        form.fields.insert(2, field);
        form
    }

    /// Updates the projects of a new item. The selected one stays selected, unless the projects were
    /// not known yet.
    pub(crate) fn set_projects(&mut self, projects: &[String], project: Option<&str>) {
        let chosen = self.text(FieldName::Project).to_owned();
        let mut fields = self.fields.iter_mut();
        let field = fields.find(|field| field.name == FieldName::Project);
        if let Some(FormField { content, .. }) = field
            && let FieldContent::Choice { options, .. } = content
            && !options.iter().eq(projects.iter().chain([&TOWN.to_owned()]))
        {
            let project = match options.len() {
                1 => project,
                _ => Some(chosen.as_str()),
            };
            *content = project_choice(projects, project);
        }
    }

    /// Returns the form of an item that this command reads.
    pub(crate) fn edit(id: WorkId, order: u64) -> Self {
        let before = None;
        ItemForm {
            purpose: FormPurpose::Edit { id, order, before },
            fields: Vec::new(),
            at: 0,
            is_shown: true,
            early: Vec::new(),
        }
    }

    /// Returns whether the form waits for the item that it changes.
    pub(crate) fn waits_for_item(&self) -> bool {
        matches!(self.purpose, FormPurpose::Edit { before: None, .. })
    }

    /// Sets the fields to those of an item.
    pub(crate) fn fill(&mut self, item: &ItemFields) {
        let text = |name, input| FormField {
            name,
            content: FieldContent::Text(input),
        };
        let mut kinds: Vec<String> = KINDS.map(str::to_owned).to_vec();
        if !kinds.contains(&item.kind) {
            kinds.push(item.kind.clone());
        }
        let kind = kinds.iter().position(|kind| *kind == item.kind);
        self.fields = vec![
            text(FieldName::Title, TextInput::new(&item.title)),
            text(FieldName::Description, TextInput::area(&item.description)),
            FormField {
                name: FieldName::Priority,
                content: FieldContent::Choice {
                    options: PRIORITIES.map(str::to_owned).to_vec(),
                    chosen: usize::from(item.priority).min(PRIORITIES.len() - 1),
                },
            },
            FormField {
                name: FieldName::Type,
                content: FieldContent::Choice {
                    options: kinds,
                    chosen: kind.unwrap_or_default(),
                },
            },
            text(FieldName::Labels, TextInput::new(&item.labels.join(" "))),
            text(
                FieldName::Blockers,
                TextInput::new(&item.blockers.join(" ")),
            ),
        ];
        self.at = 0;
    }

    /// Returns the editor of the field with the cursor, if it holds text.
    pub(crate) fn input(&mut self) -> Option<&mut TextInput> {
        match self.fields.get_mut(self.at).map(|field| &mut field.content) {
            Some(FieldContent::Text(input)) => Some(input),
            _ => None,
        }
    }

    /// Applies an action that moves between fields or choices.
    pub(crate) fn act(&mut self, action: BoardAction) {
        match action {
            BoardAction::NextField | BoardAction::Down => {
                self.at = step(self.at, self.fields.len(), true);
            }
            BoardAction::PreviousField | BoardAction::Up => {
                self.at = step(self.at, self.fields.len(), false);
            }
            BoardAction::Left | BoardAction::Right => {
                let field = self.fields.get_mut(self.at);
                if let Some(FieldContent::Choice { options, chosen }) =
                    field.map(|field| &mut field.content)
                {
                    *chosen = step(*chosen, options.len(), action == BoardAction::Right);
                }
            }
            _ => {}
        }
    }

    /// Selects the next choice that begins with this letter.
    pub(crate) fn choose(&mut self, letter: char) {
        let field = self.fields.get_mut(self.at);
        if let Some(FieldContent::Choice { options, chosen }) =
            field.map(|field| &mut field.content)
        {
            let later = (*chosen + 1..options.len()).chain(0..=*chosen);
            let found = later
                .into_iter()
                .find(|at| options[*at].starts_with(letter));
            *chosen = found.unwrap_or(*chosen);
        }
    }

    /// Returns the typed text of a field; of a choice, the text that is selected.
    pub(crate) fn text(&self, name: FieldName) -> &str {
        let field = self.fields.iter().find(|field| field.name == name);
        match field.map(|field| &field.content) {
            Some(FieldContent::Text(input)) => input.text(),
            Some(FieldContent::Choice { options, chosen }) => &options[*chosen],
            None => "",
        }
    }

    /// Returns the fields as an item.
    pub(crate) fn item(&self) -> ItemFields {
        let words = |name| -> Vec<String> {
            let words = self.text(name).split([' ', ',', '\t']);
            let words = words.filter(|word| !word.is_empty());
            words.map(str::to_owned).collect()
        };
        let priority = self.text(FieldName::Priority).chars().next();
        let priority = priority.and_then(|digit| digit.to_digit(10));
        ItemFields {
            title: self.text(FieldName::Title).trim().to_owned(),
            description: self.text(FieldName::Description).trim_end().to_owned(),
            priority: priority.and_then(|it| u8::try_from(it).ok()).unwrap_or(2),
            kind: self.text(FieldName::Type).to_owned(),
            labels: words(FieldName::Labels),
            blockers: words(FieldName::Blockers),
        }
    }
}

/// Returns the choice of a project, or of the town.
fn project_choice(projects: &[String], project: Option<&str>) -> FieldContent {
    let mut options = projects.to_vec();
    options.push(TOWN.to_owned());
    let chosen = project.and_then(|project| options.iter().position(|it| it == project));
    FieldContent::Choice {
        chosen: chosen.unwrap_or_default(),
        options,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn projects_that_become_known_later_are_offered() {
        let projects = ["gastown".to_owned(), "beads".to_owned()];
        let mut form = ItemForm::create(&[], None);
        assert_eq!(form.text(FieldName::Project), "hq");
        form.set_projects(&projects, Some("beads"));
        assert_eq!(form.text(FieldName::Project), "beads");
        form.set_projects(&projects[1..], None);
        assert_eq!(form.text(FieldName::Project), "beads");
    }

    #[test]
    fn form_returns_the_item_that_it_was_filled_with() {
        let item = ItemFields {
            title: "Fix it".to_owned(),
            description: "One\nTwo".to_owned(),
            priority: 4,
            kind: "gate".to_owned(),
            labels: vec!["ui".to_owned(), "now".to_owned()],
            blockers: vec!["gt-00epc".to_owned()],
        };
        let mut form = ItemForm::edit("gt-00bsy".parse().expect("an id"), 1);
        assert_eq!(form.item().title, "");
        form.fill(&item);
        assert_eq!(form.item(), item);
    }

    #[test]
    fn letters_and_arrows_select_a_choice() {
        let projects = ["gastown".to_owned(), "beads".to_owned()];
        let mut form = ItemForm::create(&projects, Some("beads"));
        assert_eq!(form.text(FieldName::Project), "beads");
        form.at = 2;
        form.act(BoardAction::Right);
        assert_eq!(form.text(FieldName::Project), "hq");
        form.choose('g');
        assert_eq!(form.text(FieldName::Project), "gastown");
        form.choose('x');
        assert_eq!(form.text(FieldName::Project), "gastown");
        form.act(BoardAction::NextField);
        form.choose('0');
        assert_eq!(form.item().priority, 0);
        form.act(BoardAction::Left);
        assert_eq!(form.item().priority, 4);
    }
}

//! Overlays: boxes over the view that receive the keys. Each is bound to the cards for which it was
//! opened; changes of the cursor or of the lists do not change that.

use crate::action::CardOperation;
use crate::command::CommandDraft;
use crate::diff::DiffPlace;
use crate::filter::Trait;
use crate::form::ItemForm;
use crate::input::TextInput;
use crate::keys::{self, Binding, KeyMode};
use crate::{Question, search};
use gt_core::card::CardServer;
use gt_core::work::WorkId;

#[derive(Debug)]
pub(crate) enum Overlay {
    Actions {
        bound: Vec<WorkId>,
        /// The operations as they were ordered when the menu was opened: the available ones first.
        rows: Vec<CardOperation>,
        cursor: usize,
    },
    Go {
        labels: Vec<(String, WorkId)>,
        typed: String,
    },
    Search {
        input: TextInput,
    },
    Filter {
        choices: Vec<Trait>,
        cursor: usize,
    },
    Sort {
        cursor: usize,
    },
    Palette {
        bound: Vec<WorkId>,
        /// The mode whose rows the palette offers besides the operations.
        mode: KeyMode,
        pick: Pick,
    },
    Projects {
        pick: Pick,
    },
    Servers {
        bound: Vec<WorkId>,
        servers: Vec<CardServer>,
        cursor: usize,
    },
    MergeChoice {
        id: WorkId,
        base: String,
        behind: u32,
        /// Whether a frame has shown the overlay. It may open without a key, so earlier keys are
        /// ignored.
        is_shown: bool,
    },
    /// The offer to resume the conversation of an item, before this start.
    ResumeFirst {
        id: WorkId,
        start: CardOperation,
    },
    Cleanup {
        items: Vec<Cleaning>,
        scroll: usize,
    },
    /// The question after a start that failed in an init command and can be continued.
    InitFailed {
        id: WorkId,
        why: String,
        /// The retry of the start, without the failed command.
        go_on: CommandDraft,
        /// Whether a frame has shown the overlay. It opens without a key, so earlier keys are
        /// ignored.
        is_shown: bool,
    },
    Confirm {
        question: String,
        lines: Vec<String>,
        drafts: Vec<CommandDraft>,
        scroll: usize,
        /// Whether a frame has shown the overlay. It may open without a key, so earlier keys are
        /// ignored.
        is_shown: bool,
    },
    /// The escalations that are not closed. The selection is bound to an escalation; `row` is its
    /// last known position.
    Escalations {
        at: Option<WorkId>,
        row: usize,
    },
    /// The entries of the merge queue. The selection is bound to an entry; `row` is its last known
    /// position.
    MergeQueue {
        at: Option<WorkId>,
        row: usize,
    },
    /// The offer to restore the agents that were lost with their tmux server.
    Restore {
        agents: Vec<String>,
        scroll: usize,
        /// Whether a frame has shown the overlay. It may open without a key, so earlier keys are
        /// ignored.
        is_shown: bool,
    },
    /// The scopes of an emergency stop: the town (`None`) and its rigs, each with whether it was
    /// stopped when the overlay was opened.
    EmergencyStop {
        scopes: Vec<(Option<String>, bool)>,
        cursor: usize,
    },
    Answer {
        items: Vec<AskedItem>,
        input: TextInput,
        scroll: usize,
    },
    /// A text of several lines.
    Write {
        purpose: WritePurpose,
        about: Vec<String>,
        input: TextInput,
        /// Whether a frame has shown the overlay. It opens again without a key if the command fails,
        /// so earlier keys are ignored.
        is_shown: bool,
    },
    /// The fields of a new item, or of one that is changed.
    Form {
        form: ItemForm,
    },
    /// The workers that an item can be given to.
    Workers {
        bound: Vec<WorkId>,
        /// The addresses of the rows; `None` is a polecat.
        agents: Vec<Option<String>>,
        pick: Pick,
    },
    /// A comment on a line of the diff.
    Comment {
        id: WorkId,
        place: DiffPlace,
        quoted: String,
        input: TextInput,
    },
    Help {
        /// The mode whose keys are listed first.
        first: KeyMode,
        /// Whether the keys of all modes are listed.
        shows_all: bool,
        search: TextInput,
        is_typing: bool,
        scroll: usize,
    },
    Log {
        scroll: usize,
    },
}

/// The use of a typed text, with the items and the agents that worked on them when the overlay was
/// opened.
#[derive(Debug)]
pub(crate) enum WritePurpose {
    Nudge(Vec<(WorkId, String)>),
    Handoff(Vec<(WorkId, String)>),
    Escalate(WorkId),
    /// The reason for which an entry of the merge queue is rejected.
    Reject(WorkId),
}

/// One item of a cleanup, with the result of its dry run once that is known.
#[derive(Debug)]
pub(crate) struct Cleaning {
    pub(crate) id: WorkId,
    pub(crate) order: u64,
    pub(crate) foreseen: Option<Result<Vec<String>, String>>,
    /// Whether a frame has shown the result: a confirmation before that is ignored.
    pub(crate) is_shown: bool,
}

/// One item of an answer, with its question once that has been read.
#[derive(Debug)]
pub(crate) struct AskedItem {
    pub(crate) id: WorkId,
    /// The agent of the item when the overlay was opened.
    pub(crate) agent: String,
    /// The window of the program that asks, if it is not the agent itself.
    pub(crate) window: Option<String>,
    pub(crate) order: u64,
    pub(crate) question: Option<Result<Question, String>>,
    /// Whether a frame has shown the question: an answer before that is ignored.
    pub(crate) is_shown: bool,
}

impl Overlay {
    pub(crate) fn mode(&self) -> KeyMode {
        match self {
            Overlay::Actions { .. } => KeyMode::Actions,
            Overlay::Go { .. } => KeyMode::Go,
            Overlay::Search { .. } => KeyMode::Search,
            Overlay::Filter { .. } => KeyMode::Filter,
            Overlay::Sort { .. } => KeyMode::Sort,
            Overlay::Palette { .. } | Overlay::Projects { .. } | Overlay::Workers { .. } => {
                KeyMode::Pick
            }
            Overlay::Servers { .. } => KeyMode::Servers,
            Overlay::MergeChoice { .. } => KeyMode::MergeChoice,
            Overlay::ResumeFirst { .. } => KeyMode::ResumeFirst,
            Overlay::Cleanup { .. } => KeyMode::Cleanup,
            Overlay::InitFailed { .. } => KeyMode::InitFailed,
            Overlay::Escalations { .. } => KeyMode::Escalations,
            Overlay::MergeQueue { .. } => KeyMode::MergeQueue,
            Overlay::EmergencyStop { .. } => KeyMode::EmergencyStop,
            Overlay::Confirm { .. } | Overlay::Restore { .. } => KeyMode::Confirm,
            Overlay::Answer { .. } | Overlay::Comment { .. } => KeyMode::Write,
            Overlay::Write { .. } => KeyMode::Message,
            Overlay::Form { .. } => KeyMode::Form,
            Overlay::Help {
                is_typing: true, ..
            } => KeyMode::Search,
            Overlay::Help { .. } | Overlay::Log { .. } => KeyMode::Read,
        }
    }

    /// Returns whether the overlay is a box over the view.
    pub(crate) fn covers_the_view(&self) -> bool {
        !matches!(self, Overlay::Go { .. } | Overlay::Search { .. })
    }

    /// Returns the cards that the overlay is about.
    pub(crate) fn cards(&self) -> Vec<&WorkId> {
        match self {
            Overlay::Actions { bound, .. }
            | Overlay::Palette { bound, .. }
            | Overlay::Servers { bound, .. } => bound.iter().collect(),
            Overlay::MergeChoice { id, .. } | Overlay::InitFailed { id, .. } => vec![id],
            Overlay::Cleanup { items, .. } => items.iter().map(|item| &item.id).collect(),
            Overlay::Confirm { drafts, .. } => {
                drafts.iter().filter_map(|it| it.item.as_ref()).collect()
            }
            Overlay::Answer { items, .. } => items.iter().map(|item| &item.id).collect(),
            Overlay::Write { purpose, .. } => match purpose {
                WritePurpose::Nudge(bound) | WritePurpose::Handoff(bound) => {
                    bound.iter().map(|(id, _)| id).collect()
                }
                WritePurpose::Escalate(id) => vec![id],
                WritePurpose::Reject(_) => Vec::new(),
            },
            Overlay::ResumeFirst { id, .. } => vec![id],
            Overlay::Workers { bound, .. } => bound.iter().collect(),
            _ => Vec::new(),
        }
    }

    /// Returns the input line for typed or pasted text.
    pub(crate) fn input(&mut self) -> Option<&mut TextInput> {
        match self {
            Overlay::Search { input }
            | Overlay::Answer { input, .. }
            | Overlay::Write { input, .. }
            | Overlay::Comment { input, .. } => Some(input),
            Overlay::Help {
                search,
                is_typing: true,
                ..
            } => Some(search),
            Overlay::Palette { pick, .. }
            | Overlay::Projects { pick }
            | Overlay::Workers { pick, .. } => Some(&mut pick.input),
            Overlay::Form { form } => form.input(),
            _ => None,
        }
    }

    /// Returns the form if it waits for its item. It keeps input until then.
    pub(crate) fn waiting_form(&mut self) -> Option<&mut ItemForm> {
        match self {
            Overlay::Form { form } => Some(form).filter(|form| form.waits_for_item()),
            _ => None,
        }
    }

    /// Marks the overlay as not shown yet, because it opens again without a key.
    pub(crate) fn hide_until_drawn(&mut self) {
        match self {
            Overlay::Write { is_shown, .. } => *is_shown = false,
            Overlay::Form { form } => form.is_shown = false,
            _ => {}
        }
    }

    /// Returns whether the overlay opened without a key and no frame has shown it yet. Keys pressed
    /// before that are meant for the view below.
    pub(crate) fn is_unseen(&self) -> bool {
        match self {
            Overlay::InitFailed { is_shown, .. }
            | Overlay::Confirm { is_shown, .. }
            | Overlay::MergeChoice { is_shown, .. }
            | Overlay::Restore { is_shown, .. }
            | Overlay::Write { is_shown, .. } => !is_shown,
            Overlay::Form { form } => !form.is_shown,
            _ => false,
        }
    }
}

/// A list from which the user selects one row, narrowed by a search.
#[derive(Debug)]
pub(crate) struct Pick {
    pub(crate) input: TextInput,
    texts: Vec<String>,
    /// Indices of the matching texts, the best first.
    pub(crate) found: Vec<usize>,
    pub(crate) cursor: usize,
}

impl Pick {
    pub(crate) fn new(texts: Vec<String>) -> Self {
        Pick {
            input: TextInput::default(),
            found: (0..texts.len()).collect(),
            texts,
            cursor: 0,
        }
    }

    /// Returns the number of texts, shown or not.
    pub(crate) fn count(&self) -> usize {
        self.texts.len()
    }

    pub(crate) fn text(&self, number: usize) -> &str {
        &self.texts[number]
    }

    /// Updates the matches after the input has changed.
    pub(crate) fn search(&mut self) {
        self.found = search::ranked(self.input.text(), &self.texts);
        self.cursor = 0;
    }

    pub(crate) fn step(&mut self, down: bool) {
        self.cursor = step(self.cursor, self.found.len(), down);
    }

    pub(crate) fn chosen(&self) -> Option<usize> {
        self.found.get(self.cursor).copied()
    }
}

/// Returns the next or previous row, wrapping around at the ends.
pub(crate) fn step(cursor: usize, rows: usize, down: bool) -> usize {
    if rows == 0 {
        return 0;
    }
    match down {
        true => (cursor + 1) % rows,
        false => (cursor + rows - 1) % rows,
    }
}

/// Returns the rows of the action menu.
pub(crate) fn action_rows() -> impl Iterator<Item = (&'static Binding, CardOperation)> {
    keys::rows(KeyMode::Actions).filter_map(|row| match row.action {
        crate::action::BoardAction::Card(operation) if !row.keys.is_empty() => {
            Some((row, operation))
        }
        _ => None,
    })
}

/// Returns the rows of the palette: all operations, and the rows of the view in which it was
/// opened.
pub(crate) fn commands(mode: KeyMode) -> Vec<&'static Binding> {
    let operations = keys::rows(KeyMode::Actions)
        .filter(|row| matches!(row.action, crate::action::BoardAction::Card(_)));
    operations.chain(keys::rows(mode)).collect()
}

/// Returns labels for `count` cards, without `g` and `e`, which are bound in this mode.
pub(crate) fn labels(count: usize) -> Vec<String> {
    const LETTERS: &str = "asdfjklhwruioqptzxcvbnmy";
    if count <= LETTERS.len() {
        return LETTERS.chars().take(count).map(String::from).collect();
    }
    let pairs = LETTERS.chars().flat_map(|first| {
        LETTERS.chars().map(move |second| {
            let mut label = String::from(first);
            label.push(second);
            label
        })
    });
    pairs.take(count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_label_is_a_prefix_of_another() {
        for count in [0, 1, 24, 25, 400] {
            let labels = labels(count);
            assert_eq!(labels.len(), count);
            for (number, label) in labels.iter().enumerate() {
                assert!(!label.starts_with(['g', 'e']), "those are taken");
                let same = labels[..number].iter().any(|other| {
                    other.starts_with(label.as_str()) || label.starts_with(other.as_str())
                });
                assert!(!same, "{label}");
            }
        }
    }

    #[test]
    fn steps_go_round() {
        assert_eq!(step(0, 3, false), 2);
        assert_eq!(step(2, 3, true), 0);
        assert_eq!(step(5, 0, true), 0);
    }
}

//! What lies over the view and has the keys. Each is bound to the cards that it was
//! opened for: what moves meanwhile does not change whom it is about.

use crate::action::Deed;
use crate::command::Draft;
use crate::filter::Trait;
use crate::input::Input;
use crate::keys::{self, Binding, Mode};
use crate::{Question, search};
use gt_core::card::Server;
use gt_core::work::WorkId;

#[derive(Debug)]
pub(crate) enum Overlay {
    Actions {
        bound: Vec<WorkId>,
        cursor: usize,
    },
    Go {
        labels: Vec<(String, WorkId)>,
        typed: String,
    },
    Search {
        input: Input,
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
        /// Which mode's rows go before the deeds.
        mode: Mode,
        pick: Pick,
    },
    Projects {
        pick: Pick,
    },
    Servers {
        bound: Vec<WorkId>,
        servers: Vec<Server>,
        cursor: usize,
    },
    MergeChoice {
        id: WorkId,
        base: String,
        behind: u32,
    },
    Cleanup {
        items: Vec<Cleaning>,
        scroll: usize,
    },
    /// A start has failed in a way that it can go on from.
    InitFailed {
        id: WorkId,
        why: String,
        /// The start again, without what has failed.
        go_on: Draft,
        /// A frame has shown it: it comes by itself, and keys before that were not for it.
        is_shown: bool,
    },
    Confirm {
        question: String,
        lines: Vec<String>,
        drafts: Vec<Draft>,
        scroll: usize,
        /// A frame has shown it: it may come by itself, and keys before that were not for it.
        is_shown: bool,
    },
    Answer {
        items: Vec<Asked>,
        input: Input,
        scroll: usize,
    },
    /// A message.
    Write {
        /// Items and the agents that were at them.
        bound: Vec<(WorkId, String)>,
        about: Vec<String>,
        input: Input,
    },
    Help {
        /// The mode whose keys are told first.
        first: Mode,
        scroll: usize,
    },
    Log {
        scroll: usize,
    },
}

/// One item of a cleanup, with what it would do once that is known.
#[derive(Debug)]
pub(crate) struct Cleaning {
    pub(crate) id: WorkId,
    pub(crate) order: u64,
    pub(crate) foreseen: Option<Result<Vec<String>, String>>,
    /// A frame has shown that: nobody agrees to what was not to be read.
    pub(crate) is_shown: bool,
}

/// One item of an answer, with what is asked there once that is read.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) id: WorkId,
    /// Who was at it when the answer was begun.
    pub(crate) agent: String,
    /// The window beside that agent whose program asks, if it is not the agent.
    pub(crate) window: Option<String>,
    pub(crate) order: u64,
    pub(crate) question: Option<Result<Question, String>>,
    /// A frame has shown that: nobody answers what was not to be read.
    pub(crate) is_shown: bool,
}

impl Overlay {
    pub(crate) fn mode(&self) -> Mode {
        match self {
            Overlay::Actions { .. } => Mode::Actions,
            Overlay::Go { .. } => Mode::Go,
            Overlay::Search { .. } => Mode::Search,
            Overlay::Filter { .. } => Mode::Filter,
            Overlay::Sort { .. } => Mode::Sort,
            Overlay::Palette { .. } | Overlay::Projects { .. } => Mode::Pick,
            Overlay::Servers { .. } => Mode::Servers,
            Overlay::MergeChoice { .. } => Mode::MergeChoice,
            Overlay::Cleanup { .. } => Mode::Cleanup,
            Overlay::InitFailed { .. } => Mode::InitFailed,
            Overlay::Confirm { .. } => Mode::Confirm,
            Overlay::Answer { .. } | Overlay::Write { .. } => Mode::Write,
            Overlay::Help { .. } | Overlay::Log { .. } => Mode::Read,
        }
    }

    /// Where text goes that is typed or pasted.
    pub(crate) fn input(&mut self) -> Option<&mut Input> {
        match self {
            Overlay::Search { input }
            | Overlay::Answer { input, .. }
            | Overlay::Write { input, .. } => Some(input),
            Overlay::Palette { pick, .. } | Overlay::Projects { pick } => Some(&mut pick.input),
            _ => None,
        }
    }
}

/// A list out of which one is taken, narrowed by what is typed.
#[derive(Debug)]
pub(crate) struct Pick {
    pub(crate) input: Input,
    texts: Vec<String>,
    /// Numbers of texts that fit, the best first.
    pub(crate) found: Vec<usize>,
    pub(crate) cursor: usize,
}

impl Pick {
    pub(crate) fn new(texts: Vec<String>) -> Self {
        Pick {
            input: Input::default(),
            found: (0..texts.len()).collect(),
            texts,
            cursor: 0,
        }
    }

    pub(crate) fn text(&self, number: usize) -> &str {
        &self.texts[number]
    }

    /// After the line was edited.
    pub(crate) fn search(&mut self) {
        self.found = search::ranked(self.input.text(), &self.texts);
        self.cursor = 0;
    }

    pub(crate) fn step(&mut self, down: bool) {
        self.cursor = step(self.cursor, self.found.len(), down);
    }

    pub(crate) fn taken(&self) -> Option<usize> {
        self.found.get(self.cursor).copied()
    }
}

/// The next row, or the one before; the ends are met.
pub(crate) fn step(cursor: usize, rows: usize, down: bool) -> usize {
    if rows == 0 {
        return 0;
    }
    match down {
        true => (cursor + 1) % rows,
        false => (cursor + rows - 1) % rows,
    }
}

/// The rows of the action menu.
pub(crate) fn deeds() -> impl Iterator<Item = (&'static Binding, Deed)> {
    keys::rows(Mode::Actions).filter_map(|row| match row.action {
        crate::action::Action::Do(deed) if !row.keys.is_empty() => Some((row, deed)),
        _ => None,
    })
}

/// What the palette offers: the rows of the view it was opened in, and all deeds.
pub(crate) fn commands(mode: Mode) -> Vec<&'static Binding> {
    let deeds =
        keys::rows(Mode::Actions).filter(|row| matches!(row.action, crate::action::Action::Do(_)));
    deeds.chain(keys::rows(mode)).collect()
}

/// Labels for so many cards, without the letters that mean something of their own.
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
    fn labels_are_told_apart_by_their_first_letters() {
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

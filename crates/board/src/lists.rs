//! The columns as sorted lists of cards.
//!
//! The lists are rebuilt only when the data, the search, the filter, the sort order or the project
//! changes. A frame reads only the cards that it draws.

use crate::BoardFacts;
use crate::filter::CardFilter;
use crate::search::{Search, searchable_text};
use crate::sort::{self, Sort};
use gt_core::card::{Card, Column};
use gt_core::work::WorkId;
use nucleo_matcher::Utf32String;
use std::collections::HashMap;

/// Selection and order of the visible cards.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lens {
    pub(crate) project: Option<String>,
    pub(crate) query: String,
    pub(crate) filter: CardFilter,
    pub(crate) sort: Sort,
    pub(crate) reversed: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Lists {
    /// Indices of cards, by column.
    columns: [Vec<usize>; 5],
    /// The position of each card, or `None` if it is not shown.
    places: Vec<Option<(Column, usize)>>,
    numbers: HashMap<WorkId, usize>,
    haystacks: Vec<Utf32String>,
    /// The card with the best search score.
    pub(crate) best: Option<usize>,
    /// The number of cards in the selected project, shown or not.
    pub(crate) all: usize,
}

impl Lists {
    /// Rebuilds everything for new data.
    pub(crate) fn rebuild(&mut self, facts: &BoardFacts, lens: &Lens) {
        self.haystacks = facts.cards.iter().map(searchable_text).collect();
        self.numbers = facts
            .cards
            .iter()
            .enumerate()
            .map(|(number, card)| (card.id.clone(), number))
            .collect();
        self.arrange(facts, lens);
    }

    /// Rebuilds the columns for a new selection or order of unchanged data.
    pub(crate) fn arrange(&mut self, facts: &BoardFacts, lens: &Lens) {
        for column in &mut self.columns {
            column.clear();
        }
        self.best = None;
        self.all = 0;
        let mut best_score = 0;
        let mut search = (!lens.query.trim().is_empty()).then(|| Search::new(&lens.query));
        for (number, card) in facts.cards.iter().enumerate() {
            if lens.project.is_some() && card.rig != lens.project {
                continue;
            }
            self.all += 1;
            if !lens.filter.matches(card, facts.me.as_deref()) {
                continue;
            }
            if let Some(search) = &mut search {
                let Some(score) = search.score(&self.haystacks[number]) else {
                    continue;
                };
                if score > best_score {
                    best_score = score;
                    self.best = Some(number);
                }
            }
            self.columns[card.column() as usize].push(number);
        }
        self.places = vec![None; facts.cards.len()];
        for column in Column::ALL {
            let list = &mut self.columns[column as usize];
            list.sort_by(|a, b| {
                let (a, b) = (&facts.cards[*a], &facts.cards[*b]);
                sort::compare(lens.sort, lens.reversed, column, a, b)
            });
            for (position, number) in list.iter().enumerate() {
                self.places[*number] = Some((column, position));
            }
        }
    }

    pub(crate) fn column(&self, column: Column) -> &[usize] {
        &self.columns[column as usize]
    }

    pub(crate) fn shown(&self) -> usize {
        self.columns.iter().map(Vec::len).sum()
    }

    pub(crate) fn card<'a>(&self, facts: &'a BoardFacts, id: &WorkId) -> Option<&'a Card> {
        self.numbers.get(id).map(|number| &facts.cards[*number])
    }

    /// Returns the column of a card and its position there, if it is shown.
    pub(crate) fn place(&self, id: &WorkId) -> Option<(Column, usize)> {
        let number = self.numbers.get(id)?;
        self.places.get(*number).copied().flatten()
    }
}

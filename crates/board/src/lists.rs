//! The columns as lists of cards: what is in which, in which order.
//!
//! They are made anew when the facts, the search, the filter, the order or the project
//! change, and only then. A frame looks at no card that it does not draw.

use crate::Facts;
use crate::filter::Filter;
use crate::search::{Search, haystack};
use crate::sort::{self, Sort};
use gt_core::card::{Card, Column};
use gt_core::work::WorkId;
use nucleo_matcher::Utf32String;
use std::collections::HashMap;

/// Through what the cards are seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lens {
    pub(crate) project: Option<String>,
    pub(crate) query: String,
    pub(crate) filter: Filter,
    pub(crate) sort: Sort,
    pub(crate) reversed: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Lists {
    /// Numbers of cards, by column.
    columns: [Vec<usize>; 5],
    /// Where each card stands, if it is shown.
    places: Vec<Option<(Column, usize)>>,
    numbers: HashMap<WorkId, usize>,
    haystacks: Vec<Utf32String>,
    /// The card that the search fits best.
    pub(crate) best: Option<usize>,
    /// How many of the project there are, shown or not.
    pub(crate) all: usize,
}

impl Lists {
    /// For new facts.
    pub(crate) fn learn(&mut self, facts: &Facts, lens: &Lens) {
        self.haystacks = facts.cards.iter().map(haystack).collect();
        self.numbers = facts
            .cards
            .iter()
            .enumerate()
            .map(|(number, card)| (card.id.clone(), number))
            .collect();
        self.arrange(facts, lens);
    }

    /// For another look at the same facts.
    pub(crate) fn arrange(&mut self, facts: &Facts, lens: &Lens) {
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
            if !lens.filter.lets(card, facts.me.as_deref()) {
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

    pub(crate) fn card<'a>(&self, facts: &'a Facts, id: &WorkId) -> Option<&'a Card> {
        self.numbers.get(id).map(|number| &facts.cards[*number])
    }

    /// The column that a card is shown in, and its place there.
    pub(crate) fn place(&self, id: &WorkId) -> Option<(Column, usize)> {
        let number = self.numbers.get(id)?;
        self.places.get(*number).copied().flatten()
    }
}

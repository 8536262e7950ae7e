//! Fuzzy search.

use gt_core::card::Card;
use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32String};
use std::fmt;

/// Returns the searchable text of a card: its id, its title and its labels.
pub(crate) fn searchable_text(card: &Card) -> Utf32String {
    let mut text = format!("{} {}", card.id, card.title);
    for label in &card.labels {
        text.push(' ');
        text.push_str(label);
    }
    Utf32String::from(text)
}

/// A query that is matched against many texts.
pub(crate) struct Search {
    pattern: Pattern,
    matcher: Matcher,
}

impl fmt::Debug for Search {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Search")
            .field("pattern", &self.pattern)
            .finish_non_exhaustive()
    }
}

impl Search {
    pub(crate) fn new(query: &str) -> Self {
        Search {
            pattern: Pattern::parse(query, CaseMatching::Smart, Normalization::Smart),
            matcher: Matcher::new(Config::DEFAULT),
        }
    }

    /// Returns the score of a text, or `None` if it does not match.
    pub(crate) fn score(&mut self, text: &Utf32String) -> Option<u32> {
        self.pattern.score(text.slice(..), &mut self.matcher)
    }
}

/// Returns the indices of the matching texts, the best first; all of them for an empty query.
pub(crate) fn ranked(query: &str, texts: &[String]) -> Vec<usize> {
    let mut search = Search::new(query);
    let mut found: Vec<(u32, usize)> = texts
        .iter()
        .enumerate()
        .filter_map(|(number, text)| {
            let score = search.score(&Utf32String::from(text.as_str()))?;
            Some((score, number))
        })
        .collect();
    found.sort_by_key(|(score, number)| (std::cmp::Reverse(*score), *number));
    found.into_iter().map(|(_, number)| number).collect()
}

//! Filters cards by state, type, priority, harness and assignee.
//!
//! A card matches if, in each group with selected traits, at least one of them holds.

use gt_core::card::Card;
use std::collections::BTreeSet;

/// A property of a card that can be selected.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Trait {
    Mine,
    Blocked,
    /// Neither blocked nor started.
    Ready,
    State(String),
    Type(String),
    Priority(u8),
    Harness(String),
}

impl Trait {
    /// Returns the group of the trait, as a heading.
    pub(crate) fn group(&self) -> &'static str {
        match self {
            Trait::Mine | Trait::Blocked | Trait::Ready => "is",
            Trait::State(_) => "state",
            Trait::Type(_) => "type",
            Trait::Priority(_) => "priority",
            Trait::Harness(_) => "harness",
        }
    }

    pub(crate) fn value(&self) -> String {
        match self {
            Trait::Mine => "mine".to_owned(),
            Trait::Blocked => "blocked".to_owned(),
            Trait::Ready => "ready".to_owned(),
            Trait::State(word) | Trait::Type(word) | Trait::Harness(word) => word.clone(),
            Trait::Priority(number) => format!("P{number}"),
        }
    }

    /// Returns the trait as text for a file, such as `state:busy`.
    pub(crate) fn token(&self) -> String {
        format!("{}:{}", self.group(), self.value())
    }

    /// Parses a text of [`Trait::token`].
    pub(crate) fn parse(token: &str) -> Option<Trait> {
        let (group, value) = token.split_once(':')?;
        let word = || value.to_owned();
        Some(match (group, value) {
            ("is", "mine") => Trait::Mine,
            ("is", "blocked") => Trait::Blocked,
            ("is", "ready") => Trait::Ready,
            ("state", _) => Trait::State(word()),
            ("type", _) => Trait::Type(word()),
            ("priority", _) => Trait::Priority(value.strip_prefix('P')?.parse().ok()?),
            ("harness", _) => Trait::Harness(word()),
            _ => return None,
        })
    }

    fn holds(&self, card: &Card, me: Option<&str>) -> bool {
        let session = card.session.as_ref();
        match self {
            Trait::Mine => me.is_some() && card.assignee.as_deref() == me,
            Trait::Blocked => !card.blocked_by.is_empty(),
            Trait::Ready => {
                card.blocked_by.is_empty() && card.column() == gt_core::card::Column::Open
            }
            Trait::State(word) => state_word(card) == word,
            Trait::Type(word) => card.kind == *word,
            Trait::Priority(number) => card.priority == *number,
            Trait::Harness(word) => {
                session.and_then(|session| session.harness.as_deref()) == Some(word)
            }
        }
    }
}

fn state_word(card: &Card) -> &'static str {
    card.session
        .as_ref()
        .map_or("no session", |session| session.state.as_str())
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CardFilter {
    pub(crate) wanted: BTreeSet<Trait>,
}

impl CardFilter {
    pub(crate) fn is_empty(&self) -> bool {
        self.wanted.is_empty()
    }

    pub(crate) fn toggle(&mut self, wanted: Trait) {
        if !self.wanted.remove(&wanted) {
            self.wanted.insert(wanted);
        }
    }

    pub(crate) fn matches(&self, card: &Card, me: Option<&str>) -> bool {
        // The traits are sorted, so those of one group are adjacent.
        let mut rest = self.wanted.iter().peekable();
        while let Some(first) = rest.next() {
            let mut holds = first.holds(card, me);
            while let Some(next) = rest.next_if(|next| next.group() == first.group()) {
                holds |= next.holds(card, me);
            }
            if !holds {
                return false;
            }
        }
        true
    }

    pub(crate) fn describe(&self) -> String {
        let words: Vec<String> = self.wanted.iter().map(Trait::value).collect();
        words.join(" ")
    }
}

/// Returns the traits of all cards, and the selected traits that no card has.
pub(crate) fn choices(cards: &[Card], filter: &CardFilter) -> Vec<Trait> {
    let mut found = filter.wanted.clone();
    found.extend([Trait::Mine, Trait::Blocked, Trait::Ready]);
    for card in cards {
        found.insert(Trait::State(state_word(card).to_owned()));
        found.insert(Trait::Type(card.kind.clone()));
        found.insert(Trait::Priority(card.priority));
        let harness = card
            .session
            .as_ref()
            .and_then(|session| session.harness.clone());
        found.extend(harness.map(Trait::Harness));
    }
    found.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traits_survive_their_text() {
        for wanted in [
            Trait::Mine,
            Trait::Blocked,
            Trait::Ready,
            Trait::State("no session".to_owned()),
            Trait::Type("bug".to_owned()),
            Trait::Priority(4),
            Trait::Harness("a:b".to_owned()),
        ] {
            assert_eq!(Trait::parse(&wanted.token()), Some(wanted));
        }
        for text in ["", "is:other", "priority:4", "priority:P999", "nothing"] {
            assert_eq!(Trait::parse(text), None, "{text}");
        }
    }
}

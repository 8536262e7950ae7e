//! The order of cards in a column.

use gt_core::card::{Card, Column};
use gt_core::state::State;
use std::cmp::{Ordering, Reverse};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// A different order for each column: cards that need a person by age, finished cards by their
    /// last update, the rest by priority.
    #[default]
    Usual,
    Priority,
    Age,
    Id,
    State,
    Updated,
}

impl Sort {
    pub const ALL: [Sort; 6] = [
        Sort::Usual,
        Sort::Priority,
        Sort::Age,
        Sort::Id,
        Sort::State,
        Sort::Updated,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Sort::Usual => "usual",
            Sort::Priority => "priority",
            Sort::Age => "age",
            Sort::Id => "id",
            Sort::State => "state",
            Sort::Updated => "updated",
        }
    }
}

/// Compares two cards of a column.
pub(crate) fn compare(sort: Sort, reversed: bool, column: Column, a: &Card, b: &Card) -> Ordering {
    let by_priority = || a.priority.cmp(&b.priority);
    let by_age = || a.since().cmp(&b.since());
    let order = match (sort, column) {
        (Sort::Age, _) | (Sort::Usual, Column::NeedsYou) => by_age().then_with(by_priority),
        (Sort::Updated, _) | (Sort::Usual, Column::Done) => {
            Reverse(a.updated_at).cmp(&Reverse(b.updated_at))
        }
        (Sort::Usual | Sort::Priority, _) => by_priority().then_with(by_age),
        (Sort::Id, _) => Ordering::Equal,
        (Sort::State, _) => rank(a).cmp(&rank(b)).then_with(by_age),
    };
    let order = if reversed { order.reverse() } else { order };
    // The id as a last criterion makes the order deterministic.
    order.then_with(|| {
        let by_id = a.id.cmp(&b.id);
        if reversed && sort == Sort::Id {
            by_id.reverse()
        } else {
            by_id
        }
    })
}

/// Returns the rank of a card by its state; states that need attention come first.
fn rank(card: &Card) -> u8 {
    match card.state() {
        _ if card.asking_program().is_some() => 0,
        _ if card.resolver_needs_you().is_some() => 1,
        Some(State::Waiting) => 0,
        Some(State::Error | State::Limited | State::Crashed) => 1,
        Some(State::Done) => 2,
        Some(State::Idle) => 3,
        Some(State::Paused) => 4,
        Some(State::Busy | State::Running) => 5,
        Some(State::Starting | State::Initializing) => 6,
        Some(State::Exited) => 7,
        Some(State::Stopped) => 8,
        None => 9,
    }
}

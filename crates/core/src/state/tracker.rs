//! Changes of an agent's state over a series of observations.

use super::report::{ObservedPane, StateReport};
use super::{State, StateSource, judge};
use crate::harness::Preset;
use crate::patterns::Patterns;

/// State of one agent over a series of observations: the time since when it is in its state, and
/// the changes.
#[derive(Clone, Debug, Default)]
pub struct Tracker {
    last: Option<StateReport>,
}

/// Change of an agent's state, or of the reason for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateChange {
    /// `None` for the first observation.
    pub before: Option<StateReport>,
    pub now: StateReport,
}

impl StateChange {
    /// Returns whether the state has changed, and not only its reason.
    pub fn is_of_state(&self) -> bool {
        self.before.as_ref().map(|before| before.state) != Some(self.now.state)
    }
}

impl Tracker {
    /// Returns the report of the last observation.
    pub fn last(&self) -> Option<&StateReport> {
        self.last.as_ref()
    }

    /// Takes one observation, made at `now`, and returns the change that it brings.
    pub fn observe(
        &mut self,
        now: i64,
        seen: &ObservedPane<'_>,
        preset: Option<&Preset>,
        patterns: &Patterns,
    ) -> Option<StateChange> {
        self.take(now, judge(seen, preset, patterns))
    }

    /// Takes a report that [`judge`] has made and returns the change that it brings.
    pub fn take(&mut self, now: i64, mut report: StateReport) -> Option<StateChange> {
        let before = self.last.take();
        let same = before.as_ref().filter(|it| it.state == report.state);
        let is_new = same.is_none_or(|before| before.reason != report.reason);
        // A source that repeats a state does not restart it. A different question does.
        let goes_on = same.filter(|_| !is_new || report.state != State::Waiting);
        let is_shown = matches!(report.source, StateSource::Screen | StateSource::Title);
        let earlier = before.as_ref().and_then(|before| before.since);
        report.since = match (goes_on.and_then(|before| before.since), report.since) {
            (Some(since), told) => Some(told.map_or(since, |told| told.min(since))),
            // A state from the screen or the title cannot begin before the state that preceded it.
            (None, told @ Some(_)) if is_shown => told.max(earlier),
            (None, told) => told.or(Some(now)),
        };
        self.last = Some(report.clone());
        is_new.then_some(StateChange {
            before,
            now: report,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_add_up_to_changes() {
        let mut tracker = Tracker::default();
        let report = |state, since, reason: &str| StateReport {
            state,
            source: StateSource::Screen,
            since,
            reason: Some(reason.into()),
            background: 0,
            limit: None,
        };
        let mut take = |now, report| {
            let change = tracker.take(now, report);
            let since = tracker.last().unwrap().since.unwrap();
            (change.map(|change| change.is_of_state()), since)
        };
        let (busy, asks) = (State::Busy, State::Waiting);
        assert_eq!(take(10, report(busy, None, "a")), (Some(true), 10));
        assert_eq!(take(11, report(busy, None, "a")), (None, 10));
        assert_eq!(take(12, report(busy, None, "b")), (Some(false), 10));
        assert_eq!(take(13, report(busy, Some(8), "b")), (None, 8));
        assert_eq!(take(14, report(busy, Some(14), "b")), (None, 8));
        assert_eq!(take(15, report(asks, None, "asks: x")), (Some(true), 15));
        assert_eq!(take(16, report(asks, None, "asks: x")), (None, 15));
        assert_eq!(take(17, report(asks, None, "asks: y")), (Some(false), 17));
        assert_eq!(take(18, report(busy, Some(17), "c")), (Some(true), 17));
    }

    #[test]
    fn a_state_that_only_shows_has_not_begun_before_the_last_one() {
        let mut tracker = Tracker::default();
        let mut take = |now, state, source, since| {
            let report = StateReport {
                state,
                source,
                since: Some(since),
                reason: None,
                background: 0,
                limit: None,
            };
            tracker.take(now, report);
            tracker.last().unwrap().since.unwrap()
        };
        assert_eq!(take(20, State::Busy, StateSource::Screen, 10), 10);
        assert_eq!(take(31, State::Idle, StateSource::Screen, 30), 30);
        // The agent went on by itself: no input since.
        assert_eq!(take(40, State::Busy, StateSource::Screen, 10), 30);
        assert_eq!(take(41, State::Busy, StateSource::Screen, 41), 30);
        // A hook is more trusted than the screen.
        assert_eq!(take(42, State::Idle, StateSource::Hook, 29), 29);
    }
}

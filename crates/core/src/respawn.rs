//! Decides when to restart an agent that keeps dying, in which conversation and with which prompt,
//! and when to give up.

use crate::Role;
use crate::record::{Outcome, Record};

/// Time without a death after which an agent counts as healthy again.
pub const WELL_AFTER_SECONDS: u64 = 600;
/// Delay before the first respawn. It gives a person the time to act first.
const FIRST_WAIT_SECONDS: u64 = 3;
const LONGEST_WAIT_SECONDS: u64 = 300;
/// Maximum number of deaths, each within [`WELL_AFTER_SECONDS`] of the last, before giving up.
const MAX_DEATHS: usize = 8;
/// Minimum run time of a session that was resumed after a crash. If it crashes sooner, its
/// conversation is taken for the cause.
const RESUMED_WELL_AFTER_SECONDS: i64 = 60;

/// Action after a death.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RespawnDecision {
    /// Restart the agent this long after the death.
    After { seconds: u64 },
    /// Leave it dead, with its last screen for inspection.
    GiveUp { deaths: usize },
    /// Leave it dead, because it died too often over its work item.
    LeaveItem { deaths: usize },
}

/// Returns the deaths that still count: a long enough run without a death resets them.
pub fn recent_deaths(deaths: &[u64], now: u64) -> Vec<u64> {
    let mut recent: Vec<u64> = Vec::new();
    for death in deaths.iter().copied().chain([now]) {
        if recent
            .last()
            .is_some_and(|last| death.saturating_sub(*last) > WELL_AFTER_SECONDS)
        {
            recent.clear();
        }
        recent.push(death);
    }
    recent
}

/// Number of deaths over one work item, and the maximum.
#[derive(Clone, Copy, Debug, Default)]
pub struct ItemDeaths {
    pub deaths: usize,
    /// 0 means no maximum.
    pub most: usize,
}

/// Counts the deaths over one work item: the crashed sessions that had it and came up. A failed
/// start, such as a resume that the program refuses, is not evidence against the item. The session
/// that died just now counts even if `crashes` does not contain it yet.
pub fn deaths_over_item(crashes: &[Record], current: &str) -> usize {
    let came_up = |session: &&Record| session.failed_start != Some(true);
    let is_listed = crashes.iter().any(|session| session.id == current);
    crashes.iter().filter(came_up).count() + usize::from(!is_listed)
}

/// Decides from the recent deaths, including the present one, and from the deaths over the agent's
/// work item. Without this limit, an item that crashes every agent would be retried for ever,
/// however long each agent runs.
pub fn decide(recent: &[u64], over_item: ItemDeaths) -> RespawnDecision {
    let deaths = recent.len();
    if deaths > MAX_DEATHS {
        return RespawnDecision::GiveUp { deaths };
    }
    if over_item.most > 0 && over_item.deaths >= over_item.most {
        return RespawnDecision::LeaveItem {
            deaths: over_item.deaths,
        };
    }
    RespawnDecision::After {
        seconds: wait_seconds(deaths),
    }
}

/// Returns the delay of the respawn after this many recent deaths.
pub fn wait_seconds(deaths: usize) -> u64 {
    let doublings = u32::try_from(deaths.saturating_sub(1))
        .unwrap_or(u32::MAX)
        .min(16);
    (FIRST_WAIT_SECONDS << doublings).min(LONGEST_WAIT_SECONDS)
}

/// Returns whether the next session resumes the conversation of `ended`, which ended with `outcome`
/// after `seconds`. `parent` is the session before it.
pub fn resumes(
    ended: &Record,
    outcome: Outcome,
    seconds: Option<i64>,
    parent: Option<&Record>,
) -> bool {
    let was_resumed = parent.is_some_and(|parent| {
        parent.outcome == Some(Outcome::Crash)
            && parent.harness_session_id.is_some()
            && parent.harness_session_id == ended.harness_session_id
    });
    let died_young = seconds.is_some_and(|lived| lived < RESUMED_WELL_AFTER_SECONDS);
    outcome != Outcome::Crash || !was_resumed || !died_young
}

/// Returns the next prompt of a conversation that is resumed after its program has ended. `how`
/// describes the end.
pub fn prompt(role: Role, outcome: Outcome, how: &str) -> String {
    let without_work = role.without_work();
    match outcome {
        Outcome::Crash => format!(
            "Your program crashed ({how}). gt has started it again, in the same conversation. Look at \
             `git status` and `git log` first: the changes there are your own work. Then continue where you \
             stopped, without asking. If you had nothing to do, {without_work}."
        ),
        _ => format!(
            "Your program exited. gt has started it again, in the same conversation. Continue your previous \
             task. If you had none, {without_work}."
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_is_left_only_when_resuming_it_crashed() {
        let session = |id: &str, conversation: &str| Record {
            outcome: Some(Outcome::Crash),
            harness_session_id: Some(conversation.to_owned()),
            ..Record::about(id)
        };
        let ended = session("b", "c");
        let check = |parent: Option<&Record>, outcome, seconds, expected| {
            let resumed = resumes(&ended, outcome, seconds, parent);
            assert_eq!(resumed, expected, "{parent:?} {outcome:?} {seconds:?}");
        };
        let same = session("a", "c");
        check(None, Outcome::Crash, Some(1), true);
        check(Some(&same), Outcome::Crash, Some(1), false);
        check(Some(&same), Outcome::Crash, Some(60), true);
        check(Some(&same), Outcome::Crash, None, true);
        check(Some(&same), Outcome::Exited, Some(1), true);
        check(Some(&session("a", "other")), Outcome::Crash, Some(1), true);
        let left = Record {
            outcome: Some(Outcome::Exited),
            ..same.clone()
        };
        check(Some(&left), Outcome::Crash, Some(1), true);
    }

    #[test]
    fn a_clean_exit_is_not_called_a_crash() {
        assert!(
            prompt(Role::Crew, Outcome::Crash, "killed by signal 9")
                .contains("crashed (killed by signal 9)")
        );
        assert!(!prompt(Role::Crew, Outcome::Exited, "exit status 0").contains("crash"));
        let witness = prompt(Role::Witness, Outcome::Exited, "exit status 0");
        assert!(witness.contains("`gt done --exit`"), "{witness}");
    }

    #[test]
    fn waits_double_and_end() {
        let waits: Vec<RespawnDecision> = (1..=9)
            .map(|n| decide(&vec![0; n], ItemDeaths::default()))
            .collect();
        let seconds = |seconds| RespawnDecision::After { seconds };
        assert_eq!(
            waits,
            [
                seconds(3),
                seconds(6),
                seconds(12),
                seconds(24),
                seconds(48),
                seconds(96),
                seconds(192),
                seconds(300),
                RespawnDecision::GiveUp { deaths: 9 },
            ]
        );
    }

    #[test]
    fn an_item_that_kills_is_left() {
        let check = |deaths, most, expected| {
            assert_eq!(decide(&[0], ItemDeaths { deaths, most }), expected);
        };
        check(4, 5, RespawnDecision::After { seconds: 3 });
        check(5, 5, RespawnDecision::LeaveItem { deaths: 5 });
        check(99, 0, RespawnDecision::After { seconds: 3 });
    }

    #[test]
    fn failed_starts_are_no_deaths_over_an_item() {
        let crash = |id: &str, failed_start| Record {
            outcome: Some(Outcome::Crash),
            failed_start,
            ..Record::about(id)
        };
        let crashes = [crash("a", None), crash("b", Some(true)), crash("c", None)];
        assert_eq!(deaths_over_item(&crashes, "c"), 2, "listed already");
        assert_eq!(deaths_over_item(&crashes, "d"), 3, "not listed yet");
        assert_eq!(
            deaths_over_item(&crashes, "b"),
            2,
            "a failed start died last"
        );
        assert_eq!(deaths_over_item(&[], "a"), 1);
    }

    #[test]
    fn long_session_resets_the_count_of_deaths() {
        assert_eq!(recent_deaths(&[], 5), [5]);
        assert_eq!(recent_deaths(&[0, 100], 200), [0, 100, 200]);
        assert_eq!(recent_deaths(&[0, 100], 800), [800]);
        assert_eq!(recent_deaths(&[0, 700], 900), [700, 900]);
    }
}

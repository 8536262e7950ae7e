use super::*;
use crate::messaging::signal;
use crate::testing::TestTown;
use gt_core::Identity;
use gt_core::startup::tag;
use gt_tmux::Command;
use std::time::Duration;

/// A town with a clock that only the test advances, and two agents.
fn stage() -> (TestTown, crate::base::clock::Clock, [Identity; 2]) {
    let clock = crate::base::clock::Clock::stopped_at(jiff::Timestamp::now());
    let town = TestTown::with_clock(clock.clone());
    let agents = ["ada", "bob"].map(|name| town.agent(name));
    for agent in &agents {
        town.start(agent);
    }
    (town, clock, agents)
}

fn counts(town: &TestTown) -> [usize; 2] {
    let counts = StateCounts::read(&town.town, None).unwrap();
    [State::Running, State::Paused].map(|state| counts.of(state))
}

/// Replaces the stored counts, so that a test can tell whether they are used.
fn falsify(town: &TestTown) {
    let text = std::fs::read_to_string(path(&town.town)).unwrap();
    let mut stored: StoredCounts = serde_json::from_str(&text).unwrap();
    stored.counts = vec![("running".to_owned(), 7)];
    let text = serde_json::to_vec(&stored).unwrap();
    std::fs::write(path(&town.town), text).unwrap();
}

#[test]
fn stored_counts_hold_until_a_tag_changes() {
    let (town, clock, [ada, _]) = stage();
    assert_eq!(counts(&town), [2, 0]);
    falsify(&town);
    clock.advance(Duration::from_millis(1500));
    assert_eq!(counts(&town), [7, 0], "nothing has changed");
    signal::mark_paused(&town.town, &ada, "a test").unwrap();
    assert_eq!(counts(&town), [1, 1]);
}

#[test]
fn stored_counts_of_the_last_second_hold_although_a_tag_changed() {
    let (town, clock, [ada, _]) = stage();
    assert_eq!(counts(&town), [2, 0]);
    falsify(&town);
    signal::mark_paused(&town.town, &ada, "a test").unwrap();
    clock.advance(Duration::from_millis(999));
    assert_eq!(counts(&town), [7, 0]);
    clock.advance(Duration::from_millis(1));
    assert_eq!(counts(&town), [1, 1]);
}

#[test]
fn stored_counts_expire_although_no_tag_changed() {
    let (town, clock, _) = stage();
    assert_eq!(counts(&town), [2, 0]);
    falsify(&town);
    clock.advance(Duration::from_secs(10));
    assert_eq!(counts(&town), [2, 0]);
}

#[test]
fn writer_killed_after_its_batch_leaves_no_stale_counts() {
    let (town, clock, [ada, _]) = stage();
    assert_eq!(counts(&town), [2, 0]);
    clock.advance(Duration::from_secs(2));
    // The batch of a writer, and nothing that comes after it.
    let container = town.container(&ada).unwrap();
    let set = Command::new("set-option").target(container.id());
    let batch = gt_tmux::Batch::from(set.args([tag::STATE, "paused"]));
    let batch = batch.then_all(containers::pack(container.id()));
    town.tmux.server().run(batch).unwrap();
    assert_eq!(counts(&town), [1, 1]);
}

#[test]
fn damaged_counts_are_read_again() {
    let (town, _, _) = stage();
    assert_eq!(counts(&town), [2, 0]);
    std::fs::write(path(&town.town), b"{\"changes\":").unwrap();
    assert_eq!(counts(&town), [2, 0]);
}

#[test]
fn own_state_is_that_of_the_container() {
    let (town, _, [ada, _]) = stage();
    let container = town.container(&ada).unwrap();
    let read = || StateCounts::read(&town.town, Some(container.name())).unwrap();
    assert_eq!(read().own, Some(State::Running));
    signal::mark_paused(&town.town, &ada, "a test").unwrap();
    assert_eq!(read().own, Some(State::Paused), "read, not stored");
    assert_eq!(
        StateCounts::read(&town.town, Some("none")).unwrap().own,
        None
    );
}

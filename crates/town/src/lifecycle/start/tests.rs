//! Starts in a town of tests, with a real tmux.

use super::*;
use crate::base::clock::Clock;
use crate::lifecycle::stop;
use crate::records::items::Work;
use crate::testing::{HARNESS, TestTown};
use gt_core::record::{Outcome, SessionStatus};

#[test]
fn start_makes_a_container_and_a_record() {
    let clock = Clock::stopped_at("2026-01-02T03:04:05Z".parse().unwrap());
    let stage = TestTown::with_clock(clock);
    let agent = stage.agent("one");
    let started = stage.start(&agent);
    assert_eq!(started.harness, HARNESS);
    assert_eq!(started.warnings, Vec::<String>::new());
    let container = stage.container(&agent).unwrap();
    assert_eq!(container.name(), started.container);
    assert_eq!(container.session_id(), Some(started.session));
    let records = stage.sessions(&agent);
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].id, started.session.to_string());
    assert_eq!(records[0].status, Some(SessionStatus::Running));
    assert_eq!(
        records[0].started_at.as_deref(),
        Some("2026-01-02T03:04:05.000Z")
    );
}

#[test]
fn second_start_is_refused_and_changes_nothing() {
    let stage = TestTown::new();
    let agent = stage.agent("one");
    let first = stage.start(&agent);
    let error = start(&stage.town, &agent, &StartOptions::default()).unwrap_err();
    assert!(matches!(error, StartError::Running(_)), "{error:?}");
    assert_eq!(
        stage.container(&agent).unwrap().session_id(),
        Some(first.session)
    );
    assert_eq!(stage.sessions(&agent).len(), 1);
}

#[test]
fn start_of_a_program_that_ends_at_once_is_rolled_back() {
    let stage = TestTown::new();
    let agent = stage.agent("one");
    let options = StartOptions {
        command: Some("exit 7".to_owned()),
        wait_for_agent: Some(true),
        verify_survived: Some(true),
        ..StartOptions::default()
    };
    start(&stage.town, &agent, &options).unwrap_err();
    assert!(stage.container(&agent).is_none());
    let records = stage.sessions(&agent);
    assert_eq!(records[0].outcome, Some(Outcome::Crash));
    assert_eq!(records[0].failed_start, Some(true));
}

#[test]
fn failed_start_removes_the_worktree_that_it_made() {
    let stage = TestTown::new().with_rig();
    let agent = Identity::crew("lab", "ann");
    let options = StartOptions {
        create: true,
        command: Some("exit 7".to_owned()),
        ..StartOptions::default()
    };
    start(&stage.town, &agent, &options).unwrap_err();
    let dir = stage.town.root().join("lab/crew/ann");
    assert!(!dir.exists(), "{}", dir.display());
    assert!(stage.container(&agent).is_none());
    let running = StartOptions {
        command: Some("exec sleep 1000".to_owned()),
        ..options
    };
    start(&stage.town, &agent, &running).unwrap();
    assert!(dir.exists());
}

#[test]
fn start_after_a_stop_continues_the_chain_of_the_item() {
    let stage = TestTown::new().with_rig();
    let agent = stage.agent("one");
    let item = stage.item("Paint the door");
    Work::of(&stage.town).hook(&agent.address(), &item).unwrap();
    let first = stage.start(&agent);
    stop::stop_one(&stage.town, &agent, Default::default()).unwrap();
    let second = stage.start(&agent);
    let records = stage.sessions(&agent);
    assert_eq!(records[0].id, second.session.to_string());
    assert_eq!(records[0].parent_id, Some(first.session.to_string()));
    assert_eq!(records[0].chain_id, records[1].chain_id);
}

//! Removal of containers, processes, locks, claims and worktrees that are left over.

use super::*;
use crate::base::processes;
use crate::lifecycle::stop::{StopOptions, stop_one};
use crate::repo::rig;
use crate::terminal::pidfile;
use crate::work::hook;
use gt_core::patrol::Leftover;

const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

fn clean(kind: Leftover) -> (&'static str, ActionKind) {
    ("leftover", ActionKind::Clean(kind))
}

#[test]
fn dead_container_without_work_is_removed() {
    let stage = StoppedTown::new();
    let work = stage.sling("Paint the door", false);
    stage.crash(&work.agent);
    hook::take_off(stage.town(), &work.agent).unwrap();
    assert_eq!(stage.patrol_after(MINUTE), [], "only its end is recorded");
    let cleaned = ActionKind::Clean(Leftover::Container);
    assert_eq!(stage.patrol_after(HOUR), [("zombie-container", cleaned)]);
    assert!(stage.town.container(&work.agent).is_none());
    assert!(work.work_dir.exists());
}

#[test]
fn process_without_its_container_is_ended() {
    let stage = StoppedTown::new();
    let mut child = std::process::Command::new("sleep")
        .arg("1000")
        .spawn()
        .unwrap();
    pidfile::write(stage.town(), "lb-crew-max", child.id()).unwrap();
    assert_eq!(stage.patrol_after(4 * MINUTE), []);
    assert_eq!(stage.patrol_after(2 * MINUTE), [clean(Leftover::Process)]);
    child.wait().unwrap();
    assert_eq!(stage.patrol_after(DAY), []);
}

#[test]
fn lock_of_a_killed_git_process_is_removed() {
    let stage = StoppedTown::new();
    let lock = rig::repository(stage.town(), "lab").join("index.lock");
    std::fs::write(&lock, "").unwrap();
    assert_eq!(stage.patrol_after(29 * MINUTE), []);
    assert_eq!(stage.patrol_after(2 * MINUTE), [clean(Leftover::Lock)]);
    assert!(!lock.exists());
}

#[test]
fn claim_of_a_process_that_has_ended_is_removed() {
    let stage = StoppedTown::new();
    let mut child = std::process::Command::new("true").spawn().unwrap();
    let pid = child.id();
    let born = processes::birth_certificate(std::process::id()).unwrap();
    child.wait().unwrap();
    let folder = stage.town().runtime_dir().join("claims");
    std::fs::create_dir_all(&folder).unwrap();
    let claim = folder.join("lab.crew.max.json");
    std::fs::write(&claim, format!(r#"{{"pid":{pid},"born":"{born}"}}"#)).unwrap();
    assert_eq!(stage.patrol_after(59 * MINUTE), []);
    assert_eq!(stage.patrol_after(2 * MINUTE), [clean(Leftover::Claim)]);
    assert!(!claim.exists());
}

/// Makes a polecat that has ended and has no item any more.
fn unused(stage: &StoppedTown) -> Slung {
    let work = stage.sling("Paint the door", false);
    stop_one(stage.town(), &work.agent, StopOptions::default()).unwrap();
    hook::take_off(stage.town(), &work.agent).unwrap();
    work
}

#[test]
fn unused_worktree_without_unsaved_work_is_removed() {
    let stage = StoppedTown::new();
    let work = unused(&stage);
    assert_eq!(stage.patrol_after(6 * DAY), []);
    assert_eq!(stage.patrol_after(2 * DAY), [clean(Leftover::Worktree)]);
    assert!(!work.work_dir.exists());
    assert_eq!(stage.patrol_after(DAY), []);
}

#[test]
fn unused_worktree_with_unsaved_work_stays_and_escalates() {
    let stage = StoppedTown::new();
    let work = unused(&stage);
    std::fs::write(work.work_dir.join("door"), "half blue\n").unwrap();
    stage.clock.advance(Duration::from_secs(8 * DAY));
    for attempt in 1..=3 {
        let done = wait_until("no other patrol runs", TIMEOUT, || {
            patrol_once(stage.town()).unwrap()
        });
        let refused = done.iter().find(|it| it.action.rule == "leftover").unwrap();
        assert_eq!(refused.action.attempt, attempt);
        assert!(refused.result.is_err(), "{refused:?}");
        stage.clock.advance(Duration::from_secs(DAY));
    }
    assert_eq!(stage.patrol_after(1), [("leftover", ActionKind::Escalate)]);
    assert!(work.work_dir.join("door").exists());
}

//! Work handed in by agents of a town of tests, with real tmux and git.

use super::*;
use crate::testing::TestTown;
use crate::workflow::sling::{SlingOptions, SlingTarget, Slung, sling};

fn slung(stage: &TestTown) -> Slung {
    let item = stage.item("Paint the door");
    let to = SlingTarget::Rig("lab".to_owned());
    sling(&stage.town, &item, &to, &SlingOptions::default()).unwrap()
}

fn options() -> DoneOptions {
    DoneOptions {
        leaving: DoneStatus::Completed,
        message: None,
        push: true,
        force: false,
        exit: false,
    }
}

#[test]
fn finished_work_enters_the_merge_queue() {
    let stage = TestTown::new().with_rig();
    let work = slung(&stage);
    let commit = stage.commit(&work.work_dir, "door", "blue\n");
    let result = done(&stage.town, &work.agent, &options()).unwrap();
    assert_eq!(result.commit, Some(commit));
    assert!(
        Work::of(&stage.town)
            .hooked(&work.agent.address())
            .unwrap()
            .is_none()
    );
    let branch = work.branch.unwrap();
    assert!(
        Work::of(&stage.town)
            .is_waiting_to_merge("lab", &branch)
            .unwrap()
    );
}

#[test]
fn uncommitted_changes_are_refused_and_stay() {
    let stage = TestTown::new().with_rig();
    let work = slung(&stage);
    stage.commit(&work.work_dir, "door", "blue\n");
    std::fs::write(work.work_dir.join("window"), "open\n").unwrap();
    assert!(done(&stage.town, &work.agent, &options()).is_err());
    assert!(work.work_dir.join("window").exists());
    let hooked = Work::of(&stage.town).hooked(&work.agent.address()).unwrap();
    assert_eq!(hooked.unwrap().item.id, work.id);
}

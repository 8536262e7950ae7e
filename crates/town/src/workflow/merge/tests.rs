//! From an item to the base of a rig, in a town of tests with real tmux and git.

use super::*;
use crate::testing::TestTown;
use crate::workflow::done::{DoneOptions, done};
use crate::workflow::sling::{SlingOptions, SlingTarget, Slung, sling};
use gt_core::merge::DoneStatus;
use gt_core::work::ItemStatus;

fn slung(stage: &TestTown, title: &str) -> Slung {
    let item = stage.item(title);
    let to = SlingTarget::Rig("lab".to_owned());
    sling(&stage.town, &item, &to, &SlingOptions::default()).unwrap()
}

fn finish(stage: &TestTown, work: &Slung) {
    let options = DoneOptions {
        leaving: DoneStatus::Completed,
        said: None,
        push: true,
        force: false,
        exit: false,
    };
    done(&stage.town, &work.agent, &options).unwrap();
}

fn merge_all(stage: &TestTown) -> Vec<Merge> {
    let mut merged = Vec::new();
    let options = RunOptions::default();
    run(&stage.town, "lab", &options, &|_| {}, |merge| {
        merged.push(merge);
    })
    .unwrap();
    merged
}

fn base_file(stage: &TestTown, file: &str) -> String {
    let repository = rig::repository(&stage.town, "lab");
    let base = Base::of(&stage.town, "lab").unwrap().tip().unwrap();
    stage.git(&repository, &["show", &format!("{base}:{file}")])
}

#[test]
fn finished_work_is_merged_and_its_item_closed() {
    let stage = TestTown::new().with_rig();
    let work = slung(&stage, "Paint the door");
    stage.commit(&work.work_dir, "door", "blue\n");
    finish(&stage, &work);
    let merged = merge_all(&stage);
    assert_eq!(merged.len(), 1);
    assert_eq!(base_file(&stage, "door"), "blue");
    let item = Work::of(&stage.town).get(&work.id).unwrap();
    assert_eq!(item.status, ItemStatus::Closed);
}

#[test]
fn second_of_two_conflicting_branches_is_refused_with_its_files() {
    let stage = TestTown::new().with_rig();
    let works = ["one", "two"].map(|title| slung(&stage, title));
    for (work, colour) in works.iter().zip(["blue\n", "red\n"]) {
        stage.commit(&work.work_dir, "door", colour);
        finish(&stage, work);
    }
    let merged = merge_all(&stage);
    assert_eq!(base_file(&stage, "door"), "blue");
    let refused = merged
        .iter()
        .find(|merge| merge.item == works[1].id)
        .unwrap();
    assert_eq!(refused.files, ["door"]);
    let item = Work::of(&stage.town).get(&works[1].id).unwrap();
    assert_ne!(item.status, ItemStatus::Closed);
}

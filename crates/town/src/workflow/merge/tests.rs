//! From an item to the base of a rig, in a town of tests with real tmux and git.

use super::*;
use crate::lifecycle::stop::{self, StopOptions};
use crate::records::items::EscalationQuery;
use crate::testing::TestTown;
use crate::workflow::done::{DoneOptions, done};
use crate::workflow::sling::{SlingOptions, SlingTarget, Slung, sling};
use gt_core::Identity;
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
        message: None,
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

/// Hands in one branch per file, all before the first merge.
fn hand_in(stage: &TestTown, files: &[&str]) -> Vec<Slung> {
    let works: Vec<Slung> = files.iter().map(|file| slung(stage, file)).collect();
    for (work, file) in works.iter().zip(files) {
        stage.commit(&work.work_dir, file, "text\n");
        finish(stage, work);
    }
    works
}

/// Makes the town merge at most `batch` branches together, and counts the validations in a file.
/// The file `bad` fails them.
fn validating(stage: TestTown, batch: usize) -> (TestTown, std::path::PathBuf) {
    let count = stage.town.root().join("validations");
    let line = format!("echo run >> '{}'; test ! -e bad", count.display());
    let text = format!(
        "[merge]\nautomatic = false\nrepair_agents = false\n[rigs.lab.merge]\nbatch = {batch}\nvalidate = [{line:?}]\n"
    );
    (stage.with_settings(&text), count)
}

fn statuses(stage: &TestTown, works: &[Slung]) -> Vec<ItemStatus> {
    let work = Work::of(&stage.town);
    let status = |slung: &Slung| work.get(&slung.id).unwrap().status;
    works.iter().map(status).collect()
}

fn validations(count: &std::path::Path) -> usize {
    let text = std::fs::read_to_string(count).unwrap();
    text.lines().count()
}

#[test]
fn batch_is_validated_once() {
    let (stage, count) = validating(TestTown::new().with_rig(), 4);
    let works = hand_in(&stage, &["a", "b", "c", "d"]);
    assert_eq!(merge_all(&stage).len(), 4);
    assert_eq!(validations(&count), 1);
    assert_eq!(statuses(&stage, &works), [ItemStatus::Closed; 4]);
    for file in ["a", "b", "c", "d"] {
        assert_eq!(base_file(&stage, file), "text");
    }
}

#[test]
fn batch_that_fails_is_halved_until_the_branch_is_found() {
    let (stage, count) = validating(TestTown::new().with_rig(), 4);
    let works = hand_in(&stage, &["a", "b", "bad", "d"]);
    merge_all(&stage);
    let statuses = statuses(&stage, &works);
    for (index, status) in statuses.iter().enumerate() {
        assert_eq!(*status == ItemStatus::Closed, index != 2, "{statuses:?}");
    }
    for file in ["a", "b", "d"] {
        assert_eq!(base_file(&stage, file), "text");
    }
    // All four, the first two, the third and fourth, the third, the fourth.
    assert_eq!(validations(&count), 5);
}

#[test]
fn branch_that_conflicts_with_its_batch_is_merged_alone_or_refused() {
    let (stage, _) = validating(TestTown::new().with_rig(), 4);
    let works = ["one", "two", "three"].map(|title| slung(&stage, title));
    for (work, (file, text)) in
        works
            .iter()
            .zip([("door", "blue\n"), ("door", "red\n"), ("wall", "white\n")])
    {
        stage.commit(&work.work_dir, file, text);
        finish(&stage, work);
    }
    merge_all(&stage);
    assert_eq!(base_file(&stage, "door"), "blue");
    assert_eq!(base_file(&stage, "wall"), "white");
    let refused = Work::of(&stage.town)
        .merge_of(&works[1].id)
        .unwrap()
        .unwrap();
    assert_eq!(refused.status, MergeStatus::Conflict);
}

#[test]
fn batch_whose_process_was_killed_before_it_was_recorded_is_found_in_the_base() {
    let (stage, count) = validating(TestTown::new().with_rig(), 4);
    let works = hand_in(&stage, &["a", "b"]);
    let work = Work::of(&stage.town);
    let base = Base::of(&stage.town, "lab").unwrap();
    // The steps of a batch up to the move of the base.
    let first = base.tip().unwrap();
    let mut tip = first.clone();
    for merge in work.merges(Some("lab"), false).unwrap() {
        let Combined::Commit(commit) = base.combine(&tip, &merge.commit, "x").unwrap() else {
            panic!("{merge:?} does not combine");
        };
        work.begin_merge(&merge.id).unwrap();
        work.plan_merge(&merge.id, &commit).unwrap();
        tip = commit;
    }
    base.advance(&first, &tip).unwrap();
    assert_eq!(merge_all(&stage).len(), 2);
    assert_eq!(statuses(&stage, &works), [ItemStatus::Closed; 2]);
    assert_eq!(base.tip().unwrap(), tip, "nothing was merged twice");
    assert!(!count.exists(), "nothing was validated twice");
}

#[test]
fn repair_by_worker_goes_to_the_worker_of_the_branch() {
    let stage = TestTown::new().with_rig();
    let text = "[merge]\nautomatic = false\nrepair_by = \"worker\"\n[rigs.lab.merge]\nvalidate = [\"test ! -e bad\"]\n";
    let stage = stage.with_settings(text);
    let other = slung(&stage, "other");
    let work = slung(&stage, "bad");
    stage.commit(&work.work_dir, "bad", "text\n");
    finish(&stage, &work);
    stage.commit(&other.work_dir, "good", "text\n");
    finish(&stage, &other);
    // A polecat ends after `gt done`.
    for slung in [&work, &other] {
        let options = StopOptions::default();
        stop::stop_one(&stage.town, &slung.agent, options).unwrap();
    }
    merge_all(&stage);
    let entry = Work::of(&stage.town).merge_of(&work.id).unwrap().unwrap();
    let holder = Work::of(&stage.town)
        .holder(&entry.repair.unwrap())
        .unwrap();
    assert_eq!(holder, Some(work.agent.address()));
}

#[test]
fn branch_whose_repairs_cannot_be_merged_is_escalated_after_ten_attempts() {
    let settings = "[rigs.lab.merge]\nvalidate = [\"false\"]\n";
    let stage = TestTown::new().with_rig().with_settings(settings);
    let items = Work::of(&stage.town);
    let work = slung(&stage, "Paint the door");
    stage.commit(&work.work_dir, "door", "blue\n");
    finish(&stage, &work);
    let mut repairs = 0;
    let last = loop {
        let merge = merge_all(&stage).pop().unwrap();
        let repair = merge.repair.clone().unwrap();
        let Some(holder) = items.holder(&repair).unwrap() else {
            break merge;
        };
        repairs += 1;
        assert!(repairs < 20, "{merge:?}");
        // Each repair changes the branch, and fails as well.
        let agent = Identity::from_address(&holder, stage.town.registry()).unwrap();
        let container = stage.container(&agent).unwrap();
        let folder = std::path::PathBuf::from(&container.pane().start_path);
        stage.commit(&folder, "attempt", &repairs.to_string());
        let options = DoneOptions {
            leaving: DoneStatus::Completed,
            message: None,
            push: true,
            force: false,
            exit: false,
        };
        done(&stage.town, &agent, &options).unwrap();
    };
    assert_eq!((last.attempts, repairs), (10, 9));
    let item = items.get(&work.id).unwrap();
    assert_eq!(item.status, ItemStatus::Blocked);
    assert!(item.labels.contains(&"escalated".to_owned()), "{item:?}");
    let repair = items.get(&last.repair.unwrap()).unwrap();
    assert_eq!(repair.status, ItemStatus::Blocked, "no agent gets it");
    let open = items.escalations(&EscalationQuery::default()).unwrap();
    assert_eq!(open.len(), 1, "{open:?}");
    assert!(merge_all(&stage).is_empty(), "it is left alone");
    assert_eq!(items.holder(&repair.id).unwrap(), None);
}

use super::*;
use crate::records::items::{MailDraft, Patch};

fn step(id: &str, needs: &[&str]) -> FormulaStep {
    FormulaStep {
        id: id.to_owned(),
        title: id.to_owned(),
        description: String::new(),
        needs: needs.iter().map(|need| (*need).to_owned()).collect(),
    }
}

fn pour(steps: Vec<FormulaStep>) -> Pour {
    Pour {
        agent: "mayor".to_owned(),
        prefix: "hq".to_owned(),
        formula: "f".to_owned(),
        title: "F".to_owned(),
        description: String::new(),
        on: None,
        steps,
    }
}

fn work() -> (tempfile::TempDir, Work) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("items.db");
    let work = Work::at(path);
    (folder, work)
}

#[test]
fn a_handoff_opens_what_was_begun() {
    let (_folder, work) = work();
    let hand_over = || {
        let note = MailDraft::new("mayor", "Handoff", "");
        work.hand_over("mayor", "life", true, &note).unwrap();
        work.molecule("mayor").unwrap()
    };
    assert!(hand_over().is_none());
    work.pour(&pour(vec![step("a", &[]), step("b", &["a"])]))
        .unwrap();
    work.finish_step("mayor", "a", None).unwrap();
    work.start_step("mayor", "b").unwrap();
    let left = hand_over().unwrap();
    let statuses: Vec<ItemStatus> = left.steps.iter().map(|step| step.status).collect();
    assert_eq!(statuses, [ItemStatus::Closed, ItemStatus::Open]);
    assert!(left.steps[1].notes.contains("handed off"), "{left:?}");
    // A second handoff finds no step in progress.
    let again = hand_over().unwrap();
    assert_eq!(again.steps[1].notes, left.steps[1].notes);
    // The next session begins it again.
    work.start_step("mayor", "b").unwrap();
    // Closed by another command than `gt mol`, so the molecule was not ended yet.
    work.change(|db| close(db, &left.steps[1].id, None))
        .unwrap();
    assert!(work.molecule("mayor").unwrap().is_some());
    assert!(hand_over().is_none());
    let ended = work.get(&left.item.id).unwrap();
    assert_eq!(ended.close_reason.as_deref(), Some("done"));
}

#[test]
fn many_steps_stay_in_their_order() {
    let (_folder, work) = work();
    let names: Vec<String> = (1..=12).map(|number| format!("s{number}")).collect();
    let steps = names.iter().map(|name| step(name, &[])).collect();
    let molecule = work.pour(&pour(steps)).unwrap();
    let found: Vec<&str> = molecule.steps.iter().map(step_id).collect();
    assert_eq!(found, names);
}

#[test]
fn a_handoff_bead_keeps_its_newest_history() {
    let (_folder, work) = work();
    let bead = work.handoff_bead("mayor", "hq").unwrap();
    assert_eq!(work.handoff_bead("mayor", "hq").unwrap().id, bead.id);
    let notes = Patch {
        notes: Some("old\n".repeat(2000)),
        ..Patch::default()
    };
    work.update(&bead.id, &notes).unwrap();
    work.pour(&pour(vec![step("a", &[])])).unwrap();
    let notes = work.get(&bead.id).unwrap().notes;
    assert_eq!(notes.lines().count(), 1000);
    assert!(notes.lines().last().unwrap().contains("attached"));
}

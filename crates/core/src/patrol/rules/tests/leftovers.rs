//! Leftovers of agents that ended, and a full disk.

use super::*;

#[test]
fn low_disk_escalates_and_starts_nothing() {
    let mut stage = Stage::with(ended(polecat(Some("lb-1")), Outcome::Crash));
    stage.snapshot.free_bytes = Some(1024);
    stage.expect(60, &[("low-disk", ActionKind::Escalate)]);
    stage.expect(120, &[]);
    stage.snapshot.free_bytes = Some(u64::MAX);
    stage.expect(180, &[("dead-polecat", ActionKind::Resume)]);
}

#[test]
fn leftovers_are_cleaned_when_they_are_old() {
    let mut stage = Stage::with(ended(polecat(None), Outcome::Crash));
    let left = |kind, name: &str| LeftoverFacts {
        kind,
        name: name.to_owned(),
        since: NOW,
    };
    stage.snapshot.leftovers = vec![
        left(Leftover::Process, "hq-deacon"),
        left(Leftover::Lock, "index.lock"),
        left(Leftover::Worktree, "lab/polecats/old"),
    ];
    stage.expect(299, &[]);
    stage.expect(300, &[("leftover", ActionKind::Clean(Leftover::Process))]);
    stage.expect(1800, &[("leftover", ActionKind::Clean(Leftover::Lock))]);
    stage.snapshot.leftovers.truncate(0);
    stage.expect(
        HOUR,
        &[("zombie-container", ActionKind::Clean(Leftover::Container))],
    );
}

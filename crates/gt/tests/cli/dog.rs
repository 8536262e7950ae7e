//! `gt dog`: one errand per dog, and its session ends with it.

use crate::env::{TIMEOUT, TestEnv};
use gt_tmux::testing::wait_until;

#[test]
fn dog_runs_one_errand_and_ends() {
    let env = TestEnv::with_town();
    let sent = env.gt(&["dog", "run", "Count the branches"]).ok();
    assert!(sent.stdout.contains("→ deacon/dogs/rex"), "{}", sent.stdout);
    assert_eq!(env.running(), ["deacon/dogs/rex"]);
    let primed = env.gt(&["prime", "--agent", "deacon/dogs/rex"]).ok().stdout;
    assert!(primed.contains("Count the branches"), "{primed}");
    assert!(primed.contains("gt mail send human"), "{primed}");
    // A second errand needs a second dog, and a busy dog takes none.
    let other = env.gt(&["dog", "run", "Count the tags", "--json"]).ok();
    assert_eq!(other.json()["agent"], "deacon/dogs/fido");
    let busy = env.gt(&["dog", "run", "More", "--name", "rex"]);
    assert_eq!(busy.code, 4, "{}", busy.stderr);
    assert!(busy.stderr.contains("on an errand"), "{}", busy.stderr);
    let done = env
        .gt(&["done", "--agent", "deacon/dogs/rex", "-m", "three"])
        .ok();
    assert!(
        done.stdout.contains("is done, with nothing to merge"),
        "{}",
        done.stdout
    );
    assert_eq!(env.running(), ["deacon/dogs/fido"]);
    let closed = env.gt(&["work", "list", "--all", "--json"]).ok().json();
    let item = closed.as_array().unwrap().iter();
    let item = item
        .clone()
        .find(|it| it["title"] == "Count the branches")
        .unwrap();
    assert_eq!(item["status"], "closed", "{item}");
    // The free dog goes again.
    let again = env.gt(&["dog", "run", "Count the files", "--json"]).ok();
    assert_eq!(again.json()["agent"], "deacon/dogs/rex");
}

#[test]
fn dog_ends_itself_and_empty_errand_is_refused() {
    let env = TestEnv::with_town();
    let empty = env.gt(&["dog", "run", " "]);
    assert_eq!(empty.code, 2, "{}", empty.stderr);
    env.gt(&["dog", "run", "Count the branches"]).ok();
    let line = format!("[[tool={} done -m three]]", env!("CARGO_BIN_EXE_gt"));
    // The dog ends while the delivery still verifies, so either result is valid.
    env.gt(&["nudge", "deacon/dogs/rex", &line]);
    wait_until("the dog has ended", TIMEOUT, || {
        env.running().is_empty().then_some(())
    });
    let listed = env.gt(&["dog", "list"]).ok().stdout;
    assert!(listed.contains("deacon/dogs/rex"), "{listed}");
}

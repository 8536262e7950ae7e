//! `gt wait`: waits for a state of an agent.

use crate::nudge::stage;

#[test]
fn wait_returns_at_the_wanted_state() {
    let env = stage(&["max"]);
    assert_eq!(env.json(&["wait", "gastown/max"])["state"], "idle");
    env.gt(&[
        "wait",
        "gastown/max",
        "--until",
        "waiting",
        "--timeout",
        "0.2",
    ])
    .fails(1);
    let waiter = env.spawn(&["wait", "gastown/max", "--until", "dead", "--timeout", "30"]);
    env.gt(&["stop", "gastown/max"]).ok();
    assert!(waiter.wait_with_output().unwrap().status.success());
    env.gt(&["wait", "gastown/max"]).fails(3);
    env.gt(&["wait", "gastown/max", "--until", "dead"]).ok();
}

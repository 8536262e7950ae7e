//! `gt broadcast`: one message to all running agents.

use crate::nudge::{prompts, stage};

#[test]
fn broadcast_reaches_all_agents() {
    let env = stage(&["max", "amy", "zoe"]);
    env.gt(&["broadcast", "hear me"]).fails(2);
    let answer = env
        .gt(&["broadcast", "hear me", "--role", "crew", "--json"])
        .ok()
        .json();
    assert_eq!(answer.as_array().unwrap().len(), 3);
    assert!(
        answer
            .as_array()
            .unwrap()
            .iter()
            .all(|row| row["delivered"] == "agent"),
        "{answer}"
    );
    assert_eq!(prompts(&env), ["hear me", "hear me", "hear me"]);
    env.gt(&["broadcast", "x", "--rig", "nowhere"]).fails(3);
}

//! `gt interrupt`.

use crate::env::TestEnv;
use insta::assert_snapshot;

#[test]
fn busy_agent_is_interrupted_and_an_idle_one_is_not() {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["start", "max"]).ok();
    env.gt(&["wait", "max", "--until", "idle", "--timeout", "20"])
        .ok();
    assert_snapshot!(env.snapshot(&["interrupt", "max"]), @r"
        exit code: 0
        --- stdout
        gastown/crew/max was not busy.
        ");
    env.gt(&["nudge", "max", "-m", "[[delay=60]]"]).ok();
    env.gt(&["wait", "max", "--until", "busy", "--timeout", "20"])
        .ok();
    let answer = env.json(&["interrupt", "max"]);
    assert_eq!(answer[0]["interrupted"], true, "{answer}");
    env.gt(&["wait", "max", "--until", "idle", "--timeout", "20"])
        .ok();
    env.gt(&["interrupt", "nobody"]).fails(3);
}

//! `gt restart`.

use crate::env::TestEnv;

#[test]
fn stopped_agent_is_started_and_a_running_one_replaced() {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["restart", "max"]).ok();
    let before = env.pid("gastown/crew/max");
    env.gt(&["restart", "max"]).ok();
    assert_ne!(env.pid("gastown/crew/max"), before);
}

//! Messages that an agent's program would take for its own commands.

use super::identity::{inside, stage};
use crate::env::TestEnv;

const MAX: &str = "gastown/crew/max";

#[test]
fn message_that_begins_with_a_slash_does_not_end_the_program() {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["crew", "start", "max", "--no-prompt"]).ok();
    env.gt(&["wait", "gastown/max", "--timeout", "30"]).ok();
    let pid = env.pid(MAX);
    env.gt(&["nudge", MAX, "/exit", "--mode", "immediate"]).ok();
    env.wait_screen("gastown/max", "You said: [message] /exit");
    assert_eq!(env.pid(MAX), pid);
}

#[test]
fn agent_cannot_send_a_command_of_the_program() {
    let env = stage();
    let pid = env.pid("gastown/crew/joe");
    let sent = inside(
        &env,
        MAX,
        "gt nudge gastown/joe /exit --command --mode immediate",
    );
    assert_ne!(sent.code, 0, "{sent:?}");
    assert_eq!(env.pid("gastown/crew/joe"), pid);
    assert_eq!(env.running().len(), 2, "both run");
}

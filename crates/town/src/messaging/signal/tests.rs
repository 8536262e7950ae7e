//! Reports of hooks in a town of tests, with a real tmux.

use super::*;
use crate::testing::TestTown;
use serde_json::json;

#[test]
fn prompt_and_stop_change_the_state() {
    let stage = TestTown::new();
    let agent = stage.agent("one");
    let started = stage.start(&agent);
    let report = json!({"prompt": "do it", "session_id": "c-1"});
    note(&stage.town, &started.container, HookEvent::Prompt, &report).unwrap();
    assert_eq!(stage.tag(&agent, tag::STATE), "busy");
    assert_eq!(stage.tag(&agent, tag::PROMPTS), "1");
    assert_eq!(
        stage.tag(&agent, tag::LAST_PROMPT),
        nudge::fingerprint("do it")
    );
    note(&stage.town, &started.container, HookEvent::Stop, &json!({})).unwrap();
    assert_eq!(stage.tag(&agent, tag::STATE), "idle");
    assert_eq!(stage.tag(&agent, tag::STATE_SOURCE), "hook");
}

#[test]
fn conversation_is_recorded_in_the_journal() {
    let stage = TestTown::new();
    let agent = stage.agent("one");
    let started = stage.start(&agent);
    let report = json!({"session_id": "c-1"});
    note(
        &stage.town,
        &started.container,
        HookEvent::SessionStart,
        &report,
    )
    .unwrap();
    assert_eq!(stage.tag(&agent, tag::HARNESS_SESSION), "c-1");
    let record = &stage.sessions(&agent)[0];
    assert_eq!(record.harness_session_id.as_deref(), Some("c-1"));
}

#[test]
fn pause_ends_with_the_next_prompt() {
    let stage = TestTown::new();
    let agent = stage.agent("one");
    let started = stage.start(&agent);
    assert!(mark_paused(&stage.town, &agent, "a person paused it").unwrap());
    assert_eq!(stage.tag(&agent, tag::STATE), "paused");
    let report = json!({"prompt": "go on"});
    note(&stage.town, &started.container, HookEvent::Prompt, &report).unwrap();
    assert_eq!(stage.tag(&agent, tag::STATE), "busy");
}

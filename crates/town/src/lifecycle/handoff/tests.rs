//! Handoffs in a town of tests, with a real tmux.

use super::*;
use crate::lifecycle::prime;
use crate::records::items::Work;
use crate::testing::TestTown;
use gt_core::prime::PrimeSource;
use gt_core::record::Outcome;

#[test]
fn next_session_continues_the_chain_and_gets_the_message() {
    let stage = TestTown::new().with_rig();
    let agent = stage.agent("one");
    let first = stage.start(&agent);
    let item = stage.item("Paint the door");
    Work::of(&stage.town).hook(&agent.address(), &item).unwrap();
    let options = HandoffOptions {
        subject: Some("Half of it is blue".to_owned()),
        message: Some("The left side is next.".to_owned()),
        force: true,
        ..HandoffOptions::default()
    };
    let held = hold(&stage.town, &agent).unwrap();
    let intent = prepare(&stage.town, &agent, &options).unwrap();
    let (_, second) = start_next_session(&stage.town, held, &intent, &options).unwrap();
    assert_ne!(second.session, first.session);
    let records = stage.sessions(&agent);
    assert_eq!(records[0].parent_id, Some(first.session.to_string()));
    assert_eq!(records[1].outcome, Some(Outcome::Handoff));

    let primed = prime::gather(&stage.town, &agent, PrimeSource::Startup).unwrap();
    let text = primed.composed.text;
    for part in [
        "Paint the door",
        "Half of it is blue",
        "The left side is next.",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn agent_that_does_not_run_hands_nothing_over() {
    let stage = TestTown::new();
    let agent = stage.agent("one");
    let options = HandoffOptions::default();
    assert!(prepare(&stage.town, &agent, &options).is_err());
    assert!(read_marker(&stage.town, &agent).unwrap().is_none());
}

use super::*;
use crate::messaging::queue::Queue;
use crate::messaging::signal;
use crate::testing::TestTown;
use gt_core::signal::HookEvent;
use serde_json::json;

/// Starts an agent and lets its hook report a limit that ends after so many minutes.
fn limited(place: &TestTown, name: &str, minutes: i64) -> Identity {
    let agent = place.agent(name);
    place.start(&agent);
    hit_limit(place, &agent, minutes);
    agent
}

fn hit_limit(place: &TestTown, agent: &Identity, minutes: i64) {
    let container = place.container(agent).unwrap().name().to_owned();
    let message = format!("You've hit your limit · reset in {minutes} minutes");
    let report = json!({"error": "rate_limit", "last_assistant_message": message});
    signal::note(&place.town, &container, HookEvent::StopFailure, &report).unwrap();
}

fn waiting(place: &TestTown, agent: &Identity) -> usize {
    Queue::of(&place.town, agent).waiting().len()
}

#[test]
fn agents_of_one_account_are_told_one_after_another_and_once() {
    let place = TestTown::new();
    let now = place.town.clock().seconds();
    let amy = limited(&place, "amy", 1);
    let max = limited(&place, "max", 2);
    // A busy agent of the same account is left alone.
    let other = place.agent("other");
    place.start(&other);
    let early = resume_due(&place.town, now + 50).unwrap();
    assert_eq!(early.agents, []);
    let next = early.next.unwrap();
    assert!((now + 60..now + 90).contains(&next), "{next} {now}");
    let at = next;
    let first = resume_due(&place.town, at).unwrap();
    assert_eq!(first.agents, std::slice::from_ref(&amy));
    assert_eq!((waiting(&place, &amy), waiting(&place, &max)), (1, 0));
    // The other one is due, but its account was just used.
    let second = resume_due(&place.town, at + SPACING - 1).unwrap();
    assert_eq!(second.agents, []);
    let next = second.next.unwrap();
    assert!(next >= at + SPACING, "{second:?}");
    let third = resume_due(&place.town, next).unwrap();
    assert_eq!(third.agents, std::slice::from_ref(&max));
    // None is told twice, although both still show their limit.
    let last = resume_due(&place.town, next + 3_600).unwrap();
    assert_eq!(last, ResumedAgents::default());
    assert_eq!(waiting(&place, &amy), 1);
    assert_eq!(waiting(&place, &other), 0);
    // A new limit counts again.
    let container = place.container(&amy).unwrap().name().to_owned();
    let prompt = json!({"prompt": "x"});
    signal::note(&place.town, &container, HookEvent::Prompt, &prompt).unwrap();
    hit_limit(&place, &amy, 90);
    let again = resume_due(&place.town, next + 3 * 3_600).unwrap();
    assert_eq!(again.agents, [amy]);
}

use super::*;
use crate::lifecycle::start::{self, StartOptions};
use crate::messaging::queue::MessageQueue;
use crate::messaging::signal;
use crate::testing::TestTown;
use gt_core::signal::HookEvent;
use gt_core::startup::tag;
use gt_tmux::{Batch, Command, SessionName};
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
    MessageQueue::of(&place.town, agent).waiting().len()
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

/// Starts an agent with a configuration folder, and with options that are too long for a listing.
fn limited_with_folder(place: &TestTown, name: &str, folder: &str) -> Identity {
    let agent = place.agent(name);
    let options = StartOptions {
        config_dir: Some(folder.to_owned()),
        instructions: Some("x".repeat(600)),
        ..StartOptions::default()
    };
    start::start(&place.town, &agent, &options).unwrap();
    hit_limit(place, &agent, 1);
    agent
}

#[test]
fn account_is_known_although_the_start_options_are_long() {
    let place = TestTown::new();
    let now = place.town.clock().seconds();
    let amy = limited_with_folder(&place, "amy", "/accounts/a");
    let max = limited_with_folder(&place, "max", "/accounts/b");
    let container = place.container(&amy).unwrap();
    assert_eq!(container.pane().tag_start, "", "the listing omits them");
    assert_eq!(container.account_key(), "echo /accounts/a");
    // Agents of two accounts do not wait for each other.
    let resumed = resume_due(&place.town, now + 300).unwrap();
    assert_eq!(resumed.agents, [amy, max]);
}

#[test]
fn account_of_a_container_of_an_earlier_version_is_in_its_start_options() {
    let place = TestTown::new();
    let agent = place.agent("amy");
    let options = StartOptions {
        config_dir: Some("/accounts/a".to_owned()),
        digest: Some("d1".to_owned()),
        ..StartOptions::default()
    };
    start::start(&place.town, &agent, &options).unwrap();
    let name = place.container(&agent).unwrap().name().to_owned();
    for tag in [tag::ACCOUNT, tag::DIGEST] {
        let target = SessionName::try_from(name.as_str()).unwrap();
        let unset = Command::new("set-option").arg("-u").target(target.clone());
        let batch = Batch::from(unset.arg(tag)).then_all(containers::pack(target));
        place.tmux.server().run(batch).unwrap();
    }
    let container = place.container(&agent).unwrap();
    assert_eq!(container.pane().tag_account, "");
    assert_eq!(container.account_key(), "echo /accounts/a");
    assert!(container.has_digest());
}

#[test]
fn move_of_a_killed_process_is_repeated_once() {
    let mut notes = LimitNotes::default();
    notes.begin_move("mayor", 1_000);
    assert!(!notes.has_moved("mayor", 1_010), "it may be repeated");
    notes.begin_move("mayor", 1_010);
    assert!(
        notes.has_moved("mayor", 1_000),
        "the second one is the last"
    );
    // Another limit counts anew.
    assert!(!notes.has_moved("mayor", 9_000));
    notes.begin_move("mayor", 9_000);
    assert!(!notes.has_moved("mayor", 9_000));
    notes.end_move("mayor", 9_000);
    assert!(notes.has_moved("mayor", 9_000));
}

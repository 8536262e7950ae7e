use super::*;
use crate::messaging::nudge::{
    self, Deliverer, DeliveryMode, NudgeOutcome, NudgeRequest, SentMessage,
};
use crate::testing::TestTown;
use gt_core::nudge::{NotNow, Priority};
use std::time::Duration;

fn send(place: &TestTown, agent: &Identity, text: &str, priority: Priority) -> SentMessage {
    let request = NudgeRequest {
        is_command: false,
        text,
        sender: None,
        mode: DeliveryMode::WaitIdle,
        priority,
        timeout: Duration::from_secs(10),
    };
    nudge::send(&place.town, agent, &request).unwrap()
}

fn is_delivered(sent: &SentMessage) -> bool {
    matches!(sent.outcome, NudgeOutcome::Delivered(_))
}

#[test]
fn normal_messages_are_held_and_urgent_ones_pass() {
    let place = TestTown::new();
    let (max, amy) = (place.agent("max"), place.agent("amy"));
    place.start(&max);
    place.start(&amy);
    let until = place.town.clock().seconds() + 3_600;
    turn_on(&place.town, &max.address(), Some(until)).unwrap();
    let sent = send(&place, &max, "later is fine", Priority::Normal);
    let reason = match sent.outcome {
        NudgeOutcome::Queued(reason) => reason,
        NudgeOutcome::Delivered(_) => panic!("{sent:?}"),
    };
    assert_eq!(reason, Some(NotNow::DoNotDisturb));
    let later = sent.later.unwrap();
    assert_eq!(later.by, Deliverer::DoNotDisturb);
    assert_eq!(later.held_until, Some(until));
    // The time for which it is held does not count for its expiry.
    assert_eq!(later.until, Some(until + 24 * 3_600));
    assert!(is_delivered(&send(&place, &max, "fire", Priority::Urgent)));
    assert!(is_delivered(&send(&place, &amy, "hello", Priority::Normal)));
    // The deliverer leaves the message, and takes it after the end.
    nudge::deliver_waiting(&place.town, &max, Duration::from_secs(10)).unwrap();
    assert_eq!(count_held(&place.town, &max.address()), 1);
    let ended = turn_off(&place.town, &max.address()).unwrap();
    assert_eq!((ended.was_on, ended.held), (true, 1));
    nudge::deliver_waiting(&place.town, &max, Duration::from_secs(10)).unwrap();
    assert_eq!(count_held(&place.town, &max.address()), 0);
}

#[test]
fn time_that_is_over_holds_nothing_and_is_forgotten() {
    let place = TestTown::new();
    let now = place.town.clock().seconds();
    turn_on(&place.town, "agent/max", Some(now - 1)).unwrap();
    turn_on(&place.town, PERSON, None).unwrap();
    assert_eq!(dnd::read(&place.town, "agent/max"), None);
    assert_eq!(dnd::all(&place.town).len(), 1);
    end_due(&place.town).unwrap();
    assert_eq!(dnd::clear(&place.town, "agent/max").unwrap(), None);
    assert!(dnd::read(&place.town, PERSON).is_some());
    assert!(turn_off(&place.town, PERSON).unwrap().was_on);
    assert!(!turn_off(&place.town, PERSON).unwrap().was_on);
    assert!(dnd::all(&place.town).is_empty());
}

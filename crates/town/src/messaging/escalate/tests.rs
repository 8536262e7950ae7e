//! Escalations in a town of tests, with a real database and a real tmux.

use super::*;
use crate::base::clock::Clock;
use crate::messaging::queue::MessageQueue;
use crate::records::events::EventQuery;
use crate::records::items::{EscalationQuery, MailQuery};
use crate::testing::TestTown;
use gt_core::escalation::EscalationState;
use std::time::Duration;

fn stage() -> (TestTown, Clock) {
    let clock = Clock::stopped_at("2026-01-02T03:04:05Z".parse().unwrap());
    (TestTown::with_clock(clock.clone()), clock)
}

fn loop_of(agent: &str, severity: Severity) -> NewEscalation {
    NewEscalation {
        severity,
        message: format!("{agent} keeps dying"),
        source: "respawn",
        agent: Some(agent.to_owned()),
        key: Some(format!("respawn:{agent}")),
        ..NewEscalation::default()
    }
}

fn mail_to(town: &Town, recipient: &str) -> Vec<String> {
    let query = MailQuery {
        recipient: Some(recipient.to_owned()),
        ..MailQuery::default()
    };
    let messages = Work::of(town).messages(&query).unwrap();
    messages.into_iter().map(|mail| mail.subject).collect()
}

fn events(town: &Town) -> Vec<(String, String)> {
    let query = EventQuery {
        kinds: vec!["escalation_*".to_owned()],
        ..EventQuery::default()
    };
    let events = Events::of(town).find(&query).unwrap();
    events.into_iter().map(|it| (it.kind, it.actor)).collect()
}

#[test]
fn severity_selects_the_recipients() {
    for (severity, mayor, person) in [
        (Severity::Low, 1, 0),
        (Severity::Medium, 1, 1),
        (Severity::Critical, 1, 1),
    ] {
        let stage = TestTown::new();
        let agent = stage.agent("one").address();
        let draft = EscalationDraft {
            severity,
            message: "help".to_owned(),
            source: "respawn".to_owned(),
            raised_by: "gt".to_owned(),
            item: None,
            agent: Some(agent),
            key: None,
        };
        let work = Work::of(&stage.town);
        let raised = work.raise_escalation(&draft, |it| addressed(it, &Caller::Gt));
        assert!(raised.unwrap().is_news);
        assert_eq!(mail_to(&stage.town, "mayor").len(), mayor, "{severity}");
        assert_eq!(mail_to(&stage.town, PERSON).len(), person, "{severity}");
    }
}

#[test]
fn person_gets_mail_about_an_escalation_of_the_mayor() {
    let stage = TestTown::new();
    let about = |caller: Caller, agent: Option<&str>| {
        let escalation = Work::of(&stage.town)
            .raise_escalation(
                &EscalationDraft {
                    severity: Severity::Low,
                    message: "help".to_owned(),
                    source: "command".to_owned(),
                    raised_by: caller.as_str().to_owned(),
                    item: None,
                    agent: agent.map(str::to_owned),
                    key: None,
                },
                |_| Vec::new(),
            )
            .unwrap()
            .escalation;
        let mail = addressed(&escalation, &caller);
        mail.into_iter().map(|(to, _)| to).collect::<Vec<_>>()
    };
    assert_eq!(about(Caller::Gt, Some("mayor")), [PERSON]);
    assert_eq!(about(Caller::agent("mayor"), None), [PERSON]);
    assert_eq!(about(Caller::agent("deacon"), None), ["mayor"]);
    assert_eq!(about(Caller::Person("ada".to_owned()), None), ["mayor"]);
}

#[test]
fn raising_a_key_again_only_counts_until_it_gets_worse() {
    let (stage, clock) = stage();
    let town = &stage.town;
    let agent = stage.agent("one").address();
    let first = raise(town, &loop_of(&agent, Severity::Medium)).unwrap();
    clock.advance(Duration::from_secs(60));
    let again = raise(town, &loop_of(&agent, Severity::Low)).unwrap();
    assert_eq!(
        (again.id.clone(), again.count, again.raised),
        (first.id.clone(), 2, 1)
    );
    assert_eq!(again.severity, Severity::Medium);
    assert_eq!(mail_to(town, "mayor").len(), 1);
    assert_eq!(events(town).len(), 1);
    acknowledge(town, &first.id).unwrap();
    assert_eq!(
        raise(town, &loop_of(&agent, Severity::Medium))
            .unwrap()
            .state,
        EscalationState::Acknowledged
    );
    let worse = raise(town, &loop_of(&agent, Severity::High)).unwrap();
    assert_eq!((worse.count, worse.raised), (4, 2));
    assert_eq!(worse.state, EscalationState::Open);
    assert_eq!(mail_to(town, "mayor").len(), 2);
    // After its end, the next occurrence is another escalation.
    close(town, &first.id, Some("the key was renewed")).unwrap();
    let next = raise(town, &loop_of(&agent, Severity::Medium)).unwrap();
    assert_ne!(next.id, first.id);
    let kinds: Vec<String> = events(town).into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(
        kinds,
        [
            "escalation_raised",
            "escalation_acknowledged",
            "escalation_raised",
            "escalation_closed",
            "escalation_raised"
        ]
    );
}

#[test]
fn open_escalation_is_raised_again_until_it_is_acknowledged() {
    let (stage, clock) = stage();
    let town = &stage.town;
    let agent = stage.agent("one").address();
    let first = raise(town, &loop_of(&agent, Severity::High)).unwrap();
    let due = || raise_due(town, clock.now()).unwrap();
    clock.advance(Duration::from_secs(3599));
    assert_eq!(due(), []);
    clock.advance(Duration::from_secs(1));
    let again = due().remove(0);
    assert_eq!(
        (again.id.clone(), again.raised, again.count),
        (first.id.clone(), 2, 1)
    );
    // The next interval is twice as long.
    clock.advance(Duration::from_secs(3600));
    assert_eq!(due(), []);
    clock.advance(Duration::from_secs(3600));
    assert_eq!(due().len(), 1);
    // Its mail is one thread.
    let query = MailQuery {
        recipient: Some("mayor".to_owned()),
        ..MailQuery::default()
    };
    let mail = Work::of(town).messages(&query).unwrap();
    assert_eq!(mail.len(), 3);
    assert!(mail.iter().all(|it| it.thread == mail[0].thread));
    assert_eq!(
        events(town)[1],
        ("escalation_again".to_owned(), "gt".to_owned())
    );
    acknowledge(town, &first.id).unwrap();
    clock.advance(Duration::from_secs(90_000));
    assert_eq!(due(), []);
}

#[test]
fn interrupted_announcement_is_completed() {
    let (stage, clock) = stage();
    let town = &stage.town;
    let draft = EscalationDraft {
        severity: Severity::Medium,
        message: "help".to_owned(),
        source: "command".to_owned(),
        raised_by: "gt".to_owned(),
        item: None,
        agent: None,
        key: None,
    };
    // As if the process was killed after the transaction.
    let work = Work::of(town);
    let raised = work
        .raise_escalation(&draft, |it| addressed(it, &Caller::Gt))
        .unwrap();
    assert_eq!(raise_due(town, clock.now()).unwrap(), []);
    clock.advance(Duration::from_secs(31));
    let told = raise_due(town, clock.now()).unwrap();
    assert_eq!(told[0].id, raised.escalation.id);
    assert_eq!(events(town)[0].0, "escalation_raised");
    assert_eq!(raise_due(town, clock.now()).unwrap(), []);
    assert_eq!(mail_to(town, "mayor").len(), 1);
}

#[test]
fn running_mayor_is_nudged() {
    let stage = TestTown::new();
    let town = &stage.town;
    let mayor = Identity::town(Role::Mayor);
    stage.start(&mayor);
    raise(town, &loop_of("agent/one", Severity::Critical)).unwrap();
    let waiting = MessageQueue::of(town, &mayor).waiting();
    assert!(
        waiting[0].text.contains("agent/one keeps dying"),
        "{waiting:?}"
    );
}

#[test]
fn lists_are_filtered_and_begin_with_the_most_urgent() {
    let (stage, clock) = stage();
    let town = &stage.town;
    let item = stage.item("Mend it");
    let raise = |message: &str, severity, item| {
        clock.advance(Duration::from_secs(1));
        let new = NewEscalation {
            severity,
            message: message.to_owned(),
            source: "command",
            item,
            ..NewEscalation::default()
        };
        raise(town, &new).unwrap().id
    };
    raise("low", Severity::Low, None);
    raise("high", Severity::High, Some(item.clone()));
    let acknowledged = raise("critical", Severity::Critical, None);
    let closed = raise("medium", Severity::Medium, None);
    acknowledge(town, &acknowledged).unwrap();
    close(town, &closed, None).unwrap();
    let list = |query: EscalationQuery| {
        let found = Work::of(town).escalations(&query).unwrap();
        let found = found.into_iter().map(|it| it.message);
        found.collect::<Vec<String>>().join(" ")
    };
    assert_eq!(list(EscalationQuery::default()), "high low critical");
    let all = EscalationQuery {
        all: true,
        ..EscalationQuery::default()
    };
    assert_eq!(list(all), "high low critical medium");
    let of_item = EscalationQuery {
        item: Some(item.to_string()),
        ..EscalationQuery::default()
    };
    assert_eq!(list(of_item), "high");
    let least = EscalationQuery {
        severity: Some(Severity::High),
        ..EscalationQuery::default()
    };
    assert_eq!(list(least), "high critical");
    let closed = EscalationQuery {
        state: Some(EscalationState::Closed),
        ..EscalationQuery::default()
    };
    assert_eq!(list(closed), "medium");
    assert!(close(town, &"esc-00000".parse().unwrap(), None).is_err());
}

#[test]
fn resolve_closes_by_key() {
    let stage = TestTown::new();
    let town = &stage.town;
    assert_eq!(resolve(town, "respawn:x", "started").unwrap(), None);
    let raised = raise(town, &loop_of("x", Severity::High)).unwrap();
    let closed = resolve(town, "respawn:x", "started").unwrap().unwrap();
    assert_eq!(
        (closed.id, closed.state),
        (raised.id, EscalationState::Closed)
    );
    assert_eq!(resolve(town, "respawn:x", "started").unwrap(), None);
}

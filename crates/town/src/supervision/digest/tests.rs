//! Digests in a town of tests, with real tmux and SQLite.

use super::*;
use crate::records::items::{EscalationQuery, Work};
use crate::supervision::patrol;
use crate::terminal::peek;
use crate::testing::StoppedTown;
use gt_core::Role;
use gt_core::escalation::EscalationState;
use gt_core::patrol::ActionKind;
use gt_tmux::testing::{TIMEOUT, wait_until};

impl StoppedTown {
    /// Raises an escalation about an agent; returns its id.
    fn raise(&self, about: &str, severity: Severity) -> gt_core::work::WorkId {
        let new = NewEscalation {
            severity,
            message: format!("{about} does not go on"),
            source: "patrol",
            agent: Some(about.to_owned()),
            ..NewEscalation::default()
        };
        escalate::raise(self.town(), &new).unwrap().id
    }

    /// Lets time pass and delivers digests; returns the agents and how each was reached.
    #[track_caller]
    fn deliver_after(&self, seconds: u64) -> Vec<(String, DigestDelivery)> {
        self.clock.advance(Duration::from_secs(seconds));
        let woken = run(self.town()).unwrap().unwrap();
        let woken = woken.into_iter();
        woken
            .map(|woken| (woken.digest.agent, woken.result.unwrap()))
            .collect()
    }

    fn queue(&self, agent: &Identity) -> Vec<String> {
        let waiting = MessageQueue::of(self.town(), agent).waiting().into_iter();
        waiting.map(|message| message.text).collect()
    }
}

fn witness() -> Identity {
    Identity::of_rig(Role::Witness, "lab")
}

fn told(delivery: DigestDelivery) -> Vec<(String, DigestDelivery)> {
    vec![("lab/witness".to_owned(), delivery)]
}

#[test]
fn nothing_to_decide_starts_nothing_and_writes_nothing() {
    let stage = StoppedTown::new();
    assert_eq!(stage.deliver_after(0), []);
    stage.raise("lab/crew/max", Severity::High);
    stage.raise("lab/polecats/Toast", Severity::Low);
    assert_eq!(stage.deliver_after(3600), []);
    assert!(containers::list(stage.town()).unwrap().is_empty());
    assert!(!path(stage.town()).exists());
}

#[test]
fn digest_in_the_queue_of_an_agent_that_ended_is_told_again() {
    let stage = StoppedTown::new();
    stage.raise("lab/polecats/Toast", Severity::High);
    assert_eq!(stage.deliver_after(0), told(DigestDelivery::Started));
    stage.raise("lab/polecats/Salt", Severity::High);
    assert_eq!(stage.deliver_after(400), told(DigestDelivery::Queued));
    let options = crate::lifecycle::stop::StopOptions {
        force: true,
        ..Default::default()
    };
    crate::lifecycle::stop::stop_one(stage.town(), &witness(), options).unwrap();
    assert_eq!(stage.queue(&witness()).len(), 1, "it was not read");
    assert_eq!(stage.deliver_after(400), told(DigestDelivery::Started));
    assert!(stage.is_alive(&witness()));
    assert_eq!(stage.queue(&witness()), Vec::<String>::new());
    assert_eq!(stage.deliver_after(400), [], "once");
}

#[test]
fn absent_agent_is_started_and_a_running_one_gets_a_message() {
    let stage = StoppedTown::new();
    let first = stage.raise("lab/polecats/Toast", Severity::High);
    assert_eq!(stage.deliver_after(0), told(DigestDelivery::Started));
    assert!(stage.is_alive(&witness()));
    let container = stage.town.container(&witness()).unwrap();
    let options = start::options_of(stage.town(), &container).unwrap();
    assert_eq!(options.digest.as_deref(), Some("dg-1"));
    let tag = start::start_tag(stage.town(), &container).unwrap();
    assert!(!tag.contains(first.as_str()), "the tag stays short: {tag}");
    assert_eq!(stage.deliver_after(1), [], "once");
    stage.raise("lab/polecats/Salt", Severity::Medium);
    assert_eq!(stage.deliver_after(200), [], "spaced");
    assert_eq!(stage.deliver_after(200), told(DigestDelivery::Queued));
    let queue = stage.queue(&witness());
    assert!(queue[0].starts_with("Digest dg-2: 1 matter"), "{queue:?}");
    let events = Events::of(stage.town()).find(&crate::records::events::EventQuery {
        kinds: vec![EVENT.to_owned()],
        ..Default::default()
    });
    let lines: Vec<String> = events.unwrap().iter().map(Event::line).collect();
    assert!(
        lines[0].starts_with("lab/witness has something to decide"),
        "{lines:?}"
    );
    assert_eq!(lines.len(), 2);
}

#[test]
fn acknowledged_and_closed_matters_wake_no_agent() {
    let stage = StoppedTown::new();
    let work = Work::of(stage.town());
    let first = stage.raise("lab/polecats/Toast", Severity::High);
    let second = stage.raise("lab/polecats/Salt", Severity::High);
    work.acknowledge_escalation(&first, "ann").unwrap();
    work.close_escalation(&second, "ann", None).unwrap();
    assert_eq!(stage.deliver_after(0), []);
}

#[test]
fn interrupted_deliveries_are_recognised_or_repeated_with_their_id() {
    let stage = StoppedTown::new();
    stage.raise("lab/polecats/Toast", Severity::High);
    // Killed before the start.
    let mut memory = read(stage.town()).unwrap();
    let planned = due(stage.town(), &mut memory).unwrap();
    write(stage.town(), &memory).unwrap();
    assert_eq!(stage.deliver_after(1), told(DigestDelivery::Started));
    // Killed after the start, before it was recorded.
    write(stage.town(), &memory).unwrap();
    assert_eq!(stage.deliver_after(1), told(DigestDelivery::Before));
    assert_eq!(stage.queue(&witness()), Vec::<String>::new());
    // Killed after the message was queued.
    stage.raise("lab/polecats/Salt", Severity::High);
    stage.clock.advance(Duration::from_secs(600));
    let mut memory = read(stage.town()).unwrap();
    let next = due(stage.town(), &mut memory).unwrap();
    assert_ne!(next[0].id, planned[0].id);
    write(stage.town(), &memory).unwrap();
    assert_eq!(stage.deliver_after(0), told(DigestDelivery::Queued));
    write(stage.town(), &memory).unwrap();
    assert_eq!(stage.deliver_after(0), told(DigestDelivery::Before));
    assert_eq!(stage.queue(&witness()).len(), 1);
}

#[test]
fn role_that_is_not_on_demand_is_not_started() {
    let stage = StoppedTown::new();
    let file = stage.town().root().join("lab/roles/witness.toml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, "[start]\non_demand = false\n").unwrap();
    stage.raise("lab/polecats/Toast", Severity::High);
    assert_eq!(stage.deliver_after(0), []);
    stage.town.start(&witness());
    assert_eq!(stage.deliver_after(1), told(DigestDelivery::Queued));
}

#[test]
fn emergency_stop_and_parked_rig_wake_no_agent() {
    let stage = StoppedTown::new();
    stage.raise("lab/polecats/Toast", Severity::High);
    let note = estop::EstopNote {
        rig: Some("lab".to_owned()),
        ..estop::EstopNote::default()
    };
    estop::set(stage.town(), &note).unwrap();
    assert_eq!(stage.deliver_after(0), []);
    estop::clear(stage.town(), Some("lab")).unwrap();
    assert_eq!(stage.deliver_after(1), told(DigestDelivery::Started));
}

#[test]
fn agent_that_cannot_be_started_is_escalated_once() {
    let stage = StoppedTown::new();
    std::fs::remove_file(stage.town().root().join("echo-agent")).unwrap();
    stage.raise("lab/polecats/Toast", Severity::High);
    let mut failures = 0;
    for _ in 0..200 {
        stage.clock.advance(Duration::from_secs(60));
        let woken = run(stage.town()).unwrap().unwrap();
        failures += woken.iter().filter(|it| it.result.is_err()).count();
    }
    assert!(
        (4..10).contains(&failures),
        "{failures} attempts in 200 minutes"
    );
    let open = Work::of(stage.town()).escalations(&EscalationQuery {
        state: Some(EscalationState::Open),
        ..EscalationQuery::default()
    });
    let open = open.unwrap();
    let about: Vec<&str> = open.iter().filter_map(|it| it.key.as_deref()).collect();
    assert_eq!(about, ["wake:lab/witness"]);
}

#[test]
fn finished_agent_is_ended_and_the_next_matter_starts_it_again() {
    let stage = StoppedTown::new();
    stage.raise("lab/polecats/Toast", Severity::High);
    assert_eq!(stage.deliver_after(0), told(DigestDelivery::Started));
    let patrol = |seconds| {
        stage.clock.advance(Duration::from_secs(seconds));
        let done = patrol::patrol_once(stage.town()).unwrap().unwrap();
        let done = done
            .into_iter()
            .filter(|it| it.action.rule == "finished-round");
        done.map(|it| (it.action.kind, it.result.is_ok()))
            .collect::<Vec<_>>()
    };
    wait_until("it is idle", TIMEOUT, || {
        let screen = peek::peek(stage.town(), &witness(), None, false).ok()?;
        screen
            .lines
            .iter()
            .any(|line| line.contains('>'))
            .then_some(())
    });
    let mut ended = patrol(0);
    for _ in 0..3 {
        ended.extend(patrol(310));
    }
    assert_eq!(ended, [(ActionKind::End, true)]);
    assert!(stage.town.container(&witness()).is_none());
    // It is not dead: no rule brings it back, and what it was told does not start it again.
    assert_eq!(patrol(3600), []);
    assert!(stage.town.container(&witness()).is_none());
    stage.raise("lab/polecats/Salt", Severity::High);
    assert_eq!(stage.deliver_after(0), told(DigestDelivery::Started));
}

use super::*;

const DAY: u64 = 86_400;

#[test]
fn a_line_of_the_log_has_the_documented_shape() {
    let mut event = Event::emitted("session_start", "mayor").with("session_id", "a");
    event = event.with("rig", Value::Null);
    event.ts = "2026-01-17T01:00:00.000Z".into();
    let line = serde_json::to_string(&event).unwrap();
    assert_eq!(
        line,
        r#"{"ts":"2026-01-17T01:00:00.000Z","source":"gt","type":"session_start","actor":"mayor","payload":{"session_id":"a"},"visibility":"both"}"#
    );
    assert_eq!(serde_json::from_str::<Event>(&line).unwrap(), event);
}

#[test]
fn values_fall_by_the_documented_curves() {
    let check = |decay: Decay, part: f64, expected: f64| {
        let value = decay.value(part);
        assert!(
            (value - expected).abs() < 1e-9,
            "{decay:?}({part}) = {value}"
        );
    };
    for decay in [Decay::Rapid, Decay::Steady, Decay::Slow, Decay::Flat] {
        check(decay, 0.0, 1.0);
        check(decay, -3.0, 1.0);
        check(decay, 1.0, 0.0);
        check(decay, 7.0, 0.0);
    }
    check(Decay::Rapid, 0.25, 0.5);
    check(Decay::Rapid, 0.5, 0.25);
    check(Decay::Steady, 0.25, 0.75);
    check(Decay::Slow, 0.75, 0.5);
    check(Decay::Flat, 0.89, 1.0);
    check(Decay::Flat, 0.95, 0.5);
}

#[test]
fn times_are_those_of_the_document_and_a_town_may_set_others() {
    let policy = Policy::default();
    for (kind, days) in [
        ("patrol_started", 1),
        ("polecat_checked", 1),
        ("polecat_nudged", 1),
        ("session_start", 3),
        ("session_end", 3),
        ("nudge", 3),
        ("handoff", 7),
        ("hook", 14),
        ("unhook", 14),
        ("sling", 14),
        ("done", 14),
        ("mail", 30),
        ("session_death", 30),
        ("merge_failed", 30),
        ("mass_death", 90),
        ("never_heard_of", 7),
    ] {
        assert_eq!(policy.ttl_of(kind), days * DAY, "{kind}");
    }
    let ttl = [
        ("session_*", 5),
        ("session_end", 9),
        ("deploy", 2),
        ("*", 8),
    ];
    let policy = Policy {
        ttl: ttl.map(|(kind, ttl)| (kind.to_owned(), ttl)).into(),
    };
    assert_eq!(policy.ttl_of("session_start"), 5);
    assert_eq!(policy.ttl_of("session_end"), 9);
    assert_eq!(policy.ttl_of("nudge"), 3 * DAY, "it has a row");
    assert_eq!(policy.ttl_of("never_heard_of"), 8);
    assert!(policy.is_expired("deploy", 2) && !policy.is_expired("deploy", 1));
    assert!(!policy.is_expired("deploy", -100), "a clock that was wrong");
    assert!((policy.value("deploy", 1) - 0.5).abs() < 1e-9);
    let rules = policy.rules();
    assert!(rules.iter().any(|r| r.pattern == "deploy" && r.overridden));
    assert_eq!(rules.len(), KINDS.len() + 1 + 2, "{rules:?}");
}

#[test]
fn emitted_event_is_validated() {
    let good = Event::emitted("deploy_2", "ci");
    assert!(good.check().is_ok());
    for kind in ["", "Deploy", "a b", "a*", "_a", "ä", &"a".repeat(65)] {
        assert!(Event::emitted(kind, "ci").check().is_err(), "{kind}");
    }
    assert!(Event::emitted("deploy", "").check().is_err());
    assert!(Event::emitted("deploy", "a\u{1b}[2J").check().is_err());
    let large = Event::emitted("deploy", "ci").with("text", "x".repeat(LARGEST_PAYLOAD));
    assert!(large.check().is_err());
}

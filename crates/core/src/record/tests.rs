use super::*;

#[test]
fn session_is_the_sum_of_its_lines() {
    let mut session: Record = serde_json::from_str(
            r#"{"id":"a","agent":"gastown/crew/max","started_at":"2026-01-17T01:00:00Z","status":"running","pid":7}"#,
        )
        .unwrap();
    assert!(session.is_start());
    let end: Record =
        serde_json::from_str(r#"{"id":"a","outcome":"crash","status":"stopped","new":1}"#).unwrap();
    assert!(!end.is_start());
    session.merge(end);
    assert_eq!(session.outcome, Some(Outcome::Crash));
    assert_eq!(session.status, Some(SessionStatus::Stopped));
    assert_eq!(session.pid, Some(7), "what is not said stays");
    let revived = serde_json::from_str(r#"{"id":"a","status":"running"}"#).unwrap();
    session.merge(revived);
    assert_eq!(session.outcome, None, "it did not end after all");
}

#[test]
fn an_empty_step_reference_clears_the_step() {
    let step = |text: &str| Record {
        step_ref: Some(text.to_owned()),
        ..Record::about("a")
    };
    let mut session = step("build");
    session.merge(Record::about("a"));
    assert_eq!(session.step_ref.as_deref(), Some("build"));
    session.merge(step(""));
    assert_eq!(session.without_cleared().step_ref, None);
    assert!(step("build").without_cleared().step_ref.is_some());
}

fn tokens(output_tokens: u64) -> Usage {
    Usage {
        output_tokens,
        cost_usd: Some(output_tokens as f64 / 1e3),
        ..Usage::default()
    }
}

#[test]
fn usage_of_a_later_line_never_lowers_the_known_usage() {
    let line = |output_tokens| Record {
        usage: Some(tokens(output_tokens)),
        ..Record::about("a")
    };
    let mut session = line(14);
    session.merge(line(7));
    assert_eq!(session.usage, Some(tokens(14)));
    session.merge(Record::about("a"));
    assert_eq!(session.usage, Some(tokens(14)));
    session.merge(line(21));
    assert_eq!(session.usage, Some(tokens(21)));
}

#[test]
fn usage_is_divided_between_the_items_of_a_session() {
    let mut session = Record::about("a");
    // A, then B, then A again, then C; the last figure is of the whole session.
    for (item, so_far) in [("A", 0), ("B", 100), ("A", 130), ("C", 190)] {
        let line = session.switch_to_item(item, Some(tokens(so_far)));
        session.merge(line);
    }
    session.usage = Some(tokens(200));
    let share = |item| session.share_of(item);
    for (item, expected) in [("A", 160), ("B", 30), ("C", 10)] {
        let expected = Share {
            usage: Some(tokens(expected)),
            is_undivided: false,
        };
        assert_eq!(share(item), expected, "{item}");
    }
    assert_eq!(
        session.work_units().collect::<Vec<_>>(),
        ["A", "B", "C"],
        "each once"
    );
}

#[test]
fn items_of_lines_without_figures_count_the_whole_session() {
    let of = |item: &str| Record {
        work_unit: Some(item.to_owned()),
        ..Record::about("a")
    };
    let mut session = of("A");
    session.merge(of("A"));
    assert_eq!(session.earlier_work, None, "it is the same one");
    session.usage = Some(tokens(5));
    assert!(!session.share_of("A").is_undivided);
    session.merge(of("B"));
    session.merge(of("A"));
    session.merge(of("C"));
    assert_eq!(
        session.work_units().collect::<Vec<_>>(),
        ["A", "B", "C"],
        "each once"
    );
    for item in ["A", "B", "C"] {
        let share = session.share_of(item);
        assert_eq!((share.usage, share.is_undivided), (Some(tokens(5)), true));
    }
    // Later lines that are merged first give the same result.
    let (mut first, mut rest) = (of("A"), of("B"));
    rest.merge(of("C"));
    first.merge(rest);
    assert_eq!(first.work_units().collect::<Vec<_>>(), ["A", "B", "C"]);
}

#[test]
fn every_outcome_has_a_word() {
    for outcome in Outcome::ALL {
        assert_eq!(Outcome::from_word(outcome.as_str()), Some(outcome));
    }
    assert_eq!(Outcome::from_word("x"), None);
}

#[test]
fn only_a_known_status_of_zero_is_a_clean_exit() {
    for (status, signal, expected) in [
        (Some(0), None, Outcome::Exited),
        (Some(0), Some(0), Outcome::Exited),
        (Some(1), None, Outcome::Crash),
        (None, Some(9), Outcome::Crash),
        (Some(0), Some(15), Outcome::Crash),
        (None, None, Outcome::Crash),
    ] {
        let outcome = Outcome::of_process(status, signal);
        assert_eq!(outcome, expected, "{status:?} {signal:?}");
    }
}

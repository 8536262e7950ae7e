//! Sessions that worked on more than one item.

use super::*;
use crate::base::time;

fn usage(output_tokens: u64) -> Usage {
    Usage {
        output_tokens,
        ..Usage::default()
    }
}

/// Creates a session that begins with item A, ends with item B and took 100 tokens. `so_far` is its
/// usage at the change, if known.
fn with_two_items(so_far: Option<u64>) -> Place {
    let place = Place::with(3);
    let of_a = Record {
        work_unit: Some("gt-a".into()),
        ..Record::about(id(1))
    };
    place.sessions.record(std::slice::from_ref(&of_a)).unwrap();
    // The index reads the first item now, before the change.
    place.listed();
    let change = of_a.switch_to_item("gt-b", so_far.map(usage));
    let end = Record {
        usage: Some(usage(100)),
        ..Sessions::ending(id(1), SessionEnd::of(Outcome::Done), &Clock::default())
    };
    place.sessions.record(&[change, end]).unwrap();
    place
}

/// Checks list, chain and board for an item: whether the session is found, its tokens, and whether
/// they are undivided.
fn check(place: &Place, item: &str, tokens: u64, is_undivided: bool, when: &str) {
    let sessions = &place.sessions;
    let listed = sessions
        .find(&SessionQuery {
            work: Some(item.to_owned()),
            ..SessionQuery::default()
        })
        .unwrap();
    let chain = sessions.chain(item, 9).unwrap();
    assert_eq!(chain.item.as_deref(), Some(item), "{when}");
    for found in [&listed, &chain.sessions] {
        let ids: Vec<&str> = found.iter().map(|session| session.id.as_str()).collect();
        assert_eq!(ids, [id(1)], "{item} {when}");
        let share = found[0].share_of(item);
        assert_eq!(share.usage, Some(usage(tokens)), "{item} {when}");
        assert_eq!(share.is_undivided, is_undivided, "{item} {when}");
    }
    let sums = sessions.usage_by_work([item].into_iter()).unwrap();
    assert_eq!(sums.get(item), Some(&usage(tokens)), "{item} {when}");
}

#[test]
fn session_is_found_by_each_of_its_items_also_from_the_archive() {
    for (so_far, a, b) in [(Some(30), 30, 70), (None, 100, 100)] {
        let place = with_two_items(so_far);
        let is_undivided = so_far.is_none();
        let check = |when: &str| {
            check(&place, "gt-a", a, is_undivided, when);
            check(&place, "gt-b", b, is_undivided, when);
        };
        check("in the journal");
        place.sessions.rebuild().unwrap();
        check("rebuilt");
        let before = time::timestamp(jiff::Timestamp::now().as_second() + 60);
        let archived = place.sessions.archive(&before, false).unwrap();
        assert_eq!(archived.sessions, 1);
        check("archived");
        place.sessions.rebuild().unwrap();
        check("archived and rebuilt");
        place
            .sessions
            .record(&[Record {
                branch: Some("main".into()),
                ..Record::about(id(1))
            }])
            .unwrap();
        check("back from the archive");
        place.sessions.rebuild().unwrap();
        check("back from the archive and rebuilt");
    }
}

#[test]
fn session_whose_record_is_lost_counts_for_its_item() {
    let place = with_two_items(Some(30));
    // An index that has more to read of the journal notices the loss while it does so.
    place.listed();
    let db = rusqlite::Connection::open(place.database()).unwrap();
    let find = "SELECT rowid FROM lives WHERE id = ?1";
    let lose = format!("DELETE FROM records WHERE life = ({find})");
    assert_eq!(db.execute(&lose, [id(1)]).unwrap(), 1);
    drop(db);
    let sums = place.sessions.usage_by_work(["gt-a", "gt-b"].into_iter());
    let sums = sums.unwrap();
    let of = |item| sums.get(item).cloned();
    assert_eq!((of("gt-a"), of("gt-b")), (Some(usage(30)), Some(usage(70))));
}

#[test]
fn archived_sessions_of_an_item_are_filtered_like_the_others() {
    let place = with_two_items(Some(30));
    let before = time::timestamp(jiff::Timestamp::now().as_second() + 60);
    place.sessions.archive(&before, false).unwrap();
    let of_item = SessionQuery {
        work: Some("gt-a".into()),
        ..SessionQuery::default()
    };
    let count = |query: SessionQuery| place.sessions.find(&query).unwrap().len();
    let text = |text: &str| Some(text.to_owned());
    for (agent, outcome, since, expected) in [
        (text("agent/a1"), text("done"), None, 1),
        (text("agent/a2"), None, None, 0),
        (None, text("crash"), None, 0),
        (None, None, text("2026-01-01T00:00:00Z"), 1),
        (None, None, text("2026-02-01T00:00:00Z"), 0),
    ] {
        let query = SessionQuery {
            agent,
            outcome,
            since,
            ..of_item.clone()
        };
        assert_eq!(count(query.clone()), expected, "{query:?}");
    }
    let none = SessionQuery {
        limit: Some(0),
        ..of_item
    };
    assert_eq!(count(none), 0);
}

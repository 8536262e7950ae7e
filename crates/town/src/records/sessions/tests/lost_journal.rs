//! A journal that is lost while its index still exists.

use super::*;
use crate::base::clock::Clock;
use std::fs;

fn without_journal(lose: impl Fn(&Path)) -> Place {
    let place = Place::with(20);
    let line = Record {
        work_unit: Some("gt-b".into()),
        ..Record::about(id(3))
    };
    let earlier = Record {
        work_unit: Some("gt-a".into()),
        ..line.clone()
    };
    place.sessions.record(&[earlier, line]).unwrap();
    place.listed();
    lose(place.sessions.journal_path());
    place
}

fn of_item(place: &Place) -> Vec<Record> {
    let chain = place.sessions.chain("gt-a", 9).unwrap();
    chain.sessions
}

#[test]
fn missing_or_empty_journal_is_an_error_and_its_index_stays() {
    let losses: [fn(&Path); 2] = [
        |path| fs::remove_file(path).unwrap(),
        |path| fs::write(path, "").unwrap(),
    ];
    for lose in losses {
        let place = without_journal(lose);
        let sessions = &place.sessions;
        let line = Record {
            agent: Some("agent/new".into()),
            started_at: Some(Clock::default().text()),
            ..Record::about("new")
        };
        let lines = std::slice::from_ref(&line);
        let problems: Vec<Problem> = [
            sessions.find(&SessionQuery::default()).map(drop),
            sessions.rebuild().map(drop),
            sessions.record(lines),
            sessions.record_known(lines, &line),
            sessions.add_process(line.clone()),
            sessions
                .record_where(vec![((), line.clone())], |(), _| true)
                .map(drop),
            sessions.compare_index().map(drop),
        ]
        .into_iter()
        .map(Result::unwrap_err)
        .collect();
        for problem in problems {
            assert!(problem.to_string().contains("is missing"), "{problem}");
            assert!(problem.hints()[0].contains("gt doctor --fix"));
        }
        let is_empty = fs::read(sessions.journal_path()).is_ok_and(|text| text.is_empty());
        assert!(is_empty || !sessions.journal_path().exists());

        assert_eq!(sessions.restore_journal().unwrap(), 20);
        assert_eq!(place.listed(), ids(20));
        let items: Vec<String> = of_item(&place)[0].work_units().map(str::to_owned).collect();
        assert_eq!(items, ["gt-a", "gt-b"]);
        assert_eq!(sessions.compare_index().unwrap(), None);
        sessions.record(lines).unwrap();
        assert_eq!(place.listed().len(), 21);
    }
}

#[test]
fn index_of_another_version_is_not_replaced_without_its_journal() {
    let place = without_journal(|path| fs::remove_file(path).unwrap());
    let db = rusqlite::Connection::open(place.database()).unwrap();
    db.pragma_update(None, "user_version", 1).unwrap();
    drop(db);
    assert!(place.sessions.find(&SessionQuery::default()).is_err());
    assert_eq!(place.sessions.restore_journal().unwrap(), 20);
    assert_eq!(place.listed(), ids(20));
}

#[test]
fn town_without_sessions_needs_no_journal() {
    let place = Place::with(0);
    fs::remove_file(place.sessions.journal_path()).unwrap();
    assert_eq!(place.listed(), ids(0));
    place.begin(0..2);
    assert_eq!(place.listed(), ids(2));
}

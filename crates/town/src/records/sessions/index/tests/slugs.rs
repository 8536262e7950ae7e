//! Tests of the table `sessions`, as a program reads it that knows only the sync document.

use super::*;
use crate::base::time;

const COLUMNS: &str =
    "slug, harness_type, working_directory, status, initial_prompt, created_at, updated_at";

type Row = (
    String,
    String,
    Option<String>,
    String,
    Option<String>,
    i64,
    i64,
);

fn rows(place: &TestJournal) -> Vec<Row> {
    drop(place.open());
    let db = Connection::open(place.database()).unwrap();
    let text = format!("SELECT {COLUMNS} FROM sessions ORDER BY slug");
    let mut query = db.prepare(&text).unwrap();
    let rows = query.query_map([], |row| {
        Ok((
            row.get(0)?,
            row.get(1)?,
            row.get(2)?,
            row.get(3)?,
            row.get(4)?,
            row.get(5)?,
            row.get(6)?,
        ))
    });
    rows.unwrap().map(Result::unwrap).collect()
}

fn of(agent: &str, id: &str, second: i64) -> Record {
    Record {
        agent: Some(agent.into()),
        cwd: Some(format!("/srv/{id}")),
        initial_prompt: Some(format!("prompt of {id}")),
        started_at: Some(time::timestamp(second)),
        ..begin(id)
    }
}

#[test]
fn one_row_for_each_slug_says_what_its_newest_session_says() {
    let claude = Record {
        harness: Some("claude".into()),
        ..of("agent/helper", "b", 200)
    };
    let codex = Record {
        harness: Some("codex".into()),
        ..of("agent/helper", "c", 300)
    };
    let place = TestJournal::with(&[of("agent/helper", "a", 100), claude]);
    let row = rows(&place).remove(0);
    assert_eq!(row.0, "helper");
    assert_eq!((row.1.as_str(), row.3.as_str()), ("claude-code", "running"));
    place.journal.append(&[codex]).unwrap();
    let mut all = rows(&place);
    assert_eq!(all.len(), 1);
    let row = all.remove(0);
    assert_eq!((row.1.as_str(), row.5), ("codex", 100));
    assert_eq!(row.2.as_deref(), Some("/srv/c"));
    assert_eq!(row.4.as_deref(), Some("prompt of c"));
}

#[test]
fn harness_type_and_status_have_the_defaults_of_the_document() {
    let place = TestJournal::with(&[Record {
        status: None,
        ..of("agent/x", "a", 100)
    }]);
    let row = rows(&place).remove(0);
    assert_eq!((row.1.as_str(), row.3.as_str()), ("claude-code", "running"));
    // Another program may add a row with the slug alone.
    let db = Connection::open(place.database()).unwrap();
    db.execute_batch("INSERT INTO sessions (slug) VALUES ('own')")
        .unwrap();
    let row = rows(&place).remove(0);
    assert_eq!((row.0.as_str(), row.1.as_str()), ("own", "claude-code"));
    assert!(row.3 == "running" && row.5 > 1_700_000_000 && row.6 == row.5);
}

#[test]
fn updated_at_rises_with_every_update() {
    let place = TestJournal::with(&[]);
    place.journal.append(&[of("mayor", "a", 100)]).unwrap();
    let mut last = 0;
    let ended = Record {
        status: Some(SessionStatus::Stopped),
        ..end("a")
    };
    for (line, status) in [
        (Record::about("a"), "running"),
        (of("mayor", "b", 200), "running"),
        (end("a"), "running"),
        (
            Record {
                id: "b".into(),
                ..ended
            },
            "stopped",
        ),
    ] {
        place.journal.append(&[line]).unwrap();
        let row = rows(&place).remove(0);
        assert!(row.6 > last, "{row:?} after {last}");
        assert_eq!(row.3, status);
        last = row.6;
    }
    drop(place.open());
    assert_eq!(rows(&place)[0].6, last, "nothing new, no update");
}

#[test]
fn slugs_of_different_agents_are_different() {
    let agents = ["mayor", "agent/mayor", "agent/max", "rig/crew/max"];
    let lines: Vec<Record> = agents
        .iter()
        .zip(["a", "b", "c", "d"])
        .map(|(agent, id)| of(agent, id, 100))
        .collect();
    let place = TestJournal::with(&lines);
    let slugs: Vec<String> = rows(&place).into_iter().map(|row| row.0).collect();
    assert_eq!(slugs, ["agent/mayor", "max", "mayor", "rig/crew/max"]);
}

#[test]
fn a_renamed_agent_has_its_new_slug_and_no_other() {
    let place = TestJournal::with(&[of("agent/old", "b", 200)]);
    drop(place.open());
    place
        .journal
        .append(&[Record {
            agent: Some("agent/new".into()),
            ..Record::about("b")
        }])
        .unwrap();
    let slugs = || -> Vec<String> { rows(&place).into_iter().map(|row| row.0).collect() };
    assert_eq!(slugs(), ["new"]);
    rebuild::remove_database(&place.database()).unwrap();
    assert_eq!(slugs(), ["new"]);
}

#[test]
fn a_rebuild_makes_the_rows_that_reading_on_has_made() {
    let mut lines = Vec::new();
    for (number, agent) in (0..).zip(["agent/x", "rig/witness", "agent/x", "agent/y"]) {
        lines.push(of(agent, &format!("id{number}"), 100 + number));
    }
    lines.push(Record {
        status: Some(SessionStatus::Stopped),
        ended_at: Some(time::timestamp(500)),
        ..end("id3")
    });
    let place = TestJournal::with(&[]);
    for line in lines {
        place.journal.append(&[line]).unwrap();
        drop(place.open());
    }
    let without_update = |rows: Vec<Row>| -> Vec<_> {
        let rows = rows.into_iter();
        rows.map(|(slug, harness, cwd, status, prompt, created, _)| {
            (slug, harness, cwd, status, prompt, created)
        })
        .collect()
    };
    let read_on = without_update(rows(&place));
    rebuild::remove_database(&place.database()).unwrap();
    let anew = rows(&place);
    let updates: Vec<i64> = anew.iter().map(|row| row.6).collect();
    assert_eq!(updates, [101, 102, 500], "{anew:?}");
    assert_eq!(without_update(anew), read_on);
}

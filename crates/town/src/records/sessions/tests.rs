//! Tests of the journal together with the index.

mod damage;
mod items;
mod lost_journal;

use super::*;
use crate::base::clock::Clock;
use crate::base::time;

/// A folder with a journal and an index, and no town around them.
struct Place {
    folder: tempfile::TempDir,
    sessions: Sessions,
}

impl Place {
    /// Creates this many sessions, each begun and ended.
    fn with(records: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let sessions = Sessions {
            clock: Clock::default(),
            folder: folder.path().to_owned(),
            journal: Journal::in_folder(folder.path()),
            archive: Archive::in_folder(folder.path()),
            database: IndexFile::at(&folder.path().join("index.db"), false),
            events: Events::in_folder(folder.path()),
        };
        let place = Place { folder, sessions };
        place.begin(0..records);
        place
    }

    fn begin(&self, numbers: std::ops::Range<usize>) {
        let lines: Vec<Record> = numbers
            .map(|number| Record {
                agent: Some(format!("agent/a{}", number % 7)),
                started_at: Some(time::timestamp(1_768_611_600 + number as i64)),
                status: Some(SessionStatus::Running),
                initial_prompt: Some("x".repeat(200)),
                ..Record::about(id(number))
            })
            .collect();
        self.sessions.journal.append(&lines).unwrap();
    }

    fn database(&self) -> PathBuf {
        self.folder.path().join("index.db")
    }

    fn listed(&self) -> Vec<String> {
        let found = self.sessions.find(&SessionQuery::default()).unwrap();
        let mut ids: Vec<String> = found.into_iter().map(|session| session.id).collect();
        ids.sort();
        ids
    }
}

fn id(number: usize) -> String {
    format!("life-{number:05}")
}

fn ids(count: usize) -> Vec<String> {
    (0..count).map(id).collect()
}

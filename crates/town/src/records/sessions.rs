//! The history of sessions.
//!
//! `.sessions/index.jsonl` is the journal and is written first. `.sessions/index.db` is built from
//! it and answers queries. [`Sessions`] gives access to both.

mod archive;
mod costs;
mod index;
mod index_check;
mod journal;
mod newest;
mod query;
mod recovery;
mod retention;
mod session_events;
mod spending;
mod stats;
#[cfg(test)]
mod tests;

pub use costs::{CostSum, Costs, CostsBy};
pub use index::Rebuilt;
pub use index_check::JournalState;
pub use journal::Damage;
pub use query::{Chain, SessionQuery};
pub use retention::Archived;
pub use spending::Spending;
pub use stats::{SessionTally, StatsBy};

use crate::base::clock::Clock;
use crate::base::or_log::OrLog;
use crate::base::time;
use crate::records::events::{self, Events};
use crate::{Result, Town};
use archive::Archive;
use gt_core::Problem;
use gt_core::record::{Outcome, Record, SessionStatus};
use gt_core::usage::Usage;
use index::{Index, IndexError, IndexFile, Sources, milliseconds};
use journal::Journal;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::path::{Path, PathBuf};

/// The sessions of a town.
#[derive(Clone, Debug)]
pub struct Sessions {
    folder: PathBuf,
    journal: Journal,
    archive: Archive,
    database: IndexFile,
    events: Events,
    clock: Clock,
}

/// The end of a session.
#[derive(Clone, Copy, Debug)]
pub struct SessionEnd {
    pub outcome: Outcome,
    /// Seconds since the epoch; `None` means now.
    pub at: Option<i64>,
    pub exit_code: Option<i32>,
}

impl SessionEnd {
    /// Returns an end at the present time, with no exit code.
    pub fn of(outcome: Outcome) -> Self {
        SessionEnd {
            outcome,
            at: None,
            exit_code: None,
        }
    }
}

impl Sessions {
    pub fn of(town: &Town) -> Self {
        let folder = town.root().join(".sessions");
        Sessions {
            journal: Journal::in_folder(&folder).with_deadline(town.deadline()),
            archive: Archive::in_folder(&folder),
            database: IndexFile::at(&folder.join("index.db"), false).with_deadline(town.deadline()),
            folder,
            events: Events::of(town),
            clock: town.clock().clone(),
        }
    }

    /// Returns the path of the journal.
    pub(crate) fn journal_path(&self) -> &Path {
        self.journal.path()
    }

    /// Uses an index in another file; the journal stays the same.
    pub fn with_database(self, path: &Path) -> Self {
        Sessions {
            database: IndexFile::at(path, true),
            ..self
        }
    }

    /// Writes these lines to the journal; afterwards they survive a crash. Reports sessions that
    /// begin or end with them as events.
    pub fn record(&self, lines: &[Record]) -> Result<()> {
        crate::base::files::make_dir(&self.folder)?;
        // The index has no record of a session that begins. If the index cannot be queried, the
        // lines are written anyway.
        let about = lines.iter().filter(|line| !line.is_start());
        // Held from the look-up to the append: if a session were archived in between, the journal
        // would have only these lines of it.
        let lock = self.journal.lock()?;
        self.check_journal()?;
        let known = self.look_up(about.map(|line| line.id.as_str()));
        let known = known.or_warn("events of this session may lack its agent");
        let known = known.unwrap_or_default();
        let back = taken_back(lines, &known);
        self.journal.append_locked(&[&back, lines].concat())?;
        drop(lock);
        self.emit(lines, &known);
        Ok(())
    }

    /// Writes these lines for a caller that knows the journal's record of `session`, the only one
    /// among them that is not new.
    pub(crate) fn record_known(&self, lines: &[Record], session: &Record) -> Result<()> {
        self.check_journal()?;
        self.journal.append(lines)?;
        let known = HashMap::from([(session.id.clone(), StoredSession::Open(session.clone()))]);
        self.emit(lines, &known);
        Ok(())
    }

    /// Adds the pane and the process to a session that this process has begun. This needs no
    /// look-up and causes no event. Panes and processes end with the machine, so the write does not
    /// wait for the disk.
    pub(crate) fn add_process(&self, line: Record) -> Result<()> {
        self.check_journal()?;
        self.journal.append_without_sync(&[line])
    }

    /// Writes the lines for which `is_news` returns true; it gets the known record of the line's
    /// session. Checks and writes under the lock. Returns the lines that it wrote.
    pub fn record_where<T: Copy>(
        &self,
        mut lines: Vec<(T, Record)>,
        is_news: impl Fn(T, Option<&Record>) -> bool,
    ) -> Result<Vec<(T, Record)>> {
        crate::base::files::make_dir(&self.folder)?;
        let _lock = self.journal.lock()?;
        self.check_journal()?;
        let known = self.look_up(lines.iter().map(|(_, line)| line.id.as_str()))?;
        lines.retain(|(what, line)| is_news(*what, known.get(&line.id).map(StoredSession::record)));
        let records: Vec<Record> = lines.iter().map(|(_, line)| line.clone()).collect();
        if !records.is_empty() {
            let back = taken_back(&records, &known);
            self.journal
                .append_locked(&[&back, records.as_slice()].concat())?;
            self.emit(&records, &known);
        }
        Ok(lines)
    }

    /// Reports sessions that began or ended as events.
    fn emit(&self, lines: &[Record], known: &HashMap<String, StoredSession>) {
        let events = session_events::events(lines, |id| {
            known.get(id).map(|known| known.record().clone())
        });
        let has_deaths = session_events::include_deaths(&events);
        self.events.note(events);
        if has_deaths {
            let since = jiff::SignedDuration::from_secs(session_events::TOGETHER_SECONDS);
            let recent = self.events.find(&events::EventQuery {
                kinds: vec!["*_death".to_owned()],
                since: self.clock.now().checked_sub(since).ok(),
                ..events::EventQuery::default()
            });
            let recent = recent.or_warn("a mass death may stay unreported");
            let mass = recent.and_then(|recent| session_events::mass_death(&recent));
            self.events.note(mass.into_iter().collect());
        }
    }

    /// Returns those of these sessions that the journal or the archive has.
    pub fn find_known<'a>(
        &self,
        ids: impl Iterator<Item = &'a str>,
    ) -> Result<HashMap<String, Record>> {
        let known = self.look_up(ids)?;
        Ok(known
            .into_iter()
            .map(|(id, known)| (id, known.into_record()))
            .collect())
    }

    /// Returns those of these sessions that are in the journal and not in the archive.
    pub fn in_journal<'a>(
        &self,
        ids: impl Iterator<Item = &'a str>,
    ) -> Result<HashMap<String, Record>> {
        let known = self.look_up(ids)?.into_iter();
        let open = known.filter_map(|(id, known)| match known {
            StoredSession::Open(session) => Some((id, session)),
            StoredSession::Archived(_) => None,
        });
        Ok(open.collect())
    }

    fn look_up<'a>(
        &self,
        ids: impl Iterator<Item = &'a str>,
    ) -> Result<HashMap<String, StoredSession>> {
        let ids: Vec<&str> = ids.collect();
        if ids.is_empty() {
            return Ok(HashMap::new());
        }
        self.ask(|index| {
            let mut known = HashMap::new();
            for id in &ids {
                let session = match query::by_id(index, id)? {
                    Some(session) => Some(StoredSession::Open(session)),
                    None => {
                        query::of_archive(index, &self.archive, id)?.map(StoredSession::Archived)
                    }
                };
                known.extend(session.map(|session| ((*id).to_owned(), session)));
            }
            Ok(known)
        })
    }

    /// Returns the line that ends a session.
    pub fn ending(id: impl Into<String>, end: SessionEnd, clock: &Clock) -> Record {
        Record {
            ended_at: Some(end.at.map_or_else(|| clock.text(), time::timestamp)),
            outcome: Some(end.outcome),
            exit_code: end.exit_code,
            status: Some(SessionStatus::Stopped),
            ..Record::about(id)
        }
    }

    /// Returns the sessions that match, the newest first.
    pub fn find(&self, query: &SessionQuery) -> Result<Vec<Record>> {
        self.ask(|index| query::find_all(index, &self.archive, query))
    }

    /// Returns the ids of the sessions that the journal has as running, without their records.
    pub(crate) fn running_ids(&self) -> Result<Vec<String>> {
        self.ask(query::running_ids)
    }

    /// Returns the one session whose id begins with `prefix`. Fails if there is none.
    pub fn get(&self, prefix: &str) -> Result<Record> {
        let found = self.lookup(prefix)?;
        found.ok_or_else(|| not_found(&prefix.to_ascii_lowercase()))
    }

    /// Returns the one session whose id begins with `prefix`, if there is one. Fails if there are
    /// several.
    pub(crate) fn lookup(&self, prefix: &str) -> Result<Option<Record>> {
        self.ask(|index| query::by_prefix(index, &self.archive, prefix))
    }

    /// Returns all sessions that worked on an item, by its id, or all sessions of a chain, by its
    /// id or the id of any session in it. The oldest is first; of a longer chain the newest are
    /// returned.
    pub fn chain(&self, what: &str, limit: usize) -> Result<Chain> {
        self.ask(|index| query::chain(index, &self.archive, what, limit))
    }

    /// Returns the total usage of each item, over all its sessions. The usage of a running session
    /// is the one in the journal.
    pub(crate) fn usage_by_work<'a>(
        &self,
        items: impl Iterator<Item = &'a str>,
    ) -> Result<HashMap<String, Usage>> {
        let items: Vec<&str> = items.collect();
        match items.is_empty() {
            true => Ok(HashMap::new()),
            false => self.ask(|index| query::usage_by_work(index, &items)),
        }
    }

    /// Passes every session to `give`, the oldest first. A damaged file of the archive yields its
    /// readable sessions; the damage is returned at the end.
    pub fn for_each(&self, mut give: impl FnMut(&Record) -> Result<()>) -> Result<Vec<Problem>> {
        let mut damages = Vec::new();
        for file in self.archive.files() {
            let mut given = Ok(());
            // A session that was being moved may be in the journal as well.
            let archived = self.ask(|index| query::all_archived_in(index, &file))?;
            let read = self.archive.for_each(&file, |id, line| {
                let is_archived = archived.contains(&hash(id));
                if let (true, Ok(session)) = (is_archived, serde_json::from_str(line)) {
                    given = give(&session);
                    given.clone()?;
                }
                Ok::<(), Problem>(())
            });
            given?;
            damages.extend(read.err());
        }
        // If the index turns out to be damaged half-way, the rebuilt index yields the rest.
        let mut done = HashSet::new();
        let mut give_once = |session: &Record| match done.insert(hash(&session.id)) {
            true => give(session),
            false => Ok(()),
        };
        let index = self.open()?;
        match query::for_each(&index, &mut give_once) {
            Err(broken @ IndexError::Damaged(_)) => {
                let index = self.repaired(index, &broken)?;
                query::for_each(&index, give_once).map_err(Problem::from)?;
            }
            given => given.map_err(Problem::from)?,
        }
        Ok(damages)
    }

    /// Rebuilds the index from the journal.
    pub fn rebuild(&self) -> Result<Rebuilt> {
        crate::base::files::make_dir(&self.folder)?;
        Index::rebuild(&self.database, self.sources())
    }

    /// Does now what would delay the next query: brings the index up to date and checkpoints its
    /// log. Best effort: the next query reports an error.
    pub fn tidy(&self) {
        if let Ok(index) = self.open() {
            index.tidy();
        }
    }

    fn sources(&self) -> Sources<'_> {
        Sources {
            journal: &self.journal,
            archive: &self.archive,
        }
    }

    fn open(&self) -> Result<Index> {
        crate::base::files::make_dir(&self.folder)?;
        Index::open(&self.database, self.sources())
    }

    /// Queries the index. A damaged index is rebuilt and queried again.
    fn ask<T>(&self, question: impl Fn(&Index) -> Result<T, IndexError>) -> Result<T> {
        let index = self.open()?;
        let broken = match question(&index) {
            Err(broken @ (IndexError::Damaged(_) | IndexError::Outdated(_))) => broken,
            answer => return answer.map_err(Problem::from),
        };
        let index = self.repaired(index, &broken)?;
        question(&index).map_err(Problem::from)
    }

    /// Replaces a damaged index. The index and its lock are dropped first, because the repair needs
    /// the lock exclusively.
    fn repaired(&self, index: Index, broken: &IndexError) -> Result<Index> {
        let damaged = index.file();
        drop(index);
        Index::open_repaired(&self.database, self.sources(), broken, damaged)
    }
}

/// A known session, and where it is stored.
enum StoredSession {
    Open(Record),
    Archived(Record),
}

impl StoredSession {
    fn record(&self) -> &Record {
        match self {
            StoredSession::Open(session) | StoredSession::Archived(session) => session,
        }
    }

    fn into_record(self) -> Record {
        match self {
            StoredSession::Open(session) | StoredSession::Archived(session) => session,
        }
    }
}

/// Returns the archived sessions that these lines change. Their complete records are written back
/// to the journal before the lines.
fn taken_back(lines: &[Record], known: &HashMap<String, StoredSession>) -> Vec<Record> {
    let mut back: Vec<Record> = Vec::new();
    for line in lines {
        if let Some(StoredSession::Archived(session)) = known.get(&line.id)
            && !back.iter().any(|other| other.id == session.id)
        {
            back.push(session.clone());
        }
    }
    back
}

/// Returns the duration of a session, or its duration until `now`, in milliseconds. Callers add
/// these up and truncate the sum to seconds once.
pub fn lasted(session: &Record, now: jiff::Timestamp) -> Option<i64> {
    let began = milliseconds(session.started_at.as_deref()?)?;
    let ended = match session.ended_at.as_deref() {
        Some(at) => milliseconds(at)?,
        None => now.as_millisecond(),
    };
    Some((ended - began).max(0))
}

/// Hashes an id, which saves memory when a million ids are held.
fn hash(id: &str) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(id)
}

fn not_found(what: &str) -> Problem {
    Problem::not_found(format!("there is no session {what:?}"))
        .hint("`gt sessions list` shows them")
}

//! The lives of agents, remembered.
//!
//! `.sessions/index.jsonl` is the journal, which is written first; `.sessions/index.db`
//! is made from it and is what queries read. [`Sessions`] is the way to both.

mod archive;
mod index;
mod journal;
mod news;
mod query;
mod retention;
mod stats;

pub use index::Rebuilt;
pub use journal::Damage;
pub use query::Query;
pub use retention::Archived;
pub use stats::{By, Tally};

use crate::events::{self, Events};
use crate::{Result, Town};
use archive::Archive;
use gt_core::Problem;
use gt_core::record::{Outcome, Record, Status};
use index::Index;
use journal::Journal;
use std::collections::HashMap;
use std::path::PathBuf;

/// The lives of a town.
#[derive(Clone, Debug)]
pub struct Sessions {
    folder: PathBuf,
    journal: Journal,
    archive: Archive,
    database: PathBuf,
    events: Events,
}

/// How a life ended.
#[derive(Clone, Copy, Debug)]
pub struct End {
    pub outcome: Outcome,
    /// Seconds since the epoch; now, where it is not known.
    pub at: Option<i64>,
    pub exit_code: Option<i32>,
}

impl End {
    /// Just now, and nothing more is known.
    pub fn of(outcome: Outcome) -> Self {
        End {
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
            journal: Journal::in_folder(&folder),
            archive: Archive::in_folder(&folder),
            database: folder.join("index.db"),
            folder,
            events: Events::of(town),
        }
    }

    /// The same lives, in an index elsewhere.
    pub fn with_database(self, path: PathBuf) -> Self {
        Sessions {
            database: path,
            ..self
        }
    }

    /// Remembers what these lines say; from here on it survives everything. Lives that
    /// begin or end with them are told as events.
    pub fn record(&self, lines: &[Record]) -> Result<()> {
        crate::files::make_dir(&self.folder)?;
        // Only of lives that end is more to be known than the lines say.
        let ends = lines.iter().filter(|line| line.outcome.is_some());
        let known = self
            .known(ends.map(|line| line.id.as_str()))
            .unwrap_or_default();
        self.journal.append(lines)?;
        self.events
            .note(news::events(lines, |id| known.get(id).cloned()));
        Ok(())
    }

    /// Remembers those of these lines that are still news, by what the journal says when
    /// nobody else can write. Gives them.
    pub fn record_where<T: Copy>(
        &self,
        mut lines: Vec<(T, Record)>,
        is_news: impl Fn(T, Option<&Record>) -> bool,
    ) -> Result<Vec<(T, Record)>> {
        crate::files::make_dir(&self.folder)?;
        let _lock = self.journal.lock()?;
        let known = self.known(lines.iter().map(|(_, line)| line.id.as_str()))?;
        lines.retain(|(what, line)| is_news(*what, known.get(&line.id)));
        let records: Vec<Record> = lines.iter().map(|(_, line)| line.clone()).collect();
        if !records.is_empty() {
            self.journal.append_locked(&records)?;
            self.tell(&records, &known);
        }
        Ok(lines)
    }

    /// Tells as events which lives began and ended.
    fn tell(&self, lines: &[Record], known: &HashMap<String, Record>) {
        let events = news::events(lines, |id| known.get(id).cloned());
        let tell_of_deaths = news::tell_of_deaths(&events);
        self.events.note(events);
        if tell_of_deaths {
            let since = jiff::SignedDuration::from_secs(news::TOGETHER_SECONDS);
            let recent = self.events.find(&events::Query {
                kinds: vec!["*_death".to_owned()],
                since: jiff::Timestamp::now().checked_sub(since).ok(),
                ..events::Query::default()
            });
            let mass = recent.ok().and_then(|recent| news::mass_death(&recent));
            self.events.note(mass.into_iter().collect());
        }
    }

    /// Those of these lives that the journal has heard of.
    pub fn known<'a>(&self, ids: impl Iterator<Item = &'a str>) -> Result<HashMap<String, Record>> {
        let mut ids = ids.peekable();
        if ids.peek().is_none() {
            return Ok(HashMap::new());
        }
        let index = self.open()?;
        let lives = ids.filter_map(|id| query::by_id(&index, id).transpose());
        lives
            .map(|life| life.map(|life| (life.id.clone(), life)))
            .collect()
    }

    /// The line that ends a life.
    pub fn ending(id: impl Into<String>, end: End) -> Record {
        Record {
            ended_at: Some(timestamp(end.at)),
            outcome: Some(end.outcome),
            exit_code: end.exit_code,
            status: Some(Status::Stopped),
            ..Record::about(id)
        }
    }

    /// The lives that fit, the newest first.
    pub fn find(&self, query: &Query) -> Result<Vec<Record>> {
        query::find(&self.open()?, query)
    }

    /// The one life whose id begins so.
    pub fn get(&self, prefix: &str) -> Result<Record> {
        query::by_prefix(&self.open()?, &self.archive, prefix)
    }

    /// All lives of a chain, the oldest first: by a life of it, the chain's own id, or
    /// the work that it was about.
    pub fn chain(&self, what: &str) -> Result<Vec<Record>> {
        query::chain(&self.open()?, &self.archive, what)
    }

    /// Gives every life to somebody, the oldest first.
    pub fn each(&self, mut give: impl FnMut(&str) -> Result<()>) -> Result<()> {
        let index = self.open()?;
        for file in self.archive.files() {
            self.archive.each(&file, |id, line| {
                // One that was being moved may be in the journal as well.
                match query::archived_in(&index, id)? {
                    Some(_) => give(line),
                    None => Ok(()),
                }
            })?;
        }
        query::each(&index, give)
    }

    /// Makes the index anew from the journal.
    pub fn rebuild(&self) -> Result<Rebuilt> {
        crate::files::make_dir(&self.folder)?;
        Index::rebuild(&self.database, &self.journal, &self.archive)
    }

    fn open(&self) -> Result<Index> {
        crate::files::make_dir(&self.folder)?;
        Index::open(&self.database, &self.journal, &self.archive)
    }
}

/// A time as a record holds it.
pub fn timestamp(seconds: Option<i64>) -> String {
    let at = seconds.and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    let at = at.unwrap_or_else(jiff::Timestamp::now);
    // Whole milliseconds, always as many digits: texts then sort like times.
    format!("{at:.3}")
}

fn not_found(what: &str) -> Problem {
    Problem::not_found(format!("there is no life {what:?}")).hint("`gt sessions list` shows them")
}

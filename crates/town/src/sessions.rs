//! The lives of agents, remembered.
//!
//! `.sessions/index.jsonl` is the journal, which is written first; `.sessions/index.db`
//! is made from it and is what queries read. [`Sessions`] is the way to both.

mod agreement;
mod archive;
mod index;
mod journal;
mod news;
mod query;
mod recovery;
mod retention;
mod stats;
#[cfg(test)]
mod tests;

pub use agreement::JournalState;
pub use index::Rebuilt;
pub use journal::Damage;
pub use query::{Chain, Query};
pub use retention::Archived;
pub use stats::{By, Tally};

use crate::events::{self, Events};
use crate::{Result, Town, when};
use archive::Archive;
use gt_core::Problem;
use gt_core::record::{Outcome, Record, Status};
use gt_core::usage::Usage;
use index::{Broken, Index, Place, Sources, milliseconds};
use journal::Journal;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::path::{Path, PathBuf};

/// The lives of a town.
#[derive(Clone, Debug)]
pub struct Sessions {
    folder: PathBuf,
    journal: Journal,
    archive: Archive,
    database: Place,
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
            journal: Journal::in_folder(&folder).with_patience(town.patience()),
            archive: Archive::in_folder(&folder),
            database: Place::at(&folder.join("index.db"), false).with_patience(town.patience()),
            folder,
            events: Events::of(town),
        }
    }

    /// Where they are written down first.
    pub(crate) fn journal_path(&self) -> &Path {
        self.journal.path()
    }

    /// The same lives, in an index elsewhere.
    pub fn with_database(self, path: &Path) -> Self {
        Sessions {
            database: Place::at(path, true),
            ..self
        }
    }

    /// Remembers what these lines say; from here on it survives everything. Lives that
    /// begin or end with them are told as events.
    pub fn record(&self, lines: &[Record]) -> Result<()> {
        crate::files::make_dir(&self.folder)?;
        // Of a life that begins nothing can be known yet. Where no index can be asked,
        // the lines are still written.
        let about = lines.iter().filter(|line| !line.begins());
        // Held from the look-up to the append: a session that is archived in between would be
        // left with nothing but these lines.
        let lock = self.journal.lock()?;
        self.check_journal()?;
        let known = self.look_up(about.map(|line| line.id.as_str()));
        let known = known.unwrap_or_default();
        let back = taken_back(lines, &known);
        self.journal.append_locked(&[&back, lines].concat())?;
        drop(lock);
        self.tell(lines, &known);
        Ok(())
    }

    /// The same where it is known what the journal says of the one life that is not new
    /// among these.
    pub(crate) fn record_known(&self, lines: &[Record], life: &Record) -> Result<()> {
        self.check_journal()?;
        self.journal.append(lines)?;
        let known = HashMap::from([(life.id.clone(), Known::Open(life.clone()))]);
        self.tell(lines, &known);
        Ok(())
    }

    /// Adds to a life that this process has begun which pane and process it has. Nobody has
    /// to be asked what is known of it, and nothing new happens to it. Panes and processes
    /// end with the machine, so the disk is not waited for.
    pub(crate) fn add_process(&self, line: Record) -> Result<()> {
        self.check_journal()?;
        self.journal.append_passing(&[line])
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
        self.check_journal()?;
        let known = self.look_up(lines.iter().map(|(_, line)| line.id.as_str()))?;
        lines.retain(|(what, line)| is_news(*what, known.get(&line.id).map(Known::life)));
        let records: Vec<Record> = lines.iter().map(|(_, line)| line.clone()).collect();
        if !records.is_empty() {
            let back = taken_back(&records, &known);
            self.journal
                .append_locked(&[&back, records.as_slice()].concat())?;
            self.tell(&records, &known);
        }
        Ok(lines)
    }

    /// Tells as events which lives began and ended.
    fn tell(&self, lines: &[Record], known: &HashMap<String, Known>) {
        let events = news::events(lines, |id| known.get(id).map(|known| known.life().clone()));
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

    /// Those of these lives that the journal or the archive has heard of.
    pub fn known<'a>(&self, ids: impl Iterator<Item = &'a str>) -> Result<HashMap<String, Record>> {
        let known = self.look_up(ids)?;
        Ok(known
            .into_iter()
            .map(|(id, known)| (id, known.into_life()))
            .collect())
    }

    /// Those of these lives that are in the journal, and not in the archive.
    pub fn in_journal<'a>(
        &self,
        ids: impl Iterator<Item = &'a str>,
    ) -> Result<HashMap<String, Record>> {
        let known = self.look_up(ids)?.into_iter();
        let open = known.filter_map(|(id, known)| match known {
            Known::Open(life) => Some((id, life)),
            Known::Archived(_) => None,
        });
        Ok(open.collect())
    }

    fn look_up<'a>(&self, ids: impl Iterator<Item = &'a str>) -> Result<HashMap<String, Known>> {
        let ids: Vec<&str> = ids.collect();
        if ids.is_empty() {
            return Ok(HashMap::new());
        }
        self.ask(|index| {
            let mut known = HashMap::new();
            for id in &ids {
                let life = match query::by_id(index, id)? {
                    Some(life) => Some(Known::Open(life)),
                    None => query::of_archive(index, &self.archive, id)?.map(Known::Archived),
                };
                known.extend(life.map(|life| ((*id).to_owned(), life)));
            }
            Ok(known)
        })
    }

    /// The line that ends a life.
    pub fn ending(id: impl Into<String>, end: End) -> Record {
        Record {
            ended_at: Some(when::timestamp(end.at)),
            outcome: Some(end.outcome),
            exit_code: end.exit_code,
            status: Some(Status::Stopped),
            ..Record::about(id)
        }
    }

    /// The lives that fit, the newest first.
    pub fn find(&self, query: &Query) -> Result<Vec<Record>> {
        self.ask(|index| query::find_all(index, &self.archive, query))
    }

    /// The one life whose id begins so.
    pub fn get(&self, prefix: &str) -> Result<Record> {
        self.ask(|index| query::by_prefix(index, &self.archive, prefix))
    }

    /// All lives that worked on an item, by its id, or all of a chain, by any life of it or
    /// its own id. The oldest first.
    pub fn chain(&self, what: &str) -> Result<Chain> {
        self.ask(|index| query::chain(index, &self.archive, what))
    }

    /// What the sessions of each of these items took for it together. Running sessions count as far
    /// as the journal knows.
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

    /// Gives every life to somebody, the oldest first. A file of the archive that is
    /// damaged gives what can be read of it, and is named at the end.
    pub fn each(&self, mut give: impl FnMut(&Record) -> Result<()>) -> Result<Vec<Problem>> {
        let mut damages = Vec::new();
        for file in self.archive.files() {
            let mut given = Ok(());
            // One that was being moved may be in the journal as well.
            let archived = self.ask(|index| query::all_archived_in(index, &file))?;
            let read = self.archive.each(&file, |id, line| {
                let is_archived = archived.contains(&hash(id));
                if let (true, Ok(life)) = (is_archived, serde_json::from_str(line)) {
                    given = give(&life);
                    given.clone()?;
                }
                Ok::<(), Problem>(())
            });
            given?;
            damages.extend(read.err());
        }
        // Where the index turns out to be damaged half-way, the rebuilt one gives the rest.
        let mut done = HashSet::new();
        let mut give_once = |life: &Record| match done.insert(hash(&life.id)) {
            true => give(life),
            false => Ok(()),
        };
        let index = self.open()?;
        match query::each(&index, &mut give_once) {
            Err(broken @ Broken::Damaged(_)) => {
                let index = self.repaired(index, &broken)?;
                query::each(&index, give_once).map_err(Broken::into_problem)?;
            }
            given => given.map_err(Broken::into_problem)?,
        }
        Ok(damages)
    }

    /// Makes the index anew from the journal.
    pub fn rebuild(&self) -> Result<Rebuilt> {
        crate::files::make_dir(&self.folder)?;
        Index::rebuild(&self.database, self.sources())
    }

    /// Does what the next question would have to wait for: the index reads what is new, and
    /// its log is brought in. What goes wrong with it that question will tell.
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
        crate::files::make_dir(&self.folder)?;
        Index::open(&self.database, self.sources())
    }

    /// Asks the index. One that turns out to be damaged is made anew, and asked again.
    fn ask<T>(&self, question: impl Fn(&Index) -> Result<T, Broken>) -> Result<T> {
        let index = self.open()?;
        let broken = match question(&index) {
            Err(broken @ (Broken::Damaged(_) | Broken::Outdated(_))) => broken,
            answer => return answer.map_err(Broken::into_problem),
        };
        let index = self.repaired(index, &broken)?;
        question(&index).map_err(Broken::into_problem)
    }

    /// Replaces an index that is damaged. It is dropped before, with its lock: the repair
    /// needs that lock exclusively.
    fn repaired(&self, index: Index, broken: &Broken) -> Result<Index> {
        let damaged = index.file();
        drop(index);
        Index::open_repaired(&self.database, self.sources(), broken, damaged)
    }
}

/// A life that is known, and where.
enum Known {
    Open(Record),
    Archived(Record),
}

impl Known {
    fn life(&self) -> &Record {
        match self {
            Known::Open(life) | Known::Archived(life) => life,
        }
    }

    fn into_life(self) -> Record {
        match self {
            Known::Open(life) | Known::Archived(life) => life,
        }
    }
}

/// The archived lives that these lines are about: they come back into the journal whole,
/// before anything is added to them.
fn taken_back(lines: &[Record], known: &HashMap<String, Known>) -> Vec<Record> {
    let mut back: Vec<Record> = Vec::new();
    for line in lines {
        if let Some(Known::Archived(life)) = known.get(&line.id)
            && !back.iter().any(|other| other.id == life.id)
        {
            back.push(life.clone());
        }
    }
    back
}

/// How long a session lasted, or has lasted until `now`, in milliseconds. A total is the sum
/// of these, cut to seconds once.
pub fn lasted(life: &Record, now: jiff::Timestamp) -> Option<i64> {
    let began = milliseconds(life.started_at.as_deref()?)?;
    let ended = match life.ended_at.as_deref() {
        Some(at) => milliseconds(at)?,
        None => now.as_millisecond(),
    };
    Some((ended - began).max(0))
}

/// A number that stands for an id where a million of them are held in memory.
fn hash(id: &str) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(id)
}

fn not_found(what: &str) -> Problem {
    Problem::not_found(format!("there is no life {what:?}")).hint("`gt sessions list` shows them")
}

//! Token usage of sessions, read from the programs' own transcripts.
//!
//! **When.** At the end of a session its total goes into the journal: `figures`, after a stop, for
//! sessions that a sync finds ended, and for a session that was lost before a new start. While a
//! session runs, nothing is read in the background. A hook runs in the middle of an agent's work,
//! and a transcript may be long when it is first read; so a hook only notes where the transcript is
//! ([`note`], at most one small write), and the usage of running sessions is read on demand
//! ([`refresh`]). Such a read costs one `stat` if nothing has changed, and otherwise only the bytes
//! added since the last one. It is not written to the journal, which would grow with every read.
//!
//! **Nothing depends on it.** A transcript that is missing, damaged or in an unknown format makes
//! no stop, sync or query fail; it only yields no figures.
//!
//! The position in each transcript is in `.runtime/usage/<session>.json`. This cache may be deleted
//! at any time: the transcripts are then read again.

mod database;
mod find;
mod notes;
mod prompts;
mod read;

pub use notes::{note, note_folder};
pub(crate) use prompts::{Evidence, find_prompt};

use crate::base::clock::Clock;
use crate::base::files;
use crate::base::or_log::OrLog;
use crate::base::time;
use crate::catalog::harnesses::Presets;
use crate::records::sessions::Sessions;
use crate::{Result, Town};
use gt_core::harness::Preset;
use gt_core::overlay::Layer;
use gt_core::price::Prices;
use gt_core::record::Record;
use gt_core::session::SessionId;
use gt_core::usage::{DailyUsage, Format, Usage, UsageWindow, daily};
use notes::TranscriptNotes;
use read::FileProgress;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Read positions in the transcripts of one session.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct ReadState {
    /// Stamp of the prices in use; if it changes, everything is read again.
    prices: String,
    files: BTreeMap<PathBuf, FileProgress>,
    databases: BTreeMap<PathBuf, database::StoredUsage>,
}

/// Updates the usage of the running sessions among `records`. Usage that cannot be read stays as it
/// is.
pub fn refresh(town: &Town, records: &mut [Record]) {
    let mut reader = UsageReader::new(town);
    for session in records
        .iter_mut()
        .filter(|session| session.ended_at.is_none())
    {
        if let Some(found) = reader.read(session) {
            session.daily = found.daily(session);
            session.usage = Some(found.usage);
        }
    }
}

/// Returns the usage of a running session until now: zero if its transcript has no figures yet.
/// Returns `None` if its program leaves no readable figures.
pub(crate) fn usage_until_now(town: &Town, session: &Record) -> Option<Usage> {
    let mut reader = UsageReader::new(town);
    let preset = reader.presets.get(town, session.harness.as_deref()?)?;
    preset.usage.format?;
    let found = reader.read(session);
    Some(found.map(|found| found.usage).unwrap_or_default())
}

/// Reduces the usage of these sessions to their share for an item.
pub fn keep_shares(records: &mut [Record], item: &str) {
    for session in records {
        session.usage = session.share_of(item).usage;
    }
}

/// Updates the usage of running sessions, and settles ended ones that were not settled: the process
/// that should have done it was killed.
pub fn refresh_all(town: &Town, records: &mut [Record]) {
    refresh(town, records);
    let is_open = |session: &&mut Record| session.ended_at.is_some() && session.usage.is_none();
    for session in records.iter_mut().filter(is_open) {
        for line in settle(town, [session.id.as_str()]) {
            session.merge(line);
        }
    }
}

/// Returns the sessions whose transcripts are noted and not settled: running sessions, and ended
/// ones that no process has settled.
pub fn unsettled(town: &Town) -> Vec<String> {
    let names =
        files::entries(&folder(town)).filter_map(|entry| entry.file_name().into_string().ok());
    names
        .filter_map(|name| name.strip_suffix(".notes").map(str::to_owned))
        .collect()
}

/// Writes the usage of these ended sessions to the journal; returns the lines. Best effort: a
/// failure is retried when the session is queried.
fn settle<'i>(town: &Town, ids: impl IntoIterator<Item = &'i str>) -> Vec<Record> {
    let sessions = Sessions::of(town);
    // An archived session stays as it is in the archive.
    let records = sessions.in_journal(ids.into_iter());
    let Some(records) = records.or_warn("usage is not written") else {
        return Vec::new();
    };
    let records: Vec<&Record> = records.values().collect();
    let lines = figures(town, &records);
    if !lines.is_empty() {
        let written = sessions.record(&lines);
        if written.or_warn("usage is not written").is_none() {
            return Vec::new();
        }
    }
    records.iter().for_each(|session| forget(town, &session.id));
    lines
}

/// Returns the lines with the usage of these ended sessions. Once they are in the journal, call
/// [`forget`] for each session.
pub(crate) fn figures(town: &Town, records: &[&Record]) -> Vec<Record> {
    let mut reader = UsageReader::new(town);
    let lines = records.iter().map(|session| {
        let found = reader.read(session);
        let conversation = TranscriptNotes::of(town, &session.id).conversation();
        let daily = found.as_ref().and_then(|found| found.daily(session));
        let usage = found.map(|found| found.usage);
        Record {
            usage: usage.filter(|usage| session.usage.as_ref() != Some(usage)),
            daily: daily.filter(|daily| session.daily.as_ref() != Some(daily)),
            // For a program that chooses its ids itself, only its hooks report this.
            harness_session_id: conversation.filter(|_| session.harness_session_id.is_none()),
            ..Record::about(&session.id)
        }
    });
    lines
        .filter(|line| *line != Record::about(&line.id))
        .collect()
}

/// Removes the notes and the cache of a session, which the journal replaces. Best effort: a file
/// that stays does no harm.
pub(crate) fn forget(town: &Town, id: &str) {
    files::remove_if_there(&state_path(town, id)).or_debug("a cache stays");
    TranscriptNotes::of(town, id).remove();
}

fn folder(town: &Town) -> PathBuf {
    town.runtime_dir().join("usage")
}

fn state_path(town: &Town, id: &str) -> PathBuf {
    folder(town).join(format!("{id}.json"))
}

/// Returns the prices of this town. Fails if its `prices.toml` is broken; readers then use the
/// built-in prices, and `gt doctor` reports the file.
pub fn prices(town: &Town) -> Result<Prices> {
    let path = town.root().join("prices.toml");
    let text = files::read_if_there(&path)?;
    let source = path.display().to_string();
    Prices::resolve(text.as_deref().map(|text| Layer {
        source: &source,
        text,
    }))
}

/// Returns a stamp that identifies the price table: the built-in one and the town's file.
fn prices_stamp(town: &Town) -> String {
    // A town without the file has the built-in prices.
    let own = town.root().join("prices.toml").metadata();
    let own = own.map(|meta| format!(" {} {}.{}", meta.len(), meta.mtime(), meta.mtime_nsec()));
    // The suffix stands for the format of the cache.
    let version = concat!(env!("CARGO_PKG_VERSION"), " daily");
    format!("{version}{}", own.unwrap_or_default())
}

/// Usage that transcripts show.
#[derive(Debug, Default)]
struct TranscriptUsage {
    usage: Usage,
    daily: Vec<DailyUsage>,
}

impl TranscriptUsage {
    fn add(&mut self, usage: &Usage, parts: &[DailyUsage]) {
        self.usage += usage;
        for part in parts {
            daily::add(&mut self.daily, part);
        }
    }

    /// Returns the usage by day and model. Returns `None` if it follows from the total and the start
    /// of the session: one model, on one day.
    fn daily(&self, session: &Record) -> Option<Vec<DailyUsage>> {
        let started = session.started_at.as_deref().and_then(time::local_day);
        let is_told = match self.daily.as_slice() {
            [] => true,
            [one] => Some(&one.day) == started.as_ref() && one.model == self.usage.model,
            _ => false,
        };
        (!is_told || session.daily.is_some()).then(|| self.daily.clone())
    }
}

/// Reads the usage of several sessions, with shared presets and prices.
struct UsageReader<'t> {
    town: &'t Town,
    presets: Presets,
    prices: Option<Prices>,
}

impl<'t> UsageReader<'t> {
    fn new(town: &'t Town) -> Self {
        UsageReader {
            town,
            presets: Presets::default(),
            prices: None,
        }
    }

    /// Returns the usage of a session so far; `None` if nothing was found.
    fn read(&mut self, session: &Record) -> Option<TranscriptUsage> {
        let id: SessionId = session.id.parse().ok()?;
        let name = session.harness.as_deref()?;
        let preset = self.presets.get(self.town, name)?.clone();
        let format = preset.usage.format?;
        let window = window(session, id)?;
        let town = self.town;
        let prices = self.prices.get_or_insert_with(|| {
            let own = prices(town).or_warn("the built-in prices are used");
            own.unwrap_or_else(Prices::builtin)
        });
        let path = state_path(town, &session.id);
        // An unreadable cache is rebuilt from the transcripts.
        let before = std::fs::read(&path).unwrap_or_default();
        let mut state: ReadState = serde_json::from_slice(&before).unwrap_or_default();
        let stamp = prices_stamp(town);
        if state.prices != stamp {
            state = ReadState {
                prices: stamp,
                ..ReadState::default()
            };
        }
        let mut found = match format {
            Format::Opencode => state.databases(town, session, &preset, &window, prices),
            _ => state.transcripts(town, session, &preset, format, &window, prices),
        };
        if let Ok(after) = serde_json::to_vec(&state)
            && after != before
            && !state.is_empty()
        {
            // Without it the next read takes longer.
            files::write_passing(&path, &after).or_warn("the usage so far is not kept");
        }
        found.usage = found.usage.rounded();
        Some(found).filter(|found| found.usage.tokens() > 0)
    }
}

impl ReadState {
    fn is_empty(&self) -> bool {
        self.files.is_empty() && self.databases.is_empty()
    }

    /// Reads the new lines of all files of a session.
    fn transcripts(
        &mut self,
        town: &Town,
        session: &Record,
        preset: &Preset,
        format: Format,
        window: &UsageWindow,
        prices: &Prices,
    ) -> TranscriptUsage {
        let notes = TranscriptNotes::of(town, &session.id);
        let known: Vec<PathBuf> = self.files.keys().cloned().collect();
        let found = find::transcripts(town, session, preset, &notes, &known, window);
        let mut sum = TranscriptUsage::default();
        // Files beside the conversation come first, so that the model that is kept is the
        // conversation's own.
        for (path, since) in found {
            let progress = self.files.entry(path.clone()).or_default();
            let window = UsageWindow {
                since: since.unwrap_or_else(|| window.since.clone()),
                ..window.clone()
            };
            // The file may be gone or just replaced: what was read of it stays counted.
            let read = read::read_on(&path, progress, |reading, line| {
                reading.line(format, line, &window, prices);
            });
            log_unreadable(read, &path);
            sum.add(&progress.reading.usage(), &progress.reading.daily());
        }
        self.files.retain(|_, progress| progress.offset > 0);
        sum
    }

    fn databases(
        &mut self,
        town: &Town,
        session: &Record,
        preset: &Preset,
        window: &UsageWindow,
        prices: &Prices,
    ) -> TranscriptUsage {
        let mut sum = TranscriptUsage::default();
        for path in find::databases(town, session, preset) {
            let seen = self.databases.entry(path.clone()).or_default();
            let cwd = session.cwd.as_deref().unwrap_or_default();
            let read = database::read(&path, cwd, window, prices, seen);
            read.or_warn(format_args!("the usage in {} is unknown", path.display()));
            sum.add(&seen.usage, &seen.daily);
        }
        sum
    }
}

/// Logs a transcript that cannot be read. One that is gone was removed by its program.
fn log_unreadable(read: std::io::Result<u64>, path: &Path) {
    if let Err(error) = read
        && error.kind() != std::io::ErrorKind::NotFound
    {
        tracing::warn!("the usage in {} is unknown: {error}", path.display());
    }
}

/// Returns the time span of a session. Its id was created just before its program was started. tmux
/// knows a death only to the second, so the whole second counts.
fn window(session: &Record, id: SessionId) -> Option<UsageWindow> {
    let began = id
        .began_at_millis()
        .and_then(|at| jiff::Timestamp::from_millisecond(at).ok())
        .map(|at| format!("{at:.3}"));
    Some(UsageWindow {
        since: began.or_else(|| session.started_at.clone())?,
        until: session
            .ended_at
            .as_ref()
            .map(|at| at.replace(".000Z", ".999Z")),
        utc_offset_seconds: utc_offset_seconds(session),
    })
}

/// Returns the offset of the local time zone at the end of a session, or now.
fn utc_offset_seconds(session: &Record) -> i32 {
    let ended = session.ended_at.as_deref().and_then(|at| at.parse().ok());
    let at: jiff::Timestamp = ended.unwrap_or_else(|| Clock::default().now());
    at.to_zoned(jiff::tz::TimeZone::system()).offset().seconds()
}

/// Returns the folder under which a program keeps its transcripts, for an agent with this
/// configuration folder.
pub(crate) fn folder_of(
    town: &Town,
    preset: &Preset,
    config_dir: Option<&Path>,
) -> Option<PathBuf> {
    let own = preset.env.config_dir.as_deref();
    program_folder(town, preset, |name| match Some(name) == own {
        // The variable in our environment is not the agent's.
        true => config_dir.and_then(Path::to_str),
        false => town.around().var(name),
    })
}

/// Returns the transcripts of a conversation under such a folder.
pub(crate) fn conversation(root: &Path, preset: &Preset, id: &str) -> Vec<PathBuf> {
    find::of_conversation(root, preset, id)
}

/// Returns the transcripts of all conversations that were held in a folder.
pub(crate) fn transcripts_of_folder(root: &Path, preset: &Preset, folder: &str) -> Vec<PathBuf> {
    find::all_of_folder(root, preset, folder)
}

/// Returns the folder under which a program keeps its transcripts, by the variables of an agent.
pub(crate) fn program_folder<'v>(
    town: &Town,
    preset: &Preset,
    variable: impl Fn(&str) -> Option<&'v str>,
) -> Option<PathBuf> {
    let own = preset.usage.variable.as_ref();
    let named = own.or(preset.env.config_dir.as_ref());
    if let Some(dir) = named.and_then(|name| variable(name)) {
        return Some(PathBuf::from(dir));
    }
    match preset.usage.folder.strip_prefix("{town}/") {
        Some(rest) => Some(town.root().join(rest)),
        None => Some(Path::new(variable("HOME")?).join(&preset.usage.folder)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::log::testing::warnings_of;
    use std::io::{Error, ErrorKind};

    #[test]
    fn transcript_that_cannot_be_read_is_logged_and_a_removed_one_is_not() {
        let log = |kind: ErrorKind| {
            let read = || log_unreadable(Err(Error::from(kind)), Path::new("/x"));
            warnings_of(read).1
        };
        assert_eq!(log(ErrorKind::NotFound), [""; 0]);
        assert!(log(ErrorKind::PermissionDenied)[0].starts_with("the usage in /x is unknown"));
    }
}

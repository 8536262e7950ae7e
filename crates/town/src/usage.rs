//! What the lives of agents took, read from the programs' own transcripts.
//!
//! **When.** At the end of a life the whole of it goes into the journal: `figures`, after
//! a stop, for what a sync finds ended, and for a life that was lost before a new start.
//! While a life goes on nothing is read behind its back. A hook runs in the middle of an
//! agent's work, and a transcript may be long when it is first looked at; so a hook only
//! leaves a note of where the transcript is ([`note`], one small write at most), and whoever
//! asks for lives that run gets figures that are read then ([`refresh`]). Such a look costs
//! one `stat` where nothing has changed, and otherwise what was added since the last one.
//! It is not written to the journal, which would grow with every look.
//!
//! **Nothing depends on it.** A transcript that is missing, damaged, or of a release that
//! writes something else makes no stop, sync or question fail; there are no figures, then.
//!
//! How far each transcript has been read is in `.runtime/usage/<life>.json`. It may be
//! deleted at any time: what is lost is read again.

mod database;
mod find;
mod notes;
mod prompts;
mod read;

pub use notes::{note, note_folder};
pub(crate) use prompts::{Evidence, find_prompt};

use crate::harnesses::Presets;
use crate::sessions::Sessions;
use crate::{Result, Town, files};
use gt_core::harness::Preset;
use gt_core::overlay::Layer;
use gt_core::price::Prices;
use gt_core::record::Record;
use gt_core::session::SessionId;
use gt_core::usage::{Format, Usage, Window};
use notes::Notes;
use read::Progress;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// As far as the transcripts of one life have been read.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct State {
    /// By which prices: others, and all of it is read anew.
    prices: String,
    files: BTreeMap<PathBuf, Progress>,
    databases: BTreeMap<PathBuf, database::Seen>,
}

/// Fills in the figures of these lives, as they are now, where they run. Whatever cannot
/// be read stays as it is.
pub fn refresh(town: &Town, lives: &mut [Record]) {
    let mut reader = Reader::new(town);
    for life in lives.iter_mut().filter(|life| life.ended_at.is_none()) {
        if let Some(found) = reader.read(life) {
            life.usage = Some(found);
        }
    }
}

/// What a session that runs has taken until now: nothing, where its transcript says nothing yet.
/// `None` if its program leaves no figures that can be read.
pub(crate) fn so_far(town: &Town, life: &Record) -> Option<Usage> {
    let mut reader = Reader::new(town);
    let preset = reader.presets.get(town, life.harness.as_deref()?)?;
    preset.usage.format?;
    Some(reader.read(life).unwrap_or_default())
}

/// Leaves in these sessions only what they took for an item.
pub fn keep_shares(lives: &mut [Record], item: &str) {
    for life in lives {
        life.usage = life.share_of(item).usage;
    }
}

/// The same, and settles those of them that ended and were not: whoever should have done
/// it was killed.
pub fn refresh_all(town: &Town, lives: &mut [Record]) {
    refresh(town, lives);
    let is_open = |life: &&mut Record| life.ended_at.is_some() && life.usage.is_none();
    for life in lives.iter_mut().filter(is_open) {
        for line in settle(town, [life.id.as_str()]) {
            life.merge(line);
        }
    }
}

/// The lives whose transcripts are known and have not been settled: those that run, and
/// those that nobody has settled.
pub fn unsettled(town: &Town) -> Vec<String> {
    let entries = std::fs::read_dir(folder(town))
        .into_iter()
        .flatten()
        .flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names
        .filter_map(|name| name.strip_suffix(".notes").map(str::to_owned))
        .collect()
}

/// Writes into the journal what these lives took, which have ended, and gives the lines.
/// What fails is left for whoever asks for that life.
fn settle<'i>(town: &Town, ids: impl IntoIterator<Item = &'i str>) -> Vec<Record> {
    let sessions = Sessions::of(town);
    // One that went into the archive stays as it is there.
    let Ok(lives) = sessions.in_journal(ids.into_iter()) else {
        return Vec::new();
    };
    let lives: Vec<&Record> = lives.values().collect();
    let lines = figures(town, &lives);
    if !lines.is_empty() && sessions.record(&lines).is_err() {
        return Vec::new();
    }
    lives.iter().for_each(|life| forget(town, &life.id));
    lines
}

/// The lines that say what these lives took, which have ended. When they are in the
/// journal, [`forget`] what was noted on the way.
pub(crate) fn figures(town: &Town, lives: &[&Record]) -> Vec<Record> {
    let mut reader = Reader::new(town);
    let lines = lives.iter().map(|life| {
        let usage = reader.read(life);
        let conversation = Notes::of(town, &life.id).conversation();
        Record {
            usage: usage.filter(|usage| life.usage.as_ref() != Some(usage)),
            // Only its hooks tell this of a program that chooses its ids itself.
            harness_session_id: conversation.filter(|_| life.harness_session_id.is_none()),
            ..Record::about(&life.id)
        }
    });
    lines
        .filter(|line| *line != Record::about(&line.id))
        .collect()
}

/// The journal has it all now. A file that stays is only in the way.
pub(crate) fn forget(town: &Town, id: &str) {
    let _ = files::remove_if_there(&state_path(town, id));
    Notes::of(town, id).remove();
}

fn folder(town: &Town) -> PathBuf {
    town.runtime_dir().join("usage")
}

fn state_path(town: &Town, id: &str) -> PathBuf {
    folder(town).join(format!("{id}.json"))
}

/// The prices of this town. A broken file of the town's own is told by `gt doctor` and
/// changes nothing here.
pub fn prices(town: &Town) -> Result<Prices> {
    let path = town.root().join("prices.toml");
    let text = files::read_if_there(&path)?;
    let source = path.display().to_string();
    Prices::resolve(text.as_deref().map(|text| Layer {
        source: &source,
        text,
    }))
}

/// Tells one table of prices from another: the built-in one, and the town's file.
fn prices_stamp(town: &Town) -> String {
    let own = town.root().join("prices.toml").metadata();
    let own = own.map(|meta| format!(" {} {}.{}", meta.len(), meta.mtime(), meta.mtime_nsec()));
    format!("{}{}", env!("CARGO_PKG_VERSION"), own.unwrap_or_default())
}

/// Reads for several lives, with what they have in common.
struct Reader<'t> {
    town: &'t Town,
    presets: Presets,
    prices: Option<Prices>,
}

impl<'t> Reader<'t> {
    fn new(town: &'t Town) -> Self {
        Reader {
            town,
            presets: Presets::default(),
            prices: None,
        }
    }

    /// What a life took so far; `None` where nothing was found.
    fn read(&mut self, life: &Record) -> Option<Usage> {
        let id: SessionId = life.id.parse().ok()?;
        let name = life.harness.as_deref()?;
        let preset = self.presets.get(self.town, name)?.clone();
        let format = preset.usage.format?;
        let window = window(life, id)?;
        let town = self.town;
        let prices = self
            .prices
            .get_or_insert_with(|| prices(town).unwrap_or_else(|_| Prices::builtin()));
        let path = state_path(town, &life.id);
        let before = std::fs::read(&path).unwrap_or_default();
        // What cannot be read is read anew from the transcripts.
        let mut state: State = serde_json::from_slice(&before).unwrap_or_default();
        let stamp = prices_stamp(town);
        if state.prices != stamp {
            state = State {
                prices: stamp,
                ..State::default()
            };
        }
        let usage = match format {
            Format::Opencode => state.databases(town, life, &preset, &window, prices),
            _ => state.transcripts(town, life, &preset, format, &window, prices),
        };
        if let Ok(after) = serde_json::to_vec(&state)
            && after != before
            && !state.is_empty()
        {
            // Without it the next look takes longer.
            let _ = files::write_passing(&path, &after);
        }
        Some(usage.rounded()).filter(|usage| usage.tokens() > 0)
    }
}

impl State {
    fn is_empty(&self) -> bool {
        self.files.is_empty() && self.databases.is_empty()
    }

    /// Reads on in all files of a life.
    fn transcripts(
        &mut self,
        town: &Town,
        life: &Record,
        preset: &Preset,
        format: Format,
        window: &Window,
        prices: &Prices,
    ) -> Usage {
        let notes = Notes::of(town, &life.id);
        let known: Vec<PathBuf> = self.files.keys().cloned().collect();
        let found = find::transcripts(town, life, preset, &notes, &known, window);
        let mut sum = Usage::default();
        // Those beside it first: the model that is named is the conversation's own.
        for (path, since) in found {
            let progress = self.files.entry(path.clone()).or_default();
            let window = Window {
                since: since.unwrap_or_else(|| window.since.clone()),
                until: window.until.clone(),
            };
            // It may be gone, or be replaced just now: what was read of it stays counted.
            let _ = read::read_on(&path, progress, |reading, line| {
                reading.line(format, line, &window, prices);
            });
            sum += &progress.reading.usage();
        }
        self.files.retain(|_, progress| progress.offset > 0);
        sum
    }

    fn databases(
        &mut self,
        town: &Town,
        life: &Record,
        preset: &Preset,
        window: &Window,
        prices: &Prices,
    ) -> Usage {
        let mut sum = Usage::default();
        for path in find::databases(town, life, preset) {
            let seen = self.databases.entry(path.clone()).or_default();
            let cwd = life.cwd.as_deref().unwrap_or_default();
            let _ = database::read(&path, cwd, window, prices, seen);
            sum += &seen.usage;
        }
        sum
    }
}

/// From when to when a life counts. Its id was made just before its program was started.
/// tmux knows a death to the second alone, all of which is the life's then.
fn window(life: &Record, id: SessionId) -> Option<Window> {
    let began = id
        .began_at_millis()
        .and_then(|at| jiff::Timestamp::from_millisecond(at).ok())
        .map(|at| format!("{at:.3}"));
    Some(Window {
        since: began.or_else(|| life.started_at.clone())?,
        until: life
            .ended_at
            .as_ref()
            .map(|at| at.replace(".000Z", ".999Z")),
    })
}

/// The folder under which a program keeps its transcripts, for an agent with this
/// configuration folder.
pub(crate) fn folder_of(
    town: &Town,
    preset: &Preset,
    config_dir: Option<&Path>,
) -> Option<PathBuf> {
    let own = preset.env.config_dir.as_deref();
    program_folder(town, preset, |name| match Some(name) == own {
        // What is set here is ours, and not that agent's.
        true => config_dir.and_then(Path::to_str),
        false => town.around().var(name),
    })
}

/// The transcripts of a conversation under such a folder.
pub(crate) fn conversation(root: &Path, preset: &Preset, id: &str) -> Vec<PathBuf> {
    find::of_conversation(root, preset, id)
}

/// The transcripts of all conversations that were held in a folder.
pub(crate) fn transcripts_of_folder(root: &Path, preset: &Preset, folder: &str) -> Vec<PathBuf> {
    find::all_of_folder(root, preset, folder)
}

/// The folder under which a program keeps its transcripts, by the variables of an agent.
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

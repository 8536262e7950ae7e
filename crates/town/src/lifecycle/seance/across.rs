//! Lends a conversation of one account to another for the duration of a talk.
//!
//! A copy is lent, because the original must not change, and removed afterwards. A note names the
//! copy before it is made; if the process dies, the next seance removes the copy by the note.
//! Existing files are never replaced or removed: a copy has a unique name and is hard-linked to the
//! place where the program looks, and only a link to the same file is removed.
//!
//! Several processes may talk to one conversation concurrently, for hours. They share the copy:
//! each holds a shared lock on its note, and the process that can take the lock exclusively is the
//! last, and removes the copy. Lending and removing are serialized.

use crate::base::clock::Clock;
use crate::base::lock::FileLock;
use crate::base::or_log::OrLog;
use crate::base::{fault, files};
use crate::{Result, Town};
use gt_core::Problem;
use gt_core::harness::Preset;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Maximum wait for a concurrent lending or removal.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Fault points: the next seance cleans up.
pub const FAULT_POINTS: &[&str] = &["seance.noted", "seance.copied", "seance.lent"];

/// Copies that are removed when the last holder is dropped.
#[derive(Debug)]
pub struct LentTranscript {
    town: Town,
    note: PathBuf,
    /// Shared lock on the note. Taking it exclusively proves that no talk is left.
    shared: Option<FileLock>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Loan {
    /// The copy, under a unique name.
    copy: PathBuf,
    /// The path where the program finds it.
    shown: PathBuf,
}

/// Lends these files of one folder to another, under the same names. Returns `None` if the target
/// already has all of them.
pub(super) fn lend(
    town: &Town,
    preset: &Preset,
    originals: &[PathBuf],
    from: Option<&Path>,
    to: &Path,
) -> Result<Option<LentTranscript>> {
    let unknown = || {
        Problem::usage(format!(
            "a conversation of {} cannot be brought to another account",
            preset.name
        ))
        .hint("leave out `--account`: it is talked to under its own")
    };
    let from = from.ok_or_else(unknown)?;
    if originals.is_empty() {
        return Err(unknown());
    }
    let mut places = Vec::new();
    for original in originals {
        let rest = original.strip_prefix(from).map_err(|_| unknown())?;
        places.push((original, to.join(rest)));
    }
    let note = folder(town).join(format!("{}.json", name_of(&places)));
    let _turn = turn(town)?;
    take_away_unless_shared(&note)?;
    // If the note exists, another process lends all of the files already.
    if !note.exists() {
        let copies = copies(&places);
        if copies.is_empty() {
            return Ok(None);
        }
        let text = serde_json::to_vec(&copies)
            .map_err(|error| Problem::failed("cannot write a note").caused_by(error))?;
        files::make_dir(&folder(town))?;
        files::write_whole(&note, &text)?;
        fault::point(town, "seance.noted");
        if let Err(problem) = make(town, &copies, &places) {
            // No process uses the copies yet. The next seance retries the removal.
            return Err(match take_away(&note) {
                Ok(()) => problem,
                Err(left) => problem.cause(left.line()),
            });
        }
    }
    let shared = FileLock::share(&lock_of(&note), TIMEOUT)?;
    fault::point(town, "seance.lent");
    Ok(Some(LentTranscript {
        town: town.clone(),
        note,
        shared: Some(shared),
    }))
}

/// Returns copies for the files that the account lacks. Existing files are its own.
fn copies(places: &[(&PathBuf, PathBuf)]) -> Vec<Loan> {
    let id = Clock::default().new_id().simple().to_string();
    let missing = places
        .iter()
        .filter(|(_, shown)| shown.symlink_metadata().is_err());
    let copies = missing.enumerate().map(|(number, (_, shown))| Loan {
        copy: shown.with_file_name(format!(".gt-seance-{id}-{number}")),
        shown: shown.clone(),
    });
    copies.collect()
}

fn make(town: &Town, copies: &[Loan], places: &[(&PathBuf, PathBuf)]) -> Result<()> {
    for loan in copies {
        let place = places.iter().find(|(_, shown)| *shown == loan.shown);
        let Some((original, _)) = place else {
            continue;
        };
        if let Some(parent) = loan.shown.parent() {
            files::make_dir(parent)?;
        }
        let cannot =
            |error: &io::Error| files::io_problem("copy a conversation to", &loan.shown, error);
        copy(original, &loan.copy).map_err(|error| cannot(&error))?;
        fault::point(town, "seance.copied");
        // Fails if another process has created the file meanwhile.
        fs::hard_link(&loan.copy, &loan.shown).map_err(|error| cannot(&error))?;
    }
    Ok(())
}

impl Drop for LentTranscript {
    fn drop(&mut self) {
        // If the removal fails, the next seance retries it.
        let removed = turn(&self.town).and_then(|_turn| {
            drop(self.shared.take());
            take_away_unless_shared(&self.note)
        });
        removed.or_warn("a copy of a conversation is left in another account");
    }
}

/// Removes copies that killed processes left behind.
pub(super) fn clean_up(town: &Town) -> Result<()> {
    let notes = files::entries(&folder(town)).map(|entry| entry.path());
    let is_note = |path: &PathBuf| path.extension().is_some_and(|end| end == "json");
    let notes: Vec<PathBuf> = notes.filter(is_note).collect();
    if notes.is_empty() {
        return Ok(());
    }
    let _turn = turn(town)?;
    notes
        .iter()
        .try_for_each(|note| take_away_unless_shared(note))
}

/// Takes the lock that serializes lending and removing. Locks of notes are opened and removed only
/// under it.
fn turn(town: &Town) -> Result<FileLock> {
    FileLock::take(&town.runtime_dir().join("locks/seance.lock"), TIMEOUT)
}

/// Removes the copies if no process uses them.
fn take_away_unless_shared(note: &Path) -> Result<()> {
    if !note.exists() {
        return Ok(());
    }
    match FileLock::try_take(&lock_of(note))? {
        Some(_alone) => take_away(note),
        None => Ok(()),
    }
}

fn take_away(note: &Path) -> Result<()> {
    let text = files::read_if_there(note)?.unwrap_or_default();
    let copies: Option<Vec<Loan>> = serde_json::from_str(&text).or_warn(format_args!(
        "copies of a conversation may be left: {} cannot be read",
        note.display()
    ));
    let copies = copies.unwrap_or_default();
    for loan in &copies {
        if is_same(&loan.copy, &loan.shown) {
            files::remove_if_there(&loan.shown)?;
        }
        files::remove_if_there(&loan.copy)?;
    }
    files::remove_if_there(note)?;
    files::remove_if_there(&lock_of(note))
}

fn is_same(one: &Path, other: &Path) -> bool {
    let place = |path: &Path| {
        // A missing file is the same as no other.
        let meta = path.symlink_metadata().ok()?;
        Some((meta.dev(), meta.ino()))
    };
    place(one).is_some() && place(one) == place(other)
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let mut source = fs::File::open(from)?;
    let mut target = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(to)?;
    io::copy(&mut source, &mut target).map(drop)
}

/// Returns the name of the note for these places. Equal places have equal names.
fn name_of(places: &[(&PathBuf, PathBuf)]) -> String {
    let mut hash = Sha256::new();
    for (_, shown) in places {
        hash.update(shown.as_os_str().as_encoded_bytes());
        hash.update([0]);
    }
    let bytes = hash.finalize();
    bytes
        .iter()
        .take(16)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn folder(town: &Town) -> PathBuf {
    town.runtime_dir().join("seance")
}

fn lock_of(note: &Path) -> PathBuf {
    note.with_extension("lock")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::log::testing::{town, warnings_of};

    #[test]
    fn note_that_cannot_be_read_is_logged_and_removed() {
        let (_folder, town) = town();
        let note = folder(&town).join("x.json");
        files::write_whole(&note, b"[{").unwrap();
        let (cleaned, warnings) = warnings_of(|| clean_up(&town));
        cleaned.unwrap();
        assert!(
            warnings[0].starts_with("copies of a conversation may be left"),
            "{warnings:?}"
        );
        assert!(!note.exists());
    }
}

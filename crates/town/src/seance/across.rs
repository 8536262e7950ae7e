//! A conversation of one account, lent to another for the time of a talk.
//!
//! It is a copy, because the original must stay as it is, and it is taken away again. A
//! note says which, before it is made; who dies leaves the note, and the next seance takes
//! the copy away. What stood there before is never replaced, and never taken for ours: a
//! copy is made under a name of its own and linked to where the program looks, and only
//! what is still the same file is removed.

use crate::lock::FileLock;
use crate::{Result, Town, fault, files};
use gt_core::Problem;
use gt_core::harness::Preset;
use serde::{Deserialize, Serialize};
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Where a test can kill us: the next seance clears up.
pub const FAULT_POINTS: &[&str] = &["seance.noted", "seance.copied", "seance.lent"];

/// Copies that are taken away when this is dropped.
#[derive(Debug)]
pub struct Lent {
    note: PathBuf,
    copies: Vec<Loan>,
    /// Whoever can take it knows that nobody talks any more.
    _lock: FileLock,
}

#[derive(Debug, Serialize, Deserialize)]
struct Loan {
    /// The copy, under a name that is nobody else's.
    copy: PathBuf,
    /// Where the program finds it.
    shown: PathBuf,
}

/// Lends these files of one folder to another, under the same names. `None` if all of
/// them are there.
pub(super) fn lend(
    town: &Town,
    preset: &Preset,
    originals: &[PathBuf],
    from: Option<&Path>,
    to: &Path,
) -> Result<Option<Lent>> {
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
    let id = uuid::Uuid::now_v7().simple().to_string();
    let mut copies = Vec::new();
    let mut sources = Vec::new();
    for original in originals {
        let rest = original.strip_prefix(from).map_err(|_| unknown())?;
        let shown = to.join(rest);
        // The account has it already: it is that one's own.
        if shown.symlink_metadata().is_ok() {
            continue;
        }
        let copy = shown.with_file_name(format!(".gt-seance-{id}-{}", copies.len()));
        copies.push(Loan { copy, shown });
        sources.push(original);
    }
    if copies.is_empty() {
        return Ok(None);
    }
    let note = folder(town).join(format!("{id}.json"));
    files::make_dir(&folder(town))?;
    let lock = FileLock::try_take(&lock_of(&note))?
        .ok_or_else(|| Problem::failed("somebody clears up: try again"))?;
    let text = serde_json::to_vec(&copies)
        .map_err(|error| Problem::failed("cannot write a note").caused_by(error))?;
    files::write_whole(&note, &text)?;
    fault::point(town, "seance.noted");
    let lent = Lent {
        note,
        copies,
        _lock: lock,
    };
    for (loan, original) in lent.copies.iter().zip(sources) {
        if let Some(parent) = loan.shown.parent() {
            files::make_dir(parent)?;
        }
        let cannot =
            |error: &io::Error| files::cannot("copy a conversation to", &loan.shown, error);
        copy(original, &loan.copy).map_err(|error| cannot(&error))?;
        fault::point(town, "seance.copied");
        // Fails where another has put something meanwhile.
        fs::hard_link(&loan.copy, &loan.shown).map_err(|error| cannot(&error))?;
    }
    fault::point(town, "seance.lent");
    Ok(Some(lent))
}

impl Drop for Lent {
    fn drop(&mut self) {
        // What cannot be taken away now is taken away by the next seance.
        let _ = take_away(&self.note, &self.copies);
    }
}

/// Takes away what was left by those who died.
pub(super) fn clean_up(town: &Town) -> Result<()> {
    let entries = fs::read_dir(folder(town)).into_iter().flatten().flatten();
    let notes = entries.map(|entry| entry.path());
    for note in notes.filter(|path| path.extension().is_some_and(|end| end == "json")) {
        let Some(_lock) = FileLock::try_take(&lock_of(&note))? else {
            continue;
        };
        let Some(text) = files::read_if_there(&note)? else {
            continue;
        };
        // One that says nothing was never acted upon.
        let copies: Vec<Loan> = serde_json::from_str(&text).unwrap_or_default();
        take_away(&note, &copies)?;
    }
    Ok(())
}

fn take_away(note: &Path, copies: &[Loan]) -> Result<()> {
    for loan in copies {
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

fn folder(town: &Town) -> PathBuf {
    town.runtime_dir().join("seance")
}

fn lock_of(note: &Path) -> PathBuf {
    note.with_extension("lock")
}

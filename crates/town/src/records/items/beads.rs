//! Rigs whose work items are kept in beads: the rig's repository has a `.beads` folder, and `bd` or
//! `br` is installed.
//!
//! Beads is then the source of truth for the content of an item. Its items are mirrored in the
//! town's tables, so that hooks, the merge queue and transactions work unchanged. Reading refreshes
//! the mirror if the files of beads have changed (`trace.rs`, `mirror.rs`). The changes of a
//! transaction are written to beads before it is committed (`write.rs`). Mail and molecules are not
//! in beads.
//!
//! A town without such rigs only checks for one folder per rig, and runs no program.

mod mirror;
mod program;
mod trace;
mod write;

use super::store::problem;
use super::{ItemDraft, Work};
use crate::base::settings::BeadsUse;
use crate::{Result, Surroundings, Town};
use gt_core::Problem;
use gt_core::beads::{Dialect, PROGRAMS};
use gt_core::work::WorkId;
use rusqlite::{Connection, OptionalExtension, params};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;

pub(super) use write::create;

/// Fault points at which a test can kill the process.
pub const FAULT_POINTS: &[&str] = &["beads.created", "beads.written"];

/// The rigs of a town that use beads.
#[derive(Debug)]
pub(super) struct Beads {
    rigs: Vec<BeadsRig>,
    around: Surroundings,
    /// Deadline of the programs of the current transaction.
    until: Mutex<Instant>,
}

/// A rig that uses beads.
#[derive(Clone, Debug)]
pub struct BeadsRig {
    pub rig: String,
    /// Prefix of items that are not in beads; beads has its own prefixes.
    pub prefix: String,
    pub folder: PathBuf,
    /// The settings enable beads, as opposed to a `.beads` folder that was merely found.
    pub is_wanted: bool,
    /// The program to run, or the reason why there is none.
    program: Result<Program>,
}

#[derive(Clone, Debug)]
struct Program {
    path: PathBuf,
    dialect: Dialect,
}

impl Beads {
    /// Returns `None` for a town that has no such rig.
    pub(super) fn of(town: &Town) -> Option<Arc<Self>> {
        let mut rigs = of_town(town);
        // A `.beads` folder that is not in the settings is ignored if there is no program.
        rigs.retain(|rig| rig.is_wanted || rig.program.is_ok());
        if rigs.is_empty() {
            return None;
        }
        let around = town.around().clone();
        let until = Mutex::new(Instant::now());
        Some(Arc::new(Beads {
            rigs,
            around,
            until,
        }))
    }

    fn by_prefix(&self, prefix: &str) -> Option<&BeadsRig> {
        self.rigs.iter().find(|rig| rig.prefix == prefix)
    }

    fn by_name(&self, name: &str) -> Option<&BeadsRig> {
        self.rigs.iter().find(|rig| rig.rig == name)
    }
}

impl BeadsRig {
    /// Returns the reason why it cannot be used.
    pub fn missing(&self) -> Option<&Problem> {
        self.program.as_ref().err()
    }

    fn program(&self) -> Result<&Program> {
        self.program.as_ref().map_err(Problem::clone)
    }
}

/// Returns the folder of a rig's items, if they are in beads.
pub fn folder_of(town: &Town, rig: &str) -> Option<PathBuf> {
    let found = of_town(town).into_iter();
    let mut used = found.filter(|found| found.rig == rig && found.program.is_ok());
    used.next().map(|rig| rig.folder)
}

/// Returns the rigs with a `.beads` folder, and those whose settings require one.
pub fn of_town(town: &Town) -> Vec<BeadsRig> {
    let mut found = Vec::new();
    for (name, entry) in &town.registry().rigs {
        let settings = town.settings().rigs.get(name);
        let wanted = settings.map(|rig| rig.beads.clone()).unwrap_or_default();
        let places = match &wanted {
            BeadsUse::Off => continue,
            BeadsUse::At(folder) => vec![town.root().join(folder)],
            BeadsUse::Auto | BeadsUse::On => {
                let source = Path::new(&entry.git_url);
                let source = source.is_absolute().then(|| source.join(".beads"));
                let own = town.root().join(name).join(".beads");
                [Some(own), source].into_iter().flatten().collect()
            }
        };
        let folder = places.iter().find(|folder| folder.is_dir());
        if folder.is_none() && wanted == BeadsUse::Auto {
            continue;
        }
        let program = match folder {
            Some(_) => program(town, settings.and_then(|rig| rig.beads_program.as_deref())),
            None => Err(Problem::environment(format!(
                "the rig {name} is set to use beads, but there is no {}",
                places
                    .last()
                    .map_or_else(String::new, |path| path.display().to_string())
            ))
            .hint("`bd init` or `br init` makes one, or change `beads` in town.toml")),
        };
        let rig = BeadsRig {
            rig: name.clone(),
            prefix: entry.beads.prefix.clone(),
            folder: folder.map(|folder| redirected(folder)).unwrap_or_default(),
            is_wanted: wanted != BeadsUse::Auto,
            program,
        };
        found.push(rig);
    }
    found
}

/// Follows the redirect of a folder, if it names another one.
fn redirected(folder: &Path) -> PathBuf {
    // Most folders have no redirect.
    let text = std::fs::read_to_string(folder.join("redirect")).unwrap_or_default();
    let target = match (text.trim(), folder.parent()) {
        ("", _) | (_, None) => return folder.to_owned(),
        (target, Some(parent)) => parent.join(target),
    };
    match target.is_dir() {
        true => target,
        false => folder.to_owned(),
    }
}

fn program(town: &Town, named: Option<&str>) -> Result<Program> {
    let names: Vec<&str> = match named {
        Some(name) => vec![name],
        None => PROGRAMS.to_vec(),
    };
    let found = names.iter().find_map(|name| {
        Some(Program {
            path: town.around().find_program(name)?,
            dialect: Dialect::of(name),
        })
    });
    found.ok_or_else(|| {
        Problem::environment(format!("{} is not on PATH", names.join(" or ")))
            .hint("install beads, or set `beads = \"off\"` for the rig in town.toml")
    })
}

impl Work {
    /// Returns the rig whose beads contain an item.
    pub fn rig_in_beads(&self, id: &WorkId) -> Result<Option<String>> {
        if self.beads.is_none() {
            return Ok(None);
        }
        self.refresh_for(id)?;
        match self.open_if_there()? {
            Some(db) => rig_of(&db, id),
            None => Ok(None),
        }
    }

    /// Returns the beads rig of items with this prefix.
    pub(super) fn beads_rig(&self, prefix: &str) -> Option<&BeadsRig> {
        self.beads.as_ref()?.by_prefix(prefix)
    }

    /// Returns the beads of a new item, if it belongs there: by its parent, or by its prefix.
    pub(super) fn beads_for(
        &self,
        db: &Connection,
        draft: &ItemDraft,
    ) -> Result<Option<(&Beads, &BeadsRig)>> {
        let Some(beads) = &self.beads else {
            return Ok(None);
        };
        let rig = match &draft.parent {
            Some(parent) => rig_of(db, parent)?.and_then(|rig| beads.by_name(&rig)),
            None => beads.by_prefix(&draft.prefix),
        };
        Ok(rig.map(|rig| (&**beads, rig)))
    }

    /// Refreshes the mirror before a read, for one rig or for all.
    pub(super) fn refresh(&self, prefix: Option<&str>) -> Result<()> {
        let Some(beads) = &self.beads else {
            return Ok(());
        };
        let mut rigs = beads.rigs.iter();
        rigs.try_for_each(|rig| match prefix {
            Some(prefix) if rig.prefix != prefix => Ok(()),
            _ => mirror::refresh(self, beads, rig),
        })
    }

    /// Refreshes the mirror before a read of one item. An unknown item may be in any rig.
    pub(super) fn refresh_for(&self, id: &WorkId) -> Result<()> {
        let Some(beads) = &self.beads else {
            return Ok(());
        };
        let db = self.open()?;
        let rig = match rig_of(&db, id)? {
            Some(rig) => Some(rig),
            None => gone_from(&db, id)?,
        };
        if let Some(rig) = rig {
            return match beads.by_name(&rig) {
                Some(rig) => mirror::refresh(self, beads, rig),
                None => Ok(()),
            };
        }
        match super::read::by_id(&db, id)? {
            Some(_) => Ok(()),
            None => self.refresh(None),
        }
    }

    /// Returns the beads that could not be read as items at the last refresh: rig, bead and reason.
    pub fn unread_beads(&self) -> Result<Vec<(String, String, String)>> {
        let (Some(_), Some(db)) = (&self.beads, self.open_if_there()?) else {
            return Ok(Vec::new());
        };
        let mut query = db
            .prepare("SELECT rig, bead, why FROM beads_unread ORDER BY rig, bead")
            .map_err(problem)?;
        let rows = query
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .map_err(problem)?;
        rows.map(|row| row.map_err(problem)).collect()
    }

    /// Begins a transaction. Changes that could not be written to beads earlier are left to the
    /// next refresh, which compares them with beads.
    pub(super) fn begin_transaction(&self, db: &Connection) -> Result<()> {
        match &self.beads {
            Some(beads) => beads.begin_change(),
            None => return Ok(()),
        }
        db.execute("UPDATE beads SET touched = 2 WHERE touched = 1", [])
            .map(drop)
            .map_err(problem)
    }

    /// Writes the changes of a transaction to beads.
    pub(super) fn write_through(&self, db: &Connection) -> Result<()> {
        match &self.beads {
            Some(beads) => write::write_touched(beads, db),
            None => Ok(()),
        }
    }
}

/// Returns the rig whose beads contained an item at the last refresh.
pub(super) fn rig_of(db: &Connection, id: &WorkId) -> Result<Option<String>> {
    db.query_row(
        "SELECT rig FROM beads WHERE item = ?1",
        params![id.as_str()],
        |row| row.get(0),
    )
    .optional()
    .map_err(problem)
}

/// Returns the rig whose beads no longer contain an item.
fn gone_from(db: &Connection, id: &WorkId) -> Result<Option<String>> {
    db.query_row(
        "SELECT rig FROM beads_gone WHERE item = ?1",
        params![id.as_str()],
        |row| row.get(0),
    )
    .optional()
    .map_err(problem)
}

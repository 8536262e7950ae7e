//! The files of saves: `.sessions/saves/<time>-<id>.json.gz`.
//!
//! Compressed JSON, with one line for the header and one for each container. Files are written
//! atomically. A damaged file is reported and skipped.

use crate::base::files;
use crate::terminal::save_schedule;
use crate::{Result, Town};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use gt_core::Problem;
use gt_core::save::{SaveHeader, SavedContainer, VERSION};
use jiff::ToSpan;
use jiff::civil::DateTime;
use jiff::tz::Offset;
use serde::Serialize;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

/// Format of the time in the name of a save, in UTC, so that names sort chronologically.
const TIME: &str = "%Y%m%dT%H%M%S%.3fZ";
const EXTENSION: &str = ".json.gz";

/// A save that was read.
#[derive(Clone, Debug)]
pub struct Save {
    pub name: String,
    pub header: SaveHeader,
    pub containers: Vec<SavedContainer>,
}

/// One file of the saves.
#[derive(Clone, Debug)]
pub struct SaveEntry {
    pub name: String,
    pub bytes: u64,
    pub save: Result<Save>,
}

fn path(town: &Town, name: &str) -> PathBuf {
    save_schedule::folder(town).join(format!("{name}{EXTENSION}"))
}

/// Returns the names of all saves, newest first.
fn names(town: &Town) -> Vec<String> {
    let mut names: Vec<String> = files::entries(&save_schedule::folder(town))
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| !name.starts_with('.'))
        .filter_map(|name| name.strip_suffix(EXTENSION).map(str::to_owned))
        .collect();
    names.sort_unstable_by(|a, b| b.cmp(a));
    names
}

/// Returns the file of the newest save.
pub(super) fn newest_file(town: &Town) -> Option<PathBuf> {
    names(town).first().map(|name| path(town, name))
}

/// Writes a save, under the lock. Returns its name and size.
pub(super) fn write(
    town: &Town,
    header: &SaveHeader,
    containers: &[SavedContainer],
) -> Result<(String, usize)> {
    let cannot = |error: std::io::Error| Problem::failed("cannot write a save").caused_by(error);
    // The fastest level reduces scrollback to a tenth; higher levels cost more than they save.
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    line(&mut packed, header)?;
    for container in containers {
        line(&mut packed, container)?;
    }
    let packed = packed.finish().map_err(cannot)?;
    let name = new_name(town);
    files::write_whole(&path(town, &name), &packed)?;
    Ok((name, packed.len()))
}

fn line(to: &mut impl Write, value: &impl Serialize) -> Result<()> {
    let cannot = || Problem::failed("cannot write a save");
    serde_json::to_writer(&mut *to, value).map_err(|error| cannot().caused_by(error))?;
    to.write_all(b"\n")
        .map_err(|error| cannot().caused_by(error))
}

fn new_name(town: &Town) -> String {
    let id = town.clock().new_id().simple().to_string();
    let id = id.get(id.len() - 6..).unwrap_or(&id);
    let now = Offset::UTC.to_datetime(town.clock().now());
    format!("{}-{id}", time_after(&names(town), now))
}

/// Returns a time for a name that sorts after all others. If the clock was set back, it is a
/// millisecond after the newest, in the same format.
fn time_after(names: &[String], now: DateTime) -> String {
    let time_of = |name: &String| {
        let (time, _) = name.split_once('-')?;
        DateTime::strptime(TIME, time).ok()
    };
    let after = |newest: DateTime| newest.checked_add(1.millisecond()).ok();
    let next = names.iter().filter_map(time_of).max().and_then(after);
    let time = next.map_or(now, |next| next.max(now));
    time.strftime(TIME).to_string()
}

/// Returns all saves, newest first, read and checked.
pub fn list(town: &Town) -> Vec<SaveEntry> {
    let entry = |name: String| {
        let path = path(town, &name);
        // A missing file was just removed by a concurrent save.
        let bytes = path.metadata().ok()?.len();
        let save = read(&path, &name);
        (save.is_ok() || path.exists()).then_some(SaveEntry { bytes, save, name })
    };
    names(town).into_iter().filter_map(entry).collect()
}

/// Returns the save whose name is or begins with `wanted`; without a name the newest intact one,
/// with the errors of newer ones.
pub fn find(town: &Town, wanted: Option<&str>) -> Result<(Save, Vec<String>)> {
    find_with(town, wanted, |_| true)
}

/// Returns a save like [`find`]; without a name only one that `fits`.
pub fn find_with(
    town: &Town,
    wanted: Option<&str>,
    fits: impl Fn(&Save) -> bool,
) -> Result<(Save, Vec<String>)> {
    let none =
        |words: String| Problem::not_found(words).hint("`gt save --list` shows the available ones");
    if let Some(wanted) = wanted {
        let names = names(town);
        let wanted = wanted.strip_suffix(EXTENSION).unwrap_or(wanted);
        let begins: Vec<&String> = names.iter().filter(|n| n.starts_with(wanted)).collect();
        let exact = begins.iter().find(|name| **name == wanted);
        return match (exact, begins.as_slice()) {
            (Some(name), _) | (None, [name]) => Ok((read(&path(town, name), name)?, Vec::new())),
            (None, []) => Err(none(format!("there is no save {wanted:?}"))),
            (None, _) => Err(
                Problem::usage(format!("{wanted} is a prefix of several saves"))
                    .hint("give more of its name"),
            ),
        };
    }
    let (found, damaged) = newest(town, fits);
    match found {
        Some(save) => Ok((save, damaged)),
        None => {
            let problem = match names(town).is_empty() {
                true => none("nothing was saved yet".to_owned()),
                false => none("no save matches".to_owned()),
            };
            Err(damaged.into_iter().fold(problem, Problem::cause))
        }
    }
}

/// Returns the newest intact save that `fits`, if there is one, with the errors of newer ones.
pub fn newest(town: &Town, fits: impl Fn(&Save) -> bool) -> (Option<Save>, Vec<String>) {
    let mut damaged = Vec::new();
    for name in names(town) {
        match read(&path(town, &name), &name) {
            Ok(save) if fits(&save) => return (Some(save), damaged),
            Ok(_) => {}
            Err(problem) => damaged.push(problem.to_string()),
        }
    }
    (None, damaged)
}

fn open(path: &Path) -> Result<BufReader<GzDecoder<File>>> {
    let file = File::open(path).map_err(|error| files::io_problem("read", path, &error))?;
    Ok(BufReader::new(GzDecoder::new(file)))
}

fn damage(name: &str, why: impl std::fmt::Display) -> Problem {
    Problem::failed(format!("the save {name} is damaged: {why}"))
}

/// Reads only the header.
fn read_header(from: &mut impl BufRead, name: &str) -> Result<SaveHeader> {
    let mut text = String::new();
    from.read_line(&mut text)
        .map_err(|error| damage(name, error))?;
    let header: SaveHeader = serde_json::from_str(&text).map_err(|error| damage(name, error))?;
    if header.version > VERSION {
        return Err(
            Problem::failed(format!("the save {name} was made by a newer gt"))
                .hint("update gt to use it"),
        );
    }
    Ok(header)
}

fn read(path: &Path, name: &str) -> Result<Save> {
    let mut from = open(path)?;
    let header = read_header(&mut from, name)?;
    let mut containers = Vec::new();
    for text in from.lines() {
        let text = text.map_err(|error| damage(name, error))?;
        containers.push(serde_json::from_str(&text).map_err(|error| damage(name, error))?);
    }
    if containers.len() != header.containers {
        let missing = format!("{} of {}", containers.len(), header.containers);
        return Err(damage(name, format!("it has {missing} containers")));
    }
    Ok(Save {
        name: name.to_owned(),
        header,
        containers,
    })
}

/// Removes surplus saves, under the lock: the oldest automatic ones, the oldest others, and
/// leftovers of a killed save.
pub(super) fn prune(town: &Town) -> Result<()> {
    let keep = town.settings().save.keep;
    let (mut automatic, mut others) = (0, 0);
    for name in names(town) {
        let path = path(town, &name);
        let header = open(&path).and_then(|mut from| read_header(&mut from, &name));
        let count = match header {
            Ok(header) if header.automatic => &mut automatic,
            _ => &mut others,
        };
        *count += 1;
        if *count > keep {
            files::remove_if_there(&path)?;
        }
    }
    let left = std::fs::read_dir(save_schedule::folder(town))
        .into_iter()
        .flatten();
    for entry in left.flatten() {
        let name = entry.file_name();
        if name.to_string_lossy().starts_with('.') && name.to_string_lossy().ends_with(".tmp") {
            files::remove_if_there(&entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_name_sorts_after_all_others_regardless_of_the_clock() {
        let now: DateTime = "2026-01-17T12:00:00.5".parse().unwrap();
        let check = |names: &[&str], expected: &str| {
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            assert_eq!(time_after(&names, now), expected);
        };
        check(&[], "20260117T120000.500Z");
        check(&["20260117T120000.499Z-ffffff"], "20260117T120000.500Z");
        check(&["20260117T120000.500Z-ffffff"], "20260117T120000.501Z");
        // Regardless of the clock at that time.
        let ahead = "20991231T235959.999Z-ffffff";
        check(&["unrelated", ahead], "21000101T000000.000Z");
        check(&[&format!("{ahead}+ffffff")], "21000101T000000.000Z");
    }
}

//! Files that record that a background run of the merge queue is due.
//!
//! `<rig>.requested` is written before work is queued, `<rig>.running` by the merging process. Both
//! are removed when a run ends, so a file without a live process means that the process was killed:
//! [`due`] lists those rigs. The folder is removed with its last file, so that a check without
//! requests costs one system call.

use crate::base::files;
use crate::{Result, Town};
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

const REQUESTED: &str = "requested";
const RUNNING: &str = "running";
/// Maximum number of killed runs. After that, a person has to find out what kills them.
const MAX_ATTEMPTS: u32 = 5;

fn folder(town: &Town) -> PathBuf {
    town.runtime_dir().join("merge-requests")
}

fn file(town: &Town, rig: &str, kind: &str) -> PathBuf {
    folder(town).join(format!("{rig}.{kind}"))
}

/// Records that a run is due. The record is on disk when this returns, because the work is queued
/// after it.
pub(super) fn request(town: &Town, rig: &str) -> Result<()> {
    write(town, rig, REQUESTED, b"")
}

pub(super) fn is_requested(town: &Town, rig: &str) -> bool {
    file(town, rig, REQUESTED).exists()
}

/// Records that a run has begun, and removes the request. The caller holds the lock of the queue
/// and has not read the queue yet.
pub(super) fn begin(town: &Town, rig: &str) -> Result<()> {
    let attempts = attempts(town, rig).saturating_add(1);
    write(town, rig, RUNNING, attempts.to_string().as_bytes())?;
    files::remove_if_there(&file(town, rig, REQUESTED))
}

pub(super) fn forget(town: &Town, rig: &str) -> Result<()> {
    files::remove_if_there(&file(town, rig, REQUESTED))?;
    end(town, rig)
}

/// Records that a run has ended by itself, whatever its result.
pub(super) fn end(town: &Town, rig: &str) -> Result<()> {
    files::remove_if_there(&file(town, rig, RUNNING))?;
    match fs::remove_dir(folder(town)) {
        Err(error) if !is_in_use(error.kind()) => {
            Err(files::io_problem("remove", &folder(town), &error))
        }
        _ => Ok(()),
    }
}

fn is_in_use(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::DirectoryNotEmpty | ErrorKind::NotFound)
}

/// Returns the rigs for which a run is due, each once, without those whose runs were killed too
/// often.
pub(super) fn due(town: &Town) -> Vec<String> {
    let mut rigs: Vec<String> = files::entries(&folder(town))
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let (rig, kind) = name.rsplit_once('.')?;
            [REQUESTED, RUNNING].contains(&kind).then(|| rig.to_owned())
        })
        .filter(|rig| attempts(town, rig) < MAX_ATTEMPTS)
        .collect();
    rigs.sort_unstable();
    rigs.dedup();
    rigs
}

/// Returns the number of runs since the last run that ended by itself.
pub(super) fn attempts(town: &Town, rig: &str) -> u32 {
    // The file exists only during a run.
    let text = fs::read_to_string(file(town, rig, RUNNING)).unwrap_or_default();
    text.parse().unwrap_or_default()
}

/// Writes a file. Retries, because another process may remove the empty folder between its creation
/// and the first file.
fn write(town: &Town, rig: &str, kind: &str, text: &[u8]) -> Result<()> {
    const TRIES: usize = 10;
    let path = file(town, rig, kind);
    let mut result = Ok(());
    for _ in 0..TRIES {
        result = files::make_dir(&folder(town)).and_then(|()| files::write_whole(&path, text));
        if result.is_ok() {
            break;
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Surroundings;

    fn town(root: &std::path::Path) -> Town {
        Town::init(root, None, "/tmp/none", "demo").unwrap();
        Town::open(root, Surroundings::default()).unwrap()
    }

    #[test]
    fn a_request_is_due_until_a_run_ends_and_a_later_one_stays() {
        let dir = tempfile::tempdir().unwrap();
        let town = town(&dir.path().join("town"));
        assert_eq!(due(&town), [""; 0]);
        request(&town, "a.b").unwrap();
        request(&town, "c").unwrap();
        assert_eq!(due(&town), ["a.b", "c"]);
        begin(&town, "c").unwrap();
        assert_eq!(due(&town), ["a.b", "c"], "it runs");
        request(&town, "c").unwrap();
        end(&town, "c").unwrap();
        assert_eq!(due(&town), ["a.b", "c"], "requested during the run");
        for rig in ["a.b", "c"] {
            begin(&town, rig).unwrap();
            end(&town, rig).unwrap();
        }
        assert_eq!(due(&town), [""; 0]);
        assert!(!folder(&town).exists());
        end(&town, "c").unwrap();
    }

    #[test]
    fn a_run_that_is_killed_again_and_again_is_not_due_any_more() {
        let dir = tempfile::tempdir().unwrap();
        let town = town(&dir.path().join("town"));
        for _ in 0..MAX_ATTEMPTS {
            request(&town, "a").unwrap();
            assert_eq!(due(&town), ["a"]);
            begin(&town, "a").unwrap();
        }
        assert_eq!(due(&town), [""; 0]);
        end(&town, "a").unwrap();
        request(&town, "a").unwrap();
        assert_eq!(due(&town), ["a"]);
    }
}

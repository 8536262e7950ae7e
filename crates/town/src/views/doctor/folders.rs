//! Checks the town's folders: permissions and free disk space.

use super::DoctorFinding;
use crate::Town;
use crate::base::files;
use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Free bytes below which the doctor warns.
const LITTLE_ROOM: u64 = 100 * 1024 * 1024;
/// Free bytes below which writes cannot be relied on.
const NO_ROOM: u64 = 1024 * 1024;
/// Size of the file that is written to test whether writing is possible.
const PROBE: usize = 16 * 1024;

/// Returns the existing folders that `gt` writes to.
fn folders(town: &Town) -> Vec<PathBuf> {
    let below = [".runtime", ".sessions", ".work"].map(|name| town.root().join(name));
    let all = std::iter::once(town.root().to_owned()).chain(below);
    all.filter(|dir| dir.symlink_metadata().is_ok()).collect()
}

/// Checks that folders with messages, prompts or environment are private to their owner and
/// accessible to the owner.
pub(super) fn check_permissions(town: &Town, fix: bool) -> Vec<DoctorFinding> {
    let mut findings = Vec::new();
    for dir in folders(town) {
        let shown = dir.display();
        let meta = match dir.metadata() {
            Ok(meta) if meta.is_dir() => meta,
            Ok(_) => {
                let message = format!("{shown} is not a folder");
                findings.push(DoctorFinding::error("permissions", message).hint("move it away"));
                continue;
            }
            Err(error) => {
                let problem = files::io_problem("look at", &dir, &error);
                findings.push(DoctorFinding::of("permissions", &problem));
                continue;
            }
        };
        let mode = meta.permissions().mode() & 0o777;
        if mode == 0o700 {
            continue;
        }
        let is_shut = mode & 0o700 != 0o700;
        let message = match is_shut {
            true => format!("{shown} cannot be read and written by its owner ({mode:o})"),
            false => format!("{shown} is open to others ({mode:o})"),
        };
        if fix && fs::set_permissions(&dir, Permissions::from_mode(0o700)).is_ok() {
            let done = if is_shut { "opened" } else { "closed" };
            findings.push(DoctorFinding::ok(
                "permissions",
                format!("{message}; {done} now"),
            ));
            continue;
        }
        let finding = match is_shut {
            true => DoctorFinding::error("permissions", message),
            false => DoctorFinding::warning("permissions", message),
        };
        findings.push(finding.hint(format!("chmod 700 {shown}")).fixable());
    }
    if findings.is_empty() {
        findings.push(DoctorFinding::ok(
            "permissions",
            "only you can read the town",
        ));
    }
    findings
}

/// Checks whether files can be written, and the free space.
pub(super) fn check_room(town: &Town, _fix: bool) -> Vec<DoctorFinding> {
    let mut findings = Vec::new();
    let mut least = u64::MAX;
    let mut disks = Vec::new();
    for dir in folders(town).into_iter().filter(|dir| dir.is_dir()) {
        if let Err(error) = probe(&dir) {
            let problem = files::io_problem("write to", &dir, &error);
            findings.push(DoctorFinding::of("disk", &problem));
            continue;
        }
        let disk = dir.metadata().map_or(0, |meta| meta.dev());
        if disks.contains(&disk) {
            continue;
        }
        disks.push(disk);
        let Ok(room) = rustix::fs::statvfs(&dir) else {
            continue;
        };
        let free = room.f_bavail.saturating_mul(room.f_frsize);
        least = least.min(free);
        findings.extend(little_room(&dir, free));
    }
    if findings.is_empty() {
        let message = format!("{} MB free, and the town can be written", least / 1_000_000);
        findings.push(DoctorFinding::ok("disk", message));
    }
    findings
}

fn little_room(dir: &Path, free: u64) -> Option<DoctorFinding> {
    let message = format!("only {} kB are free in {}", free / 1000, dir.display());
    let finding = match free {
        ..NO_ROOM => DoctorFinding::error("disk", message),
        NO_ROOM..LITTLE_ROOM => DoctorFinding::warning("disk", message),
        _ => return None,
    };
    Some(finding.hint("make room: on a full disk nothing new can be written down"))
}

/// Writes a file and removes it. Permissions alone do not show a full or read-only disk.
fn probe(dir: &Path) -> io::Result<()> {
    let path = dir.join(files::temporary_name("probe"));
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)?;
    let written = file.write_all(&[0; PROBE]).and_then(|()| file.sync_data());
    let removed = fs::remove_file(&path);
    written.and(removed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::doctor::CheckStatus;

    #[test]
    fn little_room_is_a_warning_and_none_an_error() {
        let status = |free| little_room(Path::new("/x"), free).map(|finding| finding.status);
        assert_eq!(status(0), Some(CheckStatus::Error));
        assert_eq!(status(50 * 1024 * 1024), Some(CheckStatus::Warning));
        assert_eq!(status(1 << 40), None);
    }

    #[test]
    fn probe_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        probe(folder.path()).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(probe(&folder.path().join("none")).is_err());
    }
}

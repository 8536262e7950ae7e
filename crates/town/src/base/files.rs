//! Files of a town: private, and written atomically.

use crate::Result;
use crate::base::clock::Clock;
use crate::base::or_log::OrLog;
use gt_core::Problem;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Creates a folder and its parents, accessible only to the owner.
pub fn make_dir(path: &Path) -> Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|error| io_problem("make the folder", path, &error))
}

/// Replaces a file atomically and durably: a crash leaves either the old or the new contents.
/// Writes a temporary file in the same folder, syncs it, renames it and syncs the folder.
pub fn write_whole(path: &Path, text: &[u8]) -> Result<()> {
    replace(path, text, Sync::ToDisk)
}

/// Writes a file like [`write_whole`], for contents too large for memory: the callback writes them.
pub fn write_whole_with(
    path: &Path,
    give: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<()> {
    replace_by(path, Sync::ToDisk, give)
}

/// Writes a file atomically if its contents have changed.
pub fn write_if_changed(path: &Path, text: &str) -> Result<()> {
    if read_if_there(path)?.as_deref() == Some(text) {
        return Ok(());
    }
    write_whole(path, text.as_bytes())
}

/// Writes a file atomically but without fsync, for data that is worthless after a reboot.
pub fn write_passing(path: &Path, text: &[u8]) -> Result<()> {
    replace(path, text, Sync::NotNeeded)
}

/// Overwrites the first line of a file with one write. The rest of a longer previous line stays
/// after it, so readers must use only the first line. After a power failure the line may be
/// incomplete, which readers must be able to detect.
pub(crate) fn overwrite_line(path: &Path, line: &str) -> Result<()> {
    let open = || {
        OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)
    };
    let file = match open() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            make_dir(path.parent().unwrap_or(Path::new(".")))?;
            open()
        }
        opened => opened,
    };
    let text = format!("{line}\n");
    file.and_then(|file| file.write_all_at(text.as_bytes(), 0))
        .map_err(|error| io_problem("write", path, &error))
}

/// Syncs the folder of a new file and that folder's parent, which may be new as well.
pub(crate) fn sync_folders(path: &Path) -> io::Result<()> {
    for folder in path.ancestors().skip(1).take(2) {
        let folder = match folder.as_os_str().is_empty() {
            true => Path::new("."),
            false => folder,
        };
        match File::open(folder) {
            Ok(opened) => opened.sync_all()?,
            // A folder that this user cannot read cannot be synced. It existed before the file.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[derive(PartialEq)]
enum Sync {
    ToDisk,
    NotNeeded,
}

fn replace(path: &Path, text: &[u8], sync: Sync) -> Result<()> {
    replace_by(path, sync, |file| file.write_all(text))
}

fn replace_by(
    path: &Path,
    sync: Sync,
    give: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    make_dir(dir)?;
    let temporary = temporary_beside(path);
    let write = || -> io::Result<()> {
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&temporary)?;
        let mut writer = BufWriter::new(file);
        give(&mut writer)?;
        let file = writer
            .into_inner()
            .map_err(io::IntoInnerError::into_error)?;
        if sync == Sync::NotNeeded {
            return fs::rename(&temporary, path);
        }
        file.sync_all()?;
        fs::rename(&temporary, path)?;
        File::open(dir)?.sync_all()
    };
    write().map_err(|error| {
        // If this fails, a temporary file remains.
        let _ = fs::remove_file(&temporary);
        io_problem("write", path, &error)
    })
}

/// Makes a file that another program wrote readable only by its owner.
pub fn make_private(path: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))
        .map_err(|error| io_problem("protect", path, &error))
}

/// Reads a file; returns `None` if it does not exist.
pub fn read_if_there(path: &Path) -> Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io_problem("read", path, &error)),
    }
}

/// Removes a file if it exists.
pub fn remove_if_there(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(io_problem("remove", path, &error))
        }
        _ => Ok(()),
    }
}

/// Removes a folder and its contents if it exists, even if folders in it are read-only.
pub(crate) fn remove_folder(path: &Path) -> Result<()> {
    let removed = match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            make_writable(path);
            fs::remove_dir_all(path)
        }
        removed => removed,
    };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(io_problem("remove", path, &error))
        }
        _ => Ok(()),
    }
}

/// Makes a folder and the folders in it writable for the owner. Failures are ignored: the operation
/// that follows then fails.
pub(crate) fn make_writable(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    // Symbolic links are not followed, because they may lead out of the folder.
    let Ok(meta) = path.symlink_metadata() else {
        return;
    };
    if !meta.is_dir() {
        return;
    }
    let mode = meta.permissions().mode();
    if mode & 0o700 != 0o700 {
        // If this fails, the removal that follows fails and is reported.
        let _ = fs::set_permissions(path, fs::Permissions::from_mode(mode | 0o700));
    }
    for entry in entries(path) {
        make_writable(&entry.path());
    }
}

/// A short-lived file that is removed on drop.
#[derive(Debug)]
pub(crate) struct TemporaryFile(pub(crate) PathBuf);

impl TemporaryFile {
    /// Reserves a name; the file does not exist yet.
    pub(crate) fn new(dir: &Path, kind: &str) -> Result<Self> {
        make_dir(dir)?;
        let name = Clock::default().new_id().simple();
        Ok(TemporaryFile(dir.join(format!("{kind}-{name}"))))
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        // Git may have left its lock file beside it.
        for path in [&self.0.with_extension("lock"), &self.0] {
            remove_if_there(path).or_debug("a temporary file stays");
        }
    }
}

/// Returns whether two paths name the same file, after symbolic links are resolved.
pub(crate) fn is_same(one: &Path, other: &Path) -> bool {
    let whole = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    whole(one) == whole(other)
}

/// Returns the entries of a folder. A missing folder has none. A folder that cannot be read is
/// logged, and counts as empty.
pub fn entries(path: &Path) -> impl Iterator<Item = fs::DirEntry> + use<> {
    let unreadable = format!("the folder {} cannot be read", path.display());
    let entries = match fs::read_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        entries => entries.or_warn(&unreadable),
    };
    entries
        .into_iter()
        .flatten()
        .filter_map(move |entry| entry.or_warn(&unreadable))
}

/// Returns the names of the folders in a folder, sorted; none if it does not exist.
pub fn folder_names(path: &Path) -> Vec<String> {
    let mut names: Vec<String> = entries(path)
        .filter(|entry| entry.path().is_dir())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| !name.starts_with('.'))
        .collect();
    names.sort();
    names
}

/// Converts an I/O error on a file to a problem, with hints for common causes.
pub fn io_problem(what: &str, path: &Path, error: &io::Error) -> Problem {
    let message = format!("cannot {what} {}", path.display());
    let problem = match error.kind() {
        io::ErrorKind::NotFound => Problem::not_found(message),
        _ => Problem::failed(message),
    };
    let problem = problem.caused_by(error);
    match error.kind() {
        io::ErrorKind::StorageFull => problem.hint("the disk is full: make room and try again"),
        io::ErrorKind::PermissionDenied => {
            problem.hint("check its owner; `gt doctor` checks the town's permissions")
        }
        _ => problem,
    }
}

/// Returns a temporary name beside a file, for its replacement. It ends with the id of the writing
/// process, which identifies the leftovers of a killed process.
pub(crate) fn temporary_beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(temporary_name(&name))
}

/// Returns a temporary name for a file name without a path.
pub(crate) fn temporary_name(name: &str) -> String {
    let (id, process) = (Clock::default().new_id().simple(), std::process::id());
    format!(".{name}.{id}.{process}.tmp")
}

/// Returns the id of the process that created a temporary file, from the name of the file or of a
/// SQLite log beside it. Returns `None` for other names, and 0 if the name has no process id.
pub(crate) fn temporary_of(name: &str) -> Option<u32> {
    let name = ["-wal", "-shm", "-journal"]
        .iter()
        .find_map(|end| name.strip_suffix(end))
        .unwrap_or(name);
    let mut parts = name.strip_prefix('.')?.strip_suffix(".tmp")?.rsplit('.');
    let last = parts.next()?;
    let is_id = |part: &str| part.len() == 32 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    match is_id(last) {
        // Earlier versions of `gt` wrote no process id.
        true => Some(0),
        false => parts
            .next()
            .filter(|part| is_id(part))
            .and(last.parse().ok()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::log::testing::warnings_of;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn missing_folder_is_empty_and_an_unreadable_one_is_logged() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("x");
        fs::write(&file, "").unwrap();
        assert_eq!(entries(dir.path()).count(), 1);
        let (count, warnings) = warnings_of(|| entries(&dir.path().join("none")).count());
        assert_eq!((count, warnings.len()), (0, 0), "{warnings:?}");
        let (count, warnings) = warnings_of(|| entries(&file).count());
        let expected = format!("the folder {} cannot be read: ", file.display());
        assert!(
            count == 0 && warnings[0].starts_with(&expected),
            "{warnings:?}"
        );
    }

    #[test]
    fn folder_is_removed_despite_the_modes_of_its_files() {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path().join("tree");
        let (inner, aside) = (tree.join("a/b"), dir.path().join("aside"));
        fs::create_dir_all(&inner).unwrap();
        fs::create_dir(&aside).unwrap();
        fs::write(inner.join("x"), "x").unwrap();
        std::os::unix::fs::symlink(&aside, tree.join("link")).unwrap();
        let set = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        for folder in [&inner, &tree.join("a"), &aside] {
            set(folder, 0o500);
        }
        make_writable(&tree);
        assert_eq!((mode(&inner), mode(&tree.join("a"))), (0o700, 0o700));
        assert_eq!(mode(&aside), 0o500, "a link leads out of it");
        set(&inner, 0o500);
        remove_folder(&tree).unwrap();
        assert!(!tree.exists() && aside.exists());
        remove_folder(&tree).unwrap();
    }

    #[test]
    fn temporary_files_are_known_by_their_process() {
        let own = temporary_name("index.db");
        assert_eq!(temporary_of(&own), Some(std::process::id()), "{own}");
        let log = format!("{own}-wal");
        assert_eq!(temporary_of(&log), Some(std::process::id()));
        let id = "0".repeat(32);
        let check = |name: &str, expected| assert_eq!(temporary_of(name), expected, "{name}");
        check(&format!(".rigs.json.{id}.tmp"), Some(0));
        check(&format!(".rig.{id}.77.tmp"), Some(77));
        check(&format!("rig.{id}.77.tmp"), None);
        check(".rig.77.tmp", None);
        check(".tmp", None);
        check(".mine.tmp", None);
    }

    #[test]
    fn a_file_is_replaced_whole_and_private() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b.json");
        write_whole(&path, b"one").unwrap();
        write_whole(&path, b"two").unwrap();
        assert_eq!(read_if_there(&path).unwrap().as_deref(), Some("two"));
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let parent = path.parent().unwrap();
        assert_eq!(
            parent.metadata().unwrap().permissions().mode() & 0o777,
            0o700
        );
        assert_eq!(
            fs::read_dir(parent).unwrap().count(),
            1,
            "no temporary file is left"
        );
    }

    #[test]
    fn a_failed_write_leaves_the_old_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("taken");
        fs::create_dir_all(path.join("inside")).unwrap();
        let problem = write_whole(&path, b"x").unwrap_err();
        assert!(problem.message().contains("taken"));
        assert!(path.join("inside").is_dir());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}

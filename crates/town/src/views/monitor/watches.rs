//! The watches of a monitor: which path is watched for what, and what a report means.

use super::event_sources::{PendingChanges, WatchedPaths};
use crate::base::file_watcher::{Changes, FileWatcher, Report, WatchId};
use crate::terminal::containers::PanePlace;
use rustix::event::PollFd;
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::ops::Bound;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

#[derive(Clone, Copy, Debug, PartialEq)]
enum WatchedFile {
    Push,
    Work,
    /// The folder in which the folder of work items will be created.
    AboveWork,
    Socket,
    Log,
    Pane(PanePlace),
}

#[derive(Debug, Default)]
pub(super) struct Watches {
    watcher: Option<FileWatcher>,
    watches: BTreeMap<WatchId, WatchedFile>,
    /// Files that the monitor's caller watches, and the folders that are watched for them.
    files: BTreeSet<PathBuf>,
    folders: BTreeMap<WatchId, PathBuf>,
}

impl Watches {
    pub(super) fn open() -> Self {
        Watches {
            watcher: FileWatcher::open(),
            ..Watches::default()
        }
    }

    fn watch(&mut self, path: &Path, changes: Changes, what: WatchedFile) -> Result<(), Errno> {
        let watcher = self.watcher.as_ref().ok_or(Errno::NOSPC)?;
        self.watches.insert(watcher.watch(path, changes)?, what);
        Ok(())
    }

    fn forget(&mut self, what: WatchedFile) {
        let Some(watcher) = &self.watcher else {
            return;
        };
        self.watches.retain(|watch, watched| {
            if *watched == what {
                watcher.forget(*watch);
            }
            *watched != what
        });
    }

    pub(super) fn watch_push(&mut self, file: &Path) -> bool {
        let folder = file.parent().unwrap_or(file);
        self.watch(folder, Changes::ATTRIB, WatchedFile::Push)
            .is_ok()
    }

    /// Watches the folder of the database, or its parent until it is created. Returns whether
    /// one of them is watched.
    pub(super) fn watch_work(&mut self, database: &Path) -> bool {
        let folder = database.parent().unwrap_or(database);
        // The times of the database are set once other processes can read the new content.
        let written = Changes::MODIFY | Changes::ATTRIB;
        let changes = written | Changes::CREATE | Changes::MOVED_TO;
        match self.watch(folder, changes, WatchedFile::Work) {
            Err(Errno::NOENT) => {
                let above = folder.parent().unwrap_or(folder);
                self.watch(above, Changes::CREATE, WatchedFile::AboveWork)
                    .is_ok()
            }
            done => {
                self.forget(WatchedFile::AboveWork);
                done.is_ok()
            }
        }
    }

    /// Watches the socket's folder, or its nearest existing ancestor.
    pub(super) fn watch_socket(&mut self, socket: &Path) -> bool {
        self.forget(WatchedFile::Socket);
        let appears = Changes::CREATE | Changes::MOVED_TO;
        let mut above = socket.ancestors().skip(1);
        above.any(|folder| self.watch(folder, appears, WatchedFile::Socket).is_ok())
    }

    pub(super) fn forget_socket(&mut self) {
        self.forget(WatchedFile::Socket);
    }

    /// Watches the log itself, until another file replaces it. A missing log is not watched.
    /// Returns false for any other failure.
    pub(super) fn watch_log(&mut self, log: &Path) -> bool {
        let changes = Changes::MODIFY | Changes::ATTRIB | Changes::MOVE_SELF;
        matches!(
            self.watch(log, changes, WatchedFile::Log),
            Ok(()) | Err(Errno::NOENT)
        )
    }

    pub(super) fn forget_log(&mut self) {
        self.forget(WatchedFile::Log);
    }

    /// Watches the folders of these files. git writes a new file and renames it over the old
    /// one, so a watch on the file itself would work only once. If a folder is missing, its
    /// nearest existing ancestor is watched.
    pub(super) fn watch_files(&mut self, files: BTreeSet<PathBuf>) -> bool {
        let Some(watcher) = &self.watcher else {
            return false;
        };
        let appears = Changes::CREATE | Changes::MOVED_TO;
        let changes = appears | Changes::DELETE | Changes::ONLYDIR | Changes::MASK_ADD;
        let mut folders = BTreeMap::new();
        let mut watched = BTreeSet::new();
        let mut is_enough = true;
        for file in &files {
            for folder in file.ancestors().skip(1) {
                if watched.contains(folder) {
                    break;
                }
                match watcher.watch(folder, changes) {
                    Ok(watch) => {
                        folders.insert(watch, folder.to_owned());
                        watched.insert(folder);
                        break;
                    }
                    Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) => {}
                    Err(_) => {
                        is_enough = false;
                        break;
                    }
                }
            }
        }
        for watch in self.folders.keys() {
            if !folders.contains_key(watch) && !self.watches.contains_key(watch) {
                watcher.forget(*watch);
            }
        }
        self.folders = folders;
        self.files = files;
        is_enough
    }

    /// Returns whether a file that the monitor's caller watches is at or below that path.
    fn is_wanted(&self, place: &Path) -> bool {
        let from_here = (Bound::Included(place), Bound::Unbounded);
        let mut from_here = self.files.range::<Path, _>(from_here);
        from_here.next().is_some_and(|file| file.starts_with(place))
    }

    pub(super) fn watch_pane(&mut self, pane: PanePlace, tty: &Path) -> bool {
        let once = Changes::MODIFY | Changes::ONESHOT;
        // A terminal that is gone prints nothing; the next listing reports it.
        !matches!(
            self.watch(tty, once, WatchedFile::Pane(pane)),
            Err(Errno::NOSPC | Errno::MFILE | Errno::NOMEM)
        )
    }

    pub(super) fn forget_pane(&mut self, pane: PanePlace) {
        self.forget(WatchedFile::Pane(pane));
    }

    pub(super) fn poll_fd(&self) -> Option<PollFd<'_>> {
        self.watcher.as_ref().map(FileWatcher::poll_fd)
    }

    /// Reads the pending reports.
    pub(super) fn read(&mut self, told: &mut PendingChanges, places: &WatchedPaths) {
        let Some(watcher) = self.watcher.take() else {
            return;
        };
        let mut has_folder = false;
        watcher.read(|report| match report {
            Report::Changed { watch, name } => {
                has_folder |= self.changed(watch, name, told, places);
            }
            Report::Ended(watch) => {
                told.files |= self.folders.remove(&watch).is_some();
                told.log |= self.watches.remove(&watch) == Some(WatchedFile::Log);
            }
            Report::Lost => self.report_all(told),
        });
        self.watcher = Some(watcher);
        if has_folder {
            self.watch_work(&places.work);
            told.work = true;
        }
    }

    /// Takes note of one change. Returns whether the folder of work items has been created.
    fn changed(
        &mut self,
        watch: WatchId,
        name: Option<&OsStr>,
        told: &mut PendingChanges,
        places: &WatchedPaths,
    ) -> bool {
        let is = |path: &Path| name.is_some() && name == path.file_name();
        if let Some(folder) = self.folders.get(&watch) {
            let place = name.map(|name| folder.join(name));
            // A change without a name is one of the folder itself.
            told.files |= place.is_none_or(|place| self.is_wanted(&place));
        }
        match self.watches.get(&watch).copied() {
            Some(WatchedFile::Log) => told.log = true,
            Some(WatchedFile::Push) => told.pushed |= is(&places.push),
            Some(WatchedFile::Work) => {
                // SQLite has a third file (`-shm`), which readers also change.
                let database = places.work.file_name().unwrap_or_default().as_bytes();
                let rest = name.and_then(|name| name.as_bytes().strip_prefix(database));
                told.work |= matches!(rest, Some(b"" | b"-wal"));
            }
            Some(WatchedFile::AboveWork) => {
                return is(places.work.parent().unwrap_or(&places.work));
            }
            Some(WatchedFile::Socket) => told.socket |= places.socket.ancestors().any(is),
            Some(WatchedFile::Pane(pane)) => {
                self.watches.remove(&watch);
                told.printed.push(pane);
            }
            None => {}
        }
        false
    }

    /// Reports everything as changed.
    fn report_all(&self, told: &mut PendingChanges) {
        (told.pushed, told.work, told.socket) = (true, true, true);
        (told.files, told.log) = (true, true);
        let panes = self.watches.values().filter_map(|watched| match watched {
            WatchedFile::Pane(pane) => Some(*pane),
            _ => None,
        });
        told.printed.extend(panes);
    }
}

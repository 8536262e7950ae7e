//! File and process watcher: a file was touched, a pane has printed, a process ended.
//!
//! A pane is watched for one print at a time and must be armed again, so that a program that prints
//! without a pause does not cause wakeups in between. If the kernel reports nothing, or no watches
//! are left, everything is reported as changed twice a second.

use crate::containers::PanePlace;
use crate::processes::{self, Handle};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Polling interval if the kernel does not report everything.
const BLIND: Duration = Duration::from_millis(500);

/// Paths of the watched files.
#[derive(Clone, Debug)]
pub(super) struct Places {
    /// The file that other processes touch.
    pub(super) push: PathBuf,
    /// The database of work items.
    pub(super) work: PathBuf,
    /// tmux's socket.
    pub(super) socket: PathBuf,
    /// The log of events.
    pub(super) log: PathBuf,
}

/// Result of one wait: the things that may have happened.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) pushed: bool,
    pub(super) work: bool,
    /// A tmux server may have started.
    pub(super) socket: bool,
    /// A file that the monitor's caller watches was written, created or removed.
    pub(super) files: bool,
    /// The log of events has grown.
    pub(super) log: bool,
    pub(super) printed: Vec<PanePlace>,
    pub(super) ended: Vec<u32>,
}

#[derive(Debug)]
pub(super) struct Eyes {
    kernel: system::Kernel,
    /// Not everything can be watched, so changes are polled.
    blind: bool,
    places: Places,
    panes: BTreeMap<PanePlace, String>,
    handles: BTreeMap<u32, Handle>,
    /// Processes that have ended, so that no handle is opened for them again.
    gone: BTreeSet<u32>,
}

impl Eyes {
    pub(super) fn open(places: Places) -> Self {
        Self::with(system::Kernel::open(), places)
    }

    /// Opens a watcher without kernel support.
    #[cfg(test)]
    pub(super) fn closed(places: Places) -> Self {
        Self::with(system::Kernel::default(), places)
    }

    fn with(mut kernel: system::Kernel, places: Places) -> Self {
        let blind = !kernel.watch_push(&places.push) || !kernel.watch_work(&places.work);
        Eyes {
            kernel,
            blind,
            places,
            panes: BTreeMap::new(),
            handles: BTreeMap::new(),
            gone: BTreeSet::new(),
        }
    }

    /// Starts or stops watching for a tmux server.
    pub(super) fn await_server(&mut self, wanted: bool) {
        match wanted {
            true => self.blind |= !self.kernel.watch_socket(&self.places.socket),
            false => self.kernel.forget_socket(),
        }
    }

    /// Starts or stops watching the log of events.
    pub(super) fn watch_log(&mut self, wanted: bool) {
        match wanted {
            true => self.blind |= !self.kernel.watch_log(&self.places.log),
            false => self.kernel.forget_log(),
        }
    }

    /// Replaces the watched files. Calling it again follows folders that have come or gone.
    pub(super) fn watch_files<'f>(&mut self, files: impl Iterator<Item = &'f PathBuf>) {
        self.blind |= !self.kernel.watch_files(files.cloned().collect());
    }

    /// Reports the next output of this pane. The caller must read the pane after this call.
    pub(super) fn arm(&mut self, pane: PanePlace, tty: &str) {
        self.panes.insert(pane, tty.to_owned());
        self.blind |= !self.kernel.watch_pane(pane, Path::new(tty));
    }

    /// Returns whether that terminal of the pane is or was watched.
    pub(super) fn knows(&self, pane: PanePlace, tty: &str) -> bool {
        self.panes.get(&pane).is_some_and(|known| known == tty)
    }

    pub(super) fn tty_of(&self, pane: PanePlace) -> Option<String> {
        self.panes.get(&pane).cloned()
    }

    /// Stops watching all panes except these.
    pub(super) fn keep_panes(&mut self, wanted: &BTreeSet<PanePlace>) {
        let is_unwanted = |pane: &&PanePlace| !wanted.contains(pane);
        let others: Vec<PanePlace> = self.panes.keys().filter(is_unwanted).copied().collect();
        for pane in others {
            self.panes.remove(&pane);
            self.kernel.forget_pane(pane);
        }
    }

    /// Holds handles of exactly these processes. Returns those that have just been found ended.
    pub(super) fn hold(&mut self, wanted: &BTreeSet<u32>) -> Vec<u32> {
        self.handles.retain(|pid, _| wanted.contains(pid));
        self.gone.retain(|pid| wanted.contains(pid));
        let mut ended = Vec::new();
        for pid in wanted {
            if self.handles.contains_key(pid) || self.gone.contains(pid) {
                continue;
            }
            match processes::hold_one(*pid) {
                Some(handle) => drop(self.handles.insert(*pid, handle)),
                None => {
                    self.gone.insert(*pid);
                    ended.push(*pid);
                }
            }
        }
        ended
    }

    /// Waits for a report, for data on `woken` or for the timeout.
    pub(super) fn wait(&mut self, woken: &UnixStream, timeout: Option<Duration>) -> Told {
        let timeout = match self.blind {
            true => Some(timeout.map_or(BLIND, |timeout| timeout.min(BLIND))),
            false => timeout,
        };
        system::wait(&self.kernel, &self.handles, woken, timeout);
        let mut told = Told::default();
        self.kernel.read(&mut told, &self.places);
        if self.blind {
            told.pushed = true;
            told.work = true;
            told.socket = true;
            told.files = true;
            told.log = true;
            told.printed = self.panes.keys().copied().collect();
        }
        let ended = self.handles.iter().filter(|(_, handle)| handle.has_ended());
        told.ended = ended.map(|(pid, _)| *pid).collect();
        for pid in &told.ended {
            // The handle of an ended process stays readable.
            self.handles.remove(pid);
            self.gone.insert(*pid);
        }
        told
    }
}

#[cfg(target_os = "linux")]
mod system {
    use super::{BTreeSet, Duration, Handle, PanePlace, Path, PathBuf, Places, Told, UnixStream};
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
    use rustix::io::Errno;
    use std::collections::BTreeMap;
    use std::ffi::{CStr, OsStr};
    use std::mem::MaybeUninit;
    use std::ops::Bound;
    use std::os::fd::OwnedFd;
    use std::os::unix::ffi::OsStrExt;

    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Watched {
        Push,
        Work,
        /// The folder in which the folder of work items will be created.
        AboveWork,
        Socket,
        Log,
        Pane(PanePlace),
    }

    #[derive(Debug, Default)]
    pub(super) struct Kernel {
        fd: Option<OwnedFd>,
        watches: BTreeMap<i32, Watched>,
        /// Files that the monitor's caller watches, and the folders that are watched for them.
        files: BTreeSet<PathBuf>,
        folders: BTreeMap<i32, PathBuf>,
    }

    impl Kernel {
        pub(super) fn open() -> Self {
            Kernel {
                fd: inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok(),
                ..Kernel::default()
            }
        }

        fn watch(&mut self, path: &Path, flags: WatchFlags, what: Watched) -> Result<(), Errno> {
            let fd = self.fd.as_ref().ok_or(Errno::NOSPC)?;
            let number = inotify::add_watch(fd, path, flags)?;
            self.watches.insert(number, what);
            Ok(())
        }

        fn forget(&mut self, what: Watched) {
            let Some(fd) = &self.fd else {
                return;
            };
            self.watches.retain(|number, watched| {
                if *watched == what {
                    let _ = inotify::remove_watch(fd, *number);
                }
                *watched != what
            });
        }

        pub(super) fn watch_push(&mut self, file: &Path) -> bool {
            let folder = file.parent().unwrap_or(file);
            self.watch(folder, WatchFlags::ATTRIB, Watched::Push)
                .is_ok()
        }

        /// Watches the folder of the database, or its parent until it is created. Returns whether
        /// one of them is watched.
        pub(super) fn watch_work(&mut self, database: &Path) -> bool {
            let folder = database.parent().unwrap_or(database);
            // The times of the database are set once other processes can read the new content.
            let written = WatchFlags::MODIFY | WatchFlags::ATTRIB;
            let changes = written | WatchFlags::CREATE | WatchFlags::MOVED_TO;
            match self.watch(folder, changes, Watched::Work) {
                Err(Errno::NOENT) => {
                    let above = folder.parent().unwrap_or(folder);
                    self.watch(above, WatchFlags::CREATE, Watched::AboveWork)
                        .is_ok()
                }
                done => {
                    self.forget(Watched::AboveWork);
                    done.is_ok()
                }
            }
        }

        /// Watches the socket's folder, or its nearest existing ancestor.
        pub(super) fn watch_socket(&mut self, socket: &Path) -> bool {
            self.forget(Watched::Socket);
            let appears = WatchFlags::CREATE | WatchFlags::MOVED_TO;
            let mut above = socket.ancestors().skip(1);
            above.any(|folder| self.watch(folder, appears, Watched::Socket).is_ok())
        }

        pub(super) fn forget_socket(&mut self) {
            self.forget(Watched::Socket);
        }

        /// Watches the log itself, until another file replaces it. A missing log is not watched.
        /// Returns false for any other failure.
        pub(super) fn watch_log(&mut self, log: &Path) -> bool {
            let flags = WatchFlags::MODIFY | WatchFlags::ATTRIB | WatchFlags::MOVE_SELF;
            matches!(
                self.watch(log, flags, Watched::Log),
                Ok(()) | Err(Errno::NOENT)
            )
        }

        pub(super) fn forget_log(&mut self) {
            self.forget(Watched::Log);
        }

        /// Watches the folders of these files. git writes a new file and renames it over the old
        /// one, so a watch on the file itself would work only once. If a folder is missing, its
        /// nearest existing ancestor is watched.
        pub(super) fn watch_files(&mut self, files: BTreeSet<PathBuf>) -> bool {
            let Some(fd) = &self.fd else {
                return false;
            };
            let appears = WatchFlags::CREATE | WatchFlags::MOVED_TO;
            let flags = appears | WatchFlags::DELETE | WatchFlags::ONLYDIR | WatchFlags::MASK_ADD;
            let mut folders = BTreeMap::new();
            let mut watched = BTreeSet::new();
            let mut is_enough = true;
            for file in &files {
                for folder in file.ancestors().skip(1) {
                    if watched.contains(folder) {
                        break;
                    }
                    match inotify::add_watch(fd, folder, flags) {
                        Ok(number) => {
                            folders.insert(number, folder.to_owned());
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
            for number in self.folders.keys() {
                if !folders.contains_key(number) && !self.watches.contains_key(number) {
                    let _ = inotify::remove_watch(fd, *number);
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
            let once = WatchFlags::MODIFY | WatchFlags::ONESHOT;
            // A terminal that is gone prints nothing; the next listing reports it.
            !matches!(
                self.watch(tty, once, Watched::Pane(pane)),
                Err(Errno::NOSPC | Errno::MFILE | Errno::NOMEM)
            )
        }

        pub(super) fn forget_pane(&mut self, pane: PanePlace) {
            self.forget(Watched::Pane(pane));
        }

        /// Reads the pending reports.
        pub(super) fn read(&mut self, told: &mut Told, places: &Places) {
            let Some(fd) = &self.fd else {
                return;
            };
            let mut buffer = [MaybeUninit::uninit(); 4096];
            let mut events = inotify::Reader::new(fd, &mut buffer);
            let mut has_folder = false;
            let is = |name: Option<&[u8]>, path: &Path| {
                name.is_some() && name == path.file_name().map(OsStrExt::as_bytes)
            };
            while let Ok(event) = events.next() {
                let flags = event.events();
                if flags.contains(ReadFlags::QUEUE_OVERFLOW) {
                    // The lost reports are unknown, so everything may have changed.
                    (told.pushed, told.work, told.socket) = (true, true, true);
                    told.files = true;
                    told.log = true;
                    let panes = self.watches.values().filter_map(|watched| match watched {
                        Watched::Pane(pane) => Some(*pane),
                        _ => None,
                    });
                    told.printed.extend(panes);
                    continue;
                }
                let name = event.file_name().map(CStr::to_bytes);
                if let Some(folder) = self.folders.get(&event.wd()) {
                    let place = name.map(|name| folder.join(OsStr::from_bytes(name)));
                    // An event without a name is the end of the folder itself.
                    told.files |= place.is_none_or(|place| self.is_wanted(&place));
                }
                if flags.contains(ReadFlags::IGNORED) {
                    self.folders.remove(&event.wd());
                }
                match self.watches.get(&event.wd()).copied() {
                    Some(Watched::Log) => {
                        told.log = true;
                        if flags.contains(ReadFlags::IGNORED) {
                            self.watches.remove(&event.wd());
                        }
                    }
                    Some(_) if flags.contains(ReadFlags::IGNORED) => {
                        self.watches.remove(&event.wd());
                    }
                    Some(Watched::Push) => told.pushed |= is(name, &places.push),
                    Some(Watched::Work) => {
                        // Readers use another file beside these two.
                        let database = places.work.file_name().unwrap_or_default();
                        let rest = name.and_then(|name| name.strip_prefix(database.as_bytes()));
                        told.work |= matches!(rest, Some(b"" | b"-wal"));
                    }
                    Some(Watched::AboveWork) => {
                        has_folder |= is(name, places.work.parent().unwrap_or(&places.work));
                    }
                    Some(Watched::Socket) => {
                        let mut parts = places.socket.ancestors();
                        told.socket |= parts.any(|part| is(name, part));
                    }
                    Some(Watched::Pane(pane)) => {
                        self.watches.remove(&event.wd());
                        told.printed.push(pane);
                    }
                    None => {}
                }
            }
            if has_folder {
                self.watch_work(&places.work);
                told.work = true;
            }
        }
    }

    pub(super) fn wait(
        kernel: &Kernel,
        handles: &BTreeMap<u32, Handle>,
        woken: &UnixStream,
        timeout: Option<Duration>,
    ) {
        let mut fds = vec![PollFd::new(woken, PollFlags::IN)];
        fds.extend(kernel.fd.as_ref().map(|fd| PollFd::new(fd, PollFlags::IN)));
        fds.extend(handles.values().map(Handle::poll_fd));
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        // An interrupted wait is no error: the caller checks again.
        let _ = poll(&mut fds, timeout.as_ref());
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use super::{BTreeSet, Duration, Handle, PanePlace, Path, PathBuf, Places, Told, UnixStream};
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use std::collections::BTreeMap;

    /// Reports nothing on this system.
    #[derive(Debug, Default)]
    pub(super) struct Kernel;

    impl Kernel {
        pub(super) fn open() -> Self {
            Kernel
        }

        pub(super) fn watch_push(&mut self, _file: &Path) -> bool {
            false
        }

        pub(super) fn watch_work(&mut self, _database: &Path) -> bool {
            false
        }

        pub(super) fn watch_socket(&mut self, _socket: &Path) -> bool {
            false
        }

        pub(super) fn forget_socket(&mut self) {}

        pub(super) fn watch_log(&mut self, _log: &Path) -> bool {
            false
        }

        pub(super) fn forget_log(&mut self) {}

        pub(super) fn watch_files(&mut self, _files: BTreeSet<PathBuf>) -> bool {
            false
        }

        pub(super) fn watch_pane(&mut self, _pane: PanePlace, _tty: &Path) -> bool {
            false
        }

        pub(super) fn forget_pane(&mut self, _pane: PanePlace) {}

        pub(super) fn read(&mut self, _told: &mut Told, _places: &Places) {}
    }

    pub(super) fn wait(
        _kernel: &Kernel,
        _handles: &BTreeMap<u32, Handle>,
        woken: &UnixStream,
        timeout: Option<Duration>,
    ) {
        let mut fds = [PollFd::new(woken, PollFlags::IN)];
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        let _ = poll(&mut fds, timeout.as_ref());
    }
}

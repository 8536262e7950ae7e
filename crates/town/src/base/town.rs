//! A town: finds, opens and creates it.

use crate::base::clock::Clock;
use crate::base::files;
use crate::base::lock::FileLock;
use crate::base::settings::{self, TownSettings};
use crate::base::surroundings::Deadline;
use crate::{Result, Surroundings};
use gt_core::Identity;
use gt_core::caller::ProcessTree;
use gt_core::environment::stays_with_the_caller;
use gt_core::problem::Problem;
use gt_core::registry::Registry;
use gt_tmux::{Server, Socket, Version, version_cache};
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Maximum wait for the lock of a shared file.
const TIMEOUT: Duration = Duration::from_secs(30);

/// An open town.
#[derive(Clone, Debug)]
pub struct Town {
    root: PathBuf,
    settings: TownSettings,
    registry: Registry,
    server: Server,
    around: Surroundings,
    /// The server that the town starts agents on, if `server` is another one.
    own_server: Option<Server>,
    /// The process tree of this process, once it was read.
    tree: Arc<OnceLock<ProcessTree>>,
}

fn is_town(dir: &Path) -> bool {
    dir.join(settings::FILE).is_file()
}

impl Town {
    /// Finds the town: the given folder, then `GT_ROOT`, then this folder and its parents, then
    /// `~/gt`.
    pub fn find(given: Option<&Path>, around: &Surroundings) -> Result<PathBuf> {
        if let Some(dir) = given {
            let dir = around.current_dir.join(dir);
            return if is_town(&dir) {
                Ok(dir)
            } else {
                Err(
                    Problem::not_found(format!("{} is not a town", dir.display()))
                        .hint(format!("`gt init {}` makes one there", dir.display())),
                )
            };
        }
        if let Some(dir) = around
            .var("GT_ROOT")
            .map(|dir| around.current_dir.join(dir))
        {
            return if is_town(&dir) {
                Ok(dir)
            } else {
                Err(Problem::not_found(format!(
                    "GT_ROOT says {}, which is not a town",
                    dir.display()
                ))
                .hint(format!("`gt init {}` makes one there", dir.display())))
            };
        }
        Self::find_unnamed(around).ok_or_else(|| {
            Problem::not_found("there is no town here")
                .hint("`gt init` makes one in ~/gt, `gt init PATH` elsewhere")
                .hint("or name one with `--town PATH` or GT_ROOT")
        })
    }

    /// Returns the town that contains the current folder, or the one in `~/gt`, if there is one.
    pub fn find_unnamed(around: &Surroundings) -> Option<PathBuf> {
        let above = around.current_dir.ancestors().map(Path::to_owned);
        let home = around.home().map(|home| home.join("gt"));
        above.chain(home).find(|dir| is_town(dir))
    }

    /// Opens the town at that folder.
    pub fn open(root: &Path, around: Surroundings) -> Result<Self> {
        // Tags contain the root, so it must always be spelled the same way.
        let root = root
            .canonicalize()
            .map_err(|error| files::io_problem("open", root, &error))?;
        if root.to_str().is_none() {
            return Err(
                Problem::usage(format!("the path {} is not valid UTF-8", root.display()))
                    .hint("move the town to a path that is"),
            );
        }
        let settings = TownSettings::read(&root)?;
        let registry = read_registry(&root)?;
        let wanted = around
            .var("GT_TMUX_SOCKET")
            .unwrap_or(settings.tmux.socket.as_str());
        let server = server_at(Socket::parse(wanted), &root, &around);
        tracing::debug!("town {}, tmux server {wanted}", root.display());
        let around = Surroundings {
            git_allow: settings.git.allow.clone(),
            ..around
        };
        Ok(Town {
            root,
            settings,
            registry,
            server,
            around,
            own_server: None,
            tree: Arc::default(),
        })
    }

    /// Fails if the folder is a town already.
    pub fn check_new(root: &Path) -> Result<()> {
        if root.join(settings::FILE).exists() {
            return Err(
                Problem::conflict(format!("{} is a town already", root.display()))
                    .hint("`gt status` shows it"),
            );
        }
        Ok(())
    }

    /// Creates a new town.
    pub fn init(root: &Path, name: Option<&str>, socket: &str, harness: &str) -> Result<PathBuf> {
        Self::check_new(root)?;
        let folder = root.file_name().unwrap_or_default().to_string_lossy();
        for dir in [
            "mayor",
            "deacon/dogs/boot",
            "roles",
            "harnesses",
            ".runtime",
            ".sessions",
        ] {
            files::make_dir(&root.join(dir))?;
        }
        let registry = root.join(REGISTRY);
        if !registry.exists() {
            files::write_whole(&registry, Registry::default().to_json().as_bytes())?;
        }
        // Last, because this file marks the folder as a town.
        let text = TownSettings::template(name.unwrap_or(&folder), socket, harness);
        files::write_whole(&root.join(settings::FILE), text.as_bytes())?;
        Ok(root.to_owned())
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the root as written in tags and variables.
    pub fn root_text(&self) -> &str {
        self.root.to_str().unwrap_or_default()
    }

    pub fn settings(&self) -> &TownSettings {
        &self.settings
    }

    #[cfg(test)]
    pub(crate) fn change_settings(&mut self, change: impl FnOnce(&mut TownSettings)) {
        change(&mut self.settings);
    }

    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Returns the version of the tmux program.
    pub fn tmux_version(&self) -> Result<Version, gt_tmux::Error> {
        version(&self.root, &self.server)
    }

    /// Returns the clock by which this town records times and makes ids.
    pub fn clock(&self) -> &Clock {
        &self.around.clock
    }

    pub fn around(&self) -> &Surroundings {
        &self.around
    }

    /// Returns this town with one deadline for all waits, after this time from now.
    #[must_use]
    pub fn with_timeout(&self, time: Duration) -> Self {
        let mut town = self.clone();
        town.around.deadline = Deadline::after(time);
        if let Some(moment) = town.around.deadline.until {
            town.server = town.server.with_deadline(moment);
        }
        town
    }

    /// Returns this town with another tmux server, given by the path of its socket.
    #[must_use]
    pub fn with_server(&self, socket: &Path) -> Self {
        let server = server_at(Socket::Path(socket.to_owned()), &self.root, &self.around);
        let own = self
            .own_server
            .clone()
            .unwrap_or_else(|| self.server.clone());
        Town {
            server,
            own_server: (socket != own.socket_path()).then_some(own),
            ..self.clone()
        }
    }

    /// Returns this town with its own tmux server, after [`Town::with_server`].
    pub(crate) fn with_own_server(&self) -> Cow<'_, Self> {
        match &self.own_server {
            None => Cow::Borrowed(self),
            Some(own) => Cow::Owned(Town {
                server: own.clone(),
                own_server: None,
                ..self.clone()
            }),
        }
    }

    /// Returns whether this town has another tmux server than its own.
    pub(crate) fn is_elsewhere(&self) -> bool {
        self.own_server.is_some()
    }

    pub(crate) fn set_variable(&mut self, name: &str, value: String) {
        self.around.env.insert(name.to_owned(), value);
    }

    pub(crate) fn cached_tree(&self) -> &OnceLock<ProcessTree> {
        &self.tree
    }

    pub(crate) fn deadline(&self) -> Deadline {
        self.around.deadline
    }

    /// Returns the socket as an agent's `GT_TMUX_SOCKET`.
    pub fn socket_text(&self) -> String {
        match self.server.socket() {
            Socket::Default => "default".to_owned(),
            Socket::Name(name) => name.clone(),
            Socket::Path(path) => path.display().to_string(),
        }
    }

    pub fn runtime_dir(&self) -> PathBuf {
        self.root.join(".runtime")
    }

    /// Returns the path of the lock under which an agent is started and stopped. It is named after
    /// the agent and not after its container, whose name a role's settings may change.
    pub fn lock_path(&self, identity: &Identity) -> PathBuf {
        let name = identity.address().replace('/', ".");
        self.runtime_dir()
            .join("locks")
            .join(format!("{name}.lock"))
    }

    /// Returns the path of a small file about an agent: `.runtime/<folder>/<address>.json`.
    pub(crate) fn agent_file_path(&self, identity: &Identity, folder: &str) -> PathBuf {
        let name = identity.address().replace('/', ".");
        self.runtime_dir().join(folder).join(format!("{name}.json"))
    }

    /// Changes the registry under a lock, based on the file's current contents.
    pub fn update_registry<T>(
        &mut self,
        change: impl FnOnce(&mut Registry) -> Result<T>,
    ) -> Result<T> {
        let _lock = FileLock::take(&self.runtime_dir().join("locks/rigs.lock"), TIMEOUT)?;
        let mut registry = read_registry(&self.root)?;
        let result = change(&mut registry)?;
        files::write_whole(&self.root.join(REGISTRY), registry.to_json().as_bytes())?;
        self.registry = registry;
        Ok(result)
    }
}

fn server_at(socket: Socket, root: &Path, around: &Surroundings) -> Server {
    let server = Server::new(socket).without_env(stays_with_the_caller);
    let server = match around.agents_path() {
        Some(path) => server.with_path(path),
        None => server,
    };
    let server = match around.deadline.until {
        Some(moment) => server.with_deadline(moment),
        None => server,
    };
    // With a known version, most commands need no subprocess. If it cannot be read, the first
    // command reports why.
    match version(root, &server) {
        Ok(version) => server.with_version(version),
        Err(_) => server,
    }
}

fn version(root: &Path, server: &Server) -> Result<Version, gt_tmux::Error> {
    match server.program_path() {
        Some(program) => version_cache(&root.join(".runtime/tmux-version"), &program),
        None => server.version(),
    }
}

const REGISTRY: &str = "mayor/rigs.json";

fn read_registry(root: &Path) -> Result<Registry> {
    let path = root.join(REGISTRY);
    let Some(text) = files::read_if_there(&path)? else {
        return Ok(Registry::default());
    };
    Registry::from_json(&text).map_err(|error| {
        let place = format!("{}:{}:{}", path.display(), error.line(), error.column());
        Problem::usage(format!("{place} cannot be read"))
            .caused_by(error)
            .hint("each rig needs at least {\"beads\": {\"prefix\": \"…\"}}")
            .hint("`gt doctor` checks the file again")
    })
}

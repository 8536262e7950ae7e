//! The sandbox of an agent: decides its level, and finds its paths on this machine.
//!
//! [`gt_core::sandbox`] turns the paths into arguments. [`level`] and [`prepare`] run at a start,
//! before tmux is touched; [`plan`] runs in the pane's first process, which starts the program
//! inside (`crate::terminal::broker` serves the `gt` calls from inside). [`bubblewrap`] checks that
//! the sandbox works.

pub mod bubblewrap;
pub mod container;
pub mod leftovers;
mod validation;

pub use validation::validation_plan;

use crate::agents::account;
use crate::base::files;
use crate::base::git::{self, Git};
use crate::catalog::harnesses;
use crate::records::items::Work;
use crate::repo::{rig, workspace};
use crate::{Result, Town};
use gt_core::egress::AllowList;
use gt_core::harness::Preset;
use gt_core::role::{Role, RoleConfig};
use gt_core::sandbox::caches;
use gt_core::sandbox::{self, CacheUse, Mount, SECRET_PATHS, SandboxLevel, SandboxPlan};
use gt_core::{Identity, Problem};
use std::fs;
use std::path::{Path, PathBuf};

/// Folders that are private inside a sandbox. Paths below them that the agent needs are mounted
/// again.
const PRIVATE: &[&str] = &["/tmp", "/var/tmp", "/run", "/dev"];

/// Paths below the private folders that programs need to resolve names.
const RESOLVER: &[&str] = &[
    "/run/systemd/resolve",
    "/run/resolvconf",
    "/run/NetworkManager",
];

/// Folder in the git folder of a worktree with the refs that only its agent sees. It is removed with
/// the worktree.
const OWN_REFS: &str = "gt-refs";

/// Returns the level of an agent that is started in this folder.
pub fn level(
    town: &Town,
    identity: &Identity,
    role: &RoleConfig,
    preset: &Preset,
    work_dir: &Path,
    is_bypassing: bool,
) -> SandboxLevel {
    let default = town.settings().sandbox.default;
    sandbox::level(role.sandbox.level, default, is_bypassing, || {
        let has_folders = !(preset.sandbox.folders.is_empty() && preset.sandbox.files.is_empty());
        has_folders
            && check_fits(town, identity, work_dir).is_ok()
            && can_commit(town, identity, work_dir)
            && bubblewrap::works(town)
    })
}

/// Returns whether the worktree is on a branch that a sandbox opens, or that can be moved there.
fn can_commit(town: &Town, identity: &Identity, work_dir: &Path) -> bool {
    let is_linked = GitFolders::of(work_dir).is_some_and(|git| git.shared.is_some());
    let branch = is_linked.then(|| workspace::current_branch(town, work_dir));
    let branch = branch.flatten();
    branch.is_none_or(|branch| {
        let is_movable = || {
            namespace(identity).as_deref() != Some(branch.as_str())
                || check_movable(town, identity, &branch).is_ok()
        };
        workspace::is_branch_of(identity, &branch) && is_movable()
    })
}

/// Fails if a sandbox cannot separate this agent.
fn check_fits(town: &Town, identity: &Identity, work_dir: &Path) -> Result<()> {
    // A folder that does not exist yet is made for the agent.
    let real = work_dir.canonicalize();
    let real = real.as_deref().unwrap_or(work_dir);
    let is_inside = |path: &Path| path.canonicalize().is_ok_and(|path| path.starts_with(real));
    if is_inside(town.root()) || town.around().home().is_some_and(is_inside) {
        return Err(Problem::usage(format!(
            "{identity} cannot run in a sandbox: its folder {} contains your home folder or the town",
            work_dir.display()
        ))
        .hint("choose another folder; `--sandbox none` starts it without a sandbox"));
    }
    let Some(shared) = GitFolders::of(work_dir).and_then(|git| git.shared) else {
        return Ok(());
    };
    if shared.join("reftable").is_dir() {
        return Err(Problem::usage(format!(
            "{identity} cannot run in a sandbox: its repository keeps all refs in one table"
        ))
        .hint(
            "`git refs migrate --ref-format=files`; `--sandbox none` starts it without a sandbox",
        ));
    }
    if namespace(identity).is_none() {
        return Err(Problem::usage(format!(
            "{identity} cannot run in a sandbox: its branch has no folder of its own"
        ))
        .hint(
            "crew workers, polecats and tasks can; `--sandbox none` starts it without a sandbox",
        ));
    }
    Ok(())
}

/// Prepares the agent's repository for a sandbox: its branch is in a folder of its own.
pub fn prepare(town: &Town, identity: &Identity, work_dir: &Path) -> Result<()> {
    bubblewrap::check(town)?;
    prepare_branches(town, identity, work_dir)
}

/// Puts the agent's branch into a folder of its own.
fn prepare_branches(town: &Town, identity: &Identity, work_dir: &Path) -> Result<()> {
    check_fits(town, identity, work_dir)?;
    let Some(shared) = GitFolders::of(work_dir).and_then(|git| git.shared) else {
        return Ok(());
    };
    let Some(namespace) = namespace(identity) else {
        return Ok(());
    };
    if workspace::current_branch(town, work_dir).as_deref() == Some(namespace.as_str()) {
        check_movable(town, identity, &namespace)?;
        let to = format!("{namespace}/{}", workspace::IN_FOLDER);
        // git renames a branch in the configuration too, which all worktrees share.
        let _lock = workspace::lock_repository(town, identity.rig().unwrap_or_default())?;
        Git::at(work_dir, town.around()).run(["branch", "-m", &namespace, &to])?;
    }
    for refs in ["refs/heads", "logs/refs/heads"] {
        files::make_dir(&shared.join(refs).join(&namespace))?;
    }
    Ok(())
}

/// Fails if a branch of a task must keep its name: a pause, the merge queue or the remote knows it by
/// that.
fn check_movable(town: &Town, identity: &Identity, branch: &str) -> Result<()> {
    let Some(rig) = identity.rig().filter(|_| identity.role() == Role::Task) else {
        return Ok(());
    };
    let repository = rig::repository(town, rig);
    let known = [
        format!("refs/gt/wip/{branch}"),
        format!("refs/remotes/origin/{branch}"),
    ];
    let words = ["for-each-ref", "--format=%(refname)"];
    let words = words.into_iter().chain(known.iter().map(String::as_str));
    let found = Git::at(&repository, town.around()).run(words)?;
    if found.is_empty() && !Work::of(town).is_waiting_to_merge(rig, branch)? {
        return Ok(());
    }
    Err(Problem::conflict(format!(
        "{identity} cannot run in a sandbox now: its branch {branch} would have to be renamed, and it \
         is paused, waits to be merged or is at the remote"
    ))
    .hint("`--sandbox none` starts it without a sandbox"))
}

/// Returns the folder of branches that belongs to an agent of a rig; `None` if it has none.
fn namespace(identity: &Identity) -> Option<String> {
    identity.rig()?;
    Some(match identity.role() {
        Role::Task => identity.short_name().to_owned(),
        role => format!("{role}/{}", identity.short_name()),
    })
}

/// The git folders of a worktree.
struct GitFolders {
    own: PathBuf,
    /// Folder that it shares with other worktrees; `None` for a repository of its own.
    shared: Option<PathBuf>,
}

impl GitFolders {
    fn of(work_dir: &Path) -> Option<Self> {
        // A link to a folder that is gone is not a repository.
        let own = git::own_dir(work_dir)?.canonicalize().ok()?;
        let shared = git::common_dir(&own);
        let shared = (shared != own).then_some(shared);
        Some(GitFolders { own, shared })
    }
}

/// Returns the hosts that an agent reaches from a strict sandbox: those of its program, and those
/// of its role.
pub fn allowed_hosts(role: &RoleConfig, preset: &Preset) -> Result<AllowList> {
    AllowList::parse(preset.sandbox.hosts.iter().chain(&role.sandbox.hosts))
        .map_err(|problem| problem.hint("see `sandbox.hosts` of the role and of the harness"))
}

/// Returns the sandbox of an agent whose program is started by this process, with this
/// environment.
pub fn plan(
    town: &Town,
    identity: &Identity,
    role: &RoleConfig,
    preset: &Preset,
    broker: &Path,
    program: &Path,
) -> Result<SandboxPlan> {
    let around = town.around();
    let work_dir = around.current_dir.as_path();
    let home = around.home().ok_or_else(|| {
        Problem::environment("the sandbox needs the home folder: HOME is not set")
    })?;
    let mut mounts = Mounts::default();
    let needed = [home, &around.gt, program];
    for path in needed.into_iter().chain(RESOLVER.iter().map(Path::new)) {
        if PRIVATE.iter().any(|private| path.starts_with(private)) {
            mounts.read(path)?;
        }
    }
    let env = mount_agents_paths(town, identity, role, preset, home, &mut mounts)?;
    Ok(SandboxPlan {
        has_network: role.sandbox.level != Some(SandboxLevel::Strict),
        mounts: mounts.by_depth(),
        env,
        broker: text(broker)?,
        work_dir: text(work_dir)?,
        new_session: may_type_into_terminal(),
    })
}

/// Hides secrets and the work of others, and opens the paths of the agent. Returns the variables
/// that lead to its caches.
fn mount_agents_paths(
    town: &Town,
    identity: &Identity,
    role: &RoleConfig,
    preset: &Preset,
    home: &Path,
    mounts: &mut Mounts,
) -> Result<Vec<(String, String)>> {
    let around = town.around();
    let work_dir = around.current_dir.as_path();
    for secret in SECRET_PATHS {
        mounts.hide(&home.join(secret))?;
    }
    for path in &role.sandbox.hidden {
        mounts.hide(&expanded(home, path))?;
    }
    hide_other_programs(town, preset, home, mounts)?;
    mounts.hide(town.root())?;
    mounts.hide(&town.server().socket_path())?;
    let git = GitFolders::of(work_dir);
    if let Some(shared) = git.as_ref().and_then(|git| git.shared.as_ref()) {
        hide_other_worktrees(shared, work_dir, mounts)?;
    }
    mounts.read(&town.runtime_dir().join("hooks"))?;
    let config_dir = preset.env.config_dir.as_deref();
    match config_dir.and_then(|name| around.var(name)) {
        Some(folder) => mounts.write(Path::new(folder))?,
        None => write_program_files(town, preset, home, mounts)?,
    }
    for path in &role.sandbox.writable {
        mounts.write(&expanded(home, path))?;
    }
    mounts.write(work_dir)?;
    if let Some(git) = &git {
        mount_git(git, identity, work_dir, mounts)?;
    }
    own_caches(town, identity, role, home, mounts)
}

/// Opens the caches that the sandboxed agents of a rig share, and returns the variables that lead
/// there. Variables that the role sets, and caches that it makes writable, stay.
fn own_caches(
    town: &Town,
    identity: &Identity,
    role: &RoleConfig,
    home: &Path,
    mounts: &mut Mounts,
) -> Result<Vec<(String, String)>> {
    if role.sandbox.caches == CacheUse::ReadOnly {
        return Ok(Vec::new());
    }
    let owner = match identity.rig() {
        Some(rig) => format!("rig-{rig}"),
        None => identity.address().replace('/', "-"),
    };
    let folder = town.runtime_dir().join("caches").join(owner);
    files::make_dir(&folder)?;
    mounts.write(&folder)?;
    let writable = role.sandbox.writable.iter();
    let writable: Vec<PathBuf> = writable.map(|path| expanded(home, path)).collect();
    let is_open = |usual: &str| {
        writable
            .iter()
            .any(|path| path.starts_with(home.join(usual)))
    };
    let folder = text(&folder)?;
    let variables = caches::variables(&folder, is_open);
    let is_unset = |name: &str| !role.env.contains_key(name);
    let variables = variables.filter(|(name, _)| is_unset(name));
    Ok(variables
        .map(|(name, value)| (name.to_owned(), value))
        .collect())
}

/// Returns whether a process can type into its own terminal (TIOCSTI), and so into the broker's.
pub fn may_type_into_terminal() -> bool {
    let setting = fs::read_to_string("/proc/sys/dev/tty/legacy_tiocsti");
    // Kernels before 6.2 have no such setting, and allow it.
    setting.map_or(true, |text| text.trim() != "0")
}

/// Hides the folders of other agent programs and of other accounts: they hold logins.
fn hide_other_programs(
    town: &Town,
    preset: &Preset,
    home: &Path,
    mounts: &mut Mounts,
) -> Result<()> {
    for name in harnesses::names(town) {
        let other = harnesses::resolve(town, &name)?.value;
        let paths = other.sandbox.folders.iter().chain(&other.sandbox.files);
        for path in paths {
            if other.name != preset.name {
                mounts.hide(&home.join(path))?;
            }
        }
    }
    for account in account::list(town)? {
        for folder in account.folders.values() {
            mounts.hide(folder)?;
        }
    }
    Ok(())
}

fn hide_other_worktrees(shared: &Path, work_dir: &Path, mounts: &mut Mounts) -> Result<()> {
    for entry in files::entries(&shared.join("worktrees")) {
        // An entry without this file is not a worktree.
        let Ok(link) = fs::read_to_string(entry.path().join("gitdir")) else {
            continue;
        };
        let folder = Path::new(link.trim_end()).parent();
        if let Some(folder) = folder.filter(|folder| !work_dir.starts_with(folder)) {
            mounts.hide(folder)?;
        }
    }
    Ok(())
}

fn write_program_files(
    town: &Town,
    preset: &Preset,
    home: &Path,
    mounts: &mut Mounts,
) -> Result<()> {
    for folder in &preset.sandbox.folders {
        let folder = match folder.strip_prefix("{town}/") {
            Some(rest) => town.root().join(rest),
            None => home.join(folder),
        };
        if !folder.exists() {
            files::make_dir(&folder)?;
        }
        mounts.write(&folder)?;
    }
    for file in &preset.sandbox.files {
        mounts.write(&home.join(file))?;
    }
    Ok(())
}

/// Opens the agent's own part of the repository. Everything that other worktrees use stays
/// read-only.
fn mount_git(
    git: &GitFolders,
    identity: &Identity,
    work_dir: &Path,
    mounts: &mut Mounts,
) -> Result<()> {
    let Some(shared) = &git.shared else {
        // The folder cannot be renamed while it is a mount.
        mounts.write(&git.own)?;
        files::make_dir(&git.own.join("hooks"))?;
        make_file(&git.own.join("config.worktree"))?;
        for part in ["config", "config.worktree", "hooks"] {
            mounts.read(&git.own.join(part))?;
        }
        return Ok(());
    };
    mounts.read(shared)?;
    mounts.write(&shared.join("objects"))?;
    // The agent could make a folder that is missing.
    files::make_dir(&shared.join("objects/info"))?;
    mounts.read(&shared.join("objects/info"))?;
    mount_refs(git, shared, mounts)?;
    if let Some(namespace) = namespace(identity) {
        for refs in ["refs/heads", "logs/refs/heads"] {
            let folder = Path::new(refs).join(&namespace);
            make_real_dir(&git.own.join(OWN_REFS), &folder)?;
            mounts.write(&shared.join(folder))?;
        }
    }
    mounts.write(&git.own)?;
    make_file(&git.own.join("config.worktree"))?;
    for part in ["commondir", "gitdir", "config.worktree", OWN_REFS] {
        mounts.read(&git.own.join(part))?;
    }
    mounts.read(&work_dir.join(".git"))
}

/// Makes an empty file, which can be mounted read-only.
fn make_file(path: &Path) -> Result<()> {
    match path.exists() {
        true => Ok(()),
        false => files::write_whole(path, b""),
    }
}

/// Gives the agent refs of its own beside those of the repository, which it only reads. So commands
/// such as `git stash`, whose ref all worktrees share, work and reach no other worktree.
fn mount_refs(git: &GitFolders, shared: &Path, mounts: &mut Mounts) -> Result<()> {
    let own = git.own.join(OWN_REFS);
    make_real_dir(&git.own, Path::new(OWN_REFS))?;
    for kind in ["refs", "logs"] {
        files::make_dir(&shared.join(kind))?;
        make_real_dir(&own, Path::new(kind))?;
        mounts.replace(&shared.join(kind), &own.join(kind))?;
    }
    for kind in ["heads", "tags", "remotes", "gt"] {
        files::make_dir(&shared.join("refs").join(kind))?;
    }
    for kind in files::folder_names(&shared.join("refs")) {
        let kind = Path::new("refs").join(kind);
        make_real_dir(&own, &kind)?;
        mounts.read(&shared.join(kind))?;
    }
    Ok(())
}

/// Makes a folder below `base`. The agent can write there, so links on the way are removed.
fn make_real_dir(base: &Path, folder: &Path) -> Result<()> {
    let mut path = base.to_owned();
    for part in folder.components() {
        path.push(part);
        let is_other = fs::symlink_metadata(&path).is_ok_and(|found| !found.is_dir());
        if is_other {
            files::remove_if_there(&path)?;
        }
        files::make_dir(&path)?;
    }
    Ok(())
}

fn expanded(home: &Path, path: &str) -> PathBuf {
    match path.strip_prefix("~/") {
        Some(rest) => home.join(rest),
        None => PathBuf::from(path),
    }
}

fn text(path: &Path) -> Result<String> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| Problem::usage(format!("{} is not UTF-8", path.display())))
}

/// Mounts of paths that exist, with links resolved: a mount over a link would follow it.
#[derive(Default)]
struct Mounts {
    list: Vec<Mount>,
    /// Whether a path that leads over links is mounted as well: an image does not have these links.
    keeps_links: bool,
}

impl Mounts {
    fn hide(&mut self, path: &Path) -> Result<()> {
        self.add(path, |path, is_folder| match is_folder {
            true => Mount::HideFolder(path),
            false => Mount::HideFile(path),
        })
    }

    fn read(&mut self, path: &Path) -> Result<()> {
        self.add(path, |path, _| Mount::Read(path))
    }

    fn write(&mut self, path: &Path) -> Result<()> {
        self.add(path, |path, _| Mount::Write(path))
    }

    fn replace(&mut self, path: &Path, with: &Path) -> Result<()> {
        let with = text(with)?;
        self.add(path, |path, _| Mount::Replace { path, with })
    }

    fn add(&mut self, path: &Path, mount: impl FnOnce(String, bool) -> Mount) -> Result<()> {
        // A path that does not exist needs no mount: nothing can be read there, or written.
        let Ok(real) = path.canonicalize() else {
            return Ok(());
        };
        let is_folder = real.is_dir();
        let made = mount(text(&real)?, is_folder);
        if self.keeps_links && real != path {
            let path = text(path)?;
            match &made {
                Mount::Read(_) => self.list.push(Mount::Read(path)),
                Mount::Write(_) => self.list.push(Mount::Write(path)),
                Mount::Replace { with, .. } => self.list.push(Mount::Replace {
                    path,
                    with: with.clone(),
                }),
                Mount::HideFolder(_) | Mount::HideFile(_) => {}
            }
        }
        self.list.push(made);
        Ok(())
    }

    /// Returns the mounts so that none is covered by one of a folder above it. A folder that the
    /// agent may write to does not uncover a hidden one inside.
    fn by_depth(mut self) -> Vec<Mount> {
        self.list
            .sort_by_key(|mount| Path::new(mount.path()).components().count());
        self.list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_agents_of_a_rig_have_a_folder_of_branches() {
        let of = |identity: Identity| namespace(&identity);
        assert_eq!(
            of(Identity::crew("web", "max")).as_deref(),
            Some("crew/max")
        );
        let registry = gt_core::registry::Registry::default();
        assert_eq!(of(Identity::task("gt-1", &registry)), None);
        assert_eq!(of(Identity::town(Role::Mayor)), None);
    }

    #[test]
    fn links_of_the_agent_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().join("base");
        let outside = folder.path().join("outside");
        fs::create_dir_all(base.join("logs")).unwrap();
        fs::create_dir(&outside).unwrap();
        std::os::unix::fs::symlink(&outside, base.join("logs/refs")).unwrap();
        make_real_dir(&base, Path::new("logs/refs/heads")).unwrap();
        assert!(base.join("logs/refs/heads").is_dir());
        assert!(!outside.join("heads").exists());
    }

    #[test]
    fn hidden_folder_inside_a_writable_one_stays_hidden() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("home/.ssh")).unwrap();
        let mut mounts = Mounts::default();
        mounts.hide(&root.join("home/.ssh")).unwrap();
        mounts.write(&root.join("home")).unwrap();
        let path = |name: &str| root.join(name).to_str().unwrap().to_owned();
        assert_eq!(
            mounts.by_depth(),
            [
                Mount::Write(path("home")),
                Mount::HideFolder(path("home/.ssh"))
            ]
        );
    }

    #[test]
    fn missing_paths_are_not_mounted_and_links_are_resolved() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir(root.join("real")).unwrap();
        fs::write(root.join("file"), "").unwrap();
        std::os::unix::fs::symlink(root.join("real"), root.join("link")).unwrap();
        let mut mounts = Mounts::default();
        mounts.hide(&root.join("missing")).unwrap();
        mounts.hide(&root.join("link")).unwrap();
        mounts.hide(&root.join("file")).unwrap();
        let path = |name: &str| root.join(name).to_str().unwrap().to_owned();
        assert_eq!(
            mounts.list,
            [
                Mount::HideFolder(path("real")),
                Mount::HideFile(path("file"))
            ]
        );
    }
}

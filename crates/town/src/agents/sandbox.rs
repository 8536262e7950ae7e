//! The sandbox of an agent: finds its paths on this machine, and checks that bubblewrap works.
//!
//! [`gt_core::sandbox`] turns the paths into arguments. [`prepare`] runs at a start, before tmux is
//! touched; [`plan`] runs in the pane's first process, which starts the program inside
//! (`crate::terminal::broker` serves the `gt` calls from inside).

use crate::agents::account;
use crate::base::files;
use crate::base::git::{self, Git};
use crate::base::program::{self, RunLimits};
use crate::catalog::harnesses;
use crate::repo::workspace;
use crate::{Result, Town};
use gt_core::egress::AllowList;
use gt_core::harness::Preset;
use gt_core::role::{Role, RoleConfig};
use gt_core::sandbox::{Mount, SECRET_PATHS, SandboxLevel, SandboxPlan};
use gt_core::{Identity, Problem};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const PROGRAM: &str = "bwrap";

/// Folders that are private inside a sandbox. Paths below them that the agent needs are mounted
/// again.
const PRIVATE: &[&str] = &["/tmp", "/var/tmp", "/run", "/dev"];

/// Paths below the private folders that programs need to resolve names.
const RESOLVER: &[&str] = &[
    "/run/systemd/resolve",
    "/run/resolvconf",
    "/run/NetworkManager",
];

/// Branch of an agent whose own branch is renamed, because a sandbox can only open a folder of
/// branches.
const BRANCH: &str = "main";

/// Returns the path of bubblewrap. Fails if it is missing, or if the system does not allow it to
/// create namespaces.
pub fn check_available(town: &Town) -> Result<PathBuf> {
    let around = town.around();
    let bwrap = around.find_program(PROGRAM).ok_or_else(|| {
        Problem::environment("the sandbox needs bubblewrap, and there is no program bwrap")
            .hint("install it: `apt install bubblewrap`, `dnf install bubblewrap`, `pacman -S bubblewrap`")
            .hint("`--sandbox none` starts the agent without a sandbox")
    })?;
    let mut command = Command::new(&bwrap);
    command
        .args([
            "--ro-bind",
            "/",
            "/",
            "--proc",
            "/proc",
            "--dev",
            "/dev",
            "--unshare-pid",
        ])
        .args(["--", "/bin/sh", "-c", ":"])
        .stdin(Stdio::null());
    let limits = RunLimits {
        time: Some(Duration::from_secs(10)),
        cancel: Some(&around.cancel),
        grace: None,
    };
    let output = program::output(command, &limits)
        .map_err(|error| Problem::environment("cannot run bwrap").caused_by(error))?
        .map_err(|reason| Problem::environment(format!("bwrap was stopped: {reason}")))?;
    if output.status.success() {
        return Ok(bwrap);
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(namespace_hints(
        Problem::environment("bubblewrap cannot create a sandbox on this system").cause(said),
    ))
}

/// Adds the settings of the kernel that forbid namespaces.
fn namespace_hints(problem: Problem) -> Problem {
    let is = |file: &str, value: &str| {
        fs::read_to_string(Path::new("/proc/sys").join(file)).is_ok_and(|text| text.trim() == value)
    };
    let rows = [
        (
            "kernel/apparmor_restrict_unprivileged_userns",
            "1",
            "AppArmor forbids user namespaces (Ubuntu 24.04): add a profile for bwrap, or set \
             kernel.apparmor_restrict_unprivileged_userns=0",
        ),
        (
            "kernel/unprivileged_userns_clone",
            "0",
            "the kernel forbids user namespaces: set kernel.unprivileged_userns_clone=1",
        ),
        (
            "user/max_user_namespaces",
            "0",
            "the kernel forbids user namespaces: set user.max_user_namespaces",
        ),
    ];
    let rows = rows.into_iter().filter(|(file, value, _)| is(file, value));
    rows.fold(problem, |problem, (_, _, hint)| problem.hint(hint))
        .hint("`--sandbox none` starts the agent without a sandbox")
}

/// Prepares the agent's repository for a sandbox: its branch is in a folder of its own.
pub fn prepare(town: &Town, identity: &Identity, work_dir: &Path) -> Result<()> {
    check_available(town)?;
    let Some(git) = GitFolders::of(work_dir) else {
        return Ok(());
    };
    let Some(shared) = &git.shared else {
        return Ok(());
    };
    let Some(namespace) = namespace(identity) else {
        return Err(Problem::usage(format!(
            "{identity} cannot run in a sandbox: its branch has no folder of its own"
        ))
        .hint("crew workers and polecats can; `--sandbox none` starts it without a sandbox"));
    };
    if workspace::current_branch(town, work_dir).as_deref() == Some(namespace.as_str()) {
        let to = format!("{namespace}/{BRANCH}");
        Git::at(work_dir, town.around()).run(["branch", "-m", &namespace, &to])?;
    }
    for refs in ["refs/heads", "logs/refs/heads"] {
        files::make_dir(&shared.join(refs).join(&namespace))?;
    }
    Ok(())
}

/// Returns the folder of branches that belongs to an agent of a rig; `None` if it has none.
fn namespace(identity: &Identity) -> Option<String> {
    let is_foldered = identity.rig().is_some() && identity.role() != Role::Task;
    is_foldered.then(|| format!("{}/{}", identity.role(), identity.short_name()))
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
    for secret in SECRET_PATHS {
        mounts.hide(&home.join(secret))?;
    }
    for path in &role.sandbox.hidden {
        mounts.hide(&expanded(home, path))?;
    }
    hide_other_programs(town, preset, home, &mut mounts)?;
    mounts.hide(town.root())?;
    mounts.hide(&town.server().socket_path())?;
    let git = GitFolders::of(work_dir);
    if let Some(shared) = git.as_ref().and_then(|git| git.shared.as_ref()) {
        hide_other_worktrees(shared, work_dir, &mut mounts)?;
    }
    mounts.read(&town.runtime_dir().join("hooks"))?;
    let config_dir = preset.env.config_dir.as_deref();
    match config_dir.and_then(|name| around.var(name)) {
        Some(folder) => mounts.write(Path::new(folder))?,
        None => write_program_files(town, preset, home, &mut mounts)?,
    }
    for path in &role.sandbox.writable {
        mounts.write(&expanded(home, path))?;
    }
    mounts.write(work_dir)?;
    if let Some(git) = &git {
        mount_git(git, identity, work_dir, &mut mounts)?;
    }
    Ok(SandboxPlan {
        has_network: role.sandbox.level != SandboxLevel::Strict,
        mounts: mounts.list,
        broker: text(broker)?,
        work_dir: text(work_dir)?,
        new_session: may_type_into_terminal(),
    })
}

/// Returns whether a process can type into its own terminal (TIOCSTI), and so into the broker's.
fn may_type_into_terminal() -> bool {
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
        files::make_dir(&git.own.join("hooks"))?;
        for part in ["config", "config.worktree", "hooks"] {
            mounts.read(&git.own.join(part))?;
        }
        return Ok(());
    };
    mounts.read(shared)?;
    mounts.write(&shared.join("objects"))?;
    mounts.read(&shared.join("objects/info"))?;
    if let Some(namespace) = namespace(identity) {
        for refs in ["refs/heads", "logs/refs/heads"] {
            mounts.write(&shared.join(refs).join(&namespace))?;
        }
    }
    mounts.write(&git.own)?;
    for part in ["commondir", "gitdir", "config.worktree"] {
        mounts.read(&git.own.join(part))?;
    }
    mounts.read(&work_dir.join(".git"))
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

    fn add(&mut self, path: &Path, mount: impl FnOnce(String, bool) -> Mount) -> Result<()> {
        // A path that does not exist needs no mount: nothing can be read there, or written.
        let Ok(real) = path.canonicalize() else {
            return Ok(());
        };
        let is_folder = real.is_dir();
        self.list.push(mount(text(&real)?, is_folder));
        Ok(())
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
        assert_eq!(of(Identity::town(Role::Mayor)), None);
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

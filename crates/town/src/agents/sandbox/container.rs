//! The sandbox level `container`: finds the engine and the image, and plans the agent's container.
//!
//! [`prepare`] runs at a start, before tmux is touched; [`plan`] in the pane's first process.
//! [`gt_core::sandbox::container`] makes the arguments of the engine.

use super::{GitFolders, Mounts, expanded, mount_agents_paths, prepare_branches, text};
use crate::base::files;
use crate::base::program::{self, RunLimits};
use crate::{Result, Town};
use gt_core::harness::Preset;
use gt_core::role::{RoleConfig, SandboxConfig};
use gt_core::sandbox::container::{
    ContainerEngine, ContainerPlan, ContainerUser, ResourceLimit, check_mountable,
};
use gt_core::{Identity, Problem};
use rustix::process::{Resource, getgid, getrlimit, getuid};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// Maximum time of a call of the engine that runs no agent. The first container of an image can
/// take long.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Git's settings of the user, which name the author of commits.
const GIT_SETTINGS: &[&str] = &[
    ".gitconfig",
    ".config/git/config",
    ".config/git/ignore",
    ".config/git/attributes",
];

/// Maximum number of successful checks that are remembered.
const MAX_CHECKS: usize = 50;

/// An engine on this machine.
#[derive(Clone, Debug)]
pub struct InstalledEngine {
    pub kind: ContainerEngine,
    pub program: PathBuf,
}

impl InstalledEngine {
    /// Returns the engine of the settings, or the first one that is installed.
    pub fn find(town: &Town, settings: &SandboxConfig) -> Result<Self> {
        let wanted = settings.engine;
        let kinds = ContainerEngine::ALL.into_iter();
        let mut kinds = kinds.filter(|kind| wanted.is_none_or(|wanted| wanted == *kind));
        let found = kinds.find_map(|kind| {
            let program = town.around().find_program(kind.as_str())?;
            Some(InstalledEngine { kind, program })
        });
        found.ok_or_else(|| {
            let message = match wanted {
                Some(kind) => format!(
                    "the sandbox needs {kind}, and there is no program {kind}",
                    kind = kind.as_str()
                ),
                None => "the sandbox needs podman or docker, and neither is installed".to_owned(),
            };
            let package = wanted.unwrap_or(ContainerEngine::Podman);
            let package = match package {
                ContainerEngine::Podman => "podman",
                ContainerEngine::Docker => "docker.io",
            };
            without_sandbox(Problem::environment(message).hint(format!(
                "install it, for example with `apt install {package}`"
            )))
        })
    }

    fn output(&self, town: &Town, args: &[String]) -> Result<Output> {
        let name = self.kind.as_str();
        let mut command = Command::new(&self.program);
        command.args(args).stdin(Stdio::null());
        // The current folder need not exist for the engine's own processes.
        command.current_dir("/");
        let limits = RunLimits {
            time: Some(TIMEOUT),
            cancel: Some(&town.around().cancel),
            grace: Some(Duration::from_secs(1)),
        };
        program::output(command, &limits)
            .map_err(|error| Problem::environment(format!("cannot run {name}")).caused_by(error))?
            .map_err(|reason| Problem::environment(format!("{name} was stopped: {reason}")))
    }

    /// Returns the id of an image on this machine.
    fn image_id(&self, town: &Town, image: &str) -> Result<String> {
        let name = self.kind.as_str();
        let args = ["image", "inspect", "--format", "{{.Id}}", image].map(str::to_owned);
        let output = self.output(town, &args)?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        let is_missing = ["not known", "no such image"]
            .iter()
            .any(|words| said.to_lowercase().contains(words));
        let problem = match is_missing {
            true => Problem::environment(format!("there is no image {image} on this machine"))
                .hint(format!("`{name} pull {image}` or `{name} build` gets it")),
            false => Problem::environment(format!("{name} does not work on this machine")),
        };
        Err(without_sandbox(problem.cause(said)))
    }

    /// Returns the user of the processes in a container.
    fn user(&self, town: &Town) -> Result<ContainerUser> {
        let (uid, gid) = (getuid().as_raw(), getgid().as_raw());
        match self.kind {
            ContainerEngine::Podman if uid != 0 => Ok(ContainerUser::Kept { uid, gid }),
            ContainerEngine::Podman => Ok(ContainerUser::Same { uid, gid }),
            ContainerEngine::Docker => {
                let args = ["info", "--format", "{{.SecurityOptions}}"].map(str::to_owned);
                let output = self.output(town, &args)?;
                let is_rootless = String::from_utf8_lossy(&output.stdout).contains("rootless");
                Ok(match is_rootless {
                    true => ContainerUser::Root,
                    false => ContainerUser::Same { uid, gid },
                })
            }
        }
    }

    /// Removes a container, if it is still there.
    pub(super) fn remove(&self, town: &Town, name: &str) -> Result<()> {
        let words: &[&str] = match self.kind {
            ContainerEngine::Podman => &["rm", "--force", "--time", "0", name],
            ContainerEngine::Docker => &["rm", "--force", name],
        };
        let args: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let mut said = String::new();
        // Podman fails once for a container whose processes were killed without it.
        for _ in 0..2 {
            let output = self.output(town, &args)?;
            said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            if output.status.success() || said.to_lowercase().contains("no such container") {
                return Ok(());
            }
        }
        Err(Problem::failed(format!("the container {name} could not be removed")).cause(said))
    }
}

fn without_sandbox(problem: Problem) -> Problem {
    problem.hint("`--sandbox none` starts the agent without a sandbox")
}

/// Returns the image of the settings.
fn image(settings: &SandboxConfig) -> Result<&str> {
    match settings.image.as_deref() {
        None | Some("") => Err(Problem::usage("the sandbox `container` needs an image").hint(
            "`gt config set --role ROLE sandbox.image IMAGE` names one that has the agent program",
        )),
        Some(image) if image.starts_with('-') || image.contains(char::is_whitespace) => Err(
            Problem::usage(format!("{image:?} is not the name of an image"))
                .hint("see `sandbox.image` of the role"),
        ),
        Some(image) => Ok(image),
    }
}

/// Checks that `gt` can run in the agent's image, and prepares its repository.
pub fn prepare(
    town: &Town,
    identity: &Identity,
    role: &RoleConfig,
    preset: &Preset,
    work_dir: &Path,
) -> Result<()> {
    super::allowed_hosts(role, preset)?;
    let settings = &role.sandbox;
    let image = image(settings)?;
    let engine = InstalledEngine::find(town, settings)?;
    let id = engine.image_id(town, image)?;
    check_runs_gt(town, settings, &engine, image, &id)?;
    prepare_branches(town, identity, work_dir)
}

/// Starts a container of the image in which `gt` prints its version. A success is remembered until
/// the image, `gt` or the settings change, because it takes as long as a start.
fn check_runs_gt(
    town: &Town,
    settings: &SandboxConfig,
    engine: &InstalledEngine,
    image: &str,
    id: &str,
) -> Result<()> {
    let file = town.runtime_dir().join("sandbox-checks");
    let line = check_key(town, settings, engine, id);
    let known = files::read_if_there(&file)?.unwrap_or_default();
    if known.lines().any(|known| known == line) {
        return Ok(());
    }
    let plan = ContainerPlan {
        image: image.to_owned(),
        user: engine.user(town)?,
        ..empty_plan(town, settings, engine)?
    };
    let args = plan.check(&["--version"]).map_err(unmountable)?;
    let output = engine.output(town, &args)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        let hinted = failure_hints(
            Problem::environment(format!("gt does not run in a container of {image}")),
            &said,
        );
        return Err(without_sandbox(hinted.cause(said)));
    }
    let kept = known.lines().rev().take(MAX_CHECKS - 1);
    let mut lines: Vec<&str> = kept.collect();
    lines.reverse();
    lines.push(&line);
    files::write_whole(&file, (lines.join("\n") + "\n").as_bytes())
}

/// Returns one line that changes with everything that decides whether `gt` runs in an image.
fn check_key(town: &Town, settings: &SandboxConfig, engine: &InstalledEngine, id: &str) -> String {
    let gt = &town.around().gt;
    // A binary that cannot be read fails in the container.
    let changed = fs::metadata(gt).map_or((0, 0, 0), |meta| {
        (meta.size(), meta.mtime(), meta.mtime_nsec())
    });
    let facts = (
        &engine.program,
        id,
        gt,
        changed,
        &settings.arguments,
        settings.network,
    );
    format!("{facts:?}")
}

fn failure_hints(problem: Problem, said: &str) -> Problem {
    let has = |words: &[&str]| words.iter().any(|word| said.contains(word));
    if has(&["GLIBC_", "no such file or directory", "shared libraries"]) {
        problem.hint(
            "the image needs glibc, as new as that with which this gt was built, and libgcc; images \
             with musl, such as Alpine, have none",
        )
    } else if has(&["rlimit"]) {
        problem.hint(
            "set lower limits: `sandbox.arguments = [\"--ulimit\", \"nofile=1024:1024\", \
             \"--ulimit\", \"nproc=1024:1024\"]`",
        )
    } else if has(&["OCI runtime", "crun", "cgroup"]) {
        problem.hint("another runtime may work: `sandbox.arguments = [\"--runtime=runc\"]`")
    } else {
        problem
    }
}

fn unmountable(error: gt_core::sandbox::container::UnmountablePath) -> Problem {
    Problem::usage(error.to_string()).hint("`--sandbox workspace` has no such limit")
}

fn limit(resource: Resource) -> ResourceLimit {
    let limit = getrlimit(resource);
    (limit.current, limit.maximum)
}

/// Returns a plan without an image, a name, a user and mounts.
fn empty_plan(
    town: &Town,
    settings: &SandboxConfig,
    engine: &InstalledEngine,
) -> Result<ContainerPlan> {
    let gt = text(&town.around().gt)?;
    check_mountable(&gt).map_err(unmountable)?;
    Ok(ContainerPlan {
        engine: engine.kind,
        image: String::new(),
        name: String::new(),
        labels: Vec::new(),
        user: ContainerUser::Root,
        network: settings.network,
        mounts: Vec::new(),
        env: Vec::new(),
        broker: String::new(),
        gt,
        work_dir: String::new(),
        files: limit(Resource::Nofile),
        processes: limit(Resource::Nproc),
        arguments: settings.arguments.clone(),
    })
}

/// Returns the name of the container of an agent whose broker is this process.
pub fn name(identity: &Identity) -> String {
    let address = identity.address();
    let valid = address.chars().map(|c| match c.is_ascii_alphanumeric() {
        true => c,
        false => '-',
    });
    let valid: String = valid.collect();
    format!("gt-{valid}-{}", std::process::id())
}

/// Returns the container of an agent whose program is started by this process, with this
/// environment.
pub fn plan(
    town: &Town,
    identity: &Identity,
    role: &RoleConfig,
    preset: &Preset,
    broker: &Path,
    engine: &InstalledEngine,
) -> Result<ContainerPlan> {
    let around = town.around();
    let home = around.home().ok_or_else(|| {
        Problem::environment("the sandbox needs the home folder: HOME is not set")
    })?;
    let mut mounts = Mounts::default();
    // Has an effect only if it is in a folder that is private in the container, such as /tmp.
    mounts.hide(home)?;
    // Only at their real paths, at which hidden files below them are hidden.
    for path in &role.sandbox.readable {
        mounts.read(&expanded(home, path))?;
    }
    mounts.keeps_links = true;
    for path in GIT_SETTINGS {
        mounts.read(&home.join(path))?;
    }
    let env = mount_agents_paths(town, identity, role, preset, home, &mut mounts)?;
    read_borrowed_objects(&around.current_dir, &mut mounts)?;
    // Hooks of the agent program name this path.
    mounts.read(&around.gt)?;
    Ok(ContainerPlan {
        image: image(&role.sandbox)?.to_owned(),
        name: name(identity),
        labels: vec![
            ("gt.town", town.root_text().to_owned()),
            ("gt.agent", identity.address()),
        ],
        user: engine.user(town)?,
        mounts: mounts.by_depth(),
        env,
        broker: text(broker)?,
        work_dir: text(&around.current_dir)?,
        ..empty_plan(town, &role.sandbox, engine)?
    })
}

/// Opens the folders from which the agent's repository borrows objects.
fn read_borrowed_objects(work_dir: &Path, mounts: &mut Mounts) -> Result<()> {
    let Some(git) = GitFolders::of(work_dir) else {
        return Ok(());
    };
    let objects = git.shared.unwrap_or(git.own).join("objects");
    let list = files::read_if_there(&objects.join("info/alternates"))?;
    for line in list.iter().flat_map(|text| text.lines()) {
        let folder = objects.join(line);
        // The list cannot open folders of another kind.
        if folder.ends_with("objects") {
            mounts.read(&folder)?;
        }
    }
    Ok(())
}

/// Returns the program as it is called in the container. Programs come from the image: one of this
/// machine would need its libraries, and often an installation of several thousand files. `gt` and
/// the programs that are mounted keep their path.
pub fn program_inside(town: &Town, program: &Path, plan: &ContainerPlan) -> PathBuf {
    let is_mounted = |mount: &gt_core::sandbox::Mount| {
        use gt_core::sandbox::Mount::{Read, Replace, Write};
        matches!(
            mount,
            Read(path) | Write(path) | Replace { path, .. } if program.starts_with(path)
        )
    };
    if program == town.around().gt || plan.mounts.iter().any(is_mounted) {
        return program.to_owned();
    }
    match program.file_name() {
        Some(name) if program.is_absolute() => PathBuf::from(name),
        _ => program.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_must_be_named_and_cannot_be_an_option() {
        let of = |image: Option<&str>| SandboxConfig {
            image: image.map(str::to_owned),
            ..SandboxConfig::default()
        };
        assert_eq!(image(&of(Some("localhost/a:1"))).unwrap(), "localhost/a:1");
        for wrong in [None, Some(""), Some("--privileged"), Some("a b")] {
            assert!(image(&of(wrong)).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn failure_names_the_setting_that_helps() {
        let hints = |said: &str| failure_hints(Problem::failed("x"), said).hints().join(" ");
        let old = "gt: /lib/libc.so.6: version `GLIBC_2.39' not found (required by gt)";
        assert!(hints(old).contains("glibc"), "{old}");
        let musl = "runc: exec: \"/run/gt-bin/gt\": stat: no such file or directory";
        assert!(hints(musl).contains("musl"), "{musl}");
        let limit = "error setting rlimit type 7: operation not permitted: OCI runtime error";
        assert!(hints(limit).contains("nofile"), "{limit}");
        assert!(hints("crun: cgroup v2 is needed").contains("runc"));
    }
}

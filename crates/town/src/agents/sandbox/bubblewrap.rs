//! The program that makes sandboxes ([`SandboxTool`]), and whether this system lets it: bubblewrap
//! needs to create namespaces.
//!
//! A probe runs it once. The result is kept in the town with the facts on which it depends: the
//! boot, the program's file, the namespaces of the caller, and the settings of the kernel. A start
//! reads it instead of running a process. A kept failure is used for a short time, and only where
//! the sandbox is not demanded, because AppArmor's profiles are not among these facts.

use crate::base::files;
use crate::base::or_log::OrLog;
use crate::base::processes;
use crate::base::program::{self, RunLimits};
use crate::{Result, Town};
use gt_core::Problem;
use gt_core::sandbox::SandboxTool;
use serde::{Deserialize, Serialize};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Seconds for which a failure is kept.
const FAILURE_SECONDS: i64 = 600;

/// Settings of the kernel that can forbid namespaces: the file, the value, and what to do.
const SETTINGS: &[(&str, &str, &str)] = &[
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

/// The result of the last probe.
#[derive(Debug, Serialize, Deserialize)]
struct KeptProbe {
    facts: String,
    works: bool,
    /// Seconds since the epoch.
    at: i64,
}

/// Returns the path of bubblewrap. Fails if it is missing, or if the system does not allow it to
/// create namespaces.
pub fn check(town: &Town) -> Result<PathBuf> {
    let bwrap = locate(town)?;
    match kept(town, &bwrap) {
        Some(KeptProbe { works: true, .. }) => Ok(bwrap),
        _ => probe_and_keep(town, bwrap),
    }
}

/// Returns the path of bubblewrap after a new probe.
pub fn check_again(town: &Town) -> Result<PathBuf> {
    probe_and_keep(town, locate(town)?)
}

/// Returns whether bubblewrap works, for an agent that can be started without it.
pub fn works(town: &Town) -> bool {
    let Ok(bwrap) = locate(town) else {
        return false;
    };
    match kept(town, &bwrap) {
        Some(kept) if kept.works => true,
        Some(kept) if (0..FAILURE_SECONDS).contains(&(town.clock().seconds() - kept.at)) => false,
        _ => probe_and_keep(town, bwrap)
            .or_debug("bubblewrap does not work")
            .is_some(),
    }
}

/// Drops the kept result, after a sandbox that did not come up.
pub fn forget(town: &Town) {
    files::remove_if_there(&path(town)).or_debug("the result of a probe stays");
}

/// Returns the path of bubblewrap. Fails if it is missing.
pub fn locate(town: &Town) -> Result<PathBuf> {
    let tool = SandboxTool::HERE;
    let none = "`--sandbox none` starts the agent without a sandbox";
    town.around().find_program(tool.program()).ok_or_else(|| match tool {
        SandboxTool::Bubblewrap => {
            Problem::environment("the sandbox needs bubblewrap, and there is no program bwrap")
                .hint("install it: `apt install bubblewrap`, `dnf install bubblewrap`, `pacman -S bubblewrap`")
                .hint(none)
        }
        SandboxTool::Seatbelt => {
            Problem::environment("the sandbox needs the program sandbox-exec of macOS").hint(none)
        }
    })
}

fn path(town: &Town) -> PathBuf {
    town.runtime_dir().join("bubblewrap.json")
}

/// Returns the kept result, if the facts are the same.
fn kept(town: &Town, bwrap: &Path) -> Option<KeptProbe> {
    let text = files::read_if_there(&path(town)).or_debug("no probe is kept")??;
    let kept: KeptProbe = serde_json::from_str(&text).or_debug("the probe is damaged")?;
    (kept.facts == facts(bwrap)).then_some(kept)
}

/// Returns the facts on which the result depends.
fn facts(bwrap: &Path) -> String {
    let setting = |file: &str| {
        let text = fs::read_to_string(Path::new("/proc/sys").join(file));
        text.map_or_else(|_| "-".to_owned(), |text| text.trim().to_owned())
    };
    // A container may share the town's folder and the boot with the machine.
    let namespace = |name: &str| {
        let link = fs::read_link(Path::new("/proc/self/ns").join(name));
        link.map_or_else(|_| "-".to_owned(), |link| link.display().to_string())
    };
    let file = fs::metadata(bwrap).map_or_else(
        |_| "-".to_owned(),
        |file| {
            let (inode, size) = (file.ino(), file.size());
            let changed = (file.ctime(), file.ctime_nsec());
            format!("{}:{inode} {size} {}.{}", file.dev(), changed.0, changed.1)
        },
    );
    let parts = [
        processes::boot_id().unwrap_or_default(),
        bwrap.display().to_string(),
        file,
        namespace("user"),
        namespace("mnt"),
        rustix::process::geteuid().as_raw().to_string(),
    ];
    let settings = SETTINGS.iter().map(|(file, ..)| setting(file));
    parts
        .into_iter()
        .chain(settings)
        .collect::<Vec<_>>()
        .join("\n")
}

fn probe_and_keep(town: &Town, bwrap: PathBuf) -> Result<PathBuf> {
    let result = probe(town, &bwrap);
    if town.around().cancel.check().is_ok() {
        let kept = KeptProbe {
            facts: facts(&bwrap),
            works: result.is_ok(),
            at: town.clock().seconds(),
        };
        // Cannot fail: all fields are plain values.
        let text = serde_json::to_string(&kept).unwrap_or_default();
        files::write_passing(&path(town), text.as_bytes()).or_debug("the probe is not kept");
    }
    result.map(|()| bwrap)
}

/// Runs a program in a sandbox.
fn probe(town: &Town, bwrap: &Path) -> Result<()> {
    let around = town.around();
    let mut command = Command::new(bwrap);
    command.args(SandboxTool::HERE.probe()).stdin(Stdio::null());
    let limits = RunLimits {
        time: Some(Duration::from_secs(10)),
        cancel: Some(&around.cancel),
        grace: None,
    };
    let output = program::output(command, &limits)
        .map_err(|error| Problem::environment("cannot run bwrap").caused_by(error))?
        .map_err(|reason| Problem::environment(format!("bwrap was stopped: {reason}")))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(namespace_hints(
        Problem::environment("bubblewrap cannot create a sandbox on this system").cause(said),
    ))
}

/// Adds the settings of the kernel that forbid namespaces.
fn namespace_hints(problem: Problem) -> Problem {
    let is = |file: &str, value: &str| {
        // A kernel without the setting does not forbid namespaces by it.
        fs::read_to_string(Path::new("/proc/sys").join(file)).is_ok_and(|text| text.trim() == value)
    };
    let rows = SETTINGS.iter().filter(|(file, value, _)| is(file, value));
    rows.fold(problem, |problem, (_, _, hint)| problem.hint(*hint))
        .hint("`--sandbox none` starts the agent without a sandbox")
}

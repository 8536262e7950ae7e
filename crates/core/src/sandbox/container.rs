//! The sandbox level `container`: the arguments of podman and docker for one agent.
//!
//! The file system is that of an image, read-only, with the agent's own paths of this machine over
//! it. Neither the program nor its environment are in the arguments: [`FIRST_PROCESS`] gets them
//! from the broker, because the engine stores the settings of its containers on disk.

use super::{BROKER_FOLDER, Mount};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// Path of `gt` in the container. It is the first process there.
pub const FIRST_PROCESS: &str = "/run/gt-bin/gt";
/// Socket in [`BROKER_FOLDER`] from which the first process gets its program.
pub const HANDOVER_SOCKET: &str = "start.sock";
/// Folder in the broker's folder that hides a folder.
pub const EMPTY_FOLDER: &str = "empty";
/// File in the broker's folder that hides a file.
pub const EMPTY_FILE: &str = "empty-file";
/// Folders in memory that the agent may write to. The folders on the way to a mount below them would
/// be writable too.
const IN_MEMORY: &[&str] = &["/tmp", "/var/tmp", "/run", "/dev/shm"];
/// Maximum number of processes of the agent's user in the container. Podman lowers its own limit to
/// this number on some systems, and cannot raise it again.
const MAX_PROCESSES: u64 = 32_768;

/// Program that runs containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ContainerEngine {
    Podman,
    Docker,
}

impl ContainerEngine {
    /// In the order in which they are tried.
    pub const ALL: [ContainerEngine; 2] = [ContainerEngine::Podman, ContainerEngine::Docker];

    pub fn as_str(self) -> &'static str {
        match self {
            ContainerEngine::Podman => "podman",
            ContainerEngine::Docker => "docker",
        }
    }
}

/// Network of an agent in a container.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ContainerNetwork {
    /// Only a loopback interface.
    None,
    /// The listed hosts, as in a strict sandbox.
    #[default]
    Proxy,
    /// The default network of the engine.
    Engine,
}

/// User of the processes in a container: always the caller outside, so that the owners of files
/// stay right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContainerUser {
    /// Ids of the caller, inside and outside. The engine runs as root.
    Same { uid: u32, gid: u32 },
    /// Ids of the caller, inside and outside, in a user namespace of podman.
    Kept { uid: u32, gid: u32 },
    /// Root inside, which is the caller outside. The engine is a docker without root rights.
    Root,
}

/// A limit of a resource: soft and hard. `None` is unlimited.
pub type ResourceLimit = (Option<u64>, Option<u64>);

/// The container of one agent.
#[derive(Clone, Debug)]
pub struct ContainerPlan {
    pub engine: ContainerEngine,
    pub image: String,
    pub name: String,
    pub labels: Vec<(&'static str, String)>,
    pub user: ContainerUser,
    pub network: ContainerNetwork,
    /// In this order; a later mount covers an earlier one.
    pub mounts: Vec<Mount>,
    /// Variables that are set inside.
    pub env: Vec<(String, String)>,
    /// The folder on this machine that holds the broker's sockets, [`EMPTY_FOLDER`] and
    /// [`EMPTY_FILE`].
    pub broker: String,
    /// Path of `gt` on this machine.
    pub gt: String,
    pub work_dir: String,
    /// Limits of this process, which the engine need not raise.
    pub files: ResourceLimit,
    pub processes: ResourceLimit,
    /// Further arguments of the engine.
    pub arguments: Vec<String>,
}

/// A path that cannot be the path of a mount.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} cannot be mounted in a container: it contains a comma, a colon, a quote or a line break"
)]
pub struct UnmountablePath(pub String);

impl ContainerPlan {
    /// Returns the arguments that run the first process of the agent with the terminal of the
    /// engine's client.
    pub fn run(&self, first_words: &[&str]) -> Result<Vec<String>, UnmountablePath> {
        let mut words = self.options(&["--interactive", "--tty"]);
        words.extend(["--name", &self.name].map(str::to_owned));
        for (name, value) in &self.labels {
            words.extend(["--label".to_owned(), format!("{name}={value}")]);
        }
        // No key sequence detaches the terminal. An empty one is the default for docker.
        words.push(match self.engine {
            ContainerEngine::Podman => "--detach-keys=".to_owned(),
            ContainerEngine::Docker => "--detach-keys=ctrl-^,ctrl-@,ctrl-^,ctrl-@".to_owned(),
        });
        words.push("--sig-proxy=false".to_owned());
        words.extend(["--workdir", &self.work_dir].map(str::to_owned));
        let mounts = visible(&self.mounts);
        // The engine would fill a folder in memory with files that are shown there.
        let is_shown = |path: &str| {
            let above = |mount: &Mount| match mount {
                Mount::Read(other) | Mount::Write(other) | Mount::Replace { path: other, .. } => {
                    Path::new(path).starts_with(other)
                }
                Mount::HideFolder(_) | Mount::HideFile(_) => false,
            };
            mounts.iter().any(above)
        };
        for mount in &mounts {
            let empty = |name: &str| format!("{}/{name}", self.broker);
            words.extend(match mount {
                Mount::HideFolder(path) if !is_shown(path) => {
                    check_mountable(path)?;
                    let options = format!("{path}:ro,nosuid,nodev,mode=755");
                    ["--tmpfs".to_owned(), options]
                }
                Mount::HideFolder(path) => bind(&empty(EMPTY_FOLDER), path, false)?,
                Mount::HideFile(path) => bind(&empty(EMPTY_FILE), path, false)?,
                Mount::Read(path) => bind(path, path, false)?,
                Mount::Write(path) => bind(path, path, true)?,
                Mount::Replace { path, with } => bind(with, path, true)?,
            });
        }
        words.extend(bind(&self.broker, BROKER_FOLDER, false)?);
        Ok(self.end(words, first_words))
    }

    /// Returns the arguments that check whether `gt` runs in a container of the image.
    pub fn check(&self, first_words: &[&str]) -> Result<Vec<String>, UnmountablePath> {
        Ok(self.end(self.options(&[]), first_words))
    }

    fn options(&self, terminal: &[&str]) -> Vec<String> {
        let mut words: Vec<String> = vec!["run".to_owned(), "--rm".to_owned()];
        let mut add = |parts: &[&str]| words.extend(parts.iter().map(|part| (*part).to_owned()));
        add(terminal);
        add(&["--pull", "never", "--read-only", "--log-driver", "none"]);
        add(&["--cap-drop", "all", "--security-opt", "no-new-privileges"]);
        // Without it, SELinux denies access to the mounts unless their files are relabelled.
        add(&["--security-opt", "label=disable"]);
        for folder in ["/tmp", "/var/tmp"] {
            add(&[
                "--tmpfs",
                &format!("{folder}:rw,exec,nosuid,nodev,mode=1777"),
            ]);
        }
        add(&["--tmpfs", "/run:rw,noexec,nosuid,nodev,mode=755"]);
        match self.user {
            ContainerUser::Same { uid, gid } => add(&["--user", &format!("{uid}:{gid}")]),
            ContainerUser::Kept { uid, gid } => {
                add(&["--userns", "keep-id", "--user", &format!("{uid}:{gid}")]);
            }
            ContainerUser::Root => add(&["--user", "0:0"]),
        }
        match self.network {
            ContainerNetwork::None | ContainerNetwork::Proxy => add(&["--network", "none"]),
            ContainerNetwork::Engine => {}
        }
        if !self
            .arguments
            .iter()
            .any(|word| word.starts_with("--ulimit"))
        {
            add(&["--ulimit", &limit("nofile", self.files, u64::MAX)]);
            add(&["--ulimit", &limit("nproc", self.processes, MAX_PROCESSES)]);
        }
        words
    }

    fn end(&self, mut words: Vec<String>, first_words: &[&str]) -> Vec<String> {
        words.extend([
            "--mount".to_owned(),
            // A path with a comma was refused before.
            format!(
                "type=bind,source={},destination={FIRST_PROCESS},readonly",
                self.gt
            ),
            "--entrypoint".to_owned(),
            FIRST_PROCESS.to_owned(),
        ]);
        words.extend(self.arguments.iter().cloned());
        words.push(self.image.clone());
        words.extend(first_words.iter().map(|word| (*word).to_owned()));
        words
    }
}

/// Fails for a path that the list of options of a mount cannot hold.
pub fn check_mountable(path: &str) -> Result<(), UnmountablePath> {
    match path.contains([',', '"', ':', '\n']) {
        true => Err(UnmountablePath(path.to_owned())),
        false => Ok(()),
    }
}

fn bind(source: &str, path: &str, is_writable: bool) -> Result<[String; 2], UnmountablePath> {
    check_mountable(source)?;
    check_mountable(path)?;
    let access = if is_writable { "" } else { ",readonly" };
    let options = format!("type=bind,source={source},destination={path}{access}");
    Ok(["--mount".to_owned(), options])
}

fn limit(name: &str, (soft, hard): ResourceLimit, most: u64) -> String {
    let [soft, hard] = [soft, hard].map(|limit| limit.unwrap_or(u64::MAX).min(most));
    let word = |limit: u64| match limit {
        // The engines take -1 as unlimited.
        u64::MAX => "-1".to_owned(),
        limit => limit.to_string(),
    };
    format!("{name}={}:{}", word(soft), word(hard))
}

fn is_in_memory(path: &str) -> bool {
    let path = Path::new(path);
    IN_MEMORY.iter().any(|folder| path.starts_with(folder))
}

/// Returns the mounts that have an effect over an image, sorted by path. A path that is hidden
/// needs a mount only if a mount above it would show it, or if it would be a folder in memory.
fn visible(mounts: &[Mount]) -> Vec<Mount> {
    let mut kept: BTreeMap<&Path, &Mount> = BTreeMap::new();
    for mount in mounts {
        let path = Path::new(mount.path());
        kept.retain(|other, _| !other.starts_with(path));
        let mut above = kept.iter().rev();
        let above = above.find(|(other, _)| path.starts_with(other));
        let has_effect = match (mount, above.map(|(_, above)| above)) {
            (Mount::Read(_) | Mount::Write(_) | Mount::Replace { .. }, _) => true,
            (_, Some(Mount::Read(_) | Mount::Write(_) | Mount::Replace { .. })) => true,
            (_, Some(Mount::HideFolder(_) | Mount::HideFile(_))) => false,
            (Mount::HideFolder(path), None) => is_in_memory(path),
            (Mount::HideFile(_), None) => false,
        };
        if has_effect {
            kept.insert(path, mount);
        }
    }
    kept.into_values().cloned().collect()
}

/// Variables whose values describe this machine and not the image.
const OUTSIDE_ONLY: &[&str] = &[
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "HOSTNAME",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "OLDPWD",
    "PATH",
    "PWD",
    "SHELL",
    "SHLVL",
    "SSH_AGENT_PID",
    "SSH_AUTH_SOCK",
    "TEMP",
    "TMP",
    "TMPDIR",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "_",
];

/// Returns the variables of an agent that are valid in its container. A variable that names a path
/// which is not mounted, such as the folder of a toolchain, would replace the image's own.
pub fn variables(
    all: impl IntoIterator<Item = (String, String)>,
    mounts: &[Mount],
) -> BTreeMap<String, String> {
    let is_mounted = |value: &str| {
        let first = value.split(':').next().unwrap_or_default();
        let above = mounts.iter().rev();
        let mut above = above.filter(|mount| Path::new(first).starts_with(mount.path()));
        matches!(
            above.next(),
            Some(Mount::Read(_) | Mount::Write(_) | Mount::Replace { .. })
        )
    };
    let is_valid = |name: &str, value: &str| {
        let is_ours = name == "HOME" || name.starts_with("TMUX") || name.starts_with("GT_");
        let is_foreign = value.starts_with('/') && !is_mounted(value);
        is_ours || !(OUTSIDE_ONLY.contains(&name) || is_foreign)
    };
    let valid = all.into_iter();
    valid
        .filter(|(name, value)| is_valid(name, value))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &str) -> Mount {
        Mount::Write(path.to_owned())
    }

    fn read(path: &str) -> Mount {
        Mount::Read(path.to_owned())
    }

    fn hide(path: &str) -> Mount {
        Mount::HideFolder(path.to_owned())
    }

    fn plan() -> ContainerPlan {
        ContainerPlan {
            engine: ContainerEngine::Podman,
            image: "localhost/agent".to_owned(),
            name: "gt-max-7".to_owned(),
            labels: vec![("gt.agent", "web/crew/max".to_owned())],
            user: ContainerUser::Kept {
                uid: 1000,
                gid: 100,
            },
            network: ContainerNetwork::Proxy,
            mounts: vec![hide("/t"), write("/t/w"), read("/t/w/.git"), hide("/t/w/x")],
            env: Vec::new(),
            broker: "/b".to_owned(),
            gt: "/usr/bin/gt".to_owned(),
            work_dir: "/t/w".to_owned(),
            files: (Some(1024), Some(4096)),
            processes: (None, None),
            arguments: vec!["--runtime=runc".to_owned()],
        }
    }

    #[test]
    fn arguments_hold_the_mounts_and_neither_program_nor_environment() {
        let words = plan()
            .run(&["internal", "container-init"])
            .unwrap()
            .join(" ");
        for part in [
            "run --rm --interactive --tty --pull never --read-only",
            "--cap-drop all --security-opt no-new-privileges",
            "--userns keep-id --user 1000:100 --network none",
            "--ulimit nofile=1024:4096 --ulimit nproc=32768:32768",
            "--name gt-max-7 --label gt.agent=web/crew/max --detach-keys= ",
            "--mount type=bind,source=/t/w,destination=/t/w \
             --mount type=bind,source=/t/w/.git,destination=/t/w/.git,readonly \
             --mount type=bind,source=/b/empty,destination=/t/w/x,readonly \
             --mount type=bind,source=/b,destination=/run/gt,readonly",
            "--runtime=runc localhost/agent internal container-init",
        ] {
            assert!(words.contains(part), "{part}: {words}");
        }
        assert!(!words.contains("destination=/t,"), "{words}");
    }

    #[test]
    fn network_user_and_limits_follow_the_settings() {
        let other = ContainerPlan {
            engine: ContainerEngine::Docker,
            user: ContainerUser::Same { uid: 0, gid: 0 },
            network: ContainerNetwork::Engine,
            arguments: vec!["--ulimit".to_owned(), "nofile=9:9".to_owned()],
            ..plan()
        };
        let words = other.run(&[]).unwrap().join(" ");
        for absent in ["--network", "keep-id", "nproc", "--detach-keys= "] {
            assert!(!words.contains(absent), "{absent}: {words}");
        }
        assert!(words.contains("--user 0:0"), "{words}");
    }

    #[test]
    fn path_with_a_comma_is_refused() {
        let odd = ContainerPlan {
            mounts: vec![write("/t/a,b")],
            ..plan()
        };
        assert_eq!(odd.run(&[]), Err(UnmountablePath("/t/a,b".to_owned())));
    }

    #[test]
    fn later_mount_covers_earlier_ones_below_it() {
        let mounts = [
            read("/a/b"),
            hide("/a"),
            write("/a/c"),
            hide("/z"),
            write("/a"),
        ];
        assert_eq!(visible(&mounts), [write("/a")]);
        let mounts = [write("/a"), hide("/a/b"), hide("/a/b/c")];
        assert_eq!(visible(&mounts), [write("/a"), hide("/a/b")]);
        let mounts = [hide("/tmp/h"), hide("/tmp/h/.ssh"), write("/tmp/h/w")];
        assert_eq!(visible(&mounts), [hide("/tmp/h"), write("/tmp/h/w")]);
    }

    #[test]
    fn variables_that_name_paths_outside_are_left_out() {
        let all = [
            ("HOME", "/home/max"),
            ("GT_ROOT", "/t"),
            ("CARGO_HOME", "/home/max/.cargo"),
            ("CLAUDE_CONFIG_DIR", "/t/w/.claude"),
            ("HIDDEN", "/t/w/x/y"),
            ("PATH", "/usr/bin"),
            ("KEY", "value"),
        ];
        let all = all.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let valid = variables(all, &plan().mounts);
        let names: Vec<&str> = valid.keys().map(String::as_str).collect();
        assert_eq!(names, ["CLAUDE_CONFIG_DIR", "GT_ROOT", "HOME", "KEY"]);
    }
}

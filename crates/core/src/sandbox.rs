//! Sandboxes of agents: the levels, and the arguments of the program that makes the sandbox of one
//! agent ([`SandboxTool`]).
//!
//! [`SandboxPlan`] lists what the agent may write, what stays readable and what is hidden;
//! [`SandboxPlan::bwrap`] turns it into arguments. The engine finds the paths and starts the
//! program. Everything that is not listed is readable and not writable. [`container`] makes the
//! arguments of podman and docker for the level `container`.

pub mod container;

pub mod caches;
mod limits;
mod seatbelt;
mod tool;

pub use limits::SandboxLimits;
pub use tool::SandboxTool;

use serde::{Deserialize, Serialize};
use std::fmt;

/// Folder inside the sandbox with the socket of the broker.
pub const BROKER_FOLDER: &str = "/run/gt";
/// Socket of the egress proxy in [`BROKER_FOLDER`].
pub const EGRESS_SOCKET: &str = "egress.sock";
/// Port of 127.0.0.1 inside a strict sandbox on which programs find the proxy. The sandbox has a
/// network of its own, so the port is free.
pub const EGRESS_PORT: u16 = 3128;
/// Variable that names the socket of the broker, for `gt` inside the sandbox.
pub const BROKER_VARIABLE: &str = "GT_BROKER";
/// Variable of the commands that a broker runs for the agent inside.
pub const SANDBOXED_VARIABLE: &str = "GT_SANDBOXED";

/// How far an agent is separated from the rest of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SandboxLevel {
    /// The agent has all rights of its user.
    #[default]
    None,
    /// The agent writes only to its worktree, its own branches and its program's folders.
    Workspace,
    /// Additionally, the agent reaches only the hosts that are listed.
    Strict,
    /// The agent has the file system of an image, with its own paths over it.
    Container,
}

impl SandboxLevel {
    pub const ALL: [SandboxLevel; 4] = [
        SandboxLevel::None,
        SandboxLevel::Workspace,
        SandboxLevel::Strict,
        SandboxLevel::Container,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            SandboxLevel::None => "none",
            SandboxLevel::Workspace => "workspace",
            SandboxLevel::Strict => "strict",
            SandboxLevel::Container => "container",
        }
    }

    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.as_str() == word)
    }
}

impl fmt::Display for SandboxLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A town's setting for agents that run without permission prompts and whose role names no level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum DefaultSandbox {
    /// `workspace` where it works, otherwise `none`.
    Auto,
    Level(SandboxLevel),
}

impl Default for DefaultSandbox {
    fn default() -> Self {
        DefaultSandbox::Level(SandboxLevel::None)
    }
}

impl DefaultSandbox {
    pub const AUTO: &str = "auto";

    pub fn from_word(word: &str) -> Option<Self> {
        match word {
            Self::AUTO => Some(DefaultSandbox::Auto),
            // A container needs an image, which only a role names.
            _ => SandboxLevel::from_word(word)
                .filter(|level| *level != SandboxLevel::Container)
                .map(DefaultSandbox::Level),
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            DefaultSandbox::Auto => Self::AUTO,
            DefaultSandbox::Level(level) => level.as_str(),
        }
    }
}

impl TryFrom<String> for DefaultSandbox {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::from_word(&text).ok_or_else(|| format!("there is no sandbox {text:?}"))
    }
}

/// Returns the level of an agent. `explicit` is the level of its start or its role; `works` is
/// called only if the level depends on whether a `workspace` sandbox works for the agent.
pub fn level(
    explicit: Option<SandboxLevel>,
    default: DefaultSandbox,
    is_bypassing: bool,
    works: impl FnOnce() -> bool,
) -> SandboxLevel {
    match (explicit, default) {
        (Some(level), _) => level,
        (None, DefaultSandbox::Level(level)) if is_bypassing => level,
        (None, DefaultSandbox::Auto) if is_bypassing && works() => SandboxLevel::Workspace,
        (None, _) => SandboxLevel::None,
    }
}

/// Files and folders of the home folder that hold secrets of common programs.
pub const SECRET_PATHS: &[&str] = &[
    ".ssh",
    ".aws",
    ".azure",
    ".gnupg",
    ".kube",
    ".docker",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".password-store",
    ".vault-token",
    ".terraform.d",
    ".bash_history",
    ".zsh_history",
    ".mozilla",
    ".thunderbird",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".config/gh",
    ".config/hub",
    ".config/gcloud",
    ".config/git/credentials",
    ".config/google-chrome",
    ".config/chromium",
    ".config/op",
    ".config/containers/auth.json",
    ".local/share/keyrings",
];

/// A path with the access that the agent has to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mount {
    /// An empty folder in memory, over a folder that the agent must not see.
    HideFolder(String),
    /// An empty file, over a file or socket that the agent must not see.
    HideFile(String),
    Read(String),
    Write(String),
    /// A folder of the agent's own, in place of another one.
    Replace {
        path: String,
        with: String,
    },
}

impl Mount {
    pub fn path(&self) -> &str {
        match self {
            Mount::HideFolder(path)
            | Mount::HideFile(path)
            | Mount::Read(path)
            | Mount::Write(path)
            | Mount::Replace { path, .. } => path,
        }
    }
}

/// The caches of toolchains that an agent uses inside its sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheUse {
    /// Caches that only sandboxed agents of the same rig use.
    #[default]
    Own,
    /// Those of the person, which the agent cannot write to.
    ReadOnly,
}

/// The sandbox of one agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SandboxPlan {
    /// In this order; a later mount covers an earlier one.
    pub mounts: Vec<Mount>,
    /// The folder on this machine that holds the broker's socket.
    pub broker: String,
    pub work_dir: String,
    /// Variables that are set inside.
    pub env: Vec<(String, String)>,
    /// Whether the program has the network of this machine, or only a loopback interface of its
    /// own.
    pub has_network: bool,
    /// Whether the program gets a terminal session of its own, because this kernel lets it type
    /// into its terminal otherwise (TIOCSTI).
    pub new_session: bool,
}

impl SandboxPlan {
    /// Returns the arguments of bubblewrap, up to and including `--`.
    pub fn bwrap(&self) -> Vec<String> {
        let mut words: Vec<String> = Vec::new();
        let mut add = |parts: &[&str]| words.extend(parts.iter().map(|part| (*part).to_owned()));
        add(&["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]);
        // A process of root can write there without any capability: the kernel only compares users.
        for path in ["sys", "sysrq-trigger", "irq", "bus", "fs"] {
            let path = format!("/proc/{path}");
            add(&["--ro-bind-try", &path, &path]);
        }
        for folder in ["/tmp", "/var/tmp", "/run"] {
            add(&["--tmpfs", folder]);
        }
        for mount in &self.mounts {
            match mount {
                Mount::HideFolder(path) => add(&["--tmpfs", path]),
                Mount::HideFile(path) => add(&["--ro-bind", "/dev/null", path]),
                Mount::Read(path) => add(&["--ro-bind", path, path]),
                Mount::Write(path) => add(&["--bind", path, path]),
                Mount::Replace { path, with } => add(&["--bind", with, path]),
            }
        }
        add(&["--bind", &self.broker, BROKER_FOLDER]);
        // Nothing is created beside the mounts in a hidden folder.
        for mount in &self.mounts {
            if let Mount::HideFolder(path) = mount {
                add(&["--remount-ro", path]);
            }
        }
        add(&["--unshare-pid", "--unshare-ipc", "--unshare-cgroup-try"]);
        if !self.has_network {
            add(&["--unshare-net"]);
        }
        add(&["--cap-drop", "ALL", "--die-with-parent"]);
        if self.new_session {
            add(&["--new-session"]);
        }
        add(&["--chdir", &self.work_dir, "--"]);
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_keep_their_order_and_hidden_folders_become_read_only_last() {
        let plan = SandboxPlan {
            mounts: vec![
                Mount::HideFolder("/t".to_owned()),
                Mount::HideFile("/s/socket".to_owned()),
                Mount::Write("/t/w".to_owned()),
                Mount::Read("/t/w/.git".to_owned()),
                Mount::Replace {
                    path: "/t/g".to_owned(),
                    with: "/t/p".to_owned(),
                },
            ],
            broker: "/b".to_owned(),
            work_dir: "/t/w".to_owned(),
            env: Vec::new(),
            has_network: true,
            new_session: false,
        };
        let words = plan.bwrap().join(" ");
        let expected = "--tmpfs /run --tmpfs /t --ro-bind /dev/null /s/socket --bind /t/w /t/w \
                        --ro-bind /t/w/.git /t/w/.git --bind /t/p /t/g --bind /b /run/gt --remount-ro /t \
                        --unshare-pid";
        assert!(words.contains(expected), "{words}");
        assert!(
            words.ends_with("--die-with-parent --chdir /t/w --"),
            "{words}"
        );
        assert!(!words.contains("--unshare-net"), "{words}");
        let own = SandboxPlan {
            has_network: false,
            new_session: true,
            ..plan
        };
        for word in ["--new-session", "--unshare-net"] {
            assert!(own.bwrap().contains(&word.to_owned()), "{word}");
        }
    }

    #[test]
    fn default_applies_only_to_agents_that_bypass_permissions_and_have_no_level() {
        use SandboxLevel::{None as Open, Strict, Workspace};
        let auto = DefaultSandbox::Auto;
        let fixed = DefaultSandbox::Level(Strict);
        for (explicit, default, is_bypassing, works, expected) in [
            (None, auto, true, true, Workspace),
            (None, auto, true, false, Open),
            (None, auto, false, true, Open),
            (None, fixed, true, false, Strict),
            (None, fixed, false, true, Open),
            (None, DefaultSandbox::default(), true, true, Open),
            (Some(Open), auto, true, true, Open),
            (Some(Strict), auto, false, false, Strict),
        ] {
            let found = level(explicit, default, is_bypassing, || works);
            assert_eq!(found, expected, "{explicit:?} {default:?} {is_bypassing}");
        }
        // An explicit level needs no look at this machine.
        level(Some(Workspace), auto, true, || panic!("not needed"));
    }

    #[test]
    fn levels_have_one_word_each() {
        for word in ["auto", "none", "workspace", "strict"] {
            assert_eq!(DefaultSandbox::from_word(word).unwrap().as_str(), word);
        }
        assert!(DefaultSandbox::try_from("x".to_owned()).is_err());
        for level in SandboxLevel::ALL {
            assert_eq!(SandboxLevel::from_word(level.as_str()), Some(level));
        }
        assert_eq!(SandboxLevel::from_word("strict "), None);
    }
}

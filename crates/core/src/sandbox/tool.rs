//! The program that makes sandboxes on an operating system: bubblewrap on Linux, Seatbelt on macOS.
//!
//! The choice is a value, so that both are tested on every system.

use super::{BROKER_FOLDER, SandboxLevel, SandboxPlan};
use crate::problem::Problem;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SandboxTool {
    Bubblewrap,
    Seatbelt,
}

impl SandboxTool {
    /// The tool of this system.
    pub const HERE: SandboxTool = if cfg!(target_os = "macos") {
        SandboxTool::Seatbelt
    } else {
        SandboxTool::Bubblewrap
    };

    /// Returns the name of the program.
    pub fn program(self) -> &'static str {
        match self {
            SandboxTool::Bubblewrap => "bwrap",
            SandboxTool::Seatbelt => "sandbox-exec",
        }
    }

    /// Returns the arguments that run the shell line `:` in a sandbox, to see whether that works.
    pub fn probe(self) -> &'static [&'static str] {
        match self {
            SandboxTool::Bubblewrap => &[
                "--ro-bind",
                "/",
                "/",
                "--proc",
                "/proc",
                "--dev",
                "/dev",
                "--unshare-pid",
                "--",
                "/bin/sh",
                "-c",
                ":",
            ],
            SandboxTool::Seatbelt => &["-p", "(version 1)(allow default)", "/bin/sh", "-c", ":"],
        }
    }

    /// Fails if the tool cannot make a sandbox of this level.
    pub fn check(self, level: SandboxLevel) -> Result<(), Problem> {
        if (self, level) != (SandboxTool::Seatbelt, SandboxLevel::Strict) {
            return Ok(());
        }
        Err(Problem::environment(
            "the sandbox `strict` needs a network of its own, which macOS does not have",
        )
        .hint("`--sandbox container` limits the network; `--sandbox workspace` does not"))
    }

    /// Returns the arguments before the program. `temporary` is a folder for temporary files, where
    /// the tool makes no private `/tmp`.
    pub fn arguments(self, plan: &SandboxPlan, temporary: &str) -> Vec<String> {
        match self {
            SandboxTool::Bubblewrap => plan.bwrap(),
            SandboxTool::Seatbelt => vec!["-p".to_owned(), plan.seatbelt(temporary)],
        }
    }

    /// Returns the variables that the tool needs inside.
    pub fn variables(self, temporary: &str) -> Vec<(String, String)> {
        match self {
            SandboxTool::Bubblewrap => Vec::new(),
            SandboxTool::Seatbelt => vec![("TMPDIR".to_owned(), temporary.to_owned())],
        }
    }

    /// Returns the folder of the broker's sockets as the program inside names it.
    pub fn broker_folder(self, plan: &SandboxPlan) -> &str {
        match self {
            SandboxTool::Bubblewrap => BROKER_FOLDER,
            SandboxTool::Seatbelt => &plan.broker,
        }
    }

    /// Returns whether the number of processes counts only those of the sandbox.
    pub fn counts_own_processes(self) -> bool {
        self == SandboxTool::Bubblewrap
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::Mount;

    fn plan() -> SandboxPlan {
        SandboxPlan {
            mounts: vec![Mount::Write("/w".to_owned())],
            broker: "/b".to_owned(),
            work_dir: "/w".to_owned(),
            has_network: true,
            ..SandboxPlan::default()
        }
    }

    #[test]
    fn seatbelt_gets_the_profile_as_one_argument_and_a_temporary_folder() {
        let tool = SandboxTool::Seatbelt;
        let words = tool.arguments(&plan(), "/b/tmp");
        let [option, profile] = words.as_slice() else {
            panic!("{words:?}");
        };
        assert_eq!(option, "-p");
        assert_eq!(*profile, plan().seatbelt("/b/tmp"));
        assert!(profile.contains("(allow file-write* (subpath \"/b/tmp\"))"));
        let variables = tool.variables("/b/tmp");
        assert_eq!(variables, [("TMPDIR".to_owned(), "/b/tmp".to_owned())]);
        assert_eq!(tool.broker_folder(&plan()), "/b");
    }

    #[test]
    fn bubblewrap_mounts_the_folder_of_the_broker() {
        let tool = SandboxTool::Bubblewrap;
        assert_eq!(tool.arguments(&plan(), "/b/tmp"), plan().bwrap());
        assert!(tool.variables("/b/tmp").is_empty());
        assert_eq!(tool.broker_folder(&plan()), BROKER_FOLDER);
    }

    #[test]
    fn only_seatbelt_refuses_a_network_of_its_own() {
        for level in SandboxLevel::ALL {
            assert!(SandboxTool::Bubblewrap.check(level).is_ok(), "{level}");
            let refused = SandboxTool::Seatbelt.check(level).is_err();
            assert_eq!(refused, level == SandboxLevel::Strict, "{level}");
        }
    }
}

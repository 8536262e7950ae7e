//! A home folder, a town and a tmux server for one run of measurements.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub(crate) struct Home {
    path: PathBuf,
}

impl Home {
    /// Creates an empty town of demo agents.
    pub(crate) fn new(name: &str) -> Self {
        let path = PathBuf::from(format!("/tmp/{name}{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        let home = Home { path };
        home.ok(&["init", "--harness", "demo", "--sandbox", "none"]);
        home
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Adds a rig with crew workers.
    pub(crate) fn add_rig(&self, workers: usize) {
        let source = self.path("source");
        std::fs::create_dir_all(&source).expect("a folder");
        let commit =
            "-c user.name=b -c user.email=b@localhost commit --quiet --allow-empty -m Begin";
        for line in ["init --quiet --initial-branch=main", commit] {
            let mut git = self.command("git");
            let status = git.args(line.split(' ')).current_dir(&source).status();
            assert!(status.is_ok_and(|status| status.success()));
        }
        self.ok(&["rig", "add", "gastown", "source", "--prefix", "gt"]);
        let names: Vec<String> = (0..workers).map(|n| format!("w{n:02}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        self.ok(&[&["crew", "add"], names.as_slice()].concat());
    }

    pub(crate) fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &self.path)
            .env("TERM", "xterm-256color")
            .env("LANG", "C.UTF-8")
            .env("GT_TMUX_SOCKET", self.path("s"))
            .current_dir(&self.path)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command
    }

    pub(crate) fn gt(&self, args: &[&str]) -> Command {
        let mut command = self.command(gt());
        command.args(args);
        command
    }

    pub(crate) fn tmux(&self, args: &[&str]) -> Command {
        let mut command = self.command("tmux");
        command
            .arg("-u")
            .arg("-S")
            .arg(self.path("s"))
            .args(["-f", "/dev/null"])
            .args(args);
        command
    }

    pub(crate) fn ok(&self, args: &[&str]) {
        let status = self.gt(args).status().expect("gt runs");
        assert!(status.success(), "gt {args:?}");
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = self.tmux(&["kill-server"]).stderr(Stdio::null()).status();
        // Agents that are ending may still write a last file.
        for _ in 0..100 {
            let _ = std::fs::remove_dir_all(&self.path);
            if !self.path.exists() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
    }
}

/// Returns the measured program: `GT_BENCH_PROGRAM`, such as an earlier version, or this build.
pub(crate) fn gt() -> &'static str {
    static PROGRAM: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| {
        let named = std::env::var("GT_BENCH_PROGRAM");
        named.unwrap_or_else(|_| env!("CARGO_BIN_EXE_gt").to_owned())
    });
    &PROGRAM
}

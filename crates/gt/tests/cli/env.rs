//! A private home folder, town and tmux server for one test.

use crate::external_programs;
use gt_tmux::testing::{stale_copies, temp_root, wait_until};
use gt_tmux::{Command as Tmux, ErrorKind, Row, Server, Socket};
use gt_town::terminal::containers::PaneRow;
use rustix::process::{Pid, Signal};
use serde_json::Value;
use std::io::Write;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);

/// Shell script that checks for mount rights, prints `begun`, and runs its only argument.
const NAMESPACE: &str = "mount -t tmpfs tmpfs \"$HOME\" && umount \"$HOME\" || exit 99; \
                         echo begun; eval \"$0\"";

/// Private environment of a test; dropping it ends the tmux server and all processes.
pub(crate) struct TestEnv {
    folder: TempDir,
    extra: Vec<(String, String)>,
}

/// Exit code and output of a command.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Answer {
    /// Converts the output of a process. The code of a process that a signal ended is the negative
    /// signal number.
    pub(crate) fn of(output: Output) -> Self {
        let status = output.status;
        let by_signal = || status.signal().map_or(-1, |signal| -signal);
        Answer {
            code: status.code().unwrap_or_else(by_signal),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        assert_eq!(
            self.code, 0,
            "stdout: {}\nstderr: {}",
            self.stdout, self.stderr
        );
        self
    }

    #[track_caller]
    pub(crate) fn fails(self, code: i32) -> Self {
        assert_eq!(
            self.code, code,
            "stdout: {}\nstderr: {}",
            self.stdout, self.stderr
        );
        self
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}\n{}", self.stdout, self.stderr))
    }
}

impl TestEnv {
    /// Makes an empty home folder.
    pub(crate) fn empty() -> Self {
        let folder = tempfile::Builder::new()
            .prefix("gt")
            .tempdir_in(temp_root());
        TestEnv {
            folder: folder.expect("a folder"),
            extra: Vec::new(),
        }
    }

    /// Makes a town whose default harness is the demo agent, without sandboxes. Merge queues run only when a test runs
    /// them, and `gt task merge` does not ask for confirmation.
    pub(crate) fn with_town() -> Self {
        let env = Self::empty();
        env.gt(&["init", "--harness", "demo", "--sandbox", "none"])
            .ok();
        env.add_settings("[merge]\nautomatic = false\nconfirm = false\n");
        env
    }

    /// Appends lines to `town.toml`.
    pub(crate) fn add_settings(&self, lines: &str) {
        let path = self.town().join("town.toml");
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("{text}\n{lines}")).unwrap();
    }

    /// Makes a town with the rig `gastown` (prefix `gt`).
    pub(crate) fn with_rig() -> Self {
        let env = Self::with_town();
        env.add_rig("gastown", "gt");
        env
    }

    /// Makes a town with the rig `gastown` and these crew workers.
    pub(crate) fn with_crew(names: &[&str]) -> Self {
        let env = Self::with_rig();
        env.gt(&[&["crew", "add"], names].concat()).ok();
        env
    }

    pub(crate) fn add_rig(&self, name: &str, prefix: &str) {
        let source = self.repository(&format!("source-{name}"));
        self.gt(&[
            "rig",
            "add",
            name,
            source.to_str().unwrap(),
            "--prefix",
            prefix,
        ])
        .ok();
    }

    /// Makes a work item in the rig `gastown`, and returns its id.
    pub(crate) fn create_item(&self, title: &str) -> String {
        let item = self.json(&["work", "create", title, "--rig", "gastown"]);
        item["id"].as_str().unwrap().to_owned()
    }

    /// Makes a git repository with one commit.
    pub(crate) fn repository(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(&path).unwrap();
        std::fs::write(path.join("README.md"), "hello\n").unwrap();
        self.git(&path, &["init", "--quiet", "--initial-branch=main"]);
        self.git(&path, &["add", "."]);
        self.git(&path, &["commit", "--quiet", "-m", "Begin"]);
        path
    }

    pub(crate) fn git(&self, dir: &Path, args: &[&str]) -> String {
        let output = self
            .command("git")
            .args(["-c", "user.name=t", "-c", "user.email=t@localhost"])
            .args(args)
            .current_dir(dir)
            .output()
            .unwrap();
        assert!(output.status.success(), "git {args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Sets a variable for every later command.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.extra.push((name.to_owned(), value.to_owned()));
    }

    pub(crate) fn home(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn town(&self) -> PathBuf {
        self.path("gt")
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.path("s")
    }

    pub(crate) fn server(&self) -> Server {
        Server::new(Socket::Path(self.socket())).with_config("/dev/null")
    }

    /// Returns a command with a cleared environment.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.home())
            .env("TERM", "xterm-256color")
            .env("LANG", "C.UTF-8")
            .env("SHELL", "/bin/sh")
            .env("GT_TMUX_SOCKET", self.socket())
            .env("TMUX_TMPDIR", self.home())
            .envs(self.extra.iter().map(|(name, value)| (name, value)))
            .current_dir(self.home())
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn gt_command(&self, args: &[&str]) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_gt"));
        command.args(args);
        command
    }

    pub(crate) fn gt(&self, args: &[&str]) -> Answer {
        run(&mut self.gt_command(args))
    }

    pub(crate) fn gt_in(&self, dir: &Path, args: &[&str]) -> Answer {
        run(self.gt_command(args).current_dir(dir))
    }

    /// Runs `gt`, which must kill itself at this fault point.
    #[track_caller]
    pub(crate) fn kill_at_fault(&self, args: &[&str], point: &str) {
        let killed = run(self.gt_command(args).env("GT_FAULT", point));
        assert_eq!(
            killed.code, -9,
            "{args:?} does not reach {point}: {killed:?}"
        );
    }

    /// Starts `gt` in its own process group, as a shell does.
    pub(crate) fn spawn(&self, args: &[&str]) -> Child {
        let mut command = self.gt_command(args);
        command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        command.spawn().unwrap()
    }

    #[track_caller]
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        self.gt(&[args, &["--json"]].concat()).ok().json()
    }

    /// Returns the addresses of the running agents.
    #[track_caller]
    pub(crate) fn running(&self) -> Vec<String> {
        let agents = self.json(&["agents", "--all"]);
        let agents = agents.as_array().unwrap().iter();
        agents
            .map(|agent| agent["agent"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Returns one agent of `gt agents --json`.
    #[track_caller]
    pub(crate) fn agent(&self, address: &str) -> Value {
        let agents = self.json(&["agents", "--all"]);
        let found = agents
            .as_array()
            .unwrap()
            .iter()
            .find(|agent| agent["agent"] == address);
        found
            .unwrap_or_else(|| panic!("{address} is not among {agents}"))
            .clone()
    }

    #[track_caller]
    pub(crate) fn pid(&self, address: &str) -> u32 {
        u32::try_from(self.agent(address)["pid"].as_u64().unwrap()).unwrap()
    }

    /// Runs a shell script as root in a mount namespace. Returns `None`, and reports the test as
    /// skipped, where mounts are not permitted; the script signals that by `|| exit 99`.
    pub(crate) fn run_with_mounts(&self, script: &str) -> Option<Answer> {
        let mut refusals = String::new();
        // Root in a container may be allowed to mount, but not to create user namespaces.
        for options in ["-rm", "-m"] {
            let mut command = self.command("unshare");
            command.args([options, "sh", "-c", NAMESPACE, script]);
            let answer = match command.output() {
                Ok(output) => Answer::of(output),
                Err(error) => {
                    refusals = format!("unshare: {error}");
                    break;
                }
            };
            let is_begun = answer.stdout.starts_with("begun\n");
            if is_begun && answer.code != 99 {
                return Some(answer);
            }
            refusals += &answer.stderr;
        }
        external_programs::skip(&format!("no mounts are permitted here: {refusals}"));
        None
    }

    /// Runs a tmux command, and returns its output.
    #[track_caller]
    pub(crate) fn tmux(&self, command: Tmux) -> String {
        let line = command.to_line();
        let printed = self.server().run(command).unwrap();
        if line.starts_with("set-option") && line.contains(" @gt_") {
            self.forget_copies();
        }
        printed.trim_end().to_owned()
    }

    /// Removes the packed copies of tags, which a test does not update when it sets a tag.
    fn forget_copies(&self) {
        let ids = Tmux::new("list-sessions").args(["-F", "#{session_id}"]);
        let copy = PaneRow::PACKED.unwrap().option;
        for id in self.server().run(ids).unwrap().lines() {
            let unset = Tmux::new("set-option").args(["-u", "-t", id, copy]);
            self.server().run(unset).unwrap();
        }
    }

    /// Expands a format in an agent's container.
    #[track_caller]
    pub(crate) fn format(&self, container: &str, format: &str) -> String {
        let target = gt_tmux::SessionName::try_from(container).unwrap();
        self.tmux(
            Tmux::new("display-message")
                .arg("-p")
                .target(target)
                .arg(format),
        )
    }

    /// Returns the names of all tmux sessions.
    pub(crate) fn sessions(&self) -> Vec<String> {
        match self
            .server()
            .run(Tmux::new("list-sessions").args(["-F", "#{session_name}"]))
        {
            Ok(text) => text.lines().map(str::to_owned).collect(),
            // A server ends with its last session, possibly during this call.
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::NoServer | ErrorKind::ServerLost | ErrorKind::NoSuchSession
                ) =>
            {
                Vec::new()
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// Waits until the agent's screen contains a text.
    #[track_caller]
    pub(crate) fn wait_screen(&self, target: &str, text: &str) {
        wait_until(
            &format!("{text:?} on the screen of {target}"),
            TIMEOUT,
            || {
                self.gt(&["peek", target])
                    .stdout
                    .contains(text)
                    .then_some(())
            },
        );
    }
}

impl Drop for TestEnv {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let stale = stale_copies::<PaneRow>(&self.server());
            assert!(
                stale.is_empty(),
                "a writer of tags does not pack them: {stale:#?}"
            );
        }
        // There may be no server.
        let _ = self.server().run(Tmux::new("kill-server"));
        // Processes that ignore the hangup are found by their HOME, which only this test uses.
        for pid in processes_of(self.home()) {
            signal(pid, Signal::KILL);
        }
    }
}

pub(crate) fn run(command: &mut Command) -> Answer {
    Answer::of(command.output().unwrap())
}

/// Runs a command with text on its standard input.
pub(crate) fn run_with_stdin(command: &mut Command, text: &str) -> Answer {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(text.as_bytes()).unwrap();
    drop(stdin);
    Answer::of(child.wait_with_output().unwrap())
}

/// Returns the number of rounds of a stress test: with `GT_TEST_FULL` as many as the project
/// promises, otherwise fewer, which find the same bugs over more runs.
pub(crate) fn repetitions(full: usize, quick: usize) -> usize {
    match std::env::var_os("GT_TEST_FULL") {
        Some(_) => full,
        None => quick,
    }
}

/// Kills a process at an instant, unless it ends before. Returns its output, and whether it was
/// killed.
pub(crate) fn kill_at(mut child: Child, at: Instant) -> (Output, bool) {
    const STEP: Duration = Duration::from_micros(200);
    let is_over = |child: &mut Child| child.try_wait().unwrap().is_some();
    while !is_over(&mut child) && Instant::now() < at {
        // The instant itself is awaited: a test chooses when in its run a process is killed.
        std::thread::sleep(at.saturating_duration_since(Instant::now()).min(STEP));
    }
    let was_alive = !is_over(&mut child);
    signal(child.id(), Signal::KILL);
    (child.wait_with_output().unwrap(), was_alive)
}

/// Returns the login name of the user that runs the tests.
pub(crate) fn login() -> String {
    let output = Command::new("id").arg("-un").output().expect("id runs");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Returns the live processes whose HOME is this folder: all that the test started.
pub(crate) fn processes_of(home: &Path) -> Vec<u32> {
    let wanted = format!("HOME={}", home.display());
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        let environ = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        if environ
            .split(|byte| *byte == 0)
            .any(|variable| variable == wanted.as_bytes())
        {
            found.push(pid);
        }
    }
    found
}

/// Reports whether a process is alive; a zombie is not.
pub(crate) fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit_once(')')
        .and_then(|(_, rest)| rest.split_whitespace().next());
    state.is_some_and(|state| state != "Z" && state != "X")
}

/// Sends a signal to a process that the test started.
pub(crate) fn signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    // The process may have ended already.
    let _ = rustix::process::kill_process(pid, signal);
}

//! Agents in real containers of podman, whose image has programs of this machine
//! (`container_image.py`).

use super::sandbox::{attempts, run_script, town_with_secrets, worktree};
use super::strict_sandbox::{CONNECTIONS, Servers, starting_with};
use crate::env::{TIMEOUT, TestEnv, is_alive};
use crate::external_programs::are_there;
use gt_tmux::Command as Tmux;
use gt_tmux::testing::wait_until_or;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;
use std::process::{Command, Stdio};

const IMAGE: &str = "localhost/gt-agent";
/// An image without any file.
const EMPTY_IMAGE: &str = "localhost/gt-empty";
const MAKE_IMAGE: &str = include_str!("container_image.py");

/// Podman with images of its own, which all tests of a run share.
struct Podman {
    /// Folder of a program `podman` that uses these images.
    folder: PathBuf,
    /// Filter that selects the containers of the test's town.
    filter: String,
}

impl Drop for Podman {
    /// Removes the containers of agents that ran until the end of the test: their mounts would keep
    /// the folder in use. The town must be gone by then, because it starts its agents again.
    fn drop(&mut self) {
        // Podman fails once for a container whose processes were killed without it.
        for _ in 0..3 {
            let names = self.listed();
            if names.is_empty() {
                return;
            }
            let remove = ["rm", "--force", "--time", "0"];
            let mut podman = Command::new(self.program());
            podman.args(remove).args(names.split_whitespace());
            podman.output().unwrap();
        }
        assert!(std::thread::panicking() || self.listed().is_empty());
    }
}

impl Podman {
    /// Returns `None`, and reports the test as skipped, if podman is missing.
    #[track_caller]
    fn find() -> Option<Self> {
        if !are_there("a container", &["podman", "runc", "python3"]) {
            return None;
        }
        let folder = std::env::temp_dir().join("gt-podman");
        fs::create_dir_all(&folder).unwrap();
        let podman = Podman {
            folder,
            filter: String::new(),
        };
        let lock = File::create(podman.folder.join("lock")).unwrap();
        lock.lock().unwrap();
        if !podman.program().exists() {
            podman.make();
        }
        Some(podman)
    }

    fn program(&self) -> PathBuf {
        self.folder.join("bin/podman")
    }

    /// Makes the images, then the program: it exists only if both images do.
    fn make(&self) {
        let place = self.folder.display();
        let path = std::env::var_os("PATH").unwrap();
        let mut programs = std::env::split_paths(&path).map(|dir| dir.join("podman"));
        let program = programs.find(|file| file.is_file()).unwrap();
        let script = format!(
            "#!/bin/sh\nexec {} --root {place}/root --runroot {place}/run --tmpdir {place}/tmp \
             --runtime runc \"$@\"\n",
            program.display()
        );
        fs::create_dir_all(self.folder.join("bin")).unwrap();
        let made = self.folder.join("bin/new");
        fs::write(&made, script).unwrap();
        fs::set_permissions(&made, fs::Permissions::from_mode(0o755)).unwrap();
        let image = self.folder.join("image.py");
        fs::write(&image, MAKE_IMAGE).unwrap();
        let gt = env!("CARGO_BIN_EXE_gt");
        let line = format!(
            "set -e; cd {place}; python3 image.py {gt} >image.tar; bin/new import -q image.tar {IMAGE}; \
             mkdir -p none; tar -cf none.tar none; bin/new import -q none.tar {EMPTY_IMAGE}; \
             rm image.tar none.tar"
        );
        let done = Command::new("sh").args(["-c", &line]).output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{said}");
        fs::rename(made, self.program()).unwrap();
    }

    /// Returns the names of the containers of the town, running or not.
    fn listed(&self) -> String {
        if self.filter.is_empty() {
            return String::new();
        }
        let done = Command::new(self.program())
            .args(["ps", "--all", "--filter", &self.filter])
            .args(["--format", "{{.Names}}"])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(done.status.success(), "{done:?}");
        String::from_utf8(done.stdout).unwrap()
    }

    /// Makes this podman the one of a town, and sets the sandbox of its crew.
    fn give_to(&mut self, env: &mut TestEnv, settings: &str) {
        let town = env.town().canonicalize().unwrap();
        self.filter = format!("label=gt.town={}", town.display());
        let path = std::env::var("PATH").unwrap();
        let own = self.folder.join("bin");
        env.set("PATH", &format!("{}:{path}", own.display()));
        let text = format!("[sandbox]\nengine = \"podman\"\n{settings}\n");
        fs::write(env.town().join("roles/crew.toml"), text).unwrap();
    }
}

fn image_setting(name: &str) -> String {
    format!("image = \"{name}\"")
}

/// Returns a town whose crew worker `max` can run in a container.
fn town_with_image() -> Option<(Podman, TestEnv)> {
    let mut podman = Podman::find()?;
    let mut env = TestEnv::with_crew(&["max"]);
    podman.give_to(&mut env, &image_setting(IMAGE));
    Some((podman, env))
}

fn start_line(env: &TestEnv, line: &str) {
    let start = [
        "start",
        "gastown/max",
        "--sandbox",
        "container",
        "--command",
    ];
    env.gt(&[&start[..], &[line]].concat()).ok();
}

fn read(env: &TestEnv, name: &str) -> String {
    // The file is there once the agent has written it.
    fs::read_to_string(worktree(env, "max").join(name)).unwrap_or_default()
}

fn wait_for_file(env: &TestEnv, name: &str, text: &str) {
    let is_there = || read(env, name).contains(text).then_some(());
    let screen = || {
        format!(
            "{} {}",
            read(env, name),
            env.gt(&["peek", "gastown/max"]).stdout
        )
    };
    wait_until_or("the agent has written its file", TIMEOUT, is_there, screen);
}

fn wait_until_removed(podman: &Podman, name: &str) {
    let left = || podman.listed();
    let is_gone = || (!left().contains(name)).then_some(());
    wait_until_or("the container is removed", TIMEOUT, is_gone, left);
}

fn pane(env: &TestEnv, format: &str) -> String {
    let listed = Tmux::new("list-panes").args(["-a", "-F", format]);
    env.tmux(listed)
}

#[test]
fn agent_in_a_container_cannot_leave_it() {
    let Some(mut podman) = Podman::find() else {
        return;
    };
    let mut env = town_with_secrets();
    podman.give_to(&mut env, &image_setting(IMAGE));
    let lines = attempts(&env, "container");
    let none: Vec<&String> = Vec::new();
    assert_eq!(starting_with(&lines, "ESCAPED"), none);
    assert!(starting_with(&lines, "denied").len() >= 80, "{lines:?}");
    assert!(!env.home().join("escaped").exists());
}

#[test]
fn agent_in_a_container_reaches_only_allowed_hosts() {
    let Some(mut podman) = Podman::find() else {
        return;
    };
    let mut env = town_with_secrets();
    let servers = Servers::start();
    let hosts = format!("hosts = [\"127.0.0.1:{}\"]\n", servers.allowed);
    podman.give_to(&mut env, &(hosts + &image_setting(IMAGE)));
    let lines = run_script(&env, "container", CONNECTIONS, &servers.words);
    let none: Vec<&String> = Vec::new();
    assert_eq!(starting_with(&lines, "ESCAPED"), none);
    assert!(lines.contains(&"allowed".to_owned()), "{lines:?}");
    assert!(starting_with(&lines, "denied").len() >= 25, "{lines:?}");
}

#[test]
fn contained_agent_commits_calls_gt_and_leaves_nothing() {
    let Some((podman, env)) = town_with_image() else {
        return;
    };
    env.gt(&["start", "gastown/max", "--sandbox", "container"])
        .ok();
    assert_eq!(env.agent("gastown/crew/max")["health"], "healthy");
    let work = "[[tool=echo x > file && git add file && git -c user.name=max -c user.email=max@localhost commit -qm 'Add file' && gt mail send human -s done -m text]]";
    env.gt(&["nudge", "gastown/max", work]).ok();
    let is_done = || {
        let log = env.git(&worktree(&env, "max"), &["log", "--format=%s", "-1"]);
        let mail = env.gt(&["mail", "inbox", "human"]).ok().stdout;
        (log.trim() == "Add file" && mail.contains("gastown/crew/max")).then_some(())
    };
    let screen = || env.gt(&["peek", "gastown/max"]).ok().stdout;
    wait_until_or("the commit and the mail", TIMEOUT, is_done, screen);
    let owner = fs::metadata(worktree(&env, "max").join("file")).unwrap();
    let own = fs::metadata(env.home()).unwrap();
    assert_eq!((owner.uid(), owner.gid()), (own.uid(), own.gid()));
    let pid = env.pid("gastown/crew/max");
    env.gt(&["stop", "gastown/max"]).ok();
    assert!(!is_alive(pid));
    assert_eq!(podman.listed(), "", "stop removes the container");
    let left = fs::read_dir(env.town().join(".runtime/sandbox")).unwrap();
    assert_eq!(left.count(), 0, "the folder of the broker is removed");
}

#[test]
fn exit_status_resize_and_signals_pass_through_a_container() {
    let Some((podman, env)) = town_with_image() else {
        return;
    };
    start_line(
        &env,
        "trap 'stty size >resized' WINCH; trap 'echo x >ended; exit 7' TERM; echo x >ready; while :; do sleep 0.1; done",
    );
    wait_for_file(&env, "ready", "x");
    let session = pane(&env, "#{session_name}");
    let resize =
        Tmux::new("resize-window").args(["-t", &format!("={session}:"), "-x", "93", "-y", "31"]);
    env.tmux(resize);
    wait_for_file(&env, "resized", "31 93");
    let pid: i32 = pane(&env, "#{pane_pid}").parse().unwrap();
    // The pane stays, so that its status can be read.
    env.tmux(Tmux::new("set-option").args([
        "-w",
        "-t",
        &format!("={session}:"),
        "remain-on-exit",
        "on",
    ]));
    kill_process(Pid::from_raw(pid).unwrap(), Signal::TERM).unwrap();
    wait_for_file(&env, "ended", "x");
    let status = || pane(&env, "#{pane_dead} #{pane_dead_status}");
    let has_ended = || (status() == "1 7").then_some(());
    wait_until_or(
        "the pane has the status of the program",
        TIMEOUT,
        has_ended,
        status,
    );
    wait_until_removed(&podman, "gt-");
}

#[test]
fn container_of_a_killed_broker_ends_by_itself() {
    let Some((podman, env)) = town_with_image() else {
        return;
    };
    // The program ignores the signals that ask it to end.
    start_line(
        &env,
        "trap '' HUP TERM INT; echo x >ready; while :; do sleep 0.1; done",
    );
    wait_for_file(&env, "ready", "x");
    let name = podman.listed();
    assert!(name.contains("gt-gastown-crew-max-"), "{name}");
    let pid: i32 = pane(&env, "#{pane_pid}").parse().unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    wait_until_removed(&podman, name.trim());
}

#[test]
fn container_that_its_engine_forgot_is_removed() {
    let Some((podman, env)) = town_with_image() else {
        return;
    };
    start_line(&env, "echo x >ready; sleep 1000");
    wait_for_file(&env, "ready", "x");
    let name = podman.listed();
    // Without this process, podman does not notice the end of the container.
    let monitor = Command::new(podman.program())
        .args(["inspect", "--format", "{{.State.ConmonPid}}", name.trim()])
        .output()
        .unwrap();
    let monitor: i32 = String::from_utf8(monitor.stdout)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    kill_process(Pid::from_raw(monitor).unwrap(), Signal::KILL).unwrap();
    env.gt(&["stop", "gastown/max"]).ok();
    assert_eq!(podman.listed(), "");
    let left = fs::read_dir(env.town().join(".runtime/sandbox")).unwrap();
    assert_eq!(left.count(), 0, "no note is left");
}

#[test]
fn secrets_are_in_no_argument_and_in_no_file_of_the_engine() {
    let Some((podman, env)) = town_with_image() else {
        return;
    };
    let line = "echo $SECRET >ready; sleep 1000";
    let start = ["start", "gastown/max", "--sandbox", "container"];
    let rest = [
        "--env",
        "SECRET=hunter2-in-the-container",
        "--command",
        line,
    ];
    env.gt(&[&start[..], &rest].concat()).ok();
    wait_for_file(&env, "ready", "hunter2");
    let name = podman.listed();
    let inspected = Command::new(podman.program())
        .args(["inspect", name.trim()])
        .output()
        .unwrap();
    assert!(inspected.status.success());
    let inspected = String::from_utf8(inspected.stdout).unwrap();
    assert!(!inspected.contains("hunter2"), "{inspected}");
    env.gt(&["stop", "gastown/max"]).ok();
}

/// Returns the error of a start that must fail before anything is started.
#[track_caller]
fn refused(env: &TestEnv) -> String {
    let said = env.gt(&["start", "gastown/max", "--sandbox", "container"]);
    assert_ne!(said.code, 0);
    assert_eq!(env.running(), Vec::<String>::new());
    said.stderr
}

#[test]
fn missing_engine_or_image_refuses_the_start() {
    let Some((mut podman, mut env)) = town_with_image() else {
        return;
    };
    podman.give_to(&mut env, "");
    let said = refused(&env);
    assert!(said.contains("sandbox.image"), "{said}");
    podman.give_to(&mut env, &image_setting("localhost/missing"));
    let said = refused(&env);
    assert!(said.contains("podman pull localhost/missing"), "{said}");
    podman.give_to(&mut env, &image_setting(EMPTY_IMAGE));
    let said = refused(&env);
    assert!(said.contains("needs glibc"), "{said}");
    podman.give_to(
        &mut env,
        &(image_setting(IMAGE) + "\narguments = [\"--no-such-option\"]"),
    );
    let said = refused(&env);
    assert!(said.contains("--no-such-option"), "{said}");
    let tools = tools_without_engine(&env);
    env.set("PATH", &tools.display().to_string());
    let said = refused(&env);
    assert!(said.contains("apt install podman"), "{said}");
}

/// Makes a folder with the programs that `gt` needs, and no engine.
fn tools_without_engine(env: &TestEnv) -> PathBuf {
    let tools = env.path("tools");
    fs::create_dir_all(&tools).unwrap();
    let path = std::env::var_os("PATH").unwrap();
    for program in ["git", "tmux", "sh"] {
        let mut files = std::env::split_paths(&path).map(|dir| dir.join(program));
        let real = files.find(|file| file.is_file()).unwrap();
        std::os::unix::fs::symlink(real, tools.join(program)).unwrap();
    }
    tools
}

//! A hostile agent in a sandbox. `escapes.py` makes the attempts.

use crate::env::{TIMEOUT, TestEnv, is_alive};
use crate::external_programs::are_there;
use gt_tmux::Command as Tmux;
use gt_tmux::testing::wait_until_or;
use insta::assert_snapshot;
use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

const ESCAPES: &str = include_str!("escapes.py");

/// Attempts that must succeed without a sandbox, so that their denial inside one means something.
/// They change only files of the test.
const POSSIBLE_OUTSIDE: &[&str] = &[
    "read_ssh_key",
    "read_login_of_another_program",
    "read_town_settings",
    "read_file_of_another_worktree",
    "write_home",
    "write_town_settings",
    "write_hooks_of_gt",
    "write_git_config",
    "write_git_hook",
    "write_alternates",
    "write_worktree_link",
    "read_environment_of_a_process_outside",
    "write_configuration_of_worktree",
    "write_configuration_of_clone",
    "write_head_of_clone",
    "set_git_config",
    "set_git_config_of_worktree",
    "make_tag",
    "push_to_the_source",
    "connect_to_socket_of_the_town",
    "open_descriptor_of_process_outside",
    "race_a_link_against_its_check",
    "move_hidden_folder_away",
    "connect_to_tmux",
    "signal_process_outside",
    "follow_link_to_secret",
    "follow_link_to_home",
];

/// Plants the secrets, and returns a town with the crew `max` and `joe`.
pub(super) fn town_with_secrets() -> TestEnv {
    let mut env = TestEnv::with_crew(&["max", "joe"]);
    env.set("AWS_SECRET_ACCESS_KEY", "planted-secret");
    for secret in [
        ".ssh/id",
        ".aws/credentials",
        ".config/gh/hosts.yml",
        ".git-credentials",
        ".codex/auth.json",
        ".profile",
        ".local/bin/git",
    ] {
        let path = env.home().join(secret);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "secret").unwrap();
    }
    fs::write(worktree(&env, "joe").join("a"), "work").unwrap();
    env
}

pub(super) fn worktree(env: &TestEnv, name: &str) -> PathBuf {
    env.town().join("gastown/crew").join(name)
}

/// Listens on a socket whose path may be too long for one.
fn listen(path: &Path) -> UnixListener {
    let folder = fs::File::open(path.parent().unwrap()).unwrap();
    let name = path.file_name().unwrap().to_str().unwrap();
    UnixListener::bind(format!("/proc/self/fd/{}/{name}", folder.as_raw_fd())).unwrap()
}

/// Runs the attempts as `max` and returns the lines that it wrote.
pub(super) fn attempts(env: &TestEnv, level: &str) -> Vec<String> {
    let socket = env.town().join(".runtime/escape.sock");
    let _listener = listen(&socket);
    env.tmux(Tmux::new("new-session").args(["-d", "-s", "outside", "sleep 1000"]));
    let outside =
        env.tmux(Tmux::new("display-message").args(["-p", "-t", "=outside:", "#{pane_pid}"]));
    let words = [
        env.home().display().to_string(),
        env.town().display().to_string(),
        env.socket().display().to_string(),
        outside.trim().to_owned(),
        worktree(env, "joe").display().to_string(),
        fs::read_link("/proc/self/ns/mnt")
            .unwrap()
            .display()
            .to_string(),
    ];
    run_script(env, level, ESCAPES, &words)
}

/// Runs a script as `max` and returns the lines that it wrote, the last of which begins with `end`.
pub(super) fn run_script(
    env: &TestEnv,
    level: &str,
    script: &str,
    words: &[String],
) -> Vec<String> {
    let folder = worktree(env, "max");
    fs::write(folder.join("script.py"), script).unwrap();
    let line = format!(
        "python3 script.py '{}' >result 2>&1; sleep 1000",
        words.join("' '")
    );
    let start = ["start", "gastown/max", "--sandbox", level, "--command"];
    env.gt(&[&start[..], &[&line]].concat()).ok();
    let read = || fs::read_to_string(folder.join("result")).unwrap_or_default();
    let is_over = || {
        let is_end = |line: &str| line.starts_with("end ");
        read().lines().any(is_end).then_some(())
    };
    wait_until_or("the attempts are over", TIMEOUT, is_over, read);
    read().lines().map(str::to_owned).collect()
}

#[test]
fn agent_in_a_workspace_sandbox_cannot_leave_it() {
    if !are_there("a sandbox", &["bwrap", "python3"]) {
        return;
    }
    let env = town_with_secrets();
    let lines = attempts(&env, "workspace");
    let escaped: Vec<&String> = lines
        .iter()
        .filter(|line| line.starts_with("ESCAPED"))
        .collect();
    assert!(escaped.is_empty(), "{escaped:?}");
    let denied = lines.iter().filter(|line| line.starts_with("denied"));
    assert!(denied.count() >= 80, "{lines:?}");
    // Commands of a person run nothing that the agent has planted.
    for command in [
        &["status"][..],
        &["crew", "list"],
        &["doctor"],
        &["save"],
        &["stop", "gastown/max"],
        &["done", "--agent", "gastown/max"],
        &["crew", "rm", "max"],
    ] {
        env.gt(command);
        assert!(!env.home().join("escaped").exists(), "{command:?}");
    }
}

#[test]
fn attempts_succeed_without_a_sandbox() {
    if !are_there("a sandbox", &["bwrap", "python3"]) {
        return;
    }
    let env = town_with_secrets();
    let lines = attempts(&env, "none");
    for name in POSSIBLE_OUTSIDE {
        assert!(
            lines.contains(&format!("ESCAPED {name}")),
            "{name}: {lines:?}"
        );
    }
}

#[test]
fn sandboxed_agent_commits_calls_gt_and_ends_like_any_other() {
    if !are_there("a sandbox", &["bwrap", "python3"]) {
        return;
    }
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["start", "gastown/max", "--sandbox", "workspace"])
        .ok();
    let branch = env.git(&worktree(&env, "max"), &["branch", "--show-current"]);
    assert_eq!(branch.trim(), "crew/max/main");
    let work = "[[tool=echo x > file && git add file && git -c user.name=max -c user.email=max@localhost commit -qm 'Add file' && gt mail send human -s done -m text]]";
    env.gt(&["nudge", "gastown/max", work]).ok();
    let is_done = || {
        let log = env.git(&worktree(&env, "max"), &["log", "--format=%s", "-1"]);
        let mail = env.gt(&["mail", "inbox", "human"]).ok().stdout;
        (log.trim() == "Add file" && mail.contains("gastown/crew/max")).then_some(())
    };
    let screen = || env.gt(&["peek", "gastown/max"]).ok().stdout;
    wait_until_or("the commit and the mail", TIMEOUT, is_done, screen);
    let pid = env.pid("gastown/crew/max");
    env.gt(&["stop", "gastown/max"]).ok();
    assert!(!is_alive(pid));
    let left = fs::read_dir(env.town().join(".runtime/sandbox"))
        .unwrap()
        .count();
    assert_eq!(left, 0, "the folder of the broker is removed");
}

#[test]
fn missing_bubblewrap_refuses_the_start() {
    let mut env = TestEnv::with_crew(&["max"]);
    let tools = env.path("tools");
    fs::create_dir_all(&tools).unwrap();
    for program in ["git", "tmux", "sh"] {
        let real = std::env::var_os("PATH")
            .and_then(|path| {
                std::env::split_paths(&path)
                    .map(|dir| dir.join(program))
                    .find(|file| file.is_file())
            })
            .unwrap();
        std::os::unix::fs::symlink(real, tools.join(program)).unwrap();
    }
    env.set("PATH", &tools.display().to_string());
    assert_snapshot!(env.snapshot(&["start", "gastown/max", "--sandbox", "workspace"]), @"
    exit code: 5
    --- stderr
    error: the sandbox needs bubblewrap, and there is no program bwrap
    hint: install it: `apt install bubblewrap`, `dnf install bubblewrap`, `pacman -S bubblewrap`
    hint: `--sandbox none` starts the agent without a sandbox
    ");
    assert_eq!(env.running(), Vec::<String>::new());
}

//! Bad input and broken environments: a clear error, a hint, and the documented exit code.

mod hints;

use crate::env::{TestEnv, processes_of};
use gt_tmux::Command as Tmux;
use gt_tmux::testing::wait_until;
use insta::assert_snapshot;
use std::fs;
use std::os::unix::fs::PermissionsExt;

#[test]
fn every_bad_input_gets_its_code_and_a_hint() {
    let env = TestEnv::with_crew(&["max"]);
    let check = |args: &[&str], code: i32, text: &str| {
        let answer = env.gt(args).fails(code);
        assert!(answer.stderr.contains(text), "{args:?}: {}", answer.stderr);
        assert!(
            answer.stderr.contains("hint:"),
            "{args:?}: {}",
            answer.stderr
        );
        assert_eq!(answer.stdout, "", "{args:?}");
    };
    check(&["peek", "nobody"], 3, "no agent");
    check(&["peek", "gastown/nobody"], 3, "no crew worker or polecat");
    check(&["peek", "nowhere/crew/max"], 3, "no rig");
    check(&["peek", "gastown/max"], 3, "not running");
    check(&["nudge", "gastown/max", "x"], 3, "not running");
    check(&["attach", "gastown/max"], 3, "not running");
    check(&["stop", "gastown/max"], 3, "not running");
    check(&["crew", "start", "zed"], 3, "gt crew add gastown/zed");
    check(&["start", "gastown/polecats/zed"], 3, "--create");
    check(&["crew", "add", "max"], 4, "exists already");
    check(&["crew", "add", "MAX"], 4, "exists already");
    check(&["crew", "add", "a.b"], 2, "holds '.'");
    check(&["crew", "add", "witness"], 2, "reserved by gt");
    check(&["crew", "add", "x-az"], 4, "reads as");
    check(&["crew", "add", &"x".repeat(60)], 2, "longer than");
    check(
        &["rig", "add", "other", ".", "--prefix", "agent_x"],
        2,
        "reserved by gt",
    );
    check(
        &["rig", "add", "other", ".", "--prefix", "hq-dog"],
        2,
        "reserved by gt",
    );
    check(
        &["start", "--create", "gastown/polecats/crew-x"],
        4,
        "reads as gastown/crew/x",
    );
    check(
        &["crew", "start", "max", "--harness", "nope"],
        3,
        "no harness",
    );
    check(
        &["crew", "start", "max", "--harness", "claude"],
        5,
        "not on the PATH",
    );
    check(&["crew", "start", "max", "--theme", "nope"], 2, "no theme");
    check(&["witness", "start", "nowhere"], 3, "no rig");
    check(&["agents", "--role", "king"], 3, "no role");
    check(&["--town", "nowhere", "status"], 3, "not a town");
    check(&["agents", "menu"], 2, "inside tmux");
    env.gt(&["crew", "start", "max", "--env", "NOT_SET"])
        .fails(2);
    env.gt(&["frobnicate"]).fails(2);
    assert_eq!(
        env.sessions(),
        Vec::<String>::new(),
        "nothing was left half made"
    );
}

#[test]
fn errors_are_json_where_json_was_asked_for() {
    let env = TestEnv::with_town();
    let answer = env.gt(&["peek", "nobody", "--json"]).fails(3);
    let error: serde_json::Value = serde_json::from_str(&answer.stderr).unwrap();
    assert_eq!(error["error"]["kind"], "not_found");
    assert!(
        error["error"]["message"]
            .as_str()
            .unwrap()
            .contains("nobody")
    );
    assert!(error["error"]["causes"].is_array() && error["error"]["hints"].is_array());
    let usage = env.gt(&["peek", "--json"]).fails(2);
    let error: serde_json::Value = serde_json::from_str(&usage.stderr).unwrap();
    assert_eq!(error["error"]["kind"], "usage");
}

#[test]
fn broken_files_are_named_with_line_and_expectation() {
    let env = TestEnv::with_crew(&["max"]);
    let broken = |file: &str, text: &str, args: &[&str], place: &str, expected: &str| {
        let path = env.town().join(file);
        let before = fs::read(&path).ok();
        fs::write(&path, text).unwrap();
        let answer = env.gt(args).fails(2);
        assert!(
            answer.stderr.contains(&format!("{file}:{place}")),
            "{}",
            answer.stderr
        );
        assert!(answer.stderr.contains(expected), "{}", answer.stderr);
        assert!(answer.stderr.contains("hint:"), "{}", answer.stderr);
        env.gt(&["doctor"]).fails(1);
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            text,
            "the file is left as it is"
        );
        match before {
            Some(before) => fs::write(&path, before).unwrap(),
            None => fs::remove_file(&path).unwrap(),
        }
    };
    broken(
        "town.toml",
        "name = 'x'\n[tmux]\nsocket = 7\n",
        &["status"],
        "3:10",
        "expected a string",
    );
    broken(
        "town.toml",
        "nam = 'x'\n",
        &["status"],
        "1:1",
        "unknown field",
    );
    broken(
        "mayor/rigs.json",
        "{\"rigs\": {\n  \"a\": {}\n}}",
        &["agents"],
        "2:9",
        "missing field `beads`",
    );
    broken(
        "mayor/rigs.json",
        "{\"rigs\": {",
        &["agents"],
        "1:10",
        "EOF",
    );
    broken(
        "roles/crew.toml",
        "[start]\nwait_ready = 'yes'\n",
        &["crew", "start", "max"],
        "2:14",
        "expected a boolean",
    );
    broken(
        "harnesses/demo.toml",
        "[command\n",
        &["crew", "start", "max"],
        "1:9",
        "",
    );
    assert_eq!(env.sessions(), Vec::<String>::new());
    env.gt(&["doctor"]).ok();
}

#[test]
fn missing_tmux_or_git_is_reported_with_the_install_command() {
    let mut env = TestEnv::with_crew(&["max"]);
    let bin = env.path("bin");
    fs::create_dir(&bin).unwrap();
    let path = std::env::var("PATH").unwrap();
    let find = |name: &str| {
        path.split(':')
            .map(|dir| format!("{dir}/{name}"))
            .find(|p| fs::metadata(p).is_ok())
            .unwrap()
    };
    std::os::unix::fs::symlink(find("git"), bin.join("git")).unwrap();
    env.set("PATH", bin.to_str().unwrap());
    for args in [&["crew", "start", "max"][..], &["agents"]] {
        let answer = env.gt(args).fails(5);
        assert!(
            answer.stderr.contains("install tmux"),
            "{args:?}: {}",
            answer.stderr
        );
    }
    assert_snapshot!(env.doctor_findings(&[]), @"
    exit code: 1
    ✗ tmux: tmux is not installed
      hint: `apt-get install tmux` or `brew install tmux`
    ✗ agents: cannot list the containers: cannot find the tmux program tmux
      hint: install tmux 3.2 or later: `apt-get install tmux`, `brew install tmux`
    ✗ pids: cannot list the containers: cannot find the tmux program tmux
      hint: install tmux 3.2 or later: `apt-get install tmux`, `brew install tmux`
    ");
    fs::remove_file(bin.join("git")).unwrap();
    assert_snapshot!(env.snapshot(&["crew", "add", "amy"]), @"
    exit code: 5
    --- stderr
    error: cannot make the worktree of gastown/crew/amy
    caused by: cannot run git
    caused by: No such file or directory (os error 2)
    hint: install git: `apt-get install git`, `brew install git`
    ");
}

#[test]
fn old_tmux_is_refused_with_its_version() {
    let mut env = TestEnv::with_crew(&["max"]);
    let bin = env.path("bin");
    fs::create_dir(&bin).unwrap();
    let script = "#!/bin/sh\nif [ \"$1\" = -V ]; then echo tmux 2.9a; exit 0; fi\necho \"no server running on x\" >&2\nexit 1\n";
    fs::write(bin.join("tmux"), script).unwrap();
    fs::set_permissions(bin.join("tmux"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    env.set("PATH", &path);
    assert_snapshot!(env.snapshot(&["crew", "start", "max"]), @"
    exit code: 5
    --- stderr
    error: gt cannot use this tmux
    caused by: tmux 2.9a is too old, 3.2 is needed; it lacks: client flags for control mode, environment for a new session (new-session -e), remain-on-exit failed, format subscriptions (refresh-client -B), popups
    hint: gt needs tmux 3.2 or later; `gt doctor` shows details
    ");
    assert_snapshot!(env.doctor_findings(&[]), @"
    exit code: 1
    ✗ tmux: tmux 2.9a is too old, 3.2 is needed; it lacks: client flags for control mode, environment for a new session (new-session -e), remain-on-exit failed, format subscriptions (refresh-client -B), popups
      hint: install tmux 3.2 or later
    ");
}

#[test]
fn killed_server_is_named_in_the_error() {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["crew", "start", "max"]).ok();
    env.tmux(Tmux::new("kill-server"));
    wait_until("the processes are gone", crate::env::TIMEOUT, || {
        processes_of(env.home()).is_empty().then_some(())
    });
    assert_eq!(env.running(), Vec::<String>::new());
    env.gt(&["peek", "gastown/max"]).fails(3);
    env.gt(&["agents", "check"]).fails(1);
    env.gt(&["crew", "start", "max"]).ok();
    env.gt(&["agents", "check"]).ok();
}

#[test]
fn full_disk_is_reported_and_loses_nothing() {
    // A real full disk: a small tmpfs in a private mount namespace.
    let env = TestEnv::with_crew(&["max"]);
    let gt = env!("CARGO_BIN_EXE_gt");
    let script = format!(
        "mount -t tmpfs -o size=256k tmpfs \"$HOME/gt/.runtime\" || exit 99
         mount -t tmpfs -o size=64k tmpfs \"$HOME/gt/mayor\" || exit 99
         cp \"$HOME/rigs.json\" \"$HOME/gt/mayor/\"
         dd if=/dev/zero of=\"$HOME/gt/mayor/fill\" bs=1k 2>/dev/null
         '{gt}' rig park gastown; echo \"code $?\"
         cmp \"$HOME/rigs.json\" \"$HOME/gt/mayor/rigs.json\" && echo same
         ls -A \"$HOME/gt/mayor\""
    );
    fs::copy(env.town().join("mayor/rigs.json"), env.path("rigs.json")).unwrap();
    let Some(answer) = env.run_with_mounts(&script) else {
        return;
    };
    let (stdout, stderr) = (answer.stdout, answer.stderr);
    assert!(
        stdout.contains("code 1") && stdout.contains("same"),
        "{stdout}\n{stderr}"
    );
    assert!(stderr.contains("disk is full"), "{stderr}");
    assert!(!stdout.contains(".tmp"), "{stdout}");
}

#[test]
fn interrupting_a_start_of_many_leaves_nothing_half_made() {
    let names: Vec<String> = (0..12).map(|n| format!("w{n:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let env = TestEnv::with_crew(&names);
    // The slow start leaves time for the interrupt.
    let demo = "[command]\nargs = ['demo-agent', '--startup-delay', '1500']\n";
    fs::write(env.town().join("harnesses/demo.toml"), demo).unwrap();
    let child = env.spawn(&["crew", "start", "--all", "--json"]);
    wait_until("some are being started", crate::env::TIMEOUT, || {
        (!env.sessions().is_empty()).then_some(())
    });
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let started: Vec<&str> = answer
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["started"] == true)
        .map(|row| row["agent"].as_str().unwrap())
        .collect();
    assert!(started.len() < 12, "{answer}");
    assert_eq!(
        env.running(),
        started,
        "what was told to run runs, and nothing else"
    );
    if started.is_empty() {
        wait_until("no process is left", crate::env::TIMEOUT, || {
            processes_of(env.home()).is_empty().then_some(())
        });
    }
}

/// Sends INT to the process group of the command, as Ctrl-C does.
pub(crate) fn interrupt(child: &std::process::Child) {
    let group = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process_group(group, rustix::process::Signal::INT).unwrap();
}

#[test]
fn a_remote_that_never_answers_can_be_interrupted() {
    let env = TestEnv::with_town();
    // A listener that accepts connections and never answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("git://{}/x.git", silent.local_addr().unwrap());
    let child = env.spawn(&["rig", "add", "gastown", &url]);
    let _connection = silent.accept().unwrap();
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("interrupted"),
        "{output:?}"
    );
    assert!(!env.town().join("gastown").exists());
    wait_until("no git is left", crate::env::TIMEOUT, || {
        processes_of(env.home()).is_empty().then_some(())
    });
    let left: Vec<_> = fs::read_dir(env.town())
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert!(
        !left
            .iter()
            .any(|name| name.to_string_lossy().ends_with(".tmp")),
        "{left:?}"
    );
}

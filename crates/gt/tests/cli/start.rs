//! `gt start`: one agent, from its container to a ready prompt.

mod concurrent;
mod other_server;
mod rollback;

use crate::env::{TIMEOUT, TestEnv, is_alive, signal};
use gt_tmux::testing::wait_until;
use gt_tmux::{Command as Tmux, SessionName};
use insta::assert_snapshot;
use std::fs;

#[test]
fn an_agent_is_started_seen_reached_and_stopped() {
    let env = TestEnv::with_crew(&["max"]);
    assert_snapshot!(env.snapshot(&["crew", "start", "max"]), @"
    exit code: 0
    --- stdout
    ✓ gastown/crew/max [STATE] in gt-crew-max (demo, [N] s)
    ");
    let agent = env.agent("gastown/crew/max");
    assert_eq!(agent["container"], "gt-crew-max");
    assert_eq!(agent["role"], "crew");
    assert_eq!(agent["rig"], "gastown");
    assert_eq!(agent["name"], "max");
    assert_eq!(agent["harness"], "demo");
    assert_eq!(agent["health"], "healthy");
    assert_eq!(agent["attached"], false);
    assert!(
        agent["work_dir"]
            .as_str()
            .unwrap()
            .ends_with("gastown/crew/max")
    );
    env.gt(&["nudge", "gastown/max", "good morning"]).ok();
    env.wait_screen("gastown/max", "You said: good morning");
    let peeked = env.json(&["peek", "gastown/max", "-n", "3"]);
    assert_eq!(peeked["lines"].as_array().unwrap().len(), 3);
    assert_eq!(peeked["agent"], "gastown/crew/max");
    let pid = env.pid("gastown/crew/max");
    env.gt(&["stop", "gastown/max"]).ok();
    assert!(!is_alive(pid));
    assert_eq!(env.sessions(), Vec::<String>::new());
    assert!(!env.town().join(".runtime/pids/gt-crew-max.pid").exists());
    env.gt(&["stop", "gastown/max"]).fails(3);
}

#[test]
fn every_role_starts_by_the_same_path() {
    let env = TestEnv::with_rig();
    env.gt(&["crew", "add", "max"]).ok();
    env.gt(&["agent", "new", "lone"]).ok();
    let targets = [
        ("mayor", "hq-mayor"),
        ("deacon", "hq-deacon"),
        ("boot", "hq-boot"),
        ("overseer", "hq-overseer"),
        ("deacon/dogs/rex", "hq-dog-rex"),
        ("gastown/witness", "gt-witness"),
        ("gastown/refinery", "gt-refinery"),
        ("gastown/crew/max", "gt-crew-max"),
        ("gastown/polecats/Toast", "gt-Toast"),
        ("agent/lone", "agent_lone"),
        ("task/gt-abc12.1", "gt-abc12_1-az"),
    ];
    let addresses: Vec<&str> = targets.iter().map(|(address, _)| *address).collect();
    env.gt(&[&["start", "--create"], addresses.as_slice()].concat())
        .ok();
    let mut sessions = env.sessions();
    let mut expected: Vec<&str> = targets.iter().map(|(_, container)| *container).collect();
    sessions.sort();
    expected.sort_unstable();
    assert_eq!(sessions, expected);
    for (address, container) in targets {
        let agent = env.agent(address);
        assert_eq!(agent["container"], container);
        assert_eq!(agent["health"], "healthy", "{agent}");
        assert_eq!(env.format(container, "#{@gt_agent}"), address);
        // A container's name is a target, too; the tag recovers an id with dots.
        assert_eq!(env.json(&["peek", container])["agent"], address);
    }
    env.gt(&["down", "--all"]).ok();
    assert_eq!(env.sessions(), Vec::<String>::new());
}

#[test]
fn the_environment_reaches_the_process_and_the_session_table() {
    let mut env = TestEnv::with_rig();
    // The identity of the calling agent must not leak into the agent that it starts.
    env.set("GT_CREW", "caller");
    env.set("GT_POLECAT", "caller");
    env.set("CLAUDECODE", "1");
    env.gt(&[
        "start",
        "--create",
        "gastown/polecats/Toast",
        "--env",
        "EXTRA=a b;c#{pid}\n$x'\"",
        "--config-dir",
        "/cfg",
    ])
    .ok();
    let pid = env.pid("gastown/polecats/Toast");
    let environ = fs::read(format!("/proc/{pid}/environ")).unwrap();
    let process: Vec<String> = environ
        .split(|byte| *byte == 0)
        .map(|entry| String::from_utf8_lossy(entry).into_owned())
        .collect();
    let session = env.agent("gastown/polecats/Toast")["session"]
        .as_str()
        .unwrap()
        .to_owned();
    let root = env.town().canonicalize().unwrap().display().to_string();
    let socket = env.socket().display().to_string();
    let expected = [
        ("GT_ROLE", "gastown/polecats/Toast"),
        ("GT_RIG", "gastown"),
        ("GT_POLECAT", "Toast"),
        ("GT_ROOT", &root),
        ("GT_AGENT", "demo"),
        ("GT_PROCESS_NAMES", "gt"),
        ("GT_SESSION", "gt-Toast"),
        ("GT_SESSION_UUID", &session),
        ("BD_ACTOR", "gastown/polecats/Toast"),
        ("GIT_AUTHOR_NAME", "Toast"),
        ("CLAUDECODE", ""),
        ("NODE_OPTIONS", ""),
        ("GIT_CEILING_DIRECTORIES", &root),
        ("GT_TMUX_SOCKET", &socket),
        ("EXTRA", "a b;c#{pid}\n$x'\""),
    ];
    let target = SessionName::try_from("gt-Toast").unwrap();
    for (name, value) in expected {
        assert!(
            process.contains(&format!("{name}={value}")),
            "{name} in {process:?}"
        );
        let table = env.tmux(
            Tmux::new("show-environment")
                .target(target.clone())
                .arg(name),
        );
        assert_eq!(table, format!("{name}={value}"));
    }
    assert!(
        !process.iter().any(|entry| entry.starts_with("GT_CREW=")),
        "{process:?}"
    );
    let global = env.tmux(Tmux::new("show-environment").arg("-g"));
    assert!(!global.contains("GT_POLECAT"), "{global}");
}

#[test]
fn the_configuration_folder_is_passed_under_the_programs_own_name() {
    let env = TestEnv::with_crew(&["max"]);
    fs::write(
        env.town().join("harnesses/demo.toml"),
        "[env]\nconfig_dir = 'CLAUDE_CONFIG_DIR'\n",
    )
    .unwrap();
    env.gt(&["crew", "start", "max", "--config-dir", "/cfg"])
        .ok();
    let pid = env.pid("gastown/crew/max");
    let environ = fs::read(format!("/proc/{pid}/environ")).unwrap();
    assert!(
        environ
            .split(|b| *b == 0)
            .any(|e| e == b"CLAUDE_CONFIG_DIR=/cfg")
    );
}

#[test]
fn running_agent_is_a_conflict_and_a_zombie_is_replaced() {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["crew", "start", "max", "--no-auto-respawn"]).ok();
    let first = env.agent("gastown/crew/max");
    assert_snapshot!(env.snapshot(&["crew", "start", "max"]), @"
    exit code: 4
    --- stderr
    error: gastown/crew/max is running already, in gt-crew-max
    hint: `gt attach gastown/crew/max` goes there, `gt stop gastown/crew/max` ends it
    ");
    assert_eq!(env.agent("gastown/crew/max")["session"], first["session"]);

    kill(env.pid("gastown/crew/max"));
    wait_until("the death is seen", TIMEOUT, || {
        (env.agent("gastown/crew/max")["health"] == "agent_dead").then_some(())
    });
    env.gt(&["agents", "check"]).fails(1);
    env.gt(&["crew", "start", "max"]).ok();
    let second = env.agent("gastown/crew/max");
    assert_eq!(second["health"], "healthy");
    assert_ne!(second["session"], first["session"], "a session of its own");
    assert_eq!(second["container"], first["container"]);
    env.gt(&["agents", "check"]).ok();
}

#[test]
fn command_that_dies_at_once_is_reported_with_its_last_output() {
    let env = TestEnv::with_crew(&["max"]);
    for (command, code) in [
        ("echo one; echo two >&2; exit 7", "exit status 7"),
        ("exec /nowhere/x", "exit status 127"),
        ("kill -9 $$", "signal 9"),
    ] {
        let answer = env
            .gt(&["crew", "start", "max", "--command", command])
            .fails(1);
        assert!(answer.stderr.contains("ended at once"), "{}", answer.stderr);
        assert!(answer.stderr.contains(code), "{command}: {}", answer.stderr);
        assert_eq!(env.sessions(), Vec::<String>::new(), "nothing is left");
        assert!(!env.town().join(".runtime/pids/gt-crew-max.pid").exists());
    }
    // tmux may drop the last output of a process if it learns of the end before it reads, so the
    // test retries the start.
    let args = [
        "crew",
        "start",
        "max",
        "--command",
        "echo one; echo two >&2; exit 7",
    ];
    wait_until("the last words are shown", TIMEOUT, || {
        let answer = env.gt(&args).fails(1);
        (answer.stderr.contains("one") && answer.stderr.contains("two")).then_some(())
    });
}

#[test]
fn agent_that_is_never_ready_is_rolled_back_and_its_screen_shown() {
    let env = TestEnv::with_crew(&["max"]);
    let slow = "[command]\nprogram = 'sh'\nargs = ['-c', 'echo thinking; exec sleep 1000']\nsession_id = []\n[process]\nnames = ['sleep']\n";
    fs::write(env.town().join("harnesses/demo.toml"), slow).unwrap();
    let args = ["crew", "start", "max", "--ready-timeout", "0.5"];
    assert_snapshot!(env.snapshot(&args), @"
    exit code: 1
    --- stderr
    error: gastown/crew/max was not ready within [N] s
    caused by: its last lines were:
               thinking
    hint: `--ready-timeout` waits longer, `--keep-on-timeout` keeps it for inspection
    ");
    assert_eq!(env.sessions(), Vec::<String>::new());
    env.gt(&[&args[..], &["--keep-on-timeout"]].concat()).ok();
    assert_eq!(env.sessions(), ["gt-crew-max"]);
}

#[test]
fn custom_command_has_no_prompt_to_wait_for() {
    let env = TestEnv::with_crew(&["max"]);
    let answer = env
        .gt(&[
            "crew",
            "start",
            "max",
            "--command",
            "exec sleep 1000",
            "--json",
        ])
        .ok()
        .json();
    assert_eq!(answer[0]["state"], "running");
}

#[test]
fn a_failed_start_takes_back_the_worktree_it_made() {
    let env = TestEnv::with_rig();
    let args = [
        "start",
        "--create",
        "gastown/polecats/Toast",
        "--command",
        "exit 3",
    ];
    env.gt(&args).fails(1);
    assert!(!env.town().join("gastown/polecats/Toast").exists());
    let branches = env.git(
        &env.town().join("gastown/.repo.git"),
        &["branch", "--list", "polecat/*"],
    );
    assert_eq!(branches, "");
}

#[test]
fn restart_that_cannot_start_stops_nothing() {
    let env = TestEnv::with_town();
    env.gt(&["mayor", "start"]).ok();
    env.gt(&["mayor", "restart", "--harness", "claude"])
        .fails(5);
    assert_eq!(env.running(), ["mayor"]);
}

#[test]
fn an_agent_is_found_by_its_tag_when_its_roles_pattern_has_changed() {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["crew", "start", "max"]).ok();
    fs::write(
        env.town().join("roles/crew.toml"),
        "[session]\npattern = '{prefix}-c-{name}'\n",
    )
    .unwrap();
    env.gt(&["peek", "gastown/max"]).ok();
    env.gt(&["nudge", "gastown/max", "still there?"]).ok();
    env.gt(&["stop", "gastown/max"]).ok();
    assert_eq!(env.sessions(), Vec::<String>::new());
}

#[test]
fn a_start_up_dialog_is_read_and_answered() {
    let env = TestEnv::with_crew(&["max", "amy"]);
    fs::write(
        env.town().join("harnesses/demo.toml"),
        "[command]\nargs = ['demo-agent', '--trust-dialog']\n",
    )
    .unwrap();
    env.gt(&["crew", "start", "max"]).ok();
    assert_eq!(env.agent("gastown/crew/max")["health"], "healthy");
    let left = env.gt(&["crew", "start", "amy", "--no-dialogs"]).ok();
    assert_snapshot!(left.rendered(&env), @"
    exit code: 0
    --- stdout
    ✓ gastown/crew/amy waiting in gt-crew-amy (demo, [N] s)
    --- stderr
    warning: gastown/crew/amy: gastown/crew/amy asks: Do you trust the files in this folder? (~/gt/gastown/crew/amy), with the options No, exit / Yes, I trust this folder; `gt answer gastown/crew/amy` answers
    ");
    assert!(
        env.gt(&["peek", "gastown/amy"])
            .stdout
            .contains("❯ No, exit"),
        "left alone"
    );
}

#[test]
fn an_untagged_session_of_our_name_is_not_taken_over() {
    let env = TestEnv::with_crew(&["max"]);
    env.server()
        .run_private(Tmux::new("new-session").args(["-d", "-s", "gt-crew-max", "sleep 1000"]))
        .unwrap();
    assert_snapshot!(env.snapshot(&["crew", "start", "max"]), @"
    exit code: 4
    --- stderr
    error: there is a tmux session gt-crew-max that gt did not start
    hint: rename it: `tmux rename-session -t =gt-crew-max NEW-NAME`
    ");
    // A foreign session is not shown, messaged or stopped as an agent.
    assert_eq!(env.running(), Vec::<String>::new());
    env.gt(&["stop", "gt-crew-max"]).fails(3);
    env.gt(&["nudge", "gt-crew-max", "x"]).fails(3);
    env.gt(&["down", "--all"]).ok();
    assert_eq!(env.sessions(), ["gt-crew-max"]);
    assert_snapshot!(env.doctor_findings(&[]), @"
    exit code: 0
    ! agents: the tmux session gt-crew-max is named like gastown/crew/max but was not started by gt
      hint: gt leaves it alone; rename it if it is yours
    ");
}

#[test]
fn two_towns_on_one_server_do_not_touch_each_other() {
    let env = TestEnv::with_town();
    let other = env.path("other");
    let other = other.to_str().unwrap();
    env.gt(&["init", other, "--harness", "demo", "--sandbox", "none"])
        .ok();
    env.gt(&["mayor", "start"]).ok();
    assert_snapshot!(env.snapshot(&["--town", other, "mayor", "start"]), @"
    exit code: 4
    --- stderr
    error: the container hq-mayor belongs to the town at ~/gt
    hint: give this town a tmux server of its own: `socket` under [tmux] in town.toml
    ");
    assert_eq!(
        env.gt(&["--town", other, "agents", "--json"])
            .ok()
            .json()
            .as_array()
            .unwrap()
            .len(),
        0
    );
    env.gt(&["--town", other, "mayor", "stop"]).fails(3);
    env.gt(&["--town", other, "peek", "mayor"]).fails(4);
    env.gt(&["--town", other, "down", "--all"]).ok();
    assert_eq!(env.running(), ["mayor"]);
}

#[test]
fn a_session_id_or_its_beginning_is_a_target() {
    let env = TestEnv::with_crew(&["max", "amy"]);
    env.gt(&["crew", "start", "--all"]).ok();
    let session = env.agent("gastown/crew/amy")["session"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(env.json(&["peek", &session])["agent"], "gastown/crew/amy");
    // Ids made at the same moment share a prefix; a longer prefix is unique.
    assert_eq!(
        env.json(&["peek", &session[..30]])["agent"],
        "gastown/crew/amy"
    );
    env.gt(&["peek", "ffffffff"]).fails(3);
}

pub(crate) fn kill(pid: u32) {
    signal(pid, rustix::process::Signal::KILL);
}

#[test]
fn a_failed_start_leaves_the_users_own_pane_alone() {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["crew", "start", "max"]).ok();
    let name = SessionName::try_from("gt-crew-max").unwrap();
    env.tmux(
        Tmux::new("split-window")
            .target(name)
            .arg("exec sleep 7001"),
    );
    env.gt(&["stop", "gastown/max"]).ok();
    let pane = || env.format("gt-crew-max", "#{pane_pid}").parse().unwrap();
    let users: u32 = pane();
    env.gt(&["peek", "gastown/max"]).fails(3);
    env.gt(&["crew", "start", "max", "--command", "exit 3"])
        .fails(1);
    fs::write(env.town().join("roles/crew.toml"), "[env]\n'A=B' = 'x'\n").unwrap();
    env.gt(&["crew", "start", "max"]).fails(2);
    assert!(is_alive(users));
    assert_eq!(pane(), users);
}

#[test]
fn a_rig_is_fetched_once_for_all_that_start() {
    use std::os::unix::fs::PermissionsExt;
    let mut env = TestEnv::with_crew(&["a", "b", "c"]);
    // A git wrapper that logs its calls.
    let real = std::env::split_paths(&std::env::var_os("PATH").unwrap())
        .map(|dir| dir.join("git"))
        .find(|path| path.is_file())
        .unwrap();
    let bin = env.path("bin");
    let calls = env.path("git-calls");
    fs::create_dir(&bin).unwrap();
    let script = format!(
        "#!/bin/sh\necho \"$*\" >>'{}'\nexec '{}' \"$@\"\n",
        calls.display(),
        real.display()
    );
    fs::write(bin.join("git"), script).unwrap();
    fs::set_permissions(bin.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    env.set("PATH", &path);
    env.gt(&["crew", "start", "--all"]).ok();
    let calls = fs::read_to_string(calls).unwrap();
    assert_eq!(calls.matches(" fetch ").count(), 1, "{calls}");
}

#[test]
fn start_prints_the_agent() {
    let env = TestEnv::with_crew(&["max"]);
    assert_snapshot!(env.snapshot(&["start", "gastown/max", "--no-prompt"]), @"
    exit code: 0
    --- stdout
    ✓ gastown/crew/max [STATE] in gt-crew-max (demo, [N] s)
    ");
    assert_snapshot!(env.snapshot(&["start", "gastown/max"]), @"
    exit code: 4
    --- stderr
    error: gastown/crew/max is running already, in gt-crew-max
    hint: `gt attach gastown/crew/max` goes there, `gt stop gastown/crew/max` ends it
    ");
    assert_snapshot!(env.snapshot(&["start", "gastown/crew/zoe"]), @"
    exit code: 3
    --- stderr
    error: gastown/crew/zoe does not exist: ~/gt/gastown/crew/zoe is not a folder
    hint: `gt crew add gastown/zoe` makes it
    ");
    assert_snapshot!(env.snapshot(&["start", "gastown/max", "--harness", "unknown"]), @r#"
    exit code: 3
    --- stderr
    error: there is no harness called "unknown"
    hint: `gt harness list` shows the available ones
    hint: a town adds its own in harnesses/unknown.toml
    "#);
    assert_snapshot!(env.snapshot(&["start", "gastown/max", "--harness", "claud"]), @r#"
    exit code: 3
    --- stderr
    error: there is no harness called "claud"
    hint: did you mean claude?
    hint: `gt harness list` shows the available ones
    hint: a town adds its own in harnesses/claud.toml
    "#);
}

#[test]
fn model_is_passed_to_the_program_recorded_and_kept_by_a_handoff() {
    let env = TestEnv::with_town();
    let role = env.town().join("roles/mayor.toml");
    fs::create_dir_all(role.parent().unwrap()).unwrap();
    fs::write(&role, "[session]\nmodel = 'of-role'\n").unwrap();
    env.gt(&["start", "mayor", "--no-prompt"]).ok();
    assert_eq!(env.agent("mayor")["model"], "of-role");
    env.gt(&["stop", "mayor"]).ok();
    env.gt(&["start", "mayor", "--no-prompt", "--model", "big"])
        .ok();
    assert_eq!(env.agent("mayor")["model"], "big");
    env.gt(&["nudge", "mayor", "a message"]).ok();
    env.gt(&["wait", "mayor"]).ok();
    let costs = env.json(&["costs", "--by", "model"]);
    assert_eq!(costs["rows"][0]["model"], "big", "{costs}");
    let before = env.agent("mayor")["session"].clone();
    env.gt(&["handoff", "mayor", "--force"]).ok();
    let after = wait_until("the next session runs", TIMEOUT, || {
        Some(env.agent("mayor")).filter(|it| it["session"] != before && it["pid"].is_u64())
    });
    assert_eq!(after["model"], "big", "{after}");
    let record = env.json(&["sessions", "show", after["session"].as_str().unwrap()]);
    assert_eq!(record["model"], "big", "{record}");
}

#[test]
fn model_that_the_program_cannot_choose_is_refused() {
    let env = TestEnv::with_town();
    let harness = env.town().join("harnesses/plain.toml");
    fs::create_dir_all(harness.parent().unwrap()).unwrap();
    fs::write(&harness, "[command]\nprogram = 'sh'\n").unwrap();
    let refused = env.gt(&["start", "mayor", "--harness", "plain", "--model", "big"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert_snapshot!(refused.rendered(&env), @"
    exit code: 2
    --- stderr
    error: plain has no option to choose a model
    hint: choose it in the settings of plain, or add `model_args` under [command] in harnesses/plain.toml
    hint: leave out `--model`, and `model` of the role, project and harness
    ");
    assert_snapshot!(env.snapshot(&["start", "mayor", "--model=--dangerous"]), @r#"
    exit code: 2
    --- stderr
    error: "--dangerous" is not a valid model name
    "#);
    assert_eq!(env.json(&["agents"]), serde_json::json!([]));
}

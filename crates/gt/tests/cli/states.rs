//! What an agent is doing, by which witness: pauses, ends of work, and screens.

use crate::env::{PATIENCE, TestEnv};
use gt_core::Identity;
use gt_tmux::Command as Tmux;
use gt_tmux::testing::wait_until;
use gt_town::{Surroundings, Town, signal};
use std::io::Write;
use std::process::Stdio;

const MAX: &str = "gastown/crew/max";
const CONTAINER: &str = "gt-crew-max";

/// A crew worker that runs and stands at its prompt.
fn stage() -> TestEnv {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["crew", "start", "max", "--no-prompt"]).ok();
    env.gt(&["wait", MAX, "--timeout", "30"]).ok();
    env
}

/// The town as the engine has it.
fn engine(env: &TestEnv) -> (Town, Identity) {
    let socket = env.socket().display().to_string();
    let around = Surroundings {
        env: [("GT_TMUX_SOCKET".to_owned(), socket)].into(),
        gt: env!("CARGO_BIN_EXE_gt").into(),
        current_dir: env.town(),
        ..Surroundings::default()
    };
    let town = Town::open(&env.town(), around).unwrap();
    let max = Identity::from_address(MAX, town.registry()).unwrap();
    (town, max)
}

fn state(env: &TestEnv) -> String {
    env.agent(MAX)["state"].as_str().unwrap().to_owned()
}

#[track_caller]
fn await_state(env: &TestEnv, wanted: &str) -> serde_json::Value {
    wait_until(wanted, PATIENCE, || {
        let agent = env.agent(MAX);
        (agent["state"] == wanted).then_some(agent)
    })
}

/// What a hook of the agent's program would say.
#[track_caller]
fn hook(env: &TestEnv, event: &str, report: &str) {
    let mut command = env.gt_command(&["signal", event, "--session", CONTAINER, "--strict"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(report.as_bytes()).unwrap();
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

fn type_prompt(env: &TestEnv, text: &str) {
    let keys = |keys: &[&str]| {
        let target = gt_tmux::SessionName::try_from(CONTAINER).unwrap();
        let words = keys.iter().map(|key| (*key).to_owned());
        env.tmux(Tmux::new("send-keys").target(target).args(words));
    };
    keys(&["-l", text]);
    keys(&["Enter"]);
}

#[test]
fn a_pause_outlasts_its_own_interrupt_and_ends_with_a_prompt() {
    let env = stage();
    let (town, max) = engine(&env);
    env.gt(&["nudge", MAX, "[[delay=60]]"]).ok();
    await_state(&env, "busy");
    let target = gt_tmux::SessionName::try_from(CONTAINER).unwrap();
    env.tmux(Tmux::new("send-keys").target(target).arg("Escape"));
    let pause = || signal::mark_paused(&town, &max, "for \"lunch\"; #{pid} $(x) 'y'").unwrap();
    // What programs report when a turn is interrupted, and of what it had begun.
    let bash = r#"{"tool_name": "Bash", "tool_input": {"command": "ls"}}"#;
    for (event, report) in [
        ("stop", ""),
        ("interrupt", ""),
        ("tool-end", bash),
        ("tool-start", bash),
        ("permission", bash),
        ("notification", r#"{"notification_type": "idle_prompt"}"#),
    ] {
        // What a tool does counts again after a while, which a slow machine may take.
        pause();
        hook(&env, event, report);
        assert_eq!(state(&env), "paused", "after {event}");
    }
    let agent = env.agent(MAX);
    assert_eq!(agent["state_source"], "gt");
    assert_eq!(agent["state_reason"], "for \"lunch\"; #{pid} $(x) 'y'");
    assert!(agent["state_since"].is_string(), "{agent}");
    assert!(env.gt(&["agents"]).ok().stdout.contains("paused"));
    // A message would set it going: it waits.
    let sent = env.json(&["nudge", MAX, "later"]);
    assert_eq!(sent["delivered"], "queue", "{sent}");
    assert_eq!(sent["reason"], "it is paused", "{sent}");
    hook(&env, "stop", "");
    assert_eq!(state(&env), "paused");
    env.gt(&["wait", MAX, "--timeout", "30"]).ok();
    type_prompt(&env, "[[delay=60]]");
    await_state(&env, "busy");
}

#[test]
fn what_a_tool_does_long_after_a_pause_ends_it_and_so_does_death() {
    let env = stage();
    let (town, max) = engine(&env);
    signal::mark_paused(&town, &max, "by hand").unwrap();
    let long_ago = (jiff::Timestamp::now().as_second() - 60).to_string();
    let target = || gt_tmux::SessionName::try_from(CONTAINER).unwrap();
    let backdate = || {
        let set = Tmux::new("set-option").target(target());
        env.tmux(set.args(["@gt_state_since", &long_ago]));
    };
    backdate();
    hook(&env, "stop", "");
    assert_eq!(state(&env), "paused");
    hook(&env, "tool-start", r#"{"tool_name": "Bash"}"#);
    let tags = env.format(CONTAINER, "#{@gt_state} #{@gt_state_source}");
    assert_eq!(tags, "busy hook");
    signal::mark_paused(&town, &max, "by hand").unwrap();
    crate::env::signal(env.pid(MAX), rustix::process::Signal::KILL);
    await_state(&env, "crashed");
}

#[test]
fn a_pause_is_taken_back_and_nothing_else_is() {
    let env = stage();
    let (town, max) = engine(&env);
    let tag = || env.format(CONTAINER, "#{@gt_state}");
    signal::mark_paused(&town, &max, "by hand").unwrap();
    assert_eq!(tag(), "paused");
    signal::clear_paused(&town, &max).unwrap();
    assert_eq!(tag(), "idle");
    hook(&env, "prompt", r#"{"prompt": "x"}"#);
    signal::clear_paused(&town, &max).unwrap();
    assert_eq!(tag(), "busy");
    let nobody = Identity::from_address("gastown/crew/nobody", town.registry()).unwrap();
    assert!(signal::mark_paused(&town, &nobody, "x").is_err());
    let nowhere = ["signal", "stop", "--session", "gt-crew-nobody", "--strict"];
    assert_ne!(env.gt(&nowhere).code, 0);
}

#[test]
fn one_that_says_it_is_done_stays_so_until_the_next_prompt() {
    let env = stage();
    hook(&env, "prompt", r#"{"prompt": "x"}"#);
    hook(&env, "done", r#"{"reason": "all tests pass"}"#);
    // The rest of the turn in which it said so.
    hook(&env, "tool-end", r#"{"tool_name": "Bash"}"#);
    hook(&env, "stop", "");
    let agent = env.agent(MAX);
    assert_eq!(
        (
            &agent["state"],
            &agent["state_source"],
            &agent["state_reason"]
        ),
        (&"done".into(), &"hook".into(), &"all tests pass".into())
    );
    let status = env.json(&["status"]);
    assert_eq!(status["states"]["done"], 1, "{status}");
    assert_eq!(status["agents"][0]["state_reason"], "all tests pass");
    let line = env.gt(&["status-line", "--session", CONTAINER]).ok().stdout;
    assert_eq!(line.trim(), "done ✓1");
    env.gt(&["nudge", MAX, "[[delay=60]]"]).ok();
    await_state(&env, "busy");
}

#[test]
fn handing_in_makes_one_that_stays_done() {
    let env = stage();
    let folder = env.town().join("gastown/crew/max");
    let item = env.json(&["work", "create", "Something", "--rig", "gastown"]);
    let item = item["id"].as_str().unwrap();
    env.gt(&["hook", item, "--agent", MAX]).ok();
    std::fs::write(folder.join("new"), "x\n").unwrap();
    env.git(&folder, &["add", "."]);
    env.git(&folder, &["commit", "--quiet", "-m", "Something"]);
    env.gt(&["done", "--agent", MAX]).ok();
    hook(&env, "stop", "");
    let agent = env.agent(MAX);
    assert_eq!(agent["state"], "done", "{agent}");
    assert_eq!(agent["state_reason"], format!("has handed in {item}"));
}

/// A program that gt knows nothing of: a script as a harness without hooks, marks and title.
fn unknown_program(env: &TestEnv, script: &str, more: &str) {
    use std::os::unix::fs::PermissionsExt;
    let program = env.path("unknown");
    std::fs::write(&program, format!("#!/bin/sh\n{script}\nexec sleep 600\n")).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let preset = format!(
        "[command]\nprogram = '{}'\n[process]\nnames = ['sleep', 'sh', 'unknown']\n{more}",
        program.display()
    );
    std::fs::write(env.town().join("harnesses/unknown.toml"), preset).unwrap();
    env.gt(&[
        "crew",
        "start",
        "max",
        "--no-prompt",
        "--harness",
        "unknown",
    ])
    .ok();
}

#[test]
fn an_unknown_program_is_read_by_its_screen() {
    let env = TestEnv::with_crew(&["max"]);
    unknown_program(&env, "echo 'Do you want to continue? [y/n]'", "");
    let agent = await_state(&env, "waiting");
    assert_eq!(agent["state_source"], "screen");
    assert_eq!(
        agent["state_reason"],
        "asks: Do you want to continue? [y/n]"
    );
    let status = env.json(&["status"]);
    assert_eq!(status["agents"][0]["state"], "waiting", "{status}");
}

#[test]
fn what_only_a_screen_tells_has_a_beginning_for_all_who_ask() {
    let env = TestEnv::with_crew(&["max"]);
    // It asks, and works without end once somebody has answered.
    let script = "echo 'Go on? [y/n]'; read answer; while :; do echo working; sleep 0.2; done";
    unknown_program(&env, script, "");
    let since = |agent: &serde_json::Value| {
        let time = agent.as_str().unwrap_or_else(|| panic!("no time: {agent}"));
        time.parse::<jiff::Timestamp>().unwrap().as_second()
    };
    let printed = || env.format(CONTAINER, "#{window_activity}").parse::<i64>();
    let now = || jiff::Timestamp::now().as_second();
    let asks = await_state(&env, "waiting");
    assert_eq!(since(&asks["state_since"]), printed().unwrap());
    let before = now();
    wait_until("time passes", PATIENCE, || {
        (now() > before + 1).then_some(())
    });
    let typed = now();
    env.gt(&["keys", MAX, "y", "Enter"]).ok();
    let busy = since(&await_state(&env, "busy")["state_since"]);
    assert!((typed..=now()).contains(&busy), "{typed} {busy}");
    // It began once, however often it prints.
    wait_until("it prints on", PATIENCE, || {
        (printed().unwrap() > busy + 1).then_some(())
    });
    assert_eq!(since(&env.agent(MAX)["state_since"]), busy);
    // Whoever stays and looks says the same.
    let mut watch = env.spawn(&["watch", "--json", "--first"]);
    let mut line = String::new();
    let stdout = watch.stdout.take().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut line).unwrap();
    crate::env::signal(watch.id(), rustix::process::Signal::TERM);
    watch.wait().unwrap();
    let first: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(
        (&first["state"], since(&first["since"])),
        (&"busy".into(), busy)
    );
}

#[test]
fn a_harness_and_a_project_add_patterns() {
    let env = TestEnv::with_crew(&["max"]);
    let pattern = "[[states.patterns]]\nstate = 'error'\nshows = 'kaputt'\n";
    let said = "echo 'Task completed'; echo kaputt; echo FERTIG";
    unknown_program(&env, said, &format!("[states]\nbuiltin = false\n{pattern}"));
    let agent = await_state(&env, "error");
    assert_eq!(agent["state_reason"], "kaputt");
    let project = env.town().join("gastown/crew/max/.gt.toml");
    let pattern = "[[states.patterns]]\nstate = 'done'\nshows = 'fertig'\nany_case = true\n";
    std::fs::write(&project, format!("{pattern}priority = 99\n")).unwrap();
    let agent = await_state(&env, "done");
    assert_eq!(agent["state_reason"], "FERTIG");
    // The same by hand.
    let screen = env.path("screen");
    std::fs::write(&screen, "Task completed\nfertig\n").unwrap();
    let screen = screen.to_str().unwrap();
    let folder = project.parent().unwrap().to_str().unwrap();
    let classify = |more: &[&str]| {
        let words = ["harness", "classify", "unknown", screen];
        let town = env.town();
        let town = ["--town", town.to_str().unwrap()];
        env.json(&[&words, more, &town].concat())["rule"].clone()
    };
    assert_eq!(classify(&["--project", folder]), "pattern.done");
    assert_eq!(classify(&[]), "none");
}

#[test]
fn a_projects_pattern_counts_for_a_program_that_is_known_well() {
    let env = stage();
    let project = env.town().join("gastown/crew/max/.gt.toml");
    let pattern = "[[states.patterns]]\nstate = 'done'\nshows = 'All tests pass. Finished.'\n";
    std::fs::write(project, pattern).unwrap();
    env.gt(&[
        "nudge",
        MAX,
        "[[text=I am at it. All tests pass. Finished.]]",
    ])
    .ok();
    let agent = await_state(&env, "done");
    assert_eq!(agent["state_source"], "screen");
    // What the table has says nothing here.
    env.gt(&[
        "nudge",
        MAX,
        "[[text=Error: ENOENT. Do you want to? Done.]]",
    ])
    .ok();
    env.wait_screen(MAX, "ENOENT");
    await_state(&env, "idle");
}

#[test]
fn a_dialog_says_what_is_asked_where_the_hook_does_not() {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["crew", "start", "max", "--no-prompt", "--ask-permissions"])
        .ok();
    env.gt(&["wait", MAX, "--timeout", "30"]).ok();
    env.gt(&["nudge", MAX, "[[tool=rm -rf build]]"]).ok();
    env.gt(&["wait", MAX, "--until", "waiting", "--timeout", "30"])
        .ok();
    let asks = r#"{"notification_type": "permission_prompt", "message": "demo needs you"}"#;
    hook(&env, "notification", asks);
    let agent = await_state(&env, "waiting");
    let reason = agent["state_reason"].as_str().unwrap();
    assert!(reason.starts_with("asks: "), "{reason}");
    assert!(reason.contains("rm -rf build"), "{reason}");
}

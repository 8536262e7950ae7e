//! The state of an agent and its source: pauses, ends of work, and screens.

use crate::env::{TIMEOUT, TestEnv};
use gt_core::Identity;
use gt_tmux::Command as Tmux;
use gt_tmux::testing::wait_until;
use gt_town::messaging::signal;
use gt_town::{Surroundings, Town};
use insta::assert_snapshot;
use std::io::Write;
use std::process::Stdio;

const MAX: &str = "gastown/crew/max";
const CONTAINER: &str = "gt-crew-max";

/// Makes a running crew worker that is at its prompt.
fn stage() -> TestEnv {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["crew", "start", "max", "--no-prompt"]).ok();
    env.gt(&["wait", MAX, "--timeout", "30"]).ok();
    env
}

/// Opens the town in process, through the engine.
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
    wait_until(wanted, TIMEOUT, || {
        let agent = env.agent(MAX);
        (agent["state"] == wanted).then_some(agent)
    })
}

/// Reports an event as a hook of the agent's program would.
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
    // The program reports its prompt before it accepts a key, so none of its own hooks follow.
    env.wait_screen(MAX, "Interrupted");
    let pause = || signal::mark_paused(&town, &max, "for \"lunch\"; #{pid} $(x) 'y'").unwrap();
    // Events that programs report for an interrupted turn and for the tools that it had begun.
    let bash = r#"{"tool_name": "Bash", "tool_input": {"command": "ls"}}"#;
    for (event, report) in [
        ("stop", ""),
        ("interrupt", ""),
        ("tool-end", bash),
        ("tool-start", bash),
        ("permission", bash),
        ("notification", r#"{"notification_type": "idle_prompt"}"#),
    ] {
        // Tool events count again after a while, so each event gets a fresh pause, however slow the
        // machine is.
        pause();
        hook(&env, event, report);
        assert_eq!(state(&env), "paused", "after {event}");
    }
    let agent = env.agent(MAX);
    assert_eq!(agent["state_source"], "gt");
    assert_eq!(agent["state_reason"], "for \"lunch\"; #{pid} $(x) 'y'");
    assert!(agent["state_since"].is_string(), "{agent}");
    assert_snapshot!(env.snapshot(&["agents"]), @r#"
        exit code: 0
        --- stdout
        AGENT  STATE  SINCE  WHAT
        gastown/crew/max  paused !  [N]  for "lunch"; #{pid} $(x) 'y'
        ! no permission prompts and no sandbox: `gt doctor`
        "#);
    // A message would end the pause, so it is queued.
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
fn later_tool_use_or_death_ends_a_pause() {
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
fn only_a_pause_is_taken_back() {
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
fn done_agent_stays_done_until_the_next_prompt() {
    let env = stage();
    hook(&env, "prompt", r#"{"prompt": "x"}"#);
    hook(&env, "done", r#"{"reason": "all tests pass"}"#);
    // Later events of the same turn do not change the state.
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
fn submitting_work_makes_a_remaining_agent_done() {
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

/// Makes a harness without hooks, marks and title from a script.
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
fn state_read_from_a_screen_has_one_start_time() {
    let env = TestEnv::with_crew(&["max"]);
    // The program asks, and prints forever after an answer.
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
    wait_until("time passes", TIMEOUT, || {
        (now() > before + 1).then_some(())
    });
    let typed = now();
    env.gt(&["keys", MAX, "y", "Enter"]).ok();
    let busy = since(&await_state(&env, "busy")["state_since"]);
    assert!((typed..=now()).contains(&busy), "{typed} {busy}");
    // The state began once, however much the program prints.
    wait_until("it prints on", TIMEOUT, || {
        (printed().unwrap() > busy + 1).then_some(())
    });
    assert_eq!(since(&env.agent(MAX)["state_since"]), busy);
    // `gt watch` reports the same time.
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
    // `gt harness classify` gives the same result.
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
    // The built-in patterns do not apply to a harness that describes its live area.
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
fn question_is_read_from_the_dialog_if_the_hook_has_none() {
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

#[test]
fn ask_permissions_fails_for_a_program_that_cannot_ask() {
    let env = TestEnv::with_crew(&["max"]);
    let harnesses = env.town().join("harnesses");
    std::fs::create_dir_all(&harnesses).unwrap();
    std::fs::write(
        harnesses.join("demo.toml"),
        "[command]\ncannot_ask = true\n",
    )
    .unwrap();
    let refused = env.gt(&["crew", "start", "max", "--ask-permissions"]);
    let told = refused.fails(2).stderr;
    assert!(
        told.contains("Demo agent never asks for permission"),
        "{told}"
    );
    assert!(told.contains("without `--ask-permissions`"), "{told}");
    assert_eq!(env.running(), Vec::<String>::new());
    // With a role that wants permissions the agent starts, with a warning.
    let role = env.town().join("roles/crew.toml");
    std::fs::write(role, "[start]\nskip_permissions = false\n").unwrap();
    assert_snapshot!(env.snapshot(&["crew", "start", "max"]), @"
    exit code: 0
    --- stdout
    ✓ gastown/crew/max [STATE] in gt-crew-max (demo, [N] s)
    --- stderr
    warning: gastown/crew/max: Demo agent runs every command without asking
    ");
    // A custom command line is not the preset's program.
    env.gt(&["stop", MAX, "--force"]).ok();
    env.gt(&[
        "crew",
        "start",
        "max",
        "--ask-permissions",
        "--command",
        "sleep 100",
    ])
    .ok();
}

const IDLE_REMINDER: &str = r#"{"notification_type": "idle_prompt", "message": "waits"}"#;

#[test]
fn failed_turn_stays_error_until_the_next_prompt() {
    let env = stage();
    let report = r#"{"error": "unknown", "last_assistant_message": "API Error: 400 bad request"}"#;
    hook(&env, "StopFailure", report);
    hook(&env, "Notification", IDLE_REMINDER);
    let agent = env.agent(MAX);
    assert_eq!(agent["state"], "error");
    assert_eq!(agent["state_reason"], "API Error: 400 bad request");
    assert_eq!(agent["health"], "turn_failed");
    assert_snapshot!(env.snapshot(&["agents", "check"]), @"
    exit code: 1
    --- stdout
    CONTAINER  HEALTH  STATE  REASON
    gt-crew-max  turn failed  error  API Error: 400 bad request
    0 of 1 are healthy.
    ");
    hook(&env, "UserPromptSubmit", r#"{"prompt": "go on"}"#);
    assert_ne!(state(&env), "error");
    hook(&env, "Stop", "{}");
    assert_eq!(env.agent(MAX)["health"], "healthy");
}

#[test]
fn usage_limit_has_its_reset_time_and_its_own_event() {
    let env = stage();
    let day = jiff::Zoned::now().with_time_zone(jiff::tz::TimeZone::UTC);
    let day = day.saturating_add(jiff::Span::new().days(2));
    let message = day.strftime("You've hit your limit · resets %b %-d, 4:38am (UTC)");
    let message = message.to_string();
    let report = format!(r#"{{"error": "rate_limit", "last_assistant_message": "{message}"}}"#);
    hook(&env, "UserPromptSubmit", r#"{"prompt": "go on"}"#);
    hook(&env, "StopFailure", &report);
    hook(&env, "Notification", IDLE_REMINDER);
    let agent = env.agent(MAX);
    assert_eq!(agent["state"], "limited");
    assert_eq!(agent["state_reason"], message);
    let resets_at = agent["resets_at"].as_str().unwrap();
    assert_eq!(resets_at, day.strftime("%Y-%m-%dT04:38:00Z").to_string());
    assert_eq!(agent["continues"], false);
    assert_eq!(agent["health"], "limited");
    let events = env.json(&["events", "--type", "usage_limit"]);
    assert_eq!(events.as_array().unwrap().len(), 1, "{events}");
    assert_snapshot!(env.snapshot(&["status-line"]), @"
    exit code: 0
    --- stdout
    ◷1
    ");
    let status = env.gt(&["status"]).ok().stdout;
    assert_snapshot!(env.masked(&status), @r"
        gt at ~/gt (tmux socket: ~/s)
          gastown (gt): 1 running
        Agents: 1 limited.

        AGENT  STATE  SINCE  WHAT
        gastown/crew/max  limited  [N]  limited until [TIME] [TIME]

        Needs attention:
          ! gastown/crew/max: limited: `gt peek gastown/crew/max`
        ");
    assert_eq!(env.json(&["status"])["running"], 1, "it lives");
}

#[test]
fn background_tasks_are_shown_beside_an_idle_agent() {
    let env = stage();
    hook(&env, "UserPromptSubmit", r#"{"prompt": "go on"}"#);
    hook(&env, "Stop", r#"{"background_tasks": [{"id": "b1"}]}"#);
    hook(&env, "Notification", IDLE_REMINDER);
    let agent = env.agent(MAX);
    assert_eq!(
        (&agent["state"], &agent["background"]),
        (&"idle".into(), &1.into())
    );
    for command in [&["agents"][..], &["agents", "check"]] {
        let shown = env.gt(command).ok().stdout;
        assert!(shown.contains("idle (1 background task)"), "{shown}");
    }
    env.gt(&["wait", MAX, "--timeout", "30"]).ok();
    hook(&env, "UserPromptSubmit", r#"{"prompt": "go on"}"#);
    assert!(env.agent(MAX)["background"].is_null());
    hook(&env, "Stop", "{}");
    assert!(env.agent(MAX)["background"].is_null());
}

#[test]
fn session_that_begins_with_a_prompt_is_busy_until_the_prompt_is_reported() {
    let env = stage();
    let begin = r#"{"source": "startup"}"#;
    let target = gt_tmux::SessionName::try_from(CONTAINER).unwrap();
    let pending = Tmux::new("set-option").target(target);
    env.tmux(pending.args(["@gt_first_prompt", "1"]));
    hook(&env, "SessionStart", begin);
    let agent = env.agent(MAX);
    assert_eq!(agent["state"], "busy");
    assert_eq!(agent["state_reason"], "takes its first prompt");
    hook(&env, "SessionStart", r#"{"source": "clear"}"#);
    assert_eq!(state(&env), "idle");
    hook(&env, "UserPromptSubmit", r#"{"prompt": "go on"}"#);
    hook(&env, "Stop", "{}");
    // The prompt was reported, so the next session begins without one.
    hook(&env, "SessionStart", begin);
    assert_eq!(state(&env), "idle");
}

#[test]
fn early_end_of_a_program_gives_the_hint_of_its_preset() {
    let env = TestEnv::with_crew(&["max"]);
    // tmux may drop the last output of a program that ends. This one ends after tmux has answered,
    // so that its line was read.
    let preset = "[command]\nprogram = 'sh'\nargs = ['-c', 'echo cannot be used with root; \
                  stty -icanon -echo; printf \"\\033[6n\"; head -c 1 >/dev/null; exit 1']\n\
                  [screen]\nready = ['^a prompt that never appears$']\n\
                  [[failures]]\nshows = ['be used with root']\nhint = 'set THIS=1'\n";
    std::fs::write(env.town().join("harnesses/early.toml"), preset).unwrap();
    let start = ["crew", "start", "max", "--no-prompt", "--harness", "early"];
    let told = env.gt(&start);
    assert_ne!(told.code, 0);
    let told = told.stderr;
    assert!(told.contains("set THIS=1"), "{told}");
    assert!(!told.contains("by hand"), "{told}");
}

/// Returns the command line of an agent's process.
fn words_of(env: &TestEnv, agent: &str) -> String {
    let line = std::fs::read(format!("/proc/{}/cmdline", env.pid(agent))).unwrap();
    String::from_utf8_lossy(&line).replace('\0', " ")
}

#[test]
fn ask_permissions_counts_for_sling_and_task_start() {
    const SKIPS: &str = "--dangerously-skip-permissions";
    let env = TestEnv::with_crew(&["max"]);
    std::fs::write(
        env.town().join("roles/task.toml"),
        "[start]\nskip_permissions = true\n",
    )
    .unwrap();
    let item = |title: &str| {
        let made = env.json(&["work", "create", title, "--rig", "gastown"]);
        made["id"].as_str().unwrap().to_owned()
    };
    for (options, skips) in [(&[][..], true), (&["--ask-permissions"], false)] {
        let id = item("sling it");
        let slung = env.json(&[&["sling", &id], options].concat());
        let words = words_of(&env, slung["agent"].as_str().unwrap());
        assert_eq!(words.contains(SKIPS), skips, "{words}");
        let id = item("start it");
        env.gt(&[&["task", "start", &id, "--no-attach"], options].concat())
            .ok();
        let task = env.json(&["task", "show", &id]);
        let words = words_of(&env, task["agent"].as_str().unwrap());
        assert_eq!(words.contains(SKIPS), skips, "{words}");
    }
}

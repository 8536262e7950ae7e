//! Notifications: one per event, whichever process sees it, and no text is executed.

mod desktop;

use crate::env::{TIMEOUT, TestEnv, processes_of, signal};
use gt_tmux::testing::wait_until;
use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::process::{Child, Stdio};

/// Configures a notification command that appends one line per notice, in a single write.
pub(crate) fn with_notes(env: &TestEnv, more: &str) {
    let notes = env.path("notes");
    let line = r#"printf '%s\n' "$GT_NOTIFY_EVENT $GT_NOTIFY_AGENT: $GT_NOTIFY_REASON [$GT_NOTIFY_ITEM] [$GT_NOTIFY_TITLE]""#;
    let path = env.town().join("town.toml");
    let mut text = fs::read_to_string(&path).unwrap();
    text += &format!(
        "\n[notify]\ncommand = '''{line} >> {}'''\n{more}\n",
        notes.display()
    );
    fs::write(path, text).unwrap();
}

/// Waits until no process is delivering a notice.
fn wait_until_told(env: &TestEnv) {
    let is_telling = |pid: &u32| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words = String::from_utf8_lossy(&words).replace('\0', " ");
        words.contains(" internal deliver-notice") || words.contains("GT_NOTIFY")
    };
    wait_until("all is told", TIMEOUT, || {
        (!processes_of(env.home()).iter().any(is_telling)).then_some(())
    });
}

/// Returns the delivered notices, after all deliveries have finished.
pub(crate) fn notes(env: &TestEnv) -> Vec<String> {
    wait_until_told(env);
    let text = fs::read_to_string(env.path("notes")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[track_caller]
fn wait_for_notes(env: &TestEnv, count: usize) -> Vec<String> {
    wait_until(&format!("{count} notes"), TIMEOUT, || {
        Some(notes(env)).filter(|notes| notes.len() >= count)
    })
}

pub(crate) fn spawn_hook(env: &TestEnv, event: &str, report: &Value) -> Child {
    let words = ["signal", event, "--session", "hq-mayor", "--strict"];
    let mut command = env.gt_command(&words);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(report.to_string().as_bytes()).unwrap();
    child
}

pub(crate) fn hook(env: &TestEnv, event: &str, report: &Value) {
    assert!(spawn_hook(env, event, report).wait().unwrap().success());
}

pub(crate) fn bash(command: &str) -> Value {
    json!({"tool_name": "Bash", "tool_input": {"command": command}})
}

#[test]
fn event_is_notified_once_by_concurrent_hooks() {
    let env = TestEnv::with_town();
    with_notes(&env, "");
    env.gt(&["start", "mayor", "--no-prompt"]).ok();
    let hooks: Vec<Child> = (0..6)
        .map(|_| spawn_hook(&env, "permission", &bash("x")))
        .collect();
    for mut child in hooks {
        assert!(child.wait().unwrap().success());
    }
    hook(
        &env,
        "notification",
        &json!({"notification_type": "permission_prompt", "message": "m"}),
    );
    let waits = "waiting mayor: asks: Bash(x) [] []";
    assert_eq!(notes(&env), [waits]);
    hook(&env, "tool-end", &bash("x"));
    let ends: Vec<Child> = (0..3)
        .map(|_| spawn_hook(&env, "stop", &json!({})))
        .collect();
    for mut child in ends {
        assert!(child.wait().unwrap().success());
    }
    let done = "done mayor: finished its turn [] []";
    assert_eq!(notes(&env), [waits, done]);
    // Neither a person's interrupt nor the next turn produces a notice.
    hook(&env, "prompt", &json!({"prompt": "go on"}));
    hook(&env, "interrupt", &json!({}));
    hook(&env, "prompt", &json!({"prompt": "go on"}));
    hook(&env, "permission", &bash("y"));
    let again = "waiting mayor: asks: Bash(y) [] []";
    assert_eq!(notes(&env), [waits, done, again]);
    // An agent that reports done gets no second notice at the end of its turn.
    hook(&env, "tool-end", &bash("y"));
    hook(&env, "done", &json!({"reason": "all tests pass"}));
    hook(&env, "stop", &json!({}));
    let says = "done mayor: all tests pass [] []";
    assert_eq!(notes(&env), [waits, done, again, says]);
}

#[test]
fn crash_is_notified_and_a_stop_is_not() {
    let env = TestEnv::with_rig();
    with_notes(&env, "on = ['died']");
    let item = env.json(&["work", "create", "Mend \"it\"", "--rig", "gastown"]);
    let id = item["id"].as_str().unwrap();
    env.gt(&["crew", "add", "max"]).ok();
    env.gt(&["hook", id, "--agent", "gastown/crew/max"]).ok();
    env.gt(&["crew", "start", "max", "--no-prompt"]).ok();
    env.gt(&["stop", "gastown/max"]).ok();
    env.gt(&["crew", "start", "max", "--no-prompt"]).ok();
    signal(env.pid("gastown/crew/max"), Signal::KILL);
    let told = wait_for_notes(&env, 1);
    let why = format!("died gastown/crew/max: killed by signal 9 [{id}] [Mend \"it\"]");
    assert_eq!(told, [why.as_str()]);
    // A second sync produces no second notice.
    env.gt(&["sync"]).ok();
    env.gt(&["stop", "gastown/max"]).ok();
    env.gt(&["sync"]).ok();
    assert_eq!(notes(&env), [why]);
}

#[test]
fn stopped_busy_agent_is_not_notified_as_done() {
    let env = TestEnv::with_town();
    with_notes(&env, "");
    env.gt(&["start", "mayor", "--instructions", "[[delay=60]]"])
        .ok();
    env.wait_screen("mayor", "esc to interrupt");
    env.gt(&["stop", "mayor"]).ok();
    // By now all notices of the previous session are delivered.
    env.gt(&["start", "mayor", "--no-prompt"]).ok();
    hook(&env, "permission", &bash("x"));
    let told = wait_until("it is told", TIMEOUT, || {
        let told = notes(&env);
        (!told.is_empty()).then_some(told)
    });
    assert_eq!(told, ["waiting mayor: asks: Bash(x) [] []"]);
}

#[test]
fn text_from_outside_arrives_as_it_is_and_runs_nothing() {
    let env = TestEnv::with_town();
    let notes = env.path("exactly");
    let text = format!(
        "[notify]\ncommand = '''printf '%s' \"$GT_NOTIFY_REASON\" > {}'''\n",
        notes.display()
    );
    let path = env.town().join("town.toml");
    let settings = fs::read_to_string(&path).unwrap() + &text;
    fs::write(&path, settings).unwrap();
    let trap = env.path("trap");
    let evil = format!(
        "-n 'a' \"b\" $(touch {0}) `touch {0}` #(touch {0}) #{{pane_id}} ; touch {0}\n\\n % ünï",
        trap.display()
    );
    let deliver = |reason: &str| {
        let mut command = env.gt_command(&["notify", "deliver"]);
        command
            .env("GT_NOTIFY_EVENT", "waiting")
            .env("GT_NOTIFY_AGENT", "mayor")
            .env("GT_NOTIFY_REASON", reason);
        crate::env::run(&mut command).ok();
    };
    deliver(&evil);
    assert_eq!(fs::read_to_string(&notes).unwrap(), evil);
    // A hook gets the text as well; a reason is limited to one line.
    env.gt(&["start", "mayor", "--no-prompt"]).ok();
    let evil = format!("'\" $(touch {0}) #(touch {0})", trap.display());
    fs::remove_file(&notes).unwrap();
    hook(&env, "permission", &bash(&evil));
    let told = wait_until("it is told", TIMEOUT, || {
        fs::read_to_string(&notes)
            .ok()
            .filter(|text| !text.is_empty())
    });
    assert_eq!(told, format!("asks: Bash({evil})"));
    assert!(!trap.exists());
}

#[test]
fn screen_is_notified_once_by_concurrent_watchers() {
    let env = TestEnv::with_town();
    with_notes(&env, "");
    see_screens(&env);
    let told = notes(&env);
    let events: Vec<&str> = told
        .iter()
        .filter_map(|note| note.split(' ').next())
        .collect();
    assert_eq!(events, ["waiting", "done"], "{told:?}");
}

/// Runs an agent without hooks through busy, waiting and idle, with three concurrent watchers.
pub(crate) fn see_screens(env: &TestEnv) {
    let preset = r#"
[command]
program = "sh"
args = ["-c", "echo ready; exec cat"]
[process]
names = ["sh", "cat"]
[screen]
ready = ["^ready"]
busy = ["working"]
waiting = ["Do you want"]
"#;
    fs::write(env.town().join("harnesses/plain.toml"), preset).unwrap();
    env.gt(&["start", "mayor", "--harness", "plain", "--no-prompt"])
        .ok();
    let tty = env.format("hq-mayor", "#{pane_tty}");
    let mut watches: Vec<Child> = (0..3)
        .map(|_| env.spawn(&["watch", "--json", "--first"]))
        .collect();
    let lines: Vec<_> = watches
        .iter_mut()
        .map(|watch| {
            let stdout = watch.stdout.take().unwrap();
            let (send, lines) = std::sync::mpsc::channel::<Value>();
            std::thread::spawn(move || {
                use std::io::BufRead;
                for line in std::io::BufReader::new(stdout)
                    .lines()
                    .map_while(Result::ok)
                {
                    let _ = send.send(serde_json::from_str(&line).unwrap());
                }
            });
            lines
        })
        .collect();
    let all_see = |state: &str| {
        for lines in &lines {
            while lines.recv_timeout(TIMEOUT).unwrap()["state"] != state {}
        }
    };
    all_see("idle");
    for (line, state) in [
        ("working", "busy"),
        ("Do you want $(it)?", "waiting"),
        ("\x1b[2J\x1b[Hready", "idle"),
    ] {
        fs::write(&tty, format!("{line}\r\n")).unwrap();
        all_see(state);
    }
    for mut watch in watches {
        signal(watch.id(), Signal::TERM);
        assert!(watch.wait().unwrap().success());
    }
}

#[test]
fn a_question_that_is_interrupted_is_no_end_and_one_that_is_answered_is() {
    let env = TestEnv::with_town();
    with_notes(&env, "");
    // Like Claude Code: neither a hook nor the title reports an interrupt.
    let preset = "[title_marks]\nready = []\nbusy = []\nwaiting = []\n";
    fs::write(env.town().join("harnesses/demo.toml"), preset).unwrap();
    env.gt(&["start", "mayor", "--no-prompt", "--ask-permissions"])
        .ok();
    env.gt(&["wait", "mayor", "--timeout", "30"]).ok();
    let mut watch = env.spawn(&["watch", "--json", "--first"]);
    let asks = |notes: usize| {
        env.gt(&["nudge", "mayor", "[[tool=touch x]]"]).ok();
        env.wait_screen("mayor", "❯ 1. Yes");
        wait_until("it waits", TIMEOUT, || {
            (env.agent("mayor")["state"] == "waiting").then_some(())
        });
        // A question that is gone before its hook has reported it produces no notice.
        wait_for_notes(&env, notes);
    };
    let comes_to_its_prompt = || {
        // Reads the tag, which the watcher must set: `gt agents` would read the screen itself.
        wait_until("it is idle", TIMEOUT, || {
            (env.format("hq-mayor", "#{@gt_state}") == "idle").then_some(())
        });
        env.agent("mayor")
    };
    asks(1);
    env.gt(&["keys", "mayor", "Escape"]).ok();
    let stopped = comes_to_its_prompt();
    assert_eq!(stopped["state_reason"], "its turn was interrupted");
    assert!(stopped["state_since"].is_string(), "{stopped}");
    // Some programs report their idle prompt after a while.
    let idle = json!({"notification_type": "idle_prompt", "message": "waits for you"});
    hook(&env, "notification", &idle);
    let waits = "waiting mayor: asks: Bash(touch x) [] []";
    assert_eq!(notes(&env), [waits]);
    // A question of the next turn is news again, and so is the end of that turn.
    asks(2);
    env.gt(&["answer", "mayor", "yes"]).ok();
    let done = "done mayor: finished its turn [] []";
    assert_eq!(wait_for_notes(&env, 3), [waits, waits, done]);
    assert_eq!(comes_to_its_prompt()["state_reason"], "finished its turn");
    // An interrupted turn produces no notice, and the state becomes idle.
    env.gt(&["nudge", "mayor", "[[delay=60]]"]).ok();
    // The tag is still idle until the hook has reported the prompt.
    wait_until("the hook has reported the prompt", TIMEOUT, || {
        (env.format("hq-mayor", "#{@gt_state}") == "busy").then_some(())
    });
    env.wait_screen("mayor", "esc to interrupt");
    // The tag is idle until the hook has reported the prompt.
    wait_until("it is busy", TIMEOUT, || {
        (env.format("hq-mayor", "#{@gt_state}") == "busy").then_some(())
    });
    env.gt(&["keys", "mayor", "Escape"]).ok();
    let stopped = comes_to_its_prompt();
    assert_eq!(stopped["state_reason"], "its turn was interrupted");
    assert_eq!(notes(&env), [waits, waits, done]);
    signal(watch.id(), Signal::TERM);
    assert!(watch.wait().unwrap().success());
    // The interrupts are in the event log, each once.
    let ends = env.json(&["events", "--type", "turn_end"]);
    let ends = ends.as_array().unwrap().iter();
    let ends: Vec<(&str, Option<&str>)> = ends
        .map(|end| &end["payload"])
        .map(|end| (end["via"].as_str().unwrap(), end["reason"].as_str()))
        .collect();
    let cut = ("screen", Some("interrupted"));
    assert_eq!(ends, [cut, ("hook", None), cut]);
}

#[test]
fn quiet_hours_suppress_notifications_except_tests() {
    let mut env = TestEnv::with_town();
    env.set("TZ", "UTC");
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    let hour = now.as_secs() / 3_600 % 24;
    let hours = format!("{:02}:00-{:02}:00", (hour + 23) % 24, (hour + 2) % 24);
    with_notes(&env, &format!("quiet_hours = '{hours}'"));
    env.gt(&["start", "mayor", "--no-prompt"]).ok();
    hook(&env, "permission", &bash("x"));
    assert_eq!(notes(&env), Vec::<String>::new());
    let shown = env.json(&["notify"]);
    assert_eq!(shown["quiet_hours"], hours);
    assert_eq!(
        shown["on"],
        json!(["waiting", "done", "died", "escalation", "budget", "landed"])
    );
    let told = env.json(&["notify", "test"]);
    assert_eq!(told, json!([{"way": "command", "told": true}]));
    assert_eq!(notes(&env), ["waiting test: this is only a test [] []"]);
}

#[test]
fn settings_that_mean_nothing_are_refused() {
    let env = TestEnv::with_town();
    env.gt(&["notify", "test"]).fails(4);
    let text = "[notify]\nquiet_hours = 'at night'\n";
    fs::write(env.town().join("town.toml"), text).unwrap();
    assert_snapshot!(env.snapshot(&["notify"]), @r#"
    exit code: 2
    --- stderr
    error: ~/gt/town.toml:2:15 cannot be read
    caused by: "at night" is not a time range such as "[TIME]"
    hint: correct that line; every key is explained in the documentation
    "#);
}

#[test]
fn a_test_says_for_each_channel_whether_it_worked() {
    let env = TestEnv::with_town();
    assert_snapshot!(env.snapshot(&["notify", "test"]), @"
    exit code: 4
    --- stderr
    error: no notifications are configured
    hint: `gt config set notify.desktop true` turns on desktop notifications
    hint: `gt config list notify` shows the other channels
    ");
    env.gt(&["config", "set", "notify.command", "true"]).ok();
    assert_snapshot!(env.snapshot(&["notify", "test"]), @"
    exit code: 0
    --- stdout
    ✓ command  sent
    ");
    env.gt(&["config", "set", "notify.bell", "true"]).ok();
    assert_snapshot!(env.snapshot(&["notify", "test"]), @"
    exit code: 1
    --- stdout
    ✗ bell  failed: no terminal is attached to the town's tmux server
    ✓ command  sent
    --- stderr
    error: 1 of 2 channels failed
    hint: `gt config list notify` shows the settings
    ");
    env.gt(&[
        "config",
        "set",
        "notify.command",
        "echo no route >&2; exit 3",
    ])
    .ok();
    assert_snapshot!(env.snapshot(&["notify", "test"]), @"
    exit code: 1
    --- stdout
    ✗ bell  failed: no terminal is attached to the town's tmux server
    ✗ command  failed: notify.command failed: exit status: 3
    --- stderr
    error: 2 of 2 channels failed
    hint: `gt config list notify` shows the settings
    ");
    let results = env.gt(&["notify", "test", "--json"]).fails(1).json();
    let told = |index: usize| &results[index]["told"];
    assert_eq!((told(0), told(1)), (&json!(false), &json!(false)));
}

#[test]
fn attached_client_gets_the_bell_and_the_desktop_a_notification() {
    use gt_tmux::testing::TestServer;
    use gt_tmux::{Command as Tmux, SessionName};
    let mut env = TestEnv::with_town();
    // A stand-in for notify-send that writes each argument on a line.
    let bin = env.path("bin");
    fs::create_dir(&bin).unwrap();
    let shown = env.path("shown");
    let program = format!("#!/bin/sh\nprintf '<%s>\\n' \"$@\" > {}\n", shown.display());
    fs::write(bin.join("notify-send"), program).unwrap();
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(bin.join("notify-send"), executable).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    env.set("PATH", &path);
    let settings = env.town().join("town.toml");
    let text = fs::read_to_string(&settings).unwrap();
    fs::write(
        &settings,
        text + "\n[notify]\nbell = true\ndesktop = true\n",
    )
    .unwrap();
    env.gt(&["start", "mayor", "deacon", "--no-prompt"]).ok();
    // A client is attached to another agent, in a terminal that records bells.
    let outer = TestServer::new();
    let attach = format!(
        "unset TMUX TMUX_PANE; exec tmux -S '{}' attach-session -t hq-deacon",
        env.socket().display()
    );
    let commands = vec![
        Tmux::new("new-session").args(["-d", "-s", "t", "-x", "100", "-y", "30", &attach]),
        // tmux records a bell only for windows that are not shown.
        Tmux::new("new-window").args(["-t", "t", "sleep 1000"]),
    ];
    outer.server().run(commands).unwrap();
    wait_until("a client is attached", TIMEOUT, || {
        (env.agent("deacon")["attached"] == true).then_some(())
    });
    let is_rung = || {
        let target = SessionName::try_from("t").unwrap();
        let list = Tmux::new("list-windows").target(target);
        let list = list.args(["-F", "#{window_index} #{window_bell_flag}"]);
        outer.server().run(list).unwrap().starts_with("0 1")
    };
    assert!(!is_rung());
    hook(&env, "permission", &bash("a < b && c"));
    wait_until("it rings", TIMEOUT, || is_rung().then_some(()));
    let told = wait_until("the desktop is told", TIMEOUT, || {
        let told = fs::read_to_string(&shown).ok()?;
        told.ends_with(">\n").then_some(told)
    });
    let reason = "asks: Bash(a &lt; b &amp;&amp; c)";
    assert_eq!(
        told,
        format!("<--app-name=gt>\n<-->\n<mayor waits for you>\n<{reason}>\n")
    );
}

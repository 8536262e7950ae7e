//! Containers that are saved, lost with their tmux server, and brought back.

use crate::env::{PATIENCE, TestEnv, lives, processes_of, signal};
use gt_tmux::testing::wait_until;
use gt_tmux::{Command as Tmux, SessionName};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Stdio;

/// Kills the tmux server as a crash would.
fn crash(env: &TestEnv) {
    let ask = Tmux::new("display-message").args(["-p", "#{pid}"]);
    let pid = env.tmux(ask).parse().unwrap();
    signal(pid, Signal::KILL);
    wait_until("the server is gone", PATIENCE, || {
        (!lives(pid)).then_some(())
    });
}

fn session(name: &str) -> SessionName {
    SessionName::try_from(name).unwrap()
}

fn pane(env: &TestEnv, container: &str) -> gt_tmux::PaneId {
    env.format(container, "#{@gt_pane}").parse().unwrap()
}

/// Everything that stands in an agent's pane and its history.
fn history(env: &TestEnv, container: &str) -> String {
    let capture = Tmux::new("capture-pane").args(["-p", "-S", "-"]);
    env.tmux(capture.target(pane(env, container)))
}

/// The files of saves, the newest first.
fn files(env: &TestEnv) -> Vec<PathBuf> {
    let folder = env.town().join(".sessions/saves");
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files.reverse();
    files
}

fn gzip(env: &TestEnv, args: &[&str], input: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut command = env.command("gzip");
    command.args(args);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(input).unwrap());
        child.wait_with_output().unwrap()
    });
    assert!(writer.status.success());
    writer.stdout
}

/// What a save says, uncompressed.
fn text_of(env: &TestEnv, file: &PathBuf) -> String {
    String::from_utf8(gzip(env, &["-dc"], &fs::read(file).unwrap())).unwrap()
}

fn settings(env: &TestEnv, text: &str) {
    let file = env.town().join("town.toml");
    let before = fs::read_to_string(&file).unwrap();
    fs::write(file, format!("{before}\n{text}\n")).unwrap();
}

/// Only saves that the test asks for.
fn by_hand(env: &TestEnv) {
    settings(env, "[save]\nauto = false");
}

/// The agents of a restore with what was done to them.
fn done(answer: &Value) -> Vec<(&str, bool)> {
    let agents = answer["agents"].as_array().unwrap().iter();
    agents
        .map(|agent| {
            let restored = agent["restored"].as_bool().unwrap();
            (agent["agent"].as_str().unwrap(), restored)
        })
        .collect()
}

#[test]
fn twenty_agents_come_back_after_a_crash_in_their_conversations() {
    let names: Vec<String> = (0..20).map(|n| format!("w{n:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let env = TestEnv::with_crew(&names);
    env.gt(&["crew", "start", "--all"]).ok();
    let say = |words: &str| {
        std::thread::scope(|scope| {
            for name in &names {
                let env = &env;
                scope.spawn(move || {
                    let (target, text) = (format!("gastown/{name}"), format!("{words} {name}."));
                    env.gt(&["nudge", &target, &text, "--timeout", "60"]).ok();
                });
            }
        });
    };
    say("before the crash,");
    for name in &names {
        env.wait_screen(&format!("gastown/{name}"), "You said: before the crash");
    }
    env.gt(&["save"]).ok();
    let before = env.running();
    crash(&env);
    assert_eq!(env.running(), Vec::<String>::new());

    let answer = env.json(&["restore"]);
    assert_eq!(env.running(), before);
    env.gt(&["agents", "check"]).ok();
    let all = env.json(&["sessions", "list", "--limit", "100"]);
    let all = all.as_array().unwrap();
    assert_eq!(all.len(), 40);
    let life = |id: &Value| all.iter().find(|life| life["id"] == *id).unwrap();
    for agent in answer["agents"].as_array().unwrap() {
        assert_eq!(agent["restored"], true, "{agent}");
        assert_eq!(agent["conversation"], "resume", "{agent}");
        let new = life(&agent["session"]);
        let old = life(&new["parent_id"]);
        assert_eq!(old["child_id"], new["id"]);
        assert_eq!(old["outcome"], "crash");
        assert_eq!(old["agent"], new["agent"]);
        assert_eq!(new["chain_id"], old["id"]);
        assert_eq!(new["harness_session_id"], old["harness_session_id"]);
        assert_eq!(new["status"], "running");
        // What stood there is above what stands there now, and out of sight.
        let name = agent["agent"].as_str().unwrap().rsplit('/').next().unwrap();
        let container = agent["container"].as_str().unwrap();
        let text = history(&env, container);
        let (above, below) = text.split_once("# gt: back from the save of").unwrap();
        assert!(above.contains(&format!("crash, {name}.")), "{text}");
        assert!(below.contains(&format!("crash, {name}.")), "{text}");
        let screen = env.gt(&["peek", agent["agent"].as_str().unwrap()]).ok();
        assert!(!screen.stdout.contains("# gt: back"), "{}", screen.stdout);
        let peeked = env.gt(&["peek", agent["agent"].as_str().unwrap(), "-n", "500"]);
        assert!(peeked.stdout.contains("# gt: back"), "{}", peeked.stdout);
    }
    say("after it,");
    for agent in answer["agents"].as_array().unwrap() {
        let id = agent["conversation_id"].as_str().unwrap();
        let file = format!(".runtime/demo/sessions/{id}.jsonl");
        let transcript = fs::read_to_string(env.town().join(file)).unwrap();
        assert!(transcript.contains("before the crash"), "{transcript}");
        assert!(transcript.contains("after it"), "{transcript}");
    }

    let again = env.gt(&["restore"]).ok().stdout;
    assert!(again.contains("There is nobody to bring back."), "{again}");
    let all = env.json(&["sessions", "list", "--limit", "100"]);
    assert_eq!(all.as_array().unwrap().len(), 40);
    let left = fs::read_dir(env.town().join(".runtime/replay")).unwrap();
    assert_eq!(left.count(), 0, "no text is left");
}

#[test]
fn the_users_own_windows_come_back_as_they_were() {
    let env = TestEnv::with_town();
    by_hand(&env);
    env.gt(&["start", "mayor", "deacon"]).ok();
    let mayor = || session("hq-mayor");
    let agent = pane(&env, "hq-mayor");
    let folder = env.path("logs of mine #(x)");
    fs::create_dir(&folder).unwrap();
    let folder = folder.to_str().unwrap();
    let escaped = gt_tmux::format::escape(folder);
    env.tmux(
        Tmux::new("split-window")
            .args(["-h", "-l", "60"])
            .target(agent),
    );
    env.tmux(
        Tmux::new("split-window")
            .args(["-bv", "-l", "7"])
            .target(agent),
    );
    env.tmux(
        Tmux::new("new-window")
            .args(["-n", "logs", "-c", &escaped])
            .option("-t", "=hq-mayor:7"),
    );
    env.tmux(
        Tmux::new("split-window")
            .args(["-v", "-l", "10", "-c", &escaped])
            .option("-t", "=hq-mayor:7")
            .args(["--", "sleep", "7777"]),
    );
    env.tmux(
        Tmux::new("send-keys")
            .args(["-t", "=hq-mayor:7.0"])
            .args(["echo mine $((40+2))", "Enter"]),
    );
    env.tmux(Tmux::new("resize-pane").args(["-Z", "-t", "=hq-mayor:7.1"]));
    env.tmux(Tmux::new("rename-window").target(agent).arg("work"));
    let capture = |pane: &str| {
        let capture = Tmux::new("capture-pane").args(["-p", "-S", "-", "-t"]);
        env.tmux(capture.arg(pane))
    };
    wait_until("it has answered", PATIENCE, || {
        capture("=hq-mayor:7.0").contains("mine 42").then_some(())
    });
    let shape = || {
        let list = Tmux::new("list-panes").arg("-s").target(mayor());
        env.tmux(list.args([
            "-F",
            "#{window_index} #{window_name} #{pane_index} #{pane_left},#{pane_top} \
             #{pane_width}x#{pane_height} #{pane_current_path} #{window_active} \
             #{pane_active} #{window_zoomed_flag} #{==:#{pane_id},#{@gt_pane}}",
        ]))
    };
    let before = shape();
    assert_eq!(before.lines().count(), 5, "{before}");
    env.gt(&["save"]).ok();
    crash(&env);
    env.gt(&["restore"]).ok();
    // A new shell takes a moment to be in its folder.
    let after = || Some(shape()).filter(|after| *after == before);
    wait_until("all is as it was", PATIENCE, after);
    wait_until("the old text shows", PATIENCE, || {
        capture("=hq-mayor:7.0").contains("mine 42").then_some(())
    });
    wait_until("what ran there is told", PATIENCE, || {
        capture("=hq-mayor:7.1")
            .contains("this ran here: sleep")
            .then_some(())
    });
    let deacon = Tmux::new("list-panes")
        .arg("-s")
        .target(session("hq-deacon"));
    assert_eq!(env.tmux(deacon).lines().count(), 1);
    env.gt(&["nudge", "mayor", "are you there"]).ok();
    env.wait_screen("mayor", "You said: are you there");
}

#[test]
fn a_program_is_itself_after_its_text_was_shown() {
    let env = TestEnv::with_town();
    by_hand(&env);
    env.gt(&["start", "mayor", "--command", "echo hello; exec sleep 7777"])
        .ok();
    env.gt(&["save"]).ok();
    crash(&env);
    env.gt(&["restore"]).ok();
    let pid = env.pid("mayor");
    let name = || fs::read_to_string(format!("/proc/{pid}/comm")).unwrap();
    wait_until("it is the program", PATIENCE, || {
        (name() == "sleep\n").then_some(())
    });
    let text = history(&env, "hq-mayor");
    assert_eq!(text.matches("hello").count(), 2, "{text}");
    let file = env.town().join(".runtime/pids/hq-mayor.pid");
    let file = fs::read_to_string(file).unwrap();
    assert!(file.starts_with(&format!("{pid}|")), "{file}");
    env.gt(&["stop", "mayor"]).ok();
    wait_until("nothing is left", PATIENCE, || {
        processes_of(env.home()).is_empty().then_some(())
    });
}

#[test]
fn one_that_outlived_its_terminal_makes_room_for_itself() {
    let env = TestEnv::with_town();
    by_hand(&env);
    let preset = "[command]\nargs = ['demo-agent', '--ignore-term']\n";
    fs::write(env.town().join("harnesses/demo.toml"), preset).unwrap();
    env.gt(&["start", "mayor"]).ok();
    env.gt(&["save"]).ok();
    let old = env.pid("mayor");
    crash(&env);
    assert!(lives(old));
    env.gt(&["restore"]).ok();
    assert!(!lives(old), "two would be in one conversation");
    assert_eq!(env.running(), ["mayor"]);
}

#[test]
fn who_was_stopped_stays_so_unless_named() {
    let env = TestEnv::with_crew(&["max", "amy", "bob"]);
    by_hand(&env);
    env.gt(&[
        "start",
        "mayor",
        "gastown/max",
        "gastown/amy",
        "gastown/bob",
    ])
    .ok();
    let tag = Tmux::new("set-option").target(session("gt-crew-bob"));
    env.tmux(tag.args(["@gt_auto_respawn", ""]));
    signal(env.pid("gastown/crew/bob"), Signal::KILL);
    wait_until("it is dead", PATIENCE, || {
        (env.agent("gastown/crew/bob")["state"] == "crashed").then_some(())
    });
    env.gt(&["save"]).ok();
    env.gt(&["stop", "gastown/amy"]).ok();
    crash(&env);
    let told = env.json(&["restore", "--dry-run"]);
    assert_eq!(env.sessions(), Vec::<String>::new(), "nothing was done");
    let reasons: Vec<(&str, &str)> = told["agents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|a| (a["action"].as_str().unwrap(), a["reason"].as_str().unwrap()))
        .collect();
    assert_eq!(
        reasons,
        [
            ("leave", "was ended since (killed)"),
            ("leave", "had ended before the save"),
            ("restore", "is missing"),
            ("restore", "is missing"),
        ]
    );
    let one = env.json(&["restore", "--agent", "gastown/max"]);
    assert_eq!(done(&one), [("gastown/crew/max", true)]);
    env.gt(&["restore"]).ok();
    assert_eq!(env.running(), ["mayor", "gastown/crew/max"]);
    env.gt(&[
        "restore",
        "--agent",
        "gastown/amy",
        "--agent",
        "gastown/bob",
    ])
    .ok();
    assert_eq!(env.running().len(), 4);
    env.gt(&["restore", "--agent", "deacon"]).fails(3);
    env.gt(&["restore", "2001"]).fails(3);
}

#[test]
fn a_name_that_somebody_else_has_is_left_to_them() {
    let env = TestEnv::with_town();
    by_hand(&env);
    env.gt(&["start", "mayor", "deacon"]).ok();
    env.gt(&["save"]).ok();
    crash(&env);
    env.tmux(Tmux::new("new-session").args(["-d", "-s", "hq-mayor", "--", "sleep", "7777"]));
    let answer = env.gt(&["restore", "--json"]).fails(4);
    let answer = answer.json();
    assert_eq!(done(&answer), [("deacon", true), ("mayor", false)]);
    assert_eq!(answer["agents"][1]["action"], "conflict");
    assert_eq!(env.format("hq-mayor", "#{pane_current_command}"), "sleep");
}

#[test]
fn what_a_restore_needs_outlives_later_saves() {
    let env = TestEnv::with_crew(&["max", "amy"]);
    settings(&env, "[save]\nauto = false\nkeep = 1");
    env.gt(&["start", "mayor", "gastown/max", "gastown/amy"])
        .ok();
    env.gt(&["save"]).ok();
    crash(&env);
    // tmux tells in whole seconds when a server began; the next one must be another.
    let second = || {
        std::time::SystemTime::UNIX_EPOCH
            .elapsed()
            .unwrap()
            .as_secs()
    };
    let then = second();
    wait_until("the next second", PATIENCE, || {
        (second() > then).then_some(())
    });
    let none = env.gt(&["save"]).ok().stdout;
    assert!(none.contains("nothing was saved"), "{none}");
    assert_eq!(env.json(&["save"]), Value::Null);
    // Somebody goes on with another agent, and with one of the lost ones.
    env.gt(&["start", "deacon", "gastown/amy"]).ok();
    let made = env.json(&["save"]);
    assert_eq!(made["containers"], 2, "{made}");
    assert_eq!(made["carried"], 2, "{made}");
    env.gt(&["sync"]).ok();
    let made = env.json(&["save"]);
    assert_eq!(made["carried"], 2, "{made}");
    assert_eq!(files(&env).len(), 1);
    let list = env.json(&["save", "--list"]);
    assert_eq!(list[0]["containers"], 4, "{list}");
    env.gt(&["stop", "gastown/amy"]).ok();
    let answer = env.json(&["restore"]);
    let mut told = done(&answer);
    told.sort_unstable();
    let expected = [
        ("deacon", false),
        ("gastown/crew/amy", false),
        ("gastown/crew/max", true),
        ("mayor", true),
    ];
    assert_eq!(told, expected);
    // Closed by hand on its own server: nobody misses it.
    env.tmux(Tmux::new("kill-session").target(session("hq-mayor")));
    let made = env.json(&["save"]);
    assert_eq!(
        (&made["containers"], &made["carried"]),
        (&2.into(), &0.into())
    );
}

#[test]
fn a_second_crash_before_any_save_loses_no_conversation() {
    let env = TestEnv::with_town();
    by_hand(&env);
    env.gt(&["start", "mayor"]).ok();
    env.gt(&["save"]).ok();
    crash(&env);
    let first = env.json(&["restore"]);
    crash(&env);
    let second = env.json(&["restore"]);
    let (first, second) = (&first["agents"][0], &second["agents"][0]);
    assert_eq!(second["conversation_id"], first["conversation_id"]);
    let life = env.json(&["sessions", "show", second["session"].as_str().unwrap()]);
    assert_eq!(life["parent_id"], first["session"]);
    let chain = env.json(&["sessions", "chain", second["session"].as_str().unwrap()]);
    assert_eq!(chain["totals"]["lives"], 3, "{chain}");
}

#[test]
fn an_id_that_only_a_hook_tells_is_known_after_a_crash() {
    let env = TestEnv::with_town();
    by_hand(&env);
    // Like Codex: it chooses its id, and tells it once it runs.
    let preset = "[command]\nsession_id = []\n";
    fs::write(env.town().join("harnesses/demo.toml"), preset).unwrap();
    env.gt(&["start", "mayor"]).ok();
    let id = wait_until("the hook has spoken", PATIENCE, || {
        Some(env.format("hq-mayor", "#{@gt_harness_session}")).filter(|id| !id.is_empty())
    });
    let life = env.format("hq-mayor", "#{@gt_session}");
    wait_until("it is remembered", PATIENCE, || {
        (env.json(&["sessions", "show", &life])["harness_session_id"] == *id).then_some(())
    });
    env.tmux(
        Tmux::new("set-option")
            .target(session("hq-mayor"))
            .args(["@gt_harness_session", ""]),
    );
    env.gt(&["save"]).ok();
    crash(&env);
    let answer = env.json(&["restore"]);
    assert_eq!(answer["agents"][0]["conversation_id"], *id, "{answer}");
}

#[test]
fn a_conversation_that_is_gone_is_begun_anew() {
    let env = TestEnv::with_town();
    by_hand(&env);
    env.gt(&["start", "mayor"]).ok();
    let mine = Tmux::new("split-window").args(["-d", "-h"]);
    env.tmux(mine.target(pane(&env, "hq-mayor")));
    env.gt(&["save"]).ok();
    crash(&env);
    fs::remove_dir_all(env.town().join(".runtime/demo")).unwrap();
    let answer = env.gt(&["restore", "--json"]).ok();
    assert!(
        answer.stderr.contains("began a new one"),
        "{}",
        answer.stderr
    );
    let agent = &answer.json()["agents"][0];
    assert_eq!(agent["conversation"], "new", "{agent}");
    assert_eq!(env.format("hq-mayor", "#{window_panes}"), "2");
    env.wait_screen("mayor", "[GAS TOWN] mayor <- gt");
    assert!(history(&env, "hq-mayor").contains("# gt: back"));
    let life = agent["session"].as_str().unwrap();
    let chain = env.json(&["sessions", "chain", life]);
    assert_eq!(
        chain["totals"]["lives"], 3,
        "the try was a life too: {chain}"
    );
}

#[test]
fn an_interrupted_restore_leaves_nothing_half_done() {
    let env = TestEnv::with_town();
    by_hand(&env);
    env.gt(&["start", "mayor", "deacon"]).ok();
    let mine = Tmux::new("split-window").args(["-d", "-h"]);
    env.tmux(mine.target(pane(&env, "hq-mayor")));
    env.gt(&["save"]).ok();
    crash(&env);
    // It does not show what it is waited for.
    let preset = "[command]\nargs = ['demo-agent', '--startup-delay', '600000']\n\
                  [ready]\ntimeout_seconds = 600\n";
    fs::write(env.town().join("harnesses/demo.toml"), preset).unwrap();
    let restore = env.spawn(&["restore"]);
    wait_until("both come up", PATIENCE, || {
        let is_up = |name: &str| history(&env, name).contains("# gt: back");
        (env.sessions().len() == 2 && is_up("hq-mayor") && is_up("hq-deacon")).then_some(())
    });
    signal(restore.id(), Signal::INT);
    let output = restore.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(env.sessions(), Vec::<String>::new());
    let left = fs::read_dir(env.town().join(".runtime/replay")).unwrap();
    assert_eq!(left.count(), 0);
    fs::remove_file(env.town().join("harnesses/demo.toml")).unwrap();
    env.gt(&["restore"]).ok();
    assert_eq!(env.running(), ["mayor", "deacon"]);
    assert_eq!(env.format("hq-mayor", "#{window_panes}"), "2");
}

#[test]
fn a_damaged_save_is_named_and_passed_over() {
    let env = TestEnv::with_town();
    by_hand(&env);
    env.gt(&["restore"]).fails(3);
    env.gt(&["start", "mayor"]).ok();
    env.gt(&["save"]).ok();
    env.gt(&["save"]).ok();
    let newest = files(&env)[0].clone();
    let whole = fs::read(&newest).unwrap();
    let name = newest.file_name().unwrap().to_str().unwrap();
    let name = name.strip_suffix(".json.gz").unwrap();
    crash(&env);
    let without_one = gzip(&env, &["-dc"], &whole);
    let header = without_one.split(|byte| *byte == b'\n').next().unwrap();
    let without_one = gzip(&env, &["-c"], &[header, b"\n"].concat());
    for damage in [&whole[..whole.len() / 2], b"", b"nonsense", &without_one] {
        fs::write(&newest, damage).unwrap();
        let list = env.gt(&["save", "--list", "--json"]).ok();
        assert!(list.stderr.contains(name), "{}", list.stderr);
        assert_eq!(list.json()[0]["damaged"], true);
        assert_eq!(list.json()[1]["damaged"], false);
        let told = env.gt(&["restore", "--dry-run"]).ok();
        assert!(told.stderr.contains("is damaged"), "{}", told.stderr);
        assert!(
            told.stdout.contains("Would bring back mayor"),
            "{}",
            told.stdout
        );
        env.gt(&["restore", name]).fails(1);
    }
    env.gt(&["restore"]).ok();
    assert_eq!(env.running(), ["mayor"]);
}

#[test]
fn hostile_texts_in_a_save_do_nothing() {
    let env = TestEnv::with_town();
    by_hand(&env);
    env.gt(&["start", "mayor"]).ok();
    let mine = Tmux::new("split-window").args(["-d", "-h"]);
    env.tmux(mine.target(pane(&env, "hq-mayor")));
    env.tmux(
        Tmux::new("new-window")
            .args(["-d", "-n", "mine"])
            .target(session("hq-mayor")),
    );
    env.gt(&["save"]).ok();
    let file = files(&env)[0].clone();
    let text = text_of(&env, &file);
    let mut lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let trap = format!("#(touch {0}/TRAP)$(touch {0}/TRAP)", env.home().display());
    let text = "first\u{1b}]0;HOSTILE\u{7}\u{1b}]52;c;SE9TVElMRQ==\u{7}\u{1b}[?1049h\u{1b}[?1h\
                \u{1b}[6n\u{1b}[2J\u{1b}[31mred\u{1b}[0m\u{1b}Pq#0\u{1b}\\\u{1b}c last";
    for window in lines[1]["windows"].as_array_mut().unwrap() {
        window["name"] = trap.clone().into();
        window["layout"] = format!("tiled ; run-shell '{trap}'").into();
        for pane in window["panes"].as_array_mut().unwrap() {
            pane["text"] = text.into();
            pane["folder"] = trap.clone().into();
            pane["command"] = format!("x\n{trap}\u{1b}]0;HOSTILE\u{7}").into();
            pane["title"] = trap.clone().into();
        }
    }
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    let packed = gzip(&env, &["-c"], (lines.join("\n") + "\n").as_bytes());
    fs::write(&file, packed).unwrap();
    crash(&env);
    env.gt(&["restore"]).ok();
    let text = history(&env, "hq-mayor");
    assert!(text.contains("firstred last"), "{text}");
    let all = Tmux::new("list-panes").arg("-a");
    let shown = env.tmux(all.args([
        "-F",
        "#{window_name}|#{pane_title}|#{alternate_on}|#{keypad_cursor_flag}",
    ]));
    assert_eq!(shown.lines().count(), 3, "{shown}");
    for line in shown.lines() {
        assert!(line.starts_with(&trap), "{line}");
        assert!(line.ends_with("|0|0"), "{line}");
        assert!(!line.contains("HOSTILE"), "{line}");
    }
    let buffers = env.tmux(Tmux::new("list-buffers"));
    assert_eq!(buffers, "", "nothing reached the clipboard");
    assert!(!env.path("TRAP").exists());
    let agent = env.agent("mayor");
    assert_eq!(agent["health"], "healthy", "{agent}");
}

#[test]
fn no_secret_is_in_a_save() {
    const SECRET: &str = "sk-very-secret-0123456789";
    let mut env = TestEnv::with_town();
    by_hand(&env);
    env.set("MY_API_KEY", SECRET);
    env.set("OTHER_KEY", SECRET);
    let preset = "[env]\npass = ['MY_API_KEY']\n";
    fs::write(env.town().join("harnesses/demo.toml"), preset).unwrap();
    env.gt(&["start", "mayor", "--env", "OTHER_KEY"]).ok();
    let environ = |env: &TestEnv| {
        let pid = env.pid("mayor");
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap();
        let environ = String::from_utf8_lossy(&environ).into_owned();
        environ.matches(SECRET).count()
    };
    assert_eq!(environ(&env), 2, "it did reach the agent");
    env.gt(&["save"]).ok();
    let file = &files(&env)[0];
    let text = text_of(&env, file);
    assert!(
        text.contains("\"mayor\"") && !text.contains(SECRET),
        "{text}"
    );
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(file), 0o600);
    assert_eq!(mode(file.parent().unwrap()), 0o700);
    crash(&env);
    env.gt(&["restore", "--env", "OTHER_KEY"]).ok();
    wait_until("it has them again", PATIENCE, || {
        (environ(&env) == 2).then_some(())
    });
}

#[test]
fn only_so_many_saves_are_kept_and_the_automatic_ones_apart() {
    let env = TestEnv::with_town();
    settings(&env, "[save]\nauto = false\nkeep = 3");
    env.gt(&["start", "mayor"]).ok();
    let name = |answer: Value| answer["save"].as_str().unwrap().to_owned();
    let first = name(env.json(&["save"]));
    for _ in 0..5 {
        env.gt(&["save", "--auto"]).ok();
    }
    let mut made = vec![first];
    assert_eq!(files(&env).len(), 4, "the one by hand is still there");
    for _ in 0..4 {
        made.push(name(env.json(&["save"])));
    }
    let list = env.json(&["save", "--list"]);
    let list = list.as_array().unwrap();
    let by = |automatic: bool| -> Vec<String> {
        let wanted = list.iter().filter(|save| save["automatic"] == automatic);
        wanted.map(|save| name(save.clone())).collect()
    };
    made.reverse();
    assert_eq!(by(false), made[..3]);
    assert_eq!(by(true).len(), 3);
    let table = env.gt(&["save", "--list"]).ok().stdout;
    assert_eq!(table.lines().count(), 7, "{table}");
}

#[test]
fn killed_at_any_moment_a_save_is_whole_or_not_there() {
    let env = TestEnv::with_crew(&["a", "b", "c", "d"]);
    by_hand(&env);
    env.gt(&["crew", "start", "--all"]).ok();
    env.gt(&["nudge", "gastown/a", "[[fill=3000]]"]).ok();
    for round in 0..40 {
        let mut child = env.spawn(&["save"]);
        let pause = std::time::Duration::from_micros(round * 1_003);
        let began = std::time::Instant::now();
        while began.elapsed() < pause {
            std::thread::yield_now();
        }
        signal(child.id(), Signal::KILL);
        child.wait().unwrap();
        let list = env.json(&["save", "--list"]);
        let list = list.as_array().unwrap();
        assert!(list.iter().all(|save| save["damaged"] == false), "{list:?}");
    }
    env.gt(&["save"]).ok();
    let hidden = files(&env)
        .iter()
        .filter(|file| !file.to_str().unwrap().ends_with(".json.gz"))
        .count();
    assert_eq!(hidden, 0, "what was killed is cleared up");
    crash(&env);
    env.gt(&["restore"]).ok();
    assert_eq!(env.running().len(), 4);
}

#[test]
fn a_town_saves_itself_after_starts_and_stops() {
    let names: Vec<String> = (0..12).map(|n| format!("w{n:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let env = TestEnv::with_crew(&names);
    let newest = |expected: usize| {
        wait_until(&format!("a save of {expected}"), PATIENCE, || {
            let list = env.json(&["save", "--list"]);
            (list[0]["containers"] == expected).then_some(list.as_array().unwrap().len())
        })
    };
    env.gt(&["crew", "start", "--all"]).ok();
    let saves = newest(12);
    assert!(saves < 8, "twelve starts made {saves} saves");
    env.gt(&["stop", "gastown/w00", "gastown/w01"]).ok();
    newest(10);
    crash(&env);
    env.gt(&["restore"]).ok();
    assert_eq!(env.running().len(), 10);
    env.gt(&["save", "--auto", "--town", "/nowhere"]).fails(3);
}

#[test]
fn the_end_of_a_turn_saves_when_the_last_save_is_old() {
    let env = TestEnv::with_town();
    settings(&env, "[save]\nevery_minutes = 0");
    env.gt(&["start", "mayor"]).ok();
    env.gt(&["nudge", "mayor", "remember this"]).ok();
    wait_until("it is in a save", PATIENCE, || {
        let newest = files(&env).first().cloned()?;
        text_of(&env, &newest)
            .contains("You said: remember this")
            .then_some(())
    });
}

#[test]
fn tmux_resurrect_saves_as_well_where_the_town_wants_it() {
    let env = TestEnv::with_town();
    env.gt(&["start", "mayor"]).ok();
    let seen = env.path("seen");
    let script = |path: PathBuf, word: &str| {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let text = format!("#!/bin/sh\necho {word} \"$@\" >>'{}'\n", seen.display());
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    };
    let says = |words: &str| {
        wait_until(words, PATIENCE, || {
            let text = fs::read_to_string(&seen).unwrap_or_default();
            text.contains(words).then_some(())
        });
    };
    script(
        env.path(".tmux/plugins/tmux-resurrect/scripts/save.sh"),
        "usual",
    );
    env.gt(&["save"]).ok();
    settings(&env, "[save]\nauto = false\nresurrect = true");
    env.gt(&["save"]).ok();
    says("usual quiet");
    let text = fs::read_to_string(&seen).unwrap();
    assert_eq!(text.lines().count(), 1, "only since the town wants it");
    let own = script(env.path("it's $(mine)/save.sh"), "own");
    env.tmux(
        Tmux::new("set-option")
            .args(["-g", "@resurrect-save-script-path"])
            .arg(own.to_str().unwrap()),
    );
    env.gt(&["save"]).ok();
    says("own quiet");
}

//! Restoring containers that were lost with their tmux server.

use crate::env::{Answer, TIMEOUT, TestEnv, is_alive, processes_of, signal};
use crate::save::{by_hand, crash, files, history, pane, rewrite, session, settings, text_of};
use gt_tmux::Command as Tmux;
use gt_tmux::testing::wait_until;
use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::process::{Child, Stdio};

/// Returns the agents of a restore, and whether each was restored.
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
    let record = |id: &Value| all.iter().find(|record| record["id"] == *id).unwrap();
    for agent in answer["agents"].as_array().unwrap() {
        assert_eq!(agent["restored"], true, "{agent}");
        assert_eq!(agent["conversation"], "resume", "{agent}");
        let new = record(&agent["session"]);
        let old = record(&new["parent_id"]);
        assert_eq!(old["child_id"], new["id"]);
        assert_eq!(old["outcome"], "crash");
        assert_eq!(old["agent"], new["agent"]);
        assert_eq!(new["chain_id"], old["id"]);
        assert_eq!(new["harness_session_id"], old["harness_session_id"]);
        assert_eq!(new["status"], "running");
        // The old text is in the scrollback, above the visible screen.
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
    assert!(
        again.contains("There is no agent to bring back."),
        "{again}"
    );
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
    wait_until("it has answered", TIMEOUT, || {
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
    // A new shell needs a moment to change to its folder.
    let after = || Some(shape()).filter(|after| *after == before);
    wait_until("all is as it was", TIMEOUT, after);
    wait_until("the old text shows", TIMEOUT, || {
        capture("=hq-mayor:7.0").contains("mine 42").then_some(())
    });
    wait_until("what ran there is told", TIMEOUT, || {
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
    wait_until("it is the program", TIMEOUT, || {
        (name() == "sleep\n").then_some(())
    });
    let text = history(&env, "hq-mayor");
    assert_eq!(text.matches("hello").count(), 2, "{text}");
    let file = env.town().join(".runtime/pids/hq-mayor.pid");
    let file = fs::read_to_string(file).unwrap();
    assert!(file.starts_with(&format!("{pid}|")), "{file}");
    env.gt(&["stop", "mayor"]).ok();
    wait_until("nothing is left", TIMEOUT, || {
        processes_of(env.home()).is_empty().then_some(())
    });
}

#[test]
fn program_that_outlived_its_terminal_is_replaced() {
    let env = TestEnv::with_town();
    by_hand(&env);
    let preset = "[command]\nargs = ['demo-agent', '--ignore-term']\n";
    fs::write(env.town().join("harnesses/demo.toml"), preset).unwrap();
    env.gt(&["start", "mayor"]).ok();
    env.gt(&["save"]).ok();
    let old = env.pid("mayor");
    crash(&env);
    assert!(is_alive(old));
    env.gt(&["restore"]).ok();
    assert!(!is_alive(old), "two would be in one conversation");
    assert_eq!(env.running(), ["mayor"]);
}

#[test]
fn stopped_agent_is_restored_only_by_name() {
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
    wait_until("it is dead", TIMEOUT, || {
        (env.agent("gastown/crew/bob")["state"] == "crashed").then_some(())
    });
    env.gt(&["save"]).ok();
    // The agent was dead for longer than a shutdown takes.
    rewrite(&env, |lines| {
        let is_bob = |line: &&mut Value| line["agent"] == "gastown/crew/bob";
        let bob = lines.iter_mut().find(is_bob).unwrap();
        let dead_for = &mut bob["windows"][0]["panes"][0]["dead_for_seconds"];
        assert!(dead_for.is_i64(), "{dead_for}");
        *dead_for = 600.into();
    });
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
            ("leave", "was ended since (stopped)"),
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
fn session_name_in_use_by_another_is_left_alone() {
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
fn saves_needed_by_a_restore_outlive_later_saves() {
    let env = TestEnv::with_crew(&["max", "amy"]);
    settings(&env, "[save]\nauto = false\nkeep = 1");
    env.gt(&["start", "mayor", "gastown/max", "gastown/amy"])
        .ok();
    env.gt(&["save"]).ok();
    crash(&env);
    // tmux reports the start of a server in whole seconds; the next server must have another one.
    let second = || {
        std::time::SystemTime::UNIX_EPOCH
            .elapsed()
            .unwrap()
            .as_secs()
    };
    let then = second();
    wait_until("the next second", TIMEOUT, || {
        (second() > then).then_some(())
    });
    let none = env.gt(&["save"]).ok().stdout;
    assert!(none.contains("no container was saved"), "{none}");
    assert_eq!(env.json(&["save"]), Value::Null);
    // A new agent and one of the lost agents are started.
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
    // A container that was closed by hand on its own server is not carried over.
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
    let record = env.json(&["sessions", "show", second["session"].as_str().unwrap()]);
    assert_eq!(record["parent_id"], first["session"]);
    let chain = env.json(&["sessions", "chain", second["session"].as_str().unwrap()]);
    assert_eq!(chain["totals"]["lives"], 3, "{chain}");
}

#[test]
fn conversation_id_from_a_hook_is_known_after_a_crash() {
    let env = TestEnv::with_town();
    by_hand(&env);
    // Like Codex: the program chooses its id and reports it by hook.
    let preset = "[command]\nsession_id = []\n";
    fs::write(env.town().join("harnesses/demo.toml"), preset).unwrap();
    env.gt(&["start", "mayor"]).ok();
    let id = wait_until("the hook has spoken", TIMEOUT, || {
        Some(env.format("hq-mayor", "#{@gt_harness_session}")).filter(|id| !id.is_empty())
    });
    let record = env.format("hq-mayor", "#{@gt_session}");
    wait_until("it is remembered", TIMEOUT, || {
        (env.json(&["sessions", "show", &record])["harness_session_id"] == *id).then_some(())
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
fn missing_conversation_starts_a_new_one() {
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
    let record = agent["session"].as_str().unwrap();
    let chain = env.json(&["sessions", "chain", record]);
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
    // The program never shows its ready mark.
    let preset = "[command]\nargs = ['demo-agent', '--startup-delay', '600000']\n\
                  [ready]\ntimeout_seconds = 600\n";
    fs::write(env.town().join("harnesses/demo.toml"), preset).unwrap();
    let restore = env.spawn(&["restore"]);
    wait_until("both come up", TIMEOUT, || {
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
    let trap = format!("#(touch {0}/TRAP)$(touch {0}/TRAP)", env.home().display());
    let text = "first\u{1b}]0;HOSTILE\u{7}\u{1b}]52;c;SE9TVElMRQ==\u{7}\u{1b}[?1049h\u{1b}[?1h\
                \u{1b}[6n\u{1b}[2J\u{1b}[31mred\u{1b}[0m\u{1b}Pq#0\u{1b}\\\u{1b}c last";
    rewrite(&env, |lines| {
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
    });
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
fn a_restore_that_fails_leaves_the_conversation_to_the_next() {
    let env = TestEnv::with_town();
    by_hand(&env);
    env.gt(&["start", "mayor"]).ok();
    env.gt(&["save"]).ok();
    let id = env.json(&["sessions", "list"])[0]["harness_session_id"].clone();
    assert!(id.is_string());
    crash(&env);
    // The program fails in every conversation: `gt` tries the old one and a new one.
    let preset = "[command]\nargs = ['demo-agent', '--fail-at-start', '3']\n";
    fs::write(env.town().join("harnesses/demo.toml"), preset).unwrap();
    for _ in 0..2 {
        env.gt(&["restore"]).fails(1);
    }
    assert_eq!(env.json(&["sessions", "list"]).as_array().unwrap().len(), 5);
    fs::remove_file(env.town().join("harnesses/demo.toml")).unwrap();
    let answer = env.json(&["restore"]);
    assert_eq!(answer["agents"][0]["conversation_id"], id, "{answer}");
    let record = answer["agents"][0]["session"].as_str().unwrap();
    let chain = env.json(&["sessions", "chain", record]);
    assert_eq!(chain["totals"]["lives"], 6, "{chain}");
}

#[test]
fn failure_beside_an_agent_keeps_its_conversation() {
    let env = TestEnv::with_town();
    by_hand(&env);
    env.gt(&["start", "mayor"]).ok();
    env.gt(&["save"]).ok();
    crash(&env);
    // The PID file cannot be written.
    let pids = env.town().join(".runtime/pids");
    fs::remove_dir_all(&pids).unwrap();
    fs::write(&pids, "").unwrap();
    let answer = env.gt(&["restore", "--json"]).fails(1);
    assert_eq!(answer.json()["agents"][0]["conversation"], "resume");
    let sessions = env.json(&["sessions", "list"]);
    assert_eq!(
        sessions.as_array().unwrap().len(),
        2,
        "no new one was begun"
    );
    fs::remove_file(&pids).unwrap();
    let answer = env.json(&["restore"]);
    assert_eq!(answer["agents"][0]["conversation"], "resume", "{answer}");
}

#[test]
fn agent_lost_before_any_save_is_restored_from_the_journal() {
    let env = TestEnv::with_town();
    by_hand(&env);
    let folder = env.path("elsewhere");
    fs::create_dir(&folder).unwrap();
    env.gt(&["start", "deacon"]).ok();
    env.gt(&["start", "mayor", "--work-dir", folder.to_str().unwrap()])
        .ok();
    let started = env.json(&["sessions", "list", "--agent", "mayor"]);
    crash(&env);
    let told = env.gt(&["restore", "--dry-run"]).ok().stdout;
    assert!(told.contains("Would bring back mayor"), "{told}");
    let one = env.json(&["restore", "--agent", "deacon"]);
    assert_eq!(done(&one), [("deacon", true)]);
    assert_eq!(one["save"], Value::Null);
    // A later save does not contain the agent, either.
    env.gt(&["save"]).ok();
    env.gt(&["sync"]).ok();
    let answer = env.json(&["restore"]);
    assert_eq!(done(&answer), [("deacon", false), ("mayor", true)]);
    let mayor = &answer["agents"][1];
    assert_eq!(mayor["conversation_id"], started[0]["harness_session_id"]);
    assert_eq!(env.agent("mayor")["work_dir"], *folder.to_str().unwrap());
    let text = history(&env, "hq-mayor");
    assert!(text.contains("was not saved yet"), "{text}");
    // An old save is restored as it is.
    env.gt(&["start", "boot"]).ok();
    env.gt(&["save"]).ok();
    crash(&env);
    let old = files(&env)[1].file_name().unwrap().to_owned();
    let old = env.json(&["restore", "--dry-run", old.to_str().unwrap()]);
    assert_eq!(old["agents"].as_array().unwrap().len(), 1, "{old}");
}

#[test]
fn closed_or_crashed_agent_is_not_lost() {
    let env = TestEnv::with_town();
    by_hand(&env);
    env.gt(&["start", "mayor", "deacon", "boot"]).ok();
    signal(env.pid("deacon"), Signal::KILL);
    wait_until("it is dead", TIMEOUT, || {
        (env.agent("deacon")["state"] == "crashed").then_some(())
    });
    env.gt(&["stop", "deacon"]).ok();
    env.tmux(Tmux::new("kill-session").target(session("hq-boot")));
    let left = || env.json(&["sessions", "list", "--status", "running"]);
    wait_until("both are over", TIMEOUT, || {
        (left().as_array().unwrap().len() == 1).then_some(())
    });
    crash(&env);
    let answer = env.json(&["restore"]);
    assert_eq!(done(&answer), [("mayor", true)]);
}

#[test]
fn agent_ended_by_a_shutdown_is_restored() {
    let env = TestEnv::with_crew(&["max", "amy"]);
    env.gt(&["crew", "start", "--all"]).ok();
    let names = ["max", "amy"];
    for name in names {
        let container = session(&format!("gt-crew-{name}"));
        let tag = Tmux::new("set-option").target(container);
        env.tmux(tag.args(["@gt_auto_respawn", ""]));
    }
    // As at a shutdown: TERM to every process, then the end of the server.
    for name in names {
        signal(env.pid(&format!("gastown/crew/{name}")), Signal::TERM);
    }
    wait_until("a save has seen them dead", TIMEOUT, || {
        let text = text_of(&env, files(&env).first()?);
        (text.matches("\"dead\":true").count() == 2).then_some(())
    });
    crash(&env);
    let answer = env.json(&["restore"]);
    let all = [("gastown/crew/amy", true), ("gastown/crew/max", true)];
    assert_eq!(done(&answer), all);
    for agent in answer["agents"].as_array().unwrap() {
        assert_eq!(agent["conversation"], "resume", "{agent}");
    }
}

#[test]
fn removed_agent_is_not_restored_and_blocks_no_other() {
    let env = TestEnv::with_crew(&["max", "bob", "eve"]);
    by_hand(&env);
    env.gt(&["agent", "new", "solo"]).ok();
    let all = ["gastown/max", "gastown/bob", "gastown/eve", "agent/solo"];
    env.gt(&[&["start"][..], &all].concat()).ok();
    env.gt(&["save"]).ok();
    crash(&env);
    env.gt(&["crew", "rm", "gastown/bob", "--force"]).ok();
    env.gt(&["sync"]).ok();
    env.gt(&["agent", "rm", "solo", "--force"]).ok();
    // The folder is removed by hand, so no event records it.
    fs::remove_dir_all(env.town().join("gastown/crew/eve")).unwrap();
    let answer = env.gt(&["restore", "--json"]).ok();
    assert!(
        answer.stderr.contains("gastown/crew/eve was removed"),
        "{}",
        answer.stderr
    );
    let answer = answer.json();
    let reason = |agent: &str| {
        let agents = answer["agents"].as_array().unwrap().iter();
        let mut agents = agents.filter(|a| a["agent"] == agent);
        agents.next().unwrap()["reason"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(reason("agent/solo"), "was ended since (stopped)");
    assert_eq!(reason("gastown/crew/bob"), "was ended since (stopped)");
    assert_eq!(reason("gastown/crew/eve"), "was removed");
    assert_eq!(env.running(), ["gastown/crew/max"]);
    env.gt(&["restore", "--agent", "gastown/crew/eve"]).fails(3);
    // A new agent of the same name is not the old one.
    env.gt(&["crew", "add", "gastown/bob"]).ok();
    env.gt(&["restore"]).ok();
    assert_eq!(env.running(), ["gastown/crew/max"]);
}

/// A `gt` process that waits at a named step until it is released.
struct Held<'a> {
    env: &'a TestEnv,
    step: &'a str,
    child: Child,
}

impl<'a> Held<'a> {
    fn at(env: &'a TestEnv, step: &'a str, args: &[&str]) -> Self {
        let gate = env.path(step).display().to_string();
        let mut command = env.gt_command(args);
        command
            .env("GT_HOLD", format!("{step}={gate}"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        Held { env, step, child }
    }

    fn wait_reached(&self) {
        let reached = self.env.path(&format!("{}.reached", self.step));
        wait_until(&format!("{} is reached", self.step), TIMEOUT, || {
            reached.exists().then_some(())
        });
    }

    fn release(self) -> Answer {
        fs::write(self.env.path(self.step), "").unwrap();
        Answer::of(self.child.wait_with_output().unwrap())
    }
}

/// Makes a town whose only agent was lost with its tmux server after a save.
fn lost_worker() -> TestEnv {
    let env = TestEnv::with_crew(&["max"]);
    by_hand(&env);
    env.gt(&["crew", "start", "max"]).ok();
    env.gt(&["save"]).ok();
    crash(&env);
    env
}

/// Checks the answer of a restore that found the worker running.
fn check_left(answer: Answer) {
    let answer = answer.ok().json();
    assert_eq!(done(&answer), [("gastown/crew/max", false)], "{answer}");
    let agent = &answer["agents"][0];
    assert_eq!(agent["action"], "leave", "{answer}");
    assert_eq!(agent["reason"], "is there already", "{answer}");
    assert_eq!(agent["error"], Value::Null, "{answer}");
}

#[test]
fn restore_during_another_restore_reports_its_agents_as_running() {
    let env = lost_worker();
    let first = Held::at(&env, "restore.planned", &["restore", "--json"]);
    first.wait_reached();
    let second = env.spawn(&["restore", "--json"]);
    let first = first.release().ok().json();
    assert_eq!(done(&first), [("gastown/crew/max", true)], "{first}");
    check_left(Answer::of(second.wait_with_output().unwrap()));
}

#[test]
fn restore_that_meets_a_start_under_way_reports_the_agent_as_running() {
    let env = lost_worker();
    let start = Held::at(&env, "start.locked", &["start", "gastown/max"]);
    start.wait_reached();
    // The restore has planned the agent, and has lost the agent's lock to the start.
    let restore = Held::at(&env, "restore.contended", &["restore", "--json"]);
    restore.wait_reached();
    start.release().ok();
    check_left(restore.release());
    assert_eq!(env.running(), ["gastown/crew/max"]);
}

#[test]
fn restore_that_meets_an_agent_started_since_its_plan_reports_it_as_running() {
    let env = lost_worker();
    let restore = Held::at(&env, "restore.planned", &["restore", "--json"]);
    restore.wait_reached();
    env.gt(&["start", "gastown/max"]).ok();
    check_left(restore.release());
    assert_eq!(env.running(), ["gastown/crew/max"]);
}

#[test]
fn restore_that_meets_a_start_that_fails_reports_the_agent_as_not_brought_back() {
    let env = lost_worker();
    let words = ["start", "gastown/max", "--command", "exit 3"];
    let start = Held::at(&env, "start.locked", &words);
    start.wait_reached();
    let restore = Held::at(&env, "restore.contended", &["restore", "--json"]);
    restore.wait_reached();
    start.release().fails(1);
    let answer = restore.release().fails(4).json();
    assert_eq!(done(&answer), [("gastown/crew/max", false)], "{answer}");
    assert_eq!(answer["agents"][0]["action"], "restore", "{answer}");
}

#[test]
fn two_concurrent_restores_act_as_one() {
    let env = TestEnv::with_crew(&["a", "b", "c"]);
    by_hand(&env);
    env.gt(&["crew", "start", "--all"]).ok();
    env.gt(&["save"]).ok();
    crash(&env);
    let answers: Vec<_> = (0..3)
        .map(|_| env.spawn(&["restore", "--json"]))
        .collect::<Vec<_>>()
        .into_iter()
        .map(|child| child.wait_with_output().unwrap())
        .collect();
    let mut restored = Vec::new();
    for answer in &answers {
        assert!(answer.status.success(), "{answer:?}");
        let answer: Value = serde_json::from_slice(&answer.stdout).unwrap();
        let agents = answer["agents"].as_array().unwrap();
        restored.push(agents.iter().filter(|a| a["restored"] == true).count());
    }
    restored.sort_unstable();
    assert_eq!(restored, [0, 0, 3]);
    assert_eq!(env.running().len(), 3);
}

#[test]
fn restore_prints_the_agents() {
    let env = TestEnv::with_crew(&["max"]);
    assert_snapshot!(env.snapshot(&["restore"]), @"
    exit code: 3
    --- stderr
    error: nothing was saved yet
    hint: `gt save --list` shows those there are
    ");
    env.gt(&["start", "gastown/max", "--no-prompt"]).ok();
    env.gt(&["save"]).ok();
    crash(&env);
    assert_snapshot!(env.snapshot(&["restore", "--dry-run"]), @"
    exit code: 0
    --- stdout
    Would bring back gastown/crew/max, in its conversation [UUID].
    ");
    assert_snapshot!(env.snapshot(&["restore"]), @"
    exit code: 0
    --- stdout
    ✓ gastown/crew/max idle in gt-crew-max, in its conversation [UUID] (demo, [N] s)
    ");
    assert_snapshot!(env.snapshot(&["restore"]), @"
    exit code: 0
    --- stdout
    · gastown/crew/max: is there already
    There is no agent to bring back.
    ");
}

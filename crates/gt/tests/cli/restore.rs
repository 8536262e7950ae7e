//! Restoring containers that were lost with their tmux server.

mod concurrent;
mod conversations;
mod wanted;

use crate::env::{TIMEOUT, TestEnv, is_alive, processes_of};
use crate::save::{by_hand, crash, history, pane, rewrite, session};
use gt_tmux::Command as Tmux;
use gt_tmux::testing::wait_until;
use insta::assert_snapshot;
use serde_json::Value;
use std::fs;

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
        let (above, below) = text.split_once("# gt: restored from the save of").unwrap();
        assert!(above.contains(&format!("crash, {name}.")), "{text}");
        assert!(below.contains(&format!("crash, {name}.")), "{text}");
        let screen = env.gt(&["peek", agent["agent"].as_str().unwrap()]).ok();
        assert!(
            !screen.stdout.contains("# gt: restored"),
            "{}",
            screen.stdout
        );
        let peeked = env.gt(&["peek", agent["agent"].as_str().unwrap(), "-n", "500"]);
        assert!(
            peeked.stdout.contains("# gt: restored"),
            "{}",
            peeked.stdout
        );
    }
    say("after it,");
    for agent in answer["agents"].as_array().unwrap() {
        let id = agent["conversation_id"].as_str().unwrap();
        let file = format!(".runtime/demo/sessions/{id}.jsonl");
        let transcript = fs::read_to_string(env.town().join(file)).unwrap();
        assert!(transcript.contains("before the crash"), "{transcript}");
        assert!(transcript.contains("after it"), "{transcript}");
    }

    assert_snapshot!(env.snapshot(&["restore"]), @"
    exit code: 0
    --- stdout
    · gastown/crew/w00: is there already
    · gastown/crew/w01: is there already
    · gastown/crew/w02: is there already
    · gastown/crew/w03: is there already
    · gastown/crew/w04: is there already
    · gastown/crew/w05: is there already
    · gastown/crew/w06: is there already
    · gastown/crew/w07: is there already
    · gastown/crew/w08: is there already
    · gastown/crew/w09: is there already
    · gastown/crew/w10: is there already
    · gastown/crew/w11: is there already
    · gastown/crew/w12: is there already
    · gastown/crew/w13: is there already
    · gastown/crew/w14: is there already
    · gastown/crew/w15: is there already
    · gastown/crew/w16: is there already
    · gastown/crew/w17: is there already
    · gastown/crew/w18: is there already
    · gastown/crew/w19: is there already
    There is no agent to bring back.
    ");
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
fn restore_prints_the_agents() {
    let env = TestEnv::with_crew(&["max"]);
    assert_snapshot!(env.snapshot(&["restore"]), @"
    exit code: 3
    --- stderr
    error: nothing was saved yet
    hint: `gt save --list` shows the available ones
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
    ✓ gastown/crew/max [STATE] in gt-crew-max, in its conversation [UUID] (demo, [N] s)
    ");
    assert_snapshot!(env.snapshot(&["restore"]), @"
    exit code: 0
    --- stdout
    · gastown/crew/max: is there already
    There is no agent to bring back.
    ");
}

//! `gt nudge`: messages arrive exactly once, complete, in order, and at the right agent.
//!
//! Assertions use the demo agent's own log of its prompts.

mod delivery;

use crate::env::{TIMEOUT, TestEnv, kill_at, repetitions, run_with_stdin, signal};
use gt_tmux::testing::wait_until;
use insta::assert_snapshot;
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::fs;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Makes a town whose agents log their prompts and ask for permission.
pub(crate) fn stage(names: &[&str]) -> TestEnv {
    let env = TestEnv::with_crew(names);
    let log = env.path("log");
    let preset = format!(
        "[command]\nargs = ['demo-agent', '--log', '{}']\n",
        log.display()
    );
    fs::write(env.town().join("harnesses/demo.toml"), preset).unwrap();
    env.gt(&["crew", "start", "--all", "--no-prompt", "--ask-permissions"])
        .ok();
    for name in names {
        env.gt(&["wait", &format!("gastown/{name}"), "--timeout", "30"])
            .ok();
    }
    env
}

/// Returns every prompt of all agents, in order.
pub(crate) fn prompts(env: &TestEnv) -> Vec<String> {
    let text = fs::read_to_string(env.path("log")).unwrap_or_default();
    text.lines()
        .map(|line| {
            let entry: serde_json::Value = serde_json::from_str(line).unwrap();
            entry["prompt"].as_str().unwrap().to_owned()
        })
        .collect()
}

fn nudge_stdin(env: &TestEnv, text: &str) -> serde_json::Value {
    let nudge = [
        "nudge",
        "gastown/max",
        "--stdin",
        "--json",
        "--timeout",
        "60",
    ];
    run_with_stdin(&mut env.gt_command(&nudge), text)
        .ok()
        .json()
}

/// Leaves a message in a queue as a killed process does, and returns its id.
fn leave_taken(queue: &std::path::Path, session: &str, text: &str, step: &str) -> String {
    let id = "01a1e156-e018-70ac-8000-7ec3cace9b1e".to_owned();
    let message = serde_json::json!({
        "id": id, "sender": null, "text": text, "priority": "normal",
        "created_at": jiff::Timestamp::now().as_second(),
    });
    fs::create_dir_all(queue.join("taken")).unwrap();
    let name = format!("taken/1-{id}.{session}.{step}");
    fs::write(queue.join(name), message.to_string()).unwrap();
    id
}

#[test]
fn messages_of_every_size_arrive_once_and_whole() {
    let env = stage(&["max"]);
    let lines: Vec<String> = (0..30)
        .map(|n| format!("Zeile {n}: Grüße, 日本語, 👩‍💻 #{{pid}} $(x) \\;"))
        .collect();
    let sizes = [4_096, 65_536, 1_000_000].map(|size| "0123456789abcde ".repeat(size / 16));
    let mut sent = vec!["short".to_owned(), "ends in ;".to_owned(), lines.join("\n")];
    sent.extend(sizes.iter().map(|text| text.trim_end().to_owned()));
    sent.push("after the long ones".to_owned());
    for text in &sent {
        let answer = nudge_stdin(&env, text);
        assert_eq!(
            (answer["delivered"].as_str(), answer["verified"].as_bool()),
            (Some("agent"), Some(true)),
            "{answer}"
        );
    }
    wait_until("all have arrived", TIMEOUT, || {
        (prompts(&env).len() >= sent.len()).then_some(())
    });
    let got = prompts(&env);
    assert_eq!(got.len(), sent.len());
    for (got, sent) in got.iter().zip(&sent) {
        assert!(
            got == sent,
            "{} bytes for {}: {:.80}",
            got.len(),
            sent.len(),
            got
        );
    }
}

#[test]
fn twenty_writers_at_once_are_not_mixed() {
    let env = stage(&["max"]);
    let writers: Vec<Child> = (0..20)
        .map(|n| {
            let text = format!("message {n} first line\nmessage {n} second line");
            env.spawn(&["nudge", "gastown/max", &text, "--timeout", "60", "--json"])
        })
        .collect();
    for writer in writers {
        let output = writer.wait_with_output().unwrap();
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(answer["delivered"], "agent", "{answer}");
    }
    let mut got = prompts(&env);
    got.sort();
    let mut expected: Vec<String> = (0..20)
        .map(|n| format!("message {n} first line\nmessage {n} second line"))
        .collect();
    expected.sort();
    assert_eq!(got, expected);
}

#[test]
fn a_dialog_is_never_answered_by_a_message() {
    let env = stage(&["max"]);
    env.gt(&["nudge", "gastown/max", "[[tool=touch approved]]"])
        .ok();
    env.gt(&[
        "wait",
        "gastown/max",
        "--until",
        "waiting",
        "--timeout",
        "30",
    ])
    .ok();
    for n in 0..6 {
        for mode in ["immediate", "queue", "wait-idle"] {
            let text = format!("{mode} {n}");
            let code = if mode == "immediate" { 6 } else { 0 };
            let answer = env
                .gt(&[
                    "nudge",
                    "gastown/max",
                    &text,
                    "--mode",
                    mode,
                    "--timeout",
                    "0.1",
                    "--json",
                ])
                .fails(code)
                .json();
            assert_eq!(answer["delivered"], "queue", "{answer}");
        }
    }
    let screen = env.gt(&["peek", "gastown/max"]).stdout;
    assert!(
        screen.contains("❯ 1. Yes") && screen.contains("Do you want to proceed?"),
        "{screen}"
    );
    assert!(!env.town().join("gastown/crew/max/approved").exists());
    // A person denies the request; then all queued messages arrive in order.
    env.gt(&["keys", "gastown/max", "2"]).ok();
    wait_until("all that waited has arrived", TIMEOUT, || {
        (prompts(&env).len() == 19).then_some(())
    });
    let expected: Vec<String> = (0..6)
        .flat_map(|n| ["immediate", "queue", "wait-idle"].map(|mode| format!("{mode} {n}")))
        .collect();
    assert_eq!(prompts(&env)[1..], expected);
    assert!(!env.town().join("gastown/crew/max/approved").exists());
}

#[test]
fn a_half_typed_line_is_left_to_its_writer() {
    let env = stage(&["max"]);
    env.gt(&["keys", "gastown/max", "--", "rm", "Space", "-r"])
        .ok();
    env.wait_screen("gastown/max", "❯ rm -r");
    let answer = env
        .gt(&[
            "nudge",
            "gastown/max",
            "hello",
            "--timeout",
            "0.3",
            "--json",
        ])
        .ok()
        .json();
    assert_eq!(answer["delivered"], "queue");
    assert!(
        answer["reason"].as_str().unwrap().contains("begun to type"),
        "{answer}"
    );
    assert!(env.gt(&["peek", "gastown/max"]).stdout.contains("❯ rm -r"));
    env.gt(&["keys", "gastown/max", "C-u"]).ok();
    env.gt(&["nudge", "gastown/max", "second"]).ok();
    wait_until("both have arrived", TIMEOUT, || {
        (prompts(&env) == ["hello", "second"]).then_some(())
    });
}

#[test]
fn urgent_messages_come_first_and_others_can_be_cancelled() {
    let env = stage(&["max"]);
    env.gt(&["nudge", "gastown/max", "[[delay=5]] first"]).ok();
    let send = |text: &str, priority: &str| {
        let args = [
            "nudge",
            "gastown/max",
            text,
            "--mode",
            "queue",
            "--priority",
            priority,
            "--json",
        ];
        env.gt(&args).ok().json()["id"].as_str().unwrap().to_owned()
    };
    send("normal", "normal");
    let unwanted = send("unwanted", "normal");
    send("urgent", "urgent");
    let listed = env.json(&["nudge", "gastown/max", "--list"]);
    let texts: Vec<&str> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["text"].as_str().unwrap())
        .collect();
    assert_eq!(texts, ["urgent", "normal", "unwanted"]);
    env.gt(&["nudge", "gastown/max", "--cancel", &unwanted])
        .ok();
    env.gt(&["nudge", "gastown/max", "--cancel", &unwanted])
        .fails(3);
    wait_until(
        "what waited was delivered at the end of the turn",
        TIMEOUT,
        || (prompts(&env).len() == 3).then_some(()),
    );
    assert_eq!(prompts(&env), ["[[delay=5]] first", "urgent", "normal"]);
}

#[test]
fn full_queue_is_an_error_for_the_sender() {
    let env = stage(&["max"]);
    let settings = env.town().join("town.toml");
    let text = fs::read_to_string(&settings).unwrap();
    fs::write(&settings, format!("{text}\n[nudge]\ndepth = 2\n")).unwrap();
    env.gt(&["nudge", "gastown/max", "[[delay=60]]"]).ok();
    for code in [0, 0, 4] {
        env.gt(&["nudge", "gastown/max", "x", "--mode", "queue"])
            .fails(code);
    }
}

#[test]
fn killed_at_any_moment_nothing_is_doubled_lost_or_left_behind() {
    let env = stage(&["max"]);
    let mut acknowledged = Vec::new();
    // The kills cover the whole duration of the command, as measured on this machine.
    let began = Instant::now();
    let first = "round one of the killing";
    env.gt(&["nudge", "gastown/max", first, "--timeout", "30"])
        .ok();
    let longest = u64::try_from(began.elapsed().as_micros()).unwrap() * 3;
    // The limits exclude load peaks.
    let longest = longest.clamp(151_000, 1_000_000);
    let rounds = u64::try_from(repetitions(200, 50)).unwrap();
    for round in 0..rounds {
        let text = format!("round {round} of the killing");
        let child = env.spawn(&["nudge", "gastown/max", &text, "--timeout", "30"]);
        // Evenly distributed, in a permuted order.
        let share = round * 37 % rounds;
        let at = Instant::now() + Duration::from_micros(longest * share / rounds);
        let (output, _) = kill_at(child, at);
        if output.status.success() {
            acknowledged.push(text);
        }
    }
    env.gt(&["nudge", "gastown/max", "the end", "--timeout", "60"])
        .ok();
    wait_until("the end has arrived", TIMEOUT, || {
        prompts(&env).contains(&"the end".to_owned()).then_some(())
    });
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for prompt in prompts(&env) {
        *counts.entry(prompt).or_default() += 1;
    }
    for (prompt, count) in &counts {
        assert_eq!(*count, 1, "{prompt:?}");
        assert!(
            prompt == "the end"
                || (prompt.starts_with("round ") && prompt.ends_with(" of the killing")),
            "{prompt:?}"
        );
    }
    for text in &acknowledged {
        assert!(
            counts.contains_key(text),
            "{text:?} was acknowledged and is lost"
        );
    }
    assert!(
        counts.len() as u64 > rounds / 10,
        "hardly any got as far as the queue: {}",
        counts.len()
    );
}

#[test]
fn messages_from_twenty_processes_to_many_agents_arrive_once() {
    // With all repetitions: a thousand messages to fifty agents.
    let agents = repetitions(50, 10);
    let names: Vec<String> = (0..agents).map(|n| format!("w{n:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let env = stage(&names);
    let gt = env!("CARGO_BIN_EXE_gt");
    let writers: Vec<Child> = (0..20)
        .map(|writer| {
            let script = format!(
                "for i in $(seq 1 {agents}); do n=$(( (i + {writer} * 7) % {agents} )); '{gt}' nudge gastown/w$(printf %02d $n) \"writer {writer} to $n\" --timeout 60 >/dev/null || echo failed $n; done"
            );
            let mut command = env.command("sh");
            command.args(["-c", &script]).stdout(Stdio::piped());
            command.spawn().unwrap()
        })
        .collect();
    for writer in writers {
        let output = writer.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    }
    wait_until("all have arrived", TIMEOUT, || {
        (prompts(&env).len() >= 20 * agents).then_some(())
    });
    let mut got = prompts(&env);
    got.sort();
    let mut expected: Vec<String> = (0..20)
        .flat_map(|w| (0..agents).map(move |n| format!("writer {w} to {n}")))
        .collect();
    expected.sort();
    assert_eq!(got, expected);
}

#[test]
fn unreadable_screen_is_redrawn() {
    let env = TestEnv::with_town();
    env.gt(&["start", "mayor", "--no-prompt"]).ok();
    let facts = env.format("hq-mayor", "#{pane_tty} #{window_width} #{window-size}");
    let tty = facts.split(' ').next().unwrap();
    // The screen is cleared without the program's knowledge.
    fs::write(tty, "\x1b[H\x1b[2J").unwrap();
    let answer = env.json(&["nudge", "mayor", "are you there"]);
    assert_eq!(answer["delivered"], "agent", "{answer}");
    env.wait_screen("mayor", "are you there");
    wait_until("its window is as it was", TIMEOUT, || {
        let after = env.format("hq-mayor", "#{pane_tty} #{window_width} #{window-size}");
        (facts == after).then_some(())
    });
}

#[test]
fn unknown_program_gets_its_messages() {
    let env = TestEnv::with_town();
    let script = env.path("parrot");
    fs::write(
        &script,
        "#!/bin/sh\nwhile :; do printf '> '; IFS= read -r line || exit; printf 'got %s\\n' \"$line\"; done\n",
    )
    .unwrap();
    fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    fs::write(
        env.town().join("harnesses/parrot.toml"),
        format!(
            "title = 'Parrot'\n[command]\nprogram = '{}'\n[process]\nnames = ['parrot', 'sh']\n[screen]\nready = ['^> ']\n",
            script.display()
        ),
    )
    .unwrap();
    env.gt(&["start", "mayor", "--harness", "parrot", "--no-prompt"])
        .ok();
    for text in [
        "one",
        "a rather longer message, which has more than a few words",
    ] {
        let answer = env.json(&["nudge", "mayor", text]);
        assert_eq!(answer["delivered"], "agent", "{answer}");
        assert_eq!(answer["proof"], "line", "{answer}");
        env.wait_screen("mayor", &format!("got {text}"));
    }
}

#[test]
fn message_half_typed_into_an_ended_session_goes_to_the_next() {
    let env = TestEnv::with_town();
    env.gt(&["start", "mayor", "--no-prompt"]).ok();
    // The state that a process leaves when it is killed right before Enter.
    let queue = env.town().join(".runtime/nudges/mayor");
    let session = env.format("hq-mayor", "#{@gt_session}");
    leave_taken(&queue, &session, "for the session", "0.entering");
    let listed = env.json(&["nudge", "mayor", "--list"]);
    assert_eq!(listed[0]["phase"], "entering", "{listed}");
    env.gt(&["stop", "mayor", "--force"]).ok();
    env.gt(&["start", "mayor", "--no-prompt"]).ok();
    env.gt(&["nudge", "mayor", "the next one"]).ok();
    env.wait_screen("mayor", "> for the session");
    env.wait_screen("mayor", "> the next one");
    let waiting = env.json(&["nudge", "mayor", "--list"]);
    assert_eq!(waiting, serde_json::json!([]));
}

#[test]
fn odd_messages_arrive_like_any_other() {
    let env = stage(&["max"]);
    let sent = [
        "y",
        "1",
        "continue",
        "continue",
        "what does [Pasted text #3 +9 lines] mean?",
        "Press up to edit queued messages",
        "ends with a backslash \\",
        "[from no-one] x",
    ];
    for text in sent {
        let answer = env.json(&["nudge", "gastown/max", text, "--timeout", "20"]);
        assert_eq!(answer["delivered"], "agent", "{text:?}: {answer}");
    }
    wait_until("all have arrived", TIMEOUT, || {
        (prompts(&env).len() >= sent.len()).then_some(())
    });
    let got: Vec<String> = prompts(&env);
    let got: Vec<&str> = got.iter().map(|text| text.trim_end()).collect();
    assert_eq!(got, sent);
}

#[test]
fn agent_that_ends_during_typing_is_not_reached() {
    let env = stage(&["max"]);
    env.gt(&["nudge", "gastown/max", "[[delay=30]]"]).ok();
    let pid = env.pid("gastown/crew/max");
    let waiting = env.spawn(&[
        "nudge",
        "gastown/max",
        "too late",
        "--timeout",
        "60",
        "--json",
    ]);
    wait_until("it waits for the end of the turn", TIMEOUT, || {
        let waiting = env.json(&["nudge", "gastown/max", "--list"]);
        (waiting.as_array().unwrap().len() == 1).then_some(())
    });
    signal(pid, Signal::KILL);
    let output = waiting.wait_with_output().unwrap();
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["delivered"], "queue", "{answer}");
    assert_eq!(answer["reason"], "it has ended", "{answer}");
    // The next session gets the message.
    env.gt(&["start", "gastown/max", "--no-prompt"]).ok();
    wait_until("it has arrived", TIMEOUT, || {
        prompts(&env).contains(&"too late".to_owned()).then_some(())
    });
}

#[test]
fn nudge_prints_where_the_message_is() {
    let env = stage(&["max"]);
    env.gt(&["nudge", "gastown/max", "[[delay=60]]"]).ok();
    wait_until("it is busy", TIMEOUT, || {
        (env.agent("gastown/crew/max")["state"] == "busy").then_some(())
    });
    assert_snapshot!(env.snapshot(&["nudge", "gastown/max", "now", "--timeout", "1"]), @"
    exit code: 0
    --- stdout
    Waits in the queue of gastown/crew/max: it is busy. A background process delivers it as soon as the agent is ready, until [TIME] [TIME].
    --- stderr
    Waiting up to [N] s for gastown/crew/max: it is busy.
    ");
    assert_snapshot!(env.snapshot(&["nudge", "gastown/max", "later", "--mode", "queue"]), @"
    exit code: 0
    --- stdout
    Waits in the queue of gastown/crew/max. A background process delivers it as soon as the agent is ready, until [TIME] [TIME].
    ");
    assert_snapshot!(env.snapshot(&["nudge", "gastown/max", "--list"]), @"
    exit code: 0
    --- stdout
    ID  PRIORITY  PHASE  AGE  FROM  MESSAGE
    [UUID]  normal  waiting  [N]  [USER]  now
    [UUID]  normal  waiting  [N]  [USER]  later
    ");
    assert_snapshot!(env.snapshot(&["nudge", "gastown/max", ""]), @"
    exit code: 2
    --- stderr
    error: the message is empty
    ");
    assert_snapshot!(env.snapshot(&["nudge", "mayor", "anyone there?"]), @"
    exit code: 3
    --- stderr
    error: mayor is not running
    hint: `gt start mayor` starts it
    ");
}

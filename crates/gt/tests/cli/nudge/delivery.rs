//! Delivery of messages without another command, and of texts that terminals render badly.
//!
//! Assertions use the agent's own log of its prompts.

use crate::env::{TIMEOUT, TestEnv, is_alive, processes_of, signal};
use crate::stopwatch::Stopwatch;
use gt_tmux::testing::{wait_until, wait_until_or};
use gt_tmux::{Command as Tmux, SessionName};
use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Makes a town with one agent that logs its prompts.
fn stage(more: &str) -> TestEnv {
    let env = TestEnv::with_crew(&["max"]);
    let preset = format!(
        "[command]\nargs = ['demo-agent', '--log', '{}']\n{more}",
        env.path("log").display()
    );
    fs::write(env.town().join("harnesses/demo.toml"), preset).unwrap();
    env.gt(&["crew", "start", "max", "--no-prompt", "--ask-permissions"])
        .ok();
    env.gt(&["wait", "gastown/max", "--timeout", "30"]).ok();
    env
}

/// Preset without hooks: only the screen shows the agent's state.
const WITHOUT_HOOKS: &str = "[hooks]\ninstaller = ''\n";

/// Preset without hooks and without a known location of transcripts.
const WITHOUT_PROOF: &str = "[hooks]\ninstaller = ''\n[usage]\nfiles = []\n";

fn prompts(env: &TestEnv) -> Vec<String> {
    let text = fs::read_to_string(env.path("log")).unwrap_or_default();
    let prompt = |line: &str| -> String {
        let entry: Value = serde_json::from_str(line).unwrap();
        entry["prompt"].as_str().unwrap().to_owned()
    };
    text.lines().map(prompt).collect()
}

#[track_caller]
fn await_prompts(env: &TestEnv, expected: &[&str]) {
    let arrived = || (prompts(env) == expected).then_some(());
    wait_until_or("all messages have arrived", TIMEOUT, arrived, || {
        format!(
            "{:?}\n{}\n{}",
            prompts(env),
            env.gt(&["nudge", "gastown/max", "--list", "--json"]).stdout,
            env.gt(&["peek", "gastown/max"]).stdout
        )
    });
}

fn queue(env: &TestEnv) -> PathBuf {
    env.town().join(".runtime/nudges/gastown.crew.max")
}

/// Presses keys without `gt`.
fn press(env: &TestEnv, container: &str, keys: &[&str]) {
    let target = SessionName::try_from(container).unwrap();
    env.tmux(
        Tmux::new("send-keys")
            .target(target)
            .arg("--")
            .args(keys.iter().copied()),
    );
}

fn container(env: &TestEnv) -> String {
    env.agent("gastown/crew/max")["container"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// Ends the tmux server, and waits until it is gone.
fn kill_server(env: &TestEnv) {
    env.tmux(Tmux::new("kill-server"));
    wait_until("the server is gone", TIMEOUT, || {
        let answer = env.server().run(Tmux::new("list-sessions"));
        answer.is_err().then_some(())
    });
}

#[test]
fn hostile_texts_arrive_and_do_not_block_the_queue() {
    let env = stage("");
    let marks = format!("e{} marks", "\u{301}".repeat(30));
    let only_marks = format!("o{}", "\u{308}".repeat(30));
    let long_cluster = format!("👨{}", "\u{200d}👩".repeat(40));
    let sent = [
        "👨\u{200d}👩\u{200d}👧\u{200d}👦",
        "👩\u{200d}❤\u{fe0f}\u{200d}💋\u{200d}👨",
        "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
        "🇩🇪🇫🇷🇬🇧",
        &marks,
        &only_marks,
        "a\u{fffe}b",
        "a\u{ffff}b\u{1fffe}c",
        "a\u{378}b",
        "a family 👨\u{200d}👩\u{200d}👧\u{200d}👦 in the middle of a line that is long",
        "ends with 👨\u{200d}👩\u{200d}👧\u{200d}👦",
        "👨\u{200d}👩\u{200d}👧\u{200d}👦👨\u{200d}👩\u{200d}👧\u{200d}👦",
        "👨\u{200d}👩\u{200d}👧\u{200d}👦🎉",
        &long_cluster,
        "👍🏽 👍",
        "🏳\u{fe0f}\u{200d}🌈",
        "1\u{fe0f}\u{20e3}",
        "Z\u{351}\u{36b}\u{313}\u{36a}\u{302}\u{36b}\u{33d}\u{34f}\u{334}\u{319}\u{324}\u{31e}A",
        "zero\u{200b}width\u{200d}joined\u{2060}",
        "\u{feff}with a mark",
        "right \u{202e}to left\u{202c}",
        "soft\u{ad}hyphen",
        "क्षि नमस्ते",
        "กำ สวัสดี",
        "لا السلام عليكم",
        "각 \u{1100}\u{1161}\u{11a8}",
        "private \u{e000}\u{f0000} use",
        "line\u{2028}separator\u{2029}s",
        "\u{fff9}annotated\u{fffa}",
        "\u{fffd} replaced",
        "日\u{200d}本語、テスト。",
        "the\u{a0}last\u{3000}one",
    ];
    assert_eq!(sent.len(), 32);
    for text in sent {
        let answer = env.json(&["nudge", "gastown/max", text, "--timeout", "30"]);
        assert_eq!(answer["delivered"], "agent", "{text:?}: {answer}");
    }
    wait_until("all have arrived", TIMEOUT, || {
        (prompts(&env).len() >= sent.len()).then_some(())
    });
    assert_eq!(prompts(&env), sent);
    assert_eq!(env.json(&["nudge", "gastown/max", "--list"]), json!([]));
}

#[test]
fn text_without_a_visible_character_is_refused() {
    let env = stage("");
    let refused = ["\u{fffe}", "\u{200b}\u{feff}", "\u{301}"]
        .map(|text| env.snapshot(&["nudge", "gastown/max", text]));
    assert_snapshot!(refused.join("\n"), @"
    exit code: 2
    --- stderr
    error: the message has no character that a terminal can show
    hint: add a word, or name a sender: `--sender ADDRESS`

    exit code: 2
    --- stderr
    error: the message has no character that a terminal can show
    hint: add a word, or name a sender: `--sender ADDRESS`

    exit code: 2
    --- stderr
    error: the message has no character that a terminal can show
    hint: add a word, or name a sender: `--sender ADDRESS`
    ");
    let named = ["nudge", "gastown/max", "\u{fffe}", "--sender", "mayor"];
    assert_eq!(env.json(&named)["delivered"], "agent");
}

#[test]
fn queued_message_reaches_an_idle_agent_without_another_command() {
    for more in ["", WITHOUT_HOOKS] {
        let env = stage(more);
        let watch = Stopwatch::start();
        let sent = env.json(&["nudge", "gastown/max", "one", "--mode", "queue"]);
        watch.assert_within("queueing", Duration::from_secs(5));
        assert_eq!(sent["delivered"], "queue", "{sent}");
        assert_eq!(sent["deliverer"], "background", "{sent}");
        assert!(sent["tries_until"].is_string(), "{sent}");
        await_prompts(&env, &["one"]);
        let queue = queue(&env);
        wait_until("the background process has ended", TIMEOUT, || {
            let waiting = fs::read_dir(queue.join("taken")).unwrap().count();
            let pid = fs::read_to_string(queue.join("deliverer.lock")).ok()?;
            let pid = pid.trim().parse().ok()?;
            (waiting == 0 && !is_alive(pid)).then_some(())
        });
    }
}

#[test]
fn message_that_met_a_busy_agent_or_a_half_typed_line_is_delivered_later() {
    let env = stage(WITHOUT_HOOKS);
    let name = container(&env);
    env.gt(&["nudge", "gastown/max", "[[delay=3]] first"]).ok();
    let args = ["nudge", "gastown/max", "second", "--timeout", "0.2"];
    assert_snapshot!(env.snapshot(&args), @"
    exit code: 0
    --- stdout
    Waits in the queue of gastown/crew/max: it is busy. A background process delivers it as soon as the agent is ready, until [TIME] [TIME].
    --- stderr
    Waiting up to [N] s for gastown/crew/max: it is busy.
    ");
    await_prompts(&env, &["[[delay=3]] first", "second"]);
    env.wait_screen("gastown/max", "> second");
    press(&env, &name, &["half", "Space", "typed"]);
    env.wait_screen("gastown/max", "❯ half typed");
    let third = env.json(&["nudge", "gastown/max", "third", "--timeout", "0.2"]);
    assert_eq!(third["delivered"], "queue", "{third}");
    press(&env, &name, &["C-u"]);
    await_prompts(&env, &["[[delay=3]] first", "second", "third"]);
}

/// Removes the hooks of tmux that call `gt internal sync`, and waits for the calls of `gt` that are due
/// or have begun: a sync or a save would have waiting messages delivered.
fn end_automatic_calls(env: &TestEnv) {
    for event in gt_town::terminal::tmux_hooks::EVENTS {
        env.tmux(Tmux::new("set-hook").args(["-gu", event]));
    }
    wait_until("no automatic call runs", TIMEOUT, || {
        let is_call = |pid: &u32| {
            let words = fs::read(format!("/proc/{pid}/cmdline"));
            let words = words.unwrap_or_default();
            let words = String::from_utf8_lossy(&words);
            ["\0sync", "\0save"].iter().any(|it| words.contains(it))
        };
        let options = env.tmux(Tmux::new("show-options").args(["-gq"]));
        let is_due = |line: &str| {
            let marks = ["@gt_sync_due", "@gt_save_due"];
            marks.iter().any(|mark| line.starts_with(mark))
        };
        let is_quiet =
            !options.lines().any(is_due) && !processes_of(env.home()).iter().any(is_call);
        is_quiet.then_some(())
    });
}

/// Queues two messages for an agent that is not ready, and kills the process that delivers them.
/// Returns the process, and makes the agent ready.
fn kill_deliverer(env: &TestEnv) -> u32 {
    let name = container(env);
    press(env, &name, &["x"]);
    env.wait_screen("gastown/max", "❯ x");
    let send = |text| {
        env.gt(&["nudge", "gastown/max", text, "--mode", "queue"])
            .ok()
    };
    send("one");
    // The second message finds the process waiting, and starts no other.
    let killed = wait_until("the background process waits", TIMEOUT, || deliverer(env));
    send("two");
    signal(killed, Signal::KILL);
    wait_until("it is gone", TIMEOUT, || (!is_alive(killed)).then_some(()));
    press(env, &name, &["C-u"]);
    assert_eq!(prompts(env), Vec::<String>::new());
    killed
}

/// Returns the process that took the deliverer's lock last.
fn deliverer(env: &TestEnv) -> Option<u32> {
    let holder = fs::read_to_string(queue(env).join("deliverer.lock")).ok()?;
    holder.trim().parse().ok()
}

#[test]
fn killed_deliverer_is_replaced_by_sync_and_not_by_reads() {
    let env = stage(WITHOUT_HOOKS);
    end_automatic_calls(&env);
    let killed = kill_deliverer(&env);
    for read in [&["agents"][..], &["status"], &["status-line"]] {
        env.gt(read).ok();
    }
    assert_eq!(deliverer(&env), Some(killed), "a read starts no delivery");
    env.gt(&["sync"]).ok();
    await_prompts(&env, &["one", "two"]);
}

#[test]
fn line_of_the_previous_version_delivers() {
    let env = stage(WITHOUT_HOOKS);
    kill_deliverer(&env);
    let line = "GT_CALLER=gt #{q:@gt_bin} --town #{q:@gt_town} nudge --drain #{q:@gt_agent} \
                >/dev/null 2>&1 || true";
    let target = SessionName::try_from(container(&env).as_str()).unwrap();
    env.tmux(Tmux::new("run-shell").arg("-b").target(target).arg(line));
    await_prompts(&env, &["one", "two"]);
}

/// Returns the CPU time of a process in clock ticks.
#[cfg(target_os = "linux")]
fn cpu_ticks(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split(' ').collect();
    fields[12].parse::<u64>().unwrap() + fields[13].parse::<u64>().unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn message_that_cannot_be_read_does_not_make_the_deliverer_spin() {
    let env = stage("");
    env.gt(&["nudge", "gastown/max", "one"]).ok();
    fs::write(queue(&env).join("new/1-zz"), "not a message").unwrap();
    env.gt(&["nudge", "gastown/max", "two", "--mode", "queue"])
        .ok();
    await_prompts(&env, &["one", "two"]);
    let pid = fs::read_to_string(queue(&env).join("deliverer.lock")).unwrap();
    let pid: u32 = pid.trim().parse().unwrap();
    // A deliverer that sleeps takes almost no CPU time in a second.
    let mut since = (cpu_ticks(pid), Instant::now());
    wait_until("the background process sleeps", TIMEOUT, || {
        let passed = since.1.elapsed();
        if passed < Duration::from_secs(1) {
            return None;
        }
        let now = cpu_ticks(pid);
        let taken = Duration::from_millis(10 * (now - since.0));
        since = (now, Instant::now());
        (taken * 50 < passed).then_some(())
    });
    env.gt(&["nudge", "gastown/max", "three", "--mode", "queue"])
        .ok();
    await_prompts(&env, &["one", "two", "three"]);
}

#[test]
fn expired_and_unreadable_messages_are_reported() {
    let env = stage("");
    env.gt(&["nudge", "gastown/max", "one"]).ok();
    let old = r#"{"id":"old","text":"late","priority":"normal","created_at":1,"expires_at":2}"#;
    fs::write(queue(&env).join("new/1-old"), old).unwrap();
    fs::write(queue(&env).join("new/1-zz"), "not a message").unwrap();
    assert_snapshot!(env.snapshot(&["nudge", "gastown/max", "--list"]), @"
    exit code: 0
    --- stdout
    Nothing waits for gastown/crew/max.
    --- stderr
    warning: cannot read the message ~/gt/.runtime/nudges/gastown.crew.max/new/1-zz: expected ident at line 1 column 2
    ");
    env.gt(&["nudge", "gastown/max", "two"]).ok();
    let log = env.gt(&["logs"]).ok().stdout;
    // The command or the background process of the first message reports it.
    let expected = ": the message old to gastown/crew/max expired undelivered";
    assert!(log.contains(expected), "{log}");
    let events = env.json(&["events", "--type", "nudge"]);
    let events = events.as_array().unwrap();
    let told = events.iter().find(|event| event["payload"]["id"] == "old");
    assert_eq!(told.unwrap()["payload"]["reason"], "expired");
    assert_eq!(told.unwrap()["payload"]["delivered"], "failed");
}

/// Makes a program whose input line shows a different text for some messages, and no text for
/// others.
fn stage_garbling() -> TestEnv {
    let env = TestEnv::with_crew(&["max"]);
    let script = env.path("garbler");
    let log = env.path("log");
    let rule = "─".repeat(40);
    let text = format!(
        r#"#!/bin/sh
stty raw -echo
line=
draw() {{
    case $line in
        *garble*) shown='~~ something else ~~' ;;
        *swallow*) shown= ; line= ;;
        *) shown=$line ;;
    esac
    printf '\033[H\033[2J{rule}\r\n❯ %s\r\n{rule}\r\n' "$shown"
}}
trap draw WINCH
draw
cr=$(printf '\r'); kill=$(printf '\025'); back=$(printf '\177')
while :; do
    byte=$(dd bs=1 count=1 2>/dev/null)
    case $byte in
        "$cr") printf '{{"prompt":"%s"}}\n' "$line" >>'{log}'; line= ;;
        "$kill") line= ;;
        "$back") ;;
        '') line="$line " ;;
        *) line="$line$byte" ;;
    esac
    draw
done
"#,
        log = log.display()
    );
    fs::write(&script, text).unwrap();
    fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
    let preset = format!(
        "title = 'Garbler'\n[command]\nprogram = '{}'\n[process]\nnames = ['garbler', 'sh']\n\
         [screen]\nready = ['^❯ ']\n[screen.input]\nframe = 'rules'\nprompts = ['❯ ']\n",
        script.display()
    );
    fs::write(env.town().join("harnesses/garbler.toml"), preset).unwrap();
    env.gt(&[
        "crew",
        "start",
        "max",
        "--harness",
        "garbler",
        "--no-prompt",
    ])
    .ok();
    env
}

#[test]
fn message_that_is_shown_as_another_text_is_set_aside_and_the_next_is_delivered() {
    let env = stage_garbling();
    assert_snapshot!(env.snapshot(&["nudge", "gastown/max", "garble", "--timeout", "20"]), @"
    exit code: 1
    --- stderr
    error: the message to gastown/crew/max was set aside: not delivered: its program shows a different text than was typed
    hint: it is kept: `gt nudge gastown/crew/max --list` shows it, `--again [UUID]` sends it again, `--cancel [UUID]` drops it
    ");
    let next = env.json(&["nudge", "gastown/max", "next", "--timeout", "20"]);
    assert_eq!(next["delivered"], "agent", "{next}");
    assert_eq!(prompts(&env), ["next"]);
    let listed = env.json(&["nudge", "gastown/max", "--list"]);
    assert_eq!(listed[0]["phase"], "set aside", "{listed}");
    assert_eq!(listed[0]["text"], "garble", "{listed}");
    let events = env.gt(&["events", "--type", "nudge", "--json"]).ok().stdout;
    assert!(
        events.contains("not delivered: its program shows"),
        "{events}"
    );
    let id = listed[0]["id"].as_str().unwrap();
    env.gt(&["nudge", "gastown/max", "--cancel", id]).ok();
    assert_eq!(env.json(&["nudge", "gastown/max", "--list"]), json!([]));
}

#[test]
fn message_is_in_one_place_after_a_kill_while_it_is_set_aside() {
    let env = stage_garbling();
    env.kill_at_fault(
        &["nudge", "gastown/max", "garble", "--timeout", "20"],
        "nudge.aside",
    );
    let listed = env.json(&["nudge", "gastown/max", "--list"]);
    assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
    assert_eq!(listed[0]["phase"], "set aside", "{listed}");
    let reason = listed[0]["reason"].as_str().unwrap();
    assert!(reason.contains("gt was killed"), "{reason}");
    let next = env.json(&["nudge", "gastown/max", "next", "--timeout", "20"]);
    assert_eq!(next["delivered"], "agent", "{next}");
    assert_eq!(prompts(&env), ["next"]);
    let id = listed[0]["id"].as_str().unwrap();
    env.gt(&["nudge", "gastown/max", "--cancel", id]).ok();
    assert_eq!(env.json(&["nudge", "gastown/max", "--list"]), json!([]));
}

#[test]
fn message_that_is_not_shown_at_all_is_set_aside_in_the_end() {
    let env = stage_garbling();
    for text in ["swallow", "next"] {
        env.gt(&["nudge", "gastown/max", text, "--mode", "queue"])
            .ok();
    }
    wait_until("the second one has arrived", TIMEOUT * 2, || {
        (prompts(&env) == ["next"]).then_some(())
    });
    wait_until("only the first one is left", TIMEOUT, || {
        let listed = env.json(&["nudge", "gastown/max", "--list"]);
        let [first] = listed.as_array().unwrap().as_slice() else {
            return None;
        };
        (first["phase"] == "set aside" && first["text"] == "swallow").then_some(())
    });
}

#[test]
fn own_paste_in_the_line_is_submitted_before_an_immediate_message() {
    let env = stage("");
    env.kill_at_fault(
        &[
            "nudge",
            "gastown/max",
            "left in the line 👨\u{200d}👩\u{200d}👧\u{200d}👦",
        ],
        "nudge.pasted",
    );
    env.wait_screen("gastown/max", "❯ left in the line");
    let sent = env.gt(&[
        "nudge",
        "gastown/max",
        "at once",
        "--mode",
        "immediate",
        "--json",
    ]);
    let sent: Value = serde_json::from_str(&sent.stdout).unwrap();
    let delivered = sent["delivered"].as_str().unwrap();
    // The first message has begun a turn, so the second may have to wait for its end.
    assert!(
        delivered == "agent" || sent["reason"] == "it is busy",
        "{sent}"
    );
    let first = "left in the line 👨\u{200d}👩\u{200d}👧\u{200d}👦";
    await_prompts(&env, &[first, "at once"]);
}

#[test]
fn cancel_removes_a_recognised_text_from_the_input_line() {
    // A hook that is late would have the message delivered by a background process.
    let env = stage(WITHOUT_HOOKS);
    end_automatic_calls(&env);
    env.kill_at_fault(
        &["nudge", "gastown/max", "not\nwanted\nany more"],
        "nudge.pasted",
    );
    env.wait_screen("gastown/max", "any more");
    let listed = env.json(&["nudge", "gastown/max", "--list"]);
    assert_eq!(listed[0]["phase"], "pasting", "{listed}");
    assert_snapshot!(env.snapshot(&["nudge", "gastown/max", "--list"]), @"
    exit code: 0
    --- stdout
    ID  PRIORITY  PHASE  AGE  FROM  MESSAGE
    [UUID]  normal  pasting  [N]  [USER]  not ⏎ wanted ⏎ any more
    ");
    let id = listed[0]["id"].as_str().unwrap();
    env.gt(&["nudge", "gastown/max", "--cancel", id]).ok();
    env.gt(&["nudge", "gastown/max", "other"]).ok();
    await_prompts(&env, &["other"]);
}

#[test]
fn cancel_leaves_another_text_of_the_same_sender_in_the_input_line() {
    let mut env = stage("");
    // A listing would start a background delivery, so nothing is listed after the first message.
    let name = container(&env);
    env.set("GT_FAULT", "nudge.pasted");
    let message = ["nudge", "gastown/max", "the build is red"];
    env.gt(&[&message[..], &["--sender", "gastown/polecats/Toast"]].concat());
    env.set("GT_FAULT", "");
    env.wait_screen("gastown/max", "the build is red");
    let other = "[from gastown/polecats/Toast] the build is green";
    press(&env, &name, &["C-u", other]);
    env.wait_screen("gastown/max", &format!("❯ {other}"));
    let taken = fs::read_dir(queue(&env).join("taken")).unwrap().next();
    let taken = taken.unwrap().unwrap().file_name().into_string().unwrap();
    let id = taken.split('.').next().unwrap().trim_start_matches("1-");
    env.gt(&["nudge", "gastown/max", "--cancel", id]);
    let screen = env.gt(&["peek", "gastown/max"]).ok().stdout;
    assert!(screen.contains(&format!("❯ {other}")), "{screen}");
}

#[test]
fn message_is_not_sent_twice_after_gt_and_tmux_have_died() {
    for more in ["", WITHOUT_HOOKS] {
        let env = stage(more);
        env.kill_at_fault(&["nudge", "gastown/max", "exactly once"], "nudge.entered");
        await_prompts(&env, &["exactly once"]);
        env.gt(&["wait", "gastown/max", "--timeout", "30"]).ok();
        kill_server(&env);
        env.gt(&["crew", "start", "max", "--no-prompt"]).ok();
        let next = env.json(&["nudge", "gastown/max", "the next", "--timeout", "30"]);
        assert_eq!(next["delivered"], "agent", "{next}");
        assert_eq!(prompts(&env), ["exactly once", "the next"], "{more}");
    }
}

#[test]
fn message_without_any_proof_is_set_aside_and_sent_again_by_request() {
    let env = stage(WITHOUT_PROOF);
    env.kill_at_fault(&["nudge", "gastown/max", "perhaps"], "nudge.entered");
    await_prompts(&env, &["perhaps"]);
    kill_server(&env);
    env.gt(&["crew", "start", "max", "--no-prompt"]).ok();
    let next = env.json(&["nudge", "gastown/max", "the next", "--timeout", "30"]);
    assert_eq!(next["delivered"], "agent", "{next}");
    assert_eq!(prompts(&env), ["perhaps", "the next"]);
    // The message is reported, kept, and can be sent again.
    let listed = env.json(&["nudge", "gastown/max", "--list"]);
    assert_eq!(listed[0]["phase"], "set aside", "{listed}");
    let reason = listed[0]["reason"].as_str().unwrap();
    assert!(reason.starts_with("delivery unknown"), "{reason}");
    let events = env.json(&["events", "--type", "nudge"]).to_string();
    assert!(events.contains("delivery unknown"), "{events}");
    let id = listed[0]["id"].as_str().unwrap();
    let again = env.json(&["nudge", "gastown/max", "--again", id]);
    assert_eq!(again["deliverer"], "background", "{again}");
    await_prompts(&env, &["perhaps", "the next", "perhaps"]);
    wait_until("nothing is set aside", TIMEOUT, || {
        let listed = env.json(&["nudge", "gastown/max", "--list"]);
        (listed == serde_json::json!([])).then_some(())
    });
    env.gt(&["nudge", "gastown/max", "--again", id]).fails(3);
}

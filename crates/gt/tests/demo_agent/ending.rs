//! Interrupts, signals, and the ways to leave.

use crate::stage::Stage;
use std::fs;
use std::process::Command;

#[test]
fn escape_interrupts_without_a_hook() {
    let stage = Stage::empty();
    stage.start(&["--settings", &stage.settings()]);
    stage.wait_ready();
    stage.say("[[delay=100]]");
    stage.wait_until("a busy line that counts", |screen| {
        screen.contains("✻ Working… (")
            && screen.contains("s · esc to interrupt)\n─")
            && !screen.contains("(0s")
    });
    stage.wait_title("◑ demo");
    stage.keys(&["Escape"]);
    stage.wait_for("  ⎿  Interrupted · What should demo do instead?");
    stage.wait_title("✳ demo");
    assert_eq!(stage.hook_names(), ["SessionStart", "UserPromptSubmit"]);
}

#[test]
fn a_running_command_is_interrupted() {
    let stage = Stage::ready(&["--dangerously-skip-permissions"]);
    stage.say("[[tool=sleep 1000 & echo $! > pid; wait]]");
    stage.wait_until("the command's pid", |_| {
        fs::read_to_string(stage.path("pid")).is_ok_and(|pid| pid.ends_with('\n'))
    });
    let pid = fs::read_to_string(stage.path("pid")).expect("a pid");
    stage.keys(&["C-c"]);
    stage.wait_for("Interrupted");
    stage.wait_until("the end of the command", |_| {
        let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
        // A zombie that init has not reaped yet has ended as well.
        stat.is_err() || stat.is_ok_and(|stat| stat.contains(") Z "))
    });
}

#[test]
fn signals_end_it_in_order() {
    for (signal, status) in [("-TERM", "143"), ("-HUP", "129")] {
        let stage = Stage::empty();
        stage.start(&["--settings", &stage.settings()]);
        stage.wait_ready();
        stage.say("[[delay=100]]");
        stage.wait_for("✻ Working…");
        stage.signal(signal);
        assert_eq!(stage.status(), status);
        assert_eq!(stage.wait_hook("SessionEnd")["reason"], "other");
        assert!(
            !stage.screen().contains("shortcuts"),
            "the live area is taken back"
        );
    }
}

#[test]
fn term_can_be_ignored() {
    let stage = Stage::ready(&["--ignore-term"]);
    stage.signal("-TERM");
    stage.signal("-HUP");
    stage.say("still here");
    stage.wait_for("● You said: still here");
    stage.signal("-KILL");
}

#[test]
fn the_ways_to_end_by_keys() {
    for (keys, status) in [(&["C-c", "C-c"][..], "0"), (&["C-d"], "0")] {
        let stage = Stage::ready(&[]);
        stage.keys(keys);
        assert_eq!(stage.status(), status, "{keys:?}");
    }
    let stage = Stage::ready(&[]);
    stage.keys(&["x", "C-c"]);
    stage.wait_ready();
    stage.keys(&["C-c"]);
    stage.wait_for("  Press Ctrl-C again to exit");
    stage.wait_for("  ? for shortcuts");
}

#[test]
fn directives_end_it() {
    let stage = Stage::ready(&[]);
    stage.say("[[exit=3]]");
    assert_eq!(stage.status(), "3");
    stage.start(&[]);
    stage.wait_ready();
    stage.say("[[crash]]");
    assert_eq!(stage.wait_ended("#{pane_dead_signal}"), "9");
}

#[test]
fn flags_for_starts_and_ends() {
    let stage = Stage::empty();
    let failed = stage.pipe(&["--fail-at-start", "7"], "");
    assert_eq!(failed.status.code(), Some(7));
    assert!(failed.stderr.starts_with(b"error: "));
    stage.start(&["--startup-delay", "1000"]);
    stage.wait_until("an empty screen", |screen| screen.trim().is_empty());
    stage.wait_ready();
    stage.start(&["--exit-after", "100"]);
    assert_eq!(stage.status(), "0");
}

#[test]
fn children_are_left_to_the_caller() {
    let stage = Stage::ready(&["--spawn-child", "setsid", "--spawn-child", "plain"]);
    let agent = stage.pid();
    let list = || {
        let output = Command::new("ps")
            .args(["-o", "pid=,sid=", "--ppid", &agent])
            .output();
        let text = String::from_utf8(output.expect("ps").stdout).expect("text");
        let rows = text.lines().map(|line| {
            let mut numbers = line.split_whitespace().map(str::to_owned);
            (
                numbers.next().expect("a pid"),
                numbers.next().expect("a session"),
            )
        });
        rows.collect::<Vec<_>>()
    };
    stage.wait_until("a child in its own session and one not", |_| {
        let own = |child: &&(String, String)| child.0 == child.1;
        list().len() == 2 && list().iter().filter(own).count() == 1
    });
    let children = list();
    stage.signal("-TERM");
    assert_eq!(stage.status(), "143");
    for (pid, session) in children {
        // The end of the session leader sends a hangup to the child in its session.
        let is_alone = pid == session;
        let killed = Command::new("kill").arg(&pid).output();
        let was_there = killed.is_ok_and(|output| output.status.success());
        assert!(was_there || !is_alone, "{pid} ended with the agent");
    }
}

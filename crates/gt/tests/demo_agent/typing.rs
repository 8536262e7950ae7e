//! Typed, pasted, piped and scripted input, and its display.

use crate::stage::Stage;
use std::time::Instant;

#[test]
fn shows_a_ready_prompt() {
    let stage = Stage::ready(&[]);
    let screen = stage.screen();
    let folder = stage.folder.path().display();
    assert!(
        screen.starts_with(&format!(" demo agent\n toast · {folder}\n")),
        "{screen}"
    );
    assert!(screen.contains("\n  ? for shortcuts\n"), "{screen}");
    assert_eq!(stage.format("#{alternate_on} #{pane_title}"), "0 ✳ demo");
}

#[test]
fn answers_a_typed_message() {
    let stage = Stage::ready(&[]);
    stage.keys(&["-l", "wrong"]);
    stage.wait_for("❯ wrong");
    stage.keys(&["C-u"]);
    stage.keys(&["-l", "helo"]);
    stage.keys(&["Left", "l", "End", "!"]);
    stage.wait_for("❯ hello!");
    stage.keys(&["Enter"]);
    stage.wait_for("> hello!\n● You said: hello!\n");
    stage.wait_ready();
    assert_eq!(stage.received(), ["hello!"]);
}

#[test]
fn a_prompt_on_the_command_line_is_the_first_message() {
    let stage = Stage::ready(&["do this\nand that"]);
    stage.wait_for("> do this\n  and that\n● You said: do this\n");
    assert_eq!(stage.received(), ["do this\nand that"]);
}

#[test]
fn pastes_arrive_whole() {
    let stage = Stage::ready(&[]);
    let lines: Vec<String> = (1..=30)
        .map(|n| format!("line {n} \\ ünï\t日本 [[x]]"))
        .collect();
    let short = "two\nlines".to_owned();
    let big: String = (0..10_000).map(|n| format!("{n:019}\n")).collect();
    let messages = [
        (lines.join("\n"), "❯ [Pasted text #1 +29 lines]\n"),
        (short, "❯ two\n  lines\n"),
        (big, "❯ [Pasted text #2 +10000 lines]\n"),
    ];
    for (text, shown) in &messages {
        stage.paste(text);
        stage.wait_for(shown);
        stage.keys(&["Enter"]);
        stage.wait_ready();
    }
    let received = stage.wait_received(3);
    for ((text, _), received) in messages.iter().zip(&received) {
        assert!(
            text == received,
            "{} of {} bytes",
            received.len(),
            text.len()
        );
    }
}

#[test]
fn a_message_of_50_kb_is_quick() {
    let stage = Stage::ready(&[]);
    let time = |number: usize, length: usize| {
        let before = Instant::now();
        stage.paste(&"x".repeat(length));
        stage.wait_for(&format!("❯ [Pasted text #{number}]"));
        stage.keys(&["Enter"]);
        assert_eq!(stage.wait_received(number)[number - 1].len(), length);
        before.elapsed()
    };
    // Both are measured in this run, since other tests share the machine. An algorithm that is
    // quadratic in the length takes 2500 times as long.
    let (short, long) = (time(1, 1_000), time(2, 50_000));
    assert!(long < short * 100, "{short:?} for 1 kB, {long:?} for 50 kB");
}

#[test]
fn a_message_while_busy_is_queued() {
    let stage = Stage::ready(&[]);
    stage.say("[[delay=100]]");
    stage.wait_for("✻ Working…");
    stage.say("second");
    stage.wait_for("❯ Press up to edit queued messages");
    assert_eq!(stage.received(), ["[[delay=100]]"]);
    stage.keys(&["Up"]);
    stage.wait_for("❯ second\n");
    stage.say(" thought");
    stage.wait_for("❯ Press up to edit queued messages");
    stage.keys(&["Escape"]);
    stage.wait_for("● You said: second thought");
    assert_eq!(stage.received(), ["[[delay=100]]", "second thought"]);
}

#[test]
fn a_script_is_done_line_by_line() {
    let stage = Stage::empty();
    let script = "say hello\nask Which?|a|b\nsay thanks\npermission false\nsleep 10ms\n\
                  wait prompt\nsay first\nerror 529 Overloaded\ntitle my title\n\
                  wait prompt\nexit 4\n";
    let script = stage.write("script", script);
    stage.start(&["--script", &script, "--settings", &stage.settings()]);
    stage.wait_for("● hello\n");
    stage.wait_for(" Which?\n ❯ 1. a\n");
    stage.keys(&["Enter"]);
    stage.wait_for("● thanks\n");
    stage.wait_for("  ⎿  No answer\n");
    stage.wait_ready();
    stage.say("one");
    stage.wait_for("> one\n● first\n\n● API Error: 529 Overloaded\n");
    stage.wait_title("my title");
    stage.say("two");
    assert_eq!(stage.status(), "4");
    assert_eq!(stage.received(), ["one", "two"]);
    let names = stage.hook_names();
    let ends = ["Stop", "StopFailure", "SessionEnd"];
    let ends: Vec<&String> = names
        .iter()
        .filter(|name| ends.contains(&name.as_str()))
        .collect();
    assert_eq!(ends, ["Stop", "StopFailure", "SessionEnd"]);

    let broken = stage.write("broken", "say hello\n\ndance\n");
    let output = stage.pipe(&["--script", &broken], "");
    let problem = format!("error: {broken}:3: unknown line `dance`\n");
    assert_eq!(String::from_utf8_lossy(&output.stderr), problem);
}

#[test]
fn a_pipe_is_answered_line_by_line() {
    let stage = Stage::empty();
    let log = stage.path("log").to_str().expect("text").to_owned();
    let args = ["--log", &log, "--settings", &stage.settings(), "zero"];
    let output = stage.pipe(&args, "one\n\n[[tool=ls]]\n[[error=500]]\nlast");
    let expected = "You said: zero\nYou said: one\nThe command was refused: ls\n\
                    API Error: 500 Internal server error\nYou said: last\n";
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(
        stage.received(),
        ["zero", "one", "[[tool=ls]]", "[[error=500]]", "last"]
    );
    assert_eq!(
        stage.hook_names().last().map(String::as_str),
        Some("SessionEnd")
    );
}

#[test]
fn the_live_area_survives_another_size() {
    let stage = Stage::ready(&[]);
    stage.say("hello");
    stage.wait_for("● You said: hello");
    for columns in ["40", "120", "33"] {
        stage.tmux(&["resize-window", "-x", columns, "-y", "20"]);
        let rule = "─".repeat(columns.parse().expect("a number"));
        stage.wait_until("one live area of the new width", |screen| {
            screen.lines().filter(|line| *line == rule).count() == 2
                && screen.matches("shortcuts").count() == 1
                && screen.matches('❯').count() == 1
        });
    }
    stage.say("[[fill=5000]]");
    stage.wait_for("  line 5000 of 5000\n─");
}

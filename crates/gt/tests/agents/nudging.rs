//! Messages to real programs: texts that terminals render badly, and delivery without another
//! command.

use crate::each;
use crate::stage::{Stage, TIMEOUT};
use gt_tmux::testing::wait_until;

/// Sends these messages. Each must be delivered at once.
fn send_all(stage: &Stage, texts: &[&str]) {
    for text in texts {
        let answer = stage.nudge(text);
        let screen = stage.screen();
        assert_eq!(answer["delivered"], "agent", "{text:?}: {answer}\n{screen}");
    }
}

#[test]
#[ignore = "needs the real programs: make test-agents"]
fn grapheme_clusters_arrive_and_do_not_block_the_queue() {
    each("clusters", |stage| {
        stage.start(&["--no-prompt"]);
        let marks = format!("e{} with thirty marks", "\u{301}".repeat(30));
        let sent = [
            "👨\u{200d}👩\u{200d}👧\u{200d}👦",
            "👩\u{200d}❤\u{fe0f}\u{200d}💋\u{200d}👨 and on",
            "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f} 🇩🇪",
            &marks,
            "a\u{fffe}b",
            "ends with 👨\u{200d}👩\u{200d}👧\u{200d}👦",
            "what comes after them",
        ];
        send_all(stage, &sent);
        // A program may change the text, so only the number of messages is compared.
        wait_until("the model got all of them", TIMEOUT, || {
            (stage.history().len() >= sent.len()).then_some(())
        });
        assert_eq!(stage.wait_history(sent.len()).len(), sent.len());
    });
}

#[test]
#[ignore = "needs the real programs: make test-agents"]
fn queued_message_reaches_an_idle_agent_without_another_command() {
    each("background delivery", |stage| {
        stage.start(&["--no-prompt"]);
        let answer = stage.nudge_with("from the queue", &["--mode", "queue"]);
        assert_eq!(answer["delivered"], "queue", "{answer}");
        assert_eq!(answer["deliverer"], "background", "{answer}");
        wait_until("the model got it", TIMEOUT, || {
            (stage.history().len() == 1).then_some(())
        });
        // A message behind a half-typed line is delivered when the line is cleared.
        stage.ok(&["wait", "gastown/max", "--timeout", "60"]);
        stage.type_by_hand(&["-l", "half"]);
        wait_until("it is in the line", TIMEOUT, || {
            stage.screen().contains("half").then_some(())
        });
        let answer = stage.nudge_with("behind the line", &["--timeout", "0.3"]);
        assert_eq!(answer["delivered"], "queue", "{answer}");
        stage.type_by_hand(&["C-u"]);
        wait_until("the model got that too", TIMEOUT, || {
            (stage.history().len() == 2).then_some(())
        });
        stage.arrived(&["from the queue", "behind the line"].map(String::from));
    });
}

#[test]
#[ignore = "needs the real programs: make test-agents"]
fn texts_that_begin_with_a_sign_of_the_program_do_not_block_the_queue() {
    each("signs", |stage| {
        stage.start(&["--no-prompt"]);
        let sent = [
            "# a heading",
            "@nobody hello",
            "! touch approved",
            "/exit",
            "after the signs",
        ];
        send_all(stage, &sent);
        assert_eq!(stage.wait_history(sent.len()).len(), sent.len());
        assert!(!stage.was_approved(), "no shell ran it");
    });
}

#[test]
#[ignore = "needs the real programs: make test-agents"]
fn message_is_not_sent_twice_after_gt_and_tmux_have_died() {
    each("once", |stage| {
        // Without hooks only the program's transcript or database proves the delivery.
        let preset = format!("gt/harnesses/{}.toml", stage.program().harness);
        stage.write(&preset, "[hooks]\ninstaller = ''\n");
        stage.start(&["--no-prompt"]);
        let killed = stage
            .command(env!("CARGO_BIN_EXE_gt"))
            .args(["nudge", "gastown/max", "the first words", "--timeout", "60"])
            .env("GT_FAULT", "nudge.entered")
            .output()
            .unwrap();
        assert!(!killed.status.success(), "{killed:?}");
        wait_until("the model got it", TIMEOUT, || {
            (stage.history().len() == 1).then_some(())
        });
        stage.crash();
        stage.start(&["--no-prompt", "--continue"]);
        let next = stage.nudge("the second words");
        assert_eq!(next["delivered"], "agent", "{next}\n{}", stage.screen());
        stage.arrived(&["the first words", "the second words"].map(String::from));
        let events = stage.ok(&["events", "--type", "nudge", "--json"]);
        assert!(events.contains("\"transcript\""), "{events}");
    });
}

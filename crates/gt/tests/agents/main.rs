//! The real agent programs, through `gt`, against a model server of our own.
//!
//! Not part of the plain test run: `make test-agents` installs the pinned
//! programs and runs this, where the machine allows it in a network name space
//! that has only loopback. The judge is the server's log: what it received is
//! what the agent was given.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on says so by panicking"
)]
#![expect(clippy::print_stdout, reason = "what was skipped must be seen")]

mod program;
mod stage;

use program::{PROGRAMS, Program};
use stage::Stage;

/// Runs a check for every program that is ready for it, or says which is not there.
fn each(what: &str, wanted: impl Fn(&Program) -> bool, check: impl Fn(&Stage)) {
    for program in PROGRAMS.iter().filter(|program| wanted(program)) {
        match Stage::new(program) {
            Some(stage) => {
                check(&stage);
                println!("{what}: {} passed", program.harness);
            }
            None if std::env::var_os("CI").is_some() => {
                panic!("{} is not installed", program.harness)
            }
            None => println!(
                "{what}: {} skipped, it is not installed (make test-agents)",
                program.harness
            ),
        }
    }
}

#[test]
#[ignore = "needs the real programs: make test-agents"]
fn it_comes_up_through_its_real_dialogs() {
    each(
        "start",
        |_| true,
        |stage| {
            stage.start(&[]);
            // The first prompt is the beacon, and it arrived.
            stage.wait_for("the beacon", |prompts| {
                prompts.iter().any(|p| p.starts_with("[GAS TOWN] crew max"))
            });
            stage.ok(&["stop", "gastown/max"]);
            stage.nothing_is_left();
        },
    );
}

#[test]
#[ignore = "needs the real programs: make test-agents"]
fn messages_arrive_once_whole_and_in_order() {
    each(
        "nudge",
        |program| program.talks,
        |stage| {
            stage.start(&["--no-prompt"]);
            let lines: Vec<String> = (0..30)
                .map(|n| format!("line {n}: Grüße, 日本語, 👩‍💻"))
                .collect();
            let mut sent: Vec<String> = (0..10).map(|n| format!("short message {n}")).collect();
            sent.push(lines.join("\n"));
            sent.push("0123456789abcde ".repeat(256).trim_end().to_owned());
            sent.push("0123456789abcde ".repeat(4_096).trim_end().to_owned());
            sent.push("the last one".to_owned());
            for text in &sent {
                let answer = stage.nudge(text);
                assert_eq!(
                    answer["delivered"],
                    "agent",
                    "{text:.40}: {answer}\n{}",
                    stage.screen()
                );
                assert_eq!(answer["verified"], true, "{text:.40}: {answer}");
            }
            stage.wait_for("all messages", |prompts| prompts.len() >= sent.len());
            let got = stage.prompts();
            assert_eq!(
                got.len(),
                sent.len(),
                "{:?}",
                got.iter().map(String::len).collect::<Vec<_>>()
            );
            for (got, sent) in got.iter().zip(&sent) {
                assert!(
                    got.trim_end() == sent,
                    "{} bytes for {}: {:.60}",
                    got.len(),
                    sent.len(),
                    got
                );
            }
        },
    );
}

#[test]
#[ignore = "needs the real programs: make test-agents"]
fn a_permission_dialog_is_never_answered_by_a_message() {
    each(
        "dialog",
        |program| program.talks && !program.ask.is_empty(),
        |stage| {
            stage.ask_for_permissions();
            stage.start(&["--no-prompt", "--ask-permissions"]);
            stage.nudge(stage.program().ask);
            stage.ok(&[
                "wait",
                "gastown/max",
                "--until",
                "waiting",
                "--timeout",
                "30",
            ]);
            for mode in ["immediate", "queue", "wait-idle"] {
                let answer = stage.nudge_with("while it asks", &["--mode", mode, "--timeout", "1"]);
                assert_eq!(answer["delivered"], "queue", "{mode}: {answer}");
            }
            assert!(!stage.was_approved(), "nobody approved it");
            // A person approves it; what waited comes at the end of the turn.
            stage.ok(&["keys", "gastown/max", "Enter"]);
            stage.wait_for("what waited", |prompts| {
                prompts
                    .iter()
                    .filter(|p| p.contains("while it asks"))
                    .count()
                    == 3
            });
            assert!(stage.was_approved());
        },
    );
}

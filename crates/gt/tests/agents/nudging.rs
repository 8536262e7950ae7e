//! Messages to real programs: texts that a terminal shows badly, and delivery without another
//! command.

use crate::each;
use crate::stage::PATIENCE;
use gt_tmux::testing::wait_until;

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
        for text in sent {
            let answer = stage.nudge(text);
            assert_eq!(
                answer["delivered"],
                "agent",
                "{text:?}: {answer}\n{}",
                stage.screen()
            );
        }
        // A program may change a text by itself, so only their number is compared.
        wait_until("the model got all of them", PATIENCE, || {
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
        wait_until("the model got it", PATIENCE, || {
            (stage.history().len() == 1).then_some(())
        });
        // And behind a half-typed line, as soon as that is gone.
        stage.ok(&["wait", "gastown/max", "--timeout", "60"]);
        stage.type_by_hand(&["-l", "half"]);
        wait_until("it is in the line", PATIENCE, || {
            stage.screen().contains("half").then_some(())
        });
        let answer = stage.nudge_with("behind the line", &["--timeout", "0.3"]);
        assert_eq!(answer["delivered"], "queue", "{answer}");
        stage.type_by_hand(&["C-u"]);
        wait_until("the model got that too", PATIENCE, || {
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
            "after the signs",
        ];
        for text in sent {
            let answer = stage.nudge(text);
            assert_eq!(
                answer["delivered"],
                "agent",
                "{text:?}: {answer}\n{}",
                stage.screen()
            );
        }
        assert_eq!(stage.wait_history(sent.len()).len(), sent.len());
        assert!(!stage.was_approved(), "no shell ran it");
    });
}

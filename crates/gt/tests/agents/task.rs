//! Tasks with real programs: pausing in the middle of a turn, and resuming.

use crate::each;
use crate::stage::{Stage, TIMEOUT};
use gt_tmux::testing::wait_until;
use serde_json::Value;

/// A turn that outlasts the test.
const LONG_TURN: &str = "[[delay=100]] Take your time";

#[test]
#[ignore = "needs the real programs: make test-agents"]
fn a_paused_task_goes_on_where_it_was() {
    each("pause", |stage| {
        stage.tasks_have_its_environment();
        let id = stage.work(LONG_TURN);
        stage.ok(&["task", "start", &id, "--work", "--yolo", "--no-attach"]);
        wait_until("it was given its work", TIMEOUT, || {
            prompts(stage, LONG_TURN).pop()
        });
        let draft = stage.path(&format!("gastown-{id}/draft"));
        std::fs::write(&draft, "half a thought").unwrap();
        let paused = json(stage, &["task", "pause", &id]);
        assert_eq!(paused["interrupted"], true, "{paused}");
        let wip = paused["wip"].as_str().unwrap();
        let shown = json(stage, &["task", "show", &id]);
        assert_eq!(shown["state"], "paused", "{shown}");
        // Programs show a multi-line prompt as a label.
        let words = "Now go on.\nBe brief.\nBe quick.";
        let resumed = json(stage, &["task", "resume", &id, "--prompt", words]);
        assert_eq!(resumed["undone"], wip, "{resumed}");
        assert_eq!(resumed["queued"], Value::Null, "{resumed}");
        // The model also gets the interrupted prompt: from the conversation, from a resubmission,
        // or from the resume message.
        let goes_on = |request: &gt_model::LoggedRequest| {
            let said = |text: &str| request.user.iter().any(|words| words.contains(text));
            request.has_tools && said("Now go on.") && said(LONG_TURN)
        };
        wait_until("it goes on", TIMEOUT, || {
            stage.requests().iter().any(goes_on).then_some(())
        });
        assert!(draft.exists(), "its files are as they were");
        let told = json(
            stage,
            &["events", "--about", &id, "--type", "paused,resumed"],
        );
        let told: Vec<String> = told
            .as_array()
            .unwrap()
            .iter()
            .map(|it| format!("{} {}", it["type"], it["actor"]))
            .collect();
        let login = stage.command("id").arg("-un").output().unwrap().stdout;
        let person = String::from_utf8(login).unwrap();
        let person = person.trim();
        let expected = ["paused", "resumed"].map(|kind| format!("\"{kind}\" \"{person}\""));
        assert_eq!(told, expected);
        stage.ok(&["task", "stop", &id]);
    });
}

#[track_caller]
fn json(stage: &Stage, args: &[&str]) -> Value {
    let args: Vec<&str> = args.iter().copied().chain(["--json"]).collect();
    serde_json::from_str(&stage.ok(&args)).unwrap()
}

/// Returns the prompts of requests that contain this text.
fn prompts(stage: &Stage, text: &str) -> Vec<String> {
    let requests = stage.requests().into_iter();
    let prompts = requests.map(|request| request.prompt);
    prompts.filter(|prompt| prompt.contains(text)).collect()
}

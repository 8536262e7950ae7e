//! Real programs in the window `merge`: their dialogs are detected and answered in that window.

use crate::each;
use crate::stage::{Stage, TIMEOUT};
use gt_tmux::testing::wait_until;
use serde_json::Value;
use std::path::Path;

fn commit(stage: &Stage, dir: &Path, file: &str, text: &str) {
    std::fs::write(dir.join(file), text).unwrap();
    let who = ["-c", "user.name=t", "-c", "user.email=t@localhost"];
    for words in [
        &["add", "--all"][..],
        &["commit", "--quiet", "-m", "Change"],
    ] {
        let git = stage
            .command("git")
            .args(who)
            .args(words)
            .current_dir(dir)
            .status();
        assert!(git.unwrap().success());
    }
}

fn json(stage: &Stage, words: &[&str]) -> Value {
    serde_json::from_str(&stage.ok(words)).unwrap()
}

fn card(stage: &Stage, id: &str) -> Value {
    let board = json(stage, &["board", "--json"]);
    let cards = board["cards"].as_array().unwrap();
    let card = cards.iter().find(|card| card["id"] == id);
    card.unwrap_or_else(|| panic!("{board}")).clone()
}

#[test]
#[ignore = "needs the real programs: make test-agents"]
fn question_of_a_resolver_is_seen_and_answered() {
    each("resolver", |stage| {
        stage.tasks_have_its_environment();
        let id = &stage.work("Fix it");
        stage.ok(&["task", "start", id]);
        let dir = stage.path(&format!("gastown-{id}"));
        // The resolver's prompt contains the names of the conflicting files, and the model obeys
        // directives in them.
        commit(stage, &dir, stage.program().ask, "ours\n");
        commit(
            stage,
            &stage.path("source"),
            stage.program().ask,
            "theirs\n",
        );
        let updated = stage.gt(&["task", "update", id, "--json"]);
        assert_eq!(updated.status.code(), Some(1), "{updated:?}");
        let asks = wait_until("its question", TIMEOUT, || {
            let shown = json(stage, &["task", "show", id, "--json"]);
            let reason = shown["resolver"]["reason"].as_str()?.to_owned();
            reason.contains("touch approved").then_some(reason)
        });
        assert!(asks.starts_with("merge asks: "), "{asks}");
        let shown = card(stage, id);
        assert_eq!(shown["column"], "needs_you", "{shown}");
        assert_eq!(shown["resolver"]["reason"], asks, "{shown}");
        let approved = dir.join("approved");
        assert!(!approved.exists(), "no answer was given yet");
        let agent = format!("task/{id}");
        let answer = ["answer", &agent, "--window", "merge", "--json"];
        let asked = json(stage, &answer);
        let expected = asked["fingerprint"].as_str().unwrap();
        stage.ok(&[&answer[..], &["--expect", expected, "yes"]].concat());
        wait_until("what was asked for", TIMEOUT, || {
            approved.exists().then_some(())
        });
        // The resolver left the conflicts open, so the card needs a person until another process
        // resolves them.
        wait_until("it is at its prompt", TIMEOUT, || {
            let card = card(stage, id);
            let reason = card["resolver"]["reason"].as_str()?;
            let is_left = reason == "merge waits at its prompt";
            (card["column"] == "needs_you" && is_left).then_some(())
        });
        commit(stage, &dir, stage.program().ask, "both\n");
        assert_ne!(card(stage, id)["column"], "needs_you");
        stage.ok(&["down", "--all"]);
    });
}

//! A fork of a real conversation, asked with its own account and with another one.

use crate::each;
use crate::stage::{Stage, TIMEOUT};
use gt_tmux::testing::wait_until;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// Returns all transcripts under a configuration folder of Claude Code.
fn transcripts(folder: &Path) -> Vec<PathBuf> {
    let projects = fs::read_dir(folder.join("projects")).into_iter().flatten();
    let files = projects.flat_map(|project| fs::read_dir(project.unwrap().path()).unwrap());
    let paths = files.map(|file| file.unwrap().path());
    paths
        .filter(|path| path.extension().is_some_and(|end| end == "jsonl"))
        .collect()
}

fn ask(stage: &Stage, session: &str, text: &str, args: &[&str]) -> Value {
    let before = stage.requests().len();
    let talk = ["seance", "--talk", session, "--prompt", text, "--json"];
    let answer = stage.ok(&[&talk[..], args].concat());
    // The question is in a request to the model.
    let asked = stage.requests()[before..]
        .iter()
        .rev()
        .find(|request| request.has_tools)
        .map(|request| format!("{request:?}"))
        .unwrap();
    assert!(asked.contains(text), "{asked}");
    serde_json::from_str(&answer).unwrap()
}

#[test]
#[ignore = "needs the real programs: make test-agents"]
fn a_fork_answers_and_the_original_stays() {
    each("seance", |stage| {
        if stage.program().harness != "claude" {
            return;
        }
        stage.ok(&["account", "add", "work"]);
        stage.ok(&["account", "add", "home"]);
        let folder = |name: &str| stage.path(&format!("gt/.accounts/{name}/claude"));
        stage.start(&["--no-prompt", "--account", "work"]);
        stage.nudge("[[text=the key is under the mat]] where is the key");
        stage.ok(&["wait", "gastown/max", "--timeout", "60"]);
        stage.ok(&["stop", "gastown/max"]);
        let sessions: Value = serde_json::from_str(&stage.ok(&["seance", "--json"])).unwrap();
        assert_eq!(sessions[0]["can_talk"], true, "{sessions}");
        assert_eq!(sessions[0]["account"], "work", "{sessions}");
        let session = sessions[0]["id"].as_str().unwrap();
        let original = wait_until("its transcript", TIMEOUT, || {
            transcripts(&folder("work")).into_iter().next()
        });
        let before = fs::read(&original).unwrap();
        let told = ask(stage, session, "[[text=a first answer]] one", &[]);
        assert_eq!(told["answer"], "a first answer", "{told}");
        assert_eq!(fs::read(&original).unwrap(), before, "byte for byte");
        assert_eq!(transcripts(&folder("work")).len(), 2, "a fork beside it");
        let told = ask(
            stage,
            session,
            "[[text=a second answer]] two",
            &["--account", "home"],
        );
        assert_eq!(told["answer"], "a second answer", "{told}");
        assert_eq!(fs::read(&original).unwrap(), before, "byte for byte");
        let left = transcripts(&folder("home"));
        let [fork] = left.as_slice() else {
            panic!("only the fork is left: {left:?}");
        };
        assert_ne!(fork.file_name(), original.file_name());
        let fork = fs::read_to_string(fork).unwrap();
        assert!(fork.contains("under the mat"), "it knows what was said");
        stage.nothing_is_left();
    });
}

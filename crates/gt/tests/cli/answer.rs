//! `gt answer`: answers the dialog that an agent shows.

use crate::env::TIMEOUT;
use crate::nudge::{prompts, stage};
use gt_tmux::testing::wait_until;
use insta::assert_snapshot;
use std::fs;

#[test]
fn a_question_is_answered_by_reading_it() {
    let env = stage(&["max"]);
    let waiting = [
        "wait",
        "gastown/max",
        "--until",
        "waiting",
        "--timeout",
        "30",
    ];
    assert_snapshot!(env.snapshot(&["answer", "gastown/max", "yes"]), @"
    exit code: 4
    --- stderr
    error: gastown/crew/max has no open question
    hint: `gt peek gastown/crew/max` shows its screen
    ");
    let approved = env.town().join("gastown/crew/max/approved");

    env.gt(&["nudge", "gastown/max", "[[tool=touch approved]]"])
        .ok();
    env.gt(&waiting).ok();
    let question = env.json(&["answer", "gastown/max"]);
    assert_eq!(question["kind"], "permission", "{question}");
    assert_eq!(question["marked"], 0, "{question}");
    assert_snapshot!(env.snapshot(&["answer", "gastown/max", "perhaps"]), @"
    exit code: 2
    --- stderr
    error: no option matches
    hint: it offers: 1. Yes; 2. No, and tell demo what to do differently (esc)
    ");
    let refused = env.json(&["answer", "gastown/max", "no"]);
    assert_eq!(refused["answer"], question["options"][1], "{refused}");
    env.gt(&["wait", "gastown/max", "--timeout", "30"]).ok();
    assert!(!approved.exists());

    env.gt(&["nudge", "gastown/max", "[[tool=touch approved]]"])
        .ok();
    env.gt(&waiting).ok();
    env.gt(&["answer", "gastown/max", "1"]).ok();
    wait_until("it was done", TIMEOUT, || approved.exists().then_some(()));
}

#[test]
fn answer_to_one_question_is_not_typed_into_the_next() {
    let env = stage(&["max"]);
    let made = |name: &str| env.town().join("gastown/crew/max").join(name);
    env.gt(&[
        "nudge",
        "gastown/max",
        "[[tool=touch first]] [[tool=touch second]]",
    ])
    .ok();
    let asks = |about: &str| {
        wait_until(about, TIMEOUT, || {
            let asked = env.gt(&["answer", "gastown/max", "--json"]);
            let asked: serde_json::Value = serde_json::from_str(&asked.stdout).ok()?;
            let is_it = asked["question"].as_str()?.contains(about);
            is_it.then(|| asked["fingerprint"].as_str().unwrap().to_owned())
        })
    };
    let expecting =
        |fingerprint: &str| env.gt(&["answer", "gastown/max", "yes", "--expect", fingerprint]);
    let first = asks("touch first");
    expecting(&first).ok();
    let second = asks("touch second");
    assert_ne!(first, second);
    // An answer that expects the first question is refused.
    let refused = expecting(&first).fails(4);
    assert!(
        refused.stderr.contains("touch second"),
        "{}",
        refused.stderr
    );
    assert_eq!(asks("touch second"), second, "it is still asked");
    assert!(made("first").exists());
    assert!(!made("second").exists());
    expecting(&second).ok();
    wait_until("the second was done", TIMEOUT, || {
        made("second").exists().then_some(())
    });
    // `--expect` needs an answer.
    env.gt(&["answer", "gastown/max", "--expect", &first])
        .fails(2);
}

#[test]
fn answered_question_is_not_answered_again() {
    let env = stage(&["max"]);
    env.gt(&["nudge", "gastown/max", "once"]).ok();
    // The state that a process leaves when it is killed between the receipt and the removal.
    let queue = env.town().join(".runtime/nudges/gastown.crew.max");
    let receipt = fs::read_dir(queue.join("done")).unwrap().flatten().next();
    let id = receipt.unwrap().file_name().into_string().unwrap();
    let message = format!(
        r#"{{"id":"{id}","sender":null,"text":"once","priority":"normal","created_at":0}}"#
    );
    let left = queue.join(format!("taken/1-{id}.an-earlier-life.0.entering"));
    fs::write(&left, message).unwrap();
    env.gt(&["nudge", "gastown/max", "twice"]).ok();
    assert!(!left.exists());
    assert_eq!(prompts(&env), ["once", "twice"]);
}

//! Mail: announcements to recipients, and how many messages are listed.

use crate::env::{Answer, TestEnv};
use insta::assert_snapshot;
use serde_json::json;
use std::fs;
use std::process::Stdio;

const MAX: &str = "gastown/crew/max";

#[test]
fn sender_is_told_which_recipients_were_not_reached() {
    let env = TestEnv::with_crew(&["max", "amy"]);
    env.gt(&["crew", "start", "max"]).ok();
    let queues = env.town().join(".runtime/nudges");
    fs::remove_dir_all(&queues).ok();
    fs::write(&queues, "no folder").unwrap();
    let args = ["mail", "send", MAX, "gastown/amy", "-s", "Plan"];
    let sent = env.json(&args);
    assert_eq!(sent[0]["nudged"], false);
    let problem = sent[0]["problem"].as_str().unwrap();
    assert!(problem.contains("nudges"), "{problem}");
    assert_eq!(sent[1].get("problem"), None, "she does not run: {sent}");
    let told = env.gt(&args).ok();
    assert_snapshot!(told.rendered(&env), @"
    exit code: 0
    --- stdout
    Sent hq-[ID] to gastown/crew/max.
    Sent hq-[ID] to gastown/crew/amy.
    --- stderr
    warning: gastown/crew/max was not notified: cannot make the folder ~/gt/.runtime/nudges/gastown.crew.max/new: Not a directory (os error 20)
    ");
    // Without tmux it is unknown which agents run.
    let without_tmux = |args: &[&str]| {
        let mut command = env.gt_command(args);
        Answer::of(command.env("PATH", "/nowhere").output().unwrap())
    };
    let sent = without_tmux(&["mail", "send", "gastown/amy", "human", "-s", "Plan"]).ok();
    assert!(sent.stdout.contains("to human"), "{}", sent.stdout);
    let warnings = sent.stderr.matches("was not notified").count();
    assert_eq!(warnings, 1, "people are not told: {}", sent.stderr);
    let before = env.json(&["mail", "search", "Plan", "--everybody"]);
    let refused = without_tmux(&["mail", "send", "@crew", "-s", "Plan"]);
    assert_ne!(refused.code, 0, "agents without a folder would get none");
    let after = env.json(&["mail", "search", "Plan", "--everybody"]);
    assert_eq!(before, after);
    // The error says why a group is empty.
    assert_snapshot!(env.snapshot(&["mail", "send", "@polecats", "-s", "x"]), @"
    exit code: 3
    --- stderr
    error: @polecats has no members
    hint: `gt agents --all --stopped` lists all agents
    ");
    assert_snapshot!(env.snapshot(&["mail", "send", "gastown/", "-s", "x"]), @r#"
    exit code: 3
    --- stderr
    error: the rig gastown has no crew worker or polecat called ""
    hint: `gt crew list gastown` shows them
    "#);
}

#[test]
fn a_full_mailbox_is_shown_in_parts() {
    let env = TestEnv::with_crew(&["max"]);
    for number in 0..3 {
        let subject = format!("Letter {number}");
        env.gt(&["mail", "send", MAX, "-s", &subject]).ok();
    }
    for command in [&["inbox"][..], &["search", "letter"]] {
        let args = [&["mail"], command, &["--agent", MAX, "--limit", "1"]].concat();
        assert_eq!(env.json(&args).as_array().unwrap().len(), 1);
        let shown = env.gt(&args).ok().stdout;
        assert!(shown.contains("And 2 more: `--limit 3`"), "{shown}");
    }
    assert_snapshot!(env.snapshot(&["mail", "inbox", "--agent", MAX]), @"
    exit code: 0
    --- stdout
    ID  STATUS  PRIORITY  AGE  FROM  TO  SUBJECT
    hq-[ID]  new  normal  [N]  human  gastown/crew/max  Letter 2
    hq-[ID]  new  normal  [N]  human  gastown/crew/max  Letter 1
    hq-[ID]  new  normal  [N]  human  gastown/crew/max  Letter 0
    ");
    // An id given twice counts once.
    let one = env.json(&["mail", "inbox", "--agent", MAX])[0]["id"].clone();
    let one = one.as_str().unwrap();
    let away = env.json(&["mail", "archive", one, one, "--agent", MAX]);
    assert_eq!(away.as_array().unwrap().len(), 1);
}

#[test]
fn endless_message_is_refused() {
    let env = TestEnv::with_crew(&["max"]);
    for args in [
        &["mail", "send", MAX, "-s", "x", "--stdin"][..],
        &["nudge", MAX, "--stdin"],
    ] {
        let mut endless = env.command("yes").stdout(Stdio::piped()).spawn().unwrap();
        let mut command = env.gt_command(args);
        command.stdin(endless.stdout.take().unwrap());
        let refused = Answer::of(command.output().unwrap()).fails(2);
        assert!(refused.stderr.contains("longer than"), "{}", refused.stderr);
        drop(command);
        endless.wait().unwrap();
    }
}

#[test]
fn note_is_hooked_beside_the_work() {
    let env = TestEnv::with_crew(&["max"]);
    let by_max = |args: &[&str]| {
        let mut command = env.gt_command(&[args, &["--json"]].concat());
        Answer::of(command.env("GT_ROLE", MAX).output().unwrap())
    };
    let work = env.json(&["work", "create", "Work"])["id"].clone();
    by_max(&["hook", work.as_str().unwrap()]).ok();
    let mut notes = Vec::new();
    for subject in ["First", "Second"] {
        let note = by_max(&["mail", "send", MAX, "-s", subject]).ok().json()[0]["id"].clone();
        let hooked = by_max(&["hook", note.as_str().unwrap()]).ok().json();
        assert_eq!((&hooked["id"], &hooked["letter"]["id"]), (&work, &note));
        notes.push(note);
    }
    let shown = env.json(&["work", "show", notes[0].as_str().unwrap()]);
    assert_eq!(shown["close_reason"], json!("superseded"));
    // A message from another sender does not count as a note of the agent.
    let mail = env.json(&["mail", "send", MAX, "-s", "Do it"])[0]["id"].clone();
    by_max(&["hook", mail.as_str().unwrap()]).fails(4);
}

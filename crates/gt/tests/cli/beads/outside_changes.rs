//! Changes to a rig's beads from outside `gt`, and failures of the tracker.

use super::{Beads, ids, tells_of_beads};
use crate::env::{TIMEOUT, processes_of};
use gt_tmux::testing::wait_until;
use insta::assert_snapshot;
use serde_json::{Value, json};
use std::fs;
use std::time::Instant;

const AGENT: [&str; 2] = ["--agent", "gastown/max"];

fn with_worker() -> Beads {
    let beads = Beads::new("bd");
    beads.env.gt(&["crew", "add", "max"]).ok();
    beads
}

/// Rewrites the lines of the beads file, and returns its previous text.
fn rewrite(beads: &Beads, change: impl Fn(Value) -> Option<Value>) -> String {
    let file = beads.folder().join("issues.jsonl");
    let before = fs::read_to_string(&file).unwrap();
    let lines = before
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    let lines = lines.filter_map(change).map(|line| format!("{line}\n"));
    fs::write(&file, lines.collect::<String>()).unwrap();
    before
}

fn told(beads: &Beads, command: &str) -> usize {
    let calls = beads.calls();
    calls.iter().filter(|call| call[1] == command).count()
}

#[test]
fn item_closed_in_beads_stays_closed_when_it_leaves_the_hook() {
    let beads = with_worker();
    let env = &beads.env;
    for by_item in [false, true] {
        let id = beads.make("The work");
        env.gt(&["hook", &id, AGENT[0], AGENT[1]]).ok();
        beads.say(&["close", &id, "--reason=done", "--json"]);
        let answer = match by_item {
            true => env.gt(&["unhook", &id]),
            false => env.gt(&["unhook", AGENT[0], AGENT[1]]),
        };
        let words = format!("{id} is off the hook of gastown/crew/max, and closed.\n");
        assert_eq!(answer.ok().stdout, words);
        assert_eq!(beads.shown(&id)["status"], "closed");
        assert_eq!(told(&beads, "reopen"), 0);
    }
}

#[test]
fn reopened_bead_is_announced_again() {
    let beads = with_worker();
    let env = &beads.env;
    let [held, free, done] = ["Held", "Free", "Done"].map(|title| beads.make(title));
    env.gt(&["hook", &held, AGENT[0], AGENT[1]]).ok();
    env.gt(&["work", "list"]).ok();
    let before = rewrite(&beads, |_| None);
    let hooked = || env.json(&["hook", AGENT[0], AGENT[1]])["id"].clone();
    assert_eq!(hooked(), json!(held));
    let shown = env.json(&["work", "show", &free]);
    assert_eq!(shown["close_reason"], "not in beads any more");
    // A close while the item is missing from beads is written when the item is back.
    env.gt(&["work", "reopen", &done]).ok();
    env.gt(&["work", "close", &done, "--reason", "meanwhile"])
        .ok();
    fs::write(beads.folder().join("issues.jsonl"), before).unwrap();
    let shown = env.json(&["work", "show", &free]);
    assert_eq!(
        (&shown["status"], &shown["close_reason"]),
        (&json!("open"), &Value::Null)
    );
    assert_eq!(hooked(), json!(held));
    assert_eq!(beads.shown(&done)["close_reason"], "meanwhile");
    env.gt(&["work", "close", &held]).ok();
    assert_eq!(beads.shown(&held)["status"], "closed");
    assert_eq!(ids(&env.json(&["work", "ready"])), [&free]);
}

#[test]
fn unreadable_answer_of_beads_is_reported_and_closes_nothing() {
    let beads = with_worker();
    let env = &beads.env;
    let [known, other] = ["Known", "Other"].map(|title| beads.make(title));
    env.gt(&["work", "list"]).ok();
    rewrite(&beads, |mut line| {
        if line["id"] == known {
            line["priority"] = json!(9);
        }
        Some(line)
    });
    let file = beads.folder().join("issues.jsonl");
    let text = fs::read_to_string(&file).unwrap();
    let odd = text.lines().next().unwrap().replace(&known, "demo-1.a");
    fs::write(&file, format!("{text}{odd}\n")).unwrap();
    assert_snapshot!(env.snapshot(&["work", "list"]), @r#"
    exit code: 0
    --- stdout
    ID  P  STATUS  TYPE  ASSIGNEE  TITLE
    demo-1a  2  open  task  Known
    demo-2a  2  open  task  Other
    --- stderr
    warning: demo-1.a in the beads of gastown is not shown: not a work item: "demo-1.a" is not the id of a work item
    warning: demo-1a in the beads of gastown is not shown: there is no priority 9
    "#);
    assert_eq!(env.json(&["work", "show", &known])["status"], "open");
    assert_snapshot!(env.doctor_findings(&[]), @r#"
    exit code: 0
    ! beads: demo-1.a of gastown is not shown: not a work item: "demo-1.a" is not the id of a work item
      hint: correct it in the beads of gastown
    ! beads: demo-1a of gastown is not shown: there is no priority 9
      hint: correct it in the beads of gastown
    "#);
    rewrite(&beads, |line| {
        let is_ours = line["id"] == known || line["id"] == other;
        is_ours.then(|| json!({"id": line["id"], "title": line["title"], "status": "open"}))
    });
    let listed = env.gt(&["work", "list"]).ok();
    assert_eq!(listed.stderr, "", "{listed:?}");
}

#[test]
fn hanging_program_is_stopped_and_blocks_no_writer() {
    let beads = Beads::new("bd");
    let env = &beads.env;
    env.gt(&["work", "create", "Here", "--rig", "hq"]).ok();
    beads.make("The work");
    beads.trouble("hang", "list");
    let look = env.spawn(&["work", "list"]);
    wait_until("beads is asked", TIMEOUT, || {
        (told(&beads, "list") > 0).then_some(())
    });
    let begun = Instant::now();
    env.gt(&["mail", "send", "mayor", "-s", "Hello", "-m", "x"])
        .ok();
    // `gt` stops the tracker after 15 seconds.
    assert!(begun.elapsed().as_secs() < 10, "{:?}", begun.elapsed());
    let answer = crate::env::Answer::of(look.wait_with_output().unwrap());
    tells_of_beads(answer, "took too long");
    assert_eq!(processes_of(env.home()), Vec::<u32>::new());
}

#[test]
fn several_items_are_closed_after_one_read() {
    let beads = Beads::new("bd");
    let env = &beads.env;
    let made = ["One", "Two", "Three"].map(|title| beads.make(title));
    let [one, two, three] = &made;
    env.gt(&["work", "close", one, two, three, one]).ok();
    assert_eq!((told(&beads, "list"), told(&beads, "close")), (1, 3));
}

#[test]
fn text_too_long_for_beads_is_refused_with_the_limit() {
    let beads = Beads::new("bd");
    let env = &beads.env;
    let id = beads.make("The work");
    let mut update = env.gt_command(&["work", "update", &id, "--description", "-"]);
    let long = env.path("long");
    fs::write(&long, "x".repeat(140_000)).unwrap();
    update.stdin(fs::File::open(&long).unwrap());
    let answer = crate::env::run(&mut update).fails(2);
    let words = "--description is longer than the 128 KiB";
    assert!(answer.stderr.contains(words), "{answer:?}");
    assert_eq!(env.json(&["work", "show", &id])["description"], "");
}

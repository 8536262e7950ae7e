//! `gt done`: submits the item on the hook and ends the session.

mod incomplete_work;

use crate::env::{Answer, TIMEOUT, TestEnv};
use crate::mq::{commit, item, repository, with_bare_remote};
use crate::sessions::list_sessions;
use gt_tmux::testing::wait_until;
use insta::assert_snapshot;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

const TOAST: &str = "gastown/polecats/Toast";

/// Makes a running polecat with an item on its hook.
fn with_polecat() -> (TestEnv, PathBuf, String) {
    let env = TestEnv::with_rig();
    env.gt(&["start", "--create", TOAST]).ok();
    let id = item(&env, &["The work"]);
    env.gt(&["hook", &id, "--agent", TOAST]).ok();
    let dir = env.town().join("gastown/polecats/Toast");
    (env, dir, id)
}

#[track_caller]
fn assert_idle(env: &TestEnv, id: &str) {
    wait_until("its session is over", TIMEOUT, || {
        env.running().is_empty().then_some(())
    });
    assert_eq!(env.json(&["hook", "--agent", TOAST]), Value::Null);
    wait_until("its session is recorded as done", TIMEOUT, || {
        let session = &list_sessions(env, &["--agent", TOAST])[0];
        (session["outcome"] == "done" && session["status"] == "stopped").then_some(())
    });
    let session = &list_sessions(env, &["--agent", TOAST])[0];
    assert_eq!(session["work_unit"], json!(id), "{session}");
}

#[test]
fn a_polecat_that_is_done_ends_itself_and_leaves_its_worktree() {
    let (env, dir, id) = with_polecat();
    env.gt_in(&dir, &["checkpoint", "write", "--agent", TOAST])
        .ok();
    let tip = commit(&env, &dir, "a.txt", "a\n");
    // The agent runs `gt done` in its own pane.
    env.gt(&[
        "nudge",
        TOAST,
        &format!("[[tool={} done -m finished]]", env!("CARGO_BIN_EXE_gt")),
    ])
    .ok();
    assert_idle(&env, &id);
    let queue = env.json(&["mq", "list"]);
    assert_eq!(queue[0]["item"], json!(id));
    assert_eq!(queue[0]["commit"], json!(tip));
    assert_eq!(queue[0]["branch"], "polecat/Toast/idle");
    assert_eq!(queue[0]["worker"], TOAST);
    let shown = env.json(&["work", "show", &id]);
    assert_eq!(shown["notes"], format!("{TOAST}: finished"));
    assert_eq!(
        env.json(&["checkpoint", "read", "--agent", TOAST]),
        Value::Null
    );
    let there = env.git(
        &env.path("source-gastown"),
        &["branch", "--list", "polecat/*"],
    );
    assert_eq!(there.trim(), "polecat/Toast/idle", "it was pushed");
    // The worktree is unchanged, and the polecat can be started again.
    assert_eq!(env.git(&dir, &["rev-parse", "HEAD"]).trim(), tip);
    env.gt(&["start", TOAST]).ok();
    env.gt(&["stop", TOAST]).ok();
    let outcomes: Vec<Value> = list_sessions(&env, &[])
        .iter()
        .map(|session| session["outcome"].clone())
        .collect();
    assert_eq!(outcomes, [json!("stopped"), json!("done")]);
    // Removing the polecat keeps the branch that waits to be merged.
    let nuked = env.json(&["polecat", "nuke", "gastown/Toast"]);
    assert_eq!(
        nuked[0]["kept_branches"],
        json!(["polecat/Toast/idle"]),
        "{nuked}"
    );
    env.gt(&["mq", "run"]).ok();
    assert_eq!(env.json(&["work", "show", &id])["status"], "closed");
    for dir in [env.path("source-gastown"), repository(&env)] {
        let left = env.git(&dir, &["branch", "--list", "polecat/*"]);
        assert_eq!(left, "", "{}", dir.display());
    }
}

#[test]
fn changes_that_are_not_committed_are_named_and_kept() {
    let (env, dir, id) = with_polecat();
    commit(&env, &dir, "a.txt", "a\n");
    commit(&env, &dir, ".gitignore", "built\n");
    fs::write(dir.join("built"), "x\n").unwrap();
    fs::write(dir.join("a.txt"), "changed\n").unwrap();
    fs::write(dir.join("not yet.txt"), "x\n").unwrap();
    assert_snapshot!(env.snapshot(&["done", "--agent", TOAST]), @"
    exit code: 4
    --- stderr
    error: 2 changed files are not committed
    caused by: a.txt
    caused by: not yet.txt
    hint: commit what belongs to the work, and remove the rest
    hint: `--force` keeps them under refs/gt/saved/ and continues
    ");
    assert_eq!(env.json(&["hook", "--agent", TOAST])["id"], json!(id));
    assert_eq!(env.running(), [TOAST]);
    let done = env.json(&["done", "--agent", TOAST, "--force"]);
    let saved = done["saved"].as_str().unwrap();
    let text = env.git(
        &repository(&env),
        &["show", &format!("{saved}:not yet.txt")],
    );
    assert_eq!(text, "x\n");
    assert_idle(&env, &id);
    // The polecat is free for the next item, and ignored build output stays.
    let polecat = env.json(&["polecat", "show", "gastown/Toast"]);
    assert_eq!(polecat["state"], "idle", "{polecat}");
    assert_eq!(fs::read_to_string(dir.join("a.txt")).unwrap(), "a\n");
    assert!(!dir.join("not yet.txt").exists() && dir.join("built").exists());
    // The worktree of a crew worker is not cleaned.
    env.gt(&["crew", "add", "max"]).ok();
    let id = item(&env, &["Of max"]);
    env.gt(&["hook", &id, "--agent", "gastown/max"]).ok();
    let dir = env.town().join("gastown/crew/max");
    fs::write(dir.join("not yet.txt"), "x\n").unwrap();
    let done = env.json(&["done", "--agent", "gastown/max", "--force"]);
    assert!(done["saved"].is_string(), "{done}");
    assert!(dir.join("not yet.txt").exists(), "it stays where it is");
}

#[test]
fn done_with_only_mail_on_the_hook_is_refused() {
    let env = TestEnv::with_crew(&["max"]);
    let max = "gastown/crew/max";
    let by_max = |args: &[&str]| {
        let mut command = env.gt_command(args);
        Answer::of(command.env("GT_ROLE", max).output().unwrap())
    };
    let write = || {
        let send = ["mail", "send", max, "-s", "Go on", "-m", "here", "--json"];
        let mail = by_max(&send).ok().json();
        let id = mail[0]["id"].as_str().unwrap().to_owned();
        by_max(&["hook", &id]).ok();
        id
    };
    let mail = write();
    by_max(&["done", "--status", "escalated"]).fails(4);
    let hooked = env.json(&["hook", "--agent", max]);
    assert_eq!(hooked["id"], json!(mail), "a refusal changes nothing");
    let done = by_max(&["done", "--json"]).ok().json();
    assert_eq!(done.get("item"), None, "{done}");
    assert_eq!(env.json(&["hook", "--agent", max]), Value::Null);
    assert_eq!(env.json(&["work", "show", &mail])["status"], "closed");
    // A message on the hook cannot be submitted with commits.
    let mail = write();
    commit(&env, &env.town().join(max), "a.txt", "a\n");
    assert_snapshot!(by_max(&["done"]).rendered(&env), @"
    exit code: 4
    --- stderr
    error: nothing is on the hook of gastown/crew/max
    hint: `gt work create TITLE` makes an item, `gt hook ITEM` takes it up
    hint: `gt done --status deferred` leaves everything where it is
    ");
    assert_eq!(env.json(&["work", "show", &mail])["status"], "hooked");
    assert_eq!(env.json(&["mq", "list"]), json!([]));
}

#[test]
fn a_molecule_ends_with_the_work_it_was_poured_for() {
    let (env, _, first) = with_polecat();
    env.gt(&["crew", "add", "max"]).ok();
    let attach = |agent: &str, on: &str| {
        env.gt(&["mol", "attach", "shiny", "--on", on, "--agent", agent])
            .ok();
    };
    let molecule = |agent: &str| env.json(&["mol", "status", "--agent", agent]);
    let max = "gastown/crew/max";
    let hook = |title: &str, agent: &str| {
        let id = item(&env, &[title]);
        env.gt(&["hook", &id, "--agent", agent]).ok();
        id
    };
    // However a polecat ends its work, its molecule does not carry over to the next item.
    for leaving in ["completed", "deferred", "escalated"] {
        let id = match leaving {
            "completed" => first.clone(),
            _ => hook(leaving, TOAST),
        };
        attach(TOAST, &id);
        env.gt(&["done", "--agent", TOAST, "--status", leaving])
            .ok();
        assert_eq!(molecule(TOAST), Value::Null, "{leaving}");
    }
    // A crew worker keeps its molecule, unless the work is completed.
    let deferred = hook("Later", max);
    attach(max, &deferred);
    env.gt(&["done", "--agent", max, "--status", "deferred"])
        .ok();
    assert_ne!(molecule(max), Value::Null);
    hook("Meanwhile", max);
    env.gt(&["done", "--agent", max]).ok();
    assert_ne!(molecule(max), Value::Null, "it is of other work");
    env.gt(&["hook", &deferred, "--agent", max]).ok();
    env.gt(&["done", "--agent", max]).ok();
    assert_eq!(molecule(max), Value::Null);
    attach(max, &hook("Next", max));
    let told = env.json(&["events", "--type", "molecule_detached"]);
    assert_eq!(told.as_array().unwrap().len(), 4, "{told}");
}

#[test]
fn the_last_step_ends_with_the_work() {
    let (env, dir, id) = with_polecat();
    let mol = |args: &[&str]| env.gt(&[&["mol"], args, &["--agent", TOAST]].concat()).ok();
    mol(&["attach", "shiny"]);
    for step in ["design", "implement", "review", "test"] {
        mol(&["step", "done", step]);
    }
    mol(&["step", "start", "submit"]);
    commit(&env, &dir, "a.txt", "a\n");
    env.gt(&["done", "--agent", TOAST]).ok();
    let molecule = env.json(&["work", "show", &format!("{id}.1")]);
    assert_eq!(molecule["close_reason"], "done", "{molecule}");
    let told = env.json(&["events", "--type", "molecule_done,molecule_detached"]);
    assert_eq!(told.as_array().unwrap().len(), 1, "{told}");
    assert_eq!(told[0]["type"], "molecule_done");
    let session = &env.json(&["sessions", "list"])[0];
    let steps = env.json(&["step", "list", session["id"].as_str().unwrap()]);
    let last = steps.as_array().unwrap().last().unwrap();
    assert_eq!(last["name"], "submit");
    assert!(last["completed_at"].is_string(), "{last}");
    let feed = env.gt(&["events", "--feed"]).ok().stdout;
    assert!(feed.contains("finished the molecule"), "{feed}");
}

#[test]
fn work_can_be_left_for_others_or_for_help() {
    let (env, dir, id) = with_polecat();
    commit(&env, &dir, "a.txt", "a\n");
    fs::write(dir.join("half.txt"), "half\n").unwrap();
    let done = env.json(&[
        "done", "--agent", TOAST, "--status", "DEFERRED", "-m", "tired",
    ]);
    assert_eq!(done["item_status"], "open", "{done}");
    assert_idle(&env, &id);
    let shown = env.json(&["work", "show", &id]);
    assert_eq!(shown["status"], "open");
    assert_eq!(shown.get("assignee"), None, "{shown}");
    assert_eq!(
        shown["notes"],
        format!("left by {TOAST} on the branch polecat/Toast/idle: tired")
    );
    assert!(dir.join("half.txt").exists());
    assert_eq!(env.json(&["mq", "list"]), json!([]));
    // The next session cannot complete the item, either.
    env.gt(&["hook", &id, "--agent", TOAST]).ok();
    env.gt(&["start", TOAST]).ok();
    env.gt(&["done", "--agent", TOAST, "--status", "stuck"])
        .fails(2);
    let done = env.json(&[
        "done",
        "--agent",
        TOAST,
        "--status",
        "escalated",
        "-m",
        "help",
    ]);
    assert_eq!(done["item_status"], "blocked", "{done}");
    let shown = env.json(&["work", "show", &id]);
    assert_eq!(shown["labels"], json!(["escalated"]));
    assert!(
        shown["notes"].as_str().unwrap().contains("escalated by"),
        "{shown}"
    );
    assert_idle(&env, &id);
    let events = env.json(&["events", "--type", "escalation_*"]);
    assert_eq!(events[0]["payload"]["reason"], "help", "{events}");
}

#[test]
fn agent_that_stays_continues_with_the_next_item() {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["crew", "start", "max"]).ok();
    env.gt(&["done"]).fails(2);
    let max = ["--agent", "gastown/max"];
    let done = |more: &[&str]| env.gt(&[&["done", "--json"], &max[..], more].concat());
    // An empty hook and an item without commits are no errors.
    assert_eq!(done(&[]).ok().json().get("item"), None);
    let dir = env.town().join("gastown/crew/max");
    let id = item(&env, &["Nothing to merge"]);
    env.gt(&["hook", &id, "--agent", "gastown/max"]).ok();
    let answer = done(&[]).ok().json();
    assert_eq!(answer["item_status"], "closed", "{answer}");
    assert_eq!(answer.get("merge"), None);
    assert_eq!(env.running(), ["gastown/crew/max"]);
    commit(&env, &dir, "a.txt", "a\n");
    assert_snapshot!(done(&[]).rendered(&env), @r#"
    exit code: 4
    --- stderr
    {"error":{"kind":"conflict","message":"nothing is on the hook of gastown/crew/max","causes":[],"hints":["`gt work create TITLE` makes an item, `gt hook ITEM` takes it up","`gt done --status deferred` leaves everything where it is"]}}
    "#);
    let id = item(&env, &["Something to merge"]);
    env.gt(&["hook", &id, "--agent", "gastown/max"]).ok();
    env.git(&dir, &["switch", "--quiet", "--detach"]);
    done(&[]).fails(4);
    env.git(&dir, &["switch", "--quiet", "crew/max"]);
    let answer = done(&["--exit"]).ok().json();
    assert_eq!(answer["pushed"], true, "{answer}");
    assert_eq!(answer["ends"], true);
    assert_eq!(env.running(), [""; 0]);
    assert_eq!(list_sessions(&env, &[])[0]["outcome"], "done");
}

#[test]
fn a_done_that_is_killed_anywhere_is_finished_by_the_next() {
    for point in gt_town::workflow::done::FAULT_POINTS {
        let (env, dir, id) = with_polecat();
        let tip = commit(&env, &dir, "a.txt", "a\n");
        let done = ["done", "--agent", TOAST, "-m", "finished"];
        env.kill_at_fault(&done, point);
        // Readers see the state before or after the change, never between.
        let hooked = env.json(&["hook", "--agent", TOAST]);
        let queue = env.json(&["mq", "list"]);
        let is_queued = queue.as_array().unwrap().len() == 1;
        assert_eq!(hooked.is_null(), is_queued, "{point}: {hooked} {queue}");
        env.gt(&["sync"]).ok();
        env.gt(&done).ok();
        assert_idle(&env, &id);
        let queue = env.json(&["mq", "list"]);
        assert_eq!(queue.as_array().unwrap().len(), 1, "{point}: {queue}");
        assert_eq!(queue[0]["commit"], json!(tip), "{point}");
        let shown = env.json(&["work", "show", &id]);
        assert_eq!(shown["status"], "in_progress", "{point}");
        assert_eq!(shown["notes"], format!("{TOAST}: finished"), "{point}");
        env.gt(&["mq", "run"]).ok();
        assert_eq!(env.json(&["work", "show", &id])["status"], "closed");
    }
}

#[test]
fn messages_of_a_remote_are_shown_line_by_line() {
    let (env, bare) = with_bare_remote(&["max"]);
    let id = item(&env, &["a"]);
    env.gt(&["hook", &id, "--agent", "gastown/max"]).ok();
    commit(&env, &env.town().join("gastown/crew/max"), "a.txt", "a\n");
    fs::rename(&bare, env.path("gone.git")).unwrap();
    let told = env.gt(&["done", "--agent", "gastown/max"]).ok().stderr;
    assert!(told.starts_with("warning: "), "{told}");
    assert!(!told.contains('\u{fffd}'), "{told}");
    assert!(told.lines().count() > 1, "{told}");
    assert!(
        told.lines().skip(1).all(|line| line.starts_with("  ")),
        "{told}"
    );
}

#[test]
fn done_prints_the_submission() {
    let env = TestEnv::with_crew(&["max"]);
    let id = env.create_item("Mend the roof");
    assert_snapshot!(env.snapshot(&["done", "--agent", "gastown/max"]), @"
    exit code: 0
    --- stdout
    ✓ Nothing was on the hook.
    ");
    env.gt(&["hook", &id, "--agent", "gastown/max"]).ok();
    commit(&env, &env.town().join("gastown/crew/max"), "a.txt", "a\n");
    assert_snapshot!(env.snapshot(&["done", "--agent", "gastown/max"]), @"
    exit code: 0
    --- stdout
    ✓ gt-[ID] is done on crew/max: queued for merging as mr-[ID].
      [HEX] was pushed.
      `gt mq run` merges it; `gt mq status mr-[ID]` shows its status.
    ");
}

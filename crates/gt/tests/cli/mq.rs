//! `gt mq`: submitted work reaches the base only after validation.

mod background;
mod pull;
mod recovery;
mod remote;
mod reopened_items;

use crate::env::{TIMEOUT, TestEnv, signal};
use gt_tmux::testing::wait_until;
use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Ref of the merged base for a rig that was cloned from a checkout.
pub(crate) const MERGED: &str = "refs/gt/merged/main";

pub(crate) fn repository(env: &TestEnv) -> PathBuf {
    env.town().join("gastown/.repo.git")
}

pub(crate) fn worktree(env: &TestEnv, name: &str) -> PathBuf {
    env.town().join("gastown/crew").join(name)
}

pub(crate) fn commit(env: &TestEnv, dir: &Path, file: &str, text: &str) -> String {
    fs::write(dir.join(file), text).unwrap();
    env.git(dir, &["add", "--all"]);
    env.git(dir, &["commit", "--quiet", "-m", &format!("Write {file}")]);
    env.git(dir, &["rev-parse", "HEAD"]).trim().to_owned()
}

pub(crate) fn item(env: &TestEnv, args: &[&str]) -> String {
    let item = env.json(&[&["work", "create"], args].concat());
    item["id"].as_str().unwrap().to_owned()
}

/// Makes a crew worker complete an item that writes one file. Returns the item and the merge.
pub(crate) fn finish(env: &TestEnv, name: &str, file: &str, text: &str) -> (String, String) {
    let id = item(env, &[&format!("Write {file}")]);
    let agent = format!("gastown/{name}");
    env.gt(&["hook", &id, "--agent", &agent]).ok();
    commit(env, &worktree(env, name), file, text);
    let done = env.json(&["done", "--agent", &agent]);
    (id, done["merge"].as_str().unwrap().to_owned())
}

pub(crate) fn status(env: &TestEnv, id: &str) -> String {
    let item = env.json(&["work", "show", id]);
    item["status"].as_str().unwrap().to_owned()
}

pub(crate) fn files(env: &TestEnv, dir: &Path, name: &str) -> Vec<String> {
    let list = env.git(dir, &["ls-tree", "--name-only", name]);
    list.lines().map(str::to_owned).collect()
}

/// Returns the state of a repository that its owner would see: status, log and reflog.
fn look(env: &TestEnv, dir: &Path) -> [String; 3] {
    [
        env.git(dir, &["status", "--porcelain", "--branch"]),
        env.git(dir, &["log", "--format=%H", "HEAD", "main"]),
        env.git(dir, &["reflog", "HEAD"]),
    ]
}

/// Sets the rig's validation commands, and makes each run log its commit.
pub(crate) fn validate_with(env: &TestEnv, line: &str) -> PathBuf {
    let marks = env.path("validated");
    let note = format!("echo \"$GT_MERGE_COMMIT\" >> {}", marks.display());
    let path = env.town().join("town.toml");
    let text = fs::read_to_string(&path).unwrap();
    let text = text.split("[rigs.").next().unwrap();
    let lines = toml::Value::from(vec![line.to_owned(), note]);
    fs::write(
        &path,
        format!("{text}[rigs.gastown.merge]\nvalidate = {lines}\n"),
    )
    .unwrap();
    marks
}

/// Checks that every tip of the base since a commit was validated successfully.
#[track_caller]
fn assert_validated(env: &TestEnv, dir: &Path, name: &str, since: &str, marks: &Path) {
    let range = format!("{since}..{name}");
    let tips = env.git(dir, &["rev-list", "--first-parent", &range]);
    let sound = fs::read_to_string(marks).unwrap_or_default();
    for tip in tips.lines() {
        assert!(sound.lines().any(|line| line == tip), "{tip}: {sound}");
    }
}

/// Makes a rig with a bare remote and these crew workers.
pub(crate) fn with_bare_remote(names: &[&str]) -> (TestEnv, PathBuf) {
    let env = TestEnv::with_town();
    let source = env.repository("source");
    let bare = env.path("origin.git");
    let clone = ["clone", "--quiet", "--bare", source.to_str().unwrap()];
    env.git(
        env.home(),
        &[&clone[..], &[bare.to_str().unwrap()]].concat(),
    );
    let url = bare.to_str().unwrap().to_owned();
    env.gt(&["rig", "add", "gastown", &url, "--prefix", "gt"])
        .ok();
    env.gt(&[&["crew", "add"], names].concat()).ok();
    (env, bare)
}

/// Makes a rig with these crew workers. Returns the repository and the branch that its queue
/// advances: of a bare remote, or of the town.
pub(crate) fn with_base(is_bare: bool, names: &[&str]) -> (TestEnv, PathBuf, &'static str) {
    if is_bare {
        let (env, bare) = with_bare_remote(names);
        return (env, bare, "main");
    }
    let env = TestEnv::with_crew(names);
    let dir = repository(&env);
    (env, dir, MERGED)
}

#[test]
fn finished_work_is_merged_in_order_and_the_users_checkout_is_left_alone() {
    let env = TestEnv::with_crew(&["max", "amy"]);
    let source = env.path("source-gastown");
    let before = look(&env, &source);
    let first = item(&env, &["First", "--priority", "3"]);
    let after = item(&env, &["After it", "--dep", &first]);
    env.gt(&["hook", &first, "--agent", "gastown/max"]).ok();
    commit(&env, &worktree(&env, "max"), "a.txt", "a\n");
    let done = env.json(&["done", "--agent", "gastown/max"]);
    assert_eq!(done["item_status"], "in_progress", "{done}");
    let shown = env.json(&["work", "show", &first]);
    assert_eq!(shown["assignee"], "gastown/refinery");
    assert_eq!(env.json(&["hook", "--agent", "gastown/max"]), Value::Null);
    let (urgent, _) = finish(&env, "amy", "b.txt", "b\n");
    let queue = env.json(&["mq", "list"]);
    let order: Vec<&str> = queue
        .as_array()
        .unwrap()
        .iter()
        .map(|merge| merge["item"].as_str().unwrap())
        .collect();
    assert_eq!(order, [urgent.as_str(), first.as_str()], "by priority");
    let would = env.json(&["mq", "run", "--dry-run"]);
    assert_eq!(would[1]["would"], "merge", "{would}");
    let ready = env.json(&["work", "ready"]);
    assert_eq!(ready, json!([]), "{after} waits until {first} is merged");
    assert_snapshot!(env.snapshot(&["mq", "run"]), @"
    exit code: 0
    --- stdout
    mr-[ID] crew/amy: merging into main
    mr-[ID] crew/amy: merged as [HEX]
    mr-[ID] crew/max: merging into main
    mr-[ID] crew/max: merged as [HEX]
    Your checkout's `main` is unchanged: `gt mq pull gastown` fast-forwards it to `gt/merged/main`.
    2 merged, 0 not.
    ");
    assert_eq!(look(&env, &source), before);
    let repository = repository(&env);
    assert_eq!(
        files(&env, &repository, MERGED),
        ["README.md", "a.txt", "b.txt"]
    );
    let subjects = env.git(
        &repository,
        &["log", "--first-parent", "--format=%s", MERGED],
    );
    assert_eq!(
        subjects.lines().collect::<Vec<_>>(),
        [
            "Merge crew/max: First",
            "Merge crew/amy: Write b.txt",
            "Begin"
        ]
    );
    // The owner finds the result on a branch that no checkout uses.
    assert_eq!(
        files(&env, &source, "gt/merged/main"),
        ["README.md", "a.txt", "b.txt"]
    );
    let closed = env.json(&["work", "show", &first]);
    assert_eq!(closed["status"], "closed");
    let reason = closed["close_reason"].as_str().unwrap();
    assert!(reason.starts_with("merged into main as "), "{reason}");
    assert_eq!(env.json(&["work", "ready"])[0]["id"], json!(after));
    assert_eq!(env.json(&["mq", "list"]), json!([]));
    assert_eq!(env.json(&["mq", "list", "--all"])[0]["status"], "merged");
    // A new worktree starts from the merged base.
    env.gt(&["crew", "add", "new"]).ok();
    assert!(worktree(&env, "new").join("a.txt").exists());
    let events = env.json(&["events", "--type", "done,merge_*"]);
    let kinds: Vec<&str> = events
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["done", "done", "merge_merged", "merge_merged"]);
    // The owner commits, pulls the merged base, and commits again.
    env.git(
        &source,
        &["merge", "--quiet", "--ff-only", "gt/merged/main"],
    );
    commit(&env, &source, "own.txt", "own\n");
    finish(&env, "max", "c.txt", "c\n");
    env.gt(&["mq", "run"]).ok();
    commit(&env, &source, "more.txt", "more\n");
    finish(&env, "max", "d.txt", "d\n");
    env.gt(&["mq", "run"]).ok();
    let merged = files(&env, &repository, MERGED);
    for file in ["own.txt", "c.txt", "more.txt", "d.txt"] {
        assert!(merged.iter().any(|found| found == file), "{merged:?}");
    }
    assert_eq!(files(&env, &source, "gt/merged/main"), merged);
}

#[test]
fn a_conflict_names_the_files_and_its_repair_is_merged_instead() {
    let env = TestEnv::with_crew(&["max", "amy"]);
    finish(&env, "max", "same file.txt", "of max\n");
    let (id, merge) = finish(&env, "amy", "same file.txt", "of amy\n");
    let would = env.json(&["mq", "run", "--dry-run"]);
    assert_eq!(would[1]["would"], "conflict", "{would}");
    let answer = env.gt(&["mq", "run", "--json"]).fails(1);
    let ran = answer.json();
    assert_eq!(ran[0]["status"], "merged", "{ran}");
    assert_eq!(ran[1]["status"], "conflict");
    assert_eq!(ran[1]["files"], json!(["same file.txt"]));
    let repair = ran[1]["repair"].as_str().unwrap();
    let made = env.json(&["work", "show", repair]);
    assert_eq!(made["type"], "bug");
    assert_eq!(made["priority"], 1, "one above its item");
    assert_eq!(made["parent"], json!(id));
    // A polecat already has the repair, on a separate branch.
    assert_eq!(made["status"], "hooked", "{made}");
    assert_eq!(made["assignee"], "gastown/polecats/Toast");
    assert_eq!(env.running(), ["gastown/polecats/Toast"]);
    let text = made["description"].as_str().unwrap();
    assert!(
        text.contains("same file.txt") && text.contains("crew/amy"),
        "{text}"
    );
    assert_eq!(status(&env, &id), "in_progress");
    // Nothing waits, and a second run does not create another repair.
    env.gt(&["mq", "run"]).ok();
    assert_eq!(
        env.json(&["work", "list", "--parent", &id])[0]["id"],
        repair
    );
    // A retry fails again with the same repair item.
    env.gt(&["mq", "retry", &merge]).ok();
    assert_snapshot!(env.snapshot(&["mq", "run", &merge]), @"
    exit code: 1
    --- stdout
    mr-[ID] crew/amy: merging into main
    mr-[ID] crew/amy: 1 file is in conflict with main
    0 merged, 1 not.
    --- stderr
    error: 1 of 1 could not be merged
    hint: `gt mq status mr-[ID]` shows why, and the item that repairs it
    ");
    assert_snapshot!(env.snapshot(&["mq", "status", &merge]), @"
    exit code: 0
    --- stdout
    mr-[ID]
      status  conflict
      rig  gastown
      item  gt-[ID]
      branch  crew/amy
      commit  [HEX]
      base  main
      worker  gastown/crew/amy
      attempts  2
      reason  1 file is in conflict with main
      files  same file.txt
      repair  gt-[ID].1
      queued at  [TIME]
      changed at [TIME]
    ");
    let again = env.json(&["mq", "status", &merge]);
    assert_eq!(again["repair"], json!(repair));
    assert_eq!(again["attempts"], 2);
    // The polecat repairs it.
    let dir = env.town().join("gastown/polecats/Toast");
    let theirs = again["commit"].as_str().unwrap();
    env.git(
        &dir,
        &["merge", "--quiet", "-X", "theirs", "-m", "Both", theirs],
    );
    let done = env.json(&["done", "--agent", "gastown/polecats/Toast"]);
    assert_eq!(done["merge"], json!(merge), "the same entry: {done}");
    assert_eq!(env.running(), [""; 0]);
    env.gt(&["mq", "run"]).ok();
    let settled = env.json(&["mq", "status", &merge]);
    assert_eq!(settled["status"], "merged", "{settled}");
    assert_eq!(settled["branch"], format!("polecat/Toast/{repair}"));
    assert_eq!(status(&env, &id), "closed");
    assert_eq!(status(&env, repair), "closed");
    let text = env.git(
        &repository(&env),
        &["show", &format!("{MERGED}:same file.txt")],
    );
    assert_eq!(text, "of amy\n");
}

#[test]
fn failed_validation_never_reaches_the_base() {
    let env = TestEnv::with_crew(&["max", "amy"]);
    let begin = env.git(&repository(&env), &["rev-parse", "main"]);
    let marks = validate_with(
        &env,
        "echo looking; if test -e bad.txt; then echo it is bad >&2; exit 3; fi",
    );
    let (_, bad) = finish(&env, "max", "bad.txt", "x\n");
    finish(&env, "amy", "good.txt", "x\n");
    let ran = env.gt(&["mq", "run", "--json"]).fails(1).json();
    assert_eq!(ran[0]["status"], "failed", "{ran}");
    assert_eq!(ran[1]["status"], "merged");
    let reason = ran[0]["reason"].as_str().unwrap();
    assert!(reason.contains("exit status: 3"), "{reason}");
    let log = Path::new(ran[0]["log"].as_str().unwrap());
    let mode = log.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let text = fs::read_to_string(log).unwrap();
    assert!(text.contains("looking\nit is bad\n"), "{text}");
    let repair = env.json(&["work", "show", ran[0]["repair"].as_str().unwrap()]);
    let text = repair["description"].as_str().unwrap();
    assert!(text.contains("it is bad"), "{text}");
    assert!(text.contains("What it changes:\n- bad.txt\n"), "{text}");
    assert_eq!(ran[0]["files"], json!(["bad.txt"]), "{ran}");
    assert_snapshot!(env.snapshot(&["mq", "status", &bad]), @"
    exit code: 0
    --- stdout
    mr-[ID]
      status  failed
      rig  gastown
      item  gt-[ID]
      branch  crew/max
      commit  [HEX]
      base  main
      worker  gastown/crew/max
      attempts  1
      reason  `echo looking; if test -e bad.txt; then echo it is bad >&2; exit 3; fi` failed (exit status: 3)
      files  bad.txt
      log  ~/gt/.runtime/merge/gastown/mr-[ID].log
      repair  gt-[ID].1
      queued at  [TIME]
      changed at [TIME]
    ");
    let repository = repository(&env);
    assert_eq!(files(&env, &repository, MERGED), ["README.md", "good.txt"]);
    assert_validated(&env, &repository, MERGED, begin.trim(), &marks);
    // A person fixes the branch itself and retries.
    let dir = worktree(&env, "max");
    env.git(&dir, &["rm", "--quiet", "bad.txt"]);
    commit(&env, &dir, "mended.txt", "x\n");
    let retried = env.json(&["mq", "retry", &bad]);
    assert_eq!(retried["status"], "queued");
    env.gt(&["mq", "retry", &bad]).fails(4);
    env.gt(&["mq", "run", "gastown"]).ok();
    assert_eq!(
        files(&env, &repository, MERGED),
        ["README.md", "good.txt", "mended.txt"]
    );
    assert_validated(&env, &repository, MERGED, begin.trim(), &marks);
    // The repair stays with its polecat, which finds nothing to do.
    let repair = repair["id"].as_str().unwrap();
    assert_eq!(status(&env, repair), "hooked");
    env.gt(&["done", "--agent", "gastown/polecats/Toast"]).ok();
    assert_eq!(status(&env, repair), "closed");
}

#[test]
fn timed_out_commands_are_ended_with_their_children() {
    let env = TestEnv::with_crew(&["max"]);
    let pid = env.path("pid");
    validate_with(
        &env,
        &format!("setsid sleep 300 & echo $! > {}; wait", pid.display()),
    );
    let path = env.town().join("town.toml");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{text}timeout_minutes = 0\n")).unwrap();
    finish(&env, "max", "a.txt", "a\n");
    let ran = env.gt(&["mq", "run", "--json"]).fails(1).json();
    let reason = ran[0]["reason"].as_str().unwrap();
    assert!(reason.contains("longer than 0 minutes"), "{reason}");
    if let Ok(text) = fs::read_to_string(&pid) {
        let pid: u32 = text.trim().parse().unwrap();
        wait_until("what it started is ended", TIMEOUT, || {
            (!crate::env::is_alive(pid)).then_some(())
        });
    }
}

#[test]
fn a_run_that_is_stopped_leaves_the_queue_as_it_was() {
    let env = TestEnv::with_crew(&["max"]);
    let pid = env.path("pid");
    let line = format!("setsid sleep 300 & echo $! > {}; wait", pid.display());
    validate_with(&env, &line);
    let (_, merge) = finish(&env, "max", "a.txt", "a\n");
    let begun = || {
        let mut run = env.spawn(&["mq", "run"]);
        let sleeper: u32 = wait_until("its commands run", TIMEOUT, || {
            fs::read_to_string(&pid).ok()?.trim().parse().ok()
        });
        fs::remove_file(&pid).unwrap();
        let other = env.json(&["mq", "status", &merge]);
        assert_eq!(other["status"], "merging");
        let refused = env.gt(&["mq", "reject", &merge, "--reason", "x"]).fails(4);
        let holder = format!("({})", run.id());
        assert!(refused.stderr.contains(&holder), "{}", refused.stderr);
        assert!(run.try_wait().unwrap().is_none());
        (run, sleeper)
    };
    // Ctrl-C also ends the processes that the validation started.
    let (run, sleeper) = begun();
    signal(run.id(), Signal::INT);
    let output = run.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(!crate::env::is_alive(sleeper));
    assert_eq!(env.json(&["mq", "status", &merge])["status"], "queued");
    // After a kill the next run ends those processes first, and starts over.
    let (run, sleeper) = begun();
    signal(run.id(), Signal::KILL);
    run.wait_with_output().unwrap();
    assert!(crate::env::is_alive(sleeper));
    let marks = validate_with(&env, "test ! -e left.txt");
    let tree = env.town().join(".runtime/merge/gastown/tree");
    fs::write(tree.join("left.txt"), "x").unwrap();
    fs::write(tree.join("README.md"), "x").unwrap();
    env.gt(&["mq", "run"]).ok();
    assert!(!crate::env::is_alive(sleeper));
    assert_eq!(fs::read_to_string(&marks).unwrap().lines().count(), 1);
    let settled = env.json(&["mq", "status", &merge]);
    assert_eq!(settled["status"], "merged", "{settled}");
    assert_eq!(settled["attempts"], 3);
}

#[test]
fn work_is_pushed_to_a_bare_remote_and_its_branch_is_removed_once_merged() {
    let (env, bare) = with_bare_remote(&["max", "amy"]);
    let begin = env.git(&bare, &["rev-parse", "main"]);
    let (id, _) = finish(&env, "max", "a.txt", "a\n");
    let there = env.git(&bare, &["branch", "--format=%(refname:short)"]);
    assert!(there.lines().any(|name| name == "crew/max"), "{there}");
    // Another client pushes to the base during validation.
    let clone = env.path("clone");
    let url = bare.to_str().unwrap().to_owned();
    env.git(
        env.home(),
        &["clone", "--quiet", &url, clone.to_str().unwrap()],
    );
    commit(&env, &clone, "theirs.txt", "theirs\n");
    let line = format!(
        "test -e {0}/pushed || (unset GIT_DIR; cd {0} && git push --quiet origin HEAD:main && touch pushed)",
        clone.display()
    );
    let marks = validate_with(&env, &line);
    assert_snapshot!(env.snapshot(&["mq", "run"]), @r#"
    exit code: 0
    --- stdout
    mr-[ID] crew/max: merging into main
    mr-[ID] crew/max: running test -e ~/clone/pushed || (unset GIT_DIR; cd ~/clone && git push --quiet origin HEAD:main && touch pushed)
    mr-[ID] crew/max: running echo "$GT_MERGE_COMMIT" >> ~/validated
    mr-[ID] crew/max: main has moved in the meantime: trying again
    mr-[ID] crew/max: running test -e ~/clone/pushed || (unset GIT_DIR; cd ~/clone && git push --quiet origin HEAD:main && touch pushed)
    mr-[ID] crew/max: running echo "$GT_MERGE_COMMIT" >> ~/validated
    mr-[ID] crew/max: merged as [HEX]
    1 merged, 0 not.
    "#);
    assert_eq!(
        files(&env, &bare, "main"),
        ["README.md", "a.txt", "theirs.txt"]
    );
    assert_eq!(status(&env, &id), "closed");
    let theirs = env.git(&clone, &["rev-parse", "HEAD"]);
    assert_validated(&env, &bare, "main", theirs.trim(), &marks);
    assert_ne!(begin, theirs);
    // The branch of an active worker stays; that of a detached one is deleted.
    let there = env.git(&bare, &["branch", "--format=%(refname:short)"]);
    assert!(there.lines().any(|name| name == "crew/max"), "{there}");
    let amy = worktree(&env, "amy");
    env.git(&amy, &["branch", "-m", "crew/amy/side"]);
    finish(&env, "amy", "b.txt", "b\n");
    env.git(&amy, &["switch", "--quiet", "--detach"]);
    env.gt(&["mq", "run"]).ok();
    for dir in [&bare, &repository(&env)] {
        let left = env.git(dir, &["branch", "--format=%(refname:short)"]);
        assert!(!left.contains("side"), "{left}");
    }
    let kept = env.git(&repository(&env), &["for-each-ref", "refs/gt/queued"]);
    assert_eq!(kept, "", "nothing is queued any more");
    assert_eq!(
        files(&env, &bare, "main"),
        ["README.md", "a.txt", "b.txt", "theirs.txt"]
    );
}

#[test]
fn remote_that_refuses_pushes_rejects_no_branch() {
    let (env, bare) = with_bare_remote(&["max"]);
    let (id, merge) = finish(&env, "max", "a.txt", "a\n");
    let hook = bare.join("hooks/pre-receive");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, "#!/bin/sh\necho closed >&2\nexit 1\n").unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    let answer = env.gt(&["mq", "run"]).fails(1);
    assert!(
        answer.stderr.contains("closed") && answer.stderr.contains("into = \"own\""),
        "{}",
        answer.stderr
    );
    assert_eq!(env.json(&["mq", "status", &merge])["status"], "queued");
    assert_eq!(status(&env, &id), "in_progress");
    fs::remove_file(&hook).unwrap();
    env.gt(&["mq", "run"]).ok();
    assert_eq!(files(&env, &bare, "main"), ["README.md", "a.txt"]);
}

#[test]
fn the_owners_commits_that_do_not_fit_stop_the_queue_and_are_named() {
    let env = TestEnv::with_crew(&["max"]);
    let source = env.path("source-gastown");
    finish(&env, "max", "a.txt", "of max\n");
    env.gt(&["mq", "run"]).ok();
    commit(&env, &source, "a.txt", "of the owner\n");
    let (_, merge) = finish(&env, "max", "b.txt", "b\n");
    assert_snapshot!(env.snapshot(&["mq", "run"]), @"
    exit code: 4
    --- stdout
    merging main of the remote
    0 merged, 0 not.
    --- stderr
    error: main of the remote and what was merged here are in conflict: 1 file is in conflict with main
    caused by: a.txt
    hint: in the repository itself: `git merge gt/merged/main` on main, and repair it
    ");
    assert_eq!(env.json(&["mq", "status", &merge])["status"], "queued");
    env.git(
        &source,
        &[
            "merge",
            "--quiet",
            "-X",
            "ours",
            "-m",
            "Mine",
            "gt/merged/main",
        ],
    );
    env.gt(&["mq", "run"]).ok();
    let text = env.git(&repository(&env), &["show", &format!("{MERGED}:a.txt")]);
    assert_eq!(text, "of the owner\n");
}

#[test]
fn a_branch_that_is_not_wanted_is_rejected() {
    let env = TestEnv::with_crew(&["max", "amy"]);
    let (closed, first) = finish(&env, "max", "a.txt", "a\n");
    let (open, second) = finish(&env, "amy", "b.txt", "b\n");
    env.gt(&["mq", "reject", &first]).fails(2);
    env.gt(&["mq", "reject", "mr-nosuch", "--reason", "x"])
        .fails(3);
    let rejected = env.json(&["mq", "reject", &first, "--reason", "not now"]);
    assert_eq!(rejected["status"], "rejected");
    assert_eq!(status(&env, &closed), "closed");
    env.gt(&["mq", "reject", &first, "--reason", "x"]).fails(4);
    env.gt(&["mq", "reject", &second, "--reason", "not so", "--reopen"])
        .ok();
    let item = env.json(&["work", "show", &open]);
    assert_eq!(item["status"], "open");
    assert!(item["notes"].as_str().unwrap().contains("not so"), "{item}");
    let told = env.gt(&["mq", "run"]).ok().stdout;
    assert_eq!(told, "Nothing waits to be merged.\n");
    env.gt(&["mq", "run", &first]).fails(4);
    env.gt(&["mq", "run", "nowhere"]).fails(3);
}

#[test]
fn two_runs_at_once_merge_everything_once() {
    let env = TestEnv::with_crew(&["max", "amy", "zoe"]);
    let marks = validate_with(&env, "true");
    for name in ["max", "amy", "zoe"] {
        finish(&env, name, &format!("{name}.txt"), "x\n");
    }
    let runs = [(); 3].map(|()| env.spawn(&["mq", "run"]));
    for run in runs {
        let output = run.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
    }
    let sound = fs::read_to_string(&marks).unwrap();
    assert_eq!(sound.lines().count(), 3, "{sound}");
    let all = env.json(&["mq", "list", "--all"]);
    for merge in all.as_array().unwrap() {
        assert_eq!(merge["status"], "merged", "{merge}");
        assert_eq!(merge["attempts"], 1);
    }
}

#[test]
fn item_titles_and_branch_names_are_never_executed() {
    let env = TestEnv::with_crew(&["max", "amy"]);
    let trap = env.path("trap");
    let title = format!(
        "-m $(touch {0}) `touch {0}`; #(touch {0}) 'x",
        trap.display()
    );
    let id = item(&env, &[&format!("x {title}")]);
    env.gt(&["hook", &id, "--agent", "gastown/max"]).ok();
    let dir = worktree(&env, "max");
    let branch = format!("crew/max/$(touch${{IFS}}{});x", "trap");
    env.git(&dir, &["branch", "-m", &branch]);
    commit(&env, &dir, "$(touch trap).txt", "of max\n");
    // A conflicting change, whose file names appear in the repair item.
    let other = env
        .gt(&["--json", "work", "create", "--", &title])
        .ok()
        .json();
    let other = other["id"].as_str().unwrap().to_owned();
    env.gt(&["hook", &other, "--agent", "gastown/amy"]).ok();
    commit(
        &env,
        &worktree(&env, "amy"),
        "$(touch trap).txt",
        "of amy\n",
    );
    validate_with(&env, "true");
    env.gt(&["done", "--agent", "gastown/max", "-m", &title])
        .ok();
    env.gt(&["done", "--agent", "gastown/amy", "-m", "--help"])
        .ok();
    let ran = env.gt(&["mq", "run", "--json"]).fails(1).json();
    assert_eq!(ran[0]["branch"], json!(branch));
    assert_eq!(ran[0]["status"], "merged");
    assert_eq!(ran[1]["files"], json!(["$(touch trap).txt"]));
    let subject = env.git(&repository(&env), &["log", "-1", "--format=%s", MERGED]);
    assert_eq!(subject.trim(), format!("Merge {branch}: x {title}"));
    let found = std::process::Command::new("find")
        .args([env.home().to_str().unwrap(), "-name", "trap"])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&found.stdout), "");
}

#[test]
fn a_run_that_is_killed_anywhere_is_finished_by_the_next() {
    for bare in [false, true] {
        for point in gt_town::workflow::merge::FAULT_POINTS {
            let (env, dir, name) = with_base(bare, &["max", "amy"]);
            let begin = env.git(&dir, &["rev-parse", "main"]);
            let marks = validate_with(&env, "true");
            let (first, _) = finish(&env, "max", "a.txt", "a\n");
            let (second, _) = finish(&env, "amy", "b.txt", "b\n");
            env.kill_at_fault(&["mq", "run"], point);
            if *point != "mq.begun" && *point != "mq.built" && *point != "mq.validated" {
                assert_validated(&env, &dir, name, begin.trim(), &marks);
            }
            env.gt(&["mq", "run"]).ok();
            assert_validated(&env, &dir, name, begin.trim(), &marks);
            assert_eq!(
                files(&env, &dir, name),
                ["README.md", "a.txt", "b.txt"],
                "{point}"
            );
            let range = format!("{}..{name}", begin.trim());
            let merges = env.git(&dir, &["rev-list", "--first-parent", "--count", &range]);
            assert_eq!(merges.trim(), "2", "{point}: each once");
            assert_eq!(status(&env, &first), "closed", "{point}");
            assert_eq!(status(&env, &second), "closed", "{point}");
            let all = env.json(&["mq", "list", "--all"]);
            for merge in all.as_array().unwrap() {
                assert_eq!(merge["status"], "merged", "{point}: {merge}");
            }
        }
    }
}

#[test]
fn a_refusal_that_is_killed_anywhere_makes_one_repair() {
    for point in gt_town::workflow::merge::REFUSAL_FAULT_POINTS {
        let env = TestEnv::with_crew(&["max"]);
        let begin = env.git(&repository(&env), &["rev-parse", "main"]);
        validate_with(&env, "false");
        let (id, merge) = finish(&env, "max", "a.txt", "a\n");
        env.kill_at_fault(&["mq", "run"], point);
        env.gt(&["mq", "run"]);
        let found = env.json(&["mq", "status", &merge]);
        assert_eq!(found["status"], "failed", "{point}: {found}");
        let repairs = env.json(&["work", "list", "--all", "--parent", &id]);
        assert_eq!(repairs.as_array().unwrap().len(), 1, "{point}");
        assert_eq!(repairs[0]["id"], found["repair"], "{point}");
        assert_eq!(repairs[0]["status"], "hooked", "{point}: an agent has it");
        assert_eq!(env.running(), ["gastown/polecats/Toast"], "{point}");
        assert_eq!(status(&env, &id), "in_progress", "{point}");
        let refs = env.git(&repository(&env), &["for-each-ref", "refs/gt/merged"]);
        assert_eq!(refs, "", "{point}: the base is where it was, {begin}");
    }
}

#[test]
fn mq_prints_the_queue() {
    let env = TestEnv::with_crew(&["max"]);
    assert_snapshot!(env.snapshot(&["mq", "list"]), @"
    exit code: 0
    --- stdout
    Nothing waits to be merged.
    ");
    finish(&env, "max", "a.txt", "a\n");
    assert_snapshot!(env.snapshot(&["mq", "list"]), @"
    exit code: 0
    --- stdout
    ID  STATUS  RIG  ITEM  BRANCH  WORKER  REASON
    mr-[ID]  queued  gastown  gt-[ID]  crew/max  gastown/crew/max
    ");
    assert_snapshot!(env.snapshot(&["mq", "run"]), @"
    exit code: 0
    --- stdout
    mr-[ID] crew/max: merging into main
    mr-[ID] crew/max: merged as [HEX]
    Your checkout's `main` is unchanged: `gt mq pull gastown` fast-forwards it to `gt/merged/main`.
    1 merged, 0 not.
    ");
    assert_snapshot!(env.snapshot(&["mq", "list"]), @"
    exit code: 0
    --- stdout
    Nothing waits to be merged.
    ");
    assert_snapshot!(env.snapshot(&["mq", "status", "gt-zzzzz"]), @"
    exit code: 3
    --- stderr
    error: there is no merge gt-[ID]
    hint: `gt mq list --all` shows them
    ");
}

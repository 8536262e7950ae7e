//! The merge queue and its remote: both stay consistent, reverted work does not return, and a
//! failure of one entry does not affect the others.

use crate::env::{Answer, TIMEOUT, TestEnv};
use crate::mq::recovery::write_hook;
use crate::mq::{
    MERGED, commit, files, finish, item, repository, status, validate_with, with_bare_remote,
    worktree,
};
use gt_tmux::testing::wait_until;
use insta::assert_snapshot;
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};

const TOAST: &str = "gastown/polecats/Toast";

fn clone_of(env: &TestEnv, bare: &Path) -> PathBuf {
    let clone = env.path("clone");
    let names = [bare.to_str().unwrap(), clone.to_str().unwrap()];
    env.git(env.home(), &[&["clone", "--quiet"], &names[..]].concat());
    clone
}

/// Sets the location of the base in `town.toml`.
fn merge_into(env: &TestEnv, into: &str) {
    let path = env.town().join("town.toml");
    let text = fs::read_to_string(&path).unwrap();
    let text = text.split("[rigs.").next().unwrap();
    let merge = format!("[rigs.gastown.merge]\ninto = \"{into}\"\n");
    fs::write(&path, format!("{text}{merge}")).unwrap();
}

#[test]
fn conflict_without_a_file_is_a_conflict() {
    let env = TestEnv::with_town();
    let source = env.repository("source");
    fs::create_dir(source.join("dir")).unwrap();
    for file in ["1", "2", "3", "4"] {
        let text = format!("{file}{file}{file}\n");
        commit(&env, &source, &format!("dir/f{file}"), &text);
    }
    let url = source.to_str().unwrap();
    env.gt(&["rig", "add", "gastown", url, "--prefix", "gt"])
        .ok();
    env.gt(&["crew", "add", "max", "amy"]).ok();
    finish(&env, "max", "dir/new", "n\n");
    // When half of a folder moves to one place and half to another, git cannot place a new file of
    // it.
    let amy = worktree(&env, "amy");
    for (to, names) in [("x", ["f1", "f2"]), ("y", ["f3", "f4"])] {
        fs::create_dir(amy.join(to)).unwrap();
        for name in names {
            fs::rename(amy.join("dir").join(name), amy.join(to).join(name)).unwrap();
        }
    }
    finish(&env, "amy", "b.txt", "b\n");
    let ran = env.gt(&["mq", "run", "--json"]).fails(1).json();
    assert_eq!(ran[0]["status"], "merged", "{ran}");
    assert_eq!(ran[1]["status"], "conflict", "{ran}");
    assert_eq!(ran[1]["files"], json!(["dir"]), "{ran}");
    let reason = ran[1]["reason"].as_str().unwrap();
    assert!(reason.contains("directory rename split"), "{reason}");
    // A task gets the same conflict to resolve.
    let id = item(&env, &["As a task"]);
    let started = env.json(&["task", "start", &id]);
    let dir = PathBuf::from(started["work_dir"].as_str().unwrap());
    let base = env.git(&source, &["rev-parse", "HEAD"]);
    env.git(&dir, &["reset", "--quiet", "--hard", base.trim()]);
    env.git(&dir, &["merge", "--quiet", "crew/amy"]);
    assert_snapshot!(env.snapshot(&["task", "merge", &id]), @"
    exit code: 1
    --- stderr
    error: gt-[ID] is in conflict with main, and was not queued
    caused by: dir
    hint: `gt task update gt-[ID]` brings them together
    ");
    let updated = env.gt(&["task", "update", &id, "--json"]).fails(1).json();
    assert_eq!(updated["result"], "conflict", "{updated}");
    assert_eq!(updated["files"], json!(["dir"]), "{updated}");
}

#[test]
fn switching_between_own_and_remote_base_keeps_all_merges() {
    let (env, bare) = with_bare_remote(&["max", "amy"]);
    let kept = |into: &str, file: &str| {
        merge_into(&env, into);
        finish(&env, "max", file, "x\n");
        env.gt(&["mq", "run"]).ok();
    };
    kept("own", "a.txt");
    assert_eq!(files(&env, &bare, "main"), ["README.md"]);
    kept("origin", "b.txt");
    assert_eq!(files(&env, &bare, "main"), ["README.md", "a.txt", "b.txt"]);
    kept("own", "c.txt");
    kept("own", "d.txt");
    let merged = files(&env, &repository(&env), MERGED);
    assert_eq!(
        merged,
        ["README.md", "a.txt", "b.txt", "c.txt", "d.txt"],
        "with all that the remote has"
    );
    // The push also happens without waiting entries, and after validation.
    let marks = validate_with(&env, "true");
    env.gt(&["mq", "run"]).ok();
    assert_eq!(files(&env, &bare, "main"), merged);
    let tip = env.git(&bare, &["rev-parse", "main"]);
    assert_eq!(fs::read_to_string(&marks).unwrap(), tip);
    // Commits that the owner removes later do not return.
    env.gt(&["mq", "run"]).ok();
    env.git(&bare, &["branch", "--force", "main", "main~1"]);
    let without = files(&env, &bare, "main");
    finish(&env, "amy", "e.txt", "x\n");
    env.gt(&["mq", "run"]).ok();
    let with_e = [without, vec!["e.txt".to_owned()]].concat();
    assert_eq!(files(&env, &bare, "main"), with_e);
}

#[test]
fn conflicting_upstream_merge_is_reported_before_any_merge() {
    let (env, bare) = with_bare_remote(&["max", "amy"]);
    merge_into(&env, "own");
    finish(&env, "max", "a.txt", "of max\n");
    env.gt(&["mq", "run"]).ok();
    let clone = clone_of(&env, &bare);
    commit(&env, &clone, "a.txt", "of another\n");
    env.git(&clone, &["push", "--quiet", "origin", "main"]);
    merge_into(&env, "origin");
    let (id, _) = finish(&env, "amy", "b.txt", "b\n");
    assert_snapshot!(env.snapshot(&["mq", "run"]), @"
    exit code: 4
    --- stdout
    merging main as it was merged here
    0 merged, 0 not.
    --- stderr
    error: main of the remote and what was merged here are in conflict: 1 file is in conflict with main
    caused by: a.txt
    hint: in the repository itself: `git merge gt/merged/main` on main, and repair it
    ");
    assert_eq!(status(&env, &id), "in_progress");
    // Follow the message.
    env.git(&clone, &["fetch", "--quiet"]);
    let merge = ["merge", "--quiet", "-X", "ours", "-m", "Both"];
    env.git(&clone, &[&merge[..], &["origin/gt/merged/main"]].concat());
    env.git(&clone, &["push", "--quiet", "origin", "main"]);
    env.gt(&["mq", "run"]).ok();
    assert_eq!(status(&env, &id), "closed");
    assert_eq!(files(&env, &bare, "main"), ["README.md", "a.txt", "b.txt"]);
}

#[test]
fn checkout_is_left_alone_under_any_path() {
    for is_alias in [false, true] {
        let env = TestEnv::with_town();
        let source = env.repository("my repo");
        env.git(&source, &["config", "receive.denyCurrentBranch", "ignore"]);
        let home = env.home().display().to_string();
        let url = match is_alias {
            false => format!("file://{home}/my%20repo"),
            true => {
                let key = format!("url.{home}/.insteadOf");
                env.git(env.home(), &["config", "--global", &key, "here:"]);
                "here:my repo".to_owned()
            }
        };
        env.gt(&["rig", "add", "gastown", &url, "--prefix", "gt"])
            .ok();
        env.gt(&["crew", "add", "max"]).ok();
        let before = env.git(&source, &["rev-parse", "main"]);
        let (id, _) = finish(&env, "max", "a.txt", "a\n");
        env.gt(&["mq", "run"]).ok();
        assert_eq!(status(&env, &id), "closed", "{url}");
        assert_eq!(env.git(&source, &["rev-parse", "main"]), before, "{url}");
        assert_eq!(env.git(&source, &["status", "--porcelain"]), "", "{url}");
        assert_eq!(
            files(&env, &source, "gt/merged/main"),
            ["README.md", "a.txt"]
        );
    }
}

#[test]
fn reverted_work_does_not_come_back() {
    let (env, bare) = with_bare_remote(&["max"]);
    finish(&env, "max", "a.txt", "a\n");
    let clone = clone_of(&env, &bare);
    let secret = commit(&env, &clone, "secret.txt", "x\n");
    env.git(&clone, &["push", "--quiet", "origin", "main"]);
    let back = format!(
        "test -e {1} || git -C {0} update-ref refs/heads/main {2}^ && touch {1}",
        bare.display(),
        env.path("back").display(),
        secret
    );
    validate_with(&env, &back);
    assert_snapshot!(env.snapshot(&["mq", "run"]), @r#"
    exit code: 0
    --- stdout
    mr-[ID] crew/max: merging into main
    mr-[ID] crew/max: running test -e ~/back || git -C ~/origin.git update-ref refs/heads/main [HEX]^ && touch ~/back
    mr-[ID] crew/max: running echo "$GT_MERGE_COMMIT" >> ~/validated
    mr-[ID] crew/max: main has moved in the meantime: trying again
    mr-[ID] crew/max: running test -e ~/back || git -C ~/origin.git update-ref refs/heads/main [HEX]^ && touch ~/back
    mr-[ID] crew/max: running echo "$GT_MERGE_COMMIT" >> ~/validated
    mr-[ID] crew/max: merged as [HEX]
    1 merged, 0 not.
    "#);
    assert_eq!(files(&env, &bare, "main"), ["README.md", "a.txt"]);
}

#[test]
fn entry_refused_by_the_remote_blocks_no_other() {
    let (env, bare) = with_bare_remote(&["max", "amy"]);
    write_hook(
        &bare.join("hooks/pre-receive"),
        "#!/bin/sh\nwhile read old new ref; do case $ref in refs/heads/main)\n\
         if git cat-file -e $new:bad.txt 2>/dev/null; then echo not that >&2; exit 1; fi;; esac; done\n",
    );
    let (id, merge) = finish(&env, "max", "bad.txt", "x\n");
    for number in 1..=5 {
        let (other, _) = finish(&env, "amy", &format!("{number}.txt"), "x\n");
        let answer = env.gt(&["mq", "run"]).fails(1);
        assert!(answer.stderr.contains("not that"), "{answer:?}");
        assert_eq!(status(&env, &other), "closed", "{number}");
        let entry = env.json(&["mq", "status", &merge]);
        let expected = if number < 5 { "queued" } else { "failed" };
        assert_eq!(entry["status"], expected, "{number}: {entry}");
    }
    let shown = env.json(&["work", "show", &id]);
    assert_eq!(shown["status"], "blocked", "{shown}");
    assert_eq!(shown["labels"], json!(["escalated"]));
    let events = env.json(&["events", "--type", "escalation_raised"]);
    assert_eq!(events[0]["payload"]["merge"], json!(merge), "{events}");
    assert_snapshot!(env.snapshot(&["mq", "run"]), @"
    exit code: 0
    --- stdout
    Nothing waits to be merged.
    --- stderr
    warning: mr-[ID] of gt-[ID] has failed, and no agent works on it: it has no repair
             `gt mq retry mr-[ID]` tries it again, `gt mq reject mr-[ID] --reason TEXT` gives it up
    ");
    // The rules of the remote change.
    fs::remove_file(bare.join("hooks/pre-receive")).unwrap();
    env.gt(&["mq", "retry", &merge]).ok();
    env.gt(&["mq", "run"]).ok();
    assert_eq!(status(&env, &id), "closed");
}

#[test]
fn work_submitted_during_a_queue_run_is_kept() {
    let (env, bare) = with_bare_remote(&["max"]);
    let (reached, go) = (env.path("reached"), env.path("go"));
    let (id, _) = finish(&env, "max", "a.txt", "a\n");
    env.gt(&["work", "update", &id, "--status", "open"]).ok();
    env.gt(&["hook", &id, "--agent", "gastown/max"]).ok();
    write_hook(
        &bare.join("hooks/pre-receive"),
        &format!(
            "#!/bin/sh\ntouch {}\nwhile ! test -e {}; do sleep 0.02; done\n",
            reached.display(),
            go.display()
        ),
    );
    let tip = commit(&env, &worktree(&env, "max"), "b.txt", "b\n");
    let run = env.spawn(&["done", "--agent", "gastown/max"]);
    wait_until("it pushes", TIMEOUT, || reached.exists().then_some(()));
    env.gt(&["mq", "run"]).ok();
    fs::write(&go, "").unwrap();
    Answer::of(run.wait_with_output().unwrap()).ok();
    let kept = env.git(&repository(&env), &["for-each-ref", "refs/gt/queued"]);
    assert!(kept.contains(&tip), "{kept}");
}

#[test]
fn branch_replaced_by_a_repair_is_removed_with_it() {
    let (env, bare) = with_bare_remote(&["max"]);
    validate_with(&env, "test ! -e bad.txt");
    let id = item(&env, &["Bad"]);
    env.gt(&["sling", &id, "--no-start"]).ok();
    let dir = env.town().join(TOAST);
    let bad = commit(&env, &dir, "bad.txt", "x\n");
    env.gt(&["done", "--agent", TOAST]).ok();
    let ran = env.gt(&["mq", "run", "--json"]).fails(1).json();
    let repair = ran[0]["repair"].as_str().unwrap();
    let hooked = env.json(&["work", "show", repair]);
    let agent = hooked["assignee"].as_str().unwrap();
    let text = hooked["description"].as_str().unwrap();
    let base = env.git(&bare, &["rev-parse", "main"]);
    assert!(
        text.contains(&format!("begins at {}", base.trim())),
        "{text}"
    );
    let dir = env.town().join(agent);
    env.git(&dir, &["merge", "--quiet", &bad]);
    env.git(&dir, &["rm", "--quiet", "bad.txt"]);
    commit(&env, &dir, "good.txt", "x\n");
    env.gt(&["done", "--agent", agent]).ok();
    env.git(&dir, &["switch", "--quiet", "--detach"]);
    env.gt(&["mq", "run"]).ok();
    assert_eq!(status(&env, &id), "closed");
    for dir in [&bare, &repository(&env)] {
        let left = env.git(dir, &["branch", "--list", "polecat/*"]);
        assert_eq!(left, "", "{}", dir.display());
    }
}

#[test]
fn repairer_of_a_rejected_entry_is_notified() {
    let env = TestEnv::with_crew(&["max"]);
    validate_with(&env, "false");
    let (_, merge) = finish(&env, "max", "a.txt", "a\n");
    let ran = env.gt(&["mq", "run", "--json"]).fails(1).json();
    let repair = ran[0]["repair"].as_str().unwrap();
    assert_eq!(env.running(), [TOAST]);
    env.gt(&["mq", "reject", &merge, "--reason", "no more"])
        .ok();
    assert_eq!(env.json(&["hook", "--agent", TOAST]), json!(null));
    env.wait_screen(TOAST, &format!("{repair} is closed"));
}

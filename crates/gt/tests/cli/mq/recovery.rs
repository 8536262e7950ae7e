//! The merge queue under failures around it: no entry gets stuck, and no work of others is lost.

use crate::env::{Answer, TIMEOUT, TestEnv, signal};
use crate::mq::{
    MERGED, commit, files, finish, item, repository, status, validate_with, with_bare_remote,
    with_base, worktree,
};
use gt_tmux::testing::wait_until;
use gt_town::base::lock::FileLock;
use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

const TOAST: &str = "gastown/polecats/Toast";

pub(crate) fn write_hook(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn repository_lock(env: &TestEnv) -> PathBuf {
    env.town().join(".runtime/locks/repo-gastown.lock")
}

#[test]
fn a_branch_that_is_not_the_workers_own_stays() {
    let (env, bare) = with_bare_remote(&["max"]);
    let clone = env.path("clone");
    let names = [bare.to_str().unwrap(), clone.to_str().unwrap()];
    env.git(env.home(), &[&["clone", "--quiet"], &names[..]].concat());
    env.git(&clone, &["switch", "--quiet", "-c", "feature-x"]);
    let tip = commit(&env, &clone, "a.txt", "a\n");
    env.git(&clone, &["push", "--quiet", "origin", "feature-x"]);
    // An agent works on the user's branch, submits it unchanged, and goes away.
    let dir = worktree(&env, "max");
    env.git(&dir, &["fetch", "--quiet", "origin"]);
    let switch = ["switch", "--quiet", "-c", "feature-x", &tip];
    env.git(&dir, &switch);
    let id = item(&env, &["Of the user"]);
    env.gt(&["hook", &id, "--agent", "gastown/max"]).ok();
    env.gt(&["done", "--agent", "gastown/max"]).ok();
    env.git(&dir, &["switch", "--quiet", "--detach"]);
    env.gt(&["mq", "run"]).ok();
    assert_eq!(files(&env, &bare, "main"), ["README.md", "a.txt"]);
    for dir in [&bare, &repository(&env)] {
        let there = env.git(dir, &["branch", "--list", "feature-x"]);
        assert_eq!(there.trim(), "feature-x", "{}", dir.display());
    }
}

#[test]
fn a_repair_that_finds_nothing_to_repair_has_it_tried_again() {
    let env = TestEnv::with_crew(&["max"]);
    let sound = env.path("sound");
    validate_with(&env, &format!("test -e {}", sound.display()));
    let (id, merge) = finish(&env, "max", "a.txt", "a\n");
    let ran = env.gt(&["mq", "run", "--json"]).fails(1).json();
    let repair = ran[0]["repair"].as_str().unwrap();
    fs::write(&sound, "").unwrap();
    let done = env.json(&["done", "--agent", TOAST]);
    assert_eq!(done["merge"], json!(merge), "{done}");
    assert_eq!(env.json(&["mq", "status", &merge])["status"], "queued");
    env.gt(&["mq", "run"]).ok();
    assert_eq!(status(&env, &id), "closed");
    assert_eq!(status(&env, repair), "closed");
    assert_eq!(
        files(&env, &repository(&env), MERGED),
        ["README.md", "a.txt"]
    );
}

#[test]
fn entry_that_fails_repeatedly_waits_for_a_person() {
    let env = TestEnv::with_crew(&["max"]);
    validate_with(&env, "false");
    let (id, merge) = finish(&env, "max", "a.txt", "a\n");
    let mut tries = 0;
    let repair = loop {
        tries += 1;
        assert!(tries < 10, "it goes on for ever");
        let ran = env.gt(&["mq", "run", "--json"]).fails(1).json();
        let repair = ran[0]["repair"].as_str().unwrap().to_owned();
        assert_eq!(status(&env, &repair), "hooked");
        let done = env.json(&["done", "--agent", TOAST]);
        if done.get("merge").is_none() {
            break repair;
        }
    };
    assert_eq!(tries, 5);
    let stuck = env.json(&["mq", "status", &merge]);
    assert_eq!(stuck["status"], "failed", "{stuck}");
    let shown = env.json(&["work", "show", &id]);
    assert_eq!(shown["status"], "blocked", "{shown}");
    assert_eq!(shown["labels"], json!(["escalated"]));
    assert_eq!(shown.get("assignee"), None, "{shown}");
    assert_eq!(status(&env, &repair), "closed");
    let events = env.json(&["events", "--type", "escalation_raised"]);
    assert_eq!(events.as_array().unwrap().len(), 1, "{events}");
    assert_eq!(events[0]["payload"]["bead"], json!(id));
    assert_eq!(events[0]["payload"]["merge"], json!(merge));
    let raised = env.json(&["escalate", "list"]);
    assert_eq!(
        raised[0]["key"],
        json!(format!("merge:{merge}")),
        "{raised}"
    );
    assert_snapshot!(env.snapshot(&["mq", "run"]), @"
    exit code: 0
    --- stdout
    Nothing waits to be merged.
    --- stderr
    warning: mr-[ID] of gt-[ID] has failed, and no agent works on it: its repair gt-[ID].1 is closed
             `gt mq retry mr-[ID]` tries it again, `gt mq reject mr-[ID] --reason TEXT` gives it up
    ");
    // A person has fixed the validation commands.
    validate_with(&env, "true");
    env.gt(&["mq", "retry", &merge]).ok();
    assert_eq!(env.json(&["escalate", "list"]), json!([]));
    let shown = env.json(&["work", "show", &id]);
    assert_eq!(shown["status"], "in_progress", "{shown}");
    assert_eq!(shown["labels"], json!([]), "{shown}");
    env.gt(&["mq", "run"]).ok();
    assert_eq!(status(&env, &id), "closed");
}

/// Every repair is made on a base that has moved on before it is merged.
#[test]
fn repairs_that_conflict_again_end_after_ten_attempts_with_an_escalation() {
    let env = TestEnv::with_crew(&["max", "amy"]);
    finish(&env, "max", "same.txt", "0 of max\n");
    let (id, merge) = finish(&env, "amy", "same.txt", "of amy\n");
    env.gt(&["mq", "run"]).fails(1);
    let entry = || env.json(&["mq", "status", &merge]);
    let repair = entry()["repair"].as_str().unwrap().to_owned();
    for attempts in 1..10 {
        assert_eq!(entry()["attempts"], attempts);
        let made = env.json(&["work", "show", &repair]);
        assert_eq!(made["status"], "hooked", "{attempts}: {made}");
        let agent = made["assignee"].as_str().unwrap();
        finish(&env, "max", "same.txt", &format!("{attempts} of max\n"));
        env.gt(&["mq", "run"]).ok();
        let text = format!("{attempts} of the repair\n");
        commit(&env, &env.town().join(agent), "same.txt", &text);
        env.gt(&["done", "--agent", agent]).ok();
        let ran = env.gt(&["mq", "run", "--json"]).fails(1).json();
        assert_eq!(ran[0]["status"], "conflict", "{attempts}: {ran}");
    }
    assert_eq!(entry()["attempts"], 10);
    assert_eq!(env.running(), [""; 0], "no agent is started for it");
    assert_eq!(status(&env, &repair), "blocked");
    let shown = env.json(&["work", "show", &id]);
    assert_eq!(shown["status"], "blocked", "{shown}");
    assert_eq!(shown["labels"], json!(["escalated"]));
    let raised = env.json(&["escalate", "list"]);
    assert_eq!(raised.as_array().unwrap().len(), 1, "{raised}");
    assert_eq!(raised[0]["key"], json!(format!("merge:{merge}")));
    assert_eq!(raised[0]["severity"], "high");
    // The refinery decides about it.
    let wake = env.gt(&["patrol", "wake", "--dry-run"]).ok().stdout;
    let raised = raised[0]["id"].as_str().unwrap();
    assert_eq!(
        wake,
        format!("· gastown/refinery would get dg-1: {raised}\n")
    );
    env.gt(&["mq", "run"]).ok();
    assert_eq!(entry()["attempts"], 10, "it is not tried again");
}

#[test]
fn abandoned_repair_is_reported() {
    let env = TestEnv::with_crew(&["max"]);
    validate_with(&env, "false");
    let (id, merge) = finish(&env, "max", "a.txt", "a\n");
    let answer = env.gt(&["mq", "run", "--json"]).fails(1);
    assert_snapshot!(env.masked(&answer.stderr), @r#"{"error":{"kind":"failed","message":"1 of 1 could not be merged","causes":[],"hints":["`gt mq status mr-[ID]` shows why, and the item that repairs it"]}}"#);
    let repair = answer.json()[0]["repair"].as_str().unwrap().to_owned();
    assert_eq!(env.json(&["mq", "status", &merge])["stuck"], false);
    env.gt(&["work", "close", &repair]).ok();
    let words = format!(
        "{merge} of {id} has failed, and no agent works on it: its repair {repair} is closed\n"
    );
    let hint = format!("         `gt mq retry {merge}` tries it again");
    let look = ["mq", "status", &merge];
    for told in [&["mq", "run"][..], &["mq", "run", "--dry-run"], &look] {
        let told = env.gt(told).ok().stderr;
        assert!(told.contains(&words) && told.contains(&hint), "{told}");
    }
    assert_eq!(env.json(&look)["stuck"], true);
    validate_with(&env, "true");
    env.gt(&["mq", "retry", &merge]).ok();
    let told = env.gt(&["mq", "run"]).ok();
    assert_eq!(told.stderr, "");
    assert_eq!(status(&env, &id), "closed");
    // A merge has its own id, different from the item's.
    assert_snapshot!(env.snapshot(&["mq", "status", "nope"]), @r#"
    exit code: 2
    --- stderr
    error: "nope" is not the id of a merge
    hint: such as mr-[ID]: `gt mq list --all` shows them
    "#);
    let (id, merge) = finish(&env, "max", "b.txt", "b\n");
    let refused = env.gt(&["mq", "status", &id]).fails(3);
    assert!(refused.stderr.contains(&merge), "{refused:?}");
    assert_snapshot!(refused.rendered(&env), @"
    exit code: 3
    --- stderr
    error: gt-[ID] is a work item, not a merge
    hint: its merge is mr-[ID]
    ");
}

#[test]
fn a_repair_that_is_open_again_is_given_to_the_next() {
    let env = TestEnv::with_crew(&["max"]);
    validate_with(&env, "false");
    finish(&env, "max", "a.txt", "a\n");
    let ran = env.gt(&["mq", "run", "--json"]).fails(1).json();
    let repair = ran[0]["repair"].as_str().unwrap();
    for leave in [
        &["done", "--agent", TOAST, "--status", "deferred"][..],
        &["polecat", "nuke", "--force", "gastown/Toast"],
    ] {
        assert_eq!(status(&env, repair), "hooked", "{leave:?}");
        env.gt(leave).ok();
        assert_eq!(status(&env, repair), "open", "{leave:?}");
        env.gt(&["mq", "run"]).ok();
        let shown = env.json(&["work", "show", repair]);
        assert_eq!(shown["status"], "hooked", "{leave:?}: {shown}");
        assert_eq!(env.running(), [TOAST], "{leave:?}");
    }
}

#[test]
fn merged_entry_cannot_be_rejected() {
    for is_bare in [false, true] {
        let (env, dir, name) = with_base(is_bare, &["max", "amy"]);
        let (id, merge) = finish(&env, "max", "a.txt", "a\n");
        env.kill_at_fault(&["mq", "run"], "mq.advanced");
        let reject = ["mq", "reject", &merge, "--reason", "no", "--reopen"];
        let refused = env.gt(&reject).fails(4);
        assert!(refused.stderr.contains("is merged"), "{}", refused.stderr);
        let settled = env.json(&["mq", "status", &merge]);
        assert_eq!(settled["status"], "merged", "{settled}");
        let tip = env.git(&dir, &["rev-parse", name]);
        assert_eq!(settled["merged_as"], json!(tip.trim()));
        assert_eq!(status(&env, &id), "closed");
        let told = env.json(&["events", "--type", "merge_*"]);
        assert_eq!(told[0]["type"], "merge_merged", "{told}");
        // An entry whose run was killed before the base advanced is rejected as usual.
        let (id, merge) = finish(&env, "amy", "b.txt", "b\n");
        env.kill_at_fault(&["mq", "run"], "mq.validated");
        let rejected = env.json(&["mq", "reject", &merge, "--reason", "no"]);
        assert_eq!(rejected["status"], "rejected", "{rejected}");
        assert_eq!(status(&env, &id), "closed");
        assert_eq!(files(&env, &dir, name), ["README.md", "a.txt"]);
    }
}

#[test]
fn slow_remote_blocks_no_command() {
    let (env, bare) = with_bare_remote(&["max", "amy"]);
    let (go, pushes) = (env.path("go"), env.path("pushes"));
    // Logs each push to a branch other than main, and blocks until the test releases it.
    write_hook(
        &bare.join("hooks/pre-receive"),
        &format!(
            "#!/bin/sh\nrefs=$(cat)\ncase $refs in *refs/heads/main) exit 0;; esac\n\
             echo push >> {}\nwhile ! test -e {}; do sleep 0.02; done\n",
            pushes.display(),
            go.display()
        ),
    );
    let slowly = |args: &[&str]| {
        fs::write(&pushes, "").unwrap();
        let run = env.spawn(args);
        wait_until("it pushes", TIMEOUT, || {
            (!fs::read_to_string(&pushes).unwrap().is_empty()).then_some(())
        });
        let is_held = FileLock::is_held(&repository_lock(&env));
        fs::write(&go, "").unwrap();
        Answer::of(run.wait_with_output().unwrap()).ok();
        assert!(!is_held, "{args:?} kept everybody waiting");
    };
    let max = worktree(&env, "max");
    env.git(&max, &["branch", "-m", "crew/max/side"]);
    let id = item(&env, &["Slow"]);
    env.gt(&["hook", &id, "--agent", "gastown/max"]).ok();
    commit(&env, &max, "a.txt", "a\n");
    slowly(&["done", "--agent", "gastown/max"]);
    let amy = worktree(&env, "amy");
    env.git(&amy, &["branch", "-m", "crew/amy/side"]);
    finish(&env, "amy", "b.txt", "b\n");
    for dir in [&max, &amy] {
        env.git(dir, &["switch", "--quiet", "--detach"]);
    }
    fs::remove_file(&go).unwrap();
    slowly(&["mq", "run"]);
    assert_eq!(
        fs::read_to_string(&pushes).unwrap(),
        "push\n",
        "one for both"
    );
    for dir in [&bare, &repository(&env)] {
        let left = env.git(dir, &["branch", "--list", "*side"]);
        assert_eq!(left, "", "{}", dir.display());
    }
}

#[test]
fn queue_that_asks_the_remote_blocks_no_command() {
    let (env, _) = with_bare_remote(&["max"]);
    finish(&env, "max", "a.txt", "a\n");
    let (reached, go, slow) = (env.path("reached"), env.path("go"), env.path("slow"));
    write_hook(
        &slow,
        &format!(
            "#!/bin/sh\ntouch {}\nwhile ! test -e {}; do sleep 0.02; done\n\
             exec git-upload-pack \"$@\"\n",
            reached.display(),
            go.display()
        ),
    );
    env.add_settings("[git]\nallow = ['remote.origin.uploadpack']\n");
    let slow = ["config", "remote.origin.uploadpack", slow.to_str().unwrap()];
    env.git(&repository(&env), &slow);
    let run = env.spawn(&["mq", "run"]);
    wait_until("it asks", TIMEOUT, || reached.exists().then_some(()));
    let is_held = FileLock::is_held(&repository_lock(&env));
    fs::write(&go, "").unwrap();
    Answer::of(run.wait_with_output().unwrap()).ok();
    assert!(!is_held);
}

#[test]
fn next_run_ends_the_processes_of_a_killed_run() {
    let env = TestEnv::with_crew(&["max", "amy"]);
    let pid = env.path("pid");
    let line = format!("setsid sleep 300 & echo $! > {}; wait", pid.display());
    for next in ["reject", "run"] {
        validate_with(&env, &line);
        let (_, merge) = finish(&env, "max", &format!("{next}.txt"), "a\n");
        let run = env.spawn(&["mq", "run"]);
        let sleeper: u32 = wait_until("its commands run", TIMEOUT, || {
            fs::read_to_string(&pid).ok()?.trim().parse().ok()
        });
        fs::remove_file(&pid).unwrap();
        signal(run.id(), Signal::KILL);
        run.wait_with_output().unwrap();
        assert!(crate::env::is_alive(sleeper), "{next}");
        match next {
            "reject" => env.gt(&["mq", "reject", &merge, "--reason", "no"]).ok(),
            // Run without validation.
            _ => {
                let path = env.town().join("town.toml");
                let text = fs::read_to_string(&path).unwrap();
                fs::write(&path, text.split("[rigs.").next().unwrap()).unwrap();
                env.gt(&["mq", "run"]).ok()
            }
        };
        assert!(!crate::env::is_alive(sleeper), "{next}");
    }
}

#[test]
fn worktree_is_removed_under_the_repository_lock() {
    let mut env = TestEnv::with_crew(&["max"]);
    let (reached, go) = (env.path("reached"), env.path("go"));
    // A git that waits before it deletes a branch.
    fs::create_dir(env.path("slow")).unwrap();
    let path = std::env::var("PATH").unwrap();
    write_hook(
        &env.path("slow/git"),
        &format!(
            "#!/bin/sh\nPATH='{path}'\ncase \"$*\" in *'branch '*-D*)\ntouch {}\n\
             while ! test -e {}; do sleep 0.02; done;; esac\nexec git \"$@\"\n",
            reached.display(),
            go.display()
        ),
    );
    let slow = format!("{}:{path}", env.path("slow").display());
    env.set("PATH", &slow);
    let run = env.spawn(&["crew", "rm", "max"]);
    wait_until("its branch goes", TIMEOUT, || {
        reached.exists().then_some(())
    });
    let is_held = FileLock::is_held(&repository_lock(&env));
    fs::write(&go, "").unwrap();
    Answer::of(run.wait_with_output().unwrap()).ok();
    assert!(is_held);
    let left = env.git(&repository(&env), &["branch", "--list", "crew/max"]);
    assert_eq!(left, "");
    assert!(!worktree(&env, "max").exists());
}

#[test]
fn reading_a_worktree_changes_nothing_in_it() {
    let env = TestEnv::with_crew(&["max"]);
    let dir = worktree(&env, "max");
    let index = env.git(
        &dir,
        &["rev-parse", "--path-format=absolute", "--git-path", "index"],
    );
    let index = Path::new(index.trim());
    // Same content with another mtime: a plain git status would refresh the index, and lock it.
    let file = fs::File::options().append(true).open(dir.join("README.md"));
    let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    file.unwrap().set_modified(long_ago).unwrap();
    let before = fs::read(index).unwrap();
    env.gt(&["done", "--agent", "gastown/max"]).ok();
    assert!(fs::read(index).unwrap() == before);
    env.git(&dir, &["status"]);
    assert!(fs::read(index).unwrap() != before, "so much for the test");
}

//! `gt rig`: adding, parking, docking, status, restart and removal.

use crate::env::{TIMEOUT, TestEnv, signal};
use gt_tmux::testing::wait_until;
use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::process::Child;

const MAX: &str = "gastown/crew/max";

fn rig(env: &TestEnv, name: &str) -> Value {
    let rigs = env.json(&["rig", "list"]);
    let rigs = rigs.as_array().unwrap();
    rigs.iter().find(|rig| rig["rig"] == name).unwrap().clone()
}

fn folder(env: &TestEnv) -> PathBuf {
    env.town().join("gastown/crew/max")
}

fn commit(env: &TestEnv, name: &str) {
    fs::write(folder(env).join(name), "x\n").unwrap();
    env.git(&folder(env), &["add", "."]);
    env.git(&folder(env), &["commit", "--quiet", "-m", "Work"]);
}

#[test]
fn rig_add_takes_its_name_from_the_folder() {
    let env = TestEnv::with_town();
    let path = env.repository("my.web app");
    let added = env.json(&["rig", "add", path.to_str().unwrap()]);
    assert_eq!(added["rig"], "my-web-app");
    assert_snapshot!(env.snapshot(&["rig", "add", path.to_str().unwrap()]), @"
    exit code: 4
    --- stderr
    error: the rig my-web-app exists already, from ~/my.web app
    hint: `gt rig add NAME ~/my.web app` gives this one another name
    ");
    let here = env.repository("hello");
    let added = env.gt_in(&here, &["rig", "add", ".", "--json"]).ok().json();
    assert_eq!(added["rig"], "hello");
    let reserved = env.repository("mayor");
    assert_snapshot!(env.snapshot(&["rig", "add", reserved.to_str().unwrap()]), @r#"
    exit code: 2
    --- stderr
    error: "~/mayor" does not give the rig a name
    caused by: "mayor" is reserved by gt and cannot be a rig name
    hint: `gt rig add NAME ~/mayor` gives it one
    "#);
    env.gt(&["rig", "add", "boss", reserved.to_str().unwrap()])
        .ok();
    env.gt(&["rig", "add", "no-such-folder"]).fails(3);
}

#[test]
fn running_counts_only_live_agents() {
    let env = TestEnv::with_crew(&["max"]);
    let role = env.town().join("roles/crew.toml");
    fs::create_dir_all(role.parent().unwrap()).unwrap();
    fs::write(role, "[start]\nauto_respawn = false\n").unwrap();
    env.gt(&["start", MAX]).ok();
    assert_eq!(rig(&env, "gastown")["running"], 1);
    signal(env.pid(MAX), Signal::KILL);
    wait_until("it is dead", TIMEOUT, || {
        (env.format("gt-crew-max", "#{pane_dead}") == "1").then_some(())
    });
    assert_eq!(rig(&env, "gastown")["running"], 0);
    assert_eq!(env.json(&["rig", "status", "gastown"])["running"], 0);
    let status = env.json(&["status"]);
    assert_eq!(status["rigs"][0]["running"], 0);
    assert_eq!(status["running"], 0);
}

#[test]
fn docked_rig_has_no_agents_and_starts_none() {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["start", MAX]).ok();
    env.gt(&["rig", "start", "gastown"]).ok();
    let docked = env.json(&["rig", "dock", "gastown"]);
    assert_eq!(docked["changed"], true);
    assert_eq!(docked["stopped"].as_array().unwrap().len(), 3, "{docked}");
    assert!(env.running().is_empty());
    assert_eq!(rig(&env, "gastown")["docked"], true);
    assert_snapshot!(env.snapshot(&["start", MAX]), @"
    exit code: 4
    --- stderr
    error: the rig gastown is docked
    hint: `gt rig undock gastown` first
    ");
    assert_snapshot!(env.snapshot(&["up", "--all"]), @"
    exit code: 0
    --- stdout
    Started the daemon (process [PID]).
    ✓ mayor [STATE] in hq-mayor (demo, [N] s)
    · started on demand: deacon. `gt up --all-roles` starts them now.
    ");
    assert!(folder(&env).exists());
    env.gt(&["rig", "park", "gastown"]).ok();
    assert_snapshot!(env.snapshot(&["rig", "unpark", "gastown"]), @"
    exit code: 0
    --- stdout
    The rig gastown is not parked, but docked.
    ");
    assert_snapshot!(env.snapshot(&["rig", "undock", "gastown"]), @"
    exit code: 0
    --- stdout
    The rig gastown is back in service. `gt rig start gastown` starts its agents.
    ");
    env.gt(&["start", MAX]).ok();
}

#[test]
fn rig_status_and_restart() {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["rig", "start", "gastown"]).ok();
    let before = env.pid("gastown/witness");
    let status = env.json(&["rig", "status", "gastown"]);
    assert_eq!(status["running"], 2, "{status}");
    assert_eq!(status["merges"], 0);
    assert_eq!(status["agents"].as_array().unwrap().len(), 3, "{status}");
    assert_snapshot!(env.snapshot(&["rig", "status", "gastown"]), @"
    exit code: 0
    --- stdout
    gastown
      state  in service
      prefix  gt
      branch  main
      from  ~/source-gastown
      folder  ~/gt/gastown
      crew  1
      polecats  0
      running  2
      to merge  0

    AGENT  STATE  SINCE  WHAT
    gastown/witness  [STATE]  [N]
    gastown/refinery  [STATE]  [N]
    gastown/crew/max  stopped
    ");
    env.gt(&["rig", "restart", "gastown"]).ok();
    assert_ne!(env.pid("gastown/witness"), before);
    assert_eq!(env.running(), ["gastown/witness", "gastown/refinery"]);
    env.gt(&["rig", "status", "none"]).fails(3);
}

#[test]
fn clean_rig_is_removed_whole() {
    let env = TestEnv::with_crew(&["max"]);
    let item = env.json(&["work", "create", "Later"])["id"].clone();
    env.gt(&["start", MAX]).ok();
    assert_snapshot!(env.snapshot(&["rig", "remove", "gastown"]), @"
    exit code: 4
    --- stderr
    error: agents of the rig gastown run: gastown/crew/max
    hint: `gt rig stop gastown --all` stops them, and so does `--force`
    ");
    env.gt(&["rig", "stop", "gastown", "--all"]).ok();
    let dry = env.json(&["rig", "remove", "gastown", "--dry-run"]);
    assert_eq!(dry["removed"], false);
    assert_eq!(dry["open_items"], 1);
    assert!(folder(&env).exists());
    let removed = env.json(&["rig", "remove", "gastown"]);
    assert_eq!(removed["removed"], true);
    assert_eq!(removed["kept_at"], Value::Null);
    assert_eq!(env.json(&["rig", "list"]), json!([]));
    let left = fs::read_dir(env.town()).unwrap().flatten();
    let left: Vec<_> = left.map(|entry| entry.file_name()).collect();
    let is_its = |name: &&std::ffi::OsString| name.to_string_lossy().contains("gastown");
    assert_eq!(left.iter().filter(is_its).count(), 0, "{left:?}");
    assert!(!env.town().join(".saved").exists());
    assert!(env.path("source-gastown").join("README.md").exists());
    // The name, the prefix and the items are available to the next rig.
    let source = env.path("source-gastown");
    let source = source.to_str().unwrap();
    env.gt(&["rig", "add", "gastown", source, "--prefix", "gt"])
        .ok();
    assert_eq!(env.json(&["work", "list"])[0]["id"], item);
}

#[test]
fn rig_with_unsaved_work_is_removed_only_by_force_and_keeps_it() {
    let env = TestEnv::with_crew(&["max"]);
    commit(&env, "committed");
    fs::write(folder(&env).join("changed"), "y\n").unwrap();
    let refused = env.gt(&["rig", "remove", "gastown"]).fails(4);
    assert_snapshot!(refused.rendered(&env), @"
    exit code: 4
    --- stderr
    error: the rig gastown has work that exists nowhere else
    caused by: gastown/crew/max: 1 changed file, 1 commit
    caused by: commits that only the rig's copy of the repository has: 1
    hint: push it, or `--force`: the rig's copy is then kept in the town's folder .saved
    ");
    let dry = env.json(&["rig", "remove", "gastown", "--dry-run"]);
    assert_eq!(dry["refused"]["kind"], "conflict", "{dry}");
    assert!(folder(&env).join("changed").exists());
    assert_eq!(rig(&env, "gastown")["docked"], false, "nothing was changed");
    env.gt(&["start", MAX]).ok();
    let removed = env.json(&["rig", "remove", "gastown", "--force"]);
    assert_eq!(removed["stopped"], json!([MAX]));
    assert!(env.running().is_empty());
    let kept = PathBuf::from(removed["kept_at"].as_str().unwrap()).join(".repo.git");
    let show = |name: &str, file: &str| {
        let saved = removed["saved"].as_array().unwrap().iter();
        let mut saved = saved.map(|name| name.as_str().unwrap());
        let saved = saved.find(|saved| saved.ends_with(name)).unwrap();
        env.git(&kept, &["show", &format!("{saved}:{file}")])
    };
    assert_eq!(show("-changes", "changed").trim(), "y");
    assert_eq!(show("-tip0", "committed").trim(), "x");
}

#[test]
fn rig_with_waiting_merges_is_not_removed() {
    let env = TestEnv::with_crew(&["max"]);
    let file = env.town().join("town.toml");
    let text = fs::read_to_string(&file).unwrap();
    let merge = "[rigs.gastown.merge]\nvalidate = ['exit 1']\n";
    fs::write(&file, format!("{text}\n{merge}")).unwrap();
    let id = env.json(&["work", "create", "Fix"])["id"].clone();
    let id = id.as_str().unwrap();
    env.gt(&["hook", id, "--agent", MAX]).ok();
    commit(&env, "committed");
    env.gt(&["done", "--agent", MAX]).ok();
    for args in [
        &["rig", "remove", "gastown"][..],
        &["rig", "remove", "gastown", "--force"],
    ] {
        let refused = env.gt(args).fails(4);
        assert!(refused.stderr.contains("unmerged work: mr-"), "{refused:?}");
    }
    assert!(folder(&env).exists());
}

#[test]
fn killed_removal_is_finished_by_the_next() {
    for point in gt_town::workflow::rig_removal::FAULT_POINTS {
        let env = TestEnv::with_crew(&["max"]);
        commit(&env, "committed");
        let args = ["rig", "remove", "gastown", "--force"];
        env.kill_at_fault(&args, point);
        // Leftovers of earlier removals, of this rig and of another one.
        let earlier = env.town().join(".saved");
        for name in ["gastown-1000", "gastown-2-9999999999999"] {
            fs::create_dir_all(earlier.join(name)).unwrap();
        }
        let removed = env.json(&args);
        assert_eq!(env.json(&["rig", "list"]), json!([]), "{point}");
        let kept = fs::read_dir(&earlier).unwrap().flatten();
        let mut kept: Vec<PathBuf> = kept.map(|entry| entry.path()).collect();
        kept.retain(|path| path.join(".repo.git").exists());
        assert_eq!(kept.len(), 1, "{point}");
        assert_eq!(removed["kept_at"], json!(kept[0]), "{point}");
        let refs = env.git(
            &kept[0].join(".repo.git"),
            &["for-each-ref", "refs/gt/saved"],
        );
        assert!(refs.contains("crew/max"), "{point}: {refs}");
    }
}

#[test]
fn rigs_are_copied_and_the_source_is_left_alone() {
    let env = TestEnv::with_town();
    let source = env.repository("source");
    let before = env.git(&source, &["for-each-ref"]);
    env.gt(&["rig", "add", "gastown", "source"]).ok();
    let registry = fs::read_to_string(env.town().join("mayor/rigs.json")).unwrap();
    assert!(registry.contains(r#""prefix": "ga""#), "{registry}");
    env.gt(&["crew", "add", "max"]).ok();
    let worktree = env.town().join("gastown/crew/max");
    assert_eq!(
        fs::read_to_string(worktree.join("README.md")).unwrap(),
        "hello\n"
    );
    assert_eq!(
        env.git(&worktree, &["branch", "--show-current"]).trim(),
        "crew/max"
    );
    assert_eq!(env.git(&source, &["for-each-ref"]), before);
    assert_snapshot!(env.snapshot(&["rig", "list"]), @"
    exit code: 0
    --- stdout
    RIG  PREFIX  BRANCH  CREW  POLECATS  RUNNING  FROM
    gastown  ga  main  1  0  0  ~/source
    ");
    let rigs = env.json(&["rig", "list"]);
    assert_eq!(rigs[0]["prefix"], "ga");
    assert_eq!(rigs[0]["crew"], 1);
}

#[test]
fn impossible_rigs_are_refused_and_leave_nothing() {
    let env = TestEnv::with_rig();
    env.repository("source");
    fs::create_dir(env.path("plain")).unwrap();
    fs::create_dir(env.path("fresh")).unwrap();
    env.git(&env.path("fresh"), &["init", "--quiet"]);
    let check = |args: &[&str], code: i32, text: &str| {
        let answer = env.gt(&[&["rig", "add"], args].concat()).fails(code);
        assert!(answer.stderr.contains(text), "{args:?}: {}", answer.stderr);
        assert!(
            answer.stderr.contains("hint:"),
            "{args:?}: {}",
            answer.stderr
        );
    };
    check(&["gastown", "source"], 4, "exists already");
    check(&["GasTown", "source"], 4, "exists already");
    check(
        &["other", "source", "--prefix", "gt"],
        4,
        "belongs to the rig gastown",
    );
    check(
        &["other", "source", "--prefix", "gt-web"],
        4,
        "could also be read",
    );
    check(&["mayor", "source"], 2, "reserved by gt");
    check(&["a.b", "source"], 2, "holds '.'");
    check(&["#(touch x)", "source"], 2, "holds");
    check(&["other", "nowhere"], 3, "no folder");
    check(&["other", "plain"], 2, "not a git repository");
    check(&["other", "fresh"], 2, "no commit yet");
    check(&["other", "file:///nowhere/x.git"], 1, "cannot copy");
    assert!(!env.town().join("other").exists());
    assert_eq!(env.json(&["rig", "list"]).as_array().unwrap().len(), 1);
}

#[test]
fn a_parked_rig_starts_nothing() {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["rig", "park", "gastown"]).ok();
    assert_snapshot!(env.snapshot(&["crew", "start", "max"]), @"
    exit code: 4
    --- stderr
    error: the rig gastown is parked
    hint: `gt rig unpark gastown` first
    ");
    env.gt(&["rig", "start", "gastown"]).fails(4);
    env.gt(&["rig", "unpark", "gastown"]).ok();
    env.gt(&["crew", "start", "max"]).ok();
}

#[test]
fn one_of_two_concurrent_rigs_with_one_name_is_added() {
    let env = TestEnv::with_town();
    env.repository("source");
    for round in 0..10 {
        let name = format!("rig{round}");
        let racers: Vec<Child> = (0..2)
            .map(|_| env.spawn(&["rig", "add", &name, "source"]))
            .collect();
        let mut codes: Vec<Option<i32>> = racers
            .into_iter()
            .map(|racer| racer.wait_with_output().unwrap().status.code())
            .collect();
        codes.sort();
        assert_eq!(codes, [Some(0), Some(4)], "round {round}");
        assert!(env.town().join(&name).join(".repo.git/HEAD").exists());
    }
    let left = fs::read_dir(env.town()).unwrap().flatten();
    let temporary = left
        .filter(|entry| entry.file_name().to_string_lossy().ends_with(".tmp"))
        .count();
    assert_eq!(temporary, 0);
}

#[test]
fn rig_prints_its_state() {
    let env = TestEnv::with_town();
    assert_snapshot!(env.snapshot(&["rig", "list"]), @"
    exit code: 0
    --- stdout
    No rigs yet. `gt rig add PATH-OR-URL` adds a repository.
    ");
    env.repository("source");
    assert_snapshot!(env.snapshot(&["rig", "add", "gastown", "source", "--prefix", "gt"]), @"
    exit code: 0
    --- stdout
    Added the rig gastown (prefix gt, branch main).
    Next: `gt crew add gastown/NAME` makes a worker.
    ");
    assert_snapshot!(env.snapshot(&["rig", "list"]), @"
    exit code: 0
    --- stdout
    RIG  PREFIX  BRANCH  CREW  POLECATS  RUNNING  FROM
    gastown  gt  main  0  0  0  ~/source
    ");
    assert_snapshot!(env.snapshot(&["rig", "add", "gastown", "source"]), @"
    exit code: 4
    --- stderr
    error: the rig gastown exists already
    hint: `gt rig list` shows the rigs of this town
    ");
    assert_snapshot!(env.snapshot(&["rig", "status", "unknown"]), @r#"
    exit code: 3
    --- stderr
    error: there is no rig called "unknown"
    hint: the rigs of this town: gastown
    "#);
}

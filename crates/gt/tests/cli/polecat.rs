//! `gt polecat`: removal of polecats.

mod broken_worktrees;
mod kept_work;

use crate::env::TestEnv;
use crate::sling::{branches, create, folder, polecats, state, status};
use insta::assert_snapshot;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

#[test]
fn a_polecat_goes_only_when_nothing_is_lost_with_it() {
    let env = TestEnv::with_rig();
    let id = create(&env, "a");
    env.gt(&["sling", &id]).ok();
    let dir = folder(&env, "Toast");
    fs::write(dir.join("new.txt"), "x").unwrap();
    let dry = env.json(&["polecat", "nuke", "Toast", "--dry-run"]);
    assert_eq!(dry[0]["changed_files"], 1);
    assert_eq!(dry[0]["released"], json!(id));
    assert_eq!(dry[0]["removed"], false);
    env.gt(&["polecat", "nuke", "Toast"]).fails(4);
    env.git(&dir, &["add", "."]);
    env.git(&dir, &["commit", "--quiet", "-m", "Work"]);
    env.gt(&["polecat", "nuke", "Toast"]).fails(4);
    assert_eq!(
        env.running(),
        ["gastown/polecats/Toast"],
        "nothing was ended"
    );
    assert_eq!(status(&env, &id), "hooked");
    fs::write(dir.join("more.txt"), "y").unwrap();
    let gone = env.json(&["polecat", "nuke", "gastown/Toast", "--force"]);
    assert_eq!(gone[0]["removed"], true);
    assert_eq!(gone[0]["stopped"], true);
    assert_eq!(gone[0]["saved"].as_array().unwrap().len(), 2, "{gone}");
    let repository = env.town().join("gastown/.repo.git");
    let kept = env.git(
        &repository,
        &["for-each-ref", "refs/gt/saved/polecat/Toast"],
    );
    assert_eq!(kept.lines().count(), 2);
    assert_eq!(status(&env, &id), "open");
    assert_eq!(env.running(), [""; 0]);
    assert_eq!(branches(&env), [""; 0]);
    assert!(!dir.exists());
    env.gt(&["polecat", "nuke", "Toast"]).fails(3);
    env.gt(&["polecat", "show", "Toast"]).fails(3);
    // After a kill at any point the same call completes the removal.
    for point in gt_town::workflow::polecat::FAULT_POINTS {
        env.gt(&["sling", &id]).ok();
        let nuke = ["polecat", "nuke", "Toast"];
        env.kill_at_fault(&nuke, point);
        if *point == "nuke.removed" {
            env.gt(&nuke).fails(3);
        } else {
            env.gt(&nuke).ok();
        }
        assert_eq!(polecats(&env), Vec::<Value>::new(), "{point}");
        assert_eq!(branches(&env), [""; 0], "{point}");
        assert_eq!(status(&env, &id), "open", "{point}");
    }
}

#[test]
fn unneeded_polecats_are_removed() {
    let env = TestEnv::with_rig();
    let ids = ["a", "b", "c", "d"].map(|title| create(&env, title));
    for id in &ids {
        env.gt(&["sling", id, "--no-start"]).ok();
    }
    // Toast is free, Nux has changes, Furiosa has an item, and Slit is incomplete.
    for id in [&ids[0], &ids[1], &ids[3]] {
        env.gt(&["unhook", id]).ok();
    }
    fs::write(folder(&env, "Nux").join("new.txt"), "x").unwrap();
    let own = env.git(&folder(&env, "Slit"), &["rev-parse", "--git-dir"]);
    let own = PathBuf::from(own.trim());
    fs::remove_file(own.join("index")).unwrap();
    fs::write(own.join("locked"), "initializing").unwrap();
    assert_eq!(state(&env, "Slit"), "dirty");
    let names = || -> Vec<String> {
        let found = polecats(&env).into_iter();
        found
            .map(|polecat| polecat["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(env.json(&["polecat", "gc"]), json!([]), "too new");
    let gc = ["polecat", "gc", "--older-than", "0s"];
    let dry = env.json(&[&gc[..], &["--dry-run"]].concat());
    assert_eq!(dry.as_array().unwrap().len(), 3, "{dry}");
    assert_eq!(names().len(), 4);
    assert_snapshot!(env.snapshot(&gc), @"
    exit code: 0
    --- stdout
    Removed gastown/polecats/Slit.
    Removed gastown/polecats/Toast.
    --- stderr
    warning: gastown/polecats/Nux has work that exists nowhere else: 1 changed file
    ");
    assert_eq!(names(), ["Furiosa", "Nux"]);
    assert_eq!(branches(&env).len(), 2);
}

//! `gt init`, and how commands find the town.

use crate::env::TestEnv;
use insta::assert_snapshot;
use std::fs;
use std::os::unix::fs::PermissionsExt;

#[test]
fn a_town_is_made_once_and_private() {
    let env = TestEnv::empty();
    let answer = env.gt(&["init", "--harness", "demo"]).ok();
    assert!(answer.stdout.contains("Made the town"), "{}", answer.stdout);
    for folder in ["", ".runtime", "mayor", "deacon/dogs/boot"] {
        let mode = fs::metadata(env.town().join(folder))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o700, "{folder}");
    }
    assert_snapshot!(env.snapshot(&["init"]), @"
    exit code: 4
    --- stderr
    error: ~/gt is a town already
    hint: `gt status` shows it
    ");
}

#[test]
fn a_town_is_found_from_flag_variable_folder_and_home() {
    let mut env = TestEnv::with_town();
    let here = env.town().canonicalize().unwrap();
    let found = |answer: serde_json::Value| answer["town"].as_str().unwrap().to_owned();
    assert_eq!(found(env.json(&["status"])), here.to_str().unwrap(), "~/gt");
    let other = env.path("other");
    env.gt(&["init", other.to_str().unwrap(), "--harness", "demo"])
        .ok();
    let inside = other.join("mayor");
    let by_folder = env.gt_in(&inside, &["status", "--json"]).ok().json();
    assert_eq!(found(by_folder), other.to_str().unwrap());
    assert_eq!(
        found(env.json(&["--town", "other", "status"])),
        other.to_str().unwrap()
    );
    env.set("GT_ROOT", other.to_str().unwrap());
    assert_eq!(found(env.json(&["status"])), other.to_str().unwrap());
    env.set("GT_ROOT", "/nowhere");
    assert_snapshot!(env.snapshot(&["status"]), @"
    exit code: 3
    --- stderr
    error: GT_ROOT says /nowhere, which is not a town
    hint: `gt init /nowhere` makes one there
    ");
}

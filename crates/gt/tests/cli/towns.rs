//! Towns, rigs, roles and harnesses on disk.

use crate::env::TestEnv;
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
    let again = env.gt(&["init"]).fails(4);
    assert!(
        again.stderr.contains("is a town already"),
        "{}",
        again.stderr
    );
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
    assert!(env.gt(&["status"]).fails(3).stderr.contains("GT_ROOT"));
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
    assert!(env.gt(&["rig", "list"]).ok().stdout.contains("gastown"));
    let rigs = env.json(&["rig", "list"]);
    assert_eq!(rigs[0]["prefix"], "ga");
    assert_eq!(rigs[0]["crew"], 1);
}

#[test]
fn rigs_that_cannot_be_are_refused_and_leave_nothing() {
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
    check(&["mayor", "source"], 2, "word of gt's own");
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
    let answer = env.gt(&["crew", "start", "max"]).fails(4);
    assert!(answer.stderr.contains("parked") && answer.stderr.contains("gt rig unpark"));
    env.gt(&["rig", "start", "gastown"]).fails(4);
    env.gt(&["rig", "unpark", "gastown"]).ok();
    env.gt(&["crew", "start", "max"]).ok();
}

#[test]
fn roles_say_where_each_field_came_from() {
    let env = TestEnv::with_rig();
    fs::create_dir_all(env.town().join("gastown/roles")).unwrap();
    fs::write(
        env.town().join("roles/crew.toml"),
        "[session]\nharness = 'codex'\n[look]\nicon = 'T'\n",
    )
    .unwrap();
    fs::write(
        env.town().join("gastown/roles/crew.toml"),
        "[session]\nharness = 'demo'\n",
    )
    .unwrap();
    let field = |args: &[&str], name: &str| {
        let shown = env.json(&[&["role", "show", "crew"], args].concat());
        let field = &shown["fields"][name];
        (
            field["value"].clone(),
            field["source"].as_str().unwrap().to_owned(),
        )
    };
    let (value, source) = field(&[], "session.harness");
    assert_eq!(value, "codex");
    assert!(source.ends_with("gt/roles/crew.toml"), "{source}");
    let (value, source) = field(&["--rig", "gastown"], "session.harness");
    assert_eq!(value, "demo");
    assert!(source.ends_with("gastown/roles/crew.toml"), "{source}");
    assert_eq!(field(&["--rig", "gastown"], "look.icon").0, "T");
    assert_eq!(
        field(&[], "session.pattern"),
        ("{prefix}-crew-{name}".into(), "built-in".to_owned())
    );
    env.gt(&["role", "show", "king"]).fails(3);
    env.gt(&["role", "show", "crew", "--rig", "nowhere"])
        .fails(3);
    let listed = env.json(&["role", "list"]);
    assert_eq!(listed.as_array().unwrap().len(), 11);
}

#[test]
fn a_role_with_a_pattern_of_its_own_is_found_by_its_tag() {
    let env = TestEnv::with_crew(&["max"]);
    fs::write(
        env.town().join("roles/crew.toml"),
        "[session]\npattern = 'team-{rig}-{name}'\n",
    )
    .unwrap();
    env.gt(&["crew", "start", "max"]).ok();
    assert_eq!(env.sessions(), ["team-gastown-max"]);
    assert_eq!(env.running(), ["gastown/crew/max"]);
    env.gt(&["peek", "gastown/max"]).ok();
    env.gt(&["stop", "team-gastown-max"]).ok();
    fs::write(
        env.town().join("roles/crew.toml"),
        "[session]\npattern = '{prefix}-witness'\n",
    )
    .unwrap();
    let answer = env.gt(&["crew", "start", "max"]).fails(4);
    assert!(
        answer.stderr.contains("reads as gastown/witness"),
        "{}",
        answer.stderr
    );
}

#[test]
fn harnesses_are_listed_with_what_is_installed() {
    let env = TestEnv::with_town();
    fs::write(
        env.town().join("harnesses/mine.toml"),
        "title = 'Mine'\n[command]\nprogram = 'sh'\n",
    )
    .unwrap();
    let listed = env.json(&["harness", "list"]);
    let find = |name: &str| {
        let found = listed
            .as_array()
            .unwrap()
            .iter()
            .find(|row| row["harness"] == name);
        found
            .unwrap_or_else(|| panic!("{name} in {listed}"))
            .clone()
    };
    for name in [
        "claude",
        "codex",
        "opencode",
        "gemini",
        "cursor-agent",
        "amp",
        "copilot",
        "pi",
        "goose",
        "aider",
    ] {
        assert!(find(name)["install"].is_string(), "{name}");
    }
    assert_eq!(find("demo")["installed"], true);
    assert_eq!(find("demo")["default"], true);
    assert_eq!(find("mine")["installed"], true);
    env.gt(&["harness", "show", "nope"]).fails(3);
}

#[test]
fn hooks_that_nobody_can_install_are_a_mistake() {
    let env = TestEnv::with_crew(&["max"]);
    let preset = env.town().join("harnesses/demo.toml");
    fs::write(&preset, "[hooks]\ninstaller = 'clade'\n").unwrap();
    let answer = env.gt(&["crew", "start", "max"]).fails(2);
    for words in ["\"clade\"", "claude, codex, gemini, opencode"] {
        assert!(answer.stderr.contains(words), "{}", answer.stderr);
    }
    assert!(env.running().is_empty());
    // An empty installer disables the hooks.
    fs::write(&preset, "[hooks]\ninstaller = ''\n").unwrap();
    env.gt(&["crew", "start", "max"]).ok();
}

//! Branches that try to influence the commands of the merge queue.

use crate::env::TestEnv;
use crate::sling::create;
use std::fs;
use std::path::PathBuf;

/// Makes a polecat's branch with these files and submits it. Returns the item.
fn submit(env: &TestEnv, title: &str, files: &[(&str, &str)]) -> String {
    let id = create(env, title);
    let slung = env.json(&["sling", &id]);
    let dir = PathBuf::from(slung["work_dir"].as_str().unwrap());
    for (file, text) in files {
        fs::write(dir.join(file), text).unwrap();
    }
    env.git(&dir, &["add", "--all"]);
    env.git(&dir, &["commit", "--quiet", "--message", title]);
    env.gt_in(&dir, &["done"]).ok();
    id
}

fn status(env: &TestEnv, id: &str) -> String {
    env.json(&["work", "show", id])["status"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[test]
fn ignored_file_of_one_branch_does_not_help_the_next() {
    let env = TestEnv::with_rig();
    env.add_settings(
        "[rigs.gastown.merge]\nrepair_agents = false\nkeep = ['cache']\n\
         validate = ['sh ./check']\n",
    );
    let check = "echo run >> cache; test -e passes.o";
    let first = [
        (".gitignore", "*.o\ncache\n"),
        ("check", "touch passes.o; false"),
    ];
    let bad = submit(&env, "First", &first);
    let next = submit(
        &env,
        "Second",
        &[(".gitignore", "*.o\ncache\n"), ("check", check)],
    );
    env.gt(&["mq", "run"]);
    assert_ne!(status(&env, &bad), "closed");
    assert_ne!(status(&env, &next), "closed");
    let tree = env.town().join(".runtime/merge/gastown/tree");
    assert!(tree.join("cache").exists(), "what is named stays");
}

#[test]
fn commands_do_not_get_the_secrets_of_the_caller() {
    let mut env = TestEnv::with_rig();
    let shown = env.path("shown");
    env.add_settings(&format!(
        "[rigs.gastown.merge]\nvalidate = ['env > {}']\n",
        shown.display()
    ));
    submit(&env, "First", &[("a.txt", "a\n")]);
    env.set("AWS_SECRET_ACCESS_KEY", "s3cret");
    env.set("CARGO_HOME", "/toolchain");
    env.gt(&["mq", "run"]).ok();
    let shown = fs::read_to_string(shown).unwrap();
    assert!(!shown.contains("s3cret"), "{shown}");
    assert!(shown.contains("CARGO_HOME=/toolchain"), "{shown}");
    assert!(shown.contains("GT_MERGE_BRANCH="), "{shown}");
}

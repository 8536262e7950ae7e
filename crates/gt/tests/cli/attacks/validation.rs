//! Branches that try to influence the commands of the merge queue.

use crate::env::{Answer, TestEnv, run};
use crate::external_programs::are_there;
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

/// Gives the rig a check that its base fails, so that only a branch that weakens the check passes.
fn with_check(env: &TestEnv, protected: &str) {
    env.add_settings(&format!(
        "[rigs.gastown.merge]\nrepair_agents = false\nautomatic = false\n\
         validate = ['sh ./check']\n{protected}"
    ));
}

fn run_as(env: &TestEnv, agent: &str, args: &[&str]) -> Answer {
    run(env.gt_command(args).env("GT_ROLE", agent))
}

#[test]
fn branch_that_changes_a_protected_file_waits_for_a_person() {
    let env = TestEnv::with_rig();
    with_check(&env, "protected = ['Check', 'ci/**']\n");
    let id = submit(&env, "Weaken", &[("check", "true\n")]);
    let first = env.gt(&["mq", "run"]);
    assert_eq!(first.code, 1, "{first:?}");
    assert_ne!(status(&env, &id), "closed");
    let held = &env.json(&["mq", "list"])[0];
    assert_eq!(held["status"], "held", "{held}");
    assert_eq!(held["files"], serde_json::json!(["check"]), "{held}");
    let merge = held["id"].as_str().unwrap().to_owned();
    let shown = env.gt(&["status"]).ok().stdout;
    assert!(
        shown.contains(&format!("`gt mq approve {merge}`")),
        "{shown}"
    );
    let mail = env.json(&["mail", "inbox"]);
    let subject = mail[0]["subject"].as_str().unwrap();
    assert!(subject.contains("waits for your approval"), "{mail}");
    let diff = env.gt(&["mq", "diff", &merge]).ok().stdout;
    assert!(diff.contains("+true"), "{diff}");
    // A run does not take it up again, and an agent cannot approve it.
    env.gt(&["mq", "run"]).ok();
    let refused = run_as(&env, "mayor", &["mq", "approve", &merge]);
    assert_eq!(refused.code, 4, "{refused:?}");
    env.gt(&["mq", "approve", &merge]).ok();
    env.gt(&["mq", "run"]).ok();
    assert_eq!(status(&env, &id), "closed");
    let events = env.json(&["events", "--type", "merge_approved"]);
    assert_eq!(events[0]["payload"]["merge"], merge.as_str(), "{events}");
}

#[test]
fn approval_is_for_one_commit() {
    let env = TestEnv::with_rig();
    with_check(&env, "protected = ['ci/**']\n");
    // A file in place of the folder counts as a change of it.
    let id = submit(&env, "First", &[("ci", "x\n"), ("check", "true\n")]);
    env.gt(&["mq", "run"]);
    let held = env.json(&["mq", "list"])[0].clone();
    assert_eq!(held["files"], serde_json::json!(["ci"]), "{held}");
    let merge = held["id"].as_str().unwrap();
    env.gt(&["mq", "approve", merge]).ok();
    // The item is taken up again and submitted with another commit.
    env.gt(&["work", "update", &id, "--status", "open"]).ok();
    let slung = env.json(&["sling", &id]);
    let dir = PathBuf::from(slung["work_dir"].as_str().unwrap());
    fs::write(dir.join("ci"), "worse\n").unwrap();
    fs::write(dir.join("check"), "true\n").unwrap();
    env.git(&dir, &["add", "--all"]);
    env.git(&dir, &["commit", "--quiet", "--message", "Worse"]);
    env.gt_in(&dir, &["done"]).ok();
    env.gt(&["mq", "run"]);
    assert_ne!(status(&env, &id), "closed");
    assert_eq!(env.json(&["mq", "list"])[0]["status"], "held");
}

#[test]
fn project_settings_are_protected_by_default() {
    let env = TestEnv::with_rig();
    with_check(&env, "");
    let files = [
        (".gt.toml", "init_commands = ['true']\n"),
        ("check", "true\n"),
    ];
    let id = submit(&env, "Plant", &files);
    let other = submit(&env, "Harmless", &[("check", "true\n"), ("a", "a\n")]);
    env.gt(&["mq", "run"]);
    assert_ne!(status(&env, &id), "closed");
    assert_eq!(status(&env, &other), "closed", "others are merged");
}

/// Submits a branch whose `check` does this. Returns the reason why it was not merged.
fn reason_of(settings: &str, check: &str) -> String {
    let env = TestEnv::with_rig();
    with_check(&env, settings);
    let id = submit(&env, "Hog", &[("check", check)]);
    let ran = env.gt(&["mq", "run", "--json"]).fails(1).json();
    assert_ne!(status(&env, &id), "closed");
    ran[0]["reason"].as_str().unwrap().to_owned()
}

#[test]
fn command_that_starts_too_many_processes_is_ended() {
    // Ends by itself, in case that it is not ended.
    let check = "i=0; while [ $i -lt 400 ]; do sleep 61 & i=$((i+1)); done; wait\n";
    let reason = reason_of("processes = 30\n", check);
    assert_eq!(reason, "`sh ./check` started more than 30 processes");
}

#[test]
fn command_that_starts_processes_without_end_is_ended() {
    // Each process starts two more, up to a depth that bounds them all.
    let check = "n=${1:-0}; [ $n -ge 9 ] && exec sleep 61\n\
                 sh ./check $((n+1)) & sh ./check $((n+1)) & wait\n";
    let reason = reason_of("processes = 30\n", check);
    assert_eq!(reason, "`sh ./check` started more than 30 processes");
}

#[cfg(target_os = "linux")]
#[test]
fn command_that_uses_too_much_memory_is_ended() {
    // `tail` keeps the last line, which does not end.
    let check = "{ head -c 400000000 /dev/zero; sleep 61; } | tail -n 1 > /dev/null\n";
    let reason = reason_of("memory_mb = 100\n", check);
    assert_eq!(reason, "`sh ./check` used more than 100 MiB of memory");
}

/// Tries to read and to write outside of the worktree of the queue, and does its work inside.
const HOSTILE: &str = r#"
code=0
for file in "$HOME/.ssh/id" "$HOME/.claude/.credentials.json" "$HOME/gt/town.toml"; do
  cat "$file" > /dev/null 2>&1 && echo "read $file" && code=1
done
for file in "$HOME/planted" "$HOME/gt/planted"; do
  { echo x >> "$file"; } 2> /dev/null && echo "wrote $file" && code=1
done
git config core.fsmonitor evil 2> /dev/null && echo "set core.fsmonitor" && code=1
git update-ref refs/heads/planted HEAD 2> /dev/null && echo "made a branch" && code=1
tmux -S "$HOME/s" list-sessions > /dev/null 2>&1 && echo "reached tmux" && code=1
git rev-parse HEAD > result && touch "$HOME/.cache/build/result" /tmp/result || code=1
test "${TMPDIR:-/tmp}" = /tmp || code=1
{ echo x >> .git; } 2> /dev/null && echo "wrote .git" && code=1
exit $code
"#;

/// Runs the hostile check with this setting. Returns the town, the item, and what the run printed.
fn run_hostile(sandbox: &str) -> (TestEnv, String, Answer) {
    let env = TestEnv::with_rig();
    for secret in [".ssh/id", ".claude/.credentials.json"] {
        let path = env.home().join(secret);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "secret").unwrap();
    }
    with_check(
        &env,
        &format!("sandbox = '{sandbox}'\nwritable = ['~/.cache/build']\n"),
    );
    let id = submit(&env, "Escape", &[("check", HOSTILE)]);
    let ran = env.gt(&["mq", "run", "--json"]);
    (env, id, ran)
}

#[test]
fn command_in_a_sandbox_reaches_only_its_worktree_and_caches() {
    if !are_there("a sandbox", &["bwrap"]) {
        return;
    }
    let (env, id, ran) = run_hostile("workspace");
    assert_eq!(status(&env, &id), "closed", "{ran:?}");
    assert!(!env.home().join("planted").exists());
    assert!(env.home().join(".cache/build/result").exists(), "a cache");
    let tree = env.town().join(".runtime/merge/gastown/tree");
    assert!(tree.join("result").exists());
}

#[test]
fn command_without_a_sandbox_reaches_everything() {
    let (env, id, ran) = run_hostile("none");
    assert_ne!(status(&env, &id), "closed", "{ran:?}");
    let logs = fs::read_dir(env.town().join(".runtime/merge/gastown")).unwrap();
    let mut logs = logs.map(|log| log.unwrap().path());
    let log = logs.find(|log| log.extension().is_some_and(|end| end == "log"));
    let log = fs::read_to_string(log.unwrap()).unwrap();
    for act in ["read", "wrote", "set core.fsmonitor", "made a branch"] {
        assert!(log.contains(act), "{act}: {log}");
    }
}

#[test]
fn missing_sandbox_merges_nothing() {
    let mut env = TestEnv::with_rig();
    with_check(&env, "sandbox = 'workspace'\n");
    let id = submit(&env, "Fine", &[("check", "true\n")]);
    let tools = env.path("tools");
    fs::create_dir_all(&tools).unwrap();
    let path = std::env::var_os("PATH").unwrap();
    for program in ["git", "tmux", "sh"] {
        let mut folders = std::env::split_paths(&path).map(|dir| dir.join(program));
        let real = folders.find(|file| file.is_file()).unwrap();
        std::os::unix::fs::symlink(real, tools.join(program)).unwrap();
    }
    env.set("PATH", &tools.display().to_string());
    let ran = env.gt(&["mq", "run"]);
    assert_ne!(ran.code, 0, "{ran:?}");
    let said = format!("{}{}", ran.stdout, ran.stderr);
    for text in ["`merge.sandbox`", "bubblewrap", "merge.sandbox none"] {
        assert!(said.contains(text), "{text}: {said}");
    }
    assert!(!said.contains("--sandbox none"), "{said}");
    assert_ne!(status(&env, &id), "closed");
}

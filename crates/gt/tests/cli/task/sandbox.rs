//! Tasks whose agent runs in a sandbox, with what runs beside it.

use super::*;
use crate::external_programs::are_there;
use serde_json::json;

const COMMIT: &str = "[[tool=echo x > file && git add file && git -c user.name=max -c user.email=max@localhost commit -qm 'Add file'; touch ../escaped; git config core.fsmonitor x; echo done > made-end]]";

fn wait_for_file(env: &TestEnv, id: &str, name: &str) -> String {
    let path = folder(env, id).join(name);
    let read = || {
        fs::read_to_string(&path)
            .ok()
            .filter(|text| !text.is_empty())
    };
    let screen = || env.gt(&["peek", &format!("task/{id}")]).stdout;
    wait_until_or(name, TIMEOUT, read, screen)
}

fn branch(env: &TestEnv, id: &str) -> String {
    let branch = env.git(&folder(env, id), &["branch", "--show-current"]);
    branch.trim().to_owned()
}

#[test]
fn task_in_a_sandbox_commits_on_a_branch_of_its_own_and_is_cleaned_up() {
    if !are_there("a sandbox", &["bwrap"]) {
        return;
    }
    let (env, id) = with_project("");
    let start = ["task", "start", &id, "--yolo", "--sandbox", "workspace"];
    let started = env.json(&[&start[..], &["--prompt", COMMIT]].concat());
    assert_eq!(started["branch"], json!(format!("{id}/main")));
    assert_eq!(env.agent(&format!("task/{id}"))["sandbox"], "workspace");
    wait_for_file(&env, &id, "made-end");
    let dir = folder(&env, &id);
    let subject = env.git(&dir, &["log", "-1", "--format=%s"]);
    assert_eq!(subject.trim(), "Add file");
    assert!(!dir.parent().unwrap().join("escaped").exists());
    let clone = env.town().join("gastown/.repo.git");
    let config = fs::read_to_string(clone.join("config")).unwrap();
    assert!(!config.contains("fsmonitor"), "{config}");
    // A new worktree continues on the branch.
    env.gt(&["task", "stop", &id]).ok();
    fs::remove_dir_all(&dir).unwrap();
    let again = env.gt(&[&start[..], &["--json"]].concat()).ok().json();
    assert_eq!(again["warnings"], json!([]));
    assert_eq!(branch(&env, &id), format!("{id}/main"));
    assert!(dir.join("file").exists());
    env.gt(&["task", "cleanup", &id, "--force", "--yes"]).ok();
    let left = env.git(&clone, &["for-each-ref", "refs/heads", "refs/gt/wip"]);
    assert!(!left.contains(&id), "{left}");
}

#[test]
fn commands_beside_a_sandboxed_agent_run_inside_and_init_commands_only_before_it() {
    if !are_there("a sandbox", &["bwrap"]) {
        return;
    }
    let (env, id) = with_project(
        r#"
[init]
commands = ["readlink /proc/self/ns/pid >> made-init"]

[[background]]
name = "watch"
command = "readlink /proc/self/ns/pid > made-background; touch ../escaped; sleep 1000"

[[dev_servers]]
name = "web"
command = "readlink /proc/self/ns/pid > made-server; sleep 1000"
"#,
    );
    let start = ["task", "start", &id, "--yolo", "--sandbox", "workspace"];
    env.gt(&start).ok();
    env.gt(&["dev", "start", &id]).ok();
    let own = fs::read_link("/proc/self/ns/pid").unwrap();
    let own = own.display().to_string();
    assert_eq!(wait_for_file(&env, &id, "made-init").trim(), own);
    for name in ["made-background", "made-server"] {
        let inside = wait_for_file(&env, &id, name);
        assert_ne!(inside.trim(), own, "{name}");
    }
    assert!(!env.path("escaped").exists());
    env.gt(&["task", "stop", &id]).ok();
    let again = env.gt(&[&start[..], &["--json"]].concat()).ok().json();
    let warnings = again["warnings"].to_string();
    assert!(
        warnings.contains("the init commands did not run again"),
        "{warnings}"
    );
    assert_eq!(again["init"], json!([]));
    let text = fs::read_to_string(folder(&env, &id).join("made-init")).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
}

#[test]
fn paused_task_keeps_its_branch_and_is_refused_a_sandbox() {
    if !are_there("a sandbox", &["bwrap"]) {
        return;
    }
    let (env, id) = with_project("");
    env.gt(&["task", "start", &id]).ok();
    fs::write(folder(&env, &id).join("new"), "x\n").unwrap();
    env.gt(&["task", "pause", &id]).ok();
    env.gt(&["task", "stop", &id]).ok();
    let said = env.gt(&["task", "start", &id, "--sandbox", "workspace"]);
    assert_ne!(said.code, 0, "{said:?}");
    assert!(
        said.stderr.contains("is paused, waits to be merged"),
        "{said:?}"
    );
    assert_eq!(branch(&env, &id), id);
}

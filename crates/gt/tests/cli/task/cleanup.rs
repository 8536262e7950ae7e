//! `gt task cleanup`.

use super::*;
use crate::env::run;
use insta::assert_snapshot;

/// Makes a task whose rig has a bare remote, as on a server.
pub(super) fn with_bare_remote() -> (TestEnv, String, PathBuf) {
    let env = TestEnv::with_town();
    let source = env.repository("source-gastown");
    fs::write(source.join(".gitignore"), "made*\n").unwrap();
    env.git(&source, &["add", "."]);
    env.git(&source, &["commit", "--quiet", "-m", "Ignore"]);
    let bare = env.path("remote.git");
    let bare_text = bare.to_str().unwrap();
    env.git(&source, &["clone", "--quiet", "--bare", ".", bare_text]);
    env.gt(&["rig", "add", "gastown", bare_text, "--prefix", "gt"])
        .ok();
    let id = create(&env);
    let started = env.json(&["task", "start", &id]);
    let dir = PathBuf::from(started["work_dir"].as_str().unwrap());
    (env, id, dir)
}

/// Makes a task whose rig has a bare remote and a submodule `sub` with a remote, all merged.
fn with_submodule() -> (TestEnv, String, PathBuf) {
    let (env, id, dir) = with_bare_remote();
    add_submodule(&env, &dir);
    env.git(&dir, &["push", "--quiet", "origin", "HEAD:main"]);
    (env, id, dir)
}

fn all_refs(env: &TestEnv, under: &str) -> Vec<String> {
    let repository = env.town().join("gastown/.repo.git");
    let names = env.git(&repository, &["for-each-ref", "--format=%(refname)", under]);
    names.lines().map(str::to_owned).collect()
}

#[test]
fn work_only_in_a_submodule_is_refused_and_kept_by_force() {
    let (env, id, dir) = with_submodule();
    let sub = dir.join("sub");
    // The submodule pointer is merged, but its commit is on no remote.
    let tip = commit(&env, &sub, "s.txt", "committed\n");
    commit(&env, &dir, "README.md", "points to it\n");
    env.git(&dir, &["push", "--quiet", "origin", "HEAD:main"]);
    let answer = env.gt(&["task", "cleanup", &id, "--yes"]).fails(4);
    let words = &answer.stderr;
    assert!(
        words.contains("1 commit") && words.contains("inside sub"),
        "{words}"
    );
    // Stashed and uncommitted changes are refused as well.
    fs::write(sub.join("s.txt"), "put aside\n").unwrap();
    env.git(&sub, &["stash", "--quiet"]);
    fs::write(sub.join("s.txt"), "not committed\n").unwrap();
    fs::write(sub.join("new"), "new\n").unwrap();
    let plan = env.json(&["task", "cleanup", &id, "--dry-run"]);
    let refused = plan["refused"]["message"].as_str().unwrap();
    assert!(refused.contains("2 changed files, 3 commits"), "{refused}");
    let cleaned = env.json(&["task", "cleanup", &id, "--yes", "--force"]);
    is_gone(&env, &id, &dir);
    let names = saved(&env, &cleaned);
    let repository = env.town().join("gastown/.repo.git");
    let texts: Vec<String> = names
        .iter()
        .map(|name| env.git(&repository, &["show", &format!("{name}:s.txt")]))
        .collect();
    for text in ["committed\n", "put aside\n", "not committed\n"] {
        assert!(texts.iter().any(|it| it == text), "{text}: {texts:?}");
    }
    let changes = names.iter().find(|name| name.ends_with("changes")).unwrap();
    let file = format!("{changes}:new");
    assert_eq!(env.git(&repository, &["show", &file]), "new\n");
    for name in names {
        env.git(&repository, &["merge-base", "--is-ancestor", &tip, &name]);
    }
}

#[test]
fn crew_removal_checks_submodules() {
    let env = TestEnv::with_crew(&["max"]);
    let dir = env.town().join("gastown/crew/max");
    add_submodule(&env, &dir);
    commit(&env, &dir.join("sub"), "s.txt", "committed\n");
    commit(&env, &dir, "README.md", "points to it\n");
    env.git(&dir, &["push", "--quiet", "origin", "HEAD:refs/heads/x"]);
    assert_snapshot!(env.snapshot(&["crew", "rm", "max"]), @"
    exit code: 4
    --- stderr
    error: gastown/crew/max has work that exists nowhere else: 1 commit
    caused by: part of it is inside sub
    hint: commit and push it, or `--force`: it is then kept under refs/gt/saved/
    ");
    assert!(dir.exists());
    let removed = env.json(&["crew", "rm", "max", "--force"]);
    let saved = removed[0]["saved"].as_array().unwrap();
    assert_eq!(saved.len(), 1, "{removed}");
    let repository = env.town().join("gastown/.repo.git");
    let file = format!("{}:s.txt", saved[0].as_str().unwrap());
    assert_eq!(env.git(&repository, &["show", &file]), "committed\n");
    assert!(!dir.exists());
}

#[test]
fn submodule_without_own_work_does_not_block_a_cleanup() {
    let (env, id, dir) = with_submodule();
    assert!(dir.join("sub/s.txt").exists());
    env.gt(&["task", "cleanup", &id, "--yes"]).ok();
    is_gone(&env, &id, &dir);
    assert_eq!(all_refs(&env, "refs/gt/saved"), [""; 0]);
}

#[test]
fn submodule_removed_from_the_branch_is_checked() {
    let (env, id, dir) = with_submodule();
    commit(&env, &dir.join("sub"), "s.txt", "committed\n");
    env.git(&dir, &["rm", "--quiet", "--force", "sub"]);
    env.git(&dir, &["commit", "--quiet", "-m", "Without it"]);
    env.git(&dir, &["push", "--quiet", "origin", "HEAD:main"]);
    assert!(!dir.join("sub").exists());
    assert_snapshot!(env.snapshot(&["task", "cleanup", &id, "--yes"]), @"
    exit code: 4
    --- stderr
    error: gt-[ID] has work that exists nowhere else: 1 commit
    caused by: part of it is inside sub
    hint: `gt task merge gt-[ID]` brings it into the base, `gt task pr gt-[ID]` onto the remote
    hint: with `--force` it is kept under refs/gt/saved/, and the rest goes
    ");
    let cleaned = env.json(&["task", "cleanup", &id, "--yes", "--force"]);
    let names = saved(&env, &cleaned);
    let repository = env.town().join("gastown/.repo.git");
    let file = format!("{}:s.txt", names[0]);
    assert_eq!(env.git(&repository, &["show", &file]), "committed\n");
}

#[test]
fn nested_repository_without_gitmodules_is_checked() {
    let (env, id, dir) = with_bare_remote();
    let nested = dir.join("nested");
    fs::create_dir(&nested).unwrap();
    env.git(&nested, &["init", "--quiet"]);
    commit(&env, &nested, "s.txt", "committed\n");
    env.git(&dir, &["add", "nested"]);
    env.git(&dir, &["commit", "--quiet", "-m", "Point to it"]);
    env.git(&dir, &["push", "--quiet", "origin", "HEAD:main"]);
    assert_eq!(env.git(&dir, &["status", "--porcelain"]), "");
    assert_snapshot!(env.snapshot(&["task", "cleanup", &id, "--yes"]), @"
    exit code: 4
    --- stderr
    error: gt-[ID] has work that exists nowhere else: 1 commit
    caused by: part of it is inside nested
    hint: `gt task merge gt-[ID]` brings it into the base, `gt task pr gt-[ID]` onto the remote
    hint: with `--force` it is kept under refs/gt/saved/, and the rest goes
    ");
    assert!(nested.join(".git").exists());
}

fn remote_branches(env: &TestEnv) -> Vec<String> {
    let names = ["for-each-ref", "--format=%(refname:short)", "refs/heads"];
    let names = env.git(&env.path("remote.git"), &names);
    names.lines().map(str::to_owned).collect()
}

fn actions(document: &Value) -> Vec<(&str, &str)> {
    let steps = document["steps"].as_array().unwrap().iter();
    steps
        .map(|step| {
            (
                step["action"].as_str().unwrap(),
                step["what"].as_str().unwrap(),
            )
        })
        .collect()
}

/// Returns the refs of the rig's repository that hold saved work.
fn saved(env: &TestEnv, document: &Value) -> Vec<String> {
    let repository = env.town().join("gastown/.repo.git");
    let names = env.git(
        &repository,
        &["for-each-ref", "--format=%(refname)", "refs/gt/saved"],
    );
    let names: Vec<String> = names.lines().map(str::to_owned).collect();
    let told = document["saved"].as_array().unwrap().clone();
    assert_eq!(told.len(), names.len(), "{document}");
    assert!(
        told.iter()
            .all(|name| names.contains(&name.as_str().unwrap().to_owned()))
    );
    names
}

fn is_gone(env: &TestEnv, id: &str, dir: &Path) {
    assert!(!dir.exists(), "{}", dir.display());
    assert!(!env.sessions().contains(&format!("{id}-az")));
    let repository = env.town().join("gastown/.repo.git");
    assert_eq!(env.git(&repository, &["branch", "--list", id]), "");
}

#[test]
fn cleanup_of_merged_work_removes_everything_it_listed() {
    let (env, id, dir) = with_bare_remote();
    commit(&env, &dir, "new", "x\n");
    env.git(&dir, &["push", "--quiet", "origin", &id]);
    env.git(&dir, &["push", "--quiet", "origin", "HEAD:main"]);
    assert_eq!(remote_branches(&env), [id.as_str(), "main"]);
    // Without confirmation nothing is done.
    assert_snapshot!(env.snapshot(&["task", "cleanup", &id]), @"
    exit code: 2
    --- stderr
    error: there is no terminal to ask for a confirmation
    hint: `--dry-run` shows what would be done, `--yes` does it
    ");
    let plan = env.json(&["task", "cleanup", &id, "--dry-run"]);
    let container = format!("{id}-az");
    let expected = [
        ("stop_container", container.as_str()),
        ("remove_worktree", dir.to_str().unwrap()),
        ("delete_branch", id.as_str()),
        ("delete_remote_branch", id.as_str()),
        ("open_item", id.as_str()),
    ];
    assert_eq!(actions(&plan), expected, "{plan}");
    assert_eq!(plan["done"], false);
    assert!(dir.exists());
    assert!(env.sessions().contains(&container));
    let cleaned = env.json(&["task", "cleanup", &id, "--yes"]);
    assert_eq!(actions(&cleaned), expected);
    assert_eq!(saved(&env, &cleaned), [""; 0]);
    is_gone(&env, &id, &dir);
    assert_eq!(remote_branches(&env), ["main"]);
    let item = env.json(&["work", "show", &id]);
    assert_eq!(item["status"], "open");
    assert_eq!(item["assignee"], Value::Null);
    // A second cleanup does only the steps that were not requested before.
    let again = env.json(&["task", "cleanup", &id, "--yes"]);
    assert_eq!(actions(&again), []);
    let closed = env.json(&["task", "cleanup", &id, "--yes", "--close"]);
    assert_eq!(actions(&closed), [("close_item", id.as_str())]);
    assert_eq!(env.json(&["work", "show", &id])["status"], "closed");
}

#[test]
fn unmerged_work_is_refused_and_kept_by_force() {
    let (env, id, dir) = with_bare_remote();
    let tip = commit(&env, &dir, "new", "x\n");
    fs::write(dir.join("not committed"), "y\n").unwrap();
    let plan = env.json(&["task", "cleanup", &id, "--dry-run"]);
    let refused = plan["refused"]["message"].as_str().unwrap();
    assert!(refused.contains("1 changed file, 1 commit"), "{refused}");
    assert_snapshot!(env.snapshot(&["task", "cleanup", &id, "--yes"]), @"
    exit code: 4
    --- stderr
    error: gt-[ID] has work that exists nowhere else: 1 changed file, 1 commit
    hint: `gt task merge gt-[ID]` brings it into the base, `gt task pr gt-[ID]` onto the remote
    hint: with `--force` it is kept under refs/gt/saved/, and the rest goes
    ");
    assert!(dir.exists());
    assert_eq!(env.agent(&format!("task/{id}"))["health"], "healthy");
    let cleaned = env.json(&["task", "cleanup", &id, "--yes", "--force"]);
    is_gone(&env, &id, &dir);
    let names = saved(&env, &cleaned);
    let repository = env.town().join("gastown/.repo.git");
    assert_eq!(names.len(), 2, "{names:?}");
    for name in &names {
        env.git(&repository, &["merge-base", "--is-ancestor", &tip, name]);
    }
    let changes = names.iter().find(|name| name.ends_with("changes")).unwrap();
    let file = format!("{changes}:not committed");
    assert_eq!(env.git(&repository, &["show", &file]), "y\n");
}

#[test]
fn pushed_work_stays_at_the_remote_and_is_kept_by_force() {
    let (env, id, dir) = with_bare_remote();
    let tip = commit(&env, &dir, "new", "x\n");
    env.git(&dir, &["push", "--quiet", "origin", &id]);
    let cleaned = env.json(&["task", "cleanup", &id, "--yes"]);
    is_gone(&env, &id, &dir);
    let kept = cleaned["kept"][0].as_str().unwrap();
    assert!(kept.contains("it is not in main"), "{kept}");
    assert_eq!(remote_branches(&env), [id.as_str(), "main"]);
    let cleaned = env.json(&["task", "cleanup", &id, "--yes", "--force"]);
    assert_eq!(actions(&cleaned), [("delete_remote_branch", id.as_str())]);
    assert_eq!(remote_branches(&env), ["main"]);
    let names = saved(&env, &cleaned);
    let repository = env.town().join("gastown/.repo.git");
    let kept = env.git(&repository, &["rev-parse", &names[0]]);
    assert_eq!(kept.trim(), tip);
}

#[test]
fn a_branch_that_waits_to_be_merged_stays() {
    let (env, id, dir) = with_bare_remote();
    let tip = commit(&env, &dir, "new", "x\n");
    let mut by_agent = env.gt_command(&["done"]);
    let by_agent = by_agent.env("GT_ROLE", format!("task/{id}"));
    run(by_agent.current_dir(&dir)).ok();
    let cleaned = env.json(&["task", "cleanup", &id, "--yes"]);
    let kept = cleaned["kept"].to_string();
    assert!(kept.contains("waits to be merged"), "{kept}");
    assert!(!dir.exists());
    env.gt(&["mq", "run"]).ok();
    env.git(
        &env.path("remote.git"),
        &["merge-base", "--is-ancestor", &tip, "main"],
    );
}

#[test]
fn a_clean_up_that_is_killed_anywhere_is_finished_by_the_next() {
    for point in gt_town::workflow::task::CLEANUP_FAULT_POINTS {
        let (env, id, dir) = with_bare_remote();
        let tip = commit(&env, &dir, "new", "x\n");
        env.git(&dir, &["push", "--quiet", "origin", &id]);
        fs::write(dir.join("not committed"), "y\n").unwrap();
        let words = [
            "task", "cleanup", &id, "--yes", "--force", "--close", "--json",
        ];
        env.kill_at_fault(&words, point);
        env.gt(&words).ok();
        is_gone(&env, &id, &dir);
        assert_eq!(remote_branches(&env), ["main"], "{point}");
        assert_eq!(
            env.json(&["work", "show", &id])["status"],
            "closed",
            "{point}"
        );
        // Nothing was lost in between.
        let repository = env.town().join("gastown/.repo.git");
        let names = ["for-each-ref", "--format=%(refname)", "refs/gt/saved"];
        let names = env.git(&repository, &names);
        let has = |what: &str| names.lines().find(|name| name.ends_with(what));
        let remote = env.git(&repository, &["rev-parse", has("-remote").unwrap()]);
        assert_eq!(remote.trim(), tip, "{point}");
        let file = format!("{}:not committed", has("-changes").unwrap());
        assert_eq!(env.git(&repository, &["show", &file]), "y\n", "{point}");
        assert_eq!(actions(&env.gt(&words).ok().json()), [], "{point}");
    }
}

#[test]
fn an_agent_does_not_clean_up_itself_and_ports_are_free_again() {
    let (env, id) =
        with_project("[[dev_servers]]\nname = 'web'\ncommand = 'exec sleep 1000'\nport = 38471\n");
    env.gt(&["task", "start", &id]).ok();
    let dir = folder(&env, &id);
    env.gt(&["dev", "start", &id]).ok();
    let ports = env.town().join(".runtime/ports.json");
    assert!(fs::read_to_string(&ports).unwrap().contains("gastown-"));
    let mut own = env.gt_command(&["task", "cleanup", &id, "--yes"]);
    own.env("GT_ROOT", env.town())
        .env("GT_SESSION", format!("{id}-az"));
    assert_snapshot!(run(&mut own).rendered(&env), @"
    exit code: 7
    --- stderr
    error: task/gt-[ID] does not have the capability `remove`
    hint: `gt role capabilities` prints the table; `gt escalate` asks a person
    ");
    env.gt(&["task", "cleanup", &id, "--yes"]).ok();
    is_gone(&env, &id, &dir);
    assert!(!fs::read_to_string(&ports).unwrap().contains("gastown-"));
    // The task can be started again.
    assert_eq!(env.json(&["task", "start", &id])["reused"], false);
}

#[test]
fn a_person_is_asked_and_may_say_no() {
    let (env, id) = with_project("");
    env.gt(&["task", "start", &id]).ok();
    let dir = folder(&env, &id);
    let gt = env!("CARGO_BIN_EXE_gt");
    let person = Person::at(
        &env,
        &format!("{gt} task cleanup {id}; {gt} task cleanup {id}"),
    );
    let screen = person.sees("Continue? [y/N]");
    let container = format!("stop everything in the container {id}-az");
    assert!(screen.contains(&container), "{screen}");
    person.presses("Enter");
    person.sees("Nothing was done.");
    assert!(dir.exists());
    wait_until("the second question", TIMEOUT, || {
        let screen = person.sees("Continue? [y/N]");
        (screen.matches("Continue?").count() == 2).then_some(())
    });
    person.presses("y");
    person.presses("Enter");
    person.sees(&format!("{id} is cleaned up."));
    is_gone(&env, &id, &dir);
}

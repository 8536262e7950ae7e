//! `gt task diff`, `merge` and `pr`.

use super::*;
use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::json;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

#[test]
fn beads_files_cause_no_merge_conflict_with_the_base() {
    let (env, id, dir) = with_beads_changed();
    let head = commit(&env, &dir, "code", "ours\n");
    commit_to_base(&env, ".beads/issues.jsonl", "theirs\n");
    commit_to_base(&env, ".beads/gone", "theirs\n");
    let theirs = commit_to_base(&env, "other", "theirs\n");
    let merged = env.json(&["task", "merge", &id]);
    assert_eq!(merged["result"], "merged", "{merged}");
    // As after an update: the branch's own files of beads, and all other files of both sides.
    let source = env.path("source-gastown");
    let tree = env.git(&source, &["ls-tree", "-r", "--name-only", "gt/merged/main"]);
    let names = [".beads/issues.jsonl", ".gitignore", ".gt.toml"];
    let names = [&names[..], &["README.md", "code", "other"]].concat();
    assert_eq!(tree.lines().collect::<Vec<_>>(), names);
    let issues = env.git(&source, &["show", "gt/merged/main:.beads/issues.jsonl"]);
    assert_eq!(issues, "ours\n");
    // No checkout changes.
    assert_eq!(super::head(&env, &dir), head);
    assert_eq!(super::head(&env, &source), theirs);
    assert_eq!(read(&source, ".beads/issues.jsonl"), "theirs\n");
    for checkout in [&dir, &source] {
        assert_eq!(env.git(checkout, &["status", "--porcelain"]), "");
    }
    // With a real conflict, only the real one is reported.
    let other = create(&env);
    env.gt(&["task", "start", &other]).ok();
    let dir = folder(&env, &other);
    commit(&env, &dir, ".beads/issues.jsonl", "ours again\n");
    commit(&env, &dir, "other", "ours again\n");
    commit_to_base(&env, ".beads/issues.jsonl", "theirs again\n");
    commit_to_base(&env, "other", "theirs again\n");
    let refused = env.gt(&["task", "merge", &other, "--json"]).fails(1).json();
    assert_eq!(refused["files"], json!(["other"]), "{refused}");
}

#[test]
fn diff_and_merge_of_an_item_are_about_the_worktree_of_its_holder() {
    let (env, id) = with_project("");
    let other = create(&env);
    env.gt(&["crew", "add", "max"]).ok();
    let polecat = env.json(&["sling", &id])["agent"].clone();
    let polecat = polecat.as_str().unwrap();
    env.gt(&["sling", &other, "gastown/crew/max"]).ok();
    for (id, agent) in [(&id, polecat), (&other, "gastown/crew/max")] {
        let dir = env.town().join(agent);
        commit(&env, &dir, agent.rsplit('/').next().unwrap(), "1\n2\n");
        let diff = env.json(&["task", "diff", id, "--stat"]);
        assert_eq!(diff["added"], 2, "{diff}");
        let merged = env.json(&["task", "merge", id]);
        assert_eq!(merged["result"], "merged", "{merged}");
        let branch = env.git(&dir, &["branch", "--show-current"]);
        assert_eq!(merged["branch"], branch.trim());
        assert_eq!(env.json(&["work", "show", id])["status"], "closed");
    }
    // The polecat ends with its item, and crew keeps running.
    assert_eq!(env.running(), ["gastown/crew/max"]);
    assert_snapshot!(env.snapshot(&["task", "diff", &id]), @"
    exit code: 3
    --- stderr
    error: gt-[ID] has no worktree
    hint: `gt task start gt-[ID]` makes it
    ");
}

#[test]
fn a_diff_has_all_that_was_changed_and_touches_nothing() {
    let (env, id, dir) = running();
    commit(&env, &dir, "committed", "1\n2\n");
    // Later commits of the base are not part of the diff.
    commit_to_base(&env, "theirs", "x\n");
    fs::write(dir.join("README.md"), "changed\n").unwrap();
    fs::write(dir.join("staged"), "x\n").unwrap();
    env.git(&dir, &["add", "staged"]);
    fs::write(dir.join("not known"), "1\n\n").unwrap();
    fs::write(dir.join("made-ignored"), "x\n").unwrap();
    let status = env.git(&dir, &["status", "--porcelain"]);
    let diff = env.json(&["task", "diff", &id]);
    let files: Vec<(&str, u64, u64)> = diff["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| {
            let lines = |name: &str| file[name].as_u64().unwrap();
            (
                file["path"].as_str().unwrap(),
                lines("added"),
                lines("removed"),
            )
        })
        .collect();
    assert_eq!(
        files,
        [
            ("README.md", 1, 1),
            ("committed", 2, 0),
            ("not known", 2, 0),
            ("staged", 1, 0),
        ]
    );
    assert_eq!(diff["added"], 6);
    assert_eq!(diff["removed"], 1);
    assert_eq!(diff["base"], "main");
    // The patch is complete: applied to the merge base it gives the worktree.
    let patch = diff["patch"].as_str().unwrap();
    let other = env.path("other");
    let merge_base = diff["merge_base"].as_str().unwrap();
    let source = env.path("source-gastown");
    env.git(
        &source,
        &[
            "worktree",
            "add",
            "--quiet",
            "--detach",
            other.to_str().unwrap(),
            merge_base,
        ],
    );
    fs::write(env.path("patch"), patch).unwrap();
    env.git(&other, &["apply", env.path("patch").to_str().unwrap()]);
    assert_eq!(read(&other, "not known"), "1\n\n");
    assert_eq!(read(&other, "README.md"), "changed\n");
    let stat = env.gt(&["task", "diff", &id, "--stat"]).ok().stdout;
    assert_snapshot!(env.masked(&stat), @"
    README.md | 2 +-
    committed | 2 ++
    not known | 2 ++
    staged  | 1 +
    4 files changed, 6 insertions(+), 1 deletion(-)
    ");
    let text = env.gt(&["task", "diff", &id]).ok().stdout;
    assert_eq!(text, patch);
    let short = env.json(&["task", "diff", &id, "--stat"]);
    assert_eq!(short["patch"], Value::Null);
    assert_eq!(env.git(&dir, &["status", "--porcelain"]), status);
    let left = fs::read_dir(env.town().join(".runtime/tmp")).unwrap();
    assert_eq!(left.count(), 0, "nothing of it stays");
    env.gt(&["task", "diff", &create(&env)]).fails(3);
}

#[test]
fn a_person_merges_a_task_and_its_agent_stays() {
    let (env, id, dir) = running();
    let agent = format!("task/{id}");
    env.gt(&["task", "merge", &id]).fails(4);
    commit(&env, &dir, "new", "x\n");
    fs::write(dir.join("forgotten"), "x\n").unwrap();
    assert_snapshot!(env.snapshot(&["task", "merge", &id]), @"
    exit code: 4
    --- stderr
    error: 1 changed file is not committed in ~/gastown-gt-[ID]
    caused by: forgotten
    hint: commit what belongs to the work, and remove the rest
    ");
    fs::remove_file(dir.join("forgotten")).unwrap();
    let merged = env.json(&["task", "merge", &id]);
    assert_eq!(merged["result"], "merged", "{merged}");
    let commit_id = merged["commit"].as_str().unwrap();
    let offered = env.git(
        &env.path("source-gastown"),
        &["rev-parse", "gt/merged/main"],
    );
    assert_eq!(offered.trim(), commit_id);
    assert_eq!(env.json(&["work", "show", &id])["status"], "closed");
    assert_eq!(env.agent(&agent)["health"], "healthy");
    assert!(dir.exists());
}

#[test]
fn a_branch_in_conflict_is_not_queued_and_goes_in_once_it_is_none() {
    let (env, id, dir) = running();
    commit(&env, &dir, "README.md", "ours\n");
    commit_to_base(&env, "README.md", "theirs\n");
    let refused = env.gt(&["task", "merge", &id, "--json"]).fails(1);
    assert_snapshot!(env.masked(&refused.stderr), @r#"{"error":{"kind":"failed","message":"gt-[ID] is in conflict with main, and was not queued","causes":["README.md"],"hints":["`gt task update gt-[ID]` brings them together"]}}"#);
    let refused = refused.json();
    assert_eq!(refused["result"], "conflict", "{refused}");
    assert_eq!(refused["files"], json!(["README.md"]));
    assert_eq!(env.json(&["mq", "list"]), json!([]));
    env.gt(&["task", "update", &id]).fails(1);
    fs::write(dir.join("README.md"), "both\n").unwrap();
    env.git(&dir, &["add", "."]);
    env.git(&dir, &["commit", "--quiet", "--no-edit"]);
    assert_eq!(env.json(&["task", "merge", &id])["result"], "merged");
}

#[test]
fn branch_submitted_earlier_is_merged_at_its_current_commit() {
    let (env, id, dir) = running();
    commit(&env, &dir, "new", "1\n");
    let mut by_agent = env.gt_command(&["done"]);
    let by_agent = by_agent.env("GT_ROLE", format!("task/{id}"));
    crate::env::run(by_agent.current_dir(&dir)).ok();
    let entry = env.json(&["mq", "list"])[0]["id"].clone();
    let last = commit(&env, &dir, "new", "2\n");
    let merged = env.json(&["task", "merge", &id]);
    assert_eq!(merged["result"], "merged", "{merged}");
    assert_eq!(merged["merge"], entry);
    let source = env.path("source-gastown");
    env.git(
        &source,
        &["merge-base", "--is-ancestor", &last, "gt/merged/main"],
    );
}

#[test]
fn paused_task_with_uncommitted_changes_is_not_merged() {
    let (env, id, dir) = running();
    fs::write(dir.join("new"), "x\n").unwrap();
    env.gt(&["task", "pause", &id]).ok();
    assert_snapshot!(env.snapshot(&["task", "merge", &id]), @"
    exit code: 4
    --- stderr
    error: gt-[ID] is paused: the last commit of its branch holds uncommitted changes
    hint: `gt task resume gt-[ID]` undoes it; `--keep-wip` keeps it as an ordinary commit
    ");
}

#[test]
fn a_branch_that_went_on_from_a_pause_is_not_merged_with_its_commit() {
    let (mut env, id, dir) = running();
    let log = stand_in_for_gh(&mut env, false);
    wait_state(&env, &id, "idle");
    fs::write(dir.join("new"), "x\n").unwrap();
    env.gt(&["task", "pause", &id]).ok();
    let wip = head(&env, &dir);
    commit(&env, &dir, "more", "x\n");
    let refused = |id: &str| {
        for word in ["merge", "pr"] {
            let answer = env.gt(&["task", word, id]).fails(4);
            let words = &answer.stderr;
            assert!(words.contains("git reset --soft"), "{word}: {words}");
        }
        let mut by_agent = env.gt_command(&["done"]);
        let by_agent = by_agent.env("GT_ROLE", format!("task/{id}"));
        let answer = crate::env::run(by_agent.current_dir(&dir)).fails(4);
        assert!(answer.stderr.contains("--keep-wip"), "{}", answer.stderr);
    };
    refused(&id);
    // The WIP commit is recognised after the resume and after a rebase.
    let resumed = env.json(&["task", "resume", &id]);
    assert_eq!(resumed["kept"]["commit"], json!(wip), "{resumed}");
    refused(&id);
    let parent = format!("{wip}^");
    env.git(&dir, &["rebase", "--quiet", "--force-rebase", &parent]);
    assert_ne!(env.git(&dir, &["rev-parse", "HEAD^"]).trim(), wip);
    refused(&id);
    assert_eq!(env.json(&["mq", "list"]), json!([]));
    assert_eq!(calls(&log).len(), 0);
    // Follow the hint.
    env.git(&dir, &["reset", "--quiet", "--soft", &parent]);
    env.git(&dir, &["commit", "--quiet", "-m", "Both"]);
    assert_eq!(env.json(&["task", "merge", &id])["result"], "merged");
    let source = env.path("source-gastown");
    let words = env.git(&source, &["log", "--format=%s", "gt/merged/main"]);
    assert!(words.contains("Both") && !words.contains("wip:"), "{words}");
    assert_eq!(env.git(&source, &["show", "gt/merged/main:new"]), "x\n");
}

#[test]
fn commit_of_a_pause_is_merged_on_request() {
    let (env, id, dir) = running();
    wait_state(&env, &id, "idle");
    fs::write(dir.join("new"), "x\n").unwrap();
    env.gt(&["task", "pause", &id]).ok();
    let wip = head(&env, &dir);
    commit(&env, &dir, "more", "x\n");
    env.gt(&["task", "resume", &id]).ok();
    env.gt(&["task", "merge", &id]).fails(4);
    let kept = env.json(&["task", "resume", &id, "--keep-wip"]);
    assert_eq!(kept["kept"]["commit"], json!(wip), "{kept}");
    assert_eq!(env.json(&["task", "merge", &id])["result"], "merged");
}

/// Installs a stand-in for gh that logs its arguments and input and answers like gh, without
/// creating anything.
fn stand_in_for_gh(env: &mut TestEnv, has_one: bool) -> PathBuf {
    let (bin, log) = (env.path("bin"), env.path("gh-words"));
    fs::create_dir(&bin).unwrap();
    let listed = match has_one {
        true => r#"[{"url":"https://example.com/pull/1"}]"#,
        false => "[]",
    };
    let script = format!(
        "#!/bin/sh\nfor word; do printf '%s\\0' \"$word\" >> '{log}'; done\nprintf '\\n' >> '{log}'\n\
         case $2 in list) echo '{listed}';; create) cat > '{log}-text'; echo Creating; echo https://example.com/pull/2;; esac\n",
        log = log.display()
    );
    let program = bin.join("gh");
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap();
    env.set("PATH", &format!("{}:{path}", bin.display()));
    log
}

#[test]
fn hanging_gh_ends_with_its_caller() {
    let (mut env, id, dir) = running();
    commit(&env, &dir, "new", "x\n");
    stand_in_for_gh(&mut env, false);
    let pid_file = env.path("gh-pid");
    let script = format!(
        "#!/bin/sh\necho $$ > '{0}.new'; mv '{0}.new' '{0}'; exec sleep 1000\n",
        pid_file.display()
    );
    fs::write(env.path("bin/gh"), script).unwrap();
    // The end of a terminal may send the signal twice.
    for signals in [&[Signal::INT][..], &[Signal::HUP, Signal::HUP]] {
        let child = env.spawn(&["task", "pr", &id]);
        let pid = wait_until("gh to run", TIMEOUT, || fs::read_to_string(&pid_file).ok());
        // The signal goes only to gt, which must end gh itself.
        for signal in signals {
            crate::env::signal(child.id(), *signal);
        }
        let output = child.wait_with_output().unwrap();
        let pid = pid.trim().parse().unwrap();
        wait_until("gh to be gone", TIMEOUT, || {
            (!crate::env::is_alive(pid)).then_some(())
        });
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(
            words.contains("`gh pr list` was stopped: interrupted"),
            "{words}"
        );
        fs::remove_file(&pid_file).unwrap();
    }
}

#[test]
fn task_pr_that_ignores_hangups_outlives_its_terminal() {
    let (mut env, id, dir) = running();
    commit(&env, &dir, "new", "x\n");
    stand_in_for_gh(&mut env, true);
    let gh = env.path("bin/gh");
    let waits = format!(
        "#!/bin/sh\ntouch '{0}'; while [ -e '{0}' ]; do sleep 0.05; done\n",
        env.path("waits").display()
    );
    let script = fs::read_to_string(&gh).unwrap();
    fs::write(&gh, script.replacen("#!/bin/sh\n", &waits, 1)).unwrap();
    let mut deaf = env.command("sh");
    let gt = env!("CARGO_BIN_EXE_gt");
    let child = deaf
        .args(["-c", "trap '' HUP; exec \"$0\" task pr \"$1\"", gt, &id])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until("gh to run", TIMEOUT, || {
        env.path("waits").exists().then_some(())
    });
    crate::env::signal(child.id(), Signal::HUP);
    fs::remove_file(env.path("waits")).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn gh_has_the_whole_text_or_none_of_it() {
    let (mut env, id, dir) = running();
    commit(&env, &dir, "new", "x\n");
    let log = stand_in_for_gh(&mut env, false);
    let gh = env.path("bin/gh");
    // The body exceeds the pipe buffer, and the writer is killed before the body is read.
    let script = fs::read_to_string(&gh).unwrap();
    fs::write(&gh, script.replace("create) ", "create) kill -9 $PPID; ")).unwrap();
    let body = "x".repeat(100_000);
    let output = env.gt(&["task", "pr", &id, "--body", &body]);
    assert_ne!(output.code, 0);
    let read = PathBuf::from(format!("{}-text", log.display()));
    wait_until("all is read", TIMEOUT, || {
        (fs::read_to_string(&read).ok()? == body).then_some(())
    });
    let left = fs::read_dir(env.town().join(".runtime/tmp")).unwrap();
    assert_eq!(left.count(), 0, "nothing of it stays");
}

fn calls(log: &Path) -> Vec<Vec<String>> {
    let text = fs::read_to_string(log).unwrap_or_default();
    let calls = text.split_terminator("\0\n");
    calls
        .map(|call| call.split('\0').map(str::to_owned).collect())
        .collect()
}

#[test]
fn pull_request_has_the_title_and_text_of_the_item() {
    let (mut env, id, dir) = running();
    let log = stand_in_for_gh(&mut env, false);
    let hostile = "Fix \"it\"; $(touch evil)\n--draft";
    env.gt(&["work", "update", &id, "--description", hostile])
        .ok();
    env.gt(&["task", "pr", &id]).fails(4);
    let last = commit(&env, &dir, "new", "x\n");
    let source = env.path("source-gastown");
    let branches = || env.git(&source, &["branch", "--list", &id]);
    let described = env.json(&["task", "pr", &id, "--dry-run", "--draft"]);
    assert_eq!(described["command"][0], "gh", "{described}");
    assert_snapshot!(env.snapshot(&["task", "pr", &id, "--dry-run"]), @r#"
    exit code: 0
    --- stdout
    gt-[ID] would be pushed. Then:
    'gh' 'pr' 'create' '--head=gt-[ID]' '--base=main' '--title=Fix it' '--body-file=-'
    with this text:
        Fix "it"; $(touch evil)
        --draft

        gt-[ID]
    "#);
    assert_eq!(branches(), "", "nothing was pushed");
    assert_eq!(calls(&log).len(), 0);
    let made = env.json(&["task", "pr", &id]);
    assert_eq!(made["url"], "https://example.com/pull/2", "{made}");
    assert_eq!(made["created"], true);
    let pushed = env.git(&source, &["rev-parse", &id]);
    assert_eq!(pushed.trim(), last);
    let calls = calls(&log);
    assert_eq!(calls[0][..2], ["pr", "list"]);
    assert_eq!(
        calls[1],
        [
            "pr".to_owned(),
            "create".to_owned(),
            format!("--head={id}"),
            "--base=main".to_owned(),
            "--title=Fix it".to_owned(),
            "--body-file=-".to_owned(),
        ]
    );
    let text = fs::read_to_string(env.path("gh-words-text")).unwrap();
    assert_eq!(text, format!("{hostile}\n\n{id}"));
    assert!(!dir.join("evil").exists());
}

#[test]
fn branch_of_another_task_is_not_pushed() {
    let (mut env, id, dir) = cleanup::with_bare_remote();
    let log = stand_in_for_gh(&mut env, false);
    let refs = || env.git(&env.path("remote.git"), &["for-each-ref"]);
    let before = refs();
    for branch in ["main", "other"] {
        env.git(&dir, &["switch", "--quiet", "-C", branch]);
        commit(&env, &dir, branch, "x\n");
        for words in [
            ["task", "pr", &id, "--json"],
            ["task", "pr", &id, "--dry-run"],
            ["task", "merge", &id, "--json"],
        ] {
            let answer = env.gt(&words).fails(4);
            let hint = format!("git switch {id}");
            assert!(answer.stderr.contains(&hint), "{}", answer.stderr);
        }
    }
    assert_eq!(refs(), before);
    assert_eq!(env.json(&["mq", "list"]), json!([]));
    assert_eq!(calls(&log).len(), 0);
}

#[test]
fn existing_pull_request_is_named_and_missing_gh_is_an_error() {
    let (mut env, id, dir) = running();
    commit(&env, &dir, "new", "x\n");
    let log = stand_in_for_gh(&mut env, true);
    let found = env.json(&["task", "pr", &id, "--title", "-x"]);
    assert_eq!(found["url"], "https://example.com/pull/1", "{found}");
    assert_eq!(found["created"], false);
    assert_eq!(calls(&log).len(), 1);
    // A PATH with git and without gh.
    let bin = env.path("no-gh");
    fs::create_dir(&bin).unwrap();
    for program in ["git", "tmux"] {
        let found = std::env::split_paths(&std::env::var_os("PATH").unwrap())
            .map(|dir| dir.join(program))
            .find(|path| path.exists())
            .unwrap();
        std::os::unix::fs::symlink(found, bin.join(program)).unwrap();
    }
    env.set("PATH", bin.to_str().unwrap());
    assert_snapshot!(env.snapshot(&["task", "pr", &id]), @"
    exit code: 5
    --- stderr
    error: a pull request needs gh, which is not on the PATH
    hint: install it from https://cli.github.com, then `gh auth login`
    hint: `gt task merge` brings the branch into the base without it
    ");
}

//! `gt task update` and `gt task attach`: merges, conflicts and questions.

use super::*;
use crate::errors::interrupt;
use insta::assert_snapshot;
use serde_json::json;

#[test]
fn update_merges_the_base_and_asks_once() {
    let (env, id, dir) = running();
    let up_to_date = env.json(&["task", "update", &id]);
    assert_eq!(up_to_date["result"], "up_to_date", "{up_to_date}");
    // Without own commits the branch is fast-forwarded.
    let base = commit_to_base(&env, "theirs", "1\n");
    let moved = env.json(&["task", "update", &id]);
    assert_eq!(moved["result"], "merged", "{moved}");
    assert_eq!(moved["commits"], 1);
    assert_eq!(head(&env, &dir), base);
    // With own commits and uncommitted files.
    let own = commit(&env, &dir, "ours", "1\n");
    fs::write(dir.join("not-committed"), "x\n").unwrap();
    commit_to_base(&env, "theirs", "2\n");
    let base = commit_to_base(&env, "more", "1\n");
    let merged = env.json(&["task", "update", &id]);
    assert_eq!(merged["result"], "merged");
    assert_eq!(merged["commits"], 2);
    let parents = env.git(&dir, &["log", "-1", "--format=%P%n%s"]);
    assert_eq!(
        parents.trim(),
        format!("{own} {base}\nMerge main into {id}")
    );
    assert_eq!(read(&dir, "theirs"), "2\n");
    assert_eq!(read(&dir, "not-committed"), "x\n");
    assert_eq!(env.json(&["task", "update", &id])["result"], "up_to_date");
}

#[test]
fn update_interrupted_during_a_fetch_changes_nothing() {
    let (env, id, dir) = running();
    commit_to_base(&env, "theirs", "1\n");
    let before = head(&env, &dir);
    // A listener that accepts connections and never answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("git://{}/x.git", silent.local_addr().unwrap());
    let repository = env.town().join("gastown/.repo.git");
    env.git(&repository, &["remote", "set-url", "origin", &url]);
    for words in [&["task", "update"][..], &["task", "cleanup", "--yes"]] {
        let child = env.spawn(&[words, &[&id]].concat());
        let _connection = silent.accept().unwrap();
        interrupt(&child);
        let output = child.wait_with_output().unwrap();
        assert!(!output.status.success(), "{words:?}: {output:?}");
        assert_eq!(head(&env, &dir), before);
        wait_state(&env, &id, "idle");
    }
}

#[test]
fn conflicting_uncommitted_changes_are_not_touched() {
    let (env, id, dir) = running();
    let before = head(&env, &dir);
    commit_to_base(&env, "README.md", "theirs\n");
    fs::write(dir.join("README.md"), "mine\n").unwrap();
    assert_snapshot!(env.snapshot(&["task", "update", &id]), @"
    exit code: 4
    --- stderr
    error: gt-[ID] cannot be merged into as it is
    caused by: `git -C ~/gastown-gt-[ID] -c commit.gpgSign=false merge --quiet --no-edit --no-stat --no-autostash --no-verify-signatures --ff-only [HEX]` failed (exit status: 1)
    caused by: error: Your local changes to the following files would be overwritten by merge:
               	README.md
               Please commit your changes or stash them before you merge.
               Aborting
    hint: commit or stash what is changed in ~/gastown-gt-[ID], then try again
    ");
    assert_eq!(head(&env, &dir), before);
    assert_eq!(read(&dir, "README.md"), "mine\n");
}

#[test]
fn conflicts_are_given_to_an_agent_beside_the_tasks_own() {
    let (env, id, dir) = running();
    commit(&env, &dir, "README.md", "ours\n");
    commit(&env, &dir, "two words", "ours\n");
    commit_to_base(&env, "two words", "theirs\n");
    commit_to_base(&env, "README.md", "theirs\n");
    let container = format!("{id}-az");
    let tags = "#{@gt_agent} #{@gt_session} #{@gt_harness_session} #{@gt_pane} #{@gt_prompts}";
    let before = env.format(&container, tags);
    let answer = env.gt(&["task", "update", &id, "--json"]).fails(1);
    let answer = answer.json();
    assert_eq!(answer["result"], "conflict", "{answer}");
    assert_eq!(answer["files"], json!(["README.md", "two words"]));
    assert_eq!(answer["resolver"], "demo");
    assert_eq!(answer["warnings"], json!([]));
    assert!(read(&dir, "README.md").contains("<<<<<<<"));
    // The resolver's window shows its instructions.
    let mut names = window_names(&env, &container);
    names.sort();
    assert_eq!(names, ["merge", "task"]);
    let pane = format!("={container}:=merge");
    let screen = || {
        let look = gt_tmux::Command::new("capture-pane").args(["-p", "-J"]);
        env.tmux(look.option("-t", pane.clone()))
    };
    wait_until("its prompt", TIMEOUT, || {
        let prompt = "There are merge conflicts in: README.md, two words. Please resolve these \
                      conflicts, then stage and commit.";
        screen().contains(prompt).then_some(())
    });
    // The resolver does not act as the task's agent.
    let ask = gt_tmux::Command::new("display-message").arg("-p");
    let pid = env.tmux(ask.option("-t", pane.clone()).arg("#{pane_pid}"));
    let environ = fs::read(format!("/proc/{pid}/environ")).unwrap();
    let environ = String::from_utf8_lossy(&environ);
    for variable in ["GT_ROLE=", "GT_SESSION=", "GT_SESSION_UUID="] {
        let is_it = |pair: &str| pair.starts_with(variable);
        assert!(!environ.split('\0').any(is_it), "{variable}");
    }
    wait_until("the end of its turn", TIMEOUT, || {
        screen()
            .contains("● You said: There are merge conflicts")
            .then_some(())
    });
    assert_eq!(env.format(&container, tags), before);
    // Until the merge is finished, an update reports it.
    let again = env.gt(&["task", "update", &id, "--json"]).fails(1).json();
    assert_eq!(again["result"], "merging", "{again}");
    assert_eq!(again["files"], json!(["README.md", "two words"]));
    fs::write(dir.join("README.md"), "both\n").unwrap();
    env.git(&dir, &["add", "README.md"]);
    let again = env.gt(&["task", "update", &id, "--json"]).fails(1).json();
    assert_eq!(again["files"], json!(["two words"]));
    assert_snapshot!(env.snapshot(&["task", "attach", &id, "--merge"]), @"
    exit code: 1
    --- stderr
    error: a merge is under way in gt-[ID], and not all is resolved
    caused by: two words
    hint: `gt task attach gt-[ID] --skip` goes there: see its window merge; then try again
    hint: `gt task abort-merge gt-[ID]` aborts the merge
    ");
    // A closed window means that a person resolves the conflict by hand.
    let close = gt_tmux::Command::new("kill-window").option("-t", pane.clone());
    env.tmux(close);
    let again = env.gt(&["task", "update", &id, "--json"]).fails(1).json();
    assert_eq!(again["result"], "merging", "{again}");
    assert_eq!(window_names(&env, &container), ["task"]);
    // After the merge is committed, an update succeeds again.
    fs::write(dir.join("two words"), "both\n").unwrap();
    env.git(&dir, &["add", "two words"]);
    env.git(&dir, &["commit", "--quiet", "--no-edit"]);
    assert_eq!(env.json(&["task", "update", &id])["result"], "up_to_date");
    let subject = env.git(&dir, &["log", "-1", "--format=%s"]);
    assert_eq!(subject.trim(), format!("Merge main into {id}"));
}

#[test]
fn a_merge_is_taken_back_and_its_window_closed() {
    let (env, id, dir) = running();
    env.gt(&["task", "abort-merge", &id]).fails(4);
    let own = commit(&env, &dir, "README.md", "ours\n");
    commit_to_base(&env, "README.md", "theirs\n");
    env.gt(&["task", "update", &id]).fails(1);
    assert_eq!(windows(&env, &id)[0]["name"], "merge");
    let aborted = env.json(&["task", "abort-merge", &id]);
    assert_eq!(aborted["files"], json!(["README.md"]));
    assert_eq!(head(&env, &dir), own);
    assert_eq!(read(&dir, "README.md"), "ours\n");
    assert_eq!(env.git(&dir, &["status", "--porcelain"]), "");
    assert_eq!(window_names(&env, &format!("{id}-az")), ["task"]);
    // A second update starts the merge again.
    let again = env.gt(&["task", "update", &id, "--json"]).fails(1).json();
    assert_eq!(again["result"], "conflict");
    env.gt(&["task", "abort-merge", &id]).ok();
}

#[test]
fn without_a_container_the_conflicts_get_one_with_a_shell() {
    let (env, id, dir) = running();
    commit(&env, &dir, "README.md", "ours\n");
    commit_to_base(&env, "README.md", "theirs\n");
    env.gt(&["task", "stop", &id]).ok();
    let answer = env.gt(&["task", "update", &id, "--json"]).fails(1).json();
    assert_eq!(answer["resolver"], "demo", "{answer}");
    let shown = env.json(&["task", "show", &id]);
    assert_eq!(shown["session"], Value::Null, "no agent was started");
    assert_eq!(shown["windows"][0]["name"], "merge");
    // It also applies when the container ends later.
    env.gt(&["task", "stop", &id]).ok();
    let again = env.gt(&["task", "update", &id, "--json"]).fails(1).json();
    assert_eq!(again["result"], "conflict", "{again}");
    assert_eq!(windows(&env, &id)[0]["name"], "merge");
    // A resolver that exits closes its window.
    let pane = format!("={id}-az:=merge");
    let screen = || {
        let look = gt_tmux::Command::new("capture-pane").args(["-p", "-J"]);
        env.tmux(look.option("-t", pane.clone()))
    };
    wait_until("the end of its turn", TIMEOUT, || {
        let is_over = screen().contains("● You said: There are merge conflicts");
        is_over.then_some(())
    });
    let quit = gt_tmux::Command::new("send-keys").option("-t", pane.clone());
    env.tmux(quit.args(["C-c", "C-c"]));
    wait_until("the window to close", TIMEOUT, || {
        windows(&env, &id).is_empty().then_some(())
    });
}

#[test]
fn board_shows_the_branch_as_git_does() {
    let (env, id, dir) = running();
    let home = env.home().to_str().unwrap().to_owned();
    let around = gt_town::Surroundings {
        env: [
            ("HOME".to_owned(), home),
            ("PATH".to_owned(), std::env::var("PATH").unwrap()),
        ]
        .into(),
        gt: env!("CARGO_BIN_EXE_gt").into(),
        current_dir: env.home().to_owned(),
        ..gt_town::Surroundings::default()
    };
    let town = gt_town::Town::open(&env.town(), around).unwrap();
    let facts = || {
        let base = gt_town::workflow::task::base_of(&town, "gastown").unwrap();
        gt_town::workflow::task::branch_facts(&town, &dir, &base).unwrap()
    };
    let fresh = facts();
    assert_eq!(
        (fresh.name.as_str(), fresh.base.as_str()),
        (id.as_str(), "main")
    );
    assert_eq!((fresh.ahead, fresh.behind, fresh.dirty), (0, 0, 0));
    commit(&env, &dir, "README.md", "1\n2\n");
    fs::write(dir.join("not known"), "1\n2\n3").unwrap();
    fs::write(dir.join("made-ignored"), "1\n").unwrap();
    commit_to_base(&env, "README.md", "theirs\n");
    env.git(&dir, &["fetch", "--quiet", "origin"]);
    let changed = facts();
    assert_eq!((changed.ahead, changed.behind, changed.dirty), (1, 1, 1));
    assert_eq!((changed.added, changed.removed), (5, 1));
    assert!(!changed.merging);
    env.gt(&["task", "update", &id]).fails(1);
    let merging = facts();
    assert!(merging.merging);
    assert_eq!(merging.conflicts, ["README.md"]);
}

#[test]
fn beads_files_cause_no_conflict() {
    let (env, id, dir) = with_beads_changed();
    commit(&env, &dir, "code", "ours\n");
    commit_to_base(&env, ".beads/issues.jsonl", "theirs\n");
    commit_to_base(&env, ".beads/gone", "theirs\n");
    commit_to_base(&env, "other", "theirs\n");
    let merged = env.json(&["task", "update", &id]);
    assert_eq!(merged["result"], "merged", "{merged}");
    assert_eq!(read(&dir, ".beads/issues.jsonl"), "ours\n");
    assert!(!dir.join(".beads/gone").exists());
    assert_eq!(read(&dir, "other"), "theirs\n");
    assert_eq!(env.git(&dir, &["status", "--porcelain"]), "");
    // With a real conflict, the files of beads are resolved as well.
    commit(&env, &dir, ".beads/issues.jsonl", "ours again\n");
    commit(&env, &dir, "code", "ours again\n");
    commit_to_base(&env, ".beads/issues.jsonl", "theirs again\n");
    commit_to_base(&env, "code", "theirs\n");
    let conflict = env.gt(&["task", "update", &id, "--json"]).fails(1).json();
    assert_eq!(conflict["files"], json!(["code"]), "{conflict}");
    assert_eq!(read(&dir, ".beads/issues.jsonl"), "ours again\n");
}

#[test]
fn an_update_that_is_killed_is_gone_on_with_by_the_next() {
    for point in gt_town::workflow::task::UPDATE_FAULT_POINTS {
        let (env, id, dir) = running();
        commit(&env, &dir, "README.md", "ours\n");
        commit_to_base(&env, "README.md", "theirs\n");
        env.kill_at_fault(&["task", "update", &id, "--json"], point);
        let next = env.gt(&["task", "update", &id, "--json"]).fails(1).json();
        assert_eq!(next["files"], json!(["README.md"]), "{point}: {next}");
        let all = windows(&env, &id);
        assert_eq!(all.len(), 1, "{point}: {all:?}");
        assert_eq!(all[0]["name"], "merge", "{point}");
    }
}

#[test]
fn attach_during_a_merge_shows_its_window_without_a_question() {
    let (env, id, dir) = running();
    commit(&env, &dir, "README.md", "ours\n");
    commit_to_base(&env, "README.md", "theirs\n");
    env.gt(&["task", "update", &id]).fails(1);
    let container = format!("{id}-az");
    assert_eq!(env.format(&container, "#{window_name}"), "task");
    // There is no terminal to attach.
    assert_snapshot!(env.snapshot(&["task", "attach", &id]), @"
    exit code: 2
    --- stderr
    error: attaching needs a terminal
    hint: `gt peek gt-[ID]-az` shows its screen
    ");
    assert_eq!(env.format(&container, "#{window_name}"), "merge");
}

#[test]
fn attach_to_a_branch_that_is_behind_asks_first() {
    let (env, id, dir) = running();
    commit_to_base(&env, "theirs", "1\n");
    let base = commit_to_base(&env, "theirs", "2\n");
    // A dry run fetches, and says how far it is behind.
    assert_snapshot!(env.snapshot(&["task", "attach", &id, "--dry-run"]), @"
    exit code: 0
    --- stdout
    gt-[ID] is 2 commits behind main.
    ");
    assert_eq!(
        env.json(&["task", "attach", &id, "--dry-run"]),
        json!({"bead": id, "branch": id, "base": "main", "behind": 2, "merging": false})
    );
    // Without a terminal there is no question, only an error.
    assert_snapshot!(env.snapshot(&["task", "attach", &id]), @"
    exit code: 4
    --- stderr
    error: gt-[ID] is 2 commits behind main
    hint: `--merge` merges main first, `--skip` goes there as it is
    ");
    // Run in a person's tmux session.
    let gt = env!("CARGO_BIN_EXE_gt");
    let person = Person::at(
        &env,
        &format!("{gt} task attach {id}; {gt} task attach {id}"),
    );
    let screen = person.sees("Esc: Cancel");
    for line in [
        "↓ Branch Behind main",
        "2 commits behind",
        "Merge main into your branch before attaching?",
        "m: Merge & Attach (pull latest main)",
        "s: Skip & Attach (attach without merge)",
    ] {
        assert!(screen.contains(line), "{line}: {screen}");
    }
    person.presses("x");
    person.presses("Escape");
    // The second call asks as well.
    wait_until("the second question", TIMEOUT, || {
        let look = gt_tmux::Command::new("capture-pane").arg("-p");
        let screen = env.tmux(look.target(Person::target()));
        (screen.matches("Esc: Cancel").count() == 2).then_some(())
    });
    assert_ne!(head(&env, &dir), base);
    person.presses("m");
    // The session has no client that could be switched.
    person.sees(&format!("{id}: 2 commits of main merged."));
    person.sees("ended-with-");
    assert_eq!(head(&env, &dir), base);
    // An item without a task cannot be attached.
    let other = create(&env);
    env.gt(&["task", "attach", &other]).fails(3);
}

#[test]
fn a_terminal_that_attaches_shows_the_task() {
    let (env, id, dir) = running();
    let base = commit_to_base(&env, "theirs", "1\n");
    let gt = env!("CARGO_BIN_EXE_gt");
    // Outside tmux, as far as the command can tell.
    Person::at(&env, &format!("unset TMUX; {gt} task attach {id} --merge"));
    wait_client(&env, &id);
    assert_eq!(head(&env, &dir), base);
}

#[test]
fn a_task_without_a_worktree_is_not_behind() {
    let (env, id) = with_project("");
    env.gt(&["start", &format!("task/{id}")]).ok();
    assert!(!folder(&env, &id).exists());
    let gt = env!("CARGO_BIN_EXE_gt");
    Person::at(&env, &format!("unset TMUX; {gt} task attach {id}"));
    wait_client(&env, &id);
}

fn wait_client(env: &TestEnv, id: &str) {
    wait_until("a client of the task", TIMEOUT, || {
        let clients = gt_tmux::Command::new("list-clients").args(["-F", "#{session_name}"]);
        let clients = env.tmux(clients);
        clients
            .lines()
            .any(|name| name == format!("{id}-az"))
            .then_some(())
    });
}

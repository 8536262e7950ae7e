//! The resolver of a merge conflict: its questions and failures reach people.

use super::*;
use crate::env::signal;
use crate::notify::{notes, with_notes};
use insta::assert_snapshot;
use rustix::process::Signal;
use std::process::Child;

/// Makes a task with a commit, and two watchers.
fn watched() -> (TestEnv, String, PathBuf, Vec<Child>) {
    let (env, id, dir) = running();
    with_notes(&env, "on = ['waiting']");
    let mut watches: Vec<Child> = (0..2)
        .map(|_| env.spawn(&["watch", "--json", "--first"]))
        .collect();
    for watch in &mut watches {
        // The watchers' first snapshot produces no notice.
        use std::io::BufRead;
        let mut line = String::new();
        let stdout = watch.stdout.as_mut().unwrap();
        std::io::BufReader::new(stdout)
            .read_line(&mut line)
            .unwrap();
        assert!(line.contains(&id), "{line}");
    }
    (env, id, dir, watches)
}

fn end(watches: Vec<Child>) {
    for mut watch in watches {
        signal(watch.id(), Signal::TERM);
        assert!(watch.wait().unwrap().success());
    }
}

/// Merges the base with a conflict in a file whose name contains directives for the resolver.
fn conflict(env: &TestEnv, id: &str, dir: &Path, directives: &str) -> Value {
    commit(env, dir, directives, "ours\n");
    commit_to_base(env, directives, "theirs\n");
    assert_eq!(card(env, id)["column"], "review");
    env.gt(&["task", "update", id, "--json"]).fails(1).json()
}

fn card(env: &TestEnv, id: &str) -> Value {
    let board = env.json(&["board"]);
    let cards = board["cards"].as_array().unwrap();
    let card = cards.iter().find(|card| card["id"] == id);
    card.unwrap_or_else(|| panic!("{board}")).clone()
}

/// Waits until the reason of the resolver in `gt task show` contains `text`, and returns the
/// resolver.
#[track_caller]
fn wait_reason(env: &TestEnv, id: &str, text: &str) -> Value {
    wait_until(text, TIMEOUT, || {
        let resolver = env.json(&["task", "show", id])["resolver"].clone();
        let reason = resolver["reason"].as_str()?.to_owned();
        reason.contains(text).then_some(resolver)
    })
}

/// Waits for a notification that contains a text; returns all notifications so far.
#[track_caller]
fn wait_note(env: &TestEnv, text: &str) -> Vec<String> {
    wait_until(&format!("a notification with {text:?}"), TIMEOUT, || {
        Some(notes(env)).filter(|notes| notes.iter().any(|note| note.contains(text)))
    })
}

#[test]
fn question_of_a_resolver_is_notified_shown_and_answered() {
    let (env, id, dir, watches) = watched();
    let container = format!("{id}-az");
    let tags = "#{@gt_state} #{@gt_harness} #{@gt_session} #{@gt_told}";
    let before = env.format(&container, tags);
    let updated = conflict(
        &env,
        &id,
        &dir,
        "[[tool=touch made-first]] [[tool=touch made-second]]",
    );
    assert_eq!(updated["result"], "conflict", "{updated}");
    // If the resolver asks before it is seen busy, the update prints how to answer.
    for hint in updated["warnings"].as_array().unwrap() {
        let hint = hint.as_str().unwrap();
        let answers = format!("`gt answer task/{id} --window merge` answers");
        assert!(hint.starts_with("merge asks: "), "{hint}");
        assert!(hint.ends_with(&answers), "{hint}");
    }
    // With the window `merge` selected, the container's tags are still those of the agent.
    let select = gt_tmux::Command::new("select-window");
    env.tmux(select.option("-t", format!("={container}:=merge")));
    let window = env.format(&container, "#{window_name}");
    assert_eq!(window, "merge");
    assert_eq!(env.format(&container, tags), before);
    let made = |name: &str| dir.join(name).exists();
    // Every view of the task shows the question, and the state of the task's agent does not change.
    let resolver = wait_reason(&env, &id, "made-first");
    assert_eq!(resolver["state"], "waiting");
    assert_eq!(resolver["window"], "merge");
    let reason = resolver["reason"].as_str().unwrap();
    assert!(reason.starts_with("merge asks: "), "{reason}");
    let shown = card(&env, &id);
    assert_eq!(shown["column"], "needs_you", "{shown}");
    assert_eq!(shown["resolver"]["reason"], reason);
    assert_eq!(shown["session"]["state"], "idle", "{shown}");
    let told = env.gt(&["task", "show", &id]).ok().stdout;
    assert_snapshot!(env.masked(&told), @"
    item  gt-[ID]
    title  Fix it
    status  hooked
    agent  task/gt-[ID]
    container  gt-[ID]-az
    harness  demo
    state  [STATE]
    because  started
    branch  gt-[ID]
    folder  ~/gastown-gt-[ID]
    resolver  merge asks: Do you want to proceed? (Bash command · touch made-first)
    window  merge running
    ");
    // Only the open question can be answered, and only in its window.
    let agent = format!("task/{id}");
    env.gt(&["answer", &agent, "yes"]).fails(4);
    env.gt(&["answer", &agent, "--window", "task", "yes"])
        .fails(2);
    let asked = env.json(&["answer", &agent, "--window", "merge"]);
    assert_eq!(asked["window"], "merge");
    let question = asked["question"].as_str().unwrap();
    assert!(question.contains("touch made-first"), "{question}");
    let answer = |expected: &str| {
        let words = ["answer", &agent, "--window", "merge", "yes", "--json"];
        env.gt(&[&words[..], &["--expect", expected]].concat())
    };
    answer("another-1").fails(4);
    assert!(!made("made-first"));
    let answered = answer(asked["fingerprint"].as_str().unwrap()).ok().json();
    assert_eq!(answered["window"], "merge");
    wait_reason(&env, &id, "made-second");
    assert!(made("made-first") && !made("made-second"));
    answer(asked["fingerprint"].as_str().unwrap()).fails(4);
    env.gt(&["answer", &agent, "--window", "merge", "yes"]).ok();
    // The resolver has finished, and the conflict remains.
    wait_reason(&env, &id, "merge waits at its prompt");
    assert_eq!(card(&env, &id)["column"], "needs_you");
    assert!(made("made-second"));
    env.gt(&["answer", &agent, "--window", "merge"]).fails(4);
    // One notice per question, however many watchers see it.
    let told = wait_until("both are told", TIMEOUT, || {
        Some(notes(&env)).filter(|told| told.len() >= 2)
    });
    assert_eq!(told.len(), 2, "{told:?}");
    for (note, about) in told.iter().zip(["made-first", "made-second"]) {
        assert!(
            note.starts_with(&format!("waiting task/{id}: merge asks: ")),
            "{note}"
        );
        assert!(note.contains(about), "{note}");
    }
    // A question of the agent itself is not a question of the window `merge`.
    env.gt(&["nudge", &agent, "[[tool=touch x]]"]).ok();
    wait_state(&env, &id, "waiting");
    let answer = env.gt(&["answer", &agent, "--window", "merge"]).fails(4);
    assert_snapshot!(answer.rendered(&env), @"
    exit code: 4
    --- stderr
    error: merge of task/gt-[ID] has no open question
    hint: its window merge shows it: `gt attach task/gt-[ID]`
    ");
    // An aborted merge produces no failure notice.
    env.gt(&["task", "abort-merge", &id]).ok();
    let shown = env.json(&["task", "show", &id]);
    assert_eq!(shown["resolver"], Value::Null, "{shown}");
    env.gt(&["answer", &agent, "--window", "merge"]).fails(3);
    end(watches);
    let told = notes(&env);
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(!told[2].contains("merge"), "{told:?}");
}

#[test]
fn redrawn_question_is_not_notified_again() {
    let (env, id, dir, watches) = watched();
    let words = "made-by-a-command-whose-words-fill-more-than-one-line".replace('-', " ");
    let directives = format!("[[tool=echo {words} and {words}]] [[tool=touch made-second]]");
    conflict(&env, &id, &dir, &directives);
    let whole = wait_reason(&env, &id, "line");
    let at = format!("={id}-az:=merge");
    for columns in ["70", "50", "100"] {
        let resize = gt_tmux::Command::new("resize-window");
        env.tmux(resize.option("-t", &at).args(["-x", columns]));
        wait_until("it is drawn anew", TIMEOUT, || {
            let resolver = env.json(&["task", "show", &id])["resolver"].clone();
            let is_other = resolver["reason"] != whole["reason"];
            (is_other && resolver["state"] == "waiting").then_some(())
        });
        // The absence of a notice cannot be awaited. The watchers poll twice a second, so all have
        // seen the question by then.
        std::thread::sleep(std::time::Duration::from_secs(1));
    }
    let agent = format!("task/{id}");
    env.gt(&["answer", &agent, "--window", "merge", "yes"]).ok();
    let told = wait_note(&env, "made-second");
    end(watches);
    assert_eq!(told.len(), 2, "{told:?}");
}

#[test]
fn failed_resolver_is_notified_once() {
    let (env, id, dir, watches) = watched();
    conflict(&env, &id, &dir, "[[delay=1]] [[exit=3]]");
    let resolver = wait_reason(&env, &id, "merge failed: exit status 3");
    assert_eq!(resolver["state"], "crashed");
    let shown = card(&env, &id);
    assert_eq!(shown["column"], "needs_you", "{shown}");
    assert_eq!(shown["resolver"]["reason"], resolver["reason"]);
    let agent = format!("task/{id}");
    env.gt(&["answer", &agent, "--window", "merge"]).fails(4);
    wait_until("it is told", TIMEOUT, || {
        (!notes(&env).is_empty()).then_some(())
    });
    // After the conflicts are resolved by hand, the failure no longer needs a person.
    env.git(&dir, &["add", "."]);
    env.git(&dir, &["commit", "--quiet", "--no-edit"]);
    assert_eq!(card(&env, &id)["column"], "review");
    end(watches);
    let told = notes(&env);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].starts_with(&format!(
            "waiting task/{id}: merge failed: exit status 3 [{id}]"
        )),
        "{told:?}"
    );
}

#[test]
fn question_that_the_start_answers_is_not_notified() {
    // A program that is slow after an answer, so that every watcher sees the question.
    let preset = r#"
[command]
program = "sh"
args = ["-c", "printf 'Do you trust it?\n\n❯ Yes\n  No\n'; read x; sleep 2; clear; echo ready; exec cat"]
prompt = "positional"
[process]
names = ["sh", "cat"]
[screen]
ready = ["^ready"]
waiting = ["Do you want"]
[[dialogs]]
name = "trust"
shows = ["Do you trust"]
choose = ["Yes"]
"#;
    let (env, id, dir, watches) = watched();
    fs::write(env.town().join("harnesses/slow.toml"), preset).unwrap();
    let slow = ["task", "start", &id, "--harness", "slow"];
    env.gt(&["task", "stop", &id]).ok();
    env.gt(&slow).ok();
    wait_state(&env, &id, "idle");
    let updated = conflict(&env, &id, &dir, "README.md");
    assert_eq!(updated["resolver"], "slow", "{updated}");
    let at = format!("={id}-az:=merge");
    let ask = gt_tmux::Command::new("display-message").arg("-p");
    let told = env.tmux(ask.option("-t", at).arg("#{@gt_beside} #{pane_tty}"));
    let (harness, tty) = told.trim().split_once(' ').unwrap();
    assert_eq!(harness, "slow", "it is up");
    // Later questions are for people.
    fs::write(tty, "Do you want it?\r\n").unwrap();
    let told = wait_note(&env, "Do you want");
    end(watches);
    assert_eq!(told.len(), 1, "{told:?}");
}

#[test]
fn question_that_accepts_no_answer_is_notified() {
    // A resolver that asks and accepts no answer.
    let preset = r#"
[command]
program = "sh"
args = ["-c", """case "$1" in
*conflicts*) printf 'Do you trust it?\n\n❯ Yes\n  No\n'; stty -echo; exec sleep 1000;;
*) echo ready; exec cat;;
esac""", "sh"]
prompt = "positional"
[process]
names = ["sh", "cat", "sleep"]
[screen]
ready = ["^ready"]
[[dialogs]]
name = "trust"
shows = ["Do you trust"]
choose = ["Yes"]
"#;
    let (env, id, dir, watches) = watched();
    fs::write(env.town().join("harnesses/deaf.toml"), preset).unwrap();
    env.gt(&["task", "stop", &id]).ok();
    env.gt(&["task", "start", &id, "--harness", "deaf"]).ok();
    wait_state(&env, &id, "idle");
    commit(&env, &dir, "README.md", "ours\n");
    commit_to_base(&env, "README.md", "theirs\n");
    let mut starter = env.spawn(&["task", "update", &id]);
    wait_until("it asks", TIMEOUT, || {
        let panes =
            gt_tmux::Command::new("list-panes").args(["-a", "-F", "#{pane_id} #{@gt_beside}"]);
        let panes = env.tmux(panes);
        let pane = panes.lines().find(|line| line.contains(" deaf "))?;
        let pane = pane.split(' ').next()?.to_owned();
        let shown = gt_tmux::Command::new("capture-pane").args(["-p", "-t", &pane]);
        env.tmux(shown).contains("No").then_some(())
    });
    let resolver = || env.json(&["task", "show", &id])["resolver"].clone();
    assert_eq!(resolver()["state"], "starting");
    starter.kill().unwrap();
    starter.wait().unwrap();
    assert_eq!(resolver()["state"], "waiting");
    assert_eq!(card(&env, &id)["column"], "needs_you");
    let told = wait_until("its question", TIMEOUT, || {
        Some(notes(&env)).filter(|told| !told.is_empty())
    });
    end(watches);
    assert!(told[0].contains("merge asks: Do you trust it?"), "{told:?}");
    assert_eq!(notes(&env).len(), 1, "{told:?}");
}

#[test]
fn failure_after_the_merge_is_not_notified() {
    let (env, id, dir, watches) = watched();
    conflict(&env, &id, &dir, "[[ask=Go on?|a|b]] [[exit=3]]");
    wait_reason(&env, &id, "Go on?");
    env.git(&dir, &["add", "."]);
    env.git(&dir, &["commit", "--quiet", "--no-edit"]);
    // The open question still needs a person; the later exit of the resolver does not.
    assert_eq!(card(&env, &id)["column"], "needs_you");
    let agent = format!("task/{id}");
    env.gt(&["answer", &agent, "--window", "merge", "a"]).ok();
    wait_reason(&env, &id, "merge failed: exit status 3");
    assert_eq!(card(&env, &id)["column"], "review");
    // Both watchers see the exit before this question.
    env.gt(&["nudge", &agent, "[[tool=touch x]]"]).ok();
    let told = wait_note(&env, "touch x");
    end(watches);
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].contains("merge asks: Go on?"), "{told:?}");
}

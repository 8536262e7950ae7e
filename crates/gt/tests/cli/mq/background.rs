//! The merge queue in the background: finished work is merged without another command, and the
//! submitter learns the result.

use crate::env::{TIMEOUT, TestEnv, is_alive, processes_of, signal};
use crate::mq::{MERGED, commit, files, finish, item, repository, status};
use gt_tmux::testing::wait_until;
use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

const TOAST: &str = "gastown/polecats/Toast";

/// Makes a town with automatic merge queues and additional settings.
fn automatic(names: &[&str], settings: &str) -> TestEnv {
    let env = TestEnv::with_crew(names);
    let path = env.town().join("town.toml");
    let text = fs::read_to_string(&path).unwrap();
    let text = text.replace("automatic = false\n", "");
    fs::write(&path, format!("{text}\n{settings}")).unwrap();
    env
}

#[track_caller]
fn wait_merge(env: &TestEnv, merge: &str, expected: &str) -> Value {
    wait_until(&format!("{merge} is {expected}"), TIMEOUT, || {
        let entry = env.json(&["mq", "status", merge]);
        (entry["status"] == expected).then_some(entry)
    })
}

/// Returns the mail of a recipient, oldest first.
fn messages(env: &TestEnv, reader: &str) -> Vec<Value> {
    let args = ["mail", "inbox", "--all", "--agent", reader];
    let args = if reader == "human" { &args[..3] } else { &args };
    let mut messages = env.json(args).as_array().unwrap().clone();
    messages.sort_by_key(|mail| mail["sent_at"].as_str().unwrap().to_owned());
    messages
        .iter()
        .map(|mail| env.json(&["mail", "read", mail["id"].as_str().unwrap()]))
        .collect()
}

#[track_caller]
fn wait_mail(env: &TestEnv, reader: &str, subject: &str) -> Value {
    wait_until(
        &format!("{reader} has a letter: {subject}"),
        TIMEOUT,
        || {
            let found = messages(env, reader);
            let mut found = found.into_iter();
            found.find(|mail| mail["subject"].as_str().unwrap().contains(subject))
        },
    )
}

/// Returns the background processes that merge.
fn runners(env: &TestEnv) -> Vec<u32> {
    let is_one = |pid: &u32| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).contains("internal\0merge\0")
    };
    processes_of(env.home())
        .into_iter()
        .filter(is_one)
        .collect()
}

/// Waits until exactly one process merges. A forked child has the same command line until it execs
/// another program.
fn wait_runner(env: &TestEnv) -> u32 {
    wait_until("one process merges", TIMEOUT, || match runners(env)[..] {
        [runner] => Some(runner),
        _ => None,
    })
}

/// Returns settings whose validation waits for a gate file, and the path of that file.
fn held_up(env: &TestEnv) -> (PathBuf, String) {
    let gate = env.path("gate");
    let line = format!("while ! test -e {}; do sleep 0.02; done", gate.display());
    let lines = toml::Value::from(vec![line]);
    (gate, format!("[rigs.gastown.merge]\nvalidate = {lines}\n"))
}

/// Hands in max's work and waits until its validation runs. Returns the path of the gate file, the
/// entry, and the process that merges.
fn run_held_up(env: &TestEnv) -> (PathBuf, String, u32) {
    let (gate, settings) = held_up(env);
    env.add_settings(&settings);
    let (_, merge) = finish(env, "max", "a.txt", "a\n");
    wait_merge(env, &merge, "merging");
    let runner = wait_runner(env);
    (gate, merge, runner)
}

#[test]
fn done_in_the_agents_own_pane_is_merged_without_another_command() {
    let env = automatic(&["max"], "");
    let id = item(&env, &["Write a poem", "--rig", "gastown"]);
    env.gt(&["sling", &id]).ok();
    let dir = env.town().join("gastown/polecats/Toast");
    commit(&env, &dir, "poem.txt", "Roses are red\n");
    let done = format!("[[tool={} done]]", env!("CARGO_BIN_EXE_gt"));
    env.gt(&["nudge", TOAST, &done]).ok();
    wait_until("the item is closed", TIMEOUT, || {
        (status(&env, &id) == "closed").then_some(())
    });
    assert_eq!(
        files(&env, &repository(&env), MERGED),
        ["README.md", "poem.txt"]
    );
    wait_until("its session is over", TIMEOUT, || {
        env.running().is_empty().then_some(())
    });
    let merge = env.json(&["mq", "list", "--all"])[0].clone();
    let commit = merge["merged_as"].as_str().unwrap();
    let mail = wait_mail(&env, "human", "is merged into main");
    let body = mail["body"].as_str().unwrap();
    for part in [commit, "Write a poem", "`gt mq pull gastown`"] {
        assert!(body.contains(part), "{part}: {body}");
    }
    // The worker's next session has other work, so the message is already marked as read.
    wait_mail(&env, TOAST, "is merged into main");
    let unread = env.json(&["mail", "inbox", "--unread", "--agent", TOAST]);
    assert_eq!(unread, json!([]));
    let told = env.json(&["events", "--type", "merge_merged"]);
    assert_eq!(told[0]["payload"]["commit"], json!(commit), "{told}");
}

#[test]
fn conflict_is_reported_with_its_files_and_the_repairing_agent() {
    let env = automatic(&["max", "amy"], "");
    let (_, first) = finish(&env, "max", "same.txt", "of max\n");
    wait_merge(&env, &first, "merged");
    let (_, second) = finish(&env, "amy", "same.txt", "of amy\n");
    let entry = wait_merge(&env, &second, "conflict");
    let repair = entry["repair"].as_str().unwrap();
    for reader in ["human", "gastown/crew/amy"] {
        let mail = wait_mail(&env, reader, "could not be merged");
        let body = mail["body"].as_str().unwrap();
        let given = format!("{TOAST} was given the repair, {repair}");
        for part in ["- same.txt\n", &given, "repair_agents = false"] {
            assert!(body.contains(part), "{part}: {body}");
        }
    }
    let told = env.json(&["events", "--type", "merge_conflict"]);
    let payload = &told[0]["payload"];
    assert_eq!(payload["files"], json!(["same.txt"]), "{told}");
    assert_eq!(payload["repair_agent"], TOAST, "{told}");
    // The repair is merged without another command, too.
    let dir = env.town().join("gastown/polecats/Toast");
    let theirs = entry["commit"].as_str().unwrap();
    let words = ["merge", "--quiet", "-X", "theirs", "-m", "Both", theirs];
    env.git(&dir, &words);
    env.gt(&["done", "--agent", TOAST]).ok();
    wait_merge(&env, &second, "merged");
}

#[test]
fn failed_command_is_reported_with_its_last_lines_and_starts_no_agent_by_default() {
    let lines = toml::Value::from(vec!["seq 1 99; echo it is bad >&2; exit 3".to_owned()]);
    let settings = format!("[rigs.gastown.merge]\nrepair_agents = false\nvalidate = {lines}\n");
    let env = automatic(&["max"], &settings);
    let (_, merge) = finish(&env, "max", "bad.txt", "x\n");
    let entry = wait_merge(&env, &merge, "failed");
    let repair = entry["repair"].as_str().unwrap();
    let mail = wait_mail(&env, "human", "exit status: 3");
    let body = mail["body"].as_str().unwrap();
    let start = format!("`gt sling {repair}` starts one");
    let lines = "    98\n    99\n    it is bad\n";
    for part in [lines, &start, entry["log"].as_str().unwrap()] {
        assert!(body.contains(part), "{part}: {body}");
    }
    assert!(!body.contains("    12\n"), "only the last lines: {body}");
    let told = env.json(&["events", "--type", "merge_failed"]);
    let tail = told[0]["payload"]["tail"].as_str().unwrap();
    assert!(tail.ends_with("99\nit is bad"), "{tail}");
    assert_eq!(status(&env, repair), "open");
    assert_eq!(env.running(), [""; 0], "no agent was started");
}

#[test]
fn work_handed_in_during_a_run_is_merged_and_no_third_process_waits() {
    let env = automatic(&["max", "amy", "joe"], "");
    let (gate, settings) = held_up(&env);
    env.add_settings(&settings);
    let (_, first) = finish(&env, "max", "a.txt", "a\n");
    wait_merge(&env, &first, "merging");
    let (_, second) = finish(&env, "amy", "b.txt", "b\n");
    let (_, third) = finish(&env, "joe", "c.txt", "c\n");
    wait_until("the third process has ended", TIMEOUT, || {
        (runners(&env).len() <= 2).then_some(())
    });
    assert!(!runners(&env).is_empty());
    fs::write(gate, "").unwrap();
    for merge in [&first, &second, &third] {
        wait_merge(&env, merge, "merged");
    }
    let merged = files(&env, &repository(&env), MERGED);
    assert_eq!(merged, ["README.md", "a.txt", "b.txt", "c.txt"]);
    wait_until("no process is left", TIMEOUT, || {
        runners(&env).is_empty().then_some(())
    });
}

#[test]
fn the_next_work_continues_a_run_that_was_killed() {
    let env = automatic(&["max", "amy"], "");
    let (gate, first, runner) = run_held_up(&env);
    signal(runner, Signal::KILL);
    fs::write(gate, "").unwrap();
    let (_, second) = finish(&env, "amy", "b.txt", "b\n");
    wait_merge(&env, &first, "merged");
    wait_merge(&env, &second, "merged");
    let log = env.town().join(".runtime/merge/gastown/queue.log");
    let text = fs::read_to_string(log).unwrap();
    assert!(
        text.contains(&format!("{first} crew/max: merged as ")),
        "{text}"
    );
}

/// Kills the process that merges the only entry during its validation, which succeeds immediately
/// afterwards.
fn killed_run(env: &TestEnv) -> String {
    let (gate, merge, runner) = run_held_up(env);
    signal(runner, Signal::KILL);
    wait_until("it is dead", TIMEOUT, || (!is_alive(runner)).then_some(()));
    fs::write(gate, "").unwrap();
    assert_eq!(env.json(&["mq", "status", &merge])["status"], "merging");
    merge
}

fn requests(env: &TestEnv) -> PathBuf {
    env.town().join(".runtime/merge-requests")
}

#[test]
fn killed_run_is_resumed_by_the_timer() {
    let env = automatic(&["max"], "");
    let merge = killed_run(&env);
    env.gt(&["save", "--auto", "--timer"]).ok();
    wait_merge(&env, &merge, "merged");
    wait_until("no run is due, and the last one has ended", TIMEOUT, || {
        (!requests(&env).exists() && runners(&env).is_empty()).then_some(())
    });
    env.gt(&["save", "--auto", "--timer"]).ok();
    assert_eq!(runners(&env), [0; 0]);
}

#[test]
fn killed_run_is_resumed_by_sync_and_not_by_commands_that_read() {
    let env = automatic(&["max"], "");
    let merge = killed_run(&env);
    for command in [
        &["agents"][..],
        &["status"],
        &["status-line"],
        &["mq", "list"],
        &["sync", "--dry-run"],
    ] {
        env.gt(command).ok();
        // A run would begin before the command ends, and finish the entry.
        assert_eq!(runners(&env), [0; 0], "{command:?}");
        let entry = env.json(&["mq", "status", &merge]);
        assert_eq!(entry["status"], "merging", "{command:?}");
    }
    env.gt(&["sync"]).ok();
    wait_merge(&env, &merge, "merged");
}

#[test]
fn killed_run_is_not_resumed_where_a_person_merges() {
    let env = automatic(&["max"], "");
    let merge = killed_run(&env);
    env.add_settings("automatic = false\n");
    env.gt(&["save", "--auto", "--timer"]).ok();
    assert_eq!(runners(&env), [0; 0]);
    assert_snapshot!(env.doctor_findings(&[]), @"exit code: 0");
    env.gt(&["mq", "run"]).ok();
    wait_merge(&env, &merge, "merged");
}

#[test]
fn doctor_names_a_killed_run_and_fix_resumes_it() {
    let env = automatic(&["max"], "");
    let merge = killed_run(&env);
    let found = env.gt(&["doctor"]).ok().stdout;
    let expected = format!(
        "no process merges the waiting entries of gastown: {merge}; the last run was killed"
    );
    assert!(found.contains(&expected), "{found}");
    let fixed = env.gt(&["doctor", "--fix"]).ok().stdout;
    assert!(
        fixed.contains(&format!("started the merge queue of gastown: {merge}")),
        "{fixed}"
    );
    wait_merge(&env, &merge, "merged");
    let found = env.gt(&["doctor"]).ok().stdout;
    assert!(!found.contains("no process merges"), "{found}");
}

#[test]
fn terminated_run_reports_nothing_and_is_resumed_by_the_timer() {
    let env = automatic(&["max"], "");
    let (gate, merge, runner) = run_held_up(&env);
    signal(runner, Signal::TERM);
    wait_until("it has ended", TIMEOUT, || {
        (!is_alive(runner)).then_some(())
    });
    let told: Vec<Value> = messages(&env, "human");
    assert_eq!(told, Vec::<Value>::new());
    assert_eq!(messages(&env, "gastown/crew/max"), Vec::<Value>::new());
    fs::write(gate, "").unwrap();
    env.gt(&["save", "--auto", "--timer"]).ok();
    wait_merge(&env, &merge, "merged");
}

#[test]
fn work_of_a_killed_done_is_merged_by_the_timer() {
    let env = automatic(&["max"], "");
    let id = item(&env, &["Write", "--rig", "gastown"]);
    env.gt(&["hook", &id, "--agent", "gastown/max"]).ok();
    let dir = env.town().join("gastown/crew/max");
    commit(&env, &dir, "a.txt", "a\n");
    env.kill_at_fault(&["done", "--agent", "gastown/max"], "done.queued");
    assert_eq!(runners(&env), [0; 0]);
    env.gt(&["save", "--auto", "--timer"]).ok();
    wait_until("the item is closed", TIMEOUT, || {
        (status(&env, &id) == "closed").then_some(())
    });
}

#[test]
fn work_of_a_done_that_fails_after_it_was_queued_is_merged() {
    let env = automatic(&["max"], "");
    let id = item(&env, &["Write", "--rig", "gastown"]);
    env.gt(&["hook", &id, "--agent", "gastown/max"]).ok();
    let dir = env.town().join("gastown/crew/max");
    commit(&env, &dir, "a.txt", "a\n");
    // A folder in place of the checkpoint cannot be removed like a file.
    let checkpoint = env
        .town()
        .join(".runtime/checkpoints/gastown.crew.max.json");
    fs::create_dir_all(&checkpoint).unwrap();
    env.gt(&["done", "--agent", "gastown/max"]).fails(1);
    wait_until("it is merged without another command", TIMEOUT, || {
        let merged = env.git(&repository(&env), &["for-each-ref", MERGED]);
        (!merged.is_empty()).then_some(())
    });
    assert!(files(&env, &repository(&env), MERGED).contains(&"a.txt".to_owned()));
}

/// Returns the process group, session and terminal of a process.
///
/// `getsid` cannot return the session of the test itself: where the session leader is outside this
/// PID namespace, the result is 0, which is not a process id.
fn job_of(process: &str) -> [String; 3] {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let (_, words) = stat.rsplit_once(')').unwrap();
    let words: Vec<&str> = words.split_whitespace().collect();
    let [_, _, group, session, terminal, ..] = words[..] else {
        panic!("{stat}");
    };
    [group, session, terminal].map(str::to_owned)
}

#[test]
fn a_run_outlives_the_group_and_the_session_of_its_caller() {
    let env = automatic(&["max"], "");
    let (gate, merge, runner) = run_held_up(&env);
    let [group, session, terminal] = job_of(&runner.to_string());
    let [_, own, _] = job_of("self");
    assert_ne!(session, own);
    assert_eq!(group, session, "its own process group");
    assert_eq!(terminal, "0", "no terminal can hang up on it");
    let environ = fs::read(format!("/proc/{runner}/environ")).unwrap();
    let text = String::from_utf8_lossy(&environ);
    assert!(
        !text.contains("GT_SESSION") && !text.contains("GT_ROLE"),
        "{text}"
    );
    fs::write(gate, "").unwrap();
    wait_merge(&env, &merge, "merged");
}

#[test]
fn unreachable_remote_is_reported_once() {
    let (env, bare) = crate::mq::with_bare_remote(&["max", "amy"]);
    let path = env.town().join("town.toml");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("automatic = false\n", "")).unwrap();
    let away = env.path("away.git");
    fs::rename(&bare, &away).unwrap();
    let (_, first) = finish(&env, "max", "a.txt", "a\n");
    wait_mail(&env, "human", "waits to be merged: the remote of gastown");
    let entry = env.json(&["mq", "status", &first]);
    assert_eq!(entry["status"], "queued", "{entry}");
    let told = env.json(&["events", "--type", "merge_waiting"]);
    assert_eq!(told[0]["payload"]["merge"], json!(first), "{told}");
    fs::rename(&away, &bare).unwrap();
    let (_, second) = finish(&env, "amy", "b.txt", "b\n");
    wait_merge(&env, &first, "merged");
    wait_merge(&env, &second, "merged");
    assert_eq!(files(&env, &bare, "main"), ["README.md", "a.txt", "b.txt"]);
}

#[test]
fn work_of_a_parked_rig_is_merged_when_it_is_back_in_service() {
    let env = automatic(&["max"], "");
    env.gt(&["rig", "park", "gastown"]).ok();
    let (_, merge) = finish(&env, "max", "a.txt", "a\n");
    assert_eq!(env.json(&["mq", "status", &merge])["status"], "queued");
    assert_eq!(runners(&env), [0; 0]);
    env.gt(&["rig", "unpark", "gastown"]).ok();
    wait_merge(&env, &merge, "merged");
}

#[test]
fn repair_waits_in_the_schedule_while_no_more_polecats_are_allowed() {
    let env = automatic(&["max", "amy"], "[schedule]\nstart_spacing = \"0s\"\n");
    let path = env.town().join("town.toml");
    let text = fs::read_to_string(&path).unwrap();
    let text = text.replace("[limits]\n", "[limits]\npolecats_per_rig = 1\n");
    fs::write(&path, text).unwrap();
    let other = item(&env, &["Something else", "--rig", "gastown"]);
    env.gt(&["sling", &other]).ok();
    let (_, first) = finish(&env, "max", "same.txt", "of max\n");
    wait_merge(&env, &first, "merged");
    let (_, second) = finish(&env, "amy", "same.txt", "of amy\n");
    let entry = wait_merge(&env, &second, "conflict");
    let repair = entry["repair"].as_str().unwrap();
    wait_until("the repair is in the schedule", TIMEOUT, || {
        let queue = env.json(&["schedule", "list"]);
        queue.to_string().contains(repair).then_some(())
    });
    env.gt(&["work", "close", &other]).ok();
    env.gt(&["stop", TOAST, "--force"]).ok();
    env.gt(&["schedule", "run"]).ok();
    wait_until("an agent has the repair", TIMEOUT, || {
        (status(&env, repair) == "hooked").then_some(())
    });
}

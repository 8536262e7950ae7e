//! `gt sync`, and the tmux hooks that call it: the journal agrees with tmux.

use crate::env::{TIMEOUT, TestEnv, processes_of, repetitions, signal};
use crate::sessions::list_sessions;
use gt_tmux::testing::wait_until;
use gt_tmux::{Command as Tmux, SessionName};
use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;

fn session(name: &str) -> SessionName {
    SessionName::try_from(name).unwrap()
}

/// Removes our hooks from the server, as a user's configuration may do.
fn without_hooks(env: &TestEnv) {
    for event in gt_town::terminal::tmux_hooks::EVENTS {
        env.tmux(Tmux::new("set-hook").args(["-gu", event]));
    }
    // A call that is just starting becomes visible a moment later.
    let mut quiet = 0;
    wait_until("no call is due or running", TIMEOUT, || {
        let is_due = env
            .tmux(Tmux::new("show-options").arg("-g"))
            .contains("@gt_sync_due");
        let is_hook = |pid: &u32| {
            let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&words).contains("internal\0sync")
        };
        let runs = processes_of(env.home()).iter().any(is_hook);
        quiet = if is_due || runs { 0 } else { quiet + 1 };
        (quiet > 5).then_some(())
    });
}

/// Waits until the journal has `expected` running sessions.
fn wait_running(env: &TestEnv, expected: usize) {
    wait_until("the table is true", TIMEOUT, || {
        let running = list_sessions(env, &["--status", "running", "--limit", "1000"]);
        (running.len() == expected).then_some(())
    });
}

#[test]
fn handoff_sets_missing_hooks_again() {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["start", "gastown/max"]).ok();
    without_hooks(&env);
    env.gt(&["handoff", "gastown/max", "--force"]).ok();
    wait_until("the hooks are back", TIMEOUT, || {
        // `-gw` lists the hooks of panes together with those of windows.
        let hooks = ["-g", "-gw"].map(|which| env.tmux(Tmux::new("show-hooks").arg(which)));
        let hooks = hooks.concat();
        let is_back = |event: &&str| hooks.contains(&format!("{event}["));
        gt_town::terminal::tmux_hooks::EVENTS
            .iter()
            .all(is_back)
            .then_some(())
    });
}

#[test]
fn journal_agrees_with_tmux_after_a_sync() {
    let env = TestEnv::with_crew(&["max", "amy"]);
    env.gt(&["start", "mayor", "deacon", "gastown/max", "gastown/amy"])
        .ok();
    let agrees = env.gt(&["sync", "--verbose"]).ok().stdout;
    assert_eq!(agrees, "Everything agrees.\n");
    // Without hooks: one container is closed by hand, one is renamed, one agent dies, and one
    // session was never recorded.
    without_hooks(&env);
    env.tmux(Tmux::new("kill-session").target(session("hq-deacon")));
    env.tmux(
        Tmux::new("rename-session")
            .target(session("gt-crew-amy"))
            .arg("elsewhere"),
    );
    env.tmux(
        Tmux::new("set-option")
            .target(session("gt-crew-max"))
            .args(["@gt_auto_respawn", ""]),
    );
    signal(env.pid("gastown/crew/max"), Signal::KILL);
    wait_until("it is dead", TIMEOUT, || {
        (env.agent("gastown/crew/max")["state"] == "crashed").then_some(())
    });
    let journal = env.town().join(".sessions/index.jsonl");
    let text = fs::read_to_string(&journal).unwrap();
    let without: Vec<&str> = text.lines().filter(|l| !l.contains("\"mayor\"")).collect();
    fs::write(&journal, without.join("\n") + "\n").unwrap();
    let told = env.json(&["sync", "--dry-run"]);
    assert_eq!(told["changes"].as_array().unwrap().len(), 4, "{told}");
    let counts = ["created", "renamed", "stopped", "adopted", "unchanged"];
    let counts = counts.map(|word| told[word].as_u64().unwrap());
    assert_eq!(counts, [1, 1, 2, 0, 0], "{told}");
    let done = env.json(&["sync"]);
    let ids = |answer: &Value| {
        let changes = answer["changes"].as_array().unwrap().iter();
        changes
            .map(|c| c["record"]["id"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(ids(&done), ids(&told), "what was told is what is written");
    let again = env.json(&["sync"]);
    assert_eq!(again["changes"], json!([]), "and nothing is left to write");
    assert_eq!(again["unchanged"], 3);
    let outcome = |agent: &str| {
        let found = list_sessions(&env, &["--agent", agent]);
        (found[0]["status"].clone(), found[0]["outcome"].clone())
    };
    assert_eq!(outcome("deacon"), (json!("stopped"), json!("killed")));
    assert_eq!(
        outcome("gastown/crew/max"),
        (json!("stopped"), json!("crash"))
    );
    assert_eq!(outcome("mayor"), (json!("running"), Value::Null));
    let amy = &list_sessions(&env, &["--agent", "gastown/crew/amy"])[0];
    assert_eq!(amy["container"], "elsewhere");
    // The server ends with all agents.
    env.tmux(Tmux::new("kill-server"));
    env.gt(&["sync"]).ok();
    assert_eq!(
        list_sessions(&env, &["--status", "running"]),
        Vec::<Value>::new()
    );
    assert_eq!(outcome("mayor"), (json!("stopped"), json!("crash")));
}

#[test]
fn sync_honours_the_documented_variables() {
    let mut env = TestEnv::with_town();
    env.gt(&["start", "mayor"]).ok();
    let database = env.path("test.sqlite");
    env.set("VERBOSE", "1");
    env.set("DATABASE_PATH", database.to_str().unwrap());
    assert_eq!(env.gt(&["sync"]).ok().stdout, "Everything agrees.\n");
    let made = fs::read(&database).unwrap();
    assert!(made.starts_with(b"SQLite format 3"));
    // The table of the sync document: one row per slug, with its columns and defaults.
    let db = rusqlite::Connection::open(&database).unwrap();
    let mut statement = db
        .prepare("SELECT name, pk, dflt_value FROM pragma_table_info('sessions') ORDER BY cid")
        .unwrap();
    let columns: Vec<(String, i64, Option<String>)> = statement
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    let names: Vec<&str> = columns.iter().map(|column| column.0.as_str()).collect();
    let expected = [
        "slug",
        "harness_type",
        "working_directory",
        "status",
        "initial_prompt",
        "created_at",
        "updated_at",
        "id",
    ];
    assert_eq!(names, expected);
    assert_eq!(columns[0].1, 1, "slug is the primary key");
    assert_eq!(columns[1].2.as_deref(), Some("'claude-code'"));
    let rows = |db: &rusqlite::Connection| -> Vec<(String, String, String, String, i64, String)> {
        let mut rows = db
            .prepare(
                "SELECT slug, harness_type, working_directory, status, updated_at, id
                 FROM sessions",
            )
            .unwrap();
        rows.query_map([], |row| {
            Ok((
                row.get(0)?,
                row.get(1)?,
                row.get(2)?,
                row.get(3)?,
                row.get(4)?,
                row.get(5)?,
            ))
        })
        .unwrap()
        .map(Result::unwrap)
        .collect()
    };
    let [(slug, harness, folder, status, updated, id)] = &rows(&db)[..] else {
        panic!("one row: {:?}", rows(&db));
    };
    let mayor = &list_sessions(&env, &["--agent", "mayor"])[0];
    assert_eq!((slug.as_str(), harness.as_str()), ("mayor", "demo"));
    assert_eq!(
        (folder.as_str(), status.as_str()),
        (mayor["cwd"].as_str().unwrap(), "running")
    );
    assert_eq!(id.as_str(), mayor["id"]);
    drop(statement);
    drop(db);
    env.gt(&["stop", "mayor"]).ok();
    env.gt(&["sync"]).ok();
    let after = rows(&rusqlite::Connection::open(&database).unwrap());
    assert_eq!(after.len(), 1, "{after:?}");
    assert_eq!(after[0].3, "stopped");
    assert!(after[0].4 > *updated, "updated_at rises: {after:?}");
    // A database that is not an index of gt is left unchanged.
    let own = env.path("own.sqlite");
    fs::write(&own, "SQLite format 3\0 of another program").unwrap();
    env.set("DATABASE_PATH", own.to_str().unwrap());
    env.gt(&["sync"]).fails(4);
    // tmux's hooks ignore DATABASE_PATH.
    env.gt(&["sync", "--hook"]).ok();
    env.set("VERBOSE", "0");
    env.set("DATABASE_PATH", "");
    assert_eq!(env.gt(&["sync"]).ok().stdout, "");
}

#[test]
fn tmux_hooks_report_new_and_closed_sessions() {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["start", "mayor", "deacon", "gastown/max"]).ok();
    env.tmux(Tmux::new("kill-session").target(session("hq-deacon")));
    wait_running(&env, 2);
    env.tmux(
        Tmux::new("rename-session")
            .target(session("hq-mayor"))
            .arg("hq-boss"),
    );
    wait_until("the new name is known", TIMEOUT, || {
        let mayor = &list_sessions(&env, &["--role", "mayor"])[0];
        (mayor["container"] == "hq-boss").then_some(())
    });
    env.tmux(
        Tmux::new("set-option")
            .target(session("gt-crew-max"))
            .args(["@gt_auto_respawn", ""]),
    );
    signal(env.pid("gastown/crew/max"), Signal::KILL);
    wait_running(&env, 1);
    let max = &list_sessions(&env, &["--role", "crew"])[0];
    assert_eq!(max["outcome"], "crash", "{max}");
}

#[test]
fn session_with_an_agents_name_is_recorded_and_left_alone() {
    let env = TestEnv::with_town();
    env.gt(&["start", "mayor"]).ok();
    env.tmux(Tmux::new("new-session").args(["-d", "-s", "agent_helper", "exec sleep 1000"]));
    wait_running(&env, 2);
    let found = &list_sessions(&env, &["--role", "agent"])[0];
    assert_eq!(found["agent"], "agent/helper", "{found}");
    assert_eq!(env.json(&["sync"])["unchanged"], 2, "and only once");
    let tags = env.format("agent_helper", "#{@gt_town}#{@gt_session}");
    assert_eq!(tags, "", "nothing is written into it");
    env.tmux(Tmux::new("kill-session").target(session("agent_helper")));
    wait_running(&env, 1);
}

#[test]
fn session_taken_for_ended_is_running_again_after_a_sync() {
    let env = TestEnv::with_town();
    env.gt(&["start", "mayor"]).ok();
    let id = list_sessions(&env, &[])[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let journal = env.town().join(".sessions/index.jsonl");
    let mut text = fs::read_to_string(&journal).unwrap();
    text += &format!(
        "{{\"id\":\"{id}\",\"outcome\":\"crash\",\"status\":\"stopped\",\"ended_at\":\"2026-01-01T00:00:00.000Z\"}}\n"
    );
    fs::write(&journal, text).unwrap();
    // The hook of the start may have corrected the record already.
    env.gt(&["sync"]).ok();
    for _ in 0..2 {
        let record = &list_sessions(&env, &[])[0];
        assert_eq!(record["status"], "running", "{record}");
        assert_eq!(record["outcome"], Value::Null);
        assert_eq!(record["ended_at"], Value::Null);
        env.gt(&["sessions", "rebuild"]).ok();
    }
}

#[test]
fn many_closings_cause_few_syncs_and_a_correct_table() {
    let many = repetitions(500, 150);
    let env = TestEnv::with_town();
    env.gt(&["start", "mayor"]).ok();
    let root = env.town().canonicalize().unwrap();
    let root = root.to_str().unwrap().to_owned();
    let mut batch = gt_tmux::Batch::new();
    for number in 0..many {
        let name = format!("agent_s{number}");
        let record = format!("0193a2b4-c5d6-7abc-8def-{number:012x}");
        batch = batch.then(Tmux::new("new-session").args(["-d", "-s", &name, "exec sleep 1000"]));
        for (tag, value) in [
            ("@gt_town", root.as_str()),
            ("@gt_agent", &format!("agent/s{number}")),
            ("@gt_session", &record),
        ] {
            batch = batch.then(
                Tmux::new("set-option")
                    .target(session(&name))
                    .args([tag, value]),
            );
        }
        batch = batch.then_line();
    }
    env.server().run_private(batch).unwrap();
    wait_running(&env, many + 1);
    // A wrapper that logs every call of gt.
    let calls = env.path("calls");
    let gt = env!("CARGO_BIN_EXE_gt");
    let counting = env.path("counting-gt");
    let script = format!(
        "#!/bin/sh\necho x >> '{}'\nexec '{gt}' \"$@\"\n",
        calls.display()
    );
    fs::write(&counting, script).unwrap();
    fs::set_permissions(
        &counting,
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    let options = env.tmux(Tmux::new("show-options").arg("-g"));
    let option = options
        .split_whitespace()
        .find(|word| word.starts_with("@gt_sync_bin_"))
        .unwrap();
    env.tmux(Tmux::new("set-option").args(["-g", option, counting.to_str().unwrap()]));
    let mut batch = gt_tmux::Batch::new();
    for number in 0..many {
        let name = format!("agent_s{number}");
        batch = batch
            .then(Tmux::new("kill-session").target(session(&name)))
            .then_line();
    }
    env.server().run_private(batch).unwrap();
    wait_running(&env, 1);
    let calls = fs::read_to_string(&calls).unwrap().lines().count();
    assert!((1..=20).contains(&calls), "{calls} calls");
}

#[test]
fn hooks_of_the_user_and_of_other_towns_stay() {
    let env = TestEnv::with_town();
    env.tmux(Tmux::new("new-session").args(["-d", "-s", "mine", "exec sleep 1000"]));
    env.tmux(Tmux::new("set-hook").args(["-g", "session-created", "set-option -g @mine yes"]));
    let other = env.path("other");
    let in_other = |args: &[&str]| {
        let town = ["--town", other.to_str().unwrap()];
        env.gt(&[&town, args].concat()).ok()
    };
    env.gt(&[
        "init",
        other.to_str().unwrap(),
        "--harness",
        "demo",
        "--sandbox",
        "none",
    ])
    .ok();
    in_other(&["start", "agent/away", "--create"]);
    for _ in 0..2 {
        env.gt(&["start", "mayor"]).ok();
        env.gt(&["stop", "mayor"]).ok();
    }
    let hooks = env.tmux(Tmux::new("show-hooks").args(["-g", "session-created"]));
    assert_eq!(hooks.lines().count(), 3, "{hooks}");
    assert!(hooks.contains("@mine yes"), "{hooks}");
    // Each town records its own sessions, and leaves those of the other alone.
    env.gt(&["start", "mayor"]).ok();
    assert_eq!(list_sessions(&env, &["--status", "running"]).len(), 1);
    let synced = env.json(&["sync"]);
    assert_eq!(
        synced["left_alone"][0]["container"], "agent_away",
        "{synced}"
    );
    let theirs = in_other(&["sessions", "list", "--json"]).json();
    assert_eq!(theirs.as_array().unwrap().len(), 1, "{theirs}");
    assert_eq!(theirs[0]["status"], "running");
    env.tmux(Tmux::new("kill-session").target(session("agent_away")));
    wait_until("the other town knows it", TIMEOUT, || {
        let theirs = in_other(&["sessions", "list", "--json"]).json();
        (theirs[0]["outcome"] == "killed").then_some(())
    });
    assert_eq!(list_sessions(&env, &["--status", "running"]).len(), 1);
}

#[test]
fn another_index_or_server_changes_nothing_here() {
    let mut env = TestEnv::with_town();
    env.gt(&["start", "mayor"]).ok();
    let elsewhere = env.path("elsewhere.db");
    let database = elsewhere.to_str().unwrap();
    let synced = env.json(&["sync", "--database", database]);
    assert_eq!(synced["unchanged"], 1, "{synced}");
    assert!(elsewhere.is_file());
    // A sync with a server that has no agents of this town ends no session.
    let socket = env.path("other-socket");
    env.set("GT_TMUX_SOCKET", socket.to_str().unwrap());
    assert_eq!(env.json(&["sync"])["changes"], json!([]));
    assert_eq!(list_sessions(&env, &["--status", "running"]).len(), 1);
}

#[test]
fn a_server_that_starts_by_itself_has_the_hooks_from_its_configuration() {
    let env = TestEnv::with_town();
    env.gt(&["start", "mayor"]).ok();
    let file = env.home().join(".tmux.conf");
    fs::write(&file, "set-option -g @mine yes\n").unwrap();
    env.gt(&["tmux-conf", "--install"]).ok();
    let once = fs::read_to_string(&file).unwrap();
    assert_eq!(env.json(&["tmux-conf", "--install"])["changed"], false);
    assert_eq!(fs::read_to_string(&file).unwrap(), once);
    assert!(once.contains(&env.gt(&["tmux-conf"]).ok().stdout));
    let server: u32 = env.format("hq-mayor", "#{pid}").parse().unwrap();
    signal(server, Signal::KILL);
    wait_until("the server is gone", TIMEOUT, || {
        (!env.server().is_running()).then_some(())
    });
    // A person starts tmux with a session that has an agent's name.
    let status = env
        .command("tmux")
        .args(["-S", env.socket().to_str().unwrap()])
        .args(["new-session", "-d", "-s", "agent_helper", "exec sleep 1000"])
        .status();
    assert!(status.unwrap().success());
    assert_eq!(env.format("agent_helper", "#{@mine}"), "yes");
    wait_until("it is written down", TIMEOUT, || {
        let running = list_sessions(&env, &["--status", "running"]);
        (running.len() == 1 && running[0]["agent"] == "agent/helper").then_some(())
    });
    let mayor = &list_sessions(&env, &["--role", "mayor"])[0];
    assert_eq!(mayor["outcome"], "crash", "{mayor}");
    env.gt(&["tmux-conf", "--remove"]).ok();
    let text = fs::read_to_string(&file).unwrap();
    assert_eq!(text, "set-option -g @mine yes\n");
}

#[test]
fn sync_that_listed_tmux_before_a_stop_does_not_revive_the_session() {
    let env = TestEnv::with_crew(&["max"]);
    // A user's session keeps the server alive.
    env.tmux(Tmux::new("new-session").args(["-d", "-s", "mine", "exec sleep 1000"]));
    env.gt(&["start", "gastown/max", "--no-prompt"]).ok();
    let gate = env.path("gate");
    let hold = format!("sync.listed={}", gate.display());
    let mut late = wait_until("a sync lists tmux", TIMEOUT, || {
        // Without its records, the session is new to every sync. A sync of the start may write them
        // again, also during the removal; the one of this test then ends without a listing.
        let _ = fs::remove_dir_all(env.town().join(".sessions"));
        let mut late = env.gt_command(&["sync"]);
        let mut late = late.env("GT_HOLD", &hold).spawn().unwrap();
        let is_held = wait_until("it lists tmux or ends", TIMEOUT, || {
            let is_held = gate.with_extension("reached").exists();
            (is_held || late.try_wait().unwrap().is_some()).then_some(is_held)
        });
        is_held.then_some(late)
    });
    env.gt(&["sync"]).ok();
    env.gt(&["stop", "gastown/max", "--force"]).ok();
    fs::write(&gate, "").unwrap();
    assert!(late.wait().unwrap().success());
    let known = list_sessions(&env, &[]);
    let outcomes: Vec<&Value> = known.iter().map(|session| &session["outcome"]).collect();
    assert_eq!(outcomes, ["stopped"], "{known:?}");
}

#[test]
fn sync_prints_nothing_if_all_agrees() {
    let env = TestEnv::with_crew(&["max"]);
    assert_snapshot!(env.snapshot(&["sync"]), @"exit code: 0");
    env.gt(&["start", "gastown/max", "--no-prompt"]).ok();
    assert_snapshot!(env.snapshot(&["sync", "--dry-run"]), @"exit code: 0");
}

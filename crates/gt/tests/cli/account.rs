//! Accounts: named configuration folders.

use crate::env::{TIMEOUT, TestEnv, run};
use crate::sessions::list_sessions;
use gt_tmux::testing::wait_until;
use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

/// Returns the configuration folder of the newest session.
fn folder(env: &TestEnv) -> Value {
    let session = &list_sessions(env, &[])[0];
    let start: Value = serde_json::from_str(session["start"].as_str().unwrap()).unwrap();
    start["config_dir"].clone()
}

/// Checks that the conversation of the newest session is in this folder, so that the program really
/// uses it.
fn assert_conversation(env: &TestEnv, folder: &Path) {
    let session = list_sessions(env, &[])[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let file = folder.join(format!("sessions/{session}.jsonl"));
    assert!(file.is_file(), "{} is not there", file.display());
}

#[test]
fn accounts_are_made_used_and_removed() {
    let env = TestEnv::with_town();
    assert_eq!(env.json(&["account", "list"]), json!([]));
    let work = env.json(&["account", "add", "work"]);
    let own = env.town().join(".accounts/work/demo");
    assert_eq!(work["folders"]["demo"], json!(own));
    assert_eq!(work["default_for"], json!([]));
    assert_eq!((mode(&own), mode(own.parent().unwrap())), (0o700, 0o700));
    assert_eq!(mode(&env.town().join("accounts.toml")), 0o600);
    env.gt(&["account", "add", "work"]).fails(4);
    env.gt(&["account", "add", "../x"]).fails(2);
    // A second program of the same account, in a folder that the person chose.
    let given = env.json(&[
        "account",
        "add",
        "work",
        "--harness",
        "codex",
        "--config-dir",
        "x/../my-codex",
    ]);
    assert_eq!(given["folders"]["codex"], json!(env.path("my-codex")));
    assert_snapshot!(env.snapshot(&["account", "add", "g", "--harness", "gemini"]), @"
    exit code: 2
    --- stderr
    error: the harness gemini takes no configuration folder, so it has no accounts
    hint: these do: claude, codex, opencode, cursor-agent, copilot, pi, demo
    ");
    env.gt(&["account", "use", "nosuch"]).fails(3);
    env.gt(&["account", "use", "work", "--harness", "claude"])
        .fails(3);
    let used = env.json(&["account", "use", "work", "--harness", "codex"]);
    assert_eq!(used["default_for"], json!(["codex"]));
    let used = env.json(&["account", "use", "work"]);
    assert_eq!(used["default_for"], json!(["codex", "demo"]));
    assert_snapshot!(env.snapshot(&["account", "list"]), @"
    exit code: 0
    --- stdout
    ACCOUNT  HARNESS  DEFAULT  FOLDER
    work  codex  yes  ~/my-codex
    work  demo  yes  ~/gt/.accounts/work/demo
    ");
    // `--dry-run` changes nothing, and a folder that the person chose is never deleted.
    let args = ["account", "remove", "work", "--purge"];
    let look = env.json(&[&args[..], &["--dry-run"]].concat());
    assert_eq!(look["purged"], json!([own]));
    assert_eq!(look["kept"], json!([env.path("my-codex")]));
    assert!(own.is_dir());
    assert_eq!(env.json(&["account", "list"]).as_array().unwrap().len(), 1);
    env.gt(&args).ok();
    assert!(!own.parent().unwrap().exists() && env.path("my-codex").is_dir());
    assert_eq!(env.json(&["account", "list"]), json!([]));
    env.gt(&args).fails(3);
    // Without `--purge` the folder stays, and a later account of the same name finds it.
    env.gt(&["account", "add", "home"]).ok();
    env.gt(&["account", "remove", "home"]).ok();
    assert!(env.town().join(".accounts/home/demo").is_dir());
    fs::write(env.town().join("accounts.toml"), "nonsense").unwrap();
    assert_snapshot!(env.snapshot(&["account", "list"]), @"
    exit code: 2
    --- stderr
    error: ~/gt/accounts.toml:1:9 cannot be read
    caused by: key with no value, expected `=`
    hint: correct that line; every key is explained in the documentation
    ");
}

#[test]
fn an_agent_starts_with_an_account_and_comes_back_with_it() {
    let env = TestEnv::with_crew(&["max"]);
    for name in ["work", "home"] {
        env.gt(&["account", "add", name]).ok();
    }
    let of = |name: &str| env.town().join(format!(".accounts/{name}/demo"));
    env.gt(&["crew", "start", "max"]).ok();
    assert_eq!(folder(&env), Value::Null, "none was chosen");
    env.gt(&["stop", "gastown/max"]).ok();
    env.gt(&["account", "use", "work"]).ok();
    env.gt(&["crew", "start", "max"]).ok();
    assert_eq!(folder(&env), json!(of("work")));
    assert_conversation(&env, &of("work"));
    assert_snapshot!(env.snapshot(&["account", "remove", "work", "--purge"]), @"
    exit code: 4
    --- stderr
    error: gastown/crew/max runs with this account
    hint: `gt stop gastown/crew/max` first
    ");
    env.gt(&["stop", "gastown/max"]).ok();
    env.gt(&[
        "crew",
        "start",
        "max",
        "--account",
        "home",
        "--auto-respawn",
    ])
    .ok();
    assert_eq!(folder(&env), json!(of("home")));
    assert_conversation(&env, &of("home"));
    // A respawn uses the same configuration folder.
    crate::env::signal(env.pid("gastown/crew/max"), Signal::KILL);
    wait_until("the next session", TIMEOUT, || {
        (list_sessions(&env, &["--status", "running"]).len() == 1
            && list_sessions(&env, &[]).len() == 4)
            .then_some(())
    });
    assert_eq!(folder(&env), json!(of("home")));
    env.gt(&["stop", "gastown/max"]).ok();
    let both = ["--account", "home", "--config-dir", "/x"];
    env.gt(&[&["crew", "start", "max"][..], &both].concat())
        .fails(2);
    env.gt(&["crew", "start", "max", "--account", "nosuch"])
        .fails(3);
}

#[test]
fn purge_deletes_only_files_that_gt_made_for_the_account() {
    let env = TestEnv::with_crew(&["amy"]);
    let add = |args: &[&str]| env.gt(&[&["account", "add"], args].concat()).ok();
    let purge = |name: &str| env.gt(&["account", "remove", name, "--purge"]);
    let of = |name: &str| env.town().join(".accounts").join(name);
    add(&["work"]);
    env.gt(&["crew", "start", "amy", "--account", "work"]).ok();
    // Removing an account does not affect its running agent. A later account of the same name does
    // not own that folder.
    env.gt(&["account", "remove", "work"]).ok();
    add(&["work", "--harness", "codex"]);
    purge("work").ok();
    assert!(of("work/demo/sessions").is_dir() && !of("work/codex").exists());
    // After the account is added again, it owns the folder of the running agent.
    add(&["work"]);
    let refused = purge("work").fails(4).stderr;
    assert!(refused.contains("gastown/crew/amy"), "{refused}");
    env.gt(&["stop", "gastown/amy"]).ok();
    // `--purge` keeps folders that another account names and folders that a person chose.
    let within = of("work/demo/deep");
    add(&["other", "--config-dir", within.to_str().unwrap()]);
    let refused = purge("work").fails(4).stderr;
    assert!(refused.contains("the account other"), "{refused}");
    env.gt(&["account", "remove", "work", "--purge", "--dry-run"])
        .fails(4);
    env.gt(&["account", "remove", "other"]).ok();
    let chosen = of("mine/chosen");
    add(&["mine", "--config-dir", chosen.to_str().unwrap()]);
    let look = env.json(&["account", "remove", "mine", "--purge", "--dry-run"]);
    assert_eq!(
        (&look["purged"], &look["kept"]),
        (&json!([]), &json!([chosen]))
    );
    purge("mine").ok();
    purge("work").ok();
    assert!(chosen.is_dir() && !of("work").exists());
}

#[test]
fn changing_the_account_in_use_leaves_running_agents_alone() {
    let env = TestEnv::with_crew(&["max"]);
    for name in ["work", "home"] {
        env.gt(&["account", "add", name]).ok();
    }
    let of = |name: &str| json!(env.town().join(format!(".accounts/{name}/demo")));
    let restart = |args: &[&str]| {
        env.gt(&[&["crew", "restart", "max"], args].concat()).ok();
        folder(&env)
    };
    env.gt(&["crew", "start", "max"]).ok();
    env.gt(&["account", "use", "home"]).ok();
    assert_eq!(restart(&[]), Value::Null, "it had none");
    assert_eq!(restart(&["--account", "work"]), of("work"));
    assert_eq!(restart(&[]), of("work"));
    env.gt(&["stop", "gastown/max"]).ok();
    env.gt(&["crew", "start", "max"]).ok();
    assert_eq!(folder(&env), of("home"), "a start is a new one");
    env.gt(&["stop", "gastown/max"]).ok();
    env.gt(&["account", "use"]).fails(2);
    env.gt(&["account", "use", "--none", "--harness", "nosuch"])
        .fails(3);
    let other = env.json(&["account", "use", "--none", "--harness", "codex"]);
    assert_eq!(other[0]["default_for"], json!(["demo"]));
    let none = env.json(&["account", "use", "--none"]);
    assert_eq!(none[0]["default_for"], json!([]));
    env.gt(&["crew", "start", "max"]).ok();
    assert_eq!(folder(&env), Value::Null);
}

/// Makes a hook of the mayor report a usage limit.
fn hit_limit(env: &TestEnv, words: &str) {
    let message = format!("You've hit your limit · {words}");
    let report = json!({"error": "rate_limit", "last_assistant_message": message});
    crate::notify::hook(env, "stop-failure", &report);
}

/// Sets what agents do at a usage limit.
fn set_at_limit(env: &TestEnv, at_limit: &str) {
    let settings = env.town().join("town.toml");
    let text = fs::read_to_string(&settings).unwrap();
    let other = text.lines().filter(|line| !line.starts_with("at_limit"));
    let text = other.collect::<Vec<_>>().join("\n");
    let set = format!("[limits]\nat_limit = '{at_limit}'");
    fs::write(settings, text.replace("[limits]", &set)).unwrap();
}

#[test]
fn killed_move_is_repeated_and_leaves_no_stray_session() {
    let points = gt_town::supervision::limits::FAULT_POINTS.iter();
    for point in points.chain(gt_town::lifecycle::account_switch::FAULT_POINTS) {
        let env = TestEnv::with_town();
        for name in ["first", "second"] {
            env.gt(&["account", "add", name]).ok();
        }
        env.gt(&["start", "mayor", "--no-prompt", "--account", "first"])
            .ok();
        env.gt(&["nudge", "mayor", "remember the blue door"]).ok();
        env.gt(&["wait", "mayor"]).ok();
        // The timer of the limit does not move it; the commands of this test do.
        set_at_limit(&env, "wait");
        hit_limit(&env, "reset in 90 minutes");
        set_at_limit(&env, "switch");
        let mut resume = env.gt_command(&["internal", "resume-limited"]);
        let killed = run(resume.env("GT_FAULT", point));
        assert_eq!(killed.code, -9, "{point}: {}", killed.stderr);
        env.gt(&["sync"]).ok();
        let running = list_sessions(&env, &["--status", "running"]);
        assert_eq!(running.len(), 1, "{point}: {running:?}");
        env.gt(&["internal", "resume-limited"]).ok();
        env.wait_screen("mayor", "gt moved you to the account second");
        env.gt(&["sync"]).ok();
        let running = list_sessions(&env, &["--status", "running"]);
        assert_eq!(running.len(), 1, "{point}: {running:?}");
        assert_eq!(running[0]["id"], env.agent("mayor")["session"], "{point}");
        let second = env.town().join(".accounts/second/demo");
        assert_eq!(folder(&env), json!(second), "{point}");
        // Each session but the newest has ended, and at most one of them never came up.
        let ended = list_sessions(&env, &[]);
        let is_open = |session: &&Value| session["outcome"].is_null();
        assert_eq!(
            ended.iter().filter(is_open).count(),
            1,
            "{point}: {ended:?}"
        );
        assert!(ended.len() <= 3, "{point}: {ended:?}");
    }
}

#[test]
fn limited_agent_moves_to_a_free_account_with_its_conversation_and_then_waits() {
    let env = TestEnv::with_town();
    set_at_limit(&env, "switch");
    for name in ["first", "second"] {
        env.gt(&["account", "add", name]).ok();
    }
    env.gt(&["start", "mayor", "--no-prompt", "--account", "first"])
        .ok();
    env.gt(&["nudge", "mayor", "remember the blue door"]).ok();
    env.gt(&["wait", "mayor"]).ok();
    let before = env.agent("mayor")["session"].clone();
    hit_limit(&env, "reset in 90 minutes");
    let moved = wait_until("an event of the move", TIMEOUT, || {
        let events = env.json(&["events", "--type", "account_switch"]);
        events.get(0).cloned()
    });
    assert_eq!(moved["payload"]["account"], "second", "{moved}");
    assert_eq!(moved["payload"]["target"], "mayor", "{moved}");
    assert_eq!(moved["payload"]["error"], Value::Null, "{moved}");
    env.wait_screen("mayor", "gt moved you to the account second");
    let now = env.agent("mayor");
    assert_ne!(now["session"], before, "{now}");
    let second = env.town().join(".accounts/second/demo");
    assert_eq!(folder(&env), json!(second));
    let sessions = list_sessions(&env, &[]);
    assert_eq!(sessions[0]["parent_id"], before, "{sessions:?}");
    let id = sessions[0]["harness_session_id"].as_str().unwrap();
    let file = second.join(format!("sessions/{id}.jsonl"));
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("remember the blue door"), "{text}");
    assert_eq!(mode(&file), 0o600);
    // Both accounts are limited now, so the agent waits.
    wait_until("it is idle", TIMEOUT, || {
        (env.agent("mayor")["state"] == "idle").then_some(())
    });
    hit_limit(&env, "reset in 80 minutes");
    env.gt(&["internal", "resume-limited"]).ok();
    assert_eq!(env.agent("mayor")["state"], "limited");
    assert_eq!(env.agent("mayor")["session"], now["session"]);
    let events = env.json(&["events", "--type", "account_switch"]);
    assert_eq!(events.as_array().unwrap().len(), 1, "{events}");
}

#[test]
fn restart_with_another_account_keeps_the_model() {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["account", "add", "work"]).ok();
    let start = ["crew", "start", "max", "--no-prompt", "--model", "small"];
    env.gt(&start).ok();
    let restart = ["crew", "restart", "max", "--no-prompt"];
    env.gt(&[&restart[..], &["--account", "work"]].concat())
        .ok();
    assert_eq!(env.agent("gastown/crew/max")["model"], "small");
    assert_eq!(folder(&env), json!(env.town().join(".accounts/work/demo")));
    env.gt(&[&restart[..], &["--model", "large"]].concat()).ok();
    assert_eq!(env.agent("gastown/crew/max")["model"], "large");
}

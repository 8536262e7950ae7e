//! `gt doctor` and `gt sync` on damaged files of a town.

use crate::env::TestEnv;
use crate::sessions::list_sessions;
use insta::assert_snapshot;
use serde_json::{Value, json};
use std::fs::{self, Permissions};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Returns the findings of one check of `gt doctor`: `[[status, message], …]`.
fn findings(env: &TestEnv, check: &str, args: &[&str]) -> Vec<(String, String)> {
    let found = env.gt(&[&["doctor", "--json"], args].concat()).json();
    let found = found.as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    found
        .filter(|finding| finding["check"] == check)
        .map(|finding| (text(&finding["status"]), text(&finding["message"])))
        .collect()
}

/// Returns the status and the message of the only finding of a check.
fn finding(env: &TestEnv, check: &str, args: &[&str]) -> (String, String) {
    let mut found = findings(env, check, args);
    assert_eq!(found.len(), 1, "{check}: {found:?}");
    found.remove(0)
}

fn check(env: &TestEnv, name: &str, args: &[&str], status: &str, words: &str) {
    let (found, message) = finding(env, name, args);
    assert!(
        found == status && message.contains(words),
        "{name}: {found}: {message}"
    );
}

#[test]
fn damaged_journal_is_an_error_and_fixed_by_moving_lines_aside() {
    let env = TestEnv::with_town();
    env.gt(&["start", "mayor"]).ok();
    check(&env, "journal", &[], "ok", "1 session in");
    check(&env, "index", &[], "ok", "as in the journal");
    let journal = env.town().join(".sessions/index.jsonl");
    let whole = fs::read(&journal).unwrap();
    let noise: Vec<u8> = (0..5000_u32).map(|n| (n * n % 251) as u8).collect();
    fs::write(&journal, [&whole, noise.as_slice(), b"\n"].concat()).unwrap();
    env.gt(&["doctor"]).fails(1);
    check(&env, "journal", &[], "error", "unreadable lines");
    check(
        &env,
        "journal",
        &["--fix"],
        "ok",
        "moved damaged lines into",
    );
    check(&env, "journal", &[], "ok", "1 session in");
    let aside = fs::read(env.town().join(".sessions/index.damaged")).unwrap();
    assert_eq!(aside, [&noise[..], b"\n"].concat());
    assert_eq!(list_sessions(&env, &[])[0]["agent"], "mayor");
}

#[test]
fn missing_journal_is_an_error_and_rewritten_from_the_index() {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["crew", "start", "max"]).ok();
    let before = env.json(&["sessions", "list"]);
    let journal = env.town().join(".sessions/index.jsonl");
    fs::remove_file(&journal).unwrap();
    assert_snapshot!(env.snapshot(&["sessions", "list"]), @"
    exit code: 1
    --- stderr
    error: the journal ~/gt/.sessions/index.jsonl is missing, and its index has sessions: 1
    hint: restore it from a backup, or run `gt doctor --fix`, which writes it again from the index
    hint: to begin a new history, remove ~/gt/.sessions/index.db
    ");
    check(&env, "journal", &[], "error", "its index has sessions: 1");
    check(
        &env,
        "journal",
        &["--fix"],
        "ok",
        "wrote 1 session from the index",
    );
    check(&env, "journal", &[], "ok", "1 session in");
    let after = env.json(&["sessions", "list"]);
    for field in ["id", "agent", "started_at", "pid", "start"] {
        assert_eq!(after[0][field], before[0][field], "{field}");
    }
    env.gt(&["crew", "stop", "max"]).ok();
}

#[test]
fn folder_in_place_of_the_journal_is_an_error() {
    let env = TestEnv::with_town();
    fs::create_dir_all(env.town().join(".sessions/index.jsonl")).unwrap();
    env.gt(&["doctor"]).fails(1);
    check(&env, "journal", &[], "error", "is a folder");
}

#[test]
fn session_from_the_future_is_a_clock_warning() {
    let env = TestEnv::with_town();
    let line = json!({"id": "x", "agent": "mayor", "started_at": "2199-01-01T00:00:00.000Z"});
    let sessions = env.town().join(".sessions");
    fs::create_dir_all(&sessions).unwrap();
    fs::write(sessions.join("index.jsonl"), format!("{line}\n")).unwrap();
    check(&env, "clock", &[], "warning", "2199-01-01");
}

#[test]
fn index_that_disagrees_is_rebuilt_by_sync_and_by_doctor() {
    let env = TestEnv::with_town();
    let ended = |id: &str| {
        json!({
            "id": id, "agent": "mayor", "status": "stopped", "outcome": "done",
            "started_at": "2026-01-01T00:00:00.000Z", "ended_at": "2026-01-02T00:00:00.000Z",
        })
    };
    let sessions = env.town().join(".sessions");
    fs::create_dir_all(&sessions).unwrap();
    let lines = format!("{}\n{}\n", ended("x"), ended("y"));
    fs::write(sessions.join("index.jsonl"), lines).unwrap();
    assert_eq!(list_sessions(&env, &[]).len(), 2);
    let index = sessions.join("index.db");
    let lose = || {
        let db = rusqlite::Connection::open(&index).unwrap();
        db.execute_batch("DELETE FROM records; DELETE FROM lives")
            .unwrap();
    };
    lose();
    check(&env, "index", &[], "warning", "2 are missing");
    check(&env, "index", &["--fix"], "ok", "rebuilt now");
    assert_eq!(list_sessions(&env, &[]).len(), 2);
    lose();
    assert_snapshot!(env.snapshot(&["sync"]), @"
    exit code: 0
    --- stdout
    rebuilt the index: the journal has 2 sessions and the index 0: 2 are missing, 0 are not in the journal
    ");
    assert_eq!(list_sessions(&env, &[]).len(), 2);
    assert_eq!(env.json(&["sync"])["rebuilt"], Value::Null);
}

#[test]
fn sessions_table_is_current_after_a_sync() {
    let env = TestEnv::with_town();
    env.gt(&["agent", "new", "helper"]).ok();
    env.gt(&["start", "agent/helper"]).ok();
    let status = || -> (String, String) {
        let db = rusqlite::Connection::open(env.town().join(".sessions/index.db")).unwrap();
        let row = "SELECT harness_type, status FROM sessions WHERE slug = 'helper'";
        db.query_row(row, [], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap()
    };
    env.gt(&["sync"]).ok();
    assert_eq!(status(), ("demo".into(), "running".into()));
    env.gt(&["stop", "agent/helper"]).ok();
    env.gt(&["sync"]).ok();
    assert_eq!(status(), ("demo".into(), "stopped".into()));
}

/// Checkpoints the log of the work items, and overwrites the first table.
fn damage_items(env: &TestEnv) {
    let path = env.town().join(".work/items.db");
    let db = rusqlite::Connection::open(&path).unwrap();
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
    drop(db);
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.write_all_at(&[0x5a; 4096], 4096).unwrap();
}

#[test]
fn damaged_items_are_restored_from_the_backup_of_a_save() {
    let env = TestEnv::with_crew(&["max"]);
    let create = |title: &str| -> String {
        let item = env.json(&["work", "create", title]);
        item["id"].as_str().unwrap().to_owned()
    };
    let kept = create("Kept");
    env.gt(&["mail", "send", "mayor", "-s", "Subject", "-m", "Text"])
        .ok();
    assert_snapshot!(env.snapshot(&["save"]), @"
    exit code: 0
    --- stdout
    Nothing runs, so no container was saved.
    Backed up 2 work items and mails: ~/gt/.work/backups/[SAVE] ([N] B)
    ");
    assert_snapshot!(env.snapshot(&["save"]), @"
    exit code: 0
    --- stdout
    Nothing runs, so no container was saved.
    ");
    check(&env, "backups", &[], "ok", "1 there");
    let lost = create("Lost");
    env.gt(&["hook", &lost, "--agent", "gastown/max"]).ok();
    damage_items(&env);
    assert_snapshot!(env.snapshot(&["work", "list"]), @"
    exit code: 1
    --- stderr
    error: the work items cannot be read or written
    caused by: database disk image is malformed
    caused by: Error code 11: database disk image is malformed
    hint: `gt doctor --fix` restores the newest backup of .work/backups; without one, remove .work to begin without any work
    ");
    env.gt(&["doctor"]).fails(1);
    check(&env, "work", &[], "error", "");
    let told = findings(&env, "work", &["--fix"]);
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told[0].1.contains("restored 2 items"), "{told:?}");
    assert!(
        told[1].1.contains(&format!("not in the backup: {lost}")),
        "{told:?}"
    );
    assert!(told[2].1.contains("1 hook"), "{told:?}");
    let items = env.json(&["work", "list"]);
    assert_eq!(items[0]["id"], kept.as_str());
    let inbox = env.json(&["mail", "inbox", "--agent", "mayor"]);
    assert!(inbox.to_string().contains("Subject"), "{inbox}");
    let aside = fs::read_dir(env.town().join(".work")).unwrap().flatten();
    let aside = aside.filter(|entry| entry.file_name().to_string_lossy().starts_with("damaged-"));
    assert_eq!(aside.count(), 1);
    env.gt(&["doctor"]).ok();
}

#[test]
fn automatic_saves_back_up_and_report_damage_to_the_hook_log() {
    let env = TestEnv::with_town();
    env.gt(&["work", "create", "One"]).ok();
    env.gt(&["save", "--auto"]).ok();
    let backups = || {
        let entries = fs::read_dir(env.town().join(".work/backups")).unwrap();
        let names = entries.flatten().map(|entry| entry.file_name());
        names
            .filter(|name| name.to_string_lossy().ends_with("Z.db"))
            .count()
    };
    assert_eq!(backups(), 1);
    env.gt(&["work", "create", "Two"]).ok();
    env.gt(&["save", "--auto", "--timer"]).ok();
    assert_eq!(backups(), 1, "the newest is not old");
    damage_items(&env);
    fs::remove_file(env.town().join(".work/items.checked")).unwrap();
    env.gt(&["save", "--auto"]).ok();
    assert_eq!(backups(), 1);
    let log = fs::read_to_string(env.town().join(".runtime/gt.log")).unwrap();
    assert!(log.contains(" backup: "), "{log}");
}

#[test]
fn folder_that_its_owner_cannot_enter_is_an_error_and_opened_by_fix() {
    let env = TestEnv::with_town();
    let set = |dir: &Path, mode| fs::set_permissions(dir, Permissions::from_mode(mode)).unwrap();
    for name in [".runtime", ".sessions", ".work"] {
        let dir = env.town().join(name);
        fs::create_dir_all(&dir).unwrap();
        set(&dir, 0o000);
        let found = findings(&env, "permissions", &[]);
        let is_told = |(status, message): &(String, String)| {
            status == "error" && message.contains(name) && message.contains("(0)")
        };
        assert!(found.iter().any(is_told), "{name}: {found:?}");
        env.gt(&["doctor"]).fails(1);
        env.gt(&["doctor", "--fix"]);
        assert_eq!(dir.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        check(&env, "permissions", &[], "ok", "only you can read the town");
    }
}

#[test]
fn full_disk_is_an_error() {
    let env = TestEnv::with_town();
    let gt = env!("CARGO_BIN_EXE_gt");
    let script = format!(
        "mkdir -p \"$HOME/gt/.sessions\"
         mount -t tmpfs -o size=64k tmpfs \"$HOME/gt/.sessions\" || exit 99
         dd if=/dev/zero of=\"$HOME/gt/.sessions/fill\" bs=1k 2>/dev/null
         '{gt}' doctor; echo \"code $?\""
    );
    let Some(answer) = env.run_with_mounts(&script) else {
        return;
    };
    let (stdout, stderr) = (answer.stdout, answer.stderr);
    assert!(stdout.contains("code 1"), "{stdout}{stderr}");
    assert!(stdout.contains("✗ disk:"), "{stdout}{stderr}");
    assert!(stdout.contains("the disk is full"), "{stdout}{stderr}");
}

#[test]
fn leftovers_of_dead_processes_are_found_and_removed() {
    let env = TestEnv::with_rig();
    check(&env, "leftovers", &[], "ok", "no files");
    let mut ended = env.command("true").spawn().unwrap();
    let dead = ended.id();
    ended.wait().unwrap();
    let id = "0123456789abcdef0123456789abcdef";
    let own = std::process::id();
    let town = env.town();
    let clone = town.join(format!(".rig.{id}.{dead}.tmp"));
    fs::create_dir_all(clone.join(".repo.git/objects")).unwrap();
    let files = [
        format!(".sessions/.index.jsonl.{id}.{dead}.tmp"),
        format!(".work/backups/.x.db.{id}.{dead}.tmp"),
        format!(".work/backups/.x.db.{id}.{dead}.tmp-wal"),
        format!("mayor/.rigs.json.{id}.{dead}.tmp"),
    ];
    let old = [".runtime/replay/x.txt", ".runtime/tmp/index-x"].map(str::to_owned);
    let kept = [
        format!("mayor/.rigs.json.{id}.{own}.tmp"),
        format!("mayor/.rigs.json.{id}.tmp"),
        "mayor/.mine.tmp".to_owned(),
        ".runtime/replay/y.txt".to_owned(),
    ];
    for name in files.iter().chain(&old).chain(&kept) {
        let path = town.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "x").unwrap();
    }
    for name in &old {
        let file = fs::File::options().write(true).open(town.join(name));
        let long_ago = SystemTime::now() - Duration::from_secs(2 * 60 * 60);
        file.unwrap().set_modified(long_ago).unwrap();
    }
    check(&env, "leftovers", &[], "warning", "7 files");
    check(&env, "leftovers", &["--fix"], "ok", "removed");
    check(&env, "leftovers", &[], "ok", "no files");
    assert!(!clone.exists());
    for name in kept {
        assert!(town.join(&name).exists(), "{name}");
    }
}

#[test]
fn doctor_finds_missing_sync_hooks_and_sets_them_again() {
    let env = TestEnv::with_town();
    env.gt(&["start", "mayor"]).ok();
    let sync = |words: &[&str]| {
        let answer = env.gt(words);
        let all: Value = serde_json::from_str(&answer.stdout).unwrap();
        let found = all
            .as_array()
            .unwrap()
            .iter()
            .find(|it| it["check"] == "sync");
        found.unwrap_or_else(|| panic!("{all}")).clone()
    };
    assert_eq!(sync(&["doctor", "--json"])["status"], "ok");
    let unset = gt_tmux::Command::new("set-hook").args(["-gu", "session-closed"]);
    env.tmux(unset);
    let found = sync(&["doctor", "--json"]);
    assert_eq!(found["status"], "warning", "{found}");
    assert_eq!(found["fixable"], true);
    assert!(
        found["message"]
            .as_str()
            .unwrap()
            .contains("session-closed"),
        "{found}"
    );
    assert_eq!(sync(&["doctor", "--fix", "--json"])["status"], "ok");
    assert_eq!(sync(&["doctor", "--json"])["status"], "ok");
}

#[test]
fn shared_settings_of_worktrees_are_a_warning_and_fixed() {
    let env = TestEnv::with_crew(&["max"]);
    let clone = env.town().join("gastown/.repo.git");
    let config = clone.join("config").display().to_string();
    let file = ["config", "--file", &config];
    env.git(&clone, &["symbolic-ref", "HEAD", "refs/heads/main"]);
    env.git(&clone, &[&file[..], &["core.bare", "true"]].concat());
    env.git(
        &clone,
        &[&file[..], &["--unset", "extensions.worktreeConfig"]].concat(),
    );
    fs::remove_file(clone.join("config.worktree")).unwrap();
    let warns = |args: &[&str]| {
        let found = findings(&env, "rigs", args);
        found
            .iter()
            .any(|(_, message)| message.contains("share all settings"))
    };
    assert!(warns(&[]));
    assert!(!warns(&["--fix"]));
    assert!(!warns(&[]));
    let max = env.town().join("gastown/crew/max");
    env.git(&max, &["config", "--worktree", "core.fsmonitor", "x"]);
    env.git(&max, &["switch", "--quiet", "main"]);
}

//! `gt checkpoint`, and the checkpoints that `gt` writes by itself.

use crate::env::{TIMEOUT, TestEnv};
use crate::prime::{MAX, as_agent, give_work};
use crate::sessions::list_sessions;
use crate::work::{create, id};
use gt_tmux::testing::wait_until;
use insta::assert_snapshot;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

fn file(env: &TestEnv) -> PathBuf {
    let dir = env.town().join(".runtime/checkpoints");
    dir.join("gastown.crew.max.json")
}

fn read(env: &TestEnv) -> Value {
    env.json(&["checkpoint", "read", "--agent", MAX])
}

/// Makes the checkpoint old enough to be rewritten.
pub(crate) fn age(env: &TestEnv) {
    let old = SystemTime::now() - Duration::from_secs(5 * 60);
    let file = fs::File::options().append(true).open(file(env)).unwrap();
    file.set_modified(old).unwrap();
}

/// Runs the command of tmux's save timer.
fn timer(env: &TestEnv) {
    env.gt(&["save", "--auto", "--timer"]).ok();
}

pub(crate) fn current_session(env: &TestEnv) -> String {
    let sessions = list_sessions(env, &["--agent", MAX, "--limit", "1"]);
    sessions[0]["id"].as_str().unwrap().to_owned()
}

/// Makes a crew worker in a town without automatic saves, so that only the test triggers them.
fn quiet_crew() -> TestEnv {
    let env = TestEnv::with_crew(&["max"]);
    let path = env.town().join("town.toml");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(path, format!("{text}\n[save]\nauto = false\n")).unwrap();
    env.gt(&["start", MAX]).ok();
    env
}

#[test]
fn start_writes_a_checkpoint_by_itself() {
    let env = TestEnv::with_crew(&["max"]);
    let id = give_work(&env, "Mend the roof");
    env.gt(&["start", MAX]).ok();
    let noted = wait_until("a checkpoint by itself", TIMEOUT, || {
        Some(read(&env)).filter(|noted| !noted.is_null())
    });
    assert_eq!(noted["hooked_bead"], id);
    assert_eq!(noted["session_id"], current_session(&env));
    assert_eq!(noted["branch"], "crew/max");
    assert_eq!(noted["last_commit"].as_str().unwrap().len(), 40);
}

#[test]
fn timer_updates_the_checkpoint_and_keeps_its_notes() {
    let env = quiet_crew();
    timer(&env);
    assert!(read(&env).is_null(), "who has no work has nothing to note");
    let id = give_work(&env, "Mend the roof");
    timer(&env);
    let noted = read(&env);
    assert_eq!(noted["hooked_bead"], id);
    assert_eq!(noted["modified_files"], json!([]));

    as_agent(&env, &["checkpoint", "write", "--notes", "the tiles"], None).ok();
    let dir = env.town().join("gastown/crew/max");
    fs::write(dir.join("roof ü.txt"), "tiles\n").unwrap();
    timer(&env);
    assert_eq!(read(&env)["modified_count"], 0, "it is young");
    age(&env);
    timer(&env);
    let noted = read(&env);
    assert_eq!(noted["modified_files"], json!(["roof ü.txt"]));
    assert_eq!(noted["notes"], "the tiles");
    assert_eq!(noted["session_id"], current_session(&env));

    // Neither a save by hand nor a save after the item was unhooked updates the checkpoint.
    age(&env);
    fs::remove_file(dir.join("roof ü.txt")).unwrap();
    env.gt(&["save"]).ok();
    assert_eq!(read(&env)["modified_count"], 1);
    env.gt(&["unhook", "--agent", MAX]).ok();
    timer(&env);
    assert_eq!(read(&env)["modified_count"], 1);
}

#[test]
fn checkpoint_of_an_unreadable_repository_keeps_branch_and_commit() {
    let env = quiet_crew();
    give_work(&env, "Mend the roof");
    timer(&env);
    let before = read(&env);
    let link = env.town().join("gastown/crew/max/.git");
    fs::rename(&link, link.with_extension("away")).unwrap();
    age(&env);
    timer(&env);
    let after = read(&env);
    assert_ne!(after["timestamp"], before["timestamp"]);
    for field in ["branch", "last_commit"] {
        assert!(after[field].is_string());
        assert_eq!(after[field], before[field]);
    }
}

#[test]
fn checkpoint_of_an_earlier_session_stays_until_it_was_shown() {
    let env = quiet_crew();
    let id = give_work(&env, "Mend the roof");
    timer(&env);
    let mut left = read(&env);
    left["session_id"] = json!("00000000-0000-4000-8000-000000000000");
    left["notes"] = json!("half the tiles are on");
    fs::write(file(&env), left.to_string()).unwrap();
    age(&env);
    timer(&env);
    assert_eq!(read(&env)["notes"], "half the tiles are on");
    // `gt prime --agent` by a person does not mark the checkpoint as told.
    env.gt(&["prime", "--agent", MAX]).ok();
    timer(&env);
    assert_eq!(read(&env)["notes"], "half the tiles are on");
    let told = as_agent(&env, &["prime"], None).ok().stdout;
    assert!(told.contains("half the tiles are on"), "{told}");
    assert_eq!(read(&env)["told_to"], current_session(&env));
    age(&env);
    timer(&env);
    let noted = read(&env);
    assert_eq!(noted["session_id"], current_session(&env));
    assert_eq!(noted["notes"], Value::Null);

    // A checkpoint about an item that is no longer on the hook is not shown.
    left["hooked_bead"] = json!("gt-zzzzz");
    fs::write(file(&env), left.to_string()).unwrap();
    let told = as_agent(&env, &["prime"], None).ok().stdout;
    assert!(told.contains(&id), "{told}");
    assert!(!told.contains("half the tiles are on"), "{told}");
    age(&env);
    timer(&env);
    assert_eq!(read(&env)["hooked_bead"], id);
}

#[test]
fn unreadable_or_future_checkpoint_is_written_again() {
    let env = quiet_crew();
    let id = give_work(&env, "Mend the roof");
    timer(&env);
    fs::write(file(&env), b"\xff\xfe").unwrap();
    let told = env.gt(&["prime", "--agent", MAX]).ok().stdout;
    assert!(told.contains(&id), "{told}");
    age(&env);
    timer(&env);
    let mut noted = read(&env);
    assert_eq!(noted["session_id"], current_session(&env));
    noted["timestamp"] = json!("2199-01-01T00:00:00.000Z");
    noted["notes"] = json!("before the clock was set back");
    fs::write(file(&env), noted.to_string()).unwrap();
    assert_eq!(read(&env)["stale"], true);
    age(&env);
    timer(&env);
    let noted = read(&env);
    assert_eq!(noted["stale"], false);
    assert_eq!(noted["notes"], "before the clock was set back");
}

/// Runs `what` while a timer save waits for git, which has been called and has not answered.
fn while_it_looks(env: &TestEnv, what: impl FnOnce()) {
    let (bin, asked, may) = (env.path("bin"), env.path("asked"), env.path("may"));
    fs::create_dir(&bin).unwrap();
    let script = format!(
        "#!/bin/sh\nPATH=\"${{PATH#*:}}\"\n>'{}'\nwhile [ ! -e '{}' ]; do sleep 0.02; done\nexec git \"$@\"\n",
        asked.display(),
        may.display()
    );
    fs::write(bin.join("git"), script).unwrap();
    fs::set_permissions(bin.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap();
    let mut round = env.gt_command(&["save", "--auto", "--timer"]);
    let mut round = round
        .env("PATH", format!("{}:{path}", bin.display()))
        .spawn()
        .unwrap();
    wait_until("git is asked", TIMEOUT, || asked.exists().then_some(()));
    what();
    fs::write(may, "").unwrap();
    assert!(round.wait().unwrap().success());
}

fn note(env: &TestEnv, notes: &str) {
    as_agent(env, &["checkpoint", "write", "--notes", notes], None).ok();
}

#[test]
fn note_is_not_lost_to_a_checkpoint_that_began_before_it() {
    let env = quiet_crew();
    give_work(&env, "Mend the roof");
    note(&env, "first");
    age(&env);
    while_it_looks(&env, || note(&env, "second"));
    assert_eq!(read(&env)["notes"], "second");
}

#[test]
fn late_checkpoint_of_an_ended_session_is_discarded() {
    let env = quiet_crew();
    give_work(&env, "Mend the roof");
    note(&env, "first");
    age(&env);
    let ended = current_session(&env);
    while_it_looks(&env, || {
        env.gt(&["stop", MAX, "--force"]).ok();
        env.gt(&["start", MAX]).ok();
        note(&env, "of the next life");
    });
    assert_ne!(current_session(&env), ended);
    let noted = read(&env);
    assert_eq!(
        (&noted["notes"], &noted["session_id"]),
        (&json!("of the next life"), &json!(current_session(&env)))
    );
    // It also applies if the session is only stopped.
    let dir = env.path("bin");
    fs::remove_dir_all(dir).unwrap();
    for name in ["asked", "may"] {
        fs::remove_file(env.path(name)).unwrap();
    }
    age(&env);
    while_it_looks(&env, || {
        env.gt(&["stop", MAX, "--force"]).ok();
    });
    assert_eq!(read(&env)["timestamp"], noted["timestamp"]);
}

#[test]
fn a_checkpoint_says_where_the_work_stood() {
    let env = TestEnv::with_crew(&["max"]);
    let folder = env.town().join("gastown/crew/max");
    let whose = ["--agent", "gastown/max"];
    let read = || env.json(&[&["checkpoint", "read"][..], &whose].concat());
    assert_eq!(read(), Value::Null);
    let item = id(&create(&env, &["Work"])).to_owned();
    env.gt(&["hook", &item, "--agent", "gastown/max"]).ok();
    env.gt(&["crew", "start", "max"]).ok();
    let session = id(&list_sessions(&env, &[])[0]).to_owned();
    env.gt(&[
        "step", "start", "build", "--ref", "gt-x.2", "--life", &session,
    ])
    .ok();
    fs::write(folder.join("new file.txt"), "x").unwrap();
    let write = [
        "checkpoint",
        "write",
        "--notes",
        "half way",
        "--agent",
        "gastown/max",
    ];
    env.gt_in(&folder, &write).ok();
    let found = read();
    for (field, expected) in [
        ("hooked_bead", json!(item)),
        ("session_id", json!(session)),
        ("current_step", json!("gt-x.2")),
        ("step_title", json!("build")),
        ("branch", json!("crew/max")),
        ("modified_files", json!(["new file.txt"])),
        ("notes", json!("half way")),
        ("stale", json!(false)),
    ] {
        assert_eq!(found[field], expected, "{field}: {found}");
    }
    assert_eq!(found["last_commit"].as_str().unwrap().len(), 40);
    let status = env.git(&folder, &["status", "--porcelain"]);
    assert_eq!(
        status.trim(),
        "?? \"new file.txt\"",
        "it is no change itself"
    );
    // An old checkpoint is marked as stale.
    let file = env
        .town()
        .join(".runtime/checkpoints/gastown.crew.max.json");
    let text = fs::read_to_string(&file).unwrap();
    let now = found["timestamp"].as_str().unwrap();
    fs::write(&file, text.replace(now, "2020-01-01T00:00:00.000Z")).unwrap();
    assert_eq!(read()["stale"], true);
    assert_snapshot!(env.snapshot(&["checkpoint", "read", "--agent", "gastown/max"]), @"
    exit code: 0
    --- stdout
    checkpoint from [N] [N] ago: work gt-[ID], step gt-x.2, branch crew/max, 1 changed file (stale)
      new file.txt
    half way
    ");
    assert_eq!(
        env.json(&["checkpoint", "clear", "--agent", "gastown/max"]),
        json!({"cleared": true})
    );
    assert_eq!(read(), Value::Null);
    env.gt(&["checkpoint", "read"]).fails(2);
}

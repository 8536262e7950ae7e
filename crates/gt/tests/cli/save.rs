//! Saves: their content, their schedule and their retention. `restore.rs` tests restores.

use crate::env::{TIMEOUT, TestEnv, is_alive, signal};
use gt_tmux::testing::wait_until;
use gt_tmux::{Command as Tmux, SessionName};
use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

/// Kills the tmux server with SIGKILL.
pub(crate) fn crash(env: &TestEnv) {
    let ask = Tmux::new("display-message").args(["-p", "#{pid}"]);
    let pid = env.tmux(ask).parse().unwrap();
    signal(pid, Signal::KILL);
    wait_until("the server is gone", TIMEOUT, || {
        (!is_alive(pid)).then_some(())
    });
}

pub(crate) fn session(name: &str) -> SessionName {
    SessionName::try_from(name).unwrap()
}

pub(crate) fn pane(env: &TestEnv, container: &str) -> gt_tmux::PaneId {
    env.format(container, "#{@gt_pane}").parse().unwrap()
}

/// Returns the text of an agent's pane with its history.
pub(crate) fn history(env: &TestEnv, container: &str) -> String {
    let capture = Tmux::new("capture-pane").args(["-p", "-S", "-"]);
    env.tmux(capture.target(pane(env, container)))
}

/// Returns the saves, newest first, without files that are still being written.
pub(crate) fn files(env: &TestEnv) -> Vec<PathBuf> {
    let mut files = all_files(env);
    files.retain(|file| is_save(file));
    files
}

fn is_save(file: &Path) -> bool {
    file.to_str().unwrap().ends_with(".json.gz")
}

/// Returns all files of the folder of saves.
fn all_files(env: &TestEnv) -> Vec<PathBuf> {
    let folder = env.town().join(".sessions/saves");
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files.reverse();
    files
}

pub(crate) fn gzip(env: &TestEnv, args: &[&str], input: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut command = env.command("gzip");
    command.args(args);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(input).unwrap());
        child.wait_with_output().unwrap()
    });
    assert!(writer.status.success());
    writer.stdout
}

/// Returns the uncompressed text of a save.
pub(crate) fn text_of(env: &TestEnv, file: &PathBuf) -> String {
    String::from_utf8(gzip(env, &["-dc"], &fs::read(file).unwrap())).unwrap()
}

/// Changes the newest save, line by line.
pub(crate) fn rewrite(env: &TestEnv, change: impl FnOnce(&mut [Value])) {
    let file = &files(env)[0];
    let text = text_of(env, file);
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let mut lines: Vec<Value> = lines.collect();
    change(&mut lines);
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    let packed = gzip(env, &["-c"], (lines.join("\n") + "\n").as_bytes());
    fs::write(file, packed).unwrap();
}

pub(crate) fn settings(env: &TestEnv, text: &str) {
    let file = env.town().join("town.toml");
    let before = fs::read_to_string(&file).unwrap();
    fs::write(file, format!("{before}\n{text}\n")).unwrap();
}

/// Disables automatic saves.
pub(crate) fn by_hand(env: &TestEnv) {
    settings(env, "[save]\nauto = false");
}

#[test]
fn a_damaged_save_is_named_and_passed_over() {
    let env = TestEnv::with_town();
    by_hand(&env);
    env.gt(&["restore"]).fails(3);
    env.gt(&["start", "mayor"]).ok();
    env.gt(&["save"]).ok();
    env.gt(&["save"]).ok();
    let newest = files(&env)[0].clone();
    let whole = fs::read(&newest).unwrap();
    let name = newest.file_name().unwrap().to_str().unwrap();
    let name = name.strip_suffix(".json.gz").unwrap();
    crash(&env);
    let without_one = gzip(&env, &["-dc"], &whole);
    let header = without_one.split(|byte| *byte == b'\n').next().unwrap();
    let without_one = gzip(&env, &["-c"], &[header, b"\n"].concat());
    for damage in [&whole[..whole.len() / 2], b"", b"nonsense", &without_one] {
        fs::write(&newest, damage).unwrap();
        let list = env.gt(&["save", "--list", "--json"]).ok();
        assert!(list.stderr.contains(name), "{}", list.stderr);
        assert_eq!(list.json()[0]["damaged"], true);
        assert_eq!(list.json()[1]["damaged"], false);
        let told = env.gt(&["restore", "--dry-run"]).ok();
        assert!(told.stderr.contains("is damaged"), "{}", told.stderr);
        assert!(
            told.stdout.contains("Would bring back mayor"),
            "{}",
            told.stdout
        );
        env.gt(&["restore", name]).fails(1);
    }
    env.gt(&["restore"]).ok();
    assert_eq!(env.running(), ["mayor"]);
}

#[test]
fn no_secret_is_in_a_save() {
    const SECRET: &str = "sk-very-secret-0123456789";
    let mut env = TestEnv::with_town();
    by_hand(&env);
    env.set("MY_API_KEY", SECRET);
    env.set("OTHER_KEY", SECRET);
    let preset = "[env]\npass = ['MY_API_KEY']\n";
    fs::write(env.town().join("harnesses/demo.toml"), preset).unwrap();
    env.gt(&["start", "mayor", "--env", "OTHER_KEY"]).ok();
    let environ = |env: &TestEnv| {
        let pid = env.pid("mayor");
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap();
        let environ = String::from_utf8_lossy(&environ).into_owned();
        environ.matches(SECRET).count()
    };
    assert_eq!(environ(&env), 2, "it did reach the agent");
    env.gt(&["save"]).ok();
    let file = &files(&env)[0];
    let text = text_of(&env, file);
    assert!(
        text.contains("\"mayor\"") && !text.contains(SECRET),
        "{text}"
    );
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(file), 0o600);
    assert_eq!(mode(file.parent().unwrap()), 0o700);
    crash(&env);
    env.gt(&["restore", "--env", "OTHER_KEY"]).ok();
    wait_until("it has them again", TIMEOUT, || {
        (environ(&env) == 2).then_some(())
    });
}

#[test]
fn only_so_many_saves_are_kept_and_the_automatic_ones_apart() {
    let env = TestEnv::with_town();
    settings(&env, "[save]\nauto = false\nkeep = 3");
    env.gt(&["start", "mayor"]).ok();
    let told = env.gt(&["save"]).ok().stdout;
    assert!(told.starts_with("Saved 1 container: "), "{told}");
    fs::remove_file(&files(&env)[0]).unwrap();
    let name = |answer: Value| answer["save"].as_str().unwrap().to_owned();
    let first = name(env.json(&["save"]));
    for _ in 0..5 {
        env.gt(&["save", "--auto"]).ok();
    }
    let mut made = vec![first];
    assert_eq!(files(&env).len(), 4, "the one by hand is still there");
    for _ in 0..4 {
        made.push(name(env.json(&["save"])));
    }
    let list = env.json(&["save", "--list"]);
    let list = list.as_array().unwrap();
    let by = |automatic: bool| -> Vec<String> {
        let wanted = list.iter().filter(|save| save["automatic"] == automatic);
        wanted.map(|save| name(save.clone())).collect()
    };
    made.reverse();
    assert_eq!(by(false), made[..3]);
    assert_eq!(by(true).len(), 3);
    let table = env.gt(&["save", "--list"]).ok().stdout;
    assert_eq!(table.lines().count(), 7, "{table}");
}

#[test]
fn killed_at_any_moment_a_save_is_whole_or_not_there() {
    let env = TestEnv::with_crew(&["a", "b", "c", "d"]);
    by_hand(&env);
    env.gt(&["crew", "start", "--all"]).ok();
    env.gt(&["nudge", "gastown/a", "[[fill=3000]]"]).ok();
    for round in 0..40 {
        let mut child = env.spawn(&["save"]);
        let pause = Duration::from_micros(round * 1_003);
        let began = std::time::Instant::now();
        while began.elapsed() < pause {
            std::thread::yield_now();
        }
        signal(child.id(), Signal::KILL);
        child.wait().unwrap();
        let list = env.json(&["save", "--list"]);
        let list = list.as_array().unwrap();
        assert!(list.iter().all(|save| save["damaged"] == false), "{list:?}");
    }
    env.gt(&["save"]).ok();
    let half = all_files(&env).iter().filter(|file| !is_save(file)).count();
    assert_eq!(half, 0, "what was killed is cleared up");
    crash(&env);
    env.gt(&["restore"]).ok();
    assert_eq!(env.running().len(), 4);
}

#[test]
fn a_town_saves_itself_after_starts_and_stops() {
    let names: Vec<String> = (0..12).map(|n| format!("w{n:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let env = TestEnv::with_crew(&names);
    let newest = |expected: usize| {
        wait_until(&format!("a save of {expected}"), TIMEOUT, || {
            let list = env.json(&["save", "--list"]);
            (list[0]["containers"] == expected).then_some(list.as_array().unwrap().len())
        })
    };
    env.gt(&["crew", "start", "--all"]).ok();
    let saves = newest(12);
    assert!(saves < 8, "twelve starts made {saves} saves");
    env.gt(&["stop", "gastown/w00", "gastown/w01"]).ok();
    newest(10);
    crash(&env);
    env.gt(&["restore"]).ok();
    assert_eq!(env.running().len(), 10);
    env.gt(&["save", "--auto", "--town", "/nowhere"]).fails(3);
}

#[test]
fn the_end_of_a_turn_saves_when_the_last_save_is_old() {
    let env = TestEnv::with_town();
    settings(&env, "[save]\nevery_minutes = 0");
    env.gt(&["start", "mayor"]).ok();
    env.gt(&["nudge", "mayor", "remember this"]).ok();
    wait_until("it is in a save", TIMEOUT, || {
        // The next save may replace this one at any moment.
        let newest = fs::read(files(&env).first()?).ok()?;
        let text = String::from_utf8(gzip(&env, &["-dc"], &newest)).unwrap();
        text.contains("You said: remember this").then_some(())
    });
}

#[test]
fn a_timer_saves_while_anything_runs() {
    let env = TestEnv::with_town();
    env.gt(&["start", "mayor"]).ok();
    env.gt(&["save"]).ok();
    // The option holds the time until which the call is pending: five minutes and a margin.
    let next = || -> Option<i64> {
        let options = env.tmux(Tmux::new("show-options").arg("-g"));
        let line = options
            .lines()
            .find(|line| line.starts_with("@gt_save_next_"))?;
        line.rsplit(' ').next()?.parse().ok()
    };
    let now = || jiff::Timestamp::now().as_second();
    let due = next().unwrap() - now();
    assert!((290..=330).contains(&due), "{due}");
    // A call that comes too early only schedules the next one.
    let before = files(&env).len();
    env.gt(&["save", "--auto", "--timer"]).ok();
    assert_eq!(files(&env).len(), before);
    assert!(next().is_some());
    for file in files(&env) {
        let old = std::time::SystemTime::now() - Duration::from_secs(3_600);
        fs::File::options()
            .append(true)
            .open(file)
            .unwrap()
            .set_modified(old)
            .unwrap();
    }
    env.gt(&["save", "--auto", "--timer"]).ok();
    assert_eq!(files(&env).len(), before + 1, "the newest was old");
    assert!(next().unwrap() - now() > 290);
    // The timer does not keep the server alive.
    env.gt(&["stop", "mayor", "--force"]).ok();
    wait_until("the server is gone", TIMEOUT, || {
        env.sessions().is_empty().then_some(())
    });
    env.gt(&["save", "--auto", "--timer"]).ok();
}

#[test]
fn tmux_resurrect_saves_as_well_where_the_town_wants_it() {
    let env = TestEnv::with_town();
    env.gt(&["start", "mayor"]).ok();
    let seen = env.path("seen");
    let script = |path: PathBuf, word: &str| {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let text = format!("#!/bin/sh\necho {word} \"$@\" >>'{}'\n", seen.display());
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    };
    let says = |words: &str| {
        wait_until(words, TIMEOUT, || {
            let text = fs::read_to_string(&seen).unwrap_or_default();
            text.contains(words).then_some(())
        });
    };
    script(
        env.path(".tmux/plugins/tmux-resurrect/scripts/save.sh"),
        "usual",
    );
    env.gt(&["save"]).ok();
    settings(&env, "[save]\nauto = false\nresurrect = true");
    env.gt(&["save"]).ok();
    says("usual quiet");
    let text = fs::read_to_string(&seen).unwrap();
    assert_eq!(text.lines().count(), 1, "only since the town wants it");
    let own = script(env.path("it's $(mine)/save.sh"), "own");
    env.tmux(
        Tmux::new("set-option")
            .args(["-g", "@resurrect-save-script-path"])
            .arg(own.to_str().unwrap()),
    );
    env.gt(&["save"]).ok();
    says("own quiet");
}

#[test]
fn each_town_of_a_server_saves_itself() {
    let env = TestEnv::with_town();
    let other = env.path("other");
    let other = other.to_str().unwrap();
    env.gt(&["init", other, "--harness", "demo", "--sandbox", "none"])
        .ok();
    // The other town's save stays pending while another process holds its save lock.
    let lock = env.path("other/.runtime/locks/save.lock");
    fs::create_dir_all(lock.parent().unwrap()).unwrap();
    let lock = fs::File::create(lock).unwrap();
    lock.lock().unwrap();
    env.gt(&["--town", other, "start", "agent/away", "--create"])
        .ok();
    env.gt(&["start", "mayor"]).ok();
    wait_until("this one is saved", TIMEOUT, || {
        (env.json(&["save", "--list"])[0]["containers"] == 1).then_some(())
    });
    lock.unlock().unwrap();
    wait_until("and then the other", TIMEOUT, || {
        let list = env.gt(&["--town", other, "save", "--list", "--json"]);
        (list.ok().json()[0]["agents"][0] == "agent/away").then_some(())
    });
}

#[test]
fn a_save_of_the_future_does_not_make_names_longer() {
    let env = TestEnv::with_town();
    by_hand(&env);
    env.gt(&["start", "mayor"]).ok();
    env.gt(&["save"]).ok();
    let first = files(&env)[0].clone();
    let ahead = first.with_file_name("20991231T235959.998Z-abcdef.json.gz");
    fs::rename(&first, &ahead).unwrap();
    for _ in 0..3 {
        let made = env.json(&["save"])["save"].as_str().unwrap().to_owned();
        let newest = files(&env)[0].clone();
        assert_eq!(
            newest.file_name().unwrap().len(),
            first.file_name().unwrap().len()
        );
        assert!(newest.to_str().unwrap().contains(&made), "it is the newest");
    }
}

#[test]
fn failed_automatic_save_is_recorded() {
    let env = TestEnv::with_town();
    let finding = |check: &str| {
        let found = env.gt(&["doctor", "--json"]).json();
        let findings = found.as_array().unwrap().clone();
        let mut of_check = findings.into_iter().filter(|f| f["check"] == check);
        of_check.next()
    };
    assert_eq!(finding("hooks").unwrap()["status"], "ok");
    assert_eq!(finding("saves"), None, "nothing runs");
    let folder = env.town().join(".sessions/saves");
    fs::create_dir_all(folder.parent().unwrap()).unwrap();
    fs::write(&folder, "").unwrap();
    env.gt(&["start", "mayor"]).ok();
    let log = env.town().join(".runtime/gt.log");
    wait_until("it is told", TIMEOUT, || {
        let text = fs::read_to_string(&log).unwrap_or_default();
        text.contains(" save: cannot ").then_some(())
    });
    assert_eq!(log.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let hooks = finding("hooks").unwrap();
    assert_eq!(hooks["status"], "warning", "{hooks}");
    let saves = wait_until("nothing is on its way", TIMEOUT, || {
        finding("saves").filter(|saves| saves["status"] == "warning")
    });
    assert!(
        saves["message"]
            .to_string()
            .contains("nothing was saved yet")
    );
    fs::remove_file(&folder).unwrap();
    env.gt(&["save"]).ok();
    assert_eq!(finding("saves").unwrap()["status"], "ok");
    let old = std::time::SystemTime::now() - Duration::from_secs(2 * 60 * 60);
    let file = fs::File::options().write(true).open(&files(&env)[0]);
    file.unwrap().set_modified(old).unwrap();
    let saves = finding("saves").unwrap();
    assert_eq!(saves["status"], "warning", "{saves}");
    // A sync that fails in a tmux hook is logged.
    fs::remove_file(env.town().join(".sessions/index.jsonl")).unwrap();
    fs::create_dir(env.town().join(".sessions/index.jsonl")).unwrap();
    env.gt(&["sync", "--hook"]).fails(1);
    assert!(fs::read_to_string(&log).unwrap().contains(" sync: "));
}

#[test]
fn save_prints_its_name() {
    let env = TestEnv::with_crew(&["max"]);
    assert_snapshot!(env.snapshot(&["save", "--list"]), @"
    exit code: 0
    --- stdout
    Nothing was saved yet.
    ");
    env.gt(&["start", "gastown/max", "--no-prompt"]).ok();
    assert_snapshot!(env.snapshot(&["save"]), @"
    exit code: 0
    --- stdout
    Saved 1 container: [SAVE] ([N] B)
    ");
    assert_snapshot!(env.snapshot(&["save", "--list"]), @"
    exit code: 0
    --- stdout
    SAVE  AGE  CONTAINERS  SIZE  BY
    [SAVE]  [N]  1  [N] B  hand
    ");
}

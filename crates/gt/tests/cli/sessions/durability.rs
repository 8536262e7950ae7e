//! The records of a town survive kills and failures of the processes that write them.

use crate::env::{TIMEOUT, TestEnv, kill_at, repetitions};
use crate::sessions::list_sessions;
use gt_tmux::Command as Tmux;
use gt_tmux::testing::wait_until;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::{Duration, Instant};

/// Deterministic pseudo-random numbers.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % end
    }
}

/// Returns the sessions that tmux shows, and those that the index has as running.
fn shown_and_remembered(env: &TestEnv) -> (BTreeSet<String>, BTreeSet<String>) {
    let rows = env.tmux(Tmux::new("list-panes").args(["-a", "-F", "#{pane_dead}#{@gt_session}"]));
    let shown = rows.lines().filter_map(|row| row.strip_prefix('0'));
    let shown = shown.filter(|id| !id.is_empty()).map(str::to_owned);
    let running = list_sessions(env, &["--status", "running", "--limit", "1000"]);
    let running = running
        .iter()
        .map(|session| session["id"].as_str().unwrap().to_owned());
    (shown.collect(), running.collect())
}

#[test]
fn killed_at_any_moment_nothing_acknowledged_is_lost() {
    let most_kills = repetitions(500, 100);
    const NAMES: [&str; 6] = ["amy", "bob", "cat", "dan", "eve", "fay"];
    let env = TestEnv::with_crew(&NAMES);
    // A user's session keeps the server alive.
    env.tmux(Tmux::new("new-session").args(["-d", "-s", "mine", "exec sleep 1000"]));
    let mut numbers = Numbers(4);
    // Measures the duration of a start and a stop on this machine. The upper limit excludes load
    // peaks.
    const LONGEST: u64 = 400_000;
    let began = Instant::now();
    env.gt(&["start", "gastown/amy", "--no-prompt", "--no-wait"])
        .ok();
    env.gt(&["stop", "gastown/amy", "--force"]).ok();
    let longest = u64::try_from(began.elapsed().as_micros())
        .unwrap()
        .min(LONGEST);
    let mut present: BTreeMap<&str, String> = BTreeMap::new();
    let (mut begun, mut ended) = (BTreeSet::new(), BTreeSet::new());
    let mut kills = 0;
    let mut handed_over = 0;
    let mut round = 0;
    // On a loaded machine most commands are killed before they are done, so that enough of each
    // kind must have been acknowledged as well.
    while kills < most_kills || begun.len() < 10 || ended.len() < 5 || handed_over < 2 {
        round += 1;
        let name = NAMES[usize::try_from(numbers.below(6)).unwrap()];
        let target = format!("gastown/{name}");
        let action = numbers.below(10);
        let args: &[&str] = match action {
            8 | 9 => &["handoff", &target, "--force", "--no-git-check", "--json"],
            0..=2 => &["start", &target, "--no-prompt", "--no-wait", "--json"],
            3 | 4 => &["stop", &target, "--force", "--json"],
            5 => &["sync", "--json"],
            6 => &["sessions", "archive", "--before", "now", "--json"],
            _ => &["save", "--json"],
        };
        let child = env.spawn(args);
        // Kills at any point of the run. A command that ended earlier is not waited for, because
        // its duration varies with the load.
        // Every fourth command is not killed.
        let limit = if round % 4 == 0 {
            TIMEOUT
        } else {
            Duration::from_micros(numbers.below(longest))
        };
        let at = Instant::now() + limit;
        let (output, was_alive) = kill_at(child, at);
        kills += usize::from(was_alive);
        if !output.status.success() {
            continue;
        }
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        match action {
            0..=2 => {
                let id = answer[0]["session"].as_str().unwrap().to_owned();
                begun.insert(id.clone());
                present.insert(name, id);
            }
            3 | 4 => ended.extend(present.remove(name)),
            8 | 9 => {
                let id = |field: &str| answer[field].as_str().unwrap().to_owned();
                ended.insert(id("session"));
                begun.insert(id("successor"));
                present.insert(name, id("successor"));
                handed_over += 1;
            }
            _ => {}
        }
    }
    env.gt(&["sync"]).ok();
    let (shown, running) = shown_and_remembered(&env);
    assert_eq!(running, shown, "the table is what tmux shows");
    let exported = env.gt(&["sessions", "export"]).ok().stdout;
    let all: BTreeMap<String, Value> = exported
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|session| (session["id"].as_str().unwrap().to_owned(), session))
        .collect();
    assert_eq!(all.len(), exported.lines().count(), "each session once");
    for id in &begun {
        assert!(all.contains_key(id), "{id} was begun and is forgotten");
    }
    for id in &ended {
        assert!(
            all[id]["outcome"].is_string(),
            "{id} was ended: {}",
            all[id]
        );
    }
    // A rebuild gives the same result, once the hooks of the last starts have reported.
    let list = || list_sessions(&env, &["--limit", "1000"]);
    wait_until("a rebuild gives the same result", TIMEOUT, || {
        let before = list();
        let rebuilt = env.json(&["sessions", "rebuild"]);
        assert_eq!(rebuilt["skipped_lines"], json!([]), "{rebuilt}");
        (list() == before).then_some(())
    });
    let saves = env.json(&["save", "--list"]);
    assert!(!saves.to_string().contains("damaged\":true"), "{saves}");
}

#[test]
fn twenty_processes_at_once_lose_nothing() {
    let seconds = u64::try_from(repetitions(30, 4)).unwrap();
    let names: Vec<String> = (0..20).map(|number| format!("w{number:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let env = TestEnv::with_crew(&names);
    env.tmux(Tmux::new("new-session").args(["-d", "-s", "mine", "exec sleep 1000"]));
    let until = Instant::now() + Duration::from_secs(seconds);
    let rounds: usize = std::thread::scope(|scope| {
        let workers: Vec<_> = names
            .iter()
            .map(|name| {
                let env = &env;
                scope.spawn(move || {
                    let target = format!("gastown/{name}");
                    let mut rounds = 0;
                    while Instant::now() < until {
                        let start = ["start", &target, "--no-prompt", "--no-wait", "--json"];
                        let started = env.gt(&start).ok().json();
                        let id = started[0]["session"].as_str().unwrap();
                        env.gt(&["sessions", "list", "--agent", &target]).ok();
                        env.gt(&["sessions", "show", id]).ok();
                        env.gt(&["sync"]).ok();
                        env.gt(&["sessions", "stats"]).ok();
                        env.gt(&["stop", &target, "--force"]).ok();
                        let ended = env.gt(&["sessions", "show", id, "--json"]).ok().json();
                        assert_eq!(ended["outcome"], "stopped", "{ended}");
                        rounds += 1;
                    }
                    rounds
                })
            })
            .collect();
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap())
            .sum()
    });
    assert!(rounds >= 20, "{rounds}");
    let all = list_sessions(&env, &["--limit", "100000"]);
    assert_eq!(all.len(), rounds);
    assert!(all.iter().all(|session| session["outcome"] == "stopped"));
    env.gt(&["sync"]).ok();
    let (shown, running) = shown_and_remembered(&env);
    assert_eq!((shown.len(), running.len()), (0, 0));
}

#[test]
fn full_disk_is_reported_and_loses_no_record() {
    // A real full disk: a small tmpfs in a private mount namespace.
    let env = TestEnv::with_town();
    let gt = env!("CARGO_BIN_EXE_gt");
    let script = format!(
        "mount -t tmpfs -o size=512k tmpfs \"$HOME/gt/.sessions\" || exit 99
         '{gt}' start mayor --no-prompt >/dev/null || exit 98
         '{gt}' sessions list >/dev/null || exit 97
         dd if=/dev/zero of=\"$HOME/gt/.sessions/fill\" bs=1k 2>/dev/null
         '{gt}' start deacon --instructions \"$(head -c 9000 /dev/zero | tr '\\0' x)\"; echo \"start $?\"
         '{gt}' stop mayor --force; echo \"stop $?\"
         rm \"$HOME/gt/.sessions/fill\"
         '{gt}' sync >/dev/null; echo \"sync $?\"
         '{gt}' sessions list --json; echo
         '{gt}' agents --json >/dev/null; echo \"agents $?\"
         tmux -S \"$GT_TMUX_SOCKET\" kill-server 2>/dev/null; true"
    );
    let Some(answer) = env.run_with_mounts(&script) else {
        return;
    };
    let (stdout, stderr) = (answer.stdout, answer.stderr);
    let said = format!("{stdout}\n{stderr}");
    assert!(stdout.contains("start 1"), "{said}");
    assert!(stderr.contains("disk is full"), "{said}");
    assert!(
        stdout.contains("sync 0") && stdout.contains("agents 0"),
        "{said}"
    );
    let list = stdout
        .lines()
        .skip_while(|line| *line != "[")
        .take_while(|line| !line.starts_with("agents"));
    let list: Value = serde_json::from_str(&list.collect::<String>()).unwrap();
    let mayor = &list[0];
    assert_eq!(
        list.as_array().unwrap().len(),
        1,
        "what failed is not there: {said}"
    );
    assert_eq!(mayor["agent"], "mayor", "{said}");
    assert!(mayor["outcome"].is_string(), "it was stopped: {said}");
}

#[test]
fn a_journal_that_is_cut_off_in_the_middle_of_a_line_goes_on() {
    let env = TestEnv::with_town();
    env.gt(&["start", "mayor", "--no-prompt"]).ok();
    // A role without a formula: its start is the last line.
    env.gt(&["start", "deacon/dogs/rex", "--no-prompt"]).ok();
    let journal = env.town().join(".sessions/index.jsonl");
    let text = fs::read(&journal).unwrap();
    fs::write(&journal, &text[..text.len() - 40]).unwrap();
    // The session whose line was cut still runs in tmux.
    wait_until("both are known again", TIMEOUT, || {
        env.gt(&["sync"]).ok();
        (list_sessions(&env, &["--status", "running"]).len() == 2).then_some(())
    });
    let rebuilt = env.json(&["sessions", "rebuild"]);
    assert_eq!(rebuilt["lives"], 2, "{rebuilt}");
    assert_eq!(rebuilt["skipped_lines"], json!([]), "it was set aside");
    assert!(env.town().join(".sessions/index.torn").is_file());
}

#[test]
fn damaged_index_is_rebuilt_by_the_next_query() {
    let env = TestEnv::with_town();
    env.gt(&["start", "mayor", "deacon", "--no-prompt"]).ok();
    env.gt(&["stop", "deacon"]).ok();
    let before = list_sessions(&env, &[]);
    assert_eq!(before.len(), 2);
    env.gt(&["sessions", "rebuild"]).ok();
    let database = env.town().join(".sessions/index.db");
    let mut bytes = fs::read(&database).unwrap();
    // All pages but the first, which identifies the file.
    bytes[8192..].fill(0xaa);
    fs::write(&database, bytes).unwrap();
    assert_eq!(list_sessions(&env, &[]), before);
    env.gt(&["stop", "mayor"]).ok();
    assert_eq!(list_sessions(&env, &["--outcome", "stopped"]).len(), 2);
}

#[test]
fn an_archive_is_found_without_the_index_and_never_hidden() {
    let env = TestEnv::with_town();
    env.gt(&["start", "mayor", "--no-prompt"]).ok();
    env.gt(&["stop", "mayor"]).ok();
    env.gt(&["sessions", "archive", "--before", "now"]).ok();
    let exported = || env.gt(&["sessions", "export"]).ok().stdout;
    let session = exported();
    assert_eq!(session.lines().count(), 1, "{session}");
    let id = serde_json::from_str::<Value>(&session).unwrap()["id"]
        .as_str()
        .unwrap()
        .to_owned();
    fs::remove_file(env.town().join(".sessions/index.db")).unwrap();
    assert_eq!(exported(), session);
    // An archived session accepts no steps, and reading it writes nothing.
    env.gt(&["step", "start", "x", "--life", &id]).fails(4);
    for _ in 0..2 {
        assert_eq!(env.json(&["sessions", "show", &id])["agent"], "mayor");
    }
    assert_eq!(exported(), session);
}

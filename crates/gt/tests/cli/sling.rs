//! `gt sling`, and the lifecycle of polecats.

use crate::env::{TIMEOUT, TestEnv, login, signal};
use crate::mq::{MERGED, finish, repository, worktree};
use crate::sessions::list_sessions;
use gt_tmux::testing::wait_until;
use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

const MAX: &str = "gastown/crew/max";

pub(crate) fn create(env: &TestEnv, title: &str) -> String {
    let item = env.json(&["work", "create", title]);
    item["id"].as_str().unwrap().to_owned()
}

pub(crate) fn status(env: &TestEnv, id: &str) -> String {
    let item = env.json(&["work", "show", id]);
    item["status"].as_str().unwrap().to_owned()
}

pub(crate) fn folder(env: &TestEnv, name: &str) -> PathBuf {
    env.town().join("gastown/polecats").join(name)
}

/// Returns the branches of the rig's polecats.
pub(crate) fn branches(env: &TestEnv) -> Vec<String> {
    let repository = env.town().join("gastown/.repo.git");
    let format = "--format=%(refname:short)";
    let found = env.git(&repository, &["for-each-ref", format, "refs/heads/polecat"]);
    found.lines().map(str::to_owned).collect()
}

fn current_branch(env: &TestEnv, name: &str) -> String {
    let branch = env.git(&folder(env, name), &["branch", "--show-current"]);
    branch.trim().to_owned()
}

pub(crate) fn polecats(env: &TestEnv) -> Vec<Value> {
    let found = env.json(&["polecat", "list"]);
    found.as_array().unwrap().clone()
}

pub(crate) fn state(env: &TestEnv, name: &str) -> String {
    let found = env.json(&["polecat", "show", name]);
    found["state"].as_str().unwrap().to_owned()
}

/// Stops a polecat and closes its item, so that the polecat is free.
fn free(env: &TestEnv, name: &str) {
    let address = format!("gastown/polecats/{name}");
    env.gt(&["stop", &address]).ok();
    let bead = env.json(&["unhook", "--agent", &address]);
    env.gt(&["work", "close", bead["item"].as_str().unwrap()])
        .ok();
}

/// Makes the program of polecats exit at once.
fn break_polecats(env: &TestEnv) {
    let role = "[session]\nstart_command = 'exit 3'\n";
    fs::write(env.town().join("roles/polecat.toml"), role).unwrap();
}

fn mend_polecats(env: &TestEnv) {
    fs::remove_file(env.town().join("roles/polecat.toml")).unwrap();
}

fn limit(env: &TestEnv, line: &str) {
    let file = env.town().join("town.toml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(file, text.replace("[limits]", &format!("[limits]\n{line}"))).unwrap();
}

#[test]
fn an_item_goes_to_a_new_polecat_that_finds_it_when_it_starts() {
    let env = TestEnv::with_rig();
    let id = create(&env, "Fix it");
    let slung = env.json(&["sling", &id, "--args", "mind the gap"]);
    let branch = format!("polecat/Toast/{id}");
    for (field, expected) in [
        ("bead", json!(id)),
        ("agent", json!("gastown/polecats/Toast")),
        ("container", json!("gt-Toast")),
        ("branch", json!(branch)),
        ("work_dir", json!(folder(&env, "Toast"))),
        ("started", json!(true)),
        ("reused", json!(false)),
    ] {
        assert_eq!(slung[field], expected, "{field}: {slung}");
    }
    assert_eq!(current_branch(&env, "Toast"), branch);
    assert_eq!(branches(&env), [branch.as_str()]);
    let item = env.json(&["work", "show", &id]);
    assert_eq!(item["status"], "hooked");
    assert_eq!(item["assignee"], "gastown/polecats/Toast");
    assert_eq!(item["notes"], "mind the gap");
    let session = &list_sessions(&env, &["--work", &id])[0];
    assert_eq!(
        session["id"], slung["session"],
        "it was there from the start"
    );
    assert_eq!(session["branch"], json!(branch));
    let prompt = session["initial_prompt"].as_str().unwrap();
    assert!(
        prompt.contains("assigned") && prompt.contains("mind the gap"),
        "{prompt}"
    );
    let told = env.json(&["events", "--type", "hook,sling,spawn"]);
    let kinds = told.as_array().unwrap().iter();
    let kinds: Vec<&str> = kinds.map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["hook", "sling", "spawn"]);
    let feed = env.gt(&["events", "--feed"]).ok().stdout;
    assert!(
        feed.contains(&format!(
            "{} assigned {id} to gastown/polecats/Toast",
            login()
        )),
        "{feed}"
    );
    // A second sling is idempotent; new arguments are refused, because they would not be delivered.
    let again = env.json(&["sling", &id]);
    assert_eq!(again["session"], slung["session"]);
    assert_eq!(again["started"], false);
    env.gt(&["sling", &id, "--args", "more"]).fails(4);
    // The rig may come first.
    let other = create(&env, "Fix that");
    let slung = env.json(&["sling", "gastown", &other, "--no-start"]);
    assert_eq!(slung["agent"], "gastown/polecats/Nux");
    assert_eq!(slung["started"], false);
    assert_eq!(slung["session"], Value::Null);
    assert_eq!(state(&env, "Nux"), "stopped");
    assert_eq!(env.running(), ["gastown/polecats/Toast"]);
    // An item that was only hooked is started.
    let slung = env.json(&["sling", &other, "gastown"]);
    assert_eq!(slung["agent"], "gastown/polecats/Nux");
    assert_eq!(slung["started"], true);
    assert_eq!(state(&env, "Nux"), "working");
}

#[test]
fn named_agent_gets_the_item_and_is_started_or_nudged() {
    let env = TestEnv::with_crew(&["max"]);
    let [a, b, c] = ["a", "b", "c"].map(|title| create(&env, title));
    let slung = env.json(&["sling", &a, "gastown/max"]);
    assert_eq!(slung["agent"], "gastown/crew/max");
    assert_eq!(slung["started"], true);
    assert_eq!(slung["branch"], "crew/max");
    env.gt(&["sling", &b, "gastown/max"]).fails(4);
    assert_eq!(status(&env, &b), "open");
    env.gt(&["sling", &a]).fails(4);
    env.gt(&["unhook", &a]).ok();
    let slung = env.json(&["sling", "max", &b, "--args", "soon"]);
    assert_eq!(slung["started"], false);
    assert_eq!(slung["nudged"], true);
    env.wait_screen("gastown/max", "new work on your hook");
    env.wait_screen("gastown/max", "soon");
    assert_eq!(
        list_sessions(&env, &["--work", &b]).len(),
        1,
        "the running session"
    );
    // A polecat is selected by its name, whether it exists or not.
    let slung = env.json(&["sling", &c, "gastown/polecats/Zed"]);
    assert_eq!(slung["branch"], json!(format!("polecat/Zed/{c}")));
    assert_eq!(state(&env, "Zed"), "working");
    // An item of the town belongs to no rig.
    let town = env.json(&["work", "create", "t", "--rig", "hq"]);
    let town = town["id"].as_str().unwrap();
    env.gt(&["sling", town]).fails(2);
    assert_eq!(env.json(&["sling", town, "mayor"])["agent"], "mayor");
    // A misspelt target creates no agent.
    let d = create(&env, "d");
    env.gt(&["sling", &d, "gastown/nobody"]).fails(3);
    env.gt(&["sling", &d, "gastown/crew/nobody"]).fails(3);
    env.gt(&["sling", &d, "gastown", "mayor"]).fails(2);
    env.gt(&["sling", "gastown"]).fails(2);
    env.gt(&["sling", &a, &d, "gastown/max"]).fails(2);
    assert_eq!(status(&env, &d), "open");
    assert_eq!(polecats(&env).len(), 1);
}

#[test]
fn several_items_go_to_as_many_polecats_despite_a_bad_one() {
    let env = TestEnv::with_rig();
    let [a, b, c, d] = ["a", "b", "c", "d"].map(|title| create(&env, title));
    env.gt(&["work", "dep", "add", &d, &a]).ok();
    let answer = env.gt(&["sling", &a, &b, "gt-nosuch", &c, &d, "--json"]);
    let answer = answer.fails(3);
    let rows = answer.json();
    let rows = rows.as_array().unwrap();
    assert_eq!(rows.len(), 5);
    let started: Vec<bool> = rows.iter().map(|row| row["started"] == true).collect();
    assert_eq!(started, [true, true, false, true, false]);
    assert_eq!(rows[2]["error"]["kind"], "not_found");
    assert_eq!(rows[2].get("batch"), None);
    // An item of a batch that waits for another is queued.
    assert_eq!(rows[4]["queued"], true, "{rows:?}");
    let mut agents: Vec<&str> = rows
        .iter()
        .filter_map(|row| row["agent"].as_str())
        .collect();
    agents.sort_unstable();
    agents.dedup();
    assert_eq!(agents.len(), 3, "{rows:?}");
    assert_eq!(env.running(), agents);
    for polecat in polecats(&env) {
        let (name, bead) = (&polecat["name"], &polecat["bead"]);
        let branch = format!(
            "polecat/{}/{}",
            name.as_str().unwrap(),
            bead.as_str().unwrap()
        );
        assert_eq!(polecat["branch"], json!(branch));
        assert_eq!(polecat["state"], "working");
    }
    let town = env.json(&["work", "create", "t", "--rig", "hq"]);
    let town = town["id"].as_str().unwrap();
    let both = ["sling", town, &d, "--force", "--no-start", "--json"];
    let rows = env.gt(&both).fails(2).json();
    assert_eq!(rows[0]["error"]["kind"], "usage", "{rows}");
    assert_eq!(rows[1]["reused"], false, "{rows}");
    assert_eq!(status(&env, &d), "hooked");
}

#[test]
fn a_free_polecat_is_taken_again_and_one_with_work_is_not() {
    let env = TestEnv::with_rig();
    let [a, b, c, d] = ["a", "b", "c", "d"].map(|title| create(&env, title));
    env.gt(&["sling", &a]).ok();
    // The work is committed and waits on its branch.
    fs::write(folder(&env, "Toast").join("work.txt"), "done").unwrap();
    env.git(&folder(&env, "Toast"), &["add", "."]);
    env.git(&folder(&env, "Toast"), &["commit", "--quiet", "-m", "Work"]);
    free(&env, "Toast");
    assert_eq!(state(&env, "Toast"), "idle");
    let slung = env.json(&["sling", &b]);
    assert_eq!(slung["agent"], "gastown/polecats/Toast");
    assert_eq!(slung["reused"], true);
    assert_eq!(current_branch(&env, "Toast"), format!("polecat/Toast/{b}"));
    assert!(!folder(&env, "Toast").join("work.txt").exists());
    assert_eq!(branches(&env).len(), 2, "what was done stays");
    free(&env, "Toast");
    // A polecat with uncommitted files is not reused, and the files stay.
    fs::write(folder(&env, "Toast").join("new.txt"), "x").unwrap();
    assert_eq!(state(&env, "Toast"), "dirty");
    let slung = env.json(&["sling", &c]);
    assert_eq!(slung["agent"], "gastown/polecats/Nux");
    env.gt(&["sling", &d, "gastown/polecats/Toast"]).fails(4);
    assert!(folder(&env, "Toast").join("new.txt").exists());
    assert_eq!(status(&env, &d), "open");
    // Commits on no branch count as well.
    fs::remove_file(folder(&env, "Toast").join("new.txt")).unwrap();
    let commit = ["commit", "--quiet", "--allow-empty", "-m", "Loose"];
    env.git(&folder(&env, "Toast"), &["checkout", "--quiet", "--detach"]);
    env.git(&folder(&env, "Toast"), &commit);
    assert_eq!(state(&env, "Toast"), "dirty");
    let slung = env.json(&["sling", &d, "--no-start"]);
    assert_eq!(slung["agent"], "gastown/polecats/Furiosa");
}

#[test]
fn polecat_that_worked_on_an_item_gets_it_again() {
    let env = TestEnv::with_rig();
    let [a, b] = ["a", "b"].map(|title| create(&env, title));
    env.gt(&["sling", &a, "--no-start"]).ok();
    env.gt(&["sling", &b, "--no-start"]).ok();
    for id in [&a, &b] {
        env.gt(&["unhook", id]).ok();
    }
    let slung = env.json(&["sling", &b, "--no-start"]);
    assert_eq!(slung["agent"], "gastown/polecats/Nux");
    assert_eq!(branches(&env).len(), 2);
}

#[test]
fn no_more_polecats_work_than_are_allowed() {
    let env = TestEnv::with_rig();
    env.add_rig("other", "ot");
    limit(&env, "polecats = 2\npolecats_per_rig = 1");
    let [a, b] = ["a", "b"].map(|title| {
        let item = env.json(&["work", "create", title, "--rig", "gastown"]);
        item["id"].as_str().unwrap().to_owned()
    });
    env.gt(&["sling", &a, "--no-start"]).ok();
    assert_snapshot!(env.snapshot(&["sling", &b, "--now"]), @"
    exit code: 4
    --- stderr
    error: the rig gastown has 1 polecat at work, the maximum
    hint: `gt polecat list` shows them; wait until one is done
    hint: `gt polecat nuke NAME` removes one, and its item is open again
    hint: or set `polecats_per_rig` under [limits] in town.toml
    ");
    assert_eq!(status(&env, &b), "open");
    env.gt(&["sling", &b, "other", "--no-start"]).ok();
    let c = create(&env, "c");
    let file = env.town().join("town.toml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(
        &file,
        text.replace("polecats_per_rig = 1", "polecats_per_rig = 9"),
    )
    .unwrap();
    assert_snapshot!(env.snapshot(&["sling", &c, "gastown", "--now"]), @"
    exit code: 4
    --- stderr
    error: the town has 2 polecats at work, the maximum
    hint: `gt polecat list` shows them; wait until one is done
    hint: `gt polecat nuke NAME` removes one, and its item is open again
    hint: or set `polecats` under [limits] in town.toml
    ");
    assert_eq!(polecats(&env).len(), 2);
    // Names from the town's settings.
    let names = "[polecats]\nnames = ['Ann']\nrig_names = { other = ['Bob'] }\n";
    let text = fs::read_to_string(&file).unwrap();
    fs::write(
        &file,
        format!("{}\n{names}", text.replace("polecats = 2", "polecats = 9")),
    )
    .unwrap();
    let slung = env.json(&["sling", &c, "other", "--no-start"]);
    assert_eq!(slung["agent"], "other/polecats/Bob");
    let d = create(&env, "d");
    let slung = env.json(&["sling", &d, "gastown", "--no-start"]);
    assert_eq!(slung["agent"], "gastown/polecats/Ann");
}

#[test]
fn impossible_sling_is_refused_before_anything_is_made() {
    let env = TestEnv::with_rig();
    let [a, b, c] = ["a", "b", "c"].map(|title| create(&env, title));
    env.gt(&["work", "dep", "add", &b, &a]).ok();
    env.gt(&["work", "close", &c]).ok();
    assert_snapshot!(env.snapshot(&["sling", &b]), @"
    exit code: 4
    --- stderr
    error: gt-[ID] waits for gt-[ID]
    hint: `--force` assigns it anyway
    ");
    env.gt(&["sling", &c]).fails(4);
    env.gt(&["sling", "gt-nosuch"]).fails(3);
    env.gt(&["sling", &a, "nowhere"]).fails(3);
    env.gt(&["sling", &a, "--harness", "claude"]).fails(5);
    env.gt(&["sling", &a, "--account", "nobody"]).fails(3);
    env.gt(&["rig", "park", "gastown"]).ok();
    env.gt(&["sling", &a]).fails(4);
    assert_eq!(polecats(&env), Vec::<Value>::new());
    assert_eq!(branches(&env), [""; 0]);
    assert_eq!(status(&env, &a), "open");
}

#[test]
fn failed_start_rolls_back_only_the_sling() {
    let env = TestEnv::with_crew(&["max"]);
    let [a, b, c] = ["a", "b", "c"].map(|title| create(&env, title));
    env.gt(&["work", "update", &b, "--notes", "old"]).ok();
    break_polecats(&env);
    env.gt(&["sling", &b, "--args", "new"]).fails(1);
    assert_eq!(polecats(&env), Vec::<Value>::new());
    assert_eq!(branches(&env), [""; 0]);
    let item = env.json(&["work", "show", &b]);
    assert_eq!(item["status"], "open");
    assert_eq!(item["notes"], "old");
    assert_eq!(item["assignee"], Value::Null);
    mend_polecats(&env);
    // An existing polecat is unchanged.
    env.gt(&["sling", &a]).ok();
    free(&env, "Toast");
    break_polecats(&env);
    env.gt(&["sling", &b]).fails(1);
    assert_eq!(current_branch(&env, "Toast"), format!("polecat/Toast/{a}"));
    assert_eq!(branches(&env), [format!("polecat/Toast/{a}")]);
    assert_eq!(state(&env, "Toast"), "idle");
    assert_eq!(status(&env, &b), "open");
    // An item that was hooked before the failed start stays hooked.
    env.gt(&["sling", &b, "--no-start"]).ok();
    env.gt(&["sling", &b]).fails(1);
    assert_eq!(status(&env, &b), "hooked");
    assert_eq!(state(&env, "Toast"), "stopped");
    // Crew workers are rolled back as well.
    let role = "[session]\nstart_command = 'exit 3'\n";
    fs::write(env.town().join("roles/crew.toml"), role).unwrap();
    env.gt(&["sling", &c, "gastown/max"]).fails(1);
    assert_eq!(status(&env, &c), "open");
    assert!(env.town().join("gastown/crew/max").exists());
    assert_eq!(env.running(), [""; 0]);
}

#[test]
fn interrupted_sling_rolls_back() {
    let env = TestEnv::with_rig();
    let demo = "[command]\nargs = ['demo-agent', '--startup-delay', '10000']\n";
    fs::write(env.town().join("harnesses/demo.toml"), demo).unwrap();
    let id = create(&env, "a");
    let start = ["start", "--create", "gastown/polecats/Nux"];
    for begin in [&["sling", &id][..], &start] {
        let child = env.spawn(begin);
        wait_until("it is being started", TIMEOUT, || {
            (!env.sessions().is_empty()).then_some(())
        });
        let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        rustix::process::kill_process(pid, Signal::INT).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert_eq!(status(&env, &id), "open");
        assert_eq!(polecats(&env), Vec::<Value>::new());
        assert_eq!(branches(&env), [""; 0]);
        assert_eq!(env.running(), [""; 0]);
    }
}

#[test]
fn repeated_sling_completes_one_that_was_killed() {
    for point in gt_town::workflow::sling::FAULT_POINTS {
        let env = TestEnv::with_rig();
        let id = create(&env, "a");
        let args = ["sling", &id, "--args", "mind the gap"];
        env.kill_at_fault(&args, point);
        // A polecat without an item is free, and a polecat with one has a worktree.
        let found = polecats(&env);
        for polecat in &found {
            assert_ne!(polecat["state"], "dirty", "{point}: {polecat}");
            assert!(folder(&env, "Toast").join("README.md").exists(), "{point}");
        }
        assert_eq!(
            status(&env, &id) == "hooked",
            !matches!(*point, "sling.allocated" | "sling.placed"),
            "{point}"
        );
        let args = if *point == "sling.started" {
            &args[..2]
        } else {
            &args[..]
        };
        let slung = env.json(args);
        assert_eq!(slung["agent"], "gastown/polecats/Toast", "{point}");
        assert_eq!(env.running(), ["gastown/polecats/Toast"], "{point}");
        assert_eq!(polecats(&env).len(), 1, "{point}");
        assert_eq!(branches(&env), [format!("polecat/Toast/{id}")], "{point}");
        assert_eq!(current_branch(&env, "Toast"), branches(&env)[0], "{point}");
        let item = env.json(&["work", "show", &id]);
        assert_eq!(item["assignee"], "gastown/polecats/Toast", "{point}");
        assert_eq!(item["notes"], "mind the gap", "{point}");
    }
}

#[test]
fn dead_polecats_do_not_fill_the_pool() {
    let env = TestEnv::with_rig();
    limit(&env, "polecats_per_rig = 2");
    let [a, b, c, d] = ["a", "b", "c", "d"].map(|title| create(&env, title));
    env.gt(&["sling", &a]).ok();
    env.gt(&["sling", &b]).ok();
    assert_snapshot!(env.snapshot(&["sling", &c, "--now"]), @"
    exit code: 4
    --- stderr
    error: the rig gastown has 2 polecats at work, the maximum
    hint: `gt polecat list` shows them; wait until one is done
    hint: `gt polecat nuke NAME` removes one, and its item is open again
    hint: or set `polecats_per_rig` under [limits] in town.toml
    ");
    // One polecat dies in its pane; the other one also loses its container.
    signal(env.pid("gastown/polecats/Toast"), Signal::KILL);
    wait_until("it is dead", TIMEOUT, || {
        (env.format("gt-Toast", "#{pane_dead}") == "1").then_some(())
    });
    env.gt(&["stop", "gastown/polecats/Nux"]).ok();
    for (id, name) in [(&c, "Furiosa"), (&d, "Slit")] {
        let slung = env.json(&["sling", id]);
        assert_eq!(slung["agent"], format!("gastown/polecats/{name}"));
    }
    assert_eq!(status(&env, &a), "hooked", "they keep their items");
    assert_eq!(state(&env, "Toast"), "stopped");
    // They start again as soon as the limit permits.
    env.gt(&["sling", &a]).fails(4);
    env.gt(&["stop", "gastown/polecats/Slit"]).ok();
    let slung = env.json(&["sling", &a]);
    assert_eq!(slung["agent"], "gastown/polecats/Toast");
    env.gt(&["sling", &b]).fails(4);
}

#[test]
fn racing_processes_give_each_item_away_once_and_keep_to_the_limit() {
    const ITEMS: usize = 20;
    const LIMIT: usize = 5;
    let env = TestEnv::with_rig();
    limit(&env, &format!("polecats_per_rig = {LIMIT}"));
    let items: Vec<String> = (0..ITEMS).map(|n| create(&env, &format!("i{n}"))).collect();
    // The first items are slung twice: concurrent slings of one item must not assign two polecats.
    let wanted = items.iter().chain(items.iter().take(4));
    let racers: Vec<_> = wanted
        .map(|id| (id, env.spawn(&["sling", id, "--now", "--json"])))
        .collect();
    let mut given = Vec::new();
    for (id, racer) in racers {
        let output = racer.wait_with_output().unwrap();
        match output.status.code() {
            Some(0) => {
                let slung: Value = serde_json::from_slice(&output.stdout).unwrap();
                given.push((id.clone(), slung["agent"].as_str().unwrap().to_owned()));
            }
            code => assert_eq!(code, Some(4), "{id}: {output:?}"),
        }
    }
    given.sort();
    given.dedup();
    assert_eq!(given.len(), LIMIT, "{given:?}");
    let mut agents: Vec<String> = given.iter().map(|(_, agent)| agent.clone()).collect();
    agents.sort();
    agents.dedup();
    assert_eq!(agents.len(), LIMIT, "{given:?}");
    assert_eq!(env.running(), agents);
    for id in &items {
        let is_given = given.iter().any(|(given, _)| given == id);
        assert_eq!(status(&env, id) == "hooked", is_given, "{id}");
    }
    assert_eq!(
        polecats(&env).len(),
        LIMIT,
        "those who were refused left nothing"
    );
    assert_eq!(branches(&env).len(), LIMIT);
}

#[test]
fn old_branch_that_blocks_item_branches_is_renamed() {
    let env = TestEnv::with_rig();
    let id = create(&env, "a");
    env.gt(&["start", "--create", "gastown/polecats/Toast"])
        .ok();
    assert_eq!(current_branch(&env, "Toast"), "polecat/Toast/idle");
    env.gt(&["stop", "gastown/polecats/Toast"]).ok();
    let rename = ["branch", "-m", "polecat/Toast/idle", "polecat/Toast"];
    env.git(&folder(&env, "Toast"), &rename);
    let slung = env.json(&["sling", &id]);
    assert_eq!(slung["agent"], "gastown/polecats/Toast");
    let expected = [
        format!("polecat/Toast/{id}"),
        "polecat/Toast/idle".to_owned(),
    ];
    assert_eq!(branches(&env), expected);
    assert_eq!(current_branch(&env, "Toast"), expected[0]);
}

#[test]
fn item_without_a_rig_is_slung_and_a_missing_item_is_not_found() {
    let env = TestEnv::with_crew(&["max"]);
    assert_snapshot!(env.snapshot(&["sling", "nope-12345"]), @"
    exit code: 3
    --- stderr
    error: there is no work item nope-12345
    hint: `gt work list` shows them
    ");
    let items = ["a", "b"].map(|title| {
        let item = env.json(&["work", "create", title, "--rig", "hq"]);
        item["id"].as_str().unwrap().to_owned()
    });
    let [id, other] = &items;
    env.gt(&["sling", id]).fails(2);
    let first = env.json(&["sling", id, "gastown", "--no-start"]);
    let again = env.json(&["sling", id]);
    assert_eq!(again["agent"], first["agent"], "{again}");
    assert_eq!(again["started"], true, "{again}");
    env.gt(&["hook", other, "--agent", "gastown/max"]).ok();
    assert_snapshot!(env.snapshot(&["sling", other]), @"
    exit code: 4
    --- stderr
    error: hq-[ID] is on the hook of gastown/crew/max
    hint: `gt unhook hq-[ID]` takes it off
    ");
}

fn commit(env: &TestEnv, dir: &Path, file: &str) {
    fs::write(dir.join(file), "x\n").unwrap();
    env.git(dir, &["add", "-A"]);
    let who = ["-c", "user.name=p", "-c", "user.email=p@localhost"];
    env.git(
        dir,
        &[&who[..], &["commit", "--quiet", "-m", file]].concat(),
    );
}

fn work_dir(slung: &Value) -> PathBuf {
    PathBuf::from(slung["work_dir"].as_str().unwrap())
}

#[test]
fn next_polecat_of_an_item_continues_its_branch() {
    let env = TestEnv::with_rig();
    let id = env.create_item("Mend the roof");
    let first = env.json(&["sling", &id]);
    let dir = work_dir(&first);
    commit(&env, &dir, "half.txt");
    fs::write(dir.join("more.txt"), "not committed\n").unwrap();
    let nux = first["agent"].as_str().unwrap();
    assert_snapshot!(env.snapshot(&["handoff", nux, "--dry-run"]), @"
    exit code: 0
    --- stdout
    gastown/polecats/Toast would put gt-[ID] back, and its session would end: it is a polecat, so this is `gt done --status deferred`.
    ");
    assert_eq!(env.json(&["work", "show", &id])["status"], "hooked");
    env.gt(&["handoff", nux, "-m", "tired"]).ok();
    assert_eq!(env.json(&["work", "show", &id])["status"], "open");
    // The next sling returns the item to the polecat that has its work, with uncommitted changes.
    let again = env.json(&["sling", &id]);
    assert_eq!(again["agent"], nux, "{again}");
    assert!(dir.join("half.txt").exists() && dir.join("more.txt").exists());
    // If that polecat is occupied, another one starts from its commits.
    env.gt(&["done", "--agent", nux, "--status", "deferred"])
        .ok();
    fs::remove_file(dir.join("more.txt")).unwrap();
    let other = env.create_item("Sweep the yard");
    env.gt(&["sling", &other, nux]).ok();
    let third = env.json(&["sling", &id]);
    assert_ne!(third["agent"], nux, "{third}");
    assert!(work_dir(&third).join("half.txt").exists(), "{third}");
    assert!(
        !dir.join("half.txt").exists(),
        "another item begins at the base"
    );
}

/// A filter of the person's own configuration moves the base while git writes the files.
#[test]
fn base_that_moves_during_a_checkout_does_not_mix_two_commits() {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["sling", &create(&env, "first")]).ok();
    free(&env, "Toast");
    finish(&env, "max", "a.txt", "a\n");
    env.gt(&["mq", "run"]).ok();
    let repository = repository(&env);
    let tip = |name: &str| env.git(&repository, &["rev-parse", name]).trim().to_owned();
    let before = tip(MERGED);
    commit(&env, &worktree(&env, "max"), "b.txt");
    let after = tip("crew/max");
    let script = env.path("move-base.sh");
    let update = format!("update-ref {MERGED} {after}");
    let git_dir = repository.display();
    let text = format!("cat\nenv -u GIT_DIR git --git-dir='{git_dir}' {update}\n");
    fs::write(&script, text).unwrap();
    fs::write(env.path("attributes"), "*.txt filter=move\n").unwrap();
    let attributes = env.path("attributes");
    let config = format!(
        "[core]\nattributesFile = {}\n[filter \"move\"]\nsmudge = sh {}\n",
        attributes.display(),
        script.display()
    );
    fs::write(env.home().join(".gitconfig"), config).unwrap();
    env.gt(&["sling", &create(&env, "second")]).ok();
    fs::remove_file(env.home().join(".gitconfig")).unwrap();
    assert_eq!(tip(MERGED), after, "the base was moved");
    let toast = folder(&env, "Toast");
    let head = env.git(&toast, &["rev-parse", "HEAD"]);
    assert_eq!(head.trim(), before);
    assert_eq!(env.git(&toast, &["status", "--porcelain"]), "");
}

#[test]
fn failed_sling_puts_the_mail_back_on_the_hook() {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["start", MAX]).ok();
    env.gt(&["handoff", MAX, "--force", "-s", "Precious"]).ok();
    env.gt(&["stop", MAX, "--force"]).ok();
    assert_eq!(env.json(&["hook", "--agent", MAX])["title"], "Precious");
    let preset = env.town().join("harnesses/bad.toml");
    fs::create_dir_all(preset.parent().unwrap()).unwrap();
    fs::write(
        &preset,
        "name = 'bad'\ntitle = 'Bad'\n[command]\nprogram = 'false'\n",
    )
    .unwrap();
    let id = env.create_item("Mend the roof");
    env.gt(&["sling", &id, MAX, "--harness", "bad"]).fails(1);
    assert_eq!(env.json(&["work", "show", &id])["status"], "open");
    let hook = env.json(&["hook", "--agent", MAX]);
    assert_eq!(hook["title"], "Precious", "{hook}");
    assert_eq!(hook["status"], "hooked", "{hook}");
    env.gt(&["sling", &id, MAX]).ok();
    let hook = env.json(&["hook", "--agent", MAX]);
    assert_eq!(
        (&hook["id"], &hook["letter"]["title"]),
        (&json!(id), &json!("Precious"))
    );
}

#[test]
fn sling_prints_the_polecat() {
    let env = TestEnv::with_rig();
    let id = env.create_item("Mend the roof");
    assert_snapshot!(env.snapshot(&["sling", &id, "--no-start"]), @"
    exit code: 0
    --- stdout
    ✓ gt-[ID] → gastown/polecats/Toast (not started, branch polecat/Toast/gt-[ID])
    ");
    assert_snapshot!(env.snapshot(&["sling", &id]), @"
    exit code: 0
    --- stdout
    ✓ gt-[ID] → gastown/polecats/Toast (started in gt-Toast, branch polecat/Toast/gt-[ID])
    ");
    assert_snapshot!(env.snapshot(&["sling", "nope-12345"]), @"
    exit code: 3
    --- stderr
    error: there is no work item nope-12345
    hint: `gt work list` shows them
    ");
    assert_snapshot!(env.snapshot(&["sling", &id, "unknown"]), @r#"
    exit code: 3
    --- stderr
    error: there is no agent "unknown"
    hint: `gt agents` lists those that run, `gt agents --stopped` those that could
    hint: targets are addresses (gastown/crew/max), rig/name, roles that one agent has (witness), container names, session ids or ids of work items
    "#);
}

//! Leftovers of a session or agent: the next session finds them, and no other agent does.

use crate::env::{TIMEOUT, TestEnv, lives as is_alive, run, signal};
use crate::remembered::lives;
use gt_tmux::testing::wait_until;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

const MAX: &str = "gastown/crew/max";

fn create(env: &TestEnv, title: &str) -> String {
    let item = env.json(&["work", "create", title, "--rig", "gastown"]);
    item["id"].as_str().unwrap().to_owned()
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
fn what_a_polecat_left_of_an_item_is_there_for_whoever_goes_on() {
    let env = TestEnv::with_rig();
    let id = create(&env, "Mend the roof");
    let first = env.json(&["sling", &id]);
    let dir = work_dir(&first);
    commit(&env, &dir, "half.txt");
    fs::write(dir.join("more.txt"), "not committed\n").unwrap();
    let nux = first["agent"].as_str().unwrap();
    let told = env.gt(&["handoff", nux, "--dry-run"]).ok().stdout;
    assert!(told.contains(&format!("put {id} back")), "{told}");
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
    let other = create(&env, "Sweep the yard");
    env.gt(&["sling", &other, nux]).ok();
    let third = env.json(&["sling", &id]);
    assert_ne!(third["agent"], nux, "{third}");
    assert!(work_dir(&third).join("half.txt").exists(), "{third}");
    assert!(
        !dir.join("half.txt").exists(),
        "another item begins at the base"
    );
}

#[test]
fn work_is_not_hung_on_the_hook_of_nobody() {
    let env = TestEnv::with_rig();
    let id = create(&env, "Mend the roof");
    let refused = env
        .gt(&["hook", &id, "--agent", "gastown/polecats/Ghost"])
        .fails(3);
    assert!(
        refused.stderr.contains("there is no agent"),
        "{}",
        refused.stderr
    );
    assert_eq!(env.json(&["work", "show", &id])["status"], "open");
    env.gt(&["hook", &id, "--agent", "mayor"]).ok();
    env.gt(&["unhook", &id]).ok();
    env.gt(&["hook", &id, "--agent", "gastown/witness"]).ok();
}

#[test]
fn a_sling_that_fails_gives_the_letter_back() {
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
    let id = create(&env, "Mend the roof");
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
fn nothing_of_a_life_runs_on_after_its_handoff() {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["start", MAX]).ok();
    // Both children ignore the hangup; one has also left its terminal.
    let left = env.path("left");
    let child = |how: &str| {
        let log = left.display();
        format!(
            "({how} sh -c 'trap \"\" HUP; echo $$ >> {log}; sleep 1000; true' >/dev/null 2>&1 &)"
        )
    };
    let words = format!("[[tool={} ; {}]]", child("nohup"), child("setsid"));
    env.gt(&["nudge", MAX, &words]).ok();
    let pids = wait_until("both run", TIMEOUT, || {
        let text = fs::read_to_string(&left).ok()?;
        let pids: Vec<u32> = text.lines().filter_map(|pid| pid.parse().ok()).collect();
        (pids.len() == 2 && pids.iter().all(|pid| is_alive(*pid))).then_some(pids)
    });
    env.gt(&["handoff", MAX, "--force"]).ok();
    wait_until("both are gone", TIMEOUT, || {
        (!pids.iter().any(|pid| is_alive(*pid))).then_some(())
    });
}

#[test]
fn who_hands_over_from_below_the_pane_lives_to_its_end() {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["start", MAX]).ok();
    let demo = "[command]\nargs = ['demo-agent', '--startup-delay', '3000']\nprompt = 'typed'\n";
    let preset = env.town().join("harnesses/demo.toml");
    fs::create_dir_all(preset.parent().unwrap()).unwrap();
    fs::write(preset, demo).unwrap();
    // Without TMUX_PANE the command is not recognised as the agent, and performs the handoff
    // itself.
    let said = env.path("said");
    let words = format!(
        "[[tool=setsid sh -c 'unset TMUX_PANE; exec gt handoff --force > {} 2>&1']]",
        said.display()
    );
    env.gt(&["nudge", MAX, &words]).ok();
    wait_until("it has handed over", TIMEOUT, || {
        let said = fs::read_to_string(&said).ok()?;
        said.contains("was handed over").then_some(())
    });
    env.wait_screen(MAX, "Left to you");
}

#[test]
fn one_that_died_while_it_compacted_is_told_everything_anew() {
    let env = TestEnv::with_crew(&["max"]);
    let id = create(&env, "Mend the roof");
    env.gt(&["hook", &id, "--agent", MAX]).ok();
    env.gt(&["start", MAX, "--no-auto-respawn"]).ok();
    env.gt(&["handoff", MAX, "--auto", "--reason", "compaction"])
        .ok();
    signal(env.pid(MAX), Signal::KILL);
    wait_until("it is dead", TIMEOUT, || {
        (env.agent(MAX)["state"] == "crashed").then_some(())
    });
    env.gt(&["start", MAX]).ok();
    env.wait_screen(MAX, "What was in flight");
    let screen = env.gt(&["peek", MAX]).ok().stdout;
    assert!(screen.contains("## Your role"), "{screen}");
}

#[test]
fn saving_the_state_leaves_the_step_that_is_being_done() {
    let env = TestEnv::with_crew(&["max"]);
    let id = create(&env, "Mend the roof");
    env.gt(&["hook", &id, "--agent", MAX]).ok();
    env.gt(&["start", MAX]).ok();
    // The molecule is about the item on the hook, unless another one is named.
    let poured = env.json(&["mol", "attach", "shiny", "--agent", MAX]);
    assert!(poured.to_string().contains("Mend the roof"), "{poured}");
    env.gt(&["mol", "step", "start", "design", "--agent", MAX])
        .ok();
    let steps = || env.json(&["mol", "status", "--agent", MAX])["current"].clone();
    let before = steps();
    assert!(before.to_string().contains("design"), "{before}");
    env.gt(&["handoff", MAX, "--auto", "--reason", "compaction"])
        .ok();
    assert_eq!(steps(), before);
    // A handoff leaves the current step for the next session to begin.
    env.gt(&["handoff", MAX, "--force"]).ok();
    assert_ne!(steps(), before);
}

#[test]
fn one_that_is_refused_leaves_no_trace_on_the_agent() {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["start", MAX]).ok();
    env.wait_screen(MAX, "# You are");
    let conversation = || lives(&env, &["--agent", MAX])[0]["harness_session_id"].clone();
    let before = conversation();
    let mut command = env.gt_command(&["prime", "--hook"]);
    command
        .env("GT_ROLE", MAX)
        .env("GT_ROOT", env.town())
        .env("GT_SESSION", "gt-crew-max")
        .stdin(fs::File::open(report(&env)).unwrap());
    let told = run(&mut command).ok().stdout;
    assert!(told.starts_with("STOP"), "{told}");
    assert_eq!(conversation(), before);
}

fn report(env: &TestEnv) -> PathBuf {
    let path = env.path("report.json");
    let report = json!({"session_id": "11111111-2222-4333-8444-555555555555", "source": "startup"});
    fs::write(&path, report.to_string()).unwrap();
    path
}

#[test]
fn words_of_others_do_nothing_to_a_terminal() {
    let env = TestEnv::with_crew(&["max"]);
    let item = env.json(&[
        "work",
        "create",
        "Roof",
        "-d",
        "- a\x1b[2J\x07b",
        "--rig",
        "gastown",
    ]);
    env.gt(&["hook", item["id"].as_str().unwrap(), "--agent", MAX])
        .ok();
    env.gt(&["start", MAX]).ok();
    let message = "\x1b]0;x\x07 and more";
    for args in [
        &["prime", "--agent", MAX][..],
        &["prime", "--agent", MAX, "--section", "work"],
        &["handoff", MAX, "--force", "--dry-run", "-m", message],
    ] {
        let said = env.gt(args).ok().stdout;
        assert!(!said.contains(['\x1b', '\x07']), "{args:?}: {said:?}");
    }
}

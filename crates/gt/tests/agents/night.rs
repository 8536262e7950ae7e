//! A short night with the real Claude Code: four items on two polecats, with a crash, an API error
//! and a killed daemon. Without a person every item is merged or escalated. And an idle town, which
//! sends no request to the model.

use crate::program::PROGRAMS;
use crate::stage::Stage;
use gt_tmux::testing::wait_until_or;
use rustix::process::{Pid, Signal};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::time::Duration;

const STEP_TIMEOUT: Duration = Duration::from_secs(180);

/// Turns the minutes of patrols into seconds.
const SETTINGS: &str = "
[patrol]
speed = 30
start_timeout = '30m'

[rigs.gastown.merge]
validate = ['! test -e broken']
";

fn stage() -> Option<Stage> {
    let claude = PROGRAMS.iter().find(|it| it.harness == "claude").unwrap();
    let Some(stage) = Stage::with_source(claude, make_source) else {
        assert!(std::env::var_os("CI").is_none(), "claude is not installed");
        println!("night: skipped, claude is not installed (make test-agents)");
        return None;
    };
    let town = stage.path("gt/town.toml");
    let text = fs::read_to_string(&town).unwrap();
    let text = text.replace("[limits]\n", "[limits]\npolecats_per_rig = 2\n");
    fs::write(town, format!("{text}{SETTINGS}")).unwrap();
    let env = stage.program().env.iter();
    let env: String = env
        .map(|(name, value)| format!("{name} = '{value}'\n"))
        .collect();
    let identity = "GIT_COMMITTER_NAME = 'p'\nGIT_COMMITTER_EMAIL = 'p@localhost'\n\
                    GIT_AUTHOR_EMAIL = 'p@localhost'\n";
    stage.write("gt/roles/polecat.toml", &format!("[env]\n{env}{identity}"));
    Some(stage)
}

fn make_source(stage: &Stage, source: &Path) {
    fs::write(source.join("words.txt"), "red\n").unwrap();
    stage.git(source, &["add", "-A"]);
    stage.git(source, &["commit", "--quiet", "-m", "Begin"]);
}

fn read(stage: &Stage, args: &[&str]) -> Value {
    let output = stage.gt(&[args, &["--json"]].concat());
    serde_json::from_slice(&output.stdout).unwrap_or_default()
}

#[track_caller]
fn wait<T>(stage: &Stage, what: &str, condition: impl Fn() -> Option<T>) -> T {
    wait_until_or(what, STEP_TIMEOUT, condition, || {
        let show = |args: &[&str]| String::from_utf8_lossy(&stage.gt(args).stdout).into_owned();
        [
            "patrol log",
            "agents --all",
            "work list --all",
            "mq list --all",
            "logs",
        ]
        .map(|line| show(&line.split(' ').collect::<Vec<_>>()))
        .join("\n")
    })
}

fn kill(pid: &Value) {
    let pid = i32::try_from(pid.as_i64().unwrap()).unwrap();
    rustix::process::kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
}

/// Makes an item whose worker runs these commands.
fn item(stage: &Stage, title: &str, commands: &[&str]) -> String {
    let id = stage.work(title);
    stage.runs_where(&format!("## Your work: {id} "), commands);
    id
}

#[test]
#[ignore = "needs the real programs: make test-agents"]
fn night_with_a_crash_an_api_error_and_a_killed_daemon_ends_merged_or_escalated() {
    let Some(stage) = stage() else { return };
    let hand_in = |title: &str| {
        format!("echo {title} > {title}.txt; git add -A; git commit -q -m {title}; gt done")
    };
    let plain = item(&stage, "plain", &[&hand_in("plain")]);
    let wait_for_kill = "touch ~/started; while ! test -e ~/killed; do sleep 0.1; done";
    let crash = item(&stage, "crash", &[wait_for_kill, &hand_in("crash")]);
    let failing = stage.work("failing");
    let text = format!("## Your work: {failing} ");
    stage.answer_where(&text, "[[error=400]]");
    let stuck = item(
        &stage,
        "stuck",
        &["gt done --status escalated -m 'I need a person'"],
    );
    stage.ok(&["daemon", "start"]);
    stage.ok(&["sling", &crash, &failing, &plain, &stuck]);

    let agent = wait(&stage, "the worker of the second item works", || {
        let agents = read(&stage, &["agents", "--all"]);
        let mut agents = agents.as_array()?.iter();
        let holder = agents.find(|agent| agent["hook"] == crash.as_str())?;
        holder["pid"].as_i64()?;
        stage.path("started").exists().then(|| holder.clone())
    });
    kill(&agent["pid"]);
    fs::write(stage.path("killed"), "").unwrap();
    wait(&stage, "the turn of the failing item has failed", || {
        let agents = read(&stage, &["agents", "--all"]);
        let mut agents = agents.as_array()?.iter();
        let holder = agents.find(|agent| agent["hook"] == failing.as_str())?;
        (holder["state"] == "error").then_some(())
    });
    stage.runs_where(&text, &[&hand_in("failing")]);
    // The event of an action follows the action, so an earlier kill could lose it.
    for rule in ["dead-polecat", "failed-turn"] {
        wait(&stage, &format!("the patrol has applied {rule}"), || {
            let log = read(&stage, &["patrol", "log"]).to_string();
            log.contains(rule).then_some(())
        });
    }
    kill(&read(&stage, &["daemon", "status"])["pid"]);

    for id in [&plain, &crash, &failing] {
        wait(&stage, &format!("{id} is merged"), || {
            (read(&stage, &["work", "show", id])["status"] == "closed").then_some(())
        });
    }
    wait(&stage, "the stuck item is escalated", || {
        let raised = read(&stage, &["escalate", "list"]);
        let mut raised = raised.as_array()?.iter();
        raised.any(|it| it["item"] == stuck.as_str()).then_some(())
    });
    wait(&stage, "a daemon runs again", || {
        (read(&stage, &["daemon", "status"])["running"] == true).then_some(())
    });
    let source = stage.path("source");
    let files = stage.git(&source, &["ls-tree", "--name-only", "gt/merged/main"]);
    let files: Vec<&str> = files.lines().collect();
    assert_eq!(
        files,
        ["crash.txt", "failing.txt", "plain.txt", "words.txt"]
    );
    stage.ok(&["down", "--all"]);
}

#[test]
#[ignore = "needs the real programs: make test-agents"]
fn idle_town_with_a_daemon_sends_no_request_to_the_model() {
    let Some(stage) = stage() else { return };
    stage.start(&["--no-prompt"]);
    stage.nudge("good morning");
    stage.ok(&["wait", "gastown/crew/max", "--timeout", "60"]);
    stage.ok(&["daemon", "start"]);
    let sweeps = || read(&stage, &["daemon", "status"])["duties"]["upkeep"]["runs"].as_u64();
    let wait_for_sweeps = |count: u64| {
        let first = wait(&stage, "the first sweep", sweeps);
        wait(&stage, "several sweeps", || {
            sweeps().filter(|now| *now >= first + count)
        })
    };
    wait_for_sweeps(1);
    let before = stage.requests().len();
    assert!(before > 0, "the message was a request");
    wait_for_sweeps(5);
    let all = stage.requests();
    assert_eq!(all.len(), before, "{:#?}", all.last());
    let agents = read(&stage, &["agents", "--all"]);
    assert_eq!(agents.as_array().unwrap().len(), 1, "{agents}");
    stage.ok(&["down", "--all"]);
}

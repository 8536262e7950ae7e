//! One day of a town with the real Claude Code: three items are slung and merged without a further
//! command, through a conflict, a failed validation, a crash and a killed tmux server.

use crate::program::PROGRAMS;
use crate::stage::Stage;
use gt_tmux::testing::wait_until_or;
use rustix::process::{Pid, Signal};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Maximum wait for one step, which may include several starts of the program.
const STEP_TIMEOUT: Duration = Duration::from_secs(180);

const MAX: &str = "gastown/crew/max";

/// Number of commits before the first item; the last one adds a submodule.
const HISTORY: usize = 300;

#[test]
#[ignore = "needs the real programs: make test-agents"]
fn three_items_are_merged_without_a_command_in_between() {
    let claude = PROGRAMS.iter().find(|it| it.harness == "claude").unwrap();
    let Some(stage) = Stage::with_source(claude, make_source) else {
        assert!(std::env::var_os("CI").is_none(), "claude is not installed");
        return println!("day: skipped, claude is not installed (make test-agents)");
    };
    configure(&stage);
    stage.start(&["--no-prompt"]);
    stage.nudge("the day begins");
    stage.ok(&["wait", MAX, "--timeout", "60"]);
    stage.ok(&["save"]);

    // The first two items change the same line; the third one fails validation.
    let blue = sling(
        &stage,
        "Paint it blue",
        &["printf 'colour blue\\n' > words.txt"],
    );
    wait(&stage, "blue is handed in", || ended(&stage, &blue, "done"));
    let green = sling(
        &stage,
        "Paint it green",
        &["printf 'colour green\\n' > words.txt"],
    );
    let broken = sling(
        &stage,
        "Add a list",
        &[
            "printf 'broken\\n' > list.txt",
            "touch ~/started; while ! test -e ~/resumed; do sleep 0.1; done",
        ],
    );
    let green_repair = format!("{green}.1");
    stage.runs_where(
        &format!("## Your work: {green_repair} "),
        &[
            "git merge \"$(git for-each-ref --format='%(refname)' 'refs/heads/polecat/*/{green}' | grep -v \"$(git branch --show-current)\" | head -n 1)\"; printf 'colour teal\\n' > words.txt; git add -A; git commit -q -m 'Merge both colours'; gt done".replace("{green}", &green).as_str(),
        ],
    );
    let broken_repair = format!("{broken}.1");
    stage.runs_where(
        &format!("## Your work: {broken_repair} "),
        &[
            "git merge \"$(git for-each-ref --format='%(refname)' 'refs/heads/polecat/*/{broken}' | grep -v \"$(git branch --show-current)\" | head -n 1)\"; printf 'whole\\n' > list.txt; git add -A; git commit -q -m 'Mend the list'; gt done".replace("{broken}", &broken).as_str(),
        ],
    );

    // The worker of the third item is killed while a command runs, and resumes without a command.
    let agent = wait(&stage, "the third worker is at work", || {
        let at_work = stage.path("started").exists();
        at_work.then(|| holder(&stage, &broken)).flatten()
    });
    kill(&agent["pid"]);
    fs::write(stage.path("resumed"), "").unwrap();
    wait(&stage, "its conversation was resumed", || {
        let all = sessions(&stage, &broken);
        let second = all.iter().find(|it| it["status"] == "running")?;
        let first = all.iter().find(|it| it["outcome"] == "crash")?;
        assert_eq!(second["harness_session_id"], first["harness_session_id"]);
        Some(())
    });
    for item in [&green, &broken] {
        wait(&stage, "it is handed in", || ended(&stage, item, "done"));
    }

    // The tmux server dies with the idle crew worker; the merge queue continues.
    stage.crash();
    fs::write(stage.path("gate"), "").unwrap();
    for item in [&blue, &green, &broken] {
        wait(&stage, &format!("{item} is merged"), || {
            let item = read(&stage, &["work", "show", item]);
            (item["status"] == "closed").then_some(())
        });
    }

    the_base_has_exactly_the_validated_work(&stage);
    for item in [&blue, &green, &broken, &green_repair, &broken_repair] {
        its_chain_is_complete(&stage, item);
    }

    // The crew worker resumes its conversation and then exits.
    stage.restore();
    stage.nudge("the day ends");
    let said: Vec<String> = ["the day begins", "the day ends"]
        .map(gt_model::fingerprint)
        .into();
    wait(&stage, "the crew worker remembers the morning", || {
        stage
            .requests()
            .iter()
            .any(|it| it.history == said)
            .then_some(())
    });
    stage.ok(&["wait", MAX, "--timeout", "60"]);
    stage.nudge_with("/exit", &["--command", "--timeout", "60"]);
    wait(&stage, "it has left", || {
        let all = read(&stage, &["sessions", "list", "--agent", MAX]);
        let mut all = all.as_array().unwrap().iter();
        all.any(|it| it["outcome"] == "exited").then_some(())
    });
    stage.ok(&["down", "--all"]);
    let checks = read(&stage, &["doctor"]);
    let bad: Vec<&Value> = checks
        .as_array()
        .unwrap()
        .iter()
        .filter(|it| it["status"] != "ok")
        .collect();
    assert!(bad.is_empty(), "{bad:#?}");
    stage.nothing_is_left();
}

/// Fills the repository with a history and a submodule.
fn make_source(stage: &Stage, source: &Path) {
    let lib = stage.path("lib");
    fs::create_dir(&lib).unwrap();
    stage.git(&lib, &["init", "--quiet", "--initial-branch=main"]);
    fs::write(lib.join("lib.txt"), "lib\n").unwrap();
    stage.git(&lib, &["add", "-A"]);
    stage.git(&lib, &["commit", "--quiet", "-m", "Begin"]);
    let mut history = String::new();
    for number in 0..HISTORY {
        let text = format!("{number}\n");
        let (time, size) = (1_700_000_000 + number, text.len());
        history += &format!(
            "commit refs/heads/main\ncommitter t <t@localhost> {time} +0000\ndata 6\nChange\nM 100644 inline count.txt\ndata {size}\n{text}\n"
        );
    }
    let stream = stage.path("history");
    fs::write(&stream, history).unwrap();
    let mut import = stage.command("git");
    let import = import.args(["fast-import", "--quiet"]).current_dir(source);
    let status = import
        .stdin(fs::File::open(stream).unwrap())
        .status()
        .unwrap();
    assert!(status.success());
    stage.git(source, &["reset", "--quiet", "--hard"]);
    let url = lib.display().to_string();
    let allow = "protocol.file.allow=always";
    stage.git(
        source,
        &["-c", allow, "submodule", "--quiet", "add", &url, "lib"],
    );
    fs::write(source.join("words.txt"), "colour red\n").unwrap();
    // The check waits until the test creates the gate file, and requires the submodule.
    let check = format!(
        "while ! test -e '{}'; do sleep 0.1; done\ntest -f lib/lib.txt && ! grep -q broken list.txt 2>/dev/null\n",
        stage.path("gate").display()
    );
    fs::write(source.join("check.sh"), check).unwrap();
    stage.git(source, &["add", "-A"]);
    stage.git(source, &["commit", "--quiet", "-m", "Use the library"]);
}

fn configure(stage: &Stage) {
    let env = "[env]\nANTHROPIC_API_KEY = '{key}'\nANTHROPIC_BASE_URL = '{url}'\nIS_SANDBOX = '1'\n\
               CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC = '1'\nDISABLE_AUTOUPDATER = '1'\n\
               GIT_COMMITTER_NAME = 'p'\nGIT_COMMITTER_EMAIL = 'p@localhost'\nGIT_AUTHOR_EMAIL = 'p@localhost'\n";
    stage.write("gt/roles/crew.toml", env);
    let polecat = format!("{env}[start]\nauto_respawn = true\n");
    stage.write("gt/roles/polecat.toml", &polecat);
    let town = stage.path("gt/town.toml");
    let mut text = fs::read_to_string(&town).unwrap();
    text += "\n[rigs.gastown.merge]\nvalidate = ['sh check.sh']\n";
    fs::write(town, text).unwrap();
}

/// Creates an item, slings it, and makes its worker run these commands, commit and call `gt done`.
fn sling(stage: &Stage, title: &str, commands: &[&str]) -> String {
    let id = stage.work(title);
    let commit = format!("git add -A; git commit -q -m '{title}'; gt done");
    let commands: Vec<&str> = commands.iter().copied().chain([commit.as_str()]).collect();
    stage.runs_where(&format!("## Your work: {id} "), &commands);
    stage.ok(&["sling", &id, "gastown"]);
    id
}

/// Waits until the condition holds. On timeout it fails with a report of the town.
#[track_caller]
fn wait<T>(stage: &Stage, what: &str, condition: impl Fn() -> Option<T>) -> T {
    wait_until_or(what, STEP_TIMEOUT, condition, || report(stage))
}

/// Returns the agents with their screens, the sessions, the merge queue and the newest events.
fn report(stage: &Stage) -> String {
    let show = |args: &[&str]| {
        let output = stage.gt(args);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        format!(
            "$ gt {}\n{text}{}\n",
            args.join(" "),
            String::from_utf8_lossy(&output.stderr)
        )
    };
    let mut text =
        show(&["agents", "--all"]) + &show(&["sessions", "list"]) + &show(&["mq", "list", "--all"]);
    text += &show(&["work", "list", "--all"]);
    text += &show(&["events"]);
    let agents: Value = serde_json::from_slice(&stage.gt(&["agents", "--all", "--json"]).stdout)
        .unwrap_or_default();
    for agent in agents.as_array().into_iter().flatten() {
        text += &show(&["peek", agent["agent"].as_str().unwrap_or_default()]);
    }
    text
}

fn read(stage: &Stage, args: &[&str]) -> Value {
    serde_json::from_str(&stage.ok(&[args, &["--json"]].concat())).unwrap()
}

fn sessions(stage: &Stage, item: &str) -> Vec<Value> {
    let all = read(stage, &["sessions", "list", "--work", item]);
    all.as_array().unwrap().clone()
}

/// Returns the running agent that has the item on its hook.
fn holder(stage: &Stage, item: &str) -> Option<Value> {
    let all = read(stage, &["agents", "--all"]);
    let mut all = all.as_array().unwrap().iter();
    all.find(|agent| agent["hook"] == item).cloned()
}

fn ended(stage: &Stage, item: &str, outcome: &str) -> Option<()> {
    let all = sessions(stage, item);
    all.iter().any(|it| it["outcome"] == outcome).then_some(())
}

fn kill(pid: &Value) {
    let pid = i32::try_from(pid.as_i64().unwrap()).unwrap();
    rustix::process::kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
}

fn the_base_has_exactly_the_validated_work(stage: &Stage) {
    let source = stage.path("source");
    let show = |file: &str| stage.git(&source, &["show", &format!("gt/merged/main:{file}")]);
    assert_eq!(show("words.txt"), "colour teal\n");
    assert_eq!(show("list.txt"), "whole\n");
    let files = stage.git(&source, &["ls-tree", "-r", "--name-only", "gt/merged/main"]);
    let files: Vec<&str> = files.lines().collect();
    let expected = [
        ".gitmodules",
        "check.sh",
        "count.txt",
        "lib",
        "list.txt",
        "words.txt",
    ];
    assert_eq!(files, expected);
    // The queue removes the branches after it closes the item.
    wait(
        stage,
        "no worker's branch is left in the user's repository",
        || {
            let left = stage.git(&source, &["branch", "--list", "polecat/*"]);
            left.is_empty().then_some(())
        },
    );
}

/// Checks that the chain of an item has every session that worked on it, and their total cost.
fn its_chain_is_complete(stage: &Stage, item: &str) {
    let chain = read(stage, &["sessions", "chain", item]);
    let ids = |all: &[Value]| {
        let mut ids: Vec<String> = all.iter().map(|it| it["id"].to_string()).collect();
        ids.sort();
        ids
    };
    let listed = sessions(stage, item);
    let linked = chain["sessions"].as_array().unwrap();
    assert!(!linked.is_empty(), "{chain:#}");
    assert_eq!(ids(linked), ids(&listed), "{chain:#}");
    let costs = listed
        .iter()
        .filter_map(|it| it["usage"]["cost_usd"].as_f64());
    let sum: f64 = costs.sum();
    let cost = chain["totals"]["cost_usd"].as_f64().unwrap();
    assert!(cost > 0.0, "{chain:#}");
    assert!((cost - sum).abs() < 1e-6, "{chain:#}");
    let outcomes: Vec<&str> = listed
        .iter()
        .filter_map(|it| it["outcome"].as_str())
        .collect();
    assert_eq!(
        outcomes.len(),
        listed.len(),
        "every session has ended: {chain:#}"
    );
    assert!(outcomes.contains(&"done"), "{outcomes:?}");
}

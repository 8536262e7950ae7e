//! Names and texts from outside that contain shell code or tmux formats.

use crate::env::TestEnv;
use gt_tmux::Command as Tmux;
use insta::assert_snapshot;
use std::fs;

/// Texts that create the file TRAP if any of them is ever executed.
const TRAPS: &[&str] = &[
    "#(touch TRAP)",
    "$(touch TRAP)",
    "`touch TRAP`",
    "';touch TRAP;'",
    "#{l:x}",
    "%H",
];

fn no_trap_sprang(env: &TestEnv) {
    let mut found = Vec::new();
    let mut open = vec![env.home().to_owned()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            if entry.file_name() == "TRAP" {
                found.push(entry.path());
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                open.push(entry.path());
            }
        }
    }
    assert_eq!(found, Vec::<std::path::PathBuf>::new());
}

#[test]
fn hostile_names_are_refused() {
    let env = TestEnv::with_crew(&["max"]);
    for trap in TRAPS {
        env.gt(&["crew", "add", trap]).fails(2);
        env.gt(&["agent", "new", trap]).fails(2);
        let answer = env.gt(&["rig", "add", trap, "."]);
        assert!(matches!(answer.code, 2 | 3), "{}", answer.stderr);
        let answer = env.gt(&["peek", trap]);
        assert_eq!(answer.code, 3, "{trap}: {}", answer.stderr);
        env.gt(&["crew", "start", "max", "--harness", trap])
            .fails(2);
        env.gt(&["crew", "start", "max", "--theme", trap]).fails(2);
    }
    no_trap_sprang(&env);
}

#[test]
fn town_with_a_hostile_path_works_and_runs_no_code() {
    for trap in [
        "#(touch TRAP)",
        "$(touch TRAP) 'q\"",
        "#{pid} %H ;",
        "a) b(c",
    ] {
        let env = TestEnv::empty();
        let town = env.path(trap);
        let town = town.to_str().unwrap();
        env.gt(&["init", town, "--harness", "demo", "--sandbox", "none"])
            .ok();
        let at = |args: &[&str]| env.gt(&[&["--town", town], args].concat());
        env.repository("source");
        at(&["rig", "add", "gastown", "source"]).ok();
        at(&["crew", "add", "max"]).ok();
        at(&["crew", "start", "max"]).ok();
        let agent = at(&["agents", "--json"]).ok().json()[0].clone();
        assert_eq!(agent["work_dir"], format!("{town}/gastown/crew/max"));
        // tmux expands the status line by itself, so the test makes it do so.
        let container = agent["container"].as_str().unwrap();
        let shown = env.format(container, "#{T:status-left}#{T:status-right}");
        assert!(shown.contains(container), "{shown}");
        at(&["peek", "gastown/max"]).ok();
        at(&["stop", "gastown/max"]).ok();
        no_trap_sprang(&env);
    }
}

#[test]
fn hostile_titles_prompts_and_messages_stay_text() {
    let env = TestEnv::with_crew(&["max"]);
    let all = TRAPS.join(" ");
    env.gt(&[
        "crew",
        "start",
        "max",
        "--instructions",
        &all,
        "--topic",
        &all,
        "--sender",
        &all,
    ])
    .ok();
    env.wait_screen("gastown/max", "#(touch TRAP)");
    env.gt(&["nudge", "gastown/max", &all]).ok();
    env.wait_screen("gastown/max", &format!("You said: {all}"));
    // An idle agent no longer changes its title.
    gt_tmux::testing::wait_until("it is idle", crate::env::TIMEOUT, || {
        (env.agent("gastown/crew/max")["state"] == "idle").then_some(())
    });
    let pane = env.agent("gastown/crew/max")["pane"]
        .as_str()
        .unwrap()
        .to_owned();
    env.tmux(Tmux::new("select-pane").args(["-t", &pane, "-T", "##(touch TRAP) %end 1 1 1"]));
    env.gt(&["agents"]).ok();
    env.gt(&["status-line", "--session=gt-crew-max"]).ok();
    env.gt(&["agents", "menu", "--print"]).ok();
    assert_eq!(
        env.json(&["peek", "gastown/max"])["title"],
        "#(touch TRAP) %end 1 1 1"
    );
    no_trap_sprang(&env);
}

#[test]
fn town_with_a_long_path_and_behind_a_link_works() {
    let env = TestEnv::empty();
    let parts = ["x".repeat(150), "y".repeat(150)];
    let real = env.path(&parts.join("/"));
    fs::create_dir_all(real.parent().unwrap()).unwrap();
    let link = env.path("link");
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let init = ["--harness", "demo", "--sandbox", "none"];
    env.gt(&[&["init", real.to_str().unwrap()], &init[..]].concat())
        .ok();
    let at = |town: &std::path::Path, args: &[&str]| {
        env.gt(&[&["--town", town.to_str().unwrap()], args].concat())
            .ok()
    };
    env.repository("source");
    at(&real, &["rig", "add", "gastown", "source"]);
    at(&real, &["crew", "add", "max"]);
    at(&real, &["crew", "start", "max"]);
    // Both paths lead to one agent.
    for town in [&real, &link] {
        let agents = at(town, &["agents", "--json"]).json();
        assert_eq!(agents.as_array().unwrap().len(), 1, "{agents}");
        at(town, &["nudge", "gastown/max", "hello", "--mode", "queue"]);
    }
    at(&link, &["stop", "gastown/max"]);
    let agents = at(&real, &["agents", "--json"]).json();
    assert_eq!(agents, serde_json::json!([]));
}

#[test]
fn a_prefix_is_never_taken_for_the_whole_name() {
    let env = TestEnv::with_crew(&["max", "max2"]);
    env.gt(&["crew", "start", "max2"]).ok();
    for command in ["peek", "stop", "attach", "nudge"] {
        let answer = match command {
            "nudge" => env.gt(&["nudge", "gastown/crew/max", "x"]),
            _ => env.gt(&[command, "gastown/crew/max"]),
        };
        assert_eq!(answer.code, 3, "{command}: {}", answer.stderr);
    }
    assert_eq!(env.running(), ["gastown/crew/max2"]);
    env.gt(&["crew", "start", "max"]).ok();
    env.gt(&["stop", "gastown/crew/max"]).ok();
    assert_eq!(env.running(), ["gastown/crew/max2"]);
}

#[test]
fn a_hostile_session_name_runs_nothing_in_the_menu() {
    let mut env = TestEnv::with_town();
    // The user's default tmux server, in a folder of this test.
    let folder = env.home().to_str().unwrap().to_owned();
    env.set("TMUX_TMPDIR", &folder);
    let made = env
        .command("tmux")
        .args([
            "-L",
            "default",
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-s",
            "x##(touch TRAP)y",
            "exec sleep 1000",
        ])
        .status();
    assert!(made.unwrap().success());
    env.gt(&["start", "mayor"]).ok();
    assert_snapshot!(env.snapshot(&["agents", "menu", "--print"]), @"
    exit code: 0
    --- stdout
    mayor  [STATE]
    default: x#(touch TRAP)y
    ");
    let outer = gt_tmux::testing::TestServer::new();
    let attach = format!(
        "env -u TMUX tmux -S '{}' -f /dev/null attach -t =hq-mayor",
        env.socket().display()
    );
    outer
        .server()
        .run_private(Tmux::new("new-session").args(["-d", "-s", "t", &attach]))
        .unwrap();
    let client = gt_tmux::testing::wait_until("the client is there", crate::env::TIMEOUT, || {
        let clients = env.tmux(Tmux::new("list-clients").args(["-F", "#{client_name}"]));
        (!clients.is_empty()).then_some(clients)
    });
    let mut menu = env.spawn(&["agents", "menu", "--client", &client]);
    gt_tmux::testing::wait_until("the menu is open", crate::env::TIMEOUT, || {
        let screen = outer
            .server()
            .run(Tmux::new("capture-pane").args(["-p", "-t", "=t:"]))
            .unwrap();
        screen.contains("default: x#(touch TRAP)y").then_some(())
    });
    no_trap_sprang(&env);
    env.tmux(Tmux::new("kill-server"));
    let _ = menu.wait();
    no_trap_sprang(&env);
}

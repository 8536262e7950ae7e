//! `gt respawn`, and the health checks that lead to one.

use crate::env::{TIMEOUT, TestEnv, is_alive, signal};
use crate::start::kill;
use gt_tmux::testing::wait_until;
use gt_tmux::{Command as Tmux, SessionName};
use insta::assert_snapshot;
use std::fs;

fn session(name: &str) -> SessionName {
    SessionName::try_from(name).unwrap()
}

#[test]
fn the_agents_own_pane_is_what_counts() {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["crew", "start", "max", "--no-auto-respawn"]).ok();
    let pane = env.agent("gastown/crew/max")["pane"].clone();
    // The user opens another pane, which becomes the active one.
    env.tmux(
        Tmux::new("split-window")
            .target(session("gt-crew-max"))
            .arg("echo mine; exec sleep 1000"),
    );
    env.tmux(
        Tmux::new("new-window")
            .target(session("gt-crew-max"))
            .arg("exec sleep 1000"),
    );
    let agent = env.agent("gastown/crew/max");
    assert_eq!(agent["pane"], pane);
    assert_eq!(agent["health"], "healthy");
    assert_eq!(env.json(&["peek", "gastown/max"])["pane"], pane);
    assert!(!env.gt(&["peek", "gastown/max"]).stdout.contains("mine"));
    env.gt(&["nudge", "gastown/max", "to the agent"]).ok();
    env.wait_screen("gastown/max", "You said: to the agent");
    kill(env.pid("gastown/crew/max"));
    wait_until("the death is seen beside living panes", TIMEOUT, || {
        (env.agent("gastown/crew/max")["health"] == "agent_dead").then_some(())
    });
    // A new session reuses the agent's pane, and the user's panes stay.
    env.gt(&["crew", "start", "max", "--no-auto-respawn"]).ok();
    assert_eq!(env.agent("gastown/crew/max")["pane"], pane);
    let answer = env.gt(&["stop", "gastown/max", "--json"]).ok().json();
    assert_eq!(answer[0]["kept_panes"], 2);
    assert_eq!(
        env.sessions(),
        ["gt-crew-max"],
        "the user's panes keep it open"
    );
    assert_eq!(env.running(), Vec::<String>::new());
    // The agent starts again beside the user's panes.
    env.gt(&["crew", "start", "max"]).ok();
    assert_eq!(env.agent("gastown/crew/max")["health"], "healthy");
    let panes = env.tmux(
        Tmux::new("list-panes")
            .args(["-s", "-F", "#{pane_id}"])
            .target(session("gt-crew-max")),
    );
    assert_eq!(panes.lines().count(), 3, "{panes}");
}

#[test]
fn another_program_of_the_same_name_elsewhere_does_not_help() {
    let env = TestEnv::with_crew(&["max", "amy"]);
    env.gt(&["crew", "start", "--all", "--no-auto-respawn"])
        .ok();
    // The pane is alive, but its process name is not the agent's.
    let other = "[command]\nprogram = 'sleep'\nargs = ['1000']\nsession_id = []\nskip_permissions = []\nsettings = []\n[process]\nnames = ['gt']\n";
    fs::write(env.town().join("harnesses/other.toml"), other).unwrap();
    env.gt(&[
        "crew",
        "restart",
        "max",
        "--no-auto-respawn",
        "--no-prompt",
        "--harness",
        "other",
        "--no-wait",
    ])
    .ok();
    assert_eq!(env.agent("gastown/crew/max")["health"], "agent_dead");
    assert_eq!(env.agent("gastown/crew/amy")["health"], "healthy");
    let checked = env.gt(&["agents", "check", "--json"]).fails(1).json();
    assert_eq!(checked.as_array().unwrap().len(), 2);
}

#[test]
fn a_busy_agent_that_has_gone_silent_is_hung_and_an_idle_one_is_not() {
    let env = TestEnv::with_crew(&["max", "amy"]);
    let settings = env.town().join("town.toml");
    let text = fs::read_to_string(&settings).unwrap();
    fs::write(
        &settings,
        text.replace("hung_after_minutes = 30", "hung_after_minutes = 0"),
    )
    .unwrap();
    env.gt(&["crew", "start", "--all", "--no-prompt"]).ok();
    env.wait_screen("gastown/amy", "? for shortcuts");
    let freeze = |address: &str| signal(env.pid(address), rustix::process::Signal::STOP);
    env.gt(&["nudge", "gastown/max", "[[delay=600]]"]).ok();
    env.wait_screen("gastown/max", "esc to interrupt");
    freeze("gastown/crew/max");
    wait_until("a frozen busy agent counts as hung", TIMEOUT, || {
        (env.agent("gastown/crew/max")["health"] == "agent_hung").then_some(())
    });
    assert_eq!(
        env.agent("gastown/crew/amy")["health"],
        "healthy",
        "silence is not death"
    );
    env.gt(&["stop", "gastown/max", "--force"]).ok();
}

#[test]
fn an_agent_that_dies_comes_back_and_one_that_is_stopped_does_not() {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["crew", "start", "max", "--auto-respawn"]).ok();
    let first = env.agent("gastown/crew/max");
    kill(env.pid("gastown/crew/max"));
    let second = wait_until("it is back", TIMEOUT, || {
        let agent = env.agent("gastown/crew/max");
        (agent["health"] == "healthy"
            && agent["session"] != first["session"]
            && agent["state"] != "starting")
            .then_some(agent)
    });
    assert_eq!(second["pane"], first["pane"]);
    assert_eq!(
        env.format("gt-crew-max", "#{pane_dead} #{remain-on-exit}"),
        "0 on"
    );
    let deaths = env.format("gt-crew-max", "#{@gt_deaths}");
    assert_eq!(deaths.split(',').count(), 1, "{deaths}");
    env.gt(&["stop", "gastown/max"]).ok();
    assert_eq!(env.sessions(), Vec::<String>::new());
}

#[test]
fn an_agent_comes_back_as_it_was_started() {
    let env = TestEnv::with_crew(&["max"]);
    let dir = env.path("elsewhere");
    fs::create_dir(&dir).unwrap();
    env.gt(&[
        "crew",
        "start",
        "max",
        "--auto-respawn",
        "--ask-permissions",
        "--work-dir",
        "elsewhere",
        "--theme",
        "wine",
        "--env",
        "KEPT=yes",
        "--instructions",
        "Mind the #{gap}.",
    ])
    .ok();
    let first = env.agent("gastown/crew/max");
    kill(env.pid("gastown/crew/max"));
    let again = wait_until("it is back", TIMEOUT, || {
        let agent = env.agent("gastown/crew/max");
        (agent["health"] == "healthy" && agent["session"] != first["session"]).then_some(agent)
    });
    assert_eq!(again["work_dir"], dir.to_str().unwrap());
    let pid = again["pid"].as_u64().unwrap();
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap();
    let line = String::from_utf8_lossy(&line).into_owned();
    assert!(!line.contains("--dangerously-skip-permissions"), "{line}");
    // The resumed conversation contains the instructions; the tag keeps them for a new
    // conversation.
    assert!(line.contains("--resume"), "{line}");
    let wishes = env.format("gt-crew-max", "#{@gt_start}");
    assert!(wishes.contains("Mind the #{gap}."), "{wishes}");
    let environ = fs::read(format!("/proc/{pid}/environ")).unwrap();
    assert!(
        environ
            .split(|byte| *byte == 0)
            .any(|entry| entry == b"KEPT=yes")
    );
    assert_eq!(
        env.format("gt-crew-max", "#{status-style}"),
        "bg=#722f37,fg=#f5f5dc"
    );
}

#[test]
fn every_death_is_noticed_although_tmux_may_miss_it() {
    // tmux 3.3a missed more than half of these deaths without our workaround. No command polls
    // while the agents die.
    let names: Vec<String> = (0..8).map(|n| format!("w{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let env = TestEnv::with_crew(&names);
    env.gt(&["crew", "start", "--all", "--auto-respawn"]).ok();
    let before = env.json(&["agents"]);
    for agent in before.as_array().unwrap() {
        kill(u32::try_from(agent["pid"].as_u64().unwrap()).unwrap());
    }
    let session_before = |name: &str| {
        let address = format!("gastown/crew/{name}");
        let found = before
            .as_array()
            .unwrap()
            .iter()
            .find(|agent| agent["agent"] == address);
        found.unwrap()["session"].as_str().unwrap().to_owned()
    };
    for name in &names {
        let container = format!("gt-crew-{name}");
        // Asks only tmux: a `gt` command would repair a missed respawn.
        wait_until(&format!("{name} is back"), TIMEOUT, || {
            let now = env.format(&container, "#{pane_dead} #{@gt_session}");
            let (dead, session) = now.split_once(' ').unwrap();
            (dead == "0" && session != session_before(name)).then_some(())
        });
    }
}

#[test]
fn waits_grow_and_end() {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["crew", "start", "max", "--no-auto-respawn"]).ok();
    kill(env.pid("gastown/crew/max"));
    wait_until("the death is seen", TIMEOUT, || {
        (env.agent("gastown/crew/max")["state"] == "crashed").then_some(())
    });
    let pane = env.agent("gastown/crew/max")["pane"]
        .as_str()
        .unwrap()
        .to_owned();
    let set = |name: &str, value: &str| {
        env.tmux(
            Tmux::new("set-option")
                .target(session("gt-crew-max"))
                .args([name, value]),
        );
    };
    let respawn = || {
        env.gt(&["respawn", "gt-crew-max", "--pane", &pane, "--json"])
            .ok()
            .json()
    };
    assert_eq!(
        respawn()["outcome"],
        "left-alone",
        "its respawn is no longer wanted"
    );
    set("@gt_auto_respawn", "1");
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_secs();
    let deaths = |count: u64| {
        (1..=count)
            .rev()
            .map(|ago| (now - ago).to_string())
            .collect::<Vec<_>>()
            .join(",")
    };
    set("@gt_deaths", &deaths(3));
    let answer = respawn();
    assert_eq!(
        (answer["outcome"].as_str(), answer["seconds"].as_u64()),
        (Some("later"), Some(24))
    );
    set("@gt_deaths", &deaths(8));
    assert_eq!(respawn()["outcome"], "gave-up");
    assert_eq!(env.format("gt-crew-max", "#{@gt_auto_respawn}"), "");
    assert_eq!(respawn()["outcome"], "left-alone");
    assert_eq!(env.agent("gastown/crew/max")["health"], "agent_dead");
    let raised = env.json(&["escalate", "list"]);
    assert_eq!(raised[0]["key"], "respawn:gastown/crew/max", "{raised}");
    assert_eq!(raised[0]["severity"], "high");
    assert_eq!(
        env.json(&["mail", "inbox", "--agent", "mayor"])[0]["priority"],
        1
    );
    // A start by hand resolves it.
    env.gt(&["crew", "start", "max"]).ok();
    env.gt(&["sync"]).ok();
    assert_eq!(env.json(&["escalate", "list"]), serde_json::json!([]));
}

#[test]
fn pid_file_ends_only_processes_that_outlived_their_container() {
    let env = TestEnv::with_crew(&["max", "amy"]);
    let demo = "[command]\nargs = ['demo-agent', '--ignore-term']\n";
    fs::write(env.town().join("harnesses/demo.toml"), demo).unwrap();
    env.gt(&["crew", "start", "--all", "--no-auto-respawn"])
        .ok();
    let (max, amy) = (env.pid("gastown/crew/max"), env.pid("gastown/crew/amy"));
    // The containers end; their processes ignore the hangup and survive.
    for name in ["gt-crew-max", "gt-crew-amy"] {
        env.tmux(Tmux::new("kill-session").target(session(name)));
    }
    assert!(is_alive(max) && is_alive(amy));
    // amy's pid is reused by another process, which the start time shows.
    let file = env.town().join(".runtime/pids/gt-crew-amy.pid");
    fs::write(&file, format!("{amy}|1@somebody-else\n")).unwrap();
    env.gt(&["agents", "check"]).fails(1);
    let found = env.json(&["doctor"]);
    let stray = found
        .as_array()
        .unwrap()
        .iter()
        .find(|f| f["check"] == "pids" && f["fixable"] == true);
    assert!(stray.is_some(), "{found}");
    env.gt(&["doctor", "--fix"]).ok();
    assert!(!is_alive(max));
    assert!(
        is_alive(amy),
        "a pid that was given out again is left alone"
    );
    assert!(!file.exists());
    kill(amy);
}

#[test]
fn a_command_of_the_callers_own_counts_as_alive() {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["crew", "start", "max", "--command", "exec sleep 1000"])
        .ok();
    assert_eq!(env.agent("gastown/crew/max")["health"], "healthy");
    env.gt(&["crew", "start", "max"]).fails(4);
}

#[test]
fn other_sockets_and_renamed_containers_are_no_orphans() {
    let mut env = TestEnv::with_crew(&["max"]);
    env.gt(&["crew", "start", "max"]).ok();
    let pid = env.pid("gastown/crew/max");
    env.tmux(
        Tmux::new("rename-session")
            .target(session("gt-crew-max"))
            .arg("notes"),
    );
    env.gt(&["doctor", "--fix"]).ok();
    assert!(is_alive(pid), "it is in another container");
    // It is still the same agent, and there is only one.
    assert_eq!(env.running(), ["gastown/crew/max"]);
    assert_snapshot!(env.snapshot(&["crew", "start", "max"]), @"
    exit code: 4
    --- stderr
    error: gastown/crew/max is in the container notes already
    hint: `gt stop gastown/crew/max` ends it, whatever the container is called
    ");
    env.gt(&["peek", "gastown/max"]).ok();
    env.set("GT_TMUX_SOCKET", env.path("other").to_str().unwrap());
    env.gt(&["doctor", "--fix"]).ok();
    env.gt(&["down", "--all"]).ok();
    assert!(is_alive(pid), "the other server is not asked");
    env.set("GT_TMUX_SOCKET", env.socket().to_str().unwrap());
    env.gt(&["stop", "gastown/max"]).ok();
}

#[test]
fn start_clears_the_state_of_an_earlier_session() {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["crew", "start", "max", "--auto-respawn"]).ok();
    let set = |name: &str, value: &str| {
        env.tmux(
            Tmux::new("set-option")
                .target(session("gt-crew-max"))
                .args([name, value]),
        );
    };
    set("@gt_deaths", "1,2,3");
    set(
        "@gt_state_reason",
        "died 9 times in a row; not started again",
    );
    // A hook set by the user replaces all others.
    env.tmux(Tmux::new("set-hook").args(["-g", "pane-died", "set-option -g @mine yes"]));
    assert_snapshot!(env.doctor_findings(&[]), @"
    exit code: 0
    ! respawn: tmux's pane-died hook of gt is gone: agents that die stay dead
      hint: `gt doctor --fix` sets it again
    ! sync: tmux's hooks of gt are gone (pane-died): sessions that come and go are not recorded
      hint: `gt doctor --fix` sets them again
    `gt doctor --fix` repairs some of this.
    ");
    set("@gt_auto_respawn", "");
    kill(env.pid("gastown/crew/max"));
    wait_until("the death is seen", TIMEOUT, || {
        (env.agent("gastown/crew/max")["health"] == "agent_dead").then_some(())
    });
    env.gt(&["crew", "start", "max", "--no-auto-respawn"]).ok();
    let tags = env.format(
        "gt-crew-max",
        "[#{@gt_deaths}][#{m:*died*,#{@gt_state_reason}}][#{@gt_auto_respawn}]",
    );
    assert_eq!(tags, "[][0][]");
    assert!(
        env.tmux(Tmux::new("show-hooks").args(["-g", "pane-died"]))
            .contains("@gt_auto_respawn")
    );
}

#[test]
fn damaged_start_options_do_not_respawn_an_asking_agent_without_permissions() {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["crew", "start", "max", "--ask-permissions"]).ok();
    let set = Tmux::new("set-option").target(session("gt-crew-max"));
    env.tmux(set.args(["@gt_start", "{\"skip_permissions\":fal"]));
    kill(env.pid("gastown/crew/max"));
    wait_until("the failed respawn is in the log", TIMEOUT, || {
        let log = env.gt(&["logs"]).ok().stdout;
        log.contains("respawn: the options that it was started with cannot be read")
            .then_some(())
    });
    assert_eq!(env.agent("gastown/crew/max")["health"], "agent_dead");
}

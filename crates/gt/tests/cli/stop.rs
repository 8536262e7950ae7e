//! `gt stop`: leaves no process of the agent, and touches no other process.

use crate::env::{TestEnv, is_alive, processes_of};
use gt_tmux::{Command as Tmux, SessionName};
use insta::assert_snapshot;
use std::fs;

#[test]
fn processes_of_an_agent_end_with_it() {
    let env = TestEnv::with_crew(&["max"]);
    let demo = "[command]\nargs = ['demo-agent', '--ignore-term', '--spawn-child', 'setsid', '--spawn-child', 'plain']\n";
    fs::write(env.town().join("harnesses/demo.toml"), demo).unwrap();
    env.gt(&["crew", "start", "max"]).ok();
    env.gt(&["nudge", "gastown/max", "[[tool=(nohup setsid sleep 1000 >/dev/null 2>&1 &) ; (sleep 1000 >/dev/null 2>&1 &) ; true]]"]).ok();
    env.wait_screen("gastown/max", "exit code 0");
    // A similar process in the same home that does not belong to the agent.
    let mut unrelated = env.command("sleep").arg("1000").spawn().unwrap();
    // A session of the user on the same server.
    env.tmux(Tmux::new("new-session").args(["-d", "-s", "mine", "exec sleep 1000"]));
    let before = processes_of(env.home());
    assert!(
        before.len() >= 7,
        "agent, its four children, the user's and tmux: {before:?}"
    );
    let answer = env
        .gt(&["stop", "gastown/max", "--force", "--json"])
        .ok()
        .json();
    assert_eq!(answer[0]["stopped"], true);
    assert!(
        answer[0]["killed"].as_u64().unwrap() >= 1,
        "it ignores TERM: {answer}"
    );
    assert!(is_alive(unrelated.id()));
    assert_eq!(env.sessions(), ["mine"]);
    let left: Vec<String> = processes_of(env.home())
        .into_iter()
        .map(command_line)
        .collect();
    let agents: Vec<&String> = left
        .iter()
        .filter(|line| line.contains("demo-agent"))
        .collect();
    assert_eq!(agents, Vec::<&String>::new());
    let sleeps = left
        .iter()
        .filter(|line| line.contains("sleep 1000"))
        .count();
    assert_eq!(sleeps, 2, "only the unrelated one and the user's: {left:?}");
    unrelated.kill().unwrap();
    unrelated.wait().unwrap();
}

fn command_line(pid: u32) -> String {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&line).replace('\0', " ")
}

#[test]
fn agent_is_asked_to_exit_before_it_is_killed() {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["crew", "start", "max", "--no-prompt"]).ok();
    env.wait_screen("gastown/max", "? for shortcuts");
    let answer = env.gt(&["stop", "gastown/max", "--json"]).ok().json();
    assert_eq!(
        (answer[0]["graceful"].clone(), answer[0]["killed"].clone()),
        (true.into(), 0.into())
    );
    env.gt(&["crew", "start", "max"]).ok();
    let answer = env
        .gt(&["stop", "gastown/max", "--force", "--json"])
        .ok()
        .json();
    assert_eq!(answer[0]["graceful"], false);
}

#[test]
fn an_agent_can_stop_itself() {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["crew", "start", "max"]).ok();
    let gt = env!("CARGO_BIN_EXE_gt");
    let line = format!("[[tool={gt} stop gastown/crew/max --force]]");
    // The agent ends while the delivery still verifies, so either result is valid.
    env.gt(&["nudge", "gastown/max", &line]);
    gt_tmux::testing::wait_until("it is gone", crate::env::TIMEOUT, || {
        env.sessions().is_empty().then_some(())
    });
}

#[test]
fn down_stops_in_order_and_all_means_all() {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["up", "--all-roles"]).ok();
    env.gt(&["start", "boot"]).ok();
    env.gt(&["crew", "start", "max"]).ok();
    assert_eq!(
        env.running(),
        [
            "mayor",
            "deacon",
            "boot",
            "gastown/witness",
            "gastown/refinery",
            "gastown/crew/max"
        ]
    );
    let again = env.gt(&["up", "--all-roles"]).ok();
    assert_eq!(
        again.stdout.matches("runs already").count(),
        4,
        "{}",
        again.stdout
    );
    let dry = env.gt(&["down", "--dry-run"]).ok();
    assert_eq!(env.running().len(), 6);
    let order: Vec<&str> = dry.stdout.lines().take(4).collect();
    assert_eq!(
        order,
        [
            "Would stop the daemon.",
            "Would stop mayor.",
            "Would stop boot.",
            "Would stop deacon."
        ]
    );
    let answer = env.gt(&["down", "--json"]).ok().json();
    let names: Vec<&str> = answer
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["agent"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "mayor",
            "boot",
            "deacon",
            "gastown/witness",
            "gastown/refinery"
        ]
    );
    assert_eq!(env.running(), ["gastown/crew/max"]);
    env.gt(&["down", "--all"]).ok();
    assert_eq!(env.running(), Vec::<String>::new());
    assert_snapshot!(env.snapshot(&["down", "--all"]), @"
    exit code: 0
    --- stdout
    Nothing runs.
    ");
}

#[test]
fn a_stop_disarms_the_respawn_even_in_the_middle_of_its_wait() {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["crew", "start", "max", "--auto-respawn"]).ok();
    crate::start::kill(env.pid("gastown/crew/max"));
    gt_tmux::testing::wait_until("the death is seen", crate::env::TIMEOUT, || {
        (env.agent("gastown/crew/max")["health"] == "agent_dead").then_some(())
    });
    env.gt(&["stop", "gastown/max"]).ok();
    env.gt(&["mayor", "start"]).ok();
    // The hook waits three seconds; the marker appears after that.
    let marker = env.path("over");
    env.tmux(
        Tmux::new("run-shell")
            .args(["-b", "-d", "4", "-t", "=hq-mayor:"])
            .arg(format!("touch '{}'", marker.display())),
    );
    gt_tmux::testing::wait_until("the wait is over", crate::env::TIMEOUT, || {
        marker.exists().then_some(())
    });
    assert_eq!(env.running(), ["mayor"]);
    let _ = SessionName::try_from("hq-mayor");
}

#[test]
fn programs_of_the_user_beside_an_agent_keep_running() {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["crew", "start", "max"]).ok();
    let name = SessionName::try_from("gt-crew-max").unwrap();
    // A window of the user, with a background process.
    env.tmux(
        Tmux::new("new-window")
            .target(name)
            .arg("setsid -f sleep 7000; exec sleep 7001"),
    );
    let sleeps = || {
        let left = processes_of(env.home()).into_iter().map(command_line);
        left.filter(|line| line.starts_with("sleep 700")).count()
    };
    gt_tmux::testing::wait_until("both sleep", crate::env::TIMEOUT, || {
        (sleeps() == 2).then_some(())
    });
    env.gt(&["stop", "gastown/max", "gastown/crew/max"]).ok();
    assert_eq!(sleeps(), 2);
}

#[test]
fn an_agent_that_stops_the_town_goes_last() {
    let env = TestEnv::with_rig();
    env.gt(&["up", "--all-roles"]).ok();
    assert_eq!(env.running().len(), 4);
    let gt = env!("CARGO_BIN_EXE_gt");
    env.gt(&[
        "nudge",
        "mayor",
        &format!("[[tool={gt} down]]"),
        "--timeout",
        "30",
    ])
    .ok();
    gt_tmux::testing::wait_until("all are gone", crate::env::TIMEOUT, || {
        env.sessions().is_empty().then_some(())
    });
}

#[test]
#[cfg(target_os = "linux")]
fn stop_works_in_a_read_only_town() {
    let env = TestEnv::with_town();
    env.gt(&["start", "mayor"]).ok();
    let town = env.town().display().to_string();
    // Removes the lock files of the start, which a read-only town cannot create again.
    fs::remove_dir_all(env.town().join(".runtime/locks")).unwrap();
    let gt = env!("CARGO_BIN_EXE_gt");
    let script = format!(
        "mount --bind '{town}' '{town}' && mount -o remount,bind,ro '{town}' || exit 99
         exec '{gt}' stop mayor"
    );
    let Some(answer) = env.run_with_mounts(&script) else {
        return;
    };
    let said = answer.ok().stdout;
    assert!(said.contains("not recorded"), "{said}");
    assert!(env.running().is_empty());
}

#[test]
fn stop_prints_the_agent() {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["start", "gastown/max"]).ok();
    assert_snapshot!(env.snapshot(&["stop", "gastown/max"]), @"
    exit code: 0
    --- stdout
    ✓ gastown/crew/max stopped
    ");
    assert_snapshot!(env.snapshot(&["stop", "gastown/max"]), @"
    exit code: 3
    --- stderr
    error: gastown/crew/max is not running
    hint: `gt agents` lists those that do
    ");
    assert_snapshot!(env.snapshot(&["stop", "unknown"]), @r#"
    exit code: 3
    --- stderr
    error: there is no agent "unknown"
    hint: `gt agents` lists those that run, `gt agents --stopped` those that could
    hint: targets are addresses (gastown/crew/max), rig/name, roles that one agent has (witness), container names, session ids or ids of work items
    "#);
}

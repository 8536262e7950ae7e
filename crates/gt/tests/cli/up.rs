//! `gt up`: the mayor and the daemon run, and role agents are started when something needs their
//! decision.

use crate::env::{TIMEOUT, TestEnv, signal};
use crate::mq::finish;
use gt_tmux::testing::wait_until;
use rustix::process::Signal;
use serde_json::Value;
use std::fs;

/// Raises an escalation about a work item of the rig; returns its id.
fn trouble(env: &TestEnv, title: &str) -> String {
    let item = env.create_item(title);
    let args = ["escalate", "It does not go on", "--item", &item, "--json"];
    let raised = env.gt(&args).ok().json();
    raised["id"].as_str().unwrap().to_owned()
}

fn daemon(env: &TestEnv) -> Value {
    let answer = env.gt(&["daemon", "status", "--json"]);
    serde_json::from_str(&answer.stdout).unwrap()
}

fn pid(status: &Value) -> u32 {
    u32::try_from(status["pid"].as_u64().unwrap()).unwrap()
}

#[test]
fn only_the_mayor_is_started_and_the_others_are_named() {
    let env = TestEnv::with_rig();
    let up = env.gt(&["up", "--no-daemon"]).ok().stdout;
    assert_eq!(env.running(), ["mayor"]);
    let expected = "started on demand: deacon, gastown/witness, gastown/refinery. `gt up --all-roles` starts them now.";
    assert!(up.contains(expected), "{up}");
    env.gt(&["witness", "start"]).ok();
    let again = env.gt(&["up", "--no-daemon"]).ok().stdout;
    assert!(
        again.contains("on demand: deacon, gastown/refinery."),
        "{again}"
    );
    // A rig that wants its refinery always on.
    let roles = env.town().join("gastown/roles");
    fs::create_dir_all(&roles).unwrap();
    fs::write(roles.join("refinery.toml"), "[start]\non_demand = false\n").unwrap();
    env.gt(&["up", "--no-daemon"]).ok();
    assert_eq!(
        env.running(),
        ["mayor", "gastown/witness", "gastown/refinery"]
    );
    env.gt(&["up", "--no-daemon", "--all-roles"]).ok();
    assert_eq!(env.running().len(), 4);
}

#[test]
fn escalation_starts_the_witness_with_a_digest_and_it_ends_itself() {
    let env = TestEnv::with_rig();
    let id = trouble(&env, "Toast");
    // Without `gt up`, no timer starts an agent.
    env.gt(&["internal", "save", "--timer"]).ok();
    assert_eq!(env.running(), Vec::<String>::new());
    let dry = env.gt(&["patrol", "wake", "--dry-run"]).ok().stdout;
    assert_eq!(dry, format!("· gastown/witness would get dg-1: {id}\n"));
    let woken = env.gt(&["patrol", "wake"]).ok().stdout;
    assert_eq!(
        woken,
        format!("✓ gastown/witness was started with dg-1: {id}\n")
    );
    assert_eq!(env.running(), ["gastown/witness"]);
    env.wait_screen("gastown/witness", "Digest dg-1");
    let primed = env.gt(&["prime", "--agent", "gastown/witness"]).ok().stdout;
    assert!(
        primed.contains("## To decide") && primed.contains(&id),
        "{primed}"
    );
    let again = env.gt(&["patrol", "wake"]).ok().stdout;
    assert_eq!(again, "No role agent has anything new to decide.\n");
    let line = format!("[[tool={} done --exit]]", env!("CARGO_BIN_EXE_gt"));
    // The agent ends while the delivery still verifies, so either result is valid.
    env.gt(&["nudge", "gastown/witness", &line]);
    wait_until("it has ended", TIMEOUT, || {
        env.running().is_empty().then_some(())
    });
    // It is not dead: no patrol brings it back.
    let patrol = env.gt(&["patrol", "--json"]).ok().json();
    assert_eq!(patrol["actions"].as_array().unwrap().len(), 0, "{patrol}");
    assert!(env.running().is_empty());
}

#[test]
fn clean_exit_of_an_agent_on_demand_is_final() {
    let env = TestEnv::with_rig();
    env.gt(&["witness", "start"]).ok();
    env.gt(&["nudge", "gastown/witness", "[[exit=0]]"]);
    wait_until("it has ended", TIMEOUT, || {
        let agents = env.gt(&["agents", "--all", "--json"]).ok().json();
        let is_over = |row: &Value| row["state"] == "exited" || row["state"] == "stopped";
        agents.as_array().unwrap().iter().all(is_over).then_some(())
    });
    env.gt(&["internal", "respawn", "gt-witness", "--due", "--pane", "%0"]);
    let patrol = env.gt(&["patrol", "--json"]).ok().json();
    let rules: Vec<&Value> = patrol["actions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["rule"])
        .collect();
    assert!(!rules.contains(&&Value::from("dead-agent")), "{patrol}");
    let sessions = env.gt(&["sessions", "list", "--json"]).ok().json();
    assert_eq!(sessions.as_array().unwrap().len(), 1, "{sessions}");
}

#[test]
fn killed_wake_neither_loses_nor_repeats_a_digest() {
    for point in gt_town::supervision::digest::FAULT_POINTS {
        let env = TestEnv::with_rig();
        let id = trouble(&env, "Toast");
        env.kill_at_fault(&["patrol", "wake"], point);
        let next = env.gt(&["patrol", "wake", "--json"]).ok().json();
        let next = &next["digests"][0];
        let how = if *point == "digest.planned" {
            "started"
        } else {
            "before"
        };
        assert_eq!(
            (&next["digest"], &next["how"]),
            (&"dg-1".into(), &how.into()),
            "{point}"
        );
        assert_eq!(next["matters"][0], *id, "{point}");
        assert_eq!(env.running(), ["gastown/witness"], "{point}");
        let last = env.gt(&["patrol", "wake", "--json"]).ok().json();
        assert_eq!(last["digests"].as_array().unwrap().len(), 0, "{point}");
        env.wait_screen("gastown/witness", "Digest dg-1");
        let queued = env
            .gt(&["nudge", "gastown/witness", "--list", "--json"])
            .ok();
        assert!(!queued.stdout.contains("dg-1"), "{point}: {queued:?}");
    }
}

#[test]
fn idle_town_with_a_daemon_starts_no_agent() {
    let env = TestEnv::with_rig();
    env.gt(&["daemon", "start"]).ok();
    let runs = |duty: &str| daemon(&env)["duties"][duty]["runs"].as_u64().unwrap_or(0);
    wait_until("the first sweep has run", TIMEOUT, || {
        (runs("upkeep") >= 1).then_some(())
    });
    signal(pid(&daemon(&env)), Signal::HUP);
    wait_until("another sweep has run", TIMEOUT, || {
        (runs("upkeep") >= 2).then_some(())
    });
    // An item that is only open needs no decision.
    env.gt(&["work", "create", "Later", "--rig", "gastown"])
        .ok();
    wait_until("the digests were looked at", TIMEOUT, || {
        (runs("digests") >= 1).then_some(())
    });
    assert_eq!(env.running(), Vec::<String>::new());
    let sessions = env.gt(&["sessions", "list", "--all", "--json"]);
    let sessions: Value = serde_json::from_str(&sessions.stdout).unwrap_or_default();
    assert_eq!(sessions.as_array().map_or(0, Vec::len), 0, "{sessions}");
    // The daemon reacts to an escalation at once.
    trouble(&env, "Toast");
    wait_until("the witness runs", TIMEOUT, || {
        (env.running() == ["gastown/witness"]).then_some(())
    });
    env.gt(&["daemon", "stop"]).ok();
}

#[test]
fn conflict_that_no_agent_repairs_starts_the_refinery_with_a_digest() {
    let env = TestEnv::with_crew(&["max", "amy"]);
    env.add_settings("[rigs.gastown.merge]\nrepair_agents = false\n");
    finish(&env, "max", "same.txt", "of max\n");
    let (_, merge) = finish(&env, "amy", "same.txt", "of amy\n");
    env.gt(&["mq", "run"]).fails(1);
    assert_eq!(env.running(), Vec::<String>::new());
    env.gt(&["daemon", "start"]).ok();
    wait_until("the refinery runs", TIMEOUT, || {
        (env.running() == ["gastown/refinery"]).then_some(())
    });
    env.gt(&["daemon", "stop"]).ok();
    let session = &env.json(&["sessions", "list", "--agent", "gastown/refinery"])[0];
    let prompt = session["initial_prompt"].as_str().unwrap();
    assert!(
        prompt.contains("Digest dg-1") && prompt.contains(&merge),
        "{prompt}"
    );
    let primed = env.gt(&["prime", "--agent", "gastown/refinery"]).ok();
    let primed = primed.stdout;
    assert!(
        primed.contains("## To decide") && primed.contains(&merge),
        "{primed}"
    );
    // A merge that is settled is no matter any more.
    env.gt(&["mq", "reject", &merge, "--reason", "not wanted"])
        .ok();
    let next = env.gt(&["patrol", "wake", "--dry-run"]).ok().stdout;
    assert_eq!(next, "No role agent has anything new to decide.\n");
}

/// Makes a town in which minutes are seconds, and whose deacon and boot get their answers from this
/// script. `$GT_ROLE` is the agent, `$1` the folder of the test.
fn fast_town(answers: &str) -> TestEnv {
    let env = TestEnv::with_rig();
    let settings = env.town().join("town.toml");
    let text = fs::read_to_string(&settings).unwrap();
    let text = text.replace("hung_after_minutes = 30", "hung_after_minutes = 3");
    let speed = "[patrol]\nspeed = 60\nstart_timeout = '30m'\nidle_after = '30m'\n";
    fs::write(&settings, format!("{text}\n{speed}")).unwrap();
    let script = env.path("answers.sh");
    fs::write(&script, answers).unwrap();
    let line = format!("sh {} {}", script.display(), env.path("").display());
    let harness = format!("[command]\nargs = [\"demo-agent\", \"--answer\", \"{line}\"]\n");
    fs::write(env.town().join("harnesses/demo.toml"), harness).unwrap();
    env
}

/// Returns the actions of patrols of this rule.
fn actions(env: &TestEnv, rule: &str) -> Vec<String> {
    let log = env.gt(&["events", "--type", "patrol_action", "--json"]);
    let log: Value = serde_json::from_str(&log.ok().stdout).unwrap();
    let log = log.as_array().unwrap().iter();
    let log = log.filter(|event| event["payload"]["rule"] == rule);
    log.map(|event| event["payload"]["action"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn boot_looks_at_a_stuck_deacon_and_ends_itself() {
    let env = fast_town(
        "case $GT_ROLE in
        boot) echo \"[[tool=gt peek deacon > $1/seen; gt restart deacon; gt done --exit]]\" ;;
        deacon) if [ -e $1/seen ]; then echo '[[text=Well again.]]'; else echo '[[freeze]]'; fi ;;
        esac",
    );
    env.gt(&["deacon", "start"]).ok();
    let before = env.agent("deacon")["session"].clone();
    env.gt(&["daemon", "start"]).ok();
    wait_until("boot has looked at the deacon", TIMEOUT * 2, || {
        let seen = fs::read_to_string(env.path("seen")).unwrap_or_default();
        (!seen.is_empty()).then_some(())
    });
    wait_until(
        "the deacon is well, and boot has ended",
        TIMEOUT * 2,
        || {
            let running = env.json(&["agents"]);
            let [only] = running.as_array()?.as_slice() else {
                return None;
            };
            (only["agent"] == "deacon" && only["session"] != before).then_some(())
        },
    );
    env.wait_screen("deacon", "Well again.");
    env.gt(&["daemon", "stop"]).ok();
    let steps = actions(&env, "hung-agent");
    assert_eq!(steps[..2], ["nudge", "escalate"], "{steps:?}");
    let boot = env.json(&["sessions", "list", "--agent", "boot"]);
    assert_eq!(boot.as_array().unwrap().len(), 1, "{boot}");
    assert_eq!(boot[0]["outcome"], "done", "{boot}");
    assert_eq!(actions(&env, "overdue-boot"), [""; 0]);
}

#[test]
fn boot_that_is_stuck_itself_is_ended_and_escalated() {
    let env = fast_town(
        "case $GT_ROLE in
        boot) touch $1/asked; echo '[[freeze]]' ;;
        deacon) if [ -e $1/asked ]; then echo '[[text=Well again.]]'; else echo '[[freeze]]'; fi ;;
        esac",
    );
    env.gt(&["deacon", "start"]).ok();
    env.gt(&["daemon", "start"]).ok();
    wait_until("the session of boot was ended", TIMEOUT * 3, || {
        (actions(&env, "overdue-boot") == ["end"]).then_some(())
    });
    wait_until("boot does not run", TIMEOUT, || {
        (!env.running().contains(&"boot".to_owned())).then_some(())
    });
    env.gt(&["daemon", "stop"]).ok();
    let open = env.json(&["escalate", "list"]);
    let about_boot = |it: &&Value| {
        it["message"]
            .as_str()
            .unwrap()
            .contains("boot exceeded its time limit")
    };
    assert_eq!(
        open.as_array().unwrap().iter().filter(about_boot).count(),
        1,
        "{open}"
    );
    let boot = env.json(&["sessions", "list", "--agent", "boot"]);
    assert_eq!(boot[0]["outcome"], "stopped", "{boot}");
}

#[test]
fn unknown_harness_fails_before_the_daemon_starts() {
    let env = TestEnv::with_rig();
    let refused = env.gt(&["up", "--harness", "nope"]);
    assert_ne!(refused.code, 0, "{}", refused.stdout);
    assert!(refused.stderr.contains("nope"), "{}", refused.stderr);
    assert_eq!(refused.stdout, "");
    assert_eq!(env.json(&["agents"]), serde_json::json!([]));
}

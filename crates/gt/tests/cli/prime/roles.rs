//! `gt prime` for the agents that watch others: their job, their commands, their round and their end.

use crate::env::{Answer, TIMEOUT, TestEnv, run};
use crate::sessions::list_sessions;
use gt_tmux::testing::wait_until;
use serde_json::Value;

const WITNESS: &str = "gastown/witness";

/// Runs `gt` as the witness would in its container.
fn as_witness(env: &TestEnv, args: &[&str]) -> Answer {
    let session = &list_sessions(env, &["--agent", WITNESS, "--limit", "1"])[0];
    let mut command = env.gt_command(args);
    command
        .env("GT_ROLE", WITNESS)
        .env("GT_ROOT", env.town())
        .env("GT_SESSION_UUID", session["id"].as_str().unwrap());
    run(&mut command)
}

fn molecule(env: &TestEnv, agent: &str) -> Value {
    env.json(&["mol", "status", "--agent", agent])
}

/// Returns the commands between backquotes.
fn commands(text: &str) -> Vec<&str> {
    let quoted = text.split('`').skip(1).step_by(2);
    quoted.filter(|line| line.starts_with("gt ")).collect()
}

#[test]
fn every_role_agent_is_told_its_job_its_commands_and_its_end() {
    let env = TestEnv::with_rig();
    for (agent, end) in [
        ("mayor", "end your turn"),
        ("deacon", "`gt done --exit`"),
        ("boot", "`gt done --exit`"),
        ("deacon/dogs/rex", "`gt done --exit`"),
        (WITNESS, "`gt done --exit`"),
        ("gastown/refinery", "`gt done --exit`"),
    ] {
        let mut command = env.gt_command(&["prime"]);
        command.env("GT_ROLE", agent).env("GT_ROOT", env.town());
        command.env("GT_SESSION_UUID", "01a1eb8e-3716-7563-b9b4-01adf356eccb");
        let text = run(&mut command).ok().stdout;
        assert!(text.contains(end), "{agent}: {text}");
        assert!(!text.contains("wait for instructions"), "{agent}: {text}");
        let commands = commands(&text);
        assert!(commands.len() > 2, "{agent}: {text}");
        for line in commands {
            let mut words: Vec<&str> = line.split_whitespace().skip(1).collect();
            words.push("--help");
            // An unknown command or flag fails before the help.
            env.gt(&words).ok();
        }
    }
}

#[test]
fn patrol_formula_is_poured_once_per_session() {
    let env = TestEnv::with_rig();
    env.gt(&["witness", "start"]).ok();
    let poured = wait_until("its formula is poured", TIMEOUT, || {
        Some(molecule(&env, WITNESS)).filter(|found| !found.is_null())
    });
    assert_eq!(poured["formula"], "patrol");
    let text = as_witness(&env, &["prime"]).ok().stdout;
    assert!(text.contains("Look at every agent of gastown"), "{text}");
    assert_eq!(molecule(&env, WITNESS)["molecule"], poured["molecule"]);
    for step in poured["steps"].as_array().unwrap() {
        let step = step["step"].as_str().unwrap();
        env.gt(&["mol", "step", "done", step, "--agent", WITNESS])
            .ok();
    }
    as_witness(&env, &["prime"]).ok();
    let of_session = env.json(&["events", "--type", "molecule_attached"]);
    assert_eq!(of_session.as_array().unwrap().len(), 1, "{of_session}");
    // The round is over, and the agent ends its session; it is not started again.
    as_witness(&env, &["done", "--exit"]).ok();
    assert!(env.sessions().is_empty());
    let ended = &list_sessions(&env, &["--agent", WITNESS])[0];
    assert_eq!(ended["outcome"], "done", "{ended}");
    // A person who looks pours nothing.
    env.gt(&["prime", "--agent", WITNESS]).ok();
    assert!(molecule(&env, WITNESS).is_null());
    env.gt(&["witness", "start"]).ok();
    wait_until("the next session has its own", TIMEOUT, || {
        let next = molecule(&env, WITNESS);
        (!next.is_null() && next["molecule"] != poured["molecule"]).then_some(())
    });
}

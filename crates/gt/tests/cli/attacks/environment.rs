//! Secrets in the environment of the caller, and of the tmux server.

use crate::env::TestEnv;
use gt_tmux::Command as Tmux;
use std::collections::BTreeMap;
use std::fs;

const SECRET: &str = "s3cret-0123456789";

fn environment(env: &TestEnv, address: &str) -> BTreeMap<String, String> {
    let pid = env.pid(address);
    let bytes = fs::read(format!("/proc/{pid}/environ")).unwrap();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let pair = |entry: &str| {
        let (name, value) = entry.split_once('=')?;
        Some((name.to_owned(), value.to_owned()))
    };
    text.split('\0').filter_map(pair).collect()
}

#[test]
fn agents_do_not_get_the_secrets_of_the_first_caller() {
    let mut env = TestEnv::with_crew(&["max", "joe"]);
    env.set("AWS_SECRET_ACCESS_KEY", SECRET);
    env.set("CARGO_HOME", "/somewhere");
    env.gt(&["crew", "start", "max"]).ok();
    let server = env.tmux(Tmux::new("show-environment").arg("-g"));
    assert!(!server.contains(SECRET), "{server}");
    let found = environment(&env, "gastown/crew/max");
    assert_eq!(found.get("AWS_SECRET_ACCESS_KEY"), None);
    assert_eq!(found["CARGO_HOME"], "/somewhere", "a toolchain");
    env.set("CARGO_HOME", "/elsewhere");
    env.gt(&["crew", "start", "joe"]).ok();
    let found = environment(&env, "gastown/crew/joe");
    assert_eq!(
        found["CARGO_HOME"], "/elsewhere",
        "the caller's value counts"
    );
}

#[test]
fn agents_on_a_persons_own_server_do_not_get_its_secrets() {
    let env = TestEnv::with_crew(&["max"]);
    env.tmux(Tmux::new("new-session").args(["-d", "-s", "desk", "sleep 1000"]));
    env.tmux(Tmux::new("set-environment").args(["-g", "GH_TOKEN", SECRET]));
    env.gt(&["crew", "start", "max"]).ok();
    assert_eq!(environment(&env, "gastown/crew/max").get("GH_TOKEN"), None);
    // A window that is opened in the container later has no more than the agent.
    let container = env.agent("gastown/crew/max")["container"].clone();
    let window = Tmux::new("new-window").args(["-d", "-P", "-F", "#{pane_pid}", "-t"]);
    let window = window.arg(format!("={}:", container.as_str().unwrap()));
    let pid = env.tmux(window.arg("sleep 1000"));
    let bytes = fs::read(format!("/proc/{}/environ", pid.trim())).unwrap();
    assert!(!String::from_utf8_lossy(&bytes).contains(SECRET));
    // The person's own windows keep it.
    let shown = env.tmux(Tmux::new("show-environment").args(["-g", "GH_TOKEN"]));
    assert!(shown.contains(SECRET));
}

#[test]
fn town_passes_and_removes_variables_by_name() {
    let mut env = TestEnv::with_crew(&["max"]);
    env.add_settings("[env]\npass = ['TEAM_TOKEN']\nremove = ['SSH_AUTH_SOCK']\n");
    env.set("TEAM_TOKEN", SECRET);
    env.set("SSH_AUTH_SOCK", "/nowhere");
    env.gt(&["crew", "start", "max"]).ok();
    let found = environment(&env, "gastown/crew/max");
    assert_eq!(found["TEAM_TOKEN"], SECRET);
    assert_eq!(found.get("SSH_AUTH_SOCK"), None);
    let listed = env.json(&["agents", "env", "max"]);
    assert!(!listed.to_string().contains(SECRET), "only names");
    let origin = |name: &str| {
        let all = listed.as_array().unwrap();
        let row = all.iter().find(|row| row["name"] == name);
        row.unwrap()["origin"].as_str().unwrap().to_owned()
    };
    assert_eq!(origin("TEAM_TOKEN"), "town_pass");
    assert_eq!(origin("HOME"), "inherited");
    assert_eq!(origin("GT_ROLE"), "gt");
    assert_eq!(origin("TMUX"), "tmux");
}

#[test]
fn secrets_by_reference_reach_the_agent_and_nothing_else() {
    let env = TestEnv::with_crew(&["max"]);
    let role = env.town().join("roles/crew.toml");
    fs::create_dir_all(env.town().join("roles")).unwrap();
    fs::write(
        &role,
        "[env]\nDEPLOY_KEY = { file = 'key' }\nOTHER_KEY = { command = ['printf', 'from-a-command'] }\n",
    )
    .unwrap();
    // A value that is missing is an error before anything starts.
    let refused = env.gt(&["crew", "start", "max"]);
    assert_ne!(refused.code, 0);
    assert!(refused.stderr.contains("DEPLOY_KEY"), "{}", refused.stderr);
    assert_eq!(env.running(), [""; 0]);
    fs::write(env.town().join("key"), format!("{SECRET}\n")).unwrap();
    env.gt(&["crew", "start", "max"]).ok();
    let found = environment(&env, "gastown/crew/max");
    assert_eq!(found["DEPLOY_KEY"], SECRET);
    assert_eq!(found["OTHER_KEY"], "from-a-command");
    let container = env.agent("gastown/crew/max")["container"].clone();
    let container = container.as_str().unwrap();
    let table = env.tmux(Tmux::new("show-environment").args(["-t", &format!("={container}")]));
    assert!(!table.contains(SECRET), "{table}");
    // The next value counts for the next session.
    fs::write(env.town().join("key"), "changed").unwrap();
    env.gt(&["crew", "restart", "max"]).ok();
    assert_eq!(
        environment(&env, "gastown/crew/max")["DEPLOY_KEY"],
        "changed"
    );
}

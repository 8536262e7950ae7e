//! `gt agents`: output and order.

mod states;

use crate::env::TestEnv;
use insta::assert_snapshot;

#[test]
fn agents_are_sorted_and_polecats_come_with_all() {
    let env = TestEnv::with_rig();
    env.add_rig("beads", "bd");
    env.gt(&["crew", "add", "beads/zoe", "gastown/max", "gastown/amy"])
        .ok();
    env.gt(&["agent", "new", "lone"]).ok();
    env.gt(&[
        "start",
        "--create",
        "agent/lone",
        "gastown/polecats/Toast",
        "gastown/crew/max",
        "gastown/crew/amy",
        "beads/crew/zoe",
        "beads/witness",
        "gastown/refinery",
        "gastown/witness",
        "deacon",
        "mayor",
    ])
    .ok();
    let listed: Vec<String> = env.running();
    assert_eq!(
        listed,
        [
            "mayor",
            "deacon",
            "agent/lone",
            "beads/witness",
            "beads/crew/zoe",
            "gastown/witness",
            "gastown/refinery",
            "gastown/crew/amy",
            "gastown/crew/max",
            "gastown/polecats/Toast",
        ]
    );
    let shown = env.gt(&["agents"]).ok().stdout;
    assert!(shown.contains("gastown/polecats/Toast"), "{shown}");
    let scripts = env.gt(&["agents", "--json"]).ok().stdout;
    assert!(!scripts.contains("Toast"), "{scripts}");
    let rig = env.json(&["agents", "--rig", "beads"]);
    assert_eq!(rig.as_array().unwrap().len(), 2);
    let crew = env.json(&["agents", "--role", "crew"]);
    assert_eq!(crew.as_array().unwrap().len(), 3);
    let stopped = env.json(&["agents", "--stopped", "--role", "refinery"]);
    assert_eq!(stopped[0]["agent"], "beads/refinery");
    assert_eq!(stopped[0]["state"], "stopped");
    assert_eq!(stopped[0]["health"], "session_dead");
    let status = env.json(&["status"]);
    assert_eq!(status["running"], 10);
    assert_eq!(status["rigs"].as_array().unwrap().len(), 2);
    let line = env.gt(&["status-line", "--session=hq-mayor"]).ok().stdout;
    assert!(
        line.starts_with("idle ") || line.starts_with("busy "),
        "{line}"
    );
}

#[test]
fn an_agents_document_has_the_promised_fields() {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["crew", "start", "max", "--no-prompt"]).ok();
    env.wait_screen("gastown/max", "? for shortcuts");
    let mut agent =
        gt_tmux::testing::wait_until("its hook has spoken", crate::env::TIMEOUT, || {
            Some(env.agent("gastown/crew/max")).filter(|agent| agent["state_source"] == "hook")
        });
    for (field, pattern) in [
        ("session", 36),
        ("created_at", 20),
        ("state_since", 20),
        ("pane", 0),
        ("pid", 0),
        ("work_dir", 0),
        ("keepalive_age_seconds", 0),
    ] {
        let value = agent[field].take();
        assert!(!value.is_null(), "{field}");
        if pattern > 0 {
            assert_eq!(value.as_str().unwrap().len(), pattern, "{field}: {value}");
        }
        agent.as_object_mut().unwrap().shift_remove(field);
    }
    assert_snapshot!(serde_json::to_string_pretty(&agent).unwrap(), @r#"
    {
      "agent": "gastown/crew/max",
      "role": "crew",
      "rig": "gastown",
      "name": "max",
      "container": "gt-crew-max",
      "harness": "demo",
      "state": "idle",
      "state_source": "hook",
      "state_reason": "started",
      "health": "healthy",
      "attached": false,
      "sandbox": "none",
      "never_asks": true
    }
    "#);
}

#[test]
fn an_empty_town_says_what_to_do_next() {
    let env = TestEnv::with_town();
    assert_snapshot!(env.gt(&["agents"]).ok().stdout, @"No agents run here. `gt up` starts the town's own, `gt crew start NAME` a worker.");
    assert_snapshot!(env.gt(&["agents", "--json"]).ok().stdout, @"[]");
    assert_snapshot!(env.gt(&["rig", "list"]).ok().stdout, @"No rigs yet. `gt rig add PATH-OR-URL` adds a repository.");
    assert_snapshot!(env.gt(&["peek", "max"]).fails(3).stderr, @"
    error: there is no agent \"max\"
    hint: `gt agents` lists those that run, `gt agents --stopped` those that could
    hint: targets are addresses (gastown/crew/max), rig/name, roles that one agent has (witness), container names, session ids or ids of work items
    ");
}

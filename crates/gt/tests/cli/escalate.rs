//! `gt escalate`: raising, listing, acknowledging and closing, and the escalations of `gt` itself.

use crate::env::{Answer, TIMEOUT, TestEnv};
use gt_tmux::testing::wait_until;
use insta::assert_snapshot;
use serde_json::{Value, json};
use std::fs;

const MAX: &str = "gastown/crew/max";

/// Runs a command as an agent.
fn by(env: &TestEnv, agent: &str, args: &[&str]) -> Answer {
    Answer::of(env.gt_command(args).env("GT_ROLE", agent).output().unwrap())
}

#[track_caller]
fn raise(env: &TestEnv, args: &[&str]) -> Value {
    env.json(&[&["escalate"], args].concat())
}

#[track_caller]
fn subjects(env: &TestEnv, agent: &str) -> Vec<String> {
    let mail = env.json(&["mail", "inbox", "--agent", agent]);
    let mail = mail.as_array().unwrap().iter();
    mail.map(|mail| mail["subject"].as_str().unwrap().to_owned())
        .collect()
}

#[track_caller]
fn events(env: &TestEnv) -> Vec<(String, String)> {
    let events = env.json(&["events", "--type", "escalation_*"]);
    let text = |event: &Value, field: &str| event[field].as_str().unwrap().to_owned();
    let events = events.as_array().unwrap().iter();
    events
        .map(|event| (text(event, "type"), text(event, "actor")))
        .collect()
}

#[test]
fn agent_asks_for_help_and_a_person_acknowledges_and_closes() {
    let env = TestEnv::with_crew(&["max"]);
    let item = env.json(&["work", "create", "Deploy it"]);
    let item = item["id"].as_str().unwrap();
    env.gt(&["hook", item, "--agent", MAX]).ok();
    let words = [
        "escalate",
        "the key has expired",
        "--severity",
        "high",
        "--json",
    ];
    let raised = by(&env, MAX, &words).ok().json();
    let id = raised["id"].as_str().unwrap();
    for (field, expected) in [
        ("severity", json!("high")),
        ("state", json!("open")),
        ("agent", json!(MAX)),
        ("item", json!(item)),
        ("raised_by", json!(MAX)),
        ("source", json!("command")),
        ("count", json!(1)),
    ] {
        assert_eq!(raised[field], expected, "{field}: {raised}");
    }
    for reader in ["mayor", "human"] {
        assert_eq!(subjects(&env, reader), ["[high] the key has expired"]);
    }
    // A repeated text is the same escalation.
    assert_eq!(by(&env, MAX, &words).ok().json()["count"], 2);
    assert_eq!(subjects(&env, "mayor").len(), 1);
    let status = env.json(&["status"]);
    assert_eq!(status["escalations"][0]["id"], id);
    let shown = env.gt(&["status"]).ok().stdout;
    let first = shown.lines().next().unwrap();
    assert!(first.starts_with(&format!("! {id} high, ")), "{shown}");
    let acknowledged = env.json(&["escalate", "ack", id]);
    assert_eq!(acknowledged[0]["state"], "acknowledged");
    env.gt(&["escalate", "ack", id]).ok();
    let closed = env.json(&["escalate", "close", id, "--reason", "renewed"]);
    assert_eq!(closed[0]["reason"], "renewed");
    assert_eq!(env.json(&["escalate", "list"]), json!([]));
    assert_eq!(env.json(&["escalate", "list", "--all"])[0]["id"], id);
    env.gt(&["escalate", "ack", id]).fails(4);
    let person = env.json(&["events", "--type", "escalation_closed"])[0]["actor"].clone();
    assert_ne!(person, json!(MAX));
    let events = events(&env);
    let kinds: Vec<&str> = events.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(
        kinds,
        [
            "escalation_raised",
            "escalation_acknowledged",
            "escalation_closed"
        ]
    );
    assert_eq!(events[0].1, MAX);
    assert_snapshot!(env.snapshot(&["events", "--feed"]), @"
    exit code: 0
    --- stdout
    [TIME] [TIME]  [USER] hooked gt-[ID] for gastown/crew/max
    [TIME] [TIME]  gastown/crew/max asks for help with gt-[ID]: the key has expired
    [TIME] [TIME]  gastown/crew/max wrote to mayor, human: [high] the key has expired
    [TIME] [TIME]  [USER] acknowledged esc-[ID]: the key has expired
    [TIME] [TIME]  [USER] closed esc-[ID]: the key has expired (renewed)
    ");
}

#[test]
fn lists_are_filtered() {
    let env = TestEnv::with_crew(&["max"]);
    for severity in ["low", "critical", "medium"] {
        raise(
            &env,
            &[severity, "--severity", severity, "--agent", "gastown/max"],
        );
    }
    raise(&env, &["of the town"]);
    let list = |more: &[&str]| {
        let found = env.json(&[&["escalate", "list"], more].concat());
        let found = found.as_array().unwrap().iter();
        let words = found.map(|it| it["message"].as_str().unwrap().to_owned());
        words.collect::<Vec<_>>()
    };
    assert_eq!(list(&[]), ["critical", "medium", "of the town", "low"]);
    assert_eq!(list(&["--severity", "high"]), ["critical"]);
    assert_eq!(
        list(&["--agent", "gastown/max"]),
        ["critical", "medium", "low"]
    );
    assert_eq!(list(&["--state", "closed"]), [""; 0]);
}

#[test]
fn escalate_prints() {
    let env = TestEnv::with_crew(&["max"]);
    assert_snapshot!(env.snapshot(&["escalate", "list"]), @"
    exit code: 0
    --- stdout
    No open escalations. `gt escalate list --all` shows closed ones.
    ");
    assert_snapshot!(env.snapshot(&["escalate", "show", "nosuch"]), @r#"
    exit code: 2
    --- stderr
    error: "nosuch" is not the id of an escalation
    hint: such as esc-[ID]; `gt escalate list` shows them
    "#);
    assert_snapshot!(env.snapshot(&["escalate", "no disk", "--severity", "critical", "--agent", "gastown/max"]), @"
    exit code: 0
    --- stdout
    ✓ esc-[ID] is raised with severity critical.
    ");
    assert_snapshot!(env.snapshot(&["escalate", "list"]), @"
    exit code: 0
    --- stdout
    ID  SEVERITY  STATE  AGE  AGENT  ITEM  MESSAGE
    esc-[ID]  critical  open  [N]  gastown/crew/max  no disk
    ");
    assert_snapshot!(env.snapshot(&["escalate", ""]), @r#"
    exit code: 2
    --- stderr
    error: an escalation needs a message
    hint: `gt escalate "the deploy key has expired"`
    "#);
    assert_snapshot!(env.snapshot(&["escalate", "show", "esc-00000"]), @"
    exit code: 3
    --- stderr
    error: there is no escalation esc-[ID]
    hint: `gt escalate list` shows them
    ");
    let id = env.json(&["escalate", "list"])[0]["id"].clone();
    assert_snapshot!(env.snapshot(&["escalate", "show", id.as_str().unwrap()]), @"
    exit code: 0
    --- stdout
    esc-[ID]
      severity  critical
      state  open
      agent  gastown/crew/max
      raised  [TIME] [TIME] by [USER] (command)
      again  [TIME] [TIME]

    no disk
    ");
}

#[test]
fn item_left_for_help_is_an_escalation_until_it_is_taken_up() {
    let env = TestEnv::with_crew(&["max"]);
    let item = env.json(&["work", "create", "Deploy it"]);
    let item = item["id"].as_str().unwrap();
    env.gt(&["hook", item, "--agent", MAX]).ok();
    let words = [
        "done",
        "--status",
        "escalated",
        "-m",
        "no access",
        "--agent",
        MAX,
    ];
    by(&env, MAX, &words).ok();
    let found = env.json(&["escalate", "list"]);
    assert_eq!(found[0]["message"], "no access", "{found}");
    assert_eq!(found[0]["source"], "done");
    assert_eq!(found[0]["item"], item);
    assert_eq!(subjects(&env, "human"), ["[medium] no access"]);
    env.gt(&["sync"]).ok();
    assert_eq!(env.json(&["escalate", "list"])[0]["state"], "open");
    env.gt(&["hook", item, "--agent", MAX]).ok();
    env.gt(&["sync"]).ok();
    let found = env.json(&["escalate", "list", "--all"]);
    assert_eq!(found[0]["state"], "closed", "{found}");
    assert_eq!(found[0]["reason"], format!("{item} is hooked"));
}

#[test]
fn high_severity_is_notified_and_critical_also_in_quiet_hours() {
    let env = TestEnv::with_crew(&["max"]);
    let file = env.town().join("told");
    let line = format!(
        "printf '%s|' \"$GT_NOTIFY_EVENT\" \"$GT_NOTIFY_AGENT\" \"$GT_NOTIFY_REASON\" >> {0} && echo >> {0}",
        file.display()
    );
    let settings = env.town().join("town.toml");
    let mut text = fs::read_to_string(&settings).unwrap();
    text.push_str(&format!(
        "\n[notify]\ncommand = {line:?}\non = [\"died\"]\nquiet_hours = \"00:00-23:59\"\n"
    ));
    fs::write(&settings, text).unwrap();
    raise(&env, &["quiet", "--severity", "high"]);
    raise(
        &env,
        &["loud", "--severity", "critical", "--agent", "gastown/max"],
    );
    wait_until("the notification", TIMEOUT, || {
        let told = fs::read_to_string(&file).ok()?;
        told.ends_with('\n').then_some(())
    });
    let told = fs::read_to_string(&file).unwrap();
    assert_eq!(told, format!("escalation|{MAX}|[critical] loud|\n"));
}

#[test]
fn killed_raise_is_announced_later() {
    for point in gt_town::messaging::escalate::FAULT_POINTS {
        let env = TestEnv::with_crew(&["max"]);
        env.kill_at_fault(&["escalate", "help"], point);
        let found = env.json(&["escalate", "list"]);
        assert_eq!(found[0]["message"], "help", "{point}");
        assert_eq!(subjects(&env, "mayor"), ["[medium] help"], "{point}");
    }
}

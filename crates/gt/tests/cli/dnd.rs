//! `gt dnd`: messages that are held, and their delivery at the end.

use crate::env::{TIMEOUT, TestEnv};
use crate::notify::{bash, hook, with_notes};
use gt_tmux::testing::wait_until;
use serde_json::{Value, json};
use std::fs;

fn screen(env: &TestEnv) -> String {
    env.gt(&["peek", "mayor"]).ok().stdout
}

#[test]
fn messages_to_an_agent_are_held_until_it_is_off() {
    let env = TestEnv::with_town();
    env.gt(&["start", "mayor", "--no-prompt"]).ok();
    let none = env.gt(&["dnd"]).ok().stdout;
    assert!(none.starts_with("No messages are held."), "{none}");
    env.gt(&["dnd", "on", "nosuch/agent"]).fails(3);
    env.gt(&["dnd", "until", "yesterday", "mayor"]).fails(2);
    let on = env.gt(&["dnd", "on", "mayor"]).ok().stdout;
    assert_eq!(
        on,
        "mayor: do not disturb. Urgent messages pass; `gt dnd off mayor` ends it.\n"
    );
    let said = env.gt(&["nudge", "mayor", "first"]).ok().stdout;
    assert_eq!(
        said,
        "Waits in the queue of mayor: do-not-disturb is on. It is held until \
         `gt dnd off mayor`; `--priority urgent` passes.\n"
    );
    let sent = env.json(&["nudge", "mayor", "second", "--mode", "queue"]);
    assert_eq!(sent["deliverer"], "dnd", "{sent}");
    // An announcement of mail is held too; an urgent message passes.
    env.gt(&["mail", "send", "mayor", "-s", "News", "-m", "x"])
        .ok();
    let urgent = env.json(&["nudge", "mayor", "fire", "--priority", "urgent"]);
    assert_eq!(urgent["delivered"], "agent", "{urgent}");
    let shown = env.json(&["dnd"]);
    assert_eq!(shown[0]["who"], "mayor", "{shown}");
    assert_eq!(shown[0]["held"], 3, "{shown}");
    assert!(env.agent("mayor")["dnd"].is_object());
    for command in ["agents", "status"] {
        let table = env.gt(&[command]).ok().stdout;
        assert!(table.contains("do not disturb"), "{table}");
    }
    assert!(!screen(&env).contains("first"), "{}", screen(&env));
    let off = env.gt(&["dnd", "off", "mayor"]).ok().stdout;
    assert_eq!(
        off,
        "mayor: do not disturb is off. 3 messages are delivered now.\n"
    );
    for text in ["first", "second", "News"] {
        env.wait_screen("mayor", text);
    }
    assert_eq!(env.agent("mayor")["dnd"], Value::Null);
    // One that meant another is told which.
    env.gt(&["dnd", "on", "mayor"]).ok();
    assert_eq!(
        env.gt(&["dnd", "off"]).ok().stdout,
        "You: do not disturb was not on.\nIt is on for mayor: `gt dnd off mayor` ends it.\n"
    );
    env.gt(&["dnd", "off", "mayor"]).ok();
    let events = env.json(&["events", "--type", "dnd"]);
    assert_eq!(events.as_array().unwrap().len(), 4, "{events}");
}

#[test]
fn held_messages_are_delivered_when_the_time_is_over() {
    let env = TestEnv::with_town();
    env.gt(&["start", "mayor", "--no-prompt"]).ok();
    let on = env.json(&["dnd", "until", "3s", "mayor"]);
    assert!(on[0]["until"].is_string(), "{on}");
    let sent = env.json(&["nudge", "mayor", "after a while"]);
    assert_eq!(sent["held_until"], on[0]["until"], "{sent}");
    // No command is called meanwhile that would look after it: a timer of tmux does.
    env.wait_screen("mayor", "after a while");
    assert_eq!(env.json(&["dnd"]), json!([]));
}

#[test]
fn notifications_to_the_person_are_held_and_critical_escalations_pass() {
    let env = TestEnv::with_town();
    with_notes(&env, "");
    env.gt(&["start", "mayor", "--no-prompt"]).ok();
    let on = env.gt(&["dnd", "on"]).ok().stdout;
    assert!(on.starts_with("You: do not disturb."), "{on}");
    let status = env.gt(&["status"]).ok().stdout;
    assert!(status.contains("You: do not disturb"), "{status}");
    for what in ["one", "two"] {
        hook(&env, "permission", &bash(what));
        hook(&env, "prompt", &json!({"prompt": "x"}));
    }
    env.gt(&["escalate", "it burns", "--severity", "critical"])
        .ok();
    let notes = || fs::read_to_string(env.path("notes")).unwrap_or_default();
    wait_until("the critical escalation", TIMEOUT, || {
        notes().contains("it burns").then_some(())
    });
    assert!(!notes().contains("waiting"), "{}", notes());
    assert_eq!(env.json(&["dnd"])[0]["held"], 1);
    env.gt(&["dnd", "off"]).ok();
    // The newest of each agent and kind.
    wait_until("the held notification", TIMEOUT, || {
        notes().contains("waiting mayor: ").then_some(())
    });
    assert!(
        notes().contains("two") && !notes().contains("one"),
        "{}",
        notes()
    );
    assert_eq!(env.json(&["dnd"]), json!([]));
}

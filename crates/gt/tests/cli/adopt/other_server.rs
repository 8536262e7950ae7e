//! Adopted agents on a tmux server other than the town's.

use super::{CONVERSATION, Desk};
use crate::board::terminal::Terminal;
use crate::env::{TIMEOUT, TestEnv, signal};
use crate::watch::Watch;
use gt_tmux::testing::wait_until;
use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::{Value, json};

/// Returns the global options, hooks and keys of the desk's server.
fn global_options(desk: &Desk<'_>) -> String {
    let options = desk.tmux(&["show-options", "-g"]);
    options + &desk.tmux(&["show-hooks", "-g"]) + &desk.tmux(&["list-keys"])
}

#[test]
fn it_is_in_status_watch_and_save_and_gets_mail() {
    let env = TestEnv::with_town();
    env.gt(&["start", "mayor", "--no-prompt"]).ok();
    let desk = Desk::open(&env, &env.path("other"));
    // The restored agent finds its conversation in this folder.
    let demo_home = env.town().join(".runtime/demo");
    desk.run(&format!("export GT_DEMO_HOME='{}'", demo_home.display()));
    let pid = desk.start_program(&format!("--session-id {CONVERSATION}"))["pid"].to_string();
    let before = global_options(&desk);
    let watch = Watch::begin(&env);
    env.json(&["adopt", &pid, "--name", "helper"]);
    let line = watch.expect_of("agent/helper", "idle");
    assert_eq!(line["container"], "agent_helper", "{line}");

    let status = env.json(&["status"]);
    assert_eq!(status["running"], 2, "{status}");
    let helper = &env.agent("agent/helper");
    assert_eq!(helper["socket"], json!(desk.socket), "{helper}");

    // Mail to the agent, also through a group, is announced in its pane.
    // The turn lasts: `gt watch` may read the state only after a short one.
    let news = ["-s", "News [[delay=60]]", "-m", "Look"];
    let sent = env.json(&[&["mail", "send", "agent/helper"], &news[..]].concat());
    assert_eq!(sent[0]["nudged"], true, "{sent}");
    env.wait_screen("agent/helper", "News");
    watch.expect_of("agent/helper", "busy");
    watch.end();

    let saved = env.json(&["save"]);
    assert_eq!(saved["containers"], 2, "{saved}");
    // On the person's server `gt` leaves only the session.
    assert_eq!(global_options(&desk), before);
    let plan = env.json(&["restore", "--dry-run"]);
    let plan = plan["agents"].as_array().unwrap();
    assert_eq!(plan.len(), 2, "{plan:?}");
    assert!(plan.iter().all(|it| it["action"] != "restore"), "{plan:?}");

    // After its server ended, a restore starts the agent in its own container, in its conversation.
    drop(desk);
    env.gt(&["sync"]).ok();
    assert_eq!(env.running(), ["mayor"]);
    assert_snapshot!(env.snapshot(&["restore", "--dry-run"]), @"
    exit code: 0
    --- stdout
    · mayor: is there already
    Would bring back agent/helper on the town's tmux server (it was on ~/other), in its conversation [UUID].
    ");
    assert_snapshot!(env.snapshot(&["restore"]), @"
    exit code: 0
    --- stdout
    · mayor: is there already
    ✓ agent/helper [STATE] in agent_helper on the town's tmux server (it was on ~/other), in its conversation [UUID] (demo, [N] s)
    ");
    let helper = env.agent("agent/helper");
    assert_eq!(helper["socket"], Value::Null, "{helper}");
    let known = &crate::sessions::list_sessions(&env, &["--agent", "agent/helper"])[0];
    assert_eq!(known["harness_session_id"], CONVERSATION, "{known}");
}

#[test]
fn its_item_is_on_the_board_with_its_screen() {
    let env = TestEnv::with_crew(&["max"]);
    let desk = Desk::open(&env, &env.path("other"));
    let pid = desk.start_program("")["pid"].to_string();
    env.json(&["adopt", &pid, "--agent", "gastown/max"]);
    let item = env.json(&["work", "create", "Make it"]);
    let id = item["id"].as_str().unwrap();
    env.gt(&["hook", id, "--agent", "gastown/max"]).ok();
    // Pane ids repeat across servers.
    env.gt(&["start", "mayor", "--no-prompt"]).ok();
    let board = env.json(&["board"]);
    let card = &board["cards"][0];
    assert_eq!(card["session"]["agent"], "gastown/crew/max", "{board}");
    let board = Terminal::open(&env, 150, 45);
    board.wait_text(id);
    env.gt(&["nudge", "gastown/max", "hello there"]).ok();
    board.wait_text("You said: hello there");
}

#[test]
fn stopped_server_of_the_person_does_not_hold_up_the_town() {
    let env = TestEnv::with_town();
    env.gt(&["start", "mayor", "--no-prompt"]).ok();
    let desk = Desk::open(&env, &env.path("other"));
    let pid = desk.start_program("")["pid"].to_string();
    env.json(&["adopt", &pid, "--name", "helper"]);
    let server: u32 = desk
        .tmux(&["display-message", "-p", "#{pid}"])
        .parse()
        .unwrap();
    signal(server, Signal::STOP);
    let running = env.running();
    let synced = env.gt(&["sync", "--json"]);
    let saved = env.gt(&["save"]);
    signal(server, Signal::CONT);
    assert_eq!(running, ["mayor"]);
    synced.ok();
    saved.ok();
    assert_eq!(env.running(), ["mayor", "agent/helper"]);
    let known = &crate::sessions::list_sessions(&env, &["--agent", "agent/helper"])[0];
    assert_eq!(known["status"], "running", "{known}");
    wait_until("it answers", TIMEOUT, || {
        let nudged = env.gt(&["nudge", "agent/helper", "hello"]);
        (nudged.code == 0).then_some(())
    });
}

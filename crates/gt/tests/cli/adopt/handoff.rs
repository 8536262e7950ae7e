//! `gt handoff` of an adopted agent: the next session gets its own container.

use super::Desk;
use crate::env::{TestEnv, is_alive};
use crate::sessions;
use gt_tmux::Command as Tmux;
use insta::assert_snapshot;
use serde_json::{Value, json};
use std::path::Path;

const GT: &str = env!("CARGO_BIN_EXE_gt");
const MAX: &str = "gastown/crew/max";

fn check_handoff(env: &TestEnv, socket: &Path) {
    let desk = Desk::open(env, socket);
    let pid = desk.start_program("")["pid"].to_string();
    let item = env.json(&["work", "create", "Mend the roof", "--rig", "gastown"]);
    let id = item["id"].as_str().unwrap();
    let adopted = env.json(&["adopt", &pid, "--agent", MAX]);
    env.gt(&["hook", id, "--agent", MAX]).ok();
    let before = desk.panes();

    let mail = ["-s", "Half done", "-m", "The north side is open."];
    let refused = env.gt(&["handoff", MAX, "--force", "--cycle"]).fails(4);
    assert!(refused.stderr.contains("without `--cycle`"), "{refused:?}");
    let handed = env.json(&[&["handoff", MAX, "--force"], &mail[..]].concat());
    assert_eq!(handed["released"]["pid"].to_string(), pid, "{handed}");

    // The next session is an ordinary one in the same folder, with the handoff message and the
    // item.
    let agent = env.agent(MAX);
    assert_eq!(agent["session"], handed["successor"], "{agent}");
    assert_eq!(agent["adopted"], Value::Null, "{agent}");
    assert_eq!(agent["socket"], Value::Null, "{agent}");
    assert_eq!(agent["work_dir"], json!(desk.folder), "{agent}");
    env.wait_screen(MAX, "The north side is open.");
    assert_eq!(env.json(&["hook", "--agent", MAX])["id"], id);
    // The person's program continues in its pane and can be adopted again.
    assert!(is_alive(pid.parse().unwrap()));
    assert_eq!(desk.panes(), before);
    assert!(!desk.settings().exists(), "no hook is left");
    let left = desk.candidates();
    assert_eq!(left[0]["pid"].to_string(), pid, "{left:?}");
    let known = sessions::list_sessions(env, &["--agent", MAX]);
    assert_eq!(known[1]["id"], adopted["session"], "{known:?}");
    assert_eq!(known[1]["outcome"], "handoff", "{known:?}");
    assert_eq!(known[1]["child_id"], known[0]["id"], "{known:?}");
    assert_eq!(env.json(&["sync"])["changes"], json!([]));
}

#[test]
fn adopted_agent_hands_over_to_a_session_of_the_towns() {
    let env = TestEnv::with_crew(&["max"]);
    check_handoff(&env, &env.socket());
}

#[test]
fn adopted_agent_on_another_server_hands_over_to_a_session_of_the_towns() {
    let env = TestEnv::with_crew(&["max"]);
    check_handoff(&env, &env.path("other"));
}

#[test]
fn handoff_killed_before_it_forgets_an_adopted_agent_has_released_it() {
    let env = TestEnv::with_crew(&["max"]);
    // Only the note tells on which server it is.
    let desk = Desk::open(&env, &env.path("other"));
    let pid = desk.start_program("")["pid"].to_string();
    env.json(&["adopt", &pid, "--agent", MAX]);
    env.kill_at_fault(
        &["handoff", MAX, "--force", "-m", "go on"],
        "handoff.given_back",
    );
    let format = "#{session_name} #{@gt_agent}#{@gt_adopted}";
    let containers = desk.tmux(&["list-sessions", "-F", format]);
    assert_eq!(containers.trim_end(), "desk");
    // The program runs and belongs to the person, and the agent can be started.
    assert!(is_alive(pid.parse().unwrap()));
    env.gt(&["start", MAX]).ok();
    assert_eq!(env.running(), [MAX]);
    assert!(!desk.settings().exists(), "no hook is left");
}

#[test]
fn handoff_of_an_orphan_is_refused_with_a_hint() {
    let env = TestEnv::with_town();
    let new = Tmux::new("new-session").args(["-d", "-s", "agent_helper"]);
    env.tmux(new.args(["--", GT, "demo-agent"]));
    env.wait_screen("agent/helper", "? for shortcuts");
    assert_snapshot!(env.snapshot(&["handoff", "agent/helper", "--force"]), @"
    exit code: 4
    --- stderr
    error: agent/helper is known only by the name of its tmux session; gt did not start it
    hint: `gt adopt agent_helper` makes it an agent of the town
    ");
    assert_eq!(env.running(), ["agent/helper"]);
}

//! `gt agent`: agents without a rig.

use crate::env::TestEnv;
use std::fs;

#[test]
fn standalone_agents_come_and_go() {
    let env = TestEnv::with_town();
    let dir = env.path("project");
    fs::create_dir(&dir).unwrap();
    env.gt(&[
        "agent",
        "new",
        "helper",
        "--dir",
        "project",
        "--prompt",
        "Read the README.",
    ])
    .ok();
    env.gt(&["agent", "new", "helper"]).fails(4);
    env.gt(&["agent", "new", "bad name"]).fails(2);
    env.gt(&["agent", "start", "nobody"]).fails(3);
    env.gt(&["agent", "start", "helper"]).ok();
    let agent = env.agent("agent/helper");
    assert_eq!(agent["container"], "agent_helper");
    assert_eq!(agent["work_dir"], dir.to_str().unwrap());
    env.wait_screen("agent/helper", "Read the README.");
    env.gt(&["agent", "reset", "helper"]).ok();
    assert_ne!(env.agent("agent/helper")["session"], agent["session"]);
    env.gt(&["agent", "rm", "helper"]).ok();
    assert_eq!(env.sessions(), Vec::<String>::new());
    assert!(dir.is_dir() && !env.town().join("agents/helper").exists());
}

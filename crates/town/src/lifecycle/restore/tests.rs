//! Restores in a town of tests, with a real tmux.

use super::*;
use crate::lifecycle::save;
use crate::terminal::peek;
use crate::testing::TestTown;
use gt_tmux::Command;

#[test]
fn agents_come_back_after_their_server_was_killed() {
    let stage = TestTown::new();
    let agents = ["one", "two"].map(|name| stage.agent(name));
    let lost = agents.clone().map(|agent| stage.start(&agent).session);
    stage.type_line(&agents[0], "remember me");
    stage.await_line(&agents[0], "said: remember me");
    save::save(&stage.town, false).unwrap().unwrap();
    stage
        .tmux
        .server()
        .run(Command::new("kill-server"))
        .unwrap();

    let source = find(&stage.town, None, &[]).unwrap();
    let (intents, warnings) = plan(&stage.town, &source, &[]).unwrap();
    assert_eq!(warnings, Vec::<String>::new());
    assert_eq!(intents.len(), 2);
    begin(&stage.town, &intents).unwrap();
    for intent in &intents {
        restore(&stage.town, intent, &[]).unwrap();
    }
    for (agent, lost) in agents.iter().zip(lost) {
        let records = stage.sessions(agent);
        assert_eq!(records[0].parent_id, Some(lost.to_string()));
        assert!(stage.container(agent).is_some());
    }
    let screen = peek::peek(&stage.town, &agents[0], Some(50), false).unwrap();
    let back = screen
        .lines
        .iter()
        .position(|line| line == "said: remember me");
    assert!(back.is_some(), "{:?}", screen.lines);
}

#[test]
fn running_agents_are_left_as_they_are() {
    let stage = TestTown::new();
    let agent = stage.agent("one");
    let started = stage.start(&agent);
    save::save(&stage.town, false).unwrap().unwrap();
    let source = find(&stage.town, None, &[]).unwrap();
    let (intents, _) = plan(&stage.town, &source, &[]).unwrap();
    assert_eq!(intents[0].verdict, RestoreDecision::Runs);
    assert_eq!(
        stage.container(&agent).unwrap().session_id(),
        Some(started.session)
    );
}

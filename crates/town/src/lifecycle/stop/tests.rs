//! Stops in a town of tests, with a real tmux.

use super::*;
use crate::testing::TestTown;
use gt_core::record::SessionStatus;

#[test]
fn stop_removes_the_container_and_records_the_end() {
    let stage = TestTown::new();
    let agent = stage.agent("one");
    stage.start(&agent);
    stop_one(&stage.town, &agent, StopOptions::default()).unwrap();
    assert!(stage.container(&agent).is_none());
    let record = &stage.sessions(&agent)[0];
    assert_eq!(record.status, Some(SessionStatus::Stopped));
    assert_eq!(record.outcome, Some(Outcome::Stopped));
}

#[test]
fn stop_of_an_agent_that_does_not_run_is_refused() {
    let stage = TestTown::new();
    let agent = stage.agent("one");
    let results = stop_all(&stage.town, &[agent], StopOptions::default());
    let error = results[0].1.as_ref().unwrap_err();
    assert!(matches!(error, StopError::NotRunning(_)), "{error:?}");
}

#[test]
fn many_agents_are_stopped_together() {
    let stage = TestTown::new();
    let agents = ["one", "two", "three"].map(|name| stage.agent(name));
    for agent in &agents {
        stage.start(agent);
    }
    let results = stop_all(&stage.town, &agents, StopOptions::default());
    assert!(
        results.iter().all(|(_, result)| result.is_ok()),
        "{results:?}"
    );
    assert!(agents.iter().all(|agent| stage.container(agent).is_none()));
}

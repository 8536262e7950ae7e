//! Texts for agents of a town of tests.

use super::*;
use crate::testing::TestTown;

#[test]
fn work_on_the_hook_is_in_the_text() {
    let stage = TestTown::new().with_rig();
    let agent = stage.agent("one");
    let item = stage.item("Paint the door");
    Work::of(&stage.town).hook(&agent.address(), &item).unwrap();
    let primed = gather(&stage.town, &agent, PrimeSource::Startup).unwrap();
    assert_eq!(primed.hooked.unwrap().item.id, item);
    assert!(primed.composed.text.contains("Paint the door"));
}

#[test]
fn agent_without_work_is_told_so_and_nothing_is_given_to_it() {
    let stage = TestTown::new().with_rig();
    let agent = stage.agent("one");
    stage.item("Paint the door");
    let primed = gather(&stage.town, &agent, PrimeSource::Startup).unwrap();
    assert!(primed.hooked.is_none());
    assert_eq!(Work::of(&stage.town).hooks().unwrap(), []);
}

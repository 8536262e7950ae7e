//! Work given to agents in a town of tests, with real tmux and git.

use super::*;
use crate::testing::TestTown;

#[test]
fn item_slung_at_a_rig_gets_a_polecat_with_a_branch() {
    let stage = TestTown::new().with_rig();
    let item = stage.item("Paint the door");
    let to = SlingTarget::Rig("lab".to_owned());
    let slung = sling(&stage.town, &item, &to, &SlingOptions::default()).unwrap();
    assert!(slung.started);
    assert_eq!(slung.agent.role(), Role::Polecat);
    assert_eq!(
        slung.branch,
        Some(format!("polecat/{}/{item}", slung.agent.short_name()))
    );
    let hooked = Work::of(&stage.town)
        .hooked(&slung.agent.address())
        .unwrap();
    assert_eq!(hooked.unwrap().item.id, item);
    assert!(stage.container(&slung.agent).is_some());
    assert!(slung.work_dir.join("README.md").exists());
}

#[test]
fn second_sling_of_an_item_is_refused() {
    let stage = TestTown::new().with_rig();
    let item = stage.item("Paint the door");
    let to = SlingTarget::Rig("lab".to_owned());
    let options = SlingOptions {
        no_start: true,
        ..SlingOptions::default()
    };
    let first = sling(&stage.town, &item, &to, &options).unwrap();
    let other = SlingTarget::Agent(stage.agent("one"));
    assert!(sling(&stage.town, &item, &other, &options).is_err());
    let holder = Work::of(&stage.town).holder(&item).unwrap();
    assert_eq!(holder, Some(first.agent.address()));
}

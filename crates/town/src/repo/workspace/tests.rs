//! Worktrees in a town of tests, with the real git.

use super::*;
use crate::catalog::roles;
use crate::testing::TestTown;

fn worktree(stage: &TestTown, agent: &Identity) -> PathBuf {
    let role = roles::resolve(&stage.town, agent.role(), agent.rig());
    let dir = path(&stage.town, agent, &role.unwrap().value).unwrap();
    let warnings = ensure(&stage.town, agent, &dir).unwrap();
    assert_eq!(warnings, Vec::<String>::new());
    dir
}

#[test]
fn worktree_of_a_crew_worker_is_on_its_branch() {
    let stage = TestTown::new().with_rig();
    let agent = Identity::crew("lab", "max");
    let dir = worktree(&stage, &agent);
    assert_eq!(
        std::fs::read_to_string(dir.join("README.md")).unwrap(),
        "lab\n"
    );
    assert_eq!(
        current_branch(&stage.town, &dir).as_deref(),
        Some("crew/max")
    );
    assert!(unsaved(&stage.town, &agent, &dir).unwrap().is_nothing());
}

#[test]
fn removal_without_force_refuses_unsaved_work() {
    let stage = TestTown::new().with_rig();
    let agent = Identity::crew("lab", "max");
    let dir = worktree(&stage, &agent);
    let commit = stage.commit(&dir, "new", "new\n");
    std::fs::write(dir.join("README.md"), "changed\n").unwrap();
    let refused = remove(&stage.town, &agent, &dir, false);
    assert!(
        matches!(refused, Err(RemovalError::Unsaved(_))),
        "{refused:?}"
    );
    assert!(dir.join("new").exists());

    let removed = remove(&stage.town, &agent, &dir, true).unwrap();
    assert!(!dir.exists());
    let repository = rig::repository(&stage.town, "lab");
    let refs = stage.git(
        &repository,
        &["for-each-ref", "--format=%(objectname)", "refs/gt"],
    );
    assert!(!removed.saved.is_empty());
    assert!(
        refs.contains(&commit)
            || stage
                .git(&repository, &["log", "--all", "--format=%H"])
                .contains(&commit)
    );
}

#[test]
fn worktree_whose_links_are_broken_is_repaired() {
    let stage = TestTown::new().with_rig();
    let agent = Identity::crew("lab", "max");
    let dir = worktree(&stage, &agent);
    let commit = stage.commit(&dir, "new", "new\n");
    std::fs::write(dir.join(".git"), "gitdir: /nowhere\n").unwrap();
    assert!(!is_usable(&stage.town, &dir));
    worktree(&stage, &agent);
    assert_eq!(stage.git(&dir, &["rev-parse", "HEAD"]), commit);
}

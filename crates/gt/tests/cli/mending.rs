//! The merge queue where things go wrong around it: nothing is stuck, and nothing of others
//! is lost.

use crate::merging::{commit, files, item, repository, with_bare_remote, worktree};

#[test]
fn a_branch_that_is_not_the_workers_own_stays() {
    let (env, bare) = with_bare_remote(&["max"]);
    let clone = env.path("clone");
    let names = [bare.to_str().unwrap(), clone.to_str().unwrap()];
    env.git(env.home(), &[&["clone", "--quiet"], &names[..]].concat());
    env.git(&clone, &["switch", "--quiet", "-c", "feature-x"]);
    let tip = commit(&env, &clone, "a.txt", "a\n");
    env.git(&clone, &["push", "--quiet", "origin", "feature-x"]);
    // Somebody works on it, hands it in as it is, and goes away.
    let dir = worktree(&env, "max");
    env.git(&dir, &["fetch", "--quiet", "origin"]);
    let switch = ["switch", "--quiet", "-c", "feature-x", &tip];
    env.git(&dir, &switch);
    let id = item(&env, &["Of the user"]);
    env.gt(&["hook", &id, "--agent", "gastown/max"]).ok();
    env.gt(&["done", "--agent", "gastown/max"]).ok();
    env.git(&dir, &["switch", "--quiet", "--detach"]);
    env.gt(&["mq", "run"]).ok();
    assert_eq!(files(&env, &bare, "main"), ["README.md", "a.txt"]);
    for dir in [&bare, &repository(&env)] {
        let there = env.git(dir, &["branch", "--list", "feature-x"]);
        assert_eq!(there.trim(), "feature-x", "{}", dir.display());
    }
}

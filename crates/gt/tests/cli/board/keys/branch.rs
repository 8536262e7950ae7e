//! `u`, `M`, `f`, `P` and `m`: operations on a branch.

use super::*;
use std::process::Stdio;

#[test]
fn a_branch_is_updated_shown_offered_and_merged() {
    let (mut env, id, dir) = running();
    let bin = program(
        &env,
        "bin/gh",
        "#!/bin/sh\necho \"$*\" >> \"$HOME/gh-words\"\n\
         case $2 in list) echo '[]';; create) echo https://example.com/pull/2;; esac\n",
    );
    let path = std::env::var("PATH").unwrap();
    let bin = bin.parent().unwrap();
    env.set("PATH", &format!("{}:{path}", bin.display()));
    let own = commit(&env, &dir, "README.md", "ours\n");
    let theirs = commit_to_base(&env, "README.md", "theirs\n");
    let board = Terminal::open(&env, 150, 45);
    board.wait_text("↑1");
    // Abort a merge with conflicts.
    board.act("u");
    board.wait_text("Conflicts detected");
    board.wait_text("1 conflict");
    let container = format!("{id}-az");
    let merging = env.git(&dir, &["rev-parse", "MERGE_HEAD"]);
    assert_eq!(merging.trim(), theirs);
    assert!(window_names(&env, &container).contains(&"merge".to_owned()));
    board.act("M");
    board.wait_text(&format!("Abort the merge of {id}?"));
    board.press(&["y"]);
    board.until("its window to be closed", || {
        window_names(&env, &container) == ["task"]
    });
    board.wait("no conflict", |screen| !screen.contains("1 conflict"));
    assert_eq!(head(&env, &dir), own);
    assert_eq!(env.git(&dir, &["status", "--porcelain"]), "");
    let merging = env.git(&dir, &["rev-parse", "--git-path", "MERGE_HEAD"]);
    assert!(!dir.join(merging.trim()).exists(), "{merging}");
    // Merge after the conflicting commit is gone.
    env.git(&dir, &["reset", "--quiet", "--hard", "HEAD~"]);
    let own = commit(&env, &dir, "mine.txt", "a line of mine\n");
    board.act("u");
    board.until("the base in the branch", || {
        let parents = env.git(&dir, &["log", "-1", "--format=%P"]);
        parents.trim() == format!("{own} {theirs}")
    });
    let text = fs::read_to_string(dir.join("README.md")).unwrap();
    assert_eq!(text, "theirs\n");
    board.wait_text(&format!("{id}: merged"));
    board.act("f");
    board.wait_text("[3 Diff]");
    board.wait_text("+a line of mine");
    board.press(&["q"]);
    board.wait_text("Needs you");
    // Open a pull request, then merge into the base.
    board.act("P");
    board.wait_text("https://example.com/pull/2");
    let words = fs::read_to_string(env.path("gh-words")).unwrap();
    let create = words.lines().nth(1).unwrap();
    let expected = format!("pr create --head={id} --base=main --title=Fix it --body-file=-");
    assert_eq!(create, expected);
    let source = env.path("source-gastown");
    let pushed = env.git(&source, &["rev-parse", &id]);
    assert_eq!(pushed.trim(), head(&env, &dir));
    board.act("m");
    wait_card(&env, &id, "merged", |card| card["status"] == "closed");
    let merged = head(&env, &dir);
    board.until("the base to have it", || {
        let mut ask = env.command("git");
        ask.args(["merge-base", "--is-ancestor", &merged, "gt/merged/main"]);
        ask.current_dir(&source).stderr(Stdio::null());
        ask.status().unwrap().success()
    });
    board.wait_text("Done 1");
    assert_eq!(env.agent(&format!("task/{id}"))["health"], "healthy");
}

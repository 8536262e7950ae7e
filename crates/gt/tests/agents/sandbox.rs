//! The real programs in a sandbox: a message, a commit, a call of `gt`, the end, and the
//! conversation resumed.

use crate::each;
use crate::stage::{Stage, TIMEOUT};
use gt_tmux::testing::wait_until_or;
use serde_json::Value;

const WORK: &str = concat!(
    "echo x > file && git add file && ",
    "git -c user.name=max -c user.email=max@localhost commit -qm 'Add file'; ",
    env!("CARGO_BIN_EXE_gt"),
    " mail send human -s done -m text; ",
    "cat ~/.ssh/id > stolen; echo x > ~/escaped; true",
);

#[test]
#[ignore = "needs the real programs: make test-agents"]
fn program_works_and_resumes_in_a_sandbox() {
    each("sandbox", |stage| works_and_resumes(stage, "workspace"));
}

#[test]
#[ignore = "needs the real programs: make test-agents"]
fn program_works_and_resumes_in_a_strict_sandbox() {
    each("strict sandbox", |stage| {
        let role = format!("[sandbox]\nhosts = [\"{}\"]\n", stage.model_address());
        stage.write("gt/roles/crew.toml", &role);
        works_and_resumes(stage, "strict");
    });
}

fn works_and_resumes(stage: &Stage, level: &str) {
    stage.write(".ssh/id", "secret");
    let tool = stage.program().shell_call(WORK);
    stage.answer_where("the work in the sandbox", &tool);
    stage.start(&["--no-prompt", "--sandbox", level]);
    stage.nudge("do the work in the sandbox");
    let worktree = stage.path("gt/gastown/crew/max");
    let is_done = || {
        let log = stage.git(&worktree, &["log", "--format=%s", "-1"]);
        let mail = stage.ok(&["mail", "inbox", "human"]);
        (log.trim() == "Add file" && mail.contains("gastown/crew/max")).then_some(())
    };
    wait_until_or("the commit and the mail", TIMEOUT, is_done, || {
        stage.screen()
    });
    stage.ok(&["wait", "gastown/max", "--timeout", "60"]);
    let stolen = std::fs::read_to_string(worktree.join("stolen")).unwrap_or_default();
    assert_eq!(stolen, "", "the key is hidden");
    assert!(!stage.path("escaped").exists(), "the home is read-only");
    stage.ok(&["stop", "gastown/max"]);
    resumes(stage, level);
}

/// Starts the program again in its conversation, which is in its own folder.
fn resumes(stage: &Stage, level: &str) {
    let all: Value = serde_json::from_str(&stage.ok(&["sessions", "list", "--json"])).unwrap();
    let Some(id) = all[0]["harness_session_id"].as_str() else {
        // Not every program tells its conversation without hooks.
        return;
    };
    let before = stage.requests().len();
    stage.start(&["--no-prompt", "--sandbox", level, "--resume", id]);
    stage.nudge("one more question");
    let is_answered = || (stage.requests().len() > before).then_some(());
    wait_until_or("the conversation goes on", TIMEOUT, is_answered, || {
        stage.screen()
    });
    stage.ok(&["wait", "gastown/max", "--timeout", "60"]);
    stage.ok(&["stop", "gastown/max"]);
}

//! Hooks and MCP servers in a repository's own settings run only after a person has approved them.

use crate::each;
use crate::stage::{Stage, TIMEOUT};
use gt_tmux::testing::wait_until;

/// Writes settings into the worktree whose hook and server leave a file each.
fn plant(stage: &Stage) {
    let touch = |name: &str| format!("touch {}", stage.path(name).display());
    let hook = touch("hooked");
    stage.write(
        "gt/gastown/crew/max/.claude/settings.json",
        &format!(
            r#"{{"hooks": {{"SessionStart": [{{"hooks": [{{"type": "command", "command": "{hook}"}}]}}]}}}}"#
        ),
    );
    let server = touch("served");
    stage.write(
        "gt/gastown/crew/max/.mcp.json",
        &format!(
            r#"{{"mcpServers": {{"planted": {{"command": "sh", "args": ["-c", "{server}; cat"]}}}}}}"#
        ),
    );
}

#[test]
#[ignore = "needs the real programs: make test-agents"]
fn planted_hooks_and_servers_wait_for_an_approval() {
    each("planted settings", |stage| {
        if stage.program().harness != "claude" {
            return;
        }
        plant(stage);
        let names = stage.program().env.iter();
        let names = names.flat_map(|(name, _)| ["--env", *name]);
        let args = ["crew", "start", "max", "--no-prompt"].into_iter();
        let args: Vec<&str> = args.chain(names).collect();
        let started = stage.gt(&args);
        let warned = String::from_utf8_lossy(&started.stderr).into_owned();
        assert!(started.status.success(), "{warned}");
        assert!(
            warned.contains("without the settings of the repository"),
            "{warned}"
        );
        // A whole turn, so that everything that belongs to a start has run.
        stage.nudge("hello");
        stage.ok(&["wait", "gastown/max", "--timeout", "60"]);
        assert!(!stage.path("hooked").exists());
        assert!(!stage.path("served").exists());
        stage.ok(&["crew", "stop", "max"]);
        let dir = stage.path("gt/gastown/crew/max");
        let dir = dir.to_str().unwrap();
        stage.ok(&["project", "allow", "gastown", "--worktree", dir]);
        stage.ok(&args);
        wait_until("the approved hook runs", TIMEOUT, || {
            stage.path("hooked").exists().then_some(())
        });
    });
}

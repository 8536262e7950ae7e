//! `gt harness`: presets of agent programs.

use crate::env::TestEnv;
use insta::assert_snapshot;
use std::fs;

#[test]
fn classify_reads_a_captured_screen() {
    let env = TestEnv::empty();
    let screen = "● Bash(touch x)\n\n Do you want to proceed?\n ❯ 1. Yes\n   2. No\n\n Esc to cancel · Tab to amend\n";
    fs::write(env.path("screen"), screen).unwrap();
    let told = env.json(&["harness", "classify", "claude", "screen"]);
    assert_eq!(told["state"], "waiting", "{told}");
    assert_eq!(told["dialog"]["options"], serde_json::json!(["Yes", "No"]));
    assert_eq!(told["dialog"]["marked"], 0);
    env.gt(&["harness", "classify", "nothing", "screen"])
        .fails(3);
    env.gt(&["harness", "classify", "claude", "missing"])
        .fails(3);
}

#[test]
fn harnesses_are_listed_with_what_is_installed() {
    let env = TestEnv::with_town();
    fs::write(
        env.town().join("harnesses/mine.toml"),
        "title = 'Mine'\n[command]\nprogram = 'sh'\n",
    )
    .unwrap();
    let listed = env.json(&["harness", "list"]);
    let find = |name: &str| {
        let found = listed
            .as_array()
            .unwrap()
            .iter()
            .find(|row| row["harness"] == name);
        found
            .unwrap_or_else(|| panic!("{name} in {listed}"))
            .clone()
    };
    for name in [
        "claude",
        "codex",
        "opencode",
        "gemini",
        "cursor-agent",
        "amp",
        "copilot",
        "pi",
        "goose",
        "aider",
    ] {
        assert!(find(name)["install"].is_string(), "{name}");
    }
    assert_eq!(find("demo")["installed"], true);
    assert_eq!(find("demo")["default"], true);
    assert_eq!(find("mine")["installed"], true);
    env.gt(&["harness", "show", "nope"]).fails(3);
}

#[test]
fn unknown_hook_installer_is_an_error() {
    let env = TestEnv::with_crew(&["max"]);
    let preset = env.town().join("harnesses/demo.toml");
    fs::write(&preset, "[hooks]\ninstaller = 'clade'\n").unwrap();
    assert_snapshot!(env.snapshot(&["crew", "start", "max"]), @r#"
    exit code: 2
    --- stderr
    error: the harness demo names the hook installer "clade", which does not exist
    hint: `installer` under [hooks] is one of claude, codex, gemini, opencode, or empty for no hooks
    "#);
    assert!(env.running().is_empty());
    // An empty installer disables the hooks.
    fs::write(&preset, "[hooks]\ninstaller = ''\n").unwrap();
    env.gt(&["crew", "start", "max"]).ok();
}

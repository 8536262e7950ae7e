//! `gt completions` and the manual pages.

use crate::attach::{press, terminal, wait_shown};
use crate::env::{TestEnv, run};
use crate::external_programs;
use gt_tmux::testing::TestServer;
use std::fs;
use std::time::{Duration, Instant};

/// Completes the last word as bash does. Returns the candidates.
pub(crate) fn completed(env: &TestEnv, words: &[&str]) -> Vec<String> {
    let mut command = env.gt_command(&[&["--", "gt"], words].concat());
    command
        .env("GT_COMPLETE", "bash")
        .env("_CLAP_COMPLETE_INDEX", words.len().to_string())
        .env("_CLAP_IFS", "\n");
    let answer = run(&mut command).ok();
    answer
        .stdout
        .lines()
        .map(|line| line.trim().to_owned())
        .collect()
}

#[test]
fn names_are_completed() {
    let env = TestEnv::with_crew(&["max", "amy"]);
    let item = env.create_item("One");
    let check = |words: &[&str], expected: &[&str]| {
        assert_eq!(completed(&env, words), expected, "{words:?}");
    };
    check(&["peek", "gastown/crew/m"], &["gastown/crew/max"]);
    check(&["peek", "ma"], &["mayor", "max"]);
    check(
        &["hook", "--agent", "gastown/crew/a"],
        &["gastown/crew/amy"],
    );
    check(&["work", "show", "gt-"], &[&item]);
    check(
        &["sling", "gas"],
        &[
            "gastown",
            "gastown/witness",
            "gastown/refinery",
            "gastown/crew/amy",
            "gastown/crew/max",
        ],
    );
    check(&["rig", "park", "g"], &["gastown"]);
    check(&["agents", "--rig", "g"], &["gastown"]);
    check(&["crew", "start", "max", "--harness", "cod"], &["codex"]);
    check(&["harness", "show", "gem"], &["gemini"]);
    check(&["role", "show", "may"], &["mayor"]);
    check(&["mail", "se"], &["send", "search"]);
    assert_eq!(
        completed(&env, &["inter"]),
        ["interrupt"],
        "no hidden commands"
    );
    // Aliases, where no command fits.
    check(&["who"], &["whoami"]);
    assert!(!completed(&env, &["s"]).contains(&"show".to_owned()));
    check(&["show", "gt-"], &[&item]);
    check(&["crew", "at"], &["at", "attach"]);
    check(&["crew", "at", "gastown/crew/m"], &["gastown/crew/max"]);
    check(&["mayor", "attach", "ma"], &[]);
    env.gt(&["start", "mayor"]).ok();
    let session = env.agent("mayor")["session"].as_str().unwrap().to_owned();
    check(&["sessions", "show", &session[..8]], &[&session]);
    // Outside a town there are commands, and no names.
    let outside = TestEnv::empty();
    assert_eq!(completed(&outside, &["peek", "ma"]), Vec::<String>::new());
    assert_eq!(completed(&outside, &["pee"]), ["peek"]);
}

/// Types beginnings of names in a real shell, presses Tab, and waits for the names.
fn complete_in(shell: &str, start: &str) {
    if !external_programs::are_there("completion in a real shell", &[shell]) {
        return;
    }
    let env = TestEnv::with_crew(&["max", "amy"]);
    let item = env.create_item("One");
    let script = env.gt(&["completions", shell]).ok().stdout;
    fs::write(env.path("script"), script).unwrap();
    let folder = std::path::Path::new(env!("CARGO_BIN_EXE_gt")).parent();
    let path = format!("export PATH='{}':\"$PATH\"", folder.unwrap().display());
    let outer = TestServer::new();
    terminal(&env, &outer, &format!("cd; {path}; {start}"));
    wait_shown(&outer, "ready>");
    for (typed, expected) in [
        ("gt peek gastown/crew/m", "gt peek gastown/crew/max"),
        (
            "gt hook --agent gastown/crew/a",
            "gt hook --agent gastown/crew/amy",
        ),
        ("gt rig park gas", "gt rig park gastown"),
        ("gt harness show gem", "gt harness show gemini"),
        ("gt work show gt-", &format!("gt work show {item}")),
        ("gt interru", "gt interrupt"),
    ] {
        press(&outer, &["C-u", typed, "Tab"]);
        wait_shown(&outer, expected);
    }
}

#[test]
fn names_are_completed_in_bash() {
    complete_in(
        "bash",
        "echo '. ~/script; PS1=\"ready> \"' > rc; bash --noprofile --rcfile rc -i",
    );
}

#[test]
fn names_are_completed_in_zsh() {
    // A file on the path of functions, as a package installs it.
    let rc = "fpath=(~/functions $fpath); autoload -Uz compinit; compinit -u; PS1='ready> '";
    complete_in(
        "zsh",
        &format!(
            "mkdir functions; cp script functions/_gt; echo \"{}\" > .zshrc; zsh -d -i",
            rc.replace('$', "\\$")
        ),
    );
}

#[test]
fn names_are_completed_in_fish() {
    complete_in(
        "fish",
        "fish --no-config -i -C '. ~/script; function fish_prompt; echo \"ready> \"; end'",
    );
}

#[test]
fn completion_is_quick_with_500_agents() {
    let env = TestEnv::with_rig();
    for number in 0..500 {
        fs::create_dir_all(env.town().join(format!("gastown/crew/w{number:03}"))).unwrap();
    }
    let all = completed(&env, &["peek", "gastown/crew/"]);
    assert_eq!(all.len(), 500);
    let fastest = |run: &dyn Fn()| {
        let times = (0..5).map(|_| {
            let began = Instant::now();
            run();
            began.elapsed()
        });
        times.min().unwrap()
    };
    let version = fastest(&|| drop(env.gt(&["--version"]).ok()));
    let best = fastest(&|| drop(completed(&env, &["peek", "gastown/crew/"])));
    // The ratio depends less on the machine. It is 6 in a debug build.
    assert!(best < version * 20, "{best:?}, --version: {version:?}");
    let limit = Duration::from_millis(30);
    assert!(cfg!(debug_assertions) || best < limit, "{best:?}");
}

#[test]
fn completions_and_manual_pages_come_from_the_same_source() {
    let env = TestEnv::empty();
    for shell in ["bash", "zsh", "fish"] {
        let script = env.gt(&["completions", shell]).ok().stdout;
        assert!(script.contains("GT_COMPLETE"), "{shell}: {script}");
    }
    let script = env.gt(&["completions", "elvish"]).ok().stdout;
    assert!(script.contains("status-line"), "{script}");
    env.gt(&["man", "man1"]).ok();
    assert!(env.path("man1/gt-crew-start.1").exists());
    let help = env.gt(&["--help"]).ok().stdout;
    assert!(help.contains("Usage: gt"), "{help}");
    assert_eq!(env.gt(&["help"]).ok().stdout, help);
    let of_one = env.gt(&["help", "mail", "send"]).ok().stdout;
    assert_eq!(of_one, env.gt(&["mail", "send", "--help"]).ok().stdout);
    env.gt(&["help", "nosuch"]).fails(2);
}

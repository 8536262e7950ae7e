//! `gt init`, and how commands find the town.

use crate::env::TestEnv;
use crate::terminal::CommandTerminal;
use insta::assert_snapshot;
use std::fs;
use std::os::unix::fs::PermissionsExt;

#[test]
fn a_town_is_made_once_and_private() {
    let env = TestEnv::empty();
    let answer = env.gt(&["init", "--harness", "demo"]).ok();
    assert!(answer.stdout.contains("Made the town"), "{}", answer.stdout);
    for folder in ["", ".runtime", "mayor", "deacon/dogs/boot"] {
        let mode = fs::metadata(env.town().join(folder))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o700, "{folder}");
    }
    assert_snapshot!(env.snapshot(&["init"]), @"
    exit code: 4
    --- stderr
    error: ~/gt is a town already
    hint: `gt status` shows it
    ");
}

#[test]
fn a_town_is_found_from_flag_variable_folder_and_home() {
    let mut env = TestEnv::with_town();
    let here = env.town().canonicalize().unwrap();
    let found = |answer: serde_json::Value| answer["town"].as_str().unwrap().to_owned();
    assert_eq!(found(env.json(&["status"])), here.to_str().unwrap(), "~/gt");
    let other = env.path("other");
    env.gt(&["init", other.to_str().unwrap(), "--harness", "demo"])
        .ok();
    let inside = other.join("mayor");
    let by_folder = env.gt_in(&inside, &["status", "--json"]).ok().json();
    assert_eq!(found(by_folder), other.to_str().unwrap());
    assert_eq!(
        found(env.json(&["--town", "other", "status"])),
        other.to_str().unwrap()
    );
    env.set("GT_ROOT", other.to_str().unwrap());
    assert_eq!(found(env.json(&["status"])), other.to_str().unwrap());
    env.set("GT_ROOT", "/nowhere");
    assert_snapshot!(env.snapshot(&["status"]), @"
    exit code: 3
    --- stderr
    error: GT_ROOT says /nowhere, which is not a town
    hint: `gt init /nowhere` makes one there
    ");
}

#[test]
fn a_new_file_has_every_setting_as_a_comment() {
    let env = TestEnv::empty();
    env.gt(&["init", "--harness", "demo", "--socket", "gt"])
        .ok();
    let text = fs::read_to_string(env.town().join("town.toml")).unwrap();
    let begin: Vec<&str> = text.lines().take(20).collect();
    assert_snapshot!(begin.join("\n"), @r#"
    # The settings of a town of gt. A line such as `#key = value` is a setting that is not set: it
    # shows the default, or an example if there is no default value. To set it, remove the #, or run
    # `gt config set KEY VALUE`. `gt config list` shows the values in effect.

    # The town's name, for people.
    name = "gt"

    # The agent program of every role that names none. Default: claude.
    harness = "demo"

    # Desktop notifications, by notify-send on Linux and osascript on macOS.
    #notify.desktop = false

    # Ring the terminals of all attached clients. Default: only an open board rings.
    #notify.bell = true

    # A shell line that is run for each event, with the facts in variables. Default: none.
    #notify.command = "ntfy publish mine \"$GT_NOTIFY_AGENT\""

    # The events to report.
    "#);
    let end: Vec<&str> = text.lines().skip_while(|line| *line != "[tmux]").collect();
    assert_snapshot!(end.join("\n"), @r#"
    [tmux]
    # The tmux server of the agents: a socket name, as for `tmux -L`, or an absolute path. Empty means
    # your default tmux server.
    socket = "gt"

    # Lines of scrollback of a new container. Default: what the tmux server has.
    #history_limit = 10000

    [limits]
    # Maximum number of agents that are started at the same time.
    parallel_starts = 8

    # Minutes without output after which a busy agent counts as hung.
    hung_after_minutes = 30

    # Maximum number of polecats that work at the same time in the town.
    #polecats = 50

    # Maximum number of polecats that work at the same time in each rig.
    #polecats_per_rig = 25

    # Reaction of an agent to a usage limit: it waits, or moves to another account. Values: wait,
    # switch.
    #at_limit = "wait"
    "#);
    for row in env.json(&["config", "list"]).as_array().unwrap() {
        let key = row["key"].as_str().unwrap();
        let key = key.strip_prefix("tmux.").unwrap_or(key);
        let key = key.strip_prefix("limits.").unwrap_or(key);
        let is_there = |line: &str| {
            line.trim_start_matches('#')
                .starts_with(&format!("{key} = "))
        };
        assert!(text.lines().any(is_there), "{key}");
    }
}

/// Limits the PATH to the tools that `gt` needs and these programs, which do nothing.
fn with_programs(env: &mut TestEnv, names: &[&str]) {
    let bin = env.path("bin");
    fs::create_dir(&bin).unwrap();
    let path = std::env::var("PATH").unwrap();
    for tool in ["sh", "sleep", "tmux", "git"] {
        let mut found = std::env::split_paths(&path).map(|dir| dir.join(tool));
        let found = found.find(|path| path.is_file()).unwrap();
        std::os::unix::fs::symlink(found, bin.join(tool)).unwrap();
    }
    // With a sandbox that works there is no warning.
    for name in names.iter().chain(&["bwrap"]) {
        fs::write(bin.join(name), "#!/bin/sh\n").unwrap();
        let executable = fs::Permissions::from_mode(0o755);
        fs::set_permissions(bin.join(name), executable).unwrap();
    }
    env.set("PATH", bin.to_str().unwrap());
}

#[test]
fn a_person_at_a_terminal_is_asked() {
    let mut env = TestEnv::empty();
    with_programs(&mut env, &["codex", "gemini"]);
    let terminal = CommandTerminal::run(&env, (100, 40), &["init"]);
    terminal.wait("Number or name [1]:");
    terminal.answer("gemnii");
    terminal.wait("Please answer 1 to 3");
    terminal.answer("gemini");
    terminal.wait("Desktop notifications");
    terminal.answer("y");
    terminal.wait("In which tmux server");
    terminal.answer("");
    let screen = terminal.wait_end(0);
    assert_snapshot!(env.masked(screen.trim_end()), @"
    Making the town ~/gt. Enter accepts the default, Ctrl-C makes nothing.

    Which program do your agents run? These are installed:
      1) codex  Codex, ~/bin/codex
      2) gemini  Gemini CLI, ~/bin/gemini
      3) demo  a part of gt, to try it without a model
    Number or name [1]: gemnii
    Please answer 1 to 3, or a name.
    Number or name [1]: gemini

    Desktop notifications when an agent waits, is done or has died? [y/N] y

    In which tmux server do the agents run?
      1) own  a server of its own, `tmux -L gt`
      2) default  your default server, beside your own sessions
    Number or name [1]:

    Made the town ~/gt.
    Next: `gt rig add PATH-OR-URL` adds a repository, `gt up` starts the town's own agents.
    `gt config list` shows all settings, `gt config set` changes one.
    `gt notify test` sends a test notification.
    exit code: 0
    ");
    let value = |key: &str| env.gt(&["config", "get", key]).ok().stdout;
    assert_eq!(value("harness"), "gemini\n");
    assert_eq!(value("notify.desktop"), "true\n");
    let text = fs::read_to_string(env.town().join("town.toml")).unwrap();
    assert!(text.contains("\nsocket = \"gt\"\n"), "{text}");
}

#[test]
fn enter_accepts_the_defaults() {
    let mut env = TestEnv::empty();
    with_programs(&mut env, &[]);
    let terminal = CommandTerminal::run(&env, (60, 40), &["init"]);
    for question in [
        "Number or name [1]:",
        "Desktop notifications",
        "In which tmux server",
    ] {
        terminal.wait(question);
        terminal.answer("");
    }
    let screen = terminal.wait_end(0);
    // Where the first sentence breaks depends on the length of the home folder.
    let screen = env.masked(screen.trim_end());
    let (first, rest) = screen.split_once("\n\n").unwrap();
    let first: Vec<&str> = first.split_whitespace().collect();
    let screen = format!("{}\n\n{rest}", first.join(" "));
    assert_snapshot!(screen, @"
    Making the town ~/gt. Enter accepts the default, Ctrl-C makes nothing.

    Which program do your agents run? None was found on the
    PATH.
      1) claude  Claude Code, not installed: npm install -g
                 @anthropic-ai/claude-code
      2) demo  a part of gt, to try it without a model
    Number or name [1]:

    Desktop notifications when an agent waits, is done or
    has died? [y/N]

    In which tmux server do the agents run?
      1) own  a server of its own, `tmux -L gt`
      2) default  your default server, beside your own sessions
    Number or name [1]:

    Made the town ~/gt.
    Next: `gt rig add PATH-OR-URL` adds a repository, `gt up` st
    arts the town's own agents.
    `gt config list` shows all settings, `gt config set` changes
    one.
    exit code: 0
    ");
    let value = |key: &str| env.gt(&["config", "get", key]).ok().stdout;
    assert_eq!(value("harness"), "claude\n");
    assert_eq!(value("notify.desktop"), "false\n");
}

#[test]
fn ctrl_c_makes_nothing() {
    let mut env = TestEnv::empty();
    with_programs(&mut env, &["codex"]);
    let terminal = CommandTerminal::run(&env, (100, 40), &["init"]);
    terminal.wait("Number or name [1]:");
    terminal.answer("1");
    terminal.wait("Desktop notifications");
    terminal.press("C-c");
    terminal.wait("exit code: 130\n");
    assert!(!env.town().exists());
}

#[test]
fn options_and_yes_ask_nothing() {
    for args in [&["--yes"][..], &["--harness", "demo"], &["--socket", "x"]] {
        let env = TestEnv::empty();
        let args = [&["init"], args].concat();
        let terminal = CommandTerminal::run(&env, (100, 40), &args);
        let screen = terminal.wait_end(0);
        assert!(screen.starts_with("Made the town"), "{screen}");
    }
    let env = TestEnv::with_town();
    let terminal = CommandTerminal::run(&env, (100, 40), &["init"]);
    let screen = terminal.wait_end(4);
    assert!(screen.contains("is a town already"), "{screen}");
}

use super::town_with;
use crate::env::{TestEnv, run};
use insta::assert_snapshot;
use std::fs;
use unicode_width::UnicodeWidthStr;

const NOTIFY: &str = "name = 'x'\n\n[notify]\ndesktop = true\non = ['waiting', 'died']\n";

/// Lists settings on a terminal of this width.
fn listed(env: &TestEnv, columns: usize, args: &[&str]) -> String {
    let mut command = env.gt_command(&[&["config", "list"], args].concat());
    let text = run(command.env("COLUMNS", columns.to_string())).ok().stdout;
    let widest = text.lines().map(UnicodeWidthStr::width).max().unwrap();
    assert!(widest <= columns, "{widest} columns:\n{text}");
    text
}

#[test]
fn the_table_fits_60_columns() {
    let env = town_with(NOTIFY);
    assert_snapshot!(listed(&env, 60, &["notify"]), @r#"
    KEY                 VALUE                ORIGIN
    notify.desktop      true                 town.toml:4
        Desktop notifications, by notify-send on Linux and
        osascript on macOS. Default: false.
    notify.bell         –                    default
        Ring the terminals of all attached clients. Default:
        only an open board rings.
    notify.command      –                    default
        A shell line that is run for each event, with the facts
        in variables. Default: none.
    notify.on           ["waiting", "died"]  town.toml:5
        The events to report. Default: ["waiting", "done",
        "died", "escalation", "budget", "landed"].
    notify.quiet_hours  –                    default
        A part of the day without notifications, in local time.
        Default: none.
    "#);
    listed(&env, 60, &[]);
}

#[test]
fn the_table_fits_80_columns() {
    let env = town_with(NOTIFY);
    assert_snapshot!(listed(&env, 80, &["notify"]), @r#"
    KEY                 VALUE                ORIGIN
    notify.desktop      true                 town.toml:4
        Desktop notifications, by notify-send on Linux and osascript on macOS.
        Default: false.
    notify.bell         –                    default
        Ring the terminals of all attached clients. Default: only an open board
        rings.
    notify.command      –                    default
        A shell line that is run for each event, with the facts in variables.
        Default: none.
    notify.on           ["waiting", "died"]  town.toml:5
        The events to report. Default: ["waiting", "done", "died", "escalation",
        "budget", "landed"].
    notify.quiet_hours  –                    default
        A part of the day without notifications, in local time. Default: none.
    "#);
    listed(&env, 80, &[]);
}

#[test]
fn the_table_fits_140_columns() {
    let env = town_with(NOTIFY);
    assert_snapshot!(listed(&env, 140, &["notify"]), @r#"
    KEY                 VALUE                ORIGIN       DEFAULT                                 MEANING
    notify.desktop      true                 town.toml:4  false                                   Desktop notifications, by notify-send on Linux
                                                                                                  and osascript on macOS.
    notify.bell         –                    default      only an open board rings                Ring the terminals of all attached clients.
    notify.command      –                    default      none                                    A shell line that is run for each event, with
                                                                                                  the facts in variables.
    notify.on           ["waiting", "died"]  town.toml:5  ["waiting", "done", "died",             The events to report.
                                                          "escalation", "budget", "landed"]
    notify.quiet_hours  –                    default      none                                    A part of the day without notifications, in
                                                                                                  local time.
    "#);
    listed(&env, 140, &[]);
}

#[test]
fn every_scope_is_listed_and_only_changes_with_changed() {
    let env = TestEnv::with_rig();
    fs::write(
        env.town().join("town.toml"),
        "name = 'x'\nharness = 'demo'\n[save]\nkeep = 20\n[merge]\nconfirm = false\n\
         [rigs.gastown.merge]\nbatch = 3\n",
    )
    .unwrap();
    fs::write(
        env.town().join("roles/crew.toml"),
        "[session]\nmodel = 'opus'\n",
    )
    .unwrap();
    fs::create_dir_all(env.town().join("gastown/roles")).unwrap();
    fs::write(
        env.town().join("gastown/roles/crew.toml"),
        "[session]\nmodel = 'haiku'\n[env]\nTOKEN = { file = '/nowhere/token' }\n",
    )
    .unwrap();
    fs::write(env.town().join("harnesses/claude.toml"), "model = 'opus'\n").unwrap();
    fs::write(
        env.path("source-gastown/.gt.toml"),
        "[init]\ncommands = ['true']\n",
    )
    .unwrap();
    let all = ["config", "list", "--scope", "all", "--changed"];
    assert_snapshot!(env.snapshot(&all), @r#"
    exit code: 0
    --- stdout
    Town
    KEY  VALUE  ORIGIN  DEFAULT  MEANING
    name  "x"  town.toml:1  ""  The town's name, for people.
    harness  "demo"  town.toml:2  claude  The agent program of every role that names none.
    tmux.socket  "~/s"  $GT_TMUX_SOCKET  ""  The tmux server of the agents: a socket name, as for `tmux -L`, or an absolute path. Empty means your default tmux server.
    merge.confirm  false  town.toml:6  true  `gt task merge` asks before the first merge of a rig.

    Rig gastown
    KEY  VALUE  ORIGIN  DEFAULT  MEANING
    merge.batch  3  town.toml:8  1  Maximum number of entries that are validated together.

    Role crew
    KEY  VALUE  ORIGIN  DEFAULT  MEANING
    session.model  "opus"  roles/crew.toml:2  the harness's  The model of this role's agents.

    Role gastown/crew
    KEY  VALUE  ORIGIN  DEFAULT  MEANING
    session.model  "haiku"  gastown/roles/crew.toml:2  the harness's  The model of this role's agents.
    env  { TOKEN = { file = "/nowhere/token" } }  gastown/roles/crew.toml:3  {}  Environment variables of the role's agents: texts, or references to secrets.

    Harness claude
    KEY  VALUE  ORIGIN  DEFAULT  MEANING
    model  "opus"  harnesses/claude.toml:1  the program's  The model, unless the caller, the project or the role names another.

    Project ~/source-gastown
    KEY  VALUE  ORIGIN  DEFAULT  MEANING
    init.commands  ["true"]  .gt.toml:2  []  Shell lines that run in a new container before the agent is started.
    "#);
    let every = env.json(&["config", "list", "--scope", "all"]);
    let every = every.as_array().unwrap();
    for scope in ["town", "rig", "role", "harness", "project"] {
        let count = every.iter().filter(|row| row["scope"] == scope).count();
        assert!(count >= 10, "{scope}: {count}");
        assert!(every.iter().all(|row| row["description"].is_string()));
    }
    let inherited = env.json(&[
        "config", "list", "--role", "crew", "--rig", "gastown", "session",
    ]);
    let inherited = inherited.as_array().unwrap();
    let model = inherited
        .iter()
        .find(|row| row["key"] == "session.model")
        .unwrap();
    assert_eq!(model["value"], "haiku");
    assert_eq!(model["origin"], "gastown/roles/crew.toml:2");
    assert_eq!(model["name"], "gastown/crew");
}

#[test]
fn a_town_without_changes_says_so() {
    let env = town_with("");
    assert_eq!(
        env.gt(&["config", "list", "--changed", "notify"])
            .ok()
            .stdout,
        "Nothing is changed: all settings have their defaults.\n"
    );
}

#[test]
fn a_value_that_its_parser_accepts_but_nothing_permits_is_reported() {
    let env = town_with("[patrol]\noff = ['hung-agnet']\n");
    let args = ["config", "list", "patrol.off"];
    assert_snapshot!(env.gt(&args).rendered(&env), @r#"
    exit code: 0
    --- stdout
    KEY  VALUE  ORIGIN  DEFAULT  MEANING
    patrol.off  ["hung-agnet"]  town.toml:2  []  Rules of the patrol that are disabled; `gt patrol rules` explains them.
    --- stderr
    warning: ~/gt/town.toml:2:1: patrol.off cannot have this value: "hung-agnet" is not one of the words; did you mean hung-agent or hung-start?
    "#);
}

#[test]
fn a_variable_that_overrides_a_setting_is_its_origin() {
    let mut env = town_with("harness = 'demo'\n");
    env.set("GT_HARNESS", "codex");
    let rows = env.json(&["config", "list", "harness"]);
    assert_eq!(rows[0]["value"], "codex");
    assert_eq!(rows[0]["origin"], "$GT_HARNESS");
    assert_snapshot!(env.snapshot(&["config", "set", "harness", "gemini"]), @r#"
    exit code: 0
    --- stdout
    Set harness = "gemini" in ~/gt/town.toml (was "demo").
    --- stderr
    warning: the variable GT_HARNESS overrides this setting here
    "#);
}

#[test]
fn values_are_printed_for_scripts() {
    let env = town_with("name = 'a b'\n[notify]\non = ['died', 'done']\n[krc.ttl]\nnudge = '5d'\n");
    let get = |key: &str| env.gt(&["config", "get", key]).ok().stdout;
    assert_eq!(get("name"), "a b\n");
    assert_eq!(get("notify.on"), "died\ndone\n");
    assert_eq!(get("limits.polecats"), "50\n");
    assert_eq!(get("krc.ttl.nudge"), "5d\n");
    assert_eq!(get("krc.ttl"), "{ nudge = \"5d\" }\n");
    assert_snapshot!(env.snapshot(&["config", "get", "tmux.history_limit"]), @"
    exit code: 0
    --- stderr
    tmux.history_limit is not set. Default: what the tmux server has.
    ");
    assert_snapshot!(env.snapshot(&["config", "get", "notify.desktop", "--json"]), @r#"
    exit code: 0
    --- stdout
    {
      "scope": "town",
      "key": "notify.desktop",
      "value": false,
      "origin": "default",
      "changed": false,
      "default": false,
      "default_text": "false",
      "allowed": "true or false",
      "description": "Desktop notifications, by notify-send on Linux and osascript on macOS."
    }
    "#);
}

#[test]
fn secrets_are_shown_as_references() {
    let env = TestEnv::with_town();
    let token = env.path("token");
    fs::write(&token, "sesame").unwrap();
    let reference = format!("{{ file = \"{}\" }}", token.display());
    let set = ["config", "set", "--role", "crew", "env.TOKEN", &reference];
    let answer = env.gt(&set).ok();
    let listed = env.gt(&["config", "list", "--role", "crew"]).ok();
    let got = env
        .gt(&["config", "get", "--role", "crew", "env.TOKEN"])
        .ok();
    assert_eq!(got.stdout.trim_end(), reference);
    for text in [answer.stdout, listed.stdout] {
        assert!(text.contains("file ="), "{text}");
        assert!(!text.contains("sesame"), "{text}");
    }
}

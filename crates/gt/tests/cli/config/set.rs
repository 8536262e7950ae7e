use super::{town_file, town_with};
use crate::env::TestEnv;
use insta::assert_snapshot;
use std::fs;

const TOWN: &str = "# Mine.\nname = 'x' # short\nharness = 'demo'\n\n[tmux]\nsocket = \"\"\n";

#[test]
fn a_value_is_set_and_removed_and_everything_else_stays() {
    let env = town_with(TOWN);
    assert_snapshot!(env.snapshot(&["config", "set", "tmux.history_limit", "5000"]), @"
    exit code: 0
    --- stdout
    Set tmux.history_limit = 5000 in ~/gt/town.toml.
    ");
    assert_eq!(town_file(&env), format!("{TOWN}history_limit = 5000\n"));
    assert_snapshot!(env.snapshot(&["config", "set", "tmux.history_limit", "5000"]), @"
    exit code: 0
    --- stdout
    tmux.history_limit is 5000 already.
    ");
    assert_snapshot!(env.snapshot(&["config", "set", "notify.on", "died", "waiting"]), @r#"
    exit code: 0
    --- stdout
    Set notify.on = ["died", "waiting"] in ~/gt/town.toml.
    "#);
    assert_snapshot!(env.snapshot(&["config", "unset", "tmux.history_limit"]), @"
    exit code: 0
    --- stdout
    Removed tmux.history_limit from ~/gt/town.toml (was 5000; now the default: what the tmux server has).
    ");
    assert_snapshot!(env.snapshot(&["config", "unset", "tmux.history_limit"]), @"
    exit code: 0
    --- stdout
    tmux.history_limit is not set in ~/gt/town.toml.
    ");
    assert_snapshot!(town_file(&env), @r#"
    # Mine.
    name = 'x' # short
    harness = 'demo'

    [tmux]
    socket = ""
    #history_limit = 10000

    [notify]
    on = ["died", "waiting"]
    "#);
}

#[test]
fn setting_replaces_its_comment_in_a_new_town() {
    let env = TestEnv::empty();
    env.gt(&["init", "--harness", "demo"]).ok();
    let before = town_file(&env);
    env.gt(&["config", "set", "notify.desktop", "true"]).ok();
    let line = "#notify.desktop = false\n";
    assert_eq!(
        town_file(&env),
        before.replace(line, "notify.desktop = true\n")
    );
    env.gt(&["config", "set", "limits.polecats", "3"]).ok();
    assert_eq!(
        env.gt(&["config", "get", "limits.polecats"]).ok().stdout,
        "3\n"
    );
    env.gt(&["config", "unset", "limits.polecats"]).ok();
    env.gt(&["config", "unset", "notify.desktop"]).ok();
    assert_eq!(town_file(&env), before);
}

#[test]
fn invalid_values_change_nothing_and_say_what_is_permitted() {
    let env = town_with(TOWN);
    let set = |words: &[&str]| env.snapshot(&[&["config", "set"], words].concat());
    assert_snapshot!(set(&["limits.parallel_starts", "100"]), @"
    exit code: 2
    --- stderr
    error: limits.parallel_starts cannot have this value
    caused by: 100 is not permitted
    hint: permitted: a whole number from 1 to 64
    ");
    assert_snapshot!(set(&["limits.at_limit", "swich"]), @r#"
    exit code: 2
    --- stderr
    error: limits.at_limit cannot have this value
    caused by: "swich" is not one of the words; did you mean switch?
    hint: permitted: wait, switch
    "#);
    assert_snapshot!(set(&["notify.desktop", "yes"]), @r#"
    exit code: 2
    --- stderr
    error: notify.desktop cannot have this value
    caused by: "yes" is neither true nor false
    hint: permitted: true or false
    "#);
    assert_snapshot!(set(&["notify.desktop", "true", "false"]), @"
    exit code: 2
    --- stderr
    error: notify.desktop cannot have this value
    caused by: it has one value, not 2
    hint: permitted: true or false
    ");
    assert_snapshot!(set(&["notify.on", "waiting", "dead"]), @r#"
    exit code: 2
    --- stderr
    error: notify.on cannot have this value
    caused by: "dead" is not one of the words; did you mean died?
    hint: permitted: a list, one argument each, of: waiting, done, died, escalation, budget, landed
    "#);
    assert_snapshot!(set(&["patrol.idle_after", "5"]), @r#"
    exit code: 2
    --- stderr
    error: patrol.idle_after cannot have this value
    caused by: "5" is not a duration
    hint: permitted: a duration such as [N], [N], [N], [N] or 2w
    "#);
    assert_snapshot!(set(&["harness", "cluade"]), @r#"
    exit code: 2
    --- stderr
    error: there is no harness called "cluade"
    hint: did you mean claude?
    hint: `gt harness list` shows the available ones
    "#);
    assert_eq!(town_file(&env), TOWN);
}

#[test]
fn unknown_keys_name_similar_ones() {
    let env = town_with(TOWN);
    assert_snapshot!(env.snapshot(&["config", "set", "notify.destkop", "true"]), @r#"
    exit code: 3
    --- stderr
    error: there is no setting "notify.destkop" of a town
    hint: did you mean notify.desktop?
    hint: `gt config list` shows the settings
    "#);
    assert_snapshot!(env.snapshot(&["config", "get", "socket"]), @r#"
    exit code: 3
    --- stderr
    error: there is no setting "socket" of a town
    hint: did you mean tmux.socket?
    hint: `gt config list` shows the settings
    "#);
    assert_snapshot!(env.snapshot(&["config", "get", "session.harness"]), @r#"
    exit code: 3
    --- stderr
    error: there is no setting "session.harness" of a town
    hint: it is a setting of a role (`--role NAME`)
    "#);
    assert_snapshot!(env.snapshot(&["config", "list", "notfy"]), @r#"
    exit code: 3
    --- stderr
    error: there is no setting "notfy" of a town
    hint: did you mean notify?
    hint: `gt config list` shows the settings
    "#);
}

#[test]
fn a_broken_file_is_named_with_line_and_column_and_stays() {
    let text = "name = 'x'\n[notify]\ndesktop = 'yes'\n";
    let env = town_with(text);
    for args in [
        &["config", "list"][..],
        &["config", "set", "name", "y"],
        &["config", "unset", "name"],
    ] {
        let answer = env.gt(args).fails(2);
        assert!(
            answer.stderr.contains("town.toml:3:11"),
            "{}",
            answer.stderr
        );
    }
    assert_eq!(town_file(&env), text);
}

#[test]
fn rigs_roles_harnesses_and_projects_have_their_files() {
    let env = TestEnv::with_rig();
    let read = |path: &str| fs::read_to_string(env.path(path)).unwrap();
    env.gt(&[
        "config",
        "set",
        "--rig",
        "gastown",
        "merge.validate",
        "make test",
        "make lint",
    ])
    .ok();
    env.gt(&["config", "set", "rigs.gastown.merge.batch", "4"])
        .ok();
    let rig = "[rigs.gastown.merge]\nvalidate = [\"make test\", \"make lint\"]\nbatch = 4\n";
    assert!(
        read("gt/town.toml").contains(rig),
        "{}",
        read("gt/town.toml")
    );
    env.gt(&[
        "config",
        "set",
        "--role",
        "crew",
        "session.harness",
        "codex",
    ])
    .ok();
    assert_eq!(
        read("gt/roles/crew.toml"),
        "[session]\nharness = \"codex\"\n"
    );
    let of_rig = ["config", "set", "--role", "crew", "--rig", "gastown"];
    env.gt(&[&of_rig[..], &["start.skip_permissions", "false"]].concat())
        .ok();
    let text = read("gt/gastown/roles/crew.toml");
    assert_eq!(text, "[start]\nskip_permissions = false\n");
    env.gt(&[
        "config",
        "set",
        "--harness",
        "claude",
        "command.args",
        "--",
        "--verbose",
    ])
    .ok();
    let text = read("gt/harnesses/claude.toml");
    assert_eq!(text, "[command]\nargs = [\"--verbose\"]\n");
    let source = env.path("source-gastown");
    env.gt_in(
        &source,
        &["config", "set", "--project", "init.commands", "true"],
    )
    .ok();
    assert_eq!(
        read("source-gastown/.gt.toml"),
        "[init]\ncommands = [\"true\"]\n"
    );
    let bad = [
        "config",
        "set",
        "--project",
        "worktree.path_template",
        "../x",
    ];
    let answer = env.gt_in(&source, &bad).fails(2);
    assert_snapshot!(answer.rendered(&env), @"
    exit code: 2
    --- stderr
    error: worktree.path_template cannot have this value
    caused by: the last part must hold {bead-id}, or all tasks would share a worktree
    hint: permitted: a text
    hint: ~/source-gastown/.gt.toml is unchanged
    ");
    assert_snapshot!(env.snapshot(&["config", "set", "--rig", "nowhere", "merge.batch", "2"]), @r#"
    exit code: 3
    --- stderr
    error: there is no rig called "nowhere"
    hint: the rigs of this town: gastown
    "#);
    assert_snapshot!(env.snapshot(&["config", "get", "--project", "init.commands"]), @"
    exit code: 3
    --- stderr
    error: ~ is not in a git repository
    hint: go to the project's folder, or name its rig with `--rig NAME`
    ");
    assert_snapshot!(env.snapshot(&["config", "set", "--harness", "mine", "title", "Mine"]), @r#"
    exit code: 2
    --- stderr
    error: ~/gt/harnesses/mine.toml names no program
    hint: add a line `program = "…"` under [command]
    hint: ~/gt/harnesses/mine.toml is unchanged
    "#);
    assert!(!env.town().join("harnesses/mine.toml").exists());
    env.gt(&[
        "config",
        "set",
        "--harness",
        "mine",
        "command.program",
        "my-agent",
    ])
    .ok();
    env.gt(&["config", "set", "--harness", "mine", "title", "Mine"])
        .ok();
    let text = read("gt/harnesses/mine.toml");
    assert_eq!(
        text,
        "title = \"Mine\"\n[command]\nprogram = \"my-agent\"\n"
    );
}

#[test]
fn keys_and_values_are_completed() {
    let env = TestEnv::with_rig();
    let check = |words: &[&str], expected: &[&str]| {
        let found = crate::completions::completed(&env, words);
        assert_eq!(found, expected, "{words:?}");
    };
    check(&["config", "get", "notify.d"], &["notify.desktop"]);
    check(&["config", "set", "notify.desktop", "t"], &["true"]);
    check(
        &["config", "set", "notify.on", "died", "d"],
        &["done", "died"],
    );
    check(&["config", "set", "harness", "cod"], &["codex"]);
    check(
        &["config", "set", "--role", "crew", "session.h"],
        &["session.harness"],
    );
    check(
        &["config", "set", "--role", "crew", "handoff.on_compact", "c"],
        &["cycle"],
    );
    check(
        &["config", "get", "rigs.gastown.beads"],
        &["rigs.gastown.beads", "rigs.gastown.beads_program"],
    );
    check(
        &["config", "set", "rigs.gastown.beads", "o"],
        &["on", "off"],
    );
    check(&["config", "list", "--role", "may"], &["mayor"]);
}

#[test]
fn similar_key_of_another_scope_is_named() {
    let env = TestEnv::with_rig();
    let refused = env.gt(&["config", "set", "merge.protectd", "x"]).fails(3);
    assert!(
        refused.stderr.contains("of a rig (`--rig NAME`)"),
        "{}",
        refused.stderr
    );
}

use super::{town_file, town_with};
use crate::env::TestEnv;
use crate::terminal::CommandTerminal;
use insta::assert_snapshot;
use std::fs;

const TOWN: &str = "name = 'x'\nharness = 'demo'\n";

/// Writes an editor that runs a shell script on the file `$1`.
fn with_editor(env: &mut TestEnv, script: &str) {
    let path = env.path("editor");
    fs::write(&path, format!("set -e\n{script}\n")).unwrap();
    env.set("EDITOR", &format!("sh {}", path.display()));
}

/// Returns the copies that were kept.
fn copies(env: &TestEnv) -> Vec<String> {
    let folder = fs::read_dir(env.town().join(".runtime/edits"));
    let files = folder.into_iter().flatten().flatten();
    files
        .map(|file| fs::read_to_string(file.path()).unwrap())
        .collect()
}

#[test]
fn a_valid_edit_replaces_the_file() {
    let mut env = town_with(TOWN);
    with_editor(
        &mut env,
        "echo '[save]' >> \"$1\"; echo 'keep = 3' >> \"$1\"",
    );
    assert_snapshot!(env.snapshot(&["config", "edit"]), @"
    exit code: 0
    --- stdout
    Changed ~/gt/town.toml.
    ");
    assert_eq!(town_file(&env), format!("{TOWN}[save]\nkeep = 3\n"));
    with_editor(&mut env, "true");
    assert_snapshot!(env.snapshot(&["config", "edit"]), @"
    exit code: 0
    --- stdout
    No change.
    ");
    assert_eq!(copies(&env), Vec::<String>::new());
}

#[test]
fn an_invalid_edit_is_kept_beside_the_file() {
    let mut env = town_with(TOWN);
    with_editor(
        &mut env,
        "echo '[limits]' >> \"$1\"; echo 'parallel_starts = 99' >> \"$1\"",
    );
    let answer = env.gt(&["config", "edit"]).fails(2);
    let copy = answer.stderr.split("your copy is ").nth(1).unwrap();
    let copy = copy.lines().next().unwrap();
    let stderr = answer.stderr.replace(copy, "[COPY]");
    assert_snapshot!(env.masked(&stderr), @"
    error: ~/gt/town.toml:4:1: limits.parallel_starts cannot have this value
    caused by: 99 is not permitted
    hint: permitted: a whole number from 1 to 64
    hint: your copy is [COPY]
    hint: ~/gt/town.toml is unchanged
    ");
    assert_eq!(town_file(&env), TOWN);
    assert!(
        fs::read_to_string(copy)
            .unwrap()
            .contains("parallel_starts = 99")
    );
    with_editor(&mut env, "exit 3");
    let answer = env.gt(&["config", "edit"]).fails(1);
    assert!(answer.stderr.contains("failed"), "{}", answer.stderr);
    assert_eq!(town_file(&env), TOWN);
}

#[test]
fn a_town_that_cannot_be_read_is_corrected() {
    let mut env = town_with("name = 7\n");
    env.gt(&["status"]).fails(2);
    with_editor(&mut env, "echo \"name = 'x'\" > \"$1\"");
    env.gt(&["config", "edit"]).ok();
    env.gt(&["status"]).ok();
}

#[test]
fn a_new_file_is_offered_with_all_settings() {
    let mut env = town_with(TOWN);
    let seen = env.path("seen");
    let script = format!(
        "cp \"$1\" {}; sed -i 's/^#record.enabled = false/record.enabled = true/' \"$1\"",
        seen.display()
    );
    with_editor(&mut env, &script);
    env.gt(&["config", "edit", "--role", "crew"]).ok();
    let seen = fs::read_to_string(seen).unwrap();
    let begin: String = seen.lines().take(10).collect::<Vec<_>>().join("\n");
    assert_snapshot!(begin, @r#"
    # Settings of the role crew, over the built-in ones. To change one, remove the # before it.

    # One line for `gt role list`.
    #description = "a person's own long-lived worker in a rig"

    # Name of the container. {prefix}, {rig}, {role} and {name} are filled in.
    #session.pattern = "{prefix}-crew-{name}"

    # Working directory. {town}, {rig}, {role} and {name} are filled in.
    #session.work_dir = "{town}/{rig}/crew/{name}"
    "#);
    let list = env.json(&["config", "list", "--role", "crew", "--changed"]);
    let keys = list.as_array().unwrap().iter().map(|row| &row["key"]);
    assert_eq!(keys.collect::<Vec<_>>(), ["record.enabled"]);
}

#[test]
fn a_person_at_a_terminal_edits_again() {
    let mut env = town_with(TOWN);
    // The first call writes an invalid file, the second corrects it.
    let script = "grep -q keep \"$1\" && sed -i s/none/5/ \"$1\" || printf '[save]\\nkeep = none\\n' >> \"$1\"";
    with_editor(&mut env, script);
    let terminal = CommandTerminal::run(&env, (100, 30), &["config", "edit"]);
    let screen = terminal.wait("Edit again? [Y/n]");
    assert!(screen.contains("town.toml:4:8 cannot be read"), "{screen}");
    terminal.answer("");
    terminal.wait_end(0);
    assert!(
        town_file(&env).ends_with("keep = 5\n"),
        "{}",
        town_file(&env)
    );
}

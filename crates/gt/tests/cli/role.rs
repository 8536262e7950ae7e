//! `gt role`: settings of a role and their sources.

use crate::env::TestEnv;
use insta::assert_snapshot;
use std::fs;

#[test]
fn role_shows_the_source_of_each_field() {
    let env = TestEnv::with_rig();
    fs::create_dir_all(env.town().join("gastown/roles")).unwrap();
    fs::write(
        env.town().join("roles/crew.toml"),
        "[session]\nharness = 'codex'\n[look]\nicon = 'T'\n",
    )
    .unwrap();
    fs::write(
        env.town().join("gastown/roles/crew.toml"),
        "[session]\nharness = 'demo'\n",
    )
    .unwrap();
    let field = |args: &[&str], name: &str| {
        let shown = env.json(&[&["role", "show", "crew"], args].concat());
        let field = &shown["fields"][name];
        (
            field["value"].clone(),
            field["source"].as_str().unwrap().to_owned(),
        )
    };
    let (value, source) = field(&[], "session.harness");
    assert_eq!(value, "codex");
    assert!(source.ends_with("gt/roles/crew.toml"), "{source}");
    let (value, source) = field(&["--rig", "gastown"], "session.harness");
    assert_eq!(value, "demo");
    assert!(source.ends_with("gastown/roles/crew.toml"), "{source}");
    assert_eq!(field(&["--rig", "gastown"], "look.icon").0, "T");
    assert_eq!(
        field(&[], "session.pattern"),
        ("{prefix}-crew-{name}".into(), "built-in".to_owned())
    );
    env.gt(&["role", "show", "king"]).fails(3);
    env.gt(&["role", "show", "crew", "--rig", "nowhere"])
        .fails(3);
    let listed = env.json(&["role", "list"]);
    assert_eq!(listed.as_array().unwrap().len(), 11);
}

#[test]
fn a_role_with_a_pattern_of_its_own_is_found_by_its_tag() {
    let env = TestEnv::with_crew(&["max"]);
    fs::write(
        env.town().join("roles/crew.toml"),
        "[session]\npattern = 'team-{rig}-{name}'\n",
    )
    .unwrap();
    env.gt(&["crew", "start", "max"]).ok();
    assert_eq!(env.sessions(), ["team-gastown-max"]);
    assert_eq!(env.running(), ["gastown/crew/max"]);
    env.gt(&["peek", "gastown/max"]).ok();
    env.gt(&["stop", "team-gastown-max"]).ok();
    fs::write(
        env.town().join("roles/crew.toml"),
        "[session]\npattern = '{prefix}-witness'\n",
    )
    .unwrap();
    assert_snapshot!(env.snapshot(&["crew", "start", "max"]), @"
    exit code: 4
    --- stderr
    error: gastown/crew/max would live in the container gt-witness, which reads as gastown/witness
    hint: choose a name that no other naming rule can claim
    ");
}

#[test]
fn capabilities_are_a_table() {
    let env = TestEnv::with_rig();
    assert_snapshot!(env.snapshot(&["role", "capabilities"]), @"
    exit code: 0
    --- stdout
    CAPABILITY  MAYOR  DEACON  BOOT  DOG  WITNESS  REFINERY  CREW  POLECAT  AGENT  TASK
    report  own  own  own  own  own  own  own  own  own  own
    hook  town  town  own  own  rig  own  own  own  own  own
    mail  own  own  own  own  own  own  own  own  own  own
    message  town  town  town  town  town  town  town  town  town  town
    answer  town  town  town  -  rig  -  -  -  -  -
    keys  town  town  town  -  rig  -  -  -  -  -
    create_work  town  town  town  town  town  town  town  town  town  town
    work  town  town  own  own  rig  rig  rig  own  own  own
    sling  town  town  town  -  rig  rig  rig  -  -  -
    merge  town  town  -  -  -  rig  -  -  -  -
    stop  town  town  town  own  rig  own  own  own  own  own
    remove  town  town  -  -  rig  -  -  -  -  -
    config  -  -  -  -  -  -  -  -  -  -
    ");
    env.add_settings("[rigs.gastown.capabilities.crew]\nsling = 'town'\n");
    let table = env.json(&["role", "capabilities", "--rig", "gastown"]);
    let rows = table.as_array().unwrap();
    let sling = rows
        .iter()
        .find(|row| row["capability"] == "sling")
        .unwrap();
    assert_eq!(sling["roles"]["crew"], "town");
    assert_eq!(sling["roles"]["polecat"], "none");
    let town = env.json(&["role", "capabilities"]);
    assert_ne!(town, table);
}

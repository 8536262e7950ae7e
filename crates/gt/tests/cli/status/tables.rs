//! Listings in narrow and wide terminals.

use crate::env::TestEnv;
use crate::help::at_width;
use insta::assert_snapshot;
use unicode_width::UnicodeWidthStr;

const TITLE: &str = "Write the whole of the manual, with examples for every command of the tool";

/// Makes a town with entries in all lists.
fn town() -> TestEnv {
    let env = TestEnv::with_crew(&["max"]);
    env.add_settings("[schedule]\nstart_spacing = '0s'\n");
    env.gt(&["crew", "start", "max"]).ok();
    env.gt(&["wait", "max", "--until", "idle", "--timeout", "30"])
        .ok();
    env.gt(&["nudge", "max", TITLE]).ok();
    env.gt(&["sling", &env.create_item(TITLE)]).ok();
    let toast = env.town().join("gastown/polecats/Toast");
    std::fs::write(toast.join("new"), "").unwrap();
    env.git(&toast, &["add", "."]);
    env.git(&toast, &["commit", "-qm", "Add a file"]);
    env.gt(&["schedule", "pause"]).ok();
    env.gt(&["sling", &env.create_item(TITLE)]).ok();
    env.gt(&["escalate", "--severity", "high", TITLE]).ok();
    env.gt(&["mail", "send", "max", "-s", TITLE, "-m", TITLE])
        .ok();
    env.gt(&["dnd", "on", "max"]).ok();
    env.gt(&["save"]).ok();
    env
}

/// Returns listings one below the other, without values that differ.
fn listings(env: &TestEnv, columns: usize) -> String {
    let mut shown = String::new();
    for args in [
        &["escalate", "list"][..],
        &["mail", "inbox", "--agent", "max"],
        &["mq", "list"],
        &["role", "list"],
        &["schedule", "list"],
        &["work", "list"],
    ] {
        let text = at_width(env, columns, args).ok().stdout;
        shown += &format!("$ gt {}\n{}\n", args.join(" "), env.masked(&text));
    }
    shown
}

const LISTINGS: &[&[&str]] = &[
    &["account", "list"],
    &["agents", "check"],
    &["budget"],
    &["config", "list"],
    &["costs"],
    &["costs", "--by", "agent"],
    &["crew", "list"],
    &["dnd"],
    &["dog", "list"],
    &["escalate", "list"],
    &["events"],
    &["feed"],
    &["formula", "list"],
    &["harness", "list"],
    &["harness", "show", "claude"],
    &["krc", "config"],
    &["krc", "stats"],
    &["mail", "inbox", "--all", "--agent", "max"],
    &["mq", "list", "--all"],
    &["nudge", "--list", "max"],
    &["patrol", "rules"],
    &["polecat", "list"],
    &["rig", "list"],
    &["role", "capabilities"],
    &["role", "list"],
    &["role", "show", "crew"],
    &["save", "--list"],
    &["schedule", "list"],
    &["seance"],
    &["sessions", "list"],
    &["sessions", "stats"],
    &["task", "list"],
    &["work", "list"],
    &["work", "ready"],
];

#[test]
fn listings_fit_the_width() {
    let env = town();
    let mut wide = Vec::new();
    for columns in [60, 80, 140] {
        for args in LISTINGS {
            let answer = at_width(&env, columns, args);
            if answer.code != 0 {
                wide.push(format!("{args:?}: {}", answer.stderr));
                continue;
            }
            let too_wide = answer.stdout.lines().filter(|line| line.width() > columns);
            wide.extend(too_wide.map(|line| format!("at {columns}: {args:?}: {line}")));
        }
    }
    assert!(wide.is_empty(), "{}", wide.join("\n"));
}

#[test]
fn listings_at_three_widths() {
    let env = town();
    assert_snapshot!(listings(&env, 60), @"
    $ gt escalate list
    ID  SEVERITY  STATE  AGE  AGENT  ITEM  MESSAGE
    esc-[ID]  high  open  [N]  Write the who…
    $ gt mail inbox --agent max
    ID  STATUS  PRIORITY  AGE  FROM  TO  SUBJECT
    hq-[ID]  new  normal  [N]  human  gastown/…  Write th…
    $ gt mq list
    Nothing waits to be merged.
    $ gt role list
    ROLE  CONTAINER  FOLDER  RESPAWN
    mayor  hq-mayor  {town}/mayor  yes  🎩 coordina…
    deacon  hq-deacon  {town}/deac…  yes  📯 decides…
    boot  hq-boot  {town}/deac…  yes  🥾 decides…
    overseer  hq-overseer  {town}/deac…  👑 the pers…
    dog  hq-dog-{name}  {town}/deac…  🐕 runs one…
    witness  {prefix}-wit…  {town}/{rig…  yes  🔭 decides…
    refinery  {prefix}-ref…  {town}/{rig…  yes  ⚗️ decides…
    crew  {prefix}-cre…  {town}/{rig…  yes  👷 a person…
    polecat  {prefix}-{na…  {town}/{rig…  😺 takes on…
    agent  agent_{name}  {town}/agen…  🤖 a standa…
    task  {name}-az  {town}/task…  📋 works on…
    $ gt schedule list
    Paused by [USER] [N] ago; `gt schedule resume` continues it.
    Nothing waits.
    $ gt work list
    ID  P  STATUS  TYPE  ASSIGNEE  TITLE
    gt-[ID]  2  hooked  task  gastown/polecat…  Write the whol…
    gt-[ID]  2  hooked  task  gastown/polecat…  Write the whol…
    ");
    assert_snapshot!(listings(&env, 80), @"
    $ gt escalate list
    ID  SEVERITY  STATE  AGE  AGENT  ITEM  MESSAGE
    esc-[ID]  high  open  [N]  Write the whole of the manual, wi…
    $ gt mail inbox --agent max
    ID  STATUS  PRIORITY  AGE  FROM  TO  SUBJECT
    hq-[ID]  new  normal  [N]  human  gastown/crew/max  Write the whole of th…
    $ gt mq list
    Nothing waits to be merged.
    $ gt role list
    ROLE  CONTAINER  FOLDER  RESPAWN
    mayor  hq-mayor  {town}/mayor  yes  🎩 coordinates…
    deacon  hq-deacon  {town}/deacon  yes  📯 decides abou…
    boot  hq-boot  {town}/deacon/dogs/b…  yes  🥾 decides abou…
    overseer  hq-overseer  {town}/deacon  👑 the person w…
    dog  hq-dog-{name}  {town}/deacon/dogs/{…  🐕 runs one err…
    witness  {prefix}-witness  {town}/{rig}/witness  yes  🔭 decides abou…
    refinery  {prefix}-refinery  {town}/{rig}/refiner…  yes  ⚗️ decides abou…
    crew  {prefix}-crew-{name}  {town}/{rig}/crew/{n…  yes  👷 a person's o…
    polecat  {prefix}-{name}  {town}/{rig}/polecat…  😺 takes one wo…
    agent  agent_{name}  {town}/agents/{name}…  🤖 a standalone…
    task  {name}-az  {town}/tasks/{name}  📋 works on one…
    $ gt schedule list
    Paused by [USER] [N] ago; `gt schedule resume` continues it.
    Nothing waits.
    $ gt work list
    ID  P  STATUS  TYPE  ASSIGNEE  TITLE
    gt-[ID]  2  hooked  task  gastown/polecats/Toast  Write the whole of the manua…
    gt-[ID]  2  hooked  task  gastown/polecats/Nux  Write the whole of the manua…
    ");
    assert_snapshot!(listings(&env, 140), @"
    $ gt escalate list
    ID  SEVERITY  STATE  AGE  AGENT  ITEM  MESSAGE
    esc-[ID]  high  open  [N]  Write the whole of the manual, with examples for every command of the tool
    $ gt mail inbox --agent max
    ID  STATUS  PRIORITY  AGE  FROM  TO  SUBJECT
    hq-[ID]  new  normal  [N]  human  gastown/crew/max  Write the whole of the manual, with examples for every command of the tool
    $ gt mq list
    Nothing waits to be merged.
    $ gt role list
    ROLE  CONTAINER  FOLDER  RESPAWN
    mayor  hq-mayor  {town}/mayor  yes  🎩 coordinates the whole town
    deacon  hq-deacon  {town}/deacon  yes  📯 decides about problems of the town
    boot  hq-boot  {town}/deacon/dogs/boot  yes  🥾 decides about a deacon that hangs
    overseer  hq-overseer  {town}/deacon  👑 the person who owns the town
    dog  hq-dog-{name}  {town}/deacon/dogs/{name}  🐕 runs one errand
    witness  {prefix}-witness  {town}/{rig}/witness  yes  🔭 decides about polecats of a rig that need help
    refinery  {prefix}-refinery  {town}/{rig}/refinery/rig  yes  ⚗️ decides about merges of a rig that need judgement
    crew  {prefix}-crew-{name}  {town}/{rig}/crew/{name}  yes  👷 a person's own long-lived worker in a rig
    polecat  {prefix}-{name}  {town}/{rig}/polecats/{name}  😺 takes one work item, finishes it and is free again
    agent  agent_{name}  {town}/agents/{name}/work  🤖 a standalone agent in any folder
    task  {name}-az  {town}/tasks/{name}  📋 works on one item of the board
    $ gt schedule list
    Paused by [USER] [N] ago; `gt schedule resume` continues it.
    Nothing waits.
    $ gt work list
    ID  P  STATUS  TYPE  ASSIGNEE  TITLE
    gt-[ID]  2  hooked  task  gastown/polecats/Toast  Write the whole of the manual, with examples for every command of the tool
    gt-[ID]  2  hooked  task  gastown/polecats/Nux  Write the whole of the manual, with examples for every command of the tool
    ");
}

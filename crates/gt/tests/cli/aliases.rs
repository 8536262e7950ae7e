//! Familiar commands, suggestions of similar names, and `gt sling 'Title'`.

#[path = "../../src/args/aliases/table.rs"]
mod table;

use crate::env::TestEnv;
use insta::assert_snapshot;

/// A row of the table, a line that uses it, and the line that it stands for. ITEM and MAIL are ids.
/// Lines that would change something name what does not exist: both lines fail in the same way.
const CASES: &[(&str, &str, &str)] = &[
    ("agents list", "agents list", "agents"),
    ("boot attach", "boot attach", "attach boot"),
    (
        "boot restart --agent",
        "boot restart --agent nope",
        "boot restart --harness nope",
    ),
    (
        "boot start --agent",
        "boot start --agent nope",
        "boot start --harness nope",
    ),
    ("close", "close gt-zzzzz", "work close gt-zzzzz"),
    ("crew at", "crew at max", "attach max"),
    ("crew attach", "crew attach max", "attach max"),
    ("crew remove", "crew remove nope", "crew rm nope"),
    (
        "crew restart --agent",
        "crew restart max --agent nope",
        "crew restart max --harness nope",
    ),
    (
        "crew start --agent",
        "crew start max --agent nope",
        "crew start max --harness nope",
    ),
    ("crew status", "crew status", "crew list"),
    ("crew status {}", "crew status max", "agents --stopped max"),
    ("deacon attach", "deacon attach", "attach deacon"),
    (
        "deacon restart --agent",
        "deacon restart --agent nope",
        "deacon restart --harness nope",
    ),
    (
        "deacon start --agent",
        "deacon start --agent=nope",
        "deacon start --harness=nope",
    ),
    (
        "dog run --agent",
        "dog run Errand --agent nope",
        "dog run Errand --harness nope",
    ),
    ("dog status", "dog status", "dog list"),
    ("dog status {}", "dog status nope", "agents --stopped nope"),
    ("feed", "feed --limit 3", "events --feed --limit 3"),
    (
        "handoff -c",
        "handoff -n -c max",
        "handoff --dry-run --collect max",
    ),
    ("handoff -n", "handoff -n max", "handoff --dry-run max"),
    ("handoff -w", "handoff -w nope", "handoff --watch nope"),
    ("handoff -y", "handoff -ny max", "handoff --dry-run max"),
    ("krc", "krc", "events stats"),
    ("krc config", "krc config", "events retention"),
    ("krc prune", "krc prune --dry-run", "events prune --dry-run"),
    ("krc stats", "krc stats", "events stats"),
    ("ls", "ls", "agents"),
    ("mail check", "mail check", "mail inbox --unread"),
    (
        "mail delete",
        "mail delete hq-zzzzz",
        "mail archive hq-zzzzz",
    ),
    (
        "mail inbox {}",
        "mail inbox human",
        "mail inbox --agent human",
    ),
    ("mail mark-read", "mail mark-read MAIL", "mail read MAIL"),
    ("mail thread", "mail thread MAIL", "mail read --thread MAIL"),
    ("mayor attach", "mayor attach", "attach mayor"),
    (
        "mayor restart --agent",
        "mayor restart --agent nope",
        "mayor restart --harness nope",
    ),
    (
        "mayor start --agent",
        "mayor start --agent nope",
        "mayor start --harness nope",
    ),
    ("nudge -m {}", "nudge -m Hello nope", "nudge nope Hello"),
    (
        "nudge --message {}",
        "nudge nope --message=Hello",
        "nudge nope Hello",
    ),
    ("polecat remove", "polecat remove nope", "polecat nuke nope"),
    ("polecat status", "polecat status", "polecat list"),
    (
        "polecat status {}",
        "polecat status nope",
        "polecat show nope",
    ),
    ("ps", "ps", "agents"),
    ("ready", "ready", "work ready"),
    ("refinery attach", "refinery attach", "attach refinery"),
    (
        "refinery attach {}",
        "refinery attach gastown",
        "attach gastown/refinery",
    ),
    (
        "refinery restart --agent",
        "refinery restart --agent nope",
        "refinery restart --harness nope",
    ),
    (
        "refinery start --agent",
        "refinery start --agent nope",
        "refinery start --harness nope",
    ),
    (
        "restart --agent",
        "restart max --agent nope",
        "restart max --harness nope",
    ),
    (
        "sessions find",
        "sessions find --agent max",
        "sessions list --agent max",
    ),
    ("show", "show ITEM", "work show ITEM"),
    (
        "sling --agent",
        "sling ITEM --agent nope",
        "sling ITEM --harness nope",
    ),
    (
        "start --agent",
        "start max --agent nope",
        "start max --harness nope",
    ),
    (
        "task start --agent",
        "task start ITEM --agent nope",
        "task start ITEM --harness nope",
    ),
    (
        "up --agent",
        "up --no-daemon --agent nope",
        "up --no-daemon --harness nope",
    ),
    ("whoami", "whoami", "agents --own"),
    ("witness attach", "witness attach", "attach witness"),
    (
        "witness attach {}",
        "witness attach gastown",
        "attach gastown/witness",
    ),
    (
        "witness restart --agent",
        "witness restart --agent nope",
        "witness restart --harness nope",
    ),
    (
        "witness start --agent",
        "witness start --agent nope",
        "witness start --harness nope",
    ),
];

#[test]
fn every_alias_answers_like_the_command_it_stands_for() {
    let rows: Vec<&str> = table::ALIASES.iter().map(|(typed, _)| *typed).collect();
    let cases: Vec<&str> = CASES.iter().map(|(row, ..)| *row).collect();
    assert_eq!(
        cases, rows,
        "one case for each row of args/aliases/table.rs"
    );
    let env = TestEnv::with_crew(&["max"]);
    let item = env.create_item("Fix the typo");
    let mail = env.json(&["mail", "send", "human", "-s", "Hi", "-m", "There"]);
    let mail = mail[0]["id"].as_str().unwrap().to_owned();
    let answer = |line: &str| {
        let words = line.split(' ').map(|word| match word {
            "ITEM" => item.as_str(),
            "MAIL" => mail.as_str(),
            word => word,
        });
        env.gt(&words.collect::<Vec<_>>()).rendered(&env)
    };
    // A first reading changes the state of the message.
    answer("mail read MAIL");
    for (row, typed, canonical) in CASES {
        let expected = answer(canonical);
        assert!(!expected.contains("Usage: gt"), "{canonical}: {expected}");
        assert_eq!(answer(typed), expected, "{row}: {typed}");
    }
}

#[test]
fn aliases_change_what_their_commands_change() {
    let env = TestEnv::with_crew(&["max"]);
    let item = env.create_item("Fix the typo");
    let sent = env.json(&["mail", "send", "human", "-s", "Hi", "-m", "There"]);
    let mail = sent[0]["id"].as_str().unwrap();
    env.gt(&["close", &item]).ok();
    assert_eq!(env.json(&["show", &item])["status"], "closed");
    env.gt(&["mail", "mark-read", mail]).ok();
    assert_eq!(env.json(&["mail", "check"]).as_array().unwrap().len(), 0);
    env.gt(&["mail", "delete", mail]).ok();
    assert_eq!(env.json(&["mail", "inbox"]).as_array().unwrap().len(), 0);
    let folder = env.town().join("gastown/crew/max");
    let own = env.gt_in(&folder, &["whoami", "--json"]).ok().json();
    assert_eq!(own[0]["agent"], "gastown/crew/max");
    env.gt(&["start", "max", "--agent", "demo"]).ok();
    env.gt(&["nudge", "-m", "-n", "max"]).ok();
    env.wait_screen("max", "> -n");
    // The value of an option stays, even if it looks like an alias.
    let plan = env
        .gt(&["handoff", "max", "-n", "--force", "-m", "-c"])
        .ok();
    assert!(plan.stdout.contains("-c"), "{}", plan.stdout);
    env.gt(&["stop", "max"]).ok();
    env.gt(&["crew", "remove", "max"]).ok();
}

#[test]
fn mistyped_names_get_similar_ones_and_hidden_commands_are_not_suggested() {
    let env = TestEnv::with_crew(&["max"]);
    let item = env.create_item("One");
    assert_snapshot!(env.snapshot(&["peek", "amx"]), @r#"
        exit code: 3
        --- stderr
        error: there is no agent "amx"
        hint: did you mean gastown/crew/max?
        hint: `gt agents` lists those that run, `gt agents --stopped` those that could
        hint: targets are addresses (gastown/crew/max), rig/name, roles that one agent has (witness), container names, session ids or ids of work items
        "#);
    assert_snapshot!(env.snapshot(&["peek", "gastown/mac"]), @r#"
        exit code: 3
        --- stderr
        error: the rig gastown has no crew worker or polecat called "mac"
        hint: did you mean gastown/crew/max?
        hint: `gt crew list gastown` shows them; `gt crew add gastown/mac` makes one
        "#);
    assert_snapshot!(env.snapshot(&["peek", "gastown/crew/mxa"]), @r#"
        exit code: 3
        --- stderr
        error: gastown/crew/mxa is not running
        hint: did you mean gastown/crew/max?
        hint: `gt agents` lists those that do
        "#);
    assert_snapshot!(env.snapshot(&["sling", &item, "gatsown"]), @r#"
        exit code: 3
        --- stderr
        error: there is no agent "gatsown"
        hint: `gt agents` lists those that run, `gt agents --stopped` those that could
        hint: targets are addresses (gastown/crew/max), rig/name, roles that one agent has (witness), container names, session ids or ids of work items
        hint: did you mean gastown?
        "#);
    assert_snapshot!(env.snapshot(&["role", "show", "crw"]), @r#"
        exit code: 3
        --- stderr
        error: there is no role "crw"
        hint: did you mean crew?
        hint: the roles: mayor, deacon, boot, overseer, dog, witness, refinery, crew, polecat, agent, task
        "#);
    for line in [
        "crew start mx",
        "start gastown/crew/mx",
        "crew rm mx",
        "nudge gastown/crew/mx hi",
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let refused = env.gt(&words).fails(3).stderr;
        assert!(
            refused.contains("did you mean gastown/crew/max?"),
            "{line}: {refused}"
        );
    }
    assert_snapshot!(env.snapshot(&["formula", "show", "revew"]), @r#"
        exit code: 3
        --- stderr
        error: there is no formula called "revew"
        hint: did you mean review?
        hint: `gt formula list` shows the available ones
        hint: a town adds its own in formulas/revew.toml
        "#);
    assert_snapshot!(env.snapshot(&["work", "list", "--status", "opne"]), @r#"
        exit code: 2
        --- stderr
        error: there is no status "opne"
        hint: did you mean open?
        hint: the statuses: open, hooked, in_progress, blocked, pinned, closed
        "#);
    assert_snapshot!(env.snapshot(&["agents", "--rig", "gatsown"]), @r#"
        exit code: 3
        --- stderr
        error: there is no rig called "gatsown"
        hint: did you mean gastown?
        hint: the rigs of this town: gastown
        "#);
    assert_snapshot!(env.snapshot(&["hook", "--agent", "gastown/crew/mx"]), @r"
        exit code: 3
        --- stderr
        error: there is no agent gastown/crew/mx
        hint: did you mean gastown/crew/max?
        hint: `gt agents --stopped` lists all agents
        ");
    let mut wrong = item.clone();
    let last = wrong.pop().unwrap();
    wrong.push(if last == 'z' { 'y' } else { 'z' });
    wrong.insert(3, 'x');
    let answer = env.gt(&["work", "show", &wrong]).fails(3);
    assert!(
        answer.stderr.contains(&format!("did you mean {item}?")),
        "{}",
        answer.stderr
    );
    for (typed, hidden) in [
        ("interna", "internal"),
        ("demo-agen", "demo-agent"),
        ("mann", "man"),
    ] {
        let answer = env.gt(&[typed]).fails(2);
        assert!(
            !answer.stderr.contains(&format!("'{hidden}'")),
            "{}",
            answer.stderr
        );
    }
    assert_snapshot!(env.snapshot(&["stauts"]), @"
    exit code: 2
    --- stderr
    error: unrecognized subcommand 'stauts'

      tip: some similar subcommands exist: 'status', 'start', 'status-line'

    Usage: gt [OPTIONS] [COMMAND]

    For more information, try '--help'.
    ");
    for (line, expected) in [
        (&["status", "--popp"][..], None),
        (&["agents", "--stoped"], Some("--stopped")),
        (&["work", "list", "--assigne", "max"], Some("--agent")),
        (&["mail", "snd"], Some("send")),
    ] {
        let told = env.gt(line).fails(2).stderr;
        let suggested = told
            .split("exists: '")
            .nth(1)
            .and_then(|it| it.split('\'').next());
        assert_eq!(suggested, expected, "{line:?}: {told}");
    }
}

#[test]
fn sling_of_a_title_creates_the_item() {
    let env = TestEnv::with_rig();
    let slung = env.json(&["sling", "Fix the bug", "--no-start"]);
    let id = slung["bead"].as_str().unwrap();
    let item = env.json(&["work", "show", id]);
    assert_eq!(item["title"], "Fix the bug");
    assert!(id.starts_with("gt-"), "{id}");
    assert_snapshot!(env.snapshot(&["sling", "Fix another one", "gastown", "--no-start"]), @r"
        exit code: 0
        --- stdout
        Made gt-[ID]: Fix another one
        ✓ gt-[ID] → gastown/polecats/Nux (not started, branch polecat/Nux/gt-[ID])
        ");
    // A misspelt item, agent or harness creates nothing.
    env.gt(&["sling", "Fix"]).fails(3);
    env.gt(&["sling", "Fix it", "gastown", "--harness", "claud"])
        .fails(3);
    env.add_rig("beads", "bd");
    assert_snapshot!(env.snapshot(&["sling", "Fix a third one"]), @r"
        exit code: 2
        --- stderr
        error: which rig?
        hint: name it: `gt sling 'Fix the bug' RIG`; the rigs: beads, gastown
        ");
    assert_eq!(
        env.json(&["work", "list", "--all"])
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

//! Familiar commands, suggestions of similar names, beginnings of ids, and `gt sling 'Title'`.

use crate::env::TestEnv;
use insta::assert_snapshot;

#[test]
fn familiar_commands_answer_like_the_commands_they_stand_for() {
    let env = TestEnv::with_crew(&["max"]);
    let item = env.create_item("Fix the typo");
    let mail = env.json(&["mail", "send", "human", "-s", "Hi", "-m", "There"]);
    let mail = mail[0]["id"].as_str().unwrap().to_owned();
    for (typed, canonical) in [
        (&["ls"][..], &["agents"][..]),
        (&["ps"], &["agents"]),
        (&["agents", "list"], &["agents"]),
        (&["ready"], &["work", "ready"]),
        (&["show", &item], &["work", "show", &item]),
        (&["crew", "status"], &["crew", "list"]),
        (&["crew", "status", "max"], &["agents", "--stopped", "max"]),
        (&["polecat", "status"], &["polecat", "list"]),
        (&["mail", "check"], &["mail", "inbox", "--unread"]),
        (
            &["mail", "inbox", "human"],
            &["mail", "inbox", "--agent", "human"],
        ),
        (
            &["mail", "thread", &mail],
            &["mail", "read", "--thread", &mail],
        ),
        (
            &["witness", "attach", "gastown"],
            &["attach", "gastown/witness"],
        ),
        (&["crew", "at", "max"], &["attach", "max"]),
        (&["mayor", "attach"], &["attach", "mayor"]),
        (
            &["handoff", "-n", "-c", "max"],
            &["handoff", "--dry-run", "--collect", "max"],
        ),
        (
            &["sling", "x y", "--agent", "nope"],
            &["sling", "x y", "--harness", "nope"],
        ),
    ] {
        let first = env.gt(canonical);
        let second = env.gt(typed);
        assert_eq!(first.rendered(&env), second.rendered(&env), "{typed:?}");
    }
    env.gt(&["close", &item]).ok();
    let folder = env.town().join("gastown/crew/max");
    let own = env.gt_in(&folder, &["whoami", "--json"]).ok().json();
    assert_eq!(own[0]["agent"], "gastown/crew/max");
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
    assert!(env.gt(&["stauts"]).fails(2).stderr.contains("'status'"));
}

#[test]
fn beginnings_of_ids_are_enough() {
    let env = TestEnv::with_crew(&["max"]);
    let item = env.create_item("One");
    env.gt(&["work", "create", "Part", "--parent", &item]).ok();
    let begin = &item[..6];
    let shown = env.json(&["work", "show", begin]);
    assert_eq!(shown["id"], item.as_str());
    env.gt(&["work", "update", begin, "--priority", "1"]).ok();
    env.gt(&["hook", begin, "--agent", "max"]).ok();
    env.gt(&["task", "show", begin]).ok();
    env.gt(&["unhook", begin]).ok();
    env.gt(&["work", "close", begin]).ok();
    env.gt(&["work", "reopen", begin]).ok();
    let sent = env.json(&["mail", "send", "human", "-s", "Hi", "-m", "There"]);
    let mail = sent[0]["id"].as_str().unwrap();
    env.gt(&["mail", "read", &mail[..6]]).ok();
    // All items begin with the prefix of the rig.
    env.create_item("Two");
    let mut ids: Vec<String> = Vec::new();
    while ids.len() < 60 {
        ids.push(env.create_item("More"));
        let first = &ids[ids.len() - 1][..4];
        if ids.iter().filter(|id| id.starts_with(first)).count() > 1 {
            let answer = env.gt(&["work", "show", first]).fails(2);
            assert!(
                answer.stderr.contains("could be any of"),
                "{}",
                answer.stderr
            );
            return;
        }
    }
    panic!("no two of 60 ids begin with the same character");
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
    // A misspelt item or agent creates nothing.
    env.gt(&["sling", "Fix"]).fails(3);
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

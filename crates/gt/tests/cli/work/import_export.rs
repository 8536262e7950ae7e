//! Import and export of work items.

use crate::env::TestEnv;
use crate::work::{create, id};
use insta::assert_snapshot;
use serde_json::{Value, json};
use std::fs;

/// Imports these lines.
#[track_caller]
fn import(env: &TestEnv, lines: &[String]) -> Value {
    let file = env.path("lines.jsonl");
    fs::write(&file, lines.join("\n")).unwrap();
    env.json(&["work", "import", file.to_str().unwrap()])
}

/// Returns a line in the format of beads for the item `gt-<name>`, with additional fields.
fn line(name: &str, more: Value) -> String {
    let mut value = json!({
        "id": format!("gt-{name}"), "title": name, "status": "open", "priority": 2,
        "issue_type": "task", "created_at": "2026-01-17T01:00:00Z",
        "updated_at": "2026-01-17T01:00:00Z",
    });
    for (field, other) in more.as_object().unwrap() {
        value[field] = other.clone();
    }
    value.to_string()
}

/// Returns dependencies in the format of beads.
fn on(blockers: &[&str]) -> Value {
    let edge = |name: &&str| json!({"depends_on_id": format!("gt-{name}"), "type": "blocks"});
    blockers.iter().map(edge).collect()
}

const LATER: &str = "2099-01-01T00:00:00Z";

#[track_caller]
fn shown(env: &TestEnv, item: &str) -> Value {
    env.json(&["work", "show", item])
}

#[test]
fn items_of_beads_are_taken_over() {
    let env = TestEnv::with_rig();
    let file = env.path("issues.jsonl");
    let lines = [
        r#"{"id":"gt-aaa","title":"One","description":"d","status":"open","priority":1,"issue_type":"bug","created_at":"2026-01-17T01:00:00+01:00","updated_at":"2026-01-17T01:00:00Z","labels":["x"]}"#,
        r#"{"id":"gt-aaa.1","title":"Part","status":"closed","priority":2,"issue_type":"task","created_at":"2026-01-17T01:00:00Z","updated_at":"2026-01-17T01:00:00Z","closed_at":"2026-01-18T01:00:00Z","dependencies":[{"issue_id":"gt-aaa.1","depends_on_id":"gt-aaa","type":"parent-child"}]}"#,
        r#"{"id":"gt-bbb","title":"Two","status":"in_progress","priority":2,"issue_type":"task","assignee":"x","created_at":"2026-01-17T01:00:00Z","updated_at":"2026-01-17T01:00:00Z","dependencies":[{"issue_id":"gt-bbb","depends_on_id":"gt-aaa","type":"blocks"}]}"#,
        "this is no JSON",
        r#"{"id":"gt-ccc","title":"Gone","status":"tombstone","priority":2,"issue_type":"task"}"#,
    ];
    fs::write(&file, lines.join("\n")).unwrap();
    let path = file.to_str().unwrap();
    let imported = env.json(&["work", "import", path]);
    assert_eq!(
        imported,
        json!({"new": 3, "updated": 0, "unchanged": 0, "skipped_lines": [4], "circles": []})
    );
    let again = env.json(&["work", "import", path]);
    assert_eq!(again["unchanged"], 3, "{again}");
    let two = env.json(&["work", "show", "gt-bbb"]);
    assert_eq!(two["deps"], json!(["gt-aaa"]), "{two}");
    let part = env.json(&["work", "show", "gt-aaa.1"]);
    assert_eq!(part["parent"], "gt-aaa", "{part}");
    let exported = env.gt(&["work", "export", "--jsonl"]).ok().stdout;
    assert_eq!(exported.lines().count(), 3);
    // An export can be imported elsewhere without loss.
    let other = TestEnv::with_rig();
    fs::write(other.path("all.jsonl"), &exported).unwrap();
    let there = other.json(&["work", "import", other.path("all.jsonl").to_str().unwrap()]);
    assert_eq!(there["new"], 3, "{there}");
    assert_eq!(other.gt(&["work", "export"]).ok().stdout, exported);
}

#[test]
fn import_of_older_items_changes_nothing() {
    let env = TestEnv::with_rig();
    let [a, b] = ["a", "b"].map(|title| id(&create(&env, &[title])).to_owned());
    let dep = |what: &str, item: &str, on: &str| env.gt(&["work", "dep", what, item, on]).ok();
    dep("add", &a, &b);
    let old = env.gt(&["work", "export"]).ok().stdout;
    dep("remove", &a, &b);
    dep("add", &b, &a);
    let imported = import(&env, &[old]);
    assert_eq!(imported["unchanged"], 2, "{imported}");
    assert_eq!(shown(&env, &a)["deps"], json!([]));
    assert_eq!(shown(&env, &b)["deps"], json!([a]));
}

#[test]
fn import_makes_no_dependency_cycle() {
    let env = TestEnv::with_rig();
    let both = [
        line("one", json!({"dependencies": on(&["two"])})),
        line("two", json!({"dependencies": on(&["one", "two"])})),
    ];
    let file = env.path("both.jsonl");
    fs::write(&file, both.join("\n")).unwrap();
    let answer = env.gt(&["--json", "work", "import", file.to_str().unwrap()]);
    let answer = answer.ok();
    let circle = |item: &str| json!({"item": item, "blocker": "gt-one"});
    assert_eq!(answer.json()["circles"][0], circle("gt-two"), "{answer:?}");
    let warning = "gt-two was not made to wait for gt-one";
    assert!(answer.stderr.contains(warning), "{answer:?}");
    assert_eq!(shown(&env, "gt-one")["deps"], json!(["gt-two"]));
    assert_eq!(shown(&env, "gt-two")["deps"], json!([]));
    // A dependency on an item that is not in the file.
    let own = id(&create(&env, &["own", "--dep", "gt-one"])).to_owned();
    let name = own.strip_prefix("gt-").unwrap();
    let newer = json!({"updated_at": LATER, "dependencies": on(&[name])});
    let imported = import(&env, &[line("two", newer)]);
    assert_eq!(imported["updated"], 1, "{imported}");
    assert_eq!(imported["circles"][0]["blocker"], own, "{imported}");
    assert_eq!(shown(&env, "gt-two")["deps"], json!([]));
}

#[test]
fn newer_item_gets_exactly_its_stated_dependencies() {
    let env = TestEnv::with_rig();
    let names = ["one", "two"].map(|name| line(name, json!({})));
    import(&env, &names);
    import(
        &env,
        &[line("it", json!({"dependencies": on(&["one", "two"])}))],
    );
    let newer = |more: Value| {
        let mut fields = more;
        fields["updated_at"] = LATER.into();
        import(&env, &[line("it", fields)])
    };
    // Short listings omit the dependencies, which then stay.
    let listed = import(
        &env,
        &[line(
            "it",
            json!({"updated_at": "2026-02-01T00:00:00Z", "dependency_count": 2}),
        )],
    );
    assert_eq!(listed["updated"], 1, "{listed}");
    assert_eq!(shown(&env, "gt-it")["deps"].as_array().unwrap().len(), 2);
    newer(json!({"dependencies": on(&["two"])}));
    assert_eq!(shown(&env, "gt-it")["deps"], json!(["gt-two"]));
}

#[test]
fn import_leaves_hooked_items_alone() {
    let env = TestEnv::with_crew(&["max"]);
    import(&env, &[line("it", json!({}))]);
    env.gt(&["hook", "gt-it", "--agent", "gastown/max"]).ok();
    let newer = [line("it", json!({"updated_at": LATER, "title": "Other"}))];
    for status in ["hooked", "in_progress"] {
        if status == "in_progress" {
            env.gt(&["work", "update", "gt-it", "--status", status])
                .ok();
        }
        let imported = import(&env, &newer);
        assert_eq!(imported["unchanged"], 1, "{status}: {imported}");
        let found = shown(&env, "gt-it");
        assert_eq!(
            (&found["title"], &found["status"]),
            (&json!("it"), &json!(status))
        );
    }
    env.gt(&["unhook", "gt-it"]).ok();
    assert_eq!(import(&env, &newer)["updated"], 1);
}

#[test]
fn line_without_a_time_replaces_no_item() {
    let env = TestEnv::with_rig();
    let lines = [line("it", json!({"updated_at": null}))];
    assert_eq!(import(&env, &lines)["new"], 1);
    env.gt(&["work", "close", "gt-it"]).ok();
    assert_eq!(import(&env, &lines)["unchanged"], 1);
    assert_eq!(shown(&env, "gt-it")["status"], "closed");
}

#[test]
fn an_export_is_what_beads_writes() {
    let env = TestEnv::with_rig();
    let whole = id(&create(
        &env,
        &["Whole", "-d", "All of it", "--label", "ui"],
    ))
    .to_owned();
    let part = id(&create(
        &env,
        &["Part", "--parent", &whole, "--type", "bug"],
    ))
    .to_owned();
    let last = id(&create(&env, &["Last", "--dep", &part, "--ephemeral"])).to_owned();
    env.gt(&["work", "update", &part, "--notes", "a\nb"]).ok();
    env.gt(&["work", "update", &whole, "--status", "blocked"])
        .ok();
    env.gt(&["work", "close", &last, "--reason", "no"]).ok();
    let exported = env.gt(&["work", "export"]).ok().stdout;
    let lines: Vec<Value> = exported
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let line = |id: &str| lines.iter().find(|line| line["id"] == id).unwrap();
    assert_eq!(line(&part)["issue_type"], "bug");
    for (item, on, kind) in [(&part, &whole, "parent-child"), (&last, &part, "blocks")] {
        let edge = &line(item)["dependencies"][0];
        assert_eq!(edge["issue_id"], *item, "{edge}");
        assert_eq!(edge["depends_on_id"], *on, "{edge}");
        assert_eq!(edge["type"], kind, "{edge}");
        assert!(edge["created_at"].is_string(), "{edge}");
    }
    for ours in ["type", "deps", "parent"] {
        assert!(line(&part).get(ours).is_none(), "{ours}");
    }
    // The import restores all fields.
    let other = TestEnv::with_rig();
    assert_eq!(import(&other, &[exported])["new"], 3);
    for item in [&whole, &part, &last] {
        assert_eq!(shown(&other, item), shown(&env, item));
    }
}

#[test]
fn beads_fields_beside_the_description_are_kept() {
    let env = TestEnv::with_crew(&["max"]);
    let said = json!({
        "description": "Mend it.", "design": "With glue.", "notes": "seen",
        "acceptance_criteria": "- [ ] it holds",
        "comments": [
            {"author": "amy", "text": "Which glue?", "created_at": "2026-01-17T02:00:00+01:00"},
            {"author": "max", "text": "- any\n- other", "created_at": "2026-01-17T01:30:00Z"},
        ],
    });
    let lines = [line("it", said)];
    import(&env, &lines);
    let notes = "seen\n2026-01-17T01:00:00.000Z amy: Which glue?\n\
                 2026-01-17T01:30:00.000Z max: - any\n- other";
    let found = shown(&env, "gt-it");
    assert_eq!(found["notes"], notes, "{found}");
    assert_eq!(found["acceptance_criteria"], "- [ ] it holds");
    let body = "Mend it.\n\nDesign:\nWith glue.\n\nAcceptance criteria:\n- [ ] it holds\n";
    env.gt(&["hook", "gt-it", "--agent", "gastown/max"]).ok();
    for args in [
        &["work", "show", "gt-it"][..],
        &["hook", "--agent", "gastown/max"],
        &["prime", "--agent", "gastown/max"],
    ] {
        let answer = env.gt(args).ok().stdout;
        assert!(answer.contains(body), "{args:?}: {answer}");
    }
    assert_eq!(env.json(&["work", "search", "it HOLDS"])[0]["id"], "gt-it");
    env.gt(&["unhook", "gt-it"]).ok();
    // Importing the same file or the export again is idempotent.
    import(&env, &lines);
    assert_eq!(shown(&env, "gt-it")["notes"], notes);
    let exported = env.gt(&["work", "export"]).ok().stdout;
    let mut back: Value = serde_json::from_str(&exported).unwrap();
    assert_eq!(back["design"], "With glue.");
    back["updated_at"] = LATER.into();
    back["comments"] = serde_json::from_str::<Value>(&lines[0]).unwrap()["comments"].take();
    assert_eq!(import(&env, &[back.to_string()])["updated"], 1);
    assert_eq!(shown(&env, "gt-it")["notes"], notes);
    assert_eq!(shown(&env, "gt-it")["description"], "Mend it.");
}

#[test]
fn refused_lines_are_reported_with_their_cause() {
    let env = TestEnv::with_rig();
    let file = env.path("odd.jsonl");
    let mut bytes = "\u{feff}".as_bytes().to_vec();
    bytes.extend(line("one", json!({})).as_bytes());
    for bad in ["5", "[]", r#""x""#, r#"{"id":"gt-x"}"#] {
        bytes.extend(format!("\n{bad}").as_bytes());
    }
    bytes.extend(b"\n{\"id\": \"gt-y\", \"title\": \"\xff\"}\n");
    bytes.extend(line("letter", json!({"issue_type": "message"})).as_bytes());
    fs::write(&file, bytes).unwrap();
    let answer = env.gt(&["--json", "work", "import", file.to_str().unwrap()]);
    let answer = answer.ok();
    let imported = answer.json();
    assert_eq!(imported["new"], 1, "{imported}");
    assert_eq!(imported["skipped_lines"], json!([2, 3, 4, 5, 6, 7]));
    for words in [
        "line 2 was skipped: not a work item: not a JSON object",
        "line 5 was skipped: not a work item: missing field `title`",
        "line 7 was skipped: a message is not a work item",
    ] {
        assert!(answer.stderr.contains(words), "{words}: {answer:?}");
    }
    fs::write(&file, "5\n").unwrap();
    assert_snapshot!(env.snapshot(&["work", "import", file.to_str().unwrap()]), @"
    exit code: 1
    --- stderr
    warning: line 1 was skipped: not a work item: not a JSON object
    error: no line could be taken over
    hint: each line is a JSON object with an `id` and a `title`
    ");
}

#[test]
fn invalid_types_and_labels_are_normalised() {
    let env = TestEnv::with_rig();
    let odd = json!({
        "title": "One\n## Two", "issue_type": "a bug\u{1b}", "labels": ["", "needs review"],
    });
    import(
        &env,
        &[line("it", odd), line("x", json!({"issue_type": " "}))],
    );
    let found = shown(&env, "gt-it");
    assert_eq!(
        (&found["title"], &found["type"], &found["labels"]),
        (
            &json!("One ## Two"),
            &json!("a-bug"),
            &json!(["needs-review"])
        )
    );
    assert_eq!(shown(&env, "gt-x")["type"], "task");
}

#[test]
fn a_part_gets_a_number_that_nothing_has() {
    let env = TestEnv::with_rig();
    let names = ["top", "top.1", "top.4294967295", "top.7.9"];
    import(&env, &names.map(|name| line(name, json!({}))));
    let part = create(&env, &["Part", "--parent", "gt-top"]);
    assert_eq!(id(&part), "gt-top.2");
}

#[test]
fn nothing_is_made_a_part_of_itself() {
    let env = TestEnv::with_rig();
    let part = |name: &str, of: &str| {
        let edge = json!({"depends_on_id": format!("gt-{of}"), "type": "parent-child"});
        line(name, json!({"dependencies": [edge]}))
    };
    let lines = [part("one", "two"), part("two", "one"), part("self", "self")];
    let imported = import(&env, &lines);
    assert_eq!(
        imported["circles"],
        json!([
            {"item": "gt-one", "parent": "gt-two"},
            {"item": "gt-self", "parent": "gt-self"},
        ])
    );
    assert_eq!(shown(&env, "gt-two")["parent"], "gt-one");
}

#[test]
fn held_item_is_exported_as_open() {
    let env = TestEnv::with_crew(&["max"]);
    let item = id(&create(&env, &["Begun"])).to_owned();
    env.gt(&["hook", &item, "--agent", "gastown/max"]).ok();
    env.gt(&["work", "update", &item, "--status", "in_progress"])
        .ok();
    let all = env.json(&["work", "export"]);
    assert_eq!(
        (&all[0]["id"], &all[0]["status"], &all[0]["assignee"]),
        (&json!(item), &json!("open"), &Value::Null)
    );
    // A submitted item waits only in the queue of its own town.
    let dir = env.town().join("gastown/crew/max");
    crate::mq::commit(&env, &dir, "a.txt", "a\n");
    env.gt(&["done", "--agent", "gastown/max"]).ok();
    assert_eq!(shown(&env, &item)["status"], "in_progress");
    let other = TestEnv::with_crew(&["max"]);
    import(&other, &[env.gt(&["work", "export"]).ok().stdout]);
    other.gt(&["hook", &item, "--agent", "gastown/max"]).ok();
}

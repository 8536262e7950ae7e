//! `gt work`: work items.

mod import_export;
mod protected_items;

use crate::env::TestEnv;
use insta::assert_snapshot;
use serde_json::{Value, json};
use std::fs;

pub(crate) fn create(env: &TestEnv, args: &[&str]) -> Value {
    env.json(&[&["work", "create"], args].concat())
}

pub(crate) fn id(item: &Value) -> &str {
    item["id"].as_str().unwrap()
}

pub(crate) fn ids(env: &TestEnv, args: &[&str]) -> Vec<String> {
    let items = env.json(&[&["work"], args].concat());
    let items = items.as_array().unwrap().iter();
    items.map(|item| id(item).to_owned()).collect()
}

#[test]
fn work_is_made_found_changed_and_closed() {
    let env = TestEnv::with_rig();
    let bug = create(
        &env,
        &[
            "Fix it",
            "--type",
            "bug",
            "--priority",
            "0",
            "--label",
            "ui",
            "-d",
            "All of\nit",
        ],
    );
    assert!(id(&bug).starts_with("gt-") && id(&bug).len() == 8, "{bug}");
    for (field, expected) in [
        ("status", json!("open")),
        ("type", json!("bug")),
        ("priority", json!(0)),
        ("labels", json!(["ui"])),
        ("deps", json!([])),
        ("description", json!("All of\nit")),
    ] {
        assert_eq!(bug[field], expected, "{field}: {bug}");
    }
    let part = create(&env, &["A part", "--parent", id(&bug)]);
    assert_eq!(id(&part), format!("{}.1", id(&bug)));
    let town = create(&env, &["For the town", "--rig", "hq", "--priority", "4"]);
    assert!(id(&town).starts_with("hq-"));
    assert_eq!(ids(&env, &["list"]), [id(&bug), id(&part), id(&town)]);
    assert_eq!(
        ids(&env, &["list", "--rig", "gastown", "--label", "ui"]),
        [id(&bug)]
    );
    assert_eq!(ids(&env, &["list", "--parent", id(&bug)]), [id(&part)]);
    assert_eq!(ids(&env, &["search", "a PART"]), [id(&part)]);
    assert_eq!(ids(&env, &["search", "100%"]), [""; 0]);
    let changed = env.json(&[
        "work",
        "update",
        id(&bug),
        "--title",
        "Mend it",
        "--append-notes",
        "one",
        "--remove-label",
        "ui",
    ]);
    assert_eq!(changed["title"], "Mend it");
    assert_eq!(changed["notes"], "one");
    assert_eq!(changed["labels"], json!([]));
    assert_eq!(changed["description"], bug["description"], "the rest stays");
    let closed = env.json(&["work", "close", id(&bug), "--reason", "done"]);
    assert_eq!(closed[0]["status"], "closed");
    assert_eq!(closed[0]["close_reason"], "done");
    assert_eq!(ids(&env, &["list"]).len(), 2);
    assert_eq!(ids(&env, &["list", "--all"]).len(), 3);
    assert_eq!(ids(&env, &["list", "--status", "closed"]), [id(&bug)]);
    assert_eq!(env.json(&["work", "reopen", id(&bug)])["status"], "open");
    env.gt(&["work", "reopen", id(&bug)]).fails(4);
    env.gt(&["work", "show", "gt-nosuch"]).fails(3);
    env.gt(&["work", "show", "what is this"]).fails(2);
    env.gt(&["work", "create", " "]).fails(2);
    env.gt(&["work", "create", "x", "--priority", "5"]).fails(2);
    env.gt(&["work", "create", "x", "--rig", "nowhere"])
        .fails(3);
    env.gt(&["work", "close", id(&part), "gt-nosuch"]).fails(3);
    assert_eq!(
        env.json(&["work", "show", id(&part)])["status"],
        "open",
        "all or none"
    );
    assert_snapshot!(env.snapshot(&["work", "show", id(&bug)]), @"
    exit code: 0
    --- stdout
    gt-[ID] Mend it [bug, open, P0]
    created  [TIME]
    updated  [TIME]

    All of
    it

    one
    ");
}

#[test]
fn a_search_ignores_the_case_of_every_letter() {
    let env = TestEnv::with_rig();
    let item = create(&env, &["Ünï straße", "-d", "ΟΔΟΣ"]);
    create(&env, &["Uni strasse"]);
    for text in ["ÜNÏ", "üNÏ STRA", "οδοσ"] {
        assert_eq!(ids(&env, &["search", text]), [id(&item)], "{text}");
    }
    env.gt(&["mail", "send", "human", "-s", "Größe", "-m", "x"])
        .ok();
    let found = env.json(&["mail", "search", "GRÖß"]);
    assert_eq!(found[0]["subject"], "Größe", "{found}");
}

#[test]
fn texts_may_begin_with_a_dash() {
    let env = TestEnv::with_rig();
    let item = id(&create(&env, &["x", "-d", "- one\n- two"])).to_owned();
    let changed = env.json(&[
        "work",
        "update",
        &item,
        "--title",
        "-t",
        "--notes",
        "- three",
        "--description",
        "--four",
    ]);
    for (field, text) in [
        ("title", "-t"),
        ("notes", "- three"),
        ("description", "--four"),
    ] {
        assert_eq!(changed[field], text, "{field}");
    }
    let closed = env.json(&["work", "close", &item, "--reason", "-1"]);
    assert_eq!(closed[0]["close_reason"], "-1");
    let sent = env.json(&["mail", "send", "human", "-s", "-s", "-m", "- a\n- b"]);
    let mail = id(&sent[0]);
    assert_eq!(sent[0]["subject"], "-s", "{sent}");
    let answer = env.json(&["mail", "reply", mail, "-s", "- c", "-m", "--d"]);
    assert_eq!(answer["subject"], "- c", "{answer}");
}

#[test]
fn a_part_is_in_the_rig_of_the_whole() {
    let env = TestEnv::with_rig();
    let own = id(&create(&env, &["own"])).to_owned();
    let town = id(&create(&env, &["town", "--rig", "hq"])).to_owned();
    for (parent, right, wrong) in [(&own, "gastown", "hq"), (&town, "hq", "gastown")] {
        create(&env, &["part", "--parent", parent, "--rig", right]);
        env.gt(&["work", "create", "part", "--parent", parent, "--rig", wrong])
            .fails(2);
        assert_eq!(ids(&env, &["list", "--parent", parent]).len(), 1);
    }
}

#[test]
fn blocked_item_is_not_ready() {
    let env = TestEnv::with_rig();
    let [a, b, c] = ["a", "b", "c"].map(|title| id(&create(&env, &[title])).to_owned());
    env.gt(&["work", "dep", "add", &b, &a]).ok();
    let told = env.gt(&["work", "dep", "add", &c[..7], &b[..7]]).ok();
    assert_eq!(told.stdout, format!("{c} waits for {b}.\n"));
    assert_eq!(ids(&env, &["ready"]), [a.as_str()]);
    assert_eq!(env.json(&["work", "show", &c])["blocked_by"], json!([b]));
    // Dependency cycles are refused.
    env.gt(&["work", "dep", "add", &a, &c]).fails(4);
    let itself = env.gt(&["work", "dep", "add", &a, &a]).fails(4);
    assert_snapshot!(itself.rendered(&env), @"
    exit code: 4
    --- stderr
    error: gt-[ID] cannot wait for itself
    ");
    env.gt(&["work", "close", &a]).ok();
    assert_eq!(ids(&env, &["ready"]), [b.as_str()]);
    env.gt(&["work", "dep", "remove", &c, &b]).ok();
    assert_eq!(ids(&env, &["ready"]).len(), 2);
    env.gt(&["work", "dep", "remove", &c, &b]).fails(3);
}

#[test]
fn a_store_that_cannot_be_read_is_never_shown_as_no_work() {
    let env = TestEnv::with_town();
    let item = id(&create(&env, &["There"])).to_owned();
    env.gt(&["hook", &item, "--agent", "mayor"]).ok();
    let file = env.town().join(".work/items.db");
    for suffix in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(env.town().join(format!(".work/items.db{suffix}")));
    }
    fs::write(&file, "nonsense ".repeat(1000)).unwrap();
    for args in [
        &["hook", "--agent", "mayor"][..],
        &["work", "list"],
        &["work", "ready"],
    ] {
        let answer = env.gt(args).fails(1);
        assert!(answer.stderr.contains("hint:"), "{}", answer.stderr);
        assert_eq!(answer.stdout, "");
    }
}

#[test]
fn a_store_that_is_gone_is_never_shown_as_no_work() {
    let env = TestEnv::with_crew(&["max"]);
    let item = id(&create(&env, &["There"])).to_owned();
    let agent = ["--agent", "gastown/max"];
    env.gt(&["hook", &item, agent[0], agent[1]]).ok();
    let file = env.town().join(".work/items.db");
    fs::remove_file(&file).unwrap();
    for args in [
        &["hook", agent[0], agent[1]][..],
        &["unhook", agent[0], agent[1]],
        &["prime", "--state", agent[0], agent[1]],
        &["work", "list"],
        &["work", "ready"],
        &["work", "export"],
        &["work", "create", "Another"],
        &["mail", "inbox"],
        &["mq", "list"],
        &["polecat", "list"],
    ] {
        let answer = env.gt(args).fails(1);
        assert!(answer.stderr.contains("hint:"), "{args:?}: {answer:?}");
        assert_eq!(answer.stdout, "", "{args:?}");
    }
    assert!(!file.exists(), "no other is made");
    assert_snapshot!(env.doctor_findings(&[]), @"
    exit code: 1
    ✗ work: the work items are gone: there is ~/gt/.work/items.lock, but no ~/gt/.work/items.db
      hint: `gt doctor --fix` restores the newest backup of .work/backups; without one, remove .work to begin without any work
    ");
    // Running agents are still listed.
    assert_snapshot!(env.masked(&env.gt(&["agents", "--stopped", "--json"]).ok().stderr), @"warning: hooks are not shown: the work items are gone: there is ~/gt/.work/items.lock, but no ~/gt/.work/items.db");
}

#[test]
fn agents_are_listed_with_what_is_on_their_hooks() {
    let env = TestEnv::with_crew(&["max", "joe"]);
    let item = id(&create(&env, &["There"])).to_owned();
    env.gt(&["hook", &item, "--agent", "gastown/max"]).ok();
    let agents = env.json(&["agents", "--stopped"]);
    let hook = |name: &str| {
        let mut agents = agents.as_array().unwrap().iter();
        agents.find(|agent| agent["name"] == name).unwrap()["hook"].clone()
    };
    assert_eq!((hook("max"), hook("joe")), (json!(item), Value::Null));
}

#[test]
fn command_without_effect_is_refused() {
    let env = TestEnv::with_rig();
    let item = create(&env, &["It", "--assignee", "", "-t", "bug", "--ephemeral"]);
    assert_eq!(
        (&item["assignee"], &item["type"]),
        (&Value::Null, &json!("bug"))
    );
    for (args, code) in [
        (&["work", "update", id(&item)][..], 2),
        (&["work", "list", "--priority", "9"], 2),
        (&["work", "list", "--limit", "0"], 2),
        (&["work", "list", "--parent", "gt-none"], 3),
        (&["work", "create", "\u{200b}"], 2),
    ] {
        let answer = env.gt(args).fails(code);
        assert!(code == 3 || !answer.stderr.is_empty(), "{args:?}");
    }
    let shown = env.json(&["work", "show", id(&item)]);
    assert_eq!(shown["updated_at"], item["updated_at"]);
    let text = "\ta\tb";
    env.gt(&["work", "update", id(&item), "--description", text])
        .ok();
    assert_snapshot!(env.snapshot(&["work", "show", id(&item)]), @"
    exit code: 0
    --- stdout
    gt-[ID] It [bug, open, P2]
    ephemeral  yes
    created  [TIME]
    updated  [TIME]

    	a	b
    ");
    let closed = env.json(&["work", "close", id(&item), id(&item)]);
    assert_eq!(closed.as_array().unwrap().len(), 1, "{closed}");
    assert_snapshot!(env.snapshot(&["hook", id(&item), "--agent", "mayor"]), @"
    exit code: 4
    --- stderr
    error: gt-[ID] is closed
    hint: `gt work reopen gt-[ID]` opens it again
    ");
}

#[test]
fn work_prints_items() {
    let env = TestEnv::with_rig();
    assert_snapshot!(env.snapshot(&["work", "list"]), @"
    exit code: 0
    --- stdout
    No work items match.
    ");
    assert_snapshot!(env.snapshot(&["work", "create", "Mend the roof", "-d", "All of it.", "--rig", "gastown"]), @"
    exit code: 0
    --- stdout
    Made gt-[ID]: Mend the roof
    ");
    assert_snapshot!(env.snapshot(&["work", "list"]), @"
    exit code: 0
    --- stdout
    ID  P  STATUS  TYPE  ASSIGNEE  TITLE
    gt-[ID]  2  open  task  Mend the roof
    ");
    assert_snapshot!(env.snapshot(&["work", "ready"]), @"
    exit code: 0
    --- stdout
    ID  P  STATUS  TYPE  ASSIGNEE  TITLE
    gt-[ID]  2  open  task  Mend the roof
    ");
    assert_snapshot!(env.snapshot(&["work", "show", "nope-12345"]), @"
    exit code: 3
    --- stderr
    error: there is no work item nope-12345
    hint: `gt work list` shows them
    ");
}

use super::*;
use serde_json::json;

fn read(value: Value) -> Bead {
    let time = |text: &str| Some(text.to_owned());
    Bead::read(value, "now", time)
        .expect("a bead")
        .expect("not gone")
}

fn item() -> Item {
    read(
        json!({"id": "bd-a1", "title": "T", "status": "open", "issue_type": "task",
        "priority": 2, "labels": ["x"]}),
    )
    .item
}

#[test]
fn beads_are_read_in_each_of_their_shapes() {
    let listed = read(json!({
        "id": "bd-a1", "title": "T", "status": "in_progress", "issue_type": "bug", "priority": 0,
        "assignee": "", "description": null, "labels": ["b", "a"], "dependency_count": 2,
        "created_at": "1", "updated_at": "2",
        "dependencies": [
            {"issue_id": "bd-a1", "depends_on_id": "bd-a2", "type": "blocks"},
            {"issue_id": "bd-a1", "depends_on_id": "bd-a3", "type": "related"},
            {"issue_id": "bd-a1", "depends_on_id": "bd-a", "type": "parent-child"},
            {"issue_id": "bd-a1", "depends_on_id": "external:x:y", "type": "blocks"}],
    }));
    let item = &listed.item;
    assert_eq!((item.kind.as_str(), item.priority), ("bug", 0));
    assert_eq!((&item.assignee, item.description.as_str()), (&None, ""));
    assert_eq!(item.labels, ["a", "b"]);
    assert_eq!(item.deps, ["bd-a2".parse().unwrap()]);
    assert_eq!(item.parent, Some("bd-a".parse().unwrap()));
    assert!(!listed.is_short);

    let shown = read(json!({"id": "bd-a1", "title": "T", "dependency_count": 1,
        "dependencies": [{"id": "bd-a2", "title": "U", "dependency_type": "blocks"}]}));
    assert_eq!(shown.item.deps, ["bd-a2".parse().unwrap()]);
    let short = read(json!({"id": "bd-a1", "title": "T", "dependency_count": 1}));
    assert!(short.is_short && short.item.created_at == "now");

    let gone = json!({"id": "bd-a1", "title": "T", "status": "tombstone"});
    assert_eq!(Bead::read(gone, "now", |_| None).unwrap(), None);
    for bad in [
        json!({"id": "a b", "title": "T"}),
        json!(5),
        json!([]),
        json!("x"),
    ] {
        assert!(Bead::read(bad, "now", |_| None).is_err());
    }
    let lines = read(
        json!({"id": "bd-a1", "title": "T\n## U", "issue_type": "bug\u{1b}",
        "labels": ["a\nb"]}),
    );
    assert_eq!(
        (lines.item.title.as_str(), lines.item.kind.as_str()),
        ("T ## U", "bug")
    );
    assert_eq!(lines.item.labels, ["a b"]);
    assert_eq!(lines.imported().labels, ["a-b"]);
}

#[test]
fn words_that_are_not_ours_keep_an_item_from_being_ready() {
    let bead = read(json!({"id": "bd-a1", "title": "T", "status": "deferred"}));
    assert_eq!(bead.item.status, ItemStatus::Blocked);
    assert_eq!(bead.item.labels, ["beads:deferred"]);
    assert_eq!(bead.clone().imported().status, ItemStatus::Open);
    assert!(bead.imported().labels.is_empty());
    let pinned = read(json!({"id": "bd-a1", "title": "T", "status": "open", "pinned": true}));
    assert_eq!(pinned.item.status, ItemStatus::Pinned);
    let mut elsewhere = read(json!({"id": "bd-a1", "title": "T", "status": "hooked"}));
    elsewhere.unhook();
    assert_eq!(elsewhere.item.status, ItemStatus::Open);
    assert_eq!(elsewhere.item.labels, ["beads:hooked"]);
}

#[test]
fn answers_are_found_in_their_wrappers() {
    for text in [
        r#"[{"id": "bd-1"}]"#,
        r#"{"id": "bd-1"}"#,
        r#"{"issues": [{"id": "bd-1"}], "total": 1}"#,
        r#"{"schema_version": 1, "data": [{"id": "bd-1"}]}"#,
        "Warning: old\n[{\"id\": \"bd-1\"}]\n",
    ] {
        assert_eq!(objects(text).unwrap().len(), 1, "{text}");
    }
    assert!(objects("[]").unwrap().is_empty());
    for text in ["", "nothing", "{\"error\": \"x\"}", "[{"] {
        assert!(objects(text).is_err(), "{text:?}");
    }
}

#[test]
fn error_of_beads_is_reported_in_its_own_words() {
    let br = r#"{"error": {"code": "X", "message": "Issue not found: bd-1"}}"#;
    assert_eq!(reason(br, ""), "Issue not found: bd-1");
    assert_eq!(reason("", r#"{"error": "no database"}"#), "no database");
    let half = "{\"closed\": []}\n{\"error\": {\"message\": \"skipped\"}}";
    assert_eq!(reason(half, ""), "skipped");
    assert_eq!(
        reason("", "Error: locked\n\n  by 7\n"),
        "Error: locked; by 7"
    );
}

fn check(change: impl FnOnce(&mut Item), expected: &[&[&str]]) {
    let seen = item();
    let mut now = seen.clone();
    change(&mut now);
    assert_eq!(changes(Dialect::Bd, &seen, &now), expected);
}

#[test]
fn a_difference_becomes_commands() {
    check(|_| {}, &[]);
    check(
        |item| {
            item.status = ItemStatus::Hooked;
            item.assignee = Some("gastown/polecats/Toast".into());
        },
        &[&[
            "update",
            "bd-a1",
            "--json",
            "--status=hooked",
            "--assignee=gastown/polecats/Toast",
        ]],
    );
    check(
        |item| {
            item.title = "--force".into();
            item.labels = vec!["y".into(), "beads:hooked".into()];
            item.deps = vec!["bd-a2".parse().unwrap()];
        },
        &[
            &[
                "update",
                "bd-a1",
                "--json",
                "--title=--force",
                "--add-label=y",
                "--remove-label=x",
            ],
            &["dep", "add", "bd-a1", "bd-a2", "--type=blocks", "--json"],
        ],
    );
    check(
        |item| {
            item.notes = "n".into();
            item.status = ItemStatus::Closed;
            item.close_reason = Some("merged".into());
        },
        &[
            &["update", "bd-a1", "--json", "--notes=n"],
            &["close", "bd-a1", "--reason=merged", "--force", "--json"],
        ],
    );
}

#[test]
fn a_closed_item_is_opened_before_it_is_changed() {
    let mut seen = item();
    seen.status = ItemStatus::Closed;
    seen.deps = vec!["bd-a2".parse().unwrap()];
    let now = Item {
        status: ItemStatus::InProgress,
        deps: Vec::new(),
        ..seen.clone()
    };
    let expected: [&[&str]; 3] = [
        &["reopen", "bd-a1", "--json"],
        &[
            "update",
            "bd-a1",
            "--json",
            "--force",
            "--status=in_progress",
        ],
        &["dep", "remove", "bd-a1", "bd-a2", "--json"],
    ];
    assert_eq!(changes(Dialect::Br, &seen, &now), expected);
}

#[test]
fn a_new_item_says_what_it_has() {
    let mut new = item();
    new.title = "-x --json".into();
    new.parent = Some("bd-a".parse().unwrap());
    new.ephemeral = true;
    assert_eq!(
        create(&new),
        [
            "create",
            "--json",
            "--title=-x --json",
            "--type=task",
            "--priority=2",
            "--labels=x",
            "--parent=bd-a",
            "--ephemeral"
        ]
    );
}

#[test]
fn ours_counts_only_where_beads_did_not_go_on() {
    let seen = item();
    let bead = Item {
        title: "Theirs".into(),
        ..seen.clone()
    };
    let ours = Item {
        title: "Ours".into(),
        notes: "ours".into(),
        status: ItemStatus::Closed,
        ..seen.clone()
    };
    let both = merged(&seen, &bead, &ours);
    assert_eq!(
        (both.title.as_str(), both.notes.as_str()),
        ("Theirs", "ours")
    );
    assert_eq!(both.status, ItemStatus::Closed);
    let claimed = Item {
        assignee: Some("somebody".into()),
        ..bead
    };
    assert_eq!(merged(&seen, &claimed, &ours).status, ItemStatus::Open);
}

#[test]
fn argument_that_no_program_accepts_is_refused() {
    let word = |length: usize| format!("--notes={}", "x".repeat(length));
    assert!(check_words(&[word(131_063)]).is_ok());
    let refused = |word: String| check_words(&[word]).unwrap_err().to_string();
    let text = "--notes is longer than the 128 KiB that one argument of a program can have";
    assert_eq!(refused(word(131_064)), text);
    assert_eq!(refused("--title=a\0b".into()), "--title holds a NUL byte");
}

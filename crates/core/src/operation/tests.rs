use super::*;
use serde_json::json;
use std::collections::BTreeSet;

fn operation(name: &str) -> &'static Operation {
    let found = TABLE.iter().find(|operation| operation.name == name);
    found.unwrap_or_else(|| panic!("there is no operation {name}"))
}

fn arguments(name: &str, values: Value) -> Result<Vec<String>, String> {
    let Value::Object(values) = values else {
        panic!("{values} is not an object")
    };
    let made = operation(name).arguments(&values);
    made.map_err(|problem| problem.message().to_owned())
}

#[test]
fn values_are_never_options() {
    let made = arguments(
        "agents_nudge",
        json!({"agent": "--town=/x", "message": "--stdin", "mode": "queue"}),
    );
    let expected = ["nudge", "--mode=queue", "--", "--town=/x", "--stdin"];
    assert_eq!(made.unwrap(), expected);
    let made = arguments(
        "work_create",
        json!({"title": "-x", "description": "--rig=b", "labels": ["-a", "b"]}),
    );
    let expected = [
        "work",
        "create",
        "--description=--rig=b",
        "--label=-a",
        "--label=b",
        "--",
        "-x",
    ];
    assert_eq!(made.unwrap(), expected);
}

#[test]
fn invalid_values_are_refused() {
    let check = |name: &str, values: Value, expected: &str| {
        let said = arguments(name, values).unwrap_err();
        assert!(said.contains(expected), "{said}");
    };
    let nudge = |extra: (&str, Value)| {
        let mut values = json!({"agent": "max", "message": "hello"});
        values[extra.0] = extra.1;
        values
    };
    check(
        "agents_nudge",
        nudge(("sender", json!("mayor"))),
        "not a parameter",
    );
    check("agents_nudge", nudge(("mode", json!("at-once"))), "one of");
    check(
        "agents_nudge",
        nudge(("message", json!(7))),
        "must be a text",
    );
    check("agents_nudge", nudge(("message", json!("a\u{0}b"))), "NUL");
    check("agents_nudge", nudge(("message", Value::Null)), "missing");
    check(
        "agents_answer",
        json!({"agent": "max", "choice": "1"}),
        "\"expect\" is missing",
    );
    check(
        "agents_keys",
        json!({"agent": "max", "keys": []}),
        "a list of 1",
    );
    check(
        "agents_keys",
        json!({"agent": "max", "keys": "Enter"}),
        "a list of 1",
    );
    check(
        "agents_screen",
        json!({"agent": "max", "lines": 0}),
        "whole number",
    );
    check("events_list", json!({}), "not a command");
}

#[test]
fn flags_are_given_only_if_true() {
    let stopped = |value: bool| arguments("agents_list", json!({"stopped": value})).unwrap();
    assert_eq!(stopped(true), ["agents", "--all", "--stopped"]);
    assert_eq!(stopped(false), ["agents", "--all"]);
}

#[test]
fn rows_are_consistent() {
    let mut names = BTreeSet::new();
    let mut routes = BTreeSet::new();
    for row in TABLE {
        assert!(names.insert(row.name), "{} occurs twice", row.name);
        assert!(
            routes.insert((row.method.as_str(), row.path)),
            "{}",
            row.path
        );
        let in_path = |name: &str| row.path.contains(&format!("{{{name}}}"));
        let of_path = row
            .parameters
            .iter()
            .filter(|one| one.place == ParameterPlace::Path);
        assert_eq!(
            row.path.matches('{').count(),
            of_path.clone().count(),
            "{}",
            row.name
        );
        for parameter in of_path {
            assert!(in_path(parameter.name), "{}: {}", row.name, parameter.name);
        }
        for parameter in row.parameters {
            let is_in_body = parameter.place == ParameterPlace::Body;
            assert!(!(is_in_body && row.is_read()), "{} has a body", row.name);
        }
        let is_list = matches!(row.answer, AnswerShape::List(_));
        let is_paged = row.parameters.iter().any(|one| one.name == "page");
        assert_eq!(is_list, is_paged, "{}", row.name);
        if !row.is_read() && row.action != Action::Logout {
            assert_ne!(
                row.scope,
                Some(AccessScope::Read),
                "{} changes something",
                row.name
            );
        }
        if row.scope.is_none() {
            let is_public = matches!(row.action, Action::Login | Action::PageFile);
            assert!(is_public, "{} needs a login", row.name);
        }
    }
}

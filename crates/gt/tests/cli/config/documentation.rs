//! The documentation has every setting, with its default.

use gt_core::settings::{Setting, SettingDefault, SettingKind, SettingScope};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

fn page(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(name);
    fs::read_to_string(path).unwrap()
}

/// Returns the part of a page below a heading, up to the next heading of its level.
fn section<'p>(page: &'p str, heading: &str) -> &'p str {
    let begin = page
        .find(&format!("\n{heading}\n"))
        .unwrap_or_else(|| panic!("{heading}"));
    let level = heading.split(' ').next().unwrap();
    let rest = &page[begin + 1 + heading.len()..];
    let end = rest.find(&format!("\n{level} ")).unwrap_or(rest.len());
    &rest[..end]
}

/// Returns the rows of the tables in a text: the keys of the first column, and the last column.
fn rows(text: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for line in text.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        for key in cells[0].split('`').skip(1).step_by(2) {
            let last = cells.last().unwrap().trim_end_matches('|').trim();
            assert!(
                found.insert(key.to_owned(), last.to_owned()).is_none(),
                "{key} twice"
            );
        }
    }
    found
}

/// Returns the default as the documentation has it.
fn default(row: &Setting) -> String {
    match row.default {
        SettingDefault::Value(text) => format!("`{text}`"),
        _ => row.default_text().to_owned(),
    }
}

fn settings(scope: SettingScope) -> impl Iterator<Item = &'static Setting> {
    let rows = scope.settings().iter();
    rows.filter(|row| !matches!(row.kind, SettingKind::Tables))
}

#[test]
fn town_md_has_the_settings_of_towns_and_rigs() {
    let town = settings(SettingScope::Town).map(|row| (row.key.to_owned(), default(row)));
    let rig =
        settings(SettingScope::Rig).map(|row| (format!("rigs.<rig>.{}", row.key), default(row)));
    let table: BTreeMap<String, String> = town.chain(rig).collect();
    assert_eq!(rows(section(&page("town.md"), "## `town.toml`")), table);
}

#[test]
fn town_md_has_the_settings_of_roles() {
    let page = page("town.md");
    let found: BTreeSet<String> = rows(section(&page, "## Roles")).into_keys().collect();
    let table = settings(SettingScope::Role).map(|row| match row.kind {
        SettingKind::Map(_) => format!("{}.<NAME>", row.key),
        _ => row.key.to_owned(),
    });
    assert_eq!(found, table.collect());
}

#[test]
fn projects_md_has_the_settings_of_projects() {
    let page = page("projects.md");
    let found: BTreeSet<String> = rows(&page).into_keys().collect();
    let table = settings(SettingScope::Project).map(|row| row.key.to_owned());
    assert_eq!(found, table.collect());
}

#[test]
fn harnesses_md_has_the_settings_of_harnesses() {
    let page = page("harnesses.md");
    for row in settings(SettingScope::Harness) {
        let (table, key) = row.key.rsplit_once('.').unwrap_or(("", row.key));
        let heading = match table {
            "" => "## The keys".to_owned(),
            "states.patterns" => continue,
            "seeds" | "dialogs" | "failures" => format!("### `[[{table}]]`"),
            table => format!("### `[{table}]`"),
        };
        let text = section(&page, &heading);
        let is_named = |end: &str| text.contains(&format!("`{key}{end}"));
        assert!(is_named("`") || is_named(" = "), "{}", row.key);
    }
}

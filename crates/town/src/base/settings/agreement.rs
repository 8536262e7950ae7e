//! Tests that the table of settings agrees with the parsers: fields, kinds and defaults.

use super::TownSettings;
use gt_core::harness::Preset;
use gt_core::project::Project;
use gt_core::role::RoleConfig;
use gt_core::settings::{Setting, SettingDefault, SettingKind, SettingScope};
use std::collections::BTreeSet;

/// A name that no parser knows.
const UNKNOWN: &str = "zzz_unknown";

/// Parses a text, and returns the result or the message of the error.
type Parse = fn(&str) -> Result<String, String>;

fn parse<T: serde::de::DeserializeOwned + std::fmt::Debug>(text: &str) -> Result<String, String> {
    let parsed = toml::from_str::<T>(text);
    parsed
        .map(|parsed| format!("{parsed:?}"))
        .map_err(|error| error.message().to_owned())
}

/// Every scope with its parser, and the tables in which its settings are.
const PARSERS: &[(SettingScope, Parse, &str)] = &[
    (SettingScope::Town, parse::<TownSettings>, ""),
    (SettingScope::Rig, parse::<TownSettings>, "rigs.x."),
    (SettingScope::Role, parse::<RoleConfig>, ""),
    (SettingScope::Harness, parse::<Preset>, ""),
    (SettingScope::Project, parse::<Project>, ""),
];

/// Returns the fields of the struct at a path, or `None` if there is no struct.
fn fields(parse: Parse, header: &str) -> Option<Vec<String>> {
    let error = parse(&format!("{header}\n{UNKNOWN} = 1\n")).err()?;
    let rest = error
        .split_once(&format!("unknown field `{UNKNOWN}`, expected "))?
        .1;
    let words = rest.split('`').skip(1).step_by(2);
    Some(words.map(str::to_owned).collect())
}

/// Collects the keys that a parser accepts below a path.
fn collect(parse: Parse, prefix: &str, path: &str, found: &mut BTreeSet<String>) {
    let whole = format!("{prefix}{path}");
    let whole = whole.trim_end_matches('.');
    let headers = match whole.is_empty() {
        true => [String::new(), String::new()],
        false => [format!("[{whole}]"), format!("[[{whole}]]")],
    };
    let inner = headers.iter().find_map(|header| fields(parse, header));
    if !path.is_empty() && (inner.is_none() || fields(parse, &headers[0]).is_none()) {
        found.insert(path.trim_end_matches('.').to_owned());
    }
    for field in inner.unwrap_or_default() {
        collect(parse, prefix, &format!("{path}{field}."), found);
    }
}

#[test]
fn every_field_of_the_parsers_has_a_row() {
    for (scope, parse, prefix) in PARSERS {
        let mut accepted = BTreeSet::new();
        collect(*parse, prefix, "", &mut accepted);
        match scope {
            // The settings of rigs are a scope of their own.
            SettingScope::Town => assert!(accepted.remove("rigs")),
            // A rig has no budget of the whole town.
            SettingScope::Rig => assert!(accepted.remove("budget.day")),
            _ => {}
        }
        let rows: BTreeSet<String> = scope
            .settings()
            .iter()
            .map(|row| row.key.to_owned())
            .collect();
        assert_eq!(
            rows.len(),
            scope.settings().len(),
            "{scope:?}: a key occurs twice"
        );
        assert_eq!(
            rows, accepted,
            "{scope:?}: the rows, and the fields of the parser"
        );
        assert!(rows.len() > 10, "{scope:?}");
    }
}

/// Returns a permitted value of a kind, in TOML.
fn sample(kind: SettingKind) -> String {
    match kind {
        SettingKind::Text => "'x'".to_owned(),
        SettingKind::Boolean => "true".to_owned(),
        SettingKind::Integer { min, .. } => (min + 7).to_string(),
        SettingKind::Decimal { .. } => "0.25".to_owned(),
        SettingKind::Duration => "'77m'".to_owned(),
        SettingKind::Hours => "'01:00-02:00'".to_owned(),
        SettingKind::Harness => "'codex'".to_owned(),
        SettingKind::Choice(words) | SettingKind::ChoiceOr(words, _) => format!("'{}'", words[1]),
        SettingKind::Texts => "['x']".to_owned(),
        SettingKind::Choices(words) => format!("['{}']", words[1]),
        SettingKind::Map(inner) => format!("{{ X = {} }}", sample(*inner)),
        SettingKind::Capabilities => "{ crew = { sling = 'town' } }".to_owned(),
        SettingKind::Variable => "{ file = 'x' }".to_owned(),
        SettingKind::SeedValue => "{ last = 3 }".to_owned(),
        SettingKind::Tables => "[]".to_owned(),
    }
}

/// Returns a value that the parser must reject, in TOML.
fn wrong(kind: SettingKind) -> &'static str {
    match kind {
        SettingKind::Integer { .. } | SettingKind::Decimal { .. } => "'x'",
        SettingKind::Duration | SettingKind::Hours | SettingKind::Choice(_) => "'zzz'",
        SettingKind::Choices(_) => "['zzz']",
        SettingKind::Texts => "'x'",
        _ => "7",
    }
}

/// Returns the text of a file with one setting; a path template must hold an item's id, and an
/// address must be one.
fn text(prefix: &str, row: &Setting, value: &str) -> String {
    let key = row.key;
    let value = match key {
        "worktree.path_template" if value == "'x'" => "'../{bead-id}'",
        "web.listen" if value == "'x'" => "'127.0.0.1:7420'",
        _ => value,
    };
    let input = match key.starts_with("screen.input.") && key != "screen.input.frame" {
        true => "screen.input.frame = 'bar'\n",
        false => "",
    };
    format!("{input}{prefix}{key} = {value}\n")
}

#[test]
fn kinds_and_defaults_are_those_of_the_parsers() {
    // Words of a closed set that the parser does not check.
    const UNCHECKED: &[&str] = &["look.theme", "patrol.off"];
    for (scope, parse, prefix) in PARSERS {
        for row in scope.settings().iter().filter(|row| !row.is_field(*scope)) {
            let with = |value: &str| parse(&text(prefix, row, value));
            let about = format!("{scope:?} {}", row.key);
            let other = with(&sample(row.kind)).unwrap_or_else(|why| panic!("{about}: {why}"));
            for word in row.kind.words() {
                let word = match row.kind {
                    SettingKind::Choices(_) => format!("['{word}']"),
                    SettingKind::Boolean => (*word).to_owned(),
                    _ => format!("'{word}'"),
                };
                with(&word).unwrap_or_else(|why| panic!("{about}: {why}"));
            }
            if !UNCHECKED.contains(&row.key) {
                assert!(
                    with(wrong(row.kind)).is_err(),
                    "{about} is not {:?}",
                    row.kind
                );
            }
            let base = match *prefix {
                "" => String::new(),
                rig => format!("[{}]\n", rig.trim_end_matches('.')),
            };
            let input = text("", row, "")
                .split(&format!("{} =", row.key))
                .next()
                .map(str::to_owned);
            let base = parse(&format!("{base}{}", input.unwrap_or_default())).unwrap();
            match row.default {
                SettingDefault::Value(value) => {
                    assert_eq!(with(value).unwrap(), base, "{about}: the default");
                }
                SettingDefault::Absent { .. } | SettingDefault::Town(_) => {
                    let count = |text: &str| text.matches("None").count();
                    assert!(count(&base) > count(&other), "{about} has a default value");
                }
                SettingDefault::Required => {}
            }
        }
    }
}

#[test]
fn a_new_file_has_every_setting_and_reads_as_the_defaults() {
    let text = TownSettings::template("x", "", "claude");
    let debug = |text: &str| format!("{:?}", TownSettings::parse("town.toml", text).unwrap());
    let given = "name = 'x'\nharness = 'claude'\n";
    assert_eq!(debug(&text), debug(given));
    // Uncommented one by one, every line is valid and sets a value.
    let commented: Vec<&str> = text.lines().filter(|line| is_setting(line)).collect();
    for line in &commented {
        let one = text.replacen(line, &line[1..], 1);
        let parsed = TownSettings::parse("town.toml", &one);
        assert!(parsed.is_ok(), "{line}: {parsed:?}");
    }
    let town = SettingScope::Town.settings().len() - 5;
    assert_eq!(commented.len(), town + SettingScope::Rig.settings().len());
    // And so are all of them together.
    let all: String = text
        .lines()
        .map(|line| match is_setting(line) {
            true => format!("{}\n", &line[1..]),
            false => format!("{line}\n"),
        })
        .collect();
    TownSettings::parse("town.toml", &all).unwrap();
}

/// Returns whether a line of the template is a setting that is commented out.
fn is_setting(line: &str) -> bool {
    line.starts_with('#') && !line.starts_with("# ")
}

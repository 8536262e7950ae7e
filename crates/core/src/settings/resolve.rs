//! Values in effect: reads the settings of a scope from layers of files, with their origins.

use super::{Setting, SettingDefault, SettingScope};
use crate::overlay::{broken_toml, line_of, place_of};
use crate::problem::Problem;
use toml::{Table, Value};
use toml_edit::Document;

/// Text that contains settings of one scope. Later layers override earlier ones.
#[derive(Clone, Debug)]
pub struct SettingsLayer {
    /// Name of the file for people.
    pub source: String,
    pub text: String,
    /// Tables that contain the settings of the scope: `rigs` and the rig's name, or none.
    pub prefix: Vec<String>,
    /// Whether the text is part of `gt`.
    pub is_builtin: bool,
}

/// Place that a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingOrigin {
    Default,
    /// The built-in file of a role or harness.
    BuiltIn,
    File {
        source: String,
        line: usize,
    },
    /// An environment variable.
    Variable(&'static str),
}

impl std::fmt::Display for SettingOrigin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SettingOrigin::Default => f.write_str("default"),
            SettingOrigin::BuiltIn => f.write_str("built-in"),
            SettingOrigin::File { source, line } => write!(f, "{source}:{line}"),
            SettingOrigin::Variable(name) => write!(f, "${name}"),
        }
    }
}

/// A setting with its value in effect.
#[derive(Clone, Debug)]
pub struct ResolvedSetting {
    pub setting: &'static Setting,
    /// Absent if the setting has neither a value nor a default value.
    pub value: Option<Value>,
    pub origin: SettingOrigin,
    /// The value if no file of the user and no variable set one.
    pub default: Option<Value>,
}

impl ResolvedSetting {
    /// Returns whether the value is another one than the default.
    pub fn is_changed(&self) -> bool {
        self.value != self.default
    }
}

/// Returns all settings of a scope. `town` has the resolved settings of the town, which rigs
/// inherit; `var` returns environment variables.
pub fn resolve<'v>(
    scope: SettingScope,
    layers: &[SettingsLayer],
    town: &[ResolvedSetting],
    var: impl Fn(&str) -> Option<&'v str>,
) -> Result<Vec<ResolvedSetting>, Problem> {
    let parsed: Vec<ParsedLayer<'_>> = layers
        .iter()
        .map(ParsedLayer::parse)
        .collect::<Result<_, _>>()?;
    let rows = scope.settings().iter();
    let rows = rows.filter(|row| !row.is_field(scope));
    Ok(rows
        .map(|setting| resolve_one(setting, &parsed, town, &var))
        .collect())
}

fn resolve_one<'v>(
    setting: &'static Setting,
    layers: &[ParsedLayer<'_>],
    town: &[ResolvedSetting],
    var: &impl Fn(&str) -> Option<&'v str>,
) -> ResolvedSetting {
    let path: Vec<&str> = setting.key.split('.').collect();
    let mut found = match setting.default {
        SettingDefault::Value(text) => ResolvedSetting {
            setting,
            value: toml_value(text),
            origin: SettingOrigin::Default,
            default: toml_value(text),
        },
        SettingDefault::Town(key) => {
            let above = town.iter().find(|row| row.setting.key == key);
            ResolvedSetting {
                setting,
                value: above.and_then(|row| row.value.clone()),
                origin: above.map_or(SettingOrigin::Default, |row| row.origin.clone()),
                default: above.and_then(|row| row.value.clone()),
            }
        }
        SettingDefault::Absent { .. } | SettingDefault::Required => ResolvedSetting {
            setting,
            value: None,
            origin: SettingOrigin::Default,
            default: None,
        },
    };
    for layer in layers {
        let Some((value, line)) = layer.find(&path) else {
            continue;
        };
        let value = match (found.value.take(), value) {
            (Some(Value::Table(mut below)), Value::Table(above)) => {
                below.extend(above);
                Value::Table(below)
            }
            (_, value) => value,
        };
        if layer.layer.is_builtin {
            found.origin = SettingOrigin::BuiltIn;
            found.default = Some(value.clone());
        } else {
            let source = layer.layer.source.clone();
            found.origin = SettingOrigin::File { source, line };
        }
        found.value = Some(value);
    }
    if let Some((name, text)) = setting.variable.and_then(|name| Some((name, var(name)?))) {
        found.value = Some(Value::from(text));
        found.origin = SettingOrigin::Variable(name);
    }
    found
}

/// Fails for the first value of a layer that its row does not permit. The problem names the file,
/// the line and the column.
pub fn check(scope: SettingScope, layer: &SettingsLayer) -> Result<(), Problem> {
    let parsed = ParsedLayer::parse(layer)?;
    for setting in scope.settings().iter().filter(|row| !row.is_field(scope)) {
        let path: Vec<&str> = setting.key.split('.').collect();
        let Some((value, at)) = parsed.find_at(&path) else {
            continue;
        };
        if let Err(why) = setting.kind.check(&value) {
            let place = place_of(&layer.text, at);
            let message = format!(
                "{}{place}: {} cannot have this value",
                layer.source, setting.key
            );
            let problem = Problem::usage(message).cause(why);
            return Err(problem.hint(format!("permitted: {}", setting.kind.allowed())));
        }
    }
    Ok(())
}

struct ParsedLayer<'a> {
    layer: &'a SettingsLayer,
    table: Table,
    document: Document<&'a str>,
}

impl<'a> ParsedLayer<'a> {
    fn parse(layer: &'a SettingsLayer) -> Result<Self, Problem> {
        let table = toml::from_str::<Table>(&layer.text)
            .map_err(|error| broken_toml(&layer.source, &layer.text, &error))?;
        let document = Document::parse(layer.text.as_str()).map_err(|error| {
            Problem::usage(format!("{} cannot be read", layer.source)).caused_by(error)
        })?;
        Ok(ParsedLayer {
            layer,
            table,
            document,
        })
    }

    fn find(&self, path: &[&str]) -> Option<(Value, usize)> {
        let (value, at) = self.find_at(path)?;
        Some((value, line_of(&self.layer.text, at)))
    }

    /// Returns a value and the byte offset of its key.
    fn find_at(&self, path: &[&str]) -> Option<(Value, usize)> {
        let whole: Vec<&str> = self.layer.prefix.iter().map(String::as_str).collect();
        let whole = [whole.as_slice(), path].concat();
        let value = value_at(&self.table, &whole)?.clone();
        let mut table: &dyn toml_edit::TableLike = self.document.as_table();
        let mut at = 0;
        for name in &whole {
            let (key, item) = table.get_key_value(name)?;
            // A header of a parent table has no offset of its own; the key below has.
            at = key.span().map_or(at, |span| span.start);
            match item.as_table_like() {
                Some(inner) => table = inner,
                None => break,
            }
        }
        Some((value, at))
    }
}

/// Returns the value at a path.
pub(super) fn value_at<'t>(table: &'t Table, path: &[&str]) -> Option<&'t Value> {
    let (first, rest) = path.split_first()?;
    let value = table.get(*first)?;
    match rest {
        [] => Some(value),
        rest => value_at(value.as_table()?, rest),
    }
}

/// Parses a value in TOML. A test parses the values of the table.
pub(super) fn toml_value(text: &str) -> Option<Value> {
    // Only a mistake in the table of settings fails, and a test finds it.
    let mut table = toml::from_str::<Table>(&format!("value = {text}")).ok()?;
    table.remove("value")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::role::Role;

    fn layer(source: &str, text: &str, prefix: &[&str]) -> SettingsLayer {
        SettingsLayer {
            source: source.to_owned(),
            text: text.to_owned(),
            prefix: prefix.iter().map(|name| (*name).to_owned()).collect(),
            is_builtin: source == "built-in",
        }
    }

    fn shown(settings: &[ResolvedSetting], key: &str) -> String {
        let found = settings.iter().find(|row| row.setting.key == key).unwrap();
        let text = |value: &Option<Value>| {
            let text = value.as_ref().map(ToString::to_string);
            text.unwrap_or_else(|| "-".to_owned())
        };
        let (value, default) = (text(&found.value), text(&found.default));
        format!("{value} ({}), default {default}", found.origin)
    }

    #[test]
    fn every_default_is_toml() {
        for scope in SettingScope::ALL {
            for row in scope.settings() {
                let text = match row.default {
                    SettingDefault::Value(text) => text,
                    SettingDefault::Absent { example, .. } => example,
                    SettingDefault::Town(_) | SettingDefault::Required => continue,
                };
                let value = toml_value(text).unwrap_or_else(|| panic!("{}: {text}", row.key));
                // An empty theme means the role's built-in one.
                if row.key != "look.theme" {
                    row.kind.check(&value).unwrap();
                }
            }
        }
    }

    #[test]
    fn files_override_defaults_and_variables_override_files() {
        let text = "name = 'x'\nharness = 'codex'\n\n[notify]\ndesktop = true\n\n[krc.ttl]\nnudge = '5d'\n";
        let town = [layer("town.toml", text, &[])];
        let none = |_: &str| None;
        let found = resolve(SettingScope::Town, &town, &[], none).unwrap();
        let check = |key: &str, expected: &str| assert_eq!(shown(&found, key), expected, "{key}");
        check("name", r#""x" (town.toml:1), default """#);
        check("harness", r#""codex" (town.toml:2), default -"#);
        check("notify.desktop", "true (town.toml:5), default false");
        check("notify.bell", "- (default), default -");
        check("limits.polecats", "50 (default), default 50");
        check("krc.ttl", r#"{ nudge = "5d" } (town.toml:7), default {}"#);
        let set = |name: &str| (name == "GT_HARNESS").then_some("demo");
        let found = resolve(SettingScope::Town, &town, &[], set).unwrap();
        assert_eq!(
            shown(&found, "harness"),
            r#""demo" ($GT_HARNESS), default -"#
        );
    }

    #[test]
    fn a_rig_inherits_from_its_town() {
        let text = "[merge]\nconfirm = false\n[rigs.a.merge]\nautomatic = false\n";
        let none = |_: &str| None;
        let town = [layer("town.toml", text, &[])];
        let town = resolve(SettingScope::Town, &town, &[], none).unwrap();
        let rig = [layer("town.toml", text, &["rigs", "a"])];
        let found = resolve(SettingScope::Rig, &rig, &town, none).unwrap();
        let check = |key: &str, expected: &str| assert_eq!(shown(&found, key), expected, "{key}");
        check("merge.automatic", "false (town.toml:4), default true");
        check("merge.confirm", "false (town.toml:2), default false");
        check("merge.batch", "1 (default), default 1");
        check("at_limit", r#""wait" (default), default "wait""#);
    }

    #[test]
    fn a_role_has_its_builtin_file_below_the_towns() {
        let builtin = layer("built-in", Role::Crew.builtin().text, &[]);
        let town = layer("roles/crew.toml", "[session]\nmodel = 'x'\n", &[]);
        let none = |_: &str| None;
        let found = resolve(SettingScope::Role, &[builtin, town], &[], none).unwrap();
        let check = |key: &str, expected: &str| assert_eq!(shown(&found, key), expected, "{key}");
        check("session.model", r#""x" (roles/crew.toml:2), default -"#);
        check("record.max_mb", "64 (built-in), default 64");
        check("session.harness", "- (default), default -");
    }

    #[test]
    fn a_value_that_is_not_permitted_is_named_with_its_line() {
        let town = layer("town.toml", "[limits]\nparallel_starts = 100\n", &[]);
        let problem = check(SettingScope::Town, &town).unwrap_err();
        assert!(problem.message().contains("town.toml:2:1"), "{problem}");
        assert!(
            problem.message().contains("limits.parallel_starts"),
            "{problem}"
        );
        assert_eq!(problem.causes(), ["100 is not permitted"]);
        assert!(problem.hints().iter().any(|hint| hint.contains("1 to 64")));
    }
}

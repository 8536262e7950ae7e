//! Completion of `gt config`: keys of the scope that the options name, and values of closed sets.

use super::Name;
use gt_core::settings::{SettingKey, SettingKind, SettingScope};
use gt_town::Town;
use gt_town::catalog::harnesses;

/// Returns the keys. Those of a rig begin with `rigs.NAME.`, if no option names a rig.
pub(super) fn keys(town: &Town, typed: &str) -> Option<Vec<Name>> {
    let line = ConfigLine::read(std::env::args());
    let of = |scope: SettingScope, prefix: &str| -> Vec<Name> {
        let rows = scope.settings().iter().filter(|row| !row.is_field(scope));
        rows.map(|row| (format!("{prefix}{}", row.key), row.about.to_owned()))
            .collect()
    };
    let mut names = of(line.scope, "");
    if line.scope == SettingScope::Town && typed.starts_with("rigs.") {
        for rig in town.registry().rigs.keys() {
            names.extend(of(SettingScope::Rig, &format!("rigs.{rig}.")));
        }
    }
    Some(names)
}

/// Returns the permitted values of the key on the command line.
pub(super) fn values(town: &Town, _: &str) -> Option<Vec<Name>> {
    let line = ConfigLine::read(std::env::args());
    let key = line.key?;
    let of_rig = key
        .strip_prefix("rigs.")
        .and_then(|rest| rest.split_once('.'));
    let (scope, key) = match (line.scope, of_rig) {
        (SettingScope::Town, Some((_, rest))) => (SettingScope::Rig, rest),
        (scope, _) => (scope, key.as_str()),
    };
    // A shell has no place for an error.
    let kind = SettingKey::find(scope, key).ok()?.kind();
    let words: Vec<String> = match kind {
        SettingKind::Harness => harnesses::names(town),
        kind => kind.words().iter().map(|word| (*word).to_owned()).collect(),
    };
    Some(
        words
            .into_iter()
            .map(|word| (word, String::new()))
            .collect(),
    )
}

/// The part of a command line that decides about keys and values.
struct ConfigLine {
    scope: SettingScope,
    key: Option<String>,
}

impl ConfigLine {
    /// Reads the words that a shell passes after `--`.
    fn read(args: impl Iterator<Item = String>) -> Self {
        let mut words = args.skip_while(|word| word != "config").skip(2);
        let mut line = ConfigLine {
            scope: SettingScope::Town,
            key: None,
        };
        while let Some(word) = words.next() {
            let (name, has_value) = match word.split_once('=') {
                Some((name, _)) if name.starts_with("--") => (name.to_owned(), true),
                _ => (word.clone(), false),
            };
            let scope = match name.as_str() {
                "--role" => Some(SettingScope::Role),
                "--harness" => Some(SettingScope::Harness),
                "--project" => Some(SettingScope::Project),
                // A role or a project may be that of a rig.
                "--rig" if line.scope == SettingScope::Town => Some(SettingScope::Rig),
                "--rig" => Some(line.scope),
                _ => None,
            };
            match scope {
                Some(scope) => {
                    line.scope = scope;
                    if !has_value && name != "--project" {
                        words.next();
                    }
                }
                None if !word.starts_with('-') && line.key.is_none() => line.key = Some(word),
                None => {}
            }
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_before_and_after_the_key_decide_about_the_scope() {
        let check = |words: &str, scope: SettingScope, key: Option<&str>| {
            let words = format!("gt -- gt config {words}");
            let line = ConfigLine::read(words.split(' ').map(str::to_owned));
            assert_eq!((line.scope, line.key.as_deref()), (scope, key), "{words}");
        };
        check("set notify.on w", SettingScope::Town, Some("notify.on"));
        check(
            "set --role crew session.harness",
            SettingScope::Role,
            Some("session.harness"),
        );
        check("set --rig=a --role crew", SettingScope::Role, None);
        check("set --role crew --rig a x", SettingScope::Role, Some("x"));
        check("get x --rig a", SettingScope::Rig, Some("x"));
        check("get --project x", SettingScope::Project, Some("x"));
        check("get --harness codex", SettingScope::Harness, None);
    }
}

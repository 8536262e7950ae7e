//! Table of all settings: of a town, its rigs, roles and harnesses, and of a project.
//!
//! Each setting is a row: its key, its kind (which decides the permitted values), its default and
//! one sentence about it. `gt config`, the comments in a new `town.toml` and the completion of keys
//! come from the table. The parsers stay authoritative: a setting that is written must also pass
//! the parser of its file. Tests compare the rows with the parsers, their defaults and the
//! documentation.
//!
//! [`resolve`] finds a value and its origin in layers of files, [`edit`] changes the text of a file.

pub mod edit;
mod harness;
mod kind;
mod project;
pub mod resolve;
mod rig;
mod role;
mod template;
mod town;

pub use kind::SettingKind;
pub use template::{NewTown, commented, town_file};

use crate::problem::Problem;
use crate::similar;

/// Owner of a setting. It decides the file and the table of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingScope {
    /// `town.toml`.
    Town,
    /// `[rigs.<rig>]` in `town.toml`.
    Rig,
    /// `roles/<role>.toml` of the town or of a rig.
    Role,
    /// `harnesses/<name>.toml`.
    Harness,
    /// `.gt.toml` at the root of a repository.
    Project,
}

impl SettingScope {
    pub const ALL: [SettingScope; 5] = [
        SettingScope::Town,
        SettingScope::Rig,
        SettingScope::Role,
        SettingScope::Harness,
        SettingScope::Project,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            SettingScope::Town => "town",
            SettingScope::Rig => "rig",
            SettingScope::Role => "role",
            SettingScope::Harness => "harness",
            SettingScope::Project => "project",
        }
    }

    /// Returns the settings of this scope, in the order in which they are listed.
    pub fn settings(self) -> &'static [Setting] {
        match self {
            SettingScope::Town => town::ROWS,
            SettingScope::Rig => rig::ROWS,
            SettingScope::Role => role::ROWS,
            SettingScope::Harness => harness::ROWS,
            SettingScope::Project => project::ROWS,
        }
    }
}

/// A setting: one row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Names of the tables and the key, joined by dots.
    pub key: &'static str,
    pub kind: SettingKind,
    pub default: SettingDefault,
    /// One or two sentences.
    pub about: &'static str,
    /// Environment variable that overrides the file.
    pub variable: Option<&'static str>,
}

/// Value of a setting that no file contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingDefault {
    /// A value, in TOML.
    Value(&'static str),
    /// No value.
    Absent {
        /// Effect of the absence, in a few words.
        means: &'static str,
        /// A possible value, in TOML.
        example: &'static str,
    },
    /// A rig's setting that has the value of this setting of the town.
    Town(&'static str),
    /// A field that every table of a list must have.
    Required,
}

/// Returns a row whose default is a value, in TOML.
const fn value(
    key: &'static str,
    kind: SettingKind,
    default: &'static str,
    about: &'static str,
) -> Setting {
    let default = SettingDefault::Value(default);
    row(key, kind, default, about)
}

/// Returns a row without a default value.
const fn absent(
    key: &'static str,
    kind: SettingKind,
    (means, example): (&'static str, &'static str),
    about: &'static str,
) -> Setting {
    row(key, kind, SettingDefault::Absent { means, example }, about)
}

const fn row(
    key: &'static str,
    kind: SettingKind,
    default: SettingDefault,
    about: &'static str,
) -> Setting {
    Setting {
        key,
        kind,
        default,
        about,
        variable: None,
    }
}

impl Setting {
    /// Returns the description, with the words of a closed set.
    pub fn described(&self) -> String {
        match self.kind {
            SettingKind::Choice(_) | SettingKind::ChoiceOr(..) => {
                format!("{} Values: {}.", self.about, self.kind.allowed())
            }
            _ => self.about.to_owned(),
        }
    }

    /// Returns the default as people read it: TOML, or a few words.
    pub fn default_text(&self) -> &'static str {
        match self.default {
            SettingDefault::Value(text) => text,
            SettingDefault::Absent { means, .. } => means,
            SettingDefault::Town(_) => "the town's",
            SettingDefault::Required => "",
        }
    }

    /// Returns whether it is a field of the tables of a list, which has no single value.
    pub fn is_field(&self, scope: SettingScope) -> bool {
        let lists = scope.settings().iter();
        lists
            .filter(|row| matches!(row.kind, SettingKind::Tables))
            .any(|list| is_below(self.key, list.key))
    }
}

fn is_below(key: &str, above: &str) -> bool {
    let rest = key.strip_prefix(above);
    rest.is_some_and(|rest| rest.starts_with('.'))
}

/// A key that a person named: a row of the table, or one entry of a row that is a map.
#[derive(Clone, Debug)]
pub struct SettingKey {
    pub setting: &'static Setting,
    /// Name of the entry.
    pub entry: Option<String>,
}

impl SettingKey {
    /// Finds a setting by its key. The hints of the error name similar keys.
    pub fn find(scope: SettingScope, key: &str) -> Result<Self, Problem> {
        let rows = scope.settings();
        if let Some(setting) = rows.iter().find(|row| row.key == key) {
            if setting.is_field(scope) {
                return Err(Problem::usage(format!(
                    "{key} is a key of each table of a list, and has no single value"
                ))
                .hint("`gt config edit` opens the file"));
            }
            return Ok(SettingKey {
                setting,
                entry: None,
            });
        }
        let is_entry =
            |row: &&Setting| matches!(row.kind, SettingKind::Map(_)) && is_below(key, row.key);
        if let Some(setting) = rows.iter().find(is_entry) {
            let name = key[setting.key.len() + 1..].trim_matches('"');
            if !name.is_empty() {
                return Ok(SettingKey {
                    setting,
                    entry: Some(name.to_owned()),
                });
            }
        }
        Err(unknown(scope, key))
    }

    /// Returns the kind of its value.
    pub fn kind(&self) -> SettingKind {
        match (self.setting.kind, &self.entry) {
            (SettingKind::Map(inner), Some(_)) => *inner,
            (kind, _) => kind,
        }
    }

    /// Returns the names of the tables and the key.
    pub fn path(&self) -> Vec<String> {
        let row = self.setting.key.split('.').map(str::to_owned);
        row.chain(self.entry.clone()).collect()
    }
}

fn unknown(scope: SettingScope, key: &str) -> Problem {
    let keys = || scope.settings().iter().map(|row| row.key);
    let problem = Problem::not_found(format!(
        "there is no setting {key:?} of a {}",
        scope.as_str()
    ));
    let last = |key: &'static str| key.rsplit('.').next().unwrap_or(key);
    // People often know the last part of a key, or the table.
    let mut near: Vec<&str> = keys().filter(|known| last(known) == key).collect();
    near.extend(keys().filter(|known| is_below(known, key)));
    near.truncate(4);
    let hint = match near.as_slice() {
        [] => {
            let tables = keys().filter_map(|known| Some(known.split_once('.')?.0));
            similar::hint(key, keys().chain(tables))
        }
        near => Some(format!("did you mean {}?", near.join(" or "))),
    };
    let problem = match hint {
        Some(hint) => problem.hint(hint),
        None => problem,
    };
    let others = || SettingScope::ALL.into_iter().filter(|it| *it != scope);
    let found: Vec<&str> = others()
        .filter(|other| other.settings().iter().any(|row| row.key == key))
        .map(place)
        .collect();
    if !found.is_empty() {
        return problem.hint(format!("it is a setting {}", found.join(", and ")));
    }
    let near = others().filter_map(|other| {
        let keys = other.settings().iter().map(|row| row.key);
        // A key of another scope must be closer than one of this scope.
        let near = similar::similar(key, keys).into_iter().next()?;
        let is_close = strsim::osa_distance(key, near) <= 2;
        is_close.then(|| format!("{near} is a setting {}", place(other)))
    });
    let problem = near.fold(problem, Problem::hint);
    problem.hint("`gt config list` shows the settings")
}

/// Returns the scope with the option that selects it.
fn place(scope: SettingScope) -> &'static str {
    match scope {
        SettingScope::Town => "of the town (no option)",
        SettingScope::Rig => "of a rig (`--rig NAME`)",
        SettingScope::Role => "of a role (`--role NAME`)",
        SettingScope::Harness => "of a harness (`--harness NAME`)",
        SettingScope::Project => "of a project (`--project`)",
    }
}

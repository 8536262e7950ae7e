//! Files of settings, for `gt config`: reads the values in effect with their origins, and changes
//! one value or a whole file.
//!
//! A change is checked by the parser of the file before the file is replaced, under a lock. The
//! settings themselves are a table, [`gt_core::settings`].

mod editing;

pub use editing::{ConfigEdit, EditError};

use crate::base::files;
use crate::base::lock::FileLock;
use crate::base::settings::{self, TownSettings};
use crate::{Result, Surroundings};
use gt_core::overlay::Layer;
use gt_core::project::{self, Project};
use gt_core::settings::resolve::{ResolvedSetting, SettingsLayer, check, resolve};
use gt_core::settings::{Setting, SettingDefault, SettingKey, SettingKind, SettingScope, edit};
use gt_core::{Problem, Role, harness, similar};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use toml::Value;

/// Maximum wait for another process that changes settings.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);

/// Owner of settings: the town, or one rig, role, harness or project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigTarget {
    Town,
    Rig(String),
    Role {
        role: Role,
        /// The rig whose file it is; absent for the town's file.
        rig: Option<String>,
    },
    Harness(String),
    /// Root of a repository.
    Project(PathBuf),
}

impl ConfigTarget {
    pub fn scope(&self) -> SettingScope {
        match self {
            ConfigTarget::Town => SettingScope::Town,
            ConfigTarget::Rig(_) => SettingScope::Rig,
            ConfigTarget::Role { .. } => SettingScope::Role,
            ConfigTarget::Harness(_) => SettingScope::Harness,
            ConfigTarget::Project(_) => SettingScope::Project,
        }
    }

    /// Returns the name of the rig, role, harness or folder.
    pub fn name(&self) -> Option<String> {
        match self {
            ConfigTarget::Town => None,
            ConfigTarget::Rig(name) | ConfigTarget::Harness(name) => Some(name.clone()),
            ConfigTarget::Role { role, rig: None } => Some(role.to_string()),
            ConfigTarget::Role {
                role,
                rig: Some(rig),
            } => Some(format!("{rig}/{role}")),
            ConfigTarget::Project(dir) => Some(dir.display().to_string()),
        }
    }

    /// Returns the path of the file, which may not exist.
    pub fn path(&self, root: &Path) -> PathBuf {
        match self {
            ConfigTarget::Town | ConfigTarget::Rig(_) => root.join(settings::FILE),
            ConfigTarget::Role { role, rig } => {
                let folder = rig
                    .as_ref()
                    .map_or_else(|| root.to_owned(), |rig| root.join(rig));
                folder.join("roles").join(format!("{role}.toml"))
            }
            ConfigTarget::Harness(name) => root.join("harnesses").join(format!("{name}.toml")),
            ConfigTarget::Project(dir) => dir.join(project::FILE),
        }
    }

    /// Returns the tables that contain the settings.
    fn prefix(&self) -> Vec<String> {
        match self {
            ConfigTarget::Rig(name) => vec!["rigs".to_owned(), name.clone()],
            _ => Vec::new(),
        }
    }
}

/// The file with the settings of a target. It may not exist yet.
#[derive(Debug)]
pub struct ConfigFile<'a> {
    root: &'a Path,
    around: &'a Surroundings,
    target: ConfigTarget,
    path: PathBuf,
}

/// A changed value: before and after the change.
#[derive(Debug)]
pub struct ConfigChange {
    pub before: Option<Value>,
    pub after: Option<Value>,
}

impl<'a> ConfigFile<'a> {
    /// Returns the file of a target. A town whose `town.toml` cannot be read is possible, so that
    /// the file can be corrected.
    pub fn of(root: &'a Path, target: ConfigTarget, around: &'a Surroundings) -> Result<Self> {
        if let ConfigTarget::Harness(name) = &target
            && !gt_core::name::is_well_formed(name)
        {
            let message = format!("{name:?} cannot be the name of a harness");
            return Err(Problem::usage(message));
        }
        let path = target.path(root);
        if let ConfigTarget::Project(_) = &target
            && fs::symlink_metadata(&path).is_ok_and(|meta| !meta.is_file())
        {
            return Err(Problem::usage(format!("{} is not a file", path.display()))
                .hint("replace the symbolic link with the file itself"));
        }
        Ok(ConfigFile {
            root,
            around,
            target,
            path,
        })
    }

    pub fn target(&self) -> &ConfigTarget {
        &self.target
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path for origins: relative to the town or the project.
    fn source(&self, path: &Path) -> String {
        let folder = match &self.target {
            ConfigTarget::Project(dir) => dir,
            _ => self.root,
        };
        let path = path.strip_prefix(folder).unwrap_or(path);
        path.display().to_string()
    }

    fn layer(&self, path: &Path, prefix: Vec<String>) -> Result<SettingsLayer> {
        Ok(SettingsLayer {
            source: self.source(path),
            text: files::read_if_there(path)?.unwrap_or_default(),
            prefix,
            is_builtin: false,
        })
    }

    /// Returns every setting of the target with its value in effect.
    pub fn settings(&self) -> Result<Vec<ResolvedSetting>> {
        let mut layers = Vec::new();
        let builtin = match &self.target {
            ConfigTarget::Role { role, .. } => Some(role.builtin()),
            ConfigTarget::Harness(name) => harness::builtin(name),
            _ => None,
        };
        layers.extend(builtin.map(|layer| SettingsLayer {
            source: layer.source.to_owned(),
            text: layer.text.to_owned(),
            prefix: Vec::new(),
            is_builtin: true,
        }));
        if let ConfigTarget::Role { role, rig: Some(_) } = self.target {
            let town = ConfigTarget::Role { role, rig: None };
            layers.push(self.layer(&town.path(self.root), Vec::new())?);
        }
        let own = self.layer(&self.path, self.target.prefix())?;
        // Reports an invalid file with its line and column.
        self.parse(&own.text)?;
        layers.push(own);
        let town = match self.target {
            ConfigTarget::Rig(_) => {
                ConfigFile::of(self.root, ConfigTarget::Town, self.around)?.settings()?
            }
            _ => Vec::new(),
        };
        resolve(self.target.scope(), &layers, &town, |name| {
            self.around.var(name)
        })
    }

    /// Sets a value from the words of a command.
    pub fn set(&self, key: &SettingKey, words: &[&str]) -> Result<ConfigChange> {
        let name = self.full_key(key);
        let kind = key.kind();
        let refuse = |why: String| {
            Problem::usage(format!("{name} cannot have this value"))
                .cause(why)
                .hint(format!("permitted: {}", kind.allowed()))
        };
        let value = kind.parse(words).map_err(refuse)?;
        if let (SettingKind::Harness, Value::String(harness)) = (kind, &value) {
            self.check_harness(harness)?;
        }
        self.change(key, Some(&value), |text, path| {
            edit::set(text, path, &value).map_err(refuse)
        })
    }

    /// Removes a value from the file, so that the default applies.
    pub fn unset(&self, key: &SettingKey) -> Result<ConfigChange> {
        let default = match (key.setting.default, &self.target) {
            (SettingDefault::Value(text), ConfigTarget::Town) => Some(text),
            (SettingDefault::Absent { example, .. }, ConfigTarget::Town) => Some(example),
            _ => None,
        };
        let default = default.filter(|_| key.entry.is_none());
        self.change(key, None, |text, path| {
            edit::unset(text, path, default).map_err(|why| {
                let file = self.path.display();
                Problem::failed(format!("cannot change {file}")).cause(why)
            })
        })
    }

    fn change(
        &self,
        key: &SettingKey,
        value: Option<&Value>,
        change: impl FnOnce(&str, &[String]) -> Result<String>,
    ) -> Result<ConfigChange> {
        let _lock = self.lock()?;
        let old = files::read_if_there(&self.path)?;
        if let Some(old) = &old {
            self.parse(old)?;
        }
        let old = old.unwrap_or_default();
        let path: Vec<String> = [self.target.prefix(), key.path()].concat();
        let before = self.find(&old, &path)?;
        if value.is_none() && before.is_none() {
            return Ok(ConfigChange {
                before: None,
                after: None,
            });
        }
        let new = change(&old, &path)?;
        // The file was valid, so the new value is the reason.
        self.parse(&new).map_err(|problem| {
            let file = self.path.display();
            let refused = match problem.causes() {
                [] => return problem.hint(format!("{file} is unchanged")),
                causes => Problem::usage(format!("{} cannot have this value", self.full_key(key)))
                    .cause(causes.join(": ")),
            };
            refused
                .hint(format!("permitted: {}", key.kind().allowed()))
                .hint(format!("{file} is unchanged"))
        })?;
        self.replace(&new)?;
        Ok(ConfigChange {
            before,
            after: value.cloned(),
        })
    }

    fn find(&self, text: &str, path: &[String]) -> Result<Option<Value>> {
        let table: toml::Table = toml::from_str(text).map_err(|error| {
            gt_core::overlay::broken_toml(&self.path.display().to_string(), text, &error)
        })?;
        let mut value = Some(&Value::Table(table)).cloned();
        for name in path {
            value = value.and_then(|value| value.get(name).cloned());
        }
        Ok(value)
    }

    /// Returns the key as a person names it.
    fn full_key(&self, key: &SettingKey) -> String {
        key.path().join(".")
    }

    /// Fails if no harness has this name.
    fn check_harness(&self, name: &str) -> Result<()> {
        let is_own = gt_core::name::is_well_formed(name)
            && ConfigTarget::Harness(name.to_owned())
                .path(self.root)
                .is_file();
        if is_own || harness::builtin(name).is_some() {
            return Ok(());
        }
        let problem = Problem::usage(format!("there is no harness called {name:?}"));
        let problem = match similar::hint(name, harness::builtin_names()) {
            Some(hint) => problem.hint(hint),
            None => problem,
        };
        Err(problem.hint("`gt harness list` shows the available ones"))
    }

    /// Parses a text as this file. The error names the file, the line and the column.
    fn parse(&self, text: &str) -> Result<()> {
        let source = self.path.display().to_string();
        let layer = Layer {
            source: &source,
            text,
        };
        match &self.target {
            ConfigTarget::Town | ConfigTarget::Rig(_) => {
                TownSettings::parse(&source, text).map(|_| ())
            }
            ConfigTarget::Role { role, .. } => role.resolve(&[layer]).map(|_| ()),
            ConfigTarget::Harness(name) if text.trim().is_empty() => {
                harness::resolve(name, None).map(|_| ())
            }
            ConfigTarget::Harness(name) => harness::resolve(name, Some(layer)).map(|_| ()),
            ConfigTarget::Project(_) => Project::read(&source, text).map(|_| ()),
        }
    }

    /// Fails if a text is not valid as this file, by its parser and by the table of settings.
    fn check(&self, text: &str) -> Result<()> {
        self.parse(text)?;
        let layer = |prefix: Vec<String>| SettingsLayer {
            source: self.path.display().to_string(),
            text: text.to_owned(),
            prefix,
            is_builtin: false,
        };
        if !matches!(self.target, ConfigTarget::Town | ConfigTarget::Rig(_)) {
            return check(self.target.scope(), &layer(Vec::new()));
        }
        check(SettingScope::Town, &layer(Vec::new()))?;
        let rigs = self.find(text, &["rigs".to_owned()])?;
        let rigs = rigs
            .as_ref()
            .and_then(Value::as_table)
            .into_iter()
            .flatten();
        for (rig, _) in rigs {
            let prefix = ConfigTarget::Rig(rig.clone()).prefix();
            check(SettingScope::Rig, &layer(prefix))?;
        }
        Ok(())
    }

    /// Fails if the file has a value that the table of settings does not permit, although its
    /// parser accepts it.
    pub fn check_values(&self) -> Result<()> {
        match files::read_if_there(&self.path)? {
            Some(text) => self.check(&text),
            None => Ok(()),
        }
    }

    fn lock(&self) -> Result<FileLock> {
        let path = self.root.join(".runtime/locks/config.lock");
        FileLock::take(&path, LOCK_TIMEOUT)
    }

    /// Replaces the file atomically. Its permissions stay, and so does a symbolic link to it.
    fn replace(&self, text: &str) -> Result<()> {
        // A file that does not exist has no other path.
        let path = self
            .path
            .canonicalize()
            .unwrap_or_else(|_| self.path.clone());
        let is_project = matches!(self.target, ConfigTarget::Project(_));
        let mode = match fs::metadata(&path) {
            Ok(meta) => Some(meta.permissions().mode()),
            Err(_) => is_project.then_some(0o644),
        };
        files::write_whole(&path, text.as_bytes())?;
        match mode {
            Some(mode) => fs::set_permissions(&path, fs::Permissions::from_mode(mode))
                .map_err(|error| files::io_problem("set the permissions of", &path, &error)),
            None => Ok(()),
        }
    }

    /// Returns the default of a row for this target, in TOML.
    fn default_of(&self, defaults: &[ResolvedSetting], row: &Setting) -> Option<String> {
        let found = defaults.iter().find(|it| it.setting.key == row.key)?;
        found.default.as_ref().map(ToString::to_string)
    }
}

#[cfg(test)]
mod tests;

//! Accounts: configuration folders of agent programs, under names.
//!
//! An agent program keeps its login, its settings and its conversations in one folder,
//! and most take another by a variable (`env.config_dir` of the preset). An account is a
//! name for such folders, one for each program. `accounts.toml` has the names and the
//! folders and nothing else; what is in the folders is the program's own, and is not read
//! here.

use crate::lock::FileLock;
use crate::sessions::{Query, Sessions};
use crate::start::StartOptions;
use crate::{Result, Town, files, harnesses};
use gt_core::harness::Preset;
use gt_core::overlay::broken_toml;
use gt_core::record::Status;
use gt_core::{Problem, name};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

/// How long another may change the accounts before we.
const PATIENCE: Duration = Duration::from_secs(10);
/// Where the folders are that nobody chose.
const OWN_FOLDERS: &str = ".accounts";

/// What `accounts.toml` says.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Accounts {
    /// Folders by account and harness; those in the town from its root.
    accounts: BTreeMap<String, BTreeMap<String, PathBuf>>,
    /// The account for new starts, by harness.
    defaults: BTreeMap<String, String>,
}

/// An account, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Account {
    pub account: String,
    /// Its folder for each harness.
    pub folders: BTreeMap<String, PathBuf>,
    /// The harnesses whose new agents use it.
    pub default_for: Vec<String>,
}

/// What was removed with an account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Removed {
    pub account: String,
    /// The folders that were deleted, or would be.
    pub purged: Vec<PathBuf>,
    /// Those that are still there.
    pub kept: Vec<PathBuf>,
}

/// The folder of an account for a program. It is there afterwards.
pub fn dir(town: &Town, account: &str, preset: &Preset) -> Result<PathBuf> {
    check_takes_a_folder(town, preset)?;
    let accounts = Accounts::read(town)?;
    let folders = accounts.get(account)?;
    let folder = folders.get(&preset.name).ok_or_else(|| {
        let known: Vec<&str> = folders.keys().map(String::as_str).collect();
        Problem::not_found(format!(
            "the account {account} has no folder for {}",
            preset.name
        ))
        .hint(format!("it is for {}", known.join(", ")))
        .hint(format!(
            "`gt account add {account} --harness {}` makes one",
            preset.name
        ))
    })?;
    let folder = town.root().join(folder);
    files::make_dir(&folder)?;
    Ok(folder)
}

/// The account that new agents of a program use, and its folder.
pub fn default_for(town: &Town, preset: &Preset) -> Result<Option<PathBuf>> {
    let accounts = Accounts::read(town)?;
    match accounts.defaults.get(&preset.name) {
        Some(account) => dir(town, account, preset).map(Some),
        None => Ok(None),
    }
}

pub fn list(town: &Town) -> Result<Vec<Account>> {
    let accounts = Accounts::read(town)?;
    let names = accounts.accounts.keys();
    Ok(names.map(|name| accounts.shown(town, name)).collect())
}

/// The account whose folder this is.
pub fn named_by(town: &Town, folder: &Path) -> Result<Option<String>> {
    let found = list(town)?
        .into_iter()
        .find(|account| account.folders.values().any(|known| known == folder));
    Ok(found.map(|account| account.account))
}

/// Makes an account, or adds a program to one.
pub fn add(town: &Town, account: &str, preset: &Preset, folder: Option<&Path>) -> Result<Account> {
    name::check_account(account)?;
    check_takes_a_folder(town, preset)?;
    Accounts::change(town, |accounts| {
        let folders = accounts.accounts.entry(account.to_owned()).or_default();
        if folders.contains_key(&preset.name) {
            return Err(Problem::conflict(format!(
                "there is an account {account} for {} already",
                preset.name
            ))
            .hint("`gt account list` shows it"));
        }
        let own = Path::new(OWN_FOLDERS).join(account).join(&preset.name);
        let folder = folder.map_or(own, |given| plain(&town.around().current_dir.join(given)));
        files::make_dir(&town.root().join(&folder))?;
        folders.insert(preset.name.clone(), folder);
        Ok(accounts.shown(town, account))
    })
}

/// Makes an account the one for new starts: of this harness, or of all it is for.
pub fn make_default(town: &Town, account: &str, harness: Option<&str>) -> Result<Account> {
    if let Some(harness) = harness {
        // Says clearly why not.
        dir(town, account, &harnesses::resolve(town, harness)?.value)?;
    }
    Accounts::change(town, |accounts| {
        let known: Vec<String> = accounts.get(account)?.keys().cloned().collect();
        let wanted = known
            .into_iter()
            .filter(|known| harness.is_none_or(|harness| harness == known));
        for harness in wanted {
            accounts.defaults.insert(harness, account.to_owned());
        }
        Ok(accounts.shown(town, account))
    })
}

/// Forgets an account. Its folders stay unless they are to be purged, and those that
/// somebody has chosen stay in any case: we did not make them.
pub fn remove(town: &Town, account: &str, purge: bool, dry_run: bool) -> Result<Removed> {
    let own = town.root().join(OWN_FOLDERS).join(account);
    let remove = |accounts: &mut Accounts| {
        let shown = accounts
            .get(account)
            .map(|_| accounts.shown(town, account))?;
        let all = shown.folders.into_values();
        let (purged, kept): (Vec<_>, Vec<_>) =
            all.partition(|folder| purge && folder.starts_with(&own));
        if !purged.is_empty() {
            check_unused(town, &purged)?;
        }
        accounts.accounts.remove(account);
        accounts.defaults.retain(|_, name| name != account);
        Ok(Removed {
            account: account.to_owned(),
            purged,
            kept,
        })
    };
    if dry_run {
        return remove(&mut Accounts::read(town)?);
    }
    let removed = Accounts::change(town, remove)?;
    if !removed.purged.is_empty() {
        // Nothing names it any more: what a kill leaves of it is only a folder.
        std::fs::remove_dir_all(&own).map_err(|error| files::cannot("remove", &own, &error))?;
    }
    Ok(removed)
}

impl Accounts {
    fn read(town: &Town) -> Result<Accounts> {
        let path = path(town);
        match files::read_if_there(&path)? {
            Some(text) => toml::from_str(&text)
                .map_err(|error| broken_toml(&path.display().to_string(), &text, &error)),
            None => Ok(Accounts::default()),
        }
    }

    /// Changes the file, whole or not at all, and one at a time.
    fn change<T>(town: &Town, change: impl FnOnce(&mut Accounts) -> Result<T>) -> Result<T> {
        let lock = town.runtime_dir().join("locks/accounts.lock");
        let _lock = FileLock::take(&lock, PATIENCE)?;
        let mut accounts = Accounts::read(town)?;
        let answer = change(&mut accounts)?;
        let text = toml::to_string(&accounts)
            .map_err(|error| Problem::failed("cannot write the accounts").caused_by(error))?;
        files::write_whole(&path(town), text.as_bytes())?;
        Ok(answer)
    }

    fn get(&self, account: &str) -> Result<&BTreeMap<String, PathBuf>> {
        self.accounts.get(account).ok_or_else(|| {
            let problem = Problem::not_found(format!("there is no account {account:?}"));
            let known: Vec<&str> = self.accounts.keys().map(String::as_str).collect();
            match known.as_slice() {
                [] => problem.hint(format!("`gt account add {account}` makes it")),
                known => problem.hint(format!("the accounts: {}", known.join(", "))),
            }
        })
    }

    fn shown(&self, town: &Town, account: &str) -> Account {
        let folders = self.accounts.get(account).into_iter().flatten();
        let defaults = self.defaults.iter().filter(|(_, name)| *name == account);
        Account {
            account: account.to_owned(),
            folders: folders
                .map(|(harness, folder)| (harness.clone(), town.root().join(folder)))
                .collect(),
            default_for: defaults.map(|(harness, _)| harness.clone()).collect(),
        }
    }
}

fn path(town: &Town) -> PathBuf {
    town.root().join("accounts.toml")
}

/// A path without `.` and `..`, by its text alone: two names of one folder would be two.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}

fn check_takes_a_folder(town: &Town, preset: &Preset) -> Result<()> {
    if preset.env.config_dir.is_some() {
        return Ok(());
    }
    let takes = |name: &String| {
        let preset = harnesses::resolve(town, name).ok();
        preset.is_some_and(|preset| preset.value.env.config_dir.is_some())
    };
    let able: Vec<String> = harnesses::names(town).into_iter().filter(takes).collect();
    Err(Problem::usage(format!(
        "the harness {} takes no configuration folder, so it has no accounts",
        preset.name
    ))
    .hint(format!("these do: {}", able.join(", "))))
}

/// A folder in which an agent works now is not deleted.
fn check_unused(town: &Town, folders: &[PathBuf]) -> Result<()> {
    let running = Sessions::of(town).find(&Query {
        status: Some(Status::Running.word().to_owned()),
        ..Query::default()
    })?;
    for life in running {
        let start = StartOptions::from_tag(life.start.as_deref().unwrap_or_default());
        let used = start.config_dir.map(PathBuf::from);
        if used.is_some_and(|used| folders.contains(&used)) {
            let agent = life.agent.unwrap_or(life.id);
            return Err(Problem::conflict(format!("{agent} runs with this account"))
                .hint(format!("`gt stop {agent}` first")));
        }
    }
    Ok(())
}

//! Accounts: named configuration folders of agent programs.
//!
//! An agent program keeps its login, settings and conversations in one folder. Most programs accept
//! another folder through a variable (`env.config_dir` of the preset). An account is a name for
//! such folders, one per program. `accounts.toml` holds only the names and the folders. This module
//! does not read the contents of the folders.

use crate::base::files;
use crate::base::lock::FileLock;
use crate::catalog::harnesses;
use crate::records::sessions::{SessionQuery, Sessions};
use crate::{Result, Town};
use gt_core::harness::Preset;
use gt_core::overlay::broken_toml;
use gt_core::record::{Record, SessionStatus};
use gt_core::{Problem, name};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

/// Maximum wait for the lock on the accounts.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Parent of the folders that `gt` creates for accounts, relative to the town.
const OWN_FOLDERS: &str = ".accounts";

/// The contents of `accounts.toml`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Accounts {
    /// Folders by account and harness. Folders inside the town are relative to its root.
    accounts: BTreeMap<String, BTreeMap<String, PathBuf>>,
    /// The default account for new agents, by harness.
    defaults: BTreeMap<String, String>,
}

/// An account as listings show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Account {
    pub account: String,
    /// The folder for each harness.
    pub folders: BTreeMap<String, PathBuf>,
    /// The harnesses whose new agents use this account by default.
    pub default_for: Vec<String>,
}

/// The folders of a removed account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RemovedAccount {
    pub account: String,
    /// The folders that were deleted, or would be in a dry run.
    pub purged: Vec<PathBuf>,
    /// The folders that stay.
    pub kept: Vec<PathBuf>,
}

/// Returns the folder of an account for a program, and creates it if it is missing.
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

/// Returns the folder of the default account for new agents of a program.
pub fn default_for(town: &Town, preset: &Preset) -> Result<Option<PathBuf>> {
    let accounts = Accounts::read(town)?;
    match accounts.defaults.get(&preset.name) {
        Some(account) => dir(town, account, preset).map(Some),
        None => Ok(None),
    }
}

pub fn list(town: &Town) -> Result<Vec<Account>> {
    Ok(Accounts::read(town)?.all_shown(town))
}

impl Account {
    /// Returns the account that has this folder.
    pub fn with_folder<'a>(accounts: &'a [Account], folder: &Path) -> Option<&'a Account> {
        let has = |account: &&Account| account.folders.values().any(|known| known == folder);
        accounts.iter().find(has)
    }
}

/// Creates an account, or adds a program to an existing account.
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
        let own = own_folder(account, &preset.name);
        let folder = folder.map_or(own, |given| plain(&town.around().current_dir.join(given)));
        files::make_dir(&town.root().join(&folder))?;
        folders.insert(preset.name.clone(), folder);
        Ok(accounts.describe(town, account))
    })
}

/// Makes an account the default for new agents of one harness, or of all its harnesses.
pub fn make_default(town: &Town, account: &str, harness: Option<&str>) -> Result<Account> {
    if let Some(harness) = harness {
        // Fails with a specific error if the account has no folder for the harness.
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
        Ok(accounts.describe(town, account))
    })
}

/// Clears the default account of one harness, or of all. New agents then use the programs' own
/// folders.
pub fn use_none(town: &Town, harness: Option<&str>) -> Result<Vec<Account>> {
    if let Some(harness) = harness {
        harnesses::resolve(town, harness)?;
    }
    Accounts::change(town, |accounts| {
        let is_other = |name: &String| harness.is_some_and(|harness| harness != name);
        accounts.defaults.retain(|name, _| is_other(name));
        Ok(accounts.all_shown(town))
    })
}

/// Removes an account. With `purge` it also deletes the folders that `gt` created. Folders that a
/// person chose always stay.
pub fn remove(town: &Town, account: &str, purge: bool, dry_run: bool) -> Result<RemovedAccount> {
    let remove = |accounts: &mut Accounts| {
        let (mut purged, mut kept) = (Vec::new(), Vec::new());
        for (harness, folder) in accounts.get(account)? {
            let place = town.root().join(folder);
            match purge && *folder == own_folder(account, harness) {
                true => purged.push(place),
                false => kept.push(place),
            }
        }
        accounts.accounts.remove(account);
        accounts.defaults.retain(|_, name| name != account);
        if !purged.is_empty() {
            check_unnamed(&accounts.all_shown(town), &kept, &purged)?;
            check_unused(town, &purged)?;
        }
        Ok(RemovedAccount {
            account: account.to_owned(),
            purged,
            kept,
        })
    };
    if dry_run {
        return remove(&mut Accounts::read(town)?);
    }
    // Held until the folders are deleted: a new account of this name would get the same folder.
    let _lock = Accounts::lock(town)?;
    let removed = Accounts::change_locked(town, remove)?;
    for folder in &removed.purged {
        // No account names the folder now. If the process is killed here, only the folder remains.
        match std::fs::remove_dir_all(folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(files::io_problem("remove", folder, &error));
            }
            _ => {}
        }
    }
    // Fails if the folder is not empty: other files in it are not ours to delete.
    let _ = std::fs::remove_dir(town.root().join(OWN_FOLDERS).join(account));
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

    /// Changes the file atomically, under the lock.
    fn change<T>(town: &Town, change: impl FnOnce(&mut Accounts) -> Result<T>) -> Result<T> {
        let _lock = Accounts::lock(town)?;
        Accounts::change_locked(town, change)
    }

    fn lock(town: &Town) -> Result<FileLock> {
        FileLock::take(&town.runtime_dir().join("locks/accounts.lock"), TIMEOUT)
    }

    fn change_locked<T>(town: &Town, change: impl FnOnce(&mut Accounts) -> Result<T>) -> Result<T> {
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

    fn all_shown(&self, town: &Town) -> Vec<Account> {
        let names = self.accounts.keys();
        names.map(|name| self.describe(town, name)).collect()
    }

    fn describe(&self, town: &Town, account: &str) -> Account {
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

/// Returns the folder that `gt` creates, relative to the town's root. Folders that a person chose
/// are stored as absolute paths, so that the two can be distinguished.
fn own_folder(account: &str, harness: &str) -> PathBuf {
    Path::new(OWN_FOLDERS).join(account).join(harness)
}

/// Removes `.` and `..` from a path lexically, so that one folder has one name.
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
        // `gt doctor` reports a harness that cannot be read.
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

/// Fails if a folder to purge contains a folder of another account, or a folder that a person
/// chose.
fn check_unnamed(others: &[Account], kept: &[PathBuf], purged: &[PathBuf]) -> Result<()> {
    let of_others = others.iter().flat_map(|account| {
        let folders = account.folders.values();
        folders.map(move |folder| (format!("the account {}", account.account), folder))
    });
    let chosen = kept
        .iter()
        .map(|folder| ("a person's choice".to_owned(), folder));
    for (who, folder) in of_others.chain(chosen) {
        if let Some(hit) = purged.iter().find(|purged| is_below(folder, purged)) {
            let problem = Problem::conflict(format!("{} holds a folder of {who}", hit.display()));
            return Err(problem.hint("without `--purge` all folders stay"));
        }
    }
    Ok(())
}

/// Fails if a running agent uses one of the folders.
fn check_unused(town: &Town, folders: &[PathBuf]) -> Result<()> {
    let running = Sessions::of(town).find(&SessionQuery {
        status: Some(SessionStatus::Running.as_str().to_owned()),
        ..SessionQuery::default()
    })?;
    for session in running {
        let Some(used) = config_dir(&session)? else {
            continue;
        };
        if folders.iter().any(|folder| is_below(&used, folder)) {
            let agent = session.agent.unwrap_or(session.id);
            return Err(Problem::conflict(format!("{agent} runs with this account"))
                .hint(format!("`gt stop {agent}` first")));
        }
    }
    Ok(())
}

/// Returns the configuration folder with which a session was started.
fn config_dir(session: &Record) -> Result<Option<PathBuf>> {
    #[derive(Deserialize)]
    struct Start {
        config_dir: Option<PathBuf>,
    }
    let Some(text) = session.start.as_deref().filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let start: Start = serde_json::from_str(text).map_err(|error| {
        Problem::failed(format!(
            "cannot read how the session {} was started",
            session.id
        ))
        .caused_by(error)
    })?;
    Ok(start.config_dir)
}

/// Returns whether `inner` is `outer` or a folder below it, before or after symbolic links are
/// resolved.
fn is_below(inner: &Path, outer: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    inner.starts_with(outer) || real(inner).starts_with(real(outer))
}

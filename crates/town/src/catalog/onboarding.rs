//! Writes the answers to a program's first-start questions into the program's own settings files,
//! so that it does not ask them.
//!
//! Only missing values are written: values of the user or the program stay, and a file that is not
//! valid JSON is not changed. The presets define the answers, as rows (`[[seeds]]`). Questions that
//! the program still asks are answered in its dialog, after the start.

use crate::Result;
use crate::base::clock::Clock;
use crate::base::files;
use gt_core::Problem;
use gt_core::harness::{Seed, SeedValue};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Facts about a start, which determine the values of the rows.
#[derive(Clone, Debug)]
pub struct OnboardingFacts<'a> {
    /// The program's settings folder, or the home folder if it has none.
    pub root: &'a Path,
    pub work_dir: &'a str,
    /// Whether the agent runs without asking for permission.
    pub never_asks: bool,
    /// The environment variables that the agent will have.
    pub env: &'a BTreeMap<String, String>,
    /// The names of the variables that the caller of the start or the role has set.
    pub given: &'a BTreeSet<String>,
}

/// Maximum wait for the program's lock on its file.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);
/// Age at which the lock is stale, as the programs themselves define it.
const STALE: Duration = Duration::from_secs(10);

/// Writes the answers of these rows. Returns warnings for the user.
pub fn write_answers(seeds: &[Seed], facts: &OnboardingFacts<'_>) -> Vec<String> {
    let mut by_file: BTreeMap<PathBuf, Vec<(&Seed, Value)>> = BTreeMap::new();
    for seed in seeds {
        if let Some(value) = wanted(seed, facts) {
            let path = facts.root.join(&seed.file);
            by_file.entry(path).or_default().push((seed, value));
        }
    }
    let planted = by_file
        .iter()
        .map(|(path, rows)| write_missing(path, rows, facts));
    planted
        .filter_map(Result::err)
        .map(|problem| problem.to_string())
        .collect()
}

/// Returns the value that a row would write, if its conditions hold.
fn wanted(seed: &Seed, facts: &OnboardingFacts<'_>) -> Option<Value> {
    let set = |name: &String| {
        let is_given = !seed.when_given || facts.given.contains(name);
        let value = facts.env.get(name).filter(|value| !value.is_empty());
        value.filter(|_| is_given)
    };
    let variable = seed.when_env.iter().find_map(set);
    if (!seed.when_env.is_empty() && variable.is_none())
        || (seed.when_never_asks && !facts.never_asks)
    {
        return None;
    }
    Some(match &seed.value {
        SeedValue::Flag(flag) => Value::from(*flag),
        SeedValue::Number(number) => Value::from(*number),
        SeedValue::Text(text) => Value::from(text.as_str()),
        SeedValue::EndOfVariable { last } => {
            let characters: Vec<char> = variable?.chars().collect();
            let from = characters.len().saturating_sub(*last);
            Value::from(characters[from..].iter().collect::<String>())
        }
    })
}

fn write_missing(path: &Path, rows: &[(&Seed, Value)], facts: &OnboardingFacts<'_>) -> Result<()> {
    // Usually all values are present already, which needs no lock to check.
    if merged(path, rows, facts)?.is_none() {
        return Ok(());
    }
    let Some(target) = writable(path) else {
        return Ok(());
    };
    // Without the lock, this could overwrite a concurrent change by the program. The program then
    // asks, and the start answers its dialog.
    let Some(_lock) = ProgramsLock::take(path) else {
        return Ok(());
    };
    let Some(text) = merged(path, rows, facts)? else {
        return Ok(());
    };
    let mode = fs::metadata(&target).map(|meta| meta.permissions());
    files::write_whole(&target, text.as_bytes())?;
    if let Ok(mode) = mode {
        fs::set_permissions(&target, mode)
            .map_err(|error| files::io_problem("keep the mode of", &target, &error))?;
    }
    Ok(())
}

/// Returns the file to write, with symbolic links resolved, because dotfiles are often links.
/// Returns `None` for a dangling link and for a file of another user.
fn writable(path: &Path) -> Option<PathBuf> {
    if fs::symlink_metadata(path).is_err() {
        return Some(path.to_owned());
    }
    let target = path.canonicalize().ok()?;
    let owner = fs::metadata(&target).ok()?.uid();
    (owner == rustix::process::geteuid().as_raw()).then_some(target)
}

/// Returns the file with the rows added; `None` if they are already there, or the file must not be
/// changed.
fn merged(
    path: &Path,
    rows: &[(&Seed, Value)],
    facts: &OnboardingFacts<'_>,
) -> Result<Option<String>> {
    let text = files::read_if_there(path)?.unwrap_or_default();
    let mut document = match text.trim() {
        "" => Value::Object(Map::new()),
        text => match serde_json::from_str(text) {
            Ok(document) => document,
            Err(error) => {
                return Err(Problem::failed(format!(
                    "{} was not changed: it is not valid JSON",
                    path.display()
                ))
                .caused_by(error));
            }
        },
    };
    let mut changed = false;
    for (seed, value) in rows {
        changed |= set(&mut document, seed, value, facts);
    }
    Ok(changed.then(|| format!("{document:#}\n")))
}

/// Sets one value if it is missing. Returns whether it did.
fn set(document: &mut Value, seed: &Seed, value: &Value, facts: &OnboardingFacts<'_>) -> bool {
    let refused = |path: &Vec<String>| {
        let list = path.iter().try_fold(&*document, |at, key| at.get(key));
        let list = list.and_then(Value::as_array);
        list.is_some_and(|list| list.contains(value))
    };
    if seed.unless_in.as_ref().is_some_and(refused) {
        return false;
    }
    let mut place = document;
    for key in &seed.path {
        let key = key.replace("{folder}", facts.work_dir);
        let Some(object) = place.as_object_mut() else {
            return false;
        };
        place = object.entry(key).or_insert(Value::Null);
        if place.is_null() {
            *place = Value::Object(Map::new());
        }
    }
    let is_new = place.as_object().is_some_and(Map::is_empty);
    match place {
        Value::Array(list) if seed.append && !list.contains(value) => list.push(value.clone()),
        // The program itself writes `false` until the question is answered.
        Value::Bool(false) if seed.over_false => *place = value.clone(),
        _ if is_new && seed.append => *place = Value::Array(vec![value.clone()]),
        _ if is_new => *place = value.clone(),
        _ => return false,
    }
    true
}

/// The lock that Claude Code uses for its file: a folder beside it.
struct ProgramsLock(PathBuf);

impl ProgramsLock {
    /// Takes the lock. Returns `None` if it is still held after [`LOCK_TIMEOUT`] or cannot be
    /// created.
    fn take(path: &Path) -> Option<Self> {
        let mut name = path.as_os_str().to_owned();
        name.push(".lock");
        let lock = PathBuf::from(name);
        let deadline = Instant::now() + LOCK_TIMEOUT;
        loop {
            match fs::create_dir(&lock) {
                Ok(()) => return Some(ProgramsLock(lock)),
                // If the folder of the file is missing, no other process writes there.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    files::make_dir(path.parent()?).ok()?;
                }
                Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return None,
                Err(_) if Instant::now() >= deadline => return None,
                Err(_) => {}
            }
            let modified = fs::metadata(&lock).and_then(|meta| meta.modified());
            let age = modified
                .ok()
                .and_then(|at| Clock::default().system_time().duration_since(at).ok());
            if age.is_some_and(|age| age > STALE) {
                // Another process may have removed it.
                let _ = fs::remove_dir(&lock);
            } else {
                // Polls: it would need a file watcher to see the removal of the folder.
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
}

impl Drop for ProgramsLock {
    fn drop(&mut self) {
        // If this fails, other processes treat the lock as stale after a while.
        let _ = fs::remove_dir(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn seeds() -> Vec<Seed> {
        #[derive(serde::Deserialize)]
        struct Rows {
            seeds: Vec<Seed>,
        }
        let rows: Rows = toml::from_str(
            r#"
            [[seeds]]
            file = "a.json"
            path = ["projects", "{folder}", "trusted"]
            value = true
            over_false = true
            [[seeds]]
            file = "a.json"
            path = ["keys", "approved"]
            value = { last = 4 }
            append = true
            unless_in = ["keys", "rejected"]
            when_env = ["KEY"]
            [[seeds]]
            file = "a.json"
            path = ["bypass"]
            value = true
            when_never_asks = true
            "#,
        )
        .unwrap();
        rows.seeds
    }

    fn write_on(before: Option<&str>, key: &str, never_asks: bool) -> (String, Vec<String>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        if let Some(before) = before {
            fs::write(&path, before).unwrap();
        }
        let env = BTreeMap::from([("KEY".to_owned(), key.to_owned())]);
        let facts = OnboardingFacts {
            root: folder.path(),
            work_dir: "/w.d",
            never_asks,
            env: &env,
            given: &BTreeSet::new(),
        };
        let problems = write_answers(&seeds(), &facts);
        assert!(!folder.path().join("a.json.lock").exists());
        (fs::read_to_string(&path).unwrap_or_default(), problems)
    }

    #[track_caller]
    fn check(before: Option<Value>, key: &str, never_asks: bool, expected: &Value) {
        let before = before.map(|before| before.to_string());
        let (after, problems) = write_on(before.as_deref(), key, never_asks);
        assert!(problems.is_empty());
        assert_eq!(serde_json::from_str::<Value>(&after).unwrap(), *expected);
    }

    #[test]
    fn missing_values_are_added_and_existing_values_stay() {
        let trusted = json!({"/w.d": {"trusted": true}});
        check(None, "", false, &json!({"projects": trusted}));
        check(
            Some(json!({"theme": "dark", "projects": {"/other": {"trusted": false}}})),
            "sk-1234",
            true,
            &json!({
                "theme": "dark",
                "projects": {"/other": {"trusted": false}, "/w.d": {"trusted": true}},
                "keys": {"approved": ["1234"]},
                "bypass": true,
            }),
        );
        // The user's own answers always stay.
        check(
            Some(json!({"keys": {"approved": ["9"], "rejected": ["1234"]}, "bypass": false})),
            "sk-1234",
            true,
            &json!({"keys": {"approved": ["9"], "rejected": ["1234"]}, "bypass": false, "projects": trusted}),
        );
        check(
            Some(json!({"projects": {"/w.d": {"trusted": false}}, "keys": {"approved": ["9"]}})),
            "sk-1234",
            false,
            &json!({"projects": trusted, "keys": {"approved": ["9", "1234"]}}),
        );
    }

    #[test]
    fn a_file_that_is_in_order_or_no_json_is_not_touched() {
        let whole = r#"{"projects":{"/w.d":{"trusted":true}}}"#;
        assert_eq!(write_on(Some(whole), "", false).0, whole);
        let (after, problems) = write_on(Some("// mine\n{}"), "", false);
        assert_eq!(after, "// mine\n{}");
        assert!(problems[0].contains("was not changed"), "{problems:?}");
        assert_eq!(write_on(Some("[1]"), "", false).0, "[1]");
    }

    #[test]
    fn a_link_to_a_file_elsewhere_stays_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real"), folder.path().join("a.json"));
        fs::write(&real, "{}").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let facts = OnboardingFacts {
            root: folder.path(),
            work_dir: "/w",
            never_asks: false,
            env: &BTreeMap::new(),
            given: &BTreeSet::new(),
        };
        assert!(write_answers(&seeds(), &facts).is_empty());
        assert!(link.is_symlink());
        assert!(fs::read_to_string(&real).unwrap().contains("trusted"));
    }
}

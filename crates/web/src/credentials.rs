//! Tokens, devices and login links: one file, readable only by its owner, with hashes of secrets.
//!
//! Every process that needs it reads the file; changes are made under a lock.

use getrandom::fill;
use gt_core::Problem;
use gt_core::operation::AccessScope;
use gt_town::base::files;
use gt_town::base::lock::FileLock;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::time::Duration;
use subtle::ConstantTimeEq;

const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
/// Time in which the code of a login link is valid.
const LOGIN_LIFETIME: SignedDuration = SignedDuration::from_mins(5);
const DEVICE_LIFETIME: SignedDuration = SignedDuration::from_hours(24 * 30);
/// Maximum number of records of each kind.
const MAX_RECORDS: usize = 200;

/// The first part of a token, by which people and scanners recognise it.
const TOKEN_PREFIX: &str = "gt";

/// A token of a script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenRecord {
    pub id: String,
    pub name: String,
    pub scope: AccessScope,
    hash: String,
    #[serde(with = "timestamp_text")]
    pub created_at: Timestamp,
    #[serde(with = "timestamp_text")]
    pub expires_at: Timestamp,
}

/// A browser that was logged in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceRecord {
    pub id: String,
    pub name: String,
    pub scope: AccessScope,
    cookie_hash: String,
    key_hash: String,
    #[serde(with = "timestamp_text")]
    pub created_at: Timestamp,
    #[serde(with = "timestamp_text")]
    pub expires_at: Timestamp,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct LoginRecord {
    hash: String,
    scope: AccessScope,
    #[serde(with = "timestamp_text")]
    expires_at: Timestamp,
}

/// All tokens and devices.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AccessList {
    pub tokens: Vec<TokenRecord>,
    pub devices: Vec<DeviceRecord>,
    logins: Vec<LoginRecord>,
}

/// A new device: its secrets are known only to the browser.
#[derive(Clone, Debug)]
pub struct NewDevice {
    pub record: DeviceRecord,
    /// The value of the cookie.
    pub cookie: String,
    /// The key that each request sends in a header.
    pub key: String,
}

/// The file.
#[derive(Clone, Debug)]
pub struct AccessStore {
    path: PathBuf,
    lock: PathBuf,
}

impl AccessStore {
    pub fn in_town(root: &Path) -> Self {
        let folder = root.join(".runtime/web");
        AccessStore {
            path: folder.join("access.json"),
            lock: folder.join("access.lock"),
        }
    }

    /// Returns the records that have not expired.
    pub fn list(&self) -> Result<AccessList, Problem> {
        let text = files::read_if_there(&self.path)?;
        let mut list: AccessList = match text {
            None => AccessList::default(),
            Some(text) => serde_json::from_str(&text).map_err(|error| {
                Problem::failed(format!("{} cannot be read", self.path.display()))
                    .caused_by(error)
                    .hint("remove the file: all tokens and devices become invalid")
            })?,
        };
        let now = Timestamp::now();
        list.tokens.retain(|token| token.expires_at > now);
        list.devices.retain(|device| device.expires_at > now);
        list.logins.retain(|login| login.expires_at > now);
        Ok(list)
    }

    /// Creates a token. Returns its record, and the text that only its owner gets.
    pub fn create_token(
        &self,
        name: &str,
        scope: AccessScope,
        lifetime: SignedDuration,
    ) -> Result<(TokenRecord, String), Problem> {
        if name.trim().is_empty() || name.chars().any(char::is_control) || name.len() > 100 {
            return Err(
                Problem::usage(format!("{name:?} is not the name of a token"))
                    .hint("such as ci or phone"),
            );
        }
        let (id, secret) = (random_hex(8)?, random_hex(32)?);
        let now = Timestamp::now();
        let record = TokenRecord {
            id: id.clone(),
            name: name.to_owned(),
            scope,
            hash: hash(&secret),
            created_at: now,
            expires_at: now.saturating_add(lifetime).map_err(calendar)?,
        };
        self.change(|list| {
            if list.tokens.iter().any(|token| token.name == name) {
                return Err(
                    Problem::conflict(format!("there is a token {name:?} already"))
                        .hint(format!("`gt web token revoke {name}` removes it")),
                );
            }
            list.tokens.push(record.clone());
            Ok(())
        })?;
        Ok((record, format!("{TOKEN_PREFIX}_{id}_{secret}")))
    }

    /// Removes the tokens and devices with this name or id. Returns their names.
    pub fn revoke(&self, name: &str) -> Result<Vec<String>, Problem> {
        self.change(|list| {
            let mut removed = Vec::new();
            let mut is_kept = |id: &str, own: &str| {
                let is_it = id == name || own == name;
                if is_it {
                    removed.push(own.to_owned());
                }
                !is_it
            };
            list.tokens.retain(|token| is_kept(&token.id, &token.name));
            list.devices
                .retain(|device| is_kept(&device.id, &device.name));
            match removed.is_empty() {
                true => Err(
                    Problem::not_found(format!("there is no token or device {name:?}"))
                        .hint("`gt web token list` lists them"),
                ),
                false => Ok(removed),
            }
        })
    }

    /// Creates the code of a login link. It is valid once, for a few minutes.
    pub fn create_login(&self, scope: AccessScope) -> Result<String, Problem> {
        let code = random_hex(20)?;
        let expires_at = Timestamp::now().saturating_add(LOGIN_LIFETIME);
        let record = LoginRecord {
            hash: hash(&code),
            scope,
            expires_at: expires_at.map_err(calendar)?,
        };
        self.change(|list| {
            list.logins.push(record);
            Ok(())
        })?;
        Ok(code)
    }

    /// Exchanges the code of a login link for a device. `None` if the code is wrong, used or expired.
    pub(crate) fn redeem(&self, code: &str, name: &str) -> Result<Option<NewDevice>, Problem> {
        let hashed = hash(code);
        let is_it = |login: &LoginRecord| is_same(&login.hash, &hashed);
        // Wrong codes do not take the lock.
        if !self.list()?.logins.iter().any(is_it) {
            return Ok(None);
        }
        let (id, cookie, key) = (random_hex(8)?, random_hex(32)?, random_hex(32)?);
        let now = Timestamp::now();
        let expires_at = now.saturating_add(DEVICE_LIFETIME).map_err(calendar)?;
        let mut name: String = name.chars().filter(|c| !c.is_control()).take(100).collect();
        if name.trim().is_empty() {
            name = format!("device {id}");
        }
        let record = self.change(|list| {
            let Some(at) = list.logins.iter().position(is_it) else {
                return Ok(None);
            };
            let login = list.logins.swap_remove(at);
            let record = DeviceRecord {
                id: id.clone(),
                name,
                scope: login.scope,
                cookie_hash: hash(&cookie),
                key_hash: hash(&key),
                created_at: now,
                expires_at,
            };
            list.devices.push(record.clone());
            Ok(Some(record))
        })?;
        let cookie = format!("{id}.{cookie}");
        Ok(record.map(|record| NewDevice {
            record,
            cookie,
            key,
        }))
    }

    /// Returns the record of a token. `None` if it is not valid.
    pub(crate) fn token(&self, text: &str) -> Result<Option<TokenRecord>, Problem> {
        let mut parts = text.splitn(3, '_');
        let (Some(TOKEN_PREFIX), Some(id), Some(secret)) =
            (parts.next(), parts.next(), parts.next())
        else {
            return Ok(None);
        };
        let found = self.list()?.tokens.into_iter().find(|token| token.id == id);
        Ok(found.filter(|token| is_same(&token.hash, &hash(secret))))
    }

    /// Returns the record of the device with this cookie and key. `None` unless both are valid.
    pub(crate) fn device(&self, cookie: &str, key: &str) -> Result<Option<DeviceRecord>, Problem> {
        let Some((id, secret)) = cookie.split_once('.') else {
            return Ok(None);
        };
        let devices = self.list()?.devices;
        let found = devices.into_iter().find(|device| device.id == id);
        Ok(found.filter(|device| {
            is_same(&device.cookie_hash, &hash(secret)) & is_same(&device.key_hash, &hash(key))
        }))
    }

    /// Returns whether a token or device still exists.
    pub(crate) fn has(&self, id: &str) -> Result<bool, Problem> {
        let list = self.list()?;
        Ok(list.tokens.iter().any(|token| token.id == id)
            || list.devices.iter().any(|device| device.id == id))
    }

    fn change<T>(
        &self,
        change: impl FnOnce(&mut AccessList) -> Result<T, Problem>,
    ) -> Result<T, Problem> {
        if let Some(folder) = self.path.parent() {
            files::make_dir(folder)?;
        }
        let _lock = FileLock::take(&self.lock, LOCK_TIMEOUT)?;
        let mut list = self.list()?;
        let changed = change(&mut list)?;
        let is_full = [list.tokens.len(), list.devices.len(), list.logins.len()]
            .iter()
            .any(|count| *count > MAX_RECORDS);
        if is_full {
            return Err(Problem::conflict(format!(
                "there are {MAX_RECORDS} tokens, devices or login links already"
            ))
            .hint("`gt web token revoke NAME` removes one"));
        }
        let text = serde_json::to_vec(&list)
            .map_err(|error| Problem::failed("cannot write the tokens").caused_by(error))?;
        files::write_whole(&self.path, &text)?;
        Ok(changed)
    }
}

fn calendar(error: jiff::Error) -> Problem {
    Problem::usage("the time of expiry is beyond the calendar").caused_by(error)
}

/// Times in RFC 3339.
mod timestamp_text {
    use jiff::Timestamp;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(at: &Timestamp, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(at)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Timestamp, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(D::Error::custom)
    }
}

/// Returns random bytes in hexadecimal.
pub(crate) fn random_hex(bytes: usize) -> Result<String, Problem> {
    let mut random = vec![0; bytes];
    fill(&mut random).map_err(|error| {
        Problem::environment("the system has no random numbers").cause(error.to_string())
    })?;
    Ok(hex(&random))
}

/// Returns the SHA-256 of a text in hexadecimal.
pub(crate) fn hash(text: &str) -> String {
    hex(&Sha256::digest(text))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Compares two hashes in constant time.
fn is_same(one: &str, other: &str) -> bool {
    one.as_bytes().ct_eq(other.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    const HOUR: SignedDuration = SignedDuration::from_hours(1);

    #[test]
    fn token_is_valid_until_it_expires_or_is_revoked() {
        let folder = tempfile::tempdir().unwrap();
        let store = AccessStore::in_town(folder.path());
        let (record, text) = store.create_token("ci", AccessScope::Read, HOUR).unwrap();
        assert_eq!(store.token(&text).unwrap(), Some(record.clone()));
        for wrong in [
            &text[..text.len() - 1],
            "gt",
            "",
            "gt__",
            &format!("{text}0"),
        ] {
            assert_eq!(store.token(wrong).unwrap(), None, "{wrong}");
        }
        let problem = store
            .create_token("ci", AccessScope::Read, HOUR)
            .unwrap_err();
        assert!(problem.message().contains("already"), "{problem}");
        assert_eq!(store.revoke("ci").unwrap(), ["ci"]);
        assert_eq!(store.token(&text).unwrap(), None);
        let (_, old) = store
            .create_token("old", AccessScope::Read, SignedDuration::ZERO)
            .unwrap();
        assert_eq!(store.token(&old).unwrap(), None);
    }

    #[test]
    fn file_is_private_and_has_no_secret() {
        let folder = tempfile::tempdir().unwrap();
        let store = AccessStore::in_town(folder.path());
        let (_, text) = store.create_token("ci", AccessScope::Read, HOUR).unwrap();
        let secret = text.rsplit('_').next().unwrap();
        let code = store.create_login(AccessScope::Admin).unwrap();
        let path = folder.path().join(".runtime/web/access.json");
        let file = std::fs::read_to_string(&path).unwrap();
        assert!(!file.contains(secret) && !file.contains(&code), "{file}");
        let mode = path.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn login_code_is_valid_once_and_a_device_needs_cookie_and_key() {
        let folder = tempfile::tempdir().unwrap();
        let store = AccessStore::in_town(folder.path());
        let code = store.create_login(AccessScope::Work).unwrap();
        assert!(store.redeem("0000", "phone").unwrap().is_none());
        let device = store.redeem(&code, "phone").unwrap().unwrap();
        assert_eq!(device.record.scope, AccessScope::Work);
        assert!(store.redeem(&code, "phone").unwrap().is_none());
        let found = store.device(&device.cookie, &device.key).unwrap();
        assert_eq!(found, Some(device.record.clone()));
        assert_eq!(store.device(&device.cookie, "").unwrap(), None);
        assert_eq!(store.device(&device.cookie, &code).unwrap(), None);
        let other = format!("{}.{}", device.record.id, device.key);
        assert_eq!(store.device(&other, &device.key).unwrap(), None);
        store.revoke(&device.record.id).unwrap();
        assert_eq!(store.device(&device.cookie, &device.key).unwrap(), None);
    }
}

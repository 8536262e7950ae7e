//! Idempotency keys: a repeated request gets the answer of the first one, also after a restart.
//!
//! One file per key. It is written before the operation runs, so that a request whose daemon was
//! killed is not carried out again: its outcome is unknown, and the client is told so.

use crate::credentials::hash;
use crate::failure::ApiFailure;
use axum::http::StatusCode;
use gt_core::Problem;
use gt_town::base::files;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::HashSet;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

/// Time for which answers are kept.
const LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);
const LONGEST_KEY: usize = 200;

/// The files of a town.
#[derive(Debug)]
pub(crate) struct StoredRequests {
    folder: PathBuf,
    /// The requests that this process carries out now.
    running: Mutex<HashSet<String>>,
}

/// A request as its file holds it.
#[derive(Debug, Serialize, Deserialize)]
struct StoredRequest {
    /// A hash of the request.
    request: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answer: Option<StoredAnswer>,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct StoredAnswer {
    pub(crate) status: u16,
    pub(crate) document: Value,
}

/// Treatment of a request that has a key.
#[derive(Debug)]
pub(crate) enum KeyedRequest {
    /// It is carried out, and its answer is stored under this name.
    New(String),
    Repeated(StoredAnswer),
}

impl StoredRequests {
    /// Opens the folder, and removes answers that are too old.
    pub(crate) fn in_town(root: &Path) -> Result<Self, Problem> {
        let folder = root.join(".runtime/web/requests");
        files::make_dir(&folder)?;
        let requests = StoredRequests {
            folder,
            running: Mutex::default(),
        };
        requests.prune(SystemTime::now());
        Ok(requests)
    }

    /// Begins a request with this key of this caller.
    pub(crate) fn begin(
        &self,
        caller: &str,
        key: &str,
        request: &str,
    ) -> Result<KeyedRequest, ApiFailure> {
        if key.is_empty() || key.len() > LONGEST_KEY {
            return Err(Problem::usage(format!(
                "an idempotency key has 1 to {LONGEST_KEY} characters"
            ))
            .into());
        }
        let name = hash(&format!("{caller}\n{key}"));
        let request = hash(request);
        let path = self.folder.join(&name);
        let cannot = |error| files::io_problem("write", &path, &error);
        let mut running = lock(&self.running);
        let mut options = File::options();
        match options.write(true).create_new(true).mode(0o600).open(&path) {
            Ok(mut file) => {
                let text = stored(&request, None)?;
                file.write_all(&text)
                    .and_then(|()| file.sync_all())
                    .map_err(cannot)?;
                running.insert(name.clone());
                return Ok(KeyedRequest::New(name));
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(cannot(error).into()),
        }
        if running.contains(&name) {
            return Err(Problem::conflict("the request with this key is still running").into());
        }
        let text = files::read_if_there(&path)?.unwrap_or_default();
        let unknown = || {
            let problem = Problem::conflict(
                "the outcome of the request with this key is unknown: the daemon was killed",
            );
            ApiFailure::from(problem.hint("read the present state, then use another key"))
        };
        let before: StoredRequest = serde_json::from_str(&text).map_err(|_| unknown())?;
        if before.request != request {
            let problem = Problem::usage("another request had this idempotency key");
            return Err(ApiFailure::new(StatusCode::UNPROCESSABLE_ENTITY, problem));
        }
        before
            .answer
            .map(KeyedRequest::Repeated)
            .ok_or_else(unknown)
    }

    /// Stores the answer to a request.
    pub(crate) fn finish(&self, name: &str, request: &str, answer: &StoredAnswer) {
        let write = || -> Result<(), Problem> {
            let text = stored(&hash(request), Some(answer.clone()))?;
            files::write_whole(&self.folder.join(name), &text)
        };
        if let Err(problem) = write() {
            tracing::warn!("an answer is not stored: {}", problem.line());
        }
        lock(&self.running).remove(name);
    }

    /// Removes answers that are too old.
    pub(crate) fn prune(&self, now: SystemTime) {
        for entry in files::entries(&self.folder) {
            let modified = entry.metadata().and_then(|meta| meta.modified());
            let age = modified.map(|at| now.duration_since(at).unwrap_or_default());
            if age.is_ok_and(|age| age > LIFETIME) {
                // The next prune retries.
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }
}

fn stored(request: &str, answer: Option<StoredAnswer>) -> Result<Vec<u8>, Problem> {
    let stored = StoredRequest {
        request: request.to_owned(),
        answer,
    };
    serde_json::to_vec(&stored)
        .map_err(|error| Problem::failed("cannot store an answer").caused_by(error))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn begin(requests: &StoredRequests, request: &str) -> Result<KeyedRequest, u16> {
        let begun = requests.begin("token ci", "key-1", request);
        begun.map_err(|failure| failure.status.as_u16())
    }

    #[test]
    fn answer_is_repeated_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let requests = StoredRequests::in_town(folder.path()).unwrap();
        let Ok(KeyedRequest::New(name)) = begin(&requests, "a") else {
            panic!("it is new")
        };
        assert_eq!(begin(&requests, "a").unwrap_err(), 409, "it is running");
        let answer = StoredAnswer {
            status: 200,
            document: json!({"id": 1}),
        };
        requests.finish(&name, "a", &answer);
        let restarted = StoredRequests::in_town(folder.path()).unwrap();
        let Ok(KeyedRequest::Repeated(found)) = begin(&restarted, "a") else {
            panic!("it was answered")
        };
        assert_eq!(found, answer);
        assert_eq!(begin(&restarted, "b").unwrap_err(), 422);
        let other = restarted.begin("token other", "key-1", "b").unwrap();
        assert!(
            matches!(other, KeyedRequest::New(_)),
            "keys belong to a caller"
        );
    }

    #[test]
    fn request_of_a_killed_daemon_is_not_repeated() {
        let folder = tempfile::tempdir().unwrap();
        let requests = StoredRequests::in_town(folder.path()).unwrap();
        begin(&requests, "a").unwrap();
        let restarted = StoredRequests::in_town(folder.path()).unwrap();
        let failure = restarted.begin("token ci", "key-1", "a").unwrap_err();
        assert_eq!(failure.status, 409);
        assert!(failure.problem.message().contains("unknown"));
        restarted.prune(SystemTime::now() + LIFETIME * 2);
        begin(&restarted, "a").unwrap();
    }
}

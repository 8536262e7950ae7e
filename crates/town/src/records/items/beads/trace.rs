//! Fingerprint of the files of a `.beads` folder: if it is unchanged, the items are unchanged.

use sha2::{Digest, Sha256};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::SystemTime;

/// Maximum number of files that are read. Beyond it, only changes of this part, or of the number of
/// files, are noticed.
const MAX: usize = 5_000;
const DEEPEST: usize = 8;
/// Time in seconds for which the answer of a remote server is cached, because its changes leave no
/// trace in the folder.
const SECONDS: u64 = 30;

/// Returns whether a file changes on mere reads, or contains no items.
fn is_noise(name: &str) -> bool {
    const ENDS: [&str; 7] = ["lock", "-shm", ".log", ".pid", ".sock", ".tmp", ".port"];
    let lower = name.to_ascii_lowercase();
    ENDS.iter().any(|end| lower.ends_with(end))
        || matches!(lower.as_str(), "last-touched" | "backup" | ".br_history")
}

/// Returns a short hash of the sizes and times of all files that may contain items.
pub(super) fn of(folder: &Path) -> String {
    let mut hash = Sha256::new();
    let mut left = MAX;
    add(folder, DEEPEST, &mut left, &mut hash);
    if is_elsewhere(folder) {
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        hash.update((now.as_secs() / SECONDS).to_le_bytes());
    }
    let short = &hash.finalize()[..12];
    short.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn add(folder: &Path, depth: usize, left: &mut usize, hash: &mut Sha256) {
    // A folder that cannot be read has no changes: reading the items reports the failure.
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    let mut entries: Vec<_> = entries.flatten().collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    hash.update(entries.len().to_le_bytes());
    for entry in entries {
        let name = entry.file_name();
        if *left == 0 || is_noise(&name.to_string_lossy()) {
            continue;
        }
        *left -= 1;
        let Ok(data) = entry.metadata() else {
            continue;
        };
        if data.is_dir() {
            if depth > 0 {
                add(&entry.path(), depth - 1, left, hash);
            }
            continue;
        }
        hash.update(name.as_encoded_bytes());
        for number in [
            data.len() as i64,
            data.mtime(),
            data.mtime_nsec(),
            data.ino() as i64,
        ] {
            hash.update(number.to_le_bytes());
        }
    }
}

/// Returns whether the items are stored on a server that others use too.
fn is_elsewhere(folder: &Path) -> bool {
    // Without the file the items are in the folder.
    let text = fs::read_to_string(folder.join("metadata.json")).unwrap_or_default();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    value["dolt_mode"] == "server"
}

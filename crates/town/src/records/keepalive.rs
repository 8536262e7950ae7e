//! Keepalives: every `gt` command of an agent leaves a timestamp.
//!
//! `<town>/.runtime/keepalive/<address>.json` is one small file per agent. It is written on a
//! best-effort basis: no command waits for it or fails because of it.

use crate::Town;
use crate::base::clock::Clock;
use crate::base::files;
use crate::base::or_log::OrLog;
use gt_core::Identity;
use gt_core::keepalive::{Keepalive, age_seconds};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Minimum interval between two writes: hooks may run many times a second.
const FRESH: Duration = Duration::from_secs(1);

/// Records that the agent with this address has just run that command.
pub fn touch(root: &Path, address: &str, command: &str, clock: &Clock) {
    let runtime = root.join(".runtime");
    let path = path(&runtime, address);
    let is_fresh = path
        .metadata()
        .and_then(|meta| meta.modified())
        .is_ok_and(|at| at.elapsed().is_ok_and(|age| age < FRESH));
    // A variable that names no town must not create one.
    if is_fresh || !runtime.is_dir() {
        return;
    }
    let sign = Keepalive {
        last_command: command.to_owned(),
        timestamp: clock.text(),
    };
    if let Ok(text) = serde_json::to_vec(&sign) {
        files::write_passing(&path, &text).or_warn("no keepalive");
    }
}

/// Returns the last keepalive of an agent, or `None` if it is missing or unreadable.
pub fn read(town: &Town, identity: &Identity) -> Option<Keepalive> {
    let path = path(&town.runtime_dir(), &identity.address());
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

/// Returns the seconds since the keepalive; `None` if its time cannot be read.
pub fn age(sign: &Keepalive, now: i64) -> Option<i64> {
    let at: jiff::Timestamp = sign.timestamp.parse().ok()?;
    Some(age_seconds(at.as_second(), now))
}

fn path(runtime: &Path, address: &str) -> PathBuf {
    let name = address.replace('/', ".");
    runtime.join("keepalive").join(format!("{name}.json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_is_left_where_there_is_a_town() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        touch(root, "gastown/crew/max", "gt hook", &Clock::default());
        assert!(!root.join(".runtime").exists(), "it makes none");
        std::fs::create_dir(root.join(".runtime")).unwrap();
        touch(root, "gastown/crew/max", "gt hook", &Clock::default());
        touch(root, "gastown/crew/max", "gt mail", &Clock::default());
        let path = root.join(".runtime/keepalive/gastown.crew.max.json");
        let sign: Keepalive = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        assert_eq!(sign.last_command, "gt hook", "a fresh one will do");
        let now = jiff::Timestamp::now().as_second();
        assert!(age(&sign, now).unwrap() <= 1);
        let earlier = std::time::SystemTime::now() - Duration::from_secs(5);
        let file = std::fs::File::options().append(true).open(&path).unwrap();
        file.set_modified(earlier).unwrap();
        touch(root, "gastown/crew/max", "gt mail", &Clock::default());
        let sign: Keepalive = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        assert_eq!(sign.last_command, "gt mail");
        let broken = Keepalive {
            timestamp: "soon".into(),
            ..sign
        };
        assert_eq!(age(&broken, now), None);
    }

    #[test]
    fn an_address_from_outside_stays_in_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("town");
        std::fs::create_dir_all(root.join(".runtime")).unwrap();
        touch(&root, "../../../x", "gt hook", &Clock::default());
        assert!(root.join(".runtime/keepalive/.........x.json").exists());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}

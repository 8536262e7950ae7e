//! No secret is in any argv or in a file that other users can read.

use crate::env::TestEnv;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

const SECRET: &str = "sk-very-secret-0123456789";

#[test]
fn a_secret_never_shows_in_a_command_line_or_an_open_file() {
    let mut env = TestEnv::with_crew(&["a", "b", "c", "d"]);
    fs::write(
        env.town().join("harnesses/demo.toml"),
        "[env]\npass = ['MY_API_KEY']\n",
    )
    .unwrap();
    env.set("MY_API_KEY", SECRET);
    env.set("OTHER_KEY", SECRET);
    let done = AtomicBool::new(false);
    let samples = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut seen = Vec::new();
            while !done.load(Ordering::Relaxed) {
                seen.extend(command_lines().filter(|line| line.contains(SECRET)));
                samples.fetch_add(1, Ordering::Relaxed);
            }
            seen
        });
        for _ in 0..5 {
            env.gt(&["crew", "start", "--all", "--env", "OTHER_KEY"])
                .ok();
            let pid = env.pid("gastown/crew/a");
            let environ = fs::read(format!("/proc/{pid}/environ")).unwrap();
            let environ = String::from_utf8_lossy(&environ).into_owned();
            assert_eq!(environ.matches(SECRET).count(), 2, "it did reach the agent");
            env.gt(&["crew", "restart", "b", "--env", "OTHER_KEY"]).ok();
            env.gt(&["crew", "stop", "--all"]).ok();
        }
        done.store(true, Ordering::Relaxed);
        assert_eq!(watcher.join().unwrap(), Vec::<String>::new());
    });
    assert!(
        samples.load(Ordering::Relaxed) > 20,
        "the watcher looked often enough"
    );
    let mut leaks = Vec::new();
    find_leaks(env.home(), &mut leaks);
    assert_eq!(leaks, Vec::<String>::new());
}

fn command_lines() -> impl Iterator<Item = String> {
    fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| {
            entry.file_name().to_str()?.parse::<u32>().ok()?;
            let line = fs::read(entry.path().join("cmdline")).ok()?;
            Some(String::from_utf8_lossy(&line).into_owned())
        })
}

/// Collects files with the secret that other users can read, regardless of the modes of their
/// folders.
fn find_leaks(dir: &Path, leaks: &mut Vec<String>) {
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        if kind.is_dir() {
            find_leaks(&path, leaks);
        } else if kind.is_file() {
            let text = fs::read(&path).unwrap_or_default();
            let holds = text
                .windows(SECRET.len())
                .any(|window| window == SECRET.as_bytes());
            // The file may be gone already, such as a temporary file of SQLite.
            let mode = path.metadata().map(|found| found.permissions().mode());
            if holds && mode.is_ok_and(|mode| mode & 0o077 != 0) {
                leaks.push(path.display().to_string());
            }
        }
    }
}

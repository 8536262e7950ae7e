//! External programs that gt runs and does not require.

use std::fs::OpenOptions;
use std::io::Write;
use std::process::{Command, Stdio};

/// Python for which the system's packages install modules.
pub(crate) const SYSTEM_PYTHON: &str = "/usr/bin/python3";

/// Reports whether all programs are installed, under their names in `scripts/need.sh`. If one is
/// missing, the test is skipped; with `CI` set that is an error.
#[track_caller]
pub(crate) fn are_there(test: &str, programs: &[&str]) -> bool {
    let missing = programs.iter().filter(|program| !is_there(program));
    let missing: Vec<&&str> = missing.collect();
    if missing.is_empty() {
        return true;
    }
    let why = format!("{test}: not installed: {missing:?} (make test)");
    assert!(std::env::var_os("CI").is_none(), "{why}");
    skip(&why);
    false
}

/// Reports the current test as skipped, with the reason. Test runners hide the output of passing
/// tests, so it also appends a line to the file in `GT_TEST_SKIPPED`, which `make test` shows and
/// counts.
#[expect(clippy::print_stdout, reason = "what was skipped must be seen")]
pub(crate) fn skip(why: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or_default();
    let line = format!("{test}: skipped, {}\n", why.trim().replace('\n', "; "));
    print!("{line}");
    if let Some(path) = std::env::var_os("GT_TEST_SKIPPED") {
        let file = OpenOptions::new().append(true).create(true).open(path);
        file.and_then(|mut file| file.write_all(line.as_bytes()))
            .unwrap();
    }
}

fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap();
    match program.strip_prefix("python3-") {
        Some(module) => imports(module),
        None => std::env::split_paths(&path).any(|dir| dir.join(program).is_file()),
    }
}

fn imports(module: &str) -> bool {
    let mut python = Command::new(SYSTEM_PYTHON);
    python
        .args(["-c", &format!("import {module}")])
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    python.status().is_ok_and(|status| status.success())
}

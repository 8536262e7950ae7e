//! Tells the program the commit that it is built from, for `gt --version`.
//!
//! Only release builds ask git: a debug build would otherwise be compiled again after every commit.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is_release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let commit = is_release.then(commit).flatten();
    let build = commit.map_or_else(String::new, |commit| format!(" ({commit})"));
    println!("cargo::rustc-env=GT_BUILD={build}");
}

/// Returns the abbreviated commit and its date; `None` without git or outside a checkout.
fn commit() -> Option<String> {
    for file in ["HEAD", "logs/HEAD"] {
        let path = git(&["rev-parse", "--git-path", file])?;
        println!("cargo::rerun-if-changed={path}");
    }
    git(&["show", "--no-patch", "--format=%h %cs", "HEAD"])
}

fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

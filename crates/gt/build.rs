//! Tells the program the commit that it is built from, for `gt --version`, and links the unwinder
//! statically.
//!
//! Only release builds do so: a debug build would otherwise be compiled again after every commit.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is_release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let commit = is_release.then(commit).flatten();
    let build = commit.map_or_else(String::new, |commit| format!(" ({commit})"));
    println!("cargo::rustc-env=GT_BUILD={build}");
    if is_release && has_static_unwinder() {
        // Hooks call `gt` constantly, and the dynamic linker takes 0.1 ms to load libgcc_s. A
        // linker that cannot do this, such as GNU ld, loads libgcc_s as before.
        println!("cargo::rustc-link-lib=static:-bundle=gcc_eh");
    }
}

/// Returns whether this build is for this system's own glibc, and its C compiler has the unwinder as
/// an archive.
fn has_static_unwinder() -> bool {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let is_native = variable("TARGET") == variable("HOST");
    if !is_native || !variable("TARGET").ends_with("-linux-gnu") {
        return false;
    }
    // The compiler prints the bare name of a file that it does not have.
    let mut cc = Command::new("cc");
    let output = cc.arg("-print-file-name=libgcc_eh.a").output();
    output.is_ok_and(|output| output.stdout.starts_with(b"/"))
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

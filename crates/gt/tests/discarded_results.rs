//! Checks that every discarded result (`let _ = …`) has its reason in a comment.
//!
//! A failure that a person could need is returned or logged instead (`base/log.rs`).

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::fs;
use std::path::{Path, PathBuf};

fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
}

/// Returns the numbers of the lines that discard a result without a reason: a comment on the same
/// line, on the line before, or before a run of such lines. Writing to a string cannot fail.
fn unexplained(text: &str) -> Vec<usize> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let mut found = Vec::new();
    let mut is_explained = false;
    for (at, line) in lines.iter().enumerate() {
        // The tests of a file are at its end.
        if *line == "#[cfg(test)]" {
            break;
        }
        let Some(rest) = line.strip_prefix("let _ = ") else {
            is_explained = line.starts_with("//");
            continue;
        };
        let has_own = line.contains(" // ");
        let next = lines.get(at + 1).copied().unwrap_or_default();
        if !is_explained && !has_own && !writes_to_a_string(rest, next) {
            found.push(at + 1);
        }
    }
    found
}

fn writes_to_a_string(rest: &str, next: &str) -> bool {
    let words = rest
        .strip_prefix("writeln!(")
        .or(rest.strip_prefix("write!("));
    let target = match words {
        Some("") => next,
        Some(words) => words,
        None => return false,
    };
    !target.starts_with("std::io::") && !target.starts_with("io::")
}

#[test]
fn discarded_results_have_a_reason() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = Vec::new();
    for name in ["board", "core", "gt", "tmux", "town"] {
        sources(&crates.join(name).join("src"), &mut files);
    }
    let mut findings = Vec::new();
    for file in files {
        for line in unexplained(&fs::read_to_string(&file).unwrap()) {
            findings.push(format!("{}:{line}", file.display()));
        }
    }
    assert!(
        findings.is_empty(),
        "say why the result is discarded, or return or log it:\n{}",
        findings.join("\n")
    );
}

#[test]
fn only_lines_without_a_reason_are_found() {
    let text = "\
let _ = one();
// Two may be gone.
let _ = two();
let _ = three();
four();
let _ = five(); // It may be gone.
let _ = write!(text, \"six\");
let _ = writeln!(
    std::io::stderr(),
);
#[cfg(test)]
let _ = seven();
";
    assert_eq!(unexplained(text), [1, 8]);
}

//! Checks comments for the words and beginnings that CONTRIBUTING.md rules out.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::fs;
use std::path::{Path, PathBuf};

/// Pronouns that hide the actor. A comment names the caller, the process or the agent.
const VAGUE: &[&str] = &["nobody", "somebody", "whoever"];

/// Beginnings that state no subject and no verb.
const BEGINNINGS: &[&str] = &["The same", "What"];

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

/// Returns the text of a line that holds only a comment, and whether it documents an item.
fn comment(line: &str) -> Option<(&str, bool)> {
    let text = line.trim_start().strip_prefix("//")?;
    let documentation = text.strip_prefix('/').or_else(|| text.strip_prefix('!'));
    Some((
        documentation.unwrap_or(text).trim(),
        documentation.is_some(),
    ))
}

fn begins_with(text: &str, beginning: &str) -> bool {
    let rest = text.strip_prefix(beginning);
    rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_alphanumeric()))
}

#[test]
fn comments_name_their_subject() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = Vec::new();
    sources(crates, &mut files);
    let mut findings = Vec::new();
    for file in files {
        let mut is_first = true;
        for (line, number) in fs::read_to_string(&file).unwrap().lines().zip(1..) {
            let Some((text, documents)) = comment(line) else {
                is_first = true;
                continue;
            };
            let mut words = text.split(|mail: char| !mail.is_alphabetic());
            let is_vague = words.any(|word| VAGUE.contains(&word.to_lowercase().as_str()));
            let begins = |beginning: &&str| begins_with(text, beginning);
            if is_vague || is_first && documents && BEGINNINGS.iter().any(begins) {
                findings.push(format!("{}:{number}: {text}", file.display()));
            }
            is_first = false;
        }
    }
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}

#[test]
fn comments_and_beginnings_are_recognised() {
    assert_eq!(comment("    /// What it is"), Some(("What it is", true)));
    assert_eq!(comment("// nobody"), Some(("nobody", false)));
    assert_eq!(comment("let url = \"http://x\";"), None);
    assert!(begins_with("What it is", "What"));
    assert!(!begins_with("Whatever is set", "What"));
}

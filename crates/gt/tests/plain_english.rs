//! Checks comments, texts and names for the words and beginnings that CONTRIBUTING.md rules out.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::fs;
use std::path::{Path, PathBuf};

/// Pronouns that hide the actor. A text names the caller, the process or the agent.
const VAGUE: &[&str] = &["nobody", "somebody", "anybody", "whoever"];

/// Beginnings that state no subject and no verb.
const BEGINNINGS: &[&str] = &["The same", "What"];

/// Texts of an earlier version, kept as it wrote them.
const FIXTURES: &str = "older_town";

fn root() -> PathBuf {
    let gt = Path::new(env!("CARGO_MANIFEST_DIR"));
    gt.ancestors().nth(2).unwrap().to_owned()
}

fn files(dir: &Path, ends: &[&str], found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() && !path.ends_with(FIXTURES) {
            files(&path, ends, found);
        } else if path
            .extension()
            .is_some_and(|end| ends.iter().any(|it| *it == end))
        {
            found.push(path);
        }
    }
}

/// Returns the text of a line that holds only a comment.
fn comment(line: &str) -> Option<&str> {
    let text = line.trim_start().strip_prefix("//")?;
    Some(text.trim_start_matches(['/', '!']).trim())
}

fn begins_with(text: &str, beginning: &str) -> bool {
    let rest = text.strip_prefix(beginning);
    rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_alphanumeric()))
}

/// Returns whether a text has a vague word that is not a part of an address, a path or a group.
fn is_vague(text: &str) -> bool {
    text.split_whitespace().any(|word| {
        let is_address = word.contains(['/', '@']);
        let mut parts = word.split(|c: char| !c.is_alphabetic());
        !is_address && parts.any(|part| VAGUE.contains(&part.to_lowercase().as_str()))
    })
}

/// Returns the string literals of a line that are sentences: a literal without a blank is a name.
fn sentences(line: &str) -> impl Iterator<Item = &str> {
    let literals = line.split('"').skip(1).step_by(2);
    literals.filter(|text| text.contains(' '))
}

/// Returns the name of the function that a line declares.
fn function(line: &str) -> Option<&str> {
    let (before, rest) = line.split_once("fn ")?;
    let is_declaration = before
        .trim()
        .split(' ')
        .all(|word| matches!(word, "" | "const" | "unsafe") || word.starts_with("pub"));
    is_declaration.then(|| rest.split(['(', '<']).next().unwrap_or_default())
}

#[test]
fn comments_name_their_subject() {
    let mut sources = Vec::new();
    files(&root().join("crates"), &["rs"], &mut sources);
    let mut findings = Vec::new();
    for file in sources {
        let mut is_first = true;
        for (line, number) in fs::read_to_string(&file).unwrap().lines().zip(1..) {
            let Some(text) = comment(line) else {
                is_first = true;
                continue;
            };
            let begins = |beginning: &&str| begins_with(text, beginning);
            if is_vague(text) || is_first && BEGINNINGS.iter().any(begins) {
                findings.push(format!("{}:{number}: {text}", file.display()));
            }
            is_first = false;
        }
    }
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}

#[test]
fn texts_and_names_name_their_subject() {
    let mut sources = Vec::new();
    files(&root().join("crates"), &["rs"], &mut sources);
    let mut findings = Vec::new();
    for file in sources {
        if file.ends_with("plain_english.rs") {
            continue;
        }
        for (line, number) in fs::read_to_string(&file).unwrap().lines().zip(1..) {
            let name = function(line).unwrap_or_default().replace('_', " ");
            if sentences(line).any(is_vague) || is_vague(&name) {
                findings.push(format!("{}:{number}: {}", file.display(), line.trim()));
            }
        }
    }
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}

#[test]
fn documents_and_tables_name_their_subject() {
    let mut documents = vec![root().join("README.md")];
    documents.extend(["ARCHITECTURE.md", "CONTRIBUTING.md"].map(|name| root().join(name)));
    files(&root().join("docs"), &["md"], &mut documents);
    files(
        &root().join("crates"),
        &["md", "toml", "js", "py"],
        &mut documents,
    );
    let mut findings = Vec::new();
    for file in documents {
        for (line, number) in fs::read_to_string(&file).unwrap().lines().zip(1..) {
            // CONTRIBUTING.md quotes the words that it rules out.
            if is_vague(line) && !line.contains("plain_english.rs") {
                findings.push(format!("{}:{number}: {line}", file.display()));
            }
        }
    }
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}

#[test]
fn comments_and_beginnings_are_recognised() {
    assert_eq!(comment("    /// What it is"), Some("What it is"));
    assert_eq!(comment("// nobody"), Some("nobody"));
    assert_eq!(comment("let url = \"http://x\";"), None);
    assert!(begins_with("What it is", "What"));
    assert!(!begins_with("Whatever is set", "What"));
}

#[test]
fn sentences_and_names_are_recognised() {
    let found: Vec<&str> = sentences(r#"check("nobody", "for whoever asks");"#).collect();
    assert_eq!(found, ["for whoever asks"]);
    assert!(is_vague("for Whoever asks"));
    assert!(!is_vague("no agent gastown/nobody, no group @nobody"));
    assert_eq!(function("    pub(crate) fn run<T>("), Some("run"));
    assert_eq!(function("fn(&str) -> bool"), None);
}

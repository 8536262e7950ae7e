//! Tests that docs/troubleshooting.md quotes messages that are in the code.
//!
//! The first cell of each row has the message as code, with `…` for variable parts. Rows that quote
//! another program name it in parentheses.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Appends the text of all Rust and TOML files below a folder.
fn read_sources(dir: &Path, text: &mut String) {
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            read_sources(&path, text);
        } else if path
            .extension()
            .is_some_and(|end| end == "rs" || end == "toml")
        {
            text.push_str(&fs::read_to_string(&path).unwrap());
        }
    }
}

/// Returns the sources of all crates, with continued string literals joined.
fn sources() -> String {
    let mut text = String::new();
    for entry in fs::read_dir(root().join("crates")).unwrap().flatten() {
        read_sources(&entry.path().join("src"), &mut text);
    }
    let mut lines = text.split("\\\n");
    let first = lines.next().unwrap_or_default().to_owned();
    lines.fold(first, |joined, line| joined + line.trim_start())
}

/// Returns the fixed parts of the messages that a row of the page quotes.
fn quoted_parts(row: &str) -> Vec<&str> {
    let cell = row
        .trim_start_matches("| ")
        .split(" | ")
        .next()
        .unwrap_or_default();
    if cell.contains("(git)") {
        return Vec::new();
    }
    let spans = cell.split('`').skip(1).step_by(2);
    spans
        .flat_map(|span| span.split('…'))
        .map(|part| part.trim_matches([' ', ':']))
        .filter(|part| part.len() > 4)
        .collect()
}

#[test]
fn troubleshooting_quotes_messages_of_the_code() {
    let page = fs::read_to_string(root().join("docs/troubleshooting.md")).unwrap();
    let sources = sources();
    let rows = page.lines().filter(|line| line.starts_with("| "));
    let parts: Vec<&str> = rows.flat_map(quoted_parts).collect();
    assert!(parts.len() > 40, "only {} messages were found", parts.len());
    let missing: Vec<&&str> = parts
        .iter()
        .filter(|part| !sources.contains(**part))
        .collect();
    assert!(
        missing.is_empty(),
        "docs/troubleshooting.md quotes messages that the code does not have: {missing:?}"
    );
}

#[test]
fn fixed_parts_of_a_row_are_found() {
    let row = "| `the harness … needs …, which is gone` (in `gt agents`) | why | `gt x` |";
    assert_eq!(
        quoted_parts(row),
        ["the harness", "needs", ", which is gone", "gt agents"]
    );
    assert!(quoted_parts("| `who are you` (git) | a | b |").is_empty());
}

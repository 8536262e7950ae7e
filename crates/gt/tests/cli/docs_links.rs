//! Tests that every relative link in README, ARCHITECTURE, CONTRIBUTING, CHANGELOG and docs/ leads
//! to a file, and every anchor to a heading, and that the book's table of contents lists every
//! page.
//!
//! Heading ids follow the rules of GitHub and mdBook, which agree for the headings used here.

use std::collections::HashMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Pages of docs/ that the table of contents does not list: the table itself.
const UNLISTED: &[&str] = &["SUMMARY.md"];

fn root() -> PathBuf {
    normalized(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
}

/// Resolves `.` and `..` without the file system.
fn normalized(path: &Path) -> PathBuf {
    let mut result = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                result.pop();
            }
            Component::CurDir => {}
            other => result.push(other),
        }
    }
    result
}

fn pages_below(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            pages_below(&path, found);
        } else if path.extension().is_some_and(|end| end == "md") {
            found.push(path);
        }
    }
}

fn pages() -> Vec<PathBuf> {
    let root = root();
    let mut found: Vec<PathBuf> = ["README", "ARCHITECTURE", "CONTRIBUTING", "CHANGELOG"]
        .iter()
        .map(|name| root.join(name).with_extension("md"))
        .collect();
    pages_below(&root.join("docs"), &mut found);
    found
}

/// Returns the lines outside fenced code, with their numbers.
fn prose(text: &str) -> Vec<(usize, &str)> {
    let mut in_fence = false;
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_fence = !in_fence;
        } else if !in_fence {
            lines.push((index + 1, line));
        }
    }
    lines
}

/// Returns the targets of the links and images of a line, in Markdown and HTML. Skips inline code.
fn targets(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    // A link's text may be code, so only a link that opens inside code is skipped.
    for (mark, end) in [
        ("](", ')'),
        ("src=\"", '"'),
        ("srcset=\"", '"'),
        ("href=\"", '"'),
    ] {
        for (at, _) in line.match_indices(mark) {
            let is_code = line[..at].matches('`').count() % 2 == 1;
            let rest = &line[at + mark.len()..];
            if let (false, Some(length)) = (is_code, rest.find(end)) {
                found.push(rest[..length].to_owned());
            }
        }
    }
    found
}

/// Returns the ids of the headings of a page.
fn anchors(text: &str) -> Vec<String> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut ids = Vec::new();
    for (_, line) in prose(text) {
        let title = line.trim_start_matches('#');
        let is_heading = title.len() < line.len() && title.starts_with(' ');
        if !is_heading {
            continue;
        }
        let id: String = title
            .trim()
            .to_lowercase()
            .chars()
            .filter(|c| c.is_alphanumeric() || " -_".contains(*c))
            .map(|c| if c == ' ' { '-' } else { c })
            .collect();
        let count = seen.entry(id.clone()).or_default();
        ids.push(match *count {
            0 => id,
            number => format!("{id}-{number}"),
        });
        *count += 1;
    }
    ids
}

/// Returns why a link of a page is broken, or `None`.
fn problem(page: &Path, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") || target.is_empty() {
        return None;
    }
    let (path, anchor) = match target.split_once('#') {
        Some((path, anchor)) => (path, Some(anchor)),
        None => (target, None),
    };
    let file = match path {
        "" => page.to_owned(),
        path => normalized(&page.parent().unwrap().join(path)),
    };
    if !file.exists() {
        return Some(format!("{target}: no such file"));
    }
    let anchor = anchor?;
    let is_there = anchors(&fs::read_to_string(&file).unwrap())
        .iter()
        .any(|id| id == anchor);
    (!is_there).then(|| format!("{target}: no such heading"))
}

#[test]
fn relative_links_lead_to_files_and_headings() {
    let mut checked = 0;
    let mut broken = Vec::new();
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for (number, line) in prose(&text) {
            for target in targets(line) {
                checked += 1;
                if let Some(problem) = problem(&page, &target) {
                    let place = page.strip_prefix(root()).unwrap().display();
                    broken.push(format!("{place}:{number}: {problem}"));
                }
            }
        }
    }
    assert!(checked > 200, "only {checked} links were found");
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn table_of_contents_lists_every_page() {
    let docs = root().join("docs");
    let summary = fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
    let listed: Vec<String> = summary.lines().flat_map(targets).collect();
    let mut pages = Vec::new();
    pages_below(&docs, &mut pages);
    let missing: Vec<String> = pages
        .iter()
        .map(|page| page.strip_prefix(&docs).unwrap().display().to_string())
        .filter(|page| !listed.contains(page) && !UNLISTED.contains(&page.as_str()))
        .collect();
    assert!(missing.is_empty(), "not in docs/SUMMARY.md: {missing:?}");
}

#[test]
fn broken_links_are_found() {
    let page = root().join("README.md");
    for target in [
        "docs/no-such-page.md",
        "docs/commands.md#no-such-heading",
        "#no-such",
    ] {
        assert!(problem(&page, target).is_some(), "{target}");
    }
    for target in [
        "https://example.org",
        "docs/commands.md",
        "docs/images/board.svg",
    ] {
        assert_eq!(problem(&page, target), None);
    }
    assert_eq!(
        anchors("# A `b` (c)\n```\n# no\n```\n## `gt x a|b`\n# A b c"),
        ["a-b-c", "gt-x-ab", "a-b-c-1"]
    );
    assert_eq!(targets("[`a`](b) and `[c](d)` <img src=\"e\">"), ["b", "e"]);
}

#[test]
fn tests_that_the_list_of_attacks_names_exist() {
    let list = fs::read_to_string(root().join("docs/attacks.md")).unwrap();
    let mut sources = String::new();
    let mut open = vec![root().join("crates")];
    while let Some(dir) = open.pop() {
        for path in fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().path())
        {
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                sources += &fs::read_to_string(path).unwrap();
            }
        }
    }
    let is_name = |word: &&str| {
        word.contains('_')
            && word
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte == b'_')
    };
    let names: Vec<&str> = list.split('`').filter(is_name).collect();
    assert!(names.len() > 50, "{names:?}");
    let is_missing = |name: &&&str| !sources.contains(&format!("fn {name}("));
    let missing: Vec<&&str> = names.iter().filter(is_missing).collect();
    assert_eq!(missing, Vec::<&&str>::new());
}

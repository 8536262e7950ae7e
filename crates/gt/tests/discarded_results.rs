//! Checks that every discarded failure (`let _ = …`, `.ok()`) has its reason in a comment, and that a
//! failed read or command does not silently become an answer (`.is_ok_and(…)`, `let Ok(…)`).
//!
//! A failure that a person could need is returned or logged instead (`base/or_log.rs`).

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::fs;
use std::path::{Path, PathBuf};

/// Conversions between values. Their failure means only that the value has another form.
const CONVERSIONS: &[&str] = &[
    ".parse()",
    ".parse::<",
    ".try_into()",
    ".into_string()",
    ".strip_prefix(",
    ".checked_",
    ".duration_since(",
    ".to_zoned(",
    "try_from(",
    "try_from_secs_f64(",
    "from_utf8(",
    "from_str_radix(",
    "from_second(",
    "from_millisecond(",
    "strptime(",
    ">::from_str(",
];

/// A folder that cannot be read must not silently become an empty one (`files::entries`).
const UNREAD_FOLDER: &str = ".flatten().flatten()";

/// Calls whose failure must not silently become an empty value.
const FALLIBLE: &[&str] = &["fs::read", "serde_json::", "toml::from_str(", ".run("];

/// Calls whose failure must not silently become an answer.
const ANSWERING: &[&str] = &[
    "fs::read",
    "files::read_if_there(",
    "File::open(",
    "serde_json::from_",
    "toml::from_str(",
    ".run(",
];

/// Expressions that turn a failure into an answer or skip it.
const ANSWERS: &[&str] = &[".is_ok_and(", "let Ok(", ".unwrap_or_else(|_|"];

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

/// Returns the numbers of the lines that discard a failure without a reason.
///
/// The reason is a comment on the same line, before the statement, or before a run of such
/// statements. A function that returns `None` for a failure may say so in its documentation instead.
/// Writing to a string cannot fail.
fn unexplained(text: &str) -> Vec<usize> {
    let lines = code_lines(text);
    let mut found = Vec::new();
    // Last line of the previous statement that had a reason.
    let mut explained = None;
    for (at, line) in lines.iter().enumerate() {
        if line.starts_with("//") {
            continue;
        }
        let start = statement_start(&lines, at);
        let statement = lines[start..=at].join(" ");
        if !discards(
            line,
            &statement,
            lines.get(at + 1).copied().unwrap_or_default(),
        ) {
            continue;
        }
        let before = start.checked_sub(1);
        let has_comment = before.is_some_and(|at| is_comment(lines[at]));
        let is_in_run = explained.is_some() && explained == before;
        let is_explained = has_comment || is_in_run || line.contains(" // ");
        if is_explained {
            explained = Some(at);
        } else if !is_documented(&lines, at) {
            found.push(at + 1);
        }
    }
    found
}

/// Returns the trimmed lines of a formatted source. Lines of items under `#[cfg(test)]` are empty.
fn code_lines(text: &str) -> Vec<&str> {
    let mut code = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.trim() != "#[cfg(test)]" {
            code.push(line.trim());
            continue;
        }
        // rustfmt puts the end of an item at the indentation of its first line.
        let indent = line.len() - line.trim_start().len();
        let mut is_begun = false;
        code.push("");
        for line in lines.by_ref() {
            code.push("");
            let is_attribute = line.trim_start().starts_with("#[");
            let is_end = line.get(indent..).is_some_and(|end| end.starts_with('}'));
            let is_whole = !is_begun && !is_attribute && line.ends_with([';', ',', '}']);
            if is_end || is_whole {
                break;
            }
            is_begun |= !is_attribute;
        }
    }
    code
}

/// Returns whether a line discards a failure that needs a reason.
fn discards(line: &str, statement: &str, next: &str) -> bool {
    let has_any = |words: &[&str]| words.iter().any(|word| statement.contains(word));
    if let Some(rest) = line.strip_prefix("let _ = ") {
        return !writes_to_a_string(rest, next);
    }
    let is_dropped = |end: &str| line.contains(end) && !line.contains(&format!(".next(){end}"));
    let is_folder = statement.replace(' ', "").contains(UNREAD_FOLDER);
    statement.contains("read_dir(") && is_folder && line.contains(".flatten()")
        || line.contains(".ok()") && !has_any(CONVERSIONS)
        || is_dropped(".unwrap_or_default()") && has_any(FALLIBLE)
        || ANSWERS.iter().any(|answer| line.contains(answer)) && has_any(ANSWERING)
}

fn is_comment(line: &str) -> bool {
    line.starts_with("//") && !line.starts_with("///")
}

/// Returns the first line of the statement or the arm to which a line belongs.
fn statement_start(lines: &[&str], at: usize) -> usize {
    let ends = |line: &str| {
        let code = line.split(" // ").next().unwrap_or_default();
        code.is_empty() || code.starts_with("//") || code.ends_with([';', '{', '}'])
    };
    let before = lines[..at].iter().rposition(|line| ends(line));
    before.map_or(0, |before| before + 1)
}

/// Returns whether the documentation of the function around a line says when it returns `None`.
fn is_documented(lines: &[&str], at: usize) -> bool {
    let is_head = |line: &&str| line.starts_with("fn ") || line.contains(" fn ");
    let Some(head) = lines[..at].iter().rposition(is_head) else {
        return false;
    };
    let above = lines[..head].iter().rev();
    let mut documentation =
        above.take_while(|line| line.starts_with("///") || line.starts_with("#["));
    documentation.any(|line| line.contains("`None`"))
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
    for name in ["board", "core", "daemon", "gt", "tmux", "town", "web"] {
        sources(&crates.join(name).join("src"), &mut files);
    }
    let mut findings = Vec::new();
    for file in files {
        let name = file.file_name().unwrap_or_default();
        let is_test = ["tests.rs", "testing.rs", "on_a_server.rs"]
            .iter()
            .any(|test| name == *test);
        if is_test || file.iter().any(|part| part == "tests") {
            continue;
        }
        for line in unexplained(&fs::read_to_string(&file).unwrap()) {
            findings.push(format!("{}:{line}", file.display()));
        }
    }
    assert!(
        findings.is_empty(),
        "say why the failure is discarded, or return or log it:\n{}",
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
mod tests;
let _ = seven();
impl A {
    #[cfg(test)]
    fn eight() {
        let _ = nine();
    }
    let _ = ten();
}
#[cfg(test)]
mod tests {
    let _ = eleven();
}
";
    assert_eq!(unexplained(text), [1, 8, 13, 19]);
}

#[test]
fn failures_that_become_nothing_are_found() {
    let text = "\
let one = fs::read(path).ok();
// Two may be gone.
let two = path
    .metadata()
    .ok();
let three = path.metadata().ok();
let four = word.parse().ok();
let five = fs::read_to_string(path).unwrap_or_default();
let six = names.next().unwrap_or_default();
let names = fs::read_dir(path)
    .into_iter()
    .flatten()
    .flatten();
/// Returns the owner; `None` if there is no file.
fn seven(path: &Path) -> Option<u32> {
    Some(path.metadata().ok()?.uid())
}
/// Returns the owner.
fn eight(path: &Path) -> Option<u32> {
    Some(path.metadata().ok()?.uid())
}
";
    assert_eq!(unexplained(text), [1, 8, 13, 20]);
}

#[test]
fn failures_that_become_an_answer_are_found() {
    let text = "\
let one = git.run(words).is_ok_and(|text| text.is_empty());
// It may be gone.
let Ok(two) = fs::read_to_string(path) else {
    return false;
};
if is_open
    && let Ok(three) = serde_json::from_str::<Record>(line)
{
    four();
}
let five = number.is_ok_and(|number| number > 0);
let six = git
    .run(words)
    .unwrap_or_else(|_| String::new());
";
    assert_eq!(unexplained(text), [1, 7, 14]);
}

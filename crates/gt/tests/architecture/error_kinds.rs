//! Checks that code decides by error enums, and not by the coarse kind or the text of a problem.

use super::{code_lines, crates, sources};
use std::fs;

/// The files that convert kinds: to exit codes, JSON and the status codes of HTTP, and from the JSON
/// of another process.
const EDGE: &[&str] = &[
    "gt/src/error.rs",
    "gt/src/board/invocations.rs",
    "web/src/failure.rs",
];

#[test]
fn only_the_edge_decides_by_the_kind_of_a_problem() {
    let mut hits = Vec::new();
    for name in ["town", "gt", "board", "daemon", "web"] {
        for path in sources(&crates().join(name).join("src")) {
            let shown = path.strip_prefix(crates()).unwrap().display().to_string();
            if EDGE.contains(&shown.as_str()) {
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            for (number, line) in code_lines(&text) {
                if reads_kind(line) || reads_text(line) {
                    hits.push(format!("{shown}:{number}: {}", line.trim()));
                }
            }
        }
    }
    assert_eq!(
        hits,
        Vec::<String>::new(),
        "return an error enum from the function that fails"
    );
}

/// Returns whether a line uses a kind other than to make a problem or an exit code.
fn reads_kind(line: &str) -> bool {
    let line = line.trim();
    let reads = ["problem.kind()", "problem().kind()", "Problem::kind"];
    if reads.iter().any(|word| line.contains(word)) {
        return true;
    }
    let Some((before, after)) = line.split_once("ProblemKind::") else {
        return false;
    };
    let makes_problem = before.ends_with("Problem::new(");
    let is_argument = before.is_empty()
        && after
            .strip_suffix(',')
            .is_some_and(|name| name.chars().all(char::is_alphanumeric));
    let makes_exit_code = after.contains(".exit_code()");
    !(makes_problem || is_argument || makes_exit_code)
}

/// Returns whether a line searches the text of a problem.
fn reads_text(line: &str) -> bool {
    let texts = ["message()", "line()", "causes()", "hints()"];
    let searches = ["contains(", "starts_with(", "ends_with(", "eq("];
    texts.iter().any(|text| {
        searches
            .iter()
            .any(|search| line.contains(&format!("problem.{text}.{search}")))
            || line.contains(&format!("problem.{text} == "))
    })
}

#[test]
fn a_kind_may_be_given_but_not_read() {
    for line in [
        "return Err(Problem::new(ProblemKind::Running, words));",
        "    ProblemKind::Running,",
        "ExitCode::from(ProblemKind::Queued.exit_code())",
        "match error.kind() {",
    ] {
        assert!(!reads_kind(line), "{line}");
    }
    for line in [
        "if problem.kind() == kind {",
        "if error.kind() == ProblemKind::Denied {",
        "ProblemKind::NotFound => None,",
        "Err(error) if matches!(error.kind(), ProblemKind::NotFound) => None,",
        "let kinds = problems.map(Problem::kind);",
    ] {
        assert!(reads_kind(line), "{line}");
    }
    assert!(reads_text(
        "if problem.message().contains(\"runs already\") {"
    ));
    assert!(!reads_text("whole.cause(problem.message())"));
}

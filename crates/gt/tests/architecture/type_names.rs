//! Names of types and functions: a type name has one meaning in the workspace, and a public
//! function is not called by a word that says nothing about it.

use super::{EDGES, code_lines, crates, sources};
use std::collections::BTreeMap;
use std::fs;

/// Names that may be declared more than once, each with the reason.
const REPEATED: &[(&str, &str)] = &[
    ("FileWatcher", "one implementation per operating system"),
    ("ProcessHandle", "one implementation per operating system"),
];

/// The arguments of a subcommand are named after it, in the file of their command: `ListArgs` of
/// `crew.rs` belongs to `gt crew list`.
const SUBCOMMAND_ARGUMENTS: (&str, &str) = ("gt/src/commands/", "Args");

/// Words that do not tell what a function returns or does.
const UNCLEAR: &[&str] = &[
    "again",
    "apart",
    "as_told",
    "asked",
    "begins",
    "cannot",
    "elsewhere",
    "glance",
    "go_on",
    "going_on_with",
    "hear",
    "how_far",
    "in_words",
    "known",
    "learn",
    "look",
    "meant",
    "mend",
    "news",
    "one",
    "own",
    "said",
    "seen",
    "several",
    "so_far",
    "told",
    "what",
    "who",
    "whose",
    "why_not",
    "wishes",
];

/// Returns the name of the type that a line declares.
fn declared_type(line: &str) -> Option<&str> {
    let is_alias = |rest: &&str| !line.starts_with(' ') && rest.contains('=');
    let rest = without_visibility(line);
    let rest = ["struct ", "enum ", "trait ", "union "]
        .iter()
        .find_map(|keyword| rest.strip_prefix(keyword))
        .or_else(|| rest.strip_prefix("type ").filter(is_alias))?;
    rest.split(|c: char| !c.is_alphanumeric()).next()
}

fn without_visibility(line: &str) -> &str {
    let line = line.trim_start();
    let Some(rest) = line.strip_prefix("pub") else {
        return line;
    };
    let rest = match rest.strip_prefix('(') {
        Some(rest) => rest.split_once(')').map_or(rest, |(_, rest)| rest),
        None => rest,
    };
    rest.trim_start()
}

/// Returns the name of the function that a line declares for other modules.
fn public_function(line: &str) -> Option<&str> {
    let rest = without_visibility(line);
    if rest == line.trim_start() {
        return None;
    }
    let rest = rest.trim_start_matches("const ");
    rest.strip_prefix("fn ")?.split(['(', '<']).next()
}

/// Returns `(place, line)` for each line of code of the workspace.
fn code() -> Vec<(String, String)> {
    let mut code = Vec::new();
    for (name, _) in EDGES {
        for path in sources(&crates().join(name).join("src")) {
            let shown = path.strip_prefix(crates()).unwrap().display().to_string();
            let text = fs::read_to_string(&path).unwrap();
            let lines = code_lines(&text).into_iter();
            code.extend(lines.map(|(number, line)| (format!("{shown}:{number}"), line.to_owned())));
        }
    }
    code
}

#[test]
fn a_type_name_has_one_meaning() {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (place, line) in code() {
        let Some(name) = declared_type(&line) else {
            continue;
        };
        let (folder, end) = SUBCOMMAND_ARGUMENTS;
        if !(place.starts_with(folder) && name.ends_with(end)) {
            places.entry(name.to_owned()).or_default().push(place);
        }
    }
    for (name, reason) in REPEATED {
        let count = places.remove(*name).unwrap_or_default().len();
        assert!(
            count > 1,
            "{name} is declared once, so needs no exception: {reason}"
        );
    }
    places.retain(|_, places| places.len() > 1);
    assert_eq!(places, BTreeMap::new(), "give each type its own name");
}

#[test]
fn public_functions_are_named_after_their_result_or_action() {
    let found: Vec<String> = code()
        .iter()
        .filter(|(_, line)| public_function(line).is_some_and(|name| UNCLEAR.contains(&name)))
        .map(|(place, line)| format!("{place}: {}", line.trim()))
        .collect();
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn declarations_are_recognised() {
    assert_eq!(
        declared_type("    pub(super) struct Row<'a> {"),
        Some("Row")
    );
    assert_eq!(declared_type("pub enum Kind {"), Some("Kind"));
    assert_eq!(declared_type("type Outcome = (A, B);"), Some("Outcome"));
    assert_eq!(declared_type("    type Err = Problem;"), None);
    assert_eq!(declared_type("/// struct Row"), None);
    assert_eq!(
        public_function("    pub(crate) const fn go_on("),
        Some("go_on")
    );
    assert_eq!(public_function("fn go_on("), None);
}

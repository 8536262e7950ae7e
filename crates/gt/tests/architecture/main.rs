//! Tests for the invariants of ARCHITECTURE.md that can be checked mechanically.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod command_tests;
mod error_kinds;
mod layers;
mod type_names;

use std::fs;
use std::path::{Path, PathBuf};

/// Allowed dependencies between our crates.
const EDGES: &[(&str, &[&str])] = &[
    ("tmux", &[]),
    ("core", &[]),
    ("board", &["gt-core"]),
    // Only tests use `model`.
    ("model", &[]),
    ("town", &["gt-core", "gt-tmux"]),
    ("web", &["gt-core", "gt-town"]),
    ("daemon", &["gt-core", "gt-town", "gt-web"]),
    (
        "gt",
        &[
            "gt-board",
            "gt-core",
            "gt-daemon",
            "gt-tmux",
            "gt-town",
            "gt-web",
        ],
    ),
];

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}

#[test]
fn the_crates_depend_on_each_other_as_drawn() {
    let mut found: Vec<String> = fs::read_dir(crates())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    found.sort();
    let mut drawn: Vec<&str> = EDGES.iter().map(|(name, _)| *name).collect();
    drawn.sort_unstable();
    assert_eq!(found, drawn, "a new crate has its place in the drawing");
    for (name, allowed) in EDGES {
        let manifest = fs::read_to_string(crates().join(name).join("Cargo.toml")).unwrap();
        let manifest: toml::Table = toml::from_str(&manifest).unwrap();
        let used: Vec<&String> = manifest["dependencies"]
            .as_table()
            .unwrap()
            .keys()
            .filter(|dependency| dependency.starts_with("gt-"))
            .collect();
        assert_eq!(used, *allowed, "{name}");
    }
}

/// Fails for every line of a crate's sources, except tests, that contains one of the words.
fn absent(name: &str, words: &[&str], except: &[&str]) {
    let mut hits = Vec::new();
    for path in sources(&crates().join(name).join("src")) {
        let shown = path.strip_prefix(crates()).unwrap().display().to_string();
        if except.iter().any(|allowed| shown.ends_with(allowed)) {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        for (number, line) in code_lines(&text) {
            if words.iter().any(|word| line.contains(word)) {
                hits.push(format!("{shown}:{number}: {}", line.trim()));
            }
        }
    }
    assert_eq!(hits, Vec::<String>::new());
}

/// Returns the lines of a formatted source with their numbers, without the items under
/// `#[cfg(test)]`.
fn code_lines(text: &str) -> Vec<(usize, &str)> {
    let mut lines = text.lines().enumerate();
    let mut code = Vec::new();
    while let Some((index, line)) = lines.next() {
        if line.trim() != TEST_ITEM {
            code.push((index + 1, line));
            continue;
        }
        // rustfmt puts the end of an item at the indentation of its first line.
        let indent = line.len() - line.trim_start().len();
        let is_item = |line: &&str| !line.trim_start().starts_with("#[");
        let mut rest = lines.by_ref().map(|(_, line)| line);
        let first = rest.by_ref().find(is_item).unwrap_or_default();
        if !first.ends_with([';', ',', '}']) {
            rest.find(|line| line.get(indent..).is_some_and(|end| end.starts_with('}')));
        }
    }
    code
}

const TEST_ITEM: &str = "#[cfg(test)]";

#[test]
fn only_test_items_are_no_code() {
    let text = r#"
#[cfg(test)]
mod tests;
one
impl A {
    #[cfg(test)]
    #[must_use]
    fn b(
        c: C,
    ) -> D {
        e()
    }

    two
}
#[cfg(test)]
use a::{
    b,
};
#[cfg(test)]
mod tests {
    fn x() {}
}
three
"#;
    let text = text.trim_start_matches('\n');
    let expected = [
        (3, "one"),
        (4, "impl A {"),
        (12, ""),
        (13, "    two"),
        (14, "}"),
        (23, "three"),
    ];
    assert_eq!(code_lines(text), expected);
}

/// Returns the source files below a folder, without those that are compiled for tests only.
fn sources(dir: &Path) -> Vec<PathBuf> {
    let mut found = files(dir);
    let tests: Vec<PathBuf> = found.iter().flat_map(|path| test_modules(path)).collect();
    let is_test = |path: &PathBuf| tests.iter().any(|test| path.starts_with(test));
    found.retain(|path| !is_test(path) && !is_test(&path.with_extension("")));
    found
}

/// Returns the paths, without `.rs`, of the modules that a file declares for tests only.
fn test_modules(path: &Path) -> Vec<PathBuf> {
    let text = fs::read_to_string(path).unwrap();
    let is_root = path.ends_with("lib.rs") || path.ends_with("main.rs");
    let folder = match is_root {
        true => path.parent().unwrap().to_owned(),
        false => path.with_extension(""),
    };
    let after = text.split(TEST_ITEM).skip(1);
    let names = after.filter_map(|item| item.trim_start().strip_prefix("mod ")?.split_once(';'));
    names
        .filter(|(name, _)| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
        .map(|(name, _)| folder.join(name))
        .collect()
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

#[test]
fn core_does_no_input_and_output_and_has_no_clock() {
    let words = [
        "std::fs",
        "std::env",
        "std::io",
        "std::net",
        "std::process",
        "std::thread",
        "std::time",
        "now_v7",
    ];
    absent("core", &words, &[]);
}

#[test]
fn the_board_only_decides_and_draws() {
    let words = [
        "std::fs",
        "std::env",
        "std::io",
        "std::net",
        "std::process",
        "std::thread",
        "std::time",
        "crossterm::terminal",
        "crossterm::execute",
        "event::read",
        "event::poll",
    ];
    absent("board", &words, &[]);
}

#[test]
fn tmux_has_no_word_for_agents() {
    absent(
        "tmux",
        &["agent", "Agent", "@gt_", "harness", "worktree"],
        &[],
    );
}

#[test]
fn only_the_binary_prints_exits_and_reads_the_environment() {
    let words = [
        "print!(",
        "println!(",
        "eprintln!(",
        "process::exit",
        "std::env::",
        "env::var",
    ];
    absent("town", &words, &[]);
    absent("core", &words, &[]);
    // A tmux client passes its environment on and derives its default socket from it, as tmux's own
    // client does.
    absent("tmux", &words[..4], &[]);
}

#[test]
fn only_the_clock_of_the_town_reads_the_time_and_makes_ids() {
    let words = [
        "Timestamp::now",
        "Zoned::now",
        "SystemTime::now",
        "now_v7",
        "new_v4",
    ];
    absent("town", &words, &["base/clock.rs"]);
    // These format times relative to the present, draw, or stand for a foreign program.
    let except = ["gt/src/output.rs", "gt/src/board.rs", "demo/transcript.rs"];
    absent("gt", &words, &except);
}

#[test]
fn only_one_place_types_into_a_pane() {
    absent(
        "town",
        &["\"send-keys\"", "\"paste-buffer\""],
        &["inject.rs"],
    );
    absent("gt", &["\"send-keys\"", "\"paste-buffer\""], &[]);
}

#[test]
fn every_line_for_run_shell_is_made_quiet_in_one_place() {
    for name in ["town", "gt"] {
        for path in sources(&crates().join(name).join("src")) {
            let text = fs::read_to_string(&path).unwrap();
            if path.ends_with("callback.rs") || !text.contains("run-shell") {
                continue;
            }
            let place = path.display();
            assert!(
                !text.contains("2>&1"),
                "{place}: `callback::quiet` makes lines that tmux runs"
            );
        }
    }
}

#[test]
fn files_named_in_the_call_paths_exist() {
    let root = crates().parent().unwrap().to_owned();
    let text = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let (_, section) = text.split_once("## Call paths").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let named: Vec<&str> = section
        .split('`')
        .filter(|word| word.ends_with(".rs") && !word.contains(' '))
        .collect();
    assert!(named.len() > 50, "{named:?}");
    for path in named {
        let places = ["", "crates/town/src", "crates/gt/src"];
        let is_there = places
            .iter()
            .any(|place| root.join(place).join(path).is_file());
        assert!(is_there, "there is no {path}");
    }
}

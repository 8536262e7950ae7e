//! The layers of `crates/town`: imports go down only, without cycles, and ARCHITECTURE.md lists all.

use super::{crates, sources};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// The layers, the lowest first. A module imports only from its own layer and from lower ones.
const LAYERS: &[&str] = &[
    "base",
    "catalog",
    "records",
    "repo",
    "terminal",
    "agents",
    "work",
    "messaging",
    "lifecycle",
    "workflow",
    "supervision",
    "views",
];

/// A module of the engine: its layer and its name.
type Module = (String, String);

#[test]
fn each_module_is_in_a_layer() {
    let root = crates().join("town/src");
    let mut expected: BTreeSet<String> = ["lib.rs", "testing.rs"].map(str::to_owned).into();
    for layer in LAYERS {
        expected.extend([(*layer).to_owned(), format!("{layer}.rs")]);
    }
    let found: BTreeSet<String> = fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn imports_go_down_only() {
    let rank = |module: &Module| LAYERS.iter().position(|layer| *layer == module.0);
    let upward: Vec<String> = imports()
        .into_iter()
        .filter(|(from, to)| rank(from) < rank(to))
        .map(|(from, to)| format!("{}/{} imports {}/{}", from.0, from.1, to.0, to.1))
        .collect();
    assert_eq!(upward, Vec::<String>::new());
}

#[test]
fn modules_import_each_other_without_cycles() {
    let mut left: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
    for (from, to) in imports() {
        left.entry(to.clone()).or_default();
        left.entry(from).or_default().insert(to);
    }
    // Removes modules that import nothing that is left, until only cycles and their users remain.
    loop {
        let done: Vec<Module> = left
            .iter()
            .filter(|(_, imported)| imported.iter().all(|module| !left.contains_key(module)))
            .map(|(module, _)| module.clone())
            .collect();
        if done.is_empty() {
            break;
        }
        left.retain(|module, _| !done.contains(module));
    }
    assert_eq!(left.keys().collect::<Vec<_>>(), Vec::<&Module>::new());
}

#[test]
fn architecture_lists_the_layers_and_their_modules() {
    let text = fs::read_to_string(crates().join("../ARCHITECTURE.md")).unwrap();
    let headings: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("#### `")?.split_once("/`"))
        .map(|(layer, _)| layer)
        .collect();
    assert_eq!(headings, LAYERS);
    for layer in LAYERS {
        let section = text.split(&format!("#### `{layer}/`")).nth(1).unwrap();
        let section = section.split("\n#").next().unwrap();
        let declared = fs::read_to_string(crates().join(format!("town/src/{layer}.rs"))).unwrap();
        for line in declared.lines() {
            let Some((_, name)) = line.split_once("mod ") else {
                continue;
            };
            let file = format!("`{}.rs`", name.trim_end_matches(';'));
            assert!(section.contains(&file), "{layer}/: {file} is not listed");
        }
    }
}

/// Returns the imports between modules, without those of tests.
fn imports() -> BTreeSet<(Module, Module)> {
    let mut found = BTreeSet::new();
    for layer in LAYERS {
        let dir = crates().join("town/src").join(layer);
        for path in sources(&dir) {
            let inside = path.strip_prefix(&dir).unwrap();
            let first = inside.iter().next().unwrap().to_str().unwrap();
            let own = (
                (*layer).to_owned(),
                first.trim_end_matches(".rs").to_owned(),
            );
            let text = fs::read_to_string(&path).unwrap();
            let is_code = |line: &&str| !line.trim_start().starts_with("//");
            let lines = super::code_lines(&text).into_iter().map(|(_, line)| line);
            let code = lines.filter(is_code).collect::<Vec<_>>().join("\n");
            for place in code.split("crate::").skip(1) {
                for used in paths(place) {
                    let mut parts = used.split("::");
                    let (Some(layer), Some(name)) = (parts.next(), parts.next()) else {
                        continue;
                    };
                    let module = (layer.to_owned(), name.to_owned());
                    if LAYERS.contains(&layer) && module != own {
                        found.insert((own.clone(), module));
                    }
                }
            }
        }
    }
    found
}

/// Returns the paths of a use tree: `a::{b, c::{D, e}}` is `a::b`, `a::c::D` and `a::c::e`.
fn paths(text: &str) -> Vec<String> {
    let end = text
        .find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'))
        .unwrap_or(text.len());
    let (path, rest) = text.split_at(end);
    let Some(inner) = rest
        .strip_prefix('{')
        .filter(|_| path.is_empty() || path.ends_with("::"))
    else {
        return vec![path.to_owned()];
    };
    let (mut depth, mut begin, mut items) = (0, 0, Vec::new());
    for (at, c) in inner.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                items.push(inner[begin..at].trim());
                begin = at + 1;
                if c == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    let items = items.into_iter().filter(|item| !item.is_empty());
    items
        .flat_map(paths)
        .map(|item| format!("{path}{item}"))
        .collect()
}

#[test]
fn a_use_tree_has_all_its_paths() {
    let tree = "base::{files, lock::{self, FileLock}};\nuse std::fs;";
    let expected = ["base::files", "base::lock::self", "base::lock::FileLock"];
    assert_eq!(paths(tree), expected);
    assert_eq!(paths("base::files::read()?"), ["base::files::read"]);
}

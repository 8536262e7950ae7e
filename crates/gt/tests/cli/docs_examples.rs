//! Runs the example commands of README and docs/, each page in an empty home with the demo agent.
//!
//! A comment in the page selects a block; it is invisible in the book and on the web:
//!
//! - `<!-- run -->` above a fenced block: every command must exit with 0. In a `console` block the
//!   commands begin with `$ `, and a `\` at the end of a line continues one; an `sh` block is
//!   one script.
//! - `<!-- run: compare -->`: each printed line of the page must also be in the real output. Ids,
//!   numbers and the home folder are not compared, and a line that contains `…` is skipped.
//! - `<!-- run hidden: REASON`, then one command a line, then `-->`: commands that only the test
//!   runs, such as the part of an agent that writes code.
//!
//! Each command runs in the folder that the previous one left. An id that a page prints stands for
//! the id that the command really printed.

use crate::env::{Answer, TestEnv, run};
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Home folder as the pages print it.
const HOME: &str = "/home/ann";

/// A command of a page, and the output that the page prints below it.
#[derive(Debug, Default, PartialEq)]
struct Example {
    line: usize,
    command: String,
    printed: Vec<String>,
    is_compared: bool,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the examples of a page that are to be run.
fn examples(text: &str) -> Vec<Example> {
    let mut found: Vec<Example> = Vec::new();
    let mut lines = text.lines().enumerate().map(|(at, line)| (at + 1, line));
    let mut mark = None;
    while let Some((number, line)) = lines.next() {
        if line.starts_with("<!-- run hidden") {
            for (line, command) in lines.by_ref().take_while(|(_, line)| *line != "-->") {
                let command = command.to_owned();
                found.push(Example {
                    line,
                    command,
                    ..Example::default()
                });
            }
        } else if line == "<!-- run -->" || line == "<!-- run: compare -->" {
            mark = Some(line.contains("compare"));
        } else if let Some(language) = line.strip_prefix("```") {
            let block: Vec<(usize, &str)> = lines
                .by_ref()
                .take_while(|(_, line)| *line != "```")
                .collect();
            if let Some(is_compared) = mark.take() {
                found.extend(block_examples(number, language, &block, is_compared));
            }
        } else if !line.is_empty() {
            assert!(mark.is_none(), "line {number}: a block was expected");
        }
    }
    found
}

fn block_examples(
    number: usize,
    language: &str,
    block: &[(usize, &str)],
    is_compared: bool,
) -> Vec<Example> {
    if language != "console" {
        let lines: Vec<&str> = block.iter().map(|(_, line)| *line).collect();
        let command = format!("set -e\n{}", lines.join("\n"));
        return vec![Example {
            line: number,
            command,
            printed: Vec::new(),
            is_compared,
        }];
    }
    let mut found: Vec<Example> = Vec::new();
    for (line, text) in block {
        let last = found.last_mut();
        if let Some(command) = text.strip_prefix("$ ") {
            let command = command.to_owned();
            found.push(Example {
                line: *line,
                command,
                printed: Vec::new(),
                is_compared,
            });
        } else if let Some(last) = last {
            if last.printed.is_empty() && last.command.ends_with('\\') {
                last.command = format!("{}\n{text}", last.command);
            } else if !text.is_empty() {
                last.printed.push((*text).to_owned());
            }
        }
    }
    found
}

/// Reports whether a word is the id of an item, a message or a queue entry (`he-g2q0y`), or of a
/// session.
fn is_id(word: &str) -> bool {
    let is_plain = |part: &str| {
        part.chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
    };
    let parts: Vec<&str> = word.split('-').collect();
    match parts[..] {
        [prefix, rest] => {
            prefix.len() == 2 && rest.len() == 5 && is_plain(prefix) && is_plain(rest)
        }
        _ => {
            parts.len() == 5
                && word.len() == 36
                && word.chars().all(|c| c == '-' || c.is_ascii_hexdigit())
        }
    }
}

/// Splits a text into words that can be ids.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '-' && c != '_')
}

/// Replaces the parts of a line that differ between runs.
fn normalized(line: &str, home: &str) -> String {
    let line = line
        .replace(home, "~")
        .replace(HOME, "~")
        .replace("claude", "demo");
    let mut result = line.clone();
    for word in words(&line).filter(|word| is_id(word)) {
        result = result.replace(word, "ID");
    }
    let mut plain = String::new();
    for c in result.chars() {
        match c {
            '0'..='9' if plain.ends_with('0') => {}
            '0'..='9' => plain.push('0'),
            ' ' if plain.ends_with(' ') => {}
            other => plain.push(other),
        }
    }
    plain.trim().to_owned()
}

/// A page whose examples are being run.
struct Page {
    env: TestEnv,
    dir: PathBuf,
    /// Ids on the page, with the real ones.
    ids: HashMap<String, String>,
}

impl Page {
    fn new() -> Self {
        let env = TestEnv::empty();
        let identity = "[user]\nname = Ann\nemail = ann@example.org\n";
        fs::write(env.path(".gitconfig"), identity).unwrap();
        let dir = env.home().to_owned();
        Page {
            env,
            dir,
            ids: HashMap::new(),
        }
    }

    fn run(&mut self, example: &Example) -> Result<(), String> {
        let mut text = example.command.clone();
        for (shown, real) in &self.ids {
            text = text.replace(shown, real);
        }
        // Pages choose the socket and the harness themselves; the demo agent replaces the harness.
        let gt = Path::new(env!("CARGO_BIN_EXE_gt")).parent().unwrap();
        let path = std::env::var("PATH").unwrap();
        let note = self.env.path(".folder");
        let script = format!("{text}\ncode=$?\npwd > {}\nexit $code", note.display());
        let mut command = self.env.command("sh");
        command
            .args(["-c", &script])
            .env_remove("GT_TMUX_SOCKET")
            .env("GT_HARNESS", "demo")
            .env("PATH", format!("{}:{path}", gt.display()))
            .current_dir(&self.dir);
        let answer = run(&mut command);
        if answer.code != 0 {
            return Err(format!("{text}\n{answer:?}"));
        }
        if let Ok(folder) = fs::read_to_string(&note) {
            self.dir = PathBuf::from(folder.trim());
        }
        self.learn_ids(example, &answer);
        self.compare(example, &answer)
    }

    /// Pairs the ids that the page prints with the real ones, in order.
    fn learn_ids(&mut self, example: &Example, answer: &Answer) {
        let shown = example.printed.iter().flat_map(|line| words(line));
        let shown = shown.filter(|word| is_id(word));
        let real = words(&answer.stdout).filter(|word| is_id(word));
        for (shown, real) in shown.zip(real) {
            self.ids
                .entry(shown.to_owned())
                .or_insert_with(|| real.to_owned());
        }
    }

    fn compare(&self, example: &Example, answer: &Answer) -> Result<(), String> {
        if !example.is_compared {
            return Ok(());
        }
        let home = self.env.home().display().to_string();
        let real: Vec<String> = answer
            .stdout
            .lines()
            .map(|line| normalized(line, &home))
            .collect();
        let missing: Vec<&String> = example
            .printed
            .iter()
            .filter(|line| !line.contains('…') && !real.contains(&normalized(line, &home)))
            .collect();
        match missing.is_empty() {
            true => Ok(()),
            false => Err(format!(
                "{}\nnot printed: {missing:?}\n{answer:?}",
                example.command
            )),
        }
    }
}

/// Runs all examples of a page, and returns how many there are.
fn run_page(path: &Path) -> usize {
    let examples = examples(&fs::read_to_string(path).unwrap());
    if examples.is_empty() {
        return 0;
    }
    let mut page = Page::new();
    for example in &examples {
        if let Err(problem) = page.run(example) {
            panic!("{}:{}: {problem}", path.display(), example.line);
        }
    }
    examples.len()
}

#[test]
fn readme_examples_run() {
    assert!(run_page(&root().join("README.md")) > 5);
}

#[test]
fn tutorial_examples_run() {
    assert!(run_page(&root().join("docs/getting-started.md")) > 10);
}

#[test]
fn guide_examples_run() {
    let mut pages: Vec<PathBuf> = Vec::new();
    for folder in ["docs", "docs/guides"] {
        let Ok(entries) = fs::read_dir(root().join(folder)) else {
            continue;
        };
        pages.extend(entries.flatten().map(|entry| entry.path()).filter(|path| {
            let is_page = path.extension().is_some_and(|end| end == "md");
            is_page && !path.ends_with("getting-started.md")
        }));
    }
    for page in pages {
        run_page(&page);
    }
}

#[test]
fn marked_blocks_are_found() {
    let page = "<!-- run hidden: why\na\n-->\n<!-- run: compare -->\n```console\n$ b \\\n  c\nout\n\n\
                $ d\n```\n```console\n$ not this\n```\n<!-- run -->\n```sh\ne\nf\n```\n";
    let found = examples(page);
    let commands: Vec<&str> = found
        .iter()
        .map(|example| example.command.as_str())
        .collect();
    assert_eq!(commands, ["a", "b \\\n  c", "d", "set -e\ne\nf"]);
    assert_eq!(found[1].printed, ["out"]);
    assert!(found[1].is_compared && !found[3].is_compared);
    assert_eq!(
        normalized("✓ he-g2q0y at /tmp/x/gt (claude, 12.5 s)", "/tmp/x"),
        normalized("✓ he-12345 at /home/ann/gt (demo,  0.1 s)", "/tmp/x"),
    );
}

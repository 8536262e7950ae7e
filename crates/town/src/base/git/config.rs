//! Reads the configuration files of a repository, without git.
//!
//! [`super::hardening`] must know all settings that git could use, so this reader finds too many
//! rather than too few: it follows each `include` and `includeIf`, whatever its condition, and reads
//! on after a line that git would refuse.

use super::{common_dir, own_dir};
use std::fs;
use std::path::{Path, PathBuf};

/// Maximum depth of includes, as in git.
const MAX_DEPTH: usize = 10;

/// Maximum depth of submodules in submodules.
const MAX_MODULES: usize = 3;

/// One setting.
#[derive(Debug)]
pub(super) struct Entry<'a> {
    /// Section, subsection and name. Section and name are in lower case.
    pub(super) key: String,
    pub(super) value: String,
    pub(super) file: &'a Path,
}

impl Entry<'_> {
    /// Returns section and name.
    pub(super) fn ends(&self) -> (&str, &str) {
        let section = self.key.split('.').next().unwrap_or_default();
        let name = self.key.rsplit('.').next().unwrap_or_default();
        (section, name)
    }
}

/// Returns the configuration files of the repository that contains `dir`, those of its submodules
/// included. They need not exist.
pub(super) fn files_of(dir: &Path) -> Vec<PathBuf> {
    let Some(own) = dir.ancestors().find_map(git_dir) else {
        return Vec::new();
    };
    let common = common_dir(&own);
    let mut files = vec![common.join("config"), common.join("config.worktree")];
    if own != common {
        files.push(own.join("config.worktree"));
        modules(&own.join("modules"), MAX_MODULES, &mut files);
    }
    modules(&common.join("modules"), MAX_MODULES, &mut files);
    files
}

/// Returns the worktree that contains `dir`, with its git folder.
pub(super) fn worktree_of(dir: &Path) -> Option<(&Path, PathBuf)> {
    let found = dir.ancestors().find_map(|at| Some((at, git_dir(at)?)));
    found.filter(|(at, own)| own != at)
}

/// Returns the worktree that contains `dir` if its configuration leads git to another folder, or takes
/// the worktree for a bare repository. With `extensions.worktreeConfig`, git follows `core.worktree` and
/// `core.bare` of the shared configuration in every worktree. Repositories of a person, which are in no
/// other one, are left alone.
pub(super) fn redirected_worktree(dir: &Path) -> Option<PathBuf> {
    let (root, own) = worktree_of(dir)?;
    let common = common_dir(&own);
    let is_inside = || root.ancestors().skip(1).any(|at| own_dir(at).is_some());
    if !root.join(".git").is_file() && !is_inside() {
        return None;
    }
    let mut is_redirected = false;
    let files = [common.join("config"), own.join("config.worktree")];
    for file in files {
        read(&file, None, &mut |entry| {
            is_redirected |= match entry.key.as_str() {
                "core.worktree" => true,
                "core.bare" => entry.value != "false",
                _ => false,
            };
        });
    }
    // Relative to the folder in which git runs otherwise.
    is_redirected.then(|| std::path::absolute(root).unwrap_or_else(|_| root.to_owned()))
}

/// Returns the git folder of a worktree, or of a bare repository.
pub(super) fn git_dir(dir: &Path) -> Option<PathBuf> {
    let is_bare = || dir.join("HEAD").is_file() && dir.join("objects").is_dir();
    own_dir(dir).or_else(|| is_bare().then(|| dir.to_owned()))
}

/// Adds the configuration files of submodules. The name of a submodule may contain slashes.
fn modules(dir: &Path, depth: usize, files: &mut Vec<PathBuf>) {
    // Without submodules there is no such folder.
    let Ok(entries) = fs::read_dir(dir) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.join("HEAD").is_file() {
            files.push(path.join("config"));
            files.push(path.join("config.worktree"));
            if depth > 0 {
                modules(&path.join("modules"), depth - 1, files);
            }
        } else if depth > 0 && path.is_dir() {
            modules(&path, depth - 1, files);
        }
    }
}

/// Calls `each` for every setting of a file and of the files that it includes.
pub(super) fn read(file: &Path, home: Option<&Path>, each: &mut dyn FnMut(Entry<'_>)) {
    read_at(file, home, MAX_DEPTH, each);
}

fn read_at(file: &Path, home: Option<&Path>, depth: usize, each: &mut dyn FnMut(Entry<'_>)) {
    // A file that is missing or unreadable for us is so for git, too.
    let Ok(bytes) = fs::read(file) else {
        return;
    };
    parse(&String::from_utf8_lossy(&bytes), &mut |key, value| {
        let entry = Entry { key, value, file };
        if let (("include" | "includeif", "path"), true) = (entry.ends(), depth > 0) {
            read_at(&included(file, home, &entry.value), home, depth - 1, each);
        }
        each(entry);
    });
}

/// Returns the file that an `include` names: relative to the including file.
fn included(file: &Path, home: Option<&Path>, path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => file.parent().unwrap_or(file).join(path),
    }
}

/// Parses the text of a configuration file.
fn parse(text: &str, each: &mut dyn FnMut(String, String)) {
    let mut section = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let mut rest = line.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
        // A setting may follow its section on the same line.
        if let Some((name, after)) = header(rest) {
            section = name;
            rest = after.trim_start();
        }
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '-');
        let (name, rest) = rest.split_at(end.unwrap_or(rest.len()));
        if name.is_empty() || section.is_empty() {
            continue;
        }
        let value = match rest.trim_start().strip_prefix('=') {
            Some(rest) => value(rest.trim_start(), &mut lines),
            None => "true".to_owned(),
        };
        each(format!("{section}.{}", name.to_ascii_lowercase()), value);
    }
}

/// Parses `[section]`, `[section.subsection]` or `[section "subsection"]`. Returns its name and the
/// rest of the line.
fn header(line: &str) -> Option<(String, &str)> {
    let line = line.strip_prefix('[')?;
    let end = line.find(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '.');
    let (section, mut rest) = line.split_at(end?);
    let mut name = section.to_ascii_lowercase();
    if let Some(quoted) = rest.trim_start().strip_prefix('"') {
        name.push('.');
        let mut chars = quoted.chars();
        loop {
            match chars.next()? {
                '"' => break,
                '\\' => name.push(chars.next()?),
                c => name.push(c),
            }
        }
        rest = chars.as_str();
    }
    let rest = rest.trim_start().strip_prefix(']')?;
    Some((name, rest))
}

/// Parses a value: quotes, escapes, comments and continued lines.
fn value<'a>(first: &'a str, lines: &mut impl Iterator<Item = &'a str>) -> String {
    let mut value = String::new();
    let mut is_quoted = false;
    // Length without trailing spaces outside quotes.
    let mut length = 0;
    let mut chars = first.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => is_quoted = !is_quoted,
            '#' | ';' if !is_quoted => break,
            '\\' => match chars.next() {
                Some('n') => value.push('\n'),
                Some('t') => value.push('\t'),
                Some('b') => value.push('\u{8}'),
                Some(c) => value.push(c),
                None => match lines.next() {
                    Some(line) => chars = line.chars(),
                    None => break,
                },
            },
            c => value.push(c),
        }
        if is_quoted || !c.is_whitespace() {
            length = value.len();
        }
    }
    value.truncate(length);
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Vec<(String, String)> {
        let mut all = Vec::new();
        parse(text, &mut |key, value| all.push((key, value)));
        all
    }

    #[test]
    fn settings_are_read_as_git_reads_them() {
        let text = "\u{feff}[core]\n\tbare = false ; no\n fsMonitor=\"a b\" # x\n\
            [filter \"E.vil \\\"x\\\"\"] clean = sh -c \\\"x\\\" \n\
            [Old.Style]\nkey\n[a]b=1\\\n 2\n[broken\nlost = 1\n";
        let expected = [
            ("core.bare", "false"),
            ("core.fsmonitor", "a b"),
            ("filter.E.vil \"x\".clean", "sh -c \"x\""),
            ("old.style.key", "true"),
            ("a.b", "1 2"),
            ("a.lost", "1"),
        ];
        let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(parsed(text), expected);
    }

    #[test]
    fn includes_are_followed_and_end() {
        let folder = tempfile::tempdir().unwrap();
        let (first, second) = (folder.path().join("config"), folder.path().join("more"));
        fs::write(&first, "[includeIf \"gitdir:/nowhere\"]\npath = more\n").unwrap();
        fs::write(&second, "[include]\npath = config\n[core]\npager = x\n").unwrap();
        let mut keys = Vec::new();
        read(&first, None, &mut |entry| keys.push(entry.key));
        assert!(keys.contains(&"core.pager".to_owned()), "{keys:?}");
    }
}

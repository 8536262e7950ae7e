//! A diff as git prints it, parsed into files, hunks and numbered lines.
//!
//! [`ParsedDiff::pairs`] puts the lines side by side: removed lines are beside the added lines that
//! replace them.

use crate::text;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ParsedDiff {
    pub(crate) files: Vec<DiffFile>,
    pub(crate) rows: Vec<DiffRow>,
    /// Rows of the side-by-side view: the indices of the old and of the new line.
    pub(crate) pairs: Vec<(Option<usize>, Option<usize>)>,
    /// The pair of each row.
    pair_of: Vec<usize>,
    /// The largest line number.
    pub(crate) last_line: u32,
    /// The width of the widest line, in cells.
    pub(crate) widest: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DiffFile {
    pub(crate) path: String,
    pub(crate) added: usize,
    pub(crate) removed: usize,
    /// The row of its heading.
    pub(crate) row: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowKind {
    /// The heading of a file.
    File,
    /// A remark about a file, such as a new mode.
    Remark,
    Hunk,
    Context,
    Added,
    Removed,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DiffRow {
    pub(crate) kind: RowKind,
    /// Index of the file.
    pub(crate) file: usize,
    /// Line numbers before and after the change.
    pub(crate) old: Option<u32>,
    pub(crate) new: Option<u32>,
    /// The text of the line without its sign; tabs are expanded.
    pub(crate) text: String,
}

/// A line of a file, on one side of the diff.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DiffPlace {
    pub(crate) path: String,
    pub(crate) line: u32,
    /// The line exists only before the change.
    pub(crate) is_old: bool,
}

/// A comment on a line, until the agent has got it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LineComment {
    pub(crate) place: DiffPlace,
    /// The line, as it was shown.
    pub(crate) quoted: String,
    pub(crate) text: String,
    /// The number of the command that sends it.
    pub(crate) sent_by: Option<u64>,
}

/// Returns the comments as one message.
pub(crate) fn message(comments: &[LineComment]) -> String {
    let mut text = match comments.len() {
        1 => "A comment on your diff:".to_owned(),
        count => format!("{count} comments on your diff:"),
    };
    for comment in comments {
        let LineComment { place, quoted, .. } = comment;
        text.push_str(&format!(
            "\n\n{place}\n> {}\n{}",
            quoted.trim_end(),
            comment.text
        ));
    }
    text
}

impl ParsedDiff {
    pub(crate) fn parse(text: &str) -> Self {
        let mut diff = ParsedDiff::default();
        let mut hunk = HunkPosition::default();
        for line in text.lines() {
            if let Some(names) = line.strip_prefix("diff --git ") {
                diff.begin_file(path_of(names));
                hunk = HunkPosition::default();
                continue;
            }
            if diff.files.is_empty() {
                diff.begin_file(String::new());
            }
            match (hunk.is_inside(), line.as_bytes().first()) {
                (true, Some(b'+')) => {
                    let new = hunk.take_new();
                    diff.push(RowKind::Added, None, Some(new), &line[1..]);
                    diff.count(|file| file.added += 1);
                }
                (true, Some(b'-')) => {
                    let old = hunk.take_old();
                    diff.push(RowKind::Removed, Some(old), None, &line[1..]);
                    diff.count(|file| file.removed += 1);
                }
                (true, Some(b' ') | None) => {
                    let (old, new) = (hunk.take_old(), hunk.take_new());
                    let text = line.get(1..).unwrap_or_default();
                    diff.push(RowKind::Context, Some(old), Some(new), text);
                }
                _ => {
                    if let Some(begun) = HunkPosition::parse(line) {
                        hunk = begun;
                        diff.push(RowKind::Hunk, None, None, line);
                    } else if let Some(name) = line.strip_prefix("+++ b/") {
                        diff.count(|file| name.trim_end().clone_into(&mut file.path));
                    } else if is_remark(line) {
                        diff.push(RowKind::Remark, None, None, line);
                    }
                }
            }
        }
        diff.name_headings();
        diff.pair_up();
        diff
    }

    fn begin_file(&mut self, path: String) {
        self.files.push(DiffFile {
            path,
            added: 0,
            removed: 0,
            row: self.rows.len(),
        });
        self.push(RowKind::File, None, None, "");
    }

    fn push(&mut self, kind: RowKind, old: Option<u32>, new: Option<u32>, text: &str) {
        self.last_line = self.last_line.max(old.max(new).unwrap_or_default());
        let text = text::expand(text);
        if old.or(new).is_some() {
            self.widest = self.widest.max(text::width(&text));
        }
        self.rows.push(DiffRow {
            kind,
            file: self.files.len().saturating_sub(1),
            old,
            new,
            text,
        });
    }

    /// Updates the file that is being read.
    fn count(&mut self, update: impl FnOnce(&mut DiffFile)) {
        if let Some(file) = self.files.last_mut() {
            update(file);
        }
    }

    fn name_headings(&mut self) {
        for file in &self.files {
            self.rows[file.row].text = text::expand(&file.path);
        }
    }

    fn pair_up(&mut self) {
        let mut at = 0;
        while at < self.rows.len() {
            let removed = self.run(at, RowKind::Removed);
            let added = self.run(at + removed, RowKind::Added);
            let count = removed.max(added);
            for number in 0..count {
                let old = (number < removed).then_some(at + number);
                let new = (number < added).then_some(at + removed + number);
                self.pairs.push((old, new));
            }
            if count == 0 {
                self.pairs.push((Some(at), Some(at)));
            }
            at += (removed + added).max(1);
        }
        self.pair_of = vec![0; self.rows.len()];
        for (number, (old, new)) in self.pairs.iter().enumerate() {
            for row in [old, new].into_iter().flatten() {
                self.pair_of[*row] = number;
            }
        }
    }

    fn run(&self, from: usize, kind: RowKind) -> usize {
        let rows = self.rows.get(from..).unwrap_or_default().iter();
        rows.take_while(|row| row.kind == kind).count()
    }

    /// Returns whether lines are removed and others added, so that two sides are worth their room.
    pub(crate) fn replaces_lines(&self) -> bool {
        let has = |count: fn(&DiffFile) -> usize| self.files.iter().any(|file| count(file) > 0);
        has(|file| file.added) && has(|file| file.removed)
    }

    /// Returns the number of rows of the view.
    pub(crate) fn len(&self, side_by_side: bool) -> usize {
        match side_by_side {
            true => self.pairs.len(),
            false => self.rows.len(),
        }
    }

    /// Returns the position of a row in the view.
    pub(crate) fn position(&self, row: usize, side_by_side: bool) -> usize {
        match side_by_side {
            true => self.pair_of.get(row).copied().unwrap_or_default(),
            false => row,
        }
    }

    /// Returns the row at a position of the view; of a pair, the new line.
    pub(crate) fn row_at(&self, position: usize, side_by_side: bool) -> usize {
        let position = position.min(self.len(side_by_side).saturating_sub(1));
        match (side_by_side, self.pairs.get(position)) {
            (true, Some((old, new))) => new.or(*old).unwrap_or_default(),
            _ => position,
        }
    }

    /// Returns the next or previous row of one of these kinds.
    pub(crate) fn next_of(&self, kinds: &[RowKind], from: usize, down: bool) -> Option<usize> {
        let is_one = |row: &usize| kinds.contains(&self.rows[*row].kind);
        match down {
            true => (from + 1..self.rows.len()).find(is_one),
            false => (0..from.min(self.rows.len())).rev().find(is_one),
        }
    }

    /// Returns the line of a file that a row shows.
    pub(crate) fn place(&self, row: usize) -> Option<DiffPlace> {
        let row = self.rows.get(row)?;
        let path = self.files.get(row.file)?.path.clone();
        let (line, is_old) = match (row.new, row.old) {
            (Some(line), _) => (line, false),
            (None, Some(line)) => (line, true),
            (None, None) => return None,
        };
        Some(DiffPlace { path, line, is_old })
    }

    /// Returns the row of a line, or else the heading of its file.
    pub(crate) fn find(&self, place: &DiffPlace) -> Option<usize> {
        let file = self.files.iter().position(|file| file.path == place.path)?;
        let line = |row: &DiffRow| match place.is_old {
            true => row.old.filter(|_| row.new.is_none()),
            false => row.new,
        };
        let is_it = |row: &DiffRow| row.file == file && line(row) == Some(place.line);
        let found = self.rows.iter().position(is_it);
        Some(found.unwrap_or(self.files[file].row))
    }
}

impl std::fmt::Display for DiffPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let note = if self.is_old { " (removed line)" } else { "" };
        write!(f, "{}:{}{note}", self.path, self.line)
    }
}

/// The next line numbers of a hunk, and how many lines of each side are left.
#[derive(Clone, Copy, Debug, Default)]
struct HunkPosition {
    old: u32,
    new: u32,
    old_left: u32,
    new_left: u32,
}

impl HunkPosition {
    /// Parses `@@ -1,3 +1,4 @@`.
    fn parse(line: &str) -> Option<Self> {
        let ranges = line.strip_prefix("@@ -")?;
        let (old, rest) = ranges.split_once(" +")?;
        let (new, _) = rest.split_once(" @@")?;
        let range = |text: &str| -> Option<(u32, u32)> {
            match text.split_once(',') {
                Some((start, count)) => Some((start.parse().ok()?, count.parse().ok()?)),
                None => Some((text.parse().ok()?, 1)),
            }
        };
        let ((old, old_left), (new, new_left)) = (range(old)?, range(new)?);
        Some(HunkPosition {
            old,
            new,
            old_left,
            new_left,
        })
    }

    fn is_inside(self) -> bool {
        self.old_left > 0 || self.new_left > 0
    }

    fn take_old(&mut self) -> u32 {
        self.old_left = self.old_left.saturating_sub(1);
        self.old = self.old.saturating_add(1);
        self.old - 1
    }

    fn take_new(&mut self) -> u32 {
        self.new_left = self.new_left.saturating_sub(1);
        self.new = self.new.saturating_add(1);
        self.new - 1
    }
}

/// Returns the new path of `a/OLD b/NEW`.
fn path_of(names: &str) -> String {
    let half = names.len() / 2;
    // Without a rename both names are equal, and may contain blanks.
    let equal = names
        .split_at_checked(half)
        .and_then(|(old, new)| Some((old.strip_prefix("a/")?, new.strip_prefix(" b/")?)))
        .filter(|(old, new)| old == new)
        .map(|(_, new)| new);
    let new = equal.or_else(|| names.rsplit_once(" b/").map(|(_, new)| new));
    new.unwrap_or(names).trim_matches('"').to_owned()
}

fn is_remark(line: &str) -> bool {
    const REMARKS: [&str; 7] = [
        "new file",
        "deleted file",
        "old mode",
        "new mode",
        "rename ",
        "copy ",
        "Binary files",
    ];
    REMARKS.iter().any(|start| line.starts_with(start))
}

#[cfg(test)]
mod tests;

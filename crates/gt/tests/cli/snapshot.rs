//! Renders the result of a command for inline snapshots.
//!
//! Values that differ from run to run are replaced: the home folder, the user, UUIDs, ids, commits,
//! names of saves, process ids, clock times, durations, sizes, tokens and costs. The states busy and
//! idle are replaced in tables and in the answer of a start, because an agent changes them by
//! itself. Gaps of several spaces become two, because the width of a column depends on these
//! values.

use crate::env::{Answer, TestEnv, login};

impl TestEnv {
    /// Runs `gt`, and renders exit code, stdout and stderr.
    pub(crate) fn snapshot(&self, args: &[&str]) -> String {
        self.gt(args).rendered(self)
    }

    /// Runs `gt doctor`, and renders exit code and the checks that found something: the other
    /// checks depend on the programs that are installed.
    pub(crate) fn doctor_findings(&self, args: &[&str]) -> String {
        let answer = self.gt(&[&["doctor"], args].concat());
        let lines = answer.stdout.lines();
        let findings: Vec<&str> = lines.filter(|line| !line.starts_with('✓')).collect();
        let findings = self.masked(&findings.join("\n"));
        format!("exit code: {}\n{findings}{}", answer.code, answer.stderr)
    }

    /// Replaces the values that differ from run to run.
    pub(crate) fn masked(&self, text: &str) -> String {
        let text = text.replace(self.home().to_str().unwrap(), "~");
        let login = login();
        let lines = text.lines().map(|line| filtered_line(line, &login));
        lines.collect::<Vec<_>>().join("\n")
    }
}

impl Answer {
    /// Renders exit code, stdout and stderr; empty streams are left out.
    pub(crate) fn rendered(&self, env: &TestEnv) -> String {
        let mut text = format!("exit code: {}\n", self.code);
        for (name, stream) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            if !stream.is_empty() {
                text += &format!("--- {name}\n{}\n", env.masked(stream));
            }
        }
        text
    }
}

fn filtered_line(line: &str, login: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || "-:.".contains(c);
    let mut filtered = String::new();
    let mut rest = line.trim_end();
    let mut previous = String::new();
    while let Some(first) = rest.chars().next() {
        let end = match is_word(first) {
            true => rest.find(|c| !is_word(c)),
            false => rest.find(is_word),
        };
        let (part, after) = rest.split_at(end.unwrap_or(rest.len()));
        if is_word(first) {
            let word = part.trim_end_matches(['.', ':', '-']);
            let has_unit = UNITS.iter().any(|unit| is_unit(after, unit));
            let is_pid = PID_NAMES.contains(&previous.as_str()) && !word.is_empty();
            let is_cost = filtered.ends_with('$');
            filtered += &match word {
                _ if word == login => "[USER]".to_owned(),
                _ if is_pid && is_number(word) => "[PID]".to_owned(),
                _ if is_cost && word.starts_with(|c: char| c.is_ascii_digit()) => "[N]".to_owned(),
                "busy" | "idle" if is_volatile_state(&filtered, after) => "[STATE]".to_owned(),
                _ => replaced(word, has_unit),
            };
            filtered += &part[word.len()..];
            if !word.is_empty() {
                previous = word.to_owned();
            }
        } else {
            filtered += part;
        }
        rest = after;
    }
    narrowed(&filtered.replace("[N] kB", "[N] B"))
}

/// Narrows the gaps between columns to two spaces; the indentation stays.
fn narrowed(line: &str) -> String {
    let text = line.trim_start();
    let columns = text.split("  ").map(str::trim).filter(|it| !it.is_empty());
    let columns: Vec<&str> = columns.collect();
    format!("{}{}", &line[..line.len() - text.len()], columns.join("  "))
}

/// Units before which a number is an amount that differs.
const UNITS: &[&str] = &[
    "s",
    "ms",
    "min",
    "second",
    "seconds",
    "B",
    "kB",
    "MB",
    "tokens",
    "from the cache",
    "into the cache",
];

/// Words after which a number is a process id.
const PID_NAMES: &[&str] = &["pid", "process"];

/// Tells whether a state is a column of a table, or the state after a start.
fn is_volatile_state(before: &str, after: &str) -> bool {
    // The mark of an agent without a sandbox.
    let after = after.strip_prefix(" !").unwrap_or(after);
    let is_column = before.ends_with("  ") && (after.is_empty() || after.starts_with("  "));
    is_column || before.starts_with('✓') && after.starts_with(" in ")
}

fn is_number(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_digit())
}

fn is_unit(after: &str, unit: &str) -> bool {
    let rest = after.strip_prefix(' ');
    let rest = rest.and_then(|rest| rest.strip_prefix(unit));
    rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_alphanumeric()))
}

/// Returns a word, or what stands for it if it differs from run to run.
fn replaced(word: &str, has_unit: bool) -> String {
    let is_hex = |text: &str| text.chars().all(|c| c.is_ascii_hexdigit());
    let is_commit = |text: &str| text.len() >= 7 && is_hex(text);
    if word.split(':').any(is_commit) {
        let parts = word.split(':').map(|part| match is_commit(part) {
            true => "[HEX]",
            false => part,
        });
        return parts.collect::<Vec<_>>().join(":");
    }
    if !word.contains(|c: char| c.is_ascii_digit()) {
        return with_ids_replaced(word);
    }
    let lengths = || word.split('-').map(str::len);
    if lengths().eq([8, 4, 4, 4, 12]) && is_hex(&word.replace('-', "")) {
        return "[UUID]".to_owned();
    }
    if word.get(8..9) == Some("T") && is_number(&word[..8]) {
        return "[SAVE]".to_owned();
    }
    let is_clock = word.contains(':') && word.split([':', '-', 'T', '.', 'Z']).all(is_number);
    let is_date =
        (lengths().eq([4, 2, 2]) || lengths().eq([2, 2])) && word.split('-').all(is_number);
    if is_clock || is_date {
        return "[TIME]".to_owned();
    }
    let unit = word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    if has_unit && ["", "k", "M"].contains(&unit) || ["s", "ms", "m", "h", "d"].contains(&unit) {
        return "[N]".to_owned();
    }
    with_ids_replaced(word)
}

/// Replaces the ids of items, messages and merges, also within the name of a container or folder.
fn with_ids_replaced(word: &str) -> String {
    let mut parts: Vec<String> = word.split('-').map(str::to_owned).collect();
    for index in 1..parts.len() {
        let (id, child) =
            parts[index].split_at(parts[index].find('.').unwrap_or(parts[index].len()));
        let is_id = id.len() == 5
            && id != "mayor"
            && id
                .chars()
                .all(|c| c.is_ascii_digit() || c.is_ascii_lowercase());
        if is_id && ["gt", "hq", "mr", "esc"].contains(&parts[index - 1].as_str()) {
            parts[index] = format!("[ID]{child}");
        }
    }
    parts.join("-")
}

#[test]
fn values_that_differ_are_replaced() {
    let check = |line: &str, expected: &str| {
        assert_eq!(filtered_line(line, "ann"), expected, "{line}");
    };
    check("gt-a1b2c: Fix it", "gt-[ID]: Fix it");
    check(
        "hq-abcde and mr-00000 of ann",
        "hq-[ID] and mr-[ID] of [USER]",
    );
    check(
        "in gt-a1b2c-az, gastown-gt-a1b2c",
        "in gt-[ID]-az, gastown-gt-[ID]",
    );
    check("in gt-crew-max, hq-mayor", "in gt-crew-max, hq-mayor");
    check("id 0193a2b4-c5d6-7abc-8def-0123456789ab.", "id [UUID].");
    check("at 12:30, 2026-11-17", "at [TIME], [TIME]");
    check("2026-11-17T12:30:01Z", "[TIME]");
    check("20261117T221551.860Z-1befce (989 B)", "[SAVE] ([N] B)");
    check("1 kB, or 1.2 kB", "[N] B, or [N] B");
    check("took 12 s or 350 ms", "took [N] s or [N] ms");
    check("2 items, 3.5s ago", "2 items, [N] ago");
    check("merged 1a2b3c4", "merged [HEX]");
    check("push 1a2b3c4:refs/heads/x", "push [HEX]:refs/heads/x");
    check("lease=main:1a2b3c4", "lease=main:[HEX]");
    check("the step gt-a1b2c.1.2", "the step gt-[ID].1.2");
    check(
        "(process 123), \"pid\": 7",
        "(process [PID]), \"pid\": [PID]",
    );
    check(
        "826 tokens, 2.2k tokens, $0.12",
        "[N] tokens, [N] tokens, $[N]",
    );
    check("11-18 09:10:00  x", "[TIME] [TIME]  x");
    check("mayor  busy  3s", "mayor  [STATE]  [N]");
    check("mayor  busy !  3s", "mayor  [STATE] !  [N]");
    check("✓ max idle in gt-crew-max", "✓ max [STATE] in gt-crew-max");
    check("it is busy.", "it is busy.");
    check("  NAME      STATE   ~/x", "  NAME  STATE  ~/x");
}

//! Table of patterns that map the last lines of a screen to a state.
//!
//! It is the least trusted source, for programs without a described live area: it cannot
//! distinguish a program's drawing from an agent's text. So the built-in table applies only if a
//! preset describes no live area. Patterns that a harness or a project adds are written for their
//! programs, and apply even if the preset describes one; see [`crate::screen::read_state`]. The table
//! is `patterns.toml`, and `docs/states.md` explains its keys.

use crate::screen;
use crate::state::State;
use serde::Deserialize;
use std::sync::LazyLock;

/// Patterns of a harness's preset or a project's file, under `[states]`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rules {
    /// Whether the built-in table applies too.
    pub builtin: bool,
    pub patterns: Vec<Pattern>,
}

impl Default for Rules {
    fn default() -> Self {
        Rules {
            builtin: true,
            patterns: Vec::new(),
        }
    }
}

/// A mark on a line, and the state of the agent that it indicates.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pattern {
    state: PatternState,
    shows: PatternMark,
    /// Whether to ignore case.
    #[serde(default)]
    any_case: bool,
    /// If several patterns match, the highest priority wins. Absent means the default of its state.
    priority: Option<u16>,
}

/// States that a pattern can indicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum PatternState {
    Waiting,
    Error,
    Done,
    Busy,
}

/// A mark with at least one significant character; see [`screen::matches`].
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
struct PatternMark(String);

impl TryFrom<String> for PatternMark {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        const LONGEST: usize = 200;
        let says_nothing = |c: char| c.is_whitespace() || matches!(c, '^' | '$' | '*');
        if text.chars().all(says_nothing) {
            return Err("a pattern that matches every line shows no state".to_owned());
        }
        if text.chars().any(char::is_control) {
            return Err(
                "a pattern is matched against single lines, so it cannot contain a line break"
                    .to_owned(),
            );
        }
        match text.chars().count() <= LONGEST {
            true => Ok(PatternMark(text)),
            false => Err(format!("a pattern has at most {LONGEST} characters")),
        }
    }
}

impl Pattern {
    pub fn state(&self) -> State {
        match self.state {
            PatternState::Waiting => State::Waiting,
            PatternState::Error => State::Error,
            PatternState::Done => State::Done,
            PatternState::Busy => State::Busy,
        }
    }

    pub fn shows(&self) -> &str {
        &self.shows.0
    }

    pub fn priority(&self) -> u16 {
        self.priority.unwrap_or(match self.state {
            PatternState::Waiting => 100,
            PatternState::Error => 90,
            PatternState::Done => 80,
            PatternState::Busy => 70,
        })
    }

    fn fits(&self, line: &str) -> bool {
        match self.any_case {
            true => screen::matches(&line.to_lowercase(), &self.shows.0.to_lowercase()),
            false => screen::matches(line, &self.shows.0),
        }
    }
}

/// Returns the built-in table.
pub fn builtin() -> &'static [Pattern] {
    static TABLE: LazyLock<Vec<Pattern>> = LazyLock::new(|| {
        let rules: Result<Rules, _> = toml::from_str(include_str!("patterns.toml"));
        // A test parses the table. Without it fewer states are recognised, and nothing breaks.
        rules.map(|rules| rules.patterns).unwrap_or_default()
    });
    &TABLE
}

/// Patterns that apply to one agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patterns {
    own: Vec<Pattern>,
    builtin: bool,
}

impl Default for Patterns {
    fn default() -> Self {
        Patterns {
            own: Vec::new(),
            builtin: true,
        }
    }
}

/// A pattern that matches, and the line that it matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatternMatch<'a> {
    pub pattern: &'a Pattern,
    pub line: &'a str,
}

/// Number of the last non-blank lines to search.
const LAST_LINES: usize = 8;
/// Number of lines to search for a question. It is soon answered: further up it is an earlier one.
const LAST_LINES_OF_A_QUESTION: usize = 5;

impl Patterns {
    /// Returns the built-in table with these rules over it, in the order of precedence: the
    /// project's, then the harness's. Any of them may turn off the table.
    pub fn of<'r>(rules: impl IntoIterator<Item = &'r Rules>) -> Self {
        let mut patterns = Patterns::default();
        for rules in rules {
            patterns.own.extend(rules.patterns.iter().cloned());
            patterns.builtin &= rules.builtin;
        }
        patterns
    }

    /// Returns whether a harness or project has added patterns.
    pub fn has_own(&self) -> bool {
        !self.own.is_empty()
    }

    /// Matches lines against the added patterns only.
    pub fn find_own<'a>(&'a self, lines: &[&'a str]) -> Option<PatternMatch<'a>> {
        find(self.own.iter(), lines)
    }

    /// Matches the last lines against the added patterns and the built-in table.
    pub fn find<'a>(&'a self, lines: &[&'a str]) -> Option<PatternMatch<'a>> {
        let table = if self.builtin { builtin() } else { &[] };
        find(self.own.iter().chain(table), lines)
    }
}

/// Returns the match with the highest priority. Of equal ones the first pattern wins, and of its
/// lines the last.
fn find<'a>(
    patterns: impl Iterator<Item = &'a Pattern>,
    lines: &[&'a str],
) -> Option<PatternMatch<'a>> {
    let mut best: Option<PatternMatch<'a>> = None;
    for pattern in patterns {
        if best.is_some_and(|best| best.pattern.priority() >= pattern.priority()) {
            continue;
        }
        let most = match pattern.state {
            PatternState::Waiting => LAST_LINES_OF_A_QUESTION,
            _ => LAST_LINES,
        };
        let mut last = lines.iter().rev().take(most);
        if let Some(line) = last.find(|line| pattern.fits(line)) {
            best = Some(PatternMatch { pattern, line });
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: &str) -> Rules {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn the_table_has_what_the_document_names() {
        let count = |state| builtin().iter().filter(|row| row.state() == state).count();
        assert!(count(State::Waiting) >= 12);
        assert!(count(State::Error) >= 7);
        assert!(count(State::Done) >= 5);
        let patterns = Patterns::default();
        for (line, state) in [
            ("Overwrite it? [Y/n]", State::Waiting),
            ("do you want to go on?", State::Waiting),
            ("WOULD YOU LIKE a hat?", State::Waiting),
            ("please confirm the name", State::Waiting),
            ("AskUserQuestion(…)", State::Waiting),
            ("TypeError: x is not a function", State::Error),
            ("java.lang.Exception: no", State::Error),
            ("Failed: 3 tests", State::Error),
            ("ENOENT, open 'x'", State::Error),
            ("The task completed after an hour", State::Done),
            ("successfully merged", State::Done),
            ("Done.", State::Done),
        ] {
            let fit = patterns.find(&[line]).unwrap();
            assert_eq!(fit.pattern.state(), state, "{line}");
        }
        for line in ["askuserquestion", "an error: no", "done.", "enoent", "x"] {
            assert_eq!(patterns.find(&[line]), None, "{line}");
        }
    }

    #[test]
    fn every_row_is_needed_for_a_line_that_shows_it() {
        // No other row matches the text of a row, so each row has a test that fails without it.
        for (at, row) in builtin().iter().enumerate() {
            let bare = row.shows().trim_start_matches('^').trim_end_matches('$');
            let line = bare.replace('*', " of x");
            let others = builtin().iter().enumerate();
            let others: Vec<&Pattern> = others
                .filter(|(other, _)| *other != at)
                .map(|(_, row)| row)
                .collect();
            let found = find(std::iter::once(row), &[&line]).unwrap();
            assert_eq!(found.line, line);
            assert_eq!(find(others.into_iter(), &[&line]), None, "{line}");
        }
    }

    #[test]
    fn the_highest_priority_counts_whatever_the_order() {
        let patterns = Patterns::default();
        let state = |lines: &[&str]| patterns.find(lines).map(|fit| fit.pattern.state());
        let (asks, fails, ends) = ("Go on? [y/n]", "Error: no", "Task completed");
        assert_eq!(state(&[asks, fails, ends]), Some(State::Waiting));
        assert_eq!(state(&[ends, fails]), Some(State::Error));
        assert_eq!(state(&[fails, ends]), Some(State::Error));
        assert_eq!(state(&[ends]), Some(State::Done));
        // Lines further up are outdated, questions first.
        let beneath = ["x"; 8];
        assert_eq!(state(&[&[asks], &beneath[..5]].concat()), None);
        assert_eq!(
            state(&[&[fails], &beneath[..5]].concat()),
            Some(State::Error)
        );
        assert_eq!(state(&[&[fails], &beneath[..]].concat()), None);
    }

    #[test]
    fn rules_add_to_the_table_or_do_without_it() {
        let own = rules("[[patterns]]\nstate = 'done'\nshows = 'FERTIG'\nany_case = true\n");
        let patterns = Patterns::of([&own]);
        let state = |patterns: &Patterns, line| patterns.find(&[line]).map(|it| it.pattern.state());
        assert_eq!(state(&patterns, "Fertig"), Some(State::Done));
        assert_eq!(state(&patterns, "Error: x"), Some(State::Error));
        assert_eq!(patterns.find_own(&["Error: x"]), None);
        let alone = Patterns::of([&own, &rules("builtin = false")]);
        assert_eq!(state(&alone, "Error: x"), None);
        assert_eq!(state(&alone, "fertig"), Some(State::Done));
        // An explicit priority puts it before the table's.
        let quiet =
            rules("[[patterns]]\nstate = 'busy'\nshows = 'Error: retrying'\npriority = 95\n");
        let patterns = Patterns::of([&quiet]);
        assert_eq!(state(&patterns, "Error: retrying"), Some(State::Busy));
        assert_eq!(state(&patterns, "Error: gave up"), Some(State::Error));
    }

    #[test]
    fn a_pattern_that_says_nothing_is_refused() {
        for text in [
            "state = 'done'\nshows = ''",
            "state = 'done'\nshows = '^* $'",
            "state = 'done'\nshows = \"a\\nb\"",
            "state = 'crashed'\nshows = 'x'",
            "state = 'done'\nshows = 'x'\nregex = true",
            "shows = 'x'",
        ] {
            let rules = toml::from_str::<Rules>(&format!("[[patterns]]\n{text}\n"));
            assert!(rules.is_err(), "{text}");
        }
    }
}

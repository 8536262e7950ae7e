//! Which option of a dialog somebody means.

use crate::Problem;
use crate::screen::Asking;

/// What a person answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The option of that place, from one on.
    Number(usize),
    /// Approve it, this once.
    Yes,
    /// Refuse it.
    No,
    /// The option that begins with or contains this text.
    Text(String),
}

impl From<&str> for Choice {
    fn from(text: &str) -> Self {
        match text.trim() {
            text if text.eq_ignore_ascii_case("yes") => Choice::Yes,
            text if text.eq_ignore_ascii_case("no") => Choice::No,
            text => match text.parse() {
                Ok(number) => Choice::Number(number),
                Err(_) => Choice::Text(text.to_owned()),
            },
        }
    }
}

/// How options that approve begin, in the four programs that were looked at.
const APPROVING: &[&str] = &[
    "yes", "allow", "approve", "accept", "proceed", "trust", "confirm",
];
/// How options that refuse begin.
const REFUSING: &[&str] = &["no", "reject", "deny", "refuse", "cancel"];
/// Words of an approval that holds for longer than this once.
const LASTING: &[&str] = &[
    "always",
    "don't ask again",
    "do not ask again",
    "all edits",
    "session",
    "switch to",
    "remember",
];

/// The place of the option that is meant. Several that fit are as bad as none: an
/// answer that is not meant may run a command.
pub fn pick(asking: &Asking, choice: &Choice) -> Result<usize, Problem> {
    let options: Vec<String> = asking.options.iter().map(|o| o.to_lowercase()).collect();
    let fitting: Vec<usize> = match choice {
        Choice::Number(number) => number
            .checked_sub(1)
            .filter(|index| *index < options.len())
            .into_iter()
            .collect(),
        Choice::Yes => {
            let lasts = |option: &String| LASTING.iter().any(|word| option.contains(word));
            places(&options, |option| {
                begins(option, APPROVING) && !lasts(option)
            })
        }
        Choice::No => places(&options, |option| begins(option, REFUSING)),
        Choice::Text(text) => by_text(&options, &text.to_lowercase()),
    };
    match (choice, fitting.as_slice()) {
        (_, [one]) => Ok(*one),
        // The first of several is the plain one: "No", then "No, and tell it why".
        (Choice::Yes | Choice::No, [first, ..]) => Ok(*first),
        (_, []) => Err(Problem::usage("no option is like that").hint(listed(asking))),
        (_, _) => Err(Problem::usage("several options are like that").hint(listed(asking))),
    }
}

fn places(options: &[String], fits: impl Fn(&String) -> bool) -> Vec<usize> {
    (0..options.len())
        .filter(|at| fits(&options[*at]))
        .collect()
}

/// Whether an option begins with one of the words, as a whole word.
fn begins(option: &str, words: &[&str]) -> bool {
    let first = option
        .split(|c: char| !c.is_alphanumeric())
        .next()
        .unwrap_or_default();
    words.contains(&first)
}

/// Exact, or as a beginning, or anywhere: the first of these ways that finds any.
fn by_text(options: &[String], text: &str) -> Vec<usize> {
    if text.is_empty() {
        return Vec::new();
    }
    let ways: [&dyn Fn(&String) -> bool; 3] = [
        &|option| option == text,
        &|option| option.starts_with(text),
        &|option| option.contains(text),
    ];
    let found = ways.iter().map(|fits| places(options, fits));
    found
        .into_iter()
        .find(|f| !f.is_empty())
        .unwrap_or_default()
}

/// The options, numbered.
pub fn listed(asking: &Asking) -> String {
    let numbered = asking.options.iter().zip(1..);
    let lines: Vec<String> = numbered
        .map(|(option, number)| format!("{number}. {option}"))
        .collect();
    if lines.is_empty() {
        return "its options cannot be read: `gt attach` and answer there".to_owned();
    }
    format!("it offers: {}", lines.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pick_of(options: &[&str], choice: &str) -> Option<usize> {
        let asking = Asking {
            kind: "permission".into(),
            text: "Do it?".into(),
            options: options.iter().map(|o| (*o).to_owned()).collect(),
            marked: Some(0),
            across: false,
        };
        pick(&asking, &Choice::from(choice)).ok()
    }

    #[test]
    fn the_dialogs_of_the_programs() {
        let claude = [
            "Yes",
            "Yes, and don't ask again for touch commands in /x",
            "No, and tell Claude what to do differently (esc)",
        ];
        let codex = [
            "Yes, proceed (y)",
            "Yes, and don't ask again for commands that start with `touch` (p)",
            "No, and tell Codex what to do differently (esc)",
        ];
        let gemini = [
            "Allow once",
            "Allow for this session",
            "No, suggest changes (esc)",
        ];
        let opencode = ["Allow once", "Allow always", "Reject"];
        let trust = ["No, exit", "Yes, I trust this folder"];
        for options in [&claude, &codex, &gemini, &opencode] {
            assert_eq!(pick_of(options, "yes"), Some(0), "{options:?}");
            assert_eq!(pick_of(options, "no"), Some(2), "{options:?}");
            assert_eq!(pick_of(options, "2"), Some(1), "{options:?}");
            assert_eq!(pick_of(options, "4"), None, "{options:?}");
            assert_eq!(pick_of(options, "0"), None, "{options:?}");
        }
        assert_eq!(pick_of(&trust, "yes"), Some(1));
        assert_eq!(pick_of(&trust, "NO"), Some(0));
        assert_eq!(pick_of(&opencode, "allow always"), Some(1));
    }

    #[test]
    fn a_text_must_mean_one() {
        let colours = ["Red", "Dark red", "Blue", "None of them"];
        assert_eq!(pick_of(&colours, "red"), Some(0), "the exact one");
        assert_eq!(pick_of(&colours, "dark"), Some(1));
        assert_eq!(pick_of(&colours, "e"), None, "several");
        assert_eq!(pick_of(&colours, "green"), None);
        assert_eq!(pick_of(&colours, "no"), None, "a whole word");
        assert_eq!(pick_of(&colours, ""), None);
    }
}

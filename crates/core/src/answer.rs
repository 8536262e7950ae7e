//! Maps an answer to an option of a dialog, and identifies the dialog.

use crate::Problem;
use crate::harness::Preset;
use crate::nudge;
use crate::screen::Asking;

/// An answer to a dialog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The option with this number, counted from 1.
    Number(usize),
    /// Approve, once only.
    Yes,
    /// Refuse.
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

/// First words of options that approve, collected from four agent programs.
const APPROVING: &[&str] = &[
    "yes", "allow", "approve", "accept", "proceed", "trust", "confirm",
];
/// First words of options that refuse.
const REFUSING: &[&str] = &["no", "reject", "deny", "refuse", "cancel"];
/// Words of an approval that lasts beyond the present question.
const LASTING: &[&str] = &[
    "all",
    "always",
    "auto",
    "bypass",
    "don't ask",
    "do not ask",
    "every",
    "future",
    "remember",
    "session",
    "switch to",
];

/// Returns the index of the option that the choice means. Fails if no option matches, or if
/// several match a text: a wrong answer may run a command.
pub fn pick(asking: &Asking, choice: &Choice) -> Result<usize, Problem> {
    let plain = |option: &String| option.to_lowercase().replace('’', "'");
    let options: Vec<String> = asking.options.iter().map(plain).collect();
    let fitting: Vec<usize> = match choice {
        Choice::Number(number) => by_number(asking, *number).into_iter().collect(),
        Choice::Yes => places(&options, |option| {
            begins(option, APPROVING) && !lasts(option)
        }),
        Choice::No => places(&options, |option| begins(option, REFUSING)),
        Choice::Text(text) => by_text(&options, &plain(text)),
    };
    match (choice, fitting.as_slice()) {
        (_, [one]) => Ok(*one),
        // The first match is the plain option: "No" comes before "No, and tell it why".
        (Choice::Yes | Choice::No, [first, ..]) => Ok(*first),
        (_, []) => Err(Problem::usage("no option matches").hint(listed(asking))),
        (_, _) => Err(Problem::usage("several options match").hint(listed(asking))),
    }
}

/// Returns the index of the option that is shown with this number. If no option shows a number,
/// counts from 1.
fn by_number(asking: &Asking, number: usize) -> Option<usize> {
    if asking.numbers.iter().any(Option::is_some) {
        return asking.numbers.iter().position(|n| *n == Some(number));
    }
    number
        .checked_sub(1)
        .filter(|index| *index < asking.options.len())
}

fn places(options: &[String], fits: impl Fn(&String) -> bool) -> Vec<usize> {
    (0..options.len())
        .filter(|at| fits(&options[*at]))
        .collect()
}

/// Returns whether an option begins with one of the words, as a whole word.
fn begins(option: &str, words: &[&str]) -> bool {
    words
        .iter()
        .any(|word| has_words(option, word) && option.trim_start().starts_with(word))
}

/// Returns whether an option approves more than the present question.
fn lasts(option: &str) -> bool {
    LASTING.iter().any(|words| has_words(option, words))
}

/// Returns whether a text contains these words in sequence, as whole words.
fn has_words(text: &str, words: &str) -> bool {
    let is_edge = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
    text.match_indices(words).any(|(at, found)| {
        is_edge(text[..at].chars().next_back()) && is_edge(text[at + found.len()..].chars().next())
    })
}

/// Returns the options that match a text: exactly, else by their beginning, else anywhere. A
/// lasting approval matches only an exact text or a text that contains a lasting word itself.
fn by_text(options: &[String], text: &str) -> Vec<usize> {
    if text.is_empty() {
        return Vec::new();
    }
    let ways: [&dyn Fn(&String) -> bool; 3] = [
        &|option| option == text,
        &|option| option.starts_with(text) && has_words(option, text),
        &|option| has_words(option, text),
    ];
    let found = ways.iter().map(|fits| places(options, fits));
    let found = found.into_iter().find(|found| !found.is_empty());
    let is_meant = |at: &usize| {
        let option = &options[*at];
        !lasts(option) || lasts(text) || option == text
    };
    let mut found = found.unwrap_or_default();
    found.retain(is_meant);
    found
}

/// Returns the option of a dialog that lets an agent continue after a usage limit, if the preset
/// names one for this dialog. The option must have exactly the preset's text: others may buy
/// something.
pub fn after_limit<'a>(asking: &'a Asking, preset: &Preset) -> Option<&'a str> {
    let mut dialogs = preset.dialogs.iter();
    let dialog = dialogs.find(|dialog| dialog.name == asking.kind)?;
    let shown = |row: &String| asking.options.iter().find(|option| *option == row);
    dialog.resume.iter().find_map(shown).map(String::as_str)
}

/// Returns the fingerprint of a question. It does not depend on the marked option or on line
/// breaks, so that an answer with a fingerprint applies to this question only.
pub fn fingerprint(asking: &Asking) -> String {
    let squeezed = |text: &String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let parts = std::iter::once(&asking.text).chain(&asking.options);
    let parts: Vec<String> = parts.map(squeezed).collect();
    nudge::fingerprint(&parts.join("\n"))
}

/// Returns the label of the option at this index: its number, or `-` if only other options have
/// numbers.
pub fn number(asking: &Asking, at: usize) -> String {
    match asking.numbers.get(at) {
        Some(Some(number)) => format!("{number}."),
        _ if asking.numbers.iter().any(Option::is_some) => "-".to_owned(),
        _ => format!("{}.", at + 1),
    }
}

/// Lists the options with their numbers, as a hint.
pub fn listed(asking: &Asking) -> String {
    let lines: Vec<String> = (0..asking.options.len())
        .map(|at| format!("{} {}", number(asking, at), asking.options[at]))
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
            numbers: Vec::new(),
            descriptions: Vec::new(),
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
        assert_eq!(pick_of(&opencode, "always"), Some(1));
        // A text does not select an option that approves more than the text says.
        let access = [
            "Yes",
            "Yes, and always allow access to /x from this project",
            "No",
        ];
        assert_eq!(pick_of(&access, "allow"), None);
        assert_eq!(pick_of(&codex, "ask"), None);
        assert_eq!(pick_of(&codex, "start"), None);
        let hooks = [
            "Review hooks",
            "Trust all and continue",
            "Continue without trusting",
        ];
        assert_eq!(pick_of(&hooks, "yes"), None);
    }

    #[test]
    fn a_number_is_the_one_that_is_shown() {
        let asking = Asking {
            kind: "question".into(),
            text: "Which?".into(),
            options: ["Apple", "Pear", "Next", "Chat about this"]
                .map(String::from)
                .into(),
            marked: Some(0),
            across: false,
            numbers: vec![Some(1), Some(2), None, Some(3)],
            descriptions: Vec::new(),
        };
        assert_eq!(pick(&asking, &Choice::Number(3)).ok(), Some(3));
        assert_eq!(pick(&asking, &Choice::Number(4)).ok(), None);
        assert_eq!(number(&asking, 2), "-");
    }

    #[test]
    fn a_question_is_known_by_its_words_and_not_by_its_mark() {
        let asking = |text: &str, options: &[&str], marked| Asking {
            kind: "permission".into(),
            text: text.into(),
            options: options.iter().map(|o| (*o).to_owned()).collect(),
            marked,
            across: false,
            numbers: Vec::new(),
            descriptions: Vec::new(),
        };
        let one = fingerprint(&asking("rm x\nDo you want to?", &["Yes", "No"], Some(0)));
        let moved = asking("rm  x\n\nDo you want to?", &["Yes", "No"], Some(1));
        assert_eq!(one, fingerprint(&moved));
        for other in [
            asking("rm y\nDo you want to?", &["Yes", "No"], Some(0)),
            asking("rm x\nDo you want to?", &["No", "Yes"], Some(0)),
            asking("rm x\nDo you want to?", &["Yes No"], Some(0)),
            asking("rm x\nDo you want to? Yes", &["No"], Some(0)),
        ] {
            assert_ne!(one, fingerprint(&other), "{other:?}");
        }
    }

    #[test]
    fn a_text_must_mean_one() {
        let colours = ["Red", "Dark red", "Blue", "None of them"];
        assert_eq!(pick_of(&colours, "red"), Some(0), "the exact one");
        assert_eq!(pick_of(&colours, "dark"), Some(1));
        assert_eq!(pick_of(&colours, "e"), None, "no word");
        assert_eq!(pick_of(&colours, "green"), None);
        assert_eq!(pick_of(&colours, "no"), None, "a whole word");
        assert_eq!(pick_of(&colours, ""), None);
    }
}

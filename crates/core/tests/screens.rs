//! Recorded screens of real programs, and the classification that each must have.
//!
//! `screens/*.txt` is the output of `tmux capture-pane -p` (`*-colours.txt`: with `-e`);
//! `screens/table.toml` has one row for each; see `screens/README.md`.

mod corpus;

use corpus::{Row, Screen, folder, screens, table};
use gt_core::answer;
use gt_core::screen::{self, Classification};
use gt_core::state::State;
use std::collections::BTreeSet;

/// Returns a classification in the form of a row.
fn told(found: &Classification, row: &Row) -> Row {
    let dialog = found.dialog.as_ref();
    let input = found.input.as_ref();
    Row {
        state: found.state.as_str().to_owned(),
        rule: found.rule.clone(),
        options: dialog.map(|dialog| dialog.options.clone()),
        marked: dialog.and_then(|dialog| dialog.marked),
        input: input.map(|input| input.text.clone()),
        placeholder: input.is_some_and(|input| input.placeholder),
        pasted: input.is_some_and(|input| input.pasted),
        reason: row.reason.as_ref().map(|_| found.reason.clone()),
        background: found.background,
        continues: found.limit.as_ref().is_some_and(|limit| limit.continues),
        ..row.clone()
    }
}

fn check(screen: &Screen, lines: &[impl AsRef<str>], how: &str) {
    let Screen { name, row, .. } = screen;
    let found = screen::classify(lines, &row.title, &screen.preset);
    assert_eq!(told(&found, row), *row, "{name} {how}: {found:#?}");
}

#[test]
fn every_recorded_screen_is_classified_rightly() {
    for screen in screens() {
        check(&screen, &screen.lines, "as recorded");
    }
}

#[test]
fn every_recorded_screen_has_a_row() {
    let files: BTreeSet<String> = std::fs::read_dir(folder())
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().into_string().ok())
        .filter_map(|file| file.strip_suffix(".txt").map(str::to_owned))
        .collect();
    let rows: BTreeSet<String> = table().into_keys().collect();
    assert_eq!(files, rows);
}

#[test]
fn blanks_around_a_screen_do_not_matter() {
    for screen in screens() {
        let blank = || std::iter::repeat_n(String::new(), 5);
        let padded: Vec<String> = screen
            .lines
            .iter()
            .map(|line| format!("{line}    "))
            .chain(blank())
            .collect();
        check(&screen, &padded, "with blanks at its end");
        let lower: Vec<String> = blank().chain(screen.lines.clone()).collect();
        check(&screen, &lower, "with blank lines above");
        let hard: Vec<String> = screen
            .lines
            .iter()
            .map(|line| line.replace(' ', "\u{a0}"))
            .collect();
        check(&screen, &hard, "with no-break spaces");
    }
}

/// Text that an agent might write, in the words that programs use for their states.
const TALK: &[&str] = &[
    "Press esc to interrupt, or wait: (esc to cancel, 3s), esc interrupt.",
    "",
    "Error: it failed. API Error: 500 · Retrying in 4s · attempt 4/10",
    "✻ Thinking… (3s · esc to interrupt)",
    "• Working (3s • esc to interrupt)",
    "⠋ Thinking... (esc to cancel, 3s)",
    "■ Conversation interrupted",
    "✕ [API Error: 400]",
    "────────────────────────────────────────",
    "❯ quoted prompt",
    "────────────────────────────────────────",
    "Do you want to proceed?",
    "❯ 1. Yes",
    "  2. No",
    "",
    "› 1. Yes, proceed (y)",
    "  2. No",
    "Would you like to run the following command?",
    "Press enter to confirm or esc to cancel",
    "● 1. Allow once",
    "  2. Reject",
    "△ Permission required",
    "Quick safety check: do you trust the files in this folder?",
    "Hooks need review. Enter to select · ↑/↓ to navigate · Esc to cancel",
    "1 shell still running",
    "",
    "That is all.",
];

/// Returns how each program sets off its agent's text: the first line, and the others.
fn voice(preset: &str) -> (&'static str, &'static str) {
    match preset {
        "codex" => ("• ", "  "),
        "gemini" => ("✦ ", "  "),
        "opencode" => ("     ", "     "),
        _ => ("● ", "  "),
    }
}

#[test]
fn talk_further_up_outweighs_nothing() {
    // Above a start-up dialog there is no conversation yet, and if nothing else shows, the talk
    // decides.
    let has_talked = |screen: &Screen| {
        let marks = &screen.preset.screen.messages;
        let is_message = |line: &String| marks.iter().any(|mark| screen::matches(line, mark));
        screen.row.options.is_none() || screen.lines.iter().any(is_message)
    };
    let shows_something = |screen: &Screen| !matches!(screen.row.rule.as_str(), "none" | "blank");
    for screen in screens().filter(|screen| has_talked(screen) && shows_something(screen)) {
        let (first, next) = voice(&screen.row.preset);
        let widths = screen.lines.iter().map(|line| line.chars().count());
        let width = widths.max().unwrap_or(0);
        let mut lines: Vec<String> = Vec::new();
        for (index, line) in TALK.iter().enumerate() {
            let line = format!("{}{line}", if index == 0 { first } else { next });
            lines.push(line.chars().take(width).collect());
        }
        // The end of a finished turn.
        lines.push(match screen.row.preset.as_str() {
            "codex" => "\n  Worked for 3s • 22:25\n".to_owned(),
            "opencode" => "\n     ▣  Build · Fake · 1.7s\n".to_owned(),
            "gemini" => String::new(),
            _ => "\n✻ Worked for 3s · done 10:20 PM\n".to_owned(),
        });
        let lines: Vec<String> = lines
            .iter()
            .flat_map(|line| line.split('\n'))
            .map(str::to_owned)
            .chain(screen.lines.clone())
            .collect();
        check(&screen, &lines, "with talk above");
    }
}

#[test]
fn nothing_is_idle_that_asks() {
    for screen in screens().filter(|screen| screen.row.state == "waiting") {
        for title in ["", "◇  Ready", "✳ Claude Code", "OpenCode"] {
            let found = screen::classify(&screen.lines, title, &screen.preset);
            assert_eq!(found.state, State::Waiting, "{} {title}", screen.name);
            assert!(!found.is_at_prompt(), "{}", screen.name);
            let read = screen::read(&screen.lines, &screen.preset);
            assert_eq!(read.map(|(state, _)| state), Some(State::Waiting));
        }
    }
}

#[test]
fn a_failed_or_interrupted_agent_takes_messages() {
    for screen in screens() {
        let found = screen::classify(&screen.lines, &screen.row.title, &screen.preset);
        let takes = matches!(
            found.rule.as_str(),
            "prompt" | "error" | "interrupted" | "background" | "limited"
        );
        assert_eq!(found.is_at_prompt(), takes, "{}", screen.name);
        if takes {
            let read = screen::read(&screen.lines, &screen.preset);
            assert_eq!(read.map(|(state, _)| state), Some(State::Idle));
        }
    }
}

/// However a screen is cut, classification terminates, and without a dialog or an input line no
/// screen is idle.
#[test]
fn torn_screens_are_never_idle_without_an_input_line() {
    for screen in screens() {
        for cut in 0..screen.lines.len() {
            for lines in [&screen.lines[..cut], &screen.lines[cut..]] {
                let found = screen::classify(lines, "", &screen.preset);
                let is_idle = matches!(found.state, State::Idle | State::Error);
                assert!(!is_idle || found.input.is_some(), "{} {cut}", screen.name);
            }
        }
    }
}

#[test]
fn dialogs_at_a_limit_are_left_by_the_option_that_only_waits() {
    let expected = [
        ("cc-lim-7d-oauth", "Stop and wait for limit to reset"),
        ("cc-limoff-1", "Stop and wait for limit to reset"),
        ("cc-limoff-command", "Stop and wait for limit to reset"),
        ("cx-lim-plus", "Keep current model"),
        ("cx-lim-pro3d", "Keep current model"),
        ("gm-lim-429-day-delay", "Keep trying"),
    ];
    let mut found = Vec::new();
    for screen in screens() {
        let seen = screen::classify(&screen.lines, &screen.row.title, &screen.preset);
        let Some(mut asking) = seen.dialog else {
            continue;
        };
        if let Some(option) = answer::after_limit(&asking, &screen.preset) {
            found.push((screen.name.clone(), option.to_owned()));
            // An option that the preset does not name is not chosen.
            let others = asking.options.iter_mut();
            others.for_each(|option| option.push_str(" and buy more"));
            assert_eq!(answer::after_limit(&asking, &screen.preset), None);
        }
    }
    found.sort();
    let expected = expected.map(|(name, option)| (name.to_owned(), option.to_owned()));
    assert_eq!(found, expected);
}

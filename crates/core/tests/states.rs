//! The state machine over the recorded screens, and over screens of programs without a described
//! live area.

mod corpus;

use corpus::{Screen, screens};
use gt_core::harness::Preset;
use gt_core::patterns::{self, Pattern, Patterns, Rules};
use gt_core::screen::CapturedScreen;
use gt_core::state::{ObservedPane, Reason, State, StateReport, StateSource, Tracker, judge};
use std::collections::BTreeSet;

/// Returns the observation of an agent whose hooks have reported this state, if any.
fn observed<'a>(lines: &'a [String], title: &'a str, hook: Option<State>) -> ObservedPane<'a> {
    ObservedPane {
        title,
        tag: Some(hook.unwrap_or(State::Running)),
        tag_source: Some(hook.map_or(StateSource::Process, |_| StateSource::Hook)),
        tag_since: Some(7),
        screen: Some(CapturedScreen {
            lines,
            silent_seconds: Some(0),
        }),
        ..ObservedPane::default()
    }
}

fn judged(screen: &Screen, hook: Option<State>, patterns: &Patterns) -> StateReport {
    let seen = observed(&screen.lines, &screen.row.title, hook);
    judge(&seen, Some(&screen.preset), patterns)
}

fn state_of(screen: &Screen, hook: Option<State>) -> State {
    judged(screen, hook, &Patterns::default()).state
}

#[test]
fn every_recorded_screen_is_a_state_where_no_hook_speaks() {
    for screen in screens() {
        let expected = match screen.row.state.as_str() {
            // The screen shows nothing: the agent is alive, and no more is known.
            "starting" => "running",
            state => state,
        };
        let report = judged(&screen, None, &Patterns::default());
        assert_eq!(
            report.state.as_str(),
            expected,
            "{} {report:?}",
            screen.name
        );
    }
}

#[test]
fn an_agent_that_talks_about_errors_is_not_in_error() {
    let talkers: Vec<Screen> = screens().filter(|it| it.name.contains("-talk")).collect();
    let presets: BTreeSet<&str> = talkers.iter().map(|it| it.row.preset.as_str()).collect();
    let all = ["claude", "codex", "demo", "gemini", "opencode"];
    assert_eq!(presets, all.into_iter().collect());
    for screen in &talkers {
        // Claude Code itself takes this answer for an error; only its hook is right.
        if screen.name != "cc-talk-apierror" {
            assert_eq!(state_of(screen, None), State::Idle, "{}", screen.name);
        }
        let hooked = state_of(screen, Some(State::Idle));
        assert_eq!(hooked, State::Idle, "{}", screen.name);
    }
}

#[test]
fn a_finished_agent_is_not_busy() {
    let finished: Vec<Screen> = screens()
        .filter(|it| it.name.contains("-done") && it.row.rule == "prompt")
        .collect();
    let presets: BTreeSet<&str> = finished.iter().map(|it| it.row.preset.as_str()).collect();
    assert_eq!(presets.len(), 5, "{presets:?}");
    for screen in &finished {
        for hook in [None, Some(State::Idle)] {
            assert_eq!(state_of(screen, hook), State::Idle, "{}", screen.name);
        }
        for told in [State::Done, State::Error] {
            assert_eq!(state_of(screen, Some(told)), told, "{}", screen.name);
        }
    }
}

#[test]
fn the_word_of_a_hook_stands_whatever_has_shown_before_it() {
    for screen in screens() {
        let titles = &screen.preset.title_marks;
        let marks = [&titles.ready, &titles.busy, &titles.waiting];
        let title = screen.row.title.trim_start();
        let is_marked = |mark: &String| title.starts_with(mark.as_str());
        if titles.always || marks.iter().any(|marks| marks.iter().any(is_marked)) {
            continue;
        }
        // No hook reports a limit in the middle of a turn.
        let stops = ["retrying", "dialog.limit", "dialog.retry"];
        let is_stopped = screen.row.state != "busy" && stops.contains(&screen.row.rule.as_str());
        for hook in [State::Idle, State::Busy, State::Waiting, State::Error] {
            if is_stopped && matches!(hook, State::Busy | State::Waiting) {
                continue;
            }
            let has_failed = matches!(screen.row.state.as_str(), "error" | "limited");
            if screen.preset.hooks.hides_failures && has_failed && hook == State::Idle {
                continue;
            }
            let report = judged(&screen, Some(hook), &Patterns::default());
            assert_eq!(
                (report.state, report.source, report.since),
                (hook, StateSource::Hook, Some(7)),
                "{}",
                screen.name
            );
        }
    }
}

#[test]
fn no_recorded_question_and_no_work_is_taken_for_an_interrupt() {
    for screen in screens() {
        for hook in [State::Busy, State::Waiting] {
            let mut seen = observed(&screen.lines, &screen.row.title, Some(hook));
            seen.printed_at = Some(8);
            seen.screen = seen.screen.map(|looked| CapturedScreen {
                silent_seconds: Some(60),
                ..looked
            });
            let report = judge(&seen, Some(&screen.preset), &Patterns::default());
            let goes_on = matches!(screen.row.state.as_str(), "busy" | "waiting");
            let by_screen = report.source == StateSource::Screen;
            let is_over = by_screen && report.reason == Some(Reason::Interrupted);
            assert!(!(goes_on && is_over), "{} {report:?}", screen.name);
        }
    }
}

#[test]
fn every_open_dialog_says_what_it_asks() {
    let mut count = 0;
    for screen in screens().filter(|it| it.row.options.is_some()) {
        let report = judged(&screen, Some(State::Waiting), &Patterns::default());
        if report.state != State::Waiting {
            continue;
        }
        let reason = report.reason.as_deref().unwrap_or_default();
        assert!(reason.starts_with("asks: "), "{} {reason:?}", screen.name);
        count += 1;
    }
    assert!(count > 50, "{count}");
}

#[test]
fn the_table_is_not_for_programs_that_are_known_well() {
    let without: Rules = toml::from_str("builtin = false").expect("rules");
    let without = Patterns::of([&without]);
    for screen in screens() {
        for hook in [None, Some(State::Idle)] {
            let with = judged(&screen, hook, &Patterns::default());
            assert_eq!(with, judged(&screen, hook, &without), "{}", screen.name);
        }
    }
}

/// One made-up screen for each row of the table, and its meaning there. No other row matches any of
/// them.
const UNKNOWN: &[(&str, State, &str)] = &[
    (
        "[y/n]",
        State::Waiting,
        "$ rm -r build\nRemove 12 files? [Y/n]\n",
    ),
    (
        "Do you want to",
        State::Waiting,
        "src/a.rs differs.\nDo you want to keep it?\n> ",
    ),
    (
        "Would you like",
        State::Waiting,
        "I have a plan.\nWould you like me to begin?\n\n> ",
    ),
    (
        "Please confirm",
        State::Waiting,
        "Please confirm the name of the branch:",
    ),
    (
        "AskUserQuestion",
        State::Waiting,
        "⏺ AskUserQuestion(Which database?)\n  1 Postgres\n  2 SQLite",
    ),
    ("(y/n)", State::Waiting, "Run `make`? (y/n)"),
    ("(yes/no)", State::Waiting, "Trust this host (yes/no)?"),
    (
        "[yes/no",
        State::Waiting,
        "Continue connecting [yes/no/fingerprint]? ",
    ),
    (
        "(Y)es/(N)o",
        State::Waiting,
        "Add a.rs to the chat? (Y)es/(N)o [Yes]: ",
    ),
    (
        "Press Enter to continue",
        State::Waiting,
        "The report is above.\nPress ENTER to continue",
    ),
    ("Press any key", State::Waiting, "-- press any key --"),
    (
        "Are you sure",
        State::Waiting,
        "This cannot be undone. Are you sure?",
    ),
    (
        "Should I proceed",
        State::Waiting,
        "That deletes the branch. Should I proceed?",
    ),
    ("Shall I", State::Waiting, "It is ready. Shall I push it?"),
    (
        "Waiting for your",
        State::Waiting,
        "Waiting for your answer…",
    ),
    (
        "^Password*:$",
        State::Waiting,
        "$ git push\nPassword for 'https://me@localhost':",
    ),
    (
        "Enter passphrase for",
        State::Waiting,
        "Enter passphrase for key '/home/me/.ssh/id': ",
    ),
    (
        "Error:",
        State::Error,
        "TypeError: x is not a function\n    at main.js:3",
    ),
    ("Exception:", State::Error, "java.io.IOException: closed"),
    ("Failed:", State::Error, "Failed: 3 of 12 checks"),
    ("ENOENT", State::Error, "ENOENT, open 'package.json'"),
    ("EACCES", State::Error, "npm ERR! code EACCES"),
    (
        "ECONNREFUSED",
        State::Error,
        "connect ECONNREFUSED 127.0.0.1:8080",
    ),
    (
        "Traceback (most recent call last)",
        State::Error,
        "Traceback (most recent call last)\n  File \"a.py\", line 1",
    ),
    ("^fatal: ", State::Error, "fatal: not a git repository"),
    ("^error: ", State::Error, "error: could not compile `a`"),
    (
        "panicked at",
        State::Error,
        "thread 'main' panicked at src/main.rs:3:5",
    ),
    (
        "Segmentation fault",
        State::Error,
        "Segmentation fault (core dumped)",
    ),
    (
        "rate limit exceeded",
        State::Error,
        "429 Rate limit exceeded, try later",
    ),
    ("Task completed", State::Done, "Task completed in 12 turns"),
    ("Successfully", State::Done, "The tests ran successfully"),
    ("Done.", State::Done, "Applied the edit to a.rs\nDone."),
    ("All tasks complete", State::Done, "All tasks completed!"),
    (
        "Implementation complete",
        State::Done,
        "## Implementation complete",
    ),
    ("^Finished in ", State::Done, "Finished in 12.3 s"),
    ("All done", State::Done, "All done!"),
];

/// Returns programs that print like a log, as agents without a full-screen interface do.
fn unknown_programs() -> [Preset; 2] {
    let amp = gt_core::harness::resolve("amp", None).expect("a built-in preset");
    [Preset::default(), amp.value]
}

#[test]
fn every_row_of_the_table_has_a_screen_that_needs_it() {
    let rows: BTreeSet<&str> = patterns::builtin().iter().map(Pattern::shows).collect();
    let tried: BTreeSet<&str> = UNKNOWN.iter().map(|(row, ..)| *row).collect();
    assert_eq!(rows, tried);
    assert_eq!(tried.len(), UNKNOWN.len());
    for (row, state, text) in UNKNOWN {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let mut seen = observed(&lines, "", None);
        for preset in unknown_programs() {
            let report = judge(&seen, Some(&preset), &Patterns::default());
            assert_eq!(
                (report.state, report.source),
                (*state, StateSource::Screen),
                "{text}"
            );
        }
        let fits = |pattern: &Pattern| {
            let all = Patterns::default();
            let lines: Vec<&str> = lines.iter().map(|line| line.trim()).collect();
            all.find(&lines).map(|fit| fit.pattern == pattern)
        };
        let decided = patterns::builtin().iter().find(|it| fits(it) == Some(true));
        assert_eq!(decided.map(Pattern::shows), Some(*row), "{text}");
        // If a hook reports a state, no pattern counts.
        seen.tag = Some(State::Busy);
        seen.tag_source = Some(StateSource::Hook);
        for preset in unknown_programs() {
            let report = judge(&seen, Some(&preset), &Patterns::default());
            assert_eq!(report.state, State::Busy, "{text}");
        }
    }
}

#[test]
fn every_row_of_the_table_is_in_its_documentation() {
    let page = include_str!("../../../docs/states.md");
    for row in patterns::builtin() {
        let line = page
            .lines()
            .find(|line| line.contains(&format!("`{}`", row.shows())));
        let line = line.unwrap_or_else(|| panic!("{} is missing", row.shows()));
        let begins = format!("| `{}` | {} |", row.state().as_str(), row.priority());
        assert!(line.starts_with(&begins), "{}: {line}", row.shows());
    }
}

#[test]
fn an_unknown_program_is_followed_from_state_to_state() {
    let mut tracker = Tracker::default();
    let preset = Preset::default();
    let mut look = |now, text: &str, silent| {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let mut seen = observed(&lines, "", None);
        seen.tag_since = None;
        seen.screen = Some(CapturedScreen {
            lines: &lines,
            silent_seconds: Some(silent),
        });
        let change = tracker.observe(now, &seen, Some(&preset), &Patterns::default());
        let last = tracker.last().expect("a look");
        (change.is_some(), last.state, last.since)
    };
    let busy = (true, State::Busy, Some(100));
    assert_eq!(look(100, "reading a.rs", 0), busy);
    assert_eq!(
        look(101, "reading b.rs", 1),
        (false, State::Busy, Some(100))
    );
    let asks = "Remove it? [y/n]";
    assert_eq!(look(102, asks, 0), (true, State::Waiting, Some(102)));
    assert_eq!(look(109, asks, 7), (false, State::Waiting, Some(102)));
    let over = "Remove it? [y/n] y\n\nremoved a\nremoved b\nremoved c\nremoved d\nTask completed";
    assert_eq!(look(110, over, 0), (true, State::Done, Some(110)));
    assert_eq!(look(170, over, 60), (false, State::Done, Some(110)));
}

//! The screen as the last source of a state: the preset's classification, and the patterns if that
//! is not enough.

use super::{Classification, INTERRUPTED_RULE, ScreenLine, classify, input, line, mark};
use crate::harness::Preset;
use crate::patterns::{PatternMatch, Patterns};
use crate::state::State;

/// A captured screen.
#[derive(Clone, Copy, Debug)]
pub struct CapturedScreen<'a> {
    /// Lines that the terminal shows, with colours or without.
    pub lines: &'a [String],
    /// Time since the program's last output, if known.
    pub silent_seconds: Option<i64>,
}

/// Time after its last output for which a program counts as busy.
const AT_WORK_SECONDS: i64 = 3;

/// Derives the agent's state from a screen.
///
/// A program with a described live area is read by it. Patterns added for it are matched against
/// its last message, and only once it is at its prompt: while it works or asks, its live area
/// decides. For any other program all patterns are matched against the last lines; if none matches,
/// recent output means that it works.
pub fn read_state(
    looked: CapturedScreen<'_>,
    title: &str,
    preset: &Preset,
    patterns: &Patterns,
) -> Classification {
    let found = classify(looked.lines, title, preset);
    let has_more_to_say = match found.state {
        State::Starting | State::Running => true,
        State::Idle => found.rule != INTERRUPTED_RULE,
        _ => false,
    };
    if !has_more_to_say {
        return found;
    }
    let lines = line::parse(looked.lines);
    if preset.screen.input.is_some() {
        let said = last_message(&lines, preset);
        return match patterns.find_own(&said) {
            Some(fit) => told(fit, found),
            None => found,
        };
    }
    let written = text_lines(&lines);
    if let Some(fit) = patterns.find(&written) {
        return told(fit, found);
    }
    let is_at_work = looked
        .silent_seconds
        .is_some_and(|seconds| seconds < AT_WORK_SECONDS);
    if is_at_work && found.rule == "none" {
        return Classification {
            state: State::Busy,
            reason: "prints something".to_owned(),
            rule: "output".to_owned(),
            ..found
        };
    }
    found
}

fn told(fit: PatternMatch<'_>, found: Classification) -> Classification {
    const LONGEST: usize = 200;
    let state = fit.pattern.state();
    let line: String = fit.line.chars().take(LONGEST).collect();
    Classification {
        state,
        reason: match state {
            State::Waiting => format!("asks: {line}"),
            _ => line,
        },
        rule: format!("pattern.{}", state.as_str()),
        mark: Some(fit.pattern.shows().to_owned()),
        ..found
    }
}

/// Returns the lines of the last message above the input line.
fn last_message<'l>(lines: &'l [ScreenLine], preset: &Preset) -> Vec<&'l str> {
    let found = input::find(lines, &preset.screen);
    let end = found.map_or(lines.len(), |found| found.lines.start);
    let above = &lines[..end];
    let is_message =
        |line: &ScreenLine| mark::longest_match(&line.text, &preset.screen.messages).is_some();
    let begins = above.iter().rposition(is_message).unwrap_or(0);
    text_lines(&above[begins..])
}

fn text_lines(lines: &[ScreenLine]) -> Vec<&str> {
    let lines = lines
        .iter()
        .filter(|line| !line.is_blank() && !line.is_drawn());
    lines.map(ScreenLine::trimmed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness;
    use crate::patterns::Rules;

    fn read(preset: &Preset, patterns: &Patterns, text: &str, silent: Option<i64>) -> String {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let looked = CapturedScreen {
            lines: &lines,
            silent_seconds: silent,
        };
        let found = read_state(looked, "", preset, patterns);
        format!("{} {}", found.state.as_str(), found.reason)
    }

    #[test]
    fn an_unknown_program_is_read_by_its_last_lines() {
        let preset = Preset::default();
        let read = |text, silent| read(&preset, &Patterns::default(), text, silent);
        let asks = "Deleting build/\nDo you want to continue? [y/n]\n\n> ";
        assert_eq!(
            read(asks, None),
            "waiting asks: Do you want to continue? [y/n]"
        );
        assert_eq!(
            read("  │ Error: no such file │", None),
            "error Error: no such file"
        );
        assert_eq!(read("Task completed.", Some(0)), "done Task completed.");
        assert_eq!(read("compiling", Some(0)), "busy prints something");
        let unknown = "starting nothing known is on the screen";
        assert_eq!(read("compiling", Some(60)), unknown);
        assert_eq!(read("compiling", None), unknown);
        assert_eq!(read("", Some(0)), "starting the screen is empty");
    }

    #[test]
    fn marks_of_a_preset_outweigh_the_pattern_table() {
        let aider = harness::resolve("aider", None).unwrap().value;
        let read = |text| read(&aider, &Patterns::default(), text, Some(0));
        assert_eq!(
            read("> fix it\nError: x\nWaiting for gpt"),
            "busy its screen shows \"Waiting for \""
        );
        assert_eq!(read("> fix it\nDone.\n> "), "done Done.");
        assert_eq!(read("> fix it\nI see.\n> "), "idle its screen shows \"^>\"");
    }

    #[test]
    fn added_text_is_looked_for_in_the_last_message_at_the_prompt() {
        const RULE: &str = "────────────────────────────────────────";
        let demo = harness::resolve("demo", None).unwrap().value;
        let own: Rules = toml::from_str(
            "[[patterns]]\nstate = 'done'\nshows = 'All tests pass. Finished.'\n\
             [[patterns]]\nstate = 'waiting'\nshows = 'NEEDS A HUMAN'\n",
        )
        .unwrap();
        let own = Patterns::of([&own]);
        let at_prompt = |above: &str| format!("{above}\n{RULE}\n❯ \n{RULE}");
        let read = |patterns, above: &str| read(&demo, patterns, &at_prompt(above), Some(0));
        let finished = "> go\n\n● I ran them.\n  All tests pass. Finished.\n";
        assert_eq!(read(&own, finished), "done All tests pass. Finished.");
        assert_eq!(
            read(&own, "> go\n\n● NEEDS A HUMAN: which one?\n"),
            "waiting asks: ● NEEDS A HUMAN: which one?"
        );
        // The built-in table does not apply to programs with a described live area.
        let table = Patterns::default();
        for said in [finished, "● Error: x. Do you want to go on? Done."] {
            assert_eq!(read(&table, said), "idle at its prompt");
        }
        // A match further up, or in the middle of a turn, does not count.
        let earlier = format!("{finished}> and now?\n\n● I do not know.\n");
        assert_eq!(read(&own, &earlier), "idle at its prompt");
        let busy = format!("{finished}\n✻ Thinking… (esc to interrupt)\n");
        assert!(read(&own, &busy).starts_with("busy"));
    }
}

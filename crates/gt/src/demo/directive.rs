//! Parses a message into a list of [`DirectiveStep`]s.
//!
//! Directives in double brackets determine the answer. Several in one message are performed in
//! their order, and the rest of the message is text. A value ends at the first `]]`.
//!
//! | directive | step |
//! | --- | --- |
//! | `[[delay=1.5]]` | busy for that long (also `500ms`, `2s`, `1m`) |
//! | `[[text=…]]` | the answer |
//! | `[[error=500]]` | an API error ends the turn |
//! | `[[tool=COMMAND]]` | asks for permission and runs the command |
//! | `[[ask=Question?\|a\|b]]` | asks a question |
//! | `[[fill=10000]]` | prints that many lines |
//! | `[[hang]]` | busy without any output until an interrupt |
//! | `[[freeze]]` | busy without any output, and deaf to keys and signals |
//! | `[[put-back]]` | an interrupt puts the message back into the input line |
//! | `[[crash]]` | dies by SIGKILL |
//! | `[[exit=3]]` | ends with that status |

use std::time::Duration;

/// Busy time for a message without directives.
const DEFAULT_DELAY: Duration = Duration::from_millis(150);
/// Maximum length of an echoed line: a message may be one line of megabytes.
const ECHO_CHARS: usize = 200;
/// Maximum delay: longer than any test, and short enough to be added to any clock.
pub(super) const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);
const MAX_LINES: usize = 1_000_000;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum DirectiveStep {
    Delay(Duration),
    Say(String),
    Error(String),
    Tool(String),
    Ask(String, Vec<String>),
    Fill(usize),
    Title(String),
    /// Runs a command with a message as its input, and performs the steps in its output.
    Answer {
        command: String,
        message: String,
    },
    PutBack,
    Hang,
    Freeze,
    Crash,
    Exit(u8),
}

/// Returns the steps of a message, with the echo if it has no answer.
pub(super) fn steps(message: &str) -> Vec<DirectiveStep> {
    let mut steps: Vec<DirectiveStep> = directives(message).filter_map(step).collect();
    if steps.is_empty() {
        steps.push(DirectiveStep::Delay(DEFAULT_DELAY));
    }
    let is_silent =
        |step: &DirectiveStep| matches!(step, DirectiveStep::Delay(_) | DirectiveStep::PutBack);
    if steps.iter().all(is_silent) {
        steps.push(DirectiveStep::Say(format!(
            "You said: {}",
            first_line(message)
        )));
    }
    steps
}

/// Parses `1.5`, `1.5s`, `500ms` or `2m`.
pub(super) fn duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    let unit = text.trim_start_matches(|char: char| char.is_ascii_digit() || char == '.');
    let number: f64 = text[..text.len() - unit.len()].parse().ok()?;
    let seconds = match unit {
        "" | "s" => number,
        "ms" => number / 1000.0,
        "m" => number * 60.0,
        _ => return None,
    };
    let length = Duration::try_from_secs_f64(seconds).ok()?;
    (length <= LONGEST).then_some(length)
}

/// Parses `Question?|a|b`. A question without options gets yes and no.
pub(super) fn question(text: &str) -> DirectiveStep {
    let mut parts = text.split('|').map(|part| part.trim().to_owned());
    let question = parts.next().unwrap_or_default();
    let mut options: Vec<String> = parts.filter(|option| !option.is_empty()).collect();
    if options.is_empty() {
        options = vec!["Yes".to_owned(), "No".to_owned()];
    }
    DirectiveStep::Ask(question, options)
}

/// Returns the text between each `[[` and the next `]]`.
fn directives(message: &str) -> impl Iterator<Item = &str> {
    let mut rest = message;
    std::iter::from_fn(move || {
        let (_, after) = rest.split_once("[[")?;
        let (inside, after) = after.split_once("]]")?;
        rest = after;
        Some(inside)
    })
}

fn step(directive: &str) -> Option<DirectiveStep> {
    let (name, value) = directive.split_once('=').unwrap_or((directive, ""));
    Some(match name {
        "delay" => DirectiveStep::Delay(duration(value)?),
        "text" => DirectiveStep::Say(value.to_owned()),
        "error" => DirectiveStep::Error(api_error(value)),
        "tool" if !value.trim().is_empty() => DirectiveStep::Tool(value.to_owned()),
        "ask" if !value.trim().is_empty() => question(value),
        "fill" => DirectiveStep::Fill(value.parse().ok().filter(|lines| *lines <= MAX_LINES)?),
        "put-back" => DirectiveStep::PutBack,
        "hang" => DirectiveStep::Hang,
        "freeze" => DirectiveStep::Freeze,
        "crash" => DirectiveStep::Crash,
        "exit" => DirectiveStep::Exit(value.parse().ok()?),
        _ => return None,
    })
}

/// Adds the usual message to a bare status.
fn api_error(value: &str) -> String {
    let words = match value {
        "400" => "Invalid request",
        "401" => "Invalid authentication credentials",
        "429" => "Rate limited",
        "500" => "Internal server error",
        "529" => "Overloaded",
        _ => return value.to_owned(),
    };
    format!("{value} {words}")
}

fn first_line(message: &str) -> String {
    let line = message.trim_start().lines().next().unwrap_or_default();
    match line.char_indices().nth(ECHO_CHARS) {
        Some((cut, _)) => format!("{}…", &line[..cut]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn say(text: &str) -> DirectiveStep {
        DirectiveStep::Say(text.to_owned())
    }

    #[test]
    fn a_plain_message_is_echoed() {
        assert_eq!(
            steps("hello\nworld"),
            [DirectiveStep::Delay(DEFAULT_DELAY), say("You said: hello")]
        );
    }

    #[test]
    fn an_echo_is_cut() {
        let steps = steps(&"é".repeat(50_000));
        assert_eq!(steps[1], say(&format!("You said: {}…", "é".repeat(200))));
    }

    #[test]
    fn directives_keep_their_order() {
        assert_eq!(
            steps("do [[tool=ls -l | wc]] then [[text=a\nb]][[delay=500ms]]"),
            [
                DirectiveStep::Tool("ls -l | wc".to_owned()),
                say("a\nb"),
                DirectiveStep::Delay(Duration::from_millis(500)),
            ]
        );
    }

    #[test]
    fn each_directive() {
        let options = vec!["a".to_owned(), "b c".to_owned()];
        for (text, step) in [
            (
                "[[error=500]]",
                DirectiveStep::Error("500 Internal server error".to_owned()),
            ),
            (
                "[[error=418 teapot]]",
                DirectiveStep::Error("418 teapot".to_owned()),
            ),
            (
                "[[ask=Which?|a|b c]]",
                DirectiveStep::Ask("Which?".to_owned(), options),
            ),
            ("[[fill=3]]", DirectiveStep::Fill(3)),
            ("[[hang]]", DirectiveStep::Hang),
            ("[[freeze]]", DirectiveStep::Freeze),
            ("[[crash]]", DirectiveStep::Crash),
            ("[[exit=3]]", DirectiveStep::Exit(3)),
        ] {
            assert_eq!(steps(text), [step], "{text}");
        }
    }

    #[test]
    fn a_delay_alone_still_echoes() {
        assert_eq!(
            steps("x [[delay=2]]"),
            [
                DirectiveStep::Delay(Duration::from_secs(2)),
                say("You said: x [[delay=2]]")
            ]
        );
    }

    #[test]
    fn text_that_is_no_directive_is_echoed() {
        for text in [
            "[[delay=soon]]",
            "[[what=1]]",
            "[[tool=]]",
            "[[text=open",
            "]] [[",
        ] {
            let steps = steps(text);
            assert_eq!(steps[1], say(&format!("You said: {text}")), "{text}");
        }
    }

    #[test]
    fn durations() {
        for (text, millis) in [("1.5", 1500), ("2s", 2000), ("500ms", 500), ("1m", 60_000)] {
            assert_eq!(
                duration(text),
                Some(Duration::from_millis(millis)),
                "{text}"
            );
        }
        for text in ["", "s", "1h", "-1", "1.2.3", "inf", "9999999999999999999"] {
            assert_eq!(duration(text), None, "{text}");
        }
    }
}

//! Formats an event as one line for people.

use super::Event;
use serde_json::Value;

/// Fills in the template of a row: `{name}` becomes a field, and `[…]` is omitted if one of its
/// fields is missing. A field that equals `about` becomes `it`.
pub(super) fn render(line: &str, event: &Event, about: Option<&str>) -> String {
    let fill = |part: &str| fill(part, event, about);
    let mut text = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('[') {
        let (optional, behind) = after.split_once(']').unwrap_or((after, ""));
        text.push_str(&fill(before).0);
        if let (part, true) = fill(optional) {
            text.push_str(&part);
        }
        rest = behind;
    }
    text.push_str(&fill(rest).0);
    text
}

/// Fills in the fields of a text. Also returns whether all of them are known.
fn fill(part: &str, event: &Event, about: Option<&str>) -> (String, bool) {
    let mut text = String::new();
    let mut all_known = true;
    let mut rest = part;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, behind) = after.split_once('}').unwrap_or((after, ""));
        text.push_str(before);
        match field(name, event) {
            Some(value) if Some(value.as_str()) == about => text.push_str("it"),
            Some(value) => text.push_str(&value),
            None => {
                all_known = false;
                text.push('?');
            }
        }
        rest = behind;
    }
    text.push_str(rest);
    (text, all_known)
}

fn field(name: &str, event: &Event) -> Option<String> {
    match name {
        "actor" => Some(event.actor.clone()),
        "type" => Some(event.kind.clone()),
        name => event.payload.get(name).map(words),
    }
}

fn words(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(words).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::StateSource;
    use serde_json::json;

    #[test]
    fn lines_of_the_feed() {
        let check = |event: Event, expected: &str| assert_eq!(event.line(), expected);
        let start = Event::emitted("session_start", "mayor");
        check(start.clone(), "mayor began");
        check(start.with("harness", "claude"), "mayor began with claude");
        check(
            Event::emitted("mass_death", "gt")
                .with("count", 3)
                .with("agents", json!(["a", "b", "c"])),
            "3 agents died together: a, b, c",
        );
        check(Event::emitted("hook", "max"), "max hooked ?");
        let deploy = Event::emitted("deploy", "ci").with("message", "a {b} [c");
        check(deploy, "ci: deploy: a {b} [c");
    }

    #[test]
    fn beside_its_source_an_event_says_only_what_was_done() {
        let check = |event: Event, source: &str, expected: &str| {
            let about = (event.source_words(), event.line_about("gastown/crew/max"));
            assert_eq!(about, (source.to_owned(), expected.to_owned()));
        };
        let of = |kind| Event::emitted(kind, "gastown/crew/max");
        let asks = of("question").with("reason", "asks: Bash(x)");
        check(asks.known_by(StateSource::Hook), "hook", "asks: Bash(x)");
        let died = of("session_death").with("exit_code", 3);
        check(
            died.known_by(StateSource::Process),
            "process",
            "died with exit code 3",
        );
        check(
            of("turn_end").known_by(StateSource::Screen),
            "screen",
            "ended its turn",
        );
        check(
            of("session_start").known_by(StateSource::Start),
            "gt",
            "began",
        );
        let paused = Event::emitted("paused", "mayor").with("target", "gastown/crew/max");
        check(
            paused.with("reason", "lunch").by_command(),
            "command by mayor",
            "paused it: lunch",
        );
        let nudge = Event::emitted("nudge", "gt").with("target", "gastown/crew/max");
        check(nudge, "gt", "sent it a message");
        let mail =
            Event::emitted("mail", "mayor").with("to", json!(["deacon", "gastown/crew/max"]));
        check(
            mail.clone(),
            "command by mayor",
            "wrote to deacon, gastown/crew/max",
        );
        assert!(mail.is_about("mayor") && mail.is_about("gastown/crew/max"));
        assert!(!mail.is_about("gastown/crew/ma"));
    }

    #[test]
    fn long_list_of_files_is_shortened() {
        let files: Vec<String> = (0..22).map(|number| format!("f{number}")).collect();
        let of = |files: &[String]| {
            let event = Event::emitted("update_conflict", "human").with("target", "x");
            event.with("base", "main").with_files(files).line()
        };
        assert_eq!(
            of(&files[..2]),
            "human merged main into x, with conflicts in f0, f1"
        );
        assert!(
            of(&files).ends_with("f18, f19 and 2 more"),
            "{}",
            of(&files)
        );
    }
}

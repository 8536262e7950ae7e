//! An event as one line for people.

use super::Event;
use serde_json::Value;

/// Fills a row's line: `{name}` becomes a field, `[…]` is left out where one of the
/// fields in it is not known.
pub(super) fn render(line: &str, event: &Event) -> String {
    let mut text = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('[') {
        let (optional, behind) = after.split_once(']').unwrap_or((after, ""));
        text.push_str(&fill(before, event).0);
        if let (part, true) = fill(optional, event) {
            text.push_str(&part);
        }
        rest = behind;
    }
    text.push_str(&fill(rest, event).0);
    text
}

/// The text with its fields, and whether all were known.
fn fill(part: &str, event: &Event) -> (String, bool) {
    let mut text = String::new();
    let mut all_known = true;
    let mut rest = part;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, behind) = after.split_once('}').unwrap_or((after, ""));
        text.push_str(before);
        match field(name, event) {
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
    use serde_json::json;

    #[test]
    fn lines_of_the_feed() {
        let check = |event: Event, expected: &str| assert_eq!(event.line(), expected);
        let start = Event::new("session_start", "mayor");
        check(start.clone(), "mayor began");
        check(start.with("harness", "claude"), "mayor began with claude");
        check(
            Event::new("mass_death", "gt")
                .with("count", 3)
                .with("agents", json!(["a", "b", "c"])),
            "3 agents died together: a, b, c",
        );
        check(Event::new("hook", "max"), "max took up ?");
        let deploy = Event::new("deploy", "ci").with("message", "a {b} [c");
        check(deploy, "ci: deploy: a {b} [c");
    }
}

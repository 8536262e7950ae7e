//! Finds a prompt in a transcript of any program.

use crate::nudge::fingerprint;
use serde_json::Value;

/// Returns whether a line of a transcript shows that a model received this prompt at `since` or
/// later. Both times are RFC 3339 in UTC and are compared to the second. A line without a time
/// proves nothing: the same text may have been sent before.
pub fn is_prompt(line: &str, prompt: &str, since: &str) -> bool {
    // A line that is not JSON, such as one that is being written, proves nothing.
    let Ok(entry) = serde_json::from_str::<Value>(line) else {
        return false;
    };
    // No model has seen what is still in Claude Code's queue.
    if entry["type"] == "queue-operation" {
        return false;
    }
    let second = |time: &str| time.get(..19).map(str::to_owned);
    let is_late_enough = match (entry["timestamp"].as_str(), second(since)) {
        (Some(at), Some(since)) => second(at).is_some_and(|at| at >= since),
        _ => false,
    };
    is_late_enough && contains(&entry, &fingerprint(prompt))
}

/// Returns whether any string in the value has this fingerprint.
fn contains(value: &Value, wanted: &str) -> bool {
    match value {
        Value::String(text) => fingerprint(text) == wanted,
        Value::Array(items) => items.iter().any(|item| contains(item, wanted)),
        Value::Object(fields) => fields.values().any(|field| contains(field, wanted)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_is_found_in_each_format() {
        let claude = r#"{"type":"user","timestamp":"2026-11-17T14:00:05.123Z","message":{"role":"user","content":"go on "}}"#;
        let codex = r#"{"timestamp":"2026-11-17T14:00:05.123Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"go on"}]}}"#;
        for line in [claude, codex] {
            for (since, expected) in [
                ("2026-11-17T14:00:05Z", true),
                ("2026-11-17T13:59:59Z", true),
                ("2026-11-17T14:00:06Z", false),
            ] {
                assert_eq!(is_prompt(line, "go on", since), expected, "{since} {line}");
            }
            assert!(!is_prompt(line, "go", "2026-11-17T14:00:05Z"));
        }
        let queued = claude.replace("\"user\",\"t", "\"queue-operation\",\"t");
        let without_time = r#"{"type":"user","content":"go on"}"#;
        for line in [queued.as_str(), without_time, "{", ""] {
            assert!(!is_prompt(line, "go on", "2026-11-17T14:00:05Z"), "{line}");
        }
    }
}

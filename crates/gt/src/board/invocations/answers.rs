//! Reads the JSON answers of commands.

use gt_board::{BehindFacts, ItemFields, Question};
use serde_json::Value;

/// Formats a problem: its message, causes and hints.
pub(super) fn problem_text(error: &Value) -> String {
    let list = |name: &str| texts(&error[name]);
    let causes = list("causes");
    let message = error["message"].as_str().unwrap_or_default();
    // A cause follows after a colon instead of a full stop.
    let message = match causes.is_empty() {
        true => message.to_owned(),
        false => message.trim_end_matches('.').to_owned(),
    };
    let causes = causes.into_iter().map(|cause| format!(": {cause}"));
    let hints = list("hints").into_iter().map(|hint| format!("\n{hint}"));
    let parts = std::iter::once(message).chain(causes);
    parts.chain(hints).collect()
}

pub(super) fn texts(value: &Value) -> Vec<String> {
    let texts = value.as_array().into_iter().flatten();
    let texts = texts.filter_map(|text| Some(text.as_str()?.to_owned()));
    texts.collect()
}

/// Returns the summary of an answer: its message, result or URL; of a new item, its id.
pub(super) fn summary(words: &[String], answer: &Value) -> String {
    let text = |name: &str| answer.get(name).and_then(Value::as_str);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["work", "create", ..] => text("id").unwrap_or_default().to_owned(),
        ["sling", ..] => assignment(answer),
        ["interrupt", ..] => interruption(answer),
        ["nudge", ..] => delivery(answer),
        _ => {
            let found = text("message")
                .or_else(|| text("result"))
                .or_else(|| text("url"));
            found.unwrap_or_default().replace('_', " ")
        }
    }
}

/// Formats the result of `gt sling`: the agent that has the item, or why it waits.
fn assignment(answer: &Value) -> String {
    let text = |name: &str| answer[name].as_str().unwrap_or_default();
    match answer["queued"].as_bool() {
        Some(true) => format!("{} is queued: {}", text("bead"), text("reason")),
        _ => format!("{} → {}", text("bead"), text("agent")),
    }
}

/// Formats the result of `gt interrupt` for one agent.
fn interruption(answer: &Value) -> String {
    let is = |name: &str| answer[0][name].as_bool() == Some(true);
    let text = match (is("interrupted"), is("asks")) {
        (true, _) => "interrupted",
        (false, true) => "it asks a question, which stays open",
        (false, false) => "it was not busy",
    };
    text.to_owned()
}

/// Formats the result of `gt nudge`: delivered, or why the message waits.
fn delivery(answer: &Value) -> String {
    match answer["delivered"].as_str() {
        Some("queue") => match answer["reason"].as_str() {
            Some(reason) => format!("queued, {reason}"),
            None => "queued".to_owned(),
        },
        _ => "delivered".to_owned(),
    }
}

/// Parses the item from the answer of `gt work show`.
pub(super) fn item(answer: &Value) -> ItemFields {
    let text = |name: &str| answer[name].as_str().unwrap_or_default().to_owned();
    let priority = answer["priority"].as_u64();
    ItemFields {
        title: text("title"),
        description: text("description"),
        priority: priority.and_then(|it| u8::try_from(it).ok()).unwrap_or(2),
        kind: text("type"),
        labels: texts(&answer["labels"]),
        blockers: texts(&answer["deps"]),
    }
}

/// Parses the answer of `gt task attach --dry-run`.
pub(super) fn behind(answer: &Value) -> BehindFacts {
    let behind = answer["behind"].as_u64();
    BehindFacts {
        base: answer["base"].as_str().unwrap_or_default().to_owned(),
        behind: behind.and_then(|it| u32::try_from(it).ok()).unwrap_or(0),
        merging: answer["merging"].as_bool() == Some(true),
    }
}

/// Parses the question of an agent from the answer of `gt answer`.
pub(super) fn question(answer: &Value) -> Result<Question, String> {
    let text = |name: &str| Some(answer[name].as_str()?.to_owned());
    let options = texts(&answer["options"]);
    let read = || {
        Some(Question {
            text: text("question")?,
            fingerprint: text("fingerprint")?,
            options: texts(&answer["labels"]).into_iter().zip(options).collect(),
        })
    };
    let question = read().filter(|question| !question.options.is_empty());
    question.ok_or_else(|| "its options cannot be read".to_owned())
}

/// Returns the steps of a dry run. A refusal is a failure.
pub(super) fn steps(answer: &Value) -> Result<Vec<String>, String> {
    if let Some(refusal) = answer.get("refused") {
        return Err(problem_text(refusal));
    }
    let steps = answer["steps"].as_array().into_iter().flatten();
    let texts = steps.filter_map(|step| Some(step["text"].as_str()?.to_owned()));
    Ok(texts.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn summary_depends_on_the_command() {
        for (words, answer, text) in [
            (
                "work create",
                json!({"id": "gt-00new", "title": "x"}),
                "gt-00new",
            ),
            (
                "sling --json",
                json!({"bead": "gt-00new", "agent": "gt/polecats/Toast"}),
                "gt-00new → gt/polecats/Toast",
            ),
            (
                "sling --json",
                json!({"bead": "gt-00new", "queued": true, "reason": "all are busy"}),
                "gt-00new is queued: all are busy",
            ),
            (
                "interrupt --json",
                json!([{"interrupted": true, "asks": false}]),
                "interrupted",
            ),
            (
                "interrupt --json",
                json!([{"interrupted": false, "asks": false}]),
                "it was not busy",
            ),
            (
                "nudge max",
                json!({"delivered": "agent", "verified": true}),
                "delivered",
            ),
            (
                "nudge max",
                json!({"delivered": "queue", "reason": "it is busy"}),
                "queued, it is busy",
            ),
            (
                "task update",
                json!({"result": "up_to_date", "id": "x"}),
                "up to date",
            ),
            ("work close", json!({"id": "gt-00new"}), ""),
        ] {
            let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
            assert_eq!(summary(&words, &answer), text);
        }
    }

    #[test]
    fn item_and_distance_are_read() {
        let read = item(&json!({"title": "x", "type": "bug", "priority": 0, "deps": ["gt-00epc"]}));
        assert_eq!((read.kind.as_str(), read.priority), ("bug", 0));
        assert_eq!(read.blockers, ["gt-00epc"]);
        let read = behind(&json!({"base": "main", "behind": 3, "merging": true}));
        assert_eq!((read.behind, read.merging), (3, true));
        assert_eq!(behind(&Value::Null).behind, 0);
    }
}

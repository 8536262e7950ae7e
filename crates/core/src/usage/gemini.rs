//! Gemini CLI: each message has its token counts, and is written again whenever it has grown.
//! Measured on 0.61.0.
//!
//! When a conversation is resumed, its messages are written once more inside a `$set` line, without
//! counts and with the time of the resumption.

use super::{ModelAnswer, Tokens};
use serde::Deserialize;

#[derive(Deserialize)]
struct GeminiLine {
    id: String,
    timestamp: String,
    #[serde(default)]
    model: String,
    tokens: GeminiTokens,
}

/// Token counts. The input includes cached tokens; thoughts and tool results are counted
/// separately.
#[derive(Default, Deserialize)]
#[serde(default)]
struct GeminiTokens {
    input: u64,
    output: u64,
    cached: u64,
    thoughts: u64,
    tool: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiHeader {
    project_hash: String,
}

pub(super) fn answer(line: &str) -> Option<(String, ModelAnswer)> {
    if !line.contains(r#""tokens""#) {
        return None;
    }
    // A line that is still being written is read again when it is complete.
    let line: GeminiLine = serde_json::from_str(line).ok()?;
    let GeminiTokens {
        input,
        output,
        cached,
        thoughts,
        tool,
    } = line.tokens;
    let answer = ModelAnswer {
        id: Some(line.id),
        model: line.model,
        tokens: Tokens {
            input: input.saturating_sub(cached).saturating_add(tool),
            output: output.saturating_add(thoughts),
            cache_read: cached,
            ..Tokens::default()
        },
        cost: None,
    };
    Some((line.timestamp, answer))
}

/// Returns the SHA-256 of the conversation's folder, from the first line of its file; `None` for a
/// file of another format.
pub(super) fn project(first_line: &str) -> Option<String> {
    let header: GeminiHeader = serde_json::from_str(first_line).ok()?;
    Some(header.project_hash)
}

#[cfg(test)]
mod tests {
    use crate::price::Prices;
    use crate::usage::{Format, TranscriptProgress, UsageWindow};

    const LINES: [&str; 7] = [
        r#"{"sessionId":"01a1e233-8fa7","projectHash":"79e5","startTime":"2026-11-16T02:33:15.008Z","lastUpdated":"2026-11-16T02:33:15.008Z","kind":"main"}"#,
        r#"{"$set":{"messages":[{"id":"90cf","timestamp":"2026-11-16T02:33:15.009Z","type":"gemini","content":[{"text":"\"tokens\""}]}],"lastUpdated":"2026-11-16T02:33:15.009Z"}}"#,
        r#"{"id":"d421","timestamp":"2026-11-16T02:33:15.194Z","type":"user","content":[{"text":"hello one"}]}"#,
        r#"{"id":"90cf","timestamp":"2026-11-16T02:33:15.260Z","type":"gemini","content":"","thoughts":[],"tokens":{"input":5000,"output":7,"cached":2500,"thoughts":0,"tool":0,"total":5007},"model":"gemini-3.8-flash"}"#,
        r#"{"$set":{"lastUpdated":"2026-11-16T02:33:15.260Z"}}"#,
        r#"{"id":"90cf","timestamp":"2026-11-16T02:33:15.260Z","type":"gemini","content":"","thoughts":[],"tokens":{"input":5000,"output":9,"cached":2500,"thoughts":4,"tool":30,"total":5043},"model":"gemini-3.8-flash","toolCalls":[{"id":"run_shell_command"}]}"#,
        r#"{"id":"90cf","tokens":{"#,
    ];

    #[test]
    fn a_message_that_grew_counts_once() {
        let mut reading = TranscriptProgress::default();
        for line in LINES {
            reading.line(
                Format::Gemini,
                line,
                &UsageWindow::default(),
                &Prices::builtin(),
            );
        }
        let usage = reading.usage();
        assert_eq!((usage.input_tokens, usage.output_tokens), (2530, 13));
        assert_eq!(usage.cache_read_tokens, 2500);
        assert_eq!(usage.tokens(), 5043, "the program's own total");
        assert_eq!(usage.model.as_deref(), Some("gemini-3.8-flash"));
        let cost = usage.cost_usd.unwrap();
        let expected = 2530.0 * 0.75e-6 + 13.0 * 3.75e-6 + 2500.0 * 0.075e-6;
        assert!((cost - expected).abs() < 1e-12, "{cost}");
    }

    #[test]
    fn a_file_tells_its_folder() {
        assert!(Format::Gemini.is_of_folder(LINES[0], "/town/max", "79e5"));
        assert!(!Format::Gemini.is_of_folder(LINES[0], "/town/max", "79e6"));
        assert!(!Format::Gemini.is_of_folder(LINES[1], "/town/max", "79e5"));
    }
}

//! Codex: events with the totals of the conversation. Measured on 0.166.0.
//!
//! The usage of an answer is the difference between two successive totals. The first total of a
//! file may be far from zero, because a fork continues the totals of its origin; there the event's
//! figures for the last answer count. Codex repeats the same totals whenever something else in the
//! event changes.

use super::{ModelAnswer, Tokens};
use serde::{Deserialize, Serialize};

/// State that earlier lines set for the next.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CodexContext {
    /// Model of the turn.
    model: String,
    total: Option<CodexTokens>,
}

#[derive(Deserialize)]
struct CodexLine {
    timestamp: String,
    r#type: String,
    payload: CodexPayload,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CodexPayload {
    r#type: String,
    model: Option<String>,
    cwd: Option<String>,
    info: Option<CodexTokenInfo>,
}

#[derive(Deserialize)]
struct CodexTokenInfo {
    total_token_usage: CodexTokens,
    last_token_usage: Option<CodexTokens>,
}

/// Token counts. `input_tokens` includes cached input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct CodexTokens {
    input_tokens: u64,
    cached_input_tokens: u64,
    cache_write_input_tokens: u64,
    output_tokens: u64,
}

impl CodexTokens {
    fn since(self, before: CodexTokens) -> Option<CodexTokens> {
        Some(CodexTokens {
            input_tokens: self.input_tokens.checked_sub(before.input_tokens)?,
            cached_input_tokens: self
                .cached_input_tokens
                .checked_sub(before.cached_input_tokens)?,
            cache_write_input_tokens: self
                .cache_write_input_tokens
                .checked_sub(before.cache_write_input_tokens)?,
            output_tokens: self.output_tokens.checked_sub(before.output_tokens)?,
        })
    }

    fn tokens(self) -> Tokens {
        let cached = self
            .cached_input_tokens
            .saturating_add(self.cache_write_input_tokens);
        Tokens {
            input: self.input_tokens.saturating_sub(cached),
            output: self.output_tokens,
            cache_read: self.cached_input_tokens,
            cache_write: self.cache_write_input_tokens,
            cache_write_1h: 0,
        }
    }
}

impl CodexContext {
    pub(super) fn answer(&mut self, line: &str) -> Option<(String, ModelAnswer)> {
        if !(line.contains(r#""token_count""#) || line.contains(r#""turn_context""#)) {
            return None;
        }
        // A line that is still being written is read again when it is complete.
        let line: CodexLine = serde_json::from_str(line).ok()?;
        if line.r#type == "turn_context" {
            self.model = line.payload.model.unwrap_or_default();
            return None;
        }
        if line.r#type != "event_msg" || line.payload.r#type != "token_count" {
            return None;
        }
        let info = line.payload.info?;
        let total = info.total_token_usage;
        let last = info.last_token_usage.unwrap_or_default();
        let step = match self.total.replace(total) {
            None => last,
            // The totals are smaller than before: the counter was reset.
            Some(before) => total.since(before).unwrap_or(last),
        };
        let answer = ModelAnswer {
            id: None,
            model: self.model.clone(),
            tokens: step.tokens(),
            cost: None,
        };
        Some((line.timestamp, answer))
    }
}

/// Returns the folder of the conversation, from the first line of its file; `None` for a file of
/// another format.
pub(super) fn folder(first_line: &str) -> Option<String> {
    let line: CodexLine = serde_json::from_str(first_line).ok()?;
    line.payload.cwd.filter(|_| line.r#type == "session_meta")
}

#[cfg(test)]
mod tests {
    use crate::price::Prices;
    use crate::usage::{Format, TranscriptProgress, Usage, UsageWindow};

    const META: &str = r#"{"timestamp":"2026-11-16T02:32:56.860Z","ordinal":0,"type":"session_meta","payload":{"session_id":"01a1","id":"01a1","cwd":"/town/max","originator":"codex-tui","cli_version":"0.166.0","base_instructions":{"text":"You are \"token_count\""}}}"#;
    const TURN: &str = r#"{"timestamp":"2026-11-16T02:32:56.891Z","ordinal":5,"type":"turn_context","payload":{"turn_id":"01a1","cwd":"/town/max","approval_policy":"never","model":"gpt-5.2","collaboration_mode":{"mode":"default"}}}"#;
    const NOTHING_YET: &str = r#"{"timestamp":"2026-11-16T02:32:56.900Z","type":"event_msg","payload":{"type":"token_count","info":null,"rate_limits":null}}"#;

    /// Returns an event as 0.166.0 writes it.
    fn event(at: &str, total: [u64; 4], last: [u64; 4]) -> String {
        let figures = |[input, cached, written, output]: [u64; 4]| {
            format!(
                r#"{{"input_tokens":{input},"cached_input_tokens":{cached},"cache_write_input_tokens":{written},"output_tokens":{output},"reasoning_output_tokens":3,"total_tokens":{}}}"#,
                input + output
            )
        };
        format!(
            r#"{{"timestamp":"2026-11-16T{at}Z","ordinal":12,"type":"event_msg","payload":{{"type":"token_count","info":{{"total_token_usage":{},"last_token_usage":{},"model_context_window":258400}},"rate_limits":{{"limit_id":"codex"}}}}}}"#,
            figures(total),
            figures(last)
        )
    }

    fn read(lines: &[&str], window: &UsageWindow) -> Usage {
        let mut reading = TranscriptProgress::default();
        for line in lines {
            reading.line(Format::Codex, line, window, &Prices::builtin());
        }
        reading.usage()
    }

    #[test]
    fn steps_between_totals() {
        let first = event("02:33:00.000", [5000, 2500, 100, 7], [5000, 2500, 100, 7]);
        let again = event("02:33:01.000", [5000, 2500, 100, 7], [5000, 2500, 100, 7]);
        let second = event("02:34:00.000", [11000, 6500, 100, 20], [6000, 4000, 0, 13]);
        let lines = [META, TURN, NOTHING_YET, &first, &again, &second, "torn {"];
        let usage = read(&lines, &UsageWindow::default());
        assert_eq!(
            (
                usage.input_tokens,
                usage.cache_read_tokens,
                usage.cache_write_tokens,
                usage.output_tokens
            ),
            (11000 - 6600, 6500, 100, 20),
            "what came from a cache is a part of the input"
        );
        assert_eq!(usage.model.as_deref(), Some("gpt-5.2"));
        // A later session of the same conversation.
        let later = UsageWindow {
            since: "2026-11-16T02:33:30.000Z".into(),
            ..UsageWindow::default()
        };
        assert_eq!(read(&lines, &later).output_tokens, 13);
    }

    #[test]
    fn a_fork_does_not_count_what_it_came_from() {
        let first = event("02:37:31.238", [15000, 7500, 0, 21], [5000, 2500, 0, 7]);
        let second = event("02:37:41.238", [20000, 10000, 0, 28], [5000, 2500, 0, 7]);
        let usage = read(&[META, TURN, &first, &second], &UsageWindow::default());
        assert_eq!((usage.input_tokens, usage.output_tokens), (5000, 14));
        // A counter that was reset does not subtract.
        let anew = event("02:37:51.238", [600, 100, 0, 5], [600, 100, 0, 5]);
        let usage = read(
            &[META, TURN, &first, &second, &anew],
            &UsageWindow::default(),
        );
        assert_eq!((usage.input_tokens, usage.output_tokens), (5500, 19));
    }

    #[test]
    fn a_file_tells_its_folder() {
        assert!(Format::Codex.is_of_folder(META, "/town/max", ""));
        assert!(!Format::Codex.is_of_folder(META, "/town/amy", ""));
        assert!(!Format::Codex.is_of_folder(TURN, "/town/max", ""));
        assert!(!Format::Codex.is_of_folder("", "/town/max", ""));
    }
}

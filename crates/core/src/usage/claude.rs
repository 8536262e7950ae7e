//! Claude Code, and the demo agent: a line for each block of an answer, each with the token counts
//! of the whole answer as far as they were known. Measured on 2.1.325.

use super::{ModelAnswer, Tokens};
use serde::Deserialize;

#[derive(Deserialize)]
struct ClaudeLine {
    r#type: String,
    timestamp: String,
    message: ClaudeMessage,
}

#[derive(Deserialize)]
struct ClaudeMessage {
    id: Option<String>,
    #[serde(default)]
    model: String,
    usage: ClaudeTokens,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ClaudeTokens {
    input_tokens: u64,
    output_tokens: u64,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_creation: Option<ClaudeCacheWrites>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ClaudeCacheWrites {
    ephemeral_1h_input_tokens: u64,
}

/// Parses the answer in a line, and its time.
pub(super) fn answer(line: &str) -> Option<(String, ModelAnswer)> {
    // Most lines of a transcript are something else, and long: skip them before parsing.
    if !(line.contains(r#""assistant""#) && line.contains(r#""usage""#)) {
        return None;
    }
    // A line that is still being written is read again when it is complete.
    let line: ClaudeLine = serde_json::from_str(line).ok()?;
    // Messages that the program writes in place of an answer, such as errors.
    if line.r#type != "assistant" || line.message.model == "<synthetic>" {
        return None;
    }
    let ClaudeMessage { id, model, usage } = line.message;
    let written = usage.cache_creation.unwrap_or_default();
    let cache_write = usage.cache_creation_input_tokens.unwrap_or_default();
    let tokens = Tokens {
        input: usage.input_tokens,
        output: usage.output_tokens,
        cache_read: usage.cache_read_input_tokens.unwrap_or_default(),
        cache_write,
        cache_write_1h: written.ephemeral_1h_input_tokens.min(cache_write),
    };
    let answer = ModelAnswer {
        id,
        model,
        tokens,
        cost: None,
    };
    Some((line.timestamp, answer))
}

#[cfg(test)]
mod tests {
    use crate::price::Prices;
    use crate::usage::{Format, TranscriptProgress, Usage, UsageWindow};

    fn read(lines: &[&str], window: &UsageWindow) -> Usage {
        let mut reading = TranscriptProgress::default();
        for line in lines {
            reading.line(Format::Claude, line, window, &Prices::builtin());
        }
        reading.usage()
    }

    // Lines of 2.1.325, without irrelevant fields.
    const FIRST: &str = r#"{"parentUuid":"d176","isSidechain":false,"message":{"id":"msg_01A","type":"message","role":"assistant","model":"claude-opus-5-5","content":[{"type":"thinking","thinking":"…"}],"stop_reason":null,"usage":{"input_tokens":5000,"cache_creation_input_tokens":300,"cache_read_input_tokens":2500,"output_tokens":1,"service_tier":"standard","cache_creation":{"ephemeral_1h_input_tokens":100,"ephemeral_5m_input_tokens":200}}},"type":"assistant","uuid":"1c79","timestamp":"2026-11-16T02:32:54.535Z","sessionId":"01a1e233"}"#;
    const SECOND: &str = r#"{"parentUuid":"1c79","isSidechain":false,"message":{"id":"msg_01A","type":"message","role":"assistant","model":"claude-opus-5-5","content":[{"type":"text","text":"\"usage\""}],"stop_reason":"end_turn","usage":{"input_tokens":5000,"cache_creation_input_tokens":300,"cache_read_input_tokens":2500,"output_tokens":70,"service_tier":"standard","cache_creation":{"ephemeral_1h_input_tokens":100,"ephemeral_5m_input_tokens":200}}},"type":"assistant","uuid":"1c80","timestamp":"2026-11-16T02:32:55.535Z","sessionId":"01a1e233"}"#;
    const OTHERS: [&str; 6] = [
        r#"{"type":"mode","mode":"normal","sessionId":"01a1e233"}"#,
        r#"{"parentUuid":null,"type":"user","message":{"role":"user","content":"say \"assistant\" and \"usage\""},"timestamp":"2026-11-16T02:32:54.379Z"}"#,
        r#"{"type":"assistant","timestamp":"2026-11-16T02:32:56.000Z","message":{"id":"x","model":"<synthetic>","usage":{"input_tokens":9,"output_tokens":9}}}"#,
        r#"{"type":"cost-state","totalCostUSD":0.04,"modelUsage":{}}"#,
        r#"{"type":"assistant","timestamp":"2026-11-16T02:32:56.000Z","message":{"id":"y","usage":"#,
        "",
    ];

    #[test]
    fn an_answer_in_several_lines() {
        let lines = [&[FIRST, SECOND], OTHERS.as_slice()].concat();
        let usage = read(&lines, &UsageWindow::default());
        // 4, 20 and 0.2 per million; a cache write costs 5 for five minutes and 8 for an hour.
        let cost = usage.cost_usd.unwrap();
        let expected = 5000.0 * 4e-6 + 70.0 * 20e-6 + 2500.0 * 0.2e-6 + 200.0 * 5e-6 + 100.0 * 8e-6;
        assert!((cost - expected).abs() < 1e-12, "{cost}");
        assert_eq!(
            usage,
            Usage {
                input_tokens: 5000,
                output_tokens: 70,
                cache_read_tokens: 2500,
                cache_write_tokens: 300,
                model: Some("claude-opus-5-5".into()),
                cost_usd: Some(cost),
                unpriced_tokens: 0,
            }
        );
    }

    #[test]
    fn only_events_of_the_session_count() {
        let later = UsageWindow {
            since: "2026-11-16T02:32:55.000Z".into(),
            ..UsageWindow::default()
        };
        assert_eq!(read(&[FIRST], &later).tokens(), 0);
        assert_eq!(read(&[FIRST, SECOND], &later).output_tokens, 70);
        let earlier = UsageWindow {
            since: "2026-11-16T02:00:00.000Z".into(),
            until: Some("2026-11-16T02:32:55.000Z".into()),
            ..UsageWindow::default()
        };
        assert_eq!(read(&[FIRST, SECOND], &earlier).output_tokens, 1);
    }
}

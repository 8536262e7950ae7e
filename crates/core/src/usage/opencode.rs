//! opencode: a database in which each message has its token counts. Measured on 1.18.33.
//!
//! opencode computes the cost of each message itself, from the provider's prices, which a table of
//! models cannot know. A cost of zero means that it knows no price, or that the model is billed
//! otherwise; then the table of prices applies.

use super::{ModelAnswer, Tokens};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OpencodeMessage {
    role: String,
    #[serde(rename = "modelID", default)]
    model: String,
    #[serde(default)]
    cost: f64,
    tokens: OpencodeTokens,
}

/// Token counts; none includes another.
#[derive(Default, Deserialize)]
#[serde(default)]
struct OpencodeTokens {
    input: u64,
    output: u64,
    reasoning: u64,
    cache: OpencodeCache,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct OpencodeCache {
    read: u64,
    write: u64,
}

/// Parses the answer in a row of the table `message`, from its id and its data. Returns `None` for
/// other messages and for data of another format.
pub fn answer(id: &str, data: &str) -> Option<ModelAnswer> {
    let message: OpencodeMessage = serde_json::from_str(data).ok()?;
    if message.role != "assistant" {
        return None;
    }
    Some(ModelAnswer {
        id: Some(id.to_owned()),
        model: message.model,
        tokens: Tokens {
            input: message.tokens.input,
            output: message
                .tokens
                .output
                .saturating_add(message.tokens.reasoning),
            cache_read: message.tokens.cache.read,
            cache_write: message.tokens.cache.write,
            cache_write_1h: 0,
        },
        cost: Some(message.cost).filter(|cost| *cost > 0.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_with_its_figures() {
        let data = r#"{"parentID":"msg_1","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/town/max","root":"/town/max"},"cost":0.015855,"tokens":{"total":7507,"input":5000,"output":7,"reasoning":2,"cache":{"write":3,"read":2500}},"modelID":"claude-sonnet-4-5","providerID":"anthropic","time":{"created":1794796387765,"completed":1794796390973},"finish":"stop"}"#;
        let expected = ModelAnswer {
            id: Some("msg_2".into()),
            model: "claude-sonnet-4-5".into(),
            tokens: Tokens {
                input: 5000,
                output: 9,
                cache_read: 2500,
                cache_write: 3,
                cache_write_1h: 0,
            },
            cost: Some(0.015855),
        };
        assert_eq!(answer("msg_2", data), Some(expected));
        let user = r#"{"role":"user","time":{"created":1},"tokens":{}}"#;
        assert_eq!(answer("msg_1", user), None);
        assert_eq!(answer("msg_1", "{"), None);
    }
}

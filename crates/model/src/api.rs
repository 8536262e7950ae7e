//! The wire formats: one row of functions each.
//!
//! A format parses a request and writes an answer. `answer` decides the content, and `server` owns
//! the connection.

mod anthropic;
mod chat;
mod gemini;
pub(crate) mod other;
mod responses;

use crate::conversation::ConversationEntry;
use crate::directive::ToolCall;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Wire format of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Api {
    /// Anthropic Messages: Claude Code, opencode.
    Anthropic,
    /// OpenAI Responses: Codex.
    Responses,
    /// OpenAI Chat Completions.
    Chat,
    /// Gemini: Gemini CLI.
    Gemini,
    /// Lists of models, token counts, and all other requests.
    #[default]
    Other,
}

/// An answer that refuses a request, with additional headers.
#[derive(Debug)]
pub(crate) struct RefusalReply {
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Value,
}

/// A wire format.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) api: Api,
    /// Returns whether a POST to this path wants an answer in this format.
    pub(crate) serves: fn(path: &str) -> bool,
    pub(crate) read: for<'a> fn(path: &'a str, body: &'a Value) -> ModelRequest<'a>,
    /// Returns the answer in one piece.
    pub(crate) whole: fn(&ModelResponse<'_>) -> Value,
    /// Returns the answer as a stream.
    pub(crate) events: fn(&ModelResponse<'_>) -> Vec<StreamEvent>,
    pub(crate) error: fn(status: u16, message: &str) -> Value,
    /// Returns the answer at a usage limit that ends at that time.
    pub(crate) limit: fn(resets_at: i64) -> RefusalReply,
}

const WIRES: &[Wire] = &[anthropic::WIRE, responses::WIRE, chat::WIRE, gemini::WIRE];

/// Returns the format for a path, if requests there want an answer.
pub(crate) fn wire(path: &str) -> Option<&'static Wire> {
    WIRES.iter().find(|wire| (wire.serves)(path))
}

/// A parsed request. Fields that are missing or of the wrong type count as empty: a real service
/// would refuse, but a test wants to see what arrived.
#[derive(Debug)]
pub(crate) struct ModelRequest<'a> {
    pub(crate) model: &'a str,
    pub(crate) stream: bool,
    pub(crate) has_tools: bool,
    pub(crate) items: Vec<ConversationEntry<'a>>,
    /// Schema that the answer must fit.
    pub(crate) schema: Option<&'a Value>,
}

/// Content of an answer, independent of the wire format.
#[derive(Debug)]
pub(crate) struct ModelResponse<'a> {
    /// Makes the ids in the answer unique.
    pub(crate) serial: u64,
    pub(crate) model: &'a str,
    /// Body of the request.
    pub(crate) body: &'a Value,
    pub(crate) says: ReplyContent,
    pub(crate) usage: UsageEstimate,
    /// Seconds since the epoch.
    pub(crate) created: i64,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ReplyContent {
    /// A text, in the pieces in which it is streamed.
    Text(Vec<String>),
    Call(ToolCall),
}

/// Estimated token counts. The formats differ on whether cached tokens are a part of the input; the
/// counts are reported as they stand here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageEstimate {
    pub input: u64,
    pub cached: u64,
    pub output: u64,
}

impl UsageEstimate {
    pub(crate) fn total(self) -> u64 {
        self.input + self.output
    }
}

/// A server-sent event.
#[derive(Clone, Debug)]
pub(crate) struct StreamEvent {
    pub(crate) name: Option<&'static str>,
    pub(crate) data: String,
    /// Whether it is a piece of text, after which a slow stream pauses.
    pub(crate) paced: bool,
}

impl StreamEvent {
    fn new(data: &Value) -> Self {
        StreamEvent {
            name: None,
            data: data.to_string(),
            paced: false,
        }
    }

    /// Returns an event whose name is also the `type` in its data.
    fn named(name: &'static str, mut data: Value) -> Self {
        data["type"] = name.into();
        let event = StreamEvent::new(&data);
        StreamEvent {
            name: Some(name),
            ..event
        }
    }

    fn paced(self) -> Self {
        StreamEvent {
            paced: true,
            ..self
        }
    }
}

/// Returns a list in a JSON value; empty if there is none.
fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value
        .get(key)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// Returns a text in a JSON value; empty if there is none.
fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Returns a flag in a JSON value; false if there is none.
fn flag(value: &Value, key: &str) -> bool {
    value.get(key).and_then(Value::as_bool).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::ConversationSummary;
    use proptest::prelude::*;
    use serde_json::json;

    /// Returns JSON made of the words that the formats know, in places where they do not belong.
    fn hostile_json() -> impl Strategy<Value = Value> {
        let words = prop::sample::select(vec![
            "user",
            "assistant",
            "model",
            "system",
            "text",
            "input_text",
            "message",
            "tool",
            "tool_result",
            "function_call",
            "function_call_output",
            "<system-reminder>",
            "x\n",
        ]);
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            words.prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 60, 6, |inner| {
            let keys = prop::sample::select(vec![
                "model",
                "stream",
                "tools",
                "messages",
                "input",
                "contents",
                "role",
                "content",
                "parts",
                "type",
                "text",
                "functionResponse",
                "functionDeclarations",
                "format",
                "schema",
                "generationConfig",
                "responseSchema",
                "name",
            ]);
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::vec((keys, inner), 0..6).prop_map(|entries| {
                    Value::Object(
                        entries
                            .into_iter()
                            .map(|(k, v)| (k.to_owned(), v))
                            .collect(),
                    )
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_json_can_be_read_and_answered(body in hostile_json(), path in "[a-z0-9/:.]{0,30}") {
            for wire in WIRES {
                let asked = (wire.read)(&path, &body);
                let _ = ConversationSummary::of(&asked.items);
                let calls = ReplyContent::Call(ToolCall { name: "x".to_owned(), arguments: json!({}) });
                for says in [ReplyContent::Text(vec!["a".to_owned(), "b".to_owned()]), calls] {
                    let answer = ModelResponse {
                        serial: 1,
                        model: asked.model,
                        body: &body,
                        says,
                        usage: UsageEstimate { input: 1, cached: 1, output: 1 },
                        created: 0,
                    };
                    let _ = (wire.whole)(&answer);
                    let events = (wire.events)(&answer);
                    prop_assert!(!events.is_empty());
                }
            }
        }
    }

    #[test]
    fn the_paths_of_the_formats() {
        for (path, api) in [
            ("/v1/messages", Some(Api::Anthropic)),
            ("/v1/messages/count_tokens", None),
            ("/v1/responses", Some(Api::Responses)),
            ("/responses", Some(Api::Responses)),
            ("/v1/chat/completions", Some(Api::Chat)),
            ("/v1beta/models/g:streamGenerateContent", Some(Api::Gemini)),
            ("/v1beta/models/g:generateContent", Some(Api::Gemini)),
            ("/v1beta/models/g:countTokens", None),
            ("/v1/models", None),
            ("/", None),
        ] {
            assert_eq!(wire(path).map(|wire| wire.api), api, "{path}");
        }
    }
}

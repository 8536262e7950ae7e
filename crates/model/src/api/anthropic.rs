//! Anthropic Messages: `POST /v1/messages`, with and without `?beta=true`.

use super::{
    Api, ModelRequest, ModelResponse, RefusalReply, ReplyContent, StreamEvent, UsageEstimate, Wire,
    flag, list, text,
};
use crate::conversation::ConversationEntry;
use crate::typed::typed_in_system;
use serde_json::{Value, json};

pub(super) const WIRE: Wire = Wire {
    api: Api::Anthropic,
    serves: |path| path.ends_with("/messages"),
    read,
    whole,
    events,
    error,
    limit,
};

fn read<'a>(_path: &'a str, body: &'a Value) -> ModelRequest<'a> {
    ModelRequest {
        model: text(body, "model"),
        stream: flag(body, "stream"),
        has_tools: !list(body, "tools").is_empty(),
        items: list(body, "messages").iter().flat_map(items).collect(),
        schema: body.pointer("/output_config/format/schema"),
    }
}

fn items(message: &Value) -> Vec<ConversationEntry<'_>> {
    match text(message, "role") {
        "user" => {}
        "assistant" => return vec![ConversationEntry::Model],
        // Claude Code puts system messages into the conversation, too.
        _ => return aside_items(message),
    }
    if let Some(text) = message.get("content").and_then(Value::as_str) {
        return vec![ConversationEntry::user(text)];
    }
    let parts = list(message, "content");
    let items = parts.iter().enumerate().filter_map(|(index, part)| {
        match text(part, "type") {
            "text" => {
                let text = text(part, "text");
                // Claude Code joins several messages that the model has not answered into one: each
                // but the last ends with a line break.
                let next = parts.get(index + 1);
                let joined = next.is_some_and(|next| next["type"] == "text");
                Some(ConversationEntry::User { text, joined })
            }
            "tool_result" => Some(ConversationEntry::ToolResult),
            _ => None,
        }
    });
    items.collect()
}

/// Returns a system message, and the person's messages that it contains.
fn aside_items(message: &Value) -> Vec<ConversationEntry<'_>> {
    let content = &message["content"];
    let parts = list(message, "content").iter();
    let texts = parts.map(|part| text(part, "text")).chain(content.as_str());
    let items = texts.flat_map(|text| {
        let typed = typed_in_system(text)
            .into_iter()
            .map(ConversationEntry::user);
        std::iter::once(ConversationEntry::Aside(text)).chain(typed)
    });
    items.collect()
}

fn usage(usage: UsageEstimate) -> Value {
    json!({
        "input_tokens": usage.input,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached,
        "output_tokens": usage.output,
    })
}

fn id(answer: &ModelResponse<'_>) -> String {
    format!("msg_fake{:06}", answer.serial)
}

fn stop_reason(says: &ReplyContent) -> &'static str {
    match says {
        ReplyContent::Text(_) => "end_turn",
        ReplyContent::Call(_) => "tool_use",
    }
}

fn whole(answer: &ModelResponse<'_>) -> Value {
    let block = match &answer.says {
        ReplyContent::Text(pieces) => json!({"type": "text", "text": pieces.concat()}),
        ReplyContent::Call(call) => json!({
            "type": "tool_use",
            "id": format!("toolu_fake{:06}", answer.serial),
            "name": call.name,
            "input": call.arguments,
        }),
    };
    json!({
        "id": id(answer),
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "content": [block],
        "stop_reason": stop_reason(&answer.says),
        "stop_sequence": null,
        "usage": usage(answer.usage),
    })
}

fn events(answer: &ModelResponse<'_>) -> Vec<StreamEvent> {
    // The stream begins with the message, without the parts that are still to come.
    let mut message = whole(answer);
    let mut block = message["content"][0].take();
    message["content"] = json!([]);
    message["stop_reason"] = Value::Null;
    message["usage"]["output_tokens"] = json!(1);

    let deltas: Vec<Value> = match &answer.says {
        ReplyContent::Text(pieces) => {
            block["text"] = json!("");
            let delta = |piece| json!({"type": "text_delta", "text": piece});
            pieces.iter().map(delta).collect()
        }
        ReplyContent::Call(call) => {
            block["input"] = json!({});
            let json = call.arguments.to_string();
            vec![json!({"type": "input_json_delta", "partial_json": json})]
        }
    };
    let mut events = vec![
        StreamEvent::named("message_start", json!({"message": message})),
        StreamEvent::named("ping", json!({})),
        StreamEvent::named(
            "content_block_start",
            json!({"index": 0, "content_block": block}),
        ),
    ];
    events.extend(deltas.iter().map(|delta| {
        let data = json!({"index": 0, "delta": delta});
        StreamEvent::named("content_block_delta", data).paced()
    }));
    let end = json!({
        "delta": {"stop_reason": stop_reason(&answer.says), "stop_sequence": null},
        "usage": usage(answer.usage),
    });
    events.extend([
        StreamEvent::named("content_block_stop", json!({"index": 0})),
        StreamEvent::named("message_delta", end),
        StreamEvent::named("message_stop", json!({})),
    ]);
    events
}

/// Returns the refusal for a subscription whose five-hour limit is used up.
fn limit(resets_at: i64) -> RefusalReply {
    let resets_at = resets_at.to_string();
    let headers = [
        ("anthropic-ratelimit-unified-status", "rejected"),
        ("anthropic-ratelimit-unified-reset", &resets_at),
        (
            "anthropic-ratelimit-unified-representative-claim",
            "five_hour",
        ),
        ("anthropic-ratelimit-unified-5h-status", "rejected"),
        ("anthropic-ratelimit-unified-5h-reset", &resets_at),
        ("anthropic-ratelimit-unified-5h-utilization", "1.0"),
    ];
    RefusalReply {
        headers: headers
            .iter()
            .map(|(name, value)| (*name, (*value).to_owned()))
            .collect(),
        body: error(429, "This request would exceed your account's rate limit."),
    }
}

fn error(status: u16, message: &str) -> Value {
    let kind = match status {
        400 => "invalid_request_error",
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        _ => "api_error",
    };
    json!({"type": "error", "error": {"type": kind, "message": message}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_of_claude_code() {
        let body = json!({"model": "m", "stream": true, "tools": [{}], "messages": [
            {"role": "user", "content": [
                {"type": "text", "text": "<system-reminder>\nx\n</system-reminder>\n"},
                {"type": "text", "text": "hello"}]},
            {"role": "system", "content": [{"type": "text", "text": "# Environment"}]},
            {"role": "assistant", "content": [{"type": "tool_use"}]},
            {"role": "user", "content": [
                {"type": "tool_result", "content": "hi"}, {"type": "text", "text": "more"}]},
            {"role": "user", "content": "last"},
        ]});
        let asked = read("/v1/messages", &body);
        assert!(asked.stream && asked.has_tools);
        assert_eq!(asked.model, "m");
        assert_eq!(
            asked.items,
            [
                ConversationEntry::User {
                    text: "<system-reminder>\nx\n</system-reminder>\n",
                    joined: true
                },
                ConversationEntry::user("hello"),
                ConversationEntry::Aside("# Environment"),
                ConversationEntry::Model,
                ConversationEntry::ToolResult,
                ConversationEntry::user("more"),
                ConversationEntry::user("last"),
            ]
        );
    }
}

//! OpenAI Chat Completions: `POST /v1/chat/completions`.

use super::{
    Api, ModelRequest, ModelResponse, RefusalReply, ReplyContent, StreamEvent, Wire, flag, list,
    text,
};
use crate::conversation::ConversationEntry;
use serde_json::{Value, json};

pub(super) const WIRE: Wire = Wire {
    api: Api::Chat,
    serves: |path| path.ends_with("/chat/completions"),
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
        schema: body.pointer("/response_format/json_schema/schema"),
    }
}

fn items(message: &Value) -> Vec<ConversationEntry<'_>> {
    match text(message, "role") {
        "user" => user_items(message),
        "assistant" => vec![ConversationEntry::Model],
        "tool" => vec![ConversationEntry::ToolResult],
        _ => vec![],
    }
}

/// Returns the items of a user's message, in either format of OpenAI's.
pub(super) fn user_items(message: &Value) -> Vec<ConversationEntry<'_>> {
    texts(message).map(ConversationEntry::user).collect()
}

/// Returns the texts of a message.
pub(super) fn texts(message: &Value) -> impl Iterator<Item = &str> {
    let parts = list(message, "content").iter();
    let parts = parts.filter_map(|part| part.get("text")?.as_str());
    parts.chain(message["content"].as_str())
}

fn head(answer: &ModelResponse<'_>, object: &str) -> Value {
    json!({
        "id": format!("chatcmpl-fake{:06}", answer.serial),
        "object": object,
        "created": answer.created,
        "model": answer.model,
    })
}

fn usage(answer: &ModelResponse<'_>) -> Value {
    json!({
        "prompt_tokens": answer.usage.input,
        "completion_tokens": answer.usage.output,
        "total_tokens": answer.usage.total(),
        "prompt_tokens_details": {"cached_tokens": answer.usage.cached},
    })
}

/// Returns the calls and the finish reason.
fn calls(answer: &ModelResponse<'_>) -> (Option<Value>, &'static str) {
    let ReplyContent::Call(call) = &answer.says else {
        return (None, "stop");
    };
    let call = json!({
        "index": 0,
        "id": format!("call_fake{:06}", answer.serial),
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments.to_string()},
    });
    (Some(json!([call])), "tool_calls")
}

fn whole(answer: &ModelResponse<'_>) -> Value {
    let (calls, reason) = calls(answer);
    let mut message = json!({"role": "assistant", "content": null});
    if let ReplyContent::Text(pieces) = &answer.says {
        message["content"] = json!(pieces.concat());
    }
    if let Some(calls) = calls {
        message["tool_calls"] = calls;
    }
    let mut whole = head(answer, "chat.completion");
    whole["choices"] = json!([{"index": 0, "message": message, "finish_reason": reason}]);
    whole["usage"] = usage(answer);
    whole
}

fn events(answer: &ModelResponse<'_>) -> Vec<StreamEvent> {
    let chunk = |choices: Value| {
        let mut chunk = head(answer, "chat.completion.chunk");
        chunk["choices"] = choices;
        chunk
    };
    let delta = |delta: Value, reason: Option<&str>| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": reason});
        StreamEvent::new(&chunk(json!([choice])))
    };
    let (calls, reason) = calls(answer);
    let mut events = vec![delta(json!({"role": "assistant", "content": ""}), None)];
    if let ReplyContent::Text(pieces) = &answer.says {
        let pieces = pieces.iter();
        events.extend(pieces.map(|piece| delta(json!({"content": piece}), None).paced()));
    }
    if let Some(calls) = calls {
        events.push(delta(json!({"tool_calls": calls}), None));
    }
    events.push(delta(json!({}), Some(reason)));
    let mut last = chunk(json!([]));
    last["usage"] = usage(answer);
    events.push(StreamEvent::new(&last));
    events.push(StreamEvent {
        name: None,
        data: "[DONE]".to_owned(),
        paced: false,
    });
    events
}

/// Returns the body of a failure, in either format of OpenAI's.
pub(super) fn error(status: u16, message: &str) -> Value {
    let kind = match status {
        429 => "rate_limit_exceeded",
        400..500 => "invalid_request_error",
        _ => "server_error",
    };
    json!({"error": {"message": message, "type": kind, "param": null, "code": null}})
}

fn limit(_resets_at: i64) -> RefusalReply {
    RefusalReply {
        headers: Vec::new(),
        body: error(429, "You exceeded your current quota."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_with_a_tool() {
        let body = json!({"messages": [
            {"role": "system", "content": "be good"},
            {"role": "user", "content": [{"type": "text", "text": "hello"}, {"type": "image_url"}]},
            {"role": "assistant", "tool_calls": []},
            {"role": "tool", "content": "hi"},
            {"role": "user", "content": "more"},
        ]});
        let expected = [
            ConversationEntry::user("hello"),
            ConversationEntry::Model,
            ConversationEntry::ToolResult,
            ConversationEntry::user("more"),
        ];
        assert_eq!(read("/v1/chat/completions", &body).items, expected);
    }
}

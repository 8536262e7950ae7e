//! OpenAI Responses: `POST /v1/responses` and `/responses`.

use super::{
    Api, ModelRequest, ModelResponse, RefusalReply, ReplyContent, StreamEvent, Wire, flag, list,
    text,
};
use crate::conversation::ConversationEntry;
use serde_json::{Value, json};

pub(super) const WIRE: Wire = Wire {
    api: Api::Responses,
    serves: |path| path.ends_with("/responses"),
    read,
    whole,
    events,
    error: super::chat::error,
    limit,
};

fn read<'a>(_path: &'a str, body: &'a Value) -> ModelRequest<'a> {
    let items = match body.get("input").and_then(Value::as_str) {
        Some(text) => vec![ConversationEntry::user(text)],
        None => list(body, "input").iter().flat_map(items).collect(),
    };
    ModelRequest {
        model: text(body, "model"),
        stream: flag(body, "stream"),
        has_tools: !list(body, "tools").is_empty(),
        items,
        schema: body.pointer("/text/format/schema"),
    }
}

fn items(entry: &Value) -> Vec<ConversationEntry<'_>> {
    let kind = text(entry, "type");
    if kind.ends_with("_output") {
        return vec![ConversationEntry::ToolResult];
    }
    // An entry without a type is a message.
    if !matches!(kind, "" | "message") {
        return vec![ConversationEntry::Model];
    }
    match text(entry, "role") {
        "user" => super::chat::user_items(entry),
        "assistant" => vec![ConversationEntry::Model],
        "developer" | "system" => super::chat::texts(entry)
            .map(ConversationEntry::Aside)
            .collect(),
        _ => vec![],
    }
}

/// Returns the output of the model: one message, or one call.
fn item(answer: &ModelResponse<'_>) -> Value {
    let serial = answer.serial;
    let call = match &answer.says {
        ReplyContent::Text(pieces) => {
            return json!({
                "id": format!("msg_fake{serial:06}"),
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [part(&pieces.concat())],
            });
        }
        ReplyContent::Call(call) => call,
    };
    // A custom tool takes a plain text; the directive gives it as `input`.
    let custom = list(answer.body, "tools")
        .iter()
        .any(|tool| tool["type"] == "custom" && tool["name"] == call.name.as_str());
    let (kind, key, value) = if custom {
        let input = text(&call.arguments, "input").to_owned();
        ("custom_tool_call", "input", input)
    } else {
        ("function_call", "arguments", call.arguments.to_string())
    };
    json!({
        "id": format!("fc_fake{serial:06}"),
        "type": kind,
        "status": "completed",
        "call_id": format!("call_fake{serial:06}"),
        "name": call.name,
        key: value,
    })
}

fn part(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": []})
}

fn whole(answer: &ModelResponse<'_>) -> Value {
    let usage = answer.usage;
    json!({
        "id": format!("resp_fake{:06}", answer.serial),
        "object": "response",
        "created_at": answer.created,
        "model": answer.model,
        "status": "completed",
        "output": [item(answer)],
        "usage": {
            "input_tokens": usage.input,
            "input_tokens_details": {"cached_tokens": usage.cached},
            "output_tokens": usage.output,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage.total(),
        },
    })
}

fn events(answer: &ModelResponse<'_>) -> Vec<StreamEvent> {
    let done = whole(answer);
    let mut begun = done.clone();
    begun["status"] = json!("in_progress");
    begun["output"] = json!([]);
    begun["usage"] = Value::Null;

    let item = item(answer);
    let mut added = item.clone();
    added["status"] = json!("in_progress");

    let mut steps = vec![
        ("response.created", json!({"response": begun})),
        ("response.in_progress", json!({"response": begun})),
    ];
    if let ReplyContent::Text(pieces) = &answer.says {
        added["content"] = json!([]);
        steps.push(("response.output_item.added", json!({"item": added})));
        let id = &item["id"];
        let within =
            |key: &str, value: Value| json!({"item_id": id, "content_index": 0, key: value});
        let text = pieces.concat();
        steps.push(("response.content_part.added", within("part", part(""))));
        steps.extend(
            pieces
                .iter()
                .map(|piece| (TEXT_DELTA, within("delta", json!(piece)))),
        );
        steps.push(("response.output_text.done", within("text", json!(text))));
        steps.push(("response.content_part.done", within("part", part(&text))));
    } else {
        steps.push(("response.output_item.added", json!({"item": added})));
    }
    steps.push(("response.output_item.done", json!({"item": item})));
    steps.push(("response.completed", json!({"response": done})));

    let numbered = steps.into_iter().enumerate();
    let events = numbered.map(|(number, (name, mut data))| {
        data["sequence_number"] = json!(number);
        if data.get("response").is_none() {
            data["output_index"] = json!(0);
        }
        StreamEvent {
            paced: name == TEXT_DELTA,
            ..StreamEvent::named(name, data)
        }
    });
    events.collect()
}

const TEXT_DELTA: &str = "response.output_text.delta";

/// Returns the refusal that Codex receives when a plan is used up.
fn limit(resets_at: i64) -> RefusalReply {
    let error = json!({"type": "usage_limit_reached", "plan_type": "plus", "resets_at": resets_at,
        "message": "The usage limit has been reached"});
    RefusalReply {
        headers: Vec::new(),
        body: json!({"error": error}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_of_codex() {
        let body = json!({"input": [
            {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "be good"}]},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]},
            {"type": "reasoning"},
            {"type": "function_call", "name": "exec_command"},
            {"type": "function_call_output", "output": "hi"},
            {"role": "user", "content": "more"},
        ]});
        let expected = [
            ConversationEntry::Aside("be good"),
            ConversationEntry::user("hello"),
            ConversationEntry::Model,
            ConversationEntry::Model,
            ConversationEntry::ToolResult,
            ConversationEntry::user("more"),
        ];
        assert_eq!(read("/v1/responses", &body).items, expected);
        let plain = json!({"input": "hello"});
        assert_eq!(
            read("/v1/responses", &plain).items,
            [ConversationEntry::user("hello")]
        );
    }
}

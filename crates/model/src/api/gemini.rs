//! Gemini: `POST /v1beta/models/{model}:streamGenerateContent?alt=sse` and `:generateContent`.

use super::{
    Api, ModelRequest, ModelResponse, RefusalReply, ReplyContent, StreamEvent, Wire, list, text,
};
use crate::conversation::ConversationEntry;
use serde_json::{Value, json};

const STREAM: &str = ":streamGenerateContent";
const WHOLE: &str = ":generateContent";

pub(super) const WIRE: Wire = Wire {
    api: Api::Gemini,
    serves: |path| path.ends_with(STREAM) || path.ends_with(WHOLE),
    read,
    whole,
    events,
    error,
    limit,
};

fn read<'a>(path: &'a str, body: &'a Value) -> ModelRequest<'a> {
    let name = path.rsplit('/').next().unwrap_or_default();
    let model = name.split(':').next().unwrap_or_default();
    let has_tools = list(body, "tools")
        .iter()
        .any(|tool| !list(tool, "functionDeclarations").is_empty());
    let config = &body["generationConfig"];
    let schema = config
        .get("responseJsonSchema")
        .or_else(|| config.get("responseSchema"));
    ModelRequest {
        model,
        stream: path.ends_with(STREAM),
        has_tools,
        items: list(body, "contents").iter().flat_map(items).collect(),
        schema,
    }
}

fn items(content: &Value) -> Vec<ConversationEntry<'_>> {
    if text(content, "role") == "model" {
        return vec![ConversationEntry::Model];
    }
    // Gemini CLI appends the files that a prompt mentions (`@file`), between two marker lines.
    let mut in_files = false;
    let items = list(content, "parts").iter().filter_map(|part| {
        if part.get("functionResponse").is_some() {
            return Some(ConversationEntry::ToolResult);
        }
        let text = part.get("text")?.as_str()?;
        in_files |= text == "\n--- Content from referenced files ---";
        if !in_files {
            return Some(ConversationEntry::user(text));
        }
        in_files = text != "\n--- End of content ---";
        Some(ConversationEntry::Program(text))
    });
    items.collect()
}

fn chunk(answer: &ModelResponse<'_>, part: &Value, last: bool) -> Value {
    let usage = answer.usage;
    let mut candidate = json!({"content": {"role": "model", "parts": [part]}, "index": 0});
    if last {
        candidate["finishReason"] = json!("STOP");
    }
    json!({
        "candidates": [candidate],
        "usageMetadata": {
            "promptTokenCount": usage.input,
            "cachedContentTokenCount": usage.cached,
            "candidatesTokenCount": usage.output,
            "totalTokenCount": usage.total(),
        },
        "modelVersion": answer.model,
        "responseId": format!("fake{:06}", answer.serial),
    })
}

fn whole(answer: &ModelResponse<'_>) -> Value {
    let part = match &answer.says {
        ReplyContent::Text(pieces) => json!({"text": pieces.concat()}),
        ReplyContent::Call(call) => {
            json!({"functionCall": {"name": call.name, "args": call.arguments}})
        }
    };
    chunk(answer, &part, true)
}

fn events(answer: &ModelResponse<'_>) -> Vec<StreamEvent> {
    let ReplyContent::Text(pieces) = &answer.says else {
        return vec![StreamEvent::new(&whole(answer))];
    };
    let pieces = pieces.iter().map(|piece| {
        let part = json!({"text": piece});
        StreamEvent::new(&chunk(answer, &part, false)).paced()
    });
    let last = StreamEvent::new(&chunk(answer, &json!({"text": ""}), true));
    pieces.chain([last]).collect()
}

fn error(status: u16, message: &str) -> Value {
    let name = match status {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        400..500 => "INVALID_ARGUMENT",
        503 => "UNAVAILABLE",
        504 => "DEADLINE_EXCEEDED",
        _ => "INTERNAL",
    };
    json!({"error": {"code": status, "message": message, "status": name}})
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
    fn a_turn_of_gemini_cli() {
        let body = json!({
            "tools": [{"functionDeclarations": [{"name": "run_shell_command"}]}],
            "contents": [
                {"role": "user", "parts": [
                    {"text": "<session_context>\nx\n</session_context>"}, {"text": "hello"}]},
                {"role": "model", "parts": [{"functionCall": {}}]},
                {"role": "user", "parts": [{"functionResponse": {}}]},
                {"parts": [{"text": "more"}]},
            ],
        });
        let asked = read("/v1beta/models/gemini-3:streamGenerateContent", &body);
        assert_eq!(asked.model, "gemini-3");
        assert!(asked.stream && asked.has_tools);
        let expected = [
            ConversationEntry::user("<session_context>\nx\n</session_context>"),
            ConversationEntry::user("hello"),
            ConversationEntry::Model,
            ConversationEntry::ToolResult,
            ConversationEntry::user("more"),
        ];
        assert_eq!(asked.items, expected);
    }

    #[test]
    fn the_files_that_a_prompt_mentions_are_not_typed() {
        let parts = [
            "look at @note.txt",
            "\n--- Content from referenced files ---",
            "\nContent from @note.txt:\n",
            "a note",
            "\n--- End of content ---",
            "and",
        ];
        let texts = parts.map(|text| json!({"text": text}));
        let body = json!({"contents": [{"role": "user", "parts": texts}]});
        let items = read("/v1beta/models/g:generateContent", &body).items;
        let turn = crate::conversation::ConversationSummary::of(&items);
        assert_eq!(turn.user, parts);
        assert_eq!(turn.prompts, ["look at @note.txt", "and"]);
    }

    #[test]
    fn only_functions_are_tools() {
        let body = json!({"tools": [{"googleSearch": {}}]});
        assert!(!read("/v1beta/models/g:generateContent", &body).has_tools);
    }
}

//! Requests other than for answers: models, token counts, and health checks.

use serde_json::{Value, json};

/// The only model. The programs accept any name that is configured.
const MODEL: &str = "fake-model";

/// Returns the status and body of the answer to a small request.
pub(crate) fn respond(method: &str, path: &str, body: &[u8]) -> (u16, Value) {
    let tokens = (body.len() / 4).max(1);
    let answer = match method {
        "GET" | "HEAD" if path == "/" => json!({"ok": true}),
        "GET" | "HEAD" if path == "/v1beta/models" => {
            json!({"models": [gemini_model(MODEL)]})
        }
        "GET" | "HEAD" if path.ends_with("/models") => {
            let model = model(MODEL);
            // The lists of Anthropic and OpenAI have the same path and compatible fields.
            json!({
                "object": "list", "data": [model], "models": [],
                "has_more": false, "first_id": MODEL, "last_id": MODEL,
            })
        }
        "GET" | "HEAD" if path.contains("/models/") => {
            let name = path.rsplit('/').next().unwrap_or_default();
            if path.starts_with("/v1beta/") {
                gemini_model(name)
            } else {
                model(name)
            }
        }
        "POST" if path.ends_with("/count_tokens") => json!({"input_tokens": tokens}),
        "POST" if path.ends_with(":countTokens") => json!({"totalTokens": tokens}),
        // Telemetry that a program sends in spite of its settings.
        "POST" if path.contains("/event_logging/") => json!({}),
        _ => {
            let message = format!("the fake model does not know {method} {path}");
            let error = json!({"type": "not_found_error", "message": message});
            return (404, json!({"type": "error", "error": error}));
        }
    };
    (200, answer)
}

fn model(name: &str) -> Value {
    json!({
        "id": name, "object": "model", "type": "model", "display_name": name,
        "created": 0, "created_at": "2026-01-01T00:00:00Z", "owned_by": "fake",
    })
}

fn gemini_model(name: &str) -> Value {
    json!({
        "name": format!("models/{name}"), "displayName": name,
        "inputTokenLimit": 1_000_000, "outputTokenLimit": 64_000,
        "supportedGenerationMethods": ["generateContent", "countTokens"],
    })
}

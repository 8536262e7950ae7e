//! Smallest answer that fits a JSON schema.
//!
//! Side requests (titles, routing) want their answer in a given form. Only the keywords that their
//! schemas use are supported; the rest gets `null`.

use serde_json::{Map, Value, json};

/// Returns a value that fits the schema.
pub(crate) fn sample(schema: &Value) -> Value {
    if let Some(value) = schema.get("const") {
        return value.clone();
    }
    if let Some(first) = schema.pointer("/enum/0") {
        return first.clone();
    }
    for choice in ["/anyOf/0", "/oneOf/0", "/allOf/0"] {
        if let Some(schema) = schema.pointer(choice) {
            return sample(schema);
        }
    }
    // Gemini writes types in capitals, and some schemas give several.
    let kind = schema
        .get("type")
        .and_then(|kind| kind.as_str().or_else(|| kind.get(0)?.as_str()))
        .unwrap_or_default()
        .to_lowercase();
    match kind.as_str() {
        "object" => Value::Object(properties(schema)),
        "array" => match (schema.get("minItems"), schema.get("items")) {
            (Some(least), Some(items)) if least != 0 => json!([sample(items)]),
            _ => json!([]),
        },
        "string" => json!("fake"),
        "integer" | "number" => schema.get("minimum").cloned().unwrap_or(json!(1)),
        "boolean" => json!(false),
        _ => Value::Null,
    }
}

fn properties(schema: &Value) -> Map<String, Value> {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return Map::new();
    };
    properties
        .iter()
        .map(|(name, schema)| (name.clone(), sample(schema)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schemas_of_side_requests_are_met() {
        let codex = json!({"type": "object", "properties": {
            "title": {"type": "string", "minLength": 1, "maxLength": 36}}});
        assert_eq!(sample(&codex), json!({"title": "fake"}));
        let gemini = json!({"type": "OBJECT", "properties": {
            "complexity_reasoning": {"type": "STRING"},
            "complexity_score": {"type": "INTEGER"},
            "next_speaker": {"type": "string", "enum": ["user", "model"]}}});
        let expected =
            json!({"complexity_reasoning": "fake", "complexity_score": 1, "next_speaker": "user"});
        assert_eq!(sample(&gemini), expected);
    }

    #[test]
    fn other_schemas_get_something() {
        assert_eq!(sample(&json!({"type": ["boolean", "null"]})), json!(false));
        assert_eq!(sample(&json!({"anyOf": [{"const": 3}, {}]})), json!(3));
        let list =
            json!({"type": "array", "minItems": 1, "items": {"type": "number", "minimum": 5}});
        assert_eq!(sample(&list), json!([5]));
        assert_eq!(sample(&json!({})), Value::Null);
        assert_eq!(sample(&json!("x")), Value::Null);
    }
}

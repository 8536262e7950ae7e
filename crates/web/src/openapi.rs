//! The OpenAPI 3.1 document, derived from the table of operations.

use gt_core::operation::{
    Action, AnswerShape, Operation, OperationParameter, ParameterPlace, TABLE,
};
use serde_json::{Map, Value, json};

/// Statuses of failures, each with its meaning.
const FAILURES: &[(&str, &str)] = &[
    ("400", "A parameter is missing, unknown or malformed."),
    ("401", "The request has no valid token or device."),
    (
        "403",
        "The caller may not do it, or the request is from another origin.",
    ),
    ("404", "The named thing does not exist."),
    (
        "409",
        "It exists already, runs already, or has another owner.",
    ),
    ("410", "The page no longer exists."),
    ("413", "The request is too large."),
    ("415", "The body is not JSON."),
    ("421", "The Host is not a name of this service."),
    ("422", "Another request had this idempotency key."),
    ("429", "Too many requests."),
    ("500", "The operation failed."),
    ("503", "The machine lacks a program."),
];

/// Returns the document.
pub fn document(version: &str) -> Value {
    let mut paths = Map::new();
    for operation in TABLE.iter().filter(|one| one.action != Action::PageFile) {
        let methods = paths.entry(operation.path).or_insert_with(|| json!({}));
        methods[operation.method.as_str().to_lowercase()] = described(operation);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "gt",
            "version": version,
            "description": "The HTTP API of a town. Each operation is a command of gt.",
        },
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "device": {"type": "apiKey", "in": "header", "name": "GT-Device"},
            },
            "schemas": {"Problem": problem_schema()},
            "responses": FAILURES.iter().map(|(status, meaning)| {
                (format!("Failure{status}"), json!({
                    "description": meaning,
                    "content": {"application/problem+json": {
                        "schema": {"$ref": "#/components/schemas/Problem"},
                    }},
                }))
            }).collect::<Map<String, Value>>(),
        },
    })
}

fn described(operation: &Operation) -> Value {
    let (of_body, others): (Vec<_>, Vec<_>) = operation
        .parameters
        .iter()
        .partition(|parameter| parameter.place == ParameterPlace::Body);
    let mut parameters: Vec<Value> = others.into_iter().map(described_parameter).collect();
    if !operation.is_read() && matches!(operation.action, Action::Command(_)) {
        parameters.push(json!({
            "name": "Idempotency-Key",
            "in": "header",
            "required": false,
            "schema": {"type": "string", "minLength": 1, "maxLength": 200},
            "description": "A repeated request with this key gets the answer of the first one.",
        }));
    }
    let mut described = json!({
        "operationId": operation.name,
        "summary": operation.about,
        "parameters": parameters,
        "responses": responses(operation),
        "security": match operation.scope {
            Some(scope) => json!([{"token": [scope]}, {"device": [scope]}]),
            None => json!([]),
        },
    });
    if let Action::Command(words) = operation.action {
        described["x-gt-command"] = json!(format!("gt {}", words.join(" ")));
    }
    if let Some(capability) = operation.capability {
        described["x-gt-capability"] = json!(capability);
    }
    if !of_body.is_empty() {
        let required: Vec<&str> = of_body
            .iter()
            .filter(|one| one.is_required)
            .map(|one| one.name)
            .collect();
        let properties: Map<String, Value> = of_body
            .iter()
            .map(|one| (one.name.to_owned(), described_schema(one)))
            .collect();
        described["requestBody"] = json!({
            "required": !required.is_empty(),
            "content": {"application/json": {"schema": {
                "type": "object",
                "properties": properties,
                "required": required,
                "additionalProperties": false,
            }}},
        });
    }
    described
}

fn described_parameter(parameter: &OperationParameter) -> Value {
    json!({
        "name": parameter.name,
        "in": match parameter.place {
            ParameterPlace::Path => "path",
            ParameterPlace::Query | ParameterPlace::Body => "query",
        },
        "required": parameter.is_required,
        "description": parameter.about,
        "schema": parameter.kind.schema(),
    })
}

fn described_schema(parameter: &OperationParameter) -> Value {
    let mut schema = parameter.kind.schema();
    schema["description"] = json!(parameter.about);
    schema
}

fn responses(operation: &Operation) -> Value {
    let content = |kind: &str, schema: Value| {
        let mut content = Map::new();
        content.insert(kind.to_owned(), json!({"schema": schema}));
        json!({"description": operation.about, "content": content})
    };
    let mut responses = Map::new();
    let (status, response) = match (operation.action, operation.answer) {
        (Action::WebSocket, _) => ("101", json!({"description": "Events follow."})),
        (Action::EventStream, _) => ("200", content("text/event-stream", json!({}))),
        (_, AnswerShape::List(_)) => {
            let list = json!({"type": "array", "items": {"type": "object"}});
            ("200", content("application/json", list))
        }
        _ => ("200", content("application/json", json!({}))),
    };
    responses.insert(status.to_owned(), response);
    if operation.name == "agents_nudge" {
        let queued = content("application/json", json!({}));
        responses.insert("202".to_owned(), queued);
    }
    if operation.is_read() && status == "200" {
        let same = json!({"description": "The client has this document already."});
        responses.insert("304".to_owned(), same);
    }
    for (status, _) in FAILURES {
        let reference = format!("#/components/responses/Failure{status}");
        responses.insert((*status).to_owned(), json!({"$ref": reference}));
    }
    Value::Object(responses)
}

fn problem_schema() -> Value {
    json!({
        "type": "object",
        "required": ["type", "title", "status", "detail", "kind", "causes", "hints"],
        "properties": {
            "type": {"type": "string"},
            "title": {"type": "string"},
            "status": {"type": "integer"},
            "detail": {"type": "string"},
            "kind": {"type": "string", "description": "The kind of the error, as in the JSON errors of gt."},
            "causes": {"type": "array", "items": {"type": "string"}},
            "hints": {"type": "array", "items": {"type": "string"}},
        },
    })
}

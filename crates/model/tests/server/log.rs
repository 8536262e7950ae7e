//! Tests the log, on which other tests rely.

use crate::client::{Client, FORMATS, Message, TIMEOUT};
use gt_model::{FakeModel, fingerprint, read_log};
use serde_json::{Value, json};

#[test]
fn a_line_says_all_about_its_request() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let model = FakeModel::start(Some(&path));
    for format in FORMATS {
        let messages = [
            Message::User("first"),
            Message::Model("yes"),
            Message::User("  zwei\n\u{1F980} \t\"x\" "),
        ];
        format.ask(model.port(), &messages, true);
    }
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    for ((line, format), n) in lines.iter().zip(FORMATS).zip(1..) {
        let prompt = "  zwei\n\u{1F980} \t\"x\" ";
        let expected = json!({
            "at": line["at"],
            "n": n,
            "method": "POST",
            "path": (format.path)(true),
            "api": format.api,
            "model": "m",
            "stream": true,
            "has_tools": true,
            "user": [prompt],
            "prompts": [prompt],
            "asides": [],
            "prompt": prompt,
            "prompt_bytes": prompt.len(),
            "hash": fingerprint(prompt),
            "history": [fingerprint("first"), fingerprint(prompt)],
            "tool_results": 0,
            "status": 200,
            "usage": line["usage"],
        });
        assert_eq!(*line, expected);
        let tokens = ["input", "cached", "output"].map(|kind| line["usage"][kind].as_u64());
        assert!(tokens.iter().all(|count| *count > Some(0)), "{line}");
        let at = line["at"].as_str().unwrap();
        assert!(at.ends_with('Z') && at.len() == 24, "{at}");
    }
    assert_eq!(read_log(&path).unwrap(), model.requests());
}

#[test]
fn text_of_the_programs_is_separated_from_prompts() {
    let model = FakeModel::start(None);
    let mut client = Client::connect(model.port());
    let reminder = "<system-reminder>\nBe good.\n</system-reminder>\n";
    let claude = json!({"tools": [{}], "messages": [
        {"role": "user", "content": [
            {"type": "text", "text": reminder}, {"type": "text", "text": "to\nClaude"}]},
        {"role": "system", "content": "# Environment"},
    ]});
    client.post("/v1/messages?beta=true", &claude);
    let context = "<environment_context>\n  <cwd>/x</cwd>\n</environment_context>";
    let codex = json!({"tools": [{}], "input": [
        {"role": "developer", "content": [{"type": "input_text", "text": "x"}]},
        {"role": "user", "content": [{"type": "input_text", "text": context}]},
        {"role": "user", "content": [{"type": "input_text", "text": "to\nCodex"}]},
    ]});
    client.post("/v1/responses", &codex);
    let session = "<session_context>\nThis is the Gemini CLI.\n</session_context>";
    let gemini = json!({"tools": [{"functionDeclarations": [{}]}], "contents": [
        {"role": "user", "parts": [{"text": session}, {"text": "to\nGemini"}]},
    ]});
    client.post("/v1beta/models/m:streamGenerateContent?alt=sse", &gemini);

    let requests = model.requests();
    for (request, (written, typed)) in requests.iter().zip([
        (reminder, "to\nClaude"),
        (context, "to\nCodex"),
        (session, "to\nGemini"),
    ]) {
        assert_eq!(request.user, [written, typed]);
        assert_eq!(request.prompts, [typed]);
        assert_eq!(request.prompt, typed);
        assert!(request.is_message());
    }
}

#[test]
fn follow_ups_are_no_messages() {
    let model = FakeModel::start(None);
    for format in FORMATS {
        let messages = [Message::User("do it"), Message::Tool("done")];
        format.ask(model.port(), &messages, false);
    }
    for request in model.requests() {
        assert_eq!(request.user, Vec::<String>::new());
        assert_eq!(request.prompt, "do it");
        assert_eq!(request.tool_results, 1);
        assert!(!request.is_message());
    }
}

#[test]
fn bodies_are_kept_on_request() {
    let dir = tempfile::tempdir().unwrap();
    let options = gt_model::Options {
        bodies: Some(dir.path().join("a/b")),
        ..gt_model::Options::default()
    };
    let model = FakeModel::start_with(&options).unwrap();
    Client::connect(model.port()).post("/v1/responses", &json!({"input": "x"}));
    let body = std::fs::read_to_string(dir.path().join("a/b/00001.json")).unwrap();
    assert_eq!(body, r#"{"input":"x"}"#);
}

#[test]
fn waiting_ends_with_what_was_waited_for() {
    let model = FakeModel::start(None);
    std::thread::scope(|scope| {
        let waiting =
            scope.spawn(|| model.wait_for(|r| r.iter().any(|r| r.prompt == "two"), TIMEOUT));
        for prompt in ["one", "two"] {
            FORMATS[0].ask(model.port(), &[Message::User(prompt)], false);
        }
        assert_eq!(waiting.join().unwrap().unwrap().len(), 2);
    });
}

//! Tests every format and every directive.

use crate::client::{Client, FORMATS, Format, Message, ReplyContent, TIMEOUT};
use gt_model::FakeModel;
use serde_json::json;
use std::time::{Duration, Instant};

/// Runs a check on every format, whole and streamed.
fn on_every_format(check: impl Fn(&FakeModel, &Format, bool)) {
    for format in FORMATS {
        for stream in [false, true] {
            check(&FakeModel::start(None), format, stream);
        }
    }
}

fn text(text: &str) -> ReplyContent {
    ReplyContent::Text(text.to_owned())
}

#[test]
fn a_prompt_is_echoed_with_usage() {
    on_every_format(|model, format, stream| {
        let answer = format.ask(model.port(), &[Message::User("hello\nthere")], stream);
        assert_eq!(answer.status, 200);
        let content = (format.content)(&answer, stream);
        assert_eq!(
            content,
            text("Fake answer, echo: hello there"),
            "{answer:?}"
        );
        let (input, output) = (format.usage)(&answer, stream);
        assert!((1..5000).contains(&input), "{input}");
        assert!((1..100).contains(&output), "{output}");
    });
}

#[test]
fn a_text_is_answered_as_it_is() {
    on_every_format(|model, format, stream| {
        let prompt = Message::User("say [[text=exactly  this,\n\"ü\"]] please");
        let answer = format.ask(model.port(), &[prompt], stream);
        let content = (format.content)(&answer, stream);
        assert_eq!(content, text("exactly  this,\n\"ü\""));
    });
}

#[test]
fn a_delay_comes_before_the_first_byte_and_after_the_log() {
    on_every_format(|model, format, stream| {
        let began = Instant::now();
        std::thread::scope(|scope| {
            let asking = scope.spawn(|| {
                let prompt = Message::User("[[delay=0.3]]");
                format.ask(model.port(), &[prompt], stream)
            });
            let requests = model.wait_for(|r| r.len() == 1, TIMEOUT).unwrap();
            assert_eq!(requests[0].prompt, "[[delay=0.3]]");
            let noted = began.elapsed();
            assert_eq!(asking.join().unwrap().status, 200);
            let answered = began.elapsed();
            assert!(answered >= Duration::from_millis(300), "{answered:?}");
            assert!(noted < answered, "{noted:?}");
        });
    });
}

#[test]
fn an_error_is_the_formats_own() {
    on_every_format(|model, format, stream| {
        for status in [400, 429, 500, 529] {
            let prompt = format!("[[error={status}]]");
            let answer = format.ask(model.port(), &[Message::User(&prompt)], stream);
            assert_eq!(answer.status, status);
            let body = answer.json();
            let message = (format.failure)(&body);
            assert_eq!(*message, format!("fake error {status}"));
        }
        let statuses: Vec<u16> = model.requests().iter().map(|r| r.status).collect();
        assert_eq!(statuses, [400, 429, 500, 529]);
    });
}

#[test]
fn tools_are_called_in_turn_and_then_comes_the_text() {
    on_every_format(|model, format, stream| {
        let prompt =
            Message::User(r#"[[tool=first {"a":[["]]"]]}]] [[tool=second {"b":1}]] [[text=done]]"#);
        let mut messages = vec![prompt];
        for expected in [
            ReplyContent::Call("first".to_owned(), json!({"a": [["]]"]]})),
            ReplyContent::Call("second".to_owned(), json!({"b": 1})),
            text("done"),
        ] {
            let answer = format.ask(model.port(), &messages, stream);
            assert_eq!((format.content)(&answer, stream), expected);
            messages.push(Message::Tool("result"));
        }
        let results: Vec<usize> = model.requests().iter().map(|r| r.tool_results).collect();
        assert_eq!(results, [0, 1, 1]);
    });
}

#[test]
fn directives_of_earlier_prompts_are_over() {
    on_every_format(|model, format, stream| {
        let messages = [
            Message::User("[[error=500]] [[tool=x]]"),
            Message::Model("sorry"),
            Message::User("again"),
        ];
        let answer = format.ask(model.port(), &messages, stream);
        let content = (format.content)(&answer, stream);
        assert_eq!(content, text("Fake answer, echo: again"));
    });
}

#[test]
fn a_slow_stream_has_its_chunks_and_takes_its_time() {
    for format in FORMATS {
        let model = FakeModel::start(None);
        let began = Instant::now();
        let prompt = Message::User("[[stream=6]][[text=a b]]");
        let answer = format.ask(model.port(), &[prompt], true);
        assert_eq!((format.content)(&answer, true), text("a b 3 4 5 6"));
        let elapsed = began.elapsed();
        assert!(elapsed >= Duration::from_millis(250), "{elapsed:?}");
    }
}

#[test]
fn side_requests_get_what_they_want_at_once() {
    let model = FakeModel::start(None);
    let mut client = Client::connect(model.port());
    for format in FORMATS {
        let prompt = Message::User("[[error=500]] [[delay=60]]");
        let body = (format.body)(&[prompt], false, false);
        let answer = client.post((format.path)(false), &body);
        assert_eq!((format.content)(&answer, false), text("Fake title"));
    }
    let schema = json!({"type": "object", "properties": {"title": {"type": "string"}}});
    for (format, key, value) in [
        (0, "output_config", json!({"format": {"schema": schema}})),
        (1, "text", json!({"format": {"schema": schema}})),
        (
            2,
            "response_format",
            json!({"json_schema": {"schema": schema}}),
        ),
        (3, "generationConfig", json!({"responseJsonSchema": schema})),
    ] {
        let format = &FORMATS[format];
        let mut body = (format.body)(&[Message::User("a title")], false, false);
        body[key] = value;
        let answer = client.post((format.path)(false), &body);
        assert_eq!(
            (format.content)(&answer, false),
            text(r#"{"title":"fake"}"#)
        );
    }
    assert!(model.requests().iter().all(|r| !r.has_tools));
}

#[test]
fn a_custom_tool_gets_its_input_as_text() {
    let model = FakeModel::start(None);
    let body = json!({
        "tools": [{"type": "custom", "name": "apply_patch"}],
        "input": r#"[[tool=apply_patch {"input":"*** Begin"}]]"#,
    });
    let answer = Client::connect(model.port()).post("/responses", &body);
    let item = &answer.json()["output"][0];
    assert_eq!(item["type"], "custom_tool_call");
    assert_eq!(item["input"], "*** Begin");
}

#[test]
fn small_requests_are_answered() {
    let model = FakeModel::start(None);
    let mut client = Client::connect(model.port());
    assert_eq!(client.get("/").status, 200);
    assert_eq!(
        client.get("/v1/models").json()["data"][0]["id"],
        "fake-model"
    );
    assert_eq!(client.get("/v1/models/x").json()["id"], "x");
    let gemini = client.get("/v1beta/models").json();
    assert_eq!(gemini["models"][0]["name"], "models/fake-model");
    let body = json!({"messages": [{"role": "user", "content": "hello"}], "tools": [{}]});
    let count = client.post("/v1/messages/count_tokens?beta=true", &body);
    assert!(count.json()["input_tokens"].as_u64().unwrap() > 0);
    let count = client.post("/v1beta/models/m:countTokens", &body);
    assert!(count.json()["totalTokens"].as_u64().unwrap() > 0);
    for unknown in [client.get("/nowhere"), client.post("/v1/nowhere", &body)] {
        assert_eq!(unknown.status, 404);
        assert!(unknown.json()["error"]["message"].is_string());
    }
    let requests = model.requests();
    assert_eq!(requests.len(), 8);
    assert!(
        requests
            .iter()
            .all(|r| r.api == gt_model::Api::Other && !r.has_tools)
    );
}

#[test]
fn a_head_request_gets_no_body() {
    let model = FakeModel::start(None);
    let mut client = Client::connect(model.port());
    client.send("HEAD / HTTP/1.1\r\nConnection: close\r\n\r\n");
    // The answer has a length, but the connection ends after the head.
    let rest = client.rest();
    assert!(rest.starts_with("HTTP/1.1 200 "), "{rest}");
    assert!(rest.ends_with("\r\n\r\n"), "{rest}");
}

#[test]
fn connections_stay_until_they_shall_close() {
    let model = FakeModel::start(None);
    let mut client = Client::connect(model.port());
    for stream in [true, false, true] {
        let body = (FORMATS[0].body)(&[Message::User("hello")], stream, true);
        assert_eq!(client.post("/v1/messages", &body).status, 200);
    }
    client.send("POST /v1/responses HTTP/1.1\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}");
    assert_eq!(client.answer().status, 200);
    assert!(client.is_closed());
}

#[test]
fn a_client_may_wait_for_a_sign_and_send_in_chunks() {
    let model = FakeModel::start(None);
    let mut client = Client::connect(model.port());
    client.send(
        "POST /v1/responses HTTP/1.1\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n",
    );
    assert_eq!(client.answer().status, 100);
    client.send("8\r\n{\"input\"\r\n");
    // A chunk may end within a character.
    client.send(b"6\r\n:\"hel\xc3\r\n5\r\n\xa4lo\"}\r\n0\r\n\r\n");
    assert_eq!(client.answer().status, 200);
    assert_eq!(model.requests()[0].prompt, "hel\u{e4}lo");
}

#[test]
fn an_old_client_gets_no_chunks() {
    let model = FakeModel::start(None);
    let mut client = Client::connect(model.port());
    let body = (FORMATS[0].body)(&[Message::User("hello")], true, true).to_string();
    let length = body.len();
    client.send(format!(
        "POST /v1/messages HTTP/1.0\r\nContent-Length: {length}\r\n\r\n{body}"
    ));
    let answer = client.answer();
    assert!(!answer.head.contains("chunked"), "{answer:?}");
    let content = (FORMATS[0].content)(&answer, true);
    assert_eq!(content, text("Fake answer, echo: hello"));
}

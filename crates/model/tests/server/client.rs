//! A client that exposes the bytes on the wire, and the same question in every format.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Timeout after which a step counts as failed.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(20);

/// A persistent connection.
pub(crate) struct Client {
    reader: BufReader<TcpStream>,
}

/// An answer: its status, its headers as they came, and its body.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Returns the data of its events.
    pub(crate) fn events(&self) -> Vec<Value> {
        assert!(
            self.head.contains("content-type: text/event-stream"),
            "{self:?}"
        );
        self.body
            .lines()
            .filter_map(|line| line.strip_prefix("data: "))
            .filter(|data| *data != "[DONE]")
            .map(|data| serde_json::from_str(data).unwrap())
            .collect()
    }
}

impl Client {
    pub(crate) fn connect(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        Client {
            reader: BufReader::new(stream),
        }
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.reader.get_mut().write_all(bytes.as_ref()).unwrap();
    }

    pub(crate) fn post(&mut self, path: &str, body: &Value) -> Answer {
        let body = body.to_string();
        let length = body.len();
        self.send(format!(
            "POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n{body}"
        ));
        self.answer()
    }

    pub(crate) fn get(&mut self, path: &str) -> Answer {
        self.send(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n"));
        self.answer()
    }

    /// Reads one answer, with a content length or in chunks.
    pub(crate) fn answer(&mut self) -> Answer {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            let read = self.reader.read_line(&mut head).unwrap();
            assert!(read > 0, "the connection ended after {head:?}");
        }
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let mut body = Vec::new();
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        if status == 100 {
            // An interim status has no body.
        } else if let Some(length) = length {
            body.resize(length.parse().unwrap(), 0);
            self.reader.read_exact(&mut body).unwrap();
        } else if head.contains("transfer-encoding: chunked") {
            while let Some(mut chunk) = self.chunk() {
                body.append(&mut chunk);
            }
        } else {
            self.reader.read_to_end(&mut body).unwrap();
        }
        let body = String::from_utf8(body).unwrap();
        Answer { status, head, body }
    }

    fn chunk(&mut self) -> Option<Vec<u8>> {
        let mut size = String::new();
        self.reader.read_line(&mut size).unwrap();
        let size = usize::from_str_radix(size.trim_end(), 16).unwrap();
        let mut chunk = vec![0; size + 2];
        self.reader.read_exact(&mut chunk).unwrap();
        assert_eq!(chunk.split_off(size), b"\r\n");
        (size > 0).then_some(chunk)
    }

    /// Returns all remaining bytes as text.
    pub(crate) fn rest(mut self) -> String {
        let mut rest = String::new();
        self.reader.read_to_string(&mut rest).unwrap();
        rest
    }

    /// Returns whether the server has closed the connection.
    pub(crate) fn is_closed(&mut self) -> bool {
        matches!(self.reader.read(&mut [0]), Ok(0))
    }
}

/// A wire format, as its programs use it.
pub(crate) struct Format {
    pub(crate) api: &'static str,
    pub(crate) path: fn(stream: bool) -> &'static str,
    /// Returns a body with the messages so far.
    pub(crate) body: fn(messages: &[Message<'_>], stream: bool, tools: bool) -> Value,
    /// Returns the content of the answer.
    pub(crate) content: fn(&Answer, stream: bool) -> ReplyContent,
    /// Returns the message of a failure.
    pub(crate) failure: fn(&Value) -> &Value,
    /// Returns input and output tokens.
    pub(crate) usage: fn(&Answer, stream: bool) -> (u64, u64),
}

#[derive(Clone, Copy)]
pub(crate) enum Message<'a> {
    User(&'a str),
    Model(&'a str),
    /// The model called a tool, and this is the result.
    Tool(&'a str),
}

#[derive(Debug, PartialEq)]
pub(crate) enum ReplyContent {
    Text(String),
    Call(String, Value),
}

use Message::{Model, Tool, User};

pub(crate) const FORMATS: &[Format] = &[
    Format {
        api: "anthropic",
        path: |_| "/v1/messages?beta=true",
        body: |messages, stream, tools| {
            let messages = messages.iter().flat_map(|message| match message {
                User(text) => vec![json!({"role": "user", "content": [{"type": "text", "text": text}]})],
                Model(text) => vec![json!({"role": "assistant", "content": text})],
                Tool(text) => vec![
                    json!({"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "x", "input": {}}]}),
                    json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": text}]}),
                ],
            });
            json!({"model": "m", "stream": stream, "messages": messages.collect::<Vec<_>>(),
                "tools": if tools { json!([{"name": "x"}]) } else { json!([]) }})
        },
        content: |answer, stream| {
            if !stream {
                let block = &answer.json()["content"][0];
                return match block["type"].as_str().unwrap() {
                    "text" => ReplyContent::Text(owned(&block["text"])),
                    _ => ReplyContent::Call(owned(&block["name"]), block["input"].clone()),
                };
            }
            let events = answer.events();
            let joined = |key| joined(&events, &format!("/delta/{key}"));
            let block = &of_type(&events, "content_block_start")["content_block"];
            match block["type"].as_str().unwrap() {
                "text" => ReplyContent::Text(joined("text")),
                _ => ReplyContent::Call(owned(&block["name"]), parsed(&joined("partial_json"))),
            }
        },
        failure: |body| {
            assert_eq!(body["type"], "error");
            &body["error"]["message"]
        },
        usage: |answer, stream| {
            let usage = match stream {
                true => of_type(&answer.events(), "message_delta")["usage"].clone(),
                false => answer.json()["usage"].clone(),
            };
            numbers(&usage, "input_tokens", "output_tokens")
        },
    },
    Format {
        api: "responses",
        path: |_| "/v1/responses",
        body: |messages, stream, tools| {
            let input = messages.iter().flat_map(|message| match message {
                User(text) => vec![json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})],
                Model(text) => vec![json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]})],
                Tool(text) => vec![
                    json!({"type": "function_call", "name": "x", "call_id": "a", "arguments": "{}"}),
                    json!({"type": "function_call_output", "call_id": "a", "output": text}),
                ],
            });
            json!({"model": "m", "stream": stream, "input": input.collect::<Vec<_>>(),
                "tools": if tools { json!([{"type": "function", "name": "x"}]) } else { json!([]) }})
        },
        content: |answer, stream| {
            let response = match stream {
                true => of_type(&answer.events(), "response.completed")["response"].clone(),
                false => answer.json(),
            };
            let item = &response["output"][0];
            if item["type"] == "function_call" {
                let arguments = parsed(item["arguments"].as_str().unwrap());
                return ReplyContent::Call(owned(&item["name"]), arguments);
            }
            let text = owned(&item["content"][0]["text"]);
            if stream {
                assert_eq!(joined(&answer.events(), "/delta"), text);
            }
            ReplyContent::Text(text)
        },
        failure: |body| &body["error"]["message"],
        usage: |answer, stream| {
            let response = match stream {
                true => of_type(&answer.events(), "response.completed")["response"].clone(),
                false => answer.json(),
            };
            numbers(&response["usage"], "input_tokens", "output_tokens")
        },
    },
    Format {
        api: "chat",
        path: |_| "/v1/chat/completions",
        body: |messages, stream, tools| {
            let messages = messages.iter().flat_map(|message| match message {
                User(text) => vec![json!({"role": "user", "content": text})],
                Model(text) => vec![json!({"role": "assistant", "content": text})],
                Tool(text) => vec![
                    json!({"role": "assistant", "content": null, "tool_calls": [{"id": "a"}]}),
                    json!({"role": "tool", "tool_call_id": "a", "content": text}),
                ],
            });
            json!({"model": "m", "stream": stream, "messages": messages.collect::<Vec<_>>(),
                "tools": if tools { json!([{"type": "function"}]) } else { json!([]) }})
        },
        content: |answer, stream| {
            let (text, call) = if stream {
                assert!(answer.body.ends_with("data: [DONE]\n\n"), "{answer:?}");
                let events = answer.events();
                let call = events
                    .iter()
                    .find_map(|event| event.pointer("/choices/0/delta/tool_calls/0").cloned());
                (joined(&events, "/choices/0/delta/content"), call)
            } else {
                let message = answer.json()["choices"][0]["message"].clone();
                let text = message["content"].as_str().unwrap_or_default().to_owned();
                (text, message.pointer("/tool_calls/0").cloned())
            };
            match call {
                Some(call) => {
                    let arguments = parsed(call["function"]["arguments"].as_str().unwrap());
                    ReplyContent::Call(owned(&call["function"]["name"]), arguments)
                }
                None => ReplyContent::Text(text),
            }
        },
        failure: |body| &body["error"]["message"],
        usage: |answer, stream| {
            let whole = match stream {
                true => answer.events().pop().unwrap(),
                false => answer.json(),
            };
            numbers(&whole["usage"], "prompt_tokens", "completion_tokens")
        },
    },
    Format {
        api: "gemini",
        path: |stream| match stream {
            true => "/v1beta/models/m:streamGenerateContent?alt=sse",
            false => "/v1beta/models/m:generateContent",
        },
        body: |messages, _, tools| {
            let contents = messages.iter().flat_map(|message| match message {
                User(text) => vec![json!({"role": "user", "parts": [{"text": text}]})],
                Model(text) => vec![json!({"role": "model", "parts": [{"text": text}]})],
                Tool(text) => vec![
                    json!({"role": "model", "parts": [{"functionCall": {"name": "x"}}]}),
                    json!({"role": "user", "parts": [{"functionResponse": {"name": "x", "response": {"output": text}}}]}),
                ],
            });
            json!({"contents": contents.collect::<Vec<_>>(),
                "tools": if tools { json!([{"functionDeclarations": [{"name": "x"}]}]) } else { json!([]) }})
        },
        content: |answer, stream| {
            let chunks = match stream {
                true => answer.events(),
                false => vec![answer.json()],
            };
            let last = &chunks.last().unwrap()["candidates"][0];
            assert_eq!(last["finishReason"], "STOP");
            match last.pointer("/content/parts/0/functionCall") {
                Some(call) => ReplyContent::Call(owned(&call["name"]), call["args"].clone()),
                None => ReplyContent::Text(joined(&chunks, "/candidates/0/content/parts/0/text")),
            }
        },
        failure: |body| {
            assert!(body["error"]["status"].is_string());
            &body["error"]["message"]
        },
        usage: |answer, stream| {
            let whole = match stream {
                true => answer.events().pop().unwrap(),
                false => answer.json(),
            };
            let usage = &whole["usageMetadata"];
            numbers(usage, "promptTokenCount", "candidatesTokenCount")
        },
    },
];

impl Format {
    /// Asks on a new connection, with tools.
    pub(crate) fn ask(&self, port: u16, messages: &[Message<'_>], stream: bool) -> Answer {
        let body = (self.body)(messages, stream, true);
        Client::connect(port).post((self.path)(stream), &body)
    }
}

fn owned(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn of_type<'a>(events: &'a [Value], kind: &str) -> &'a Value {
    events
        .iter()
        .find(|event| event["type"] == kind)
        .unwrap_or_else(|| panic!("no {kind} in {events:?}"))
}

fn joined(events: &[Value], pointer: &str) -> String {
    let texts = events.iter().filter_map(|event| event.pointer(pointer));
    texts.filter_map(Value::as_str).collect()
}

fn numbers(usage: &Value, input: &str, output: &str) -> (u64, u64) {
    let number = |key| usage[key].as_u64().unwrap_or_else(|| panic!("{usage}"));
    (number(input), number(output))
}

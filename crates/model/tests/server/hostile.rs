//! The server survives any input.

use crate::client::{Client, FORMATS, Message};
use gt_model::FakeModel;
use proptest::prelude::*;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::LazyLock;

static MODEL: LazyLock<FakeModel> = LazyLock::new(|| FakeModel::start(None));

/// Sends bytes, closes the sending side, and returns all bytes of the answer.
fn exchange(bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(("127.0.0.1", MODEL.port())).unwrap();
    // The server may have refused before it has read everything.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    answer
}

fn still_serves() -> bool {
    let answer = FORMATS[0].ask(MODEL.port(), &[Message::User("hello")], false);
    answer.status == 200
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        exchange(&bytes);
        prop_assert!(still_serves());
    }

    #[test]
    fn any_body(body in "[\\[\\]{}\":,a-z0-9\\\\ ]{0,200}", format in 0..4_usize) {
        let path = (FORMATS[format].path)(true);
        let length = body.len();
        let answer = exchange(
            format!("POST {path} HTTP/1.1\r\nContent-Length: {length}\r\n\r\n{body}").as_bytes(),
        );
        let answer = String::from_utf8(answer).unwrap();
        prop_assert!(answer.starts_with("HTTP/1.1 400 ") || answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }
}

#[test]
fn deep_json_is_refused() {
    let body = "[".repeat(200_000);
    let length = body.len();
    let mut client = Client::connect(MODEL.port());
    client.send(format!(
        "POST /v1/messages HTTP/1.1\r\nContent-Length: {length}\r\n\r\n{body}"
    ));
    assert_eq!(client.answer().status, 400);
    assert!(still_serves());
}

#[test]
fn a_compressed_body_is_refused_with_a_reason() {
    let mut client = Client::connect(MODEL.port());
    client
        .send("POST /v1/responses HTTP/1.1\r\nContent-Encoding: zstd\r\nContent-Length: 0\r\n\r\n");
    let answer = client.answer();
    assert_eq!(answer.status, 415);
    assert!(answer.body.contains("zstd"), "{answer:?}");
}

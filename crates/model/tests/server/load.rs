//! Tests large prompts, many connections, and a stop in the middle of them.

use crate::client::{Client, FORMATS, Message, TIMEOUT};
use gt_model::{FakeModel, fingerprint, read_log};
use std::time::Instant;

#[test]
fn a_prompt_of_a_megabyte_arrives_whole() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let model = FakeModel::start(Some(&path));
    let line = "0123456789 äöü \"quoted\" \\ back\n";
    let prompt = line.repeat((1 << 20) / line.len() + 1);
    for format in FORMATS {
        let answer = format.ask(model.port(), &[Message::User(&prompt)], true);
        assert_eq!(answer.status, 200);
        let (input, _) = (format.usage)(&answer, true);
        assert!(input <= 5000, "it would set off compaction: {input}");
    }
    for request in read_log(&path).unwrap() {
        assert!(request.prompt == prompt, "not as it was sent");
        assert_eq!(request.prompt_bytes, prompt.len());
        assert_eq!(request.hash, fingerprint(&prompt));
    }
}

#[test]
fn fifty_connections_at_once_are_all_served_and_noted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let model = FakeModel::start(Some(&path));
    let began = Instant::now();
    std::thread::scope(|scope| {
        for worker in 0..50 {
            let port = model.port();
            scope.spawn(move || {
                let format = &FORMATS[worker % FORMATS.len()];
                let mut client = Client::connect(port);
                for turn in 0..4 {
                    let prompt = format!("[[delay=0.2]] worker {worker} turn {turn}");
                    let body = (format.body)(&[Message::User(&prompt)], true, true);
                    let answer = client.post((format.path)(true), &body);
                    assert_eq!(answer.status, 200);
                }
            });
        }
    });
    // Sequential requests would take 40 s.
    assert!(began.elapsed() < TIMEOUT, "{:?}", began.elapsed());
    let requests = read_log(&path).unwrap();
    let numbers: Vec<u64> = requests.iter().map(|request| request.n).collect();
    assert_eq!(numbers, (1..=200).collect::<Vec<u64>>());
    let mut prompts: Vec<&str> = requests.iter().map(|r| r.prompt.as_str()).collect();
    prompts.sort_unstable();
    prompts.dedup();
    assert_eq!(prompts.len(), 200);
}

#[test]
fn it_stops_at_once_whatever_it_is_doing() {
    let model = FakeModel::start(None);
    let port = model.port();
    let mut idle = Client::connect(port);
    idle.get("/");
    let mut waiting = Client::connect(port);
    let mut streaming = Client::connect(port);
    for (client, prompt) in [
        (&mut waiting, "[[delay=600]]"),
        (&mut streaming, "[[stream=10000]]"),
    ] {
        let body = (FORMATS[0].body)(&[Message::User(prompt)], true, true).to_string();
        let length = body.len();
        client.send(format!(
            "POST /v1/messages HTTP/1.1\r\nContent-Length: {length}\r\n\r\n{body}"
        ));
    }
    model.wait_for(|r| r.len() == 3, TIMEOUT).unwrap();
    let began = Instant::now();
    drop(model);
    // The longer answers would take minutes.
    assert!(began.elapsed() < TIMEOUT, "{:?}", began.elapsed());
    assert!(idle.is_closed());
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err());
}

#[test]
fn clients_that_go_away_leave_nothing_behind() {
    let model = FakeModel::start(None);
    for _ in 0..20 {
        let mut client = Client::connect(model.port());
        let body = (FORMATS[0].body)(&[Message::User("[[stream=40]]")], true, true).to_string();
        let length = body.len();
        client.send(format!(
            "POST /v1/messages HTTP/1.1\r\nContent-Length: {length}\r\n\r\n{body}"
        ));
    }
    model.wait_for(|r| r.len() == 20, TIMEOUT).unwrap();
    let answer = FORMATS[0].ask(model.port(), &[Message::User("still there?")], false);
    assert_eq!(answer.status, 200);
}

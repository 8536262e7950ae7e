//! A small HTTP client: one connection per request, and streams.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// Where the API is.
#[derive(Clone, Debug)]
pub(super) enum Api {
    Unix(PathBuf),
    Tcp(SocketAddr),
}

/// A response whose body was read.
#[derive(Debug)]
pub(super) struct HttpAnswer {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) text: String,
}

impl HttpAnswer {
    #[track_caller]
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    #[track_caller]
    pub(super) fn ok(self) -> Value {
        assert_eq!(self.status, 200, "{self:?}");
        self.json()
    }

    #[track_caller]
    pub(super) fn fails(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        self.json()
    }

    /// Returns the value of a header.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines();
        let mut pairs = lines.filter_map(|line| line.split_once(": "));
        let found = pairs.find(|(found, _)| found.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value)
    }
}

impl Api {
    fn host(&self) -> String {
        match self {
            Api::Unix(_) => "localhost".to_owned(),
            Api::Tcp(address) => address.to_string(),
        }
    }

    /// Connects and sends a request. Returns what reads the response.
    pub(super) fn open(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> BufReader<Box<dyn Read + Send>> {
        let is_given = |name: &str| headers.iter().any(|(given, _)| *given == name);
        let mut request = format!("{method} {path} HTTP/1.1\r\n");
        if !is_given("Host") {
            request += &format!("Host: {}\r\n", self.host());
        }
        if !is_given("Connection") {
            request += "Connection: close\r\n";
        }
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        if !body.is_empty() {
            request += "Content-Type: application/json\r\n";
            request += &format!("Content-Length: {}\r\n", body.len());
        }
        request += &format!("\r\n{body}");
        let timeout = Some(Duration::from_secs(60));
        let stream: Box<dyn Read + Send> = match self {
            Api::Unix(path) => {
                let mut stream = UnixStream::connect(path).unwrap();
                stream.set_read_timeout(timeout).unwrap();
                stream.write_all(request.as_bytes()).unwrap();
                Box::new(stream)
            }
            Api::Tcp(address) => {
                let mut stream = TcpStream::connect(address).unwrap();
                stream.set_read_timeout(timeout).unwrap();
                stream.write_all(request.as_bytes()).unwrap();
                Box::new(stream)
            }
        };
        BufReader::new(stream)
    }

    pub(super) fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> HttpAnswer {
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let mut reader = self.open(method, path, headers, &body);
        let head = read_head(&mut reader);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        HttpAnswer { status, head, text }
    }

    pub(super) fn get(&self, path: &str) -> HttpAnswer {
        self.send("GET", path, &[], &Value::Null)
    }

    pub(super) fn post(&self, path: &str, body: &Value) -> HttpAnswer {
        self.send("POST", path, &[], body)
    }
}

/// Reads up to the end of the headers.
pub(super) fn read_head(reader: &mut impl BufRead) -> String {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(
            reader.read_line(&mut head).unwrap() > 0,
            "it ends after {head:?}"
        );
    }
    head
}

/// A WebSocket that only reads.
pub(super) struct Messages(BufReader<Box<dyn Read + Send>>);

impl Messages {
    pub(super) fn open(api: &Api, path: &str, headers: &[(&str, &str)]) -> Result<Self, String> {
        let upgrade = [
            ("Connection", "Upgrade"),
            ("Upgrade", "websocket"),
            ("Sec-WebSocket-Version", "13"),
            ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ];
        let mut reader = api.open("GET", path, &[&upgrade[..], headers].concat(), "");
        let head = read_head(&mut reader);
        match head.starts_with("HTTP/1.1 101 ") {
            true => {
                let mut messages = Messages(reader);
                let hello = messages.next().unwrap();
                assert_eq!(hello["type"], "hello", "{hello}");
                Ok(messages)
            }
            false => Err(head),
        }
    }

    /// Returns the next text; `None` after the end. Frames of a server are not masked.
    pub(super) fn next(&mut self) -> Option<Value> {
        loop {
            let mut start = [0; 2];
            self.0.read_exact(&mut start).ok()?;
            let length = match start[1] {
                126 => {
                    let mut length = [0; 2];
                    self.0.read_exact(&mut length).ok()?;
                    usize::from(u16::from_be_bytes(length))
                }
                127 => panic!("a message of the test is not as long"),
                length => usize::from(length),
            };
            let mut text = vec![0; length];
            self.0.read_exact(&mut text).ok()?;
            match start[0] & 0xf {
                1 => return serde_json::from_slice(&text).ok(),
                8 => return None,
                _ => {}
            }
        }
    }
}

//! The head of a proxy request: `CONNECT host:port`, or a request for an `http://` address.
//!
//! The parser accepts only what common clients send. A request for an `http://` address is
//! rewritten: its host comes from the address, and the connection ends with the response, so a
//! client cannot send a second request for another host on it.

use super::Denial;
use super::host::Destination;

/// The longest accepted head, in bytes.
pub const LONGEST_HEAD: usize = 16 * 1024;

const HEAD_END: &[u8] = b"\r\n\r\n";

/// Headers that concern only the connection to the proxy, in lower case. `Host` is written anew.
const DROPPED: &[&str] = &[
    "connection",
    "host",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "upgrade",
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProxyRequest {
    /// A tunnel.
    Connect(Destination),
    /// One plain request.
    Plain {
        destination: Destination,
        /// The head for the server.
        head: Vec<u8>,
        /// Number of bytes after the head that belong to the request.
        body: u64,
    },
}

impl ProxyRequest {
    pub fn destination(&self) -> &Destination {
        match self {
            ProxyRequest::Connect(destination) | ProxyRequest::Plain { destination, .. } => {
                destination
            }
        }
    }
}

/// Parses the head at the beginning of the bytes. Returns the request and the length of the head,
/// or `None` if more bytes are needed.
pub fn parse(bytes: &[u8]) -> Result<Option<(ProxyRequest, usize)>, Denial> {
    let window = &bytes[..bytes.len().min(LONGEST_HEAD)];
    let end = window
        .windows(HEAD_END.len())
        .position(|part| part == HEAD_END);
    let Some(end) = end else {
        return match bytes.len() < LONGEST_HEAD {
            true => Ok(None),
            false => Err(Denial::Malformed("the head is too long")),
        };
    };
    let is_allowed = |byte: &u8| matches!(byte, b' '..=b'~' | b'\t' | b'\r' | b'\n' | 0x80..);
    if !bytes[..end].iter().all(is_allowed) {
        return Err(Denial::Malformed("the head contains a control character"));
    }
    let mut lines = HeadLines(&bytes[..end]);
    let first = lines.next().unwrap_or_default();
    let first = std::str::from_utf8(first)
        .ok()
        .filter(|line| line.is_ascii() && !line.contains(['\r', '\n', '\t']))
        .ok_or(Denial::Malformed("the request line is not plain text"))?;
    let words: Vec<&str> = first.split(' ').collect();
    let [method, target, "HTTP/1.1" | "HTTP/1.0"] = words[..] else {
        return Err(Denial::Malformed(
            "the first line is not METHOD TARGET HTTP/1.1",
        ));
    };
    let headers = lines.map(parse_header).collect::<Result<Vec<_>, _>>()?;
    let request = match method {
        "CONNECT" => ProxyRequest::Connect(parse_authority(target, None)?),
        _ => parse_plain(method, target, &headers)?,
    };
    Ok(Some((request, end + HEAD_END.len())))
}

/// HeadLines that end with CR and LF. Each other CR or LF stays in its line and makes it invalid.
struct HeadLines<'a>(&'a [u8]);

impl<'a> Iterator for HeadLines<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.0.is_empty() {
            return None;
        }
        let end = self.0.windows(2).position(|pair| pair == b"\r\n");
        let (line, rest) = match end {
            Some(end) => (&self.0[..end], &self.0[end + 2..]),
            None => (self.0, &[][..]),
        };
        self.0 = rest;
        Some(line)
    }
}

type Header<'a> = (String, &'a [u8]);

/// Splits a header line into its name, in lower case, and its value.
fn parse_header(line: &[u8]) -> Result<Header<'_>, Denial> {
    let malformed = Denial::Malformed("a header line is not NAME: VALUE");
    let colon = line.iter().position(|byte| *byte == b':');
    let Some((name, value)) = colon.map(|at| (&line[..at], &line[at + 1..])) else {
        return Err(malformed);
    };
    let is_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    let is_line = !value.iter().any(|byte| matches!(byte, b'\r' | b'\n'));
    if name.is_empty() || !name.iter().all(is_token) || !is_line {
        return Err(malformed);
    }
    let name = String::from_utf8_lossy(name).to_ascii_lowercase();
    Ok((name, value.trim_ascii()))
}

fn parse_authority(text: &str, default: Option<u16>) -> Result<Destination, Denial> {
    Destination::parse(text, default)
        .map_err(|_| Denial::Malformed("the target names no valid host and port"))
}

fn parse_plain(method: &str, target: &str, headers: &[Header<'_>]) -> Result<ProxyRequest, Denial> {
    if method.is_empty() || !method.bytes().all(|byte| byte.is_ascii_uppercase()) {
        return Err(Denial::Malformed("the method is not a word"));
    }
    let is_http = target
        .get(..7)
        .is_some_and(|scheme| scheme.eq_ignore_ascii_case("http://"));
    if !is_http {
        return Err(Denial::Malformed(
            "the target is not an http:// address; https goes through CONNECT",
        ));
    }
    let rest = &target[7..];
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    if path.contains('#') {
        return Err(Denial::Malformed("the target has a fragment"));
    }
    let destination = parse_authority(authority, Some(80))?;
    let body = body_length(headers)?;
    let slash = if path.starts_with('/') { "" } else { "/" };
    let host = host_header(&destination);
    let mut head = format!("{method} {slash}{path} HTTP/1.1\r\nHost: {host}\r\n").into_bytes();
    for (name, value) in headers {
        if !DROPPED.contains(&name.as_str()) {
            head.extend_from_slice(name.as_bytes());
            head.extend_from_slice(b": ");
            head.extend_from_slice(value);
            head.extend_from_slice(b"\r\n");
        }
    }
    head.extend_from_slice(b"Connection: close\r\n\r\n");
    Ok(ProxyRequest::Plain {
        destination,
        head,
        body,
    })
}

fn host_header(destination: &Destination) -> String {
    match destination.port {
        80 => destination.host.to_string(),
        _ => destination.to_string(),
    }
}

/// Returns the length of the body. A body in chunks is refused: its end would have to be parsed.
fn body_length(headers: &[Header<'_>]) -> Result<u64, Denial> {
    let mut lengths = headers.iter().filter(|(name, _)| name == "content-length");
    if headers.iter().any(|(name, _)| name == "transfer-encoding") {
        return Err(Denial::Malformed(
            "a plain request needs Content-Length, not Transfer-Encoding",
        ));
    }
    let Some((_, value)) = lengths.next() else {
        return Ok(0);
    };
    let is_number = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    let number = std::str::from_utf8(value).ok().filter(|_| is_number);
    let length = number.and_then(|text| text.parse().ok());
    match (length, lengths.next()) {
        (Some(length), None) => Ok(length),
        _ => Err(Denial::Malformed("Content-Length is not one number")),
    }
}

#[cfg(test)]
mod tests {
    use super::{Denial, LONGEST_HEAD, ProxyRequest, parse};
    use proptest::prelude::*;

    fn connect(text: &str) -> Option<String> {
        match parse(text.as_bytes()) {
            Ok(Some((ProxyRequest::Connect(destination), _))) => Some(destination.to_string()),
            _ => None,
        }
    }

    #[test]
    fn connect_names_host_and_port() {
        let head = "CONNECT API.Anthropic.com:443 HTTP/1.1\r\nHost: x\r\nUser-Agent: a b\r\n\r\n";
        assert_eq!(connect(head).as_deref(), Some("api.anthropic.com:443"));
        assert_eq!(
            connect("CONNECT [::1]:8080 HTTP/1.1\r\n\r\nrest").as_deref(),
            Some("[::1]:8080")
        );
        let (_, length) = parse(b"CONNECT a.b:1 HTTP/1.0\r\n\r\nrest")
            .unwrap()
            .unwrap();
        assert_eq!(length, 26);
    }

    #[test]
    fn unfinished_head_needs_more() {
        let head = b"CONNECT a.b:443 HTTP/1.1\r\nHost: a.b\r\n\r\n";
        for end in 0..head.len() {
            assert_eq!(parse(&head[..end]), Ok(None), "{end}");
        }
        assert!(parse(&[b'a'; LONGEST_HEAD - 1]).unwrap().is_none());
        let long = Denial::Malformed("the head is too long");
        assert_eq!(parse(&[b'a'; LONGEST_HEAD]), Err(long));
    }

    #[test]
    fn malformed_heads_are_errors() {
        let heads = [
            "CONNECT a.b HTTP/1.1\r\n\r\n",
            "CONNECT user@a.b:443 HTTP/1.1\r\n\r\n",
            "CONNECT a.b:443@evil.example:443 HTTP/1.1\r\n\r\n",
            "CONNECT http://a.b:443 HTTP/1.1\r\n\r\n",
            "CONNECT  a.b:443 HTTP/1.1\r\n\r\n",
            "CONNECT a.b:443 HTTP/2\r\n\r\n",
            "CONNECT a.b:443\r\n\r\n",
            "connect a.b:443 HTTP/1.1\r\n\r\n",
            "CONNECT a.b:443\tHTTP/1.1\r\n\r\n",
            "CONNECT a.b:443 HTTP/1.1\nHost: a\r\n\r\n",
            "CONNECT a.b:443 HTTP/1.1\r\n folded\r\n\r\n",
            "CONNECT a.b:443 HTTP/1.1\r\nHost : a\r\n\r\n",
            "CONNECT a.b:443 HTTP/1.1\r\nno colon\r\n\r\n",
            "CONNECT a.b\0:443 HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a.b\r\n\r\n",
            "GET https://a.b/ HTTP/1.1\r\n\r\n",
            "GET ftp://a.b/ HTTP/1.1\r\n\r\n",
            "GET http://user@a.b/ HTTP/1.1\r\n\r\n",
            "GET http://user:pass@a.b/ HTTP/1.1\r\n\r\n",
            "GET http://a.b\\@c.d/ HTTP/1.1\r\n\r\n",
            "GET http://a%2eb/ HTTP/1.1\r\n\r\n",
            "GET http:///path HTTP/1.1\r\n\r\n",
            "GET http://a.b/#x HTTP/1.1\r\n\r\n",
            "POST http://a.b/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
            "POST http://a.b/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            "POST http://a.b/ HTTP/1.1\r\nContent-Length: +1\r\n\r\n",
            "POST http://a.b/ HTTP/1.1\r\nContent-Length: 1, 1\r\n\r\n",
            "POST http://a.b/ HTTP/1.1\r\nX: a\rb\r\n\r\n",
            "POST http://a.b/ HTTP/1.1\r\nX: a\nHost: c\r\n\r\n",
            "\r\n\r\n",
        ];
        for head in heads {
            let parsed = parse(head.as_bytes());
            assert!(matches!(parsed, Err(Denial::Malformed(_))), "{head:?}");
        }
    }

    #[test]
    fn plain_request_is_rewritten_for_its_host() {
        let head = b"POST HTTP://A.b:8080?q=1 HTTP/1.1\r\nHost: evil.example\r\nAccept: */*\r\n\
            Proxy-Authorization: Basic eA==\r\nConnection: keep-alive\r\nContent-Length: 12\r\n\r\n";
        let Ok(Some((request, length))) = parse(head) else {
            panic!("not parsed");
        };
        assert_eq!(length, head.len());
        let ProxyRequest::Plain {
            destination,
            head,
            body,
        } = request
        else {
            panic!("not plain");
        };
        assert_eq!(destination.to_string(), "a.b:8080");
        assert_eq!(body, 12);
        let expected = "POST /?q=1 HTTP/1.1\r\nHost: a.b:8080\r\naccept: */*\r\n\
            content-length: 12\r\nConnection: close\r\n\r\n";
        assert_eq!(String::from_utf8(head).unwrap(), expected);
    }

    proptest! {
        #[test]
        fn parser_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = parse(&bytes);
        }

        #[test]
        fn parser_never_panics_after_a_plausible_beginning(rest in "[ -~\r\n\u{e4}]{0,200}") {
            for start in ["CONNECT ", "GET http://", "GET http://a.b/ HTTP/1.1\r\n"] {
                let _ = parse(format!("{start}{rest}\r\n\r\n").as_bytes());
            }
        }
    }
}

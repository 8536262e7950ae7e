//! The part of HTTP/1.1 that agent programs use: requests in, JSON and event streams out.
//!
//! Reading is generic over the reader, so that tests can feed it anything. It never trusts a
//! length: it allocates only for bytes that have arrived. There is no TLS, no compression and no
//! pipelining beyond one request after the other.

use crate::api::StreamEvent;
use serde_json::Value;
use std::io::{self, BufRead, Read, Write};

/// Maximum length of the request line with headers.
const MAX_HEAD: u64 = 64 * 1024;
/// Maximum length of a body. A conversation with some messages of a megabyte fits.
const MAX_BODY: u64 = 256 * 1024 * 1024;

/// Reason why a request cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpError {
    #[error("the connection failed: {0}")]
    Connection(#[from] io::Error),
    #[error("malformed request: {0}")]
    Malformed(&'static str),
    #[error("the headers are longer than {MAX_HEAD} bytes")]
    LongHead,
    #[error("the body is longer than {MAX_BODY} bytes")]
    LongBody,
    #[error("cannot read a body with the coding {0:?}")]
    Coding(String),
}

impl HttpError {
    /// Returns the status to answer with; `None` if the connection is gone.
    pub(crate) fn status(&self) -> Option<u16> {
        match self {
            HttpError::Connection(_) => None,
            HttpError::Malformed(_) => Some(400),
            HttpError::LongHead => Some(431),
            HttpError::LongBody => Some(413),
            HttpError::Coding(_) => Some(415),
        }
    }
}

/// A request without its body.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Head {
    pub(crate) method: String,
    /// The path, and the query if there is one.
    pub(crate) target: String,
    /// HTTP/1.0, which has neither chunks nor persistent connections.
    old: bool,
    /// Names are in lower case.
    headers: Vec<(String, String)>,
}

impl Head {
    fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    fn header_has(&self, name: &str, word: &str) -> bool {
        self.header(name).is_some_and(|value| {
            let mut words = value.split(',');
            words.any(|known| known.trim().eq_ignore_ascii_case(word))
        })
    }

    /// Returns whether the client waits for `100 Continue` before it sends the body.
    pub(crate) fn expects_continue(&self) -> bool {
        self.header_has("expect", "100-continue")
    }

    /// Returns whether another request may follow on the connection.
    pub(crate) fn keeps_alive(&self) -> bool {
        !self.old && !self.header_has("connection", "close")
    }
}

/// Reads up to the empty line. `None` if the connection ended instead of another request.
pub(crate) fn read_head(reader: &mut impl BufRead) -> Result<Option<Head>, HttpError> {
    let mut reader = reader.take(MAX_HEAD);
    let first = loop {
        match read_line(&mut reader)? {
            None if reader.limit() == 0 => return Err(HttpError::LongHead),
            None => return Ok(None),
            // Some clients end a body with a line break that does not belong to it.
            Some(line) if line.is_empty() => {}
            Some(line) => break line,
        }
    };
    let mut words = first.split(' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(HttpError::Malformed("the request line has not three words"));
    };
    if method.is_empty() || !target.starts_with('/') {
        return Err(HttpError::Malformed("the request line names no path"));
    }
    let old = match version {
        "HTTP/1.1" => false,
        "HTTP/1.0" => true,
        _ => return Err(HttpError::Malformed("the version is not HTTP/1.1")),
    };
    let mut headers = Vec::new();
    loop {
        match read_line(&mut reader)? {
            None if reader.limit() == 0 => return Err(HttpError::LongHead),
            None => return Err(HttpError::Malformed("the headers end early")),
            Some(line) if line.is_empty() => break,
            Some(line) => {
                let Some((name, value)) = line.split_once(':') else {
                    return Err(HttpError::Malformed("a header has no colon"));
                };
                headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
            }
        }
    }
    Ok(Some(Head {
        method: method.to_owned(),
        target: target.to_owned(),
        old,
        headers,
    }))
}

/// Reads a line without its end. `None` if the input ended in the middle of the line.
fn read_line(reader: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    reader.read_until(b'\n', &mut line)?;
    if line.pop() != Some(b'\n') {
        return Ok(None);
    }
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    Ok(Some(String::from_utf8_lossy(&line).into_owned()))
}

/// Reads the body that the head announces.
pub(crate) fn read_body(reader: &mut impl BufRead, head: &Head) -> Result<Vec<u8>, HttpError> {
    if let Some(coding) = head.header("content-encoding")
        && !coding.eq_ignore_ascii_case("identity")
    {
        return Err(HttpError::Coding(coding.to_owned()));
    }
    let mut body = Vec::new();
    match head.header("transfer-encoding") {
        Some(coding) if coding.eq_ignore_ascii_case("chunked") => read_chunks(reader, &mut body)?,
        Some(coding) => return Err(HttpError::Coding(coding.to_owned())),
        None => {
            let Some(length) = head.header("content-length") else {
                return Ok(body);
            };
            let length = length
                .parse()
                .map_err(|_| HttpError::Malformed("the content length is no number"))?;
            read_exactly(reader, length, &mut body)?;
        }
    }
    Ok(body)
}

fn read_chunks(reader: &mut impl BufRead, body: &mut Vec<u8>) -> Result<(), HttpError> {
    const CUT: HttpError = HttpError::Malformed("the body ends early");
    loop {
        let line = read_line(&mut reader.take(MAX_HEAD))?.ok_or(CUT)?;
        let size = line.split(';').next().unwrap_or_default().trim();
        let size = u64::from_str_radix(size, 16)
            .map_err(|_| HttpError::Malformed("the size of a chunk is no number"))?;
        if size == 0 {
            break;
        }
        read_exactly(reader, size, body)?;
        if read_line(&mut reader.take(2))? != Some(String::new()) {
            return Err(HttpError::Malformed("a chunk is longer than its size"));
        }
    }
    // Skips the trailers.
    let mut trailers = reader.take(MAX_HEAD);
    while !read_line(&mut trailers)?.ok_or(CUT)?.is_empty() {}
    Ok(())
}

fn read_exactly(
    reader: &mut impl BufRead,
    length: u64,
    body: &mut Vec<u8>,
) -> Result<(), HttpError> {
    if length > MAX_BODY - body.len() as u64 {
        return Err(HttpError::LongBody);
    }
    let read = reader.take(length).read_to_end(body)?;
    if (read as u64) < length {
        return Err(HttpError::Malformed("the body ends early"));
    }
    Ok(())
}

/// Tells the client to send the body.
pub(crate) fn write_continue(out: &mut impl Write) -> io::Result<()> {
    out.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")
}

/// Writes a whole answer. A HEAD request gets all of it but the body.
pub(crate) fn write_json(
    out: &mut impl Write,
    head: Option<&Head>,
    status: u16,
    body: &Value,
) -> io::Result<()> {
    write_json_with(out, head, status, &[], body)
}

/// Writes a whole answer with additional headers.
pub(crate) fn write_json_with(
    out: &mut impl Write,
    head: Option<&Head>,
    status: u16,
    headers: &[(&str, String)],
    body: &Value,
) -> io::Result<()> {
    let body = body.to_string();
    let stays = head.is_some_and(Head::keeps_alive);
    let mut answer = start(status, "application/json", stays);
    for (name, value) in headers {
        answer.push_str(&format!("{name}: {value}\r\n"));
    }
    answer.push_str(&format!("content-length: {}\r\n\r\n", body.len()));
    if head.is_none_or(|head| head.method != "HEAD") {
        answer.push_str(&body);
    }
    out.write_all(answer.as_bytes())
}

/// A stream of server-sent events, each of which is written at once.
#[derive(Debug)]
pub(crate) struct EventWriter<'a, W> {
    out: &'a mut W,
    chunked: bool,
}

impl<'a, W: Write> EventWriter<'a, W> {
    pub(crate) fn start(out: &'a mut W, head: &Head) -> io::Result<Self> {
        let chunked = !head.old;
        let mut answer = start(200, "text/event-stream", head.keeps_alive());
        answer.push_str("cache-control: no-cache\r\n");
        if chunked {
            answer.push_str("transfer-encoding: chunked\r\n");
        }
        answer.push_str("\r\n");
        out.write_all(answer.as_bytes())?;
        Ok(EventWriter { out, chunked })
    }

    pub(crate) fn send(&mut self, event: &StreamEvent) -> io::Result<()> {
        let text = match event.name {
            Some(name) => format!("event: {name}\ndata: {}\n\n", event.data),
            None => format!("data: {}\n\n", event.data),
        };
        if self.chunked {
            let chunk = format!("{:x}\r\n{text}\r\n", text.len());
            self.out.write_all(chunk.as_bytes())
        } else {
            self.out.write_all(text.as_bytes())
        }
    }

    pub(crate) fn finish(self) -> io::Result<()> {
        if self.chunked {
            self.out.write_all(b"0\r\n\r\n")?;
        }
        Ok(())
    }
}

fn start(status: u16, content_type: &str, stays: bool) -> String {
    // The words after the status mean nothing; clients go by the number.
    let words = if status < 400 { "OK" } else { "Error" };
    let connection = if stays { "keep-alive" } else { "close" };
    format!(
        "HTTP/1.1 {status} {words}\r\ncontent-type: {content_type}\r\nconnection: {connection}\r\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(mut input: &[u8]) -> Result<Option<(Head, Vec<u8>)>, HttpError> {
        let Some(head) = read_head(&mut input)? else {
            return Ok(None);
        };
        let body = read_body(&mut input, &head)?;
        Ok(Some((head, body)))
    }

    #[test]
    fn bodies_come_whole_or_in_chunks() {
        let (head, body) = read(
            b"\r\nPOST /a?b=c HTTP/1.1\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\nabcd",
        )
        .unwrap()
        .unwrap();
        assert_eq!(
            (head.method.as_str(), head.target.as_str()),
            ("POST", "/a?b=c")
        );
        assert!(head.keeps_alive() && head.expects_continue());
        assert_eq!(body, b"abc");
        let (head, body) = read(
            b"POST / HTTP/1.1\nTransfer-Encoding: chunked\nConnection: Keep-Alive, Close\n\n2;x=y\r\nab\r\n\
              1\nc\n0\r\nTrailer: x\r\n\r\n",
        )
        .unwrap()
        .unwrap();
        assert!(!head.keeps_alive());
        assert_eq!(body, b"abc");
    }

    #[test]
    fn unreadable_request_gets_an_error_status() {
        let long = format!("GET / HTTP/1.1\r\nx: {}", "y".repeat(70_000));
        for (input, status) in [
            ("nonsense\r\n\r\n", 400),
            ("GET  / HTTP/1.1\r\n\r\n", 400),
            ("GET / HTTP/2\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nx\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nx: y\r\n", 400),
            (&long, 431),
            ("POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nabc", 400),
            (
                "POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n",
                413,
            ),
            (
                "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n",
                400,
            ),
            (
                "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
                413,
            ),
            ("POST / HTTP/1.1\r\nContent-Encoding: zstd\r\n\r\n", 415),
        ] {
            let error = read(input.as_bytes()).unwrap_err();
            assert_eq!(error.status(), Some(status), "{input}: {error}");
        }
        assert!(read(b"").unwrap().is_none());
    }

    proptest! {
        #[test]
        fn any_bytes_can_be_read(input in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = read(&input);
        }

        #[test]
        fn near_misses_can_be_read(
            input in "(POST|GET|HTTP/1.1|HTTP/1.0|/|\r\n|\n|:|;| |Content-Length|Transfer-Encoding|chunked|[0-9a-f]{1,20}|Expect|\u{e4})*"
        ) {
            let _ = read(format!("POST / HTTP/1.1\r\n{input}").as_bytes());
            let _ = read(format!("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{input}").as_bytes());
            let _ = read(input.as_bytes());
        }

        #[test]
        fn a_body_arrives_however_it_is_cut(
            body in prop::collection::vec(any::<u8>(), 0..2000),
            size in 1..500_usize,
        ) {
            let mut input = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
            for chunk in body.chunks(size) {
                input.extend_from_slice(format!("{:X}\r\n", chunk.len()).as_bytes());
                input.extend_from_slice(chunk);
                input.extend_from_slice(b"\r\n");
            }
            input.extend_from_slice(b"0\r\n\r\n");
            let (_, read) = read(&input).unwrap().unwrap();
            prop_assert_eq!(read, body);
        }
    }
}

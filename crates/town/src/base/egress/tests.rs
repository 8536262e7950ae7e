//! Tests with real sockets. Servers are on loopback, by listed addresses or by a test resolver.

use super::{EgressEvent, Limits, Proxy, bridge, is_public, serve_proxy};
use gt_core::egress::{AllowList, Denial};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(20);

struct TestProxy {
    folder: tempfile::TempDir,
    events: Receiver<EgressEvent>,
}

impl TestProxy {
    fn start(entries: &[&str], permits: fn(IpAddr) -> bool, limits: Limits) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("s")).unwrap();
        let (sender, events) = channel();
        let sender = Mutex::new(sender);
        let proxy = Proxy {
            allow: AllowList::parse(entries).unwrap(),
            limits,
            resolve: |_, port| Ok(vec![SocketAddr::from(([127, 0, 0, 1], port))]),
            permits,
            reported: Mutex::default(),
            log: Box::new(move |event| {
                let _ = sender.lock().unwrap().send(event);
            }),
        };
        thread::spawn(move || serve_proxy(&listener, Arc::new(proxy)));
        Self { folder, events }
    }

    fn connect(&self) -> UnixStream {
        let client = UnixStream::connect(self.folder.path().join("s")).unwrap();
        client.set_read_timeout(Some(TIMEOUT)).unwrap();
        client
    }

    /// Sends a request and returns everything until the proxy closes the connection.
    fn answer(&self, request: &str) -> String {
        let mut client = self.connect();
        client.write_all(request.as_bytes()).unwrap();
        rest(&mut client)
    }

    /// Opens a tunnel.
    fn tunnel(&self, destination: &str) -> UnixStream {
        let mut client = self.connect();
        write!(client, "CONNECT {destination} HTTP/1.1\r\n\r\n").unwrap();
        let mut head = [0; super::CONNECTED.len()];
        client.read_exact(&mut head).unwrap();
        assert_eq!(head, super::CONNECTED);
        client
    }
}

fn rest(client: &mut impl Read) -> String {
    let mut bytes = Vec::new();
    match client.read_to_end(&mut bytes) {
        Err(error) if error.kind() != ErrorKind::ConnectionReset => panic!("{error}"),
        _ => String::from_utf8_lossy(&bytes).into_owned(),
    }
}

/// Starts a server that reads everything and then answers with its length and content.
fn server(address: &str) -> (u16, Receiver<Vec<u8>>) {
    let listener = TcpListener::bind(address).unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, received) = channel();
    thread::spawn(move || {
        for client in listener.incoming() {
            let sender = sender.clone();
            thread::spawn(move || -> io::Result<()> {
                let mut client = client?;
                let mut bytes = Vec::new();
                client.read_to_end(&mut bytes)?;
                let answer = format!("got {}", bytes.len());
                // The test may have ended.
                let _ = sender.send(bytes);
                client.write_all(answer.as_bytes())
            });
        }
    });
    (port, received)
}

fn hello(name: &str) -> Vec<u8> {
    let long = |bytes: &[u8]| [&(bytes.len() as u16).to_be_bytes(), bytes].concat();
    let entry = [vec![0], long(name.as_bytes())].concat();
    let extension = [vec![0, 0], long(&long(&entry))].concat();
    let start = [&[3, 3][..], &[7; 32], &[0, 0, 2, 19, 1, 1, 0]].concat();
    let body = [start, long(&extension)].concat();
    let message = [vec![1, 0], long(&body)].concat();
    [vec![22, 3, 1], long(&message)].concat()
}

fn exchange(mut client: UnixStream, bytes: &[u8]) -> String {
    client.write_all(bytes).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    rest(&mut client)
}

#[test]
fn listed_addresses_are_reached_and_half_close_is_passed_on() {
    for address in ["127.0.0.1", "[::1]"] {
        let (port, received) = server(&format!("{address}:0"));
        let destination = format!("{address}:{port}");
        let proxy = TestProxy::start(&[&destination], is_public, Limits::default());
        let content = vec![b'x'; 3_000_000];
        let answer = exchange(proxy.tunnel(&destination), &content);
        assert_eq!(answer, "got 3000000", "{address}");
        assert_eq!(received.recv_timeout(TIMEOUT).unwrap(), content);
    }
}

#[test]
fn denied_host_gets_403_and_is_reported_once() {
    let proxy = TestProxy::start(&["a.example.org"], is_public, Limits::default());
    for port in [443, 80] {
        let answer = proxy.answer(&format!("CONNECT evil.example:{port} HTTP/1.1\r\n\r\n"));
        assert!(answer.starts_with("HTTP/1.1 403 Forbidden\r\n"), "{answer}");
        assert!(answer.contains("does not allow evil.example"), "{answer}");
    }
    let answer = proxy.answer("GET http://127.0.0.1/ HTTP/1.1\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    let answer = proxy.answer("CONNECT a@b:443 HTTP/1.1\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    let events: Vec<_> = proxy.events.try_iter().collect();
    let hosts: Vec<_> = events
        .iter()
        .map(|event| event.destination.as_ref().map(ToString::to_string))
        .collect();
    let expected = [Some("evil.example:443"), Some("127.0.0.1:80"), None];
    assert_eq!(hosts, expected.map(|host| host.map(str::to_owned)));
}

#[test]
fn name_that_leads_to_loopback_is_refused() {
    let (port, received) = server("127.0.0.1:0");
    let entry = format!("a.example.org:{port}");
    let proxy = TestProxy::start(&[&entry], is_public, Limits::default());
    let answer = proxy.answer(&format!("CONNECT {entry} HTTP/1.1\r\n\r\n"));
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    assert!(answer.contains("127.0.0.1"), "{answer}");
    assert!(received.try_recv().is_err());
}

#[test]
fn server_name_must_be_that_of_the_tunnel() {
    let (port, received) = server("127.0.0.1:0");
    let entry = format!("*.example.org:{port}");
    let proxy = TestProxy::start(&[&entry], |_| true, Limits::default());
    let destination = format!("a.example.org:{port}");
    let good = hello("A.example.org");
    let answer = exchange(proxy.tunnel(&destination), &good);
    assert_eq!(answer, format!("got {}", good.len()));
    assert_eq!(received.recv_timeout(TIMEOUT).unwrap(), good);
    for bytes in [hello("b.example.org"), b"GET / HTTP/1.1\r\n\r\n".to_vec()] {
        let mut client = proxy.tunnel(&destination);
        client.write_all(&bytes).unwrap();
        let answer = rest(&mut client);
        assert_eq!(answer.as_bytes().first(), Some(&21), "{answer}");
        assert_eq!(received.recv_timeout(TIMEOUT).unwrap(), b"");
    }
    let event = proxy.events.recv_timeout(TIMEOUT).unwrap();
    assert_eq!(
        event.denial,
        Denial::OtherServerName("b.example.org".into())
    );
}

#[test]
fn plain_request_ends_with_its_body() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let proxy = TestProxy::start(
        &[&format!("127.0.0.1:{port}")],
        is_public,
        Limits::default(),
    );
    let mut client = proxy.connect();
    let head = format!("POST http://127.0.0.1:{port}/x HTTP/1.1\r\nContent-Length: 2\r\n\r\nhi");
    client.write_all(head.as_bytes()).unwrap();
    let (mut served, _) = listener.accept().unwrap();
    let expected = format!(
        "POST /x HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\ncontent-length: 2\r\nConnection: close\r\n\r\nhi"
    );
    let mut received = vec![0; expected.len()];
    served.read_exact(&mut received).unwrap();
    assert_eq!(String::from_utf8(received).unwrap(), expected);
    client.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    assert_eq!(rest(&mut served), "");
}

#[test]
fn slow_head_and_slow_hello_time_out() {
    let (port, _received) = server("127.0.0.1:0");
    let limits = Limits {
        head: Duration::from_millis(100),
        ..Limits::default()
    };
    let entry = format!("a.example.org:{port}");
    let proxy = TestProxy::start(&[&entry], |_| true, limits);
    let mut client = proxy.connect();
    client.write_all(b"CONNECT a.exa").unwrap();
    assert_eq!(rest(&mut client), "");
    assert_eq!(rest(&mut proxy.tunnel(&entry)), "");
}

#[test]
fn connections_beyond_the_limit_wait() {
    let (port, _received) = server("127.0.0.1:0");
    let destination = format!("127.0.0.1:{port}");
    let limits = Limits {
        connections: 8,
        ..Limits::default()
    };
    let proxy = TestProxy::start(&[&destination], is_public, limits);
    let held: Vec<UnixStream> = (0..8).map(|_| proxy.tunnel(&destination)).collect();
    let mut ninth = proxy.connect();
    write!(ninth, "CONNECT {destination} HTTP/1.1\r\n\r\n").unwrap();
    ninth
        .set_read_timeout(Some(Duration::from_millis(200)))
        .unwrap();
    assert!(ninth.read(&mut [0]).is_err(), "all slots are in use");
    drop(ninth);
    let path = proxy.folder.path().join("s");
    let waiting: Vec<_> = (0..192)
        .map(|_| {
            let (path, destination) = (path.clone(), destination.clone());
            thread::spawn(move || {
                let mut client = UnixStream::connect(path).unwrap();
                client.set_read_timeout(Some(TIMEOUT)).unwrap();
                write!(client, "CONNECT {destination} HTTP/1.1\r\n\r\n").unwrap();
                exchange(client, b"x")
            })
        })
        .collect();
    drop(held);
    for client in waiting {
        assert!(client.join().unwrap().ends_with("got 1"));
    }
}

#[test]
fn bridge_forwards_tcp_to_the_socket() {
    let (port, _received) = server("127.0.0.1:0");
    let destination = format!("127.0.0.1:{port}");
    let proxy = TestProxy::start(&[&destination], is_public, Limits::default());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let socket = proxy.folder.path().join("s");
    thread::spawn(move || bridge(&listener, &socket));
    let mut client = TcpStream::connect(address).unwrap();
    write!(client, "CONNECT {destination} HTTP/1.1\r\n\r\nabc").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    assert!(rest(&mut client).ends_with("got 3"));
}

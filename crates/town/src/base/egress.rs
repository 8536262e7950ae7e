//! The proxy through which a strict sandbox reaches its allowed hosts, and the bridge inside.
//!
//! The sandbox has no network. The broker, outside, serves a Unix socket that is mounted into the
//! sandbox:
//!
//! ```ignore
//! let listener = UnixListener::bind(&path)?;
//! thread::spawn(move || egress::serve(listener, allow, |event| log(event)));
//! ```
//!
//! Inside, `gt internal egress-bridge --socket PATH --port N -- PROGRAM…` calls [`bridge`], which
//! accepts TCP connections on 127.0.0.1 for programs that know only TCP proxies.
//! `AllowList::proxy_variables` returns the variables that point them there.
//!
//! A connection is one thread. Its request must arrive within [`Limits::head`]. A host name is
//! resolved here, outside, and must lead to a public address. A tunnel to a name must begin with a
//! TLS client hello for that name; no byte is forwarded before. A tunnel to a listed address is
//! not inspected. The decisions and parsers are in `gt_core::egress`.
//!
//! The proxy uses no other proxy, and does not read the content of tunnels.

mod relay;
#[cfg(test)]
mod tests;

use gt_core::egress::client_hello::HelloReader;
use gt_core::egress::request::{self, ProxyRequest};
use gt_core::egress::{AllowList, Denial, Destination, Host, Permit, is_public};
use relay::{BodyLimit, relay};
use std::collections::HashSet;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// A refused connection. Each host is reported once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EgressEvent {
    /// Absent if the request names no valid destination.
    pub destination: Option<Destination>,
    pub denial: Denial,
}

/// Maximum number of hosts that are reported; a program can make up any number of them.
const MAX_REPORTED: usize = 200;
/// Maximum number of addresses of a host that are tried.
const MAX_ADDRESSES: usize = 4;
const PIECE: usize = 4096;
/// TLS alert "access denied" (49), for a client that already waits for the server's hello.
const TLS_ACCESS_DENIED: [u8; 7] = [21, 3, 3, 0, 2, 2, 49];
const CONNECTED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";
const ACCEPT_RETRY: Duration = Duration::from_millis(50);

/// Serves the proxy until the listener fails. Further connections than [`Limits::connections`]
/// wait in the listener's queue.
pub fn serve(
    listener: UnixListener,
    allow: AllowList,
    log: impl Fn(EgressEvent) + Send + Sync + 'static,
) -> io::Result<()> {
    let proxy = Proxy {
        allow,
        limits: Limits::default(),
        resolve: resolve_with_system,
        permits: is_public,
        reported: Mutex::default(),
        log: Box::new(log),
    };
    serve_proxy(&listener, Arc::new(proxy))
}

/// Forwards each connection of a TCP listener to a Unix socket, until the listener fails.
pub fn bridge(listener: &TcpListener, socket: &Path) -> io::Result<()> {
    let slots = Arc::new(ConnectionSlots::default());
    loop {
        let slot = ConnectionSlots::take(&slots, Limits::default().connections);
        let client = accept(|| listener.accept().map(|(client, _)| client))?;
        let socket = socket.to_owned();
        start_thread(move || {
            let _slot = slot;
            let server = UnixStream::connect(socket)?;
            relay(&client, &server, Vec::new(), BodyLimit::None)
        });
    }
}

/// Limits of the proxy.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Connections at a time.
    connections: usize,
    /// Timeout for the request's head, and for the TLS client hello.
    head: Duration,
    /// Timeout for each address of the host.
    connect: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 128,
            head: Duration::from_secs(10),
            connect: Duration::from_secs(10),
        }
    }
}

struct Proxy {
    allow: AllowList,
    limits: Limits,
    resolve: fn(&str, u16) -> io::Result<Vec<SocketAddr>>,
    permits: fn(IpAddr) -> bool,
    /// Destinations whose denial was reported.
    reported: Mutex<HashSet<Option<Host>>>,
    log: Box<dyn Fn(EgressEvent) + Send + Sync>,
}

fn resolve_with_system(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    Ok((host, port).to_socket_addrs()?.collect())
}

fn serve_proxy(listener: &UnixListener, proxy: Arc<Proxy>) -> io::Result<()> {
    let slots = Arc::new(ConnectionSlots::default());
    loop {
        let slot = ConnectionSlots::take(&slots, proxy.limits.connections);
        let client = accept(|| listener.accept().map(|(client, _)| client))?;
        let proxy = Arc::clone(&proxy);
        start_thread(move || {
            let _slot = slot;
            proxy.handle(&client)
        });
    }
}

/// Accepts a connection. Lack of files or memory passes, so it is retried.
fn accept<T>(mut accept: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match accept() {
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Err(error),
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::BADF.raw_os_error()) => {
                return Err(error);
            }
            Err(_) => thread::sleep(ACCEPT_RETRY),
            accepted => return accepted,
        }
    }
}

/// Runs a connection in its own thread. Without a thread, the connection is closed.
fn start_thread(connection: impl FnOnce() -> io::Result<()> + Send + 'static) {
    let run = move || {
        if let Err(error) = connection() {
            tracing::debug!("a connection of the egress proxy ended: {error}");
        }
    };
    let thread = thread::Builder::new().name("egress".to_owned());
    if let Err(error) = thread.spawn(run) {
        tracing::warn!("cannot start a thread of the egress proxy: {error}");
    }
}

impl Proxy {
    fn handle(&self, client: &UnixStream) -> io::Result<()> {
        let deadline = Instant::now() + self.limits.head;
        let (request, rest) = match self.read_request(client, deadline)? {
            Ok(read) => read,
            Err(denial) => return self.refuse(client, None, denial),
        };
        let destination = request.destination().clone();
        let permit = match self.allow.check(&destination) {
            Ok(permit) => permit,
            Err(denial) => return self.refuse(client, Some(destination), denial),
        };
        let server = match self.connect(&destination, permit) {
            Ok(Ok(server)) => server,
            Ok(Err(denial)) => return self.refuse(client, Some(destination), denial),
            Err(error) => {
                let text = format!("cannot connect to {destination}: {error}");
                return respond(client, "502 Bad Gateway", &text);
            }
        };
        match request {
            ProxyRequest::Plain { head, body, .. } => {
                let body = BodyLimit::Bytes(body);
                write_head(&server, &head, self.limits.connect)?;
                client.set_read_timeout(None)?;
                relay(client, &server, rest, body)
            }
            ProxyRequest::Connect(_) => {
                (&*client).write_all(CONNECTED)?;
                self.tunnel(client, &server, rest, destination, permit)
            }
        }
    }

    /// Reads the head of the request. Returns the request and the bytes after its head.
    fn read_request(
        &self,
        client: &UnixStream,
        deadline: Instant,
    ) -> io::Result<Result<(ProxyRequest, Vec<u8>), Denial>> {
        let mut read = Vec::new();
        loop {
            match request::parse(&read) {
                Err(denial) => return Ok(Err(denial)),
                Ok(Some((request, length))) => return Ok(Ok((request, read.split_off(length)))),
                Ok(None) => read_before(client, &mut read, deadline)?,
            }
        }
    }

    /// Connects to the first permitted address of the destination that answers.
    fn connect(
        &self,
        destination: &Destination,
        permit: Permit,
    ) -> io::Result<Result<TcpStream, Denial>> {
        let addresses = match (&destination.host, permit) {
            (Host::Name(name), _) => (self.resolve)(name, destination.port)?,
            (Host::Address(address), _) => vec![SocketAddr::new(*address, destination.port)],
        };
        let is_permitted = |address: &SocketAddr| match permit {
            Permit::Name => (self.permits)(address.ip()),
            Permit::Address(listed) => address.ip() == listed,
        };
        let (permitted, refused): (Vec<SocketAddr>, Vec<SocketAddr>) =
            addresses.into_iter().partition(is_permitted);
        if let (true, Some(address)) = (permitted.is_empty(), refused.first()) {
            return Ok(Err(Denial::PrivateAddress(address.ip())));
        }
        let mut failure = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for address in permitted.iter().take(MAX_ADDRESSES) {
            match TcpStream::connect_timeout(address, self.limits.connect) {
                Ok(server) => {
                    // Without it a server that vanished would hold the connection forever.
                    rustix::net::sockopt::set_socket_keepalive(&server, true)?;
                    server.set_nodelay(true)?;
                    return Ok(Ok(server));
                }
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    /// Checks the TLS client hello if the destination is a name, then forwards both directions.
    fn tunnel(
        &self,
        client: &UnixStream,
        server: &TcpStream,
        mut rest: Vec<u8>,
        destination: Destination,
        permit: Permit,
    ) -> io::Result<()> {
        if permit == Permit::Name {
            let deadline = Instant::now() + self.limits.head;
            let mut reader = HelloReader::default();
            let mut checked = 0;
            let found = loop {
                match reader.read(&rest[checked..]) {
                    Ok(Some(name)) => break Ok(name),
                    Ok(None) => {}
                    Err(denial) => break Err(denial),
                }
                checked = rest.len();
                read_before(client, &mut rest, deadline)?;
            };
            let denial = match found {
                Ok(name) if Host::Name(name.clone()) == destination.host => None,
                Ok(name) => Some(Denial::OtherServerName(name)),
                Err(denial) => Some(denial),
            };
            if let Some(denial) = denial {
                self.report(Some(destination), denial);
                return (&*client).write_all(&TLS_ACCESS_DENIED);
            }
        }
        client.set_read_timeout(None)?;
        relay(client, server, rest, BodyLimit::None)
    }

    fn refuse(
        &self,
        client: &UnixStream,
        destination: Option<Destination>,
        denial: Denial,
    ) -> io::Result<()> {
        let (status, text) = match &destination {
            Some(destination) => (
                "403 Forbidden",
                format!("the sandbox does not allow {destination}: {denial}"),
            ),
            None => ("400 Bad Request", denial.to_string()),
        };
        self.report(destination, denial);
        respond(client, status, &text)
    }

    fn report(&self, destination: Option<Destination>, denial: Denial) {
        let host = destination.as_ref().map(|it| it.host.clone());
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        if reported.len() >= MAX_REPORTED || !reported.insert(host) {
            return;
        }
        drop(reported);
        (self.log)(EgressEvent {
            destination,
            denial,
        });
    }
}

/// Appends the next bytes of the client. Fails at the deadline and at the end of the stream.
fn read_before(client: &UnixStream, read: &mut Vec<u8>, deadline: Instant) -> io::Result<()> {
    let remaining = deadline.saturating_duration_since(Instant::now());
    if remaining.is_zero() {
        return Err(io::ErrorKind::TimedOut.into());
    }
    client.set_read_timeout(Some(remaining))?;
    let mut piece = [0; PIECE];
    let length = (&*client).read(&mut piece)?;
    if length == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    read.extend_from_slice(&piece[..length]);
    Ok(())
}

fn write_head(server: &TcpStream, head: &[u8], timeout: Duration) -> io::Result<()> {
    server.set_write_timeout(Some(timeout))?;
    (&*server).write_all(head)
}

fn respond(client: &UnixStream, status: &str, text: &str) -> io::Result<()> {
    let length = text.len() + 1;
    let response = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n{text}\n"
    );
    (&*client).write_all(response.as_bytes())
}

/// Counts the connections, and lets the next one wait for the end of another.
#[derive(Default)]
struct ConnectionSlots {
    used: Mutex<usize>,
    freed: Condvar,
}

/// One of the slots, until it is dropped.
struct ConnectionSlot(Arc<ConnectionSlots>);

impl ConnectionSlots {
    fn take(slots: &Arc<Self>, most: usize) -> ConnectionSlot {
        let used = slots.used.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = |used: &mut usize| *used >= most;
        let waited = slots.freed.wait_while(used, is_full);
        *waited.unwrap_or_else(PoisonError::into_inner) += 1;
        ConnectionSlot(Arc::clone(slots))
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut used = self.0.used.lock().unwrap_or_else(PoisonError::into_inner);
        *used -= 1;
        self.0.freed.notify_one();
    }
}

//! The server: a thread per connection on 127.0.0.1.
//!
//! It uses threads, because a handful of agents make a handful of connections, and a delay is then
//! a plain wait. All waits end when the server stops.

use crate::answer::{self, Reply};
use crate::http::{self, EventWriter, Head, HttpError};
use crate::journal::{LoggedRequest, RequestJournal, TimedOut};
use crate::playbook::Playbook;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fs;
use std::io::{self, BufReader, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Options of a server.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Port on 127.0.0.1; 0 for any free port.
    pub port: u16,
    /// File that gets a line per request.
    pub log: Option<PathBuf>,
    /// Folder that gets the body of every request, to inspect what a new version of a program
    /// sends.
    pub bodies: Option<PathBuf>,
    /// Whether to keep no requests in memory, for a server that runs for long.
    pub forget: bool,
}

/// A running server. It stops when it is dropped.
#[derive(Debug)]
pub struct FakeModel {
    address: SocketAddr,
    shared: Arc<SharedServer>,
    acceptor: Option<JoinHandle<()>>,
}

impl FakeModel {
    /// Starts a server on any free port.
    ///
    /// # Panics
    /// If there is no free port or the log cannot be opened: a test cannot continue.
    #[must_use]
    pub fn start(log: Option<&Path>) -> Self {
        let options = Options {
            log: log.map(Path::to_owned),
            ..Options::default()
        };
        Self::start_with(&options)
            .unwrap_or_else(|error| panic!("cannot start the fake model: {error}"))
    }

    /// Starts a server with these options. It listens when this returns.
    pub fn start_with(options: &Options) -> io::Result<Self> {
        if let Some(folder) = &options.bodies {
            fs::create_dir_all(folder)?;
        }
        let journal = RequestJournal::new(options.log.as_deref(), !options.forget)?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(SharedServer {
            journal,
            playbook: Playbook::default(),
            bodies: options.bodies.clone(),
            serial: AtomicU64::new(0),
            connections: Mutex::default(),
            stopped: Condvar::new(),
        });
        let for_acceptor = Arc::clone(&shared);
        let acceptor = thread::Builder::new()
            .name("fake-model".to_owned())
            .spawn(move || accept(&listener, &for_acceptor))?;
        Ok(FakeModel {
            address,
            shared,
            acceptor: Some(acceptor),
        })
    }

    /// Returns the base URL, without a path.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    #[must_use]
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Answers every conversation that contains `text` by these directives, unless its prompt has
    /// directives.
    pub fn answer_where(&self, text: &str, directives: &str) {
        self.shared.playbook.add(text, directives);
    }

    /// Returns the requests so far.
    #[must_use]
    pub fn requests(&self) -> Vec<LoggedRequest> {
        self.shared.journal.requests()
    }

    /// Waits until the requests so far fulfil a condition, and returns them.
    pub fn wait_for(
        &self,
        condition: impl Fn(&[LoggedRequest]) -> bool,
        timeout: Duration,
    ) -> Result<Vec<LoggedRequest>, TimedOut> {
        self.shared.journal.wait_for(condition, timeout)
    }
}

impl Drop for FakeModel {
    fn drop(&mut self) {
        self.shared.stop();
        // The acceptor checks whether to stop whenever a client connects.
        let woken = TcpStream::connect_timeout(&self.address, Duration::from_secs(1)).is_ok();
        if let Some(acceptor) = self.acceptor.take()
            && woken
        {
            // A panic of its threads has been printed and has ended one connection.
            let _ = acceptor.join();
        }
    }
}

#[derive(Debug)]
struct SharedServer {
    journal: RequestJournal,
    playbook: Playbook,
    bodies: Option<PathBuf>,
    serial: AtomicU64,
    connections: Mutex<Connections>,
    stopped: Condvar,
}

#[derive(Debug, Default)]
struct Connections {
    stop: bool,
    count: u64,
    open: HashMap<u64, TcpStream>,
}

impl SharedServer {
    fn connections(&self) -> MutexGuard<'_, Connections> {
        self.connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends every wait: for time, for bytes, for room to write.
    fn stop(&self) {
        let mut connections = self.connections();
        connections.stop = true;
        for stream in connections.open.values() {
            // A connection that its client has closed is done already.
            let _ = stream.shutdown(Shutdown::Both);
        }
        self.stopped.notify_all();
    }

    fn is_stopped(&self) -> bool {
        self.connections().stop
    }

    /// Waits for this time, or until the server stops.
    fn pause(&self, time: Duration) {
        if !time.is_zero() {
            let waited = self
                .stopped
                .wait_timeout_while(self.connections(), time, |connections| !connections.stop);
            drop(waited);
        }
    }

    /// Registers a connection, so that a stop can end it. `None` if the server has stopped.
    fn enter(&self, stream: &TcpStream) -> io::Result<Option<u64>> {
        let mut connections = self.connections();
        if connections.stop {
            return Ok(None);
        }
        connections.count += 1;
        let id = connections.count;
        connections.open.insert(id, stream.try_clone()?);
        Ok(Some(id))
    }
}

fn accept(listener: &TcpListener, shared: &SharedServer) {
    thread::scope(|scope| {
        for stream in listener.incoming() {
            if shared.is_stopped() {
                break;
            }
            match stream {
                Ok(stream) => {
                    scope.spawn(move || connection(&stream, shared));
                }
                // Most likely out of file descriptors: other connections release theirs in time.
                Err(_) => shared.pause(Duration::from_millis(10)),
            }
        }
    });
}

/// Serves one connection to its end.
fn connection(stream: &TcpStream, shared: &SharedServer) {
    let Ok(Some(id)) = shared.enter(stream) else {
        return;
    };
    // A client may disconnect at any time; then there is no caller to report an error to.
    let _ = stream.set_nodelay(true);
    let _ = requests(stream, shared);
    let _ = stream.shutdown(Shutdown::Both);
    shared.connections().open.remove(&id);
}

fn requests(mut stream: &TcpStream, shared: &SharedServer) -> io::Result<()> {
    let mut reader = BufReader::with_capacity(64 * 1024, stream);
    loop {
        let (head, body) = match request(&mut reader, &mut stream) {
            Ok(Some(request)) => request,
            Ok(None) => return Ok(()),
            Err(error) => {
                return match error.status() {
                    Some(status) => {
                        http::write_json(&mut stream, None, status, &failure(&error.to_string()))
                    }
                    None => Ok(()),
                };
            }
        };
        answer(&mut stream, shared, &head, &body)?;
        if !head.keeps_alive() || shared.is_stopped() {
            return Ok(());
        }
    }
}

fn request(
    reader: &mut BufReader<&TcpStream>,
    out: &mut impl Write,
) -> Result<Option<(Head, Vec<u8>)>, HttpError> {
    let Some(head) = http::read_head(reader)? else {
        return Ok(None);
    };
    if head.expects_continue() {
        http::write_continue(out)?;
    }
    let body = http::read_body(reader, &head)?;
    Ok(Some((head, body)))
}

/// Answers one request. An error is one of the connection.
fn answer(out: &mut impl Write, shared: &SharedServer, head: &Head, body: &[u8]) -> io::Result<()> {
    let now = jiff::Timestamp::now();
    let serial = shared.serial.fetch_add(1, Ordering::Relaxed) + 1;
    let mut decision = answer::decide(
        &head.method,
        &head.target,
        body,
        serial,
        now.as_second(),
        &shared.playbook,
    );
    let status = decision.request.status;
    decision.request.at = format!("{now:.3}");
    // A log with a gap would make tests pass or fail wrongly, so the client gets an error.
    if let Err(error) = note(shared, decision.request, body) {
        let message = format!("the fake model cannot write its log: {error}");
        return http::write_json(out, Some(head), 500, &failure(&message));
    }
    shared.pause(decision.delay);
    match decision.reply {
        Reply::Json(answer) => http::write_json(out, Some(head), status, &answer),
        Reply::Refusal(refusal) => {
            http::write_json_with(out, Some(head), status, &refusal.headers, &refusal.body)
        }
        Reply::Events(events, pace) => {
            let mut writer = EventWriter::start(out, head)?;
            for event in &events {
                writer.send(event)?;
                if event.paced {
                    shared.pause(pace);
                }
            }
            writer.finish()
        }
    }
}

fn note(shared: &SharedServer, request: LoggedRequest, body: &[u8]) -> io::Result<()> {
    let number = shared.journal.note(request)?;
    match &shared.bodies {
        Some(folder) => fs::write(folder.join(format!("{number:05}.json")), body),
        None => Ok(()),
    }
}

fn failure(message: &str) -> Value {
    json!({"error": {"type": "invalid_request_error", "message": message}})
}

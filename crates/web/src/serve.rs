//! The sockets: a Unix socket of the town, and TCP on a loopback address.

use crate::app::app;
use crate::failure::ApiFailure;
use crate::state::{ApiState, TownPlace};
use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use gt_core::Problem;
use gt_town::base::files;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{Instant, Sleep};

/// Maximum number of connections of each socket.
const MAX_CONNECTIONS: usize = 256;
/// Maximum time from the start of a connection to its first byte.
const FIRST_BYTE: Duration = Duration::from_secs(10);
/// Maximum time without a byte in either direction. It exceeds the time of the slowest operation;
/// connections of live events send pings.
const IDLE: Duration = Duration::from_secs(600);
/// Pause after a failed accept, such as without free file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// Returns the path of the Unix socket.
pub fn socket_path(root: &Path) -> PathBuf {
    root.join(".runtime/api.sock")
}

/// The other end of a connection.
#[derive(Clone, Debug)]
pub enum ApiConnection {
    Unix(PeerIdentity),
    Tcp(SocketAddr),
}

/// The identity of the process at the other end of the Unix socket, from its process tree.
#[derive(Clone, Debug)]
pub enum PeerIdentity {
    /// The process is in the tree of no agent.
    Person {
        pid: u32,
    },
    Agent {
        address: String,
        pid: u32,
    },
    /// The process tree cannot be read. All requests are refused with this problem.
    Unknown(Problem),
}

/// Serves until the state is closed and the running requests are answered. Replaces an existing
/// socket as the leftover of a killed daemon, so only the daemon may call it.
pub async fn serve(state: Arc<ApiState>) -> Result<(), Problem> {
    let mut tasks = JoinSet::new();
    let service = app(Arc::clone(&state)).into_make_service_with_connect_info::<ApiConnection>();
    let path = socket_path(&state.place.root);
    match bind_unix(&path) {
        Ok(listener) => {
            let listener = LocalListener {
                listener,
                place: state.place.clone(),
                permits: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
            };
            let (state, service) = (Arc::clone(&state), service.clone());
            tasks.spawn(async move {
                let served = axum::serve(listener, service);
                served
                    .with_graceful_shutdown(async move { state.closed().await })
                    .await
            });
        }
        Err(problem) => tracing::warn!("{}", problem.line()),
    }
    if let Some(address) = state.listen {
        match TcpListener::bind(address).await {
            Ok(listener) => {
                let listener = LoopbackListener {
                    listener,
                    permits: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
                };
                let state = Arc::clone(&state);
                tasks.spawn(async move {
                    let served = axum::serve(listener, service);
                    served
                        .with_graceful_shutdown(async move { state.closed().await })
                        .await
                });
            }
            Err(error) => tracing::warn!("cannot listen on {address}: {error}"),
        }
    }
    state.closed().await;
    while let Some(ended) = tasks.join_next().await {
        match ended {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!("the API ended: {error}"),
            Err(error) => tracing::warn!("the API ended: {error}"),
        }
    }
    files::remove_if_there(&path)
}

fn bind_unix(path: &Path) -> Result<UnixListener, Problem> {
    let cannot = |error| files::io_problem("listen on", path, &error);
    // The caller holds the lock of the daemon, so an existing socket belongs to a dead one.
    files::remove_if_there(path)?;
    if let Some(folder) = path.parent() {
        files::make_dir(folder)?;
    }
    let listener = UnixListener::bind(path).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidInput => cannot(error)
            .hint("the path of a socket has room for about 100 characters: move the town"),
        _ => cannot(error),
    })?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(cannot)?;
    Ok(listener)
}

/// Accepts connections of processes of the same user.
#[derive(Debug)]
struct LocalListener {
    listener: UnixListener,
    place: TownPlace,
    permits: Arc<Semaphore>,
}

impl Listener for LocalListener {
    type Io = CountedStream<UnixStream>;
    type Addr = ApiConnection;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let permit = permit(&self.permits).await;
            let stream = match self.listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    pause(&error).await;
                    continue;
                }
            };
            if let Some(peer) = identify(&self.place, &stream) {
                return (
                    CountedStream::new(stream, permit),
                    ApiConnection::Unix(peer),
                );
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Returns the identity of a peer; `None` for another user.
fn identify(place: &TownPlace, stream: &UnixStream) -> Option<PeerIdentity> {
    let peer = match stream.peer_cred() {
        Ok(peer) => peer,
        Err(error) => {
            tracing::warn!("a connection without credentials was refused: {error}");
            return None;
        }
    };
    if peer.uid() != rustix::process::geteuid().as_raw() {
        tracing::warn!("a connection of the user {} was refused", peer.uid());
        return None;
    }
    let read = || -> Result<PeerIdentity, Problem> {
        let unknown = || Problem::denied("the process of this connection is not known");
        let pid = peer.pid().and_then(|pid| u32::try_from(pid).ok());
        let pid = pid.ok_or_else(unknown)?;
        check_namespaces(pid)?;
        let town = place.open()?;
        Ok(match town.agent_of_process(pid)? {
            Some(agent) => PeerIdentity::Agent {
                address: agent.address(),
                pid,
            },
            None => PeerIdentity::Person { pid },
        })
    };
    Some(read().unwrap_or_else(PeerIdentity::Unknown))
}

/// Fails for a process inside a sandbox: there an agent calls `gt` through its broker.
#[cfg(target_os = "linux")]
fn check_namespaces(pid: u32) -> Result<(), Problem> {
    for namespace in ["mnt", "pid", "user"] {
        let of = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/{namespace}"));
        match (of("self"), of(&pid.to_string())) {
            (Ok(own), Ok(other)) if own == other => {}
            _ => {
                return Err(Problem::denied(format!(
                    "the process {pid} runs in another namespace than the daemon"
                ))
                .hint("from inside a container, use a token and the TCP address"));
            }
        }
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn check_namespaces(_pid: u32) -> Result<(), Problem> {
    Ok(())
}

/// Accepts connections to the loopback address.
#[derive(Debug)]
struct LoopbackListener {
    listener: TcpListener,
    permits: Arc<Semaphore>,
}

impl Listener for LoopbackListener {
    type Io = CountedStream<TcpStream>;
    type Addr = ApiConnection;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let permit = permit(&self.permits).await;
            match self.listener.accept().await {
                Ok((stream, address)) => {
                    // If this fails, small answers are only delayed.
                    let _ = stream.set_nodelay(true);
                    let stream = CountedStream::new(stream, permit);
                    return (stream, ApiConnection::Tcp(address));
                }
                Err(error) => pause(&error).await,
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.listener.local_addr().map(ApiConnection::Tcp)
    }
}

async fn pause(error: &io::Error) {
    tracing::warn!("cannot accept a connection: {error}");
    tokio::time::sleep(ACCEPT_PAUSE).await;
}

async fn permit(permits: &Arc<Semaphore>) -> Option<OwnedSemaphorePermit> {
    // The semaphore is never closed.
    Arc::clone(permits).acquire_owned().await.ok()
}

impl Connected<IncomingStream<'_, LocalListener>> for ApiConnection {
    fn connect_info(stream: IncomingStream<'_, LocalListener>) -> Self {
        stream.remote_addr().clone()
    }
}

impl Connected<IncomingStream<'_, LoopbackListener>> for ApiConnection {
    fn connect_info(stream: IncomingStream<'_, LoopbackListener>) -> Self {
        stream.remote_addr().clone()
    }
}

/// A connection that counts towards the limit until it is dropped. It ends when it is idle, so that
/// other users of this machine cannot keep all connections of the address.
#[derive(Debug)]
struct CountedStream<T> {
    stream: T,
    _permit: Option<OwnedSemaphorePermit>,
    deadline: Pin<Box<Sleep>>,
    idle: Duration,
}

impl<T> CountedStream<T> {
    fn new(stream: T, permit: Option<OwnedSemaphorePermit>) -> Self {
        Self::with_timeouts(stream, permit, FIRST_BYTE, IDLE)
    }

    fn with_timeouts(
        stream: T,
        permit: Option<OwnedSemaphorePermit>,
        first_byte: Duration,
        idle: Duration,
    ) -> Self {
        CountedStream {
            stream,
            _permit: permit,
            deadline: Box::pin(tokio::time::sleep(first_byte)),
            idle,
        }
    }

    fn postpone_deadline(&mut self) {
        let deadline = Instant::now() + self.idle;
        self.deadline.as_mut().reset(deadline);
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for CountedStream<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        if polled.is_ready() {
            self.postpone_deadline();
            return polled;
        }
        let timed_out = self.deadline.as_mut().poll(context);
        timed_out.map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for CountedStream<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        if polled.is_ready() {
            self.postpone_deadline();
        }
        polled
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// Returns the failure of a request without a known connection, which cannot happen on a socket.
pub(crate) fn no_connection() -> ApiFailure {
    ApiFailure::forbidden(Problem::denied(
        "the connection of this request is not known",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    const SHORT: Duration = Duration::from_millis(30);

    #[tokio::test]
    async fn connection_without_a_first_byte_ends() {
        let (ours, _theirs) = tokio::io::duplex(64);
        let mut stream = CountedStream::with_timeouts(ours, None, SHORT, IDLE);
        let error = stream.read_u8().await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn idle_connection_ends_after_its_last_byte() {
        let (ours, mut theirs) = tokio::io::duplex(64);
        let mut stream = CountedStream::with_timeouts(ours, None, IDLE, SHORT);
        theirs.write_u8(7).await.unwrap();
        assert_eq!(stream.read_u8().await.unwrap(), 7);
        let error = stream.read_u8().await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}

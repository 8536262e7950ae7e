//! The connection: the client, the thread that reads its output, and the way to write.
//!
//! The thread starts the client (a process ends with its thread, see `spawn.rs`), reads until the
//! stream ends, and cleans up. Writers never wait for the reader, and the reader never waits for a
//! writer or a listener: a client that stops reading harms the server.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use super::FAREWELL;
use super::hub::Hub;
use super::input::ControlInput;
use super::link::{ControlClient, Link, Peer};
use super::notification::Notification;
use super::parser::{ControlMessage, ControlParser};
use super::pending::Pending;
use super::queue::{PendingReply, ReplyQueue};
use crate::{Batch, Command, Error, Server, Target};

const CHUNK: usize = 64 * 1024;

/// Interval for reporting losses to listeners that have fallen behind.
const LOSS_CHECK: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(super) struct ControlConnection {
    shared: Arc<SharedConnection>,
    /// Disconnects when the thread has cleaned up.
    finished: Mutex<Receiver<()>>,
}

#[derive(Debug)]
struct SharedConnection {
    input: Mutex<Option<ControlInput>>,
    queue: Mutex<ReplyQueue>,
    peer: Mutex<Option<Peer>>,
}

impl ControlConnection {
    /// Starts a client and waits until it is attached.
    pub(super) fn open(
        server: &Server,
        target: Option<&Target>,
        hub: Arc<Hub>,
        timeout: Duration,
    ) -> Result<Self, Error> {
        let attach = attach_command(target);
        let summary = format!("tmux -C {}", attach.to_line());
        let client = ControlClient::of(server, attach.argv())?;

        let shared = Arc::new(SharedConnection {
            input: Mutex::default(),
            queue: Mutex::default(),
            peer: Mutex::default(),
        });
        let (ready_sender, ready) = sync_channel(1);
        let (finish_sender, finished) = sync_channel(1);
        let reader = ControlReader {
            shared: Arc::clone(&shared),
            hub,
            parser: ControlParser::default(),
            ready: Some(ready_sender),
            exit_seen: None,
            summary: summary.clone(),
        };
        let program = server.program().to_owned();
        thread::Builder::new()
            .name("tmux-control".to_owned())
            .spawn(move || {
                reader.run(client, program);
                drop(finish_sender);
            })
            .map_err(|error| Error::io("start a thread for the tmux control client", error))?;

        let connection = Self {
            shared,
            finished: Mutex::new(finished),
        };
        match ready.recv_timeout(timeout) {
            Ok(Ok(())) => Ok(connection),
            Ok(Err(error)) => Err(error),
            Err(RecvTimeoutError::Timeout) => Err(Error::TimedOut {
                command: summary,
                after: timeout,
            }),
            Err(RecvTimeoutError::Disconnected) => Err(Error::ServerLost {
                command: summary,
                reason: String::new(),
            }),
        }
    }

    /// Sends the batches in one write, each with a separate answer.
    pub(super) fn send(&self, batches: &[Batch], timeout: Duration) -> Vec<Pending> {
        // The lock is held from the first entry to the last byte, since answers come in this order.
        let mut input = lock(&self.shared.input);
        let mut text = String::new();
        let mut all = Vec::with_capacity(batches.len());
        for batch in batches {
            all.push(self.enqueue(batch, &mut text));
        }
        if text.is_empty() {
            return all;
        }
        let written = match input.as_mut() {
            Some(input) => input.write(&text, timeout),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        };
        if let Err(error) = written {
            // The pipe may contain half a line, so nothing can be written after it.
            *input = None;
            lock(&self.shared.queue).end(&error.to_string());
        }
        all
    }

    fn enqueue(&self, batch: &Batch, text: &mut String) -> Pending {
        if batch.is_empty() {
            return Pending::empty();
        }
        let summary = summarize(batch);
        let (pending, answer) = Pending::new(summary.clone());
        if let Some(command) = batch
            .commands()
            .find(|command| command.words().any(|word| word.contains('\0')))
        {
            answer.give(Err(Error::NulByte {
                command: command.name().to_owned(),
            }));
            return pending;
        }
        let (entry, script) = PendingReply::new(batch, summary, answer);
        lock(&self.shared.queue).push(entry);
        text.push_str(&script);
        pending
    }

    pub(super) fn is_open(&self) -> bool {
        !lock(&self.shared.queue).has_ended()
    }
}

impl Drop for ControlConnection {
    fn drop(&mut self) {
        // The client exits by itself when its stdin closes, which is a clean detach for the server.
        *lock(&self.shared.input) = None;
        let finished = lock(&self.finished);
        if finished.recv_timeout(FAREWELL) == Err(RecvTimeoutError::Timeout) {
            if let Some(peer) = lock(&self.shared.peer).as_mut() {
                peer.kill();
            }
            // The reader is left alone if it does not end by then.
            let _ = finished.recv_timeout(FAREWELL);
        }
    }
}

/// The state of the reading thread.
struct ControlReader {
    shared: Arc<SharedConnection>,
    hub: Arc<Hub>,
    parser: ControlParser,
    /// Taken when the client has attached, or has failed to attach.
    ready: Option<SyncSender<Result<(), Error>>>,
    exit_seen: Option<Option<String>>,
    summary: String,
}

impl ControlReader {
    fn run(mut self, client: ControlClient, program: std::path::PathBuf) {
        let mut link = match self.start(client) {
            Ok(link) => link,
            Err(error) => {
                self.tell_ready(Err(match error.kind() {
                    io::ErrorKind::NotFound => Error::NotInstalled { program },
                    _ => Error::io(format!("run `{}`", self.summary), error),
                }));
                return;
            }
        };
        let broken = self.read(&mut link).err();
        self.end(link, broken);
    }

    fn start(&self, client: ControlClient) -> io::Result<Link> {
        let (input, link, peer) = client.start()?;
        *lock(&self.shared.peer) = Some(peer);
        *lock(&self.shared.input) = Some(ControlInput::new(input)?);
        Ok(link)
    }

    fn read(&mut self, link: &mut Link) -> io::Result<()> {
        let mut buffer = vec![0; CHUNK];
        loop {
            let timeout = self.hub.report_losses().then_some(LOSS_CHECK);
            match link.read(&mut buffer, timeout)? {
                None => {}
                Some(0) => return Ok(()),
                Some(count) => {
                    for message in self.parser.push(&buffer[..count]) {
                        self.take(message)?;
                    }
                }
            }
        }
    }

    fn take(&mut self, message: ControlMessage) -> io::Result<()> {
        match message {
            ControlMessage::Reply(block) => {
                if !lock(&self.shared.queue).take(block) {
                    return Err(io::Error::other("an answer without a request"));
                }
            }
            // The first block of this kind answers our own attach.
            ControlMessage::Injected(block) if self.ready.is_some() => {
                let text = String::from_utf8_lossy(&block.body).into_owned();
                self.tell_ready(match block.succeeded {
                    true => Ok(()),
                    false => Err(Error::refused(self.summary.clone(), None, &text)),
                });
            }
            ControlMessage::Injected(block) => {
                let text = String::from_utf8_lossy(&block.body).into_owned();
                self.hub.publish(&Notification::Injected {
                    succeeded: block.succeeded,
                    text,
                });
            }
            ControlMessage::Notification(Notification::Exit { reason }) => {
                self.exit_seen = Some(reason);
            }
            ControlMessage::Notification(notification) => self.hub.publish(&notification),
        }
        Ok(())
    }

    /// Cleans up after the stream has ended, for any reason.
    fn end(mut self, link: Link, broken: Option<io::Error>) {
        *lock(&self.shared.input) = None;
        let said = link.end_message();
        let peer = lock(&self.shared.peer).take();
        let code = peer.and_then(Peer::reap);
        let reason = match (self.exit_seen.take().flatten(), broken) {
            (_, Some(error)) => error.to_string(),
            (Some(reason), None) => reason,
            (None, None) => said.clone(),
        };
        lock(&self.shared.queue).end(&reason);
        if self.ready.is_some() {
            let message = if said.is_empty() { reason } else { said };
            self.tell_ready(Err(Error::refused(self.summary.clone(), code, &message)));
        } else {
            self.hub.publish(&Notification::Exit {
                reason: (!reason.is_empty()).then_some(reason),
            });
        }
    }

    fn tell_ready(&mut self, outcome: Result<(), Error>) {
        if let Some(ready) = self.ready.take() {
            // The caller that opened the connection may have timed out.
            let _ = ready.try_send(outcome);
        }
    }
}

fn attach_command(target: Option<&Target>) -> Command {
    // `-E`: the environment of this client must not reach the session.
    let attach = Command::new("attach-session")
        .flag("-E")
        .option("-f", "no-output,ignore-size");
    match target {
        Some(target) => attach.target(target),
        None => attach,
    }
}

/// Describes the commands for an error: name and target only, since a control client also carries
/// arguments that must stay private.
fn summarize(batch: &Batch) -> String {
    let mut summary = String::new();
    for command in batch.commands().take(8) {
        if !summary.is_empty() {
            summary.push_str(" ; ");
        }
        summary.push_str(&command.summary());
    }
    summary
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

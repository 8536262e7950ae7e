//! The connection: the child process, the thread that reads its output, and the way to write.
//!
//! The thread starts the child, so that the child ends with it (see `spawn.rs`), reads until the
//! stream ends, and reaps the child. Writers never wait for the reader, and the reader never waits
//! for a writer or a listener: a client that stops reading harms the server.

use std::io::{self, Read};
use std::os::fd::AsFd;
use std::process::{Child, ChildStderr, ChildStdout};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::hub::Hub;
use super::input::Input;
use super::notification::Notification;
use super::parser::{Message, Parser};
use super::pending::Pending;
use super::queue::{Entry, Queue};
use super::{FAREWELL, spawn};
use crate::{Batch, Command, Error, Server, Target};

const CHUNK: usize = 64 * 1024;

/// Interval for reporting losses to listeners that have fallen behind.
const LOSS_CHECK: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(super) struct Connection {
    shared: Arc<Shared>,
    /// Disconnects when the thread has reaped the child.
    finished: Mutex<Receiver<()>>,
}

#[derive(Debug)]
struct Shared {
    input: Mutex<Option<Input>>,
    queue: Mutex<Queue>,
    child: Mutex<Option<Child>>,
}

impl Connection {
    /// Starts a client and waits until it is attached.
    pub(super) fn open(
        server: &Server,
        target: Option<&Target>,
        hub: Arc<Hub>,
        timeout: Duration,
    ) -> Result<Self, Error> {
        let attach = attach_command(target);
        let summary = format!("tmux -C {}", attach.to_line());
        let mut client = server.client_command();
        // Without `-N` an attach would start a server, and with it the user's configuration.
        client.args(["-N", "-C"]).args(attach.argv());

        let shared = Arc::new(Shared {
            input: Mutex::default(),
            queue: Mutex::default(),
            child: Mutex::default(),
        });
        let (ready_sender, ready) = sync_channel(1);
        let (finish_sender, finished) = sync_channel(1);
        let reader = Reader {
            shared: Arc::clone(&shared),
            hub,
            parser: Parser::default(),
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
            return Pending::nothing();
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
        let (entry, script) = Entry::new(batch, summary, answer);
        lock(&self.shared.queue).push(entry);
        text.push_str(&script);
        pending
    }

    pub(super) fn is_open(&self) -> bool {
        !lock(&self.shared.queue).has_ended()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // The client exits by itself when its stdin closes, which is a clean detach for the server.
        *lock(&self.shared.input) = None;
        let finished = lock(&self.finished);
        if finished.recv_timeout(FAREWELL) == Err(RecvTimeoutError::Timeout) {
            if let Some(child) = lock(&self.shared.child).as_mut() {
                // The child did not exit in time. The kill fails only if it has exited by now.
                let _ = child.kill();
            }
            // The reader is left alone if it does not end by then.
            let _ = finished.recv_timeout(FAREWELL);
        }
    }
}

/// The state of the reading thread.
struct Reader {
    shared: Arc<Shared>,
    hub: Arc<Hub>,
    parser: Parser,
    /// Taken when the client has attached, or has failed to attach.
    ready: Option<SyncSender<Result<(), Error>>>,
    exit_seen: Option<Option<String>>,
    summary: String,
}

impl Reader {
    fn run(mut self, client: std::process::Command, program: std::path::PathBuf) {
        let (stdout, stderr) = match self.start(client) {
            Ok(streams) => streams,
            Err(error) => {
                self.tell_ready(Err(match error.kind() {
                    io::ErrorKind::NotFound => Error::NotInstalled { program },
                    _ => Error::io(format!("run `{}`", self.summary), error),
                }));
                return;
            }
        };
        let broken = self.read(stdout).err();
        self.end(stderr, broken);
    }

    fn start(&self, client: std::process::Command) -> io::Result<(ChildStdout, ChildStderr)> {
        let mut child = spawn::spawn(client)?;
        let missing = || io::Error::other("the child has no stream");
        let stdin = child.stdin.take().ok_or_else(missing)?;
        let stdout = child.stdout.take().ok_or_else(missing)?;
        let stderr = child.stderr.take().ok_or_else(missing)?;
        *lock(&self.shared.child) = Some(child);
        *lock(&self.shared.input) = Some(Input::new(stdin)?);
        Ok((stdout, stderr))
    }

    fn read(&mut self, mut stdout: ChildStdout) -> io::Result<()> {
        let mut buffer = vec![0; CHUNK];
        loop {
            let check_again = self.hub.report_losses();
            if check_again && !is_readable(&stdout, LOSS_CHECK)? {
                continue;
            }
            match stdout.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(count) => {
                    for message in self.parser.push(&buffer[..count]) {
                        self.take(message)?;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn take(&mut self, message: Message) -> io::Result<()> {
        match message {
            Message::Reply(block) => {
                if !lock(&self.shared.queue).take(block) {
                    return Err(io::Error::other("an answer without a request"));
                }
            }
            // The first block of this kind answers our own attach.
            Message::Injected(block) if self.ready.is_some() => {
                let text = String::from_utf8_lossy(&block.body).into_owned();
                self.tell_ready(match block.succeeded {
                    true => Ok(()),
                    false => Err(Error::refused(self.summary.clone(), None, &text)),
                });
            }
            Message::Injected(block) => {
                let text = String::from_utf8_lossy(&block.body).into_owned();
                self.hub.publish(&Notification::Injected {
                    succeeded: block.succeeded,
                    text,
                });
            }
            Message::Notification(Notification::Exit { reason }) => self.exit_seen = Some(reason),
            Message::Notification(notification) => self.hub.publish(&notification),
        }
        Ok(())
    }

    /// Cleans up after the stream has ended, for any reason.
    fn end(mut self, mut stderr: ChildStderr, broken: Option<io::Error>) {
        *lock(&self.shared.input) = None;
        let mut said = Vec::new();
        let mut piece = [0; 4096];
        // stderr closes with the process. The wait for it is bounded by a timeout.
        while let Ok(true) = is_readable(&stderr, FAREWELL) {
            match stderr.read(&mut piece) {
                Ok(count) if count > 0 => said.extend_from_slice(&piece[..count]),
                _ => break,
            }
        }
        let mut code = None;
        if let Some(mut child) = lock(&self.shared.child).take() {
            // The child's stdout is closed, so it has nothing left to do.
            code = child
                .try_wait()
                .ok()
                .flatten()
                .and_then(|status| status.code());
            // Both fail only if it has ended by now.
            let _ = child.kill();
            let _ = child.wait();
        }
        let said = String::from_utf8_lossy(&said).trim().to_owned();
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
    let attach = Command::new("attach-session").option("-f", "no-output,ignore-size");
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

fn is_readable(stream: &impl AsFd, timeout: Duration) -> io::Result<bool> {
    let timeout =
        Timespec::try_from(timeout).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    match poll(
        &mut [PollFd::from_borrowed_fd(stream.as_fd(), PollFlags::IN)],
        Some(&timeout),
    ) {
        Ok(count) => Ok(count > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

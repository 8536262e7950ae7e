//! A handle on one tmux server, and the one-shot commands on it.
//!
//! A [`Server`] is a name and some settings; it holds no connection and the server need not
//! run. Each call is one tmux client for the whole [`Batch`], so the way to be fast is to ask
//! for much at once, or to keep a [`Control`] client.
//!
//! `server/settings.rs` holds the settings and builds the client's command line.
//! `server/direct.rs` sends a batch to a running server's socket where that is possible,
//! `server/exec.rs` runs the program where it is not. `server/each.rs` tells the outputs of
//! several commands apart.

mod direct;
mod each;
mod exec;
mod settings;

use std::ffi::OsString;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::row::Listing;
use crate::socket::Binary;
use crate::{
    Batch, Command, Control, Error, ErrorKind, Row, SessionName, Socket, Target, Version,
    VersionError,
};
use exec::Privacy;
use settings::Settings;

/// A tmux server, running or not. Cloning it is cheap.
#[derive(Clone, Debug)]
pub struct Server {
    settings: Arc<Settings>,
}

impl Server {
    /// The server on this socket, talked to through the `tmux` in `PATH`.
    #[must_use]
    pub fn new(socket: Socket) -> Self {
        Self {
            settings: Arc::new(Settings::new(socket)),
        }
    }

    /// Talks to the server on another socket.
    #[must_use]
    pub fn with_socket(self, socket: Socket) -> Self {
        self.change(|settings| settings.socket = socket)
    }

    /// Uses another tmux program, of which no version is known.
    #[must_use]
    pub fn with_program(self, program: impl Into<PathBuf>) -> Self {
        self.change(|settings| {
            settings.program = program.into();
            settings.known = None;
        })
    }

    /// Reads this file instead of the user's configuration if a server is started: `-f`.
    #[must_use]
    pub fn with_config(self, config: impl Into<PathBuf>) -> Self {
        self.change(|settings| settings.config = Some(config.into()))
    }

    /// Keeps the variables for which the predicate is true from the client.
    ///
    /// The client that starts a server gives it its whole environment, and with it every pane
    /// to come. `TMUX` and `TMUX_PANE` are always kept back.
    #[must_use]
    pub fn without_env(self, predicate: fn(&str) -> bool) -> Self {
        self.change(|settings| settings.dropped_variables = Some(predicate))
    }

    /// Gives the client exactly these variables instead of those of this process.
    #[must_use]
    pub fn with_env<I, K, V>(self, variables: I) -> Self
    where
        I: IntoIterator<Item = (K, V)>,
        K: Into<OsString>,
        V: Into<OsString>,
    {
        let variables = variables
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        self.change(|settings| settings.variables = Some(variables))
    }

    /// Gives the client this `PATH`. A pane that is made by a client without a session gets
    /// the client's, whatever `-e` says.
    #[must_use]
    pub fn with_path(self, path: impl Into<OsString>) -> Self {
        self.change(|settings| settings.path = Some(path.into()))
    }

    /// Looks for named sockets in this folder, whatever `TMUX_TMPDIR` says.
    #[must_use]
    pub fn with_tmpdir(self, folder: impl Into<PathBuf>) -> Self {
        self.change(|settings| settings.tmpdir = Some(folder.into()))
    }

    /// Gives up on a command after this time; 30 seconds unless told. The command may have
    /// been run all the same. Commands such as `wait-for` need more.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        self.change(|settings| settings.timeout = timeout)
    }

    /// Gives up on every command at this moment, however many there are; one that comes later
    /// still gets the time that a server needs which is well.
    #[must_use]
    pub fn with_deadline(self, deadline: Instant) -> Self {
        self.change(|settings| settings.deadline = Some(deadline))
    }

    /// Says which version the program has, as [`version_cache`](crate::version_cache) knows it.
    ///
    /// With it, commands for a running server go straight to its socket where that is
    /// possible, which costs about a tenth; without it each is a process.
    #[must_use]
    pub fn with_version(self, version: Version) -> Self {
        let binary = self.program_path().and_then(|path| Binary::of(&path));
        self.change(|settings| settings.known = binary.map(|binary| (version, binary)))
    }

    fn change(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(Arc::make_mut(&mut self.settings));
        self
    }

    /// The socket.
    #[must_use]
    pub fn socket(&self) -> &Socket {
        &self.settings.socket
    }

    /// Where the socket is on disk.
    #[must_use]
    pub fn socket_path(&self) -> PathBuf {
        self.settings.socket_path()
    }

    /// The tmux program.
    #[must_use]
    pub fn program(&self) -> &Path {
        &self.settings.program
    }

    /// The file that is run as the tmux program, if there is one.
    #[must_use]
    pub fn program_path(&self) -> Option<PathBuf> {
        self.settings.program_path()
    }

    /// Runs the commands in one tmux client and gives what it wrote to stdout.
    ///
    /// The first command that fails ends its line and makes the whole an error; what the
    /// others did is done. A batch that is too long for an argument vector (16 KB), or has
    /// several lines, is sent through stdin.
    pub fn run(&self, commands: impl Into<Batch>) -> Result<String, Error> {
        let output = self.capture(&commands.into(), Privacy::Open)?;
        Ok(lossy(output))
    }

    /// Like [`run`](Self::run), with the output of each command apart.
    ///
    /// All of them must succeed. `show-buffer` and `save-buffer -` cannot be among them: the
    /// client opens its stdout once, and these want it for themselves.
    pub fn run_each(&self, commands: impl Into<Batch>) -> Result<Vec<String>, Error> {
        each::run(self, &commands.into())
    }

    /// Like [`run`](Self::run), but nothing of the commands stands in any argument vector,
    /// where every user of the machine could read it, nor in an error. There is no limit to
    /// their length. Starts a server if none runs.
    pub fn run_private(&self, commands: impl Into<Batch>) -> Result<String, Error> {
        let output = self.capture(&commands.into(), Privacy::Private)?;
        Ok(lossy(output))
    }

    /// Runs a listing such as `list-panes -a` and reads each line into a struct.
    ///
    /// `-F` is added here. Without a server the answer is an error of the kind
    /// [`ErrorKind::NoServer`], not an empty list.
    pub fn rows<R: Row>(&self, list: Command) -> Result<Vec<R>, Error> {
        self.rows_while(list, || ())
    }

    /// The same for who has something to do while the server looks: it is done once the
    /// server was asked. Where a program has to ask, it is not done, and nothing is waited
    /// for either.
    pub fn rows_while<R: Row>(
        &self,
        list: Command,
        meanwhile: impl FnOnce(),
    ) -> Result<Vec<R>, Error> {
        let listing = Listing::new();
        let command = listing.command::<R>(list.clone());
        let output = self.capture_while(&command.into(), Privacy::Open, meanwhile)?;
        listing.parse(&output, &list)
    }

    /// Whether a server listens on the socket. It costs a connection and no process.
    #[must_use]
    pub fn is_running(&self) -> bool {
        UnixStream::connect(self.socket_path()).is_ok()
    }

    /// Whether there is a session of exactly this name. Without a server there is none.
    pub fn has_session(&self, name: &SessionName) -> Result<bool, Error> {
        match self.run(Command::new("has-session").target(name)) {
            Ok(_) => Ok(true),
            Err(error) => match error.kind() {
                ErrorKind::NoSuchSession | ErrorKind::NoServer => Ok(false),
                _ => Err(error),
            },
        }
    }

    /// The version of the program, by `tmux -V`. A server that was started before an upgrade
    /// may be older; `#{version}` asks it.
    pub fn version(&self) -> Result<Version, Error> {
        let output = exec::print_version(&self.settings)?;
        output
            .parse()
            .map_err(|error: VersionError| Error::protocol("tmux -V", error.to_string()))
    }

    /// `tmux attach-session` as a process for the caller to run in the foreground or to
    /// become, with socket, configuration and environment applied.
    ///
    /// It works inside another tmux too, since `TMUX` is removed. On the same server
    /// `switch-client` is the better way then.
    #[must_use]
    pub fn attach_command(&self, target: impl Into<Target>) -> process::Command {
        let mut command = self.settings.client();
        command.args(Command::new("attach-session").target(target).argv());
        command
    }

    /// A tmux client with socket, configuration and environment applied, and no command yet.
    #[must_use]
    pub fn client_command(&self) -> process::Command {
        self.settings.client()
    }

    /// Connects a control client to the session. It never starts a server.
    pub fn control(&self, session: &SessionName) -> Result<Control, Error> {
        Control::connect(self, Some(&Target::from(session)))
    }

    /// The bytes that the commands wrote to stdout.
    fn capture(&self, batch: &Batch, privacy: Privacy) -> Result<Vec<u8>, Error> {
        self.capture_while(batch, privacy, || ())
    }

    fn capture_while(
        &self,
        batch: &Batch,
        privacy: Privacy,
        meanwhile: impl FnOnce(),
    ) -> Result<Vec<u8>, Error> {
        if let Some(command) = batch
            .commands()
            .find(|command| command.words().any(|word| word.contains('\0')))
        {
            return Err(Error::NulByte {
                command: command.name().to_owned(),
            });
        }
        if batch.is_empty() {
            return Ok(Vec::new());
        }
        let result = match direct::capture(&self.settings, batch, privacy, meanwhile) {
            Some(result) => result,
            // tmux itself reports a socket that it cannot create, and exits with success.
            None if exec::starts_server(batch, privacy) => {
                self.check_socket()?;
                exec::capture(&self.settings, batch, privacy)
            }
            None => exec::capture(&self.settings, batch, privacy),
        };
        result.map_err(|error| self.explain(error))
    }

    /// tmux has no error of its own for a socket that no server can have: it says that none
    /// runs, or that one was lost.
    fn explain(&self, error: Error) -> Error {
        let may_be_socket = matches!(
            error.kind(),
            ErrorKind::NoServer | ErrorKind::ServerLost | ErrorKind::Io | ErrorKind::Other
        );
        match may_be_socket.then(|| self.check_socket()) {
            Some(Err(bad)) => bad,
            _ => error,
        }
    }

    /// Fails if no server can ever listen on the socket: its folder is missing, it is a file,
    /// or its path is too long.
    pub fn check_socket(&self) -> Result<(), Error> {
        let socket = self.socket_path();
        match self.settings.socket.obstacle(&socket) {
            Some(reason) => Err(Error::BadSocket { socket, reason }),
            None => Ok(()),
        }
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }
}

fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests;

//! A handle on one tmux server, and the one-shot commands on it.
//!
//! A [`Server`] is a socket with some settings; it holds no connection, and the server need not
//! run. Each call sends a whole [`Batch`] with one tmux client. To be fast, send many commands in
//! one batch, or keep a [`Control`] client.
//!
//! `server/settings.rs` holds the settings and builds the client's command line. `server/direct.rs`
//! sends a batch to the socket of a running server if that is possible, `server/exec.rs` runs the
//! program otherwise. `server/each.rs` separates the outputs of several commands.

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
use settings::ServerSettings;

/// A tmux server, running or not. Cloning it is cheap.
#[derive(Clone, Debug)]
pub struct Server {
    settings: Arc<ServerSettings>,
}

impl Server {
    /// Creates a handle on the server on this socket, using the `tmux` in `PATH`.
    #[must_use]
    pub fn new(socket: Socket) -> Self {
        Self {
            settings: Arc::new(ServerSettings::new(socket)),
        }
    }

    /// Changes the socket.
    #[must_use]
    pub fn with_socket(self, socket: Socket) -> Self {
        self.change(|settings| settings.socket = socket)
    }

    /// Changes the tmux program. The version of the new one is unknown.
    #[must_use]
    pub fn with_program(self, program: impl Into<PathBuf>) -> Self {
        self.change(|settings| {
            settings.program = program.into();
            settings.known = None;
        })
    }

    /// Sets the configuration file that a new server reads instead of the user's: `-f`.
    #[must_use]
    pub fn with_config(self, config: impl Into<PathBuf>) -> Self {
        self.change(|settings| settings.config = Some(config.into()))
    }

    /// Removes the variables for which the predicate is true from the client's environment.
    ///
    /// The client that starts a server passes its whole environment on to the server, and so to
    /// every later pane. `TMUX` and `TMUX_PANE` are always removed.
    #[must_use]
    pub fn without_env(self, predicate: fn(&str) -> bool) -> Self {
        self.change(|settings| settings.dropped_variables = Some(predicate))
    }

    /// Sets the client's environment to exactly these variables, instead of those of this process.
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

    /// Sets the client's `PATH`. A pane that is created by a client without a session gets the
    /// client's `PATH`, even if `-e` sets another.
    #[must_use]
    pub fn with_path(self, path: impl Into<OsString>) -> Self {
        self.change(|settings| settings.path = Some(path.into()))
    }

    /// Sets the folder of named sockets, which overrides `TMUX_TMPDIR`.
    #[must_use]
    pub fn with_tmpdir(self, folder: impl Into<PathBuf>) -> Self {
        self.change(|settings| settings.tmpdir = Some(folder.into()))
    }

    /// Sets the timeout of each command; the default is 30 seconds. After a timeout the command may
    /// still have been run. Commands such as `wait-for` need a longer one.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        self.change(|settings| settings.timeout = timeout)
    }

    /// Sets a deadline for all commands together. A command that starts after it still gets the
    /// time that a healthy server needs for an answer.
    #[must_use]
    pub fn with_deadline(self, deadline: Instant) -> Self {
        self.change(|settings| settings.deadline = Some(deadline))
    }

    /// Sets the version of the program, as [`version_cache`](crate::version_cache) returns it.
    ///
    /// With a known version, commands for a running server go directly to its socket where that is
    /// possible, which takes about a tenth of the time; otherwise each one starts a process.
    #[must_use]
    pub fn with_version(self, version: Version) -> Self {
        let binary = self.program_path().and_then(|path| Binary::of(&path));
        self.change(|settings| settings.known = binary.map(|binary| (version, binary)))
    }

    fn change(mut self, change: impl FnOnce(&mut ServerSettings)) -> Self {
        change(Arc::make_mut(&mut self.settings));
        self
    }

    /// Returns the socket.
    #[must_use]
    pub fn socket(&self) -> &Socket {
        &self.settings.socket
    }

    /// Returns the path of the socket.
    #[must_use]
    pub fn socket_path(&self) -> PathBuf {
        self.settings.socket_path()
    }

    /// Returns the tmux program as it was configured.
    #[must_use]
    pub fn program(&self) -> &Path {
        &self.settings.program
    }

    /// Returns the executable file of the tmux program, if it exists.
    #[must_use]
    pub fn program_path(&self) -> Option<PathBuf> {
        self.settings.program_path()
    }

    /// Runs the commands in one tmux client and returns its stdout.
    ///
    /// The first command that fails ends its line, and the call returns its error; the effects of
    /// the other commands remain. A batch that is too long for an argument vector (16 KB), or has
    /// several lines, is sent through stdin.
    pub fn run(&self, commands: impl Into<Batch>) -> Result<String, Error> {
        let output = self.capture(&commands.into(), Privacy::Open)?;
        Ok(lossy(output))
    }

    /// Runs the commands like [`run`](Self::run), and returns the output of each one separately.
    ///
    /// All of them must succeed. `show-buffer` and `save-buffer -` are not allowed: the client
    /// opens its stdout once, and these commands need it exclusively.
    pub fn run_each(&self, commands: impl Into<Batch>) -> Result<Vec<String>, Error> {
        each::run(self, &commands.into())
    }

    /// Runs the commands like [`run`](Self::run), but keeps their arguments out of argument
    /// vectors, which every user of the machine can read, and out of errors. Their length is
    /// unlimited. Starts a server if none runs.
    pub fn run_private(&self, commands: impl Into<Batch>) -> Result<String, Error> {
        let output = self.capture(&commands.into(), Privacy::Private)?;
        Ok(lossy(output))
    }

    /// Runs a listing such as `list-panes -a` and parses each line into a struct.
    ///
    /// Adds `-F` to the command. Returns an error of the kind [`ErrorKind::NoServer`], not an empty
    /// list, if no server runs.
    pub fn rows<R: Row>(&self, list: Command) -> Result<Vec<R>, Error> {
        self.rows_while(list, || ())
    }

    /// Runs a listing like [`rows`](Self::rows), and calls `meanwhile` after the request was sent,
    /// while the server works on it. Does not call it if the tmux program has to be started
    /// instead.
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

    /// Returns whether a server listens on the socket. Costs one connection, but no process.
    #[must_use]
    pub fn is_running(&self) -> bool {
        UnixStream::connect(self.socket_path()).is_ok()
    }

    /// Returns whether a session of exactly this name exists; false if no server runs.
    pub fn has_session(&self, name: &SessionName) -> Result<bool, Error> {
        match self.run(Command::new("has-session").target(name)) {
            Ok(_) => Ok(true),
            Err(error) => match error.kind() {
                ErrorKind::NoSuchSession | ErrorKind::NoServer => Ok(false),
                _ => Err(error),
            },
        }
    }

    /// Returns the version of the program, from `tmux -V`. A server that was started before an
    /// upgrade may be older; the format `#{version}` returns the server's version.
    pub fn version(&self) -> Result<Version, Error> {
        let output = exec::print_version(&self.settings)?;
        output
            .parse()
            .map_err(|error: VersionError| Error::protocol("tmux -V", error.to_string()))
    }

    /// Returns `tmux attach-session` as a process for the caller to run in the foreground or to
    /// exec, with socket, configuration and environment applied.
    ///
    /// It also works inside another tmux, since `TMUX` is removed. On the same server
    /// `switch-client` is preferable.
    #[must_use]
    pub fn attach_command(&self, target: impl Into<Target>) -> process::Command {
        let mut command = self.settings.client();
        // `-E` keeps the session's variables: panes must not get those of each viewer.
        let attach = Command::new("attach-session").flag("-E").target(target);
        command.args(attach.argv());
        command
    }

    /// Returns a tmux client with socket, configuration and environment applied, and no command
    /// yet.
    #[must_use]
    pub fn client_command(&self) -> process::Command {
        self.settings.client()
    }

    /// Connects a control client to the session. Never starts a server.
    pub fn control(&self, session: &SessionName) -> Result<Control, Error> {
        Control::connect(self, Some(&Target::from(session)))
    }

    /// Runs the commands and returns the bytes of their stdout.
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
            // tmux reports a socket that it cannot create, but exits with success.
            None if exec::starts_server(batch, privacy) => {
                self.check_socket()?;
                exec::capture(&self.settings, batch, privacy)
            }
            None => exec::capture(&self.settings, batch, privacy),
        };
        // Names only: arguments may be secret.
        let names = || exec::describe(batch, Privacy::Private);
        match &result {
            Ok(output) => tracing::debug!("{}: {} bytes", names(), output.len()),
            Err(error) => tracing::debug!("{}: {error}", names()),
        }
        result.map_err(|error| self.explain(error))
    }

    /// Replaces the error if the socket is unusable. tmux has no separate error for that: it
    /// reports that no server runs, or that one was lost.
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

    /// Fails if no server can listen on the socket: its folder is missing or not
    /// writable, it is a regular file, or its path is too long.
    pub fn check_socket(&self) -> Result<(), Error> {
        let socket = self.socket_path();
        match self.settings.socket.obstacle(&socket) {
            Some(reason) => Err(Error::BadSocket { socket, reason }),
            None => Ok(()),
        }
    }

    pub(crate) fn settings(&self) -> &ServerSettings {
        &self.settings
    }
}

fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests;

//! Settings with which a client is started.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process;
use std::time::{Duration, Instant};

use rustix::fs::Access;

use crate::socket::Binary;
use crate::{Socket, Version};

/// Default timeout of a command.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Minimum timeout: enough for a healthy server to answer.
const MOMENT: Duration = Duration::from_millis(100);

/// Variables that make a client assume that it runs inside the tmux it talks to.
const NEVER_PASSED: [&str; 2] = ["TMUX", "TMUX_PANE"];

#[derive(Clone, Debug)]
pub(crate) struct ServerSettings {
    pub(super) socket: Socket,
    pub(super) program: PathBuf,
    pub(super) config: Option<PathBuf>,
    pub(super) tmpdir: Option<PathBuf>,
    /// The whole environment of the client; `None` means that of this process.
    pub(super) variables: Option<Vec<(OsString, OsString)>>,
    pub(super) dropped_variables: Option<fn(&str) -> bool>,
    /// Overrides the `PATH` of the environment.
    pub(super) path: Option<OsString>,
    pub(super) timeout: Duration,
    /// Deadline for all commands together.
    pub(super) deadline: Option<Instant>,
    /// The version of the program, and the file that has this version.
    pub(super) known: Option<(Version, Binary)>,
}

impl ServerSettings {
    pub(super) fn new(socket: Socket) -> Self {
        Self {
            socket,
            program: PathBuf::from("tmux"),
            config: None,
            tmpdir: None,
            variables: None,
            dropped_variables: None,
            path: None,
            timeout: TIMEOUT,
            deadline: None,
            known: None,
        }
    }

    /// Returns the timeout of a command that starts now.
    pub(crate) fn timeout(&self) -> Duration {
        self.deadline.map_or(self.timeout, |deadline| {
            let left = deadline.saturating_duration_since(Instant::now());
            left.max(MOMENT).min(self.timeout)
        })
    }

    /// Returns the version of the program and the file that has this version, if they are known.
    pub(crate) fn known_version(&self) -> Option<&(Version, Binary)> {
        self.known.as_ref()
    }

    pub(crate) fn program(&self) -> &PathBuf {
        &self.program
    }

    pub(crate) fn socket_path(&self) -> PathBuf {
        match &self.tmpdir {
            Some(folder) => self.socket.path_in(Some(folder)),
            None => self.socket.path(),
        }
    }

    /// Returns a client without a command.
    pub(crate) fn client(&self) -> process::Command {
        let mut command = process::Command::new(&self.program);
        command.env_clear().envs(self.environment());
        // Forces UTF-8 output in every locale: otherwise tmux replaces all non-ASCII characters.
        command.arg("-u");
        match &self.socket {
            Socket::Default => {}
            Socket::Name(name) => {
                command.arg("-L").arg(name);
            }
            Socket::Path(path) => {
                command.arg("-S").arg(path);
            }
        }
        if let Some(config) = &self.config {
            command.arg("-f").arg(config);
        }
        command
    }

    /// Returns the environment of a client, and of a server that it starts.
    pub(super) fn environment(&self) -> Vec<(OsString, OsString)> {
        let mut environment: Vec<(OsString, OsString)> = match &self.variables {
            Some(variables) => variables.clone(),
            None => std::env::vars_os().collect(),
        };
        environment.retain(|(name, _)| name.to_str().is_none_or(|name| self.passes(name)));
        if let Some(folder) = &self.tmpdir {
            environment.retain(|(name, _)| name != "TMUX_TMPDIR");
            environment.push(("TMUX_TMPDIR".into(), folder.into()));
        }
        if let Some(path) = &self.path {
            environment.retain(|(name, _)| name != "PATH");
            environment.push(("PATH".into(), path.clone()));
        }
        environment
    }

    /// Returns the file that would be executed: the program itself, or the first match in `PATH`.
    pub(super) fn program_path(&self) -> Option<PathBuf> {
        if self.program.components().count() > 1 {
            return self.program.is_file().then(|| self.program.clone());
        }
        std::env::split_paths(&self.search_path()?)
            .map(|folder| folder.join(&self.program))
            .find(|file| rustix::fs::access(file, Access::EXEC_OK).is_ok() && file.is_file())
    }

    /// Returns the `PATH` of the client.
    fn search_path(&self) -> Option<OsString> {
        if self.path.is_some() || !self.passes("PATH") {
            return self.path.clone();
        }
        match &self.variables {
            Some(variables) => {
                let path = variables.iter().find(|(name, _)| name == "PATH");
                path.map(|(_, value)| value.clone())
            }
            None => std::env::var_os("PATH"),
        }
    }

    /// Returns whether the client, and a server that it starts, inherits a variable of this name.
    fn passes(&self, name: &str) -> bool {
        !NEVER_PASSED.contains(&name)
            && !self.dropped_variables.is_some_and(|dropped| dropped(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(settings: &ServerSettings) -> Vec<String> {
        let command = settings.client();
        command
            .get_envs()
            .filter(|(_, value)| value.is_some())
            .map(|(name, _)| name.to_string_lossy().into_owned())
            .collect()
    }

    #[test]
    fn tmux_variables_never_pass() {
        let mut settings = ServerSettings::new(Socket::Default);
        settings.variables = Some(vec![
            ("TMUX".into(), "x".into()),
            ("TMUX_PANE".into(), "x".into()),
            ("KEEP".into(), "x".into()),
            ("SECRET_A".into(), "x".into()),
        ]);
        assert_eq!(variables(&settings), ["KEEP", "SECRET_A"]);
        settings.dropped_variables = Some(|name| name.starts_with("SECRET_"));
        assert_eq!(variables(&settings), ["KEEP"]);
    }

    #[test]
    fn the_command_line_names_socket_and_configuration() {
        let mut settings = ServerSettings::new(Socket::Name("x".into()));
        settings.config = Some("/dev/null".into());
        let command = settings.client();
        let arguments: Vec<_> = command.get_args().collect();
        assert_eq!(arguments, ["-u", "-L", "x", "-f", "/dev/null"]);
    }
}

//! A private tmux server for tests, and waiting for a named condition.
//!
//! Every [`TestServer`] has its own folder and socket, no configuration and an environment of four
//! variables, so it neither sees nor changes the user's tmux. It is killed at the end of the test,
//! and the test fails if it survives.
//!
//! The variable `TMUX_TEST_PROGRAM` selects another tmux than the one in `PATH`, to run the tests
//! against several versions. `TMUX_TEST_DIRECT` sends commands directly to the socket (see
//! [`Server::with_version`]), to run them on the other transport.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
#[cfg(target_os = "linux")]
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use crate::nonce::nonce;
use crate::{Command, ErrorKind, Row, Server, Socket};

/// Returns the fields of the server's sessions whose packed copy differs from the field, in words.
#[must_use]
pub fn stale_copies<R: Row>(server: &Server) -> Vec<String> {
    crate::row::stale_copies::<R>(server)
}

/// Maximum wait for any condition in a test.
pub const TIMEOUT: Duration = Duration::from_secs(10);

/// A private tmux server. It starts with the first command that starts one, like `new-session`.
#[derive(Debug)]
pub struct TestServer {
    server: Server,
    folder: PathBuf,
}

impl TestServer {
    /// Creates a folder and a handle on a server that does not run yet.
    ///
    /// # Panics
    /// If the folder cannot be created.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "making folders is no default")]
    pub fn new() -> Self {
        let folder = temp_root().join(format!("gt-{}", &nonce()[..12]));
        fs::DirBuilder::new()
            .mode(0o700)
            .create(&folder)
            .unwrap_or_else(|error| panic!("cannot make {}: {error}", folder.display()));
        let program = std::env::var_os("TMUX_TEST_PROGRAM").unwrap_or_else(|| "tmux".into());
        let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
        let server = Server::new(Socket::Path(folder.join("s")))
            .with_program(program)
            .with_config("/dev/null")
            .with_timeout(TIMEOUT)
            .with_env([
                ("PATH", path),
                ("HOME", folder.clone().into()),
                ("TERM", "xterm-256color".into()),
                ("LANG", "C.UTF-8".into()),
            ]);
        // If the version is unknown, the tests run the tmux program, as they do without the
        // variable.
        let version = std::env::var_os("TMUX_TEST_DIRECT").and_then(|_| server.version().ok());
        let server = match version {
            Some(version) => server.with_version(version),
            None => server,
        };
        Self { server, folder }
    }

    /// Returns the handle on the server.
    #[must_use]
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Returns the path of the socket.
    #[must_use]
    pub fn socket_path(&self) -> PathBuf {
        self.server.socket_path()
    }

    /// Returns the folder, which exists as long as the server; it is the `HOME` of its panes.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the pid of the server, if it runs.
    ///
    /// # Panics
    /// If the server does not answer.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        match self
            .server
            .run(Command::new("display-message").flag("-p").arg("#{pid}"))
        {
            Ok(pid) => pid.trim().parse().ok(),
            Err(error) if matches!(error.kind(), ErrorKind::NoServer | ErrorKind::ServerLost) => {
                None
            }
            Err(error) => panic!("the test server does not answer: {error}"),
        }
    }

    /// Ends the server and waits until its process has exited. Returns the pid if the process did
    /// not exit in time and was killed.
    fn end(&self) -> Option<u32> {
        let process = self.process()?;
        // The command may fail because the server is gone; only the process counts.
        let _ = self.server.run(Command::new("kill-server"));
        let deadline = Instant::now() + TIMEOUT;
        while is_running(process) {
            if Instant::now() > deadline {
                // It may have ended by now.
                let _ = kill_process(process, Signal::KILL);
                return Some(process.as_raw_pid().unsigned_abs());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        None
    }

    /// Returns the process that listens on the socket; `None` if there is none. The kernel reports it
    /// even if the server no longer answers.
    #[cfg(target_os = "linux")]
    fn process(&self) -> Option<Pid> {
        let stream = UnixStream::connect(self.socket_path()).ok()?;
        Some(rustix::net::sockopt::socket_peercred(stream).ok()?.pid)
    }

    #[cfg(not(target_os = "linux"))]
    fn process(&self) -> Option<Pid> {
        Pid::from_raw(i32::try_from(self.pid()?).ok()?)
    }
}

/// Returns whether the process is alive. A zombie is not: some init processes take seconds to reap
/// it.
fn is_running(process: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The state follows the name, which is in parentheses and may itself contain some.
    let is_zombie = stat
        .rsplit_once(") ")
        .is_some_and(|(_, rest)| rest.starts_with(['Z', 'X']));
    !is_zombie && test_kill_process(process).is_ok()
}

impl Drop for TestServer {
    fn drop(&mut self) {
        let survivor = self.end();
        // A folder that stays is in the temporary folder of the machine.
        let _ = fs::remove_dir_all(&self.folder);
        if let Some(pid) = survivor
            && !std::thread::panicking()
        {
            panic!("the test server {pid} did not end");
        }
    }
}

/// Returns the folder for the temporary folders of tests: `TMPDIR` if it is short, otherwise
/// `/tmp`. The path of a socket has at most 107 bytes, and the `TMPDIR` of macOS takes half of them.
#[must_use]
pub fn temp_root() -> PathBuf {
    const LONGEST: usize = 20;
    let root = std::env::temp_dir();
    if root.as_os_str().len() <= LONGEST {
        root
    } else {
        PathBuf::from("/tmp")
    }
}

/// Calls the closure until it returns a value, and returns that value. Sleeps as long as a check
/// takes, so that expensive checks leave CPU time to the processes that are waited for.
///
/// # Panics
/// With the name of the condition, if the timeout passes.
#[track_caller]
pub fn wait_until<T>(condition: &str, timeout: Duration, check: impl FnMut() -> Option<T>) -> T {
    wait_until_or(condition, timeout, check, String::new)
}

/// Waits like [`wait_until`]. If the timeout passes, the panic contains the report.
///
/// # Panics
/// With the name of the condition and the report, if the timeout passes.
#[track_caller]
pub fn wait_until_or<T>(
    condition: &str,
    timeout: Duration,
    mut check: impl FnMut() -> Option<T>,
    report: impl FnOnce() -> String,
) -> T {
    const SHORTEST: Duration = Duration::from_millis(2);
    const LONGEST: Duration = Duration::from_millis(100);
    let deadline = Instant::now() + timeout;
    loop {
        let began = Instant::now();
        if let Some(value) = check() {
            return value;
        }
        if Instant::now() >= deadline {
            panic!("gave up waiting until {condition}\n{}", report());
        }
        std::thread::sleep(began.elapsed().clamp(SHORTEST, LONGEST));
    }
}

/// Runs an exchange with a server that sends these bytes, and returns its outcome and replies as
/// text. `is_long` selects the header layout of tmux 3.6. For fuzzing.
#[doc(hidden)]
pub fn exchange(is_long: bool, parts: &[&[u8]]) -> String {
    crate::socket::exchange_with(is_long, parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_behind() {
        let server = TestServer::new();
        server
            .server()
            .run(Command::new("new-session").flag("-d"))
            .unwrap();
        let pid = server.pid().unwrap();
        let folder = server.folder().to_owned();
        drop(server);
        assert!(!folder.exists());
        assert!(!is_running(
            Pid::from_raw(i32::try_from(pid).unwrap()).unwrap()
        ));
    }

    #[test]
    #[should_panic(expected = "gave up waiting until pigs fly")]
    fn a_condition_that_stays_false_is_named() {
        wait_until("pigs fly", Duration::from_millis(5), || None::<()>);
    }
}

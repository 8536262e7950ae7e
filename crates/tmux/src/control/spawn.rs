//! The control client's process, which must not outlive its owner.
//!
//! A control client whose owner is killed can wedge the server: it has output for a reader
//! that no longer exists. On Linux the kernel is asked to kill the child with its parent.
//! It means the parent *thread*, so [`spawn`] is called by the thread that reads the child's
//! output and lives as long as the connection.
//!
//! This is the only unsafe code of the crate.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// Starts the client in a process group of its own, so that Ctrl-C passes it by.
pub(super) fn spawn(mut client: Command) -> io::Result<Child> {
    client
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    end_with_this_thread(&mut client);
    client.spawn()
}

#[cfg(target_os = "linux")]
#[expect(
    unsafe_code,
    reason = "std has no safe way to run a system call between fork and exec"
)]
fn end_with_this_thread(client: &mut Command) {
    use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};

    let owner = getpid();
    let bind = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // The owner may have died before the line above, and then no signal will come.
        if getppid() == Some(owner) {
            Ok(())
        } else {
            Err(io::ErrorKind::NotFound.into())
        }
    };
    // SAFETY: the closure runs between fork and exec, where only async-signal-safe calls are
    // allowed. It makes two system calls, touches no lock and allocates nothing: an
    // `io::Error` made from a kind or from an error number is a plain value.
    unsafe {
        client.pre_exec(bind);
    }
}

#[cfg(not(target_os = "linux"))]
fn end_with_this_thread(_client: &mut Command) {}

//! Starts the control client's process, which must not outlive its owner.
//!
//! A control client whose owner was killed can block the server: it has output for a reader that no
//! longer exists. On Linux the kernel kills the child when its parent dies. This applies to the
//! parent *thread*, so the thread that reads the child's output, and lives as long as the
//! connection, calls [`spawn`].
//!
//! This module contains the only unsafe code of the crate.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// Starts the client in a separate process group, so that Ctrl-C does not reach it.
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
        // The owner may have died before the call above; the signal would then never arrive.
        if getppid() == Some(owner) {
            Ok(())
        } else {
            Err(io::ErrorKind::NotFound.into())
        }
    };
    // SAFETY: the closure runs between fork and exec, where only async-signal-safe calls are
    // allowed. It makes two system calls, takes no lock and allocates nothing: an `io::Error` made
    // from a kind or from an error number is a plain value.
    unsafe {
        client.pre_exec(bind);
    }
}

#[cfg(not(target_os = "linux"))]
fn end_with_this_thread(_client: &mut Command) {}

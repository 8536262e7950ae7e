//! The broker of a sandboxed agent: runs `gt` outside the sandbox for the agent inside.
//!
//! The pane's first process listens on a socket that exists only in the agent's sandbox. `gt`
//! inside sends its arguments, its standard streams and its current folder ([`call`]); the broker
//! starts `gt` with them outside ([`serve`]). That process is a descendant of the pane's first
//! process, so it is the agent's by its process tree, and the capabilities of the agent apply. The
//! environment is the broker's: the agent cannot choose it.
//!
//! Wire format: a request is its length (4 bytes, big endian) and that many bytes of JSON; the four
//! descriptors come with the length. The answer is the exit code, one byte. The connection ends
//! with the process on either side.

use crate::base::or_log::OrLog;
use crate::{Result, Surroundings};
use gt_core::Problem;
use gt_core::sandbox::SANDBOXED_VARIABLE;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use std::io::{IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Maximum size of a request. The kernel's own limit for arguments is 2 MB.
const LONGEST: usize = 2 << 20;
/// Maximum number of commands at a time.
const MAX_CALLS: usize = 64;
/// Maximum time for a request to arrive.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Keeps received descriptors from the programs that this process starts. Elsewhere they reach the
/// command of the same call, and those of calls that run at the same time.
#[cfg(target_os = "linux")]
const CLOSE_ON_EXEC: RecvFlags = RecvFlags::CMSG_CLOEXEC;
#[cfg(not(target_os = "linux"))]
const CLOSE_ON_EXEC: RecvFlags = RecvFlags::empty();
/// Standard streams and current folder.
const DESCRIPTORS: usize = 4;
/// Exit code of a call that the broker did not run.
const REFUSED: u8 = 1;

#[derive(Debug, Serialize, Deserialize)]
struct BrokerRequest {
    /// Arguments as bytes, because they need not be UTF-8.
    args: Vec<Vec<u8>>,
}

/// Calls the broker with the arguments and streams of this process, and returns the exit code of the
/// command.
pub fn call(socket: &Path, args: impl Iterator<Item = std::ffi::OsString>) -> Result<u8> {
    let lost = |error: std::io::Error| {
        Problem::environment("cannot reach gt outside of the sandbox").caused_by(error)
    };
    let mut stream = UnixStream::connect(socket).map_err(lost)?;
    let request = BrokerRequest {
        args: args.map(OsStringExt::into_vec).collect(),
    };
    let body = serde_json::to_vec(&request)
        .map_err(|error| Problem::failed("cannot encode the call").caused_by(error))?;
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX).to_be_bytes();
    let folder = std::fs::File::open(".").or_else(|_| std::fs::File::open("/"));
    let folder = folder.map_err(lost)?;
    let (input, output, errors) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
    let descriptors = [
        input.as_fd(),
        output.as_fd(),
        errors.as_fd(),
        folder.as_fd(),
    ];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
    let sent = rustix::net::sendmsg(
        &stream,
        &[IoSlice::new(&length)],
        &mut ancillary,
        SendFlags::empty(),
    );
    sent.map_err(|error| lost(error.into()))?;
    stream.write_all(&body).map_err(lost)?;
    let mut code = [0];
    stream.read_exact(&mut code).map_err(lost)?;
    Ok(code[0])
}

/// Makes a socket in a folder. On Linux its path may be longer than the system allows for a socket.
pub fn listen(folder: &Path, name: &str) -> Result<UnixListener> {
    let problem = |error: std::io::Error| {
        Problem::environment(format!("cannot listen in {}", folder.display())).caused_by(error)
    };
    let open = std::fs::File::open(folder).map_err(problem)?;
    let short = match cfg!(target_os = "linux") {
        true => PathBuf::from(format!("/proc/self/fd/{}/{name}", open.as_raw_fd())),
        false => folder.join(name),
    };
    UnixListener::bind(short).map_err(problem)
}

/// Name of the socket in its folder.
pub const SOCKET: &str = "gt.sock";

/// Serves calls from inside the sandbox until the process ends. `work_dir` is the folder of the
/// commands whose own folder does not exist outside.
pub fn serve(listener: UnixListener, around: Surroundings, work_dir: PathBuf) {
    let running = Arc::new(AtomicUsize::new(0));
    let place = Arc::new((around, work_dir));
    for stream in listener.incoming() {
        let Some(stream) = stream.or_warn("a call from a sandbox failed") else {
            continue;
        };
        if running.fetch_add(1, Ordering::SeqCst) >= MAX_CALLS {
            running.fetch_sub(1, Ordering::SeqCst);
            // The caller sees the end of the connection.
            continue;
        }
        let (running, place) = (running.clone(), place.clone());
        std::thread::spawn(move || {
            answer(stream, &place.0, &place.1).or_warn("a call from a sandbox failed");
            running.fetch_sub(1, Ordering::SeqCst);
        });
    }
}

/// Runs one call.
fn answer(mut stream: UnixStream, around: &Surroundings, work_dir: &Path) -> std::io::Result<()> {
    stream.set_read_timeout(Some(TIMEOUT))?;
    let (request, descriptors) = receive(&mut stream)?;
    let Ok([input, output, errors, folder]) = <[OwnedFd; DESCRIPTORS]>::try_from(descriptors)
    else {
        return stream.write_all(&[REFUSED]);
    };
    let args = request.args.into_iter().map(std::ffi::OsString::from_vec);
    let child = Command::new(&around.gt)
        .args(args)
        .env_clear()
        .envs(&around.env)
        .env(SANDBOXED_VARIABLE, "1")
        .current_dir(outer_folder(folder.as_fd(), work_dir))
        .stdin(input)
        .stdout(output)
        .stderr(errors)
        .spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) => {
            stream.write_all(&[REFUSED])?;
            return Err(error);
        }
    };
    if caller_ends_first(&mut child, &stream)? {
        let pid = rustix::process::Pid::from_child(&child);
        let _ = rustix::process::kill_process(pid, Signal::TERM); // It may have ended by now.
    }
    let status = child.wait()?;
    let code = status.code().unwrap_or(REFUSED.into());
    // The caller may be gone.
    let _ = stream.write_all(&[u8::try_from(code).unwrap_or(REFUSED)]);
    Ok(())
}

/// Waits until the command or its caller ends. Returns whether that is the caller, which sends
/// nothing more, so that its connection becomes readable only by its end.
#[cfg(target_os = "linux")]
fn caller_ends_first(child: &mut Child, stream: &UnixStream) -> std::io::Result<bool> {
    let pid = rustix::process::Pid::from_child(child);
    let flags = rustix::process::PidfdFlags::empty();
    let Ok(ended) = rustix::process::pidfd_open(pid, flags) else {
        // The command is then not ended with its caller.
        return Ok(false);
    };
    let mut waits = [
        PollFd::new(&ended, PollFlags::IN),
        PollFd::new(stream, PollFlags::IN),
    ];
    while poll(&mut waits, None) == Err(rustix::io::Errno::INTR) {}
    Ok(waits[0].revents().is_empty())
}

#[cfg(not(target_os = "linux"))]
fn caller_ends_first(child: &mut Child, stream: &UnixStream) -> std::io::Result<bool> {
    const BETWEEN_LOOKS: Duration = Duration::from_millis(20);
    let pause = rustix::time::Timespec::try_from(BETWEEN_LOOKS).map_err(std::io::Error::other)?;
    while child.try_wait()?.is_none() {
        let mut waits = [PollFd::new(stream, PollFlags::IN)];
        if poll(&mut waits, Some(&pause)).is_ok_and(|count| count > 0) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the folder of a descriptor from inside, if it is in the agent's worktree outside.
fn outer_folder(folder: BorrowedFd<'_>, work_dir: &Path) -> PathBuf {
    let link = format!("/proc/self/fd/{}", folder.as_raw_fd());
    // A path that cannot be read is not in the worktree.
    let path = std::fs::read_link(link).unwrap_or_default();
    match path.starts_with(work_dir) && path.is_dir() {
        true => path,
        false => work_dir.to_owned(),
    }
}

fn receive(stream: &mut UnixStream) -> std::io::Result<(BrokerRequest, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut length = [0; 4];
    let received = rustix::net::recvmsg(
        &*stream,
        &mut [IoSliceMut::new(&mut length)],
        &mut ancillary,
        CLOSE_ON_EXEC,
    )?;
    let descriptors = ancillary.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    let descriptors: Vec<OwnedFd> = descriptors.flatten().collect();
    let rest = length.get_mut(received.bytes..).unwrap_or_default();
    stream.read_exact(rest)?;
    let length = u32::from_be_bytes(length) as usize;
    if length > LONGEST {
        return Err(std::io::Error::other("the call is too long"));
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    let request = serde_json::from_slice(&body)?;
    Ok((request, descriptors))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(folder: &Path, program: &str) -> PathBuf {
        let listener = listen(folder, SOCKET).unwrap();
        let around = Surroundings {
            gt: PathBuf::from(program),
            ..Surroundings::default()
        };
        let work_dir = folder.to_owned();
        std::thread::spawn(move || serve(listener, around, work_dir));
        folder.join(SOCKET)
    }

    #[test]
    fn exit_code_of_the_outer_command_comes_back() {
        let folder = tempfile::tempdir().unwrap();
        let socket = served(folder.path(), "/bin/sh");
        let args = ["-c", "test -n \"$GT_SANDBOXED\" && exit 42"];
        let args = args.map(std::ffi::OsString::from);
        assert_eq!(call(&socket, args.into_iter()).unwrap(), 42);
    }

    #[test]
    fn malformed_calls_run_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let socket = served(folder.path(), "/bin/true");
        for bytes in [
            &b"\xff\xff\xff\xff"[..],
            b"\0\0\0\x02{}",
            b"\0\0\0\x0b{\"args\":[]}",
        ] {
            let mut stream = UnixStream::connect(&socket).unwrap();
            stream.write_all(bytes).unwrap();
            let mut answer = Vec::new();
            // The broker may close the connection with unread bytes.
            let _ = stream.read_to_end(&mut answer);
            assert_ne!(answer, [0], "{bytes:?}");
        }
    }
}

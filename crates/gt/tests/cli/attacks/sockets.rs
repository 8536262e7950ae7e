//! Another user who connects to a socket of a town.

use crate::env::{TIMEOUT, TestEnv};
use crate::external_programs::{are_there, skip};
use gt_tmux::testing::wait_until;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

const READ: &str = "import socket, sys\n\
                    client = socket.socket(socket.AF_UNIX)\n\
                    client.connect(sys.argv[1])\n\
                    print(len(client.recv(10)))";

/// Returns the number of bytes that a process of this user reads from a socket. The process begins
/// in its folder, because other users cannot reach that.
fn read_as(user: &str, socket: &Path) -> String {
    let mut python = Command::new("setpriv");
    let python = python.args([
        "--reuid",
        user,
        "--clear-groups",
        "/usr/bin/python3",
        "-c",
        READ,
    ]);
    let python = python.arg(socket.file_name().unwrap());
    let output = python
        .current_dir(socket.parent().unwrap())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn another_user_reads_no_events_even_from_an_open_socket() {
    if !are_there("another user", &["python3", "setpriv"]) {
        return;
    }
    if !rustix::process::geteuid().is_root() {
        skip("only root can start a process of another user");
        return;
    }
    let env = TestEnv::with_town();
    let mut server = env.spawn(&["events", "--serve"]);
    let socket = env.town().join(".runtime/events.sock");
    wait_until("the socket is there", TIMEOUT, || {
        socket.exists().then_some(())
    });
    // As in the moment before the mode of the socket is set.
    for path in [&socket, socket.parent().unwrap()] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
    }
    assert_eq!(read_as("0", &socket), "10", "the owner");
    assert_eq!(read_as("65534", &socket), "0", "another user");
    server.kill().unwrap();
    server.wait().unwrap();
}

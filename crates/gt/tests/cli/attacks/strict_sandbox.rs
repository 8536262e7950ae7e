//! A hostile agent in a strict sandbox. `connections.py` makes the attempts.

use super::sandbox::{attempts, run_script, town_with_secrets};
use crate::env::TestEnv;
use crate::external_programs::are_there;
use std::fs;
use std::io::Write;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::thread;

pub(super) const CONNECTIONS: &str = include_str!("connections.py");

/// Attempts that must succeed without a sandbox, so that their denial inside one means something.
const POSSIBLE_OUTSIDE: &[&str] = &[
    "connect_to_ipv4_loopback",
    "connect_to_allowed_address_without_the_proxy",
    "connect_to_abstract_socket",
    "send_datagram",
];

/// Servers outside the sandbox.
pub(super) struct Servers {
    /// The arguments of the script.
    pub(super) words: Vec<String>,
    pub(super) allowed: u16,
}

impl Servers {
    pub(super) fn start() -> Self {
        let [first, allowed] = [(); 2].map(|()| serve_tcp("127.0.0.1:0").unwrap());
        // A machine without IPv6 has no such server, and the attempt is denied anyway.
        let sixth = serve_tcp("[::1]:0").unwrap_or(1);
        let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
        let udp = datagrams.local_addr().unwrap().port();
        thread::spawn(move || {
            while let Ok((_, client)) = datagrams.recv_from(&mut [0; 64]) {
                let _ = datagrams.send_to(b"hello", client);
            }
        });
        let name = format!("gt-test-{first}");
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let listener = UnixListener::bind_addr(&address).unwrap();
        thread::spawn(move || {
            while let Ok((mut client, _)) = listener.accept() {
                let _ = client.write_all(b"hello");
            }
        });
        let ports = [first, sixth, udp, allowed].map(|port| port.to_string());
        let words = ports.into_iter().chain([name]).collect();
        Servers { words, allowed }
    }
}

fn serve_tcp(address: &str) -> Option<u16> {
    let listener = TcpListener::bind(address).ok()?;
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        while let Ok((mut client, _)) = listener.accept() {
            let _ = client.write_all(b"hello");
        }
    });
    Some(port)
}

pub(super) fn starting_with<'l>(lines: &'l [String], word: &str) -> Vec<&'l String> {
    let lines = lines.iter();
    lines.filter(|line| line.starts_with(word)).collect()
}

fn allow(env: &TestEnv, entry: &str) {
    let text = format!("[sandbox]\nhosts = [\"{entry}\"]\n");
    fs::write(env.town().join("roles/crew.toml"), text).unwrap();
}

#[test]
fn agent_in_a_strict_sandbox_reaches_only_allowed_hosts() {
    if !are_there("a sandbox", &["bwrap", "python3"]) {
        return;
    }
    let env = town_with_secrets();
    let servers = Servers::start();
    allow(&env, &format!("127.0.0.1:{}", servers.allowed));
    let lines = run_script(&env, "strict", CONNECTIONS, &servers.words);
    let none: Vec<&String> = Vec::new();
    assert_eq!(starting_with(&lines, "ESCAPED"), none);
    assert!(lines.contains(&"allowed".to_owned()), "{lines:?}");
    assert!(starting_with(&lines, "denied").len() >= 25, "{lines:?}");
    let log = env.gt(&["events", "--type", "denied"]).ok().stdout;
    assert!(
        log.contains("gastown/crew/max was refused: connection to"),
        "{log}"
    );
}

#[test]
fn connections_succeed_without_a_sandbox() {
    if !are_there("a sandbox", &["bwrap", "python3"]) {
        return;
    }
    let env = town_with_secrets();
    let servers = Servers::start();
    let lines = run_script(&env, "none", CONNECTIONS, &servers.words);
    for name in POSSIBLE_OUTSIDE {
        let escaped = format!("ESCAPED {name}");
        assert!(lines.contains(&escaped), "{name}: {lines:?}");
    }
}

#[test]
fn agent_in_a_strict_sandbox_cannot_leave_it() {
    if !are_there("a sandbox", &["bwrap", "python3"]) {
        return;
    }
    let env = town_with_secrets();
    let lines = attempts(&env, "strict");
    let none: Vec<&String> = Vec::new();
    assert_eq!(starting_with(&lines, "ESCAPED"), none);
    assert!(starting_with(&lines, "denied").len() >= 80, "{lines:?}");
}

#[test]
fn host_that_cannot_be_parsed_fails_before_the_start() {
    if !are_there("a sandbox", &["bwrap"]) {
        return;
    }
    let env = TestEnv::with_crew(&["max"]);
    allow(&env, "https://example.org/");
    let said = env.gt(&["start", "gastown/max", "--sandbox", "strict"]);
    assert_ne!(said.code, 0);
    assert!(said.stderr.contains("example.org"), "{said:?}");
    assert!(env.running().is_empty());
}

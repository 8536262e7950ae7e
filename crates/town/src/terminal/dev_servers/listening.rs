//! Ports of this machine that have a listening socket, read from the kernel's tables: one read
//! covers all servers, and no server sees a connection.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Returns the ports that accept connections from this machine, or `None` if the kernel has no such
/// table. A port that is missing may still answer, because of forwarding rules of another network.
pub(super) fn ports() -> Option<BTreeSet<u16>> {
    let lists = ["/proc/self/net/tcp", "/proc/self/net/tcp6"];
    // The kernel may be without IPv6.
    let opened: Vec<File> = lists.iter().filter_map(|it| File::open(it).ok()).collect();
    let found = opened.iter().map(|list| parse(BufReader::new(list)));
    (!opened.is_empty()).then(|| found.flatten().collect())
}

/// Returns the listening ports of a table. Listening sockets come first, so that the connections of
/// a busy machine are not read.
fn parse(list: impl BufRead) -> BTreeSet<u16> {
    let lines = list.lines().skip(1).map_while(Result::ok);
    let listening = lines.map_while(|line| listener(&line));
    let near = listening.filter(|(address, _)| is_near(*address));
    near.map(|(_, port)| port).collect()
}

/// Returns the address of a line if it is a listening socket.
fn listener(line: &str) -> Option<(IpAddr, u16)> {
    const LISTENS: &str = "0A";
    let mut words = line.split_whitespace();
    let (address, port) = words.nth(1)?.split_once(':')?;
    if words.nth(1)? != LISTENS {
        return None;
    }
    Some((self::address(address)?, u16::from_str_radix(port, 16).ok()?))
}

/// Parses an address, which the kernel writes as 32-bit numbers in native byte order.
fn address(text: &str) -> Option<IpAddr> {
    let number = |at: usize| u32::from_str_radix(text.get(at..at + 8)?, 16).ok();
    let bytes = |at: usize| number(at).map(u32::to_ne_bytes);
    match text.len() {
        8 => Some(Ipv4Addr::from(bytes(0)?).into()),
        32 => {
            let parts = [bytes(0)?, bytes(8)?, bytes(16)?, bytes(24)?];
            let whole: [u8; 16] = parts.concat().try_into().ok()?;
            Some(Ipv6Addr::from(whole).into())
        }
        _ => None,
    }
}

/// Returns whether a connection to `localhost` reaches this address.
fn is_near(address: IpAddr) -> bool {
    let address = address.to_canonical();
    address.is_unspecified()
        || address == IpAddr::from(Ipv4Addr::LOCALHOST)
        || address == IpAddr::from(Ipv6Addr::LOCALHOST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{SocketAddr, TcpListener};

    #[test]
    fn port_is_listed_while_a_process_listens() {
        let Some(_) = ports() else {
            return;
        };
        for address in ["127.0.0.1:0", "0.0.0.0:0", "[::1]:0", "[::]:0"] {
            let address: SocketAddr = address.parse().unwrap();
            // A machine may have no IPv6.
            let Ok(listener) = TcpListener::bind(address) else {
                continue;
            };
            let port = listener.local_addr().unwrap().port();
            assert!(ports().unwrap().contains(&port), "{address}");
            let connected = std::net::TcpStream::connect(listener.local_addr().unwrap());
            drop(listener);
            assert!(!ports().unwrap().contains(&port), "{address}");
            drop(connected);
        }
    }

    #[test]
    fn only_what_can_be_reached_from_here_counts() {
        if cfg!(target_endian = "big") {
            return;
        }
        let list = "  sl  local_address rem_address   st tx_queue rx_queue tr\n\
             0: 0100007F:1435 00000000:0000 0A 00000000:00000000 00:00000000\n\
             1: 0201A8C0:1436 00000000:0000 0A 00000000:00000000 00:00000000\n\
             2: 00000000:1437 00000000:0000 0A 00000000:00000000 00:00000000\n\
             3: 0100007F:1438 0100007F:9999 01 00000000:00000000 00:00000000\n\
             4: 0100007F:1439 00000000:0000 0A 00000000:00000000 00:00000000\n";
        assert_eq!(parse(list.as_bytes()), [0x1435, 0x1437].into());
        let mapped = "0000000000000000FFFF00000100007F";
        assert!(is_near(address(mapped).unwrap()));
        for nothing in ["", "0100007", "ghijklmn", "€€€"] {
            assert_eq!(address(nothing), None, "{nothing:?}");
        }
    }
}

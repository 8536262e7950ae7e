//! Allocates a server's ports: free, unique per worktree, and stable across restarts.
//!
//! They are stored in `.runtime/ports.json`, under a lock. A port is tested by binding it, which is
//! the only reliable check.

use crate::base::files;
use crate::base::lock::FileLock;
use crate::{Result, Town};
use gt_core::Problem;
use gt_core::project::DevServer;
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of ports tried after the first.
const TRIES: u16 = 1000;

/// Ports by worktree, server and variable.
type Noted = BTreeMap<PathBuf, BTreeMap<String, BTreeMap<String, u16>>>;

/// Returns the ports last allocated to a server of this worktree.
pub(super) fn stored(town: &Town, dir: &Path, server: &str) -> Result<BTreeMap<String, u16>> {
    let mut all = read(town)?;
    let servers = all.remove(dir).unwrap_or_default();
    Ok(servers.get(server).cloned().unwrap_or_default())
}

/// Allocates the ports of a server that is about to start.
pub(super) fn allocate(
    town: &Town,
    dir: &Path,
    server: &DevServer,
) -> Result<BTreeMap<String, u16>> {
    let _lock = FileLock::take(&town.runtime_dir().join("locks/ports.lock"), TIMEOUT)?;
    let mut all = read(town)?;
    // Removed worktrees need no ports.
    all.retain(|dir, _| dir.is_dir());
    let before = all.get(dir).and_then(|servers| servers.get(server.name()));
    let before = before.cloned().unwrap_or_default();
    let own = |(place, name): (&Path, &str)| place == dir && name == server.name();
    let mut taken: BTreeSet<u16> = all
        .iter()
        .flat_map(|(place, servers)| servers.iter().map(move |(name, it)| (place, name, it)))
        .filter(|(place, name, _)| !own((place, name)))
        .flat_map(|(_, _, ports)| ports.values().copied())
        .collect();
    let mut ports = BTreeMap::new();
    for (variable, first) in server.ports() {
        let kept = before.get(variable).copied();
        let wanted = kept.into_iter().chain(first..=first.saturating_add(TRIES));
        let found = wanted
            .filter(|port| !taken.contains(port))
            .find(|port| is_free(*port))
            .ok_or_else(|| {
                Problem::failed(format!(
                    "there is no free port for {} from {first} on",
                    server.name()
                ))
                .hint("`port` in the project's .gt.toml says where to begin")
            })?;
        taken.insert(found);
        ports.insert(variable.to_owned(), found);
    }
    let servers = all.entry(dir.to_owned()).or_default();
    servers.insert(server.name().to_owned(), ports.clone());
    write(town, &all)?;
    Ok(ports)
}

/// Releases the ports of a worktree.
pub(super) fn forget(town: &Town, dir: &Path) -> Result<()> {
    let _lock = FileLock::take(&town.runtime_dir().join("locks/ports.lock"), TIMEOUT)?;
    let mut all = read(town)?;
    match all.remove(dir) {
        Some(_) => write(town, &all),
        None => Ok(()),
    }
}

/// Returns whether no process listens on this port, on any address.
fn is_free(port: u16) -> bool {
    let on = |address: SocketAddr| match TcpListener::bind(address) {
        Ok(_) => true,
        // The machine does not support this address family.
        Err(error) => matches!(
            error.kind(),
            ErrorKind::AddrNotAvailable | ErrorKind::Unsupported
        ),
    };
    // One after the other: on many machines an IPv6 listener also takes the IPv4 port.
    on((Ipv4Addr::UNSPECIFIED, port).into()) && on((Ipv6Addr::UNSPECIFIED, port).into())
}

fn path(town: &Town) -> PathBuf {
    town.runtime_dir().join("ports.json")
}

fn read(town: &Town) -> Result<Noted> {
    let path = path(town);
    let Some(text) = files::read_if_there(&path)? else {
        return Ok(Noted::new());
    };
    serde_json::from_str(&text).map_err(|error| {
        Problem::failed(format!("{} cannot be read", path.display()))
            .caused_by(error)
            .hint("remove it: the servers then get new ports")
    })
}

fn write(town: &Town, all: &Noted) -> Result<()> {
    let text = serde_json::to_vec_pretty(all)
        .map_err(|error| Problem::failed("cannot note the ports").caused_by(error))?;
    files::write_whole(&path(town), &text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_is_taken_as_long_as_a_process_listens() {
        for address in ["127.0.0.1:0", "0.0.0.0:0"] {
            let listener = TcpListener::bind(address).unwrap();
            let port = listener.local_addr().unwrap().port();
            assert!(!is_free(port), "{address}");
            drop(listener);
            assert!(is_free(port), "{address}");
        }
    }
}

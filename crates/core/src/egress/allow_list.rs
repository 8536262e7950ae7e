//! The list of hosts that a sandbox may reach.

use super::Denial;
use super::host::{Destination, Host, split_port};
use crate::problem::Problem;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Ports of an entry that names none.
const DEFAULT_PORTS: [u16; 2] = [443, 80];

/// Variables that tell programs about the proxy. curl reads `http_proxy` only in lower case, other
/// programs only the upper-case forms.
const PROXY_VARIABLES: [&str; 4] = ["HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy"];
const EXCEPTIONS: [&str; 2] = ["NO_PROXY", "no_proxy"];

/// Allowed hosts with their ports. It is empty by default, which allows nothing.
///
/// | entry | allows |
/// | --- | --- |
/// | `api.example.org` | this name, ports 443 and 80 |
/// | `*.example.org` | every name below `example.org`, but not `example.org` |
/// | `example.org:8443` | only this port |
/// | `127.0.0.1:8080`, `[::1]:8080` | this address, also if it is not public |
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowList {
    entries: Vec<AllowedHost>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct AllowedHost {
    host: HostPattern,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum HostPattern {
    Exact(Host),
    /// Names that end with this text, which begins with a dot.
    Below(String),
}

/// The kind of an allowed connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permit {
    /// By name: the name must lead to a public address, and a TLS connection must name it.
    Name,
    /// By an address that is in the list.
    Address(IpAddr),
}

impl AllowList {
    /// Parses the entries of one or several lists.
    pub fn parse<T: AsRef<str>>(entries: impl IntoIterator<Item = T>) -> Result<Self, Problem> {
        let entries = entries.into_iter().map(|entry| parse_entry(entry.as_ref()));
        let entries = entries.collect::<Result<_, _>>()?;
        Ok(Self { entries })
    }

    /// Returns how a destination is allowed, or [`Denial::NotListed`].
    pub fn check(&self, destination: &Destination) -> Result<Permit, Denial> {
        let mut entries = self.entries.iter();
        if !entries.any(|entry| entry.matches(destination)) {
            return Err(Denial::NotListed);
        }
        Ok(match destination.host {
            Host::Name(_) => Permit::Name,
            Host::Address(address) => Permit::Address(address),
        })
    }

    /// Returns the variables that make programs use a proxy on this port of 127.0.0.1. Servers
    /// inside the sandbox are reached directly, unless their address is in the list: then it means
    /// a server outside.
    pub fn proxy_variables(&self, port: u16) -> Vec<(&'static str, String)> {
        let url = format!("http://127.0.0.1:{port}");
        let is_listed = |address: IpAddr| {
            let listed = HostPattern::Exact(Host::Address(address));
            self.entries.iter().any(|entry| entry.host == listed)
        };
        let mut direct = vec!["localhost"];
        if !is_listed(Ipv4Addr::LOCALHOST.into()) {
            direct.push("127.0.0.1");
        }
        if !is_listed(Ipv6Addr::LOCALHOST.into()) {
            direct.extend(["::1", "[::1]"]);
        }
        let direct = direct.join(",");
        let proxies = PROXY_VARIABLES.map(|name| (name, url.clone()));
        let exceptions = EXCEPTIONS.map(|name| (name, direct.clone()));
        // Node reads the variables only with this one.
        let node = [("NODE_USE_ENV_PROXY", "1".to_owned())];
        proxies.into_iter().chain(exceptions).chain(node).collect()
    }
}

impl AllowedHost {
    fn matches(&self, destination: &Destination) -> bool {
        let is_port = match self.port {
            Some(port) => port == destination.port,
            None => DEFAULT_PORTS.contains(&destination.port),
        };
        is_port
            && match (&self.host, &destination.host) {
                (HostPattern::Exact(host), found) => host == found,
                (HostPattern::Below(end), Host::Name(name)) => name.ends_with(end.as_str()),
                (HostPattern::Below(_), Host::Address(_)) => false,
            }
    }
}

fn parse_entry(text: &str) -> Result<AllowedHost, Problem> {
    let refuse = |reason: String| {
        Problem::usage(format!("{text:?} is not a host: {reason}"))
            .hint("write a name (api.example.org), *.example.org, or an address (127.0.0.1:8080)")
    };
    let refuse_host = |error: super::HostError| refuse(error.to_string());
    let (host, port) = split_port(text).map_err(refuse_host)?;
    let (name, is_below) = match host.strip_prefix("*.") {
        Some(name) => (name, true),
        None => (host, false),
    };
    let parsed = Host::parse(name).map_err(refuse_host)?;
    let host = match parsed {
        Host::Name(name) if name == "localhost" || name.ends_with(".localhost") => {
            return Err(refuse("this machine is named by its address".to_owned()));
        }
        Host::Name(name) if is_below && !name.contains('.') => {
            return Err(refuse("it covers a whole top-level domain".to_owned()));
        }
        Host::Name(name) if is_below => HostPattern::Below(format!(".{name}")),
        Host::Address(_) if is_below => {
            return Err(refuse("an address has no names below it".to_owned()));
        }
        host => HostPattern::Exact(host),
    };
    Ok(AllowedHost { host, port })
}

#[cfg(test)]
mod tests {
    use super::{AllowList, Destination, Permit};

    fn list() -> AllowList {
        let entries = [
            "api.anthropic.com",
            "*.Example.org.",
            "git.example.net:9418",
            "127.0.0.1:8080",
            "[::1]:8081",
            "192.0.2.7",
        ];
        AllowList::parse(entries).unwrap()
    }

    fn is_allowed(text: &str) -> bool {
        let destination = Destination::parse(text, Some(443)).unwrap();
        list().check(&destination).is_ok()
    }

    #[test]
    fn listed_hosts_are_allowed() {
        let allowed = [
            "api.anthropic.com",
            "API.ANTHROPIC.COM.:80",
            "a.example.org",
            "a.b.example.org:80",
            "git.example.net:9418",
            "127.0.0.1:8080",
            "[::ffff:127.0.0.1]:8080",
            "[::1]:8081",
            "192.0.2.7:80",
        ];
        for text in allowed {
            assert!(is_allowed(text), "{text}");
        }
    }

    #[test]
    fn other_hosts_and_ports_are_denied() {
        let denied = [
            "anthropic.com",
            "x.api.anthropic.com",
            "api.anthropic.com.evil.example",
            "evilapi.anthropic.com",
            "api.anthropic.com:22",
            "example.org",
            "evilexample.org",
            "example.org.evil.example",
            "git.example.net",
            "127.0.0.1",
            "127.0.0.2:8080",
            "localhost:8080",
            "[::1]:8080",
            "192.0.2.7:8080",
        ];
        for text in denied {
            assert!(!is_allowed(text), "{text}");
        }
        let destination = Destination::parse("api.anthropic.com", Some(443)).unwrap();
        assert!(AllowList::default().check(&destination).is_err());
    }

    #[test]
    fn the_permit_says_whether_the_address_is_listed() {
        let permit = |text| list().check(&Destination::parse(text, Some(443)).unwrap());
        assert_eq!(permit("a.example.org"), Ok(Permit::Name));
        let address = Permit::Address("127.0.0.1".parse().unwrap());
        assert_eq!(permit("127.0.0.1:8080"), Ok(address));
    }

    #[test]
    fn wide_or_ambiguous_entries_are_errors() {
        let entries = [
            "*",
            "*.",
            "*.org",
            "*.*.example.org",
            "a.*.example.org",
            "*example.org",
            "*.127.0.0.1",
            "localhost:8080",
            "a.localhost",
            "https://example.org",
            "example.org/path",
            "example.org:*",
            "bücher.example",
            "user@example.org",
            "",
        ];
        for entry in entries {
            assert!(AllowList::parse([entry]).is_err(), "{entry}");
        }
        let problem = AllowList::parse(["*.org"]).unwrap_err();
        insta::assert_snapshot!(problem.line(), @r#""*.org" is not a host: it covers a whole top-level domain"#);
    }

    #[test]
    fn a_listed_loopback_address_is_reached_through_the_proxy() {
        let value = |list: &AllowList, name: &str| {
            let variables = list.proxy_variables(3128);
            let found = variables.into_iter().find(|(known, _)| *known == name);
            found.unwrap().1
        };
        let plain = AllowList::parse(["example.org"]).unwrap();
        assert_eq!(value(&plain, "HTTPS_PROXY"), "http://127.0.0.1:3128");
        assert_eq!(value(&plain, "NO_PROXY"), "localhost,127.0.0.1,::1,[::1]");
        assert_eq!(value(&list(), "no_proxy"), "localhost");
    }
}

//! Hosts and destinations, parsed strictly: each host has one spelling after parsing.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::fmt;

const LONGEST_NAME: usize = 253;
const LONGEST_LABEL: usize = 63;

/// A host: a DNS name in lower case without a dot at its end, or an address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    Name(String),
    Address(IpAddr),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    #[error("the host is empty")]
    Empty,
    #[error("the host is too long")]
    TooLong,
    #[error("a name has only letters, digits, hyphens and dots; write others in the form xn--…")]
    Character,
    #[error("a part between dots is empty, too long, or begins or ends with a hyphen")]
    Label,
    #[error("an address is written like 192.0.2.1 or [2001:db8::1]")]
    Address,
    #[error("the port is not a number from 1 to 65535 without leading zeros")]
    Port,
}

impl Host {
    /// Parses a host as it is in a URL: an IPv6 address has brackets. Other spellings of addresses
    /// that some programs accept (`127.1`, `0x7f.0.0.1`, `2130706433`) are errors.
    pub fn parse(text: &str) -> Result<Self, HostError> {
        if let Some(rest) = text.strip_prefix('[') {
            let inner = rest.strip_suffix(']').ok_or(HostError::Address)?;
            let address: Ipv6Addr = inner.parse().map_err(|_| HostError::Address)?;
            return Ok(Host::Address(IpAddr::V6(address).to_canonical()));
        }
        let name = parse_name(text.strip_suffix('.').unwrap_or(text))?;
        let last = name.rsplit('.').next().unwrap_or_default();
        let is_number = last.bytes().all(|byte| byte.is_ascii_digit())
            || last.strip_prefix("0x").is_some_and(is_hexadecimal);
        if !is_number {
            return Ok(Host::Name(name));
        }
        let address: Ipv4Addr = text.parse().map_err(|_| HostError::Address)?;
        Ok(Host::Address(IpAddr::V4(address)))
    }
}

fn is_hexadecimal(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Checks a DNS name and returns it in lower case.
fn parse_name(text: &str) -> Result<String, HostError> {
    if text.is_empty() {
        return Err(HostError::Empty);
    }
    if text.len() > LONGEST_NAME {
        return Err(HostError::TooLong);
    }
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
    if !text.bytes().all(is_allowed) {
        return Err(HostError::Character);
    }
    let is_label = |label: &str| {
        (1..=LONGEST_LABEL).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    if !text.split('.').all(is_label) {
        return Err(HostError::Label);
    }
    Ok(text.to_ascii_lowercase())
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Name(name) => f.write_str(name),
            Host::Address(IpAddr::V4(address)) => write!(f, "{address}"),
            Host::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

/// The host and port of a connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Destination {
    pub host: Host,
    pub port: u16,
}

impl Destination {
    /// Parses `HOST:PORT`; `default` is the port of a text without one.
    pub fn parse(text: &str, default: Option<u16>) -> Result<Self, HostError> {
        let (host, port) = split_port(text)?;
        let port = port.or(default).ok_or(HostError::Port)?;
        let host = Host::parse(host)?;
        Ok(Self { host, port })
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// Splits the port from a host. The colons inside brackets belong to the address.
pub(super) fn split_port(text: &str) -> Result<(&str, Option<u16>), HostError> {
    let start = text.rfind(']').map_or(0, |bracket| bracket + 1);
    match text[start..].split_once(':') {
        None => Ok((text, None)),
        Some((before, port)) => {
            let host = &text[..start + before.len()];
            parse_port(port).map(|port| (host, Some(port)))
        }
    }
}

fn parse_port(text: &str) -> Result<u16, HostError> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    let port = text.parse().ok().filter(|_| is_plain);
    port.ok_or(HostError::Port)
}

#[cfg(test)]
mod tests {
    use super::{Destination, HostError};

    fn parse(text: &str) -> Result<String, HostError> {
        Destination::parse(text, Some(443)).map(|destination| destination.to_string())
    }

    #[test]
    fn each_host_has_one_spelling() {
        let table = [
            ("api.anthropic.com", "api.anthropic.com:443"),
            ("API.Anthropic.COM.", "api.anthropic.com:443"),
            ("xn--bcher-kva.example:8443", "xn--bcher-kva.example:8443"),
            ("127.0.0.1:8080", "127.0.0.1:8080"),
            ("[::1]:8080", "[::1]:8080"),
            ("[0:0:0:0:0:0:0:1]", "[::1]:443"),
            ("[::FFFF:127.0.0.1]", "127.0.0.1:443"),
            ("localhost", "localhost:443"),
        ];
        for (text, expected) in table {
            assert_eq!(parse(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn other_spellings_are_errors() {
        let table = [
            ("", HostError::Empty),
            (".", HostError::Empty),
            (":443", HostError::Empty),
            ("a..b", HostError::Label),
            ("a.b..", HostError::Label),
            (".a.b", HostError::Label),
            ("-a.b", HostError::Label),
            ("user@api.anthropic.com", HostError::Character),
            ("api.anthropic.com%00.evil.example", HostError::Character),
            ("api.anthropic.com\0.evil.example", HostError::Character),
            ("api%2eanthropic.com", HostError::Character),
            ("api.anthropic.com/", HostError::Character),
            ("api.anthropic.com\\@evil.example", HostError::Character),
            ("api.anthropic.com ", HostError::Character),
            ("api\u{3002}anthropic.com", HostError::Character),
            ("аpi.anthropic.com", HostError::Character),
            ("*.example.org", HostError::Character),
            ("127.1", HostError::Address),
            ("2130706433", HostError::Address),
            ("0x7f000001", HostError::Address),
            ("0x7f.0.0.0x1", HostError::Address),
            ("127.0.0.01", HostError::Address),
            ("127.0.0.1.", HostError::Address),
            ("1.2.3.4.5", HostError::Address),
            ("example.0x", HostError::Address),
            ("[::1", HostError::Port),
            ("[fe80::1%eth0]", HostError::Address),
            ("[127.0.0.1]", HostError::Address),
            ("::1", HostError::Port),
            ("a.b:", HostError::Port),
            ("a.b:0", HostError::Port),
            ("a.b:0443", HostError::Port),
            ("a.b:+443", HostError::Port),
            ("a.b:65536", HostError::Port),
            ("a.b:443:443", HostError::Port),
        ];
        for (text, expected) in table {
            assert_eq!(parse(text), Err(expected), "{text:?}");
        }
        assert_eq!(parse(&"a".repeat(64)), Err(HostError::Label));
        assert_eq!(parse(&"a.".repeat(200)), Err(HostError::TooLong));
    }
}

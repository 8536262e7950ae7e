//! `[web]` of `town.toml`.

use serde::Deserialize;
use std::net::SocketAddr;

/// Settings of the HTTP API.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WebSettings {
    /// The TCP address of the daemon's HTTP API. Without one it has only its Unix socket.
    #[serde(deserialize_with = "loopback")]
    pub listen: Option<SocketAddr>,
}

/// Parses an address of this machine: the API has no TLS.
fn loopback<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<SocketAddr>, D::Error> {
    use serde::de::Error;
    let text = String::deserialize(from)?;
    let address: SocketAddr = text.parse().map_err(|_| {
        D::Error::custom(format!("{text:?} is not an address such as 127.0.0.1:7420"))
    })?;
    match address.ip().is_loopback() && address.port() > 0 {
        true => Ok(Some(address)),
        false => Err(D::Error::custom(format!(
            "{text:?} is not an address of this machine alone, such as 127.0.0.1:7420"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_addresses_are_accepted() {
        let check = |listen: &str, expected: bool| {
            let parsed: Result<WebSettings, _> = toml::from_str(&format!("listen = \"{listen}\""));
            assert_eq!(parsed.is_ok(), expected, "{listen}");
        };
        check("127.0.0.1:7420", true);
        check("[::1]:7420", true);
        for listen in [
            "0.0.0.0:7420",
            "[::]:80",
            "192.168.1.2:80",
            "localhost:80",
            "127.0.0.1",
            "127.0.0.1:0",
            "",
        ] {
            check(listen, false);
        }
    }
}

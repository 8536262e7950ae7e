//! Addresses that a host name may lead to.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// IPv4 networks that are not public: prefix and its length.
const IPV4_RESERVED: &[([u8; 4], u32)] = &[
    ([0, 0, 0, 0], 8),
    ([10, 0, 0, 0], 8),
    ([100, 64, 0, 0], 10),
    ([127, 0, 0, 0], 8),
    ([169, 254, 0, 0], 16),
    ([172, 16, 0, 0], 12),
    ([192, 0, 0, 0], 24),
    ([192, 0, 2, 0], 24),
    ([192, 88, 99, 0], 24),
    ([192, 168, 0, 0], 16),
    ([198, 18, 0, 0], 15),
    ([198, 51, 100, 0], 24),
    ([203, 0, 113, 0], 24),
    ([224, 0, 0, 0], 3),
];

/// Reserved parts of `2000::/3`, the public IPv6 addresses. `2001::/23` has Teredo and `2002::/16`
/// is 6to4: both contain IPv4 addresses.
const IPV6_RESERVED: &[([u16; 2], u32)] = &[
    ([0x2001, 0], 23),
    ([0x2001, 0x0db8], 32),
    ([0x2002, 0], 16),
    ([0x3fff, 0], 20),
];

/// NAT64: the last 32 bits are an IPv4 address.
const NAT64: [u16; 6] = [0x64, 0xff9b, 0, 0, 0, 0];

/// Returns whether an address belongs to the public internet: not private, loopback, link-local,
/// multicast or reserved. A name in the list of allowed hosts may lead only to such addresses.
pub fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_public_ipv4(address),
        IpAddr::V6(address) => is_public_ipv6(address),
    }
}

fn is_public_ipv4(address: Ipv4Addr) -> bool {
    let is_within = |(prefix, length): &([u8; 4], u32)| {
        (address.to_bits() ^ u32::from_be_bytes(*prefix)) >> (32 - length) == 0
    };
    !IPV4_RESERVED.iter().any(is_within)
}

fn is_public_ipv6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    if segments[..6] == NAT64 {
        return is_public_ipv4(Ipv4Addr::from_bits(address.to_bits() as u32));
    }
    let first = |pair: [u16; 2]| u32::from(pair[0]) << 16 | u32::from(pair[1]);
    let bits = first([segments[0], segments[1]]);
    let is_within =
        |(prefix, length): &([u16; 2], u32)| (bits ^ first(*prefix)) >> (32 - length) == 0;
    bits >> 29 == 1 && !IPV6_RESERVED.iter().any(is_within)
}

#[cfg(test)]
mod tests {
    use super::is_public;

    #[test]
    fn only_public_addresses_are_public() {
        let public = [
            "1.1.1.1",
            "160.79.104.10",
            "172.32.0.1",
            "100.128.0.1",
            "2607:6bc0::10",
            "2a00:1450:4001::200e",
            "2001:200::1",
            "::ffff:1.1.1.1",
            "64:ff9b::101:101",
        ];
        for text in public {
            assert!(is_public(text.parse().unwrap()), "{text}");
        }
        let others = [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "127.255.255.255",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.168.1.1",
            "198.19.0.1",
            "224.0.0.251",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::7f00:1",
            "100::1",
            "2001:0:7f00:1::",
            "2001:db8::1",
            "2002:7f00:1::",
            "3fff::1",
            "fc00::1",
            "fd12::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ];
        for text in others {
            assert!(!is_public(text.parse().unwrap()), "{text}");
        }
    }
}

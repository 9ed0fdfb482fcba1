//! The addresses that an untrusted URL may reach: public ones only. Pure: makes no request and has no exceptions.
//! `rules` handles the origins that the operator trusts.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A network: its first address, its prefix length and its purpose.
type Network4 = ([u8; 4], u32, &'static str);
type Network6 = ([u16; 8], u32, &'static str);

/// The IPv4 networks that are not public, from IANA's special-purpose registry.
const NETWORKS4: [Network4; 18] = [
    ([0, 0, 0, 0], 8, "unspecified"),
    ([10, 0, 0, 0], 8, "private"),
    ([100, 64, 0, 0], 10, "carrier NAT"),
    ([127, 0, 0, 0], 8, "loopback"),
    // Cloud providers serve machine credentials here.
    ([169, 254, 0, 0], 16, "link-local"),
    ([172, 16, 0, 0], 12, "private"),
    ([192, 0, 0, 0], 24, "protocol assignment"),
    ([192, 0, 2, 0], 24, "documentation"),
    ([192, 88, 99, 0], 24, "6to4 relay"),
    ([192, 168, 0, 0], 16, "private"),
    ([198, 18, 0, 0], 15, "benchmark"),
    ([198, 51, 100, 0], 24, "documentation"),
    ([203, 0, 113, 0], 24, "documentation"),
    ([233, 252, 0, 0], 24, "documentation"),
    ([224, 0, 0, 0], 4, "multicast"),
    ([255, 255, 255, 255], 32, "broadcast"),
    ([240, 0, 0, 0], 4, "reserved"),
    // Looks public, but inside Azure it is the host of the requesting machine.
    ([168, 63, 129, 16], 32, "cloud host"),
];

/// The only part of IPv6 that contains public addresses. All other addresses are refused by default.
const PUBLIC6: Network6 = ([0x2000, 0, 0, 0, 0, 0, 0, 0], 3, "");

/// The networks inside [`PUBLIC6`] that are not public.
const NETWORKS6: [Network6; 4] = [
    // Teredo, benchmarks, ORCHID: tunnels and identifiers that serve no files.
    ([0x2001, 0, 0, 0, 0, 0, 0, 0], 23, "protocol assignment"),
    ([0x2001, 0x0db8, 0, 0, 0, 0, 0, 0], 32, "documentation"),
    // 6to4 embeds an arbitrary IPv4 address and is obsolete.
    ([0x2002, 0, 0, 0, 0, 0, 0, 0], 16, "6to4"),
    ([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20, "documentation"),
];

/// Names of the networks outside [`PUBLIC6`], for messages only.
const NAMES6: [Network6; 11] = [
    ([0, 0, 0, 0, 0, 0, 0, 0], 128, "unspecified"),
    ([0, 0, 0, 0, 0, 0, 0, 1], 128, "loopback"),
    ([0, 0, 0, 0, 0, 0, 0, 0], 96, "IPv4-compatible"),
    ([0, 0, 0, 0, 0xffff, 0, 0, 0], 96, "IPv4-translated"),
    ([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48, "local NAT64"),
    ([0x100, 0, 0, 0, 0, 0, 0, 0], 64, "discard"),
    ([0x5f00, 0, 0, 0, 0, 0, 0, 0], 16, "segment routing"),
    ([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7, "private"),
    ([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10, "link-local"),
    ([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10, "site-local"),
    ([0xff00, 0, 0, 0, 0, 0, 0, 0], 8, "multicast"),
];

/// The prefixes that embed the IPv4 address that is really reached: IPv4-mapped, and the well-known NAT64 prefix,
/// through which networks without IPv4 reach public IPv4 hosts.
const CARRIERS: [Network6; 2] =
    [([0, 0, 0, 0, 0, 0xffff, 0, 0], 96, "IPv4-mapped"), ([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96, "NAT64")];

/// Returns why an address is not public; `None` if it is. (SEC-001)
#[must_use]
pub(crate) fn blocked_reason(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => blocked4(address),
        IpAddr::V6(address) => match embedded_ipv4(address) {
            Some(carried) => blocked4(carried),
            None => blocked6(address),
        },
    }
}

fn blocked4(address: Ipv4Addr) -> Option<&'static str> {
    let bits = address.to_bits();
    let within =
        |(first, length, _): &&Network4| (bits ^ u32::from_be_bytes(*first)).leading_zeros() >= *length;
    NETWORKS4.iter().find(within).map(|(.., name)| *name)
}

fn blocked6(address: Ipv6Addr) -> Option<&'static str> {
    let named =
        |list: &[Network6]| list.iter().find(|network| is_in(address, network)).map(|(.., name)| *name);
    if is_in(address, &PUBLIC6) {
        return named(&NETWORKS6);
    }
    Some(named(&NAMES6).unwrap_or("reserved"))
}

/// Returns the IPv4 address embedded in an IPv6 address.
fn embedded_ipv4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [.., high, low] = address.segments();
    let carries = CARRIERS.iter().any(|network| is_in(address, network));
    carries.then(|| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)))
}

fn is_in(address: Ipv6Addr, (first, length, _): &Network6) -> bool {
    (address.to_bits() ^ Ipv6Addr::from(*first).to_bits()).leading_zeros() >= *length
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn blocked_text(address: &str) -> Option<&'static str> {
        blocked_reason(address.parse().unwrap())
    }

    // SEC-001: both ends of every network are refused, and the neighbouring addresses are not.
    #[test]
    fn sec_001_ipv4_networks_to_their_edges() {
        for (first, last, before, after) in [
            ("0.0.0.0", "0.255.255.255", "", "1.0.0.0"),
            ("10.0.0.0", "10.255.255.255", "9.255.255.255", "11.0.0.0"),
            ("100.64.0.0", "100.127.255.255", "100.63.255.255", "100.128.0.0"),
            ("127.0.0.0", "127.255.255.255", "126.255.255.255", "128.0.0.0"),
            ("168.63.129.16", "168.63.129.16", "168.63.129.15", "168.63.129.17"),
            ("169.254.0.0", "169.254.255.255", "169.253.255.255", "169.255.0.0"),
            ("172.16.0.0", "172.31.255.255", "172.15.255.255", "172.32.0.0"),
            ("192.0.0.0", "192.0.0.255", "191.255.255.255", "192.0.1.0"),
            ("192.0.2.0", "192.0.2.255", "192.0.1.255", "192.0.3.0"),
            ("192.88.99.0", "192.88.99.255", "192.88.98.255", "192.88.100.0"),
            ("192.168.0.0", "192.168.255.255", "192.167.255.255", "192.169.0.0"),
            ("198.18.0.0", "198.19.255.255", "198.17.255.255", "198.20.0.0"),
            ("198.51.100.0", "198.51.100.255", "198.51.99.255", "198.51.101.0"),
            ("203.0.113.0", "203.0.113.255", "203.0.112.255", "203.0.114.0"),
            ("224.0.0.0", "255.255.255.255", "223.255.255.255", ""),
        ] {
            for inside in [first, last] {
                assert!(blocked_text(inside).is_some(), "{inside}");
                assert!(blocked_text(&format!("::ffff:{inside}")).is_some(), "mapped {inside}");
                assert!(blocked_text(&format!("64:ff9b::{inside}")).is_some(), "NAT64 {inside}");
            }
            for outside in [before, after].iter().filter(|outside| !outside.is_empty()) {
                assert_eq!(blocked_text(outside), None, "{outside}");
                assert_eq!(blocked_text(&format!("::ffff:{outside}")), None, "mapped {outside}");
            }
        }
    }

    #[test]
    fn sec_001_ipv6_networks_by_name() {
        for (address, name) in [
            ("::", "unspecified"),
            ("::1", "loopback"),
            ("::7f00:1", "IPv4-compatible"),
            ("::808:808", "IPv4-compatible"),
            ("::ffff:0:7f00:1", "IPv4-translated"),
            ("::ffff:7f00:1", "loopback"),
            ("64:ff9b::a00:1", "private"),
            ("64:ff9b:1::808:808", "local NAT64"),
            ("100::1", "discard"),
            ("2001::1", "protocol assignment"),
            ("2001:0:7f00:1::", "protocol assignment"),
            ("2001:1ff:ffff::", "protocol assignment"),
            ("2001:db8::1", "documentation"),
            ("2002:7f00:1::", "6to4"),
            ("2002:808:808::", "6to4"),
            ("3fff:fff::1", "documentation"),
            ("5f00::1", "segment routing"),
            ("fd00:ec2::254", "private"),
            ("fe80::1", "link-local"),
            ("febf::1", "link-local"),
            ("fec0::1", "site-local"),
            ("ff02::1", "multicast"),
            ("4000::1", "reserved"),
            ("1::1", "reserved"),
            ("e000::1", "reserved"),
        ] {
            assert_eq!(blocked_text(address), Some(name), "{address}");
        }
        for public in ["2606:4700::1111", "2001:200::1", "2a00:1450::1", "3ffe::1", "64:ff9b::808:808"] {
            assert_eq!(blocked_text(public), None, "{public}");
        }
    }

    proptest! {
        // Every IPv6 form of an IPv4 address is judged like the address itself.
        #[test]
        fn sec_001_a_mapped_address_is_judged_like_itself(bits in any::<u32>()) {
            let bare = Ipv4Addr::from_bits(bits);
            prop_assert_eq!(blocked_reason(bare.into()), blocked_reason(bare.to_ipv6_mapped().into()));
        }

        // The standard library also classifies some of these networks; all that it calls private is blocked here.
        #[test]
        fn sec_001_no_less_than_the_standard_library(bits in any::<u32>()) {
            let v4 = Ipv4Addr::from_bits(bits);
            let special = v4.is_private() || v4.is_loopback() || v4.is_link_local() || v4.is_broadcast()
                || v4.is_multicast() || v4.is_unspecified() || v4.is_documentation();
            prop_assert!(!special || blocked_reason(v4.into()).is_some());
        }

        #[test]
        fn sec_001_only_one_eighth_of_ipv6_is_public(bits in any::<u128>()) {
            let v6 = Ipv6Addr::from_bits(bits);
            let public = blocked_reason(v6.into()).is_none();
            prop_assert!(!public || v6.to_ipv4_mapped().is_some() || bits >> 125 == 1 || bits >> 32 == 0x64_ff9b << 64);
        }
    }
}
